"""ONNX's own operator tests, for every operator that qxc has a row for.

Every case either gives ONNX's expected values or is named in UNSUPPORTED with the reason that qxc
states; a case that starts or stops working fails here.
"""

import os
import pathlib
import re
import subprocess
import unittest

import numpy as np
import onnx
from onnx import numpy_helper

from common import BUILD, QXC, OracleCase

LIST = pathlib.Path(__file__).with_name("node_ops_unsupported.txt")


def our_operators():
    text = (pathlib.Path(__file__).resolve().parents[2] / "ir/ops/ops.def").read_text()
    return set(re.findall(r"^OP\((\w+)\)", text, re.M))


# Read by qxc as the float operator of the same name.
QOPERATORS = {"QLinearConv", "QLinearMatMul"}


def cases():
    """(name, model, data sets) of the cases whose operators are all ours."""
    import warnings
    from onnx.backend.test.case.node import collect_testcases
    ours = our_operators() | QOPERATORS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    for case in found:
        graph = case.model.graph
        if case.name.startswith("test_castlike"):
            continue  # the same casts again, as the expansion of another operator
        if case.model.functions or not all(n.op_type in ours and n.domain == "" for n in graph.node):
            continue
        yield case.name, case.model, case.data_sets


def arrays(values):
    """As numpy arrays; None where numpy lacks the type, or they are sequences."""
    values = [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in values]
    found = [None if v is None or isinstance(v, list) else np.asarray(v) for v in values]
    return None if any(v is None or v.dtype.kind not in "fiub" for v in found) else found


def with_constants(model, inputs):
    """All operands but the first as initializers, as real models have shapes, axes and bounds."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    keep = 1 if len(inputs) > 1 else 0
    for info, value in list(zip(model.graph.input, inputs))[keep:]:
        changed.graph.initializer.append(numpy_helper.from_array(value, info.name))
    del changed.graph.input[keep:]
    return changed, inputs[:keep]


def samples(v):
    """The first axis counts samples; arrays that begin with an axis of length 1 have it already."""
    return v if v.shape[:1] == (1,) else v[None]


def run(model, inputs, folder):
    """Outputs by name, or the reason why not."""
    path, x, y = folder / "m.onnx", folder / "x.npz", folder / "y.npz"
    onnx.save(model, path)
    np.savez(x, **{i.name: samples(v) for i, v in zip(model.graph.input, inputs)})
    y.unlink(missing_ok=True)
    command = [QXC, "run", path, "-o", y] + ([f"-input={x}"] if len(inputs) else [])
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode == 1 and "error: " in done.stderr:
        return None, reason(done.stderr)
    if done.returncode:
        raise AssertionError(f"exit {done.returncode}: {done.stderr[-2000:]}")
    return dict(np.load(y)), None


def reason(stderr):
    """The first message without file and node."""
    line = next(l for l in stderr.splitlines() if "error: " in l)
    line = line.split("error: ", 1)[1].replace(str(BUILD), "build")
    line = re.sub(r" \(\d+ nodes?: .*\)$", "", line)
    return line


def same(have, want, label):
    if have.shape == (1,) + want.shape:
        have = have[0]
    if have.shape != want.shape:
        return f"{label}: shape {have.shape}, expected {want.shape}"
    if have.dtype != want.dtype:
        return f"{label}: {have.dtype}, expected {want.dtype}"
    if np.issubdtype(want.dtype, np.floating):
        close = np.allclose(have, want, rtol=1e-3, atol=1e-7, equal_nan=True)
    else:
        close = np.array_equal(have, want)
    return None if close else f"{label}: {have.ravel()[:8]}, expected {want.ravel()[:8]}"


def read_list():
    if not LIST.exists():
        return {}
    pairs = (line.split(": ", 1) for line in LIST.read_text().splitlines() if line and line[0] != "#")
    return {name: why for name, why in pairs}


class NodeOps(OracleCase):
    def check(self, name, model, data_sets):
        """None when the values are right, else the reason why it cannot run."""
        for inputs, outputs in data_sets:
            inputs, outputs = arrays(inputs), arrays(outputs)
            if inputs is None or outputs is None:
                return "numpy has no such type"
            values, why = run(model, inputs, self.scratch)
            refused = why
            if why:
                values, why = run(*with_constants(model, inputs), self.scratch)
            if why:
                return refused
            for out, want in zip(model.graph.output, outputs):
                self.assertIsNone(same(values[out.name], want, f"{name} {out.name}"))
            if refused:
                return f"with constant operands only, else: {refused}"
        return None

    def test_all(self):
        expected, found, ran = read_list(), {}, 0
        for name, model, data_sets in cases():
            with self.subTest(name):
                ran += 1
                why = self.check(name, model, data_sets)
                if why:
                    found[name] = why
        if os.environ.get("QXC_UPDATE"):
            lines = ["# Cases of ONNX's operator tests that qxc cannot run, and what it says.\n"]
            lines += [f"{n}: {why}\n" for n, why in sorted(found.items())]
            LIST.write_text("".join(lines))
        print(f"node tests: {ran - len(found)} of {ran} run")
        self.assertGreater(ran, 250)
        self.assertEqual(found, expected)


if __name__ == "__main__":
    unittest.main()
