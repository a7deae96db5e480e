"""Small graphs that are hard for whoever shares memory or prints names: run by qxc, by emitted C under
sanitizers as C99 and C++17, and by onnxruntime.
"""

import subprocess

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import OracleCase, compile_c, for_each, qxc, qxc_outputs, session

COMPILERS = (["gcc", "-std=c99"], ["clang-19", "-std=c99"],
             ["g++", "-x", "c++", "-std=c++17"], ["clang++-19", "-x", "c++", "-std=c++17"])
FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wcast-align", "-Werror",
         "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
X = np.array([[0.5, -1.25, 3.0, -0.0]], np.float32)


def value(name, shape=(1, 4), kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def const(name, data, dtype=np.float32):
    return numpy_helper.from_array(np.array(data, dtype), name)


def model(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def hostile_names():
    """Names that would close a comment, are keywords, macros or each other once made identifiers."""
    evil = "*/ int evil = 1; /*"
    return model(
        [node("Add", ["int", evil], ["a??/\nb\\"], name='*/ #include "x" /* ??/'),
         node("Relu", ["a??/\nb\\"], ["NULL"], name="\x1b[31m"),
         node("Mul", ["NULL", "int"], ["qk_add"]),
         node("Sub", ["NULL", "int"], ["a b"]),
         node("Sub", ["a b", "int"], ["a_b"]),
         node("Relu", ["a_b"], ["\u202egnp.exe"])],
        [value("int")],
        [value(n) for n in ("qk_add", "NULL", "a b", "a_b", "\u202egnp.exe")],
        [const(evil, [[1, 2, 3, 4]])])


def input_is_output():
    return model([node("Identity", ["x"], ["y"]), node("Reshape", ["x", "shape"], ["z"])],
                 [value("x")], [value("y"), value("z", (4,))], [const("shape", [4], np.int64)])


def one_result_two_outputs():
    """z is y, and y is read after both are outputs."""
    return model([node("Relu", ["x"], ["y"]), node("Identity", ["y"], ["z"]),
                  node("Sub", ["y", "x"], ["u"])],
                 [value("x")], [value("y"), value("z"), value("u")])


def constant_output():
    return model([node("Relu", ["x"], ["y"])], [value("x")], [value("y"), value("c", (3,))],
                 [const("c", [1, np.inf, -0.0])])


def reshape_then_in_place():
    """r and its other view v are both read after a step that may work in place."""
    return model([node("Add", ["x", "x"], ["r"]), node("Reshape", ["r", "shape"], ["v"]),
                  node("Relu", ["v"], ["w"]), node("Add", ["w", "w"], ["u"]),
                  node("Sub", ["r", "x"], ["y"]), node("Relu", ["r"], ["z"])],
                 [value("x")], [value("u", (4,)), value("y"), value("z")],
                 [const("shape", [4], np.int64)])


def without_elements():
    """Steps on buffers of no bytes at all, which have an address nevertheless."""
    return model([node("Relu", ["x"], ["a"]), node("Concat", ["a", "z"], ["y"], axis=0)],
                 [value("x", (0, 4)), value("z")], [value("y")])


def branches(inner, condition=()):
    """One branch passes an outer value on, the other computes; both values are used afterwards."""
    then = helper.make_graph([node("Identity", ["r"], ["t"])], "then", [], [value("t")])
    other = helper.make_graph([node("Mul", ["r", "r"], ["e"]), node("Add", ["e", "x"], ["f"])],
                              "else", [], [value("f")])
    return model([node("Add", ["x", "x"], ["r"]),
                  node("If", ["c"], ["o"], then_branch=then, else_branch=other, name="if"),
                  node("Add", ["o", "r"], ["p"])],
                 [value("x")] if condition else [value("x"), value("c", (), TensorProto.BOOL)],
                 [value("p"), value("o")] if inner else [value("p")], condition)


GRAPHS = {
    "names": (hostile_names, {"int": X}),
    "input_is_output": (input_is_output, {"x": X}),
    "two_outputs": (one_result_two_outputs, {"x": X}),
    "constant_output": (constant_output, {"x": X}),
    "views": (reshape_then_in_place, {"x": X}),
    "if_true": (lambda: branches(True), {"x": X, "c": np.array(True)}),
    "if_false": (lambda: branches(True), {"x": X, "c": np.array(False)}),
    "if_constant": (lambda: branches(True, [const("c", False, np.bool_)]), {"x": X}),
    "without_elements": (without_elements, {"x": np.zeros((0, 4), np.float32), "z": X}),
    "if_inside": (lambda: branches(False), {"x": X, "c": np.array(False)}),
}


class SmallGraphs(OracleCase):
    @for_each(*GRAPHS)
    def test_graph(self, name):
        make, feeds = GRAPHS[name]
        folder = self.scratch / name
        folder.mkdir()
        built, path = make(), folder / "graph.onnx"
        onnx.save(built, path)
        samples = {k: v if v.ndim and v.shape[0] == 1 else v[None] for k, v in feeds.items()}
        got = qxc_outputs(path, samples, folder)
        for output, want in zip(built.graph.output, session(built).run(None, feeds), strict=True):
            np.testing.assert_array_equal(got[output.name].reshape(want.shape), want)
        qxc(path, "-emit=c", "-name=model", "-testbench", f"-input={folder / 'in.npz'}",
            "-no-sync", "-o", folder / "model.c")
        for text in (folder / "model.c", folder / "model.h"):
            self.assertNotRegex(text.read_bytes().decode(), "[\x00-\x08\x0b-\x1f\x7f\u202e]")
        for compiler in COMPILERS:
            with self.subTest(compiler=compiler[0]):
                compile_c(*compiler, *FLAGS, "-o", folder / "bench", folder / "model.c", "-lm")
                done = subprocess.run([folder / "bench"], capture_output=True, text=True, check=False)
                self.assertEqual((done.stdout, done.stderr), ("1 of 1 samples right\n", ""))
