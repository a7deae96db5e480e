"""Weights beside an ONNX model (-external-data): onnx and onnxruntime find them, and compute the same."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import OracleCase, for_each, model_path, qxc, run_samples, session

FORMS = {"float": ("onnx", ()), "qdq": ("qdq", ("-calib",)), "qop": ("qop", ("-calib",)),
         "weights of 4 bits": ("qdq", ("-weight-only", "-weights=uint4 asym block(32)", "-target-opset=21")),
         "MatMulNBits": ("qop", ("-weight-only", "-weights=int4 sym block(32)")),
         "dynamic": ("qop", ("-dynamic",))}


def nested(path):
    """A model whose weights stand in both branches of an If."""
    def branch(name, seed):
        w = np.random.default_rng(seed).standard_normal((32, 32)).astype(np.float32)
        node = helper.make_node("MatMul", ["x", f"w_{name}"], [f"y_{name}"])
        out = helper.make_tensor_value_info(f"y_{name}", TensorProto.FLOAT, [1, 32])
        return helper.make_graph([node], name, [], [out], [numpy_helper.from_array(w, f"w_{name}")])
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("then", 1), else_branch=branch("else", 2))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 32]) for name in "xy"]
    ends.insert(0, helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    graph = helper.make_graph([node], "nested", ends[:2], ends[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


class ExternalData(OracleCase):
    expected_seconds = 5

    def pair(self, model, *options):
        """The model with its weights inside, and beside it."""
        inside, folder = self.scratch / "inside.onnx", self.scratch / "beside"
        folder.mkdir(exist_ok=True)
        qxc(model, *options, "-quiet", "-o", inside)
        qxc(model, *options, "-quiet", "-external-data", "-force", "-o", folder / "m.onnx")
        return inside, folder / "m.onnx"

    def check(self, inside, beside, arrays):
        onnx.checker.check_model(beside)
        data = beside.with_name("m.onnx.data").stat().st_size
        self.assertLess(beside.stat().st_size, inside.stat().st_size)
        tensors = []
        for t in onnx.external_data_helper._get_all_tensors(onnx.load(beside, load_external_data=False)):
            if t.data_location == TensorProto.EXTERNAL:
                entry = {e.key: e.value for e in t.external_data}
                tensors.append((int(entry["offset"]), int(entry["length"])))
                self.assertEqual("m.onnx.data", entry["location"])
        self.assertTrue(tensors)
        end = 0
        for offset, length in tensors:
            self.assertEqual(-(-end // 4096) * 4096, offset)
            self.assertGreaterEqual(length, 1024)
            end = offset + length
        self.assertEqual(end, data)
        one, other = onnx.load(inside), onnx.load(beside)
        for x, y in zip(onnx.external_data_helper._get_all_tensors(one),
                        onnx.external_data_helper._get_all_tensors(other), strict=True):
            self.assertEqual((x.name, x.data_type, x.dims, x.raw_data), (y.name, y.data_type, y.dims, y.raw_data))
        for optimize in (False, True):
            results = [run_samples(session(path, optimize=optimize), one, arrays) for path in (inside, beside)]
            for name in results[0]:
                np.testing.assert_array_equal(results[0][name], results[1][name])
        again = self.scratch / "again.onnx"
        qxc(beside, "-emit=onnx", "-quiet", "-o", again)
        self.assertEqual(inside.read_bytes(), again.read_bytes())

    @for_each(*FORMS)
    def test_form(self, form):
        kind, options = FORMS[form]
        model = model_path("cnn" if "-calib" in options else "vit", "fp32")
        calib = model.with_name(f"{model.stem}.calib.npz")
        options = [f"-calib={calib}" if o == "-calib" else o for o in options]
        arrays = {k: v[:4] for k, v in np.load(model.with_name(f"{model.stem}.test.npz")).items()}
        self.check(*self.pair(model, f"-emit={kind}", *options), arrays)

    def test_nested_graphs(self):
        rng = np.random.default_rng(0)
        arrays = {"c": np.array([True, False]), "x": rng.standard_normal((2, 1, 32)).astype(np.float32)}
        self.check(*self.pair(nested(self.scratch / "nested.onnx"), "-emit=onnx"), arrays)
