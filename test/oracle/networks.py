"""Networks in the shape of what people deploy, with seeded weights: a small detector in the manner of
YOLO, a small transformer encoder, one with the layers of MobileNetV2, and a keyword spotter of convolutions and pools."""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper


class Net:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants = [], []

    def const(self, value, dtype=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def ints(self, *value):
        return self.const(value, np.int64)

    def op(self, op, *operands, results=1, **attributes):
        names = [f"{op.lower()}{len(self.nodes)}" + (f"_{i}" if results > 1 else "") for i in range(results)]
        self.nodes.append(helper.make_node(op, list(operands), names, name=names[0], **attributes))
        return names if results > 1 else names[0]

    def model(self, inputs, outputs, opset):
        for (name, _), value in zip(outputs, [o for _, o in outputs]):
            node = next(n for n in self.nodes if value in n.output)
            node.output[list(node.output).index(value)] = name
        graph = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info(*i) for i in inputs],
            [helper.make_tensor_value_info(name, T.FLOAT, None) for name, _ in outputs], self.constants)
        model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", opset)])
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)


class Detector(Net):
    """64x64 pictures; boxes by a distribution over distances, as in YOLOv8, at two scales."""

    REACH, CLASSES, WIDTH = 8, 5, 8

    def conv(self, x, channels, out, kernel=1, stride=1, act=True):
        spread = np.sqrt(2 / (channels * kernel**2))
        w = self.const(self.rng.normal(0, spread, (out, channels, kernel, kernel)))
        b = self.const(self.rng.normal(0, 0.2, out))
        y = self.op("Conv", x, w, b, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4)
        return self.op("Mul", y, self.op("Sigmoid", y)) if act else y

    def block(self, x, channels, out):
        """Half of the channels go through two convolutions with a shortcut."""
        half = out // 2
        a, b = self.op("Split", self.conv(x, channels, out), self.ints(half, half), results=2, axis=1)
        c = self.op("Add", b, self.conv(self.conv(b, half, half, 3), half, half, 3))
        return self.conv(self.op("Concat", a, b, c, axis=1), 3 * half, out)

    def pyramid(self, x, channels):
        parts = [self.conv(x, channels, channels // 2)]
        for _ in range(3):
            parts.append(self.op("MaxPool", parts[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4))
        return self.conv(self.op("Concat", *parts, axis=1), 2 * channels, channels)

    def head(self, x, channels, size):
        box = self.conv(self.conv(x, channels, 16, 3), 16, 4 * self.REACH, act=False)
        score = self.conv(self.conv(x, channels, 16, 3), 16, self.CLASSES, act=False)
        both = self.op("Concat", box, score, axis=1)
        return self.op("Reshape", both, self.ints(1, 4 * self.REACH + self.CLASSES, size * size))

    def boxes(self, distances, sizes):
        count = sum(s * s for s in sizes)
        x = self.op("Reshape", distances, self.ints(1, 4, self.REACH, count))
        x = self.op("Softmax", self.op("Transpose", x, perm=[0, 2, 1, 3]), axis=1)
        w = self.const(np.arange(self.REACH).reshape(1, self.REACH, 1, 1))
        x = self.op("Reshape", self.op("Conv", x, w), self.ints(1, 4, count))
        low, high = self.op("Split", x, self.ints(2, 2), results=2, axis=1)
        grid = [np.stack(np.meshgrid(np.arange(s) + 0.5, np.arange(s) + 0.5)).reshape(2, -1) for s in sizes]
        centre = self.const(np.concatenate(grid, 1)[None])
        box = self.op("Concat", self.op("Sub", centre, low), self.op("Add", centre, high), axis=1)
        stride = np.concatenate([np.full(s * s, 64 / s) for s in sizes])
        return self.op("Mul", box, self.const(stride.reshape(1, 1, -1)))

    def build(self):
        w = self.WIDTH
        x = self.conv("image", 3, w, 3, 2)
        fine = self.block(self.conv(x, w, 2 * w, 3, 2), 2 * w, 2 * w)
        coarse = self.pyramid(self.block(self.conv(fine, 2 * w, 4 * w, 3, 2), 4 * w, 4 * w), 4 * w)
        up = self.op("Resize", coarse, "", self.const([1, 1, 2, 2]), mode="nearest",
                     coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        fine = self.block(self.op("Concat", up, fine, axis=1), 6 * w, 2 * w)
        coarse = self.op("Concat", self.conv(fine, 2 * w, 2 * w, 3, 2), coarse, axis=1)
        both = self.op("Concat", self.head(fine, 2 * w, 16), self.head(coarse, 6 * w, 8), axis=2)
        distances, scores = self.op("Split", both, self.ints(4 * self.REACH, self.CLASSES), results=2, axis=1)
        boxes = self.boxes(distances, (16, 8))
        return self.model([("image", T.FLOAT, [1, 3, 64, 64])],
                          [("boxes", boxes), ("scores", self.op("Sigmoid", scores))], 17)


class Transformer(Net):
    """Token numbers in, classes out; the first layer has Gelu as an operator, the others spell it out."""

    TOKENS, WIDTH, HEADS, LENGTH, LAYERS, CLASSES = 50, 48, 4, 12, 2, 10

    def dense(self, x, size, out):
        w = self.const(self.rng.normal(0, 1 / np.sqrt(size), (size, out)))
        return self.op("Add", self.op("MatMul", x, w), self.const(self.rng.normal(0, 0.1, out)))

    def norm(self, x):
        scale, shift = self.rng.normal(1, 0.1, self.WIDTH), self.rng.normal(0, 0.1, self.WIDTH)
        return self.op("LayerNormalization", x, self.const(scale), self.const(shift), axis=-1)

    def split(self, x, perm):
        x = self.op("Reshape", x, self.ints(1, self.LENGTH, self.HEADS, self.WIDTH // self.HEADS))
        return self.op("Transpose", x, perm=perm)

    def attention(self, x):
        q, k, v = (self.dense(x, self.WIDTH, self.WIDTH) for _ in range(3))
        score = self.op("MatMul", self.split(q, [0, 2, 1, 3]), self.split(k, [0, 2, 3, 1]))
        score = self.op("Div", score, self.const(np.sqrt(self.WIDTH / self.HEADS)))
        y = self.op("MatMul", self.op("Softmax", score, axis=-1), self.split(v, [0, 2, 1, 3]))
        y = self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1, 3]), self.ints(1, self.LENGTH, self.WIDTH))
        return self.dense(y, self.WIDTH, self.WIDTH)

    def gelu(self, x, layer):
        if layer == 0:
            return self.op("Gelu", x)
        y = self.op("Erf", self.op("Div", x, self.const(np.sqrt(2))))
        return self.op("Mul", self.op("Mul", x, self.op("Add", y, self.const(1))), self.const(0.5))

    def build(self):
        words = self.const(self.rng.normal(0, 1, (self.TOKENS, self.WIDTH)))
        places = self.const(self.rng.normal(0, 0.5, (1, self.LENGTH, self.WIDTH)))
        x = self.op("Add", self.op("Gather", words, "tokens", axis=0), places)
        for layer in range(self.LAYERS):
            x = self.op("Add", x, self.attention(self.norm(x)))
            inner = self.gelu(self.dense(self.norm(x), self.WIDTH, 4 * self.WIDTH), layer)
            x = self.op("Add", x, self.dense(inner, 4 * self.WIDTH, self.WIDTH))
        x = self.op("ReduceMean", self.norm(x), self.ints(1), keepdims=0)
        w = self.const(self.rng.normal(0, 1 / np.sqrt(self.WIDTH), (self.WIDTH, self.CLASSES)))
        y = self.op("Gemm", x, w, self.const(self.rng.normal(0, 0.1, self.CLASSES)))
        return self.model([("tokens", T.INT64, [1, self.LENGTH])], [("classes", y)], 20)


class MobileNetV2(Net):
    """Of width 1 for 224x224 pictures: expansion, depthwise, projection, with shortcuts."""

    STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
              (6, 320, 1, 1))  # expansion, channels, blocks, stride of the first
    SIZE, CLASSES = 224, 1000

    def conv(self, x, channels, out, kernel=1, stride=1, group=1, act=True):
        w = self.const(self.rng.normal(0, np.sqrt(2 * group / (channels * kernel**2)),
                                       (out, channels // group, kernel, kernel)))
        y = self.op("Conv", x, w, self.const(self.rng.normal(0, 0.1, out)), kernel_shape=[kernel] * 2,
                    strides=[stride] * 2, pads=[kernel // 2] * 4, group=group)
        return self.op("Clip", y, self.const(0), self.const(6)) if act else y

    def block(self, x, channels, out, expansion, stride):
        inner = channels * expansion
        y = self.conv(x, channels, inner) if expansion > 1 else x
        y = self.conv(self.conv(y, inner, inner, 3, stride, inner), inner, out, act=False)
        return self.op("Add", x, y) if stride == 1 and channels == out else y

    def build(self):
        x, channels = self.conv("image", 3, 32, 3, 2), 32
        for expansion, out, blocks, stride in self.STAGES:
            for i in range(blocks):
                x = self.block(x, channels, out, expansion, 1 if i else stride)
                channels = out
        x = self.op("Flatten", self.op("GlobalAveragePool", self.conv(x, channels, 1280)))
        w = self.const(self.rng.normal(0, 1 / np.sqrt(1280), (1280, self.CLASSES)))
        y = self.op("Gemm", x, w, self.const(self.rng.normal(0, 0.1, self.CLASSES)))
        return self.model([("image", T.FLOAT, [1, 3, self.SIZE, self.SIZE])], [("classes", y)], 17)


class Spotter(Net):
    """A keyword spotter: one spectrogram, two convolutions with a pool behind each, and one layer on top."""

    STEPS, BANDS, WORDS = 49, 40, 12

    def conv(self, x, channels, out, kernel, pads):
        w = self.const(self.rng.normal(0, np.sqrt(2 / (channels * np.prod(kernel))), (out, channels, *kernel)))
        y = self.op("Conv", x, w, self.const(self.rng.normal(0, 0.1, out)), pads=pads)
        return self.op("MaxPool", self.op("Relu", y), kernel_shape=[2, 2], strides=[2, 2])

    def build(self):
        x = self.conv("spectrogram", 1, 16, (3, 3), [1] * 4)
        x = self.op("Flatten", self.conv(x, 16, 16, (3, 3), [1] * 4))
        size = 16 * (self.STEPS // 4) * (self.BANDS // 4)
        w = self.const(self.rng.normal(0, 1 / np.sqrt(size), (size, self.WORDS)))
        y = self.op("Gemm", x, w, self.const(self.rng.normal(0, 0.1, self.WORDS)))
        return self.model([("spectrogram", T.FLOAT, [1, 1, self.STEPS, self.BANDS])], [("words", y)], 17)


def pictures(count, seed, size=64):
    """Smooth noise of several scales, in 0..1."""
    rng, total = np.random.default_rng(seed), 0
    for cell in (2, 4, 8, 16):
        coarse = rng.standard_normal((count, 3, size // cell, size // cell))
        total = total + coarse.repeat(cell, 2).repeat(cell, 3)
    return np.clip(0.5 + 0.15 * total, 0, 1).astype(np.float32)


def detector():
    """The model and a function from count and seed to inputs."""
    return Detector(7).build(), lambda count, seed: {"image": pictures(count, seed)}


def mobilenet_v2():
    return MobileNetV2(9).build(), lambda count, seed: {"image": pictures(count, seed, MobileNetV2.SIZE)}


def spotter():
    def spectrograms(count, seed):
        shape = (count, 1, Spotter.STEPS, Spotter.BANDS)
        return {"spectrogram": np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)}
    return Spotter(10).build(), spectrograms


def transformer(seed=8):
    def tokens(count, seed):
        rng = np.random.default_rng(seed)
        return {"tokens": rng.integers(0, Transformer.TOKENS, (count, Transformer.LENGTH))}
    return Transformer(seed).build(), tokens


def with_outliers(model, factor=20, every=12):
    """Some channels between normalizations and products `factor` times as large, in the same function."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    tensors = {t.name: t for t in model.graph.initializer}

    def multiply(name, by):
        tensors[name].CopyFrom(numpy_helper.from_array(
            (numpy_helper.to_array(tensors[name]) * by).astype(np.float32), name))
    norms = [n for n in model.graph.node if n.op_type == "LayerNormalization"]
    for first, n in enumerate(norms):
        readers = [r for r in model.graph.node if n.output[0] in r.input]
        if {r.op_type for r in readers} != {"MatMul"}:
            continue
        by = np.ones(Transformer.WIDTH)
        by[first::every] = factor
        for name in n.input[1:]:
            multiply(name, by)
        for r in readers:
            multiply(r.input[1], 1 / by[:, None])
    return model
