"""Emitted C of models in which numbers in operands tell how long a result is (Slice up to an input, Expand to a shape that is
computed): under the sanitizers, against `qxc run`."""

import unittest

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnx.helper import make_node as node

from bounded import ERROR_LENGTH, F, I, OK, BoundedCase, Emitted, const, model
from common import for_each, qxc

RNG = np.random.default_rng(23)
I32, U8 = TensorProto.INT32, TensorProto.UINT8


def ints(*values):
    return np.array(values, np.int64)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


# Of each: nodes that make %c of %x, the shape of %x, other inputs, constants, the bound of %c, what feeds the inputs and how the
# run ends. Numbers behind -1 count from the end; OUT are further away than int32 reaches.
OUT = 2 ** 62
CASES = {
    "Slice up to an end": (
        [node("Slice", ["x", "zero", "e", "zero"], ["c"])], [8, 6], {"e": [1]}, {"zero": [0]}, 8,
        [([e], OK) for e in (3, 0, 8, -1, 100, -100, OUT, -OUT, 1, 2, 7)]),
    "Slice from a start": (
        [node("Slice", ["x", "s", "max", "axis"], ["c"])], [4, 9], {"s": [1]}, {"max": [2 ** 63 - 1], "axis": [-1]}, 9,
        [([s], OK) for s in (3, 0, 9, -1, -4, 100, -100, OUT, -OUT, 8)]),
    "Slice of a lower bound": (
        [node("Slice", ["x", "s", "max", "axis"], ["c"])], [4, 9], {"s": [1]}, {"max": [9], "axis": [1]}, 5,
        [([s], OK if s in (4, 5, 9, -3) else ERROR_LENGTH) for s in (4, 3, 5, 0, 9, -3, -6)]),
    "Slice with steps": (
        [node("Slice", ["x", "s", "e", "axis", "t"], ["c"])], [3, 9, 2], {"s": [1], "e": [1], "t": [1]}, {"axis": [1]}, 9,
        [([s], [e], [t], OK if t else ERROR_LENGTH) for s, e, t in (
            (0, 9, 1), (0, 9, 2), (8, -100, -1), (-1, -100, -3), (7, 2, -2), (1, 8, 3), (2, 7, 0), (5, 2, 1), (2, 5, -1),
            (0, OUT, 2 ** 31 - 1), (-OUT, OUT, 4), (OUT, -OUT, -4), (8, -10, -2 ** 31 + 1))]),
    "Slice to a number and one": (
        [node("Unsqueeze", ["n", "zero"], ["u"]), node("Add", ["u", "one"], ["e"]),
         node("Slice", ["x", "zero", "e"], ["c"])], [8, 2], {"n": []}, {"zero": [0], "one": [1]}, 8,
        [(n, OK) for n in (3, 0, -1, 7, 20, -3)]),
    "Expand": (
        [node("Expand", ["x", "k"], ["c"])], [1, 4], {"k": [2]}, {}, 6,
        [([3, 4], OK), ([6, 1], OK), ([0, 4], OK), ([1, 1], OK), ([7, 4], ERROR_LENGTH), ([2, 3], ERROR_LENGTH),
         ([-1, 4], ERROR_LENGTH), ([OUT, 4], ERROR_LENGTH), ([2, 4], OK)]),
    "Expand with axes in front": (
        [node("Concat", ["n", "four"], ["k"], axis=0), node("Expand", ["x", "k"], ["c"])], [3, 4], {"n": [1]},
        {"four": [1, 1]}, 5, [([n], OK if n in range(6) else ERROR_LENGTH) for n in (2, 0, 5, 1, 6, -2)]),
    "Tile": (
        [node("Concat", ["n", "one"], ["k"], axis=0), node("Tile", ["x", "k"], ["c"])], [2, 3], {"n": [1]},
        {"one": [2]}, 9, [([n], OK if n in range(5) else ERROR_LENGTH) for n in (2, 0, 4, 1, 5, -1, OUT, 3)]),
    "Pad": (
        [node("Pad", ["x", "k", "half"], ["c"])], [5], {"k": [2]}, {"half": (np.float32, 0.5)}, 8,
        [(k, OK if 0 <= 5 + sum(k) <= 8 else ERROR_LENGTH) for k in (
            [1, 2], [0, 0], [-1, 0], [0, -2], [3, 0], [-2, 3], [4, -3], [-5, 0], [-6, 1], [-6, 0], [4, 0], [0, OUT], [-8, 9])]),
    "Pad of one axis": (
        [node("Pad", ["x", "k", "", "axis"], ["c"])], [2, 5, 3], {"k": [2]}, {"axis": [-2]}, 9,
        [(k, OK) for k in ([1, 2], [0, 0], [-1, 1], [2, -2], [-2, -3], [4, 0])]),
    **{f"Pad by {mode}": (
        [node("Pad", ["x", "k"], ["c"], mode=mode)], [4], {"k": [2]}, {}, 12,
        [(k, OK) for k in ([1, 2], [0, 0], [5, 3], [-1, 3], [4, -2], [-1, -1], [-4, 0], [8, 0])] +
        [([-4, 1], ERROR_LENGTH)]) for mode in ("edge", "reflect", "wrap")},
    "ConstantOfShape": (
        [node("Concat", ["n", "four"], ["k"], axis=0),
         node("ConstantOfShape", ["k"], ["f"], value=numpy_helper.from_array(np.array([2], np.float32))),
         node("Add", ["f", "x"], ["c"])], [1, 4], {"n": [1]}, {"four": [4]}, {"f": 6},
        [([n], OK if n in range(7) else ERROR_LENGTH) for n in (2, 0, 6, 1, 7, -1)]),
    **{f"DFT, {what}": (
        [node("DFT", ["x", "n", "axis"], ["c"], **attributes)], shape, {"n": []}, {"axis": axis}, bound,
        [(n, OK if 1 <= n <= most else ERROR_LENGTH) for n in (8, 1, 5, 12, most, most + 1, 0, -3, OUT, 7, 2, 3)])
        for what, attributes, shape, axis, bound, most in (
            ("all", {}, [2, 7, 3, 1], 1, 14, 14), ("half", {"onesided": 1}, [2, 9, 1], 1, 8, 15),
            ("complex", {}, [1, 6, 2], -2, 13, 13), ("back", {"inverse": 1}, [2, 8, 2], 1, 16, 16),
            ("half back", {"inverse": 1, "onesided": 1}, [3, 5, 2], 1, 13, 13), ("of few", {"onesided": 1}, [1, 9, 1], 1, 2, 3))},
    "STFT": (
        [node("STFT", ["x", "n", "window"], ["c"])], [2, 30, 1], {"n": []}, {"window": (np.float32, np.hanning(8))}, 23,
        [(n, OK if n >= 1 else ERROR_LENGTH) for n in (8, 1, 3, 100, 22, 23, 0, -3, OUT, 7)
         if n != OUT] + [(OUT, ERROR_LENGTH)]),
    "STFT with a length": (
        [node("STFT", ["x", "n", "window", "length"], ["c"], onesided=0)], [1, 20, 2], {"n": [], "length": []},
        {"window": (np.float32, np.hanning(6))}, 9,
        [(n, k, OK if k == 6 and n > 1 else ERROR_LENGTH) for n, k in ((2, 6), (5, 6), (1, 6), (2, 5), (3, 6), (2, -6))]),
    "OneHot": (
        [node("Cast", ["x"], ["i"], to=I), node("OneHot", ["i", "n", "values"], ["c"])], [3], {"n": []},
        {"values": (np.float32, [0, 1])}, 7,
        [(n, OK if n in range(1, 8) else ERROR_LENGTH) for n in (3, 1, 7, 8, 0, -1, 2)]),
}


class Told(BoundedCase):
    @for_each(*CASES)
    def test_told(self, name):
        nodes, shape, others, constants, bound, rows = CASES[name]
        constants = [const(n, v[1], v[0]) if isinstance(v, tuple) else const(n, v) for n, v in constants.items()]
        made = model([*nodes, node("Neg", ["c"], ["y"])], [("x", F, shape), *((n, I, s) for n, s in others.items())],
                     [("y", F, None)], constants, opset=21)
        bounds = [f"{v}:{n}" for v, n in (bound if isinstance(bound, dict) else {"c": bound}).items()]
        feeds = [{"x": floats(*shape), **dict(zip(others, map(np.int64, row[:-1])))} for row in rows]
        self.check(made, bounds, feeds, [row[-1] for row in rows], told=False)

    def test_slices_as_onnxruntime_has_them(self):
        """Told bounds in C, and constant ones in `run`. Where steps are negative onnxruntime takes the largest end for an
        open one."""
        far = np.iinfo(np.int64)
        bounds = (far.min, far.min + 1, -7, -1, 0, 2, 7, far.max - 1, far.max)
        for length in (0, 1, 5):
            x = floats(1, length)
            rows = [(s, e, t) for s in bounds for e in bounds for t in (1, 2, -1, -2, 1 - 2 ** 31) if t > 0 or e < far.max]
            feeds = [{"x": x, **{n: ints(k) for n, k in zip("set", row)}} for row in rows]
            told = model([node("Slice", ["x", "s", "e", "axis", "t"], ["y"])], [("x", F, [1, length]), *((n, I, [1]) for n in "set")],
                         [("y", F, None if length else [1, 0])], [const("axis", [1])])
            run = ort.InferenceSession(told.SerializeToString())
            want = [run.run(None, feed)[0] for feed in feeds]
            emitted = Emitted(self.scratch, told, *[f"-max-elements=y:{length}"] * (length > 0))
            for row, y, (status, have) in zip(rows, want, emitted.run(feeds)):
                self.assertEqual((status, have["y"][:y.size].tobytes()), (OK, y.tobytes()), (length, row))
                if length:
                    self.assertEqual(have["y_count"][0], y.size, (length, row))
            self.constant_slices(x, rows, want)

    def constant_slices(self, x, rows, want):
        each = range(len(rows))
        constants = [const(f"{n}{i}", [k]) for i in each for n, k in zip("set", rows[i])]
        made = model([node("Slice", ["x", f"s{i}", f"e{i}", "axis", f"t{i}"], [f"y{i}"]) for i in each], [("x", F, x.shape)],
                     [(f"y{i}", F, None) for i in each], [const("axis", [1]), *constants])
        path, data, out = (self.scratch / name for name in ("f.onnx", "f.npz", "y.npz"))
        onnx.save(made, path)
        np.savez(data, x=x)
        qxc("run", path, f"-input={data}", "-batch=none", "-quiet", "-o", out)
        have = np.load(out)
        for i, (row, y) in enumerate(zip(rows, want)):
            self.assertEqual((have[f"y{i}"].shape, have[f"y{i}"].tobytes()), (y.shape, y.tobytes()), row)

    def test_bounds_of_int32(self):
        """Of two axes, in whose order they are not; one is constant."""
        made = model([node("Cast", ["s"], ["s32"], to=I32), node("Cast", ["e"], ["e32"], to=I32),
                      node("Concat", ["first", "s32"], ["starts"], axis=0), node("Concat", ["last", "e32"], ["ends"], axis=0),
                      node("Slice", ["x", "starts", "ends", "axes"], ["y"])],
                     [("x", TensorProto.DOUBLE, [5, 7]), ("s", I, [1]), ("e", I, [1])], [("y", TensorProto.DOUBLE, None)],
                     [const("first", [2], np.int32), const("last", [6], np.int32), const("axes", [1, 0], np.int32)])
        x = RNG.standard_normal((5, 7))
        emitted = self.check(made, ["y:5"], [{"x": x, "s": ints(s), "e": ints(e)}
                                             for s, e in ((0, 5), (1, 3), (-2, 9), (4, 4), (3, -1))])
        self.assertIn("y[20]", (self.scratch / "m.h").read_text())
        self.assertIn("qk_copy_box_x64", emitted.text)

    def test_elements_of_a_byte(self):
        for op, rest, feeds in (("Slice", ["k0", "k1"], [3, 0, 6]), ("Pad", ["k"], [2, 0, -3])):
            made = model([node("Split", ["k"], ["k0", "k1"]), node(op, ["x", *rest], ["y"])][op == "Pad":],
                         [("x", TensorProto.UINT8, [6]), ("k", I, [2])], [("y", TensorProto.UINT8, None)])
            x = RNG.integers(0, 255, 6).astype(np.uint8)
            self.check(made, ["y:9"], [{"x": x, "k": ints(0, k)} for k in feeds])

    @for_each("Slice", "Pad", "Expand", "Tile", "Concat")
    def test_behind_another_length(self, name):
        """Rows whose number a run tells, and of these as many as another number says."""
        last = {"Slice": [node("Slice", ["rows", "zero", "n", "zero"], ["c"])],
                "Pad": [node("Concat", ["zero", "n"], ["k"], axis=0), node("Pad", ["rows", "k", "half", "zero"], ["c"])],
                "Expand": [node("Unsqueeze", ["rows", "zero"], ["u"]), node("Shape", ["rows"], ["s"]),
                           node("Concat", ["n", "s"], ["k"], axis=0), node("Expand", ["u", "k"], ["big"]),
                           node("Flatten", ["big"], ["c"], axis=3)],
                "Tile": [node("Concat", ["one", "n"], ["k"], axis=0), node("Tile", ["x", "k"], ["c"])],
                "Concat": [node("Slice", ["x", "zero", "n", "zero"], ["c"]), node("Concat", ["c", "rows", "x"], ["b"], axis=0)]}
        nodes = [node("NonZero", ["pick"], ["at"]), node("Squeeze", ["at", "zero"], ["which"]),
                 node("Gather", ["x", "which"], ["rows"]), *last[name], node("Neg", ["b" if name == "Concat" else "c"], ["y"])]
        used = {i for n in nodes for i in n.input}
        made = model(nodes, [("pick", F, [8]), ("x", F, [8, 3]), ("n", I, [1])], [("y", F, None)],
                     [c for c in (const("zero", [0]), const("one", [1]), const("half", 0.5, np.float32)) if c.name in used],
                     opset=21)
        if name == "Expand":  # it has two lengths
            onnx.save(made, self.scratch / "m.onnx")
            said = qxc(self.scratch / "m.onnx", "-emit=c", "-max-elements=at:8", "-max-elements=big:3", "-o",
                       self.scratch / "m.c", ok=False)
            self.assertEqual(said.returncode, 1)
            self.assertIn("C takes a bound for one dimension, and 2 are open", said.stderr)
            return
        feeds = [{"pick": (np.arange(8) < k).astype(np.float32), "x": floats(8, 3), "n": ints(n)}
                 for k, n in ((4, 2), (0, 0), (8, 8), (1, 1), (0, 3), (5, 4), (3, 7))]
        self.check(made, ["at:8", "c:24"], feeds)

    def test_shapes_that_the_model_states(self):
        """Numbers that ask for another shape are refused: where only Expand and Reshape read them, they were taken for right."""
        two = numpy_helper.from_array(np.array([2], np.float32))
        for nodes, shape, y, rows, constants in (
                ([node("Expand", ["x", "k"], ["y"])], [1, 4], [3, 4],
                 [([3, 4], OK), ([3, 1], OK), ([2, 4], 5), ([3, 5], 5), ([-3, 4], 5)], ()),
                ([node("Reshape", ["x", "k"], ["y"])], [6, 4], [3, 8],
                 [([3, 8], OK), ([-1, 8], OK), ([3, -1], OK), ([8, 3], 5), ([-1, -1], 5), ([-3, -8], 5), ([0, 8], 5), ([-1, 5], 5)], ()),
                ([node("Reshape", ["x", "k"], ["y"])], [3, 4, 2], [3, 8], [([0, 8], OK), ([0, -1], OK), ([3, 0], 5)], ()),
                ([node("Reshape", ["x", "k"], ["y"], allowzero=1)], [6, 4], [6, 4], [([6, 4], OK), ([0, 4], 5), ([-1, 0], 5)], ()),
                ([node("Tile", ["x", "k"], ["y"])], [2, 3], [4, 3], [([2, 1], OK), ([1, 2], 5), ([2, 2], 5), ([-2, 1], 5)], ()),
                ([node("Pad", ["x", "k"], ["y"])], [3], [5], [([1, 1], OK), ([0, 2], OK), ([-1, 3], OK), ([1, 2], 5)], ()),
                ([node("Slice", ["x", "k", "end"], ["y"])], [9, 5], [3, 4],
                 [([6, 1], OK), ([-3, 1], OK), ([6, 0], 5), ([5, 1], 5), ([9, 9], 5)], [const("end", [9, 5])]),
                ([node("ConstantOfShape", ["k"], ["f"], value=two), node("Add", ["f", "x"], ["y"])], [3, 2], [3, 2],
                 [([3, 2], OK), ([1, 2], 5)], ())):
            made = model(nodes, [("x", F, shape), ("k", I, [2])], [("y", F, y)], constants)
            if nodes[0].op_type == "ConstantOfShape":
                made.graph.value_info.append(helper.make_tensor_value_info("f", F, [3, 2]))
            with self.subTest(nodes[0].op_type):
                self.check(made, [], [{"x": floats(*shape), "k": ints(*k)} for k, _ in rows], [s for _, s in rows], told=False)

    def test_axes_that_the_model_states(self):
        """They are looked at, as the result has the bytes of the operand whatever they are."""
        for op, shape, y, rows in (
                ("Squeeze", [1, 3, 1], [3, 1], [([0], OK), ([-3], OK), ([1], 5), ([2], 5), ([3], 5), ([-4], 5), ([OUT], 5)]),
                ("Squeeze", [3, 1], [3], [([1], OK), ([0], 5), ([-1], OK), ([-2], 5)]),
                ("Squeeze", [1, 2, 1], [2], [([0, 2], OK), ([-1, 0], OK), ([0, 0], 5), ([2, -1], 5), ([0, 1], 5)]),
                ("Squeeze", [1], [], [([0], OK), ([-1], OK), ([1], 5)]),
                ("Unsqueeze", [3, 1], [1, 3, 1], [([0], OK), ([2], 5), ([1], 5), ([-3], OK), ([3], 5)]),
                ("Unsqueeze", [2], [1, 2, 1], [([2, 0], OK), ([0, -1], OK), ([0, 1], 5), ([0, 0], 5)]),
                ("Unsqueeze", [], [1], [([0], OK), ([-1], OK), ([1], 5), ([-2], 5)])):
            made = model([node(op, ["x", "k"], ["c"]), node("Neg", ["c"], ["y"])],
                         [("x", F, shape), ("k", I, [len(rows[0][0])])], [("y", F, y)])
            made.graph.value_info.append(helper.make_tensor_value_info("c", F, y))
            with self.subTest(op, shape=shape):
                self.check(made, [], [{"x": floats(*shape), "k": ints(*k)} for k, _ in rows], [s for _, s in rows], told=False)

    def test_unpooled_shape_that_the_model_states(self):
        made = model([node("MaxUnpool", ["x", "i", "k"], ["y"], kernel_shape=[2], strides=[2])],
                     [("x", F, [1, 2, 3]), ("i", I, [1, 2, 3]), ("k", I, [3])], [("y", F, [1, 2, 7])])
        rows = [([1, 2, 7], OK), ([1, 2, 6], 5), ([1, 3, 7], 5), ([1, 2, 8], 5), ([-1, 2, 7], 5)]
        at = ints(0, 3, 5, 6, 9, 10).reshape(1, 2, 3)
        self.check(made, [], [{"x": floats(1, 2, 3), "i": at, "k": ints(*k)} for k, _ in rows], [s for _, s in rows], told=False)

    def test_parts_that_the_model_states(self):
        made = model([node("Split", ["x", "k"], ["y", "z"], axis=1)], [("x", F, [2, 6]), ("k", I, [2])],
                     [("y", F, [2, 2]), ("z", F, [2, 4])])
        rows = [([2, 4], OK), ([4, 2], 5), ([2, 3], 5), ([3, 4], 5), ([-2, 8], 5)]
        self.check(made, [], [{"x": floats(2, 6), "k": ints(*k)} for k, _ in rows], [s for _, s in rows], told=False)

    def test_stated_further_on(self):
        """What is made element by element of a slice states its length, as an output or as what a Loop carries."""
        body = helper.make_graph(
            [node("Unsqueeze", ["i", "zero"], ["s"]), node("Add", ["s", "n"], ["e"]), node("Slice", ["x", "s", "e"], ["part"]),
             node("Add", ["v", "part"], ["w"])],
            "body", [helper.make_tensor_value_info("i", I, []), helper.make_tensor_value_info("c", TensorProto.BOOL, []),
                     helper.make_tensor_value_info("v", F, [1])],
            [helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("w", F, [1])])
        looped = model([node("Loop", ["three", "", "a"], ["y"], body=body)], [("n", I, [1]), ("x", F, [5]), ("a", F, [1])], [("y", F, [1])],
                       [const("three", 3), const("zero", [0])])
        chain = model([node("Slice", ["x", "zero", "n"], ["c"]), node("Neg", ["c"], ["d"]), node("Add", ["d", "a"], ["y"])],
                      [("n", I, [1]), ("x", F, [5]), ("a", F, [1])], [("y", F, [3])], [const("zero", [0])])
        for made, right in ((looped, 1), (chain, 3)):
            self.check(made, [], [{"n": ints(n), "x": floats(5), "a": floats(1)} for n in (right, right + 1, 0, right)],
                       [OK, ERROR_LENGTH, ERROR_LENGTH, OK], told=False)

    def test_not_stated_further_on(self):
        """The other operand may be what has the length, the slice one number; and Resize is held against none."""
        for nodes, ask in (
                ([node("Slice", ["x", "zero", "n"], ["c"]), node("Add", ["c", "b"], ["y"])], "how long 'c' is"),
                ([node("Resize", ["x", "", "", "n"], ["c"]), node("Neg", ["c"], ["y"])], "C takes no bound for Resize")):
            used = {i for n in nodes for i in n.input}
            made = model(nodes, [("n", I, [1]), ("x", F, [5])] + [("b", F, [3])] * ("b" in used), [("y", F, [3])],
                         [const("zero", [0])] * ("zero" in used))
            onnx.save(made, self.scratch / "m.onnx")
            said = qxc(self.scratch / "m.onnx", "-emit=c", "-o", self.scratch / "none.c", ok=False)
            self.assertEqual(said.returncode, 1)
            self.assertIn(ask, said.stderr)

    def test_transforms_that_the_model_states(self):
        for nodes, shape, y, feeds, constants in (
                ([node("DFT", ["x", "n", "one"], ["y"], onesided=1)], [2, 9, 1], [2, 5, 2], [(8, OK), (9, OK), (10, 5), (7, 5), (0, 5)],
                 [const("one", 1)]),
                ([node("STFT", ["x", "n", "w"], ["y"])], [1, 20, 1], [1, 4, 5, 2], [(4, OK), (3, 5), (5, 5), (0, 5)],
                 [const("w", np.hanning(8), np.float32)]),
                ([node("STFT", ["x", "four", "w", "n"], ["y"])], [2, 20, 1], [2, 4, 5, 2], [(8, OK), (7, 5), (9, 5), (-8, 5)],
                 [const("w", np.hanning(8), np.float32), const("four", 4)])):
            made = model(nodes, [("x", F, shape), ("n", I, [])], [("y", F, y)], constants, opset=21)
            with self.subTest(nodes[0].op_type):
                self.check(made, [], [{"x": floats(*shape), "n": np.int64(n)} for n, _ in feeds], [s for _, s in feeds], told=False)

    def test_all_but_one_dimension_stated(self):
        made = model([node("Expand", ["x", "k"], ["c"]), node("Neg", ["c"], ["y"])], [("x", F, [1, 1]), ("k", I, [2])],
                     [("y", F, None)])
        made.graph.value_info.append(helper.make_tensor_value_info("c", F, [3, None]))
        self.check(made, ["c:5"], [{"x": floats(1, 1), "k": ints(*k)} for k in ((3, 2), (3, 0), (2, 2), (3, 5), (3, 6))],
                   [OK, OK, ERROR_LENGTH, OK, ERROR_LENGTH], told=False)


if __name__ == "__main__":
    unittest.main()
