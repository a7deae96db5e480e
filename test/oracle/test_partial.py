#!/usr/bin/env python3
"""Static quantization of models with parts that qxc cannot run: what is before them and beside them is
quantized as in a model that ends there, what is behind them stays float, and the summary says so. Where shapes depend on
the data, what is behind is quantized, too. The results load in onnxruntime, compute the same in both spellings, and are close to the float model."""

import re
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import OracleCase, for_each, qxc, run_samples, session, sqnr, with_outputs

SIDE, CHANNELS, SAMPLES = 16, 8, 6
make = helper.make_node


class Net:
    """A backbone of two Convs, [1,3,16,16] to %c2 of [1,8,16,16], and what a test adds."""

    def __init__(self):
        self.rng = np.random.default_rng(11)
        self.nodes, self.inits, self.outputs, self.imports = [], [], [], [helper.make_opsetid("", 17)]
        self.conv("x", "c1", 3)
        self.conv("c1", "c2", CHANNELS)

    def const(self, name, value):
        self.inits.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, op, inputs, outputs, **attributes):
        self.nodes.append(make(op, inputs, outputs, **attributes))

    def conv(self, x, y, channels, out=CHANNELS):
        weights = self.rng.normal(0, (9 * channels) ** -0.5, (out, channels, 3, 3)).astype(np.float32)
        self.const(f"w_{y}", weights)
        self.add("Conv", [x, f"w_{y}"], [f"{y}_sum"], pads=[1] * 4)
        self.add("Relu", [f"{y}_sum"], [y])

    def output(self, name, shape, elem=TensorProto.FLOAT):
        self.outputs.append(helper.make_tensor_value_info(name, elem, shape))

    def model(self):
        graph = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, SIDE, SIDE])],
            self.outputs, self.inits)
        return helper.make_model(graph, ir_version=8, opset_imports=self.imports)


def detector():
    """Boxes and classes of each position, NonMaxSuppression, and a head on what it leaves."""
    net = Net()
    boxes = SIDE * SIDE * 2
    for name in "boxes", "classes":
        net.conv("c2", f"{name}_map", CHANNELS)
        net.add("Transpose", [f"{name}_map"], [f"{name}_last"], perm=[0, 2, 3, 1])
        net.add("Reshape", [f"{name}_last", net.const(f"{name}_shape", [1, boxes, 4])], [name])
    net.add("Softmax", ["classes"], ["each"], axis=2)
    net.add("Transpose", ["each"], ["scores"], perm=[0, 2, 1])
    net.add("NonMaxSuppression",
            ["boxes", "scores", net.const("most", [5]), net.const("iou", np.float32([0.5])),
             net.const("least", np.float32([0.3]))], ["found"], center_point_box=1)
    net.add("Gather", ["found", net.const("two", 2)], ["place"], axis=1)
    net.add("Squeeze", ["boxes", net.const("zero", [0])], ["boxes_2d"])
    net.add("Gather", ["boxes_2d", "place"], ["taken"])
    net.add("MatMul", ["taken", net.const("w", net.rng.normal(0, 1, (4, 3)).astype(np.float32))], ["head"])
    net.output("found", ["n", 3], TensorProto.INT64)
    net.output("head", ["n", 3])
    return net.model(), "NonMaxSuppression", ["boxes", "scores"]


def custom():
    """An operator of somebody's own on one branch."""
    net = Net()
    net.imports.append(helper.make_opsetid("my.ops", 1))
    net.add("Odd", ["c2"], ["odd"], domain="my.ops")
    net.conv("odd", "y", CHANNELS)
    net.conv("c2", "z", CHANNELS)
    net.output("y", [1, CHANNELS, SIDE, SIDE])
    net.output("z", [1, CHANNELS, SIDE, SIDE])
    return net.model(), "my.ops::Odd", ["c2", "z"]


def nonzero():
    net = Net()
    net.add("NonZero", ["c2"], ["at"])
    net.add("Transpose", ["at"], ["rows"], perm=[1, 0])
    net.add("GatherND", ["c1", "rows"], ["some"])
    net.add("Mul", ["some", net.const("k", np.float32(0.5))], ["y"])
    net.output("y", ["n"])
    return net.model(), "NonZero", ["c2"]


def compress():
    net = Net()
    net.add("ReduceMax", ["c2"], ["peaks"], axes=[0, 2, 3], keepdims=0)
    net.add("Greater", ["peaks", net.const("k", np.float32(0.01))], ["keep"])
    net.add("Compress", ["c2", "keep"], ["some"], axis=1)
    net.add("Relu", ["some"], ["y"])
    net.output("y", [1, "n", SIDE, SIDE])
    return net.model(), "Compress", ["c2"]


def sequence():
    net = Net()
    net.add("SequenceConstruct", ["c1", "c2"], ["both"])
    net.add("SequenceAt", ["both", net.const("one", 1)], ["second"])
    net.conv("second", "y", CHANNELS)
    net.conv("c2", "z", CHANNELS)
    net.output("y", [1, CHANNELS, SIDE, SIDE])
    net.output("z", [1, CHANNELS, SIDE, SIDE])
    return net.model(), "SequenceConstruct", ["c2", "z"]


def in_a_branch():
    """Where a branch cannot run, the If as a whole cannot, nor what reads its result."""
    net = Net()
    bodies = {}
    for name, x in ("then_branch", "c2"), ("else_branch", "c1"):
        nodes = [make("NonZero", [x], [f"{x}_at"]), make("ReduceMax", [f"{x}_at"], [f"{x}_last"], keepdims=0),
                 make("Cast", [f"{x}_last"], [f"{x}_float"], to=TensorProto.FLOAT)]
        result = helper.make_tensor_value_info(f"{x}_float", TensorProto.FLOAT, [])
        bodies[name] = helper.make_graph(nodes, name, [], [result])
    net.add("ReduceMax", ["c2"], ["peak"], keepdims=0)
    net.add("Greater", ["peak", net.const("k", np.float32(0.01))], ["high"])
    net.add("If", ["high"], ["at"], **bodies)
    net.add("Sigmoid", ["at"], ["y"])
    net.output("y", [])
    return net.model(), "NonZero", ["c2"]


MODELS = {f.__name__: f for f in (detector, custom, nonzero, compress, sequence, in_a_branch)}
FLOAT_SUMS = {"head": 1e-6}  # of products that go out: the sums are scaled in one form, the operands in the other
OPEN = {"detector", "nonzero", "compress", "in_a_branch"}  # their shapes depend on the data


def runnable(model):
    """What onnxruntime does not know either is another function for the sake of the test."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for node in model.graph.node:
        if node.domain == "my.ops":
            node.op_type, node.domain = "Tanh", ""
    return model


class Partial(OracleCase):
    def setUp(self):
        rng = np.random.default_rng(2)
        self.arrays = {"x": rng.normal(0, 1, (SAMPLES, 3, SIDE, SIDE)).astype(np.float32)}
        self.data = self.scratch / "data.npz"
        np.savez(self.data, **self.arrays, label=np.zeros(SAMPLES, np.int64))

    def quantized(self, model, *options):
        path, out = self.scratch / "m.onnx", self.scratch / "q.onnx"
        onnx.save(model, path)
        done = qxc(path, f"-calib={self.data}", *options, "-o", out)
        return onnx.load(out), done.stderr

    def values(self, model, names, optimize):
        model = with_outputs(runnable(model), names) if names else runnable(model)
        return run_samples(session(model, optimize=optimize), model, {"x": self.arrays["x"]}, 1)

    @for_each(*MODELS)
    def test_the_rest_is_quantized(self, name):
        model, op, computed = MODELS[name]()
        kept = {n.op_type for n in model.graph.node} & {"NonMaxSuppression", "Odd", "NonZero", "Compress"}
        results = {}
        for kind in "qdq", "qop":
            got, said = self.quantized(model, f"-emit={kind}")
            onnx.checker.check_model(got)
            behind = re.search(re.escape(op) + r" cannot run here \(.*\): (\d+) values? behind it ha", said)
            self.assertEqual(not behind, name in OPEN, said)
            self.assertTrue(kept <= {n.op_type for n in got.graph.node})
            self.assertGreaterEqual(sum(n.op_type in ("QLinearConv", "Conv") and
                                        (kind == "qdq" or n.op_type == "QLinearConv") for n in got.graph.node), 2)
            results[kind] = got
        for optimize in False, True:
            each = {k: self.values(m, None, optimize) for k, m in results.items()}
            for output, array in each["qop"].items():
                atol = FLOAT_SUMS.get(output, 0) * np.abs(array).max(initial=0)
                np.testing.assert_allclose(each["qdq"][output], array, rtol=0, atol=atol, err_msg=output)
        reference = self.values(model, computed, False)
        names = {o for n in results["qdq"].graph.node for o in n.output}
        mine = self.values(results["qdq"], [n for n in computed if n in names], False)
        self.assertTrue(mine)
        for value, array in mine.items():
            self.assertGreater(sqnr(reference[value], array), 20, value)

    def test_what_has_a_shape_is_compared(self):
        """Of a detector the boxes and scores, which NonMaxSuppression reads, stand for outputs of other boxes."""
        path = self.scratch / "m.onnx"
        self.quantized(detector()[0], "-emit=qdq", "-min-sqnr=30")
        done = qxc("compare", path, self.scratch / "q.onnx", f"-input={self.data}", "-min-sqnr=30")
        self.assertIn("warning: the models choose other elements in 5 of 6 samples", done.stderr)
        values, outputs = ([line.split()[-1] for line in part.splitlines()[1:-1]] for part in done.stdout.split("outputs:"))
        self.assertEqual(set(outputs), {"found", "head"})
        self.assertLessEqual({"boxes", "scores"}, set(values))
        missed = qxc("compare", path, self.scratch / "q.onnx", f"-input={self.data}", "-min-sqnr=90", ok=False)
        self.assertEqual(4, missed.returncode)
        self.assertRegex(missed.stderr, "error: value boxes.* has .* dB, less than the 90 asked for")

    @for_each("compress", "detector")
    def test_what_the_data_choose_is_measured(self, name):
        """The summary and compare say what onnxruntime's outputs have, of samples in which both models chose the same."""
        model, output = MODELS[name]()[0], {"compress": "y", "detector": "head"}[name]
        got, said = self.quantized(model, "-emit=qdq")
        chosen = ["found"] if name == "detector" else []
        sides = []
        for m in model, got:
            runs = [run_samples(session(m, optimize=False), m, {"x": self.arrays["x"][i:i + 1]}, 1) for i in range(SAMPLES)]
            sides.append(runs)
        alike = [i for i, (a, b) in enumerate(zip(*sides)) if a[output].shape == b[output].shape and
                 all(np.array_equal(a[c], b[c]) for c in chosen)]
        self.assertEqual(len(alike), {"compress": SAMPLES, "detector": 1}[name])
        want = sqnr(*(np.concatenate([runs[i][output].ravel() for i in alike]) for runs in sides))
        told = float(re.search(rf"SQNR (\S+) dB at output {output}\b", said)[1])
        self.assertAlmostEqual(told, want, delta=0.02)
        done = qxc("compare", self.scratch / "m.onnx", self.scratch / "q.onnx", f"-input={self.data}")
        self.assertAlmostEqual(float(re.search(rf"(\S+) +\S+ +\S+  {output}\n", done.stdout)[1]), want, delta=0.02)

    @for_each("custom", "sequence")
    def test_outputs_are_close(self, name):
        model, _, _ = MODELS[name]()
        for options in (), ("-adaround",), ("-equalize",), ("-weights=int4",), ("-calib-method=mse",):
            got, _ = self.quantized(model, "-emit=qdq", *options)
            want = self.values(model, None, False)
            for output, array in self.values(got, None, True).items():
                self.assertGreater(sqnr(want[output], array), 12 if "-weights=int4" in options else 25, output)

    def test_what_is_behind_stays_float(self):
        got, said = self.quantized(custom()[0], "-emit=qop")
        self.assertEqual([n.op_type for n in got.graph.node if n.op_type.endswith("Conv")],
                         ["QLinearConv"] * 2 + ["Conv", "QLinearConv"])
        self.assertIn("my.ops::Odd cannot run here (it is not known): 3 values behind it have no statistics", said)
        self.assertNotIn("never computed", said)

    def test_a_gate_holds_for_what_can_be_computed(self):
        got, said = self.quantized(custom()[0], "-emit=qdq", "-min-sqnr=30")
        self.assertRegex(said, r"all quantized: [3-9]\d\.\d+ dB")
        # what is quantized behind a choice is seen by nobody where all samples choose otherwise: a gate leaves it float, or
        # gives more bits, with which some choose the same
        got, said = self.quantized(nonzero()[0], "-emit=qdq", "-placement=all", "-min-sqnr=30")
        self.assertIn("all quantized: 'y_quantized' (Mul) is behind what each sample chooses otherwise", said)
        self.assertRegex(said, r"spared: [3-9]\d\.\d+ dB\n  y stays float")
        done = qxc(self.scratch / "m.onnx", f"-calib={self.data}", "-min-sqnr=200", "-integer-only", "-emit=c",
                   "-o", self.scratch / "none.c", ok=False)
        self.assertEqual(done.returncode, 4)
        self.assertRegex(done.stderr, r"-min-sqnr=200 cannot be met: the best reached is [789]\d\.")
        qxc(self.scratch / "m.onnx", f"-calib={self.data}", "-placement=all", "-emit=qdq", "-o", self.scratch / "all.onnx")
        done = qxc("compare", self.scratch / "m.onnx", self.scratch / "all.onnx", f"-input={self.data}", "-min-sqnr=30", ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("'y_quantized' is quantized behind what the data choose, and no sample", done.stderr)
        qxc(self.scratch / "m.onnx", "-emit=onnx", "-o", self.scratch / "same.onnx")
        qxc("compare", self.scratch / "m.onnx", self.scratch / "same.onnx", f"-input={self.data}", "-min-sqnr=30")
        onnx.save(custom()[0], self.scratch / "m.onnx")
        done = qxc(self.scratch / "m.onnx", f"-calib={self.data}", "-min-sqnr=30", "-max-drop=1", "-labels=label",
                   "-emit=qdq", "-o", self.scratch / "none.onnx", ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("operator my.ops::Odd cannot run", done.stderr)
        self.assertFalse((self.scratch / "none.onnx").exists())

    def test_outputs_that_are_needed(self):
        path = self.scratch / "m.onnx"
        onnx.save(custom()[0], path)
        for command in ([path, f"-calib={self.data}", "-emit=c"], ["run", path, "-random=1"],
                        ["compare", path, path, "-random=1"]):
            done = qxc(*command, ok=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("operator my.ops::Odd cannot run", done.stderr)


if __name__ == "__main__":
    unittest.main()
