"""Every quantized type, lowered to ONNX: onnxruntime computes what `qxc run` computes, bit for bit,
and so does `qxc run` of what was lowered.

A grid of storage types, granularities, zero points and ranges. Each type stands at a value that is
quantized and dequantized again, at a constant, and at operators that move, compute or accumulate.
"""

import numpy as np
import onnx
import onnx.reference

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

    def grids(self):
        """Scale and zero point of each element."""
        entries = GRAINS[self.grain][1] or 1
        scales = np.array([np.float32(f"{s:.6g}") for s in self.scales])
        blocks = {"axis0": (1, COLUMNS), "axis1": (ROWS, 1), "axes": (1, 1), "block": (ROWS, 4),
                  "rows_block": (1, 4), "two_axes": (3, 4)}.get(self.grain, (ROWS, COLUMNS))
        across = -(-COLUMNS // blocks[1])
        at = np.array([[r // blocks[0] * across + c // blocks[1] for c in range(COLUMNS)]
                       for r in range(ROWS)])
        assert at.max() == entries - 1
        return scales[at], np.array(self.zeros, np.int64)[at]

    def quantized(self, x):
        """What QuantizeLinear is defined to be."""
        scale, zero = self.grids()
        if "32" in self.storage:
            x, scale = x.astype(np.float64), scale.astype(np.float64)
        with np.errstate(over="ignore"):
            steps = np.rint(x / scale).astype(np.float64)
        return np.clip(steps + zero, self.low, self.high).astype(np.int64)

    def real(self, q):
        scale, zero = self.grids()
        if self.storage == "uint32" or (self.storage == "int32" and any(self.zeros)):
            return ((q - zero) * scale.astype(np.float64)).astype(np.float32)
        return (q - zero).astype(np.float32) * scale

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
    def typed(self, text, x, *options):
        path = self.scratch / "typed.qir"
        path.write_text(text)
        return path, qxc_outputs(path, {"x": x}, self.scratch, *options)

    def lowered(self, text, x, want, *options, forms=("qdq", "qop")):
        """What onnxruntime makes of the lowered forms against `want`."""
        path = self.scratch / "typed.qir"
        path.write_text(text)
        for form in forms:
            out = self.scratch / f"{form}.onnx"
            qxc(path, f"-emit={form}", "-o", out, *options)
            model = onnx.load(out)
            onnx.checker.check_model(model, full_check=True)
            self.raised(out, form, options)
            again = qxc_outputs(out, {"x": x}, self.scratch)
            for name, values in again.items():
                np.testing.assert_array_equal(values, want[name].reshape(values.shape), f"{form}, {name}, read back")
            for optimize in (False, True):
                runner = session(model, optimize)
                names = [o.name for o in runner.get_outputs()]
                rows = [runner.run(names, {"x": sample}) for sample in x]
                for i, name in enumerate(names):
                    got = np.stack([r[i] for r in rows])
                    np.testing.assert_array_equal(got, want[name].reshape(got.shape),
                                                  f"{form}, {name}, optimized {optimize}")
            yield model

    def raised(self, path, form, options):
        """What was lowered is types again, and ONNX again."""
        text, back = self.scratch / "raised.qir", self.scratch / "back.onnx"
        qxc(path, "-form=true", "-o", text, *options)
        self.assertNotRegex(text.read_text(), r"= (Div|Round|Cast|Sub|Clip|Max|Min)\(")
        qxc(text, f"-emit={form}", "-o", back, *options)
        nodes = [len(onnx.load(p).graph.node) for p in (back, path)]
        self.assertLessEqual(*nodes)  # fewer where what was spelled out can be stated now

    def compare(self, text, x, want, *options):
        """qxc, onnxruntime on both lowered forms, and the definition, where it is given."""
        _, ran = self.typed(text, x, *(o for o in options if o == "-wide-zp"))
        for name in want or ():
            np.testing.assert_array_equal(ran[name], want[name].reshape(ran[name].shape), name)
        return list(self.lowered(text, x, ran, *options))

    @staticmethod
    def values(types, opset=13):
        body = []
        for i, t in enumerate(types):
            body += [f"  %q{i} : {t}[{ROWS},{COLUMNS}] = QuantizeLinear(%x)",
                     f"  %y{i} : float[{ROWS},{COLUMNS}] = DequantizeLinear(%q{i})"]
        return module(body, [f"%y{i}" for i in range(len(types))], opset)

    @staticmethod
    def round_trips(types, x):
        return {f"y{i}": t.real(t.quantized(x)) for i, t in enumerate(types)}

    def test_proposal(self):
        """The type that proposed quantized types: scale 0.23, offset -10, shape 5."""
        stored = np.array([-128, -10, -9, 0, 127])
        real = np.float32(0.23) * (stored + 10).astype(np.float32)
        np.testing.assert_allclose(real, [-27.14, 0, 0.23, 2.3, 31.51], rtol=1e-6)
        text = (f"qir 1\nimport \"\" 13\nmodel <ir_version=8>\n"
                "quant !p = int8q<0.23, -10>\n"
                "graph @g (%x : float[5]) -> (%y, %z, %q) {\n"
                f"  const %c : !p[5] = [{', '.join(map(str, stored))}]\n"
                "  %y : float[5] = DequantizeLinear(%c)\n"
                "  %q : !p[5] = QuantizeLinear(%x)\n"
                "  %z : float[5] = DequantizeLinear(%q)\n}\n")
        x = np.stack([real, real + np.float32(0.1), np.array([1e9, -1e9, 0, -0.0, 0.115])]).astype(np.float32)
        steps = np.rint(x / np.float32(0.23)) - 10
        q = np.clip(steps, -128, 127)
        self.compare(text, x, {"y": np.stack([real] * 3), "q": q,
                               "z": np.float32(0.23) * (q + 10).astype(np.float32)})

    @for_each(*STORAGE)
    def test_values(self, storage):
        types, x = grid(storage), inputs(np.random.default_rng(1), storage)
        want = self.round_trips(types, x)
        self.compare(self.values(types), x, want)

    @for_each(*STORAGE)
    def test_constants(self, storage):
        rng = np.random.default_rng(2)
        x, body, want = inputs(rng, storage), [], {}
        for i, t in enumerate(grid(storage)):
            data = t.integers(rng, ROWS * COLUMNS)
            body += [f"  const %c{i} : {t}[{ROWS},{COLUMNS}] = [{', '.join(map(str, data))}]",
                     f"  %d{i} : float[{ROWS},{COLUMNS}] = DequantizeLinear(%c{i})",
                     f"  %y{i} : float[{ROWS},{COLUMNS}] = Add(%x, %d{i})"]
            want[f"y{i}"] = x + t.real(data.reshape(ROWS, COLUMNS))
        text = module(body, [f"%{name}" for name in want], 13)
        self.compare(text, x, want)

    @for_each("int2", "uint2", "int4", "uint4", "int16", "uint16", "int8", "int32")
    def test_old_opset(self, storage):
        """Opset 13 knows neither narrow types nor 16 bits nor blocks: bytes, or spelled out."""
        types, x = grid(storage), inputs(np.random.default_rng(3), storage)
        for model in self.compare(self.values(types), x, self.round_trips(types, x),
                                  "-target-opset=13"):
            self.assertEqual([13], [o.version for o in model.opset_import if not o.domain])

    @for_each("int2", "uint4", "int8", "uint8", "int16")
    def test_zero_point_outside(self, storage):
        rng = np.random.default_rng(4)
        types = [Type(rng, storage, grain) for grain in GRAINS]
        for t in types:
            t.zeros = [int(z) for z in rng.choice([-1048576, -1000, 40000, 1048576], len(t.zeros))]
            t.scales = [2.0**-7 if abs(max(t.zeros, key=abs)) < 2**17 else 2.0**-16] * len(t.scales)
        x = inputs(rng, storage)
        self.compare(self.values(types), x, self.round_trips(types, x), "-wide-zp")
        wide = f"{storage}q<0.25, -1000>"
        text = module([f"  %q : {wide}[{ROWS},{COLUMNS}] = QuantizeLinear(%x)",
                       f"  %t : {wide}[{COLUMNS},{ROWS}] = Transpose(%q)",
                       f"  %r : {wide}[{COLUMNS},{ROWS}] = Relu(%t)",
                       f"  const %w : int8q<0.5>[{ROWS},2] = [1, -2, 3, -4, 5, -6, 7, -8]",
                       f"  %g : uint8q<4.0, 300>[{COLUMNS},2] = MatMul(%r, %w)",
                       f"  %y : float[{COLUMNS},2] = DequantizeLinear(%g)"], ["%y", "%r"], 13)
        self.compare(text, x, {}, "-wide-zp")

    @for_each(*STORAGE)
    def test_movers(self, storage):
        rng = np.random.default_rng(5)
        x, body, names = inputs(rng, storage), [], []
        for i, t in enumerate(Type(rng, storage, zero=z, part=p)
                              for z in ("zero", "any") for p in (False, True)):
            body += [f"  %q{i} : {t}[{ROWS},{COLUMNS}] = QuantizeLinear(%x)",
                     f"  %t{i} : {t}[{COLUMNS},{ROWS}] = Transpose(%q{i})",
                     f"  %f{i} : {t}[1,{COLUMNS * ROWS}] = Flatten(%t{i}) <axis=0>",
                     f"  %y{i} : float[1,{COLUMNS * ROWS}] = DequantizeLinear(%f{i})"]
            names.append(f"%y{i}")
        self.compare(module(body, names, 13), x, {})

    def test_double(self):
        """ONNX quantizes no double: spelled out."""
        rng = np.random.default_rng(8)
        x = inputs(rng, "int16").astype(np.float64)
        types = [Type(rng, s, g, "any", more="expr=double") for s in ("int8", "uint16") for g in GRAINS]
        want = {}
        for i, t in enumerate(types):
            t.scales = [2.0**-int(k) for k in rng.integers(1, 9, len(t.scales))]
            scale, zero = t.grids()
            want[f"y{i}"] = (t.quantized(x) - zero) * scale.astype(np.float64)
        text = self.values(types).replace("float[", "double[")
        self.compare(text, x, want)

    @for_each("float16", "bfloat16")
    def test_half(self, real):
        """Against ONNX's reference evaluator, which works in the real type itself."""
        text = module([f"  %h : {real}[{ROWS},{COLUMNS}] = Cast(%x) <to={10 if real == 'float16' else 16}>",
                       f"  %q : int8q<2^-4, 3, range=-100:100, expr={real}, scale_type={real}>"
                       f"[{ROWS},{COLUMNS}] = QuantizeLinear(%h)",
                       f"  %d : {real}[{ROWS},{COLUMNS}] = DequantizeLinear(%q)",
                       f"  %y : float[{ROWS},{COLUMNS}] = Cast(%d) <to=1>"], ["%y"], 21)
        path, out = self.scratch / "typed.qir", self.scratch / "half.onnx"
        path.write_text(text)
        qxc(path, "-emit=qdq", "-target=onnx", "-o", out)  # onnxruntime has no kernel of bfloat16
        model = onnx.load(out)
        onnx.checker.check_model(model, full_check=True)
        x = np.random.default_rng(9).normal(0, 4, (ROWS, COLUMNS)).astype(np.float32)
        x[0, :2] = 100, -100
        x = np.round(x * 8) / 8  # of both types, ties among them
        got = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})[0]
        want = (np.clip(np.rint(x * 16) + 3, -100, 100) - 3) / 16
        np.testing.assert_array_equal(got, want)

    @for_each("int8", "uint8")
    def test_operators(self, storage):
        """Activations that are not quantized as a whole have no kernels: nothing may be fused."""
        rng = np.random.default_rng(7)
        x, body, names = inputs(rng, storage), [], []
        shape = f"[{ROWS},{COLUMNS}]"
        for i, grain in enumerate(g for g in GRAINS if g != "tensor"):
            t, one = Type(rng, storage, grain, "any"), f"{storage}q<2^-5>"
            t.scales = [2.0**-int(k) for k in rng.integers(3, 7, len(t.scales))]
            ops = {"a": ("Add", f"%q{i}, %one{i}", one), "b": ("Mul", f"%one{i}, %one{i}", t),
                   "c": ("LeakyRelu", f"%q{i}", t), "d": ("Relu", f"%q{i}", t)}
            body += [f"  %q{i} : {t}{shape} = QuantizeLinear(%x)",
                     f"  %one{i} : {one}{shape} = QuantizeLinear(%x)"]
            for k, (op, operands, result) in ops.items():
                alpha = " <alpha=0.25>" if op == "LeakyRelu" else ""
                body += [f"  %{k}{i} : {result}{shape} = {op}({operands}){alpha}",
                         f"  %y{k}{i} : float{shape} = DequantizeLinear(%{k}{i})"]
                names.append(f"%y{k}{i}")
        path = self.scratch / "typed.qir"
        path.write_text(module(body, names, 13))
        results = []
        for optimize in (False, True):
            out = self.scratch / "qdq.onnx"
            qxc(path, "-emit=qdq", "-o", out)
            runner = session(onnx.load(out), optimize)
            results.append([runner.run(None, {"x": sample}) for sample in x])
        for plain, fused in zip(*results):
            for a, b in zip(plain, fused):
                np.testing.assert_array_equal(a, b)

    @for_each(*(s for s in STORAGE if "32" not in s))
    def test_weights(self, storage):
        """Powers of two keep sums in float exact, so that every order of adding gives the bits."""
        rng = np.random.default_rng(6)
        x = inputs(rng, storage)
        body = [f"  %q : uint8q<2^-5, 128>[{ROWS},{COLUMNS}] = QuantizeLinear(%x)"]
        names = []
        for i, grain in enumerate(("tensor", "axis1", "block", "two_axes")):
            t = Type(rng, storage, "tensor")
            arguments, entries = {"tensor": ("", 1), "axis1": ("axis=1", 5), "block": ("axis=0, block=4", 2),
                                  "two_axes": ("axis=[0, 1], block=[3, 2]", 6)}[grain]
            scales = [f"2^{-int(k)}" for k in rng.integers(2, 7, entries)]
            text = scales[0] if grain == "tensor" else f"[{', '.join(scales)}], 0, {arguments}"
            low = -t.high if t.low < 0 else t.low
            data = rng.integers(max(low, -3000), min(t.high, 3000) + 1, COLUMNS * 5)
            body += [f"  const %w{i} : {storage}q<{text}>[{COLUMNS},5] = [{', '.join(map(str, data))}]",
                     f"  %g{i} : uint8q<2^-2, 100>[{ROWS},5] = MatMul(%q, %w{i})",
                     f"  %y{i} : float[{ROWS},5] = DequantizeLinear(%g{i})"]
            names.append(f"%y{i}")
        self.compare(module(body, names, 13), x, {})


if __name__ == "__main__":
    import unittest
    unittest.main()
