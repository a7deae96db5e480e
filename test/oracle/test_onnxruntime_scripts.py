"""Scripts as people write them for onnxruntime's quantizer run with one name changed, onnxruntime.quantization to qxc.onnxruntime:
command lines with its enums, readers that rewind, configurations, preprocessing, and the search for what was lost."""

import json
import os
import subprocess
import sys
import unittest

import numpy as np
import onnx
import onnxruntime as ort

from common import DIGITS, QXC, ROOT, OracleCase, qxc

MODEL = DIGITS / "digits.onnx"
THEIRS, OURS = "onnxruntime.quantization", "qxc.onnxruntime"
READER = """
import pathlib, numpy, onnxruntime
from PACKAGE import CalibrationDataReader

class FolderReader(CalibrationDataReader):
    def __init__(self, folder, model):
        self.feeds = None
        session = onnxruntime.InferenceSession(model, None)
        first = session.get_inputs()[0]
        (_, _, height, width) = first.shape
        files = sorted(pathlib.Path(folder).iterdir())
        self.samples = [{first.name: numpy.load(f).reshape(1, 1, height, width)} for f in files]
        self.datasize = len(self.samples)

    def get_next(self):
        if self.feeds is None:
            self.feeds = iter(self.samples)
        return next(self.feeds, None)

    def rewind(self):
        self.feeds = None
"""
QUANTIZE = """
import argparse
import numpy as np
import onnxruntime
from PACKAGE import QuantFormat, QuantType, quantize_static
import reader

def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--model", required=True)
    p.add_argument("--result", required=True)
    p.add_argument("--data", default="data")
    p.add_argument("--form", default=QuantFormat.QDQ, type=QuantFormat.from_string, choices=list(QuantFormat))
    p.add_argument("--per_channel", default=False, type=bool)
    return p.parse_args()

a = arguments()
quantize_static(a.model, a.result, reader.FolderReader(a.data, a.model), quant_format=a.form, per_channel=a.per_channel,
                weight_type=QuantType.QInt8)
for path in a.model, a.result:
    session = onnxruntime.InferenceSession(path)
    session.run([], {session.get_inputs()[0].name: np.zeros((1, 1, 8, 8), np.float32)})
print(f"{a.form} done, weights {QuantType.QInt8}")
"""
DEBUG = """
import json, sys
from PACKAGE.qdq_loss_debug import (collect_activations, compute_activation_error, compute_weight_error, create_activation_matching,
                                    create_weight_matching, modify_model_output_intermediate_tensors)
import reader

plain, qdq, folder = sys.argv[1:]
weights = compute_weight_error(create_weight_matching(plain, qdq))
data, seen = reader.FolderReader(folder, plain), []
for path in plain, qdq:
    modify_model_output_intermediate_tensors(path, path + ".more.onnx")
    seen.append(collect_activations(path + ".more.onnx", data))
    data.rewind()
print(json.dumps([weights, compute_activation_error(create_activation_matching(seen[1], seen[0]))], default=float))
"""
BATCHES = """
import sys, numpy
from pathlib import Path
from PACKAGE import QuantFormat, QuantType, quantize_static
from PACKAGE.calibrate import CalibrationDataReader

class BatchReader(CalibrationDataReader):
    def __init__(self, folder):
        self.n, self.folder = 0, Path(folder)

    def get_next(self):
        path = self.folder / f"batch_{self.n}.npz"
        if not path.exists():
            return None
        self.n += 1
        held = numpy.load(path)
        return {name: held[name] for name in held.files}

quantize_static(sys.argv[1], sys.argv[2], BatchReader(sys.argv[3]), quant_format=QuantFormat.QDQ, per_channel=False,
                weight_type=QuantType.QInt8)
"""
CONFIGS = """
import sys, numpy
from pathlib import Path
from PACKAGE import (CalibrationMethod, DynamicQuantConfig, QuantType, StaticQuantConfig, get_qdq_config, quant_pre_process, quantize,
                     quantize_dynamic, quantize_static)
from PACKAGE.execution_providers.qnn import get_qnn_qdq_config
import reader

model, folder, to = sys.argv[1], sys.argv[2], Path(sys.argv[3])
quant_pre_process(model, to / "pre.onnx", skip_symbolic_shape=True)
pre = str(to / "pre.onnx")
def data():
    return reader.FolderReader(folder, pre)
quantize(pre, to / "config.onnx", StaticQuantConfig(data(), calibrate_method=CalibrationMethod.Percentile, per_channel=True,
                                                    extra_options={"CalibPercentile": 99.9}))
quantize(pre, to / "qdq.onnx", get_qdq_config(pre, data(), calibrate_args={"moving_average": True}, nodes_to_exclude=lambda m, n: n.op_type == "Gemm"))
quantize(pre, to / "qnn.onnx", get_qnn_qdq_config(pre, data(), activation_type=QuantType.QUInt8, weight_type=QuantType.QUInt8))
quantize(pre, to / "dynamic.onnx", DynamicQuantConfig(weight_type=QuantType.QUInt8))
quantize_dynamic(Path(pre), (to / "pre").with_name("pre_quant").with_suffix(".onnx"), weight_type=QuantType.QInt8)
quantize_static(pre, to / "smooth.onnx", calibration_data_reader=data(), quant_format="QOperator", activation_type=QuantType.QUInt8,
                weight_type=QuantType.QInt8, op_types_to_quantize=["Gemm"], use_external_data_format=False,
                extra_options={"OpTypesToExcludeOutputQuantization": ["Gemm"]})
"""
TABLE = """
import os, sys
from PACKAGE import CalibrationMethod, create_calibrator, write_calibration_table
import reader

model, folder, to = sys.argv[1:]
calibrator = create_calibrator(model, [], augmented_model_path=os.path.join(to, "augmented.onnx"), calibrate_method=CalibrationMethod.MinMax)
calibrator.set_execution_providers(["CPUExecutionProvider"])
for part in "ab":
    calibrator.collect_data(reader.FolderReader(os.path.join(folder, part), model))
write_calibration_table(calibrator.compute_data(), to)
"""


class Scripts(OracleCase):
    def setUp(self):
        super().setUp()
        self.calib, self.test = (np.load(DIGITS / f"{n}.npz")["image"] for n in ("calib", "test"))
        self.data = self.scratch / "data"
        self.data.mkdir(exist_ok=True)
        for i in range(60):
            np.save(self.data / f"{i:03}.npy", self.calib[i])

    def run_script(self, package, text, *args, ok=True):
        """As a file of its own, with its reader beside it."""
        folder = self.scratch / package
        folder.mkdir(exist_ok=True)
        (folder / "reader.py").write_text(READER.replace("PACKAGE", package))
        (folder / "script.py").write_text(text.replace("PACKAGE", package))
        done = subprocess.run([sys.executable, "script.py", *map(str, args)], cwd=folder, capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "python/src"), "QXC_PROGRAM": QXC})
        if ok:
            self.assertEqual(0, done.returncode, done.stderr[-3000:])
        return done

    def made_by(self, package, text, name, *args):
        out = self.scratch / f"{package}.{name}"
        self.run_script(package, text, *[out if a is None else a for a in args])
        return out

    def agreement(self, path):
        """With the float model, on the test images."""
        first, got = (ort.InferenceSession(p, providers=["CPUExecutionProvider"]).run(None, {"image": self.test})[0].argmax(1)
                      for p in (MODEL, path))
        return float(np.mean(first == got))

    def ops(self, path):
        return {n.op_type for n in onnx.load(path).graph.node}

    def test_a_command_line_with_their_enums(self):
        for package in THEIRS, OURS:
            for form, op in (("QDQ", "QuantizeLinear"), ("QOperator", "QLinearConv")):
                with self.subTest(package=package, form=form):
                    out = self.made_by(package, QUANTIZE, f"{form}.onnx", "--model", MODEL, "--result", None, "--data", self.data, "--form", form)
                    self.assertIn(op, self.ops(out))
                    self.assertGreater(self.agreement(out), 0.97)
            done = self.run_script(package, QUANTIZE, "--model", MODEL, "--result", "x", "--form", "QD", ok=False)
            self.assertIn("argument --form", done.stderr)
            self.assertEqual(2, done.returncode)
        done = self.run_script(OURS, QUANTIZE, "--model", MODEL, "--result", "x.onnx", "--data", self.data, "--per_channel", "yes")
        self.assertEqual("QDQ done, weights QInt8\n", done.stdout)

    def test_batches_of_files(self):
        folder = self.scratch / "batches"
        folder.mkdir()
        for i in range(5):
            np.savez(folder / f"batch_{i}.npz", image=self.calib[40 * i:40 * i + 40])
        for package in THEIRS, OURS:
            out = self.made_by(package, BATCHES, "batches.onnx", MODEL, None, folder)
            self.assertGreater(self.agreement(out), 0.97)

    def test_what_was_lost(self):
        """Of every weight what `qxc compare` says, of activations what onnxruntime measures."""
        pre, qdq = self.scratch / "float.onnx", self.scratch / "lossy.onnx"
        self.run_script(OURS, "from PACKAGE import quant_pre_process as p; import sys; p(*sys.argv[1:])", MODEL, pre)
        self.run_script(OURS, QUANTIZE, "--model", pre, "--result", qdq, "--data", self.data, "--per_channel", 1)
        weights, activations = json.loads(self.run_script(OURS, DEBUG, pre, qdq, self.data).stdout)
        compared = json.loads(qxc("compare", pre, qdq, "-json", f"-input={DIGITS / 'calib.npz'}").stdout)
        want = {w["name"]: w["sqnr_db"] for w in compared["weights"]}
        self.assertEqual(set(want), set(weights))
        self.assertGreater(len(want), 9)
        for name, loss in want.items():
            self.assertAlmostEqual(loss, weights[name], 3)
        self.assertGreater(len(activations), 5)
        self.assertTrue(all(20 < e["qdq_err"] and 20 < e["xmodel_err"] for e in activations.values()), activations)

    def test_configurations(self):
        for package in THEIRS, OURS:
            to = self.scratch / f"{package}.configs"
            to.mkdir()
            # Scripts give the form as text, too, which onnxruntime no longer takes.
            text = CONFIGS if package == OURS else CONFIGS.replace('quant_format="QOperator", ', "")
            self.run_script(package, text, MODEL, self.data, to)
            for name in "config", "qdq", "qnn", "dynamic", "pre_quant", "smooth":
                with self.subTest(package=package, name=name):
                    self.assertGreater(self.agreement(to / f"{name}.onnx"), 0.95)
            self.assertNotIn("BatchNormalization", self.ops(to / "pre.onnx"))
            self.assertIn("ConvInteger", self.ops(to / "dynamic.onnx"))
        types = {i.data_type for i in onnx.load(to / "qnn.onnx").graph.initializer if i.name.endswith("zero_point")}
        self.assertEqual({onnx.TensorProto.UINT8, onnx.TensorProto.INT32}, types)
        products = {n: json.loads(qxc("info", "-json", to / f"{n}.onnx").stdout)["products_quantized"] for n in ("config", "qdq", "smooth")}
        self.assertEqual({"config": 5, "qdq": 4, "smooth": 1}, products)
        gemm = next(n for n in onnx.load(to / "smooth.onnx").graph.node if "Gemm" in n.op_type)
        self.assertEqual("logits", gemm.output[0])  # in float

    def test_a_calibration_table(self):
        """For onnxruntime's TensorRT provider: its reader finds the ranges that its calibrator finds."""
        from onnxruntime.quantization.CalTableFlatBuffers.TrtTable import TrtTable

        for i, x in enumerate(self.calib[:50]):
            (self.scratch / "parts" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
            np.save(self.scratch / "parts" / "ab"[i % 2] / f"{i:03}.npy", x)
        found = {}
        for package in THEIRS, OURS:
            to = self.scratch / f"{package}.table"
            to.mkdir()
            self.run_script(package, TABLE, MODEL, self.scratch / "parts", to)
            table = TrtTable.GetRootAs((to / "calibration.flatbuffers").read_bytes(), 0)
            found[package] = {table.Dict(i).Key().decode(): float(table.Dict(i).Value()) for i in range(table.DictLength())}
            lines = [line.rsplit(" ", 1) for line in (to / "calibration.cache").read_text().splitlines()]
            self.assertEqual(found[package], {name: float(value) for name, value in lines})
            self.assertEqual(set(found[package]), set(json.loads((to / "calibration.json").read_text()).get("data", found[package])))
        self.assertEqual({"stem.conv", "widen.conv", "block.depthwise", "block.pointwise"},
                         set(found[THEIRS]) - set(found[OURS]))  # BatchNormalization is folded into them
        self.assertGreater(len(found[OURS]), 12)
        for name, value in found[OURS].items():
            np.testing.assert_allclose(value, found[THEIRS][name], rtol=1e-5)

    def test_preprocessing_from_the_shell(self):
        env = {**os.environ, "PYTHONPATH": str(ROOT / "python/src"), "QXC_PROGRAM": QXC}
        for extra, op in (([], False), (["--skip_optimization", "True"], True)):
            out = self.scratch / "shell.onnx"
            subprocess.run([sys.executable, "-m", "qxc.onnxruntime.preprocess", "--input", MODEL, "--output", out, *extra], check=True, env=env)
            self.assertEqual(op, "BatchNormalization" in self.ops(out))
        done = subprocess.run([sys.executable, "-m", "qxc.onnxruntime.preprocess", "--input", "none.onnx", "--output", self.scratch / "no.onnx"],
                              check=False, env=env, capture_output=True, text=True)
        self.assertEqual((1, "qxc: error: there is no model none.onnx\n", False), (done.returncode, done.stderr, (self.scratch / "no.onnx").exists()))


if __name__ == "__main__":
    unittest.main()
