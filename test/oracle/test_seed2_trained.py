"""-weights-from: a float model and one of the same names that was trained quantized. Three facts
are reused and never computed again: which operators are quantized, the scales, the weights. And
-scales-from, which takes the scales alone."""

import re
import unittest

import numpy as np
import onnx
from onnx import helper, numpy_helper

from common import DIGITS, OracleCase, for_each, qxc, qxc_outputs
from test_seed0_qat import outputs, spelled_out, trained

CONVERSIONS = ("QuantizeLinear", "DequantizeLinear", "Quant")


def float_twin(model, rng):
    """Without Q, Clip of integers, DQ; with other weights of the same names."""
    given = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    stands_for, nodes = {}, []
    for n in model.graph.node:
        ints = n.op_type == "Clip" and n.input[0] in (*stands_for, *given)
        if n.op_type in CONVERSIONS or ints:
            stands_for[n.output[0]] = stands_for.get(n.input[0], n.input[0])
            continue
        nodes.append(helper.make_node(n.op_type, [stands_for.get(i, i) for i in n.input], n.output,
                                      name=n.name))
        nodes[-1].attribute.extend(n.attribute)
    last = stands_for[model.graph.output[0].name]
    for n in nodes:
        n.output[0] = "y" if n.output[0] == last else n.output[0]
    used = {i for n in nodes for i in n.input}
    constants = [numpy_helper.from_array(rng.normal(size=a.shape).astype(np.float32), k)
                 for k, a in given.items() if k in used]
    graph = helper.make_graph(nodes, "g", model.graph.input, model.graph.output, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


class Trained(OracleCase):
    def save(self, model, name):
        path = self.scratch / name
        onnx.save(model, path)
        return path

    @for_each("torch", "brevitas", "qonnx")
    def test_all_three_facts(self, dialect):
        rng = np.random.default_rng(11)
        donor = trained(True, rng, dialect)
        trained_path = self.save(donor, "trained.onnx")
        path = self.save(float_twin(donor, rng), "float.onnx")
        x = rng.normal(size=(8, 3, 8, 8)).astype(np.float32) * 2
        want = outputs(spelled_out(donor), x)
        self.assertFalse(np.array_equal(outputs(onnx.load(path), x), want))
        text, qop = self.scratch / "t.qir", self.scratch / "t.onnx"
        qxc(trained_path, "-form=true", "-o", text)
        qxc(trained_path, "-emit=qop", "-no-sync", "-o", qop)
        for source in (trained_path, text, qop)[:3 if dialect == "torch" else 2]:
            # the Clips behind QOperators are operators of their own, which the float model lacks
            with self.subTest(source=source.name):
                out = self.scratch / "out.onnx"
                qxc(path, f"-weights-from={source}", "-emit=qdq", "-no-sync", "-o", out)
                np.testing.assert_array_equal(outputs(out, x), want)
                np.testing.assert_array_equal(qxc_outputs(out, {"x": x}, self.scratch)["y"], want)

    def test_float_operators_stay(self):
        """What the other model leaves float is left float here."""
        rng = np.random.default_rng(12)
        donor = trained(True, rng, "torch")
        kept = next(n for n in donor.graph.node if n.output[0] == "c2")
        kept.input[1] = "v"
        nodes = [n for n in donor.graph.node if n.output[0] not in ("v.q", "v.f")]
        last = next(i for i, n in enumerate(nodes) if n.output[0] == "c2")
        nodes = nodes[:last + 1]
        nodes[-1].output[0] = "y"
        del donor.graph.node[:]
        donor.graph.node.extend(nodes)
        twin = float_twin_of_part(donor, rng)
        out = self.scratch / "out.onnx"
        qxc(self.save(twin, "float.onnx"), f"-weights-from={self.save(donor, 'trained.onnx')}",
            "-emit=qop", "-no-sync", "-o", out)
        self.assertEqual([n.op_type for n in onnx.load(out).graph.node if "Conv" in n.op_type],
                         ["QLinearConv", "Conv"])
        x = rng.normal(size=(4, 3, 8, 8)).astype(np.float32)
        np.testing.assert_array_equal(outputs(out, x), outputs(donor, x))

    def test_mismatches_all_at_once(self):
        rng = np.random.default_rng(13)
        donor = trained(True, rng, "torch")
        next(t for t in donor.graph.initializer if t.name == "w").name = "weight_2"
        next(n for n in donor.graph.node if n.output[0] == "w.q").input[0] = "weight_2"
        twin = float_twin(donor, rng)
        for t in twin.graph.initializer:
            if t.name == "v":
                t.CopyFrom(numpy_helper.from_array(np.zeros((8, 6, 1, 1), np.float32), "v"))
            if t.name == "weight_2":
                t.name = "weight_1"
        next(n for n in twin.graph.node if n.output[0] == "c1").input[1] = "weight_1"
        out = self.scratch / "none.onnx"
        done = qxc(self.save(twin, "float.onnx"), "-emit=qdq", "-o", out,
                   f"-weights-from={self.save(donor, 'trained.onnx')}", ok=False)
        self.assertEqual((done.returncode, out.exists()), (1, False))
        for text in (r'initializer "weight_1" .*error: .*trained.onnx has no constant \'weight_1\'',
                     r'initializer "v" .*error: \'v\' is float\[8,6,1,1\] here and .*\[8,6,3,3\] in',
                     r"note: did you mean 'weight_2'\?",
                     r"error: .*trained.onnx quantizes 'weight_2', of which .*float.onnx has nothing",
                     r"note: did you mean 'weight_1'\?"):
            self.assertTrue(re.search(text, done.stderr), f"{text}\n{done.stderr}")

    def test_scales_of_a_model(self):
        """The same scales, whichever form they come in; weights are this model's own."""
        model, calib = DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}"
        def values_for(*target):
            want = qxc(model, calib, *target, "-emit=scheme", "-quiet").stdout
            return [line for line in want.splitlines() if line.lstrip().startswith("value ") and "weight" not in line]
        everywhere, in_onnxruntime = values_for(), values_for("-target=ort-cpu")
        self.assertEqual(len(everywhere), len(in_onnxruntime) + 1)  # the output, which leaves as float there
        self.assertGreater(len(in_onnxruntime), 8)
        for form in (["-o", "x.qir"], ["-form=true", "-o", "x.qir"],
                     ["-emit=qdq", "-o", "x.onnx"], ["-emit=qop", "-o", "x.onnx"]):
            with self.subTest(form=form):
                path = self.scratch / form[-1]
                qxc(model, calib, *form[:-1], path, "-quiet")
                got = qxc(model, f"-scales-from={path}", "-emit=scheme", "-quiet").stdout
                values = in_onnxruntime if path.suffix == ".onnx" else everywhere
                found = sum(line in got for line in values)
                if form[0] == "-emit=qop":  # Conv and Relu are one there, with one name
                    self.assertGreater(found, 8)
                else:
                    self.assertEqual(found, len(values))

    def test_statistics_of_a_model(self):
        model, calib = DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}"
        stats = self.scratch / "stats.onnx"
        qxc(model, calib, "-emit=onnx", "-o", stats, "-quiet")
        got = qxc(model, f"-scales-from={stats}", "-emit=scheme", "-quiet").stdout
        self.assertEqual(got, qxc(model, calib, "-emit=scheme", "-quiet").stdout)
        done = qxc(model, f"-scales-from={DIGITS / 'digits.onnx'}", ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no quantization and no statistics", done.stderr)


def float_twin_of_part(model, rng):
    """Of a model whose output is not quantized."""
    model_copy = onnx.ModelProto()
    model_copy.CopyFrom(model)
    model_copy.graph.node.append(helper.make_node("DequantizeLinear", ["y", "xq.s"], ["z"]))
    model_copy.graph.output[0].name = "z"
    twin = float_twin(model_copy, rng)
    twin.graph.output[0].name = "y"
    return twin


if __name__ == "__main__":
    unittest.main()
