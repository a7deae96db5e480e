"""Does static quantization feed a layer with the output of the one before, without going through float?
With QDQ models the answer stands in what the runtime makes of them; here it is read from the report,
seen in the model that onnxruntime writes out, and taken to its end in C without floating point.

The question and its answer, and where each part is:
  a QDQ model computes dequantization           test_a_qdq_model_of_onnxruntimes_quantizer,
    right behind quantization: why?               test_every_layer_hands_on_integers
  static and dynamic differ in when             test_when_parameters_are_computed
    parameters are computed
  dynamic keeps tensors between layers float    test_floats_between_layers
  option 1, the sum as float, and a bias        test_option_1
    with scale and zero point of its own
  option 2, the sum as integers of Y            test_option_2
  M = Sx Sw / Sy = 2^-n M0 is known when        test_option_1a_in_fixed_point
    compiling: option 1(a)
  a board that has no floating point            test_hardware_without_float
"""

import json
import re
import shutil
import subprocess

import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from cmodel import CModel
from common import DIGITS, OracleCase, compile_c, for_each, qxc, qxc_outputs, run_samples, session

MODEL, CALIB = DIGITS / "digits.onnx", DIGITS / "calib.npz"

# y = x W + b: all that the formulas of the answer name, as types.
SX, ZX, SB, ZB, SY, ZY = 0.05, 3, 0.25, -7, 0.5, 4
SW, ZW = np.float32([0.02, 0.03]), np.array([1, -2])
W = np.array([[1, 2], [3, 4], [-5, 6], [70, -80]])
LAYER = """qir 1
import "" 21
quant !x = int8q<0.05, 3>
quant !w = int8q<[0.02, 0.03], [1, -2], axis=1>
graph @main (%x : !x[1,4]) -> (%y) {{
  const %w : !w[4,2] = [1, 2, 3, 4, -5, 6, 70, -80]
  const %b : {bias}
  %y : {result} = Gemm(%x, %w, %b)
}}
"""
OWN, ACC, FLOAT, INT = "int16q<0.25, -7>[2] = [100, -30]", "acc<%x, %w>[2] = [1000, -300]", "float[1,2]", "int8q<0.5, 4>[1,2]"


def inputs():
    """Random, and both ends of the type."""
    rng = np.random.default_rng(3)
    return np.concatenate([rng.integers(-128, 128, (200, 4)), np.full((1, 4), -128), np.full((1, 4), 127)]).astype(np.int8)


def sums(x):
    """(Xq - Zx)(Wq - Zw)."""
    return (x.astype(np.int64) - ZX) @ (W - ZW)


class IntegersBetweenLayers(OracleCase):
    def report(self, *options):
        return json.loads(qxc(MODEL, "-emit=json", "-quiet", *options).stdout)

    def test_every_layer_hands_on_integers(self):
        """Option 2: nothing is float between the ends, although the QDQ model shows float operators."""
        report = self.report(f"-calib={CALIB}")
        self.assertEqual({"integer"}, {n["kind"] for n in report["layers"]})
        out, saved = self.scratch / "out.onnx", self.scratch / "saved.onnx"
        qxc(MODEL, "-emit=qdq", f"-calib={CALIB}", "-no-sync", "-o", out)
        settings = ort.SessionOptions()
        settings.optimized_model_filepath, settings.log_severity_level = str(saved), 3
        ort.InferenceSession(str(out), settings, ["CPUExecutionProvider"])
        left = [n.op_type for n in onnx.load(saved).graph.node if "uantizeLinear" in n.op_type]
        self.assertEqual(["QuantizeLinear"], left)  # at the input; the last QGemm yields floats itself

    def test_a_float_node_says_why(self):
        nodes = {n["name"]: n for n in self.report(f"-calib={CALIB}", "-keep=stem.conv", "-keep=Add")["layers"]}
        self.assertEqual(("float", "kept float as asked"), (nodes["stem.conv"]["kind"], nodes["stem.conv"]["why"]))
        add = nodes["block.add"]  # DequantizeLinear before and QuantizeLinear behind: enough for onnxruntime
        self.assertEqual(("integer", "QLinearAdd"), (add["kind"], add["onnxruntime"]))
        self.assertIn("kept float as asked; ", add["why"])

    def test_floats_between_layers(self):
        """Option 1: products of integers, their results float."""
        nodes = self.report("-dynamic")["layers"]
        self.assertTrue(any(n["op"] in ("ConvInteger", "MatMulInteger") and n["kind"] == "integer" for n in nodes))
        relu = next(n for n in nodes if n["op"] == "Relu")
        self.assertEqual("float", relu["kind"])

    def layer(self, bias, result):
        path = self.scratch / "layer.qir"
        path.write_text(LAYER.format(bias=bias, result=result))
        return path

    def computed(self, path, x, *options):
        """By qxc and by onnxruntime, in QOperator form."""
        qop = self.scratch / "layer.onnx"
        qxc(path, "-emit=qop", "-no-sync", "-quiet", "-o", qop)
        yield "qxc", qxc_outputs(path, {"x": x}, self.scratch, *options)["y"].reshape(-1, 2)
        if not options:
            yield "onnxruntime", run_samples(session(qop), onnx.load(qop), {"x": x})["y"].reshape(-1, 2)

    def test_option_1(self):
        """Y = Sx Sw (Xq - Zx)(Wq - Zw) + Sb (bq - Zb): integers inside, float between the layers."""
        x = inputs()
        want = np.float32(SX) * SW * sums(x) + np.float32(SB) * (np.array([100, -30]) - ZB)
        for where, got in self.computed(self.layer(OWN, FLOAT), x):
            self.assertEqual(np.float32, got.dtype)
            step = np.float32(SX) * SW  # the bias is rounded to the grid of the sum
            self.assertLessEqual(np.max(np.abs(got - want) / step), 0.51, where)

    def test_option_2(self):
        """Yq = Sx Sw / Sy ((Xq - Zx)(Wq - Zw) + b) + Zy."""
        x = inputs()
        m = (np.float32(SX) * SW) / np.float32(SY)
        want = np.clip(np.rint((sums(x) + [1000, -300]).astype(np.float32) * m) + ZY, -128, 127)
        for where, got in self.computed(self.layer(ACC, INT), x):
            self.assertEqual(np.int8, got.dtype)
            np.testing.assert_array_equal(got, want, where)

    @for_each("single", "double")
    def test_option_1a_in_fixed_point(self, rounding):
        """Yq = M ((Xq - Zx)(Wq - Zw) + b) + Zy, where M = 2^-n M0 and M0 and n are constants of the C."""
        x, path, source = inputs(), self.layer(ACC, INT), self.scratch / "layer.c"
        qxc(path, "-emit=c", "-integer-only", f"-requant={rounding}", "-no-sync", "-quiet", "-o", source)
        text = source.read_text()
        tables = {name: np.array(numbers.split(","), np.int64) for name, numbers in re.findall(
            r"static const int32_t k\d+_(\w+)\[16\] = \{\s*([-\d, \n]*\d),?\s*\}", text)}
        for name in "mul", "shift":  # a block of 16 columns, filled up with the last one
            self.assertTrue((tables[name][2:] == tables[name][1]).all())
            tables[name] = tables[name][:2]
        m0, n = tables["mul"], -tables["shift"]
        np.testing.assert_allclose(m0 * 2.0**-n, SX * SW.astype(float) / SY, rtol=1e-6)
        self.assertTrue(((2**30 <= m0) & (m0 < 2**31)).all())
        acc = sums(x) + [1000, -300]
        if rounding == "single":
            want = (acc * m0 + (1 << (n - 1))) >> n
        else:  # first to 32 bits, then by 2^-(n - 31), both to the nearest
            high = (acc * m0 + (1 << 30)) >> 31
            want = (np.abs(high) + (1 << (n - 32)) >> (n - 31)) * np.sign(high)
        want = np.clip(want + ZY, -128, 127)
        model = CModel(source)
        np.testing.assert_array_equal(np.stack([model.run(row)[0] for row in x]), want)
        for _, got in self.computed(path, x, f"-requant={rounding}"):
            np.testing.assert_array_equal(got, want)

    def test_when_parameters_are_computed(self):
        """Static: constants of the model. Dynamic: results of its nodes."""
        for options, conversion in (((f"-calib={CALIB}",), "QuantizeLinear"), (("-dynamic",), "ConvInteger")):
            out = self.scratch / "out.onnx"
            qxc(MODEL, "-emit=qdq", *options, "-no-sync", "-quiet", "-o", out)
            graph = onnx.load(out).graph
            constants = {t.name for t in graph.initializer}
            params = [n.input[{"QuantizeLinear": 1, "ConvInteger": 2}[conversion]] for n in graph.node
                      if n.op_type == conversion]
            self.assertTrue(params)
            self.assertEqual({conversion == "QuantizeLinear"}, {p in constants for p in params})

    def test_a_qdq_model_of_onnxruntimes_quantizer(self):
        """Its conversions stand next to each other, and its operators are float: read as types, integers travel."""
        class Images(CalibrationDataReader):
            rows = iter([{"image": image[None]} for image in np.load(CALIB)["image"][:20]])

            def get_next(self):
                return next(self.rows, None)
        optimized, theirs, ours = (self.scratch / f"{name}.onnx" for name in ("optimized", "theirs", "ours"))
        quant_pre_process(MODEL, optimized, skip_symbolic_shape=True)
        quantize_static(optimized, theirs, Images(), quant_format=QuantFormat.QDQ,
                        extra_options={"ActivationSymmetric": False, "WeightSymmetric": True})
        nodes = onnx.load(theirs).graph.node
        self.assertGreater(sum(n.op_type == "DequantizeLinear" for n in nodes), 15)
        qxc(theirs, "-emit=qop", "-no-sync", "-quiet", "-o", ours)
        ops = [n.op_type for n in onnx.load(ours).graph.node]
        self.assertEqual(1, ops.count("QuantizeLinear"))  # of the input
        self.assertEqual(ops.count("QLinearConv"), sum(n.op_type == "Conv" for n in nodes))

    def test_hardware_without_float(self):
        """Scales become integer multipliers: the C holds no floating point."""
        out = self.scratch / "digits.c"
        qxc(MODEL, "-emit=c", "-integer-only", f"-calib={CALIB}", "-no-sync", "-o", out)
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", out.read_text(), flags=re.S)
        self.assertNotRegex(code, r"\b(float|double)\b")
        compile_c("gcc", "-std=c99", "-mgeneral-regs-only", "-O1", "-c", str(out), "-o", str(self.scratch / "digits.o"))

    def test_losses_are_in_the_report(self):
        rows = [n["sqnr_db"] for n in self.report(f"-calib={CALIB}")["layers"] if "sqnr_db" in n]
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
        self.assertEqual(2, text.count("<script"))  # the data, and what shows them
        self.assertEqual(2, text.count("</script"))
        self.assertNotRegex(text.replace(json.dumps(evil)[1:-1].replace("<", "\\u003c"), ""), r"(src|href)\s*=\s*[\"'](?!#)")
        self.assertIn("\\u003cscript", text)
        for line in dot.read_text().splitlines():  # every label ends where it should
            self.assertEqual(0, len(re.findall(r'(?<!\\)"', line.replace("\\\\", ""))) % 2, line)
        if shutil.which("dot"):
            subprocess.run(["dot", "-Tsvg", str(dot), "-o", str(self.scratch / "page.svg")], check=True)
