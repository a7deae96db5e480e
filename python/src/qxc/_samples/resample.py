"""Another sample rate: a sinc in a Kaiser window, so that what the new rate cannot hold is filtered out first."""

from __future__ import annotations

import math

import numpy as np

ZEROS = 64  # of the sinc, to each side
BETA = 12.0  # of the window: what lies beyond half of the rate is 100 dB down
PASSES = 0.94  # of half the lower rate
BLOCK = 1 << 12  # results at a time


def resampled(x: np.ndarray, rate: int, to: int) -> np.ndarray:
    """`x` is [samples, channels] at `rate` a second; the result has ceil(samples * to / rate) of them."""
    common = math.gcd(rate, to)
    up, down = to // common, rate // common
    cut = PASSES * min(1.0, to / rate)
    half = math.ceil(ZEROS / cut)
    padded = np.pad(x.astype(np.float64), ((half, half + 1), (0, 0)))
    out = np.empty((-(-len(x) * up // down), x.shape[1]))
    offsets = np.arange(-half + 1, half + 1)
    for begin in range(0, len(out), BLOCK):
        place = np.arange(begin, min(begin + BLOCK, len(out)), dtype=np.int64) * down
        left = place // up
        phases, which = np.unique(place % up, return_inverse=True)  # of which there are few at common rates
        away = offsets - (phases / up)[:, None]  # of each tap from the result
        window = np.i0(BETA * np.sqrt(np.maximum(0, 1 - (away / half) ** 2)))
        taps = np.sinc(cut * away) * window
        taps /= taps.sum(axis=1, keepdims=True)
        out[begin:begin + BLOCK] = np.einsum("nt,ntc->nc", taps[which], padded[left[:, None] + offsets + half])
    return out
