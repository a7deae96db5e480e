#!/usr/bin/env python3
"""Operators on operands and results of six storage types, in every mix: nothing of them is float in emitted C, `qxc run`
and the C give the same bits, and the numbers are those of the definition: real numbers, rounded once.

One text for each operator has a node for each mix. Of steps that are powers of two and small integers, ties included,
float32 computes exactly, so that onnxruntime has to give the same bits; of others it is at most a step away, and the
rounded real number is met wherever it is no tie."""

import dataclasses
import itertools
import unittest
import zlib
from typing import Callable

import numpy as np
import onnx
from onnx import TensorProto as T, helper

from cmodel import CModel
from common import OracleCase, for_each, qxc, session
from test_integer_forms import attended, keys, resampled, sampled, triangle
from test_quantized_ops import conv, linear, transposed, windows

ELEMS = {"int4": (-8, 7, -1), "uint4": (0, 15, 7), "int8": (-128, 127, 3), "uint8": (0, 255, 129),
         "int16": (-32768, 32767, -333), "uint16": (0, 65535, 32001)}  # the least, the most, zero points
SMALL = np.arange(-7, 8)  # steps that all of them have
SHORT = {T.INT4: T.INT8, T.UINT4: T.UINT8}  # what numpy has instead
SPAN = 4.3  # of operands
FLOATS, CURVE = 0.01, 0.26  # Op.near of what rounds on the way; of lines within a quarter of a step, for 16 bits
SANITIZED = ("-O0", "-fsanitize=signed-integer-overflow,shift,integer-divide-by-zero,bounds", "-fno-sanitize-recover")
OWN = ("QLinearAdd", "QLinearAveragePool")  # onnxruntime's kernels that round with the zero point


@dataclasses.dataclass
class Op:
    """An operator on data, shapes of which are given; `out` is a step of exact results and the span of others."""

    operands: list
    real: Callable
    out: tuple = (1.0, 6.0)
    attrs: str = ""
    op: str = ""  # its name, where the key is another
    constant: bool = False  # the second operand
    before: str = ""  # operands around the data, as text
    between: str = ""
    behind: str = ""
    constants: str = ""
    near: float = 1e-4  # of a step: how far from a tie its results are certain
    exact: bool = True  # it computes no numbers that float32 cannot hold
    opset: int = 21


PLANES, IMAGE = [(2, 3)], [(1, 2, 4, 5)]
PAIR = [(2, 3), (2, 3)]
COND = np.array([[True, False, True], [False, False, True]])
INDEX = np.array([[0, 1, 0], [1, 0, 1]])
AXIS = {"constants": "const %axes : int64[1] = [1]", "behind": ", %axes"}


def scattered(x, updates):
    y = x.copy()
    np.put_along_axis(y, INDEX, updates, 0)
    return y


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normalized(x, axes, scale, centre=True):
    d = x - x.mean(axes, keepdims=True) * centre
    return d / np.sqrt((d * d).mean(axes, keepdims=True) + 1e-5) * scale


def rotated(x):
    c, s = np.array([[1, 0.5], [0, -0.25], [0.5, 2]]), np.array([[0, 0.75], [1, 0.25], [-0.5, 1]])
    a, b = x[..., :2], x[..., 2:4]
    return np.concatenate([c * a - s * b, s * a + c * b, x[..., 4:]], -1)


def sums(f):
    return lambda x: f(x).sum(1, keepdims=True)


VALUES = (np.array([7, -8, 0, 3, -1, 2]).reshape(1, 1, 3, 2) + 1) / 2  # of Attention
OPS = {
    "Add": Op(PAIR, np.add), "Sub": Op([(2, 3), (3,)], np.subtract), "Mul": Op([(2, 3), (2, 1)], np.multiply),
    "Div": Op(PAIR, np.divide, (1.0, 20.0)), "Sum": Op(PAIR, np.add), "Mean": Op(PAIR, lambda a, b: (a + b) / 2, (0.25, 4.0)),
    "Sum of constants": Op(PAIR, np.add, op="Sum", constant=True),
    "Max": Op(PAIR, np.maximum), "Min": Op(PAIR, np.minimum),
    "Max of one": Op(PLANES, lambda x: x, op="Max"),
    "Concat": Op(PAIR, lambda a, b: np.concatenate([a, b], 1), attrs="axis=1"),
    "Where": Op(PAIR, lambda a, b: np.where(COND, a, b), constants="const %cond : bool[2,3] = [1, 0, 1, 0, 0, 1]",
                before="%cond, "),
    "ScatterElements": Op(PAIR, scattered, constants="const %at : int64[2,3] = [0, 1, 0, 1, 0, 1]", between="%at, "),
    "ScatterND": Op([(2, 3), (1, 3)], lambda x, u: np.concatenate([x[:1], u]), constants="const %at : int64[1,1] = [1]", between="%at, "),
    "ScatterND of sums": Op([(2, 3), (2, 3)], lambda x, u: x + np.stack([0 * u[0], u.sum(0)]), op="ScatterND", attrs='reduction="add"',
                            constants="const %at : int64[2,1] = [1, 1]", between="%at, "),
    "ScatterND of products": Op([(2, 3), (2, 3)], lambda x, u: x * np.stack([1 + 0 * u[0], u.prod(0)]), (4.0, 30.0), op="ScatterND", attrs='reduction="mul"',
                                constants="const %at : int64[2,1] = [1, 1]", between="%at, "),
    "Resize, cubic": Op([(1, 1, 3, 1)], lambda x: resampled(x, (1, 1, 6, 1), keys), (0.5, 9.0), op="Resize", attrs='mode="cubic"',
                        constants="const %by : float[4] = [1.0, 1.0, 2.0, 1.0]", behind=", _, %by"),
    "MatMul": Op([(2, 5), (5, 3)], np.matmul, (4.0, 30.0)),
    "MatMul of constants": Op([(2, 5), (5, 3)], np.matmul, (4.0, 30.0), op="MatMul", constant=True),
    "Gemm": Op([(2, 5), (3, 5)], lambda a, b: a @ b.T, (4.0, 30.0), "transB=1", constant=True),
    "Conv": Op([(1, 2, 4, 5), (3, 2, 3, 3)], lambda x, w: conv(x, w, None, 1, 1), (4.0, 60.0), "pads=[1,1,1,1]", constant=True),
    "Conv of computed weights": Op([(1, 2, 4, 5), (3, 2, 3, 3)], lambda x, w: conv(x, w, None, 0, 1), (4.0, 60.0), op="Conv"),
    "Conv, depthwise": Op([(1, 2, 4, 5), (2, 1, 3, 3)], lambda x, w: conv(x, w, None, 0, 1, 2), (4.0, 40.0), "group=2", "Conv", True),
    "Conv, pointwise": Op([(1, 16, 2, 3), (16, 16, 1, 1)], lambda x, w: conv(x, w, None, 0, 1), (8.0, 60.0), op="Conv", constant=True),
    "ConvTranspose": Op([(1, 2, 3, 3), (2, 3, 2, 2)], lambda x, w: transposed(x, w, np.zeros(3), 1, 1), (4.0, 40.0), constant=True),
    "ConvTranspose of computed weights": Op([(1, 2, 3, 3), (2, 3, 2, 2)], lambda x, w: transposed(x, w, np.zeros(3), 1, 1), (4.0, 40.0),
                                            op="ConvTranspose"),
    "AveragePool": Op(IMAGE, lambda x: windows(x, 2, 1).mean((-1, -2)), (0.5, 4.0), "kernel_shape=[2,2]"),
    "AveragePool of volumes": Op([(1, 1, 2, 4, 4)], lambda x: x.reshape(1, 1, 1, 2, 2, 2, 2, 2).mean((3, 5, 7)), (0.5, 4.0),
                                 "kernel_shape=[2,2,2], strides=[2,2,2]", "AveragePool"),
    "GlobalAveragePool": Op([(1, 2, 4, 4)], lambda x: x.mean((2, 3), keepdims=True), (0.25, 3.0)),
    "ReduceMean": Op([(3, 4)], lambda x: x.mean(1, keepdims=True), (0.25, 4.0), **AXIS),
    "ReduceSum": Op([(3, 4)], sums(lambda x: x), (1.0, 12.0), **AXIS),
    "ReduceL1": Op([(3, 4)], sums(np.abs), (1.0, 16.0), **AXIS),
    "ReduceL2": Op([(3, 4)], lambda x: np.sqrt((x * x).sum(1, keepdims=True)), (1.0, 9.0), **AXIS),
    "ReduceSumSquare": Op([(3, 4)], sums(np.square), (1.0, 40.0), **AXIS),
    "ReduceProd": Op([(3, 4)], lambda x: x.prod(1, keepdims=True), (1.0, 12.0), **AXIS),
    # Of an odd number of int4, onnxruntime makes the last one 7 where it is NaN.
    "ReduceLogSum": Op([(4, 4)], lambda x: np.log(x.sum(1, keepdims=True)), (0.5, 5.0), near=FLOATS, exact=False, **AXIS),
    "ReduceLogSumExp": Op([(3, 4)], lambda x: np.log(np.exp(x).sum(1, keepdims=True)), (0.5, 5.0), near=FLOATS, exact=False, **AXIS),
    "LpPool": Op(IMAGE, lambda x: np.abs(windows(x, 2, 1)).sum((-1, -2)), (1.0, 16.0), "kernel_shape=[2,2], p=1"),
    "GlobalLpPool": Op([(2, 3, 4)], lambda x: np.sqrt((x * x).sum(2, keepdims=True)), (1.0, 9.0)),
    "LpPool of 3": Op(IMAGE, lambda x: (np.abs(windows(x, 2, 1)) ** 3).sum((-1, -2)) ** (1 / 3), (1.0, 6.0), "kernel_shape=[2,2], p=3", "LpPool", near=FLOATS,
                      exact=False),
    "Attention": Op([(1, 1, 2, 4), (1, 1, 3, 4)], lambda q, k: attended(q, k, VALUES), (0.25, 4.0), exact=False, opset=23, near=FLOATS,
                    constants="const %v : int4q<0.5, -1>[1,1,3,2] = [7, -8, 0, 3, -1, 2]", behind=", %v"),
    "GridSample": Op([(1, 2, 3, 4), (1, 3, 2, 2)], lambda x, g: sampled(x, g, triangle), (0.25, 4.0), 'mode="linear"', exact=False),
    "LpNormalization": Op([(3, 4)], lambda x: x / np.sqrt((x * x).sum(1, keepdims=True)), (0.25, 2.0)),
    "LRN": Op([(1, 3, 2, 2)], lambda x: x / (1 + np.float64(np.float32(1e-4)) * x * x) ** 0.75, (1.0, 2.0), "size=1", near=2.0**-8, exact=False),
    "Softmax": Op(PLANES, softmax, (0.125, 1.9), near=FLOATS, exact=False),
    "LogSoftmax": Op(PLANES, lambda x: np.log(softmax(x)), (0.5, 12.0), near=FLOATS, exact=False),
    "Hardmax": Op([(2, 30)], lambda x: (np.arange(30) == x.argmax(1)[:, None]) * 1.0, (0.5, 1.9)),
    "Relu": Op(PLANES, lambda x: np.maximum(x, 0)),
    "Clip": Op(PLANES, lambda x: np.clip(x, -0.5, 1.5), constants="const %lo : float[] = [-0.5]\n  const %hi : float[] = [1.5]",
               behind=", %lo, %hi"),
    "Requantize": Op(PLANES, lambda x: x, op="qxc::Requantize"),
    "LeakyRelu": Op(PLANES, lambda x: np.where(x < 0, 0.25 * x, x), attrs="alpha=0.25"),
    "PRelu": Op([(2, 2, 3)], lambda x: np.where(x < 0, np.array([0.25, -2.0])[:, None] * x, x),
                constants="const %slope : float[2,1] = [0.25, -2.0]", behind=", %slope"),
    "Pow": Op(PLANES, np.square, near=CURVE, constants="const %two : float[] = [2.0]", behind=", %two"),
    "Abs": Op(PLANES, np.abs), "Neg": Op(PLANES, np.negative),
    "Sigmoid": Op(PLANES, lambda x: 1 / (1 + np.exp(-x)), (0.125, 1.9), near=CURVE, exact=False),
    "Tanh": Op(PLANES, np.tanh, (0.25, 2.0), near=CURVE, exact=False),
    "Exp": Op(PLANES, np.exp, (1.0, 30.0), near=CURVE, exact=False),
    "HardSwish": Op(PLANES, lambda x: x * np.clip(x / 6 + 0.5, 0, 1), near=CURVE, exact=False),
    "LayerNormalization": Op([(3, 6)], lambda x: normalized(x, 1, np.arange(1, 7) / 4), (0.5, 9.0), near=FLOATS, exact=False,
                             constants="const %g : float[6] = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5]", behind=", %g"),
    "RMSNormalization": Op([(3, 6)], lambda x: normalized(x, 1, np.arange(1, 7) / 4, False), (0.5, 9.0), near=FLOATS, exact=False, opset=23,
                           constants="const %g : float[6] = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5]", behind=", %g"),
    "InstanceNormalization": Op([(1, 2, 9)], lambda x: normalized(x, 2, np.array([[0.5], [1.5]])), (0.5, 9.0), near=FLOATS, exact=False,
                                constants="const %g : float[2] = [0.5, 1.5]\n  const %b : float[2] = [0.0, 0.0]", behind=", %g, %b"),
    "GroupNormalization": Op([(1, 4, 5)], lambda x: normalized(x.reshape(2, 10), 1, 1).reshape(1, 4, 5), (0.5, 9.0), "num_groups=2",
                             near=FLOATS, exact=False, constants="const %g : float[4] = splat(1.0)\n  const %b : float[4] = splat(0.0)",
                             behind=", %g, %b"),
    "RotaryEmbedding": Op([(1, 1, 3, 5)], rotated, opset=23, attrs="rotary_embedding_dim=4",
                          constants="const %c : float[1,3,2] = [1.0, 0.5, 0.0, -0.25, 0.5, 2.0]\n"
                          "  const %s : float[1,3,2] = [0.0, 0.75, 1.0, 0.25, -0.5, 1.0]", behind=", %c, %s"),
    "Resize": Op([(1, 1, 3, 4)], lambda x: linear(linear(x, 2, 6), 3, 8), attrs='mode="linear"',
                 constants="const %by : float[4] = [1.0, 1.0, 2.0, 2.0]", behind=", _, %by"),
    "Resize of volumes": Op([(1, 1, 2, 3, 2)], lambda x: linear(linear(linear(x, 2, 4), 3, 6), 4, 4), op="Resize", attrs='mode="linear"',
                            constants="const %by : float[5] = [1.0, 1.0, 2.0, 2.0, 2.0]", behind=", _, %by"),
}

# Functions of one number, all by the same tables: their numbers are held by test_quantized_ops.py and test_curves16.py.
CURVES = """Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Floor Gelu HardSigmoid Log Mish Reciprocal Round Selu Shrink Sign Sin
            Sinh Softplus Softsign Sqrt Swish Tan ThresholdedRelu com.microsoft::Gelu com.microsoft::QuickGelu""".split()
# What takes integers in other ways: weights of a recurrent layer are signed and of at most 8 bits (test_recurrent_integer.py),
# the others only move what they read once it has the grid of the result, as ScatterElements (test_integer_forms.py).
ELSEWHERE = {"GRU", "LSTM", "RNN", "OneHot", "Scatter", "TensorScatter",
             "SimplifiedLayerNormalization"}  # RMSNormalization by another name


class Matrix:
    """The nodes of one operator: a text, and what goes in."""

    def __init__(self, name, exact):
        self.op, self.exact = OPS[name], exact
        self.rng = np.random.default_rng(zlib.crc32(f"{name} {exact}".encode()))
        self.mixes = list(itertools.product(ELEMS, repeat=len(self.op.operands) + 1))
        self.feeds, self.reals, self.inputs, self.constants = {}, {}, [], []
        lines = ["qir 1", f'import "" {self.op.opset}']
        for e in ELEMS:
            lines += [f"quant !{k}{e} = {e}q<{float(self.scale(k, e))!r}, {self.zero(k, e)}>"
                      for k in "aby"]
        for i, shape in enumerate(self.op.operands):
            for e in ELEMS:
                self.add("ab"[i], e, shape, i == 1 and self.op.constant)
        nodes, shape = [], None
        for k, (*ins, y) in enumerate(self.mixes):
            shape = self.real(k).shape
            data = [f"%{'ab'[i]}{e}" for i, e in enumerate(ins)]
            args = self.op.before + (", " + self.op.between).join(data) + self.op.behind
            attrs = f" <{self.op.attrs}>" if self.op.attrs else ""
            dims = ",".join(map(str, shape))
            nodes.append(f"  %y{k} : !y{y}[{dims}] = {self.op.op.split(' ')[0] or name}({args}){attrs}")
        outs = ", ".join(f"%y{k}" for k in range(len(self.mixes)))
        lines.append(f"graph @g ({', '.join(self.inputs)}) -> ({outs}) {{")
        self.text = "\n".join(lines + ["  " + c for c in [self.op.constants, *self.constants] if c] + nodes + ["}"]) + "\n"

    def scale(self, kind, e):
        lo, hi, _ = ELEMS[e]
        step, span = (0.5 if kind == "a" else 0.25, SPAN) if kind in "ab" else self.op.out
        return np.float32(step if self.exact else span * (1.07 if kind == "b" else 1) / (hi - lo))

    @staticmethod
    def zero(kind, e):
        return ELEMS[e][2] - (kind == "y" and e != "int4") * 4  # odd, too

    def add(self, kind, e, shape, constant):
        lo, hi, zp = ELEMS[e]
        v = zp + self.rng.choice(SMALL, shape) if self.exact else self.rng.integers(lo, hi + 1, shape)
        v.reshape(-1)[0] = zp  # of Div, 0 by 0
        name, dims = f"{kind}{e}", ",".join(map(str, shape))
        if constant:
            self.constants.append(f"const %{name} : !{name}[{dims}] = [{', '.join(map(str, v.reshape(-1)))}]")
        else:
            self.inputs.append(f"%{name} : !{name}[{dims}]")
            self.feeds[name] = v.astype(e if e[-1] != "4" else e.replace("4", "8"))
        self.reals[name] = (v - zp) * np.float64(self.scale(kind, e))

    def real(self, k):
        with np.errstate(all="ignore"):
            return self.op.real(*[self.reals[f"{'ab'[i]}{e}"] for i, e in enumerate(self.mixes[k][:-1])])

    def steps(self, k):
        """The rounded real numbers of a node, and which are far from ties; QuantizeLinear makes the least of NaN."""
        e = self.mixes[k][-1]
        lo, hi, _ = ELEMS[e]
        at = self.real(k) / np.float64(self.scale("y", e))
        near = 2 if self.exact else max(self.op.near, 2.0 ** -22 * (hi - lo))  # onnxruntime is enough of a judge
        with np.errstate(invalid="ignore"):
            clear = ~np.isfinite(at) | (np.abs(np.abs(at - np.floor(at)) - 0.5) >= near)
        return np.where(np.isnan(at), lo, np.clip(np.rint(at) + self.zero("y", e), lo, hi)), clear


def unpacked(model):
    """Inputs and outputs of 4 bits as bytes, which numpy has."""
    before, behind = [], []
    for values, casts, first in (model.graph.input, before, True), (model.graph.output, behind, False):
        for value in values:
            elem = value.type.tensor_type.elem_type
            if elem not in SHORT:
                continue
            name = value.name
            for node in model.graph.node:
                ports = node.input if first else node.output
                ports[:] = [f"{p}_4" if p == name else p for p in ports]
            ends = (name, f"{name}_4") if first else (f"{name}_4", name)
            casts.append(helper.make_node("Cast", [ends[0]], [ends[1]], to=elem if first else SHORT[elem]))
            value.type.tensor_type.elem_type = SHORT[elem]
    nodes = before + list(model.graph.node) + behind
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def curve_text(curves, opset):
    """A graph with each of these functions from each type to each."""
    types = [f"quant !{kind}{e} = {e}q<{step}, {zp}>" for e, (_, _, zp) in ELEMS.items() for kind, step in (("x", 0.01), ("y", 0.02))]
    inputs = ", ".join(f"%{e} : !x{e}[2]" for e in ELEMS)
    cells = [f"!y{y}[2] = {op}(%{x})" for op in curves for x in ELEMS for y in ELEMS]
    outputs = ", ".join(f"%y{i}" for i in range(len(cells)))
    return "\n".join(["qir 1", f'import "" {opset}', 'import "com.microsoft" 1', *types, f"graph @g ({inputs}) -> ({outputs}) {{",
                      *(f"  %y{i} : {cell}" for i, cell in enumerate(cells)), "}", ""])


def packed(v):
    """Two numbers of 4 bits a byte, as emitted C takes them."""
    low = np.append(v.reshape(-1), np.zeros(v.size % 2, v.dtype)).view(np.uint8) & 15
    return low[::2] | low[1::2] << 4


class MixedStorage(OracleCase):
    expected_seconds = 40

    def results(self, m, text):
        """What `qxc run` gives, as emitted C does, what onnxruntime does, and which of that may be a step away."""
        x, out, source = self.scratch / "x.npz", self.scratch / "y.npz", self.scratch / "m.c"
        np.savez(x, **{k: v[None] for k, v in m.feeds.items()})
        qxc("run", text, f"-input={x}", "-o", out)
        have = {k: v[0] for k, v in np.load(out).items()}
        done = qxc(text, "-emit=c", "-integer-only", "-name=m", "-o", source)
        self.assertIn("no floating point", done.stderr)
        model = CModel(source, flags=("-O0",) if m.exact else SANITIZED)
        ends = {**m.feeds, **have}
        short = {*(k for k in m.feeds if k[-1] == "4"), *(f"y{k}" for k, mix in enumerate(m.mixes) if mix[-1][-1] == "4")}
        ends = {k: packed(v) if k in short else v.reshape(-1) for k, v in ends.items()}
        for (name, _, _), result in zip(model.outputs, model.run(*[ends[i] for i, _, _ in model.inputs]), strict=True):
            np.testing.assert_array_equal(result, ends[name], err_msg=f"emitted C, {name}")
        form = self.scratch / "m.onnx"
        qxc(text, "-emit=qop", "-quiet", "-o", form)
        written = unpacked(onnx.load(form))
        own = {n.output[0] for n in written.graph.node if n.op_type in OWN}
        runner = session(written)
        names = [o.name for o in runner.get_outputs()]
        return have, dict(zip(names, runner.run(names, {i.name: m.feeds[i.name] for i in runner.get_inputs()}))), own

    def check(self, name, exact):
        m, text = Matrix(name, exact), self.scratch / "m.qir"
        text.write_text(m.text)
        have, ort, own = self.results(m, text)
        for k, mix in enumerate(m.mixes):
            with self.subTest(mix=mix):
                y, w = have[f"y{k}"].astype(np.int64), ort[f"y{k}"].astype(np.int64)
                steps, clear = m.steps(k)
                np.testing.assert_array_equal(y[clear], steps[clear], "the rounded real numbers")
                self.assertLessEqual(np.abs(y - w).max(), 0 if exact and f"y{k}" not in own else 1, "onnxruntime")

    def test_curves(self):
        """Each in 36 mixes: no floating point."""
        for opset, curves in (21, CURVES[:-3]), (24, CURVES[-3:]):
            text = self.scratch / "curves.qir"
            text.write_text(curve_text(curves, opset))
            done = qxc(text, "-emit=c", "-integer-only", "-o", self.scratch / "curves.c")
            self.assertIn("no floating point", done.stderr)

    def test_every_operator(self):
        """None with an integer form is left out."""
        rows = [line.split() for line in qxc("list", "ops").stdout.splitlines()[1:]]
        have = {row[0] for row in rows if row[1] in ("kernel", "function") and row[2:] and row[2] in ("computes", "accumulates", "joins", "clamps")}
        held = {(op.op or name).split(" of ")[0].split(",")[0] for name, op in OPS.items()}
        self.assertEqual(have - held, set(CURVES) | ELSEWHERE)

    @for_each(*OPS)
    def test_real(self, name):
        self.check(name, False)

    @for_each(*[name for name in OPS if OPS[name].exact])
    def test_exact(self, name):
        self.check(name, True)


if __name__ == "__main__":
    unittest.main()
