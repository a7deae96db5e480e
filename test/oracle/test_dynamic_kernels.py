"""Products whose input is quantized as it comes (DynamicQuantizeLinear, MatMulInteger, ConvInteger), on random
small shapes: the packed kernels, over all micro-kernels of this processor, and the general ones. All give the
bits of the definition in float32 of numpy: as `qxc run`, and as each other.
"""

import random
import shutil
import subprocess

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from common import WARNINGS, OracleCase, for_each, qxc
from exact import conv
from test_channels_last import BUILDS, complaints, dilated, runs_here

SEEDS, LAYERS = range(3), 40
FLOATS = {build: flags for build, flags in BUILDS.items() if "-DQXC_INTEGER_ONLY" not in flags}


def quantized(x):
    """ONNX's DynamicQuantizeLinear: integers, scale and zero point."""
    low, high = min(np.float32(0), x.min()), max(np.float32(0), x.max())
    scale = np.float32(high - low) / np.float32(255) if high > low else np.float32(1)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    return np.clip(np.rint(x / scale) + zero, 0, 255), scale, zero


class Layers:
    """Layers side by side, each with an input of its own; `want` has what each has to give for `feeds`."""

    def __init__(self, seed, long=()):
        self.pick, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []
        self.feeds, self.want, self.about = {}, {}, {}
        for inner in long:
            self.product((1, inner, 40))
        for _ in range(0 if long else LAYERS):
            self.pick.choice([self.product, self.convolved, self.convolved])()

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, operands, results=1, **attributes):
        names = [f"{op.lower()}{len(self.nodes)}_{i}" for i in range(results)]
        self.nodes.append(helper.make_node(op, operands, names, **attributes))
        return names if results > 1 else names[0]

    def input(self, shape):
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, T.FLOAT, shape))
        data = self.rng.normal(self.pick.choice([0, 0, 2, -5]), 1, shape).astype(np.float32)
        if self.pick.random() < 0.1:
            data[:] = self.pick.choice([0, 1])
        self.feeds[name] = data
        return self.node("DynamicQuantizeLinear", [name], 3), quantized(data)

    def weights(self, shape, channels):
        """(operand, zero point's operands, integers less their zero point)."""
        kind = self.pick.choice([np.int8, np.int8, np.uint8])
        info, zero = np.iinfo(kind), np.zeros((), kind)
        w = self.rng.integers(info.min, info.max, shape, kind, endpoint=True)
        if kind == np.uint8:
            zero = np.array(self.pick.choice([128, 127, 120, 0, 255]), kind)
            if self.pick.random() < 0.3:
                w = np.clip(w, int(zero) - 100, int(zero) + 100).astype(kind)
        zeros = [self.constant(zero)] if zero or self.pick.random() < 0.5 else []
        return self.constant(w), zeros, w.astype(np.int64) - int(zero)

    def finish(self, name, sums, sx, scale, bias):
        """Cast, Mul of both scales, Add, as quantize_dynamic of onnxruntime writes them."""
        name = self.node("Cast", [name], to=T.FLOAT)
        both = self.node("Mul", [sx[0], self.constant(scale)])
        name = self.node("Mul", [name, both])
        want = sums.astype(np.float32) * (sx[1] * scale)
        if bias is not None:
            name = self.node("Add", [name, self.constant(bias)])
            want = want + bias
        self.outputs.append(helper.make_tensor_value_info(name, T.FLOAT, want.shape))
        self.want[name] = want
        self.about[name] = [n for n in self.nodes if n.op_type.endswith("Integer")]

    def scale(self, channels):
        shape = (channels,) if self.pick.random() < 0.5 else ()
        return self.rng.uniform(0.001, 0.01, shape).astype(np.float32)

    def bias(self, shape):
        return self.rng.normal(0, 1, shape).astype(np.float32) if self.pick.random() < 0.6 else None

    def product(self, shape=None):
        rows, inner, columns = shape or (self.pick.randint(1, n) for n in (20, 140, 70))
        x, (q, sx, xz) = self.input((rows, inner))
        w, zeros, real = self.weights((inner, columns), columns)
        name = self.node("MatMulInteger", [x[0], w, x[2], *zeros])
        self.finish(name, (q - xz) @ real, (x[1], sx), self.scale(columns), self.bias(columns))

    def convolved(self):
        pick = self.pick
        group = pick.choice([1, 1, 1, 2])
        ic, oc = (pick.randint(1, 40 // group) * group for _ in range(2))
        if pick.random() < 0.4:
            oc = group = ic = pick.randint(1, 70)
        kernel = [pick.choice([1, 1, 3, 3, 2, 5])] * 2 if pick.random() < 0.8 else [1, 3]
        strides = [pick.choice([1, 1, 2])] * 2
        dilations = [pick.choice([1, 1, 1, 2])] * 2
        pads = [pick.randint(0, k - 1) for k in kernel * 2]
        size = [(pick.randint(1, 14) - 1) * s + (k - 1) * d + 1 for k, s, d in zip(kernel, strides, dilations)]
        x, (q, sx, xz) = self.input((1, ic, *size))
        w, zeros, real = self.weights((oc, ic // group, *kernel), oc)
        name = self.node("ConvInteger", [x[0], w, x[2], *zeros], kernel_shape=kernel, strides=strides, pads=pads,
                         dilations=dilations, group=group)
        sums = conv({"group": group, "strides": strides, "pads": pads}, q - xz,
                    dilated(real.astype(np.float64), dilations), np.zeros(oc))
        scale, bias = self.scale(oc), self.bias((oc, 1, 1))
        self.finish(name, sums, (x[1], sx), scale.reshape(-1, 1, 1) if scale.ndim else scale, bias)

    def save(self, path):
        graph = helper.make_graph(self.nodes, "layers", self.inputs, self.outputs, self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


class DynamicKernels(OracleCase):
    expected_seconds = 25

    def test_no_warnings(self):
        folder = self.scratch / "warnings"
        folder.mkdir()
        Layers(3).save(folder / "m.onnx")
        source = folder / "model.c"
        qxc(folder / "m.onnx", "-emit=c", "-name=m", "-no-sync", "-quiet", "-o", source)
        for compiler, *options in ("gcc", "-O2", "-c", "-o", folder / "m.o"), ("clang-19", "-fsyntax-only"):
            for build, flags in FLOATS.items() if shutil.which(compiler) else ():
                with self.subTest(compiler=compiler, build=build):
                    done = subprocess.run([compiler, "-std=c99", *options, *WARNINGS, *flags, source],
                                          capture_output=True, text=True, check=False)
                    self.assertEqual((0, ""), (done.returncode, done.stderr[:3000]))

    @for_each(*SEEDS)
    def test_layers(self, seed):
        text = self.check(Layers(seed), f"layers{seed}")
        for kernel in "matmul_packed", "conv2d_nhwc", "depthwise_nhwc":
            self.assertIn(f"{kernel}_q_u8_s8_f32", text)

    @for_each(1, 2, 3)
    def test_one_long_row(self, seed):
        """Longer than what lies on the stack for a row, with zero points that stay: sums of the row are needed."""
        layers = Layers(seed, (2047, 2049, 3072, 5000, 20000))
        self.assertIn("matmul_packed_q_u8_s8_f32", self.check(layers, f"long{seed}", ("-fsanitize=undefined",)))

    def check(self, layers, name, flags=()):
        """Bits of the run and of the C of every build against numpy's; returns the C."""
        folder = self.scratch / name
        folder.mkdir()
        layers.save(folder / "m.onnx")
        source = folder / "model.c"
        qxc(folder / "m.onnx", "-emit=c", "-name=m", "-no-sync", "-quiet", "-o", source)
        builds = {build: ("-O1", *flags, *FLOATS[build]) for build in filter(runs_here, FLOATS)}
        self.assertEqual([], complaints(layers, folder, source, builds)[:20])
        return source.read_text()
