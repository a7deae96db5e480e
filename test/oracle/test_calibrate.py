"""Statistics against numpy on onnxruntime's values, and what `-input` refuses."""

import re

import numpy as np
import onnx
from onnx import TensorProto, helper

from common import OracleCase, QxcError, qxc, session, with_outputs, feed

COUNT = 12


def small_model():
    """Two convolution-free layers: fast, with a value of one sign and one of both."""
    rng = np.random.default_rng(5)
    weight = helper.make_tensor("w", TensorProto.FLOAT, [16, 8],
                                rng.standard_normal(128).astype(np.float32))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Relu", ["m"], ["r"]),
         helper.make_node("Softmax", ["r"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8])], [weight])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])


def statistics(text):
    """name -> {min, max, avg, std} of the `stat` lines."""
    number = r"[-+0-9.e]+"
    found = {}
    for name, body in re.findall(r"stat %(\S+) <([^>]*)>", text):
        found[name] = {k: float(v) for k, v in re.findall(rf"(\w+)=({number})", body)}
    return found


class Calibrate(OracleCase):
    def setUp(self):
        self.model = small_model()
        self.path = self.scratch / "small.onnx"
        onnx.save(self.model, self.path)
        rng = np.random.default_rng(6)
        self.data = (3 * rng.standard_normal((COUNT, 16))).astype(np.float32)
        self.file = self.scratch / "data.npz"
        np.savez(self.file, x=self.data)

    def stats(self, *options):
        done = qxc(self.path, *(options or [f"-calib={self.file}"]), "-emit=qir", "-form=float")
        return statistics(done.stdout)

    def values(self):
        runner = session(with_outputs(self.model, ["m", "r", "y"]))
        rows = [runner.run(None, feed(self.model, {"x": self.data}, k)) for k in range(COUNT)]
        result = {n: np.concatenate([r[i] for r in rows]) for i, n in enumerate("mry")}
        return result | {"x": self.data}

    def test_minmax(self):
        got = self.stats()
        for name, want in self.values().items():
            want = want.astype(np.float64)
            expected = {"min": want.min(), "max": want.max(), "avg": want.mean(), "std": want.std()}
            for key, number in expected.items():
                self.assertAlmostEqual(got[name][key], number, delta=2e-6 * abs(want).max(),
                                       msg=f"{name} {key}")
            self.assertEqual(got[name]["count"], COUNT)

    def test_percentile(self):
        got = self.stats(f"-calib={self.file}", "-calib-method=percentile=90")
        for name, want in self.values().items():
            width = abs(want).max() / 256
            low, high = np.percentile(want, [5, 95], method="inverted_cdf")
            self.assertAlmostEqual(got[name]["min"], low, delta=1.01 * width, msg=name)
            self.assertAlmostEqual(got[name]["max"], high, delta=1.01 * width, msg=name)

    def test_split_into_files(self):
        """A folder of shards gives what one file gives: nothing depends on order or size."""
        folder = self.scratch / "shards"
        folder.mkdir()
        np.savez(folder / "a.npz", x=self.data[7:])
        np.savez(folder / "b.npz", x=self.data[:7])
        np.save(folder / "c.npy", self.data[:0])
        for method in ("percentile=99", "mse", "entropy"):
            whole = self.stats(f"-calib={self.file}", f"-calib-method={method}")
            parts = self.stats(f"-calib={folder}", f"-calib-method={method}")
            for name, stat in whole.items():
                for key in ("min", "max", "count"):
                    self.assertEqual(parts[name][key], stat[key], (method, name, key))

    def test_nan_is_named(self):
        self.data[3, 2] = np.nan
        np.savez(self.file, x=self.data)
        done = qxc(self.path, f"-calib={self.file}", "-emit=qir", "-form=float")
        self.assertRegex(done.stderr, r"warning: .*value .?x.?: 1 NaN")
        self.assertTrue(np.isfinite(list(statistics(done.stdout)["x"].values())).all())

    def refuses(self, pattern, **arrays):
        np.savez(self.file, **arrays)
        with self.assertRaises(QxcError) as caught:
            qxc("run", self.path, f"-input={self.file}")
        self.assertRegex(str(caught.exception), pattern)

    def test_wrong_data(self):
        good = self.data
        self.refuses(r"no array for graph input x; it holds xx", xx=good)
        self.refuses(r"shape \[12,8\], expected \[samples,16\]", x=good[:, :8])
        self.refuses(r"shape \[16\]", x=good[0])
        self.refuses(r"16777217 is not exact as float", x=np.full((1, 16), 2**24 + 1))
        self.refuses(r"error", x=np.array([["a"] * 16]))

    def test_conversions(self):
        """float64 and exact integers become float."""
        for kind in (np.float64, np.int8, np.uint16, np.int64, np.float16):
            data = np.arange(32).reshape(2, 16)
            results = []
            for array in (data.astype(np.float32), data.astype(kind)):
                np.savez(self.file, x=array)
                qxc("run", self.path, f"-input={self.file}", "-no-sync", "-o",
                    self.scratch / "y.npz")
                with np.load(self.scratch / "y.npz") as loaded:
                    results.append(loaded["y"])
            np.testing.assert_array_equal(*results)

    def test_compare(self):
        """Against itself: equal. Against other weights: the numbers numpy gives."""
        self.assertIn("equal", qxc("compare", self.path, self.path, f"-input={self.file}").stdout)
        other = onnx.ModelProto()
        other.CopyFrom(self.model)
        weight = onnx.numpy_helper.to_array(self.model.graph.initializer[0]) * np.float32(1.01)
        other.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weight, "w"))
        onnx.save(other, self.scratch / "other.onnx")
        text = qxc("compare", self.path, self.scratch / "other.onnx", f"-input={self.file}").stdout
        runner = session(other)
        got = np.concatenate([runner.run(None, feed(other, {"x": self.data}, k))[0]
                              for k in range(COUNT)]).astype(np.float64)
        want = self.values()["y"].astype(np.float64)
        noise = np.sqrt(np.sum((got - want) ** 2))
        row = next(line for line in text.splitlines() if line.split()[-1:] == ["y"])
        sqnr, worst, cosine = (float(v) for v in row.split()[:3])
        self.assertAlmostEqual(sqnr, 20 * np.log10(np.linalg.norm(want) / noise), delta=0.02)
        self.assertAlmostEqual(worst, np.abs(got - want).max(), delta=1e-6)
        self.assertAlmostEqual(
            cosine, np.sum(got * want) / np.linalg.norm(got) / np.linalg.norm(want), delta=1e-6)
