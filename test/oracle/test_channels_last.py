"""The integer kernels on channels last and packed weights of 8 and 4 bits, on random small shapes.

Each has micro-kernels for some processors beside portable C. All must give the same bits: as `qxc run`,
as each other, and as the definition in numpy. Compiling costs most: one program holds many layers, and is
compiled with -O0; test_emitted_c has the micro-kernels at higher levels.
"""

import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from cmodel import CModel
from common import WARNINGS, OracleCase, for_each, qxc, qxc_outputs
from exact import average_pool, conv, max_pool
from rounding import ROUND, rounded

SEEDS, LAYERS = range(2), 100
BUILDS = {
    "plain": (),
    "AVX2": ("-mavx2",),
    "native": ("-march=native",),
    "portable": ("-U__SSE2__",),
    "integer only": ("-mavx2", "-DQXC_INTEGER_ONLY"),
    "AVX512": ("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq"),
    "AVX512, integer only": ("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-DQXC_INTEGER_ONLY"),
    "VNNI": ("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni"),
}
EIGHT = (np.int8, np.uint8)


def runs_here(build, builds=BUILDS):
    """Whether this processor has all instructions of the build."""
    about = Path("/proc/cpuinfo").read_text().replace("_", "").split()
    return all(flag.removeprefix("-m") in about for flag in builds[build] if flag.startswith("-mavx"))


def complaints(layers, folder, source, builds, *options):
    """Where `qxc run` of folder/m.onnx with the options, and its C with the flags of each build, have other bits than
    the layers want."""
    sample = {name: a if len(a) == 1 else a[None] for name, a in layers.feeds.items()}
    got = {"qxc run": qxc_outputs(folder / "m.onnx", sample, folder, *options)}
    for build, flags in builds.items():
        model = CModel(source, "gcc", flags)
        got[build] = dict(zip(layers.want, model.run(*layers.feeds.values()), strict=True))
    found = []
    for name, want in layers.want.items():
        for build, values in got.items():
            differ = np.count_nonzero(values[name].ravel() != want.ravel())
            if differ:
                node = helper.printable_node(layers.about[name][-1])
                found.append(f"{build}: {differ} of {want.size} differ, {want.dtype}: {node}")
    return found


def dilated(w, by):
    """The kernel with zeros between its taps."""
    wide = np.zeros((*w.shape[:2], *((n - 1) * d + 1 for n, d in zip(w.shape[2:], by))), w.dtype)
    wide[:, :, ::by[0], ::by[1]] = w
    return wide


class Layers:
    """Layers side by side; `want` has what each has to give for `feeds`.

    Scales of activations are powers of two: of sums and averages float64 then holds exactly what is
    to be rounded, ties too. `how` is that of -requant; all but exact have 8-bit kernels only, and
    shifts need powers of two for the scales of weights too.
    """

    def __init__(self, seed, how="exact", count=LAYERS):
        self.how = how
        self.pick, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []
        self.feeds, self.want, self.about = {}, {}, {}
        for _ in range(count):
            self.pick.choice([self.spatial] * 10 + [self.product, self.transposed] * 2 + [self.pair])()

    # ---- pieces

    def name(self, stem):
        return f"{stem}_{len(self.nodes)}_{len(self.constants)}"

    def constant(self, array):
        name = self.name("c")
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def stored(self, kind, integers):
        """Of unsigned 4 bits with 8 for zero."""
        name, raised = self.name("c"), 8 if kind == T.UINT4 else 0
        self.constants.append(helper.make_tensor(name, kind, integers.shape, integers.ravel() + raised))
        return name

    def node(self, op, operands, **attributes):
        name = self.name(op.lower())
        self.nodes.append(helper.make_node(op, operands, [name], **attributes))
        return name

    def grid(self, dtypes, scale):
        """(operands, scale, zero point), the scale near the one given."""
        dtype, scale = self.pick.choice(dtypes), np.float32(2.0 ** round(np.log2(scale)))
        info = np.iinfo(dtype)
        zero = dtype(self.pick.choice([info.min, info.max, 0, self.pick.randint(info.min, info.max)]))
        return [self.constant(scale), self.constant(zero)], scale, zero

    def real(self, integers, grid):
        return (integers.astype(np.int64) - int(grid[2])) * np.float64(grid[1])

    def input(self, shape):
        """(float value, its integers, its grid)."""
        grid = self.grid(EIGHT, 2.0 ** self.pick.randint(-7, -4))
        info, name = np.iinfo(grid[2].dtype), self.name("x")
        data = self.rng.integers(info.min, info.max, shape, grid[2].dtype, endpoint=True)
        kind = helper.np_dtype_to_tensor_dtype(data.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        self.feeds[name] = data
        return self.node("DequantizeLinear", [name, *grid[0]]), data, grid

    def output(self, name, want):
        kind = helper.np_dtype_to_tensor_dtype(want.dtype)
        self.outputs.append(helper.make_tensor_value_info(name, kind, want.shape))
        self.want[name] = want
        self.about[name] = [n for n in self.nodes if n.op_type not in
                            ("QuantizeLinear", "DequantizeLinear")][-2:]

    def quantize(self, name, integers, grid, shown):
        name = self.node("QuantizeLinear", [name, *grid[0]])
        if shown:
            self.output(name, integers)
        return name

    def weights(self, shape, channels, axis, x_grid):
        """(float weights, bias, integers of both, the float32 multiplier of their sums)."""
        per_channel = self.pick.random() < 0.5
        kind = self.pick.choice([T.INT8, T.INT8, T.INT4, T.UINT4])
        least, most = (-127, 127) if kind == T.INT8 else (-8, 7)
        w = self.rng.integers(least, most, shape, np.int8, endpoint=True)
        scale = self.rng.uniform(0.2, 2, channels if per_channel else ()).astype(np.float32) / (most + 1)
        if self.how == "shift" or self.pick.random() < 0.2:
            scale = np.exp2(np.round(np.log2(scale))).astype(np.float32)
        at = {"axis": axis} if per_channel else {}
        real = self.node("DequantizeLinear", [
            self.stored(kind, w), self.constant(scale),
            self.stored(kind, np.zeros(scale.shape, np.int8))], **at)
        bias, operands = np.zeros(channels, np.int32), [real]
        scale = x_grid[1] * scale
        if self.pick.random() < 0.7:
            bias = self.rng.integers(-9999, 9999, channels, np.int32)
            at = {"axis": 0} if per_channel else {}
            operands.append(self.node("DequantizeLinear", [
                self.constant(bias), self.constant(scale),
                self.constant(np.zeros(scale.shape, np.int32))], **at))
        return operands, w, bias, scale

    def sums_to(self, dtypes, sums, scale):
        """The grid for the sums, and the integers that requantization gives."""
        dtype = self.pick.choice(dtypes if self.how == "exact" else EIGHT)
        steps = 50 if dtype in EIGHT else 9000
        grid = self.grid([dtype], max(1e-6, np.std(sums) * float(np.mean(scale)) / steps))
        return grid, self.requantized(sums, scale / grid[1], grid)

    def requantized(self, sums, multiplier, grid, how=None):
        """Sums times the multiplier, rounded; scales are such that float32 and double agree on it."""
        return rounded(ROUND[how or self.how](sums, multiplier), (None, 1, grid[2]))

    # ---- layers

    def spatial(self):
        name, integers, grid = self.convolved()
        follow = self.pick.choice([None, None, self.max_pool, self.average_pool, self.global_average,
                                   self.concat, self.add])
        follows = follow is not None and integers.dtype in EIGHT
        shown = not follows or self.pick.random() < 0.3
        name = self.quantize(name, integers, grid, shown)
        if follows:
            follow(self.node("DequantizeLinear", [name, *grid[0]]), integers, grid)

    def convolved(self):
        pick = self.pick
        group, depthwise = pick.choice([1, 1, 1, 2, 3]), pick.random() < 0.3
        ic = pick.randint(1, 40 // group) * group
        oc = pick.randint(1, 40 // group) * group
        if depthwise:
            oc = group = ic
        kernel = [pick.choice([1, 2, 3, 3, 4, 5, 6, 7]) for _ in range(2)]
        strides = [pick.choice([1, 1, 2, 3]) for _ in range(2)]
        dilations = [pick.choice([1, 1, 1, 2]) for _ in range(2)]
        if depthwise and pick.random() < 0.5:  # the usual one, of which some processors know more
            oc = group = ic = pick.choice([pick.randint(1, 70), 4, 8, 16])
            kernel, dilations, strides[1] = [3, 3], [pick.randint(1, 2), 1], pick.randint(1, 2)
        pads = [pick.randint(0, k - 1) for k in kernel * 2]
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
        out = [pick.randint(1, 9), pick.choice([pick.randint(1, 9), pick.randint(5, 40)])]
        size = [max(1, (o - 1) * s + r - pads[i] - pads[i + 2])
                for i, (o, s, r) in enumerate(zip(out, strides, reach))]
        x, data, x_grid = self.input((1, ic, *size))
        operands, w, bias, scale = self.weights((oc, ic // group, *kernel), oc, 0, x_grid)
        name = self.node("Conv", [x, *operands], kernel_shape=kernel, strides=strides, pads=pads,
                         dilations=dilations, group=group)
        raised = data.astype(np.float64) - int(x_grid[2])
        sums = conv({"group": group, "strides": strides, "pads": pads}, raised,
                    dilated(w.astype(np.float64), dilations), bias)
        grid, integers = self.sums_to((*EIGHT, *EIGHT, np.int16, np.uint16), sums,
                                      scale.reshape(-1, 1, 1))
        return name, integers, grid

    def transposed(self):
        """ConvTranspose: strides of more and less than the kernel, outputs cut off and padded."""
        pick = self.pick
        ic, oc, size = pick.randint(1, 40), pick.randint(1, 40), [pick.randint(1, 9), pick.choice([pick.randint(1, 9), 21])]
        kernel, strides = ([pick.randint(1, 4) for _ in range(2)] for _ in range(2))
        if pick.random() < 0.5:  # the usual ones, without much to fill up
            strides, kernel, oc = [2, 2], [pick.choice([2, 4])] * 2, pick.choice([16, 30, 32, 48])
        more = [pick.randint(0, s - 1) for s in strides]
        whole = [(i - 1) * s + k + m for i, s, k, m in zip(size, strides, kernel, more)]
        pads = [pick.randint(0, min(k - 1, (w - 1) // 2)) for k, w in zip(kernel * 2, whole * 2)]
        x, data, x_grid = self.input((1, ic, *size))
        operands, w, bias, scale = self.weights((ic, oc, *kernel), oc, 1, x_grid)
        name = self.node("ConvTranspose", [x, *operands], kernel_shape=kernel, strides=strides, pads=pads,
                         output_padding=more)
        raised, sums = data.astype(np.float64) - int(x_grid[2]), np.zeros((1, oc, *whole))
        for y in range(kernel[0]):
            for z in range(kernel[1]):
                sums[:, :, y:y + size[0] * strides[0]:strides[0], z:z + size[1] * strides[1]:strides[1]] += np.einsum(
                    "nchw,co->nohw", raised, w[:, :, y, z].astype(np.float64))
        sums = sums[:, :, pads[0]:whole[0] - pads[2], pads[1]:whole[1] - pads[3]] + bias.reshape(1, -1, 1, 1)
        grid, integers = self.sums_to((*EIGHT, *EIGHT, np.int16), sums, scale.reshape(-1, 1, 1))
        self.quantize(name, integers, grid, True)

    def product(self):
        rows, inner, columns = (self.pick.randint(1, n) for n in (20, 70, 40))
        x, data, x_grid = self.input((rows, inner))
        gemm = self.pick.random() < 0.5
        flip = gemm and self.pick.random() < 0.5
        operands, w, bias, scale = self.weights((columns, inner) if flip else (inner, columns),
                                                columns, 0 if flip else 1, x_grid)
        if gemm:
            name = self.node("Gemm", [x, *operands], transB=int(flip))
        else:
            name, bias = self.node("MatMul", [x, operands[0]]), 0
        sums = (data.astype(np.float64) - int(x_grid[2])) @ (w.T if flip else w) + bias
        grid, integers = self.sums_to((*EIGHT, np.int16), sums, scale)
        self.quantize(name, integers, grid, True)

    def pair(self):
        """A product of two values, which attention has: batches that broadcast, transposed columns, rows of all numbers."""
        pick = self.pick
        batch = pick.choice([(), (3,), (2, 3)])
        rows, inner, columns = pick.choice([pick.randint(1, 20), 8]), pick.randint(1, 70), pick.choice([pick.randint(1, 70), 32])
        flip = not batch and pick.random() < 0.5
        if not batch:  # enough of them that packing is worth its memory
            rows, inner, columns = pick.randint(1, 90), pick.randint(1, 40), pick.randint(60, 120)
        a, x, x_grid = self.input((*batch, rows, inner))
        other = batch[1:] if pick.random() < 0.3 else batch
        b, y, y_grid = self.input((columns, inner) if flip else (*other, inner, columns))
        name = self.node("Gemm", [a, b], transB=1) if flip else self.node("MatMul", [a, b])
        x, y = x.astype(np.float64) - int(x_grid[2]), y.astype(np.float64) - int(y_grid[2])
        sums, scale = x @ (y.T if flip else y), np.float32(x_grid[1] * y_grid[1])
        if self.how == "exact" and pick.random() < 0.25:
            self.output(name, (sums * scale).astype(np.float32))
            return
        grid, integers = self.sums_to((*EIGHT, *EIGHT, np.int16), sums, scale)
        self.quantize(name, integers, grid, True)

    def pooling(self, data):
        kernel = [self.pick.randint(1, min(4, n)) for n in data.shape[2:]]
        return {"kernel_shape": kernel, "strides": [self.pick.randint(1, 2) for _ in range(2)],
                "pads": [self.pick.randint(0, k - 1) for k in kernel * 2]}

    def max_pool(self, x, data, grid):
        at = self.pooling(data)
        want = max_pool(at, data.astype(np.float64)).astype(data.dtype)
        self.quantize(self.node("MaxPool", [x], **at), want, grid, True)

    def average_pool(self, x, data, grid):
        at = self.pooling(data) | {"count_include_pad": self.pick.randint(0, 1)}
        to = self.grid([data.dtype.type], grid[1])
        raised = self.real(data, grid) / float(grid[1])
        want = rounded(average_pool(at, raised) * float(grid[1]), to)
        self.quantize(self.node("AveragePool", [x], **at), want, to, True)

    def global_average(self, x, data, grid):
        to = self.grid([data.dtype.type], grid[1])
        total = (data.astype(np.int64) - int(grid[2])).sum((2, 3), keepdims=True)
        count = data.shape[2] * data.shape[3]
        multiplier = float(grid[1]) / (float(to[1]) * count)
        want = self.requantized(total, multiplier, to, "exact" if self.how == "shift" else self.how)
        self.quantize(self.node("GlobalAveragePool", [x]), want, to, True)

    def concat(self, x, data, grid):
        other, more, its = self.input((1, self.pick.randint(1, 9), *data.shape[2:]))
        to = self.grid([data.dtype.type], grid[1])
        both = [(x, self.real(data, grid)), (other, self.real(more, its))]
        self.pick.shuffle(both)
        want = rounded(np.concatenate([real for _, real in both], 1), to)
        self.quantize(self.node("Concat", [name for name, _ in both], axis=1), want, to, True)

    def add(self, x, data, grid):
        shape = self.pick.choice([data.shape, data.shape, (1, data.shape[1], 1, 1)])
        other, more, its = self.input(shape)
        to = self.grid([data.dtype.type], max(grid[1], its[1]))
        want = rounded(self.real(data, grid) + self.real(more, its), to)
        self.quantize(self.node("Add", [x, other]), want, to, True)

    # ---- the model

    def save(self, path):
        graph = helper.make_graph(self.nodes, "layers", self.inputs, self.outputs, self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)],
                                    ir_version=10), path)


class ChannelsLast(OracleCase):
    expected_seconds = 20

    @for_each(*SEEDS)
    def test_layers(self, seed):
        self.compare(seed, "exact", BUILDS)

    @for_each("single", "double", "shift")
    def test_rounding(self, how):
        self.compare(7, how, ("plain", "AVX2", "AVX512", "native", "portable"))

    @for_each("exact", "single", "double", "shift")
    def test_no_warnings(self, how):
        """Also of what this processor cannot run; of others, test_cross."""
        folder = self.scratch / f"warnings-{how}"
        folder.mkdir()
        Layers(3, how, 16).save(folder / "m.onnx")
        source = self.emit(folder, how)
        for compiler, *options in ("gcc", "-O1", "-c", "-o", folder / "m.o"), ("clang-19", "-fsyntax-only"):
            if not shutil.which(compiler):
                continue
            for build, flags in BUILDS.items():
                with self.subTest(compiler=compiler, build=build):
                    done = subprocess.run([compiler, "-std=c99", *options, *WARNINGS, *flags, source],
                                          capture_output=True, text=True, check=False)
                    self.assertEqual((0, ""), (done.returncode, done.stderr[:3000]))

    @staticmethod
    def emit(folder, how):
        qxc(folder / "m.onnx", "-emit=c", "-name=m", f"-requant={how}", "-no-sync", "-quiet", "-o",
            folder / "model.c")
        return folder / "model.c"

    def compare(self, seed, how, builds):
        layers, folder = Layers(seed, how), self.scratch / f"{how}{seed}"
        folder.mkdir()
        layers.save(folder / "m.onnx")
        flags = {build: ("-O0", *BUILDS[build]) for build in filter(runs_here, builds)}
        source = self.emit(folder, how)
        self.assertLess(2, source.read_text().count(" qk_matmul_pair_q_"), "products of two values take another kernel")
        self.assertEqual([], complaints(layers, folder, source, flags, f"-requant={how}")[:20])
