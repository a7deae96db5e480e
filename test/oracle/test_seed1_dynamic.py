"""-dynamic: integer products whose inputs are quantized as they come. In ONNX's own operators and in
com.microsoft's, back from both and from what onnxruntime's quantize_dynamic writes."""

import functools
import logging
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

import float_models
from cmodel import CModel
from common import (TRAINED_MODELS, OracleCase, for_each, qxc, qxc_outputs, qxc_values, run_samples, session, sqnr,
                    talk)

FORMS = {"qdq": ["-emit=qdq"], "qop": ["-emit=qop"], "onnx": ["-emit=qop", "-target=onnx"]}
CASES = [f"{m}, {f}" for m in float_models.MODELS for f in FORMS]
EXACT = ("mlp", "convnet")  # nothing in between is rounded differently: no Softmax, no Tanh


def key(case):
    return tuple(part.strip() for part in case.split(","))


def types(path):
    return [n.op_type for n in onnx.load(path).graph.node]


class Dynamic(OracleCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.float_model = staticmethod(functools.cache(cls._float_model))
        cls.theirs = staticmethod(functools.cache(cls._theirs))

    @classmethod
    def _float_model(cls, name):
        return float_models.answered(name, cls.scratch)

    @classmethod
    def _theirs(cls, name, *weights):
        per_channel, kind = weights
        path = cls.scratch / f"{name}_{per_channel}_{kind}_theirs.onnx"
        level = logging.getLogger().level
        logging.getLogger().setLevel(logging.ERROR)
        quantize_dynamic(cls._float_model(name)[0], path, per_channel=per_channel, weight_type=kind)
        logging.getLogger().setLevel(level)
        return path

    def made(self, name, form, *options, source=None):
        path = self.scratch / f"{name}_{form}.onnx"
        qxc(source or self.float_model(name)[0], "-dynamic", *FORMS[form], "-no-sync", "-o", path, *options)
        return path

    def results(self, path, arrays, optimize=False):
        model = onnx.load(path)
        onnx.checker.check_model(model)
        return run_samples(session(path, optimize), model, arrays)["y"]

    def same(self, name, want, got):
        got = got.reshape(want.shape)
        if name in EXACT:
            np.testing.assert_array_equal(want, got)
        else:  # a step of the next layer's integers, where a float before it differs in its last bit
            self.assertGreater(sqnr(want, got), 50)

    @for_each(*CASES)
    def test_qxc_run_computes_what_onnxruntime_does(self, case):
        name, form = key(case)
        _, arrays, want = self.float_model(name)
        path = self.made(name, form)
        ours = qxc_outputs(path, arrays, self.scratch)["y"]
        self.same(name, self.results(path, arrays), ours)
        self.same(name if form != "qop" else "", self.results(path, arrays, True), ours)
        self.assertGreater(sqnr(want, ours), 25)

    @for_each(*float_models.MODELS)
    def test_operators(self, name):
        floats = [n for n in onnx.load(self.float_model(name)[0]).graph.node]
        products = sum(n.op_type in ("Conv", "Gemm") or (n.op_type == "MatMul" and "weight" in n.input[1])
                       for n in floats)
        for form in ("qdq", "onnx"):
            ops = types(self.made(name, form))
            self.assertEqual(products, ops.count("MatMulInteger") + ops.count("ConvInteger"))
            self.assertFalse({"Gemm", "Conv", "DequantizeLinear"} & set(ops))
            self.assertEqual({""}, {n.domain for n in onnx.load(self.made(name, form)).graph.node})
        ops = types(self.made(name, "qop"))
        self.assertEqual(products, sum(ops.count(o) for o in ("DynamicQuantizeMatMul",
                                                              "MatMulIntegerToFloat", "ConvInteger")))
        if name == "transformer":  # q, k and v read the same integers; biases are part of the product
            self.assertEqual((3, 3, 1), (ops.count("MatMulIntegerToFloat"), ops.count("DynamicQuantizeMatMul"),
                                         ops.count("DynamicQuantizeLinear")))
            self.assertEqual(2, ops.count("Add"))

    @for_each(*float_models.MODELS)
    def test_no_worse_than_quantize_dynamic(self, name):
        _, arrays, want = self.float_model(name)
        theirs = self.results(self.theirs(name, True, QuantType.QInt8), arrays)
        ours = self.results(self.made(name, "qdq"), arrays)
        talk(f"{name}: qxc {sqnr(want, ours):.2f} dB, quantize_dynamic {sqnr(want, theirs):.2f} dB")
        self.assertGreater(sqnr(want, ours), sqnr(want, theirs) - 0.5)

    @for_each(*(f"{m}, {p}, {k}" for m in float_models.MODELS for p in (True, False) for k in ("QInt8", "QUInt8")))
    def test_reads_quantize_dynamic(self, case):
        name, per_channel, kind = key(case)
        if name == "convnet" and kind == "QUInt8" and per_channel == "True":
            self.skipTest("onnxruntime has no ConvInteger with zero points by channel")
        path = self.theirs(name, per_channel == "True", QuantType[kind])
        _, arrays, _ = self.float_model(name)
        text = qxc(path, "-form=true").stdout
        products = types(path).count("MatMulInteger") + types(path).count("ConvInteger")
        self.assertGreater(products, 1)
        self.assertFalse("= MatMulInteger(" in text or "= ConvInteger(" in text)
        self.assertTrue("uint8q<dynamic>" in text)
        want = self.results(path, arrays)
        self.same(name, want, qxc_outputs(path, arrays, self.scratch)["y"])
        back = self.scratch / "back.onnx"
        qxc(path, "-emit=qdq", "-no-sync", "-o", back)
        self.assertEqual(products, types(back).count("MatMulInteger") + types(back).count("ConvInteger"))
        self.same(name, want, self.results(back, arrays))

    @for_each(*CASES)
    def test_forms_come_back(self, case):
        name, form = key(case)
        _, arrays, _ = self.float_model(name)
        path, back = self.made(name, form), self.scratch / "back.onnx"
        qxc(path, "-emit=qdq", "-no-sync", "-o", back)
        self.same(name, self.results(path, arrays), self.results(back, arrays))

    def test_integers_and_parameters(self):
        """DynamicQuantizeLinear itself: random numbers, ties, one sign only, zeros, infinity's neighbours."""
        rng = np.random.default_rng(5)
        rows = [rng.standard_normal(64) * 10.0**k for k in range(-6, 7)]
        rows += [np.zeros(64), -np.abs(rng.standard_normal(64)), np.abs(rng.standard_normal(64)) + 5,
                 np.arange(64) * 4.5 - 20, np.r_[np.full(63, 127.5), 255.0], np.full(64, 1e-40),
                 np.r_[0.0, 255.0, np.arange(62) + 0.5], np.full(64, -1e37)]
        x = np.stack(rows).astype(np.float32)
        node = helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])
        outputs = [helper.make_tensor_value_info("q", TensorProto.UINT8, [1, 64])]
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
                                  outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        want = run_samples(session(model), model, {"x": x})["q"]
        text = self.scratch / "one.qir"
        text.write_text('qir 1\nimport "" 17\ngraph @g (%x : float[1,64]) -> (%q) {\n'
                        "  %q : uint8q<dynamic>[1,64] = QuantizeLinear(%x)\n}\n")
        got = qxc_outputs(text, {"x": x}, self.scratch)["q"]
        np.testing.assert_array_equal(want.reshape(got.shape), got)

    def test_gemm_alpha_and_beta(self):
        rng = np.random.default_rng(6)
        w, b = rng.standard_normal((20, 6)).astype(np.float32), rng.standard_normal(6).astype(np.float32)
        node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], alpha=0.5, beta=3.0)
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 20])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 6])],
                                  [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        path = self.scratch / "gemm.onnx"
        onnx.save(model, path)
        arrays = {"x": rng.standard_normal((5, 20)).astype(np.float32)}
        want = run_samples(session(path), model, arrays)["y"]
        for form in FORMS:
            made = self.made("gemm_made", form, source=path)
            got = self.results(made, arrays)
            self.assertGreater(sqnr(want, got), 30)
            np.testing.assert_array_equal(got.reshape(5, 6), qxc_outputs(made, arrays, self.scratch)["y"])

    @for_each(*float_models.MODELS)
    def test_emitted_c(self, name):
        """The same bits as qxc run, from the quantized ONNX."""
        _, arrays, _ = self.float_model(name)
        path, source = self.made(name, "qdq"), self.scratch / f"{name}.c"
        qxc(path, "-emit=c", "-no-sync", "-o", source)
        model = CModel(source)
        got = np.stack([model.run(x)[0] for x in arrays["x"]])
        want = qxc_outputs(path, arrays, self.scratch)["y"]
        np.testing.assert_array_equal(want.reshape(got.shape), got)

    def test_embeddings(self):
        """quantize_dynamic stores tables that Gather reads as integers: the file's numbers in every form, and the float model."""
        source, path = TRAINED_MODELS / "charlm.onnx", self.scratch / "charlm.onnx"
        quantize_dynamic(source, path, weight_type=QuantType.QUInt8)
        self.assertEqual(["Gather", "DequantizeLinear"], types(path)[:2])
        data = np.load(TRAINED_MODELS / "charlm.test.npz")
        arrays = {data.files[0]: data[data.files[0]][:4]}
        results = {}
        for form, options in {"file": (), "qdq": ("-emit=qdq",), "qop": ("-emit=qop",), "float": ("-emit=float",)}.items():
            out = self.scratch / f"charlm.{form}.onnx" if options else path
            if options:
                qxc(path, *options, "-no-sync", "-quiet", "-o", out)
            model = onnx.load(out)
            results[form] = next(iter(run_samples(session(model), model, arrays).values()))
        for form, bound in {"qdq": 120, "qop": 120, "float": 35}.items():
            with self.subTest(form=form):
                self.assertGreater(sqnr(results["file"], results[form]), bound)
        left = {"DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger"} & set(types(self.scratch / "charlm.float.onnx"))
        self.assertEqual(set(), left)
        qxc(path, "-emit=c", "-no-sync", "-o", self.scratch / "charlm.c")
        one = arrays[data.files[0]][:1]
        got = np.asarray(CModel(self.scratch / "charlm.c").run(one)[0])
        want = results["file"][:1]
        self.assertGreater(sqnr(want, got.reshape(want.shape)), 60)

    def test_values_keep_their_integers(self):
        _, arrays, _ = self.float_model("mlp")
        text = self.scratch / "mlp.qir"
        qxc(self.float_model("mlp")[0], "-dynamic", "-no-sync", "-o", text)
        with qxc_values(text, arrays, self.scratch) as values:
            self.assertEqual(np.uint8, values["x_quantized"].dtype)
            self.assertEqual(0, values["relu2_quantized"].min())


if __name__ == "__main__":
    unittest.main()
