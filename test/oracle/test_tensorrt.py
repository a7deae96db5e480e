"""-target=tensorrt: what NVIDIA documents for explicit quantization (int8, zero point 0, float biases, no
other operators), and the calibration cache. TensorRT itself needs a GPU; onnxruntime runs the same
nodes here."""

import struct

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from common import DIGITS, OracleCase, qxc, run_samples, session, sqnr, with_outputs

MODEL, CALIB = DIGITS / "digits.onnx", DIGITS / "calib.npz"


class TensorRT(OracleCase):
    def setUp(self):
        self.out = self.scratch / "trt.onnx"
        qxc(MODEL, "-target=tensorrt", "-emit=qdq", f"-calib={CALIB}", "-no-sync", "-o", self.out)
        self.model = onnx.load(self.out)
        self.consts = {t.name: numpy_helper.to_array(t) for t in self.model.graph.initializer}

    def test_form(self):
        onnx.checker.check_model(self.model, full_check=True)
        self.assertEqual({""}, {n.domain for n in self.model.graph.node})
        for node in self.model.graph.node:
            if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
                zero = self.consts[node.input[2]]
                self.assertEqual(np.int8, zero.dtype)
                self.assertFalse(zero.any(), node.name)
                self.assertTrue((self.consts[node.input[1]] > 0).all())
        self.assertNotIn(TensorProto.INT32, {t.data_type for t in self.model.graph.initializer})
        per_channel = [n for n in self.model.graph.node if n.op_type == "DequantizeLinear" and self.consts[n.input[1]].ndim]
        self.assertEqual(5, len(per_channel))  # the weights of every Conv and Gemm

    def test_relu_stands_before_the_quantizer(self):
        """TensorRT fuses Conv and Relu only where nothing is quantized between."""
        by_output = {n.output[0]: n for n in self.model.graph.node}
        relus = [n for n in self.model.graph.node if n.op_type == "Relu"]
        self.assertEqual(4, len(relus))
        for relu in relus:
            self.assertIn(by_output[relu.input[0]].op_type, ("Conv", "Add"))

    def test_accuracy(self):
        with np.load(DIGITS / "test.npz") as data:
            arrays = {"image": data["image"][:100]}
        want = run_samples(session(MODEL), onnx.load(MODEL), arrays)["logits"]
        got = run_samples(session(self.out), self.model, arrays)["logits"]
        self.assertGreater(sqnr(want, got), 25)

    def test_calibration_table(self):
        text = qxc(MODEL, "-emit=calib-table", f"-calib={CALIB}").stdout.splitlines()
        self.assertEqual("TRT-8601-EntropyCalibration2", text[0])
        table = {name: struct.unpack("!f", bytes.fromhex(bits))[0] for name, bits in (line.rsplit(": ", 1) for line in text[1:])}
        with np.load(CALIB) as data:
            arrays = {"image": data["image"]}
        model = onnx.load(MODEL)
        seen = run_samples(session(with_outputs(model, ["block.relu", "logits"])), model, arrays) | arrays
        for name in ("image", "block.relu", "logits"):
            self.assertAlmostEqual(table[name], np.abs(seen[name]).max() / 127, delta=1e-5 * table[name])

    def test_refuses(self):
        for options, words in ((["-activations=uint8"], "TensorRT quantizes float to int8"),
                               (["-activations=int8 asym"], "TensorRT has no zero points but 0"),
                               (["-weights=int4"], "TensorRT quantizes float to int8")):
            done = qxc(MODEL, "-target=tensorrt", "-emit=qdq", f"-calib={CALIB}", "-o", self.scratch / "no.onnx", *options, ok=False)
            self.assertEqual(1, done.returncode)
            self.assertIn(words, done.stderr)
            self.assertFalse((self.scratch / "no.onnx").exists())
        done = qxc(MODEL, "-target=tensorrt", "-emit=qop", f"-calib={CALIB}", "-o", self.scratch / "no.onnx", ok=False)
        self.assertIn("-emit=qdq", done.stderr)
        self.assertEqual(2, done.returncode)

    def test_processors(self):
        """Without VNNI, uint8 times int8 saturates unless the weights leave room."""
        for options, warns in ((["-target-cpu=avx2"], True), (["-target-cpu=vnni"], False), (["-target-cpu=arm64"], False), ([], False),
                               (["-target-cpu=avx2", "-reduce-range"], False), (["-target-cpu=avx2", "-weights=uint8 asym"], False)):
            said = qxc(MODEL, "-emit=qdq", f"-calib={CALIB}", "-no-sync", "-o", self.scratch / "cpu.onnx", *options).stderr
            self.assertEqual(warns, "which saturate" in said, options)
        for target, runtime in (("openvino", "OpenVINO"), ("tract", None)):
            said = qxc(MODEL, "-emit=qdq", f"-target={target}", f"-calib={CALIB}", "-target-cpu=avx2", "-o",
                       self.scratch / "cpu.onnx").stderr
            self.assertEqual(f"without VNNI {runtime} adds" in said, runtime is not None, target)
            self.assertEqual("which saturate" in said, runtime is not None, target)
