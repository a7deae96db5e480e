"""Models in float16 and bfloat16: each operator computes in float and is rounded to its type once.

What is one rounding is held bit for bit against NumPy, casts to all small types against onnxruntime,
networks against onnxruntime within what rounding in other places explains, and the emitted C against
`qxc run`.
"""

import itertools

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cmodel import CModel
from common import OracleCase, for_each, qxc, qxc_outputs, session, sqnr

SMALL = {"FLOAT8E4M3FN": "float8_e4m3fn", "FLOAT8E4M3FNUZ": "float8_e4m3fnuz", "FLOAT8E5M2": "float8_e5m2",
         "FLOAT8E5M2FNUZ": "float8_e5m2fnuz"}


def model(nodes, inputs, outputs, constants=(), opset=22):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs],
                              [helper.make_tensor_value_info(*o) for o in outputs],
                              [numpy_helper.from_array(a, n) for n, a in constants])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.checker.check_model(made, full_check=True)
    return made


def edges(kind):
    """Every number of the type and what lies between two of them, ties and neighbours of ties."""
    bits = np.arange(2**16, dtype=np.uint16) if np.dtype(kind).itemsize == 2 else np.arange(256, dtype=np.uint8)
    all_of = np.unique(bits.view(kind).astype(np.float32))
    all_of = all_of[np.isfinite(all_of)]
    middle = ((all_of[1:].astype(np.float64) + all_of[:-1]) / 2).astype(np.float32)
    top = all_of[-1] * np.array([1.01, 1.03, 1.0625, 1.07, 2, 100], np.float32)
    x = np.concatenate([all_of, middle, np.nextafter(middle, np.float32(np.inf)),
                        np.nextafter(middle, np.float32(-np.inf)), top, -top,
                        np.array([0.0, -0.0, 1e-45, -1e-45, 1e-38, np.inf, -np.inf, np.nan], np.float32)])
    return x.astype(np.float32)


def bits_of(x):
    return np.where(np.isnan(x), np.uint32(0x7fc00000), x.astype(np.float32).view(np.uint32))


class Half(OracleCase):
    def ran(self, made, feeds):
        path = self.scratch / "m.onnx"
        onnx.save(made, path)
        return path, qxc_outputs(path, feeds, self.scratch)

    @for_each("FLOAT16", "BFLOAT16", *SMALL)
    def test_rounding(self, name):
        """There and back; every tie, both ways to treat what is too large."""
        kind = {"FLOAT16": np.float16, "BFLOAT16": ml_dtypes.bfloat16}.get(name) or getattr(ml_dtypes, SMALL[name])
        x = edges(kind)
        saturate = {"saturate": 0} if name in SMALL else {}
        made = model([helper.make_node("Cast", ["x"], ["a"], to=TensorProto.DataType.Value(name)),
                      helper.make_node("Cast", ["a"], ["y"], to=TensorProto.FLOAT),
                      helper.make_node("Cast", ["x"], ["b"], to=TensorProto.DataType.Value(name), **saturate),
                      helper.make_node("Cast", ["b"], ["z"], to=TensorProto.FLOAT)],
                     [("x", TensorProto.FLOAT, x.shape)],
                     [("y", TensorProto.FLOAT, x.shape), ("z", TensorProto.FLOAT, x.shape)])
        _, have = self.ran(made, {"x": x[None]})
        want = dict(zip("yz", session(made).run(None, {"x": x})))
        for n in "yz":
            wrong = bits_of(have[n][0]) != bits_of(want[n])
            np.testing.assert_array_equal(have[n][0][wrong], want[n][wrong], f"of {x[wrong][:5]}")
        if name == "BFLOAT16":
            np.testing.assert_array_equal(bits_of(have["y"][0]), bits_of(x.astype(kind).astype(np.float32)))

    def test_operators(self):
        """float16 as NumPy computes it: in float, rounded."""
        rng = np.random.default_rng(1)
        x, y = (rng.normal(0, s, (3, 64)).astype(np.float16) for s in (3, 50))
        x[0, :6] = 0, -0.0, 65504, -65504, 6e-8, np.inf
        y[0, :6] = -0.0, 1, 65504, 2, 6e-8, 1
        unary = {"Sqrt": np.sqrt, "Neg": np.negative, "Abs": np.abs, "Floor": np.floor, "Round": np.rint,
                 "Exp": np.exp, "Relu": lambda v: np.maximum(v, np.float16(0))}
        binary = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Max": np.maximum}
        nodes = [helper.make_node(op, ["x"], [op]) for op in unary]
        nodes += [helper.make_node(op, ["x", "y"], [op]) for op in binary]
        nodes += [helper.make_node("Mul", ["x", "k"], ["scaled"]), helper.make_node("Add", ["scaled", "scaled"], ["twice"]),
                  helper.make_node("Less", ["x", "y"], ["less"]), helper.make_node("Where", ["less", "x", "y"], ["where"]),
                  helper.make_node("ScatterElements", ["x", "last", "y"], ["placed"], reduction="add"),
                  helper.make_node("Sub", ["placed", "y"], ["sums"]), helper.make_node("Transpose", ["x"], ["turned"])]
        k = np.array([0.1, 3, -7, 1e-4] * 16, np.float16)
        f16 = TensorProto.FLOAT16
        names = [*unary, *binary, "scaled", "twice", "where", "sums"]
        made = model(nodes, [("x", f16, [64]), ("y", f16, [64])],
                     [*((n, f16, [64]) for n in names), ("turned", f16, [64])], [("k", k), ("last", np.arange(64)[::-1])])
        path, have = self.ran(made, {"x": x, "y": y})
        with np.errstate(all="ignore"):
            want = {op: f(x) for op, f in unary.items()} | {op: f(x, y) for op, f in binary.items()}
            want |= {"scaled": x * k, "twice": x * k + x * k, "where": np.where(x < y, x, y), "turned": x,
                     "sums": x + y[:, ::-1] - y}
        for n, values in want.items():
            with self.subTest(n):
                self.assertEqual(have[n].dtype, np.float16)
                np.testing.assert_array_equal(have[n], values)
        qxc(path, "-emit=c", "-no-sync", "-quiet", "-o", self.scratch / "m.c")
        compiled = CModel(self.scratch / "m.c", flags=("-O2", "-ffp-contract=off"))
        for i in range(len(x)):
            results = compiled.run(x[i].view(np.uint16), y[i].view(np.uint16))
            for n, result in zip([*names, "turned"], results):
                same = result.view(np.float16)
                np.testing.assert_array_equal(np.where(np.isnan(same), 0, result),
                                              np.where(np.isnan(same), 0, have[n][i].view(np.uint16)), n)

    @for_each("float16", "bfloat16")
    def test_network(self, name):
        """Against the same numbers in float; weights are constants of the type, initializers and nodes."""
        kind = np.float16 if name == "float16" else ml_dtypes.bfloat16
        elem = TensorProto.FLOAT16 if name == "float16" else TensorProto.BFLOAT16
        rng = np.random.default_rng(2)
        weights = {"w": rng.normal(0, .3, (8, 3, 3, 3)), "b": rng.normal(0, .1, 8), "f": rng.normal(0, .3, (16, 8)),
                   "scale": rng.normal(1, .1, 16), "m": rng.normal(0, .3, (16, 16)),
                   "gate": rng.normal(0, .3, (1, 32, 16)), "state": rng.normal(0, .3, (1, 32, 8))}
        nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
                 helper.make_node("LeakyRelu", ["c"], ["r"]), helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
                 helper.make_node("Reshape", ["p", "shape"], ["q"]), helper.make_node("Transpose", ["q"], ["t"], perm=[2, 0, 1]),
                 helper.make_node("MatMul", ["t", "fT"], ["l"]), helper.make_node("LayerNormalization", ["l", "scale"], ["n"]),
                 helper.make_node("Gelu", ["n"], ["g"]), helper.make_node("LSTM", ["g", "gate", "state"], ["h"], hidden_size=8),
                 helper.make_node("ReduceMean", ["h"], ["e"], keepdims=0), helper.make_node("Softmax", ["l"], ["s"])]

        def build(k, e):
            constants = [(n, w.astype(kind).astype(k)) for n, w in weights.items()]
            constants = [c for c in constants if c[0] not in ("f", "m")]
            constants += [("fT", weights["f"].T.astype(kind).astype(k)), ("shape", np.array([1, 8, 16]))]
            first = [helper.make_node("Constant", [], [n], value=numpy_helper.from_array(w, n))
                     for n, w in constants if n in ("w", "scale", "gate")]
            constants = [c for c in constants if c[0] not in ("w", "scale", "gate")]
            return model(first + nodes, [("x", e, [1, 3, 8, 8])], [("h", e, [16, 1, 1, 8]), ("s", e, [16, 1, 16])], constants)
        x = rng.normal(0, 1, (4, 3, 8, 8)).astype(kind).astype(np.float32)
        _, exact = self.ran(build(np.float32, TensorProto.FLOAT), {"x": x})
        path, have = self.ran(build(kind, elem), {"x": x})
        for n in "hs":
            self.assertEqual(have[n].dtype, np.float16 if name == "float16" else np.float32)
            got = have[n].astype(np.float32)
            np.testing.assert_array_equal(got, got.astype(kind).astype(np.float32))  # numbers of the type
            self.assertGreater(sqnr(exact[n], got), 55 if name == "float16" else 35)
        if name == "float16":
            runner = session(path)
            want = [runner.run(None, {"x": v[None].astype(np.float16)}) for v in x]
            for i, n in enumerate("hs"):
                self.assertGreater(sqnr(np.stack([w[i] for w in want]).astype(np.float32), have[n].astype(np.float32)), 55)
        widened = self.scratch / "wide.onnx"
        qxc(path, "-passes=float32", "-emit=onnx", "-o", widened)
        for n, values in qxc_outputs(widened, {"x": x}, self.scratch).items():
            np.testing.assert_allclose(values, exact[n], rtol=1e-6, atol=1e-7)

    @for_each(*SMALL)
    def test_float8(self, name):
        """QuantizeLinear and DequantizeLinear of float8: per tensor and per axis."""
        elem = TensorProto.DataType.Value(name)
        kind = getattr(ml_dtypes, SMALL[name])
        rng = np.random.default_rng(4)
        x = rng.normal(0, 100, (3, 4, 8)).astype(np.float32)
        x[0, 0, :4] = 1e6, -1e6, np.inf, 0.001
        constants = [("s", np.float32(0.3)), ("v", np.array([0.1, 0.2, 3, 0.7], np.float32)),
                     ("z", np.zeros((), kind)), ("zs", np.zeros(4, kind))]
        nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["a"]), helper.make_node("DequantizeLinear", ["a", "s"], ["y"]),
                 helper.make_node("QuantizeLinear", ["x", "v", "zs"], ["b"], axis=0),
                 helper.make_node("DequantizeLinear", ["b", "v", "zs"], ["u"], axis=0)]
        made = model(nodes, [("x", TensorProto.FLOAT, [4, 8])], [("y", TensorProto.FLOAT, [4, 8]), ("u", TensorProto.FLOAT, [4, 8])], constants)
        self.assertEqual(made.graph.initializer[2].data_type, elem)
        _, have = self.ran(made, {"x": x})
        want = [session(made).run(None, {"x": v}) for v in x]
        for i, n in enumerate("yu"):
            np.testing.assert_array_equal(have[n], np.stack([w[i] for w in want]))

    def test_quantized(self):
        """Quantizing computes in float; statistics may be taken of the model as it is."""
        rng = np.random.default_rng(3)
        x = rng.normal(0, 1, (64, 32)).astype(np.float16)
        w = rng.normal(0, .2, (16, 32)).astype(np.float16)
        made = model([helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)], [("x", TensorProto.FLOAT16, [1, 32])],
                     [("y", TensorProto.FLOAT16, [1, 16])], [("w", w)])
        path, data, out = (self.scratch / n for n in ("m.onnx", "x.npz", "q.onnx"))
        onnx.save(made, path)
        np.savez(data, x=x)
        said = qxc(path, f"-calib={data}", "-emit=qdq", "-o", out).stderr
        self.assertIn("values of float16 or bfloat16 become float", said)
        want = x.astype(np.float32) @ w.astype(np.float32).T
        runner = session(out, True)
        got = np.concatenate([runner.run(None, {"x": v[None].astype(np.float32)})[0] for v in x])
        self.assertGreater(sqnr(want, got), 30)
        stats, later = self.scratch / "s.onnx", self.scratch / "l.onnx"
        qxc(path, f"-calib={data}", "-emit=onnx", "-o", stats)
        self.assertEqual(onnx.load(stats).graph.input[0].type.tensor_type.elem_type, TensorProto.FLOAT16)
        qxc(stats, "-emit=qdq", "-o", later)
        qxc(path, f"-calib={data}", "-no-bias-correction", "-emit=qdq", "-o", out)
        runner, other = session(out), session(later)
        for v in x[:8].astype(np.float32):
            apart = runner.run(None, {"x": v[None]})[0] - other.run(None, {"x": v[None]})[0]
            self.assertLess(np.abs(apart).max(), 0.1)

    @for_each(*map("_".join, itertools.product(("Conv", "Gemm", "MatMul"), ("uint8", "uint16", "int16"),
                                               ("none", "float", "int32"))))
    def test_qdq(self, case):
        """float16 between its conversions: one product with whatever bias, read, run and written again. A
        product of scales as small as here is no number of float16."""
        op, name, bias = case.split("_")
        kind = np.dtype(name).type
        rng = np.random.default_rng(7)
        bits, zp = 8 * np.dtype(kind).itemsize, 0 if kind == np.int16 else 1 << 8 * np.dtype(kind).itemsize - 1
        shape, weights = {"Conv": ((1, 6, 5, 5), (4, 6, 3, 3)), "Gemm": ((2, 6), (4, 6)), "MatMul": ((2, 6), (6, 4))}[op]
        axis, result = int(op == "MatMul"), (1, 4, 3, 3) if op == "Conv" else (2, 4)
        make, step = helper.make_node, np.float16(8 * 2.0**-bits)
        constants = {"xs": step, "xz": kind(zp), "ys": np.float16(2 * step), "w": rng.integers(-127, 128, weights, np.int8),
                     "ws": rng.uniform(0.001, 0.003, 4).astype(np.float16), "b": rng.normal(0, 1, 4).astype(np.float16),
                     "bq": rng.integers(-1000, 1000, 4).astype(np.int32), "bs": np.full(4, 0.001, np.float16)}
        nodes = [make("QuantizeLinear", ["x", "xs", "xz"], ["xq"]), make("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
                 make("DequantizeLinear", ["w", "ws"], ["wd"], axis=axis),
                 make("DequantizeLinear", ["bq", "bs"], ["bd"], axis=0),
                 make(op, ["xd", "wd"], ["p"], **({"transB": 1} if op == "Gemm" else {})),
                 make("QuantizeLinear", ["p", "ys", "xz"], ["q"]), make("DequantizeLinear", ["q", "ys", "xz"], ["y"])]
        if bias != "none" and op != "MatMul":
            nodes[4].input.append("b" if bias == "float" else "bd")
        made = model(nodes, [("x", TensorProto.FLOAT16, shape)], [("y", TensorProto.FLOAT16, result)],
                     [(k, np.asarray(v)) for k, v in constants.items()], opset=21)
        path, out = self.scratch / "h.onnx", self.scratch / "o.onnx"
        onnx.save(made, path)
        x = rng.normal(0, 1, shape).astype(np.float16)
        want = session(made).run(None, {"x": x})[0].astype(np.float32)
        bound = 2 * float(step) * 1.01 + np.abs(want).max() / 1024  # a tie, and a last digit of float16
        sample = x if shape[0] == 1 else x[None]
        got = {"run": qxc_outputs(path, {"x": sample}, self.scratch)["y"].reshape(want.shape)}
        for form, optimize in itertools.product(("qdq", "qop"), (False, True)):
            qxc(path, f"-emit={form}", "-no-sync", "-o", out)
            got[form, optimize] = session(out, optimize).run(None, {"x": x})[0]
        for way, y in got.items():
            with self.subTest(way=way):
                np.testing.assert_allclose(y.astype(np.float32), want, rtol=0, atol=bound)


if __name__ == "__main__":
    import unittest
    unittest.main()
