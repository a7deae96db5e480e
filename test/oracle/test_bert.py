"""A model of BERT's shape, as PyTorch exports it, with symbolic batch and length: quantized statically from
data of one length, and dynamically, against onnxruntime's own quantizers."""

import logging
import unittest

import numpy as np
import onnx
from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic,
                                      quantize_static)

import bert
from common import OracleCase, for_each, qxc, qxc_outputs, session, sqnr

LENGTH = 24


class Sentences(CalibrationDataReader):
    def __init__(self, arrays):
        self.rows = ({k: v[i:i + 1] for k, v in arrays.items()} for i in range(len(arrays["input_ids"])))

    def get_next(self):
        return next(self.rows, None)


class Bert(OracleCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        net = bert.small()
        cls.path, cls.calib = cls.scratch / "bert.onnx", cls.scratch / "calib.npz"
        bert.save(net, cls.path)
        cls.sentences = net.sentences
        cls.samples = net.sentences(32, LENGTH, 1)
        np.savez(cls.calib, **cls.samples)
        cls.float = session(cls.path)
        logging.getLogger().setLevel(logging.ERROR)

    def made(self, *options):
        path = self.scratch / "made.onnx"
        self.said = qxc(self.path, "-no-sync", "-o", path, *options).stderr
        return path

    def worst(self, path, arrays, optimize=True):
        """Of both outputs, in dB."""
        want, got = self.float.run(None, arrays), session(path, optimize).run(None, arrays)
        return min(sqnr(w, g) for w, g in zip(want, got))

    @for_each("qdq", "qop")
    def test_static_for_any_batch_and_length(self, form):
        """Calibrated on one length, and not bound to it."""
        path = self.made(f"-calib={self.calib}", f"-emit={form}")
        dims = [d.dim_param for d in onnx.load(path).graph.input[0].type.tensor_type.shape.dim]
        self.assertEqual(dims, ["batch", "length"])
        for batch, length in ((8, LENGTH), (1, LENGTH), (3, 7), (2, 41), (4, 1)):
            for optimize in (False, True):
                self.assertGreater(self.worst(path, self.sentences(batch, length, 2), optimize), 12, (batch, length))

    def test_static_is_better_than_onnxruntimes(self):
        theirs, test = self.scratch / "theirs.onnx", self.sentences(16, LENGTH, 2)
        quantize_static(self.path, theirs, Sentences(self.samples), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
        ours = self.worst(self.made(f"-calib={self.calib}", "-emit=qdq"), test)
        self.assertGreater(ours, self.worst(theirs, test) + 6)

    def test_every_product_is_integer(self):
        """Shapes that are computed hide no types, masks no scores; biases are in the products. Softmax is integer where
        the length is known: of one word onnxruntime's comes out as 0."""
        for bound, softmax in (((), "Softmax"), ((f"-bind=length={LENGTH}",), "QLinearSoftmax")):
            nodes = onnx.load(self.made(f"-calib={self.calib}", "-emit=qop", "-placement=all", *bound)).graph.node
            ops = {n.op_type for n in nodes}
            self.assertEqual({softmax}, ops & {"Softmax", "QLinearSoftmax"})
            self.assertFalse(ops & {"MatMul", "Gemm", "Add"}, ops)
            self.assertEqual(sum(n.op_type == "QGemm" for n in nodes), 14)
            self.assertEqual(sum(n.op_type == "QLinearMatMul" for n in nodes), 4)

    @for_each("qdq", "qop")
    def test_dynamic_is_better_than_onnxruntimes(self, form):
        theirs, test = self.scratch / "theirs.onnx", self.sentences(16, LENGTH, 2)
        quantize_dynamic(self.path, theirs, per_channel=True)
        path = self.made("-dynamic", f"-emit={form}")
        self.assertGreater(self.worst(path, test), self.worst(theirs, test) - 0.1)
        self.assertGreater(self.worst(path, self.sentences(3, 7, 3)), 20)
        self.assertLess(path.stat().st_size, 1.02 * theirs.stat().st_size)  # tables of words are integers, too

    def test_tables_stay_float_where_asked(self):
        for form in ("qdq", "qop"):
            nodes = onnx.load(self.made("-dynamic", f"-emit={form}", "-keep=Gather")).graph.node
            self.assertNotIn("DequantizeLinear", {n.op_type for n in nodes})

    @for_each("static qdq", "static qop", "dynamic qdq", "dynamic qop", "weight-only qdq")
    def test_after_onnxruntimes_optimizer(self, how):
        """Attention, SkipLayerNormalization, BiasGelu and EmbedLayerNormalization: as they are, or their integer forms."""
        net, path, made = bert.small_fused(), self.scratch / "fused.onnx", self.scratch / "made.onnx"
        bert.save(net, path)
        way, form = how.split()
        qxc(path, f"-calib={self.calib}" if way == "static" else f"-{way}", f"-emit={form}", "-no-sync", "-o", made)
        ops = {n.op_type for n in onnx.load(made).graph.node}
        self.assertEqual(ops >= {"QAttention", "QEmbedLayerNormalization", "DynamicQuantizeMatMul"}, how == "dynamic qop")
        floor = {"static": 15, "dynamic": 20, "weight-only": 30}[way]
        for batch, length in ((4, LENGTH), (2, 9)):
            arrays = net.sentences(batch, length, 4)
            want = session(path).run(None, arrays)
            for optimize in (False, True):
                got = session(made, optimize).run(None, arrays)
                self.assertGreater(min(sqnr(w, g) for w, g in zip(want, got)), floor, (length, optimize))

    def test_run_takes_lengths_from_the_data(self):
        for name in ("float", "static"):
            path = self.path if name == "float" else self.made(f"-calib={self.calib}", "-emit=qdq")
            arrays = self.sentences(4, 9, 5)
            got = qxc_outputs(path, arrays, self.scratch)
            want = session(path).run(None, arrays)
            floor = 90 if name == "float" else 30
            self.assertGreater(sqnr(want[0], got["last_hidden_state"]), floor)

    def test_corrections_see_the_data_too(self):
        plain = self.worst(self.made(f"-calib={self.calib}", "-emit=qdq", "-no-bias-correction"), self.samples)
        for option in ("-bias-correction", "-adaround", "-smooth-quant", "-equalize"):
            path = self.made(f"-calib={self.calib}", "-emit=qdq", option)
            self.assertGreater(self.worst(path, self.samples), plain - 0.5, option)

    def test_data_of_two_lengths_is_refused(self):
        other = self.scratch / "other.npz"
        np.savez(other, **self.sentences(2, 9, 1))
        done = qxc(self.path, f"-calib={self.calib}", f"-calib={other}", "-emit=qdq", "-o", self.scratch / "no.onnx",
                   ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("array for graph input input_ids has shape [2,9], expected [samples,24]", done.stderr)


if __name__ == "__main__":
    unittest.main()
