"""What -requant means, in numpy and Python's integers: sums times a multiplier, to whole numbers.

`single` and `double` follow TFLite and gemmlowp: M = f * 2^e, f in [1/2, 1), and M0 = f * 2^31 rounded.
"""

import math

import numpy as np

INT32 = np.iinfo(np.int32)


def exact(sums, multiplier):
    """As onnxruntime: one product in float32, half to even."""
    product = np.asarray(sums, np.float32) * np.asarray(multiplier, np.float32)
    return np.rint(product.astype(np.float64))


def fixed(m):
    """(M0, e) with m close to M0 * 2^(e - 31)."""
    f, e = math.frexp(m)
    m0 = math.floor(f * 2**31 + 0.5)
    if m0 == 2**31:
        m0, e = 2**30, e + 1
    return (0, 0) if e < -31 else (m0, e)


def cut(v):
    return min(max(v, INT32.min), INT32.max)


def single_one(acc, m):
    m0, e = fixed(m)
    shift = 31 - e
    return (cut(acc) * m0 + (1 << (shift - 1))) >> shift


def high_mul(a, b):
    """SaturatingRoundingDoublingHighMul."""
    if a == b == INT32.min:
        return INT32.max
    v = a * b
    v += 2**30 if v >= 0 else 1 - 2**30
    return abs(v) // 2**31 * (1 if v >= 0 else -1)


def divide_by_power(x, n):
    """RoundingDivideByPOT."""
    mask = (1 << n) - 1
    return (x >> n) + ((x & mask) > (mask >> 1) + (x < 0))


def double_one(acc, m):
    m0, e = fixed(m)
    return divide_by_power(high_mul(cut(cut(acc) << max(e, 0)), m0), max(-e, 0))


def shift_one(acc, m):
    f, e = math.frexp(m)
    assert f == 0.5, m
    n = 1 - e
    return (cut(acc) + (1 << (n - 1))) >> n if n > 0 else cut(acc) << -n


def each(one):
    def all_of(sums, multiplier):
        sums, multiplier = np.broadcast_arrays(np.asarray(sums), np.asarray(multiplier, np.float64))
        flat = [float(one(int(s), float(m))) for s, m in zip(sums.ravel(), multiplier.ravel())]
        return np.array(flat).reshape(sums.shape)
    return all_of


ROUND = {"exact": exact, "single": each(single_one), "double": each(double_one),
         "shift": each(shift_one)}


def rounded(real, grid):
    """QuantizeLinear to (_, scale, zero point)."""
    _, scale, zero = grid
    info = np.iinfo(zero.dtype)
    return np.clip(np.rint(real / scale) + int(zero), info.min, info.max).astype(zero.dtype)
