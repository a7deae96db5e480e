"""RNN, GRU and LSTM on integers: what `qxc run` and emitted C compute against the real operator on the dequantized
operands, in float64 and by onnxruntime. Results of 8 bits are at most one step away, however long the sequence."""

import itertools
import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cmodel import CModel
from common import OracleCase, for_each, qxc, qxc_outputs, session, talk

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}


class Grid:
    """Integers of `elem`, whose real numbers are scale * (q - zp)."""

    def __init__(self, elem, scale, zp=0):
        self.elem, self.scale, self.zp = elem, np.float32(scale), zp
        self.lo, self.hi = RANGES[elem]

    def over(self, lo, hi):
        """The parameters with which the range reaches from lo to hi."""
        scale = np.float32((hi - lo) / (self.hi - self.lo))
        return Grid(self.elem, scale, int(np.clip(np.rint(self.lo - lo / scale), self.lo, self.hi)))

    def real(self, q):
        return (q.astype(np.float64) - self.zp) * np.float64(self.scale)

    def steps(self, x):
        """In steps, not rounded, cut at the ends of the range."""
        return np.clip(x / np.float64(self.scale) + self.zp, self.lo, self.hi)

    def random(self, rng, shape):
        return rng.integers(self.lo, self.hi + 1, shape).astype(self.elem)

    def __str__(self):
        return f"{self.elem}q<{self.scale!s}, {self.zp}>"


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


FUNCTIONS = {"Sigmoid": sigmoid, "Tanh": np.tanh}


def numbers(values):
    return "[" + ", ".join(map(str, np.ravel(values).tolist())) + "]"


class Layer:
    """A recurrent node on integers as text, with X, initial states and lengths as inputs."""

    def __init__(self, op, rng, direction="forward", steps=100, batch=2, size=5, hidden=7, x="int8", y="int8",
                 xzp=None, spread=0.6, x_range=2.0, bias="float", rows=True, state=False, lens=None, peepholes=False,
                 h_range=1.0, results=("Y", "Y_h", "Y_c"), **attrs):
        self.op, self.direction, self.attrs, self.lens = op, direction, attrs, lens
        self.dirs = 2 if direction == "bidirectional" else 1
        self.dims, self.layout = (steps, batch, size, hidden), attrs.get("layout", 0)
        self.results = [r for r in results if r != "Y_c" or op == "LSTM"]
        n = GATES[op] * hidden
        x = Grid(x, 1)
        self.grid = {"X": x.over(-x_range, x_range) if xzp is None else Grid(x.elem, 2 * x_range / (x.hi - x.lo),
                                                                           x.lo if xzp == "low" else x.hi)}
        self.ints = {"X": self.grid["X"].random(rng, (steps, batch, size))}
        self.consts, self.weight_scale = {}, {}
        for name, length in (("W", size), ("R", hidden)):
            real = rng.standard_normal((self.dirs, n, length)) * spread
            most = np.abs(real).max(axis=(0, 2), keepdims=True) if rows else np.abs(real).max(keepdims=True)
            scale = (most / 127).astype(np.float32)
            self.weight_scale[name] = scale
            self.consts[name] = np.clip(np.rint(real / scale), -127, 127).astype(np.int8)
        self.bias = bias
        if bias:
            self.consts["B"] = (rng.standard_normal((self.dirs, 2 * n)) * 0.5).astype(np.float32)
            if bias == "int32":
                self.consts["B"] = np.rint(self.consts["B"] * 4096).astype(np.int32)
        if peepholes:
            self.consts["P"] = (rng.standard_normal((self.dirs, 3 * hidden)) * 0.5).astype(np.float32)
        states = ("h0", "c0") if op == "LSTM" else ("h0",)
        for name in states if state else ():
            self.grid[name] = Grid(y, 1).over(*((-h_range, h_range) if name == "h0" else (-3, 3)))
            self.ints[name] = self.grid[name].random(rng, (self.dirs, batch, hidden))
        self.y = y

    # ---- what it should be

    def operands(self):
        """As real numbers, in the layout of steps first."""
        real = {n: self.grid[n].real(v) for n, v in self.ints.items()}
        real.update({n: v * (self.weight_scale[n].astype(np.float64) if n in "WR" else
                             1 / 4096 if self.bias == "int32" and n == "B" else 1.0) for n, v in self.consts.items()})
        return real

    def expected(self):
        steps, batch, _, hidden = self.dims
        v, y = self.operands(), np.zeros((self.dims[0], self.dirs, batch, hidden))
        yh, yc = np.zeros((self.dirs, batch, hidden)), np.zeros((self.dirs, batch, hidden))
        for d, b in itertools.product(range(self.dirs), range(batch)):
            length = steps if self.lens is None else min(steps, self.lens[b])
            h = v["h0"][d, b] if "h0" in v and length else np.zeros(hidden)
            c = v["c0"][d, b] if "c0" in v and length else np.zeros(hidden)
            backward = self.direction == "reverse" or d == 1
            for t in reversed(range(length)) if backward else range(length):
                h, c = self.step(v, d, v["X"][t, b], h, c)
                y[t, d, b] = h
            yh[d, b], yc[d, b] = h, c
        return self.laid_out({"Y": y, "Y_h": yh, "Y_c": yc})

    def functions(self, d):
        count = {"RNN": 1, "GRU": 2, "LSTM": 3}[self.op]
        names = self.attrs.get("activations")
        names = names[d * count:] if names else [["Tanh"], ["Sigmoid", "Tanh"], ["Sigmoid", "Tanh", "Tanh"]][count - 1]
        return [FUNCTIONS[n] for n in names[:count]]

    def step(self, v, d, x, h, c):
        n, clip, f = self.dims[3], self.attrs.get("clip", 0), self.functions(d)
        wx, r = v["W"][d] @ x, v["R"][d]
        wb, rb = np.split(v["B"][d] if "B" in v else np.zeros(2 * len(r)), 2)

        def cut(z):
            return np.clip(z, -clip, clip) if clip else z

        if self.op == "RNN":
            return f[0](cut(wx + r @ h + wb + rb)), c
        if self.op == "GRU":
            zr = f[0](cut((wx + r @ h + wb + rb)[:2 * n]))
            z, reset = zr[:n], zr[n:]
            if self.attrs.get("linear_before_reset"):
                new = wx[2 * n:] + wb[2 * n:] + reset * (r[2 * n:] @ h + rb[2 * n:])
            else:
                new = wx[2 * n:] + r[2 * n:] @ (reset * h) + wb[2 * n:] + rb[2 * n:]
            return (1 - z) * f[1](cut(new)) + z * h, c
        pi, po, pf = np.split(v["P"][d] if "P" in v else np.zeros(3 * n), 3)
        i, o, forget, g = np.split(wx + r @ h + wb + rb, 4)
        i = f[0](cut(i + pi * c))
        forget = 1 - i if self.attrs.get("input_forget") else f[0](cut(forget + pf * c))
        c = forget * c + i * f[1](cut(g))
        return f[0](cut(o + po * c)) * f[2](c), c

    def laid_out(self, found):
        """From steps first."""
        if not self.layout:
            return {n: found[n] for n in self.results}
        return {n: found[n].transpose((2, 0, 1, 3) if n == "Y" else (1, 0, 2)) for n in self.results}

    # ---- onnxruntime, on floats

    def float_model(self):
        real = {n: v.astype(np.float32) for n, v in self.operands().items()}
        if self.lens is not None:
            real["lens"] = np.array(self.lens, np.int32)
        names = ["X", "W", "R", "B", "lens", "h0", "c0", "P"][:8 if self.op == "LSTM" else 6]
        every = [r if r in self.results else "" for r in ("Y", "Y_h", "Y_c")[:3 if self.op == "LSTM" else 2]]
        node = helper.make_node(self.op, [n if n in real else "" for n in names], every,
                                **{**self.attrs, "layout": 0}, hidden_size=self.dims[3], direction=self.direction)
        info = [helper.make_tensor_value_info(r, TensorProto.FLOAT, None) for r in self.results]
        graph = helper.make_graph([node], "g", [], info, [numpy_helper.from_array(v, n) for n, v in real.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def by_onnxruntime(self):
        return self.laid_out(dict(zip(self.results, session(self.float_model()).run(None, {}))))

    # ---- qxc

    def text(self, want):
        """Results have parameters that fit `want`."""
        steps, batch, size, hidden = self.dims
        for name in self.results:
            most = np.abs(want[name]).max(initial=1e-3)
            self.grid[name] = Grid(self.y, 1).over(-most, most)
        shapes = {"X": (batch, steps, size) if self.layout else (steps, batch, size)}
        for name in ("h0", "c0", "Y_h", "Y_c"):
            shapes[name] = (batch, self.dirs, hidden) if self.layout else (self.dirs, batch, hidden)
        shapes["Y"] = (batch, steps, self.dirs, hidden) if self.layout else (steps, self.dirs, batch, hidden)

        def typed(name):
            return f"%{name} : {self.grid[name]}{list(shapes[name])}"

        lines = []
        for name, v in self.consts.items():
            kind = "float" if v.dtype == np.float32 else f"int32q<{1 / 4096}>"
            if name in "WR":
                scale = self.weight_scale[name]
                kind = f"int8q<{scale.item()}>" if scale.size == 1 else f"int8q<{numbers(scale)}, 0, axis=1>"
            lines.append(f"  const %{name} : {kind}{list(v.shape)} = {numbers(v)}")
        if self.lens is not None:
            lines.append(f"  const %lens : int32[{batch}] = {numbers(np.array(self.lens))}")
        names = ["X", "W", "R", "B", "lens", "h0", "c0", "P"][:8 if self.op == "LSTM" else 6]
        there = {"X", *self.ints, *self.consts} | ({"lens"} if self.lens is not None else set())
        operands = ", ".join(f"%{n}" if n in there else "_" for n in names)
        every = ["Y", "Y_h", "Y_c"][:3 if self.op == "LSTM" else 2]
        results = ", ".join(typed(r) if r in self.results else "_" for r in every)
        attrs = {**self.attrs, "hidden_size": hidden, "direction": self.direction}
        said = ", ".join(f"{k}={json.dumps(v)}" for k, v in attrs.items())
        return "\n".join([f'qir 1\nimport "" 17\ngraph @g ({", ".join(map(typed, self.ints))}) -> '
                          f'({", ".join("%" + r for r in self.results)}) {{', *lines,
                          f"  {results} = {self.op}({operands}) <{said}>", "}", ""])

    def inputs(self):
        return {n: v.transpose(1, 0, 2) if self.layout else v for n, v in self.ints.items()}


def samples(arrays):
    return {n: v if v.shape[0] == 1 else v[None] for n, v in arrays.items()}


class RecurrentInteger(OracleCase):
    def run_layer(self, layer):
        """By result: how many steps the real numbers are away, not rounded, and the integers."""
        want = layer.expected()
        path = self.scratch / "m.qir"
        path.write_text(layer.text(want))
        got = qxc_outputs(path, samples(layer.inputs()), self.scratch)
        return want, {r: got[r].reshape(want[r].shape) for r in layer.results}

    def check(self, layer, slack):
        """Half a step of rounding and `slack` of computing: with less than half that is one step at most."""
        want, got = self.run_layer(layer)
        ort = layer.by_onnxruntime()
        for name in layer.results:
            grid = layer.grid[name]
            self.assertEqual(got[name].dtype, np.dtype(grid.elem))
            away = np.abs(got[name] - grid.steps(want[name])).max(initial=0)
            self.assertLessEqual(away, 0.5 + slack, f"{name} is {away} steps away")
            self.worst = max(getattr(self, "worst", 0), away - 0.5)
            near = np.abs(got[name].astype(np.int64) - np.rint(grid.steps(ort[name]))).max(initial=0)
            self.assertLessEqual(near, 1, name)

    @for_each(*GATES)
    def test_forms(self, op):
        rng = np.random.default_rng(len(op))
        choices = [{}, {"bias": None}, {"bias": "int32"}, {"rows": False}, {"state": True}, {"lens": [100, 37]},
                   {"lens": [0, 100], "state": True}, {"clip": 0.3}, {"layout": 1, "state": True, "lens": [3, 99]},
                   {"xzp": "low"}, {"xzp": "high"}, {"x": "uint8", "y": "uint8", "state": True},
                   {"x_range": 40.0, "spread": 2.0}, {"x": "int16"}, {"x": "uint16", "xzp": "high"},
                   {"results": ("Y",)}, {"results": ("Y_h", "Y_c")}, {"size": 70, "hidden": 40, "spread": 0.2}]
        if op == "LSTM":
            choices += [{"peepholes": True}, {"peepholes": True, "clip": 0.5, "state": True},
                        {"input_forget": 1}, {"activations": ["Tanh", "Sigmoid", "Sigmoid"]}]
        if op == "GRU":
            choices += [{"linear_before_reset": 1}, {"linear_before_reset": 1, "bias": None, "state": True},
                        {"linear_before_reset": 1, "clip": 0.5}, {"activations": ["Sigmoid", "Sigmoid"]}]
        if op == "RNN":
            choices += [{"activations": ["Sigmoid"]}]
        for direction, choice in itertools.product(("forward", "reverse", "bidirectional"), choices):
            choice = dict(choice)
            if "activations" in choice and direction == "bidirectional":
                choice["activations"] = choice["activations"] * 2
            if op == "RNN":
                choice["spread"] = choice.get("spread", 0.6) / 2  # others are chaotic
            with self.subTest(direction=direction, **choice):
                self.check(Layer(op, rng, direction, **choice), 0.02)
        talk(f"{op}: at most {self.worst:.4f} steps beyond rounding")

    @for_each(*GATES)
    def test_states_that_share_a_grid(self, op):
        """An initial_h on the grid of something larger, such as of initial_c: h has up to 5 bits less, and 8 bits of a
        result are a tenth of a step off by it."""
        rng = np.random.default_rng(20 + len(op))
        for h_range, steps in itertools.product((4.0, 12.0, 30.0), (1, 50)):
            with self.subTest(h_range=h_range, steps=steps):
                self.check(Layer(op, rng, steps=steps, state=True, h_range=h_range, spread=0.3), 0.1)
        talk(f"{op}: at most {self.worst:.4f} steps beyond rounding")

    @for_each(*GATES)
    def test_sixteen_bits(self, op):
        """Results of 16 bits, whose steps are 2^-15 and less of what they reach: 4 steps at most."""
        rng = np.random.default_rng(3)
        for number, choice in enumerate(({"x": "int16", "y": "int16", "state": True}, {"y": "uint16"})):
            with self.subTest(**choice):
                spread = 0.3 if op == "RNN" else 0.6
                layer = Layer(op, rng, "bidirectional", spread=spread, **choice)
                want, got = self.run_layer(layer)
                for name in layer.results:
                    away = np.abs(got[name] - layer.grid[name].steps(want[name])).max()
                    talk(f"{op} {number} {name}: {away:.2f} steps of 16 bits")
                    self.assertLessEqual(away, 4, name)

    @for_each(*GATES)
    def test_saturated(self, op):
        """Gates at their ends for hundreds of steps: the cell of an LSTM counts them."""
        layer = Layer(op, np.random.default_rng(4), steps=300, spread=4.0, xzp="low", x_range=60.0, bias=None)
        layer.consts["W"] = np.abs(layer.consts["W"])
        self.check(layer, 0.02)

    @for_each(*GATES)
    def test_few_bits(self, op):
        """Weights of 4 bits."""
        layer = Layer(op, np.random.default_rng(9), "bidirectional", spread=0.2)
        for name in "WR":
            layer.consts[name] = np.rint(layer.consts[name] / 127 * 7).astype(np.int8)
            layer.weight_scale[name] = layer.weight_scale[name] * np.float32(127 / 7)
        want = layer.expected()
        text = layer.text(want)
        path = self.scratch / "m.qir"
        path.write_text(text.replace("int8q<[", "int4q<["))
        got = qxc_outputs(path, samples(layer.inputs()), self.scratch)
        for name in layer.results:
            away = np.abs(got[name].reshape(want[name].shape) - layer.grid[name].steps(want[name])).max()
            self.assertLessEqual(away, 0.52, name)

    @for_each(*GATES)
    def test_empty(self, op):
        for choice in ({"batch": 0}, {"steps": 0}):
            layer = Layer(op, np.random.default_rng(7), **choice)
            _, got = self.run_layer(layer)
            self.assertEqual(got["Y"].size, 0)
            if "steps" in choice:
                self.assertTrue(np.all(got["Y_h"] == layer.grid["Y_h"].zp))

    @for_each(*GATES)
    def test_emitted_c(self, op):
        """Bit for bit what `qxc run` computes, in C without floating point; twice, as nothing may be left in the arena."""
        rng = np.random.default_rng(5)
        more = {"linear_before_reset": 1} if op == "GRU" else {"peepholes": True} if op == "LSTM" else {}
        for number, choice in enumerate(({"state": True, "lens": [100, 60], **more}, {"layout": 1, "x": "uint16"})):
            layer = Layer(op, rng, "bidirectional", **choice)
            path = self.scratch / f"{op}{number}.qir"
            path.write_text(layer.text(layer.expected()))
            want = qxc_outputs(path, samples(layer.inputs()), self.scratch)
            source = self.scratch / f"{op}{number}.c"
            qxc(path, "-emit=c", "-integer-only", "-no-sync", "-o", source)
            compiled = CModel(source, flags=("-O0", "-fsanitize=undefined", "-fno-sanitize-recover", "-Wextra"))
            for _ in range(2):
                compiled.arena[:] = 0xff
                got = compiled.run(*layer.inputs().values())
                for (name, _, _), values in zip(compiled.outputs, got):
                    np.testing.assert_array_equal(values, want[name].ravel(), name)


class RecurrentQdq(OracleCase):
    """A layer between DequantizeLinear and QuantizeLinear, as another tool may write it."""

    def model(self, layer, want, scale_of_state=None):
        nodes, consts, inputs, names = [], [], [], {}

        def parameters(name, grid):
            consts.append(numpy_helper.from_array(np.float32(grid.scale), name + "_s"))
            consts.append(numpy_helper.from_array(np.array(grid.zp, grid.elem), name + "_z"))
            return [name + "_s", name + "_z"]

        for name, v in layer.ints.items():
            kind = helper.np_dtype_to_tensor_dtype(v.dtype)
            inputs.append(helper.make_tensor_value_info(name, kind, v.shape))
            if name == "h0" and scale_of_state:
                layer.grid[name] = Grid(layer.y, scale_of_state)
            nodes.append(helper.make_node("DequantizeLinear", [name, *parameters(name, layer.grid[name])], [name + "_f"]))
            names[name] = name + "_f"
        for name in "WR":
            consts.append(numpy_helper.from_array(layer.consts[name], name))
            consts.append(numpy_helper.from_array(layer.weight_scale[name].ravel(), name + "_s"))
            nodes.append(helper.make_node("DequantizeLinear", [name, name + "_s"], [name + "_f"], axis=1))
            names[name] = name + "_f"
        consts.append(numpy_helper.from_array(layer.consts["B"], "B"))
        names["B"] = "B"
        order = ["X", "W", "R", "B", "lens", "h0", "c0"][:7 if layer.op == "LSTM" else 6]
        every = ["Y_f", "Y_h_f", "Y_c_f"][:3 if layer.op == "LSTM" else 2]  # those that nobody reads, too
        nodes.append(helper.make_node(layer.op, [names.get(n, "") for n in order], every, "layer",
                                      hidden_size=layer.dims[3], direction=layer.direction))
        outputs = []
        for name in layer.results:
            most = np.abs(want[name]).max()
            layer.grid[name] = Grid(layer.y, 1).over(-most, most)
            nodes.append(helper.make_node("QuantizeLinear", [name + "_f", *parameters(name, layer.grid[name])], [name]))
            outputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(layer.y)),
                                                         want[name].shape))
        graph = helper.make_graph(nodes, "g", inputs, outputs, consts)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    @for_each(*GATES)
    def test_runs_on_integers(self, op):
        """As onnxruntime has it to within a step; in ONNX again it is the file that it was."""
        rng = np.random.default_rng(21)
        for results in (("Y", "Y_h", "Y_c"), ("Y_h",)):
            with self.subTest(results=results):
                layer = Layer(op, rng, "bidirectional", spread=0.3, state=True, results=results)
                path, again = self.scratch / "m.onnx", self.scratch / "again.onnx"
                model = self.model(layer, layer.expected())
                onnx.save(model, path)
                text = qxc(path, "-emit=qir", "-form=true").stdout
                self.assertNotIn("QuantizeLinear(", text[text.index("graph @"):])
                qxc(path, "-emit=qdq", "-target=onnx", "-quiet", "-o", again)
                self.assertEqual([n.op_type for n in onnx.load(again).graph.node], [n.op_type for n in model.graph.node])
                got = qxc_outputs(path, samples(layer.inputs()), self.scratch)
                want = session(model).run(list(layer.results), layer.inputs())
                for name, values in zip(layer.results, want):
                    away = np.abs(got[name].reshape(values.shape).astype(int) - values.astype(int)).max()
                    self.assertLessEqual(away, 1, name)

    def test_stays_float(self):
        """A state that the integer kernels do not hold: as before."""
        layer = Layer("GRU", np.random.default_rng(22), spread=0.3, state=True)
        path = self.scratch / "m.onnx"
        model = self.model(layer, layer.expected(), scale_of_state=0.5)
        onnx.save(model, path)
        done = qxc(path, "-emit=qir", "-form=true")
        self.assertIn("DequantizeLinear(%h0)", done.stdout)
        got = qxc_outputs(path, samples(layer.inputs()), self.scratch)
        want = session(model).run(list(layer.results), layer.inputs())
        for name, values in zip(layer.results, want):
            np.testing.assert_allclose(got[name].reshape(values.shape), values, atol=1)
