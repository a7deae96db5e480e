"""The example: accuracy in every form, and the emitted C against `qxc run`, bit for bit."""

import functools

import numpy as np
import onnx

from cmodel import CModel
from common import DIGITS, OracleCase, for_each, qxc, qxc_outputs, run_samples, session, talk

FLOAT = 394 / 397
MODEL, CALIB = DIGITS / "digits.onnx", DIGITS / "calib.npz"


@functools.cache
def test_set():
    with np.load(DIGITS / "test.npz") as data:
        return data["image"], data["labels"]


def accuracy(logits):
    labels = test_set()[1]
    return np.mean(np.argmax(logits.reshape(len(labels), 10), axis=1) == labels)


class Digits(OracleCase):
    def run_qxc(self, path, *options):
        return qxc_outputs(path, {"image": test_set()[0]}, self.scratch, *options)["logits"]

    def run_onnxruntime(self, path, optimize=False):
        model = onnx.load(path)
        return run_samples(session(path, optimize), model, {"image": test_set()[0]})["logits"]

    def compiled(self, *options, name):
        out = self.scratch / name
        qxc(MODEL, f"-calib={CALIB}", "-no-sync", *options, "-o", out)
        return out

    def near(self, what, logits):
        talk(f"digits {what:34} {100 * accuracy(logits):6.2f} %")
        self.assertAlmostEqual(FLOAT, accuracy(logits), delta=0.003)

    def test_float(self):
        logits = self.run_qxc(MODEL)
        self.assertEqual(FLOAT, accuracy(logits))
        self.assertEqual(FLOAT, accuracy(self.run_onnxruntime(MODEL)))
        np.testing.assert_allclose(logits.ravel(), self.run_onnxruntime(MODEL).ravel(), atol=1e-4)

    @for_each("fake", "true", "qop")
    def test_text(self, form):
        qir = self.compiled("-emit=qir", f"-form={form}", name=f"{form}.qir")
        self.near(f"-form={form}, qxc run", self.run_qxc(qir))

    @for_each("qdq", "qop")
    def test_onnx(self, form):
        path = self.compiled(f"-emit={form}", name=f"{form}.onnx")
        self.near(f"-emit={form}, qxc run", self.run_qxc(path))
        self.near(f"-emit={form}, onnxruntime", self.run_onnxruntime(path))
        self.near(f"-emit={form}, onnxruntime optimized", self.run_onnxruntime(path, optimize=True))

    @for_each("float", "quant")
    def test_c(self, io):
        """From the same text, so that both compute on the same parameters."""
        qir = self.compiled("-emit=qir", "-form=true", "-activations=int8 asym", f"-io={io}",
                            name="digits_c.qir")
        source = self.scratch / "digits_c.c"
        qxc(qir, "-emit=c", f"-io={io}", "-name=digits", "-no-sync", "-o", source)
        model = CModel(source)
        images = test_set()[0]
        if io == "quant":  # stored integers, from a grid that is just a fine one
            images = np.clip(np.rint(images * 255) - 128, -128, 127).astype(np.int8)
        want = qxc_outputs(qir, {"image": images}, self.scratch)["logits"]
        got = np.stack([model.run(image)[0] for image in images])
        np.testing.assert_array_equal(want.reshape(got.shape), got)
        self.near(f"-emit=c -io={io}", got)
