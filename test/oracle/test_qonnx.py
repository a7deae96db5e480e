"""QONNX's MultiThreshold, Trunc and roundings, against their definitions in numpy (those of QONNX's
operator pages): as the model came, as types, in QDQ by onnxruntime, in QOperators, and in C.
"""

import unittest

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from cmodel import CModel
from common import OracleCase, for_each, qxc, qxc_outputs, run_samples, session

DOMAIN = "qonnx.custom_op.general"
MODES = {
    "ROUND": np.rint, "HALF_EVEN": np.rint, "FLOOR": np.floor, "floor": np.floor, "CEIL": np.ceil, "DOWN": np.trunc,
    "ROUND_TO_ZERO": np.trunc, "UP": lambda v: np.sign(v) * np.ceil(np.abs(v)),
    "HALF_UP": lambda v: np.sign(v) * np.floor(np.abs(v) + np.float32(0.5)),
    "HALF_DOWN": lambda v: np.sign(v) * np.ceil(np.abs(v) - np.float32(0.5))}


def limits(bits, signed, narrow):
    return (-2 ** (bits - 1) + narrow, 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1 - narrow)


def quant(x, s, z, bits, signed, narrow, mode):
    v = np.clip(x / np.float32(s) + np.float32(z), *limits(bits, signed, narrow))
    return (MODES[mode](v.astype(np.float32)) - np.float32(z)) * np.float32(s)


def trunc1(x, s, z, bits_in, bits_out, mode):
    v = np.rint(x / np.float32(s) + np.float32(z)) / np.float32(2.0 ** (bits_in - bits_out))
    return (MODES[mode](v) - np.float32(z)) * np.float32(s)


def trunc2(x, s, z, out_scale, bits_out, signed, narrow, mode):
    step = np.float32(2 ** np.round(np.log2(out_scale / s)))
    v = np.clip(np.rint(x / np.float32(s) + np.float32(z)) / step, *limits(bits_out, signed, narrow))
    return (MODES[mode](v) - np.float32(z) / step) * np.float32(out_scale)


def multi_threshold(x, t, scale=1.0, bias=0.0, layout="NCHW"):
    """x is one sample with its batch dimension of 1."""
    last = x.ndim != 4 or layout == "NHWC"
    v = x if last else np.moveaxis(x, 1, -1)
    count = np.sum(v[..., None] >= t, axis=-1)
    return (float(np.float32(scale)) * (count if last else np.moveaxis(count, -1, 1)) +
            float(np.float32(bias))).astype(np.float32)


def model_of(op, shape, constants, domain=DOMAIN, version=1, after=(), **attrs):
    nodes = [helper.make_node(op, ["x", *constants], ["q"], name=op, domain=domain, **attrs)]
    nodes += list(after) or [helper.make_node("Identity", ["q"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", T.FLOAT, None)],
                              [numpy_helper.from_array(np.asarray(v, np.float32), k) for k, v in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid(domain, version)], ir_version=8)


def numbers(scale, lo, hi, n, seed=0):
    """On the grid of the scale, halfway between, beside both, far outside, and any."""
    rng = np.random.default_rng(seed)
    k = np.linspace(lo - 3, hi + 3, 2 * min(hi - lo, 60) + 13).round(1).astype(np.float32) * np.float32(scale)
    k = np.concatenate([k, np.nextafter(k, np.float32(np.inf)), np.nextafter(k, np.float32(-np.inf)), [1e30, -1e30, 0]])
    more = rng.normal(size=max(n - len(k), 0)).astype(np.float32) * np.float32(scale * (hi - lo) / 2)
    return np.concatenate([k, more]).astype(np.float32)[:n]


def by_onnxruntime(op, operands, **attrs):
    names = list("abcde")[:len(operands)]
    infos = [helper.make_tensor_value_info(n, T.FLOAT, v.shape) for n, v in zip(names, operands)]
    made = helper.make_graph([helper.make_node(op, names, ["y"], **attrs)], "g", infos, [helper.make_tensor_value_info("y", T.FLOAT, None)])
    runner = session(helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8))
    return runner.run(None, dict(zip(names, operands)))[0]


class Qonnx(OracleCase):
    def check(self, model, x, want, runs_in_ort=True, says="", output="y"):
        """`x`, `want`: [samples, ...]. NaN aside, all ways yield these bits."""
        path = self.scratch / "m.onnx"
        onnx.save(model, path)
        got = qxc_outputs(path, {"x": x}, self.scratch)[output].reshape(want.shape)
        np.testing.assert_array_equal(got, want)
        text = self.scratch / "true.qir"
        self.assertIn(says, qxc(path, "-form=true", "-inline=1000000", "-o", text).stderr)
        np.testing.assert_array_equal(qxc_outputs(text, {"x": x}, self.scratch)[output].reshape(want.shape), want)
        if "q<" in text.read_text() and "Round(" not in text.read_text():  # that raise-scaling would find
            self.assertEqual(qxc(text, "-form=true", "-inline=1000000").stdout, text.read_text())
        for form in ("qdq", "qop"):
            out = self.scratch / f"{form}.onnx"
            qxc(path, f"-emit={form}", "-no-sync", "-quiet", "-o", out)
            for optimize in (False, True) if runs_in_ort else ():
                got = run_samples(session(out, optimize), onnx.load(out), {"x": x})[output]
                np.testing.assert_array_equal(got.reshape(want.shape), want)
        source = self.scratch / "m.c"
        qxc(path, "-emit=c", "-no-sync", "-quiet", "-o", source)
        code = CModel(source)
        np.testing.assert_array_equal(np.stack([code.run(s)[0].reshape(want.shape[1:]) for s in x]), want)
        return text.read_text()

    @for_each(*MODES)
    def test_roundings_of_quant(self, mode):
        for signed, narrow, bits, scale, zero in ((1, 0, 4, 0.5, 0), (0, 0, 4, 0.3, 0), (1, 1, 8, 0.07, 0), (0, 1, 3, 0.25, 2)):
            with self.subTest(signed=signed, bits=bits):
                if zero and MODES[mode] is np.rint:
                    continue  # there types are the rounding, and their zero point stands outside (docs/trained.md)
                x = numbers(scale, -20, 20, 400)[None]
                model = model_of("Quant", [1, 400], {"s": scale, "z": zero, "b": bits}, signed=signed, narrow=narrow, rounding_mode=mode)
                text = self.check(model, x, quant(x, scale, zero, bits, signed, narrow, mode))
                lo, hi = limits(bits, signed, narrow)
                self.assertIn(f"range={lo}:{hi}>", text)

    def test_rounded_weights(self):
        """Constants are rounded here, per channel."""
        w, s = np.random.default_rng(1).normal(size=(3, 6)).astype(np.float32), np.float32([[0.1], [0.2], [0.05]])
        for mode in MODES:
            with self.subTest(mode):
                graph = model_of("Quant", [1, 6], {"s": s, "z": 0, "b": 4}, signed=1, narrow=0, rounding_mode=mode,
                                 after=[helper.make_node("Gemm", ["data", "q"], ["y"], transB=1)])
                graph.graph.initializer.append(numpy_helper.from_array(w, "x"))
                graph.graph.input[0].name = "data"
                path = self.scratch / "w.onnx"
                onnx.save(graph, path)
                x = np.eye(6, dtype=np.float32)
                got = qxc_outputs(path, {"data": x}, self.scratch)["y"].reshape(6, 3)
                np.testing.assert_array_equal(got.T, quant(w, s, 0, 4, 1, 0, mode))
                self.assertIn("= int4q<[", qxc(path, "-form=true").stdout)

    @for_each("FLOOR", "CEIL", "ROUND")
    def test_trunc(self, mode):
        x = numbers(0.125, -300, 300, 500)[None]
        for z in (0, 3):
            model = model_of("Trunc", [1, 500], {"s": 0.125, "z": z, "i": 10, "o": 4}, rounding_mode=mode)
            text = self.check(model, x, trunc1(x, 0.125, z, 10, 4, mode))
            self.assertNotIn("Trunc(", text)
        for signed, narrow, z in ((1, 0, 0), (0, 0, 0), (1, 1, 4), (0, 0, 2)):
            model = model_of("Trunc", [1, 500], {"s": 0.1, "z": z, "i": 10, "os": 0.4, "o": 6}, version=2, rounding_mode=mode,
                             signed=signed, narrow=narrow)
            text = self.check(model, x, trunc2(x, 0.1, z, 0.4, 6, signed, narrow, mode))
            lo, hi = limits(6, signed, narrow)
            self.assertEqual(f"range={lo}:{hi}>" in text, z != 2, text)  # 2 / 4 is no integer: a float

    def test_trunc_behind_an_average(self):
        """As Brevitas has it: a sum of integers, whose low bits go."""
        model = model_of("Trunc", [1, 2, 4, 4], {"s": 0.25, "z": 0, "i": 8, "o": 6}, rounding_mode="FLOOR")
        model.graph.node.insert(0, helper.make_node("AveragePool", ["d"], ["m"], kernel_shape=[2, 2], strides=[2, 2]))
        model.graph.node.insert(1, helper.make_node("Mul", ["m", "four"], ["x"]))
        model.graph.initializer.append(numpy_helper.from_array(np.float32(4), "four"))
        model.graph.input[0].name = "x"
        model.graph.node[0].input[0], model.graph.node[1].output[0], model.graph.node[2].input[0] = "x", "sum", "sum"
        x = np.random.default_rng(2).integers(-30, 30, (9, 2, 4, 4)).astype(np.float32) / 4
        total = x.reshape(9, 2, 2, 2, 2, 2).sum(axis=(3, 5))
        self.check(model, x, trunc1(total, 0.25, 0, 8, 6, "FLOOR"))

    # ---- MultiThreshold

    @for_each("UINT4", "INT4", "UINT8", "INT8", "one_bit", "shifted")
    def test_thresholds_that_round(self, kind):
        """Halfway between integers of the scale: a quantizer, but on the thresholds themselves."""
        scale, first, n = {"UINT4": (0.3, 0, 15), "INT4": (0.5, -8, 15), "UINT8": (0.02, 0, 255), "INT8": (0.11, -128, 255),
                           "one_bit": (0.7, 0, 1), "shifted": (0.25, -3, 12)}[kind]
        ties = ((first + np.arange(n) + 0.5) * np.float32(scale)).astype(np.float32)
        for even in (False, True):
            t = ties
            if even:  # thresholds that say what rounding to even does: no warning, no difference
                near = t[:, None].view(np.int32) + np.arange(-3, 4, dtype=np.int32) * np.sign(t[:, None]).astype(np.int32)
                near = near.view(np.float32)
                reached = np.rint(near / np.float32(scale)) > (first + np.arange(n))[:, None]
                t = near[np.arange(n), np.argmax(reached, axis=1)]
            x = numbers(scale, first, first + n, 600)
            x = (x if even else x[~np.isin(x, np.concatenate([ties, np.nextafter(ties, np.float32(9e9)), np.nextafter(ties, np.float32(-9e9))]))])
            x = np.resize(x, 500)[None]
            model = model_of("MultiThreshold", [1, 500], {"t": t[None]}, out_scale=scale, out_bias=float(np.float32(scale) * first),
                             out_dtype=kind if "INT" in kind else "UINT4")
            text = self.check(model, x, multi_threshold(x, t[None], scale, float(np.float32(scale) * first)),
                              says="" if even else "numbers that lie on a threshold")
            self.assertNotIn("MultiThreshold(", text)
            self.assertIn("range=-3:9>" if kind == "shifted" else "q<", text)

    @for_each("NCHW", "NHWC", "NC", "three", "global")
    def test_thresholds_as_they_are(self, kind):
        """Of each channel its own: the operator runs, and its results are integers of a type."""
        shape = {"NCHW": (1, 3, 4, 5), "NHWC": (1, 4, 5, 3), "NC": (1, 3), "three": (1, 4, 3), "global": (1, 3, 4, 5)}[kind]
        rng = np.random.default_rng(3)
        t = np.sort(rng.normal(size=(1 if kind == "global" else 3, 7)).astype(np.float32), axis=1)
        t[0, 2] = t[0, 3]  # two at once
        x = rng.normal(size=(30, *shape[1:])).astype(np.float32)
        x[0].flat[:6] = [t[0, 0], t[-1, 0], np.inf, -np.inf, t[0, 2], 0]
        layout = "NHWC" if kind == "NHWC" else "NCHW"
        for scale, bias, typed in ((1, 0, "uint8q<2^0, 0, range=0:7>"), (0.5, -2, "int8q<2^-1, 0, range=-4:3>"), (0.5, 0.3, "")):
            want = np.concatenate([multi_threshold(s[None], t, scale, bias, layout) for s in x])
            domain = "finn.custom_op.general" if scale == 1 else DOMAIN
            model = model_of("MultiThreshold", list(shape), {"t": t}, domain=domain, out_scale=float(scale), out_bias=float(bias),
                             out_dtype="INT4", data_layout=layout)
            text = self.check(model, x, want, runs_in_ort=True)
            self.assertIn("MultiThreshold(", text)
            self.assertIn(typed, text)

    def test_bipolar(self):
        t = np.float32([[0.0], [0.3], [-1.0]])
        x = np.random.default_rng(4).normal(size=(20, 3, 2, 2)).astype(np.float32)
        model = model_of("MultiThreshold", [1, 3, 2, 2], {"t": t}, out_scale=2.0, out_bias=-1.0, out_dtype="BIPOLAR")
        want = np.concatenate([multi_threshold(s[None], t, 2.0, -1.0) for s in x])
        self.assertIn("int8q<2^0, 0, range=-1:1>", self.check(model, x, want))

    def test_integers_behind_thresholds(self):
        """A layer of FINN's: integers, MatMul, thresholds with a BatchNormalization in them, MatMul: integer products."""
        rng = np.random.default_rng(5)
        w1, w2 = rng.integers(-3, 4, (16, 8)).astype(np.float32), rng.integers(-3, 4, (8, 4)).astype(np.float32)
        t = np.sort(rng.integers(-30, 30, (8, 15)), axis=1).astype(np.float32) - np.float32(0.5)
        nodes = [helper.make_node("MultiThreshold", ["x", "t0"], ["x.q"], domain=DOMAIN, out_dtype="UINT4"),
                 helper.make_node("MatMul", ["x.q", "w1"], ["a"]),
                 helper.make_node("MultiThreshold", ["a", "t1"], ["a.q"], domain=DOMAIN, out_dtype="INT4", out_bias=-8.0),
                 helper.make_node("MatMul", ["a.q", "w2"], ["y"])]
        t0 = (np.arange(15, dtype=np.float32) + np.float32(0.5))[None]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, [1, 16])],
                                  [helper.make_tensor_value_info("y", T.FLOAT, [1, 4])],
                                  [numpy_helper.from_array(v, k) for k, v in (("w1", w1), ("w2", w2), ("t0", t0), ("t1", t))])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid(DOMAIN, 1)], ir_version=8)
        x = rng.uniform(-2, 17, (40, 16)).astype(np.float32)
        want = np.stack([multi_threshold(multi_threshold(s[None], t0) @ w1, t, 1, -8)[0] @ w2 for s in x])
        self.check(model, x, want)

    @for_each("line", "plane")
    def test_channels_last(self, rank):
        """Conv and MaxPool whose channels stand last, in a model that imports no domain of QONNX and has integers for zero
        points and bit widths. The bias lies on the grid of the accumulator and is rounded to 4 bits, in QDQ too."""
        last = "qonnx.custom_op.channels_last"
        rng, one = np.random.default_rng(len(rank)), rank == "line"
        size, window = ([9], [2]) if one else ([6, 5], [2, 2])
        first, back = ([0, 2, 1], [0, 2, 1]) if one else ([0, 3, 1, 2], [0, 2, 3, 1])
        x = rng.normal(size=(3, *size, 2)).astype(np.float32) * 2
        w, b = rng.normal(size=(3, *window, 2)).astype(np.float32), np.float32([0.3, -0.2, 0.52])
        scales = {"x": 0.25, "w": 0.5, "b": 0.125, "y": 0.5}
        consts = {"w": w, "b": b, "z": np.int64(0), "bits": np.int64(4), **{"s" + n: np.float32(v) for n, v in scales.items()}}

        def quantize(name, out):
            return helper.make_node("Quant", [name, "s" + name, "z", "bits"], [out], domain=DOMAIN, signed=1, narrow=0,
                                    rounding_mode="ROUND")

        conv = {"kernel_shape": window, "pads": [1] * 2 * len(window), "strides": [2] * len(window)}
        pool = {"kernel_shape": window, "strides": [1] * len(window)}
        nodes = [quantize("x", "xq"), quantize("w", "wq"), quantize("b", "bq"),
                 helper.make_node("Conv", ["xq", "wq", "bq"], ["y"], domain=last, **conv), quantize("y", "yq"),
                 helper.make_node("MaxPool", ["yq"], ["out"], domain=last, **pool)]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, [1, *size, 2])],
                                  [helper.make_tensor_value_info("out", T.FLOAT, None)],
                                  [numpy_helper.from_array(v, k) for k, v in consts.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)

        def on_grid(name, v):
            return quant(v, scales[name], 0, 4, 1, 0, "ROUND").astype(np.float32)

        sums = by_onnxruntime("Conv", [on_grid("x", x).transpose(first), on_grid("w", w).transpose(first), on_grid("b", b)], **conv)
        want = by_onnxruntime("MaxPool", [on_grid("y", sums)], **pool).transpose(back)
        self.check(model, x, want, output="out",
                   says="the model does not import domain 'qonnx.custom_op.channels_last': version 1 is taken, as qonnx does")

    def channels_last(self, op, shape, constants, **attrs):
        graph = helper.make_graph([helper.make_node(op, ["x", *constants], ["y"], domain="qonnx.custom_op.channels_last", **attrs)], "g",
                                  [helper.make_tensor_value_info("x", T.FLOAT, shape)], [helper.make_tensor_value_info("y", T.FLOAT, None)],
                                  [numpy_helper.from_array(v, k) for k, v in constants.items()])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), self.scratch / "m.onnx")
        return self.scratch / "m.onnx"

    def test_attributes_of_channels_last(self):
        """Those that QONNX requires, which are more than inference needs, and ONNX's with their defaults."""
        rng = np.random.default_rng(31)
        operands = {n: rng.uniform(0.5, 2, 3).astype(np.float32) for n in "sbmv"}
        for size in ([5], [4, 6]):
            x = rng.normal(size=(1, *size, 3)).astype(np.float32)
            first, window = np.moveaxis(x, -1, 1), [2] * len(size)
            normal = {"epsilon": 0.01, "momentum": 0.9}
            pool = {"kernel_shape": window, "strides": [1] * len(size), "pads": [0, 0] * len(size)}
            for op, constants, attrs, more in (("BatchNormalization", operands, normal, {"training_mode": 0}),
                                               ("MaxPool", {}, pool, {"storage_order": 0})):
                want = np.moveaxis(by_onnxruntime(op, [first, *constants.values()], **attrs), 1, -1)
                for given in (attrs, {**attrs, **more}):
                    with self.subTest(op, size=size, given=[*given]):
                        path = self.channels_last(op, x.shape, constants, **given)
                        np.testing.assert_allclose(qxc_outputs(path, {"x": x}, self.scratch)["y"], want, rtol=2e-6, atol=2e-6)
                        qxc(path, "-emit=c", "-no-sync", "-quiet", "-o", self.scratch / "m.c")
                        code = CModel(self.scratch / "m.c").run(x)[0].reshape(want.shape)
                        np.testing.assert_allclose(code, want, rtol=2e-6, atol=2e-6)
        path = self.channels_last("BatchNormalization", x.shape, operands, training_mode=1, **normal)
        self.assertIn("training_mode is 1, not 0", qxc(path, "-emit=c", "-o", self.scratch / "no.c", ok=False).stderr)
        self.assertFalse((self.scratch / "no.c").exists())

    def test_thresholds_below_opset_13(self):
        model = model_of("MultiThreshold", [1, 3, 4, 4], {"t": np.float32([[0, 1, 1.5]] * 3)}, out_dtype="UINT2")
        model.opset_import[0].version = 11
        path, out = self.scratch / "m.onnx", self.scratch / "out.onnx"
        onnx.save(model, path)
        done = qxc(path, "-emit=qdq", "-target-opset=11", "-o", out, ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("MultiThreshold): ONNX has operators for it from opset 13 on, not in 11", done.stderr)
        self.assertFalse(out.exists())
        qxc(path, "-emit=qdq", "-no-sync", "-o", out)  # nobody asked for opset 11
        self.assertFalse({n.op_type for n in onnx.load(out).graph.node} & {"MultiThreshold"})

    def test_too_many_axes(self):
        """Eight axes at most have parameters of their own."""
        model = model_of("Quant", [2] * 9, {"s": np.ones([2] * 9, np.float32), "z": np.float32([0]), "b": np.float32([4])})
        path = self.scratch / "m.onnx"
        onnx.save(model, path)
        done = qxc(path, "-form=true", ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("its scale varies along more than 8 axes", done.stderr)

    def test_listed(self):
        model = model_of("Quant", [1, 3], {"s": np.float32([0.5]), "z": np.float32([0]), "b": np.float32([4])})
        path = self.scratch / "m.onnx"
        onnx.save(model, path)
        self.assertRegex(qxc("list", "quant", path).stdout, r"int8q .* y_quantized")


if __name__ == "__main__":
    unittest.main()
