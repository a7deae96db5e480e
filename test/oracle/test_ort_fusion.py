"""What reports say onnxruntime will make of each node, against the model that onnxruntime writes out
after all its optimizations (SessionOptions.optimized_model_filepath)."""

import json

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

import zoo
from common import DIGITS, OracleCase, for_each, for_each_model, model_path, qxc, session, sqnr
from inputs import calibration

TYPES = {"u8 x s8": [], "u8 x u8": ["-weights=uint8"], "s8 x s8": ["-activations=int8"], "per tensor": ["-per-tensor"],
         "a16 x w8": ["-activations=uint16"], "a4 x w8": ["-activations=uint4"], "a4 in u8 x w8": ["-activations=int4q in uint8q"],
         "a4 in s8 x w8": ["-activations=int4q in int8q"], "a8 x w4": ["-weights=int4"]}
# Names onnxruntime gives to operators of ours that it fuses with a neighbour in float, or spells otherwise.
SAME = {"FusedConv": "Conv", "FusedGemm": "Gemm", "FusedMatMul": "MatMul", "QuickGelu": "Gelu"}


REMOVED = ("Dropout", "Expand", "Identity",  # where they change nothing
           "HardSwish", "Mish")  # onnxruntime spells these with other operators, all float


class OrtFusion(OracleCase):
    def fusions(self, source, calib, options):
        """{node: (said, actual)}; actual is None where onnxruntime has no such node any more."""
        out, saved = self.scratch / "out.onnx", self.scratch / "saved.onnx"
        qxc(source, "-emit=qdq", "-no-sync", "-o", out, f"-calib={calib}", *options)
        report = json.loads(qxc(out, "-emit=json", "-quiet").stdout)
        settings = ort.SessionOptions()
        settings.optimized_model_filepath, settings.log_severity_level = str(saved), 3
        settings.add_session_config_entry("session.qdqisint8allowed", "1")
        # Those that change the layout give nodes no names; they come after the fusions.
        ort.InferenceSession(str(out), settings, ["CPUExecutionProvider"],
                             disabled_optimizers=["NhwcTransformer", "NchwcTransformer"])
        actual = {n.name: SAME.get(n.op_type, n.op_type) for n in onnx.load(saved).graph.node if n.name}
        return {n["name"]: (n["onnxruntime"], n["op"], actual.get(n["name"])) for n in report["layers"]
                if n["name"] and "onnxruntime" in n}

    def agree(self, source, calib, options):
        wrong = {}
        for name, (said, op, actual) in self.fusions(source, calib, options).items():
            if (actual or "nothing") != SAME.get(said, said) and not (actual is None and said == op and op in REMOVED):
                wrong[name] = (said, actual)
        self.assertEqual({}, wrong)

    @for_each(11, 17, 21)
    def test_operators(self, opset):
        source, calib = self.scratch / "zoo.onnx", self.scratch / "zoo.npz"
        onnx.save(zoo.zoo(opset), source)
        np.savez(calib, x=np.random.default_rng(1).standard_normal((8, *zoo.SHAPE[1:])).astype(np.float32))
        for kind, options in TYPES.items():
            with self.subTest(kind):
                self.agree(source, calib, options)

    def test_digits(self):
        for kind, options in TYPES.items():
            with self.subTest(kind):
                self.agree(DIGITS / "digits.onnx", DIGITS / "calib.npz", options)

    @for_each_model()
    def test_models(self, name):
        path, calib = model_path(name, "fp32"), self.scratch / "calib.npz"
        model = onnx.load(path)
        np.savez(calib, **{model.graph.input[0].name: calibration(name)[:4]})
        self.agree(path, calib, [])

    def weights_alone(self, shape, options, op="MatMul", bias=None, **attrs):
        """Whether the report, the summary and onnxruntime say MatMulNBits; the model that was written."""
        source, out, saved, report = (self.scratch / n for n in ("source.onnx", "out.onnx", "saved.onnx", "r.json"))
        constants = {"w": np.random.default_rng(2).standard_normal(shape), **({"b": np.ones(bias)} if bias else {})}
        node = helper.make_node(op, ["x", *constants], ["y"], "it", **attrs)
        graph = helper.make_graph(
            [node], "g",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["M", shape[-1 if attrs else -2]])],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
            [numpy_helper.from_array(v.astype(np.float32), n) for n, v in constants.items()])
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 21)]), source)
        summary = qxc(source, "-weight-only", "-emit=qdq", "-no-sync", "-o", out, f"-report={report}", *options).stderr
        settings = ort.SessionOptions()
        settings.optimized_model_filepath, settings.log_severity_level = str(saved), 3
        ort.InferenceSession(str(out), settings, ["CPUExecutionProvider"])
        said = {n["name"]: n.get("onnxruntime") for n in json.loads(report.read_text())["layers"]}
        return [said["it"] == "MatMulNBits", "MatMulNBits" in summary.split("why:")[-1].split("\n", 2)[-1],
                any(n.op_type == "MatMulNBits" for n in onnx.load(saved).graph.node)], out

    def test_weights_alone(self):
        """onnxruntime rounds the float operand of such products to 8 bits in its fastest kernel: of which is told."""
        seen = set()
        for shape, options, more in (
                ((64, 48), ["-weights=int8"], {}), ((64, 48), ["-weights=uint8"], {}), ((20, 7), ["-weights=int8"], {}),
                ((64, 48), ["-weights=int8", "-per-tensor"], {}), ((64, 48), ["-weights=int4"], {}),
                ((64, 48), ["-weights=int4 block(32)"], {}), ((64, 48), ["-weights=int4 block(20)"], {}),
                ((64, 48), ["-weights=int8 block(32)"], {}), ((64, 48), ["-weights=int2 block(32)"], {}),
                ((64, 48), ["-weights=int16"], {}), ((3, 64, 48), ["-weights=int8"], {}),
                ((64, 48), [], {"op": "Gemm"}), ((64, 48), [], {"op": "Gemm", "bias": (48,)}),
                ((64, 48), [], {"op": "Gemm", "bias": (1, 48)}), ((48, 64), [], {"op": "Gemm", "transB": 1})):
            with self.subTest(shape=shape, options=options, more=more):
                (report, summary, actual), _ = self.weights_alone(shape, options, **more)
                self.assertEqual((report, summary), (actual, actual))
                seen.add(actual)
        self.assertEqual({False, True}, seen)

    def test_the_option_keeps_activations_float(self):
        _, path = self.weights_alone((64, 48), ["-weights=int8"])
        x = np.random.default_rng(3).standard_normal((8, 64)).astype(np.float32)
        x[:, 5] *= 100
        want, told = session(self.scratch / "source.onnx").run(None, {"x": x})[0], ort.SessionOptions()
        told.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
        exact = ort.InferenceSession(str(path), told, ["CPUExecutionProvider"]).run(None, {"x": x})[0]
        self.assertGreater(sqnr(want, exact), sqnr(want, session(path, True).run(None, {"x": x})[0]) + 5)
