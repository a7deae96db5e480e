"""The files that Aidge 0.10.1 wrote (QXC_SHARED/models/tools/aidge): each is read and printed, run, raised, written as QDQ and
QOperators, and compiled to C of integers, and all that computes what the file says."""

import re
import subprocess
import unittest

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper

from aidge_reference import compute, shifted
from common import MODELS, OracleCase, compile_c, for_each, qxc, qxc_outputs, run_samples, session, talk

FOLDER = MODELS / "tools/aidge"
COLUMNS = ("read", "run", "raised", "same", "qdq", "qop", "c")
# What is not to be had: (pattern of file names, columns, reason).
EXCEPTIONS = (
    (r"_fk_exp", ("c",), "its float input meets weights that stand as floats: the first layer computes in float"),
    (r"_fk(ridq)?_meta", ("raised", "c"), "its zero points are floats, so nothing says how many bits there are"),
)


def samples(model, count=24):
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    rng = np.random.default_rng(7)
    return rng.random((count, *shape[1:]), dtype=np.float32)


def with_bytes(model):
    """int4 outputs as int8, which Python can hold."""
    for value in model.graph.output:
        if value.type.tensor_type.elem_type == T.INT4:
            model.graph.node.append(helper.make_node("Cast", [value.name], [f"{value.name}_8"], to=T.INT8))
            value.name += "_8"
            value.type.tensor_type.elem_type = T.INT8
    return model


class Files(OracleCase):
    expected_seconds = 30

    def setUp(self):
        if not FOLDER.exists():
            self.skipTest("needs the models of QXC_SHARED=DIR (DIR/models): tools/aidge")

    def reference(self, model, x):
        """Of onnxruntime where it runs the file as it stands; it has no Python type for 4 bits."""
        if model.graph.output[0].type.tensor_type.elem_type not in (T.INT4, T.UINT4):
            try:
                runner = session(model)
            except Exception:  # its classes of errors are many
                return compute(model, x)
            return run_samples(runner, model, {model.graph.input[0].name: x})[model.graph.output[0].name]
        return compute(model, x)

    def one(self, path):
        name, model = path.stem, onnx.load(path)
        x = samples(model)
        if re.search("base|_fk_|_ss_|nofold", name):
            x = np.rint(127 * x)  # integers go in
        arrays = {model.graph.input[0].name: x}
        text, back, again = (self.scratch / f"{name}.{end}" for end in ("qir", "back.onnx", "again.qir"))
        if qxc(path, "-o", text, "-no-sync", ok=False).returncode:
            return {}
        qxc(text, "-emit=onnx", "-o", back, "-no-sync", *self.newer(name))
        qxc(back, "-o", again, "-no-sync")
        row = {"read": text.read_text().split("graph")[1] == again.read_text().split("graph")[1]}
        want = self.reference(model, x)
        step = np.min(np.diff(np.unique(want)))
        got = next(iter(qxc_outputs(path, arrays, self.scratch).values()))
        row["run"] = self.near(got, want, step, 0)
        true = self.scratch / f"{name}.true.qir"
        row["raised"] = "and why:" not in qxc(path, "-form=true", "-o", true, "-no-sync").stderr
        ints = next(iter(qxc_outputs(true, arrays, self.scratch).values()))
        row["same"] = self.near(ints, want, step, 0.02)
        for form in ("qdq", "qop"):
            out = self.scratch / f"{name}.{form}.onnx"
            qxc(path, f"-emit={form}", "-o", out, "-no-sync", *self.newer(name))
            made = with_bytes(onnx.load(out))
            got = next(iter(run_samples(session(made), made, arrays).values()))
            row[form] = self.near(got, ints, step, 0.03)
        row["c"] = self.bench(path, name)
        return row

    @staticmethod
    def newer(name):
        return ["-target-opset=21"] if "opset28" in name else []

    @staticmethod
    def near(got, want, step, few):
        """At most one step apart, and that in few places: ties."""
        far = np.abs(got.reshape(want.shape).astype(np.float64) - want) / step
        return bool(np.mean(far > 1e-3) <= few and np.max(far) < 3.5)

    def bench(self, path, name):
        out, program = self.scratch / f"{name}.c", self.scratch / name
        done = qxc(path, "-emit=c", "-integer-only", "-io=quant", "-testbench", "-random=4", "-o", out, "-no-sync",
                   ok=False)
        if done.returncode:
            return False
        compile_c("cc", "-O0", "-std=c99", "-o", program, out, "-lm")
        return subprocess.run([program], check=False, capture_output=True).returncode == 0

    def test_table(self):
        for path in sorted(p for p in FOLDER.glob("*.onnx") if not p.stem.startswith("src_")):
            row = self.one(path)
            told = {c: why for pattern, columns, why in EXCEPTIONS for c in columns if re.search(pattern, path.stem)}
            talk(f"{path.stem:20}" + " ".join(f"{c} {'yes' if row.get(c) else 'no':4}" for c in COLUMNS)
                 + "; ".join(sorted(set(told.values()))))
            for column in COLUMNS:
                reason = told.get(column)
                with self.subTest(file=path.stem, column=column):
                    self.assertEqual(bool(row.get(column)), reason is None, reason)


ZERO_POINTS = """qir 1
import "" 21
graph @g (%x : float[64,3]) -> (%y) {{
  const %s : float[] = [0.125]
  const %z : int8[] = [{zq}]
  const %w : int8[3,4] = [36, -27, 18, -9, 0, 9, -18, 27, 127, -128, 1, 5]
  const %b : int32[4] = [100, -5, 0, 31]
  const %m : float[] = [96.0]
  const %zc : uint8[] = [{zc}]
  const %out : float[] = [0.3]
  %q = QuantizeLinear(%x, %s, %z)
  %c = Gemm(%q, %w, %b)
  %cq = QuantizeLinear(%c, %m, %zc)
  %y = DequantizeLinear(%cq, %out, %zc)
}}
"""


class ZeroPoints(OracleCase):
    """Operators on plain integers read them as they are, zero points at either end of the range included; ties are in x."""

    def test_numbers(self):
        x = np.arange(-96, 96, dtype=np.float32).reshape(64, 3) / 16
        w = np.array([36, -27, 18, -9, 0, 9, -18, 27, 127, -128, 1, 5]).reshape(3, 4)
        for zq, zc in ((3, 128), (-128, 255), (127, 1), (-5, 0)):
            text, out = self.scratch / "zp.qir", self.scratch / "zp.onnx"
            text.write_text(ZERO_POINTS.format(zq=zq, zc=zc))
            q = np.clip(np.rint(x / np.float32(0.125)) + zq, -128, 127).astype(np.int64)
            sums = (q @ w + [100, -5, 0, 31]).astype(np.float32)
            cq = np.clip(np.rint(sums * (np.float32(1) / np.float32(96))) + zc, 0, 255)
            want = (cq - zc).astype(np.float32) * np.float32(0.3)
            for form in ("qdq", "qop"):
                qxc(text, f"-emit={form}", "-o", out, "-no-sync", "-quiet")
                with self.subTest(zero_points=(zq, zc), form=form):
                    got = session(onnx.load(out)).run(None, {"x": x})[0]
                    np.testing.assert_array_equal(got, want)
            with self.subTest(zero_points=(zq, zc), form="run"):
                got = qxc_outputs(text, {"x": x}, self.scratch)["y"]
                np.testing.assert_array_equal(got, want)


TWO_SCALES = """
qir 1
import "" 21
model <ir_version=10>
graph @g (%x : float[1,8]) -> (%y) {
  const %s1 : float[] = [0.02]
  const %s2 : float[] = [0.0375]
  const %sw : float[] = [0.01]
  const %z : int8[] = [0]
  const %z9 : int8[] = [9]
  const %w : int8[8,8] = splat(7)
  %q = QuantizeLinear(%x, %s1, %z)
  %d = DequantizeLinear(%q, %s1, %z)
  %other = DequantizeLinear(%q, %s2, %z9)
  %dw = DequantizeLinear(%w, %sw, %z)
  %m = MatMul(%d, %dw)
  %mq = QuantizeLinear(%m, %s1, %z)
  %flat = Flatten(%mq)
  %md = DequantizeLinear(%flat, %s2, %z)
  %a = Add(%other, %md)
  %aq = QuantizeLinear(%a, %s2, %z)
  %y = DequantizeLinear(%aq, %s1, %z9)
}
"""


class TwoScales(OracleCase):
    """Integers made with one scale and read with another (a residual Add of Aidge's): onnxruntime's numbers in every form."""

    def test_forms(self):
        text, back = self.scratch / "m.qir", self.scratch / "m.onnx"
        text.write_text(TWO_SCALES)
        qxc(text, "-passes=", "-emit=onnx", "-o", back)
        x = {"x": np.random.default_rng(3).normal(0, 1, (64, 8)).astype(np.float32)}
        model = onnx.load(back)
        want = run_samples(session(model), model, x)["y"]
        self.assertGreater(len(np.unique(want)), 50)
        true = self.scratch / "true.qir"
        self.assertNotIn("and why:", qxc(text, "-form=true", "-o", true).stderr)
        np.testing.assert_array_equal(qxc_outputs(true, x, self.scratch)["y"].reshape(want.shape), want)
        for form in ("qdq", "qop"):
            out = self.scratch / f"{form}.onnx"
            qxc(text, f"-emit={form}", "-o", out)
            made = onnx.load(out)
            for optimize in (False, True):
                np.testing.assert_array_equal(run_samples(session(made, optimize, int8=True), made, x)["y"], want)

    def test_c(self):
        text, out = self.scratch / "m.qir", self.scratch / "m.c"
        text.write_text(TWO_SCALES)
        said = qxc(text, "-emit=c", "-integer-only", "-io=quant", "-testbench", "-random=16", "-o", out).stderr
        self.assertIn("no floating point", said)
        compile_c("cc", "-O1", "-std=c99", "-o", self.scratch / "m", out, "-lm")
        subprocess.run([self.scratch / "m"], check=True, capture_output=True)


SHIFTS = """qir 1
import "" 21
graph @g (%x : float[256,4]) -> (%y) {{
  const %s : float[] = [{step}]
  const %z : int8[] = [0]
  const %o : float[] = [{end}]
  const %k : int32[] = [{scale}]
  const %k2 : int32[] = [{scale2}]
  const %w : int8[4,4] = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
  const %b : int32[4] = [3, -5, 0, 64]
  const %one : float[] = [1.0]
  %q = QuantizeLinear(%x, %s, %z)
  %r = Relu(%q)
  %branch = QuantizeLinear(%r, %k, %z)
  %c = Gemm(%r, %w, %b)
  %cq = QuantizeLinear(%c, %one, %z)
  %sum : int32[256,4] stated = Add(%branch, %cq)
  %sq = QuantizeLinear(%sum, %k2, %z)
  %out = Relu(%sq)
  %y = DequantizeLinear(%out, %o, %z)
}}
"""


class Shifts(OracleCase):
    """Single shift of what no product makes: a residual branch and the sum with it. Each integer, each tie."""

    def test_numbers(self):
        for step, bits, bits2 in ((0.0078740157, 1, 1), (0.1, 2, 0), (0.3, 4, 1), (1.7e-3, 0, 2), (0.0234, 3, 3)):
            text, out, true = self.scratch / "s.qir", self.scratch / "s.onnx", self.scratch / "true.qir"
            text.write_text(SHIFTS.format(step=step, end=step * 2**(bits + bits2), scale=2**bits, scale2=2**bits2))
            ints = np.repeat(np.arange(-128, 128), 4).reshape(256, 4)
            x = (ints * np.float32(step)).astype(np.float32)
            r = np.maximum(ints, 0)
            total = shifted(r, bits, True) + np.clip(r + [3, -5, 0, 64], -128, 127)
            want = np.maximum(np.clip(shifted(total, bits2, True), -128, 127), 0) * step * 2**(bits + bits2)
            said = qxc(text, "-form=true", "-o", true, "-no-sync").stderr
            with self.subTest(step=step, bits=(bits, bits2)):
                self.assertNotIn("and why:", said)
                np.testing.assert_allclose(qxc_outputs(text, {"x": x}, self.scratch)["y"], want, rtol=4e-6)
                np.testing.assert_allclose(qxc_outputs(true, {"x": x}, self.scratch)["y"], want, rtol=4e-6)
                for form in ("qdq", "qop"):
                    qxc(text, f"-emit={form}", "-o", out, "-no-sync", "-quiet")
                    np.testing.assert_allclose(session(onnx.load(out)).run(None, {"x": x})[0], want, rtol=4e-6)
                qxc(text, "-emit=c", "-integer-only", "-io=quant", "-o", self.scratch / "s.c", "-no-sync")

    def test_shifts_of_c(self):
        """What emitted C of shifts computes, of a file of single shifts: Aidge's integers, to the last."""
        path = FOLDER / "v_8_ssridq_meta.onnx"
        if not path.exists():
            self.skipTest("needs the models of QXC_SHARED=DIR (DIR/models): tools/aidge")
        model = onnx.load(path)
        x = samples(model, 200)
        got = qxc_outputs(path, {model.graph.input[0].name: x}, self.scratch, "-form=true", "-requant=shift")
        want = compute(model, x)
        np.testing.assert_allclose(next(iter(got.values())).reshape(want.shape), want, rtol=4e-6)
        qxc(path, "-emit=c", "-integer-only", "-requant=shift", "-o", self.scratch / "s.c", "-no-sync")

    def test_residual(self):
        """The residual network with scales that are powers of two."""
        path = FOLDER / "r_8_ri_meta.onnx"
        if not path.exists():
            self.skipTest("needs the models of QXC_SHARED=DIR (DIR/models): tools/aidge")
        model, changed = onnx.load(path), self.scratch / "shifts.onnx"
        constants = {t.name: t for t in model.graph.initializer}
        for n in model.graph.node:
            if n.op_type == "QuantizeLinear" and n.input[0] != model.graph.input[0].name:
                t = constants[n.input[1]]
                bits = max(round(np.log2(float(onnx.numpy_helper.to_array(t)))), 1)
                t.CopyFrom(onnx.numpy_helper.from_array(np.array(1 << bits, np.int32), t.name))
        onnx.save(model, changed)
        x = {model.graph.input[0].name: samples(model, 200)}
        true, want = self.scratch / "true.qir", compute(model, samples(model, 200))
        self.assertNotIn("and why:", qxc(changed, "-form=true", "-o", true, "-no-sync").stderr)
        got = next(iter(qxc_outputs(true, x, self.scratch).values()))
        self.assertTrue(Files.near(got, want, 1, 0.01))


AVERAGES = """qir 1
import "" 21
graph @g (%x : float[64,2,{h},{w}]) -> (%y) {{
  const %s : float[] = [{step}]
  const %z : int8[] = [0]
  %q = QuantizeLinear(%x, %s, %z)
  %a = {op}
  %y = DequantizeLinear(%a, %s, %z)
}}
"""
POOL = "AveragePool(%q) <kernel_shape=[{0}, {1}], strides=[{0}, {1}]>"


class Averages(OracleCase):
    """Averages of integers round ties away from 0, as Aidge does (AvgPooling2D of int8), in every form."""

    def test_numbers(self):
        rng = np.random.default_rng(11)
        for step, h, w, op in ((0.5, 2, 2, POOL), (0.0313, 4, 4, "GlobalAveragePool(%q)"), (0.1, 1, 2, POOL),
                               (1.7e-3, 8, 8, POOL), (0.3, 2, 3, POOL), (1.0, 66, 66, "GlobalAveragePool(%q)")):
            text, out, true = self.scratch / "a.qir", self.scratch / "a.onnx", self.scratch / "true.qir"
            text.write_text(AVERAGES.format(step=step, h=h, w=w, op=op.format(h, w)))
            above = np.arange(h * w).reshape(h, w) < rng.integers(0, h * w + 1, (64, 2, 1, 1))
            above[::2] = np.arange(h * w).reshape(h, w) * 2 < h * w  # ties
            above[1::4] = np.arange(h * w).reshape(h, w) * 2 < h * w - 2  # just below them
            ints = rng.integers(-128, 127, (64, 2, 1, 1)) + above
            x = (ints * np.float32(step)).astype(np.float32)
            sums, n = ints.sum((2, 3), keepdims=True), h * w
            want = np.sign(sums) * ((2 * np.abs(sums) + n) // (2 * n)) * step
            self.assertGreaterEqual(np.sum(2 * np.abs(sums) % (2 * n) == n), 64)
            said = qxc(text, "-form=true", "-o", true, "-no-sync").stderr
            with self.subTest(step=step, window=(h, w)):
                self.assertNotIn("and why:", said)
                for form in (text, true):
                    np.testing.assert_allclose(qxc_outputs(form, {"x": x}, self.scratch)["y"], want, rtol=4e-6)
                for form in ("qdq", "qop"):
                    qxc(text, f"-emit={form}", "-o", out, "-no-sync", "-quiet")
                    for optimize in (False, True):
                        got = session(onnx.load(out), optimize, int8=True).run(None, {"x": x})[0]
                        np.testing.assert_allclose(got, want, rtol=4e-6)


READERS = """qir 1
import "" 21
graph @g (%x : float[1,1,8,8]) -> (%raw, %real, %sums) {{
  const %lo : float[] = [-128.0]
  const %hi : float[] = [127.0]
  const %k : float[] = [{k}]
  const %s : float[] = [{s}]
  const %w : float[2,1,3,3] = [1.0, -2.0, 3.0, 4.0, -5.0, 6.0, 7.0, -8.0, 9.0, 2.0, 2.0, -1.0, 1.0, 0.0, 3.0, -3.0, 1.0, 1.0]
  const %m : float[] = [0.031]
  %xs = Mul(%x, %k)
  %xr = Round(%xs)
  %xq = Clip(%xr, %lo, %hi)
  %relu = Relu(%xq)
  %raw, %places = MaxPool(%relu) <kernel_shape=[2, 2], strides=[2, 2]>
  %real = Mul(%raw, %s)
  %c = Conv(%relu, %w)
  %cs = Mul(%c, %m)
  %cr = Round(%cs)
  %sums = Clip(%cr, %lo, %hi)
}}
"""


class Readers(OracleCase):
    """Integers of a known step that go out as they are, and as real numbers: onnxruntime's numbers in every form."""

    @for_each(("127.0", "0.007874016"), ("4.0", "0.25"), ("10.5", "0.0952381"))
    def test_numbers(self, factors):
        k, s = factors
        text, plain, true = (self.scratch / n for n in ("m.qir", "plain.onnx", "true.qir"))
        text.write_text(READERS.format(k=k, s=s))
        qxc(text, "-passes=", "-emit=onnx", "-o", plain)
        x = {"x": ((np.arange(16 * 64).reshape(16, 1, 8, 8) * 37 % 280 - 140 + 0.3) / float(k)).astype(np.float32)}
        model = onnx.load(plain)
        want = run_samples(session(model), model, x)
        self.assertNotIn("and why:", qxc(text, "-form=true", "-o", true).stderr)
        results = {form: qxc_outputs(path, x, self.scratch) for form, path in (("run", text), ("true", true))}
        for form in ("qdq", "qop"):
            out = self.scratch / f"{form}.onnx"
            qxc(text, f"-emit={form}", "-o", out)
            results[form] = run_samples(session(onnx.load(out)), onnx.load(out), x)
        for form, got in results.items():
            for name, values in want.items():
                with self.subTest(form=form, output=name):
                    np.testing.assert_allclose(got[name].reshape(values.shape), values, rtol=1e-6)
        said = qxc(text, "-emit=c", "-integer-only", "-io=quant", "-testbench", "-random=8", "-o", self.scratch / "m.c").stderr
        self.assertIn("no floating point", said)
        compile_c("cc", "-O1", "-std=c99", "-o", self.scratch / "m", self.scratch / "m.c", "-lm")
        subprocess.run([self.scratch / "m"], check=True, capture_output=True)


if __name__ == "__main__":
    unittest.main()
