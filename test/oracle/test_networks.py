"""A detector and a transformer: as they are, quantized by qxc and by onnxruntime with the same data,
run by onnxruntime, by qxc and as C."""

import functools
import logging
import unittest

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationMethod, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from cmodel import CModel
from common import OracleCase, float_excess, for_each, qxc, qxc_outputs, run_samples, session, sqnr, talk
from networks import detector, transformer
from quantized import FORMS, Reader

NETWORKS = {"detector": detector, "transformer": transformer}
# A transformer of this size gains or loses up to 0.4 dB by chance: several are compared together.
OTHERS = {f"transformer {seed}": functools.partial(transformer, seed) for seed in range(20, 26)}
CALIBRATION, TESTS = 24, 64


class Networks(OracleCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.made = staticmethod(functools.cache(cls.make))

    @classmethod
    def make(cls, name):
        """Path, model, calibration and test data of a network, and what onnxruntime makes of it."""
        model, inputs = (NETWORKS | OTHERS)[name]()
        path = cls.scratch / f"{name}.onnx"
        onnx.save(model, path)
        onnx.checker.check_model(model, full_check=True)
        calib, test = inputs(CALIBRATION, 1), inputs(TESTS, 2)
        np.savez(cls.scratch / f"{name}_calib.npz", **calib)
        return path, model, calib, test, run_samples(session(path), model, test)

    def quantized(self, name, form):
        out = self.scratch / f"{name}_{form}.onnx"
        if not out.exists():
            qxc(self.made(name)[0], f"-calib={self.scratch / name}_calib.npz", f"-emit={form}", "-no-sync", "-o", out)
        return out

    def by_onnxruntime(self, name, form):
        path, model, calib, _, _ = self.made(name)
        prepared, out = self.scratch / f"{name}_prepared.onnx", self.scratch / f"{name}_ort_{form}.onnx"
        quant_pre_process(path, prepared, skip_symbolic_shape=True)
        level = logging.getLogger().level
        logging.getLogger().setLevel(logging.ERROR)
        quantize_static(prepared, out, Reader(model, calib), quant_format=FORMS[form], per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                        calibrate_method=CalibrationMethod.MinMax)
        logging.getLogger().setLevel(level)
        return out

    def decibels(self, name, path):
        _, _, _, test, want = self.made(name)
        model = onnx.load(path)
        got = run_samples(session(path), model, test)
        return {o: sqnr(want[o], got[o]) for o in want}

    @for_each(*NETWORKS)
    def test_float(self, name):
        path, _, _, test, want = self.made(name)
        got = qxc_outputs(path, test, self.scratch, "-quiet")
        for output, reference in want.items():
            self.assertLessEqual(float_excess(got[output], reference), 0, output)

    def gain(self, name, form):
        """How much better than onnxruntime's, in dB, by output."""
        mine, theirs = (self.decibels(name, p) for p in (self.quantized(name, form), self.by_onnxruntime(name, form)))
        for output in mine:
            talk(f"{name} {form} {output}: {mine[output]:.2f} dB, onnxruntime {theirs[output]:.2f} dB")
        return {o: mine[o] - theirs[o] for o in mine}

    def test_detector_is_not_worse_than_onnxruntime(self):
        for form in FORMS:
            for output, gain in self.gain("detector", form).items():
                with self.subTest(form=form, output=output):
                    self.assertGreater(gain, -0.1)

    def test_transformers_are_not_worse_than_onnxruntime(self):
        for form in FORMS:
            gains = [self.gain(name, form)["classes"] for name in ("transformer", *OTHERS)]
            talk(f"transformers {form}: {np.mean(gains):+.3f} dB on average")
            self.assertGreater(np.mean(gains), -0.1)

    @for_each(*NETWORKS)
    def test_c_is_what_runs(self, name):
        _, _, _, test, want = self.made(name)
        for form in FORMS:
            source = self.scratch / f"{name}_{form}.c"
            qxc(self.quantized(name, form), "-emit=c", "-no-sync", "-o", source)
            got = qxc_outputs(self.quantized(name, form), test, self.scratch, "-quiet")
            model = CModel(source, flags=("-O1",))
            for k in range(4):
                results = model.run(*(v[k] for v in test.values()))
                for (output, _, _), result in zip(model.outputs, results):
                    np.testing.assert_array_equal(result, got[output][k].ravel(), f"{form} {output}")


if __name__ == "__main__":
    unittest.main()
