"""qxc.onnxruntime has the functions of onnxruntime.quantization, with its arguments, its own enums and readers; what has no
counterpart is told."""

import inspect
import logging
import os
import sys
import unittest

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto

from common import DIGITS, QXC, ROOT, OracleCase

sys.path.insert(0, str(ROOT / "python/src"))
os.environ["QXC_PROGRAM"] = QXC

import qxc as package
from qxc import onnxruntime as dropin

MODEL = DIGITS / "digits.onnx"
CALIB = np.load(DIGITS / "calib.npz")["image"]
TEST = np.load(DIGITS / "test.npz")["image"]


class Reader(dropin.CalibrationDataReader):
    """One image at a time, as people write readers for onnxruntime."""

    def __init__(self):
        self.feeds = iter([{"image": x[None]} for x in CALIB])

    def get_next(self):
        return next(self.feeds, None)


class DropIn(OracleCase):
    """onnxruntime.quantization's functions, with its own enums and readers."""

    def accuracy(self, path):
        session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        labels = np.load(DIGITS / "test.npz")["label"] if "label" in np.load(DIGITS / "test.npz") else None
        found = session.run(None, {"image": TEST})[0].argmax(1)
        reference = ort.InferenceSession(MODEL, providers=["CPUExecutionProvider"]).run(None, {"image": TEST})[0]
        return float(np.mean(found == (reference.argmax(1) if labels is None else labels)))

    def ops(self, path):
        return {n.op_type for n in onnx.load(path).graph.node}

    def test_static(self):
        from onnxruntime import quantization as theirs

        for quant in dropin, theirs:
            for fmt, op in ((quant.QuantFormat.QDQ, "QuantizeLinear"), (quant.QuantFormat.QOperator, "QLinearConv")):
                out = self.scratch / "q.onnx"
                dropin.quantize_static(MODEL, out, Reader(), quant_format=fmt, per_channel=True,
                                       activation_type=quant.QuantType.QUInt8, weight_type=quant.QuantType.QInt8,
                                       calibrate_method=quant.CalibrationMethod.Entropy)
                self.assertIn(op, self.ops(out))
                self.assertGreater(self.accuracy(out), 0.97)

    def test_arguments_are_theirs(self):
        from onnxruntime import quantization as theirs

        from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config
        from qxc.onnxruntime.execution_providers import qnn

        pairs = [(getattr(dropin, n), getattr(theirs, n)) for n in ("quantize_static", "quantize_dynamic", "quantize", "get_qdq_config",
                                                                    "StaticQuantConfig", "DynamicQuantConfig", "quant_pre_process",
                                                                    "write_calibration_table")]
        for ours, other in [*pairs, (qnn.get_qnn_qdq_config, get_qnn_qdq_config)]:
            mine, its = inspect.signature(ours).parameters, inspect.signature(other).parameters
            self.assertEqual(list(its), list(mine))
            plain = {k: getattr(v.default, "name", v.default) for k, v in its.items()}
            self.assertEqual(plain, {k: getattr(v.default, "name", v.default) for k, v in mine.items()})

    def test_a_node_named_like_a_type(self):
        model = onnx.load(MODEL)
        next(n for n in model.graph.node if n.op_type == "Gemm").name = "Conv"
        out = self.scratch / "q.onnx"
        dropin.quantize_static(model, out, Reader(), nodes_to_exclude=["Conv"])
        self.assertEqual(4, package.load(out).info["products_quantized"])
        dropin.quantize_static(model, out, Reader(), op_types_to_quantize=["Conv"])
        self.assertEqual(4, package.load(out).info["products_quantized"])

    def test_nodes_to_exclude_are_names(self):
        names = [n.name for n in onnx.load(MODEL).graph.node if n.op_type == "Conv"]
        model = onnx.load(MODEL)
        for n in model.graph.node:
            if n.name == names[0]:
                n.name = "first*,conv"
        out = self.scratch / "q.onnx"
        dropin.quantize_static(model, out, Reader(), nodes_to_exclude=["first*,conv"])
        self.assertEqual(4, package.load(out).info["products_quantized"])
        dropin.quantize_static(model, out, Reader(), op_types_to_quantize=["Gemm"])
        self.assertEqual(1, package.load(out).info["products_quantized"])

    def test_nodes_that_a_function_chooses(self):
        model = onnx.load(MODEL)
        for n in model.graph.node:
            n.name = ""
        config = dropin.get_qdq_config(model, Reader(), nodes_to_exclude=lambda _, n: n.op_type == "Gemm")
        self.assertEqual(["logits"], config.nodes_to_exclude)
        dropin.quantize(model, self.scratch / "q.onnx", config)
        self.assertEqual(4, package.load(self.scratch / "q.onnx").info["products_quantized"])

    def test_arguments_of_calibration(self):
        config = dropin.get_qdq_config(MODEL, Reader(), calibrate_args={"moving_average": True})
        self.assertEqual({"CalibMovingAverage": True}, config.extra_options)
        with self.assertRaisesRegex(ValueError, "calibrate_args: movng_average has no counterpart"):
            dropin.get_qdq_config(MODEL, Reader(), calibrate_args={"movng_average": True})

    def test_extra_options(self):
        out = self.scratch / "q.onnx"
        dropin.quantize_static(MODEL, out, Reader(), extra_options={"ActivationSymmetric": True, "WeightSymmetric": True})
        zeros = [onnx.numpy_helper.to_array(t) for t in onnx.load(out).graph.initializer if "zero_point" in t.name]
        self.assertTrue(zeros and all(not z.any() for z in zeros))
        with self.assertLogs("qxc", logging.WARNING) as told:
            dropin.quantize_static(MODEL, out, Reader(), extra_options={"EnableSubgraph": False})
        self.assertIn("EnableSubgraph=False has no effect", told.output[0])
        for extra, said in (({"NoSuch": 1}, "has no 'NoSuch'"), ({"MinimumRealRange": 0.1}, "no counterpart"),
                            ({"BlockSize": 32}, "blocks are a rule"), ({"CalibMovingAverageConstant": 0.5}, "samples weigh alike")):
            with self.assertRaisesRegex(ValueError, said):
                dropin.quantize_static(MODEL, out, Reader(), extra_options=extra)

    def test_extra_options_that_are_rules(self):
        def biases(path):
            return sum(t.data_type == TensorProto.INT32 and "zero_point" not in t.name for t in onnx.load(path).graph.initializer)

        out = self.scratch / "q.onnx"
        dropin.quantize_static(MODEL, out, Reader())
        self.assertEqual(5, biases(out))
        dropin.quantize_static(MODEL, out, Reader(), extra_options={"QuantizeBias": False})
        self.assertEqual(0, biases(out))
        self.assertGreater(self.accuracy(out), 0.97)
        dropin.quantize_static(MODEL, out, Reader(), extra_options={"OpTypesToExcludeOutputQuantization": ["Gemm"]})
        self.assertEqual("Gemm", next(n for n in onnx.load(out).graph.node if "logits" in n.output).op_type)

    def test_enums_are_theirs(self):
        from onnxruntime import quantization as theirs

        for ours, other in ((dropin.QuantType, theirs.QuantType), (dropin.QuantFormat, theirs.QuantFormat),
                            (dropin.QuantizationMode, theirs.QuantizationMode), (dropin.CalibrationMethod, theirs.CalibrationMethod)):
            shared = [m for m in other if m.name in ours.__members__]
            self.assertGreaterEqual(len(shared), 2)
            for m in shared:
                self.assertEqual((m.value, str(m)), (ours[m.name].value, str(ours[m.name])))
                if hasattr(m, "tensor_type"):
                    self.assertEqual(m.tensor_type, ours[m.name].tensor_type)
        self.assertEqual([onnx.TensorProto.INT2, onnx.TensorProto.UINT2],
                         [dropin.QuantType[n].tensor_type for n in ("QInt2", "QUInt2")])
        self.assertIs(dropin.QuantFormat.QDQ, dropin.QuantFormat.from_string("QDQ"))
        with self.assertRaisesRegex(ValueError, "'QD' is none of QOperator, QDQ"):
            dropin.QuantFormat.from_string("QD")

    def test_types_that_qxc_has_not(self):
        from onnxruntime import quantization as theirs

        with self.assertRaisesRegex(AttributeError, "qxc has no QuantType 'QFLOAT8E4M3FN', but QInt8, QUInt8"):
            dropin.QuantType.QFLOAT8E4M3FN  # noqa: B018
        with self.assertRaisesRegex(KeyError, "qxc has no QuantType 'QInt32'"):
            dropin.QuantType["QInt32"]
        with self.assertRaisesRegex(ValueError, "QFLOAT8E4M3FN.* is no QuantType that qxc has: QInt8"):
            dropin.quantize_static(MODEL, self.scratch / "q.onnx", Reader(), weight_type=theirs.QuantType.QFLOAT8E4M3FN)

    def test_calibrators(self):
        def highest(method=dropin.CalibrationMethod.MinMax, ops=None, **extra):
            calibrator = dropin.create_calibrator(MODEL, ops, calibrate_method=method, extra_options=extra)
            calibrator.collect_data(Reader())
            return {k: float(v.range_value[1]) for k, v in calibrator.compute_data().items()}

        seen, cut = highest(), highest(dropin.CalibrationMethod.Percentile, percentile=99)
        self.assertEqual(list(seen), list(cut))
        self.assertLess(cut["logits"], seen["logits"])
        self.assertEqual({"head.flatten", "logits"}, set(highest(ops=["Gemm"])))
        self.assertEqual({"stem.norm", "stem.relu", "widen.norm", "widen.relu", "block.norm1", "block.relu", "block.add", "block_relu"},
                         set(highest(ops=["Relu"])))
        self.assertEqual(seen, highest(percentile=90))
        with self.assertRaisesRegex(ValueError, "has no operator Selu, Elu beside a value"):
            highest(ops=["Selu", "Elu"])
        with self.assertRaisesRegex(ValueError, "num_bins has no counterpart"):
            highest(num_bins=7)
        with self.assertRaisesRegex(ValueError, "collect_data comes before"):
            dropin.create_calibrator(MODEL).compute_data()
        with self.assertLogs("qxc", logging.WARNING) as told:
            dropin.create_calibrator(MODEL, providers=["CUDAExecutionProvider"])
        self.assertIn("no effect", told.output[0])

    def test_ranges_around_zero(self):
        def ends(**extra):
            calibrator = dropin.create_calibrator(MODEL, extra_options=extra)
            calibrator.collect_data(Reader())
            return {k: tuple(map(float, v.range_value)) for k, v in calibrator.compute_data().items()}

        plain, symmetric = ends(), ends(symmetric=True)
        self.assertLess(plain["logits"][0], -plain["logits"][1])
        self.assertEqual({k: (-max(-low, high), max(-low, high)) for k, (low, high) in plain.items()}, symmetric)

    def test_qnn(self):
        from qxc.onnxruntime.execution_providers.qnn import get_qnn_qdq_config

        out = self.scratch / "npu.onnx"
        with self.assertNoLogs("qxc", logging.WARNING):
            config = get_qnn_qdq_config(MODEL, Reader())
        config.weight_type = dropin.QuantType.QInt4
        with self.assertRaisesRegex(package.Error, "QNN has no such integers"):
            dropin.quantize(MODEL, out, config)
        self.assertFalse(out.exists())
        with self.assertLogs("qxc", logging.WARNING) as told:
            config = get_qnn_qdq_config(MODEL, Reader(), weight_type=dropin.QuantType.QInt4)
        self.assertIn("the target qnn knows 8 and 16 bits alone", told.output[0])
        with self.assertNoLogs("qxc", logging.WARNING):
            config = get_qnn_qdq_config(MODEL, Reader(), activation_type=dropin.QuantType.QUInt16)
        dropin.quantize(MODEL, out, config)
        self.assertGreater(self.accuracy(out), 0.97)

    def test_their_configurations(self):
        from onnxruntime import quantization as theirs

        out = self.scratch / "q.onnx"
        dropin.quantize(MODEL, out, theirs.StaticQuantConfig(Reader(), quant_format=theirs.QuantFormat.QOperator))
        self.assertIn("QLinearConv", self.ops(out))
        dropin.quantize(MODEL, out, theirs.DynamicQuantConfig())
        self.assertIn("ConvInteger", self.ops(out))
        with self.assertRaisesRegex(TypeError, "not a dict"):
            dropin.quantize(MODEL, out, {})

    def test_dynamic(self):
        path = self.scratch / "d.onnx"
        dropin.quantize_dynamic(MODEL, path, weight_type=dropin.QuantType.QUInt8)
        self.assertIn("ConvInteger", self.ops(path))
        self.assertGreater(self.accuracy(path), 0.97)


if __name__ == "__main__":
    unittest.main()
