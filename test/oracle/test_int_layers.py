"""The integer models: `qxc run` against onnxruntime, layer by layer on the same input values.

At most one step from the model as it came, run without optimizations; equal bit for bit to the
QOperator form that qxc writes, but for operators that round in a way of their own.
"""

import functools

import numpy as np
import onnx

from common import (OracleCase, data_inputs, for_each_model, model_path, qxc, qxc_values, run_samples, session, talk)
from inputs import int8_inputs
from layers import Layers

SAMPLES = 100


@functools.cache
def inputs_of(name):
    """{input: int8 [100, ...]} and the classes reached."""
    stored, classes = int8_inputs(name, SAMPLES)
    return stored, classes


def histogram(a, b):
    """Counts of |a - b| by step."""
    steps = np.abs(a.astype(np.int64) - b.astype(np.int64)).ravel()
    return np.bincount(steps)


def end_to_end(path, name, folder):
    """[(what is compared, histogram)] of the outputs."""
    model = onnx.load(path)
    arrays = {data_inputs(model.graph)[0].name: inputs_of(name)[0]}
    output = model.graph.output[0].name
    qop = folder / f"{name}_qop.onnx"
    qxc(path, "-emit=qop", "-no-sync", "-o", qop)
    with qxc_values(path, arrays, folder) as values:
        mine = values[output]

    def outputs(of, optimize):
        loaded = onnx.load(of)
        return run_samples(session(of, optimize), loaded, arrays)[output].reshape(mine.shape)

    plain, fused = outputs(path, False), outputs(path, True)
    return [("qxc - onnxruntime, the model as it came, not optimized", histogram(mine, plain)),
            ("qxc - onnxruntime, the QOperator form that qxc writes", histogram(mine, outputs(qop, False))),
            ("onnxruntime optimized - not optimized", histogram(fused, plain))]


class IntLayers(OracleCase):
    def layers(self, reference, source, name, exact):
        """Runs qxc on `source`, and the layers of `reference` on its values."""
        model = onnx.load(reference)
        arrays = {data_inputs(model.graph)[0].name: inputs_of(name)[0]}
        with qxc_values(source, arrays, self.scratch) as values:
            cut = Layers(model, arrays, values)
            self.assertEqual([], cut.uncovered())
            complaints, table = cut.check(exact)
        for ops, (layers, count, differ, worst) in table.items():
            talk(f"{name:5}{'qop' if exact else 'qdq'}  {layers:3} x {ops:40} {count:9} elements, "
                 f"{differ:6} differ, at most {worst}")
        self.assertEqual([], complaints)

    @for_each_model()
    def test_inputs_reach_half_of_the_classes(self, name):
        classes = {"kws": 12, "ic": 10, "vww": 2, "cnn": 10, "relu6": 10}
        stored, reached = inputs_of(name)
        self.assertEqual(SAMPLES, len(stored))
        if name in classes:
            self.assertGreaterEqual(len(set(reached.tolist())), classes[name] / 2)

    @for_each_model()
    def test_against_the_model_as_it_came(self, name):
        path = model_path(name, "int8_qdq")
        self.layers(path, path, name, exact=False)

    @for_each_model()
    def test_against_the_qoperator_form(self, name):
        path = model_path(name, "int8_qdq")
        qop = self.scratch / f"{name}_qop.onnx"
        qxc(path, "-emit=qop", "-no-sync", "-o", qop)
        self.layers(qop, path, name, exact=True)
        self.layers(qop, qop, name, exact=True)

    @for_each_model()
    def test_conversions_load_and_keep_the_results(self, name):
        """QDQ -> QOperator -> QDQ: `qxc run` gives the same outputs for all three."""
        path = model_path(name, "int8_qdq")
        qop, qdq = self.scratch / f"{name}_qop.onnx", self.scratch / f"{name}_qdq.onnx"
        qxc(path, "-emit=qop", "-no-sync", "-o", qop)
        qxc(qop, "-emit=qdq", "-no-sync", "-o", qdq)
        model = onnx.load(path)
        arrays = {data_inputs(model.graph)[0].name: inputs_of(name)[0]}
        output = model.graph.output[0].name
        results = []
        for each in (path, qop, qdq):
            loaded = onnx.load(each)
            onnx.checker.check_model(loaded)
            run_samples(session(each), loaded, arrays, count=1)
            run_samples(session(each, optimize=True), loaded, arrays, count=1)
            with qxc_values(each, arrays, self.scratch) as values:
                results.append(values[output])
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])

    @for_each_model()
    def test_end_to_end_differences(self, name):
        """Nothing to fail but a shape: single steps grow on the way, in onnxruntime as well."""
        path = model_path(name, "int8_qdq")
        for what, counts in end_to_end(path, name, self.scratch):
            talk(f"{name:5}{what:55} {counts.tolist()}")
