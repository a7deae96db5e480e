"""onnxruntime's page "Quantize ONNX models", section by section: what it promises or warns of, done with qxc and
judged by onnxruntime. (-dynamic and -weight-only in detail: test_seed1_dynamic.py, test_seed1_weight_only.py.)

  overview: formulas of scales, 0 is exact              test_formulas, test_zero_is_exact
  the two representations                               test_two_representations
  models that are quantized already                     test_quantized_models_are_taken_as_they_are
  changes by basic and extended optimizations           test_names_of_an_optimized_model
  quantize_dynamic(..., weight_type=QUInt8)             test_example_dynamic
  quantize_qat(...)                                     test_example_qat
  method selection                                      test_advice
  data type selection: U8U8, U8S8, S8U8, S8S8           test_types
  list of supported quantized ops                       test_list_of_operators
  model opset versions                                  test_opset_below_10
  transformer-based models                              test_transformer_that_was_optimized
  quantization on GPU: TensorRT and its calibration     test_tensorrt
  why am I not seeing performance improvements?         test_report_tells_what_is_fused
  when to use per-channel and reduce-range?             test_per_channel_and_reduce_range
  why operators like MaxPool are not quantized?         test_maxpool
"""

import json
import re
import struct
import unittest

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

import bert
import float_models
from common import DIGITS, OracleCase, for_each, qxc, qxc_outputs, run_samples, session, sqnr

MODEL, CALIB, TEST = DIGITS / "digits.onnx", DIGITS / "calib.npz", DIGITS / "test.npz"
COUNT = 60


def operators(path):
    return [n.op_type for n in onnx.load(path).graph.node]


class Page(OracleCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with np.load(TEST) as data:
            cls.data = {"image": data["image"][:COUNT]}
        cls.want = run_samples(session(MODEL), onnx.load(MODEL), cls.data)["logits"]

    def made(self, *options, model=MODEL, name="made.onnx"):
        path = self.scratch / name
        self.said = qxc(model, *options, "-no-sync", "-o", path).stderr
        return path

    def quality(self, path, optimize=True):
        return sqnr(self.want, run_samples(session(path, optimize), onnx.load(path), self.data)["logits"])

    def scale_of(self, kind, low, high):
        text = self.scratch / "one.qir"
        text.write_text('qir 1\nimport "" 21\ngraph @g (%x : float[2,2]) -> (%y) {\n  %y : float[2,2] = Sigmoid(%x)\n'
                        f'  stat %x <min={low!r}, max={high!r}>\n  stat %y <min=0.0, max=1.0>\n}}\n')
        out = qxc(text, "-form=fake", f"-activations={kind}", "-quiet").stdout
        return re.search(r"quant !x = \w+<([^,>]*)(?:, (-?\d+))?", out).groups(default="0")

    def test_formulas(self):
        """Unsigned: (max - min) / (qmax - qmin). Signed: max(|min|, |max|) * 2 / (qmax - qmin)."""
        for low, high in ((-1.0, 2.0), (-0.375, 0.1015625), (0.5, 7.0), (-9.0, -1.0)):
            scale, zero = self.scale_of("uint8 asym", low, high)
            low0, high0 = min(low, 0), max(high, 0)
            self.assertEqual(np.float32(scale), np.float32((high0 - low0) / 255))
            self.assertEqual(int(zero), round(-low0 / ((high0 - low0) / 255)))
            scale, zero = self.scale_of("int8 sym", low, high)
            self.assertEqual((np.float32(scale), zero), (np.float32(max(abs(low), abs(high)) * 2 / 254), "0"))

    @for_each("uint8 asym", "int8 asym", "int8 sym", "uint8 sym", "uint8 asym pow2")
    def test_zero_is_exact(self, kind):
        """Padding with zeros loses nothing: a zero point is an integer of the type."""
        for low, high in ((0.1, 0.9), (-5.0, -0.01), (-1e-3, 1e3)):
            scale, zero = self.scale_of(kind, low, high)
            least = -128 if kind.startswith("int8") else 0
            self.assertTrue(least <= int(zero) <= least + 255)

    def test_two_representations(self):
        """QDQ and operator oriented: of both the same numbers, by every runtime's own way."""
        qdq, qop = (self.made(f"-calib={CALIB}", f"-emit={form}", name=f"{form}.onnx") for form in ("qdq", "qop"))
        self.assertIn("Conv", operators(qdq))
        self.assertIn("QLinearConv", operators(qop))
        got = [run_samples(session(p, True), onnx.load(p), self.data)["logits"] for p in (qdq, qop)]
        np.testing.assert_array_equal(*got)
        self.assertGreater(self.quality(qdq), 25)

    def test_quantized_models_are_taken_as_they_are(self):
        """QDQ becomes operators and the other way around, without data; nothing is decided anew."""
        qdq = self.made(f"-calib={CALIB}", "-emit=qdq", name="qdq.onnx")
        there = self.made("-emit=qop", model=qdq, name="there.onnx")
        back = self.made("-emit=qdq", model=there, name="back.onnx")
        again = self.made("-emit=qdq", f"-calib={CALIB}", model=qdq, name="again.onnx")
        self.assertIn("quantized already: -calib decides nothing", self.said)
        results = [run_samples(session(p, True), onnx.load(p), self.data)["logits"] for p in (qdq, there, back, again)]
        for got in results[1:]:
            np.testing.assert_array_equal(got, results[0])

    def test_names_of_an_optimized_model(self):
        """Nodes that fold into others: the result says from which it was made."""
        made = onnx.load(self.made(f"-calib={CALIB}", "-emit=qop"))
        self.assertNotIn("BatchNormalization", {n.op_type for n in made.graph.node})
        notes = [p.value for n in made.graph.node for p in n.metadata_props if p.key == "qxc.from"]
        self.assertTrue(any("BatchNormalization" in note for note in notes))

    def test_example_dynamic(self):
        for form in ("qdq", "qop"):
            path = self.made("-dynamic", "-weights=uint8 asym", f"-emit={form}")
            weights = [t for t in onnx.load(path).graph.initializer if len(t.dims) > 1 and t.data_type != T.FLOAT]
            self.assertEqual([T.UINT8] * 5, [t.data_type for t in weights])
            self.assertGreater(self.quality(path), 30)

    def test_example_qat(self):
        """Trained with FakeQuantize, whose Q and DQ stand in the model."""
        values = {"s": np.float32(0.05), "z": np.int8(3), "w": np.float32([[0.2, -0.1], [0.4, 0.3]]),
                  "ws": np.float32(0.01), "wz": np.int8(0), "b": np.float32([0.5, -0.5])}
        node = helper.make_node
        nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
                 node("QuantizeLinear", ["w", "ws", "wz"], ["wq"]), node("DequantizeLinear", ["wq", "ws", "wz"], ["wd"]),
                 node("Gemm", ["d", "wd", "b"], ["g"]), node("QuantizeLinear", ["g", "s", "z"], ["gq"]),
                 node("DequantizeLinear", ["gq", "s", "z"], ["y"])]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, [1, 2])],
                                  [helper.make_tensor_value_info("y", T.FLOAT, [1, 2])],
                                  [numpy_helper.from_array(v, k) for k, v in values.items()])
        source = self.scratch / "qat.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), source)
        path = self.made("-emit=qop", model=source)
        self.assertEqual(["QuantizeLinear", "QGemm", "DequantizeLinear"], operators(path))
        x = {"x": np.random.default_rng(1).normal(size=(50, 2)).astype(np.float32)}
        got, want = (run_samples(session(p), onnx.load(p), x)["y"] for p in (path, source))
        self.assertLess(np.max(np.abs(got - want)), 1.01 * values["s"])  # the bias is rounded to the grid of the sum
        self.assertLess(np.mean(got != want), 0.05)

    def test_advice(self):
        """Dynamic for recurrent and transformer models, static for convolutional ones."""
        net = self.scratch / "bert.onnx"
        bert.save(bert.small(), net)
        calib = self.scratch / "sentences.npz"
        np.savez(calib, **bert.small().sentences(4, 12, 1))
        self.made(f"-calib={calib}", "-emit=qdq", model=net)
        self.assertIn("-dynamic usually keeps more", self.said)
        self.made("-dynamic", "-emit=qdq", model=net)
        self.assertNotIn("advice", self.said)
        self.made("-dynamic", "-emit=qdq")
        self.assertIn("-calib", self.said.partition("advice")[2])
        self.made(f"-calib={CALIB}", "-emit=qdq")
        self.assertNotIn("advice", self.said)

    @for_each("uint8, uint8", "uint8, int8", "int8, uint8", "int8, int8")
    def test_types(self, case):
        """(activation, weight): each runs; int8 by uint8, which has no kernel, computes in float and says so."""
        activations, weights = case.split(", ")
        kinds = (f"-activations={activations} asym", f"-weights={weights} {'sym' if weights == 'int8' else 'asym'}")
        for form in ("qdq", "qop"):
            path = self.made(f"-calib={CALIB}", f"-emit={form}", *kinds)
            for optimize in (False, True):
                self.assertGreater(self.quality(path, optimize), 25, (form, optimize))
            if form == "qop":
                self.assertEqual("QLinearConv" in operators(path), case != "int8, uint8")
                self.assertEqual("no kernel" in self.said, case == "int8, uint8", self.said)
        onnx_only = self.made(f"-calib={CALIB}", "-emit=qop", "-target=onnx", *kinds)  # legal by the schemas
        self.assertIn("QLinearConv", operators(onnx_only))

    def test_list_of_operators(self):
        rows = {row["op"] for row in json.loads(qxc("list", "ops", "-json").stdout)}
        for name in ("Conv", "MatMul", "Gemm", "Add", "Mul", "Relu", "Clip", "LeakyRelu", "Sigmoid", "Softmax", "MaxPool",
                     "AveragePool", "GlobalAveragePool", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Resize", "Pad",
                     "Split", "Concat", "Gather", "Where", "LSTM"):
            self.assertIn(name, rows)

    def test_opset_below_10(self):
        """Of opset 9 and below: raised, not refused."""
        for opset in (7, 9):
            old = self.scratch / "old.onnx"
            nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4), helper.make_node("Relu", ["c"], ["r"]),
                     helper.make_node("MaxPool", ["r"], ["y"], kernel_shape=[2, 2])]
            w = np.random.default_rng(1).normal(size=(4, 3, 3, 3)).astype(np.float32)
            graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, [1, 3, 8, 8])],
                                      [helper.make_tensor_value_info("y", T.FLOAT, [1, 4, 7, 7])],
                                      [numpy_helper.from_array(w, "w")])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=4)
            onnx.save(model, old)
            calib = self.scratch / "old.npz"
            x = np.random.default_rng(2).normal(size=(16, 3, 8, 8)).astype(np.float32)
            np.savez(calib, x=x)
            path = self.made(f"-calib={calib}", "-emit=qop", model=old)
            self.assertIn(f"opset {opset} -> ", self.said)
            got, want = (run_samples(session(p), onnx.load(p), {"x": x})["y"] for p in (path, old))
            self.assertGreater(sqnr(want, got), 30)

    def test_transformer_that_was_optimized(self):
        """QAttention for attention layers, after onnxruntime's transformer optimization."""
        net = self.scratch / "fused.onnx"
        bert.save(bert.small_fused(), net)
        self.assertIn("QAttention", operators(self.made("-dynamic", "-emit=qop", model=net)))

    def test_tensorrt(self):
        """The float model and a calibration table; or QDQ, int8 and symmetric."""
        table = qxc(MODEL, f"-calib={CALIB}", "-emit=calib-table", "-quiet").stdout.splitlines()
        scale = {k: struct.unpack(">f", bytes.fromhex(v))[0] for k, v in (line.split(": ") for line in table[1:])}
        with np.load(CALIB) as data:
            self.assertAlmostEqual(scale["image"], np.abs(data["image"]).max() / 127, 6)
        path = self.made(f"-calib={CALIB}", "-target=tensorrt", "-emit=qdq")
        values = {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
        points = [values[n.input[2]] for n in onnx.load(path).graph.node if n.op_type == "QuantizeLinear"]
        self.assertTrue(all(p.dtype == np.int8 and not p.any() for p in points))

    def test_report_tells_what_is_fused(self):
        """And what is not, with the reason: integers around a float node cost more than they save."""
        nodes = json.loads(qxc(MODEL, f"-calib={CALIB}", "-emit=json", "-keep=widen.conv", "-quiet").stdout)["layers"]
        by_name = {n["name"]: n for n in nodes}
        self.assertEqual("QLinearConv", by_name["stem.conv"]["onnxruntime"])
        self.assertEqual("kept float as asked", by_name["widen.conv"]["why"].split(";")[0])

    def test_per_channel_and_reduce_range(self):
        """7 bits avoid saturation on AVX2 without VNNI, which -target-cpu warns of; channels gain accuracy."""
        quality = {}
        for options in ((), ("-per-tensor",), ("-reduce-range",)):
            path = self.made(f"-calib={CALIB}", "-emit=qdq", "-target-cpu=avx2", *options)
            quality[options] = self.quality(path)
            self.assertEqual("saturat" in self.said, "-reduce-range" not in options, self.said)
            weights = [numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer
                       if t.data_type == T.INT8 and len(t.dims) > 1]
            self.assertLessEqual(max(np.abs(w.astype(int)).max() for w in weights), 64 if "-reduce-range" in options else 127)
        self.assertGreater(quality[()], quality["-per-tensor",])
        self.assertGreater(quality[()], quality["-reduce-range",] - 1)

    @for_each(11, 12)
    def test_maxpool(self, opset):
        """8 bits from opset 12 on; before, it stays float between conversions."""
        path = self.made(f"-calib={CALIB}", "-emit=qop", model=self.at_opset(opset))
        pool = next(n for n in onnx.load(path).graph.node if n.op_type == "MaxPool")
        types = {v.name: v.type.tensor_type.elem_type for v in
                 onnx.shape_inference.infer_shapes(onnx.load(path), strict_mode=True).graph.value_info}
        self.assertEqual(types[pool.input[0]], T.UINT8)  # the opset was raised
        kept = self.made(f"-calib={CALIB}", "-emit=qop", f"-target-opset={opset}", "-per-tensor", model=self.at_opset(opset))
        pool = next(n for n in onnx.load(kept).graph.node if n.op_type == "MaxPool")
        types = {v.name: v.type.tensor_type.elem_type for v in
                 onnx.shape_inference.infer_shapes(onnx.load(kept), strict_mode=True).graph.value_info}
        self.assertEqual(types[pool.input[0]], T.UINT8 if opset >= 12 else T.FLOAT)
        self.assertEqual("MaxPool takes no uint8 before opset 12" in self.said, opset < 12)

    def at_opset(self, opset):
        path, model = self.scratch / f"at{opset}.onnx", onnx.load(MODEL)
        next(i for i in model.opset_import if not i.domain).version = opset
        onnx.save(model, path)
        return path


if __name__ == "__main__":
    unittest.main()
