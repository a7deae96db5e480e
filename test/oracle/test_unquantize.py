"""-emit=float: the float model behind a quantized one, whichever tool quantized it. It has the operators of the
model that was quantized, and is as near to it as the weights' integers allow: nearer than the integers are."""

import collections
import pathlib
import unittest

import numpy as np
import onnx

from common import OracleCase, for_each, qxc, qxc_outputs, sqnr
from quantized import Case

MODELS = pathlib.Path(__file__).parents[1] / "models"
OF_INTEGERS = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"}
CUTS = ("Relu", "Clip")  # what quantizers leave out


def case(name, folder):
    with np.load(MODELS / f"{name}.calib.npz") as calib, np.load(MODELS / f"{name}.test.npz") as test:
        return Case(MODELS / f"{name}.onnx", next(iter(calib.values())), next(iter(test.values()))[:64], folder)


def operators(path):
    return collections.Counter(n.op_type for n in onnx.load(path).graph.node)


class Unquantize(OracleCase):
    def float_of(self, path, *options):
        out = self.scratch / f"{path.stem}.float.onnx"
        qxc(path, "-emit=float", "-no-sync", "-o", out, *options)
        onnx.checker.check_model(onnx.load(out), full_check=True)
        self.assertFalse(set(operators(out)) & OF_INTEGERS)
        return out

    def check_near(self, one, path):
        want = one.run(one.path)
        back = self.float_of(path)
        self.assertGreater(sqnr(want, one.run(back)), sqnr(want, one.run(path)) - 0.5, path.name)
        return back

    @for_each("cnn", "relu6", "unet", "cancer")
    def test_of_qxc(self, name):
        one = case(name, self.scratch)
        for form in ("qdq", "qop"):
            self.check_near(one, one.by_qxc(form))

    @for_each("cnn", "relu6", "unet")
    def test_of_onnxruntime(self, name):
        """quantize_static takes Relu and Clip out where the integers end as they do: they are back."""
        one = case(name, self.scratch)
        for form in ("qdq", "qop"):
            back = self.check_near(one, one.by_onnxruntime(form))
            had, has = operators(self.scratch / f"{name}_prepared.onnx"), operators(back)
            self.assertEqual(sum(has[op] for op in CUTS), sum(had[op] for op in CUTS), form)
            # Of a Clip whose bound no number of the calibration data reached, the lower one is left.
            self.assertGreaterEqual(has["Relu"], had["Relu"])

    def test_of_a_decided_text(self):
        """Decisions go, and so does what they round: the bytes of weights are those of the model."""
        one = case("cnn", self.scratch)
        text = self.scratch / "cnn.qir"
        qxc(one.path, f"-calib={one.calib_file}", "-no-sync", "-o", text)
        back = self.float_of(text)
        arrays = {one.input: one.test[one.input][:4]}
        got, want = qxc_outputs(back, arrays, self.scratch), qxc_outputs(text, arrays, self.scratch, "-ignore-quant")
        for name, values in want.items():
            np.testing.assert_allclose(got[name], values, rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
