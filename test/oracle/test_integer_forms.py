"""Operators on integers against onnxruntime, which computes them in float between DequantizeLinear and QuantizeLinear,
its optimizations off: what moves integers gives the same, what computes is at most a step away, and is the rounded real
number wherever that is no tie. `qxc run`, emitted C of -integer-only, and what is written back as ONNX agree bit for
bit."""

import dataclasses
import unittest
import zlib
from typing import Callable

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

from cmodel import CModel
from common import OracleCase, for_each, qxc, session

ELEMS = {"int8": T.INT8, "uint8": T.UINT8, "int16": T.INT16, "uint16": T.UINT16}
NEAR_TIE = 1e-4  # of a step


@dataclasses.dataclass
class Grid:
    """Of a storage type: steps of `scale` for 8 bits (256 times as many for 16), 0 at `zp` of its range."""

    scale: float
    zp: float = 0.5

    def of(self, elem):
        info = np.iinfo(elem)
        steps = int(info.max) - int(info.min)
        return np.float32(self.scale * 256 / (steps + 1)), int(info.min + round(self.zp * steps))


@dataclasses.dataclass
class Case:
    op: str
    operands: list  # (Grid, shape), a constant of other types, or None
    result: Grid = None  # of the first operand where it only moves
    real: Callable = None  # of the operands; None: it moves them
    attrs: dict = dataclasses.field(default_factory=dict)
    constant: tuple = ()  # which quantized operands are constants
    elems: tuple = ("int8", "uint8", "int16", "uint16")
    outputs: int = 1  # behind the first one they are integers as they are
    qop: bool = False  # onnxruntime has it on the integers themselves
    opset: int = 21
    near: float = NEAR_TIE  # of a step
    more: tuple = ()  # further results, (Grid, real)
    edges: tuple = ()  # for each operand, in steps from 0: what its first elements are


def indices(*shape):
    return np.random.default_rng(5).integers(-2, 2, shape)


WAYS = np.random.default_rng(6).permuted(np.tile(np.arange(-4, 4), (5, 1)), axis=1)[:, :4]
X = Grid(0.02, 0.47)
MOVERS = {
    "GatherElements": Case("GatherElements", [(X, (3, 4, 5)), indices(2, 4, 3)], attrs={"axis": 1}, qop=True),
    "GatherND": Case("GatherND", [(X, (3, 4, 5)), indices(3, 2, 2)], attrs={"batch_dims": 1}, qop=True),
    "GatherND of slices": Case("GatherND", [(X, (3, 4, 5)), indices(6, 1)], qop=True),
    "ReverseSequence": Case("ReverseSequence", [(X, (4, 3, 2)), np.array([4, 1, 0])], qop=True),
    "ReverseSequence of batches": Case("ReverseSequence", [(X, (3, 4, 2)), np.array([2, 4, 3])], qop=True,
                                       attrs={"batch_axis": 0, "time_axis": 1}),
    "TopK": Case("TopK", [(X, (3, 40)), np.array([7])], outputs=2, elems=("int8", "uint8", "int16"), qop=True),
    "TopK smallest": Case("TopK", [(X, (3, 40, 2)), np.array([40])], outputs=2, elems=("int8", "int16"),
                          attrs={"axis": 1, "largest": 0}, qop=True),
    "ScatterElements": Case("ScatterElements", [(X, (5, 8)), WAYS, (X, (5, 4))], attrs={"axis": 1}, qop=True),
    "ScatterElements, constant": Case("ScatterElements", [(X, (5, 8)), WAYS, (X, (5, 4))], constant=(2,), attrs={"axis": 1},
                                      qop=True),
    "ScatterElements, the larger": Case("ScatterElements", [(X, (3, 4, 5)), indices(3, 2, 3), (X, (3, 2, 3))], qop=True,
                                        attrs={"axis": 1, "reduction": "max"}),
    "ScatterND": Case("ScatterND", [(X, (6, 4, 5)), np.array([[-1], [3], [0]]), (X, (3, 4, 5))], qop=True),
    "ScatterND, the smaller": Case("ScatterND", [(X, (6, 4)), indices(7, 2), (X, (7,))], attrs={"reduction": "min"}, qop=True),
    "TensorScatter": Case("TensorScatter", [(X, (2, 3, 6, 2)), (X, (2, 3, 2, 2)), np.array([4, 1])], opset=24, qop=True),
    "TensorScatter, circular": Case("TensorScatter", [(X, (2, 6, 2)), (X, (2, 3, 2)), np.array([5, 1])], opset=24, qop=True,
                                    attrs={"mode": "circular"}),
    "OneHot": Case("OneHot", [np.array([[0, 2], [-1, 9]]), np.array(4), (X, (2,))], constant=(2,), attrs={"axis": 1}),
}
# Operands on grids of their own are brought to that of the result first.
JOINED = {
    "ScatterElements of two grids": Case(
        "ScatterElements", [(X, (5, 8)), WAYS, (Grid(0.031), (5, 4))], Grid(0.0261, 0.53),
        lambda x, u: scattered(x, WAYS, u), {"axis": 1}),
    "ScatterND of two grids": Case(
        "ScatterND", [(X, (6, 4)), np.array([[-1], [3]]), (Grid(0.013, 0.2), (2, 4))], Grid(0.0261, 0.53),
        lambda x, u: np.concatenate([x[:3], u[1:], x[4:5], u[:1]])),
    "ScatterElements, sums": Case(
        "ScatterElements", [(X, (5, 8)), WAYS, (Grid(0.031), (5, 4))], Grid(0.0361, 0.53),
        lambda x, u: added(x, (np.arange(5)[:, None], WAYS), u), {"axis": 1, "reduction": "add"}),
    "ScatterElements, sums that meet": Case(
        "ScatterElements", [(X, (7, 3)), np.array([[1, 1, 1], [1, 0, -6], [1, 1, 1]]), (Grid(0.013, 0.1), (3, 3))], Grid(0.0361, 0.3),
        lambda x, u: added(x, (np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]]), np.arange(3)[None]), u), {"reduction": "add"}),
    "ScatterND, sums": Case(
        "ScatterND", [(X, (6, 4)), np.array([[-1], [3], [3]]), (Grid(0.013, 0.2), (3, 4))], Grid(0.0361, 0.53),
        lambda x, u: added(x, np.array([5, 3, 3]), u), {"reduction": "add"}),
    "ScatterND, sums on one grid": Case(
        "ScatterND", [(X, (6, 4)), np.array([[-1, 0], [3, 3], [3, 3]]), (X, (3,))], X,
        lambda x, u: added(x, (np.array([5, 3, 3]), np.array([0, 3, 3])), u), {"reduction": "add"}),
    "ScatterND, ties": Case(
        "ScatterND", [(Grid(0.5), (6,)), np.array([[0], [1], [2], [3], [3]]), (Grid(0.5), (5,))], Grid(1.0),
        lambda x, u: added(x, np.array([0, 1, 2, 3, 3]), u), {"reduction": "add"}, edges=([1, 3, -5, 0, 7, 9], [0, 2, 0, 1, 2])),
    "ScatterElements, products": Case(
        "ScatterElements", [(X, (5, 8)), WAYS, (Grid(0.031), (5, 4))], Grid(0.0361, 0.53),
        lambda x, u: added(x, (np.arange(5)[:, None], WAYS), u, np.multiply), {"axis": 1, "reduction": "mul"}),
    "ScatterND, products that meet": Case(
        "ScatterND", [(X, (6, 4)), np.array([[-1], [3], [3], [3], [0]]), (Grid(0.013, 0.2), (5, 4))], Grid(0.0361, 0.53),
        lambda x, u: added(x, np.array([5, 3, 3, 3, 0]), u, np.multiply), {"reduction": "mul"}),
    "ScatterND, products of many": Case(
        "ScatterND", [(X, (9,)), np.repeat(np.arange(9), 64)[:515, None], (Grid(0.0079, 0), (515,))], Grid(1e-9),
        lambda x, u: added(x, np.repeat(np.arange(9), 64)[:515], u, np.multiply), {"reduction": "mul"}, edges=([50, 60, 70, 80, -90, 99, -99],)),
    "ScatterND, ties of products": Case(
        "ScatterND", [(Grid(0.5), (6,)), np.array([[0], [1], [2], [3], [3]]), (Grid(0.5), (5,))], Grid(1.0),
        lambda x, u: added(x, np.array([0, 1, 2, 3, 3]), u, np.multiply), {"reduction": "mul"}, edges=([1, 3, -5, 7, 7, 9], [1, 2, 3, 1, 2])),
    "OneHot of another grid": Case("OneHot", [np.array([[0, 2], [-1, 9]]), np.array(4), (X, (2,))], Grid(0.031), constant=(2,),
                                   real=lambda v: np.where(np.array([[0, 2], [3, 9]])[..., None] == np.arange(4), v[1], v[0])),
    "Hardmax": Case("Hardmax", [(X, (4, 30))], Grid(1 / 50), lambda x: (np.arange(30) == x.argmax(1)[:, None]) * 1.0,
                    edges=([100, 100, 3],)),
    "Hardmax between": Case("Hardmax", [(X, (2, 7, 5))], Grid(1.0),
                            lambda x: (np.arange(7)[:, None] == x.argmax(1)[:, None, :]) * 1.0, {"axis": 1}),
}


def added(x, index, updates, how=np.add):
    y = x.copy()
    how.at(y, index, updates)
    return y


def scattered(x, index, updates):
    y = x.copy()
    np.put_along_axis(y, index, updates, 1)
    return y


def powers(x, e):
    """Exponents are floats, as the operands of onnxruntime's."""
    return np.power(x, np.float64(np.float32(np.round(e * 10) / 10)))


DIVISOR = Grid(0.016, 0.4)
# What is divided by and into 0, one by one: -1, 0 and 1 by 0, ties, both signs.
ENDS = [-1, 0, 1, 3, -3, 5, 7, -9]
ARITHMETIC = {
    "Div": Case("Div", [(X, (2, 3, 40)), (DIVISOR, (2, 3, 40))], Grid(0.05), np.divide),
    "Div, ties": Case("Div", [(Grid(0.5), (2, 8)), (Grid(0.25), (2, 1))], Grid(1.0), np.divide,
                      edges=([*ENDS, *ENDS], [0, 4])),
    "Div of quarters": Case("Div", [(Grid(0.5), (8,)), (Grid(0.25), (8,))], Grid(0.5), np.divide,
                            edges=(ENDS[::-1], [4, 8, 16, -4, -8, -16, 32, 64])),
    "Div, broadcast": Case("Div", [(X, (3, 1, 40)), (DIVISOR, (5, 1))], Grid(0.03, 0.3), np.divide),
    "Div by a constant": Case("Div", [(X, (4, 40)), (DIVISOR, (40,))], Grid(0.02, 0.4), np.divide, constant=(1,)),
    "Div of a constant": Case("Div", [(X, ()), (Grid(0.01, 0), (4, 40))], Grid(0.03, 0.6), np.divide, constant=(0,)),
    "Div to coarse steps": Case("Div", [(X, (4, 40)), (Grid(2.0), (4, 40))], Grid(0.001), np.divide),
    "Sum of three": Case("Sum", [(X, (2, 3, 20)), (Grid(0.031), (3, 20)), (Grid(0.011, 0), (2, 1, 20))], Grid(0.05, 0.4),
                         lambda a, b, c: a + b + c),
    "Sum of five": Case("Sum", [(Grid(0.01 * k, k / 6), (7, 30)) for k in range(1, 6)], Grid(0.11), lambda *a: sum(a), constant=(2,)),
    "Mean of two": Case("Mean", [(X, (2, 3, 20)), (Grid(0.031), (3, 20))], Grid(0.03), lambda a, b: (a + b) / 2),
    "Mean of three": Case("Mean", [(X, (4, 20)), (X, ()), (Grid(0.013), (4, 1))], Grid(0.02), lambda a, b, c: (a + b + c) / 3),
    "Pow": Case("Pow", [(Grid(0.02, 0), (3, 1, 40)), (X, (5, 1))], Grid(0.3, 0), np.power, elems=("int8", "uint8"), edges=([0, 1],)),
    "Pow of wide integers": Case("Pow", [(Grid(0.02, 0), (3, 1, 40)), (X, (5, 1))], Grid(0.3, 0), np.power, elems=("int16", "uint16"), near=0.02),
    "Pow of negative numbers": Case("Pow", [(X, (40, 1)), (Grid(0.5), (13,))], Grid(0.1), powers, elems=("int8", "uint8"),
                                    edges=([0, 1, -1, 50, -50, -70], [0, 1, 2, 3, 4, 6, -1, -2, -3, -4, 10])),
    "Pow of tenths": Case("Pow", [(X, (40,)), (Grid(0.1), (40,))], Grid(0.1), powers, elems=("int8",),
                          edges=([-50] * 10, [10, 20, 30, -10, -20, 11, 5, 0, 40, 50])),
    "Mean, ties": Case("Mean", [(Grid(0.5), (60,)), (Grid(0.5), (60,))], Grid(0.5), lambda a, b: (a + b) / 2),
}


def norms(x):
    return np.sqrt((x * x).sum(1, keepdims=True))


def volumes(x, kernel, stride, pads=0, count_pads=True, dilation=1):
    """Averages over cubes."""
    def windows(v):
        v = np.pad(v, [(0, 0), (0, 0)] + [(pads, pads)] * 3)
        v = np.lib.stride_tricks.sliding_window_view(v, [(kernel - 1) * dilation + 1] * 3, axis=(2, 3, 4))
        return v[:, :, ::stride, ::stride, ::stride, ::dilation, ::dilation, ::dilation].sum(axis=(-1, -2, -3))
    return windows(x) / (kernel ** 3 if count_pads else windows(np.ones_like(x)))


STEP = Grid(0.5)
NORMS = {
    "ReduceL1": Case("ReduceL1", [(X, (3, 20, 5)), np.array([1])], Grid(0.13, 0), lambda x: np.abs(x).sum(1, keepdims=True)),
    "ReduceL1 of all": Case("ReduceL1", [(X, (3, 20, 5))], Grid(2.0, 0.1), lambda x: np.abs(x).sum(), {"keepdims": 0}),
    "ReduceL1, ties": Case("ReduceL1", [(STEP, (40, 3)), np.array([1])], Grid(1.0), lambda x: np.abs(x).sum(1, keepdims=True),
                           edges=([1, 2, 4, 1, -3, 1],)),
    "ReduceL2": Case("ReduceL2", [(X, (30, 20, 5)), np.array([1])], Grid(0.05, 0), lambda x: np.sqrt((x * x).sum(1, keepdims=True))),
    "ReduceL2, ties": Case("ReduceL2", [(STEP, (40, 2)), np.array([1])], Grid(1.0), norms,
                           edges=([3, 4, -5, 12, 8, -15, 0, 0, 0, 1, 0, 3, 0, -5, 9, 12],)),
    "ReduceL2 to coarse steps": Case("ReduceL2", [(X, (30, 2)), np.array([1])], Grid(30.0), norms, edges=([1, 1],), elems=("int16", "uint16")),
    "ReduceSumSquare": Case("ReduceSumSquare", [(X, (30, 20, 5)), np.array([1])], Grid(0.9, 0.1),
                            lambda x: (x * x).sum(1, keepdims=True)),
    "ReduceSumSquare, ties": Case("ReduceSumSquare", [(STEP, (40, 2)), np.array([1])], Grid(4.0),
                                  lambda x: (x * x).sum(1, keepdims=True), edges=([1, 0, 2, 2, 2, 4, 3, 5, 0, 4, -2, -2],)),
    "ReduceProd": Case("ReduceProd", [(X, (40, 3, 5)), np.array([1])], Grid(0.03), lambda x: x.prod(1, keepdims=True)),
    "ReduceProd of all": Case("ReduceProd", [(Grid(0.008, 0), (30,))], Grid(2e-4, 0.1), np.prod, {"keepdims": 0}),
    "ReduceProd of many": Case("ReduceProd", [(Grid(0.0079, 0), (9, 64)), np.array([1])], Grid(1e-22), lambda x: x.prod(1), {"keepdims": 0}),
    "ReduceProd, ties": Case("ReduceProd", [(STEP, (40, 2)), np.array([1])], STEP, lambda x: x.prod(1, keepdims=True),
                             edges=([1, 1, -1, 1, 3, 1, -5, 1, 0, 7, 3, 3, -3, 5],)),
    "ReduceLogSum": Case("ReduceLogSum", [(Grid(0.02, 0.1), (30, 20, 5)), np.array([1])], Grid(0.02, 0.1), lambda x: np.log(x.sum(1, keepdims=True))),
    "ReduceLogSum of few": Case("ReduceLogSum", [(X, (50, 2)), np.array([1])], Grid(0.03, 0.8), lambda x: np.log(x.sum(1, keepdims=True)),
                                edges=([1, -1, 1, 0, -1, 0, 1, 1],)),
    "ReduceLogSumExp": Case("ReduceLogSumExp", [(X, (30, 20, 5)), np.array([1])], Grid(0.03),
                            lambda x: np.log(np.exp(x).sum(1, keepdims=True))),
    "ReduceLogSumExp of all": Case("ReduceLogSumExp", [(Grid(0.3), (3, 20, 5))], Grid(0.4), lambda x: np.log(np.exp(x).sum()), {"keepdims": 0}),
    "GlobalLpPool": Case("GlobalLpPool", [(X, (30, 20, 5))], Grid(0.05, 0), lambda x: np.sqrt((x * x).sum(2, keepdims=True))),
    "GlobalLpPool of 3": Case("GlobalLpPool", [(X, (30, 20, 5))], Grid(0.03, 0), lambda x: (np.abs(x) ** 3).sum(2, keepdims=True) ** (1 / 3), {"p": 3}),
    "LpPool of 5": Case("LpPool", [(X, (4, 5, 6))], Grid(0.02, 0.1), lambda x: (np.abs(x).reshape(4, 5, 2, 3) ** 5).sum(3) ** (1 / 5),
                        {"kernel_shape": [3], "strides": [3], "p": 5}, edges=([0, 0, 0, 0, 7, 0],)),
    "LpPool, ties": Case("LpPool", [(STEP, (4, 5, 6))], Grid(1.0), lambda x: np.abs(x).reshape(4, 5, 2, 3).sum(3),
                         {"kernel_shape": [3], "strides": [3], "p": 1}, edges=([1, 2, 4, 1, -3, 1],)),
    "LpNormalization": Case("LpNormalization", [(X, (30, 20, 5))], Grid(1 / 128), lambda x: x / norms(x), {"axis": 1}),
    "LpNormalization of 1": Case("LpNormalization", [(X, (8, 30))], Grid(1 / 300), lambda x: x / np.abs(x).sum(1, keepdims=True), {"p": 1}),
    "LpNormalization, ties": Case("LpNormalization", [(STEP, (20, 2))], Grid(0.2), lambda x: np.nan_to_num(x / norms(x)),
                                  {"axis": 1}, edges=([3, 4, -5, 12, 0, 0, 0, 7, -1, 0],), elems=("int8", "uint8")),
    "AveragePool of volumes": Case("AveragePool", [(X, (1, 3, 7, 6, 8))], Grid(0.015), lambda x: volumes(x, 3, 2),
                                   {"kernel_shape": [3] * 3, "strides": [2] * 3}),
    "AveragePool of volumes, padded": Case("AveragePool", [(X, (2, 2, 5, 6, 4))], Grid(0.01), lambda x: volumes(x, 3, 1, 1, False),
                                           {"kernel_shape": [3] * 3, "pads": [1] * 6}),
    "AveragePool of volumes, with pads": Case("AveragePool", [(X, (1, 2, 5, 6, 4))], Grid(0.0113), lambda x: volumes(x, 2, 1, 1, True, 2),
                                              {"kernel_shape": [2] * 3, "pads": [1] * 6, "dilations": [2] * 3, "count_include_pad": 1}),
    "AveragePool of volumes, ties": Case("AveragePool", [(STEP, (1, 1, 4, 4, 4))], STEP, lambda x: volumes(x, 2, 2),
                                         {"kernel_shape": [2] * 3, "strides": [2] * 3}),
}


# Angles of six steps, rows of the tables for four pairs.
ANGLES = np.arange(6)[:, None] / 7 ** (np.arange(4) / 4) * 0.8
COSINES, SINES = np.cos(ANGLES).astype(np.float32), np.sin(ANGLES).astype(np.float32)


def turned(x, rows, interleaved=False):
    """Steps of x[..., steps, size] by the angles of these rows."""
    c, s = COSINES[rows].astype(np.float64), SINES[rows].astype(np.float64)
    pairs, rest = x[..., :8], x[..., 8:]
    a, b = (pairs[..., ::2], pairs[..., 1::2]) if interleaved else (pairs[..., :4], pairs[..., 4:])
    both = c * a - s * b, s * a + c * b
    both = np.stack(both, -1).reshape(pairs.shape) if interleaved else np.concatenate(both, -1)
    return np.concatenate([both, rest], -1)


def triangle(d):
    return np.maximum(0, 1 - np.abs(d))


def keys(d, a=-0.75):
    """Keys' cubic convolution."""
    d = np.abs(d)
    return np.where(d <= 1, ((a + 2) * d - (a + 3)) * d * d + 1, np.where(d < 2, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a, 0))


def resampled(x, sizes, f, antialias=False, outside=True):
    """Pixels are areas; those beyond the edges are the ones there, or nothing."""
    for axis, size in enumerate(sizes):
        n = x.shape[axis]
        if n == size:
            continue
        squeeze = min(1, size / n) if antialias else 1
        at = (np.arange(size)[:, None] + 0.5) * n / size - 0.5
        taps = np.arange(-64, n + 64)
        w = f((taps - at) * squeeze) * (outside | ((taps >= 0) & (taps < n)))
        w /= w.sum(1, keepdims=True)
        x = np.moveaxis(np.tensordot(w, np.take(x, np.clip(taps, 0, n - 1), axis), (1, axis)), 0, axis)
    return x


def cropped(x, out, places):
    """Linear between places of the last axis, `out` beside it."""
    low = np.clip(np.floor(places).astype(int), 0, x.shape[-1] - 1)
    y = x[..., low] + (x[..., np.minimum(low + 1, x.shape[-1] - 1)] - x[..., low]) * (places - low)
    return np.where((places < 0) | (places > x.shape[-1] - 1), out, y)


def resize(sizes, *more, start=(1, 2, 4, 8), grid=None, **attrs):
    return Case("Resize", [(X, start), None, None, np.array(sizes)], grid or Grid(0.0261, 0.53), lambda x: resampled(x, sizes, *more), attrs)


RESIZE = {
    "Resize, cubic": resize((1, 2, 8, 16), keys, mode="cubic"),
    "Resize, cubic to its grid": resize((1, 2, 8, 16), keys, mode="cubic", grid=X),
    "Resize, cubic along one axis": resize((1, 2, 4, 32), keys, mode="cubic"),
    "Resize, cubic without outside": resize((1, 2, 8, 16), keys, False, False, mode="cubic", exclude_outside=1),
    "Resize, cubic, ties": Case("Resize", [(Grid(0.5), (1, 1, 4, 4)), None, None, np.array((1, 1, 8, 8))], Grid(1.0),
                                lambda x: resampled(x, (1, 1, 8, 8), keys), {"mode": "cubic"}),
    "Resize, cubic antialias": resize((1, 2, 4, 4), keys, True, start=(1, 2, 16, 8), mode="cubic", antialias=1, grid=Grid(0.011)),
    "Resize, linear antialias": resize((1, 2, 4, 4), triangle, True, start=(1, 2, 16, 8), mode="linear", antialias=1, grid=Grid(0.011)),
    "Resize of volumes": resize((1, 2, 8, 4, 2), triangle, start=(1, 2, 4, 4, 4), mode="linear"),
    "Resize of a part": Case("Resize", [(X, (1, 2, 3, 5)), np.float32([0, 0, 0, -0.25, 1, 1, 1, 1.5]), None, np.array((1, 2, 3, 8))], Grid(0.0261, 0.53),
                             lambda x: cropped(x, 0.75, np.arange(8) - 1.0),
                             {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 0.75}),
    "Resize of a part, nearest": Case("Resize", [(X, (1, 2, 3, 5)), np.float32([0, 0, 0, -0.25, 1, 1, 1, 1.5]), None, np.array((1, 2, 3, 8))], Grid(0.0261, 0.53),
                                      lambda x: cropped(x, 0.75, np.arange(8) - 1.0),
                                      {"mode": "nearest", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 0.75}),
    "Resize of parts": Case("Resize", [(X, (1, 2, 3, 5)), np.float32([0, 0, -0.5, -0.25, 1, 1, 1, 1.5]), None, np.array((1, 2, 4, 8))], Grid(0.0261, 0.53),
                            lambda x: cropped(cropped(x.swapaxes(2, 3), 0.75, np.arange(4) - 1.0).swapaxes(2, 3), 0.75, np.arange(8) - 1.0),
                            {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 0.75}),
}
def nearest(d):
    return (np.abs(d) < 0.5) * 1.0  # without ties


def sampled(x, grid, f, corners=False, padding="zeros"):
    """Planes of x[N,C,H,W] at the places of grid[N,P,Q,2], by weights f of distances."""
    weights = []
    for axis, n in ((2, x.shape[2]), (3, x.shape[3])):
        g = grid[..., 3 - axis]
        at = (g + 1) / 2 * (n - 1) if corners else ((g + 1) * n - 1) / 2
        low, high = (0, n - 1) if corners else (-0.5, n - 0.5)
        if padding == "border":
            at = np.where((at < low) | (at > high), np.clip(at, 0, n - 1), at)
        span = high - low

        def mirrored(v):
            rest = np.abs(v - low) % (2 * span)
            return low + np.minimum(rest, 2 * span - rest)
        at = mirrored(at) if padding == "reflection" else at
        taps = np.arange(-600, n + 600)
        w = f(taps - at[..., None])
        to = mirrored(taps).astype(int) if padding == "reflection" else np.clip(taps, 0, n - 1)
        inside = (taps >= 0) & (taps < n) | (padding != "zeros")
        weights.append(np.stack([(w * (inside & (to == k))).sum(-1) for k in range(n)], -1))
    return np.einsum("npqh,npqw,nchw->ncpq", *weights, x)


def grid_sample(f, more=(), span=1 / 100, shape=(2, 3, 4, 6), **attrs):
    return Case("GridSample", [(X, shape), (Grid(span, 0.47), (2, 5, 7, 2))], Grid(0.0261, 0.53), lambda x, g: sampled(x, g, f, *more), attrs)


GRID_SAMPLE = {
    "GridSample": grid_sample(triangle, mode="linear"),
    "GridSample, corners": grid_sample(triangle, (True,), mode="linear", align_corners=1),
    "GridSample, border": grid_sample(triangle, (False, "border"), mode="linear", padding_mode="border"),
    "GridSample, mirrored": grid_sample(triangle, (False, "reflection"), 1 / 20, mode="linear", padding_mode="reflection"),
    "GridSample, mirrored at corners": grid_sample(triangle, (True, "reflection"), mode="linear", padding_mode="reflection", align_corners=1),
    "GridSample, nearest": grid_sample(nearest, (), 0.0113, (2, 3, 5, 7), mode="nearest"),
    "GridSample, cubic": grid_sample(keys, mode="cubic"),
    "GridSample, cubic and mirrored": grid_sample(keys, (True, "reflection"), mode="cubic", padding_mode="reflection", align_corners=1),
}
def attended(q, k, v, allowed=True, added=0.0, cap=None):
    """Of [batch, heads, steps, size], heads of keys shared by several of queries."""
    more = q.shape[1] // k.shape[1]
    k, v = k.repeat(more, 1), v.repeat(more, 1)
    scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
    scores = np.where(allowed, (cap * np.tanh(scores / cap) if cap else scores) + added, -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def heads(x, n):
    return x.reshape(*x.shape[:2], n, -1).swapaxes(1, 2)


def steps(x):
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


HEADS = [(Grid(0.03), (2, 4, 5, 6)), (Grid(0.025, 0.4), (2, 2, 7, 6)), (Grid(0.02), (2, 2, 7, 3))]
SEEN = np.random.default_rng(8).random((5, 7)) < 0.6
MORE = np.float32(np.random.default_rng(9).normal(size=(2, 1, 5, 7)))
CAUSAL = np.arange(7) <= np.arange(5)[:, None]
PAST = [(Grid(0.025, 0.4), (2, 2, 3, 6)), (Grid(0.02), (2, 2, 3, 3))]  # on the grids of the keys and values that follow
OTHER_PAST = [(Grid(0.04, 0.55), (2, 2, 3, 6)), (Grid(0.011, 0.6), (2, 2, 3, 3))]


def cached(past, present, is_causal=0, softcap=0.0):
    """Queries of HEADS see keys and values of the past before those of now; both go out."""
    allowed = np.arange(10) <= 3 + np.arange(5)[:, None] if is_causal else True

    def result(q, k, v, past_k, past_v):
        return attended(q, np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2), allowed, cap=softcap)
    more = ((present[0], lambda q, k, v, past_k, past_v: np.concatenate([past_k, k], 2)),
            (present[1], lambda q, k, v, past_k, past_v: np.concatenate([past_v, v], 2)))
    return Case("Attention", [*HEADS, None, *past], Grid(0.0117, 0.45), result, {"is_causal": is_causal, "softcap": softcap}, opset=23, more=more)


ATTENTION = {
    "Attention": Case("Attention", HEADS, Grid(0.013), attended, opset=23),
    "Attention, causal": Case("Attention", HEADS, Grid(0.013), lambda q, k, v: attended(q, k, v, CAUSAL), {"is_causal": 1}, opset=23),
    "Attention with a mask": Case("Attention", [*HEADS, SEEN], Grid(0.013), lambda q, k, v: attended(q, k, v, SEEN), opset=23),
    "Attention with scores": Case("Attention", [*HEADS, MORE], Grid(0.013), lambda q, k, v: attended(q, k, v, True, MORE), opset=23),
    "Attention with a softcap": Case("Attention", HEADS, Grid(0.013), lambda q, k, v: attended(q, k, v, cap=2.5), {"softcap": 2.5}, opset=23),
    "Attention with a softcap and scores": Case("Attention", [*HEADS, MORE], Grid(0.013), lambda q, k, v: attended(q, k, v, True, MORE, 30),
                                                {"softcap": 30.0}, opset=23),
    "Attention with a past": cached(PAST, (PAST[0][0], PAST[1][0])),
    "Attention with a past on other grids": cached(OTHER_PAST, (Grid(0.041, 0.5), Grid(0.02, 0.55))),
    "Attention with a past and a softcap": cached(OTHER_PAST, (Grid(0.041, 0.5), Grid(0.02, 0.55)), softcap=1.5),
    "Attention with a past, causal": cached(PAST, (Grid(0.0313), Grid(0.02, 0.55)), is_causal=1),
    "Attention with computed scores": Case("Attention", [*HEADS, (Grid(0.03, 0.6), (2, 1, 5, 7))], Grid(0.013),
                                           lambda q, k, v, m: attended(q, k, v, True, m), opset=23),
    "Attention with what hides": Case("Attention", [*HEADS, (Grid(39.2157, 1), (5, 7))], Grid(0.013), lambda q, k, v, m: attended(q, k, v, True, m),
                                      opset=23, edges=((), (), (), [-255, 0, 0, -1, 0, 0, 0])),
    "Attention with what hides all": Case("Attention", [*HEADS, (Grid(1.3e36, 1), (5, 7))], Grid(0.013), lambda q, k, v, m: attended(q, k, v, True, m),
                                          opset=23, edges=((), (), (), [0, -1] * 17 + [0])),
    "Attention of rows": Case("Attention", [(Grid(0.03), (2, 5, 24)), (Grid(0.025), (2, 7, 12)), (Grid(0.02), (2, 7, 6))], Grid(0.013),
                              lambda q, k, v: steps(attended(heads(q, 4), heads(k, 2), heads(v, 2))), {"q_num_heads": 4, "kv_num_heads": 2}, opset=23),
}
def turned_by(x, c, s):
    a, b, c, s = x[..., :4], x[..., 4:], c[:, None], s[:, None]
    return np.concatenate([c * a - s * b, s * a + c * b], -1)


PLACES = np.array([[3, 0, 5, 1, 2]])
ROTARY = {
    "RotaryEmbedding": Case("RotaryEmbedding", [(X, (1, 3, 5, 8)), COSINES, SINES, PLACES], Grid(0.03), lambda x: turned(x, PLACES[0]), opset=23),
    "RotaryEmbedding of a part": Case("RotaryEmbedding", [(X, (1, 3, 5, 11)), COSINES, SINES, PLACES], Grid(0.017), lambda x: turned(x, PLACES[0], True),
                                      {"interleaved": 1, "rotary_embedding_dim": 8}, opset=23),
    "RotaryEmbedding of computed tables": Case(
        "RotaryEmbedding", [(X, (2, 3, 5, 8)), *[(Grid(1 / 127, at), (2, 5, 4)) for at in (0.5, 0.45)]], Grid(0.0411), turned_by, opset=23),
    "RotaryEmbedding of a part by computed tables": Case(
        "RotaryEmbedding", [(X, (2, 3, 5, 11)), *[(Grid(1 / 127, at), (2, 5, 4)) for at in (0.5, 0.45)]], Grid(0.0411),
        lambda x, c, s: np.concatenate([turned_by(x[..., :8], c, s), x[..., 8:]], -1), {"rotary_embedding_dim": 8}, opset=23),
    "RotaryEmbedding of steps": Case(
        "RotaryEmbedding", [(X, (1, 6, 24)), COSINES[None], SINES[None]], X, attrs={"num_heads": 3}, opset=23,
        real=lambda x: turned(x.reshape(1, 6, 3, 8).swapaxes(1, 2), np.arange(6)).swapaxes(1, 2).reshape(1, 6, 24)),
}
CASES = MOVERS | JOINED | ARITHMETIC | NORMS | ROTARY | RESIZE | GRID_SAMPLE | ATTENTION


class Built:
    """A case with integers of one type: the ONNX model, what goes in, and the real numbers of that."""

    def __init__(self, name, case, elem):
        self.case, self.elem = case, elem
        self.rng = np.random.default_rng(zlib.crc32(f"{name} {elem}".encode()))
        self.nodes, self.inits, self.inputs, self.feeds, self.reals, self.names = [], [], [], {}, [], []
        for i, operand in enumerate(case.operands):
            self.add(i, operand)
        first = next(o for o in case.operands if isinstance(o, tuple))
        self.grid = (case.result or first[0]).of(elem)
        plain = [f"y{i}" for i in range(1, case.outputs)]
        results = {"y": self.grid} | {f"y{i}": grid.of(elem) for i, (grid, _) in enumerate(case.more, 1)}
        self.nodes.append(helper.make_node(case.op, self.names, [f"{name}_f" for name in results] + plain, **case.attrs))
        for name, grid in results.items():
            self.nodes.append(helper.make_node("QuantizeLinear", [f"{name}_f", *self.parameters(name, grid)], [name]))
        types = [(n, ELEMS[elem]) for n in results] + [(n, T.INT64) for n in plain]
        graph = helper.make_graph(self.nodes, "g", self.inputs, [helper.make_tensor_value_info(n, t, None) for n, t in types],
                                  self.inits)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=10)
        self.model = onnx.shape_inference.infer_shapes(model, strict_mode=True)

    def parameters(self, name, grid):
        self.inits += [numpy_helper.from_array(np.float32(grid[0]), name + "_s"),
                       numpy_helper.from_array(np.array(grid[1], self.elem), name + "_z")]
        return [name + "_s", name + "_z"]

    def add(self, i, operand):
        name = f"x{i}"
        if operand is None:
            self.names.append("")
            return
        if not isinstance(operand, tuple):
            self.inits.append(numpy_helper.from_array(np.asarray(operand), name))
            self.names.append(name)
            return
        grid, info = operand[0].of(self.elem), np.iinfo(self.elem)
        v = self.rng.integers(info.min, int(info.max) + 1, operand[1])
        if v.size >= 3:  # the ends, and 0
            v.reshape(-1)[-3:] = info.min, info.max, grid[1]
        edges = self.case.edges[len(self.reals)] if len(self.reals) < len(self.case.edges) else []
        v.reshape(-1)[:len(edges)] = np.clip(grid[1] + np.array(edges, int), info.min, info.max)
        ints = v.astype(self.elem)
        if i in self.case.constant:
            self.inits.append(numpy_helper.from_array(ints, name))
        else:
            self.inputs.append(helper.make_tensor_value_info(name, ELEMS[self.elem], operand[1]))
            self.feeds[name] = ints
        self.nodes.append(helper.make_node("DequantizeLinear", [name, *self.parameters(name, grid)], [name + "_f"]))
        self.names.append(name + "_f")
        self.reals.append((v - grid[1]) * np.float64(grid[0]))

    def steps(self, real, grid):
        """The rounded real numbers, and which of them are far from ties."""
        at = real / np.float64(grid[0])
        if self.exact_ties():
            return self.clipped(at, grid), np.ones(at.shape, bool)
        with np.errstate(invalid="ignore"):
            clear = np.abs(np.abs(at - np.floor(at)) - 0.5) > self.case.near
        return self.clipped(at, grid), clear | ~np.isfinite(at)

    def exact_ties(self):
        """Whether all scales are powers of two: then ties are no matter of rounding errors."""
        scales = [o[0].of(self.elem)[0] for o in self.case.operands if isinstance(o, tuple)] + [self.grid[0]]
        return all(np.frexp(s)[0] == 0.5 for s in scales)

    def clipped(self, at, grid):
        """As QuantizeLinear does it: half to even, NaN is the lowest integer."""
        info = np.iinfo(self.elem)
        return np.where(np.isnan(at), info.min, np.clip(np.rint(at) + grid[1], info.min, info.max))


class IntegerForms(OracleCase):
    def run_all(self, built):
        """What onnxruntime gives of the model, what `qxc run` and the emitted C, and what of the ONNX files it writes."""
        path, x, out = self.scratch / "m.onnx", self.scratch / "x.npz", self.scratch / "y.npz"
        onnx.save(built.model, path)
        np.savez(x, **{k: v[None] for k, v in built.feeds.items()})
        qir = qxc(path, "-emit=qir", "-form=true").stdout
        self.assertNotIn("QuantizeLinear(", qir.split("graph @")[1])
        qxc("run", path, f"-input={x}", "-o", out)
        names = [o.name for o in built.model.graph.output]
        have = dict(np.load(out))
        qxc(path, "-emit=c", "-integer-only", "-name=m", "-o", self.scratch / "m.c")
        model = CModel(self.scratch / "m.c", flags=("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"))
        results = model.run(*[built.feeds[name] for name, _, _ in model.inputs])
        for (name, _, _), result in zip(model.outputs, results, strict=True):
            np.testing.assert_array_equal(result, have[name].reshape(-1), err_msg=f"emitted C, {name}")
        want = dict(zip(names, session(built.model).run(names, built.feeds)))
        for form in ("qdq", "qop"):
            back = self.scratch / f"{form}.onnx"
            qxc(path, f"-emit={form}", "-o", back)
            kinds = {n.op_type for n in onnx.load(back).graph.node}
            qlinear = "QLinear" + built.case.op in kinds  # rounds on its own
            self.assertTrue(qlinear or built.case.op in kinds, kinds)
            again = session(back).run(names, built.feeds)
            for name, result in zip(names, again):
                away = np.abs(result.astype(np.int64) - want[name])
                self.assertLessEqual(away.max(initial=0), qlinear, f"-emit={form}, {name}")
            if form == "qop" and built.case.qop:
                self.assertEqual(kinds, {built.case.op})
        return have, want

    @for_each(*CASES)
    def test_same(self, name):
        case = CASES[name]
        for elem in case.elems:
            with self.subTest(elem=elem):
                built = Built(name, case, elem)
                have, want = self.run_all(built)
                for other in range(1, case.outputs):
                    np.testing.assert_array_equal(have[f"y{other}"].reshape(-1), want[f"y{other}"].reshape(-1))
                self.compare(built, have["y"], want["y"], case.real, built.grid)
                for i, (grid, real) in enumerate(case.more, 1):
                    self.compare(built, have[f"y{i}"], want[f"y{i}"], real, grid.of(elem))

    def compare(self, built, have, want, real, grid):
        y, w = (v.astype(np.int64).reshape(-1) for v in (have, want))
        if real is None:
            np.testing.assert_array_equal(y, w)
            return
        with np.errstate(divide="ignore", invalid="ignore"):
            steps, clear = built.steps(np.broadcast_to(real(*built.reals), have.shape[-len(want.shape):]), grid)
        clear, steps = clear.reshape(-1), steps.reshape(-1)
        np.testing.assert_array_equal(y[clear], steps[clear])
        self.assertLessEqual(np.abs(y - w).max(initial=0), 1)
        self.assertGreater(clear.mean(), 0.9)
        self.assertTrue(len(np.unique(y)) > 1 or y.size == 1)


if __name__ == "__main__":
    unittest.main()
