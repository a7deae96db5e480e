"""Conv, ConvTranspose, Gemm and MatMul, each in every form that integer kernels have.

All scales are powers of two, so that double precision finds the exact results: qxc's, and those of emitted C under
sanitizers, with the vectors of this processor and without, are equal to them.
"""

import itertools
import subprocess

import numpy as np

from common import OracleCase, for_each, qxc, qxc_outputs

RANGES = {"int2": (-2, 1), "uint2": (0, 3), "int4": (-8, 7), "uint4": (0, 15), "int8": (-128, 127), "uint8": (0, 255),
          "int16": (-32768, 32767), "uint16": (0, 65535), "int32": (-2**31, 2**31 - 1)}
SANITIZED = ("-std=c99", "-O0", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
BUILDS = {"vectors": ("-mavx2",), "portable": ("-U__SSE2__",)}


def conv(x, w, stride=1, dilation=1, pad=0, group=1):
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(pad, pad)] * rank)
    size = [(n - (k - 1) * dilation - 1) // stride + 1 for n, k in zip(x.shape[2:], w.shape[2:])]
    y = np.zeros((x.shape[0], w.shape[0], *size))
    inputs, outputs = w.shape[1], w.shape[0] // group
    for at in itertools.product(*map(range, w.shape[2:])):
        window = tuple(slice(k * dilation, k * dilation + (n - 1) * stride + 1, stride) for k, n in zip(at, size))
        for g in range(group):
            part = x[(slice(None), slice(g * inputs, (g + 1) * inputs), *window)]
            rows = slice(g * outputs, (g + 1) * outputs)
            y[:, rows] += np.einsum("nc...,oc->no...", part, w[(rows, slice(None), *at)])
    return y


def conv_transpose(x, w, stride=1, dilation=1, pad=0, group=1):
    full = [(n - 1) * stride + (k - 1) * dilation + 1 for n, k in zip(x.shape[2:], w.shape[2:])]
    y = np.zeros((x.shape[0], w.shape[1] * group, *full))
    inputs, outputs = w.shape[0] // group, w.shape[1]
    for at in itertools.product(*map(range, w.shape[2:])):
        window = tuple(slice(k * dilation, k * dilation + (n - 1) * stride + 1, stride) for k, n in zip(at, x.shape[2:]))
        for g in range(group):
            rows = slice(g * inputs, (g + 1) * inputs)
            y[(slice(None), slice(g * outputs, (g + 1) * outputs), *window)] += np.einsum(
                "nc...,co->no...", x[:, rows], w[(rows, slice(None), *at)])
    return y[(slice(None), slice(None), *(slice(pad, n - pad) for n in full))]


def windows(op, function, x, w, bias, group=1, **how):
    """A node with a window: (operator, attributes, shapes, axis of weights, channels, function)."""
    rank = len(x) - 2
    words = {"strides": [how.get("stride", 1)] * rank, "dilations": [how.get("dilation", 1)] * rank,
             "pads": [how.get("pad", 0)] * 2 * rank, "group": group}
    channels = w[0] if op == "Conv" else w[1] * group
    axis = 0 if op == "Conv" else 1 if group == 1 else None
    return op, words, x, w, axis, channels if bias else 0, lambda a, b, c: function(a, b, group=group, **how) + (
        c.reshape(-1, *[1] * rank) if bias else 0)


NODES = {
    "conv": windows("Conv", conv, (1, 3, 9, 8), (6, 3, 3, 3), True, pad=1),
    "conv_strided": windows("Conv", conv, (2, 4, 9, 9), (5, 4, 3, 2), False, stride=2, dilation=2, pad=2),
    "conv_point": windows("Conv", conv, (1, 17, 5, 5), (18, 17, 1, 1), True),
    "conv_grouped": windows("Conv", conv, (1, 6, 7, 7), (4, 3, 3, 3), True, group=2),
    "conv_depthwise": windows("Conv", conv, (1, 5, 8, 7), (5, 1, 3, 3), True, group=5, pad=1),
    "conv_depthwise_twice": windows("Conv", conv, (1, 3, 7, 7), (6, 1, 3, 3), True, group=3, stride=2),
    "conv_row": windows("Conv", conv, (2, 3, 11), (4, 3, 3), True, pad=2),
    "conv_volume": windows("Conv", conv, (1, 2, 5, 4, 6), (3, 2, 3, 2, 3), True, pad=1, stride=2),
    "up": windows("ConvTranspose", conv_transpose, (1, 4, 5, 4), (4, 3, 3, 3), True, stride=2, pad=1),
    "up_grouped": windows("ConvTranspose", conv_transpose, (1, 4, 4, 4), (4, 3, 2, 2), True, group=2, dilation=2),
    "up_row": windows("ConvTranspose", conv_transpose, (2, 3, 5), (3, 2, 4), False, stride=3),
    "up_volume": windows("ConvTranspose", conv_transpose, (1, 2, 3, 4, 3), (2, 3, 2, 2, 3), True, stride=2, pad=1),
    "gemm": ("Gemm", {}, (5, 19), (19, 7), 1, 7, lambda a, b, c: a @ b + c),
    "gemm_transposed": ("Gemm", {"transB": 1, "alpha": 0.5, "beta": 2.0}, (1, 33), (18, 33), 0, 18,
                        lambda a, b, c: a @ b.T / 2 + 2 * c),
    "gemm_both": ("Gemm", {"transA": 1, "transB": 1}, (12, 9), (6, 12), 0, 0, lambda a, b, c: a.T @ b.T),
    "matmul": ("MatMul", {}, (2, 3, 4, 16), (16, 20), 1, 0, lambda a, b, c: a @ b),
    "matmul_batch": ("MatMul", {}, (2, 3, 5), (2, 5, 4), None, 0, lambda a, b, c: a @ b),
    "matmul_vector": ("MatMul", {}, (3, 6), (6,), None, 0, lambda a, b, c: a @ b),
}
# Of x, w and y: storage, zero point; "channels" has a scale, and other zero points, for each. `given`: w is an input.
FORMS = {
    "static": {"x": ("uint8", 131), "w": ("int8", 0), "y": ("int8", 3), "channels": True},
    "corner": {"x": ("int8", -128), "w": ("int8", 0), "y": ("uint8", 255)},
    "to_float": {"x": ("int8", 7), "w": ("int8", 0), "channels": True},
    "to_int16": {"x": ("uint8", 0), "w": ("int8", 0), "y": ("int16", -5)},
    "unsigned": {"x": ("uint8", 131), "w": ("uint8", 128), "y": ("uint8", 100)},
    "offset": {"x": ("int8", 127), "w": ("int8", -128), "y": ("uint8", 3)},
    "offsets": {"x": ("uint8", 255), "w": ("uint8", 3), "y": ("int8", 3), "channels": True},
    "packed4": {"x": ("uint8", 100), "w": ("int4", 0), "y": ("uint8", 3), "channels": True},
    "packed4_offset": {"x": ("int8", 100), "w": ("uint4", 7), "y": ("int8", 3)},
    "packed2": {"x": ("int8", 0), "w": ("int2", -1), "y": ("int16", 3)},
    "int16": {"x": ("int16", 0), "w": ("int8", 0), "y": ("int16", 0), "channels": True},
    "wide": {"x": ("uint16", 40000), "w": ("int16", 12), "y": ("uint16", 30000)},
    "given": {"x": ("uint8", 131), "w": ("int8", 0), "y": ("int8", 3), "given": True},
    "given_offset": {"x": ("int8", 5), "w": ("int8", -7), "given": True},
    "given_unsigned": {"x": ("uint8", 5), "w": ("uint8", 130), "y": ("uint8", 3), "given": True},
    "dynamic": {"x": "dynamic", "w": ("int8", 0), "channels": True},
    "dynamic_offset": {"x": "dynamic", "w": ("uint8", 120)},
    "dynamic_packed": {"x": "dynamic", "w": ("int4", 3)},
}
X_SCALE, W_SCALE, Y_SCALE = 2.0**-4, 2.0**-6, 2.0**-3


def text(v):
    """An array or a number as .qir has it."""
    return f"[{', '.join(map(text, v))}]" if isinstance(v, (list, np.ndarray)) else str(v)


class Form:
    """The nodes of one form: their text, and data with the results that they have."""

    def __init__(self, form):
        self.form, self.rng = form, np.random.default_rng(5)
        self.lines, self.inputs, self.outputs, self.data, self.want = [], [], [], {}, {}
        for name, node in NODES.items():
            if not (form["x"] == "dynamic" and (node[0] == "ConvTranspose" or "transA" in node[1] or name == "matmul_vector")):
                self.add(name, *node)

    def integers(self, storage, shape):
        """All of the range, both ends among them."""
        low, high = RANGES[storage]
        v = self.rng.integers(low, high, shape, endpoint=True)
        v.flat[0], v.flat[-1] = low, high
        return v

    def operand(self, name, shape):
        if self.form["x"] != "dynamic":
            storage, zero = self.form["x"]
            v = self.integers(storage, shape)
            self.inputs.append(f"%{name} : {storage}q<{X_SCALE}, {zero}>{list(shape)}")
            self.data[name] = v.astype(storage)
            return f"%{name}", (v - zero) * X_SCALE
        real = (self.integers("uint8", shape) - 90) * X_SCALE
        self.inputs.append(f"%{name} : float{list(shape)}")
        self.lines.append(f"%{name}q : uint8q<dynamic>{list(shape)} = QuantizeLinear(%{name})")
        self.data[name] = real.astype(np.float32)
        return f"%{name}q", real

    def weights(self, name, shape, axis):
        storage, zero = self.form["w"]
        v, scale, zeros = self.integers(storage, shape), W_SCALE, zero
        parameters = f"{scale}, {zero}"
        if self.form.get("channels") and axis is not None:
            along = [1] * len(shape)
            along[axis] = n = shape[axis]
            scale = W_SCALE / 2.0 ** (np.arange(n) % 3)
            zeros = np.array([zero and (zero + 5 * i) % 16 for i in range(n)])
            parameters = f"{text(scale)}, {text(zeros)}, axis={axis}"
            scale, zeros = scale.reshape(along), zeros.reshape(along)
        kind = f"{storage}q<{parameters}>{list(shape)}"
        if self.form.get("given"):
            self.inputs.append(f"%{name} : {kind}")
            self.data[name] = v.astype(storage)
        else:
            self.lines.append(f"const %{name} : {kind} = {text(v.ravel())}")
        return f"%{name}", (v - zeros) * scale

    def add(self, name, op, attributes, x_shape, w_shape, axis, channels, function):
        x, x_real = self.operand(f"{name}_x", x_shape)
        w, w_real = self.weights(f"{name}_w", w_shape, axis)
        operands, bias = [x, w], None
        if channels:
            bias = self.rng.integers(-60, 60, channels) / 4
            self.lines.append(f"const %{name}_b : float[{channels}] = {text(bias)}")
            operands.append(f"%{name}_b")
        real = function(x_real, w_real, bias)
        storage, zero = self.form.get("y", (None, 0))
        words = ", ".join(f"{k}={v}" for k, v in attributes.items())
        kind = f"{storage}q<{Y_SCALE}, {zero}>" if storage else "float"
        self.outputs.append(f"%{name}")
        self.lines.append(f"%{name} : {kind}{list(real.shape)} = {op}({', '.join(operands)})" + (f" <{words}>" if words else ""))
        self.want[name] = (np.clip(np.rint(real / Y_SCALE) + zero, *RANGES[storage]) if storage else real.astype(np.float32))

    def qir(self):
        return "\n".join(["qir 1", 'import "" 21', f"graph @g ({', '.join(self.inputs)}) -> ({', '.join(self.outputs)}) {{",
                          *self.lines, "}", ""])


class MacForms(OracleCase):
    expected_seconds = 4

    @for_each(*FORMS)
    def test(self, name):
        form = Form(FORMS[name])
        path, data, source = (self.scratch / f"{name}{end}" for end in (".qir", ".npz", ".c"))
        path.write_text(form.qir())
        # a sample along a first axis
        inputs = {k: v[None] for k, v in form.data.items()}
        got = qxc_outputs(path, inputs, self.scratch)
        self.assertEqual(set(got), set(form.want))
        for key, want in form.want.items():
            with self.subTest(key):
                np.testing.assert_array_equal(got[key].ravel(), want.ravel())
        np.savez(data, **inputs)
        qxc(path, "-emit=c", "-testbench", f"-input={data}", "-quiet", "-o", source)
        for build, flags in BUILDS.items():
            with self.subTest(build=build):
                program = source.with_suffix("." + build)
                subprocess.run(["gcc", *SANITIZED, *flags, "-o", program, source, "-lm"], check=True)
                done = subprocess.run([program], capture_output=True, text=True, check=False)
                self.assertIn("1 of 1 samples right", done.stdout, done.stderr[-2000:])
