"""Models at older opsets (-target-opset): what onnxruntime computes of them is the same, bit for bit, and what has no
older form is refused by name."""

import itertools
import unittest

import numpy as np
import onnx
from onnx import numpy_helper

from common import OracleCase, data_inputs, for_each, for_each_model, model_path, qxc
from node_cases import node_cases
from test_upgrade import ort

# Operators whose form changed, and the opset below each change.
CHANGED = {"ArgMax": [11], "AveragePool": [9, 11, 18], "BatchNormalization": [8, 13], "Cast": [18], "Clip": [10, 11, 12],
           "DequantizeLinear": [12, 18, 20], "Dropout": [11], "Flatten": [8, 10], "GRU": [13], "Gather": [10, 12],
           "Gemm": [10], "LSTM": [13], "LogSoftmax": [10, 12], "MaxPool": [7, 9, 11], "PRelu": [8, 15],
           "Pad": [10, 17], "QuantizeLinear": [12, 18, 20], "ReduceL2": [10, 17], "ReduceMax": [10, 17],
           "ReduceMean": [10, 17], "ReduceSum": [10, 12], "Relu": [13], "Reshape": [13], "Resize": [10, 12, 17],
           "ScatterElements": [15], "Shape": [14], "Slice": [9, 10], "Softmax": [10, 12], "Split": [10, 12, 17],
           "Squeeze": [10, 12], "TopK": [9, 10], "Unsqueeze": [10, 12]}


def run(model, feeds):
    """What onnxruntime computes, or None where it has no kernel for it."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return ort.InferenceSession(model.SerializeToString(), options,
                                    providers=["CPUExecutionProvider"]).run(None, feeds)
    except (ort.capi.onnxruntime_pybind11_state.NotImplemented, ort.capi.onnxruntime_pybind11_state.Fail,
            ort.capi.onnxruntime_pybind11_state.InvalidGraph, ort.capi.onnxruntime_pybind11_state.InvalidArgument,
            ort.capi.onnxruntime_pybind11_state.RuntimeException, RuntimeError):
        return None


def arrays_of(values):
    """As numpy has them; none where some are of a type that it does not have."""
    arrays = [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else np.asarray(v) for v in values
              if isinstance(v, (np.ndarray, np.generic, onnx.TensorProto))]
    return arrays if len(arrays) == len(values) and all(a.dtype.kind in "fiub" for a in arrays) else []


def with_constants(model, inputs):
    """Inputs but the first are initializers, as in models; only these can become attributes."""
    model, feeds = onnx.ModelProto.FromString(model.SerializeToString()), {}
    for k, (info, x) in enumerate(zip(list(model.graph.input), inputs)):
        if k == 0:
            feeds[info.name] = x
        else:
            model.graph.initializer.append(numpy_helper.from_array(x, info.name))
            model.graph.input.remove(info)
    model.ir_version = min(model.ir_version, 10)
    for o in model.opset_import:
        o.version = min(o.version, 26)  # which onnxruntime loads
    return model, feeds


def random_samples(model):
    rng = np.random.default_rng(1)
    shapes = {i.name: [d.dim_value or 1 for d in i.type.tensor_type.shape.dim] for i in data_inputs(model.graph)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


class Downgrade(OracleCase):
    def older(self, path, opset):
        out = self.scratch / "older.onnx"
        out.unlink(missing_ok=True)
        done = qxc(path, "-emit=onnx", f"-target-opset={opset}", "-no-sync", "-o", out, ok=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual(out.exists(), done.returncode == 0)
        return done, onnx.load(out) if out.exists() else None

    @for_each_model()
    def test_trained(self, name):
        path = model_path(name, "fp32")
        model, data = onnx.load(path), path.with_suffix(".test.npz")
        arrays = np.load(data) if data.exists() else random_samples(model)
        feeds = {i.name: arrays[i.name][:8] for i in data_inputs(model.graph)}
        want, come = run(model, feeds), model.opset_import[0].version
        for opset in (o for o in (16, 13, 12, 11, 10, 9) if o < come):
            with self.subTest(opset=opset):
                done, back = self.older(path, opset)
                if not back:
                    self.assertRegex(done.stderr, r"operator (LayerNormalization|Resize) cannot be converted from opset ")
                    continue
                onnx.checker.check_model(back, full_check=True)
                self.assertEqual(back.opset_import[0].version, opset)
                for x, y in zip(want, run(back, feeds)):
                    np.testing.assert_array_equal(x, y)

    @for_each("cnn", "relu6", "cancer")
    def test_quantized(self, name):
        """One scale for each tensor: a model stays where it is, and is raised no higher than its integers need."""
        path, data = model_path(name, "fp32"), model_path(name, "fp32").with_suffix(".calib.npz")
        feeds = {k: v[:8] for k, v in np.load(path.with_suffix(".test.npz")).items()
                 if k == data_inputs(onnx.load(path).graph)[0].name}
        for emit, opset in itertools.product(("qdq", "qop"), (10, 11, 12)):
            with self.subTest(emit=emit, opset=opset):
                _, older = self.older(path, opset)
                onnx.save(older, self.scratch / "float.onnx")
                found = []
                for asked in ([], ["-target-opset=13"]):
                    out = self.scratch / "quantized.onnx"
                    qxc(self.scratch / "float.onnx", f"-calib={data}", "-per-tensor", f"-emit={emit}", "-no-sync",
                        *asked, "-o", out)
                    model = onnx.load(out)
                    onnx.checker.check_model(model, full_check=True)
                    version = next(o.version for o in model.opset_import if not o.domain)
                    pools = any(n.op_type == "MaxPool" for n in model.graph.node)
                    least = max(opset, 12) if pools and emit == "qop" else opset
                    self.assertEqual(version, 13 if asked else least)
                    found.append(run(model, feeds))
                np.testing.assert_array_equal(*found)

    @for_each(*CHANGED)
    def test_node(self, op):
        """ONNX's own cases of operators whose form changed."""
        converted = 0
        for case in node_cases(op):
            for opset in CHANGED[op]:
                inputs = arrays_of(case.data_sets[0][0])
                if len(case.model.graph.node) > 1 or not inputs:
                    continue
                model, feeds = with_constants(case.model, inputs)
                want = run(model, feeds)
                if want is None:
                    continue
                path = self.scratch / "case.onnx"
                onnx.save(model, path)
                with self.subTest(case.name, opset=opset):
                    done, back = self.older(path, opset)
                    if not back:
                        self.assertRegex(done.stderr, "error: ")
                        continue
                    onnx.checker.check_model(back, full_check=True)
                    got = run(back, feeds)
                    if got is None:
                        continue  # a kernel that this onnxruntime has of newer opsets alone
                    converted += 1
                    for x, y in zip(want, got):
                        if op == "AveragePool":  # onnxruntime sums in another order from opset 19 on
                            np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6)
                        else:
                            np.testing.assert_array_equal(x, y)
        self.assertGreater(converted, 0)


if __name__ == "__main__":
    unittest.main()
