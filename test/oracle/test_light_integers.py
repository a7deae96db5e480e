"""What onnxruntime's quantizers make of the light models becomes C without floating point: as it is, completed with data, or by
way of the float model where scales are computed at run time. What is refused names the option that mends it."""

import logging
import os
import subprocess
import unittest

import numpy as np
import onnx
from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static

from common import OracleCase, compile_c, for_each, qxc, session, sqnr, talk
from light import light
from quantized import Reader

UNSIGNED, SIGNED = QuantType.QUInt8, QuantType.QInt8
AS_IT_IS = {
    "squeezenet of QDQ": ("squeezenet", QuantFormat.QDQ, UNSIGNED, SIGNED, False),
    "zfnet512 of QDQ, unsigned weights": ("zfnet512", QuantFormat.QDQ, UNSIGNED, UNSIGNED, False),
    "zfnet512 of QOperator": ("zfnet512", QuantFormat.QOperator, SIGNED, SIGNED, True),
}
COMPLETED = "-calib=PATH decides that, and keeps what is decided"
BY_FLOAT = "-emit=float gives the float model back, and -calib=PATH quantizes all of that"
INTEGERS = ("-emit=c", "-integer-only", "-io=quant", "-name=m", "-no-sync")


class LightIntegers(OracleCase):
    expected_seconds = 30

    def setUp(self):
        super().setUp()
        if os.environ.get("SANITIZE"):
            self.skipTest("models of this size take minutes with sanitizers")

    def quantized(self, how, name, *settings):
        """The model and one image; onnxruntime's quantizer is quiet."""
        source, images = light(name, narrow=name == "zfnet512")
        image = {key: rows[:1] for key, rows in images.items()}
        path, level = self.scratch / "m.onnx", logging.getLogger().level
        logging.getLogger().setLevel(logging.ERROR)
        how(source, path, image, *settings)
        logging.getLogger().setLevel(level)
        np.savez(self.scratch / "image.npz", **image)
        return path, image

    @staticmethod
    def statically(source, path, image, form, activations, weights, per_channel):
        quantize_static(source, path, Reader(onnx.load(source), image), quant_format=form, activation_type=activations,
                        weight_type=weights, per_channel=per_channel)

    @staticmethod
    def dynamically(source, path, _image):
        quantize_dynamic(source, path)

    def refused(self, path, way):
        out = self.scratch / "refused.c"
        done = qxc(path, *INTEGERS, "-o", out, ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(way, done.stderr)
        self.assertFalse(out.exists())

    def to_integers(self, path, *options):
        source = self.scratch / "m.c"
        said = qxc(path, *INTEGERS, f"-input={self.scratch / 'image.npz'}", "-testbench", *options, "-force", "-o", source)
        self.assertIn("no floating point", said.stderr)
        return source

    def ran(self, path, image):
        qxc("run", path, f"-input={self.scratch / 'image.npz'}", "-o", self.scratch / "y.npz")
        own = next(iter(np.load(self.scratch / "y.npz").values())).ravel()
        return session(path).run(None, image)[0].ravel(), own

    @for_each(*AS_IT_IS)
    def test_as_it_is(self, case):
        """C gives what `qxc run` gives, and that is near onnxruntime, which rounds sums elsewhere. zfnet512 has LRN."""
        path, image = self.quantized(self.statically, *AS_IT_IS[case])
        source = self.to_integers(path)
        compile_c("gcc", "-std=c99", "-O2", str(source), "-o", str(source.with_suffix("")))
        done = subprocess.run([source.with_suffix("")], capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.stderr), ("1 of 1 samples right\n", ""))
        theirs, own = self.ran(path, image)
        talk(f"{case}: {sqnr(theirs, own):.1f} dB from onnxruntime")
        self.assertEqual(theirs.argmax(), own.argmax())
        self.assertGreater(sqnr(theirs, own), 20)

    def test_completed(self):
        """Neither of onnxruntime's forms quantizes a Sum, and QOperator no BatchNormalization."""
        for form in (QuantFormat.QDQ, QuantFormat.QOperator):
            with self.subTest(form=form):
                path, _ = self.quantized(self.statically, "shufflenet", form, UNSIGNED, SIGNED, False)
                self.refused(path, COMPLETED)
                self.to_integers(path, f"-calib={self.scratch / 'image.npz'}")

    def test_by_float(self):
        path, _ = self.quantized(self.dynamically, "squeezenet")
        self.refused(path, BY_FLOAT)
        back = self.scratch / "back.onnx"
        qxc(path, "-emit=float", "-no-sync", "-o", back)
        self.to_integers(back, f"-calib={self.scratch / 'image.npz'}")


if __name__ == "__main__":
    unittest.main()
