"""Raising and lowering a quantized model loses nothing: QDQ -> quantized types -> QDQ gives back the
names, the order, the sharing and the layout of every Q, DQ, scale and zero point.

Every model here takes two ways back: through the .qir text, and in one process. What remains
different is listed in docs/ir.md under "How ONNX spelled it"; nothing else may.
"""

import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import OracleCase, for_each, for_each_model, model_path, qxc
from spelled_models import MADE, float_weights, plain, shared

import onnxruntime.quantization as ortq

F = TensorProto.FLOAT


# ---- comparing ----

def tensor_text(t):
    """All of a tensor but the field its numbers stand in."""
    return (t.name, t.data_type, tuple(t.dims), t.doc_string,
            tuple((p.key, p.value) for p in t.metadata_props),
            numpy_helper.to_array(t).tobytes())


def node_text(n):
    plain = onnx.NodeProto()
    plain.CopyFrom(n)
    for a in plain.attribute:
        a.ClearField("g")
    return str(plain)


def differences(x, y, where="main"):
    """What two graphs differ in, in words."""
    found = []
    if len(x.node) != len(y.node):
        found.append(f"{where}: {len(x.node)} nodes became {len(y.node)}")
    for i, (n, k) in enumerate(zip(x.node, y.node)):
        if node_text(n) != node_text(k):
            found.append(f"{where}: node {i} was {node_text(n)!r}, is {node_text(k)!r}")
        for a, b in zip(n.attribute, k.attribute):
            if a.type == onnx.AttributeProto.GRAPH:
                found += differences(a.g, b.g, f"{where}/{n.name}")
    a, b = map(lambda g: [tensor_text(t) for t in g.initializer], (x, y))
    if a != b:
        found.append(f"{where}: initializers were {[t[0] for t in a]}, are {[t[0] for t in b]}; "
                     f"changed: {[t[0] for t in a if t not in b]}")
    for field in ("input", "output", "value_info"):
        a, b = (sorted(str(v) for v in getattr(g, field)) for g in (x, y))
        if a != b:
            found.append(f"{where}: {field} lost {[v for v in a if v not in b]}, "
                         f"gained {[v for v in b if v not in a]}")
    return found


def without_guards(model):
    """The model without each Sum of one operand that keeps onnxruntime from a fusion it has no kernel for."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    nodes = model.graph.node
    for s in [n for n in nodes if n.op_type == "Sum" and len(n.input) == 1]:
        for n in nodes:
            n.input[:] = [s.input[0] if i == s.output[0] else i for i in n.input]
        nodes.remove(s)
    return model


# ---- onnxruntime's quantizer ----

def small_float_model():
    """Conv, Relu, MaxPool, Conv, Add, GlobalAveragePool, Gemm: what quantizers treat differently."""
    rng = np.random.default_rng(1)
    init = []

    def w(name, *shape):
        init.append(numpy_helper.from_array(rng.normal(0, 0.2, shape).astype(np.float32), name))
        return name
    nodes = [
        helper.make_node("Conv", ["x", w("w1", 8, 3, 3, 3), w("b1", 8)], ["c1"], "conv1", pads=[1] * 4),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("MaxPool", ["r1"], ["p1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", w("w2", 8, 8, 3, 3), w("b2", 8)], ["c2"], "conv2",
                         pads=[1] * 4),
        helper.make_node("Add", ["c2", "p1"], ["a1"], "add1"),
        helper.make_node("GlobalAveragePool", ["a1"], ["g1"], "gap"),
        helper.make_node("Flatten", ["g1"], ["f1"], "flat"),
        helper.make_node("Gemm", ["f1", w("w3", 8, 5), w("b3", 5)], ["y"], "fc"),
    ]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", F, [1, 3, 8, 8])],
                              [helper.make_tensor_value_info("y", F, [1, 5])], init)
    return onnx.shape_inference.infer_shapes(helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


class Data(ortq.CalibrationDataReader):
    def __init__(self):
        rng = np.random.default_rng(2)
        self.items = iter([{"x": rng.normal(0, 1, (1, 3, 8, 8)).astype(np.float32)}
                           for _ in range(4)])

    def get_next(self):
        return next(self.items, None)


T = ortq.QuantType
QOPERATORS = {
    "default": {},
    "per_channel": {"per_channel": True, "activation_type": T.QUInt8},
    "uint8": {"activation_type": T.QUInt8, "weight_type": T.QUInt8},
}
QUANTIZER = {
    "default": {},
    "per_channel": {"per_channel": True},
    "uint8": {"activation_type": T.QUInt8, "weight_type": T.QUInt8},
    "int16": {"activation_type": T.QInt16, "weight_type": T.QInt16},
    "uint16": {"activation_type": T.QUInt16, "weight_type": T.QUInt8},
    "int4": {"weight_type": T.QInt4, "per_channel": True},
    "symmetric": {"extra_options": {"ActivationSymmetric": True, "WeightSymmetric": True}},
    "asymmetric_weights": {"extra_options": {"WeightSymmetric": False}},
    "pair_on_weight": {"extra_options": {"AddQDQPairToWeight": True}},
    "pair_on_weight_channel": {"per_channel": True, "extra_options": {"AddQDQPairToWeight": True}},
    "dedicated": {"extra_options": {"DedicatedQDQPair": True}},
    "float_bias": {"extra_options": {"QuantizeBias": False}},
    "microsoft": {"extra_options": {"UseQDQContribOps": True}},
    "reduce_range": {"reduce_range": True},
}


# ---- tests ----

class QuantNames(OracleCase):
    def lower(self, source, out, emit="lower-qdq"):
        qxc(source, f"-passes={emit}", "-keep-float-weights", "-emit=onnx", "-quiet", "-o", out)
        return onnx.load(out)

    def ways(self, path):
        """The model raised and lowered: through the text, in one process, and once more."""
        text, out = self.scratch / "m.qir", self.scratch / "out.onnx"
        qxc(path, "-passes=raise-quant", "-emit=qir", "-quiet", "-verify-roundtrip", "-o", text)
        yield "text", self.lower(text, out)
        yield "one process", self.lower(path, self.scratch / "one.onnx", "raise-quant,lower-qdq")
        self.assertEqual(out.read_bytes(), (self.scratch / "one.onnx").read_bytes())
        qxc(out, "-passes=raise-quant", "-emit=qir", "-quiet", "-o", text)
        self.lower(text, self.scratch / "again.onnx")
        self.assertEqual(out.read_bytes(), (self.scratch / "again.onnx").read_bytes())

    def check(self, model, path=None):
        if not path:
            path = self.scratch / "in.onnx"
            onnx.save(model, path)
        onnx.checker.check_model(model)
        for way, back in self.ways(path):
            with self.subTest(way):
                onnx.checker.check_model(back)
                if len(back.graph.node) > len(model.graph.node):
                    back = without_guards(back)
                self.assertEqual(differences(model.graph, back.graph), [])
                self.assertEqual(model.opset_import, back.opset_import)

    def test_external_parameters(self):
        """Scales and zero points in a file of their own stay there, as long as nothing changes them."""
        model, path = plain(axis=1), self.scratch / "in.onnx"
        onnx.save_model(model, path, save_as_external_data=True, location="in.bin", size_threshold=0)
        model, stored = onnx.load(path), onnx.load(path, load_external_data=False)

        def external(m):
            return {t.name: sorted((e.key, e.value) for e in t.external_data) for t in m.graph.initializer}
        self.assertTrue(all(external(stored).values()))
        for way, _ in self.ways(path):
            with self.subTest(way):
                out = self.scratch / ("out.onnx" if way == "text" else "one.onnx")
                back = onnx.load(out, load_external_data=False)
                self.assertEqual(external(back), external(stored))
                self.assertEqual(differences(model.graph, onnx.load(out).graph), [])
        text = self.scratch / "m.qir"
        text.write_text(text.read_text().replace("uint8q<0.1, 128>", "uint8q<0.25, 128>"))
        self.lower(text, self.scratch / "out.onnx")
        changed = external(onnx.load(self.scratch / "out.onnx", load_external_data=False))
        self.assertEqual({n for n, e in external(stored).items() if changed[n] != e}, {"ys"})
        elsewhere = self.scratch / "elsewhere"  # where the file is not: all becomes part of the text
        elsewhere.mkdir()
        qxc(path, "-passes=raise-quant", "-emit=qir", "-quiet", "-o", elsewhere / "m.qir")
        self.assertNotIn("in.bin", (elsewhere / "m.qir").read_text())
        back = self.lower(elsewhere / "m.qir", elsewhere / "out.onnx")
        self.assertEqual(differences(model.graph, back.graph), [])

    def edited(self, model, *changes):
        """Raised, changed as text, lowered."""
        path, text = self.scratch / "in.onnx", self.scratch / "m.qir"
        onnx.save(model, path)
        qxc(path, "-passes=raise-quant", "-emit=qir", "-quiet", "-o", text)
        content = text.read_text()
        for old, new in changes:
            self.assertEqual(content.count(old), 1, content)
            content = content.replace(old, new)
        text.write_text(content)
        return self.lower(text, self.scratch / "out.onnx")

    def test_edited_scale(self):
        """A changed scale changes its initializer and nothing else."""
        model = plain()
        back = self.edited(model, ("uint8q<0.1, 128>", "uint8q<0.25, 128>"))
        want = onnx.ModelProto()
        want.CopyFrom(model)
        [scale] = [t for t in want.graph.initializer if t.name == "ys"]
        scale.CopyFrom(numpy_helper.from_array(np.float32(0.25), "ys"))
        self.assertEqual(differences(want.graph, back.graph), [])

    def test_edited_zero_point_where_there_was_none(self):
        model = plain(zp=False)
        back = self.edited(model, ("quant !f = uint8q<0.1>", "quant !f = uint8q<0.1, 5>"))
        q = [n for n in back.graph.node if "ys" in n.input]
        self.assertEqual([n.name for n in q], ["n/qy", "n/y"])
        for n in q:
            self.assertEqual(len(n.input), 3)

    def test_edited_share(self):
        """A scale that several values shared is split where they no longer agree."""
        back = self.edited(shared(), ("%f : !f[1,3]", "%f : uint8q<0.25, 3>[1,3]"))
        onnx.checker.check_model(back)
        value = {t.name: float(numpy_helper.to_array(t)) for t in back.graph.initializer
                 if "scale" in t.name}
        scale = {n.name: value[n.input[1]] for n in back.graph.node
                 if n.op_type == "QuantizeLinear"}
        self.assertEqual(scale["n/qf"], 0.25)
        self.assertEqual({n.input[1] for n in back.graph.node if n.name in ("n/qx", "n/qr")},
                         {"scale of x"})
        self.assertAlmostEqual(value["scale of x"], 0.05)

    def test_edited_weight(self):
        """Integers that were edited win over the float weight they came of."""
        back = self.edited(float_weights(), ("[7, 29,", "[9, 29,"))
        names = [t.name for t in back.graph.initializer]
        w = numpy_helper.to_array(back.graph.initializer[names.index("w")])
        self.assertEqual(w.dtype, np.uint8)
        self.assertEqual(w.flat[0], 9)

    def test_float_weight_as_integers(self):
        """Unless it is asked for, a weight is stored as the integers that its Q makes."""
        path, out = self.scratch / "in.onnx", self.scratch / "out.onnx"
        onnx.save(float_weights(), path)
        qxc(path, "-emit=qdq", "-quiet", "-o", out)
        back = onnx.load(out)
        kinds = {t.name: t.data_type for t in back.graph.initializer}
        self.assertEqual(kinds["w"], onnx.TensorProto.UINT8)
        self.assertNotIn("n/qw", [n.name for n in back.graph.node])

    @for_each("dq_for_each_consumer", "float_weights", "chain", "branches")
    def test_senseless_lines(self, name):
        """Lines that fit nothing are ignored or refused; the model stays a model."""
        keys = ["in", "out", "of", "scale", "zero_point", "at", "to", "stated", "local", "data",
                "axis", "block_size", "output_dtype"]
        values = ["5", "-3", '"x"', '["a", "b:0"]', "[1, 2]", "9223372036854775807", "1.5", '""',
                  "tensor(float[3], [0.1, 0.2, 0.3] name \"s\")", "tensor(int8[1], [1])",
                  'tensor(string[1], ["a"])']
        words = ["QuantizeLinear", "DequantizeLinear", "float", "integers"]
        path, text = self.scratch / "in.onnx", self.scratch / "m.qir"
        onnx.save(MADE[name](), path)
        qxc(path, "-passes=raise-quant", "-emit=qir", "-quiet", "-o", text)
        lines = text.read_text().splitlines()
        rng = np.random.default_rng(7)
        for _ in range(20):
            changed = list(lines)
            for i, line in enumerate(lines):
                if line.startswith("  onnx %") and rng.random() < 0.5:
                    some = rng.choice(keys, rng.integers(1, 7), replace=False)
                    fields = ", ".join(f"{k}={rng.choice(values)}" for k in some)
                    changed[i] = f"{line.split(' = ')[0]} = {rng.choice(words)} <{fields}>"
            text.write_text("\n".join(changed) + "\n")
            for emit in ("lower-qdq", "lower-qop"):
                out = self.scratch / "out.onnx"
                done = qxc(text, f"-passes={emit}", "-emit=onnx", "-quiet", "-o", out, ok=False)
                self.assertIn(done.returncode, (0, 1), done.stderr)
                if done.returncode == 0:
                    onnx.checker.check_model(onnx.load(out))

    def test_deleted_lines(self):
        """Without the onnx lines the model is lowered as any other."""
        path, text = self.scratch / "in.onnx", self.scratch / "m.qir"
        onnx.save(plain(), path)
        qxc(path, "-passes=raise-quant", "-emit=qir", "-quiet", "-o", text)
        lines = text.read_text().splitlines(True)
        text.write_text("".join(l for l in lines if not l.startswith("  onnx ")))
        back = self.lower(text, self.scratch / "out.onnx")
        onnx.checker.check_model(back)
        self.assertIn("w_scale", [t.name for t in back.graph.initializer])

    @for_each_model()
    def test_trained(self, name):
        path = model_path(name, "int8_qdq")
        self.check(onnx.load(path), path)

    @for_each(*MADE)
    def test_made(self, name):
        self.check(MADE[name]())

    @for_each(*QUANTIZER)
    def test_onnxruntime(self, name):
        source, out = self.scratch / "float.onnx", self.scratch / "quantized.onnx"
        onnx.save(small_float_model(), source)
        ortq.quantize_static(source, out, Data(), **QUANTIZER[name])
        self.check(onnx.load(out))

    @for_each(*QOPERATORS)
    def test_qoperator(self, name):
        """QOperators -> types -> QOperators, as far as nothing is chosen anew."""
        source, out = self.scratch / "float.onnx", self.scratch / "quantized.onnx"
        onnx.save(small_float_model(), source)
        ortq.quantize_static(source, out, Data(), quant_format=ortq.QuantFormat.QOperator,
                             **QOPERATORS[name])
        text = self.scratch / "m.qir"
        qxc(out, "-passes=raise-quant", "-emit=qir", "-quiet", "-o", text)
        back = self.lower(text, self.scratch / "back.onnx", "lower-qop")
        model = onnx.load(out)
        values = {o for n in model.graph.node for o in n.output}
        stale = [v for v in model.graph.value_info if v.name not in values]
        for v in stale:  # of the float model; the raised values take their names
            model.graph.value_info.remove(v)
        for n in model.graph.node:  # channels_last=0 says what holds anyway
            for a in [a for a in n.attribute if a.name == "channels_last"]:
                n.attribute.remove(a)
        for v in [v for v in back.graph.value_info if v.name not in values]:
            back.graph.value_info.remove(v)
        self.assertEqual(differences(model.graph, back.graph), [])


if __name__ == "__main__":
    unittest.main()
