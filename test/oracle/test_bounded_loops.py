"""Emitted C of Loops whose scanned values are as many as a run tells: under the sanitizers, against `qxc run`."""

import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.helper import make_node as node

from bounded import B, ERROR_LENGTH, F, I, OK, BoundedCase, const, model
from common import qxc

RNG = np.random.default_rng(31)


def loop(inputs, outputs, nodes, carried, yields, condition="c"):
    """A Loop whose body is `nodes`, of values named as they are in the body: `carried` ones, and `yields` behind them."""
    def info(name, kind, shape):
        return helper.make_tensor_value_info(name, kind, shape)
    body = helper.make_graph(
        nodes, "body", [info("i", I, []), info("c", B, []), *(info(n, F, s) for n, s in carried)],
        [info(condition, B, []), *(helper.make_empty_tensor_value_info(n) for n in yields)])
    return node("Loop", inputs, outputs, body=body)


class Loops(BoundedCase):
    def test_as_often_as_an_input_says(self):
        """Two values are scanned, one of them a number; another is carried. What reads them runs over those there are."""
        made = model([loop(["n", "", "a"], ["last", "rows", "counts"],
                           [node("Add", ["v", "one"], ["w"]), node("Mul", ["w", "w"], ["square"]), node("Cast", ["i"], ["at"], to=F),
                            node("Identity", ["c"], ["d"])], [("v", [3])], ["w", "square", "at"], "d"),
                      node("Softmax", ["rows"], ["share"], axis=0), node("ReduceSum", ["counts"], ["sum"], keepdims=0),
                      node("Shape", ["rows"], ["shape"])],
                     [("n", I, []), ("a", F, [3])],
                     [("last", F, None), ("share", F, None), ("counts", F, None), ("sum", F, None), ("shape", I, [2])],
                     [const("one", 0.25, np.float32)])
        feeds = [{"n": np.int64(n), "a": RNG.standard_normal(3).astype(np.float32)} for n in (3, 0, 6, 1, 7, -2, 2 ** 62, 5)]
        for bound in 6, 2, 1:
            statuses = [OK if f["n"] <= bound else ERROR_LENGTH for f in feeds]
            self.check(made, [f"rows:{bound}"], feeds, statuses, told=False)

    def test_until_a_condition(self):
        """With and without a count; the numbers double until they are large."""
        for trips, bounds, most in (("", ["z:8"], 8), ("ten", ["z:5"], 5), ("ten", [], 10)):
            made = model([loop([trips, "yes", "a"], ["y", "z"],
                               [node("Add", ["v", "v"], ["w"]), node("Less", ["w", "limit"], ["go"])],
                               [("v", [])], ["w", "w"], "go"), node("Neg", ["z"], ["minus"])],
                         [("a", F, []), ("yes", B, [])], [("y", F, None), ("minus", F, None)],
                         [const("limit", 100, np.float32), *([const("ten", 10)] if trips else [])])
            rows = [(1, True, 7), (60, True, 1), (3, False, 0), (0.5, True, 8), (0.25, True, 9), (0, True, 10 ** 9), (-1, True, 10 ** 9)]
            counts = [min(n, 10) if trips else n for _, _, n in rows]
            rows = [(r, n) for r, n in zip(rows, counts) if n < 10 ** 9]
            self.check(made, bounds, [{"a": np.float32(a), "yes": np.bool_(yes)} for (a, yes, _), _ in rows],
                       [OK if n <= most else ERROR_LENGTH for _, n in rows], told=False)

    def test_length_that_the_model_states(self):
        made = model([loop(["n", "", "a"], ["last", "z"], [node("Add", ["v", "v"], ["w"])], [("v", [2])], ["w", "w"]),
                      node("Neg", ["z"], ["y"])], [("n", I, [1]), ("a", F, [2])], [("last", F, [2]), ("z", F, [3, 2]), ("y", F, [3, 2])])
        lengths = (3, 2, 4, 0, -1, 3)
        self.check(made, [], [{"n": np.array([n]), "a": np.float32([1, n])} for n in lengths],
                   [OK if n == 3 else ERROR_LENGTH for n in lengths], told=False)

    def test_one_row_for_each_that_is_there(self):
        """It runs as often as NonZero has found something: one bound is enough."""
        made = model([node("NonZero", ["x"], ["at"]), node("Shape", ["at"], ["s"]), node("Gather", ["s", "one"], ["n"]),
                      loop(["n", "", "a"], ["last", "z"], [node("Gather", ["at", "i"], ["column"], axis=1), node("Gather", ["x", "column"], ["p"]),
                                                           node("Add", ["v", "p"], ["w"])], [("v", [1])], ["w", "w"])],
                     [("x", F, [6]), ("a", F, [1])], [("last", F, None), ("z", F, None)], [const("one", 1)])
        feeds = [{"x": (np.arange(6) < n) * RNG.standard_normal(6).astype(np.float32), "a": np.float32([n])} for n in (3, 6, 2, 4)]
        self.check(made, ["at:6"], feeds)

    def test_what_stays_refused(self):
        """Values that change their shape, parts of unknown length, and a Loop in a body."""
        inner = loop(["m", "", "v"], ["k", "parts"], [node("Add", ["u", "u"], ["t"])], [("u", [2])], ["t", "t"])
        for nodes, carried, bound, why in (
                ([node("Concat", ["v", "v"], ["w"], axis=0)], [("v", [None])], "z:4", "-max-elements"),
                ([inner, node("ReduceSum", ["parts", "axis"], ["w"], keepdims=0)], [("v", [2])], "z:4",
                 "how many elements 'parts' gets is not known")):
            made = model([loop(["n", "", "a"], ["last", "z"], nodes, carried, ["w", "w"])],
                         [("n", I, []), ("m", I, []), ("a", F, [2])], [("last", F, None), ("z", F, None)], [const("axis", [0])])
            onnx.save(made, self.scratch / "m.onnx")
            said = qxc(self.scratch / "m.onnx", "-emit=c", f"-max-elements={bound}", "-o", self.scratch / "none.c", ok=False)
            self.assertEqual(said.returncode, 1)
            self.assertIn(why, said.stderr)
            self.assertFalse((self.scratch / "none.c").exists())


if __name__ == "__main__":
    unittest.main()
