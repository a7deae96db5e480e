"""Trained models of several exporters, as their users have them: opened shapes, If nodes that ask for shapes, states and
rates beside the data, shapes computed by the graph. Run, quantized in every way, emitted as C."""

import shutil
import subprocess
import unittest

import numpy as np

from cmodel import CModel
from common import OracleCase, compile_c, for_each, qxc, session
from packaged import MODELS, packaged

# Where 8 bits are too few for what is computed (logarithms of spectra; a detector that finds nothing in made-up pages), only
# that the result loads and is finite is asked. Recurrent networks and spectra lose most of the signal with static ranges
# (`quantize_static` gives the same 5 dB for the voice): all that is asked there is more signal than noise.
FINITE_ONLY = {"text_detection", "spectrum", "logarithm"}
FLOORS = {"-calib": 1, "-dynamic": 10, "-weight-only": 15}  # dB, of the first sample, over all outputs together
SMALL = ("text_direction", "voice_half", "pitch", "file_type", "turn")


def decibels(reference, others):
    signal = sum(float((x.astype(np.float64) ** 2).sum()) for x in reference)
    noise = sum(float(((x.astype(np.float64) - y) ** 2).sum()) for x, y in zip(reference, others))
    return 300.0 if noise == 0 else 10 * np.log10(signal / noise)


def floats(values):
    return [v for v in values if v.dtype.kind == "f"]


class PackagedModels(OracleCase):
    expected_seconds = 4

    def setUp(self):
        super().setUp()
        self.calib = self.scratch / "calib"

    def model(self, name):
        path, samples = packaged(name)
        shutil.rmtree(self.calib, ignore_errors=True)
        self.calib.mkdir()
        for i, sample in enumerate(samples):
            np.savez(self.calib / f"{i}.npz", **sample)
        return path, samples[0], self.calib / "0.npz"

    def outputs(self, path, sample, optimized):
        values = floats(session(path, optimize=optimized).run(None, sample))
        self.assertTrue(all(np.isfinite(v).all() for v in values), f"{path}: not finite")
        return values

    @for_each(*MODELS)
    def test_runs(self, name):
        """As near to onnxruntime as its own optimizations leave it, within 20 dB, or 70 dB."""
        path, sample, data = self.model(name)
        plain, optimized = (self.outputs(path, sample, on) for on in (False, True))
        qxc("run", path, f"-input={data}", "-o", self.scratch / "y.npz")
        with np.load(self.scratch / "y.npz") as got:
            names = [o.name for o in session(path).get_outputs() if o.type == "tensor(float)"]
            own = [got[n].reshape(x.shape) for n, x in zip(names, plain)]
        self.assertGreater(decibels(plain, own), min(70, decibels(plain, optimized) - 20))

    @for_each(*MODELS)
    def test_quantized(self, name):
        path, sample, _ = self.model(name)
        wanted = self.outputs(path, sample, False)
        for options in ((f"-calib={self.calib}", "-emit=qdq"), (f"-calib={self.calib}", "-emit=qop"),
                        ("-dynamic", "-emit=qdq"), ("-weight-only", "-emit=qdq")):
            with self.subTest(options=options):
                out = self.scratch / "q.onnx"
                qxc(path, *options, "-o", out)
                plain, optimized = (self.outputs(out, sample, on) for on in (False, True))
                floor = FLOORS[options[0].split("=")[0]]
                if name not in FINITE_ONLY:
                    self.assertGreater(decibels(wanted, plain), floor)
                    self.assertGreater(decibels(wanted, optimized), floor)

    @for_each(*SMALL)
    def test_c(self, name):
        """Emitted C gives what `qxc run` gives, as the test bench holds it."""
        path, sample, data = self.model(name)
        shapes = [f"-shape={key}={','.join(map(str, x.shape))}" for key, x in sample.items()]
        for options in ((), (f"-calib={self.calib}",)):
            with self.subTest(options=options):
                source, program = self.scratch / "m.c", self.scratch / "m"
                qxc(path, *shapes, *options, f"-input={data}", "-emit=c", "-testbench", "-o", source)
                compile_c("gcc", "-std=c99", "-O1", str(source), "-lm", "-o", str(program))
                done = subprocess.run([program], capture_output=True, text=True, check=False)
                self.assertEqual((done.stdout, done.stderr), ("1 of 1 samples right\n", ""))

    def test_set(self):
        """A rate that is set once and for all: one branch is left, in C, and for the integers."""
        path, sample, _ = self.model("voice")
        rest = {key: x for key, x in sample.items() if key != "sr"}
        given = ["-set=sr=16000", *(f"-shape={key}={','.join(map(str, x.shape))}" for key, x in rest.items())]
        wanted = self.outputs(path, sample, False)
        qxc(path, *given, "-emit=c", "-o", self.scratch / "m.c")
        results = CModel(self.scratch / "m.c", flags=("-O1",)).run(*rest.values())
        self.assertGreater(decibels([x.ravel() for x in wanted], results), 70)
        for how in ("-dynamic", "-weight-only"):
            with self.subTest(how):
                out = self.scratch / "q.onnx"
                qxc(path, *given, how, "-emit=qdq", "-o", out)
                self.assertLess(out.stat().st_size, path.stat().st_size / 5)
                self.assertEqual([i.name for i in session(out).get_inputs()], list(rest))
                for optimized in (False, True):
                    self.assertGreater(decibels(wanted, self.outputs(out, rest, optimized)), FLOORS[how])


if __name__ == "__main__":
    unittest.main()
