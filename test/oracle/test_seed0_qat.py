"""Models of quantization-aware training, as their tools export them, raised to types.

PyTorch: Q and DQ on everything, float weights included. Brevitas: Q, Clip of the integers, DQ
(QCDQ). QONNX: Quant and BipolarQuant. The reference is onnxruntime on the model as it came; of
QONNX's operators, spelled out by their formulas (and qonnx's own executor, where it is installed).
"""

import importlib.util
import re
import subprocess
import sys
import unittest

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from cmodel import CModel
from common import OracleCase, for_each, qxc, qxc_outputs, session

QONNX = "qonnx.custom_op.general"


class Builder:
    """A graph from x: float, one sample, to y."""

    def __init__(self, shape):
        self.shape, self.nodes, self.constants = shape, [], {}

    def const(self, name, value):
        self.constants[name] = np.asarray(value)
        return name

    def node(self, op, inputs, output, **attrs):
        self.nodes.append(helper.make_node(op, inputs, [output], name=f"{output}/{op}", **attrs))
        return output

    def quant(self, x, y, scale, bits, zp=0, domain=QONNX, **attrs):
        params = [self.const(f"{y}.{k}", np.float32(v))
                  for k, v in (("s", scale), ("z", zp), ("b", bits))]
        attrs = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND", **attrs}
        return self.node("Quant", [x, *params], y, domain=domain, **attrs)

    def qcdq(self, x, y, scale, lo, hi, kind=np.int8):
        params = [self.const(f"{y}.s", np.float32(scale)), self.const(f"{y}.z", kind(0))]
        q = self.node("QuantizeLinear", [x, *params], f"{y}.q")
        c = self.node("Clip", [q, self.const(f"{y}.lo", kind(lo)), self.const(f"{y}.hi", kind(hi))],
                      f"{y}.c")
        return self.node("DequantizeLinear", [c, *params], y)

    def model(self, opset=13):
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, self.shape)],
            [helper.make_tensor_value_info("y", T.FLOAT, None)],
            [numpy_helper.from_array(v, k) for k, v in self.constants.items()])
        domains = sorted({"", *(n.domain for n in self.nodes)})
        imports = [helper.make_opsetid(d, 1 if d else opset) for d in domains]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)


def spelled_out(model):
    """Quant and BipolarQuant by their formulas, in ONNX's operators."""
    out, constants = onnx.ModelProto(), {}
    out.CopyFrom(model)
    given = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    nodes = []

    def add(op, inputs, y):
        nodes.append(helper.make_node(op, inputs, [y]))
        return y

    for n in model.graph.node:
        if n.domain != QONNX and n.domain != "onnx.brevitas":
            nodes.append(n)
            continue
        x, y, s = n.input[0], n.output[0], n.input[1]
        if n.op_type == "BipolarQuant":
            constants |= {f"{y}:0": np.float32(0), f"{y}:-": -given[s]}
            below = add("Less", [x, f"{y}:0"], f"{y}:less")
            add("Where", [below, f"{y}:-", s], y)
            continue
        signed, narrow = (next(a.i for a in n.attribute if a.name == k)
                          for k in ("signed", "narrow"))
        bits = float(given[n.input[3]])
        constants |= {f"{y}:lo": np.float32(-2 ** (bits - 1) + narrow if signed else 0),
                      f"{y}:hi": np.float32(2 ** (bits - 1) - 1 if signed else 2**bits - 1 - narrow)}
        q = add("Add", [add("Div", [x, s], f"{y}:div"), n.input[2]], f"{y}:add")
        q = add("Round", [add("Clip", [q, f"{y}:lo", f"{y}:hi"], f"{y}:clip")], f"{y}:round")
        add("Mul", [add("Sub", [q, n.input[2]], f"{y}:sub"), s], y)
    del out.graph.node[:]
    out.graph.node.extend(nodes)
    out.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in constants.items())
    del out.opset_import[1:]
    return out


def steps(scale, lo, hi, rng, n=4096):
    """Numbers on the grid, halfway between, beside that, and far outside."""
    k = np.arange(lo - 3, hi + 4, max(1, (hi - lo) // 300)).astype(np.float32)
    on = np.concatenate([(k + f).astype(np.float32) * np.float32(scale) for f in (0, 0.5, -0.5)])
    beside = np.concatenate([np.nextafter(on, np.float32(d)) for d in (-np.inf, np.inf)])
    more = rng.normal(size=n).astype(np.float32) * np.float32(scale * (hi - lo))
    return np.concatenate([on, beside, more, np.float32([0, -0.0, 1e30, -1e30, np.inf, -np.inf])])


def trained(pow2, rng, dialect):
    """Conv, Relu, MaxPool, Conv: 4-bit weights per channel, 8- and 4-bit activations."""
    b = Builder([1, 3, 8, 8])

    def scales(n):
        return (2.0 ** -rng.integers(3, 6, n) if pow2 else rng.uniform(0.01, 0.1, n))\
            .astype(np.float32)

    def scale(exponent):
        return 2.0**exponent if pow2 else 1.1 * 2.0**exponent

    def weights(name, m, n):
        w, s = rng.normal(size=(m, n, 3, 3)).astype(np.float32) * 0.3, scales(m)
        if dialect == "qonnx":
            return b.quant(b.const(name, w), f"{name}q", s.reshape(-1, 1, 1, 1), 4, narrow=1), s
        ints = np.clip(np.rint(w / s.reshape(-1, 1, 1, 1)), -7, 7).astype(np.int8)
        zp = b.const(f"{name}.z", np.zeros(m, np.int8))
        s_name = b.const(f"{name}.s", s)
        if dialect == "torch":  # float weights behind both Q and DQ
            q = b.node("QuantizeLinear", [b.const(name, w), s_name, zp], f"{name}.q", axis=0)
        else:
            q = b.node("Clip", [b.const(name, ints), b.const(f"{name}.lo", np.int8(-7)),
                                b.const(f"{name}.hi", np.int8(7))], f"{name}.c")
        return b.node("DequantizeLinear", [q, s_name, zp], f"{name}.f", axis=0), s

    def activation(x, y, s, bits):
        if dialect == "qonnx":
            return b.quant(x, y, s, bits)
        if dialect == "brevitas" and bits < 8:
            return b.qcdq(x, y, s, -2 ** (bits - 1), 2 ** (bits - 1) - 1)
        params = [b.const(f"{y}.s", np.float32(s)), b.const(f"{y}.z", np.int8(0))]
        return b.node("DequantizeLinear", [b.node("QuantizeLinear", [x, *params], f"{y}.q"),
                                           *params], y)

    x = activation("x", "xq", scale(-5), 8)
    w, s = weights("w", 6, 3)
    bias = b.const("b", rng.integers(-300, 300, 6).astype(np.int32))
    bias = b.node("DequantizeLinear", [bias, b.const("b.s", np.float32(scale(-5)) * s)], "b.f",
                  axis=0)
    y = b.node("Relu", [b.node("Conv", [x, w, bias], "c1", pads=[1] * 4)], "r1")
    y = activation(y, "yq", scale(-3), 4)
    y = b.node("MaxPool", [y], "p1", kernel_shape=[2, 2], strides=[2, 2])
    y = b.node("Conv", [y, weights("v", 8, 6)[0]], "c2")
    activation(y, "y", scale(-2), 6)
    return b.model()


def outputs(model, x, optimize=False):
    """What onnxruntime makes of each sample, without the leading 1."""
    runner = session(model, optimize)
    return np.concatenate([runner.run(None, {"x": sample[None]})[0] for sample in x])


class TrainedModels(OracleCase):
    def save(self, model, name="m.onnx"):
        path = self.scratch / name
        onnx.save(model, path)
        return path

    def compiled(self, path, emit, *options):
        out = self.scratch / (f"out.{emit}.onnx" if emit != "c" else "out.c")
        said = qxc(path, f"-emit={emit}", "-no-sync", "-o", out, *options).stderr
        return out, said

    @for_each("torch", "brevitas", "qonnx")
    def test_every_form_computes_the_same(self, dialect):
        """Scales are powers of two: then floats compute exactly too, and all must be equal."""
        rng = np.random.default_rng(1)
        model = trained(True, rng, dialect)
        path = self.save(model)
        x = rng.normal(size=(16, 3, 8, 8)).astype(np.float32) * 2
        want = outputs(spelled_out(model), x)
        self.assertGreater(len(np.unique(want)), 20)
        np.testing.assert_array_equal(qxc_outputs(path, {"x": x}, self.scratch)["y"], want)
        for emit in ("qdq", "qop"):
            out, said = self.compiled(path, emit)
            for optimize in (False, True):
                np.testing.assert_array_equal(outputs(out, x, optimize), want, f"{emit} {optimize}")
            ops = [n.op_type for n in onnx.load(out).graph.node]
            self.assertEqual(ops.count("QLinearConv"), 2 if emit == "qop" else 0, said)
            self.assertFalse({"Quant", "Conv"} & set(ops) if emit == "qop" else
                             {"Quant"} & set(ops))
        out, _ = self.compiled(path, "c", "-io=quant", "-integer-only")
        code = CModel(out)
        ints = np.clip(np.rint(x * 32), -128, 127).astype(np.int8)
        got = np.stack([code.run(s)[0] for s in ints]).reshape(want.shape)
        np.testing.assert_array_equal(got * np.float32(0.25), want)

    def test_float_weights(self):
        """Stored as integers, or as they came: a trained model and one that is quantized here."""
        rng = np.random.default_rng(3)
        x = rng.normal(size=(8, 3, 8, 8)).astype(np.float32) * 2
        path = self.save(trained(False, rng, "torch"))
        self.check_float_weights(path, x, 2)
        floats, data = self.scratch / "float.onnx", self.scratch / "data.npz"
        qxc(path, "-emit=float", "-o", floats)
        np.savez(data, x=x)
        self.check_float_weights(floats, x, 2, f"-calib={data}")
        self.check_float_weights(floats, x, 2, f"-calib={data}", "-weights=int4")

    def check_float_weights(self, path, x, n, *options):
        found = []
        for keep in ([], ["-keep-float-weights"]):
            out, said = self.compiled(path, "qdq", *options, *keep)
            self.assertNotIn("no effect", said)
            model = onnx.load(out)
            onnx.checker.check_model(model, full_check=True)
            floats = {t.name for t in model.graph.initializer if t.data_type == T.FLOAT}
            on_floats = [i for i in model.graph.node if i.op_type == "QuantizeLinear" and i.input[0] in floats]
            self.assertEqual(len(on_floats), n if keep else 0)
            found.append([outputs(model, x, optimize) for optimize in (False, True)])
        np.testing.assert_array_equal(*found)

    @for_each("torch", "brevitas", "qonnx")
    def test_any_scales(self, dialect):
        """Floats round on the way: onnxruntime's integer kernels are the reference, and what the
        model itself computes is a step away at most where a sum falls on a tie."""
        rng = np.random.default_rng(2)
        model = trained(False, rng, dialect)
        path = self.save(model)
        x = rng.normal(size=(16, 3, 8, 8)).astype(np.float32) * 2
        got = qxc_outputs(path, {"x": x}, self.scratch)["y"]
        out, _ = self.compiled(path, "qop")
        np.testing.assert_array_equal(got, outputs(out, x))
        self.assertLess(np.mean(got != outputs(spelled_out(model), x)), 1e-3)

    @for_each(1, 2, 3, 4, 6, 7, 8, 12, 16, 20)
    def test_quant_at_its_edges(self, bits):
        """One quantizer, bit for bit: ties, both ends, infinities; computed and on a constant."""
        rng = np.random.default_rng(bits)
        for signed, narrow in ((0, 0), (1, 0), (0, 1), (1, 1)):
            if bits == 1 and narrow:
                continue
            with self.subTest(signed=signed, narrow=narrow):
                scale = np.float32(rng.uniform(0.001, 3))
                x = steps(scale, -2**bits, 2**bits, rng)
                b = Builder([len(x)])
                const = b.const("c", x[np.isfinite(x)])
                b.quant("x", "q", scale, bits, signed=signed, narrow=narrow)
                b.quant(const, "cq", scale, bits, domain="onnx.brevitas", signed=signed,
                        narrow=narrow)
                b.node("Concat", ["q", "cq"], "y", axis=0)
                model = b.model()
                got = qxc_outputs(self.save(model), {"x": x[None]}, self.scratch)["y"]
                want = session(spelled_out(model)).run(None, {"x": x})[0]
                if bits > 16:  # divided in double where they are computed
                    apart = np.abs(got.ravel() - want)[:len(x)]
                    self.assertLessEqual(np.max(apart / np.maximum(scale, np.spacing(want[:len(x)]))),
                                         1.5)
                    got, want = got[:, len(x):], want[len(x):]
                np.testing.assert_array_equal(got.ravel(), want)

    def test_qcdq_at_its_edges(self):
        rng = np.random.default_rng(5)
        for kind, lo, hi in ((np.int8, -8, 7), (np.int8, -7, 7), (np.int8, -2, 1),
                             (np.uint8, 0, 15), (np.int8, -127, 127), (np.uint8, 0, 1)):
            with self.subTest(kind=kind.__name__, lo=lo, hi=hi):
                scale = np.float32(rng.uniform(0.001, 3))
                x = steps(scale, lo, hi, rng)
                b = Builder([len(x)])
                b.qcdq("x", "y", scale, lo, hi, kind)
                path = self.save(b.model())
                text = qxc(path, "-form=true").stdout
                self.assertIn("= uint1q<" if (lo, hi) == (0, 1) else f"range={lo}:{hi}>", text)
                self.assertNotIn("Clip(", text)
                got = qxc_outputs(path, {"x": x[None]}, self.scratch)["y"]
                np.testing.assert_array_equal(got[0], session(path).run(None, {"x": x})[0])

    def test_zero_points_and_channels(self):
        """Off ties a zero point is the same inside and outside of the rounding: a warning."""
        rng = np.random.default_rng(6)
        scale = rng.uniform(0.1, 1, (4, 1, 1)).astype(np.float32)
        b = Builder([1, 4, 8, 8])
        b.quant("x", "y", scale, 8, zp=37, signed=0)
        model = b.model()
        x = rng.normal(size=(1, 4, 8, 8)).astype(np.float32) * 20
        away = np.abs(np.mod(x / scale, 1) - 0.5) > 1e-3
        path = self.save(model)
        self.assertIn("its zero point 37 stands inside", qxc(path, "-form=true").stderr)
        got = qxc_outputs(path, {"x": x}, self.scratch)["y"]
        want = session(spelled_out(model)).run(None, {"x": x})[0]
        np.testing.assert_array_equal(got[away], want[away])
        self.assertLessEqual(np.max(np.abs(got - want) / scale), 1.01)

    def test_channels_behind_a_quantizer(self):
        """Of a shape that is known only once the quantizers before it are types."""
        rng = np.random.default_rng(9)
        b = Builder([1, 3, 6, 6])
        b.quant("x", "xq", 0.25, 4)
        b.node("Conv", ["xq", b.const("w", np.float32(rng.integers(-4, 5, (4, 3, 3, 3))))], "c")
        b.quant("c", "y", rng.uniform(0.5, 2, (4, 1, 1)), 6)
        model = b.model()
        path = self.save(model)
        self.assertIn("0, axis=1, range=-32:31>", qxc(path, "-form=true").stdout)
        x = rng.normal(size=(2, 3, 6, 6)).astype(np.float32)
        np.testing.assert_array_equal(qxc_outputs(path, {"x": x}, self.scratch)["y"],
                                      outputs(spelled_out(model), x))

    def test_bipolar(self):
        rng = np.random.default_rng(7)
        b = Builder([1, 3, 6, 6])
        b.node("BipolarQuant", ["x", b.const("s", np.float32([[[0.5]], [[2]], [[0.25]]]))], "xq",
               domain=QONNX)
        w = b.const("w", np.float32(rng.integers(-2, 3, (5, 3, 3, 3))))
        b.node("BipolarQuant", [w, b.const("ws", np.float32(0.125))], "wq", domain=QONNX)
        b.node("Conv", ["xq", "wq"], "y")
        model = b.model()
        path = self.save(model)
        self.assertIn("int2q<2^-3, range=-1:1>", qxc(path, "-form=true").stdout)
        x = np.float32(rng.integers(-2, 3, (1, 3, 6, 6)))
        np.testing.assert_array_equal(qxc_outputs(path, {"x": x}, self.scratch)["y"],
                                      session(spelled_out(model)).run(None, {"x": x})[0])

    def test_what_no_type_says(self):
        """Every refusal at once, each with its place; the text of the model stays readable."""
        b = Builder([4])
        b.quant("x", "STOCHASTIC", 0.5, 8, rounding_mode="STOCHASTIC")
        b.quant("x", "fraction", 0.5, 3.5)
        b.quant("x", "wide", 0.5, 33)
        b.quant("x", "negative", -0.5, 8)
        b.quant("x", "offset", 0.5, 4, zp=0.5)
        b.node("Quant", ["x", "STOCHASTIC", "wide.z", "wide.b"], "computed", domain=QONNX)
        b.node("Trunc", ["x", "wide.s", "wide.z", "wide.b", "STOCHASTIC"], "trunc", domain=QONNX)
        b.node("Sum", [n.output[0] for n in b.nodes], "y")
        path = self.save(b.model())
        done = qxc(path, "-form=true", ok=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        found = re.findall(r'node "(\w+)/.*error: node .*?: (.*)', done.stderr)
        self.assertEqual(dict(found), {
            "STOCHASTIC": "qxc does not know how it rounds, by STOCHASTIC",
            "fraction": "its bit width is not one integer of 1 to 32",
            "wide": "its bit width is not one integer of 1 to 32",
            "negative": "a scale is not a positive number",
            "offset": "its zero point is not one integer of the range",
            "computed": "its scale is computed",
            "trunc": "its bit width is computed"})
        self.assertIn("Quant(%x, ", qxc(path).stdout)

    def test_qonnx_executes_the_same(self):
        """qonnx's own executor, in a process of its own as it wants IR versions of its own."""
        if not importlib.util.find_spec("qonnx"):
            raise unittest.SkipTest("qonnx is not installed")
        rng = np.random.default_rng(8)
        path = self.save(trained(True, rng, "qonnx"))
        x = rng.normal(size=(1, 3, 8, 8)).astype(np.float32) * 2
        np.savez(self.scratch / "x.npz", x=x)
        script = ("import sys, numpy as np, onnx.helper as h\n"
                  "make = h.make_model\n"
                  "h.make_model = lambda g, **k: make(g, **{'ir_version': 8, **k})\n"
                  "from qonnx.core.modelwrapper import ModelWrapper\n"
                  "from qonnx.core.onnx_exec import execute_onnx\n"
                  "from qonnx.transformation.infer_shapes import InferShapes\n"
                  "m = ModelWrapper(sys.argv[1]).transform(InferShapes())\n"
                  "np.save(sys.argv[3], execute_onnx(m, {'x': np.load(sys.argv[2])['x']})['y'])\n")
        subprocess.run([sys.executable, "-c", script, path, self.scratch / "x.npz",
                        self.scratch / "y.npy"], check=True, capture_output=True)
        got = qxc_outputs(path, {"x": x}, self.scratch)["y"]
        np.testing.assert_array_equal(got, np.load(self.scratch / "y.npy"))


if __name__ == "__main__":
    unittest.main()
