"""RNN, GRU and LSTM: `qxc run` and emitted C against onnxruntime, over their forms.

onnxruntime has no layout 1: there the same model is run with layout 0 and transposed.
"""

import itertools

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cmodel import CModel
from common import OracleCase, float_excess, for_each, qxc, qxc_outputs, session

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}


def one_sample(arrays):
    """The first axis counts samples; arrays that begin with an axis of length 1 have it already."""
    return {n: v if v.shape[0] == 1 else v[None] for n, v in arrays.items()}


class Layer:
    """One recurrent node with random weights as constants, X and what else is asked for as inputs."""

    def __init__(self, op, rng, direction="forward", steps=5, batch=2, size=3, hidden=4, bias=True,
                 state=False, lens=None, peepholes=False, **attrs):
        self.op, self.direction, self.attrs = op, direction, attrs
        self.dirs = 2 if direction == "bidirectional" else 1
        self.dims, self.layout = (steps, batch, size, hidden), attrs.get("layout", 0)
        rows = GATES[op] * hidden

        def normal(*shape):
            return (rng.standard_normal(shape) * 0.5).astype(np.float32)

        self.weights = {"W": normal(self.dirs, rows, size), "R": normal(self.dirs, rows, hidden)}
        if bias:
            self.weights["B"] = normal(self.dirs, 2 * rows)
        if lens is not None:
            self.weights["lens"] = np.array(lens, np.int32)
        if peepholes:
            self.weights["P"] = normal(self.dirs, 3 * hidden)
        self.data = {"X": normal(steps, batch, size) * 2}
        if state:
            self.data["h0"] = normal(self.dirs, batch, hidden)
            if op == "LSTM":
                self.data["c0"] = normal(self.dirs, batch, hidden)

    def model(self, layout, outputs=None):
        steps, batch, size, hidden = self.dims
        given = {**self.weights, **self.data}
        names = ["X", "W", "R", "B", "lens", "h0"] + (["c0", "P"] if self.op == "LSTM" else [])
        operands = [n if n in given else "" for n in names]
        while not operands[-1]:
            operands.pop()
        results = ["Y", "Y_h"] + (["Y_c"] if self.op == "LSTM" else [])
        results = [r if outputs is None or r in outputs else "" for r in results]
        while not results[-1]:
            results.pop()
        attrs = dict(self.attrs, hidden_size=hidden, direction=self.direction)
        attrs["layout"] = layout
        node = helper.make_node(self.op, operands, results, "layer", **attrs)

        def info(name, shape):
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

        state = (batch, self.dirs, hidden) if layout else (self.dirs, batch, hidden)
        shapes = {"X": (batch, steps, size) if layout else (steps, batch, size), "h0": state,
                  "c0": state, "Y_h": state, "Y_c": state,
                  "Y": (batch, steps, self.dirs, hidden) if layout
                       else (steps, self.dirs, batch, hidden)}
        graph = helper.make_graph(
            [node], "g", [info(n, shapes[n]) for n in self.data],
            [info(n, shapes[n]) for n in results if n],
            [numpy_helper.from_array(v, n) for n, v in self.weights.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def expected(self):
        """By output name, in the layout of the layer."""
        found = session(self.model(0)).run(None, self.data)
        found = dict(zip(["Y", "Y_h", "Y_c"], found))
        if self.layout:
            found = {n: v.transpose((2, 0, 1, 3) if n == "Y" else (1, 0, 2)) for n, v in found.items()}
        return found

    def inputs(self):
        return {n: v.transpose(1, 0, 2) if self.layout else v for n, v in self.data.items()}


def layers(op):
    """Every direction with every choice that changes what a step does, then shapes at the edges."""
    rng = np.random.default_rng(len(op) * 17)
    choices = [{}, {"bias": False}, {"state": True}, {"lens": [5, 2]}, {"lens": [0, 5]},
               {"lens": [1, 3], "state": True}, {"clip": 0.3}, {"layout": 1, "state": True},
               {"layout": 1, "lens": [3, 5]}]
    if op == "LSTM":
        choices += [{"peepholes": True}, {"peepholes": True, "clip": 0.25, "state": True},
                    {"input_forget": 1}, {"input_forget": 1, "peepholes": True}]
    if op == "GRU":
        choices += [{"linear_before_reset": 1}, {"linear_before_reset": 1, "bias": False},
                    {"linear_before_reset": 1, "state": True, "lens": [4, 1], "clip": 0.5}]
    for direction, choice in itertools.product(("forward", "reverse", "bidirectional"), choices):
        yield Layer(op, rng, direction, **choice)
    for steps, batch, size, hidden in ((1, 1, 1, 1), (1, 3, 2, 5), (7, 1, 20, 33), (12, 4, 17, 16)):
        yield Layer(op, rng, "bidirectional", steps, batch, size, hidden, state=True)
    count = FUNCTIONS[op]
    for names in itertools.product(("Sigmoid", "Tanh", "Relu"), repeat=count):
        yield Layer(op, rng, activations=list(names))
    yield Layer(op, rng, "bidirectional", activations=["Relu"] * count + ["Sigmoid"] * count)


class Recurrent(OracleCase):
    def same(self, got, want, label):
        self.assertEqual(got.size, want.size, label)
        if want.size:
            self.assertLessEqual(float_excess(got.reshape(1, -1), want.reshape(1, -1)), 0, label)

    @for_each(*GATES)
    def test_run(self, op):
        for number, layer in enumerate(layers(op)):
            with self.subTest(number, direction=layer.direction, **layer.attrs):
                path = self.scratch / "m.onnx"
                onnx.save(layer.model(layer.layout), path)
                data = one_sample(layer.inputs())
                got = qxc_outputs(path, data, self.scratch)
                for name, want in layer.expected().items():
                    self.same(got[name], want, name)

    @for_each(*GATES)
    def test_emitted_c(self, op):
        """Bit for bit what `qxc run` computes; twice, as nothing may be left in the arena."""
        rng = np.random.default_rng(5)
        for number, choice in enumerate(({"state": True, "lens": [2, 5]}, {"layout": 1})):
            layer = Layer(op, rng, "bidirectional", **choice)
            path = self.scratch / f"{op}{number}.onnx"
            onnx.save(layer.model(layer.layout), path)
            data = layer.inputs()
            want = qxc_outputs(path, one_sample(data), self.scratch)
            source = self.scratch / f"{op}{number}.c"
            qxc(path, "-emit=c", "-no-sync", "-o", source)
            compiled = CModel(source, flags=("-O1", "-fsanitize=undefined", "-Wextra"))
            for _ in range(2):
                compiled.arena[:] = 0xff
                got = compiled.run(*data.values())
                for (name, _, _), values in zip(compiled.outputs, got):
                    self.same(values, want[name], name)

    @for_each(*GATES)
    def test_one_output(self, op):
        """Results that are not asked for are not made."""
        rng = np.random.default_rng(6)
        for outputs in (["Y"], ["Y_h"]):
            layer = Layer(op, rng, "bidirectional", lens=[5, 3])
            path = self.scratch / "m.onnx"
            onnx.save(layer.model(0, outputs), path)
            got = qxc_outputs(path, one_sample(layer.data), self.scratch)
            self.assertEqual(list(got), outputs)
            self.same(got[outputs[0]], layer.expected()[outputs[0]], outputs[0])

    @for_each(*GATES)
    def test_empty(self, op):
        """No rows in the batch: results without elements."""
        layer = Layer(op, np.random.default_rng(7), batch=0)
        path = self.scratch / "m.onnx"
        onnx.save(layer.model(0), path)
        got = qxc_outputs(path, one_sample(layer.data), self.scratch)
        self.assertEqual(got["Y_h"].size, 0)

    @for_each(*GATES)
    def test_refused(self, op):
        count = FUNCTIONS[op]
        layer = Layer(op, np.random.default_rng(8), activations=["Softsign"] * count)
        path = self.scratch / "m.onnx"
        onnx.save(layer.model(0), path)
        done = qxc("run", path, "-random=1", ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("activation Softsign has no kernel", done.stderr)


if __name__ == "__main__":
    import unittest
    unittest.main()
