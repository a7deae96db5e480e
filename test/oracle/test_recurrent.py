"""RNN, GRU and LSTM: `qxc run` and emitted C against onnxruntime, over their forms.

onnxruntime has no layout 1: there the same model is run with layout 0 and transposed.
"""

import itertools

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cmodel import CModel
from common import OracleCase, float_excess, for_each, qxc, qxc_outputs, session
from test_channels_last import BUILDS, runs_here

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
            compiled = CModel(source, flags=("-O0", "-fsanitize=undefined", "-Wextra"))
            for _ in range(2):
                compiled.arena[:] = 0xff
                got = compiled.run(*data.values())
                for (name, _, _), values in zip(compiled.outputs, got):
                    self.same(values, want[name], name)

    @for_each(*GATES)
    def test_vectors(self, op):
        """Vectors of any width and plain C give the bits of `qxc run`, weights of the state constant or not."""
        rng = np.random.default_rng(8)
        before = {"linear_before_reset": 1} if op == "GRU" else {}
        for number, (hidden, open_state) in enumerate(((80, False), (33, False), (16, True), (21, True))):
            layer = Layer(op, rng, "bidirectional", 4, 2, 20, hidden, state=True, **(before if number % 2 else {}))
            model, path = layer.model(0), self.scratch / f"{op}{number}.onnx"
            data = layer.inputs()
            if open_state:
                weights = next(i for i in model.graph.initializer if i.name == "R")
                model.graph.initializer.remove(weights)
                model.graph.input.append(helper.make_tensor_value_info("R", TensorProto.FLOAT, weights.dims))
                data = {**data, "R": numpy_helper.to_array(weights)}
            onnx.save(model, path)
            want = qxc_outputs(path, {name: a[None] for name, a in data.items()}, self.scratch)
            source = path.with_suffix(".c")
            qxc(path, "-emit=c", "-no-sync", "-o", source)
            for build in filter(runs_here, ("plain", "AVX2", "native", "portable", "AVX512")):
                compiled = CModel(source, "gcc", ("-O1", *BUILDS[build]))
                for (name, _, _), got in zip(compiled.outputs, compiled.run(*data.values())):
                    self.assertEqual(got.tobytes(), want[name].tobytes(), (build, hidden, name))
                    if not open_state:
                        self.same(got, layer.expected()[name], name)

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


class DynamicLSTM(OracleCase):
    """-dynamic: DynamicQuantizeLSTM in onnxruntime and in `qxc run`.

    Both round the state to 8 bits before each step. A state number at a tie may fall to either side
    and move what follows: half of all results are within 1e-6, and each within 2 % of the largest.
    """

    def near(self, got, want, label):
        error = np.abs(got.ravel().astype(np.float64) - want.ravel())
        self.assertLessEqual(np.median(error), 1e-6, label)
        self.assertLessEqual(np.max(error), 0.02 * np.max(np.abs(want)), label)

    def layers(self):
        rng = np.random.default_rng(11)
        for choice in ({}, {"state": True, "peepholes": True}, {"batch": 3, "lens": [5, 2, 4]},
                       {"steps": 1, "clip": 0.5}, {"size": 33, "hidden": 40, "bias": False}):
            for direction in ("forward", "reverse", "bidirectional"):
                yield Layer("LSTM", rng, direction, **choice)

    def test_qop(self):
        path, made = self.scratch / "m.onnx", self.scratch / "q.onnx"
        for number, layer in enumerate(self.layers()):
            with self.subTest(number, direction=layer.direction):
                onnx.save(layer.model(0), path)
                qxc(path, "-dynamic", "-emit=qop", "-o", made)
                self.assertEqual([n.op_type for n in onnx.load(made).graph.node],
                                 ["DynamicQuantizeLSTM"])
                want = dict(zip(["Y", "Y_h", "Y_c"], session(made).run(None, layer.data)))
                got = qxc_outputs(made, one_sample(layer.data), self.scratch)
                for name, values in want.items():
                    self.near(got[name], values, name)
                real = layer.expected()["Y"]
                self.assertLess(np.max(np.abs(got["Y"].reshape(real.shape) - real)), 0.1)

    def test_forms_agree(self):
        """.qir, ONNX and emitted C compute the same."""
        layer = Layer("LSTM", np.random.default_rng(12), "bidirectional", state=True)
        path, text, made = (self.scratch / n for n in ("m.onnx", "m.qir", "q.onnx"))
        onnx.save(layer.model(0), path)
        qxc(path, "-dynamic", "-emit=qir", "-o", text)
        qxc(text, "-emit=qop", "-o", made)
        data = one_sample(layer.data)
        first, second = (qxc_outputs(p, data, self.scratch) for p in (text, made))
        source = self.scratch / "dynamic.c"
        qxc(path, "-dynamic", "-emit=c", "-no-sync", "-o", source)
        compiled = CModel(source, "gcc", flags=("-O0", "-fsanitize=undefined"))
        compiled.arena[:] = 0xff
        for (name, _, _), values in zip(compiled.outputs, compiled.run(*layer.data.values())):
            np.testing.assert_array_equal(first[name], second[name])
            np.testing.assert_allclose(values, first[name].ravel(), rtol=1e-5, atol=1e-6)

    def test_qdq(self):
        """ONNX has no such operator: weights are stored as integers, and the reason is said."""
        layer = Layer("LSTM", np.random.default_rng(13))
        path, made = self.scratch / "m.onnx", self.scratch / "q.onnx"
        onnx.save(layer.model(0), path)
        said = qxc(path, "-dynamic", "-emit=qdq", "-o", made).stderr
        self.assertIn("only in com.microsoft's form of it (-emit=qop)", said)
        self.assertEqual([n.op_type for n in onnx.load(made).graph.node],
                         ["DequantizeLinear", "DequantizeLinear", "LSTM"])
        error = session(made).run(None, layer.data)[0] - layer.expected()["Y"]
        self.assertLess(np.max(np.abs(error)), 0.05)

    def test_onnxruntime_file(self):
        """What onnxruntime's quantize_dynamic writes is read, computes the same, and comes back; one scale a direction, or
        one a row of each."""
        from onnxruntime.quantization import QuantType, quantize_dynamic
        path, made, back = (self.scratch / f"{n}.onnx" for n in ("m", "ort", "back"))
        for kind, rows, direction in itertools.product((QuantType.QInt8, QuantType.QUInt8), (False, True),
                                                       ("forward", "bidirectional")):
            with self.subTest(kind=kind, rows=rows, direction=direction):
                layer = Layer("LSTM", np.random.default_rng(14), direction, state=True)
                onnx.save(layer.model(0), path)
                quantize_dynamic(path, made, weight_type=kind, per_channel=rows)
                want = dict(zip(["Y", "Y_h", "Y_c"], session(made).run(None, layer.data)))
                got = qxc_outputs(made, one_sample(layer.data), self.scratch)
                for name, values in want.items():
                    self.near(got[name], values, name)
                qxc(made, "-emit=qop", "-no-sync", "-o", back)
                self.assertEqual(["DynamicQuantizeLSTM"], [n.op_type for n in onnx.load(back).graph.node])
                for values, same in zip(want.values(), session(back).run(None, layer.data)):
                    np.testing.assert_array_equal(values, same)
                qxc(made, "-emit=qdq", "-no-sync", "-o", back)
                error = session(back).run(None, layer.data)[0] - layer.expected()["Y"]
                self.assertLess(np.max(np.abs(error)), 0.05)


if __name__ == "__main__":
    import unittest
    unittest.main()
