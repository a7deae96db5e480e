"""Products of two 8-bit tensors, as `qxc run` and in C on every micro-kernel: the bits that the definition gives, which is
what onnxruntime's kernel behind QLinearMul computes in float32. Shapes are of all lengths and broadcast as squeeze-and-excitation
does, with channels first and last; zero points and multipliers reach all ends."""

import random

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from cmodel import CModel
from common import OracleCase, for_each, qxc, qxc_outputs
from test_channels_last import BUILDS, runs_here

BUILDS = {**BUILDS, "FMA": ("-mavx2", "-mfma", "-O2")}  # where compilers would fuse products and sums
SEEDS, PAIRS = range(2), 60
EIGHT = (np.int8, np.uint8)


class Pairs:
    def __init__(self, seed):
        self.pick, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.outputs, self.feeds, self.want = [], [], [], [], {}, {}
        for i in range(PAIRS):
            self.pair(i)

    def constant(self, value, dtype):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def grid(self, dtype, scale):
        info = np.iinfo(dtype)
        zero = self.pick.choice([info.min, info.max, 0, self.pick.randint(info.min, info.max)])
        return np.float32(scale), zero, [self.constant(scale, np.float32), self.constant(zero, dtype)]

    def operand(self, name, dtype, shape, first):
        """(dequantized, integers less the zero point, scale); a pool of windows of one element keeps channels last."""
        scale, zero, params = self.grid(dtype, 2.0 ** self.pick.uniform(-8, -2))
        info = np.iinfo(dtype)
        data = self.rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape))
        self.feeds[name] = data
        self.nodes.append(helper.make_node("DequantizeLinear", [name, *params], [name + "r"]))
        if first or len(shape) != 4:
            return name + "r", data.astype(np.int64) - zero, scale
        w = self.constant(np.ones((shape[1], 1, 1, 1)), np.int8)
        one = [self.constant(1, np.float32), self.constant(0, np.int8)]
        self.nodes += [helper.make_node("DequantizeLinear", [w, *one], [name + "w"]),
                       helper.make_node("Conv", [name + "r", name + "w"], [name + "p"], group=shape[1]),
                       helper.make_node("QuantizeLinear", [name + "p", *params], [name + "q"]),
                       helper.make_node("DequantizeLinear", [name + "q", *params], [name + "s"])]
        return name + "s", data.astype(np.int64) - zero, scale

    def shapes(self):
        pick = self.pick
        c, h, w = pick.randint(1, 70), pick.randint(1, 9), pick.randint(1, 9)
        return pick.choice([((1, c * h), (1, c * h)), ((1, c, h, w), (1, c, 1, 1)), ((1, c, 1, 1), (1, c, h, w)),
                            ((1, c, h, w), (1, c, h, w)), ((1, c * h), (1, 1)), ((1, c, h), (1, 1, h))])

    def pair(self, i):
        dtype, (u, v) = self.pick.choice(EIGHT), self.shapes()
        first = self.pick.random() < 0.5
        a, x, sx = self.operand(f"a{i}", dtype, u, first)
        b, y, sy = self.operand(f"b{i}", dtype, v, True)
        by = self.pick.choice([10, 20, 50, 100, 200, 300, 1, 2, 2**-3, 2**30, 2 ** self.pick.uniform(4, 9)])  # near ties, ends
        scale, zero, params = self.grid(dtype, float(sx) * float(sy) * by)
        self.nodes += [helper.make_node("Mul", [a, b], [f"m{i}"]),
                       helper.make_node("QuantizeLinear", [f"m{i}", *params], [f"y{i}"])]
        product = (x * y).astype(np.float32) * np.float32(np.float32(sx * sy) / scale)
        info = np.iinfo(dtype)
        want = np.clip(np.rint(product + np.float32(zero)), info.min, info.max).astype(dtype)
        self.outputs.append(helper.make_tensor_value_info(f"y{i}", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), want.shape))
        self.want[f"y{i}"] = want

    def save(self, path):
        graph = helper.make_graph(self.nodes, "pairs", self.inputs, self.outputs, self.constants)
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]), path)


def check_everywhere(test, made, name, calls, least):
    """`qxc run`, and C on every micro-kernel that this machine has, give the bits that are wanted; the C calls such a kernel more
    than `least` times."""
    path, source = test.scratch / f"{name}.onnx", test.scratch / f"{name}.c"
    made.save(path)
    got = qxc_outputs(path, made.feeds, test.scratch)
    qxc(path, "-emit=c", "-name=m", "-no-sync", "-quiet", "-o", source)
    test.assertGreater(source.read_text().count(calls), least)
    for output, want in made.want.items():
        np.testing.assert_array_equal(got[output], want, err_msg=output)
    for build in (b for b in BUILDS if runs_here(b, BUILDS)):
        ran = CModel(source, flags=("-O1", "-ffp-contract=fast", *BUILDS[build])).run(*made.feeds.values())
        for values, (output, want) in zip(ran, made.want.items(), strict=True):
            np.testing.assert_array_equal(values, np.ravel(want), err_msg=f"{build} {output}")


class TestPairs(OracleCase):
    @for_each(*SEEDS)
    def test_products(self, seed):
        check_everywhere(self, Pairs(seed), f"pairs{seed}", "    qk_mul_q_", PAIRS * 3 // 4)
