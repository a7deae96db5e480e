#!/usr/bin/env python3
"""Passes that use calibration data to make up for rounding: what they promise, on layers of every
shape, and what they bring on a trained model."""

import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

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


def chain(*nodes, shape, weights):
    """Nodes (operator, inputs behind the first, attributes) in a row, with constants of wild scales."""
    rng = np.random.default_rng(len(nodes))
    made, names = [], ["x"]
    for i, (op, inputs, attributes) in enumerate(nodes):
        made.append(helper.make_node(op, [names[-1], *inputs], [f"v{i}"], **attributes))
        names.append(f"v{i}")
    constants = [onnx.numpy_helper.from_array(
        (rng.standard_normal(dims) * np.exp(2 * rng.standard_normal([dims[0]] + [1] * (len(dims) - 1)))
         ).astype(np.float32), name) for name, dims in weights.items()]
    graph = helper.make_graph(made, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, None)],
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
    "columns": (chain(  # the last axis is summed over, not the channels
        ("Conv", ["w1"], {}), ("Relu", [], {}), ("MatMul", ["w2"], {}),
        shape=[1, 4, 5, 4], weights={"w1": [4, 4, 1, 1], "w2": [4, 3]}), 0),
}


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
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * np.abs(want).max())
        before = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
        weights = [n.input[1] for n in result.graph.node if n.op_type in ("Conv", "Gemm", "MatMul")]
        kept = [w for w in weights if w in before]
        self.assertEqual(len(weights) - len(kept), changed)

    def test_channels_are_alike(self):
        """The depthwise Conv has weights of its own for each channel: its operand becomes even."""
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
        self.assertLess(spread[1], 1.01)


class Trained(common.OracleCase):
    def dB(self, one, *options):
        return one.sqnr(one.by_qxc("qdq", *options))

    @common.for_each("digits", "ad")
    def test_gain(self, name):
        if name != "digits":
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

    def test_again(self):
        """The same bytes from run to run."""
        one = case("digits", self.scratch)
        first, again = (one.by_qxc("qdq", "-equalize", "-adaround").read_bytes() for _ in range(2))
        self.assertEqual(first, again)


if __name__ == "__main__":
    unittest.main()
