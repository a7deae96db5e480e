"""The files that Aidge 0.10.1 wrote (QXC_SHARED/models/tools/aidge): each is read and printed, run, raised, written as QDQ and
QOperators, and compiled to C of integers, and all that computes what the file says."""

import re
import subprocess
import unittest

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper

from aidge_reference import compute
from common import MODELS, OracleCase, compile_c, qxc, qxc_outputs, run_samples, session, talk

FOLDER = MODELS / "tools/aidge"
COLUMNS = ("read", "run", "raised", "same", "qdq", "qop", "c")
# What is not to be had: (pattern of file names, columns, reason).
EXCEPTIONS = (
    (r"_fk_exp", ("c",), "its float input meets weights that stand as floats: the first layer computes in float"),
    (r"_fk(ridq)?_meta", ("raised", "c"), "its zero points are floats, so nothing says how many bits there are"),
    (r"^r_.*_qdq", ("c",), "Q and DQ of other scales on one value keep the Add and what is around it float"),
    (r"^v_4_ri_qop", ("read", "run", "raised", "same", "qdq", "qop", "c"), "QLinearConv does not take int4"),
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
        compile_c("cc", "-O1", "-std=c99", "-o", program, out, "-lm")
        return subprocess.run([program], check=False, capture_output=True).returncode == 0

    def test_table(self):
        for path in sorted(p for p in FOLDER.glob("*.onnx") if not p.stem.startswith("src_")):
            row = self.one(path)
            talk(f"{path.stem:20}" + " ".join(f"{c} {'yes' if row.get(c) else 'no':4}" for c in COLUMNS))
            for column in COLUMNS:
                reason = next((why for pattern, columns, why in EXCEPTIONS
                               if column in columns and re.search(pattern, path.stem)), None)
                with self.subTest(file=path.stem, column=column):
                    self.assertEqual(bool(row.get(column)), reason is None, reason)


if __name__ == "__main__":
    unittest.main()
