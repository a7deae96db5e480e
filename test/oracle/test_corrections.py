#!/usr/bin/env python3
"""Passes that use calibration data to make up for rounding: what they promise, on layers of every
shape, and what they bring on a trained model."""

import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnxruntime.quantization import CalibrationMethod

import common
from quantized import case

SHAPES = {  # name: weights, attributes, shape of one sample
    "plain": ([4, 3, 3, 3], {}, [3, 7, 6]),
    "padded": ([4, 3, 3, 3], {"pads": [1, 0, 2, 1]}, [3, 7, 6]),
    "strided": ([4, 3, 3, 2], {"strides": [2, 3], "auto_pad": "SAME_UPPER"}, [3, 9, 8]),
    "dilated": ([4, 3, 2, 3], {"dilations": [2, 1], "pads": [2, 1, 2, 1]}, [3, 7, 6]),
    "grouped": ([6, 2, 3, 3], {"group": 3}, [6, 7, 6]),
    "depthwise": ([5, 1, 3, 3], {"group": 5, "pads": [1, 1, 1, 1]}, [5, 7, 6]),
    "line": ([4, 3, 3], {"pads": [1, 1]}, [3, 20]),
    "gemm": ([12, 5], {}, [12]),
    "transposed": ([5, 12], {"transB": 1}, [12]),
}
SAMPLES = 40


def layer(name):
    weight, attributes, shape = SHAPES[name]
    rng = np.random.default_rng(sorted(SHAPES).index(name))
    op = "Gemm" if len(shape) == 1 else "Conv"
    channels = weight[1] if name == "gemm" else weight[0]
    w = rng.standard_normal(weight).astype(np.float32)
    b = rng.standard_normal(channels).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node(op, ["x", "w", "b"], ["y"], **attributes)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, *shape])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(w, "w"), onnx.numpy_helper.from_array(b, "b")])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    data = (rng.standard_normal([SAMPLES, *shape]) * 0.3 + 1).astype(np.float32)
    return model, np.maximum(data, 0)


class Layers(common.OracleCase):
    def outputs(self, name, *options):
        model, data = layer(name)
        path, calib, out = (self.scratch / f"{name}.{end}" for end in ("onnx", "npz", "qdq.onnx"))
        onnx.save(model, path)
        np.savez(calib, x=data)
        common.qxc(path, f"-calib={calib}", "-weights=int4 sym", "-activations=uint16", "-emit=qdq",
                   "-o", out, "-no-sync", *options)
        return [common.run_samples(common.session(p), onnx.load(p), {"x": data})["y"]
                for p in (path, out)]

    def errors(self, name, *options):
        """Largest mean error of a channel, and root mean square error, both of the spread."""
        want, got = (y.reshape(SAMPLES, -1) if len(SHAPES[name][2]) == 1 else
                     np.moveaxis(y[:, 0], 1, -1).reshape(-1, y.shape[2])
                     for y in self.outputs(name, *options))
        away = (got - want) / want.std()
        return np.abs(away.mean(0)).max(), np.sqrt(np.mean(away**2))

    @common.for_each(*SHAPES)
    def test_means(self, name):
        """With weights of 4 bits the means of channels move; corrected, they do not."""
        plain, plain_all = self.errors(name, "-no-bias-correction")
        self.assertGreater(plain, 0.02)
        for option in "-bias-correction", "-adaround":
            mean, overall = self.errors(name, option)
            self.assertLess(mean, 1e-3, option)
            self.assertLess(overall, plain_all, option)

    @common.for_each(*SHAPES)
    def test_rounding_is_better_than_the_bias_alone(self, name):
        self.assertLessEqual(self.errors(name, "-adaround")[1],
                             1.001 * self.errors(name, "-bias-correction")[1])


def chain(*nodes, shape, weights, pads=()):
    """Nodes (operator, inputs behind the first, attributes) in a row, with constants of wild scales."""
    return net(*((op, [f"v{i - 1}" if i else "x", *inputs], attributes)
                 for i, (op, inputs, attributes) in enumerate(nodes)), shape=shape, weights=weights, pads=pads)


def net(*nodes, shape, weights, pads=()):
    """Nodes (operator, inputs, attributes), whose results are v0, v1, ..."""
    rng = np.random.default_rng(len(nodes))
    made = [helper.make_node(op, inputs, [f"v{i}"], **attributes)
            for i, (op, inputs, attributes) in enumerate(nodes)]
    constants = [onnx.numpy_helper.from_array(
        (rng.standard_normal(dims) * np.exp(2 * rng.standard_normal(dims[:1] + [1] * (len(dims) - 1)))
         ).astype(np.float32), name) for name, dims in weights.items()]
    if pads:
        constants.append(onnx.numpy_helper.from_array(np.array(pads, np.int64), "pads"))
    graph = helper.make_graph(made, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(f"v{len(nodes) - 1}", TensorProto.FLOAT, None)],
                              constants)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


CHAINS = {  # name: model, how many weights change
    "convolutions": (chain(
        ("Conv", ["w1", "b1"], {}), ("Relu", [], {}),
        ("Conv", ["w2", "b2"], {"group": 8, "pads": [1, 1, 1, 1]}), ("Relu", [], {}),
        ("MaxPool", [], {"kernel_shape": [2, 2]}), ("Conv", ["w3"], {"group": 2}), ("Relu", [], {}),
        shape=[1, 3, 9, 8], weights={"w1": [8, 3, 2, 2], "b1": [8], "w2": [8, 1, 3, 3], "b2": [8],
                                     "w3": [6, 4, 1, 1]}), 3),
    "matrices": (chain(
        ("Gemm", ["w1", "b1"], {"transB": 1}), ("Relu", [], {}), ("Gemm", ["w2", "b2"], {}),
        ("MatMul", ["w3"], {}),
        shape=[1, 7], weights={"w1": [9, 7], "b1": [9], "w2": [9, 6], "b2": [6], "w3": [6, 5]}), 3),
    "read twice": (chain(
        ("Conv", ["w1"], {}), ("Relu", [], {}), ("Conv", ["w2"], {}), ("Add", ["v1"], {}),
        shape=[1, 4, 5, 5], weights={"w1": [4, 4, 1, 1], "w2": [4, 4, 1, 1]}), 0),
    "a function between": (chain(
        ("Conv", ["w1"], {}), ("Sigmoid", [], {}), ("Conv", ["w2"], {}),
        shape=[1, 4, 5, 5], weights={"w1": [4, 4, 1, 1], "w2": [4, 4, 1, 1]}), 0),
    "one weight for both": (chain(
        ("Conv", ["w1"], {}), ("Relu", [], {}), ("Conv", ["w1"], {}),
        shape=[1, 4, 5, 5], weights={"w1": [4, 4, 1, 1]}), 0),
    "a shortcut, pools": (net(
        ("Conv", ["x", "w1", "b1"], {}), ("Relu", ["v0"], {}),
        ("Conv", ["v1", "w2", "b2"], {"pads": [1, 1, 1, 1]}), ("PRelu", ["v2", "slope"], {}),
        ("Conv", ["v3", "w3", "b3"], {}), ("Add", ["v4", "v1"], {}), ("Relu", ["v5"], {}),
        ("AveragePool", ["v6"], {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]}),
        ("Conv", ["v7", "w4", "b4"], {"strides": [2, 2]}), ("Sub", ["v8", "v8"], {}),
        ("Sum", ["v8", "v9", "v8"], {}), ("LeakyRelu", ["v10"], {}), ("GlobalAveragePool", ["v11"], {}),
        ("Flatten", ["v12"], {}), ("Gemm", ["v13", "w5", "b5"], {"transB": 1}),
        shape=[1, 3, 9, 8], weights={"w1": [6, 3, 1, 1], "b1": [6], "w2": [5, 6, 3, 3], "b2": [5],
                                     "slope": [5, 1, 1], "w3": [6, 5, 1, 1], "b3": [6],
                                     "w4": [7, 6, 2, 2], "b4": [7], "w5": [4, 7], "b5": [4]}), 5),
    "branches joined": (net(  # the channels of x in the middle stay
        ("Conv", ["x", "w1", "b1"], {}), ("Relu", ["v0"], {}), ("Conv", ["x", "w2", "b2"], {}),
        ("MaxPool", ["v2"], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        ("Concat", ["v1", "x", "v3"], {"axis": 1}), ("Conv", ["v4", "w3"], {}),
        ("Transpose", ["v5"], {"perm": [0, 2, 3, 1]}), ("MatMul", ["v6", "w4"], {}),
        shape=[1, 3, 9, 8], weights={"w1": [6, 3, 1, 1], "b1": [6], "w2": [4, 3, 1, 1], "b2": [4],
                                     "w3": [5, 13, 2, 2], "w4": [5, 3]}), 4),
    "added to an input": (net(
        ("Conv", ["x", "w1"], {}), ("Add", ["v0", "x"], {}), ("Conv", ["v1", "w2"], {}),
        shape=[1, 4, 5, 5], weights={"w1": [4, 4, 1, 1], "w2": [4, 4, 1, 1]}), 0),
    "a padding of ones": (chain(
        ("Conv", ["w1"], {}), ("Relu", [], {}), ("Pad", ["pads", "one"], {}), ("Conv", ["w2"], {}),
        shape=[1, 4, 5, 5], weights={"w1": [4, 4, 1, 1], "w2": [4, 4, 1, 1], "one": []},
        pads=[0, 0, 1, 0, 0, 0, 0, 1]), 0),
    "columns": (chain(  # the last axis is summed over, not the channels
        ("Conv", ["w1"], {}), ("Relu", [], {}), ("MatMul", ["w2"], {}),
        shape=[1, 4, 5, 4], weights={"w1": [4, 4, 1, 1], "w2": [4, 3]}), 0),
}


def two_layers(rng, branch=False):
    """Two products, the second of many numbers that depend on few; and beside them an If, if asked for, in whose presence
    the float model alone is looked at."""
    weights = {"w1": [4, 48], "b1": [48], "w2": [48, 6], "b2": [6]}
    nodes = [helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("Gemm", ["r", "w2", "b2"], ["y"])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 6])]
    constants = [onnx.numpy_helper.from_array(rng.standard_normal(d).astype(np.float32), n) for n, d in weights.items()]
    if branch:
        sides = [helper.make_graph([helper.make_node(op, ["c"], ["z"])], op, [],
                                   [helper.make_tensor_value_info("z", TensorProto.FLOAT, [1])]) for op in ("Neg", "Abs")]
        constants.append(onnx.numpy_helper.from_array(np.array([2], np.float32), "c"))
        nodes += [helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
                  helper.make_node("Greater", ["s", "zero"], ["p"]),
                  helper.make_node("If", ["p"], ["z"], then_branch=sides[0], else_branch=sides[1])]
        constants.append(onnx.numpy_helper.from_array(np.array(0, np.float32), "zero"))
        outputs.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1]))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])], outputs, constants)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


class InTurn(common.OracleCase):
    def error(self, branch, *options):
        """Of y on other data, of its power; and how far the mean of a channel is away on the data that were given."""
        rng = np.random.default_rng(7)
        model = two_layers(rng, branch)
        data = rng.standard_normal([2, 128, 1, 4]).astype(np.float32)
        path, calib, out = (self.scratch / f"turn{branch}.{end}" for end in ("onnx", "npz", "qdq.onnx"))
        onnx.save(model, path)
        np.savez(calib, x=data[0])
        scheme = self.scratch / "coarse.scheme"
        scheme.write_text('scheme { value "w1" int2q sym }')
        common.qxc(path, f"-calib={calib}", f"-scheme={scheme}", "-emit=qdq", "-o", out, "-no-sync", *options)
        away, power = zip(*((got - want, want) for want, got in
                            ([common.run_samples(common.session(p), onnx.load(p), {"x": x})["y"].reshape(128, 6)
                              for p in (path, out)] for x in data)))
        return np.mean(away[1]**2) / np.mean(power[1]**2), np.abs(away[0].mean(0)).max() / power[0].std()

    @common.for_each("weights alone", "static")
    def test_a_layer_makes_up_for_those_before(self, kind):
        options = ["-weight-only"] if kind == "weights alone" else ["-activations=uint16"]
        alone, in_turn = (self.error(branch, "-adaround", *options)[0] for branch in (True, False))
        self.assertLess(in_turn, 0.4 * alone)

    def test_biases_make_up_for_those_before(self):
        """A Relu behind a layer whose mean was right makes a mean of what rounding spreads; the next bias takes it off."""
        alone, in_turn = (self.error(branch, "-activations=uint16", "-bias-correction")[1] for branch in (True, False))
        self.assertGreater(alone, 0.05)
        self.assertLess(in_turn, 0.1 * alone)


class Equalize(common.OracleCase):
    @common.for_each(*CHAINS)
    def test_the_same_function(self, name):
        model, changed = CHAINS[name]
        path, calib, out = (self.scratch / f"chain.{end}" for end in ("onnx", "npz", "eq.onnx"))
        onnx.save(model, path)
        shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        x = np.random.default_rng(4).standard_normal([8, *shape[1:]]).astype(np.float32)
        np.savez(calib, x=x)
        common.qxc(path, f"-calib={calib}", "-equalize", "-emit=onnx", "-o", out, "-no-sync")
        result = onnx.load(out)
        runs = (common.run_samples(common.session(m), m, {"x": x}) for m in (model, result))
        want, got = (next(iter(r.values())) for r in runs)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())
        before = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
        weights = [n.input[1] for n in result.graph.node if n.op_type in ("Conv", "Gemm", "MatMul")]
        kept = [w for w in weights if w in before]
        self.assertEqual(len(weights) - len(kept), changed)

    def test_channels_are_alike(self):
        """The depthwise Conv has weights of its own for each channel: its operand becomes nearly even."""
        model, _ = CHAINS["convolutions"]
        path, calib, out = (self.scratch / f"even.{end}" for end in ("onnx", "npz", "eq.onnx"))
        onnx.save(model, path)
        x = np.random.default_rng(4).standard_normal([8, 3, 9, 8]).astype(np.float32)
        np.savez(calib, x=x)
        common.qxc(path, f"-calib={calib}", "-equalize", "-emit=onnx", "-o", out, "-no-sync")
        spread = []
        for source in path, out:
            shown = common.with_outputs(onnx.load(source), ["v1"])
            value = common.run_samples(common.session(shown), onnx.load(source), {"x": x})["v1"]
            largest = value.max((0, 1, 3, 4))
            spread.append(largest.max() / largest[largest > 0].min())
        self.assertGreater(spread[0], 10)
        self.assertLess(spread[1], 1.01 * spread[0] ** (1 / 8))


class Trained(common.OracleCase):
    def dB(self, one, *options):
        return one.sqnr(one.by_qxc("qdq", *options))

    @common.for_each("digits", "ad")
    def test_gain(self, name):
        if name in common.NAMES:
            self.shared_model(f"{name}_fp32.onnx")
        one = case(name, self.scratch)
        plain = self.dB(one, "-no-bias-correction")
        for option in "-bias-correction", "-adaround":
            better = self.dB(one, option)
            common.talk(f"{name} {option:18} {plain:6.2f} -> {better:6.2f} dB")
            self.assertGreater(better, plain + 2)

    def test_equalized(self):
        self.shared_model("vww_fp32.onnx")
        one = case("vww", self.scratch)
        plain = self.dB(one, "-no-bias-correction")
        better = self.dB(one, "-equalize", "-bias-correction")
        common.talk(f"vww -equalize -bias-correction {plain:6.2f} -> {better:6.2f} dB")
        self.assertGreater(better, plain + 6)

    @common.for_each_model("digits")
    def test_goals(self, name):
        """By default at most 0.1 dB below the best of quantize_static's calibrators; relu6 of 32 dB is 0.6 below it."""
        one = case(name, self.scratch)
        methods = CalibrationMethod.MinMax, CalibrationMethod.Entropy, CalibrationMethod.Percentile
        best = max(one.sqnr(one.by_onnxruntime("qdq", method=m)) for m in methods)
        default, tuned = self.dB(one), self.dB(one, "-equalize", "-calib-method=mse")
        common.talk(f"{name:7} quantize_static {best:6.2f}, qxc {default:6.2f}, tuned {tuned:6.2f} dB")
        self.assertGreater(default, best - (0.6 if name == "relu6" else 0.1))
        if name in ("vww", "ad"):
            self.assertGreater(tuned, best + 3)

    def test_digits_are_read(self):
        """By default within 0.3 points of the float model, with weights of 4 bits within 1."""
        with np.load(common.DIGITS / "test.npz") as data:
            labels = data["labels"]
        one = case("digits", self.scratch)

        def right(path):
            return 100 * np.mean(one.run(path).reshape(len(labels), -1).argmax(1) == labels)

        whole = right(one.path)
        self.assertGreaterEqual(right(one.by_qxc("qdq")), whole - 0.3)
        self.assertGreaterEqual(right(one.by_qxc("qdq", "-weights=int4 sym")), whole - 1)
        self.assertLess(right(one.by_qxc("qdq", "-weights=int4 sym", "-bias-correction")), whole - 1)

    def test_again(self):
        """The same bytes from run to run."""
        one = case("digits", self.scratch)
        first, again = (one.by_qxc("qdq", "-equalize", "-adaround").read_bytes() for _ in range(2))
        self.assertEqual(first, again)


if __name__ == "__main__":
    unittest.main()
