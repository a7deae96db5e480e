"""Targets' pages against their runtimes: what a page allows its runtime loads, and computes as onnxruntime does without
optimizations. OpenVINO and tract are from PyPI, in an environment of their own; skipped by name where they cannot be installed."""

import re
import subprocess
import unittest

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, quantize
from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config

import saturation
from common import MODELS, OracleCase, for_each, python_with, qxc, run_samples, session, sqnr

PACKAGES = ["openvino==2026.4.1", "tract==0.23.9", "numpy"]
SEVEN = ("cancer", "charlm", "cnn", "lstm", "relu6", "unet", "vit")
COUNT = 32
# OpenVINO saturates, too, where onnxruntime does, unless the weights leave room.
EXACT = ("-reduce-range",) if saturation.saturates() else ()
FORMS = {"qdq": ("-emit=qdq",), "qop": ("-emit=qop",), "dynamic": ("-dynamic", "-emit=qop"),
         "weight_only": ("-weight-only", "-emit=qdq")}
PRODUCTS = ("Convolution", "FullyConnected", "MatMul", "Subgraph", "ScaledDotProductAttention")
RUN = {
    "openvino": '''
import json, sys, numpy as np, openvino as ov
x = np.load(sys.argv[2])
options = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
compiled = ov.Core().compile_model(ov.Core().read_model(sys.argv[1]), "CPU", options)
infos = [op.get_rt_info() for op in compiled.get_runtime_model().get_ops()]
print(json.dumps([[i["layerType"].astype(str), i["runtimePrecision"].astype(str)] for i in infos]))
np.save(sys.argv[3], np.concatenate([next(iter(compiled({0: row[None]}).values())).copy() for row in x]))
''',
    "tract": '''
import sys, numpy as np, tract
x = np.load(sys.argv[2])
model = tract.Onnx().load(sys.argv[1])
kind = {"float32": "f32", "int64": "i64"}[str(x.dtype)]
model.set_input_fact(0, "1," + ",".join(map(str, x.shape[1:])) + "," + kind)
model = model.into_model().into_runnable()
np.save(sys.argv[3], np.concatenate([model.run([row[None]])[0].to_numpy() for row in x]))
''',
}


def forms(target):
    """Those of FORMS that the page allows."""
    page = qxc("list", "targets", target).stdout
    return [f for f in re.search(r"^forms (.*)$", page, re.M)[1].split(", ") if f in FORMS]


class Targets(OracleCase):
    """What the seven of models/trained become for a target, in every form that its page allows."""
    expected_seconds = 120

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not (MODELS / "trained").exists():
            raise unittest.SkipTest("needs the models of QXC_SHARED=DIR (DIR/models): trained")
        cls.python = python_with("runtimes", PACKAGES, "the runtimes")

    def samples(self, name):
        """Test data, a little off the sixteenths that many pixels are: these are ties of the first QuantizeLinear, where
        runtimes that multiply by 1 / scale round otherwise."""
        data = np.load(MODELS / f"trained/{name}.test.npz")
        x = data[data.files[0]][:COUNT]
        if x.dtype == np.float32:
            x = x + np.random.default_rng(1).uniform(-2e-3, 2e-3, x.shape).astype(np.float32)
        return {data.files[0]: x}

    def write(self, name, target, form, *options):
        """None where qxc says that the target does not take it."""
        out = self.scratch / f"{name}.{target}.{form}.onnx"
        calib = () if form in ("dynamic", "weight_only") else (f"-calib={MODELS}/trained/{name}.calib.npz",)
        done = qxc(MODELS / f"trained/{name}.onnx", *calib, f"-target={target}", *FORMS[form], *options, "-quiet", "-no-sync",
                   "-o", out, ok=not options)
        return None if done.returncode else out

    def runtime(self, which, path, arrays):
        """What it computes, and what it prints."""
        (self.scratch / "run.py").write_text(RUN[which])
        np.save(self.scratch / "x.npy", next(iter(arrays.values())))
        done = subprocess.run([self.python, "run.py", path.name, "x.npy", "y.npy"], cwd=self.scratch, check=False,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{which} refuses {path.name}: " + (done.stdout + done.stderr)[-2000:])
        return np.load(self.scratch / "y.npy"), done.stdout

    def results(self, which, name, form, *options):
        """Of the float model and of what is written, by onnxruntime; then by the runtime, with what it prints."""
        arrays = self.samples(name)
        out = self.write(name, which, form, *options)
        if not out:
            return None
        both = [next(iter(run_samples(session(m), onnx.load(m), arrays).values()))
                for m in (MODELS / f"trained/{name}.onnx", out)]
        return *both, *self.runtime(which, out, arrays), out

    @for_each(*RUN)
    def test_types(self, target):
        """What types a page allows its runtime takes, of weights alone and of activations; others qxc refuses itself."""
        taken = set()
        for bits in ("int4", "uint4", "int8", "uint8", "int16", "uint16", "int4 block(16)", "int8 block(16)"):
            for form, options in (("weight_only", [f"-weights={bits}"]), ("qdq", [f"-activations={bits}"])):
                if form not in forms(target) or (form == "qdq" and "block" in bits):
                    continue
                with self.subTest(form=form, type=bits):
                    found = self.results(target, "cnn", form, *options, *(EXACT if form == "qdq" else ()))
                    if found:
                        real, ort, own, _, _ = found
                        taken.add((form, bits))
                        self.assertGreater(sqnr(real, own), sqnr(real, ort) - 1)
        self.assertLessEqual({("weight_only", "int8"), ("qdq", "int8"), ("qdq", "uint8")}, taken)
        self.assertNotIn(("qdq", "int16"), taken)

    @for_each(*SEVEN)
    def test_openvino(self, name):
        """As near to the float model as onnxruntime; products are integers, those of two activations too where the processor
        has VNNI."""
        for form in forms("openvino"):
            with self.subTest(form=form):
                real, ort, own, said, out = self.results("openvino", name, form, *(EXACT if form == "qdq" else ()))
                self.assertGreater(sqnr(real, own), sqnr(real, ort) - 1)
                wanted = PRODUCTS[:2] if saturation.saturates() else PRODUCTS
                kinds = [(kind, types) for kind, types in re.findall(r'\["(\w+)", "(\w+)"\]', said) if kind in wanted]
                if form == "qdq":
                    self.assertEqual([k for k in kinds if k[1] not in ("u8", "i8")], [])
                    ops = [n.op_type for n in onnx.load(out).graph.node]
                    self.assertTrue(kinds)
                    if "Softmax" in ops and "Subgraph" in wanted:  # attention is one Subgraph of integers
                        self.assertEqual(sum(k == ("Subgraph", "i8") for k in kinds), ops.count("Softmax"))

    def test_openvino_placement(self):
        """A QuantizeLinear stands in front of products and nowhere else."""
        for name in SEVEN:
            graph = onnx.load(self.write(name, "openvino", "qdq")).graph
            readers = {i: [n for n in graph.node if i in n.input] for n in graph.node for i in n.input}
            for n in graph.node:
                if n.op_type == "QuantizeLinear":
                    behind = [r for dq in readers[n.output[0]] for r in readers[dq.output[0]]]
                    self.assertTrue(any(r.op_type in ("Conv", "MatMul", "Gemm") for r in behind), n.name)

    @for_each(*SEVEN)
    def test_tract(self, name):
        """The numbers of onnxruntime, to 40 dB or better."""
        for form in forms("tract"):
            with self.subTest(form=form):
                _, ort, own, _, _ = self.results("tract", name, form)
                self.assertGreater(sqnr(ort, own), 40)


class Rows(CalibrationDataReader):
    def __init__(self, data):
        self.feeds = iter([{data.files[0]: row[None]} for row in data[data.files[0]]])

    def get_next(self):
        return next(self.feeds, None)


def stated(path):
    """Of each tensor that is quantized: scales, zero points and the type of these."""
    graph = onnx.load(path).graph
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    found = {}
    for n in graph.node:
        if n.op_type in ("QuantizeLinear", "DequantizeLinear"):
            name = re.sub("_QuantizeLinear_Output$|_quantized$", "", n.input[0])
            zero = constants[n.input[2]] if len(n.input) > 2 else np.uint8(0)
            found[name] = constants[n.input[1]].ravel(), zero.ravel().tolist(), zero.dtype
    return found


@unittest.skipUnless((MODELS / "trained").exists(), "needs the models of QXC_SHARED=DIR (DIR/models): trained")
class Qnn(OracleCase):
    """The choices of onnxruntime's get_qnn_qdq_config."""
    expected_seconds = 20

    @for_each("unet", "cancer", "lstm")
    def test_choices(self, name):
        model, calib = MODELS / f"trained/{name}.onnx", MODELS / f"trained/{name}.calib.npz"
        theirs, ours = self.scratch / f"{name}.theirs.onnx", self.scratch / f"{name}.ours.onnx"
        quantize(model, theirs, get_qnn_qdq_config(model, Rows(np.load(calib))))
        qxc(model, f"-calib={calib}", "-target=qnn", "-emit=qdq", "-no-bias-correction", "-quiet", "-no-sync", "-o", ours)
        graph = onnx.load(model).graph
        joined = {i for n in graph.node if n.op_type == "Concat" for i in (*n.input, *n.output)}  # these share parameters here
        joined |= {n.input[0] for n in graph.node if n.op_type == "Resize" and n.output[0] in joined}
        one, other = stated(theirs), stated(ours)
        both = sorted(one.keys() & other.keys())
        self.assertGreater(len(both), 12)
        for tensor in both:
            with self.subTest(tensor=tensor):
                if name == "cancer" and tensor in ("x", "c_1", "sub_2", "c_3", "div_4"):
                    # a normalization, which 8 bits would lose
                    self.assertEqual(other[tensor][2], np.uint16)
                    continue
                self.assertEqual(one[tensor][2], other[tensor][2])
                if tensor not in joined:
                    np.testing.assert_allclose(one[tensor][0], other[tensor][0], rtol=1e-3)
                    self.assertEqual(one[tensor][1], other[tensor][1])


if __name__ == "__main__":
    unittest.main()
