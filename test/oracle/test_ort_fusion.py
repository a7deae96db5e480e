"""What reports say onnxruntime will make of each node, against the model that onnxruntime writes out
after all its optimizations (SessionOptions.optimized_model_filepath)."""

import json

import numpy as np
import onnx
import onnxruntime as ort

import zoo
from common import DIGITS, NAMES, OracleCase, for_each, qxc
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
        return {n["name"]: (n["onnxruntime"], n["op"], actual.get(n["name"])) for n in report["nodes"]
                if n["name"] and n["kind"] != "conversion" and "onnxruntime" in n}

    def agree(self, source, calib, options):
        wrong = {}
        for name, (said, op, actual) in self.fusions(source, calib, options).items():
            if (actual or "nothing") != said and not (actual is None and said == op and op in REMOVED):
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

    @for_each(*NAMES)
    def test_models(self, name):
        path, calib = self.shared_model(f"{name}_fp32.onnx"), self.scratch / "calib.npz"
        model = onnx.load(path)
        np.savez(calib, **{model.graph.input[0].name: calibration(name)[:4]})
        self.agree(path, calib, [])
