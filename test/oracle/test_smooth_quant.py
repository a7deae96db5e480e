#!/usr/bin/env python3
"""-smooth-quant: the same function in float, whatever makes the channels, and what it brings where a few
channels are far larger than the others."""

import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import common
import networks
from quantized import Case

WIDTH, ROWS = 6, 5
RNG = np.random.default_rng(11)
OUTLIERS = np.array([1, 40, 1, 0.2, 1, 1])


def weights(*dims):
    return RNG.standard_normal(dims)


def constants():
    """Channel 1 of what is normalized is large, channel 4 is zero; row 2 of the weights is zero."""
    w = {f"w{i}": weights(WIDTH, 4) for i in range(3)} | {"square": weights(WIDTH, WIDTH)}
    for value in w.values():
        value[2] = 0
    scale, shift = OUTLIERS * weights(WIDTH), OUTLIERS * weights(WIDTH)
    scale[4] = shift[4] = 0
    return w | {"scale": scale, "shift": shift, "row": scale[None], "b": weights(WIDTH),
                "large": weights(WIDTH, WIDTH) * OUTLIERS, "kernel": weights(4, WIDTH, 1),
                "lines": weights(4, ROWS, 1), "two": np.array(2)}


def norm(to, op="LayerNormalization", operands=("x", "scale", "shift"), **attributes):
    return helper.make_node(op, operands, [to], **attributes)


def matmul(to, x, w):
    return helper.make_node("MatMul", [x, w], [to])


def node(op, to, *operands, **attributes):
    return helper.make_node(op, operands, [to], **attributes)


NETS = {  # name: nodes, outputs, which operands of nodes change
    "normalization": ([norm("n"), matmul("y", "n", "w0"), matmul("z", "n", "w1")], "yz",
                      {"scale", "shift", "w0", "w1"}),
    "rms": ([norm("n", "RMSNormalization", ("x", "row")), matmul("y", "n", "w0")], "y", {"row", "w0"}),
    "skip": ([norm("n", "SkipLayerNormalization", ("x", "x", "scale", "shift"), domain="com.microsoft"),
              matmul("y", "n", "w0")], "y", {"scale", "shift", "w0"}),
    "skip simplified": ([norm("n", "SkipSimplifiedLayerNormalization", ("x", "x", "scale"), domain="com.microsoft"),
                         matmul("y", "n", "w0")], "y", {"scale", "w0"}),
    "scale and shift": ([node("Tanh", "t", "x"), node("Mul", "m", "row", "t"), node("Add", "n", "m", "shift"),
                         matmul("y", "n", "w0")], "y", {"row", "shift", "w0"}),
    "product before": ([matmul("m", "x", "large"), node("Add", "a", "m", "b"), node("Relu", "r", "a"),
                        matmul("y", "r", "w0")], "y", {"large", "b", "w0"}),
    "mover between": ([norm("n"), node("Transpose", "t", "n", perm=[1, 0, 2]), matmul("y", "t", "w0")], "y",
                      {"scale", "shift", "w0"}),
    "one scale for two": ([norm("n"), matmul("y", "n", "w0"), node("Sin", "s", "x"),
                           norm("k", operands=("s", "scale", "shift")), matmul("z", "k", "w1")], "yz",
                          {"scale", "shift", "w0", "w1"}),
    "an output": ([norm("n"), matmul("y", "n", "w0")], "ny", set()),
    "another reader": ([norm("n"), matmul("y", "n", "w0"), node("Sin", "z", "n")], "yz", set()),
    "a convolution": ([norm("n"), matmul("y", "n", "w0"), node("Transpose", "t", "n", perm=[0, 2, 1]),
                       node("Conv", "z", "t", "kernel")], "yz", set()),
    "a convolution of rows": ([norm("n"), matmul("y", "n", "w0"), node("Conv", "z", "n", "lines")], "yz", set()),
    "one weight for two": ([norm("n"), matmul("y", "n", "w0"), matmul("z", "n", "w0")], "yz", set()),
    "an input": ([matmul("y", "x", "w0")], "y", set()),
    "a number": ([node("Mul", "n", "x", "two"), matmul("y", "n", "w0")], "y", set()),
    "a function between": ([norm("n"), node("Sigmoid", "s", "n"), matmul("y", "s", "w0")], "y", set()),
}


def model_of(name):
    nodes, outputs, _ = NETS[name]
    known = {n: v.astype(np.float32) for n, v in CONSTANTS.items()}
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, ROWS, WIDTH])],
        [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs],
        [numpy_helper.from_array(known[n], n) for n in sorted({i for n in nodes for i in n.input} & known.keys())])
    return helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)])


CONSTANTS = constants()


class TheSameFunction(common.OracleCase):
    @common.for_each(*NETS)
    def test_float(self, name):
        """Equal within 1e-5 of the largest output, and just the right constants are others."""
        model, changed = model_of(name), NETS[name][2]
        path, calib, out = (self.scratch / f"{name}.{end}" for end in ("onnx", "npz", "smooth.onnx"))
        onnx.save(model, path)
        x = np.random.default_rng(4).standard_normal([6, 2, ROWS, WIDTH]).astype(np.float32)
        np.savez(calib, x=x)
        for alpha in "", "=0", "=1", "=0.85":
            said = common.qxc(path, f"-calib={calib}", f"-smooth-quant{alpha}", "-passes=smooth-quant",
                              "-emit=onnx", "-o", out, "-no-sync").stderr
            self.assertEqual("nothing is smoothed" in said, not changed)
            self.assertEqual("shared with other nodes" in said, name == "one weight for two")
            result = onnx.load(out)
            want, got = (common.run_samples(common.session(m), m, {"x": x}) for m in (model, result))
            for key, y in want.items():
                np.testing.assert_allclose(got[key], y, rtol=0, atol=1e-5 * np.abs(y).max())
            kept = {t.name for t in result.graph.initializer}
            before = {t.name for t in model.graph.initializer}
            self.assertEqual(before - kept, changed)
            for t in result.graph.initializer:
                self.assertTrue(np.isfinite(numpy_helper.to_array(t)).all())

    def test_formula(self):
        """s = max|X|^alpha / max|W|^(1 - alpha), 1 where the channel or its weights are zero."""
        model = model_of("normalization")
        path, calib, out = (self.scratch / f"formula.{end}" for end in ("onnx", "npz", "smooth.onnx"))
        onnx.save(model, path)
        x = np.random.default_rng(4).standard_normal([6, 2, ROWS, WIDTH]).astype(np.float32)
        np.savez(calib, x=x)
        shown = common.with_outputs(model, ["n"])
        most = np.abs(common.run_samples(common.session(shown), model, {"x": x})["n"]).reshape(-1, WIDTH).max(0)
        old = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        met = np.abs(np.concatenate([old["w0"], old["w1"]], 1)).max(1)
        for alpha in 0, 0.3, 1:
            with np.errstate(divide="ignore", invalid="ignore"):
                s = np.where((most > 0) & (met > 0), most**alpha / met**(1 - alpha), 1)
            common.qxc(path, f"-calib={calib}", f"-smooth-quant={alpha}", "-passes=smooth-quant", "-emit=onnx",
                       "-o", out, "-no-sync")
            new = {t.name: numpy_helper.to_array(t) for t in onnx.load(out).graph.initializer}
            for name, want in (("scale", old["scale"] / s), ("shift", old["shift"] / s),
                               ("w0", old["w0"] * s[:, None]), ("w1", old["w1"] * s[:, None])):
                np.testing.assert_allclose(new[f"{name}_1"], want, rtol=1e-5, atol=0)


class Outliers(common.OracleCase):
    """The transformer, four of 48 channels behind each normalization 20 times as large."""

    def case(self, change):
        model, data = networks.transformer()
        path = self.scratch / "transformer.onnx"
        onnx.save(change(model), path)
        return Case(path, data(32, 1)["tokens"], data(32, 2)["tokens"], self.scratch)

    def dynamic(self, one, *options):
        out = self.scratch / "dynamic.onnx"
        common.qxc(one.path, "-dynamic", "-emit=onnx", "-o", out, "-no-sync", *options)
        return one.sqnr(out)

    def test_the_same_function(self):
        one = self.case(networks.with_outliers)
        want, got = one.reference(), one.run(one.by_qxc("onnx", "-smooth-quant"))
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())

    @common.for_each("-smooth-quant", "-smooth-quant=0.3", "-equalize", "")
    def test_static(self, option):
        """6 dB more than without (whose front stays float, 4 dB by itself), and within 1.5 dB of the network
        that never had outliers; unasked too."""
        one = self.case(networks.with_outliers)
        plain, better = one.sqnr(one.by_qxc("qdq", "-no-equalize")), one.sqnr(one.by_qxc("qdq", *option.split()))
        none = self.case(lambda model: model)
        even = none.sqnr(none.by_qxc("qdq"))
        common.talk(f"outliers {option:18} {plain:6.2f} -> {better:6.2f} dB, without outliers {even:6.2f}")
        self.assertGreater(better, plain + 6)
        self.assertGreater(better, even - 1.5)

    def test_dynamic(self):
        """12 dB more than without."""
        one = self.case(networks.with_outliers)
        plain, better = self.dynamic(one), self.dynamic(one, "-smooth-quant", f"-calib={one.calib_file}")
        common.talk(f"outliers -dynamic -smooth-quant {plain:6.2f} -> {better:6.2f} dB")
        self.assertGreater(better, plain + 12)

    @common.for_each("", "-equalize", "-smooth-quant")
    def test_weights_alone(self, option):
        """In blocks of 16 along the channels the weights of large ones are small beside others: 6 dB more than without."""
        one = self.case(networks.with_outliers)
        few = ("-weight-only", "-weights=int4 block(16)")
        plain, better = (one.sqnr(one.by_qxc("qdq", *few, *how)) for how in (["-no-equalize"], option.split()))
        common.talk(f"outliers, int4 weights {option:13} {plain:6.2f} -> {better:6.2f} dB")
        self.assertGreater(better, plain + 6)

    def test_again(self):
        """The same bytes from run to run."""
        one = self.case(networks.with_outliers)
        first, again = (one.by_qxc("qdq", "-smooth-quant").read_bytes() for _ in range(2))
        self.assertEqual(first, again)


if __name__ == "__main__":
    unittest.main()
