"""Each combination of types that a scheme can ask for, through onnxruntime: what `qxc run` computes
on the model's own types is what onnxruntime computes on the emitted one, and the types asked for
are the types that stand in the file."""

import pathlib

import numpy as np
import onnx

from common import DIGITS, OracleCase, for_each, qxc, qxc_outputs, run_samples, session, sqnr, talk

MODEL, CALIB = DIGITS / "digits.onnx", DIGITS / "calib.npz"
MODELS = pathlib.Path(__file__).parents[1] / "models"
T = onnx.TensorProto

# name: weights, activations, more rules, types of weights and activations in the QDQ file
COMBINATIONS = {
    "W8A8": ("int8q sym per-channel", "uint8q", "", T.INT8, T.UINT8),
    "W8A16": ("int8q sym per-channel", "uint16q", "", T.INT8, T.UINT16),
    "W8A16 signed": ("int8q sym", "int16q sym", "", T.INT8, T.INT16),
    "W8A4": ("int8q sym per-channel", "int4q in uint8q", "", T.INT8, T.UINT8),
    "W4A8": ("int4q sym per-channel", "uint8q", "", T.INT4, T.UINT8),
    "U8U8": ("uint8q asym per-tensor", "uint8q", "", T.UINT8, T.UINT8),
    "U8S8": ("int8q sym per-tensor", "uint8q", "", T.INT8, T.UINT8),
    "S8S8": ("int8q sym", "int8q", "", T.INT8, T.INT8),
    "S8U8": ("uint8q asym per-tensor", "int8q", "", T.UINT8, T.INT8),
    "reduce-range": ("int8q sym per-channel reduce-range", "uint8q", "", T.INT8, T.UINT8),
    "pow2": ("int8q sym per-channel pow2", "uint8q pow2", "", T.INT8, T.UINT8),
}


def stored_types(model):
    """Element types of the integer weights, and of what QuantizeLinear yields."""
    constants = {c.name: c for c in model.graph.initializer}
    weights = {constants[n.input[0]].data_type for n in model.graph.node
               if n.op_type == "DequantizeLinear" and n.input[0] in constants
               and constants[n.input[0]].data_type != T.INT32}
    activations = {constants[n.input[2]].data_type for n in model.graph.node
                   if n.op_type == "QuantizeLinear" and len(n.input) > 2}
    return weights, activations


class Scheme(OracleCase):
    def scheme(self, name, weights, activations, more=""):
        path = self.scratch / f"{name}.scheme"
        path.write_text(f"scheme {{\n weights {weights}\n activations {activations}\n {more}\n}}\n")
        return path

    @for_each(*COMBINATIONS)
    def test_qdq(self, name):
        weights, activations, more, w_type, a_type = COMBINATIONS[name]
        scheme = self.scheme(name.replace(" ", "-"), weights, activations, more)
        onnx_file, text = self.scratch / "m.onnx", self.scratch / "m.qir"
        both = (MODEL, f"-calib={CALIB}", f"-scheme={scheme}", "-target=onnx", "-no-sync", "-quiet")
        qxc(*both, "-emit=qdq", "-o", onnx_file)
        qxc(*both, "-emit=qir", "-form=true", "-o", text)
        model = onnx.load(onnx_file)
        self.assertEqual(({w_type}, {a_type}), stored_types(model))
        with np.load(DIGITS / "test.npz") as data:
            image, labels = data["image"], data["labels"]
        want = run_samples(session(onnx_file, False), model, {"image": image})["logits"]
        got = qxc_outputs(text, {"image": image}, self.scratch)["logits"]
        want, got = want.reshape(-1, 10), got.reshape(-1, 10)
        step = max(np.diff(np.unique(want)).min(), 1e-6)
        away = np.rint(np.abs(want - got) / step)
        right = np.mean(np.argmax(got, axis=1) == labels)
        talk(f"{name:14} accuracy {100 * right:6.2f} %  differing {np.mean(away > 0):.2e} "
             f"by at most {away.max():.0f} steps")
        self.assertGreater(right, 0.9)
        self.assertLessEqual(away.max(), 2 if a_type in (T.UINT16, T.INT16) else 1)

    @for_each("W8A8", "U8U8", "S8S8", "S8U8", "W4A8", "W8A16", "W8A4")
    def test_ort_cpu(self, name):
        """QOperators where onnxruntime has a kernel; else the operator stays, with the reason."""
        weights, activations, more, *_ = COMBINATIONS[name]
        path = self.scratch / "m.onnx"
        said = qxc(MODEL, f"-calib={CALIB}", f"-scheme={self.scheme(name, weights, activations)}",
                   "-emit=qop", "-no-sync", "-o", path).stderr
        model = onnx.load(path)
        ops = {n.op_type for n in model.graph.node}
        reasons = {"S8U8": "onnxruntime has no kernel for QLinearConv on int8, uint8, int8",
                   "W8A16": "QLinearConv takes no uint16"}
        self.assertEqual(name not in reasons, "QLinearConv" in ops)
        self.assertEqual(name in reasons, "Conv" in ops)
        self.assertIn(reasons.get(name, ""), said)
        with np.load(DIGITS / "test.npz") as data:
            image, labels = data["image"], data["labels"]
        got = run_samples(session(path, True), model, {"image": image})["logits"]
        self.assertGreater(np.mean(np.argmax(got.reshape(-1, 10), axis=1) == labels), 0.9)

    @for_each("cancer", "charlm", "cnn", "lstm", "relu6", "unet", "vit")
    def test_read_back(self, name):
        """What -emit=scheme writes of an onnxruntime model gives the bytes that it was written of, with no other option
        than the data, wherever quantizers stand."""
        model = MODELS / f"{name}.onnx"
        decided, scheme, back = (self.scratch / f for f in ("decided.onnx", "m.scheme", "back.onnx"))
        for placement in ("products", "all", "auto"):
            both = (model, f"-calib={MODELS / f'{name}.calib.npz'}", "-no-sync", "-quiet")
            qxc(*both, f"-placement={placement}", "-emit=qdq", "-o", decided)
            qxc(*both, f"-placement={placement}", "-target=ort-cpu", "-emit=scheme", "-o", scheme)
            qxc(*both, f"-scheme={scheme}", "-emit=qdq", "-o", back)
            self.assertEqual(decided.read_bytes(), back.read_bytes(), placement)

    def linear(self):
        """MatMul + Add, twice."""
        rng = np.random.default_rng(3)
        constants = [onnx.numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
                     for name, shape in (("w1", (8, 6)), ("b1", (6,)), ("w2", (6, 4)), ("b2", (4,)))]
        nodes = [onnx.helper.make_node("MatMul", ["x", "w1"], ["m1"], "m1"),
                 onnx.helper.make_node("Add", ["m1", "b1"], ["a1"], "a1"),
                 onnx.helper.make_node("MatMul", ["a1", "w2"], ["m2"], "m2"),
                 onnx.helper.make_node("Add", ["m2", "b2"], ["y"], "a2")]
        info = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph(nodes, "linear", [info("x", T.FLOAT, [3, 8])],
                                       [info("y", T.FLOAT, [3, 4])], constants)
        model = onnx.helper.make_model(graph, ir_version=10,
                                       opset_imports=[onnx.helper.make_opsetid("", 21)])
        path = self.scratch / "linear.onnx"
        onnx.save(model, path)
        data = self.scratch / "linear.npz"
        np.savez(data, x=rng.normal(size=(20, 3, 8)).astype(np.float32))
        return path, data

    @for_each("qdq", "qop")
    def test_float_biases(self, form):
        """No product has a bias, each is added in float; onnxruntime and qxc agree, and the numbers do not depend on it."""
        scheme, out = self.scratch / "float-bias", self.scratch / f"float-bias.{form}.onnx"
        scheme.write_text("scheme { bias float }")
        qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", f"-scheme={scheme}", f"-emit={form}", "-no-sync",
            "-quiet", "-o", out)
        model = onnx.load(out)
        products = [n for n in model.graph.node if n.op_type in ("Conv", "Gemm", "MatMul", "MatMulIntegerToFloat")]
        self.assertTrue(products)
        for n in products:
            self.assertEqual(6 if n.domain else 2, len(n.input), n.name)
        self.assertFalse(any(t.data_type == T.INT32 for t in model.graph.initializer))
        with np.load(DIGITS / "test.npz") as data:
            image, labels = data["image"][:100], data["labels"][:100]
        got = run_samples(session(out), model, {"image": image})["logits"].reshape(-1, 10)
        self.assertGreater(np.mean(np.argmax(got, axis=1) == labels), 0.9)
        ours = qxc_outputs(out, {"image": image}, self.scratch)["logits"].reshape(got.shape)
        self.assertGreater(sqnr(got, ours), 40)

    @for_each("QDQ_OP_FP32_BIAS", "QDQ_OP_FP32_BIAS_QDQ")
    def test_recipe(self, recipe):
        path, data = self.linear()
        scheme = self.scheme(recipe, "int8q", "uint8q", f"recipe {recipe}")
        both = {}
        for form in ("qdq", "qop"):
            out = self.scratch / f"{form}.onnx"
            qxc(path, f"-calib={data}", f"-scheme={scheme}", f"-emit={form}", "-no-sync", "-quiet",
                "-o", out)
            model = onnx.load(out)
            makers = {n.output[0]: n for n in model.graph.node}
            readers = {i: n for n in model.graph.node for i in n.input}
            adds = [n for n in model.graph.node if n.op_type == "Add"]
            self.assertEqual(2, len(adds))
            for add in adds:  # float between MatMul and Add; what follows the Add is the recipe's
                product = "MatMul" if form == "qdq" else "MatMulIntegerToFloat"
                self.assertEqual(product, makers[add.input[0]].op_type)
            quantized = recipe == "QDQ_OP_FP32_BIAS_QDQ"
            self.assertEqual(quantized, "y" not in {a.output[0] for a in adds})
            self.assertEqual("QuantizeLinear", readers[adds[0].output[0]].op_type)
            with np.load(data) as samples:
                x = samples["x"]
            runner = session(out, False)
            both[form] = np.stack([runner.run(None, {"x": s})[0] for s in x])
        float_run = session(path, False)
        want = np.stack([float_run.run(None, {"x": s})[0] for s in x])
        for form, got in both.items():
            noise = np.abs(got - want).max() / np.abs(want).max()
            talk(f"{recipe} {form}: {noise:.4f} of the largest value away from float")
            self.assertLess(noise, 0.03)
        np.testing.assert_allclose(both["qdq"], both["qop"], atol=1e-4 * np.abs(want).max())
