"""Linear Resize between integers of two grids: rounded once. The definition is computed in rational
numbers; `qxc run` has its integers, emitted C the bits of `qxc run`, and onnxruntime, which computes
in float32, differs only where the real value is as near to a tie as its errors are large."""

import itertools
import unittest
from fractions import Fraction

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from cmodel import CModel
from common import OracleCase, for_each, qxc, qxc_outputs, session

RANGES = {T.INT8: (-128, 127), T.UINT8: (0, 255), T.INT16: (-32768, 32767), T.UINT16: (0, 65535)}
NUMPY = {T.INT8: np.int8, T.UINT8: np.uint8, T.INT16: np.int16, T.UINT16: np.uint16}
SHAPE = (1, 2, 5, 6)
TO = {"doubled": (10, 12), "up": (13, 11), "down": (3, 4), "mixed": (2, 9), "rows": (7, 6), "one": (1, 1)}
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
# operand and result: type, scale, zero point
GRIDS = {
    "u8_u8": ((T.UINT8, .012, 128), (T.UINT8, .010, 128)),
    "one_grid": ((T.UINT8, .012, 3), (T.UINT8, .012, 3)),
    "ties": ((T.INT8, .25, -7), (T.INT8, .5, 11)),
    "finer": ((T.INT8, 1.5, 5), (T.INT16, .0007, -300)),
    "coarser": ((T.UINT16, .0003, 30000), (T.UINT8, .09, 7)),
    "s16_s16": ((T.INT16, .0011, 0), (T.INT16, .0013, 17)),
    "saturates": ((T.INT8, 3., 0), (T.UINT8, .02, 0)),
    "far_apart": ((T.INT8, 1e-30, 0), (T.INT8, 1e20, 1)),
    "beyond": ((T.INT8, 1e20, 0), (T.INT8, 1e-20, 1)),
}


def model(x, y, to, coordinates):
    nodes = [helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["f"]),
             helper.make_node("Resize", ["f", "", "", "sizes"], ["g"], mode="linear",
                              coordinate_transformation_mode=coordinates),
             helper.make_node("QuantizeLinear", ["g", "ys", "yz"], ["y"])]
    constants = [numpy_helper.from_array(np.array([*SHAPE[:2], *to], np.int64), "sizes")]
    for name, (elem, scale, zp) in (("x", x), ("y", y)):
        constants += [numpy_helper.from_array(np.float32(scale), name + "s"), helper.make_tensor(name + "z", elem, [], [zp])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", x[0], SHAPE)],
                              [helper.make_tensor_value_info("y", y[0], [*SHAPE[:2], *to])], constants)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


def place(how, i, length, to):
    if how == "align_corners":
        return Fraction(i * (length - 1), to - 1) if to > 1 else Fraction(0)
    if how == "asymmetric":
        return Fraction(i * length, to)
    if how == "pytorch_half_pixel" and to <= 1:
        return Fraction(0)
    return (i + Fraction(1, 2)) * Fraction(length, to) - Fraction(1, 2)


def along(x, axis, to, how):
    """`x` holds Fractions."""
    length, parts = x.shape[axis], []
    for i in range(to):
        at = min(max(place(how, i, length, to), 0), length - 1)
        low = int(at)
        parts.append(x.take(low, axis) * (1 - (at - low)) + x.take(min(low + 1, length - 1), axis) * (at - low))
    return np.stack(parts, axis)


class ResizeIntegers(OracleCase):
    @for_each(*GRIDS)
    def test_rounded_once(self, name):
        x, y = GRIDS[name]
        lo, hi = RANGES[y[0]]
        ints = np.random.default_rng(7).integers(*RANGES[x[0]], SHAPE, endpoint=True).astype(NUMPY[x[0]])
        centred = np.vectorize(lambda v: Fraction(int(v) - x[2]), otypes=[object])(ints)
        ratio = Fraction(float(np.float32(x[1]))) / Fraction(float(np.float32(y[1])))
        for how, to in itertools.product(COORDINATES, TO):
            with self.subTest(coordinates=how, to=to):
                real = along(along(centred, 2, TO[to][0], how), 3, TO[to][1], how) * ratio
                path = self.scratch / "m.onnx"
                onnx.save(model(x, y, TO[to], how), path)
                got = qxc_outputs(path, {"x": ints}, self.scratch)["y"].reshape(real.shape).astype(int)
                want = np.vectorize(lambda v: min(max(round(v) + y[2], lo), hi), otypes=[int])(real)
                tie = np.vectorize(lambda v: float(abs(abs(v - int(v)) - Fraction(1, 2))), otypes=[float])(real)
                # Places are float32 as onnxruntime computes them: exact where lengths double.
                error = 0 if to == "doubled" and how == "half_pixel" else float(ratio) * np.ptp(ints.astype(int)) * 2**-20
                self.assertEqual(0, np.count_nonzero((got != want) & (tie >= error)))
                self.assertLessEqual(np.abs(got - want).max(), 1)
                ort = session(path).run(None, {"x": ints})[0].astype(int)
                error += 2**-21 * float(np.abs(np.asarray(real, float)).max())
                self.assertEqual(0, np.count_nonzero((got != ort) & (tie >= error) & (tie > 0)))
                if name in ("u8_u8", "finer") and to in ("doubled", "mixed", "rows"):
                    self.same_as_c(path, ints, got)

    def same_as_c(self, path, ints, want):
        for options in ((), ("-integer-only",), ("-integer-only", "-requant=single"), ("-requant=shift",)):
            source = self.scratch / "m.c"
            qxc(path, "-emit=c", "-name=m", "-quiet", "-no-sync", "-o", source, *options)
            self.assertNotIn("qk_requantize", source.read_text())
            got = CModel(source, flags=("-O0", "-fsanitize=undefined", "-fno-sanitize-recover")).run(ints)[0]
            np.testing.assert_array_equal(got.reshape(want.shape), want)


if __name__ == "__main__":
    unittest.main()
