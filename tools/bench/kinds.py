"""The speed of emitted C beside onnxruntime on kinds of models that the nine are none of: attention, recurrent
layers, SiLU with squeeze-and-excitation, in float and with inputs quantized as they come."""

import os
import pathlib

import contenders as c
import numpy as np
import onnx
from cmodel import FLAGS, CModel
from common import qxc, session
from networks import Net, mobilenet_v2
from onnx import TensorProto as T
from page import table

KINDS = """\
Models of other kinds, as above: float, dynamic, as onnxruntime's `quantize_dynamic` writes them (weights int8, with
ConvInteger uint8, as it recommends), and static, calibrated by qxc: the C has integers throughout, onnxruntime the QDQ form that
qxc writes for it. One thread, memory bound beforehand; the ratio, the median of the rounds', says how many times as long as
the C of qxc onnxruntime takes. The trained networks have one sample.

{table}"""

TRAINED = ("vit", "charlm", "lstm", "cnn", "relu6", "unet")
DYNAMIC = {"vit": "QInt8", "charlm": "QInt8", "mobilenet_v2": "QUInt8", "silu_se": "QUInt8"}


class SiluSe(Net):
    """Inverted residuals with SiLU and squeeze-and-excitation, in the manner of EfficientNet."""

    STAGES = ((16, 1), (24, 2), (24, 1), (40, 2), (40, 1), (80, 2), (80, 1))  # channels, stride

    def conv(self, x, channels, out, kernel=1, stride=1, group=1):
        spread = np.sqrt(2 * group / (channels * kernel**2))
        w = self.const(self.rng.normal(0, spread, (out, channels // group, kernel, kernel)))
        return self.op("Conv", x, w, self.const(self.rng.normal(0, 0.1, out)), kernel_shape=[kernel] * 2,
                       strides=[stride] * 2, pads=[kernel // 2] * 4, group=group)

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def block(self, x, channels, out, stride):
        inner = 4 * channels
        y = self.silu(self.conv(x, channels, inner))
        y = self.silu(self.conv(y, inner, inner, 3, stride, inner))
        means = self.silu(self.conv(self.op("GlobalAveragePool", y), inner, inner // 4))
        y = self.op("Mul", y, self.op("Sigmoid", self.conv(means, inner // 4, inner)))
        y = self.conv(y, inner, out)
        return self.op("Add", x, y) if stride == 1 and channels == out else y

    def build(self):
        x, channels = self.silu(self.conv("image", 3, 16, 3, 2)), 16
        for out, stride in self.STAGES:
            x, channels = self.block(x, channels, out, stride), out
        x = self.op("Flatten", self.op("GlobalAveragePool", self.silu(self.conv(x, channels, 320))))
        y = self.op("Gemm", x, self.const(self.rng.normal(0, 0.05, (320, 10))), self.const(np.zeros(10)))
        return self.model([("image", T.FLOAT, [1, 3, 96, 96])], [("classes", y)], 17)


class Gru(Net):
    """Two layers over 50 steps, such as a keyword spotter has."""

    STEPS, SIZE, HIDDEN = 50, 40, 64

    def build(self):
        x, size, hidden = "steps", self.SIZE, self.HIDDEN
        for _ in range(2):
            w = self.const(self.rng.normal(0, 1 / np.sqrt(size), (1, 3 * hidden, size)))
            r = self.const(self.rng.normal(0, 1 / np.sqrt(hidden), (1, 3 * hidden, hidden)))
            y = self.op("GRU", x, w, r, self.const(self.rng.normal(0, 0.1, (1, 6 * hidden))), hidden_size=hidden,
                        linear_before_reset=1)
            x, size = self.op("Squeeze", y, self.ints(1)), hidden
        last = self.op("Gather", x, self.const(-1, np.int64), axis=0)
        y = self.op("Gemm", last, self.const(self.rng.normal(0, 0.1, (hidden, 12))), self.const(np.zeros(12)))
        return self.model([("steps", T.FLOAT, [self.STEPS, 1, self.SIZE])], [("words", y)], 17)


def beside(name):
    return pathlib.Path(os.environ.get("QXC_SHARED", "../shared"), "models/trained", name)


def trained(name):
    """One of those of QXC_SHARED for one sample, or None where they are not there."""
    path = beside(f"{name}.onnx")
    if not path.exists():
        return None
    model = onnx.load(path)
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[0].dim_value = 1
    return model


def kinds():
    for name in TRAINED:
        model = trained(name)
        if model:
            yield name, model
    yield "gru", Gru(32).build()
    yield "silu_se", SiluSe(31).build()
    yield "mobilenet_v2", mobilenet_v2()[0]


def forms(folder, name, model):
    """(form, what qxc makes the C of, the file for onnxruntime)"""
    path = folder / f"{name}_kind.onnx"
    onnx.save(model, path)
    yield "float", [path], path
    if name in DYNAMIC:
        from onnxruntime.quantization import QuantType, quantize_dynamic
        made = folder / f"{name}_dynamic.onnx"
        quantize_dynamic(path, made, weight_type=QuantType[DYNAMIC[name]])
        yield "dynamic", [made], made
    if name in TRAINED:
        made, calibrated = folder / f"{name}_static.onnx", [path, f"-calib={beside(f'{name}.calib.npz')}"]
        qxc(*calibrated, "-emit=qdq", "-quiet", "-o", made)
        yield "static", calibrated, made


def sample(model):
    rng = np.random.default_rng(1)
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [d.dim_value for d in kind.shape.dim]
        yield value.name, (rng.normal(0, 1, shape).astype(np.float32) if kind.elem_type == T.FLOAT
                           else rng.integers(0, 20, shape))


def feeds_of(name, path):
    if name not in TRAINED:
        return dict(sample(onnx.load(path)))
    with np.load(beside(f"{name}.test.npz")) as data:
        return {value.name: data[value.name][:1] for value in onnx.load(path).graph.input}


def race(folder, made_of, path, feeds, rounds):
    """(C of qxc, onnxruntime) after all rounds."""
    source = folder / f"{path.stem}.c"
    qxc(*made_of, "-emit=c", "-name=m", "-no-sync", "-quiet", "-o", source)
    emitted = CModel(source, "gcc", ("-std=gnu99", *FLAGS))
    arguments, function, runner = emitted.arguments(feeds.values()), emitted.function, session(path, optimize=True)
    binding = runner.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, value)
    for output in runner.get_outputs():
        binding.bind_output(output.name)
    both = (c.Timed(lambda: function(*arguments), lambda: emitted.results[0]),
            c.Timed(lambda: runner.run_with_iobinding(binding), lambda: binding.copy_outputs_to_cpu()[0]))
    got, want = (np.ravel(one.result()).astype(np.float64) for one in both)
    close = got @ want / np.sqrt((got @ got) * (want @ want) + 1e-30)
    if close < 0.99:
        raise AssertionError(f"{path.stem}: they compute something else (cosine {close:.3f})")
    c.interleave(both, rounds)
    return both


def kinds_table(folder, rounds):
    rows = []
    for name, model in kinds():
        for form, made_of, path in forms(folder, name, model):
            ours, theirs = race(folder, made_of, path, feeds_of(name, path), rounds)
            ratio = np.median([b / a for a, b in zip(ours.times, theirs.times)])
            rows.append((name, form, f"{ours.median():,.1f}", f"{theirs.median():,.1f}", f"{ratio:.2f}"))
    return table(("model", "form", "qxc", "onnxruntime", "ratio"), rows)
