"""The memory of emitted C: how much it is, and that sharing it changes no bit.

Sizes are compared with what tensors alive at one time have, which the header tells: no layout that
keeps tensors apart needs less. Scratch comes on top, and results that lie over their operands save.
Where all tensors are small, one unfolded position can be more than they are.
"""

import random
import re
import unittest

import numpy as np
import onnx
from onnx import TensorProto as T

from cmodel import CModel
from common import OracleCase, for_each, for_each_model, model_path, qxc, qxc_values
from light import light, selected
from networks import Net, detector, mobilenet_v2, transformer
from quantized import case

# On top of the tensors of so small a network as cnn: one unfolded position of 3x3x16 and its sums, of 8 bits and of 16.
POSITION, WIDE_POSITION = {"cnn": 64}, {"cnn": 4 * 144 + 5 * 8 + 16}
TFLITE_MICRO = {"kws": 24272, "ic": 55984, "vww": 103680, "ad": 3984}  # published, bytes
NETWORKS = {"detector": detector, "transformer": transformer, "mobilenet_v2": mobilenet_v2}
BUILDS = {"plain": (), "AVX2": ("-mavx2",), "native": ("-march=native",), "portable": ("-U__SSE2__",)}
SEEDS = range(6)
SIZES = range(40)
TINY = 1500  # bytes of tensors beside which an unfolded position counts


def level(build):
    """One of them says whether an optimiser minds shared memory; the others, of which half the time is compiling, what
    values come out."""
    return "-O1" if build == "plain" else "-O0"


def emit(model, folder, *options):
    qxc(model, "-emit=c", "-name=m", "-no-sync", "-quiet", "-o", folder / "model.c", *options)
    text = (folder / "model.h").read_text()
    return tuple(map(int, re.search(r"arena (\d+) bytes, tensors alive at one time have (\d+)", text).groups()))


class Chain(Net):
    """Layers of random kinds and shapes, one behind the other, with shortcuts."""

    LAYERS = 14

    def __init__(self, seed):
        super().__init__(seed)
        self.pick = random.Random(seed)
        self.shape = [self.pick.choice((1, 3, 8, 20)), self.pick.randint(5, 18), self.pick.randint(5, 18)]

    def window(self, kernel):
        pads = [self.pick.randint(0, k // 2) for k in kernel]
        strides = [self.pick.choice((1, 1, 2)) for _ in kernel]
        size = [n + 2 * p - k for n, p, k in zip(self.shape[1:], pads, kernel)]
        if min(size) < 0:
            return None
        self.shape[1:] = [n // s + 1 for n, s in zip(size, strides)]
        return {"kernel_shape": kernel, "pads": pads * 2, "strides": strides}

    def conv(self, x):
        channels, kernel = self.shape[0], [self.pick.choice((1, 1, 3, 5)) for _ in range(2)]
        group = channels if self.pick.random() < 0.4 else 1
        out = channels if group > 1 else self.pick.choice((1, 4, 9, 16, 33))
        window = self.window(kernel)
        if not window:
            return x
        self.shape[0] = out
        w = self.const(self.rng.normal(0, np.sqrt(2 * group / (channels * np.prod(kernel))),
                                       (out, channels // group, *kernel)))
        y = self.op("Conv", x, w, self.const(self.rng.normal(0, 0.1, out)), group=group, **window)
        return self.op("Relu", y) if self.pick.random() < 0.5 else y

    def pool(self, x):
        window = self.window([self.pick.randint(1, 3) for _ in range(2)])
        return self.op(self.pick.choice(("MaxPool", "AveragePool")), x, **window) if window else x

    def transpose(self, x):
        self.shape = [self.shape[2], *self.shape[:2]]
        return self.op("Transpose", x, perm=[0, 3, 1, 2])

    def back(self, x):
        self.shape = [*self.shape[1:], self.shape[0]]
        return self.op("Transpose", x, perm=[0, 2, 3, 1])

    def curve(self, x):
        return self.op(self.pick.choice(("Sigmoid", "Tanh", "LeakyRelu")), x)

    def add(self, x):
        return self.op("Add", x, self.curve(x))

    def build(self):
        x, shape = "x", [1, *self.shape]
        for _ in range(self.LAYERS):
            x = self.pick.choice([self.conv] * 6 + [self.pool, self.add, self.transpose, self.back, self.curve])(x)
        x = self.op("Flatten", x)
        for size, out in ((int(np.prod(self.shape)), 40), (40, 7)):
            x = self.op("Gemm", x, self.const(self.rng.normal(0, 1 / np.sqrt(size), (size, out))),
                        self.const(self.rng.normal(0, 0.1, out)))
        return self.model([("x", T.FLOAT, shape)], [("y", x)], 17), shape


def one_layer(op, inputs, weights, outputs=1, domain="", **attrs):
    """A model of one node, whose weights come behind its inputs (shapes)."""
    net = Net(0)
    names = [f"x{i}" for i in range(len(inputs))]
    given = [net.const(net.rng.normal(0, 0.2, shape)) for shape in weights]
    results = [f"y{i}" for i in range(outputs)]
    net.nodes.append(onnx.helper.make_node(op, names + given, results, domain=domain, **attrs))
    return net.model([(n, T.FLOAT, s) for n, s in zip(names, inputs)], [(y, y) for y in results][:1], 17)


KINDS = {"int8": ("-calib-random=1",), "w4": ("-weights=int4 sym", "-calib-random=1"),
         "w2": ("-weights=int2 sym", "-calib-random=1"), "w16": ("-weights=int16", "-calib-random=1"),
         "a16": ("-activations=int16", "-calib-random=1"),
         "a16w4": ("-activations=int16", "-weights=int4 sym", "-calib-random=1"), "float": (), "dynamic": ("-dynamic",)}


def between_curves(op, inputs, weights, **attrs):
    """A model of one node whose operands and result are tensors of the arena."""
    net = Net(0)
    operands = [net.op("Sigmoid", f"x{i}") for i in range(len(inputs))]
    y = net.op("Sigmoid", net.op(op, *operands, *(net.const(net.rng.normal(0, 0.2, w)) for w in weights), **attrs))
    return net.model([(f"x{i}", T.FLOAT, s) for i, s in enumerate(inputs)], [("y", y)], 17)


class Arena(OracleCase):
    expected_seconds = 1.6

    @for_each_model()
    def test_integers(self, name):
        """Not more than tensors alive at one time have, and less than TFLite Micro takes."""
        model = model_path(name, "int8_qdq")
        for options in ((), ("-integer-only",)):
            arena, alive = emit(model, self.scratch, *options)
            self.assertLessEqual(arena, alive + POSITION.get(name, 0))
            self.assertLess(arena, TFLITE_MICRO.get(name, np.inf))

    @for_each_model("digits")
    def test_quantized_here(self, name):
        """With float at both ends."""
        one = case(name, self.scratch)
        arena, alive = emit(one.path, self.scratch, f"-calib={one.calib_file}")
        self.assertLessEqual(arena, alive + POSITION.get(name, 0))
        if name in TFLITE_MICRO:
            self.assertLess(arena, TFLITE_MICRO[name])

    @for_each_model()
    def test_of_other_types(self, name):
        """Weights of 4 and of 16 bits, activations of 16, and float: by kernels that take any."""
        model = model_path(name, "fp32")
        for option in ("-weights=int4 sym", "-weights=int16", "-weights=uint8 asym", "-activations=int16", None):
            with self.subTest(option=option):
                options = (option, "-calib-random=1", "-integer-only") if option else ()
                arena, alive = emit(model, self.scratch, *options)
                exact = name == "ad" or option == "-weights=int4 sym"
                on_top = (POSITION if exact else WIDE_POSITION).get(name, 0 if exact else 0.05 * alive)
                self.assertLessEqual(arena, alive + on_top)

    @for_each(*NETWORKS)
    def test_networks(self, name):
        model, inputs = NETWORKS[name]()
        onnx.save(model, self.scratch / "net.onnx")
        np.savez(self.scratch / "calib.npz", **inputs(2, 1))
        self.within(self.scratch / "net.onnx")

    @for_each("squeezenet", "shufflenet", "inception_v1", "densenet121", "inception_v2", "resnet50")
    def test_light(self, name):
        if name not in selected():
            raise unittest.SkipTest("QXC_LIGHT=small")
        path, images = light(name)
        np.savez(self.scratch / "calib.npz", **{key: rows[:1] for key, rows in images.items()})
        self.within(path)

    def within(self, model):
        arena, alive = emit(model, self.scratch, f"-calib={self.scratch / 'calib.npz'}")
        self.assertLessEqual(arena, 1.05 * alive)

    @for_each("LSTM", "GRU", "RNN")
    def test_recurrent(self, op):
        """What is multiplied with the inputs of all steps is a tensor; nothing comes on top of it but, for GRU, a state
        that a gate was multiplied with."""
        gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
        for steps, size, hidden, direction in ((1, 16, 16, "forward"), (4, 128, 128, "forward"), (50, 40, 20, "reverse"),
                                               (9, 64, 48, "bidirectional")):
            dirs = 2 if direction == "bidirectional" else 1
            with self.subTest(steps=steps, size=size, hidden=hidden, direction=direction):
                onnx.save(one_layer(op, [[steps, 1, size]], [(dirs, gates * hidden, size), (dirs, gates * hidden, hidden)],
                                    hidden_size=hidden, direction=direction), self.scratch / "net.onnx")
                arena, alive = emit(self.scratch / "net.onnx", self.scratch)
                self.assertEqual(arena, alive + (4 * hidden if op == "GRU" else 0))

    @for_each(*KINDS)
    def test_products(self, kind):
        """Products multiply operands as they lie where unfolding them would make the arena larger."""
        for m, k, n in ((1, 16, 8), (4, 64, 32), (8, 256, 16), (10, 300, 4), (49, 128, 10)):
            for name, model in {
                    "constant": between_curves("MatMul", [[m, k]], [(k, n)]),
                    "transposed": between_curves("Gemm", [[k, m]], [(n, k), (n,)], transA=1, transB=1),
                    "computed": between_curves("MatMul", [[m, k], [k, n]], []),
                    "stacked": between_curves("MatMul", [[2, m, k], [2, k, n]], [])}.items():
                with self.subTest(model=name, m=m, k=k, n=n):
                    onnx.save(model, self.scratch / "net.onnx")
                    arena, alive = emit(self.scratch / "net.onnx", self.scratch, *KINDS[kind])
                    self.assertLessEqual(arena, 1.05 * alive)

    @for_each("w2", "w16", "a16", "a16w4")
    def test_convolutions(self, kind):
        """By the kernel that takes any type: one unfolded position and its sums come on top at most, and one row of
        weights where they are packed."""
        wide = kind != "w2"
        for channels, size, kernel, stride in ((3, 8, 5, 1), (8, 8, 5, 2), (64, 7, 5, 2), (32, 12, 3, 1)):
            row = channels * kernel**2
            most = (4 * row + 5 * 8 if wide else 2 * row + 5 * 4) + (row if kind in ("w2", "a16w4") else 0)
            with self.subTest(channels=channels, size=size, kernel=kernel, stride=stride):
                model = between_curves("Conv", [[1, channels, size, size]],
                                       [(channels, channels, kernel, kernel), (channels,)],
                                       pads=[kernel // 2] * 4, strides=[stride] * 2)
                onnx.save(model, self.scratch / "net.onnx")
                arena, alive = emit(self.scratch / "net.onnx", self.scratch, *KINDS[kind])
                self.assertLessEqual(arena, alive + max(most + 16, 0.05 * alive))

    @for_each(*SIZES)
    def test_random_sizes(self, seed):
        net, shape = Chain(seed).build()
        onnx.save(net, self.scratch / "net.onnx")
        np.savez(self.scratch / "calib.npz", x=np.zeros((1, *shape[1:]), np.float32) + 0.5)
        arena, alive = emit(self.scratch / "net.onnx", self.scratch, f"-calib={self.scratch / 'calib.npz'}")
        self.assertLessEqual(arena, 1.05 * alive + (TINY if alive < TINY else 0))

    @for_each(*SEEDS)
    def test_sharing_changes_nothing(self, seed):
        """Each value in memory of its own (-all-values) gives what emitted C gives in its arena."""
        net, shape = Chain(seed).build()
        model, quantized = self.scratch / "net.onnx", self.scratch / "net.qir"
        onnx.save(net, model)
        x = np.random.default_rng(seed).normal(0, 1, (4, *shape[1:])).astype(np.float32)
        np.savez(self.scratch / "calib.npz", x=x)
        qxc(model, f"-calib={self.scratch / 'calib.npz'}", "-form=true", "-quiet", "-no-sync", "-o", quantized)
        want = qxc_values(quantized, {"x": x}, self.scratch)["y"]
        for options in ((), ("-requant=single",)):
            arena, alive = emit(quantized, self.scratch, *options)
            self.assertLessEqual(arena, 1.05 * alive)
            if options:
                want = qxc_values(quantized, {"x": x}, self.scratch, *options)["y"]
            for build, flags in BUILDS.items():
                c = CModel(self.scratch / "model.c", "gcc", (level(build), *flags))
                for k, sample in enumerate(x):
                    np.testing.assert_array_equal(c.run(sample)[0], want[k].ravel(), f"{build} {options}")

    @for_each(*range(12))
    def test_sharing_changes_nothing_in_float(self, seed):
        net, shape = Chain(seed).build()
        onnx.save(net, self.scratch / "net.onnx")
        x = np.random.default_rng(seed).normal(0, 1, (4, *shape[1:])).astype(np.float32)
        want = qxc_values(self.scratch / "net.onnx", {"x": x}, self.scratch)["y"]
        emit(self.scratch / "net.onnx", self.scratch)
        for build, flags in BUILDS.items():
            c = CModel(self.scratch / "model.c", "gcc", (level(build), "-ffp-contract=off", *flags))
            for k, sample in enumerate(x):
                np.testing.assert_array_equal(c.run(sample)[0], want[k].ravel(), build)


if __name__ == "__main__":
    unittest.main()
