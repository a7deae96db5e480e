"""Every value that `qxc run` computes in a float model, against onnxruntime without optimizations."""

import numpy as np
import onnx

from common import (DIGITS, NAMES, OracleCase, computed_names, data_inputs, float_excess, for_each,
                    qxc_values, run_samples, session, with_outputs)
from inputs import test_inputs


def compare_values(path, arrays, folder):
    """Complaints about values that are missing or too far away, and how many were compared."""
    model = onnx.load(path)
    names = computed_names(model.graph)
    want = run_samples(session(with_outputs(model, names)), model, arrays)
    complaints = []
    with qxc_values(path, arrays, folder) as got:
        for name in names:
            if name not in got.files:
                complaints.append(f"{name} is missing")
            elif want[name].dtype.kind != "f":
                if not np.array_equal(got[name].ravel(), want[name].ravel()):
                    complaints.append(f"{name}: integers differ")
            elif got[name].size != want[name].size:
                complaints.append(f"{name}: {got[name].shape} for {want[name].shape}")
            elif (excess := float_excess(got[name], want[name])) > 0:
                complaints.append(f"{name}: {excess:.3g} beyond 1e-5 * max + 1e-6")
    return complaints, len(names)


class FloatValues(OracleCase):
    def check(self, path, arrays, least):
        complaints, compared = compare_values(path, arrays, self.scratch)
        self.assertEqual([], complaints)
        self.assertGreaterEqual(compared, least)

    @for_each(*NAMES)
    def test(self, name):
        path = self.shared_model(f"{name}_fp32.onnx")
        graph = onnx.load(path).graph
        self.check(path, {data_inputs(graph)[0].name: test_inputs(name)[:16]}, len(graph.node))

    def test_digits(self):
        with np.load(DIGITS / "test.npz") as data:
            self.check(DIGITS / "digits.onnx", {"image": data["image"][:64]}, 17)
