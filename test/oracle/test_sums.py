"""Sums and differences of two 8-bit tensors, as `qxc run` and in C on every micro-kernel: the bits that the definition gives,
which are those of sums without rounding, rounded once. Shapes are those of test_pairs; zero points reach both ends, scales make
many ties, sums that saturate, and sums that vectors have no room for."""

import math

import numpy as np
from onnx import helper, numpy_helper

from common import OracleCase, for_each
from test_pairs import EIGHT, Pairs, check_everywhere

SEEDS = range(2)
NEAR = (0.5 + 2**-22, 0.5 - 2**-22, 1.5 + 2**-21)  # sums that vectors cannot tell from ties
RATIOS = (2**-1, 2**-2, 2**-3, 1, 2, 3, 0.375, 2**-12, 2**-17, 2**-30, 3.49, 6.9, 7.1, 100, 2**22, 2**26)


def half_even(numerator, shift):
    """numerator / 2^shift of integers, to the nearest, ties to even."""
    floor, half = numerator >> shift, 1 << shift >> 1
    rest = numerator - (floor << shift)
    return floor + int(rest > half or (rest == half and shift > 0 and floor & 1))


def rounded(x, y, ratios):
    """x * ratios[0] + y * ratios[1] of integers, as kernels/pointwise/add_q.qk says."""
    most = max(map(abs, ratios))
    shift = min(max(52 - 9 - math.frexp(min(most, 2**24))[1], 0), 61)
    u, v = (round(math.ldexp(max(-(2**24), min(r, 2**24)), shift)) for r in ratios)
    every = np.broadcast_arrays(x, y)
    sums = [half_even(int(a) * u + int(b) * v, shift) for a, b in zip(every[0].ravel(), every[1].ravel())]
    return np.array(sums, object).reshape(every[0].shape)


class Sums(Pairs):
    def ratio(self):
        return self.pick.choice((self.pick.choice(RATIOS), self.pick.choice(NEAR), 2 ** self.pick.uniform(-6, 2)))

    def pair(self, i):
        dtype, (u, v) = self.pick.choice(EIGHT), self.shapes()
        first, op = self.pick.random() < 0.5, self.pick.choice(("Add", "Sub"))
        a, x, sx = self.operand(f"a{i}", dtype, u, first)
        b, y, sy = self.operand(f"b{i}", dtype, v, True)
        scale, zero, params = self.grid(dtype, float(sx) / self.ratio())
        if self.pick.random() < 0.5:  # both ratios are chosen, so that all sums may be exact
            sy = np.float32(scale * self.ratio())
            self.constants = [c if c.name != self.scale_of(b) else self.tensor(c.name, sy) for c in self.constants]
        self.nodes += [helper.make_node(op, [a, b], [f"m{i}"]),
                       helper.make_node("QuantizeLinear", [f"m{i}", *params], [f"y{i}"])]
        info, sign = np.iinfo(dtype), 1 if op == "Add" else -1
        made = rounded(x, y, (float(sx) / float(scale), sign * float(sy) / float(scale)))
        want = np.clip(made + zero, info.min, info.max).astype(dtype)
        self.outputs.append(helper.make_tensor_value_info(f"y{i}", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), want.shape))
        self.want[f"y{i}"] = want

    def scale_of(self, name):
        """The constant that an operand is dequantized with."""
        return next(n.input[1] for n in self.nodes if n.output[0] == name)

    @staticmethod
    def tensor(name, value):
        return numpy_helper.from_array(np.float32(value), name)


class TestSums(OracleCase):
    @for_each(*SEEDS)
    def test_sums(self, seed):
        sums = Sums(seed)
        check_everywhere(self, sums, f"sums{seed}", "    qk_add_q_", len(sums.want) * 3 // 4)
