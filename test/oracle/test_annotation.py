"""Quantization annotations: GraphProto.quantization_annotation becomes types and comes back.

An annotated float model, raised with raise-annotations and written again with annotate, is equal to
what it was; in one process and through the .qir text. What -annotate writes for a quantized model
names the scale and zero point that its Q and DQ nodes have.
"""

import re
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import DIGITS, OracleCase, qxc, session

F = TensorProto.FLOAT


def annotate(g, tensor, scale="s", zp="z", **more):
    a = g.quantization_annotation.add()
    if tensor is not None:
        a.tensor_name = tensor
    for key, value in {"SCALE_TENSOR": scale, "ZERO_POINT_TENSOR": zp, **more}.items():
        if value is not None:
            a.quant_parameter_tensor_names.add(key=key, value=value)
    return a


def entries(g):
    return {a.tensor_name: {p.key: p.value for p in a.quant_parameter_tensor_names}
            for a in g.quantization_annotation}


def model(annotations=(), inits=None, opset=17):
    """x -> Conv -> Relu -> y, all float; weights 6x3x1x1."""
    inits = {"s": np.float32(0.05), "z": np.uint8(3), **(inits or {})}
    inits["w"] = np.linspace(-1, 1, 18, dtype=np.float32).reshape(6, 3, 1, 1)
    nodes = [helper.make_node("Conv", ["x", "w"], ["t"], "conv"),
             helper.make_node("Relu", ["t"], ["y"], "relu")]
    g = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", F, [1, 3, 6, 4])],
                          [helper.make_tensor_value_info("y", F, [1, 6, 6, 4])],
                          [numpy_helper.from_array(v, k) for k, v in inits.items()])
    for a in annotations:
        annotate(g, *a)
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


WS = np.float32([0.01, 0.02, 0.03, 0.04, 0.05, 0.06])
WEIGHT = {"ws": WS.reshape(6, 1, 1, 1), "wz": np.zeros((6, 1, 1, 1), np.int8)}


class Annotations(OracleCase):
    def path(self, name):
        return self.scratch / f"{self.id().rsplit('.', 1)[1]}-{name}"

    def saved(self, m, name="m.onnx"):
        path = self.path(name)
        onnx.save(m, path)
        return path

    def text(self, m):
        """The typed form, and what was said about it."""
        path = self.path("m.qir")
        done = qxc(self.saved(m), "-passes=raise-annotations", "-emit=qir", "-o", path)
        return path.read_text(), done.stderr

    def back(self, m):
        """The model after both ways there and back; they must agree."""
        a, b = self.path("a.onnx"), self.path("b.onnx")
        self.text(m)
        qxc(self.path("m.qir"), "-emit=onnx", "-annotate", "-o", a)
        qxc(self.saved(m), "-passes=raise-annotations,annotate", "-emit=onnx", "-o", b)
        self.assertEqual(a.read_bytes(), b.read_bytes())
        m = onnx.load(a)
        onnx.checker.check_model(m, full_check=True)
        return m

    def same(self, m, *types):
        """Raised to these types, without a word; equal after the way back."""
        text, said = self.text(m)
        self.assertNotIn("warning", said)
        for t in types:
            self.assertRegex(text, t)
        self.assertNotIn("extra", text)
        self.assertEqual(self.back(m), m)

    def kept(self, m, why):
        """Stays as it is, with a warning."""
        text, said = self.text(m)
        self.assertRegex(said, f"warning: the annotation of .* stays as it is: .*{why}")
        self.assertEqual(self.back(m), m)
        return text


class Lossless(Annotations):
    def test_activation(self):
        self.same(model([["x"]]), r'%x : float\[1,3,6,4\] ~ !x', r"quant !x = uint8q<0.05, 3>")

    def test_shared(self):
        m = model([["t"], ["x"], ["y"]])
        self.same(m, r'%x : float\[1,3,6,4\] ~ !t', r"%t : float\S* ~ !t")

    def test_weight_per_channel(self):
        m = model([["w", "ws", "wz"], ["x"]], WEIGHT)
        self.same(m, r"quant !w = int8q<\[0.01, .*axis=0>")

    def test_weight_vector(self):
        """A vector fits the one axis of its length."""
        m = model([["w", "ws", "wz"]], {"ws": WS, "wz": np.zeros(6, np.int8)})
        self.same(m, r"quant !w = int8q<\[0.01, .*axis=0>")

    def test_blocks(self):
        m = model([["x", "xs", "xz"]], {"xs": np.float32([1, 2]).reshape(1, 1, 2, 1),
                                       "xz": np.zeros((1, 1, 2, 1), np.uint8)})
        self.same(m, r"axis=2, block=3|axis=2.*3")

    def test_no_zero_point(self):
        self.same(model([["x", "s", None]]), r"quant !x = uint8q<0.05")

    def test_one_zero_point_for_all(self):
        self.same(model([["w", "ws", "wz"]], {**WEIGHT, "wz": np.int8(0)}), "quant !w")

    def test_shapes_of_one(self):
        m = model([["x"]], {"s": np.float32([0.05]), "z": np.uint8([[3]])})
        self.same(m, "quant !x = uint8q<0.05, 3>")

    def test_order_of_keys(self):
        m = model()
        a = m.graph.quantization_annotation.add(tensor_name="x")
        a.quant_parameter_tensor_names.add(key="ZERO_POINT_TENSOR", value="z")
        a.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
        self.assertEqual(self.back(m), m)

    def test_integers(self):
        """Integer constants stay integers for who reads them; the type says what they mean."""
        m = model([["i", "s", "iz"]], {"i": np.int8([1, 2]), "iz": np.int8(0)})
        m.graph.node.append(helper.make_node("Cast", ["i"], ["c"], to=F))
        m.graph.output.append(helper.make_tensor_value_info("c", F, [2]))
        self.same(m, r"%i : int8\[2\] ~ !i")

    def test_constant_nodes(self):
        m = model([["x", "cs", "z"]])
        m.graph.node.insert(0, helper.make_node("Constant", [], ["cs"], value_float=0.3))
        self.same(m, "quant !x = uint8q<0.3, 3>")

    def test_names_and_docs(self):
        m = model([["x", "s\x01 \"é", "z"]], {"s\x01 \"é": np.float32(0.25)})
        for t in m.graph.initializer:
            t.doc_string = "doc of " + t.name
        self.same(m)

    def test_subgraph(self):
        """Names are those of the body, then those around it."""
        body = helper.make_graph([helper.make_node("Neg", ["x"], ["b"])], "b", [],
                                 [helper.make_tensor_value_info("b", F, [1, 3, 6, 4])],
                                 [numpy_helper.from_array(np.float32(0.5), "bs")])
        annotate(body, "b", "bs", "z")
        m = model([["x"]])
        m.graph.input.append(helper.make_tensor_value_info("k", TensorProto.BOOL, []))
        m.graph.node.append(helper.make_node("If", ["k"], ["i"], then_branch=body,
                                             else_branch=body))
        m.graph.output.append(helper.make_tensor_value_info("i", F, [1, 3, 6, 4]))
        m.graph.node[-1].attribute[0].g.node[0].output[0] = "b2"
        m.graph.node[-1].attribute[0].g.output[0].name = "b2"
        m.graph.node[-1].attribute[0].g.initializer[0].name = "bs2"
        a = m.graph.node[-1].attribute[0].g.quantization_annotation[0]
        a.tensor_name, a.quant_parameter_tensor_names[0].value = "b2", "bs2"
        self.same(m, r"%b2 : float\S* ~ !b2")


class Malformed(Annotations):
    def test_each(self):
        cases = [
            (["gone"], {}, "no such tensor"), (["", "s"], {}, "names no tensor"),
            (["x", None], {}, "no scale"), (["x", "gone"], {}, "no value of its scale's name"),
            (["x", "s", "gone"], {}, "no value of its zero point's name"),
            (["x", "t"], {}, "scale is no constant"), (["x", "s", "t"], {}, "zero point is no constant"),
            (["x", "z"], {}, "scale is not float"), (["x", "s", "s"], {}, "zero point is no integer"),
            (["x", "e", "z"], {"e": np.zeros(0, np.float32)}, "empty"),
            (["x", "e", "z"], {"e": np.float32(-1)}, "not a positive number"),
            (["x", "e", "z"], {"e": np.float32(np.nan)}, "not a positive number"),
            (["x", "e"], {"e": np.ones((1, 3, 1, 1), np.float32), "z": np.zeros(3, np.uint8)},
             "another shape"),
            (["x", "e", "z"], {"e": np.ones(5, np.float32)}, "does not fit"),
            (["x", "e", "z"], {"e": np.ones((1, 1, 4, 1), np.float32)}, "does not fit"),
            (["i", "s", "z"], {"i": np.int8([1])}, "another type than the integers"),
            (["i", "s", "z"], {"i": np.array([True])}, "neither float nor integers")]
        for a, inits, why in cases:
            with self.subTest(why):
                m = model([a], inits)
                text = self.kept(m, why)
                self.assertNotIn(" ~ ", text)

    def test_unknown_key(self):
        m = model()
        annotate(m.graph, "x", **{"WORD": "s"})
        self.kept(m, "key besides")

    def test_twice(self):
        m = model([["x"], ["x", "s", None]])
        self.kept(m, "quantized already")

    def test_kept_between_raised(self):
        m = model([["x"], ["gone"], ["y"], ["t", "gone"], ["t"]])
        self.kept(m, "no such tensor")

    def test_unused_parameters_survive_passes(self):
        """Scales that an annotation alone names are not swept with unused constants."""
        m = model([["x", "s", "z", ], ["gone"]], {"unused": np.float32(1)})
        out = self.path("o.onnx")
        qxc(self.saved(m), "-passes=fold-const,raise-quant", "-emit=onnx", "-o", out)
        names = {t.name for t in onnx.load(out).graph.initializer}
        self.assertTrue({"s", "z"} <= names, names)


class Written(Annotations):
    def digits(self, *more):
        out = self.path("digits.onnx")
        qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", *more, "-o", out)
        return out

    def check(self, path):
        """Every annotation names a tensor and constants that are there."""
        m = onnx.load(path)
        onnx.checker.check_model(m, full_check=True)
        g = m.graph
        consts = {t.name: numpy_helper.to_array(t) for t in g.initializer}
        known = consts.keys() | {o for n in g.node for o in n.output} | {i.name for i in g.input}
        found = entries(g)
        self.assertEqual(len(found), len(g.quantization_annotation))
        for tensor, params in found.items():
            self.assertIn(tensor, known)
            self.assertIn(params["SCALE_TENSOR"], consts)
            self.assertIn(params.get("ZERO_POINT_TENSOR", params["SCALE_TENSOR"]), consts)
        return g, found

    def test_qdq(self):
        g, found = self.check(self.digits("-emit=qdq", "-annotate"))
        for n in g.node:
            if n.op_type in ("QuantizeLinear", "DequantizeLinear"):
                tensor = n.output[0] if n.op_type == "QuantizeLinear" else n.input[0]
                self.assertEqual(found[tensor], {"SCALE_TENSOR": n.input[1],
                                                 "ZERO_POINT_TENSOR": n.input[2]})

    def test_qdq_without(self):
        a, b = self.digits("-emit=qdq"), self.path("plain.onnx")
        m = onnx.load(a)
        self.assertFalse(m.graph.quantization_annotation)
        qxc(a, "-emit=onnx", "-annotate", "-o", b)
        m2 = onnx.load(b)
        self.assertTrue(m2.graph.quantization_annotation)
        del m2.graph.quantization_annotation[:]
        self.assertEqual(m, m2)

    def test_qop(self):
        g, found = self.check(self.digits("-emit=qop", "-annotate"))
        conv = next(n for n in g.node if n.op_type == "QLinearConv")
        for tensor, s, z in ((conv.input[0], 1, 2), (conv.input[3], 4, 5),
                             (conv.output[0], 6, 7)):
            self.assertEqual(found[tensor], {"SCALE_TENSOR": conv.input[s],
                                             "ZERO_POINT_TENSOR": conv.input[z]})

    def test_float_and_back(self):
        """A float model that carries its quantization: the same QDQ model as without the detour."""
        path = self.digits("-emit=onnx", "-annotate")
        g, found = self.check(path)
        self.assertTrue(found)
        self.assertFalse({"QuantizeLinear", "DequantizeLinear"} & {n.op_type for n in g.node})
        once, detour = self.digits("-emit=qdq").with_name("once.onnx"), self.path("detour.onnx")
        qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", "-emit=qdq", "-o", once)
        qxc(path, "-emit=qdq", "-o", detour)
        a, b = session(once), session(detour)
        name = a.get_inputs()[0].name
        x = np.random.default_rng(1).random(
            [d if isinstance(d, int) else 1 for d in a.get_inputs()[0].shape], np.float32)
        np.testing.assert_array_equal(a.run(None, {name: x})[0], b.run(None, {name: x})[0])

    def test_float_same_numbers(self):
        """The annotated model computes in float: onnxruntime takes it, with equal results."""
        plain, noted = model([["x"]]), self.path("n.onnx")
        qxc(self.saved(plain), "-emit=onnx", "-annotate", "-o", noted)
        x = {"x": np.random.default_rng(2).normal(size=(1, 3, 6, 4)).astype(np.float32)}
        np.testing.assert_array_equal(session(plain).run(None, x)[0], session(noted).run(None, x)[0])

    def test_edited(self):
        """A changed type wins; its old constants go where nothing else wants them."""
        self.text(model([["x"], ["w", "ws", "wz"]], WEIGHT))
        path = self.path("m.qir")
        path.write_text(path.read_text().replace("uint8q<0.05, 3>", "uint8q<0.5, 4>"))
        out = self.path("e.onnx")
        qxc(path, "-emit=onnx", "-annotate", "-o", out)
        g, found = self.check(out)
        consts = {t.name: numpy_helper.to_array(t) for t in g.initializer}
        self.assertEqual(consts[found["x"]["SCALE_TENSOR"]], np.float32(0.5))
        self.assertEqual(consts[found["x"]["ZERO_POINT_TENSOR"]], 4)
        self.assertEqual(found["w"], {"SCALE_TENSOR": "ws", "ZERO_POINT_TENSOR": "wz"})
        self.assertEqual(len(consts), 5)

    def test_annotated_qdq_stays(self):
        """Q and DQ state the same as the annotation: both come back through the types."""
        path, text, again = self.digits("-emit=qdq", "-annotate"), self.path("t.qir"), self.path("r.onnx")
        qxc(path, "-form=true", "-emit=qir", "-o", text)
        qxc(text, "-emit=qdq", "-o", again)
        self.assertEqual(onnx.load(path).graph, onnx.load(again).graph)

    def test_wrong_use(self):
        done = qxc(self.saved(model()), "-annotate", "-emit=c", ok=False)
        self.assertEqual(done.returncode, 2)
        self.assertTrue(re.search("-annotate goes with", done.stderr))


if __name__ == "__main__":
    unittest.main()
