"""Every quantized type, lowered to ONNX: onnxruntime computes what `qxc run` computes, bit for bit.

A grid of storage types, granularities, zero points and ranges. Each type stands at a value that is
quantized and dequantized again, at a constant, and at operators that move, compute or accumulate.
"""

import numpy as np
import onnx

from common import OracleCase, for_each, qxc, qxc_outputs, session

STORAGE = tuple(f"{sign}int{bits}" for bits in (1, 2, 4, 8, 16, 32) for sign in ("", "u"))
ROWS, COLUMNS = 4, 6

# How parameters are laid over a [4, 6] tensor: arguments of the type, number of entries.
GRAINS = {
    "tensor": ("", 0),
    "axis0": ("axis=0", 4),
    "axis1": ("axis=1", 6),
    "axes": ("axis=[0, 1]", 24),
    "block": ("axis=1, block=4", 2),          # one row of two blocks, the last one short
    "rows_block": ("axis=[0, 1], block=[1, 4]", 8),
    "two_axes": ("axis=[0, 1], block=[3, 4]", 4),
}


def limits(storage):
    bits = int(storage.lstrip("uint"))
    if bits == 1:
        return 0, 1
    return (0, 2**bits - 1) if storage[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def narrow(storage):
    """A part of the range that has no bound in common with the type, where it is wide enough."""
    low, high = limits(storage)
    return (low + 1, high - 1) if high - low > 2 else (low, high)


class Type:
    """A quantized type with random parameters."""

    def __init__(self, rng, storage, grain="tensor", zero="zero", part=False, more=""):
        self.storage, self.grain, self.more = storage, grain, more
        self.low, self.high = narrow(storage) if part else limits(storage)
        self.part = part
        arguments, count = GRAINS[grain]
        base = 8 / max(self.high - self.low, 8)
        n = count or 1
        self.scales = [base * s for s in rng.choice([0.25, 0.3, 0.7, 1.0], n)]
        near = np.array([self.low, self.high, *rng.integers(max(self.low, -9), min(self.high, 9) + 1, 3)])
        self.zeros = [0] * n if zero == "zero" and self.low <= 0 else list(rng.choice(near, n))
        self.arguments = arguments

    def __str__(self):
        plain = self.grain == "tensor"
        scale = f"{self.scales[0]:.6g}" if plain else "[" + ", ".join(f"{s:.6g}" for s in self.scales) + "]"
        zero = str(self.zeros[0]) if plain else "[" + ", ".join(map(str, self.zeros)) + "]"
        parts = [scale, zero, self.arguments, f"range={self.low}:{self.high}" if self.part else "", self.more]
        return f"{self.storage}q<{', '.join(p for p in parts if p)}>"

    def integers(self, rng, count):
        return rng.integers(self.low, self.high + 1, count, dtype=np.int64)


def grid(storage, seed=0):
    rng = np.random.default_rng(seed)
    return [Type(rng, storage, grain, zero, part)
            for grain in GRAINS for zero in ("zero", "any") for part in (False, True)]


def inputs(rng, storage):
    """Ties, saturation on both sides, zeros of both signs, infinities.

    onnxruntime's QuantizeLinear to 2 bits, and to 4 bits in blocks, wraps beyond int32.
    """
    x = rng.normal(0, 4, (3, ROWS, COLUMNS)).astype(np.float32)
    big = (np.inf, 3e38) if limits(storage)[1] > 15 else (1e5, 1e6)
    x[0, 0] = [0.0, -0.0, big[0], -big[0], big[1], -big[1]]
    x[1] = np.round(x[1] * 2) / 2
    x[2] *= 1000
    return x


def module(body, results, opset=25, ir=11):
    lines = [f"qir 1\nimport \"\" {opset}\nmodel <ir_version={ir}>",
             f"graph @g (%x : float[{ROWS},{COLUMNS}]) -> ({', '.join(results)}) {{", *body, "}"]
    return "\n".join(lines) + "\n"


class Types(OracleCase):
    def compare(self, text, x, forms=("qdq", "qop"), options=()):
        """The typed form run by qxc against what onnxruntime makes of its lowered forms."""
        path = self.scratch / "typed.qir"
        path.write_text(text)
        want = qxc_outputs(path, {"x": x}, self.scratch, *options)
        for form in forms:
            out = self.scratch / f"{form}.onnx"
            qxc(path, f"-emit={form}", "-o", out, *options)
            model = onnx.load(out)
            onnx.checker.check_model(model, full_check=True)
            for optimize in (False, True):
                runner = session(model, optimize)
                names = [o.name for o in runner.get_outputs()]
                rows = [runner.run(names, {"x": sample}) for sample in x]
                for i, name in enumerate(names):
                    got = np.stack([r[i] for r in rows])
                    np.testing.assert_array_equal(got, want[name].reshape(got.shape),
                                                  f"{form}, {name}, optimized {optimize}")

    @for_each(*STORAGE)
    def test_values(self, storage):
        rng = np.random.default_rng(1)
        body, results = [], []
        for i, t in enumerate(grid(storage)):
            body += [f"  %q{i} : {t}[{ROWS},{COLUMNS}] = QuantizeLinear(%x)",
                     f"  %y{i} : float[{ROWS},{COLUMNS}] = DequantizeLinear(%q{i})"]
            results.append(f"%y{i}")
        self.compare(module(body, results), inputs(rng, storage))

    @for_each(*STORAGE)
    def test_constants(self, storage):
        rng = np.random.default_rng(2)
        body, results = [], []
        for i, t in enumerate(grid(storage)):
            data = ", ".join(map(str, t.integers(rng, ROWS * COLUMNS)))
            body += [f"  const %c{i} : {t}[{ROWS},{COLUMNS}] = [{data}]",
                     f"  %d{i} : float[{ROWS},{COLUMNS}] = DequantizeLinear(%c{i})",
                     f"  %y{i} : float[{ROWS},{COLUMNS}] = Add(%x, %d{i})"]
            results.append(f"%y{i}")
        self.compare(module(body, results), inputs(rng, storage))


if __name__ == "__main__":
    import unittest
    unittest.main()
