"""Every value that `qxc run` computes in a float model, against onnxruntime without optimizations.

Each value is held to 1e-5 * max|reference| + 1e-6. Where rounding errors have piled up on the way,
the model in double precision judges: qxc may be as far from it as that plus what onnxruntime's own
distance is. That the layers themselves are right to the bound is tested with the same inputs.
"""

import numpy as np
import onnx

from common import (DIGITS, OracleCase, computed_names, data_inputs, feed, float_excess, for_each_model, model_path,
                    qxc_values, run_samples, session, talk, with_outputs)
from exact import exact_values
from inputs import test_inputs
from layers import Layers


def judge(model, arrays, got, want, names):
    """Those of `names` that are too far from the result in double precision, in words."""
    wrong, worst = [], 0.0
    for k in range(len(next(iter(arrays.values())))):
        exact = exact_values(model, feed(model, arrays, k))
        for name in names:
            truth = exact[name].ravel()
            mine, theirs = (np.max(np.abs(v[name][k].ravel() - truth)) for v in (got, want))
            size = np.max(np.abs(truth))
            worst = max(worst, theirs / size)
            if not mine <= 1e-5 * size + 1e-6 + theirs:
                wrong.append(f"{name}: {mine / size:.3g} of the maximum from the exact result, "
                             f"onnxruntime {theirs / size:.3g}")
    talk(f"{len(names)} values differ from onnxruntime by more than 1e-5, whose own error reaches "
         f"{worst:.1e}; too far from the exact result: {len(wrong)}")
    return wrong


def compare_values(path, arrays, folder):
    """Complaints about values that are missing or too far away, and how many were compared."""
    model = onnx.load(path)
    names = computed_names(model.graph)
    want = run_samples(session(with_outputs(model, names)), model, arrays)
    complaints, far = [], []
    with qxc_values(path, arrays, folder) as got:
        for name in names:
            if name not in got.files:
                complaints.append(f"{name} is missing")
            elif want[name].dtype.kind != "f":
                if not np.array_equal(got[name].ravel(), want[name].ravel()):
                    complaints.append(f"{name}: integers differ")
            elif got[name].size != want[name].size:
                complaints.append(f"{name}: {got[name].shape} for {want[name].shape}")
            elif float_excess(got[name], want[name]) > 0:
                far.append(name)
        if far:
            complaints += judge(model, arrays, {n: got[n] for n in far}, want, far)
        if not complaints:
            complaints, _ = Layers(model, arrays, got).check(exact=False)
    return complaints, len(names)


class FloatValues(OracleCase):
    def check(self, path, arrays, least):
        complaints, compared = compare_values(path, arrays, self.scratch)
        self.assertEqual([], complaints)
        self.assertGreaterEqual(compared, least)

    @for_each_model()
    def test(self, name):
        path = model_path(name, "fp32")
        graph = onnx.load(path).graph
        self.check(path, {data_inputs(graph)[0].name: test_inputs(name)[:16]}, len(graph.node))

    def test_digits(self):
        with np.load(DIGITS / "test.npz") as data:
            self.check(DIGITS / "digits.onnx", {"image": data["image"][:64]}, 17)
