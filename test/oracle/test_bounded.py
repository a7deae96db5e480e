"""Emitted C of models in which a run tells lengths, each with a bound (-max-elements): under the sanitizers, against
`qxc run`, which makes a program for each length."""

import unittest

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.helper import make_node as node

from bounded import B, ERROR_LENGTH, F, I, OK, BoundedCase, const, model
from common import for_each, qxc

RNG = np.random.default_rng(11)


# What runs over rows whose number is not known, as nodes of %rows, float[?,6].
OPERATORS = {
    "Relu": [node("Relu", ["rows"], ["y"])],
    "Gelu": [node("Erf", ["rows"], ["e"]), node("Mul", ["e", "rows"], ["y"])],
    "columns' sum": [node("ReduceSum", ["rows", "axis0"], ["y"])],
    "rows' sum": [node("ReduceSum", ["rows", "axis1"], ["y"])],
    "all": [node("ReduceMean", ["rows"], ["y"])],
    "ReduceL2": [node("ReduceL2", ["rows"], ["y"], axes=[0])],
    "ReduceMax": [node("ReduceMax", ["rows"], ["y"], axes=[1])],
    "ReduceLogSumExp": [node("ReduceLogSumExp", ["rows"], ["y"], axes=[1])],
    "Softmax rows": [node("Softmax", ["rows"], ["y"], axis=1)],
    "Softmax columns": [node("Softmax", ["rows"], ["y"], axis=0)],
    "LogSoftmax": [node("LogSoftmax", ["rows"], ["y"], axis=0)],
    "LayerNormalization": [node("LayerNormalization", ["rows", "six"], ["y"])],
    "Transpose": [node("Transpose", ["rows"], ["y"])],
    "Transpose of three": [node("Reshape", ["rows", "minus23"], ["r"]), node("Transpose", ["r"], ["y"], perm=[2, 0, 1])],
    "MatMul": [node("MatMul", ["rows", "w"], ["y"])],
    "MatMul of its own": [node("Transpose", ["rows"], ["t"]), node("MatMul", ["t", "rows"], ["y"])],
    "Gemm": [node("Gemm", ["rows", "w"], ["y"], alpha=0.5)],
    "Conv along": [node("Transpose", ["rows"], ["t"]), node("Unsqueeze", ["t", "axis0"], ["u"]),
                   node("Conv", ["u", "k"], ["y"], pads=[1, 1])],
    "Conv of each": [node("Unsqueeze", ["rows", "axis1"], ["u"]), node("Conv", ["u", "k1"], ["y"], pads=[1, 1])],
    "MaxPool": [node("Unsqueeze", ["rows", "axis1"], ["u"]), node("MaxPool", ["u"], ["y"], kernel_shape=[2])],
    "Concat behind": [node("Concat", ["rows", "table"], ["y"], axis=0)],
    "Concat beside": [node("Concat", ["rows", "rows"], ["y"], axis=1)],
    "Pad": [node("Pad", ["rows", "pads"], ["y"])],
    "Slice": [node("Slice", ["rows", "one", "five", "axis1"], ["y"])],
    "Slice from the end": [node("Slice", ["rows", "last", "max", "axis0"], ["y"])],
    "Split": [node("Split", ["rows"], ["y", "z"], axis=1)],
    "Expand": [node("Unsqueeze", ["rows", "axis0"], ["u"]), node("Expand", ["u", "shape311"], ["y"])],
    "Tile": [node("Tile", ["rows", "twice"], ["y"])],
    "CumSum": [node("CumSum", ["rows", "nought"], ["y"])],
    "ArgMax": [node("ArgMax", ["rows"], ["y"], axis=1)],
    "TopK": [node("TopK", ["rows", "two"], ["y", "z"])],
    "Where": [node("Greater", ["rows", "half"], ["c"]), node("Where", ["c", "rows", "half"], ["y"])],
    "OneHot": [node("OneHot", ["which", "eight", "offon"], ["y"])],
    "ScatterND": [node("Unsqueeze", ["which", "axis1"], ["i"]), node("ScatterND", ["table", "i", "rows"], ["y"])],
    "GatherElements": [node("Cast", ["rows"], ["c"], to=I), node("Mul", ["c", "nought"], ["i"]),
                       node("GatherElements", ["rows", "i"], ["y"], axis=1)],
    "LSTM": [node("Unsqueeze", ["rows", "axis1"], ["u"]), node("LSTM", ["u", "lw", "lr"], ["y"], hidden_size=3)],
    "GRU state": [node("Unsqueeze", ["rows", "axis1"], ["u"]), node("GRU", ["u", "gw", "gr"], ["z", "y"], hidden_size=3)],
    "Einsum": [node("Einsum", ["rows", "w"], ["y"], equation="ij,jk->ki")],
    "Flatten": [node("Flatten", ["rows"], ["y"], axis=0)],
    "quantized": [node("QuantizeLinear", ["rows", "scale", "zp"], ["q"]), node("DequantizeLinear", ["q", "scale", "zp"], ["d"]),
                  node("MatMul", ["d", "w"], ["m"]), node("QuantizeLinear", ["m", "scale", "zp"], ["n"]),
                  node("DequantizeLinear", ["n", "scale", "zp"], ["y"])],
    "distances": [node("Unsqueeze", ["rows", "axis1"], ["u"]), node("Sub", ["u", "table"], ["d"]),
                  node("ReduceSumSquare", ["d"], ["y"], axes=[2])],
    "InstanceNormalization": [node("Unsqueeze", ["rows", "axis1"], ["u"]), node("InstanceNormalization", ["u", "s1", "b1"], ["y"])],
    "LpNormalization": [node("LpNormalization", ["rows"], ["y"], axis=0)],
    "Resize": [node("Unsqueeze", ["rows", "axis1"], ["u"]), node("Resize", ["u", "", "scales"], ["y"], mode="linear")],
    "Trilu": [node("MatMul", ["rows", "square"], ["m"]), node("Trilu", ["m"], ["y"])],
    "ReverseSequence": [node("Unsqueeze", ["rows", "axis0"], ["u"]),
                        node("Gather", ["eights", "nought"], ["l"]), node("ReverseSequence", ["table3", "l3"], ["r"]),
                        node("Add", ["rows", "half"], ["y"])],
}

# The fewest rows that they take: run refuses fewer, but for Slice, of whose result a shorter tensor has less.
FEWEST = {"LayerNormalization": 1, "Conv along": 1, "InstanceNormalization": 1, "Resize": 1, "Slice from the end": 2}


class Bounded(BoundedCase):
    def test_detection(self):
        """Boxes that are kept, of the best class, in the middle, and how large they are together."""
        made = model(
            [node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["kept"]),
             node("Slice", ["kept", "two", "three", "axis"], ["column"]),
             node("Squeeze", ["column", "axis"], ["which"]), node("Squeeze", ["boxes", "zero"], ["all"]),
             node("Gather", ["all", "which"], ["chosen"]), node("Split", ["chosen"], ["low", "high"], axis=1),
             node("Sub", ["high", "low"], ["size"]), node("ReduceSum", ["size", "axis"], ["area"], keepdims=0),
             node("ReduceMean", ["chosen"], ["mean"], axes=[0], keepdims=0), node("Softmax", ["area"], ["share"], axis=0)],
            [("boxes", F, [1, 30, 4]), ("scores", F, [1, 3, 30])],
            [("kept", I, None), ("chosen", F, None), ("area", F, None), ("share", F, None), ("size", F, None)],
            [const("most", 20), const("overlap", 0.4, np.float32), const("least", 0.5, np.float32), const("two", [2]),
             const("three", [3]), const("axis", [1]), const("zero", [0])])
        centre, size = RNG.random((1, 30, 2)), RNG.random((1, 30, 2)) / 5
        boxes = np.concatenate([centre - size, centre + size], 2).astype(np.float32)
        scores = RNG.random((1, 3, 30)).astype(np.float32)
        few = np.where(np.arange(30) < 2, scores, 0)
        feeds = [{"boxes": boxes, "scores": s.astype(np.float32)} for s in (scores, 0 * scores, few, scores * 0.7, scores)]
        self.check(made, ["kept:60"], feeds)
        self.check(made, ["kept:5"], feeds, [ERROR_LENGTH, OK, OK, ERROR_LENGTH, ERROR_LENGTH])

    def test_places_of_nonzero_elements(self):
        made = model([node("NonZero", ["x"], ["at"]), node("Transpose", ["at"], ["rows"]),
                      node("GatherND", ["x", "rows"], ["picked"]), node("ReduceSum", ["picked"], ["sum"], keepdims=0),
                      node("Shape", ["at"], ["shape"]), node("Mul", ["picked", "picked"], ["square"])],
                     [("x", F, [4, 6])],
                     [("at", I, None), ("rows", I, None), ("picked", F, None), ("sum", F, None), ("shape", I, [2]),
                      ("square", F, None)], [const("one", [1])])
        feeds = [{"x": (RNG.random((4, 6)) < share) * RNG.standard_normal((4, 6)).astype(np.float32)}
                 for share in (0.5, 0, 1, 0.1, 0.8, 0.04)]
        self.check(made, ["at:24"], feeds)
        counts = [np.count_nonzero(f["x"]) for f in feeds]
        for bound in 10, 3, 2, 1:
            self.check(made, [f"at:{bound}"], feeds, [ERROR_LENGTH if n > bound else OK for n in counts])

    def test_range_up_to_an_input(self):
        made = model([node("Range", ["zero", "n", "step"], ["r"]), node("Cast", ["r"], ["f"], to=F),
                      node("Sqrt", ["f"], ["y"]), node("Gather", ["x", "r"], ["picked"]), node("Add", ["picked", "y"], ["z"])],
                     [("n", I, []), ("x", F, [20])], [("y", F, None), ("z", F, None)],
                     [const("zero", 0), const("step", 2)])
        x = RNG.standard_normal(20).astype(np.float32)
        lengths = [12, 0, 1, -3, 13, 20, 7, 2, 21, 2 ** 62]
        self.check(made, ["r:10"], [{"n": np.int64(n), "x": x} for n in lengths],
                   [OK if n <= 20 else ERROR_LENGTH for n in lengths], told=False)

    def test_ranges_of_all_types(self):
        for kind, elem in ((np.float32, F), (np.float64, TensorProto.DOUBLE), (np.int32, TensorProto.INT32), (np.int64, I),
                           (np.int16, TensorProto.INT16)):
            made = model([node("Range", ["a", "b", "d"], ["r"]), node("Identity", ["r"], ["y"])],
                         [("a", elem, []), ("b", elem, []), ("d", elem, [])], [("y", elem, None)])
            rows = [(0, 5, 1), (5, 0, -1), (3, 3, 1), (0, 7, 3), (-4, 11, 4), (10, -10, -3), (1, 100, 12)]
            if kind in (np.float32, np.float64):
                rows += [(0, 1, 0.1), (0.3, 2.4, 0.3), (np.nan, 1, 1), (0, 2 ** 24, 2 ** 21)]
            if kind == np.int64:
                rows += [(2 ** 60, 2 ** 60 + 5, 1), (-2 ** 63, 2 ** 63 - 1, 2 ** 62)]
            self.check(made, ["r:12"], [{"a": kind(a), "b": kind(b), "d": kind(d)} for a, b, d in rows])

    def test_compress_and_unique(self):
        made = model([node("Compress", ["x", "c"], ["y"], axis=1), node("Neg", ["y"], ["z"]),
                      node("ReduceMax", ["y"], ["m"], axes=[0], keepdims=0),
                      node("Unique", ["x"], ["u", "first", "which", "times"]), node("Mul", ["u", "u"], ["square"]),
                      node("Gather", ["flat", "first"], ["again"])],
                     [("x", F, [3, 6]), ("c", B, [6]), ("flat", F, [18])],
                     [("z", F, None), ("m", F, None), ("square", F, None), ("which", I, None), ("times", I, None),
                      ("again", F, None)])
        feeds = []
        for share in (0.5, 0, 1):
            x = RNG.integers(0, 6, (3, 6)).astype(np.float32)
            feeds.append({"x": x, "c": RNG.random(6) < share, "flat": x.ravel()})
        self.check(made, ["y:6", "first:18"], feeds)

    def test_two_lengths_in_one(self):
        made = model([node("NonZero", ["a"], ["p"]), node("NonZero", ["b"], ["q"]),
                      node("Squeeze", ["p", "zero"], ["pp"]), node("Squeeze", ["q", "zero"], ["qq"]),
                      node("Concat", ["pp", "qq"], ["both"], axis=0), node("Add", ["both", "one"], ["more"]),
                      node("Gather", ["x", "both"], ["rows"]), node("MatMul", ["rows", "w"], ["y"]),
                      node("ReduceMax", ["y"], ["top"], axes=[1], keepdims=0)],
                     [("a", F, [7]), ("b", F, [7]), ("x", F, [7, 5])],
                     [("more", I, None), ("y", F, None), ("top", F, None)],
                     [const("zero", [0]), const("one", 1), const("w", RNG.standard_normal((5, 9)), np.float32)])
        feeds = [{"a": (RNG.random(7) < s).astype(np.float32), "b": (RNG.random(7) < t).astype(np.float32),
                  "x": RNG.standard_normal((7, 5)).astype(np.float32)}
                 for s, t in ((0.5, 0.5), (0, 0), (1, 1), (0, 0.4), (0.4, 0), (0.2, 0.9))]
        self.check(made, ["p:7", "q:7"], feeds)

    def test_as_many_of_the_best_as_asked_for(self):
        made = model([node("TopK", ["x", "k"], ["best", "where"]), node("Neg", ["best"], ["y"]),
                      node("Add", ["where", "where"], ["twice"])],
                     [("x", F, [3, 9]), ("k", I, [1])], [("y", F, None), ("twice", I, None)])
        x = RNG.standard_normal((3, 9)).astype(np.float32)
        self.check(made, ["best:6"], [{"x": x, "k": np.array([k])} for k in (3, 1, 0, 6, 2, 7)], 5 * [OK] + [ERROR_LENGTH])

    def test_windows(self):
        """Of a size that a run tells, in float and in double."""
        for op, periodic in (("HannWindow", 1), ("HammingWindow", 0), ("BlackmanWindow", 1)):
            made = model([node(op, ["n"], ["w"], periodic=periodic),
                          node(op, ["m"], ["v"], output_datatype=TensorProto.DOUBLE), node("Neg", ["v"], ["z"]),
                          node("Mul", ["w", "w"], ["y"]), node("ReduceSum", ["y", "axis"], ["sum"])],
                         [("n", I, []), ("m", TensorProto.INT32, [])],
                         [("y", F, None), ("sum", F, [1]), ("z", TensorProto.DOUBLE, None)], [const("axis", [0])])
            sizes = [(9, 6), (2, 1), (5, 0), (0, 3), (8, 7), (-1, 3)]
            self.check(made, ["w:9", "v:6"], [{"n": np.int64(n), "m": np.int32(m)} for n, m in sizes],
                       [OK] * 4 + [ERROR_LENGTH] * 2, told=False)

    def test_lengths_that_the_model_states(self):
        """Numbers that ask for another length are refused: it was once taken whatever they said."""
        scalar = numpy_helper.from_array(np.array([2], np.float32))
        for nodes, kind, shape, right, wrong in (
                ([node("Range", ["zero", "n", "one"], ["y"])], I, [5], [5], [4, 6, -1]),
                ([node("TopK", ["x", "n1"], ["z", "y"])], I, [2, 3], [3], [2, 4, -1]),
                ([node("ConstantOfShape", ["n1"], ["y"], value=scalar)], F, [4], [4], [0, 5]),
                ([node("HannWindow", ["n"], ["y"])], F, [7], [7], [6, 8])):
            nodes = nodes if nodes[0].input[-1] != "n1" else [node("Unsqueeze", ["n", "axis"], ["n1"]), *nodes]
            reads = {i for n in nodes for i in n.input}
            made = model(nodes, [("n", I, [])] + [("x", F, [2, 6])] * ("x" in reads),
                         [("y", kind, shape)] + [("z", F, shape)] * ("x" in reads),
                         [c for c in (const("zero", 0), const("one", 1), const("axis", [0])) if c.name in reads])
            x = {"x": RNG.standard_normal((2, 6)).astype(np.float32)} if "x" in reads else {}
            self.check(made, [], [{"n": np.int64(n), **x} for n in right + wrong + right],
                       [OK] + [ERROR_LENGTH] * len(wrong) + [OK], told=False)

    def test_choices_of_a_length_that_the_model_states(self):
        """A kernel that finds more or fewer ends the run, as an output and where nodes go on; also where a later node states it."""
        x = RNG.standard_normal((6, 4)).astype(np.float32)
        for op, go_on in (("NonZero", "Neg"), ("Compress", "Relu"), ("Compress", None), ("Unique", "Neg"),
                                  ("NonZero", None), ("NonZero", "later")):
            made = "c" if go_on else "y"
            picks = {"NonZero": [node("NonZero", ["m"], [made])],
                     "Compress": [node("Cast", ["m"], ["b"], to=B), node("Compress", ["x", "b"], [made], axis=0)],
                     "Unique": [node("Unique", ["m"], [made, "first"])]}[op]
            kind = F if op != "NonZero" else I
            behind = [node("Neg" if go_on == "later" else go_on, [made], ["y"])] if go_on else []
            shape = {"NonZero": [1, 3], "Compress": [3, 4], "Unique": [3]}[op]
            outputs = [("y", kind, shape)] + [("first", I, None)] * (op == "Unique")
            built = model([*picks, *behind], [("m", F, [6])] + [("x", F, [6, 4])] * (op == "Compress"), outputs)
            if go_on != "later" and go_on:
                built.graph.value_info.append(onnx.helper.make_tensor_value_info("c", kind, shape))
            masks = {3: [1, 0, 2, 0, 3, 0], 4: [1, 0, 2, 4, 3, 0], 2: [0, 0, 1, 2, 0, 0], 0: [0] * 6, 6: [1, 2, 3, 4, 5, 6]}
            if op == "Unique":
                masks = {3: [1, 0, 2, 0, 1, 0], 4: [1, 0, 2, 4, 0, 0], 1: [0] * 6, 6: [1, 2, 3, 4, 5, 6]}
            feeds = [{"m": np.array(masks[n], np.float32), **({"x": x} if op == "Compress" else {})} for n in [3, *masks, 3]]
            with self.subTest(op=op, go_on=go_on):
                emitted = self.check(built, [], feeds, [OK if n == 3 else ERROR_LENGTH for n in [3, *masks, 3]], told=False)
                self.assertFalse([name for _, name, _, _ in emitted.ports if name.endswith("_count")])

    def test_a_stated_number_of_choices_among_what_was_chosen(self):
        """C is built for fewer elements, too, than the ones that are stated, and takes no run with so few."""
        made = model([node("Compress", ["x", "b"], ["c"], axis=0), node("Cast", ["c"], ["g"], to=B),
                      node("Compress", ["c", "g"], ["d"], axis=0), node("Neg", ["d"], ["y"])],
                     [("x", F, [8]), ("b", B, [8])], [("d", F, [3]), ("y", F, None), ("c", F, None)])
        x = np.array([0, 1, 2, 0, 3, 4, 0, 5], np.float32)
        masks = ([1, 1, 1, 1, 1, 0, 0, 0], [1] * 8, [0, 1, 1, 0, 1, 0, 0, 0], [0, 1, 0, 0, 1, 0, 0, 0], [0] * 8, [0, 1, 1, 0, 0, 0, 1, 1])
        feeds = [{"x": x, "b": np.array(mask, bool)} for mask in masks]
        self.check(made, ["c:8"], feeds, [OK, ERROR_LENGTH, OK, ERROR_LENGTH, ERROR_LENGTH, OK], told=False)

    def test_a_stated_number_of_different_elements_of_what_was_chosen(self):
        """The inverse indices are as many as were chosen, not as there are different ones."""
        x = np.array([5, 7, 5, 6, 7, 5], np.float32)
        masks = ([1] * 6, [1, 1, 0, 1, 0, 0], [0, 1, 1, 1, 1, 0], [1, 1, 1, 0, 1, 1], [0] * 6, [1] * 6)
        feeds = [{"x": x, "b": np.array(mask, bool)} for mask in masks]
        statuses = [OK, OK, OK, ERROR_LENGTH, ERROR_LENGTH, OK]
        for go_on in (False, True):
            results = ["y", "first", "inv"] if not go_on else ["u", "first", "inv"]
            made = model([node("Compress", ["x", "b"], ["c"], axis=0), node("Unique", ["c"], results),
                          *([node("Neg", ["u"], ["y"])] if go_on else [])],
                         [("x", F, [6]), ("b", B, [6])], [("y", F, [3]), *([] if go_on else [("inv", I, None), ("first", I, None)])])
            with self.subTest(go_on=go_on):
                emitted = self.check(made, ["c:6"], feeds, statuses, told=False)
                counts = [o["inv_count"][0] for _, o in emitted.run(feeds[:3])] if not go_on else []
                self.assertEqual(counts, [6, 3, 4][:len(counts)])
                self.assertNotIn("first_count", [name for _, name, _, _ in emitted.ports])

    def test_boxes_of_a_number_that_the_model_states(self):
        made = model([node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["kept"]),
                      node("Gather", ["kept", "two"], ["which"], axis=1)],
                     [("boxes", F, [1, 8, 4]), ("scores", F, [1, 1, 8])], [("kept", I, [3, 3]), ("which", I, None)],
                     [const("most", 8), const("overlap", 0.5, np.float32), const("least", 0.5, np.float32), const("two", [2])])
        left = np.arange(8, dtype=np.float32)
        boxes = np.stack([left, left, left + 0.5, left + 0.5], 1)[None]
        feeds = [{"boxes": boxes, "scores": (np.arange(8) < n).astype(np.float32)[None, None]} for n in (3, 2, 4, 0, 8, 3)]
        self.check(made, [], feeds, [OK] + [ERROR_LENGTH] * 4 + [OK], told=False)

    def test_a_list_of_ones(self):
        made = model([node("ConstantOfShape", ["n"], ["ones"], value=numpy_helper.from_array(np.array([1], np.float32))),
                      node("CumSum", ["ones", "zero"], ["y"])], [("n", I, [1])], [("y", F, None)], [const("zero", 0)])
        lengths = (6, 0, 1, 3, 9, -1)
        self.check(made, ["ones:8"], [{"n": np.array([n])} for n in lengths],
                   [OK if 0 <= n <= 8 else ERROR_LENGTH for n in lengths], told=False)

    def test_lengths_that_become_numbers(self):
        """The mean by hand, divided by a length that Shape tells; and positions counted up to it."""
        made = model([node("NonZero", ["x"], ["at"]), node("Squeeze", ["at", "zero"], ["p"]), node("Gather", ["x", "p"], ["v"]),
                      node("Shape", ["p"], ["n"]), node("Cast", ["n"], ["f"], to=F), node("ReduceSum", ["v"], ["s"], keepdims=0),
                      node("Div", ["s", "f"], ["mean"]), node("Squeeze", ["n"], ["limit"]),
                      node("Range", ["nought", "limit", "one"], ["r"]), node("Add", ["r", "p"], ["y"]),
                      node("Sub", ["n", "two"], ["less"])],
                     [("x", F, [10])], [("mean", F, [1]), ("y", I, None), ("less", I, [1])],
                     [const("zero", [0]), const("nought", 0), const("one", 1), const("two", [2])])
        self.check(made, ["at:10"], [{"x": (RNG.random(10) < s).astype(np.float32)} for s in (0.5, 1, 0.3, 0.1, 0.9)])

    def behind(self, nodes, constants, kind):
        """Rows of a tensor that are picked by NonZero, %rows; what `nodes` make of them, %y."""
        return model([node("NonZero", ["pick"], ["at"]), node("Squeeze", ["at", "axis0"], ["which"]),
                      node("Gather", ["x", "which"], ["rows"]), *nodes],
                     [("pick", F, [8]), ("x", F, [8, 6])], [("y", kind, None)],
                     [const("axis0", [0]), *constants])

    @for_each(*OPERATORS)
    def test_rows(self, name):
        draw = np.random.default_rng(5)
        def floats(name, *shape):
            return const(name, draw.standard_normal(shape), np.float32)
        constants = [const("axis1", [1]), const("one", [1]), const("five", [5]), const("last", [-2]), const("max", [2 ** 40]),
                     const("twice", [2, 1]), const("nought", 0), const("two", [2]), const("half", 0.5, np.float32),
                     const("eight", 8), const("offon", [0, 1], np.float32), const("minus23", [-1, 2, 3]), const("pads", [1, 0, 2, 1]),
                     const("shape311", [3, 1, 1]), const("scale", 0.1, np.float32), const("zp", 3, np.int8),
                     const("scales", [1, 1, 2], np.float32), const("eights", [8]), const("l3", [1, 2]),
                     floats("six", 6), floats("w", 6, 5), floats("square", 6, 6), floats("k", 4, 6, 3), floats("k1", 2, 1, 3),
                     floats("table", 8, 6), floats("table3", 2, 2, 6), floats("lw", 1, 12, 6), floats("lr", 1, 12, 3),
                     floats("gw", 1, 9, 6), floats("gr", 1, 9, 3), floats("s1", 1), floats("b1", 1)]
        used = {i for n in OPERATORS[name] for i in n.input}
        made = self.behind(OPERATORS[name], [c for c in constants if c.name in used], I if name == "ArgMax" else F)
        feeds, counts = [], (8, 0, 1, 2, 3, 5, 7, 4)
        for count in counts:
            pick = np.zeros(8, np.float32)
            pick[RNG.permutation(8)[:count]] = 1
            feeds.append({"pick": pick, "x": RNG.standard_normal((8, 6)).astype(np.float32)})
        self.check(made, ["at:8"], feeds, [OK if n >= FEWEST.get(name, 0) else ERROR_LENGTH for n in counts],
                   told=None if name == "Slice from the end" else False)

    def test_products_of_quantized_values(self):
        """Of rows whose number a run tells, by rows of a fixed number; and along the rows that are told."""
        def grid(name):
            return [node("QuantizeLinear", [name, "scale", "zp"], [name + "q"]),
                    node("DequantizeLinear", [name + "q", "scale", "zp"], [name + "d"])]
        rows = [*grid("rows"), *grid("x"), node("Transpose", ["xd"], ["t"]), node("MatMul", ["rowsd", "t"], ["m"]), *grid("m"),
                node("Identity", ["md"], ["y"])]
        along = [*grid("rows"), node("Transpose", ["rowsd"], ["t"]), node("MatMul", ["t", "rowsd"], ["m"]), *grid("m"),
                 node("Identity", ["md"], ["y"])]
        for nodes, width in (rows, 4), (along, 60):
            made = model([node("NonZero", ["pick"], ["at"]), node("Squeeze", ["at", "axis0"], ["which"]),
                          node("Gather", ["x", "which"], ["rows"]), *nodes],
                         [("pick", F, [64]), ("x", F, [64, width])], [("y", F, None)],
                         [const("axis0", [0]), const("scale", 0.1, np.float32), const("zp", 3, np.int8)])
            feeds = [{"pick": (np.arange(64) < count).astype(np.float32),
                      "x": RNG.standard_normal((64, width)).astype(np.float32)} for count in (64, 0, 1, 3, 40, 4)]
            self.check(made, ["at:64"], feeds)

    @for_each("ReduceSum", "ReduceMax", "Softmax", "LogSoftmax")
    def test_quantized_sums_of_no_rows(self, op):
        """The sum of nothing is 0 on integers, too: C and `run` take every length."""
        def grid(name):
            return [node("QuantizeLinear", [name, "scale", "zp"], [name + "q"]),
                    node("DequantizeLinear", [name + "q", "scale", "zp"], [name + "d"])]
        operands = ["rowsd", "axis0"] if op == "ReduceSum" else ["rowsd"]
        along = {"axis": 0} if "Softmax" in op else {} if op == "ReduceSum" else {"axes": [1]}
        made = self.behind([*grid("rows"), node(op, operands, ["s"], **along), *grid("s"), node("Identity", ["sd"], ["y"])],
                           [const("scale", 0.1, np.float32), const("zp", 3, np.int8)], F)
        feeds = [{"pick": (np.arange(8) < count).astype(np.float32), "x": RNG.standard_normal((8, 6)).astype(np.float32)}
                 for count in (8, 0, 1, 2, 5)]
        emitted = self.check(made, ["at:8"], feeds)
        if op == "ReduceSum":
            self.assertIn("reducesum_q", emitted.text)

    @for_each("ReduceMax", "ReduceMin")
    def test_extremes_of_no_rows_in_another_scale(self, op):
        """They are infinite: the ends of the result's range, whatever its operand's say."""
        def grid(name, scale):
            return [node("QuantizeLinear", [name, scale, "zp"], [name + "q"]),
                    node("DequantizeLinear", [name + "q", scale, "zp"], [name + "d"])]
        made = self.behind([*grid("rows", "fine"), node(op, ["rowsd"], ["s"], axes=[0]), *grid("s", "coarse"),
                            node("Identity", ["sd"], ["y"])],
                           [const("fine", 0.1, np.float32), const("coarse", 0.5, np.float32), const("zp", 3, np.int8)], F)
        feeds = [{"pick": (np.arange(8) < count).astype(np.float32), "x": RNG.standard_normal((8, 6)).astype(np.float32)}
                 for count in (8, 0, 1, 5)]
        self.check(made, ["at:8"], feeds)

    def test_what_computes_in_another_way_for_each_length(self):
        """As many pairs as the square of a length, and a part that is cut at an end."""
        for nodes, constants, why in (
                ([node("Transpose", ["rows"], ["t"]), node("MatMul", ["rows", "t"], ["m"]), node("Neg", ["m"], ["y"])], [],
                 "in another way for each length"),
                ([node("Slice", ["rows", "none", "five", "axis0"], ["y"])], [const("none", [0]), const("five", [5])],
                 "its shape is cut, or grows by steps"),
                ([node("Gather", ["rows", "fifth"], ["y"])], [const("fifth", 4)], "have to go together however many there are")):
            path = self.scratch / "m.onnx"
            onnx.save(self.behind(nodes, constants, F), path)
            done = qxc(path, "-emit=c", "-max-elements=at:8", "-o", self.scratch / "none.c", ok=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(why, done.stderr)
            self.assertFalse((self.scratch / "none.c").exists())

    def test_sums_do_not_depend_on_how_many_rows_there_are(self):
        """A product of few rows has kernels of its own in a model of fixed shapes; not where another run has more rows."""
        draw = np.random.default_rng(3)
        made = model([node("NonZero", ["pick"], ["at"]), node("Squeeze", ["at", "zero"], ["which"]),
                      node("Gather", ["x", "which"], ["rows"]), node("Gemm", ["rows", "w", "b"], ["y"])],
                     [("pick", F, [9]), ("x", F, [9, 61])], [("y", F, None)],
                     [const("zero", [0]), const("w", draw.standard_normal((61, 36)), np.float32),
                      const("b", draw.standard_normal(36), np.float32)])
        x = draw.standard_normal((9, 61)).astype(np.float32)
        self.check(made, ["at:9"], [{"pick": (np.arange(9) < n).astype(np.float32), "x": x} for n in (9, 1, 2, 3, 4, 0)])


if __name__ == "__main__":
    unittest.main()
