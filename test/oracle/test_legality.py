"""Everything that is written can be loaded: all quantizable operators (zoo.py) and the digits model,
at every opset, in all combinations of types, both forms and both targets.

ONNX's checker takes all of it with full inference. What is for onnxruntime loads and runs there, with
its optimizations and without, near the float model; what is for ONNX holds no other operators. A
refusal names the opset that is needed. The committed sweep takes one of the four forms and targets
for each opset and combination; QXC_EXHAUSTIVE=1 takes all four (some minutes).
"""

import os

import numpy as np
import onnx

import zoo
from common import DIGITS, OracleCase, for_each, qxc, session

OPSETS = range(10, 27)
FORMS = [("qdq", "ort-cpu"), ("qop", "ort-cpu"), ("qop", "onnx"), ("qdq", "onnx")]
NO_DATA = {  # options, and how near results have to be to the float model's, in dB; None: anyhow
    "w8 weight-only": (["-weight-only"], 15), "w4 weight-only": (["-weight-only", "-weights=int4 sym block(16)"], None),
    "dynamic": (["-dynamic"], 15)}
TYPES = NO_DATA | {
    "u8 x s8": ([], 15), "s8 x s8": (["-activations=int8"], 15), "u8 x u8": (["-weights=uint8"], 15),
    "s8 x u8": (["-activations=int8", "-weights=uint8"], 15), "reduced": (["-reduce-range"], 15),
    "a16 x w8": (["-activations=uint16"], 20), "a16s x w16": (["-activations=int16", "-weights=int16"], 30),
    "a4 x w8": (["-activations=uint4"], None), "a8 x w4": (["-weights=int4"], None),
    "a8 x w2": (["-weights=int2"], None), "integers outside": (["-io=quant"], None)}
SINCE = {"a4 x w8": 10, "a16 x w8": 11, "a16s x w16": 11, "dynamic": 11, "w4 weight-only": 11}  # can be had at


def near(reference, got, floor):
    """Names of outputs with less than `floor` dB; steps may fall on the other side."""
    bad = []
    for name, want in reference.items():
        want, error = want.astype(np.float64), got[name].astype(np.float64) - want
        if name.split("_")[0] not in zoo.STEPS and not np.sum(want**2) >= np.sum(error**2) * 10**(floor / 10):
            bad.append(name)
    return bad


class Legality(OracleCase):
    def outputs(self, path, data, optimize):
        runner = session(path, optimize)
        names = [o.name for o in runner.get_outputs()]
        inputs = {i.name: data.astype(np.int8) if "int" in i.type else data for i in runner.get_inputs()}
        if any("int8" in i.type or "int4" in i.type or "int16" in i.type for i in runner.get_inputs()):
            return None  # loaded; the numbers of integers are not compared here
        return dict(zip(names, runner.run(names, inputs)))

    def one(self, source, calib, data, kind, form, target, opset):
        """Quantizes to an opset and checks; NULL or the refusal."""
        options, floor = TYPES[kind]
        out = self.scratch / "out.onnx"
        if kind not in NO_DATA:
            options = [*options, f"-calib={calib}"]
        if opset < 13:
            options = [*options, "-per-tensor"]  # one scale a channel needs opset 13
        done = qxc(source, f"-emit={form}", f"-target={target}", f"-target-opset={opset}", "-no-sync", "-o", out,
                   *options, ok=False)
        if done.returncode:
            return done.stderr
        model = onnx.load(out)
        self.assertEqual([("", opset)], [(i.domain, i.version) for i in model.opset_import if i.domain in ("", "ai.onnx")])
        onnx.checker.check_model(model, full_check=True)
        if target == "onnx":
            self.assertEqual(set(), {n.op_type for n in model.graph.node if n.domain not in ("", "ai.onnx")})
            return None
        reference = self.outputs(source, data, False)
        for optimize in (False, True):
            got = self.outputs(out, data, optimize)
            if got and floor:
                self.assertEqual([], near(reference, got, floor), f"optimize={optimize}")
        return None

    def sweep(self, source, calib, data, opset, salt):
        for i, kind in enumerate(TYPES):
            which = FORMS if os.environ.get("QXC_EXHAUSTIVE") else [FORMS[(i + opset + salt) % 4]]
            for form, target in which:
                with self.subTest(kind, opset=opset, form=form, target=target):
                    refusal = self.one(source, calib, data, kind, form, target, opset)
                    if opset < SINCE.get(kind, 10):
                        self.assertIn(f"need opset 11, not {opset} (-target-opset)", refusal or "")
                    else:
                        self.assertIsNone(refusal)

    @for_each(*OPSETS)
    def test_operators(self, opset):
        source, calib = self.scratch / "zoo.onnx", self.scratch / "zoo.npz"
        data = np.random.default_rng(1).standard_normal((8, *zoo.SHAPE[1:])).astype(np.float32)
        onnx.save(zoo.zoo(opset), source)
        np.savez(calib, x=data)
        self.sweep(source, calib, data[:1], opset, 0)

    @for_each(17, 21, 26)
    def test_digits(self, opset):
        with np.load(DIGITS / "calib.npz") as calib:
            data = calib["image"][:1].reshape(1, 1, 8, 8)
        self.sweep(DIGITS / "digits.onnx", DIGITS / "calib.npz", data, opset, 1)

    def test_newest_opset(self):
        """ONNX is two opsets ahead of onnxruntime; the user hears of it."""
        source, calib = self.scratch / "zoo.onnx", self.scratch / "zoo.npz"
        data = np.random.default_rng(1).standard_normal((2, *zoo.SHAPE[1:])).astype(np.float32)
        onnx.save(zoo.zoo(26), source)
        np.savez(calib, x=data)
        for form in ("qdq", "qop"):
            self.assertIsNone(self.one(source, calib, data[:1], "u8 x s8", form, "onnx", 28))
        said = qxc(source, "-emit=qdq", "-target-opset=28", f"-calib={calib}", "-no-sync", "-o", self.scratch / "x.onnx").stderr
        self.assertIn("the result is at opset 28; onnxruntime is known to load those up to 26", said)

    def test_raises_the_opset(self):
        """Without -target-opset the result is at the lowest opset that holds the types."""
        source, calib = self.scratch / "zoo.onnx", self.scratch / "zoo.npz"
        onnx.save(zoo.zoo(10), source)
        np.savez(calib, x=np.ones((2, *zoo.SHAPE[1:]), np.float32))
        for options, opset in (([], 13), (["-activations=uint16"], 21), (["-weights=int4"], 21), (["-weights=int2"], 25)):
            out = self.scratch / "out.onnx"
            said = qxc(source, "-emit=qdq", f"-calib={calib}", "-no-sync", "-o", out, *options).stderr
            self.assertEqual(opset, onnx.load(out).opset_import[0].version, options)
            self.assertIn(f"opset 10 -> {opset}", said)
