"""The files that Aidge 0.10.1 wrote (QXC_SHARED/models/tools/aidge): each is read and printed, run, raised, written as QDQ and
QOperators, and compiled to C of integers, and all that computes what the file says."""

import subprocess
import unittest

import numpy as np
import onnx

from aidge_reference import compute
from common import MODELS, OracleCase, for_each, qxc, qxc_outputs, run_samples, session, talk

FOLDER = MODELS / "tools/aidge"
# By file: what is not to be had, and why.
FLOAT_ZERO_POINT = "its zero points are floats and say no range"
REFUSED = {"v_4_ri_qop": "QLinearConv does not take int4"}
NEWER = ("_opset28",)


def samples(model, count=24):
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    rng = np.random.default_rng(7)
    return rng.random((count, *shape[1:]), dtype=np.float32)


def names():
    return sorted(p.stem for p in FOLDER.glob("*.onnx")) if FOLDER.exists() else []


class Files(OracleCase):
    expected_seconds = 30

    def setUp(self):
        if not names():
            self.skipTest("needs the models of QXC_SHARED=DIR (DIR/models): tools/aidge")

    def reference(self, path, model, x):
        """Of onnxruntime where it runs the file as it stands."""
        try:
            runner = session(model)
        except Exception:  # its classes of errors are many
            return compute(model, x).reshape(len(x), -1)
        got = run_samples(runner, model, {model.graph.input[0].name: x})
        return got[model.graph.output[0].name].reshape(len(x), -1)

    def one(self, name):
        path = FOLDER / f"{name}.onnx"
        model = onnx.load(path)
        x = samples(model)
        if "base" in name or "_fk_" in name or "_ss_" in name or "nofold" in name:
            x = np.rint(127 * x)  # integers go in
        arrays = {model.graph.input[0].name: x}
        text, again = self.scratch / f"{name}.qir", self.scratch / f"{name}.again.qir"
        row = {}
        qxc(path, "-o", text, "-no-sync")
        back = self.scratch / "back.onnx"
        qxc(text, "-emit=onnx", "-o", back, "-no-sync", "-force")
        qxc(back, "-o", again, "-no-sync", "-force")
        row["read"] = onnx.load(back).graph.node == model.graph.node or "not the same"
        want = self.reference(path, model, x)
        step = np.min(np.diff(np.unique(want)))
        got = next(iter(qxc_outputs(path, arrays, self.scratch, "-force").values())).reshape(len(x), -1)
        row["run"] = self.near(got, want, step, 0)
        true = self.scratch / f"{name}.true.qir"
        said = qxc(path, "-form=true", "-o", true, "-no-sync", "-force").stderr
        row["raised"] = "and why:" not in said or said.split("and why:")[1].split("\n")[1].strip()
        ints = next(iter(qxc_outputs(true, arrays, self.scratch, "-force").values())).reshape(len(x), -1)
        row["run raised"] = self.near(ints, want, step, 0.02)
        for form in ("qdq", "qop"):
            out = self.scratch / f"{name}.{form}.onnx"
            done = qxc(path, f"-emit={form}", "-o", out, "-no-sync", "-force", ok=False)
            if done.returncode:
                row[form] = done.stderr.splitlines()[-1]
                continue
            made = onnx.load(out)
            got = next(iter(run_samples(session(made), made, arrays).values())).reshape(len(x), -1)
            row[form] = self.near(got, ints, step, 0.02)
        row["c"] = self.bench(path, name)
        return row

    @staticmethod
    def near(got, want, step, few):
        far = np.abs(got.astype(np.float64) - want) > step * 1e-3
        most = np.max(np.abs(got.astype(np.float64) - want)) / step
        return bool(np.mean(far) <= few) or f"{np.mean(far):.1%} differ, by up to {most:.1f} steps"

    def bench(self, path, name):
        out = self.scratch / f"{name}.c"
        done = qxc(path, "-emit=c", "-integer-only", "-io=quant", "-testbench", "-random=4", "-o", out, "-no-sync", "-force",
                   ok=False)
        if done.returncode:
            return next(line for line in done.stderr.splitlines() if "error:" in line).split("error: ")[-1]
        program = self.scratch / name
        subprocess.run(["cc", "-O1", "-std=c99", "-o", program, out, "-lm"], check=True)
        return subprocess.run([program], check=False, capture_output=True).returncode == 0 or "its bench fails"

    def test_table(self):
        for name in names():
            if name.startswith("src_"):
                continue
            try:
                row = self.one(name)
            except Exception as e:
                row = {"error": repr(e)[-300:]}
            talk(f"{name:22} " + ", ".join(f"{k} {'yes' if v is True else v}" for k, v in row.items()))


if __name__ == "__main__":
    unittest.main()
