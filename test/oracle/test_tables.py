"""Functions of one 8-bit tensor, spelled out in steps, are one table in programs: the bits are those of the single
steps, which a model that yields each of them runs one by one; on every micro-kernel. Models are drawn, each of many
functions side by side, and every function sees all 256 numbers."""

import random
import re

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from cmodel import CModel
from common import OracleCase, for_each, qxc, qxc_outputs
from test_channels_last import BUILDS, runs_here

BUILDS = {**BUILDS, "VBMI": ("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512vbmi")}
SEEDS, FUNCTIONS = range(2), 40
ONE = ("Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "LeakyRelu", "Elu", "Relu", "Softplus", "Erf", "Neg", "Abs", "Exp")
TWO = ("Mul", "Add", "Sub", "Max", "Min", "Div")
EIGHT = (np.int8, np.uint8)


class Functions:
    """Nodes, inputs and outputs; `steps` has every value in between."""

    def __init__(self, seed):
        self.pick, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.outputs, self.steps, self.feeds = [], [], [], [], [], {}
        for _ in range(FUNCTIONS):
            self.function()

    def constant(self, value, dtype):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(self, op, *operands, **attributes):
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, operands, [name], **attributes))
        return name

    def quantized(self, x, dtype):
        """(integers, the float value of them)."""
        scale = self.constant(2.0 ** self.pick.uniform(-7, -3), np.float32)
        info = np.iinfo(dtype)
        zero = self.constant(self.pick.choice([info.min, info.max, 0, self.pick.randint(info.min, info.max)]), dtype)
        q = self.node("QuantizeLinear", x, scale, zero)
        return q, self.node("DequantizeLinear", q, scale, zero)

    def input(self):
        dtype, name = self.pick.choice(EIGHT), f"x{len(self.inputs)}"
        info, count = np.iinfo(dtype), self.pick.choice([256, 256 + self.pick.randint(1, 130)])
        self.feeds[name] = np.resize(np.arange(info.min, info.max + 1), (1, count)).astype(dtype)
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.inputs.append(helper.make_tensor_value_info(name, kind, [1, count]))
        zero = self.constant(self.pick.randint(info.min, info.max), dtype)
        return self.node("DequantizeLinear", name, self.constant(2.0 ** self.pick.uniform(-7, -3), np.float32), zero)

    def step(self, values):
        """One more value of those there are; the last is among its operands."""
        if self.pick.random() < 0.5:
            x = self.node(self.pick.choice(ONE), values[-1])
        else:
            other = self.pick.choice([*values, None])
            other = other or self.constant(self.pick.uniform(-2, 2), np.float32)
            pair = [values[-1], other]
            self.pick.shuffle(pair)
            x = self.node(self.pick.choice(TWO), *pair)
        if self.pick.random() < 0.3:
            return x
        q, x = self.quantized(x, self.pick.choice([*EIGHT, *EIGHT, *EIGHT, np.int16]))
        self.steps.append(q)
        return x

    def function(self):
        values = [self.input()]
        for _ in range(self.pick.randint(2, 5)):
            values.append(self.step(values))
        self.outputs.append(self.quantized(values[-1], self.pick.choice([*EIGHT, *EIGHT, np.int16]))[0])

    def model(self, outputs):
        graph = helper.make_graph(self.nodes, "functions", self.inputs,
                                  [helper.make_tensor_value_info(o, T.UNDEFINED, None) for o in outputs], self.constants)
        for o in graph.output:
            o.ClearField("type")
        model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)


class TestTables(OracleCase):
    @for_each(*SEEDS)
    def test_the_bits_of_the_single_steps(self, seed):
        drawn = Functions(seed)
        folder = self.scratch
        whole, single = folder / f"whole{seed}.onnx", folder / f"single{seed}.onnx"
        onnx.save(drawn.model(drawn.outputs), whole)
        onnx.save(drawn.model(drawn.outputs + drawn.steps), single)
        want = qxc_outputs(single, drawn.feeds, folder)
        got = qxc_outputs(whole, drawn.feeds, folder)
        for name in drawn.outputs:
            np.testing.assert_array_equal(got[name], want[name], err_msg=name)
        source = folder / f"whole{seed}.c"
        qxc(whole, "-emit=c", "-name=m", "-no-sync", "-quiet", "-o", source)
        calls = re.findall(r"^    (qk_\w+)\(", source.read_text().split("m_run")[-1], re.M)
        assert sum(c.startswith("qk_lut8") for c in calls) >= FUNCTIONS // 2, calls
        for name, build in BUILDS.items():
            if not runs_here(name, BUILDS):
                continue
            ran = CModel(source, flags=("-O1", *build)).run(*drawn.feeds.values())
            for output, values in zip(drawn.outputs, ran):
                np.testing.assert_array_equal(values, np.ravel(want[output]), err_msg=f"{name} {output}")
