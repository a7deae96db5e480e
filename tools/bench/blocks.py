"""Networks of blocks that the others do not have, with seeded weights: SiLU with squeeze-and-excitation as in
EfficientNet, HardSwish as in MobileNetV3, ConvTranspose as in U-Net. Each function gives the model and a function from
count and seed to inputs."""

import numpy as np
from onnx import TensorProto as T

from networks import Net, pictures


class Blocks(Net):
    def conv(self, x, channels, out, kernel=1, stride=1, group=1):
        w = self.rng.normal(0, np.sqrt(2 * group / (channels * kernel**2)), (out, channels // group, kernel, kernel))
        return self.op("Conv", x, self.const(w), self.const(self.rng.normal(0, 0.1, out)), kernel_shape=[kernel] * 2,
                       strides=[stride] * 2, pads=[kernel // 2] * 4, group=group)

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def excite(self, x, channels, inner, act, gate):
        """Channels weighted by what all of the picture says."""
        y = act(self.conv(self.op("GlobalAveragePool", x), channels, inner))
        return self.op("Mul", x, gate(self.conv(y, inner, channels)))

    def inverted(self, x, channels, inner, out, kernel, stride, act, gate=None):
        """Expansion, depthwise, projection, with a shortcut."""
        y = act(self.conv(x, channels, inner)) if inner != channels else x
        y = act(self.conv(y, inner, inner, kernel, stride, inner))
        if gate:
            y = self.excite(y, inner, max(8, inner // 4), *gate)
        y = self.conv(y, inner, out)
        return self.op("Add", x, y) if stride == 1 and channels == out else y

    def classes(self, x, channels, count, size):
        x = self.op("Flatten", self.op("GlobalAveragePool", x))
        w = self.const(self.rng.normal(0, 1 / np.sqrt(channels), (channels, count)))
        y = self.op("Gemm", x, w, self.const(self.rng.normal(0, 0.1, count)))
        return self.model([("image", T.FLOAT, [1, 3, size, size])], [("classes", y)], 17)


def of_pictures(model, size):
    return model, lambda count, seed: {"image": pictures(count, seed, size)}


def silu_se(size=112):
    """The first stages of EfficientNet-B0, on smaller pictures."""
    net = Blocks(21)
    x, channels = net.silu(net.conv("image", 3, 32, 3, 2)), 32
    for expansion, out, kernel, stride in ((1, 16, 3, 1), (6, 24, 3, 2), (6, 24, 3, 1), (6, 40, 5, 2), (6, 40, 5, 1),
                                           (6, 80, 3, 2), (6, 80, 3, 1)):
        gate = net.silu, lambda y: net.op("Sigmoid", y)
        x = net.inverted(x, channels, channels * expansion, out, kernel, stride, net.silu, gate)
        channels = out
    return of_pictures(net.classes(net.silu(net.conv(x, channels, 320)), 320, 100, size), size)


def mobilenet_v3(size=224):
    """The layers of MobileNetV3-Small."""
    net = Blocks(22)

    def relu(y):
        return net.op("Relu", y)

    def swish(y):
        return net.op("HardSwish", y)
    gate = relu, lambda y: net.op("HardSigmoid", y, alpha=1 / 6)
    x, channels = swish(net.conv("image", 3, 16, 3, 2)), 16
    for kernel, inner, out, excited, act, stride in (
            (3, 16, 16, True, relu, 2), (3, 72, 24, False, relu, 2), (3, 88, 24, False, relu, 1),
            (5, 96, 40, True, swish, 2), (5, 240, 40, True, swish, 1), (5, 240, 40, True, swish, 1),
            (5, 120, 48, True, swish, 1), (5, 144, 48, True, swish, 1), (5, 288, 96, True, swish, 2),
            (5, 576, 96, True, swish, 1), (5, 576, 96, True, swish, 1)):
        x = net.inverted(x, channels, inner, out, kernel, stride, act, gate if excited else None)
        channels = out
    return of_pictures(net.classes(swish(net.conv(x, channels, 576)), 576, 1000, size), size)


def unet(size=128):
    """Three scales down by MaxPool and up by ConvTranspose, beside what went down."""
    net = Blocks(23)

    def twice(x, channels, out):
        for channels in (channels, out):
            x = net.op("Relu", net.conv(x, channels, out, 3))
        return x
    x, channels, beside = "image", 3, []
    for out in (16, 32, 64):
        beside.append(twice(x, channels, out))
        x, channels = net.op("MaxPool", beside[-1], kernel_shape=[2, 2], strides=[2, 2]), out
    x = twice(x, channels, 128)
    for out in (64, 32, 16):
        w = net.const(net.rng.normal(0, np.sqrt(1 / (2 * out)), (2 * out, out, 2, 2)))
        up = net.op("ConvTranspose", x, w, net.const(net.rng.normal(0, 0.1, out)), kernel_shape=[2, 2], strides=[2, 2])
        x = twice(net.op("Concat", beside.pop(), up, axis=1), 2 * out, out)
    return of_pictures(net.model([("image", T.FLOAT, [1, 3, size, size])], [("mask", net.conv(x, 16, 4))], 17), size)


BLOCKS = {"silu_se": silu_se, "mobilenet_v3": mobilenet_v3, "unet": unet}
