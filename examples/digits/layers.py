"""The few layers that train.py needs, forward and backward, in numpy.

A layer keeps what its backward pass needs, holds parameters in `params` and their gradients in
`grads` under the same keys, and writes itself as ONNX nodes. Data is [N, C, H, W], float32.
"""

import numpy as np

BN_EPSILON = 1e-5
BN_MOMENTUM = 0.9


def windows(x, k):
    """All k x k windows of x padded to keep its size: [N, C, H, W, k, k]."""
    pad = k // 2
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    return np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(2, 3))


def convolve(x, w, depthwise):
    if depthwise:
        return np.einsum("nchwij,cij->nchw", windows(x, w.shape[2]), w[:, 0])
    y = np.tensordot(windows(x, w.shape[2]), w, ([1, 4, 5], [1, 2, 3]))
    return np.ascontiguousarray(y.transpose(0, 3, 1, 2))


class Layer:
    def __init__(self):
        self.params, self.grads = {}, {}


class Conv(Layer):
    """Stride 1, same size, no bias (a batch normalization follows)."""

    def __init__(self, rng, inputs, outputs, k, depthwise=False):
        super().__init__()
        self.depthwise = depthwise
        shape = (outputs, 1 if depthwise else inputs, k, k)
        scale = np.sqrt(2 / np.prod(shape[1:]))
        self.params["weight"] = (rng.standard_normal(shape) * scale).astype(np.float32)

    def forward(self, x, training):
        self.x = x
        return convolve(x, self.params["weight"], self.depthwise)

    def backward(self, dy):
        w = self.params["weight"]
        cols = windows(self.x, w.shape[2])
        flipped = w[:, :, ::-1, ::-1]
        if self.depthwise:
            self.grads["weight"] = np.einsum("nchwij,nchw->cij", cols, dy)[:, None]
            return convolve(dy, flipped, True)
        self.grads["weight"] = np.tensordot(dy, cols, ([0, 2, 3], [0, 2, 3]))
        return convolve(dy, flipped.swapaxes(0, 1), False)

    def onnx(self, make, name, x):
        w = self.params["weight"]
        return make.node("Conv", name, [x, make.weight(f"{name}.weight", w)],
                         kernel_shape=list(w.shape[2:]), pads=[w.shape[2] // 2] * 4,
                         group=w.shape[0] if self.depthwise else 1)


class BatchNorm(Layer):
    def __init__(self, channels):
        super().__init__()
        self.params["scale"] = np.ones(channels, np.float32)
        self.params["bias"] = np.zeros(channels, np.float32)
        self.mean = np.zeros(channels, np.float32)
        self.var = np.ones(channels, np.float32)

    def forward(self, x, training):
        mean, var = self.mean, self.var
        if training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
            self.mean = BN_MOMENTUM * self.mean + (1 - BN_MOMENTUM) * mean
            self.var = BN_MOMENTUM * self.var + (1 - BN_MOMENTUM) * var
        self.inv = (1 / np.sqrt(var + np.float32(BN_EPSILON)))[:, None, None]
        self.normal = (x - mean[:, None, None]) * self.inv
        scale, bias = self.params["scale"], self.params["bias"]
        return self.normal * scale[:, None, None] + bias[:, None, None]

    def backward(self, dy):
        self.grads["scale"] = (dy * self.normal).sum((0, 2, 3))
        self.grads["bias"] = dy.sum((0, 2, 3))
        d = dy * self.params["scale"][:, None, None]
        across = dict(axis=(0, 2, 3), keepdims=True)
        return self.inv * (d - d.mean(**across) - self.normal * (d * self.normal).mean(**across))

    def onnx(self, make, name, x):
        values = {**self.params, "mean": self.mean, "var": self.var}
        weights = [make.weight(f"{name}.{key}", value) for key, value in values.items()]
        return make.node("BatchNormalization", name, [x, *weights], epsilon=BN_EPSILON)


class Relu(Layer):
    def forward(self, x, training):
        self.mask = x > 0
        return x * self.mask

    def backward(self, dy):
        return dy * self.mask

    def onnx(self, make, name, x):
        return make.node("Relu", name, [x])


class MaxPool(Layer):
    """2 x 2, stride 2."""

    def forward(self, x, training):
        n, c, h, w = x.shape
        blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
        y = blocks.max((3, 5), keepdims=True)
        self.mask = blocks == y
        self.mask = self.mask / self.mask.sum((3, 5), keepdims=True, dtype=np.float32)
        return y[:, :, :, 0, :, 0]

    def backward(self, dy):
        n, c, h, w = dy.shape
        return (self.mask * dy[:, :, :, None, :, None]).reshape(n, c, 2 * h, 2 * w)

    def onnx(self, make, name, x):
        return make.node("MaxPool", name, [x], kernel_shape=[2, 2], strides=[2, 2])


class Residual(Layer):
    """x + body(x)"""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x, training):
        return x + self.body.forward(x, training)

    def backward(self, dy):
        return dy + self.body.backward(dy)

    def onnx(self, make, name, x):
        return make.node("Add", f"{name}.add", [x, self.body.onnx(make, name, x)])


class Head(Layer):
    """The mean over each channel, then a linear layer."""

    def __init__(self, rng, inputs, outputs):
        super().__init__()
        weight = rng.standard_normal((outputs, inputs)) / np.sqrt(inputs)
        self.params["weight"] = weight.astype(np.float32)
        self.params["bias"] = np.zeros(outputs, np.float32)

    def forward(self, x, training):
        self.shape = x.shape
        self.mean = x.mean((2, 3))
        return self.mean @ self.params["weight"].T + self.params["bias"]

    def backward(self, dy):
        self.grads["weight"] = dy.T @ self.mean
        self.grads["bias"] = dy.sum(0)
        n, c, h, w = self.shape
        dx = (dy @ self.params["weight"]) / np.float32(h * w)
        return np.broadcast_to(dx[:, :, None, None], self.shape)

    def onnx(self, make, name, x):
        x = make.node("GlobalAveragePool", f"{name}.pool", [x])
        x = make.node("Flatten", f"{name}.flatten", [x], axis=1)
        weights = [make.weight(f"{name}.{key}", value) for key, value in self.params.items()]
        return make.node("Gemm", f"{name}.linear", [x, *weights], transB=1)


class Sequence(Layer):
    """Named layers one after the other."""

    def __init__(self, **layers):
        super().__init__()
        self.layers = layers

    def forward(self, x, training):
        for layer in self.layers.values():
            x = layer.forward(x, training)
        return x

    def backward(self, dy):
        for layer in reversed(self.layers.values()):
            dy = layer.backward(dy)
        return dy

    def onnx(self, make, name, x):
        for key, layer in self.layers.items():
            x = layer.onnx(make, f"{name}.{key}" if name else key, x)
        return x


def leaves(layer):
    """Every layer that holds parameters of its own."""
    if isinstance(layer, Sequence):
        return [leaf for part in layer.layers.values() for leaf in leaves(part)]
    return leaves(layer.body) if isinstance(layer, Residual) else [layer]
