"""Small models for what happens to a float model before it is quantized, and how to judge that.

A case is a function of a Graph that returns the name of its output. Keywords of `case` are the
operators that preparation leaves, and `floor`, the least SQNR in dB of the quantized model (None: not
quantized, as it is about infinity, say).
"""

import collections
import pathlib

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper

from common import float_excess, qxc, qxc_outputs, run_samples, session, sqnr
from networks import Net

IMAGE = [("x", T.FLOAT, [1, 4, 8, 8])]
ROWS = [("x", T.FLOAT, [3, 8])]
TOKENS = [("x", T.FLOAT, [1, 6, 8])]
SAMPLES = 20
Case = collections.namedtuple("Case", "build inputs opset floor left")


def catalogue():
    """A dict of cases and the decorator that fills it."""
    cases = {}

    def case(inputs=None, opset=17, floor=30, name=None, **left):
        def add(build):
            cases[name or build.__name__] = Case(build, inputs or IMAGE, opset, floor, left)
            return build
        return add
    return cases, case


class Graph(Net):
    def __init__(self):
        super().__init__(5)

    def normal(self, *shape, spread=1.0):
        return self.const(self.rng.normal(0, spread, shape))

    def weight(self, *shape):
        return self.normal(*shape, spread=1 / np.sqrt(np.prod(shape[1:])))

    def conv(self, x, out=6, into=4, kernel=3, bias=True, group=1, **attributes):
        operands = [x, self.weight(out, into // group, kernel, kernel)]
        return self.op("Conv", *operands, *([self.normal(out, spread=0.3)] if bias else []), group=group, **attributes)

    def norm(self, x, channels, variance=None, **attributes):
        r = self.rng
        scale = r.uniform(0.5, 2, channels) * r.choice([-1, 1], channels)
        variance = r.uniform(0.3, 2, channels) if variance is None else variance
        return self.op("BatchNormalization", x, self.const(scale), self.normal(channels, spread=0.5),
                       self.normal(channels, spread=0.5), self.const(variance), **attributes)

    def pad(self, x, pads, value=None, axes=None, mode="constant"):
        operands = [x, self.ints(*pads), "" if value is None else self.const(value), axes and self.ints(*axes)]
        while not operands[-1]:
            operands.pop()
        return self.op("Pad", *operands, mode=mode)

    def clip(self, x, low=None, high=None):
        operands = [x, "" if low is None else self.const(low), "" if high is None else self.const(high)]
        while not operands[-1]:
            operands.pop()
        return self.op("Clip", *operands)

    def finish(self, outputs, inputs, opset):
        """The model that yields these values, whose names become y, y1, ..."""
        names = {value: f"y{i or ''}" for i, value in enumerate(outputs)}
        for node in self.nodes:
            for field in (node.input, node.output):
                for i, value in enumerate(field):
                    field[i] = names.get(value, value)
        graph = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info(*i) for i in inputs],
            [helper.make_tensor_value_info(name, T.FLOAT, None) for name in names.values()], self.constants)
        model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", opset)])
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def operators(path):
    return collections.Counter(n.op_type for n in onnx.load(path).graph.node)


def samples_of(model):
    """Normal numbers; token ids where the input holds integers. A leading 1 is the sample axis."""
    rng, arrays = np.random.default_rng(1), {}
    for value in model.graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        shape = (SAMPLES, *shape[shape[:1] == [1]:])
        ints = value.type.tensor_type.elem_type == T.INT64
        arrays[value.name] = rng.integers(0, 10, shape) if ints else rng.normal(0, 1, shape).astype(np.float32)
    return arrays


class Prepared:
    """A case, built, with what onnxruntime computes in float."""

    def __init__(self, case, folder):
        g = Graph()
        outputs = case.build(g)
        self.model = g.finish(outputs if isinstance(outputs, tuple) else (outputs,), case.inputs, case.opset)
        self.case, self.folder = case, pathlib.Path(folder)
        self.path, self.calib = self.folder / "m.onnx", self.folder / "calib.npz"
        onnx.save(self.model, self.path)
        self.arrays = samples_of(self.model)
        np.savez(self.calib, **self.arrays)
        self.want = run_samples(session(self.model), self.model, self.arrays)

    def made(self, name, *options):
        path = self.folder / name
        self.said = qxc(self.path, f"-calib={self.calib}", "-no-sync", "-o", path, *options).stderr
        return path

    def check_float(self, test):
        """The float model before and behind preparation: what is left of it, and equal outputs."""
        text = self.made("prepared.qir", "-form=float")
        path = self.folder / "prepared.onnx"
        qxc(text, "-emit=onnx", "-no-sync", "-quiet", "-o", path)
        test.assertEqual(dict(operators(path)), self.case.left)
        runs = {"onnxruntime": run_samples(session(path), onnx.load(path), self.arrays),
                "qxc": qxc_outputs(path, self.arrays, self.folder)}
        for where, got in runs.items():
            for name, want in self.want.items():
                test.assertLessEqual(float_excess(got[name], want), 0, f"{where}, {name}")

    def check_quantized(self, test, *options):
        """Both ONNX forms, in onnxruntime plain and optimized and in qxc itself."""
        if self.case.floor is None:
            return
        for form in ("qdq", "qop"):
            path = self.made(f"{form}.onnx", f"-emit={form}", *options)
            for how in ("plain", "optimized", "qxc"):
                if how == "qxc":
                    got = qxc_outputs(path, self.arrays, self.folder)
                else:
                    got = run_samples(session(path, how == "optimized"), onnx.load(path), self.arrays)
                for name, want in self.want.items():
                    test.assertGreaterEqual(sqnr(want, got[name]), self.case.floor, f"{form}, {how}, {name}")
