#!/usr/bin/env python3
"""Models whose value_info and outputs state what the operators do not yield.

They read with a warning each, come back from ONNX -> .qir -> ONNX field by field, and compute, quantize and
compile as the same models without the wrong words. onnxruntime loads some of those whose elements are right.
An output of other elements is refused where the model is computed with.
"""

import re
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

import float_models
import onnx_bytes
from common import OracleCase, feed, for_each, qxc, qxc_outputs, session

MODELS = {"mlp": float_models.mlp, "convnet": float_models.convnet, "transformer": float_models.transformer}


def dims(name, elem, shape):
    return helper.make_tensor_value_info(name, elem, [d + 1 for d in shape])


def rank(name, elem, shape):
    return helper.make_tensor_value_info(name, elem, [1] * 6 + list(shape))


def open_rank(name, elem, shape):
    return helper.make_tensor_value_info(name, elem, [None] * (len(shape) + 1))


def element(name, elem, shape):
    other = TensorProto.INT64 if elem == TensorProto.FLOAT else TensorProto.FLOAT
    return helper.make_tensor_value_info(name, other, shape)


def sequence(name, elem, shape):
    return helper.make_tensor_sequence_value_info(name, elem, shape)


def info(name, shape, elem=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, elem, shape)


def loop(before, after, result):
    """Relu three times round; what the body's input, its result and the node's are stated as."""
    flag = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["ci"], ["co"]), helper.make_node("Relu", ["v"], ["w"])], "b",
        [flag("i", TensorProto.INT64, []), flag("ci", TensorProto.BOOL, []), info("v", before)],
        [flag("co", TensorProto.BOOL, []), info("w", after)])
    return helper.make_graph(
        [helper.make_node("Loop", ["n", "c", "x"], ["y"], body=body)], "g", [info("x", [2, 3])],
        [info("y", result)], [helper.make_tensor("n", TensorProto.INT64, [], [3]),
                              helper.make_tensor("c", TensorProto.BOOL, [], [True])])


def scan(before, after, result):
    body = helper.make_graph([helper.make_node("Relu", ["v"], ["w"])], "b", [info("v", before)],
                             [info("w", after)])
    return helper.make_graph([helper.make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)], "g",
                             [info("x", [2, 3])], [info("y", result)])


def branches(one, other, result):
    def branch(name, shape):
        return helper.make_graph([helper.make_node("Relu", ["x"], [name])], name, [], [info(name, shape)])
    return helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], then_branch=branch("p", one), else_branch=branch("q", other))],
        "g", [info("x", [2, 3])], [info("y", result)],
        [helper.make_tensor("c", TensorProto.BOOL, [], [True])])


def function(operand, inner, result):
    """A call whose function states shapes of its own; onnxruntime looks at none of them."""
    f = helper.make_function("my", "F", ["p"], ["q"], [helper.make_node("Abs", ["p"], ["t"]),
                                                       helper.make_node("Relu", ["t"], ["q"])],
                             [helper.make_opsetid("", 17)])
    f.value_info.extend([info("p", operand), info("t", inner, TensorProto.INT64), info("q", result)])
    graph = helper.make_graph([helper.make_node("F", ["x"], ["y"], domain="my")], "g", [info("x", [2, 3])],
                              [info("y", [2, 3])])
    return graph, f


BODIES = {
    "loop input": loop([2, 5], [2, 3], [2, 3]), "loop rank": loop([6], [2, 3], [2, 3]),
    "loop body": loop([2, 3], [5, 3], [2, 3]), "loop result": loop([2, 3], [2, 3], [7]),
    "scan body": scan([3], [4], [2, 3]), "scan result": scan([3], [3], [3, 3]),
    "branch": branches([2, 5], [2, 3], [2, 3]), "branches": branches([6], [6], [2, 3]),
    "if": branches([2, 3], [2, 3], [2, 4]), "function": function([7], [7, 7], [1]),
}

SHAPES, ELEMENTS = (dims, rank, open_rank), (element, sequence)
EMITS = ("-emit=qdq", "-emit=qop", "-emit=c", "-emit=qir", "-emit=onnx")


def stated_wrongly(model, how):
    """The model with every result of rank 1 and more stated as something else, and how many those are."""
    full = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    wrong = onnx.ModelProto()
    wrong.CopyFrom(model)
    del wrong.graph.value_info[:]
    infos, n = list(full.graph.value_info), 0
    for i, v in enumerate(infos + list(full.graph.output)):
        t = v.type.tensor_type
        shape = [d.dim_value for d in t.shape.dim]
        if not shape:
            continue
        lie = how[n % len(how)](v.name, t.elem_type, shape)
        n += 1
        if i < len(infos):
            wrong.graph.value_info.append(lie)
        else:
            wrong.graph.output[i - len(infos)].CopyFrom(lie)
    return wrong, n


class StatedTypes(OracleCase):
    def make(self, name, how):
        right = MODELS[name]()
        wrong, n = stated_wrongly(right, how)
        path = self.scratch / f"{name}.wrong.onnx"
        onnx.save(right, self.scratch / f"{name}.onnx")
        onnx.save(wrong, path)
        return right, wrong, n, path

    @for_each(*MODELS)
    def test_round_trip(self, name):
        _, wrong, n, path = self.make(name, SHAPES + ELEMENTS)
        said = qxc(path, "-o", "/dev/null", "-verify-roundtrip", "-v").stderr
        self.assertEqual(said.count("warning: the model states"), n)
        data = wrong.SerializeToString()
        self.assertEqual(onnx_bytes.canonical(data),
                         onnx_bytes.canonical(onnx_bytes.round_trip(data, self.scratch)))
        self.assertEqual(onnx_bytes.canonical_raw(data),
                         onnx_bytes.canonical_raw(onnx_bytes.round_trip_as_text(data, self.scratch)))

    @for_each(*MODELS)
    def test_computes_the_same(self, name):
        right, wrong, _, path = self.make(name, SHAPES)
        arrays = float_models.samples(right, 1)
        mine = qxc_outputs(path, arrays, self.scratch)
        theirs = session(right).run(None, feed(right, arrays, 0))
        for value, reference in zip(right.graph.output, theirs):
            got = mine[value.name][0].reshape(reference.shape)
            np.testing.assert_allclose(got, reference, rtol=1e-4, atol=1e-5)

    @for_each(*MODELS)
    def test_onnxruntime_loads(self, name):
        """Wrong shapes of outputs; wrong elements it refuses, as the warnings say."""
        for lie in SHAPES:
            _, wrong, _, _ = self.make(name, [lie])
            del wrong.graph.value_info[:]
            session(wrong)
        for lie in ELEMENTS:
            with self.assertRaisesRegex(Exception, "does not match expected type"):
                session(self.make(name, [lie])[1])

    @for_each("-emit=qdq", "-emit=qop", "-emit=c", "-emit=qir -form=true")
    def test_products_are_the_same(self, emit):
        """Byte by byte what is made of the model without the wrong words, but for what C says of its input."""
        for name in MODELS:
            right, wrong, _, path = self.make(name, SHAPES + ELEMENTS)
            for output, lie in zip(right.graph.output, wrong.graph.output):
                t = output.type.tensor_type
                lie.CopyFrom(dims(output.name, t.elem_type, [d.dim_value for d in t.shape.dim]))
            onnx.save(wrong, path)
            made = []
            for kind in ("", ".wrong"):
                source, out = self.scratch / f"{name}{kind}.onnx", self.scratch / f"out{kind}"
                named = ["-name=m"] if emit == "-emit=c" else []
                qxc(source, *emit.split(), *named, "-calib-random=2", "-quiet", "-o", out)
                made.append(re.sub(rb"(SHA-|sha)256 \w+", b"", out.read_bytes().replace(b".wrong", b"")))
            with self.subTest(model=name):
                self.assertEqual(*made)

    @for_each(*ELEMENTS)
    def test_outputs_of_other_elements(self, lie):
        right = MODELS["mlp"]()
        output = right.graph.output[0]
        t = output.type.tensor_type
        output.CopyFrom(lie(output.name, t.elem_type, [d.dim_value for d in t.shape.dim]))
        path = self.scratch / "output.onnx"
        onnx.save(right, path)
        self.assertIn("warning: the model states", qxc(path, "-o", "/dev/null", "-verify-roundtrip").stderr)
        for command in (["run", path, "-random=1"], ["compare", path, path, "-random=1"],
                        *([path, e, "-calib-random=1", "-o", self.scratch / "out"] for e in EMITS)):
            said = qxc(*command, ok=False).stderr
            self.assertIn("error: the model states output", said)
        self.assertFalse((self.scratch / "out").exists())

    @for_each(*BODIES)
    def test_bodies(self, name):
        graph, *functions = BODIES[name] if isinstance(BODIES[name], tuple) else [BODIES[name]]
        imports = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
        model = helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=8)
        path = self.scratch / "body.onnx"
        onnx.save(model, path)
        self.assertIn("the model states", qxc(path, "-o", "/dev/null", "-verify-roundtrip").stderr)
        data = model.SerializeToString()
        self.assertEqual(onnx_bytes.canonical_raw(data),
                         onnx_bytes.canonical_raw(onnx_bytes.round_trip_as_text(data, self.scratch)))
        x = np.random.default_rng(1).standard_normal([2, 3]).astype(np.float32)
        got = qxc_outputs(path, {"x": x[None]}, self.scratch)["y"]
        np.testing.assert_array_equal(got.reshape(2, 3), session(model).run(None, {"x": x})[0])

    def test_constant_in_function(self):
        """What a function states is doubted where a node cannot take it; the constant beside it says itself what it is."""
        def branch(name):
            return helper.make_graph([helper.make_node("Mul", ["p", name + "k"], [name])], name, [], [info(name, [2, 3])],
                                     [helper.make_tensor(name + "k", TensorProto.FLOAT, [], [2.0])])
        f = helper.make_function(
            "my", "F", ["p", "c"], ["q"],
            [helper.make_node("If", ["c"], ["q"], then_branch=branch("t"), else_branch=branch("e"))], [helper.make_opsetid("", 17)])
        f.value_info.append(info("p", [7], TensorProto.INT64))
        graph = helper.make_graph([helper.make_node("F", ["x", "c"], ["y"], domain="my")], "g",
                                  [info("x", [2, 3]), info("c", [], TensorProto.BOOL)], [info("y", [2, 3])])
        imports = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
        path = self.scratch / "function.onnx"
        onnx.save(helper.make_model(graph, opset_imports=imports, functions=[f], ir_version=8), path)
        said = qxc(path, "-o", "/dev/null").stderr
        self.assertIn("states 'p' as int64[7], which does not go with Mul", said)
        self.assertNotIn("k' as float[]", said)


if __name__ == "__main__":
    unittest.main()
