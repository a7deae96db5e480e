"""The float kernels on channels last and packed weights, on random small shapes.

Vectors of any width and plain C must give the same bits, as `qxc run` does, and onnxruntime's numbers within
1e-5 of the largest. One program holds many layers, as compiling costs most.
"""

import random

import numpy as np
import onnx
from onnx import helper, numpy_helper

from cmodel import CModel
from common import OracleCase, float_excess, for_each, qxc, qxc_outputs, session
from cross import CrossModel
from test_channels_last import BUILDS, runs_here

SEEDS, LAYERS = range(2), 60
SAME = ("plain", "AVX2", "native", "portable", "AVX512")
FUSED = ("-std=gnu99", "-O2", "-march=native")  # products and sums in one step, rounded once


def finite(a):
    """All that is not is NaN."""
    return np.where(np.isfinite(a), a, np.nan)


class Layers:
    """Layers side by side, each with an input of its own and one or more outputs."""

    def __init__(self, seed, count=LAYERS):
        self.pick, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.outputs, self.feeds = [], [], [], [], {}
        for _ in range(count):
            self.layer()

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, operands, **attributes):
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, operands, [name], **attributes))
        return name

    def floats(self, *shape):
        return self.rng.normal(0, 1, shape).astype(np.float32)

    def input(self, shape, odd):
        name = f"x{len(self.inputs)}"
        data = self.floats(*shape)
        if odd:
            at = self.rng.integers(0, data.size, 3)
            data.ravel()[at] = self.pick.sample([np.nan, np.inf, -np.inf, -0.0, 1e-40, 0.0], 3)[: len(at)]
        self.inputs.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))
        self.feeds[name] = data
        return name

    def layer(self):
        pick = self.pick
        if pick.random() < 0.3:
            self.outputs.append(pick.choice([self.transposed, self.transposed, self.product, self.curve])())
            return
        kind = pick.choice(["full", "square", "square", "square", "point", "group", "depthwise", "multiplied", "line", "few", "few"])
        group = {"group": pick.choice([2, 3, 4]), "depthwise": pick.choice([pick.randint(2, 70), 8, 16, 48]),
                 "multiplied": pick.randint(2, 9)}.get(kind, 1)
        icg = 1 if kind in ("depthwise", "multiplied") else pick.choice([pick.randint(1, 40), 3, 16, 64, 150])
        ocg = {"depthwise": 1, "multiplied": pick.randint(2, 3)}.get(kind, pick.choice([pick.randint(1, 70), 16, 32, 8]))
        rank = 1 if kind == "line" else 2
        kernel = [1, 1] if kind == "point" else [pick.choice([1, 2, 3, 3, 3, 5, 7]) for _ in range(rank)]
        strides = [pick.choice([1, 1, 2, 3]) for _ in range(rank)]
        dilations = [pick.choice([1, 1, 1, 2]) for _ in range(rank)]
        if kind == "few":  # vectors lie along what a row of taps reads
            icg, ocg = pick.choice([pick.randint(20, 60), 64, 150]), pick.randint(1, 8)
            kernel, dilations[1] = [pick.choice([1, 2, 3, 5, 8]), pick.choice([1, 2, 3, 9])], 1
        if kind == "square":  # its input is copied, in parts of a row where there is room for no more
            kernel = [pick.randint(2, 4), pick.randint(1, 4)]
            strides[1], dilations[1] = pick.randint(1, kernel[1]), 1
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
        pads = [pick.randint(0, r + 1) if pick.random() < 0.1 else pick.randint(0, r - 1) for r in reach * 2]
        out = [pick.choice([1, pick.randint(1, 9), pick.randint(5, 30)]) for _ in range(rank)]
        if kind == "square":
            out = [pick.randint(1, 6), pick.choice([4, 7, pick.randint(8, 30), pick.randint(60, 90)])]
        size = [max(1, (o - 1) * s + r - pads[i] - pads[i + rank])
                for i, (o, s, r) in enumerate(zip(out, strides, reach))]
        out = [(n + pads[i] + pads[i + rank] - r) // s + 1 for i, (n, r, s) in enumerate(zip(size, reach, strides))]
        batch, odd = pick.choice([1, 1, 1, 3]), pick.random() < 0.2
        x = self.input((batch, group * icg, *size), odd)
        w = self.constant(self.floats(group * ocg, icg, *kernel) / np.sqrt(np.float32(icg * np.prod(kernel))))
        bias = [self.constant(self.floats(group * ocg))] if pick.random() < 0.7 else []
        y = self.node("Conv", [x, w, *bias], kernel_shape=kernel, strides=strides, pads=pads,
                      dilations=dilations, group=group)
        last = self.follow(y, out, group * ocg, batch) if not odd and rank == 2 else y
        self.outputs.append(last)
        if last != y and pick.random() < 0.5:
            self.outputs.append(y)

    def product(self):
        """Rows times a constant matrix, which are a convolution of one position."""
        pick = self.pick
        m, k, n = pick.randint(1, 30), pick.choice([pick.randint(1, 40), 600]), pick.choice([pick.randint(4, 70), 16, 32])
        odd = pick.random() < 0.1
        x = self.input((m, k), odd)
        w = self.floats(k, n) / np.sqrt(np.float32(k))
        if pick.random() < 0.3:
            return self.node("MatMul", [x, self.constant(w)])
        flip, one = pick.randint(0, 1), pick.random() < 0.2
        bias = self.constant(self.floats(1 if one else n))
        y = self.node("Gemm", [x, self.constant(w.T if flip else w), bias], transB=flip)
        return self.node("Relu", [y]) if not odd and pick.random() < 0.5 else y

    def curve(self):
        """Functions of one number, whole vectors of them and what is left."""
        kind = self.pick.choice(["HardSwish", "Sigmoid", "Tanh", "Exp", "Mul"])
        x = self.input((1, self.pick.choice([1, 31, 32, 33, 100])), False)
        return self.node(kind, [x, self.node("Sigmoid", [x])] if kind == "Mul" else [x])

    def transposed(self):
        pick = self.pick
        rank, group = pick.choice([1, 2, 2]), pick.choice([1, 1, 1, 2, 3])
        icg, ocg = pick.choice([pick.randint(1, 40), 16, 150]), pick.choice([pick.randint(3, 40), 16, 32])
        kernel, strides, dilations = ([pick.randint(1, n) for _ in range(rank)] for n in (4, 3, 2))
        size = [pick.randint(2, 14) for _ in range(rank)]
        pads = [pick.randint(0, min((k - 1) * d, (n - 1) * s // 2)) for k, d, n, s in
                zip(kernel * 2, dilations * 2, size * 2, strides * 2)]
        more = [pick.randint(0, s - 1) for s in strides]
        x = self.input((pick.choice([1, 1, 3]), group * icg, *size), pick.random() < 0.1)
        w = self.constant(self.floats(group * icg, ocg, *kernel) / np.sqrt(np.float32(icg * np.prod(kernel))))
        bias = [self.constant(self.floats(group * ocg))] if pick.random() < 0.7 else []
        return self.node("ConvTranspose", [x, w, *bias], strides=strides, pads=pads, dilations=dilations, group=group,
                         output_padding=more)

    def follow(self, y, out, channels, batch):
        """What stays with channels last behind a convolution."""
        pick = self.pick
        if pick.random() < 0.6:
            low, high = self.constant(np.float32(-0.3)), self.constant(np.float32(0.7))
            y = pick.choice([lambda: self.node("Relu", [y]), lambda: self.node("Clip", [y, low, high]),
                             lambda: self.node("Clip", [y, "", high])])()
        kernel = [pick.randint(1, min(3, n)) for n in out]
        window = {"kernel_shape": kernel, "strides": [pick.randint(1, 2) for _ in range(2)],
                  "pads": [pick.randint(0, k - 1) for k in kernel * 2]}
        return pick.choice([
            lambda: y,
            lambda: self.node("MaxPool", [y], **window),
            lambda: self.node("AveragePool", [y], **window, count_include_pad=pick.randint(0, 1)),
            lambda: self.node("GlobalAveragePool", [y]),
            lambda: self.node("GlobalMaxPool", [y]),
            lambda: self.node("Add", [y, self.node("HardSwish", [y])]),
            lambda: self.node("PRelu", [y, self.constant(self.floats(channels, 1, 1))]),
            lambda: self.node("Concat", [y, self.constant(self.floats(batch, 3, *out))], axis=1),
            lambda: self.node("Transpose", [y], perm=[0, 2, 3, 1]),
            lambda: self.node("Conv", [y, self.constant(self.floats(20, channels, 1, 1) / 8)]),
            lambda: self.node("Flatten", [y]),
        ])()

    def save(self, path):
        outputs = [helper.make_tensor_value_info(o, onnx.TensorProto.FLOAT, None) for o in self.outputs]
        graph = helper.make_graph(self.nodes, "layers", self.inputs, outputs, self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)

    def about(self, name):
        return helper.printable_node(next(n for n in self.nodes if n.output[0] == name))


class ChannelsLastFloat(OracleCase):
    expected_seconds = 9

    def prepared(self, name, *seed):
        folder = self.scratch / name
        folder.mkdir()
        layers = Layers(*seed)
        layers.save(folder / "m.onnx")
        sample = {n: a if len(a) == 1 else a[None] for n, a in layers.feeds.items()}
        got = qxc_outputs(folder / "m.onnx", sample, folder)
        qxc(folder / "m.onnx", "-emit=c", "-name=m", "-no-sync", "-quiet", "-o", folder / "model.c")
        return layers, folder, {n: got[n].ravel() for n in layers.outputs}

    def same_bits(self, layers, want, got, build):
        wrong = [f"{build}: {np.count_nonzero(a.view(np.uint32) != b.view(np.uint32))} of {a.size} differ, "
                 f"{layers.about(name)}" for (name, a), b in zip(want.items(), got, strict=True)
                 if np.any((a.view(np.uint32) != b.view(np.uint32)) & ~(np.isnan(a) & np.isnan(b)))]
        self.assertEqual([], wrong[:20])

    @staticmethod
    def reference(layers, path):
        """By onnxruntime, which multiplies some of what is infinite by zeros of its own. Elsewhere that
        spoils exactly the sums that it goes into."""
        runner = session(path)
        plain = {n: np.where(np.isfinite(a), a, 0) for n, a in layers.feeds.items()}
        far = {n: np.where(np.isfinite(a), 0, np.float32(1e20)) for n, a in layers.feeds.items()}
        values, spoiled = runner.run(layers.outputs, plain), runner.run(layers.outputs, far)
        return {n: np.where(np.abs(s) > 1e9, np.nan, v) for n, v, s in zip(layers.outputs, values, spoiled)}

    @for_each(*SEEDS)
    def test_layers(self, seed):
        layers, folder, want = self.prepared(f"s{seed}", seed)
        reference = self.reference(layers, folder / "m.onnx")
        fused = CModel(folder / "model.c", "gcc", FUSED).run(*layers.feeds.values())
        for form in (want, dict(zip(want, fused))):
            away = {n: float_excess(finite(form[n]).reshape(1, -1), reference[n].reshape(1, -1)) for n in want}
            self.assertEqual([], [(layers.about(n), e) for n, e in away.items() if e > 0])
        for build in filter(runs_here, SAME):
            model = CModel(folder / "model.c", "gcc", ("-O0", *BUILDS[build]))
            self.same_bits(layers, want, model.run(*layers.feeds.values()), build)

    def test_aarch64(self):
        layers, folder, want = self.prepared("aarch64", 5, 30)
        got = CrossModel(folder / "model.c", "aarch64").run([list(layers.feeds.values())])[0]
        self.same_bits(layers, want, got, "aarch64")

    @for_each("0x4x5x5", "2x0x5x5")
    def test_nothing(self, text):
        """Dimensions of 0."""
        shape = [int(n) for n in text.split("x")]
        folder = self.scratch / text
        folder.mkdir()
        w = np.ones((6, shape[1], 1, 1), np.float32)
        graph = helper.make_graph(
            [helper.make_node("Conv", ["x", "w", "b"], ["y"])], "g",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
            [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.arange(6, dtype=np.float32), "b")])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10),
                  folder / "m.onnx")
        got = qxc_outputs(folder / "m.onnx", {"x": np.zeros((1, *shape), np.float32)}, folder)["y"]
        want = np.broadcast_to(np.arange(6, dtype=np.float32).reshape(6, 1, 1), (shape[0], 6, *shape[2:]))
        np.testing.assert_array_equal(want.ravel(), got.ravel())

    @for_each("1x3x5x4", "2x16x9x7", "1x37x1x6", "3x8x1x1")
    def test_batchnorm(self, text):
        """Behind a convolution its channels are last; the bits are those that it has with channels first."""
        n, c, *plane = (int(k) for k in text.split("x"))
        rng, T = np.random.default_rng(c), onnx.TensorProto.FLOAT
        numbers = {"s": rng.normal(0, 1, c), "b": rng.normal(0, 1, c), "m": rng.normal(0, 1, c), "v": rng.random(c), "w": rng.normal(0, 1, (c, 5, 1, 1))}
        constants = [numpy_helper.from_array(np.float32(a), k) for k, a in numbers.items()]
        norm = [helper.make_node("BatchNormalization", ["a", "s", "b", "m", "v"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
        conv = [helper.make_node("Conv", ["x", "w"], ["h"]), helper.make_node("HardSwish", ["h"], ["a"])]
        folder, data, got = self.scratch / text, {"x": np.float32(rng.normal(0, 1, (1, n, 5, *plane)))}, []
        folder.mkdir()
        for name, nodes, out in (("x", [*conv, *norm], ["a", "z"]), ("a", norm, ["z"]), ("a", norm, ["y", "z"])):
            shape = [n, 5 if name == "x" else c, *plane]
            graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(name, T, shape)],
                                      [helper.make_tensor_value_info(o, T, None) for o in out],
                                      constants if name == "x" else constants[:4])
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), folder / "m.onnx")
            got.append(qxc_outputs(folder / "m.onnx", {name: data[name]}, folder))
            data["a"] = got[0]["a"].reshape(1, n, c, *plane)
        last, first, apart = (g["z"].tobytes() for g in got)
        self.assertEqual(first, last)
        self.assertEqual(first, apart)
        want = session(folder / "m.onnx").run(["z"], {"a": data["a"][0]})[0]
        self.assertLessEqual(float_excess(got[1]["z"].reshape(1, -1), want.reshape(1, -1)), 0)
