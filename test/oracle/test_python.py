"""The Python package over the program: the same results as on the command line from whatever Python has as a model and as
data, errors with places, and nothing left behind where a loader raises halfway."""

import json
import logging
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

from common import DIGITS, QXC, ROOT, OracleCase, for_each, qxc

sys.path.insert(0, str(ROOT / "python/src"))
os.environ["QXC_PROGRAM"] = QXC

import qxc as package
from qxc import onnxruntime as dropin

MODEL = DIGITS / "digits.onnx"
CALIB = np.load(DIGITS / "calib.npz")["image"]
TEST = np.load(DIGITS / "test.npz")["image"]


def batches(n=32):
    return (CALIB[i:i + n] for i in range(0, len(CALIB), n))


class Reader(dropin.CalibrationDataReader):
    """One image at a time, as people write readers for onnxruntime."""

    def __init__(self):
        self.feeds = iter([{"image": x[None]} for x in CALIB])

    def get_next(self):
        return next(self.feeds, None)


def rows_of(table):
    """Whether pandas is there or not."""
    return table if isinstance(table, list) else table.to_dict("records")


def refilled():
    """A loader that fills one array again and again."""
    buffer = np.empty((20, *CALIB.shape[1:]), CALIB.dtype)
    for i in range(0, len(CALIB), len(buffer)):
        buffer[:] = CALIB[i:i + len(buffer)]
        yield buffer


class Tensor:
    """What a torch tensor is to the package."""

    def __init__(self, x):
        self.x = x

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self.x


class ArrayLike:
    """What says its numbers when asked, and nothing else."""

    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.x, dtype)


def two_inputs(path):
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", 4]) for n in "xy")
    z = helper.make_tensor_value_info("z", TensorProto.FLOAT, ["N", 4])
    graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"])], "g", [x, y], [z])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def mixes_steps(path):
    """Attention over the first dimension, which counts no samples then."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["T", 4]) for n in "xy")
    nodes = [helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("MatMul", ["x", "t"], ["s"]),
             helper.make_node("Softmax", ["s"], ["p"]), helper.make_node("MatMul", ["p", "x"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


class Python(OracleCase):
    def setUp(self):
        super().setUp()
        own = tempfile.TemporaryDirectory()
        self.addCleanup(own.cleanup)
        self.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
        tempfile.tempdir = own.name

    def left_behind(self):
        return set(os.listdir(tempfile.tempdir))

    def test_ten_lines(self):
        model = package.quantize(MODEL, DIGITS / "calib.npz")
        self.assertIn("calibrated on 200 samples", model.summary)
        rows = rows_of(model.compare(data=TEST))
        self.assertEqual({"output", "value", "weight"}, {r["kind"] for r in rows})
        self.assertGreater(min(r["sqnr_db"] for r in rows if r["kind"] == "output"), 25)
        command = qxc(MODEL, f"-calib={DIGITS / 'calib.npz'}", f"-o={self.scratch / 'c.qir'}", "-quiet")
        self.assertEqual(0, command.returncode)
        direct = qxc(self.scratch / "c.qir", "-emit=qdq", f"-o={self.scratch / 'c.onnx'}", "-quiet")
        self.assertEqual(0, direct.returncode)
        self.assertEqual((self.scratch / "c.onnx").read_bytes(), model.to_onnx("qdq"))
        self.assertEqual({"model.c", "model.h"}, set(model.to_c()))
        self.assertEqual({"net.c", "net.h", "net.weights.bin"}, set(model.to_c(name="net", weights_file=True)))
        del model, rows
        self.assertEqual(set(), self.left_behind())

    def test_data_of_each_kind_decide_alike(self):
        want = package.quantize(MODEL, DIGITS / "calib.npz").text
        kinds = {"array": CALIB, "dict": {"image": CALIB}, "path": [DIGITS / "calib.npz"], "generator": batches(),
                 "with labels": [(x, np.zeros(len(x))) for x in batches()], "tensors": [Tensor(x) for x in batches()],
                 "what becomes an array": ArrayLike(CALIB), "lists of such": [[ArrayLike(x)] for x in batches()],
                 "dicts": [{"image": x} for x in batches(7)], "reader": Reader(), "one by one": (x for x in CALIB),
                 "one array refilled": refilled(), "nested lists": [x.tolist() for x in batches(50)],
                 "types that change": (x.astype(t) for x, t in zip(batches(100), (np.float32, np.float64)))}
        for kind, data in kinds.items():
            with self.subTest(kind):
                self.assertEqual(want, package.quantize(MODEL, data).text)

    def test_names_and_types_of_arrays(self):
        path = self.scratch / "file.onnx"
        two_inputs(path)
        model = onnx.load(path)
        model.graph.input[0].name = model.graph.node[0].input[0] = "file"
        x = np.ones((3, 4), np.float32)
        for kind in x, x.astype(ml_dtypes.bfloat16):
            np.testing.assert_array_equal(x + x, package.load(model).run({"file": kind, "y": x})["z"])

    def test_a_metric_is_a_function(self):
        """It is called with what the command line's CMD gets, decides, and what it raises comes back."""
        seen = []

        def worst(arrays):
            seen.append(sorted(arrays))
            return -float(np.abs(arrays["logits"] - arrays["float:logits"]).max())

        found = package.quantize(MODEL, CALIB, search="4-tries", metric=worst)
        self.assertEqual(seen, [["float:logits", "logits", "qxc:samples"]] * 4)
        self.assertIn("search: 4 tries, judged on 66 samples held back by -metric", found.summary)
        with self.assertRaises(ZeroDivisionError):
            package.quantize(MODEL, CALIB, max_drop=1, metric=lambda arrays: 1 / 0)
        with self.assertRaises(package.Error) as caught:
            package.quantize(MODEL, CALIB, max_drop=1, metric=lambda arrays: float("nan"))
        self.assertIn("wanted is a finite number", str(caught.exception))
        with self.assertRaises(package.AccuracyMissed):
            package.quantize(MODEL, CALIB, min_sqnr=200, metric=lambda arrays: 1)

    def test_warnings_are_told(self):
        with self.assertLogs("qxc", logging.WARNING) as told:
            package.quantize(MODEL, CALIB * 1000)
        self.assertIn("warning", "\n".join(told.output))

    def test_models_of_each_kind(self):
        want = package.quantize(MODEL, CALIB).to_onnx()
        text = package.load(MODEL).text
        for kind, model in {"bytes": MODEL.read_bytes(), "proto": onnx.load(MODEL), "text": text, "str": str(MODEL),
                            "model": package.load(MODEL)}.items():
            with self.subTest(kind):
                self.assertEqual(want, package.quantize(model, CALIB).to_onnx())

    def test_a_name_that_looks_like_an_option(self):
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.scratch)
        shutil.copy(MODEL, "-calib m.onnx")
        self.assertEqual("float", package.load("-calib m.onnx").info["came"])

    def test_run_is_the_model(self):
        session = ort.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
        want = session.run(None, {"image": TEST})[0]
        got = package.load(MODEL).run(TEST)["logits"]
        self.assertEqual(want.shape, got.shape)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
        one = package.load(MODEL).run({"image": TEST[:1]})["logits"]
        self.assertEqual((1, 10), one.shape)

    def test_what_counts_no_samples_is_not_joined(self):
        path = self.scratch / "steps.onnx"
        mixes_steps(path)
        rng = np.random.default_rng(1)
        feeds = [rng.normal(size=(3, 4)).astype(np.float32) for _ in range(5)]
        session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        seen = np.concatenate([session.run(None, {"x": f})[0] for f in feeds])
        model = package.quantize(path, iter(feeds))
        y = next(r for r in rows_of(model.values) if r["value"] == "y")
        np.testing.assert_allclose([y["min"], y["max"]], [seen.min(), seen.max()], rtol=1e-5)

    def test_several_inputs(self):
        path = self.scratch / "two.onnx"
        two_inputs(path)
        x, y = np.ones((6, 4), np.float32), np.arange(24, dtype=np.float32).reshape(6, 4)
        model = package.load(path)
        np.testing.assert_array_equal(x + y, model.run({"x": x, "y": y})["z"])
        np.testing.assert_array_equal(x + y, model.run([(x[:2], y[:2]), (x[2:], y[2:])])["z"])
        for wrong, what in ((x, "2 inputs"), ([(x,)], "holds 1 arrays"), ([x], "2 inputs"), ([], "no batch")):
            with self.assertRaisesRegex(ValueError, what):
                model.run(wrong)
        with self.assertRaisesRegex(package.Error, "y"):
            model.run({"x": x})
        np.testing.assert_array_equal(x + y[:1], model.run({"x": x, "y": y[:1]})["z"])
        for uneven in {"x": x, "y": y[:5]}, [{"x": x, "y": y[:5]}, {"x": x[:5], "y": y}], [(x, y[:5])]:
            with self.assertRaisesRegex(ValueError, "differ in their samples: x has 6, y has 5"):
                model.run(uneven)

    def test_a_loader_that_raises(self):
        def loader():
            yield CALIB[:8]
            raise RuntimeError("the disk is gone")

        with self.assertRaisesRegex(RuntimeError, "the disk is gone"):
            package.quantize(MODEL, loader())
        self.assertEqual(set(), self.left_behind())

    def test_wrong_data(self):
        for data in (np.array(["a"]), [{"image": [object()]}], 7):
            with self.subTest(str(data)), self.assertRaises(TypeError):
                package.quantize(MODEL, data)
        with self.assertRaisesRegex(package.Error, "no array 'image'|image.*is missing|imaeg"):
            package.quantize(MODEL, {"imaeg": CALIB})
        with self.assertRaises(package.Error):
            package.quantize(MODEL, CALIB[:, :, :4])
        with self.assertRaises(FileNotFoundError):
            package.quantize("nowhere.onnx", CALIB)
        self.assertEqual(set(), self.left_behind())

    def test_errors_have_places(self):
        text = package.quantize(MODEL, CALIB).text
        broken = text.replace("= Gemm(", "= Gem(", 1)
        with self.assertRaises(package.Error) as caught:
            package.load(broken).to_onnx()
        first = caught.exception.errors[0]
        self.assertEqual("error", first.severity)
        self.assertIn("= Gem(", first.source)
        self.assertEqual("Gem", first.source[first.column - 1:first.end_column - 1])
        self.assertIn("^~~", str(caught.exception))
        with self.assertRaisesRegex(package.Error, "did you mean 'calib-method'"):
            package.quantize(MODEL, CALIB, calib_metod="mse")
        with self.assertRaises(package.AccuracyMissed):
            package.quantize(MODEL, CALIB, min_sqnr=300)

    def test_schemes_and_options(self):
        self.assertEqual(0, package.quantize(MODEL, CALIB, scheme="keep float").info["products_quantized"])
        for scheme in ("keep float\nop Gemm quantize", "scheme {\n  keep float\n  op Gemm quantize\n}\n"):
            model = package.quantize(MODEL, CALIB, scheme=scheme)
            self.assertEqual(1, model.info["products_quantized"])
        model = package.quantize(MODEL, CALIB, keep=["Gemm"], weights="int4", per_tensor=True, adaround=None)
        self.assertEqual(4, model.info["products_quantized"])
        self.assertIn("int4q<", model.text)

    def test_without_data(self):
        for model in MODEL, package.load(MODEL).text:
            with self.assertRaisesRegex(package.Error, "nothing can be quantized: give data"):
                package.quantize(model)
        for keywords in {"dynamic": True}, {"weight_only": True}, {"calib_random": 4}:
            self.assertNotEqual("float", package.quantize(MODEL, **keywords).info["came"])
        decided = package.quantize(MODEL, CALIB)
        self.assertEqual(rows_of(decided.values), rows_of(package.quantize(decided).values))
        self.assertEqual("float", package.quantize(MODEL, form="float").info["came"])

    def test_what_is_no_file(self):
        for scheme in "nofile.scheme", "rules/none":
            with self.assertRaisesRegex(FileNotFoundError, "there is no scheme"):
                package.quantize(MODEL, CALIB, scheme=scheme)
        package.quantize(MODEL, CALIB, scheme="scheme{}")
        with self.assertRaisesRegex(IsADirectoryError, "is a folder, not a model"):
            package.quantize(self.scratch, CALIB)
        with self.assertRaisesRegex(TypeError, "o= has no use"):
            package.quantize(MODEL, CALIB, o="q.qir")

    def test_reports_in_files(self):
        model = package.quantize(MODEL, CALIB)
        page = model.report(self.scratch / "r.html")
        self.assertEqual(page.html, (self.scratch / "r.html").read_text())
        model.report(self.scratch / "r.json", data=TEST)
        said = json.loads((self.scratch / "r.json").read_text())
        self.assertEqual((1, len(TEST)), (said["schema_version"], said["samples"]))
        with self.assertRaisesRegex(ValueError, "ends in .html, .htm or .json, not r.txt"):
            model.report("r.txt")

    def test_without_its_program(self):
        code = "import qxc\ntry: qxc.version()\nexcept qxc.Error as e: print(e)"
        env = {"PYTHONPATH": os.pathsep.join([str(ROOT / "python/src"), *sys.path]), "PATH": "/nowhere"}
        for name, said in (("", "is not in this installation"), ("/nowhere/qxc", "cannot run /nowhere/qxc")):
            out = subprocess.run([sys.executable, "-c", code], env={**env, "QXC_PROGRAM": name}, check=True,
                                 capture_output=True, text=True)
            self.assertIn(said, out.stdout)

    def test_calibration_in_shards(self):
        shards = [CALIB[i:i + 50] for i in range(0, 200, 50)]
        whole = package.calibrate(MODEL, [CALIB])
        alone = package.calibrate(MODEL, shards)
        self.assertEqual(whole.text, alone.text)
        for pool in ThreadPoolExecutor(2), multiprocessing.get_context("fork").Pool(2):
            with pool:
                self.assertEqual(alone.text, package.calibrate(MODEL, shards, pool).text)
        self.assertEqual(alone.text, package.calibrate(MODEL, shards[::-1]).text)
        self.assertGreater(len(rows_of(package.quantize(alone).values)), 10)

    @for_each("moving-average", "percentile=99.9", "entropy", "mse")
    def test_methods_in_shards(self, method):
        shards = [CALIB[150:], CALIB[:1], CALIB[1:150]]
        self.assertEqual(package.calibrate(MODEL, [CALIB], calib_method=method).text,
                         package.calibrate(MODEL, shards, calib_method=method).text)

    def test_an_average_that_depends_on_the_order(self):
        method = "moving-average=0.01"
        package.calibrate(MODEL, [CALIB], calib_method=method)
        with self.assertRaisesRegex(ValueError, "moving-average=0.01 depends on the order of samples"):
            package.calibrate(MODEL, [CALIB[:50], CALIB[50:]], calib_method=method)

    def test_shards_without_statistics(self):
        shards = [CALIB[:50], CALIB[:9] * np.float32("nan"), CALIB[50:]]
        with self.assertLogs("qxc", logging.WARNING) as told:
            seen = package.calibrate(MODEL, shards)
        self.assertIn("shards[1]: there are no statistics", told.output[-1])
        self.assertEqual(package.calibrate(MODEL, [CALIB]).text, seen.text)
        for n in 1, 2:
            with self.assertRaisesRegex(ValueError, "no shard gives statistics"):
                package.calibrate(MODEL, shards[1:2] * n)
        self.assertIn("biases are not corrected", package.quantize(seen).summary)

    def test_a_shard_that_is_wrong(self):
        for wrong, kind in ((CALIB[:, :, :4], package.Error), ([], ValueError), (7, TypeError)):
            with self.assertRaisesRegex(kind, r"^shards\[1\]: "), ThreadPoolExecutor(2) as pool:
                package.calibrate(MODEL, [CALIB, wrong], pool)

    def test_shards_of_a_model_in_several_files(self):
        path = self.scratch / "apart.onnx"
        onnx.save(onnx.load(MODEL), path, save_as_external_data=True, location="apart.data", size_threshold=0)
        self.assertEqual(rows_of(package.quantize(package.calibrate(MODEL, [CALIB])).values),
                         rows_of(package.quantize(package.calibrate(path, [CALIB])).values))
        with self.assertRaisesRegex(ValueError, "no shard"):
            package.calibrate(MODEL, [])


class Page(OracleCase):
    def test_its_examples_run(self):
        blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/python.md").read_text(), re.M | re.S)
        self.assertGreater(len(blocks), 4)
        for name in ("digits.onnx", "calib.npz", "test.npz"):
            os.symlink(DIGITS / name, self.scratch / name)
        done = subprocess.run([sys.executable, "-c", "\n".join(blocks)], cwd=self.scratch, capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "python/src")})
        self.assertEqual("", done.stderr)
        self.assertIn("calibrated on 200 samples", done.stdout)
        self.assertIn("ONNX has no operator Gem", done.stdout)
        self.assertLessEqual({"digits.int8.onnx", "digits.c", "digits.h", "digits.qir", "q.onnx"},
                             {p.name for p in self.scratch.iterdir()})


if __name__ == "__main__":
    unittest.main()
