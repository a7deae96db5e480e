"""From fake quantization to integers, as Aidge asks for it: a model whose floats carry integers
(scale, Round, Clip; 8-bit weights, 4-bit activations) becomes a graph of integer operators.

The questions and where they are answered:
  which type must a quantizer be cast to?        test_bounds_are_the_types
  the integers are those of the fake-quantized   test_same_numbers
    model, in QOperators, in C and here
  QLinearConv and QGemm                          test_operators
  what does not support int8?                    test_maxpool_before_opset_12, test_list_types,
                                                   test_maxpool_behind_a_gemm
  what a scheme decides for a float model        test_w8a4_of_a_float_model
  a map from nodes to types and granularity,     test_types_node_by_node
    as an object or as attributes of the nodes;
    the map as what quantization yields
"""

import unittest

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from cmodel import CModel
from common import DIGITS, OracleCase, for_each, qxc, qxc_outputs, run_samples, session


def network(seed, weights=127, act=(-8, 7), cast=False, opset=17,
            channels=True):
    """x, scaling, Conv, Relu, scaling, MaxPool, Conv, scaling per channel, Flatten, Gemm."""
    rng = np.random.default_rng(seed)
    constants, nodes = {}, []

    def const(name, value):
        constants[name] = np.asarray(value, np.float32)
        return name

    def node(op, inputs, output, **attrs):
        nodes.append(helper.make_node(op, inputs, [output], name=f"{output}/{op}", **attrs))
        return output

    def scaling(x, y, m, lo, hi):
        x = node("Round", [node("Mul", [x, const(f"{y}.m", m)], f"{y}.mul")], f"{y}.round")
        x = node("Clip", [x, const(f"{y}.lo", lo), const(f"{y}.hi", hi)],
                 f"{y}.clip" if cast else y)
        if cast:
            node("Cast", [node("Cast", [x], f"{y}.int8", to=T.INT8)], y, to=T.FLOAT)
        return y

    def layer(op, x, i, shape, **attrs):
        w = rng.integers(-weights, weights + 1, shape)
        return node(op, [x, const(f"w{i}", w), const(f"b{i}", rng.integers(-900, 900, shape[0]))],
                    f"c{i}" if i < 3 else "y", **attrs)

    gain = 127 / weights * 8 / (act[1] + 1)
    x = scaling("x", "x0", 127 / 3.1, -128, 127)
    x = node("Relu", [layer("Conv", x, 1, (6, 3, 3, 3), pads=[1] * 4)], "r1")
    x = node("MaxPool", [scaling(x, "x1", 0.0011 * gain, 0, act[1])], "p1", kernel_shape=[2, 2],
             strides=[2, 2])
    x = layer("Conv", x, 2, (8, 6, 3, 3), pads=[1] * 4)
    x = scaling(x, "x2", np.linspace(0.002, 0.01, 8).reshape(8, 1, 1) if channels else 0.005, *act)
    layer("Gemm", node("Flatten", [x], "f"), 3, (10, 128), transB=1)
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, [1, 3, 8, 8])],
                              [helper.make_tensor_value_info("y", T.FLOAT, [1, 10])],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def node_ops(path):
    return [n.op_type for n in onnx.load(path).graph.node]


class FakeToTrue(OracleCase):
    def save(self, model):
        path = self.scratch / "m.onnx"
        onnx.save(model, path)
        return path

    def qop(self, path, *options):
        out = self.scratch / "qop.onnx"
        return out, qxc(path, "-emit=qop", "-no-sync", "-o", out, *options).stderr

    def samples(self, seed=0, n=24):
        return np.random.default_rng(seed).normal(size=(n, 3, 8, 8)).astype(np.float32)

    @for_each("W8A4", "W8A8", "W4A4", "W8A4 cast")
    def test_same_numbers(self, name):
        """Float model, integers here, in onnxruntime's QOperators, and in C: equal bit for bit."""
        weights = 7 if name.startswith("W4") else 127
        act = (-128, 127) if "A8" in name else (-8, 7)
        for seed in range(4):
            model = network(seed, weights, act, cast="cast" in name)
            path, x = self.save(model), self.samples(seed)
            want = run_samples(session(model), model, {"x": x})["y"].reshape(-1, 10)
            self.assertGreater(len(np.unique(want)), 50)
            text = self.scratch / "true.qir"
            qxc(path, "-form=true", "-o", text)
            np.testing.assert_array_equal(qxc_outputs(text, {"x": x}, self.scratch)["y"], want)
            out, _ = self.qop(path)
            for optimize in (False, True):
                got = run_samples(session(out, optimize), onnx.load(out), {"x": x})["y"]
                np.testing.assert_array_equal(got.reshape(-1, 10), want)
            qdq, fused = self.scratch / "qdq.onnx", self.scratch / "fused.onnx"
            qxc(path, "-emit=qdq", "-no-sync", "-quiet", "-o", qdq)
            got = run_samples(session(qdq, True, fused, int8=True), onnx.load(qdq), {"x": x})["y"]
            np.testing.assert_array_equal(got.reshape(-1, 10), want)
            self.assertEqual(node_ops(fused).count("QLinearConv"), 2)
            # Unfused, Conv sums up floats: what lies on a tie may go a step up or down (test_narrow_ranges.py), and
            # Gemm hands that on to all results of the sample.
            got = run_samples(session(qdq), onnx.load(qdq), {"x": x})["y"].reshape(-1, 10)
            self.assertLess(np.mean(np.any(got != want, axis=1)), 0.2)
        source = self.scratch / "m.c"
        qxc(path, "-emit=c", "-no-sync", "-o", source)
        code = CModel(source)
        np.testing.assert_array_equal(np.stack([code.run(s)[0] for s in x]), want)

    def test_bounds_are_the_types(self):
        """Clip(-8, 7) is 4 bits, carried in int8; weights are as wide as their numbers."""
        text = qxc(self.save(network(0)), "-form=true").stdout
        self.assertIn("quant !x0_quantized = int8q<0.024409449, 0>\n", text)  # of a real number: 3.1 / 127
        self.assertIn("quant !c1 = int8q<2^0, 0, range=0:7>\n", text)
        self.assertIn("quant !c2 = int8q<2^0, 0, range=-8:7>\n", text)
        self.assertIn("quant !w1 = int8q<0.045064516, 0>\n", text)  # 0.0011 / (3.1 / 127)
        self.assertRegex(text, r"quant !w2 = int8q<\[0\.002, [^>]*\], 0, axis=0>\n")
        for op in ("Round(", "Cast("):
            self.assertNotIn(op, text)

    def test_operators(self):
        """What computes is integers; 4 bits of a byte are a Clip, as no kernel saturates there."""
        out, said = self.qop(self.save(network(1)))
        self.assertEqual(node_ops(out), ["QuantizeLinear", "QLinearConv", "Clip", "MaxPool", "QLinearConv",
                                         "Clip", "Flatten", "QGemm"], said)
        model = onnx.load(out)
        onnx.checker.check_model(model, full_check=True)
        types = {v.name: v.type.tensor_type.elem_type for v in
                 onnx.shape_inference.infer_shapes(model).graph.value_info}
        self.assertEqual({types[n.output[0]] for n in model.graph.node if n.op_type == "Clip"},
                         {T.INT8})

    def test_maxpool_before_opset_12(self):
        """MaxPool takes int8 from opset 12 on; before, it stands between DQ and Q."""
        for opset, around in ((11, True), (12, False)):
            with self.subTest(opset=opset):
                model = network(2, act=(-128, 127), opset=opset, channels=False)
                path, x = self.save(model), self.samples()
                out, said = self.qop(path, f"-target-opset={opset}")
                inferred = onnx.shape_inference.infer_shapes(onnx.load(out), strict_mode=True).graph
                types = {v.name: v.type.tensor_type.elem_type for v in inferred.value_info}
                pool = next(n for n in inferred.node if n.op_type == "MaxPool")
                self.assertEqual(types[pool.input[0]], T.FLOAT if around else T.INT8)
                self.assertEqual("MaxPool takes no int8 before opset 12" in said, around)
                got = run_samples(session(out), onnx.load(out), {"x": x})["y"]
                np.testing.assert_array_equal(got, run_samples(session(model), model, {"x": x})["y"])

    def test_maxpool_behind_a_gemm(self):
        """Input, INT8, QGemm, INT8, MaxPool: not valid where MaxPool takes no int8, so a conversion goes between."""
        rng = np.random.default_rng(3)
        nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["g"]), helper.make_node("Reshape", ["g", "shape"], ["r"]),
                 helper.make_node("MaxPool", ["r"], ["y"], kernel_shape=[2, 2])]
        values = {"w": rng.normal(size=(8, 36)).astype(np.float32), "b": rng.normal(size=36).astype(np.float32),
                  "shape": np.array([1, 4, 3, 3])}
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, [1, 8])],
                                  [helper.make_tensor_value_info("y", T.FLOAT, [1, 4, 2, 2])],
                                  [numpy_helper.from_array(v, k) for k, v in values.items()])
        x, calib = rng.normal(size=(30, 8)).astype(np.float32), self.scratch / "x.npz"
        np.savez(calib, x=x)
        for opset in (11, 12):
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
            path = self.save(model)
            out, said = self.qop(path, f"-calib={calib}", f"-target-opset={opset}", "-per-tensor", "-placement=all")
            ops = node_ops(out)
            self.assertIn("QGemm", ops)
            self.assertEqual("DequantizeLinear" in ops[:ops.index("MaxPool")], opset < 12, ops)
            self.assertEqual("MaxPool takes no uint8 before opset 12" in said, opset < 12)
            got, want = (run_samples(session(p), onnx.load(p), {"x": x})["y"] for p in (out, path))
            self.assertLess(np.abs(got - want).max(), 0.03 * np.abs(want).max())

    def test_list_types(self):
        """The schemas' answer, as onnx.defs gives it."""
        for op, opset in (("MaxPool", 11), ("MaxPool", 12), ("Add", 18), ("QLinearConv", 21)):
            with self.subTest(op=op, opset=opset):
                schema = onnx.defs.get_schema(op, opset)
                var = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
                text = qxc("list", "types", op, f"-target-opset={opset}").stdout
                row = next(line for line in text.splitlines() if line.startswith("  input 0 "))
                self.assertEqual({f"tensor({t})" for t in row.split(": ")[1].split()},
                                 set(var[schema.inputs[0].type_str]))

    def test_w8a4_of_a_float_model(self):
        """8-bit weights, 4-bit activations: a scheme says so, and the bits survive to the end."""
        scheme, out = self.scratch / "w8a4.scheme", self.scratch / "digits.onnx"
        scheme.write_text("scheme {\n weights int8q sym per-channel\n"
                          " activations int4q in uint8q\n}\n")
        qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", f"-scheme={scheme}",
            "-emit=qop", "-no-sync", "-o", out)
        ops = node_ops(out)
        self.assertIn("QLinearConv", ops)
        self.assertNotIn("Conv", ops)
        with np.load(DIGITS / "test.npz") as data:
            image, labels = data["image"], data["labels"]
        model = onnx.load(out)
        got = run_samples(session(out), model, {"image": image})["logits"].reshape(-1, 10)
        self.assertGreater(np.mean(np.argmax(got, axis=1) == labels), 0.9)
        here = qxc_outputs(out, {"image": image}, self.scratch)["logits"].reshape(-1, 10)
        step = np.diff(np.unique(got)).min()
        self.assertLessEqual(np.max(np.abs(got - here)) / step, 1.01)
        qdq, fused = self.scratch / "qdq.onnx", self.scratch / "fused.onnx"
        qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", f"-scheme={scheme}", "-emit=qdq", "-no-sync", "-o", qdq)
        same = run_samples(session(qdq, True, fused), onnx.load(qdq), {"image": image})["logits"].reshape(-1, 10)
        np.testing.assert_array_equal(same, got)  # the Clip behind Q leaves operator and Q side by side: both fuse
        self.assertEqual(node_ops(fused).count("QLinearConv"), 4)
        self.assertFalse({"Conv", "FusedConv", "Add", "Gemm"} & set(node_ops(fused)))

    def test_types_node_by_node(self):
        """For each node weight type, activation type, per tensor or per channel: as a map, as attributes, and back."""
        wanted = {"stem.conv": ("int8q per-tensor", "uint8q"), "widen.conv": ("int8q per-channel", "int4q in uint8q"),
                  "block.pointwise": ("int4q per-channel", "uint8q"), "head.linear": ("int8q per-channel", "int16q sym")}
        scheme, model = self.scratch / "map.scheme", onnx.load(DIGITS / "digits.onnx")
        scheme.write_text("scheme {\n" + "".join(f' node "{n}" weights {w} activations {a}\n' for n, (w, a) in wanted.items()) + "}\n")
        for node in model.graph.node:
            if node.name in wanted:
                for key, value in zip(("weights", "activations"), wanted[node.name]):
                    node.metadata_props.add(key=f"quantization.{key}", value=value)
        calib = f"-calib={DIGITS / 'calib.npz'}"
        rows = []
        for source, options in ((DIGITS / "digits.onnx", (calib, f"-scheme={scheme}")), (self.save(model), (calib,))):
            text = self.scratch / "fake.qir"
            qxc(source, *options, "-quiet", "-no-sync", "-o", text)
            rows.append(qxc("list", "quant", text).stdout)
        self.assertEqual(*rows)
        row = {line.split()[-1]: line.split() for line in rows[0].splitlines() if line}
        kinds = {name: (row[name][0], row[name][2]) for name in row if name.split("_")[0] in (
            "stem.conv.weight", "widen.conv.weight", "block.pointwise.weight", "head.linear.weight", "logits")}
        self.assertEqual({("int8q", "tensor"), ("int8q", "axis"), ("int4q", "axis"), ("int16q", "tensor")}, set(kinds.values()), rows[0])
        made = self.scratch / "made.scheme"  # what quantization decided is such a map, and gives the same model without data
        qxc(DIGITS / "digits.onnx", calib, f"-scheme={scheme}", "-emit=scheme", "-quiet", "-no-sync", "-o", made)
        again = self.scratch / "again.qir"
        qxc(DIGITS / "digits.onnx", f"-scheme={made}", "-quiet", "-no-sync", "-o", again)
        self.assertEqual(rows[0], qxc("list", "quant", again).stdout)


if __name__ == "__main__":
    unittest.main()
