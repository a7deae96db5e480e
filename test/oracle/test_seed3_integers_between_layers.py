"""Does static quantization feed a layer with the output of the one before, without going through float?
With QDQ models the answer stands in what the runtime makes of them; here it is read from the report,
seen in the model that onnxruntime writes out, and taken to its end in C without floating point."""

import json
import re
import shutil
import subprocess

import numpy as np
import onnx
import onnxruntime as ort

from common import DIGITS, OracleCase, compile_c, qxc

MODEL, CALIB = DIGITS / "digits.onnx", DIGITS / "calib.npz"


class IntegersBetweenLayers(OracleCase):
    def report(self, *options):
        return json.loads(qxc(MODEL, "-emit=json", "-quiet", *options).stdout)

    def test_every_layer_hands_on_integers(self):
        """Option 2: nothing is float between the ends, although the QDQ model shows float operators."""
        report = self.report(f"-calib={CALIB}")
        nodes = [n for n in report["nodes"] if n["kind"] != "conversion"]
        self.assertEqual({"integer"}, {n["kind"] for n in nodes})
        out, saved = self.scratch / "out.onnx", self.scratch / "saved.onnx"
        qxc(MODEL, "-emit=qdq", f"-calib={CALIB}", "-no-sync", "-o", out)
        settings = ort.SessionOptions()
        settings.optimized_model_filepath, settings.log_severity_level = str(saved), 3
        ort.InferenceSession(str(out), settings, ["CPUExecutionProvider"])
        left = [n.op_type for n in onnx.load(saved).graph.node if "uantizeLinear" in n.op_type]
        self.assertEqual(["DequantizeLinear", "QuantizeLinear"], sorted(left))  # one at each end

    def test_a_float_node_says_why(self):
        nodes = {n["name"]: n for n in self.report(f"-calib={CALIB}", "-keep=stem.conv", "-keep=Add")["nodes"]}
        self.assertEqual(("float", "kept float as asked"), (nodes["stem.conv"]["kind"], nodes["stem.conv"]["why"]))
        add = nodes["block.add"]  # DequantizeLinear before and QuantizeLinear behind: enough for onnxruntime
        self.assertEqual(("integer", "QLinearAdd"), (add["kind"], add["onnxruntime"]))
        self.assertIn("kept float as asked; ", add["why"])

    def test_floats_between_layers(self):
        """Option 1: products of integers, their results float."""
        nodes = self.report("-dynamic")["nodes"]
        self.assertTrue(any(n["op"] in ("ConvInteger", "MatMulInteger") and n["kind"] == "integer" for n in nodes))
        relu = next(n for n in nodes if n["op"] == "Relu")
        self.assertEqual("float", relu["kind"])

    def test_hardware_without_float(self):
        """Scales become integer multipliers: the C holds no floating point."""
        out = self.scratch / "digits.c"
        qxc(MODEL, "-emit=c", "-integer-only", f"-calib={CALIB}", "-no-sync", "-o", out)
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", out.read_text(), flags=re.S)
        self.assertNotRegex(code, r"\b(float|double)\b")
        compile_c("gcc", "-std=c99", "-mgeneral-regs-only", "-O1", "-c", str(out), "-o", str(self.scratch / "digits.o"))

    def test_losses_are_in_the_report(self):
        rows = [n["sqnr_db"] for n in self.report(f"-calib={CALIB}")["nodes"] if "sqnr_db" in n]
        self.assertGreater(len(rows), 5)
        self.assertGreater(np.min([r for r in rows if r != "equal"]), 15)

    def test_page(self):
        """Names that try to be markup stay names; nothing is loaded from elsewhere."""
        model = onnx.load(MODEL)
        evil = "<script src='http://x'>&\""
        model.graph.node[0].name = evil
        onnx.save(model, self.scratch / "evil.onnx")
        page, dot = self.scratch / "page.html", self.scratch / "page.dot"
        for emit, out in (("html", page), ("dot", dot)):
            qxc(self.scratch / "evil.onnx", f"-emit={emit}", f"-calib={CALIB}", "-quiet", "-no-sync", "-o", out)
        text = page.read_text()
        self.assertNotIn("<script", text)
        self.assertNotRegex(text, r"(src|href)\s*=\s*[\"'](?!#)")
        self.assertIn("&lt;script", text)
        for line in dot.read_text().splitlines():  # every label ends where it should
            self.assertEqual(0, len(re.findall(r'(?<!\\)"', line.replace("\\\\", ""))) % 2, line)
        if shutil.which("dot"):
            subprocess.run(["dot", "-Tsvg", str(dot), "-o", str(self.scratch / "page.svg")], check=True)
