"""-weight-only: integers for the weights, float for the rest, in QDQ form and as MatMulNBits."""

import functools
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi._pybind_state import quantize_matmul_4bits

import float_models
from cmodel import CModel
from common import (OracleCase, float_excess, for_each, qxc, qxc_outputs, run_samples, session, sqnr,
                    talk)

# what -weights= says: bits of a weight
TYPES = {"int8 sym": 8, "uint8 asym": 8, "int4 sym": 4, "int4 sym block(32)": 4, "uint4 asym block(16)": 4,
         "int8 sym block(32)": 8, "int3 block(32)": 3, "uint3 sym block(16)": 3, "int2 sym block(16)": 2, "int2 block(32)": 2}
CASES = [f"{m}, {t}" for m in float_models.MODELS for t in TYPES]


def key(case):
    return tuple(part.strip() for part in case.split(",", 1))


def one_layer(node, shape, constants, *domains):
    x, y = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in (("x", [5, 2, 24]), ("y", shape)))
    graph = helper.make_graph([node], "g", [x], [y],
                              [numpy_helper.from_array(v.astype(np.float32), k) for k, v in constants.items()])
    imports = [helper.make_opsetid(d, v) for d, v in (("", 21), *domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def recurrent(op, hidden=32):
    rng, gates = np.random.default_rng(0), {"LSTM": 4, "GRU": 3, "RNN": 1}[op] * hidden
    node = helper.make_node(op, ["x", "w", "r"], ["y"], "layer", hidden_size=hidden, direction="bidirectional")
    return one_layer(node, [5, 2, 2, hidden], {"w": rng.normal(size=(2, gates, 24)) / 5, "r": rng.normal(size=(2, gates, hidden)) / 9})


def attention():
    rng = np.random.default_rng(0)
    node = helper.make_node("Attention", ["x", "w", "b"], ["y"], "layer", domain="com.microsoft", num_heads=4)
    return one_layer(node, [5, 2, 24], {"w": rng.normal(size=(24, 72)) / 5, "b": rng.normal(size=72)}, ("com.microsoft", 1))


class WeightOnly(OracleCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.float_model = staticmethod(functools.cache(cls._float_model))

    @classmethod
    def _float_model(cls, name):
        return float_models.answered(name, cls.scratch)

    def made(self, name, weights, form):
        path = self.scratch / f"{name}_{weights.replace(' ', '_')}_{form}.onnx"
        qxc(self.float_model(name)[0], "-weight-only", f"-weights={weights}", f"-emit={form}", "-no-sync",
            "-o", path)
        return path

    def results(self, path, arrays):
        model = onnx.load(path)
        onnx.checker.check_model(model)
        return run_samples(session(path), model, arrays)["y"]

    @for_each(*CASES)
    def test_both_forms_and_qxc_run(self, case):
        name, weights = key(case)
        _, arrays, want = self.float_model(name)
        bits = TYPES[weights]
        least = 6.02 * bits - 7.3 - 4.8  # uniform steps over 4 sigma of a normal distribution, 3 layers
        for form in ("qdq", "qop"):
            path = self.made(name, weights, form)
            ours = qxc_outputs(path, arrays, self.scratch)["y"]
            self.assertGreater(sqnr(want, ours), least, form)
            self.assertLessEqual(float_excess(self.results(path, arrays), ours), 0, form)

    @for_each("mlp, int4 sym block(32)", "transformer, uint4 asym block(16)", "mlp, int8 sym block(32)", "mlp, int3 block(32)",
              "transformer, int2 block(32)")
    def test_products_become_matmulnbits(self, case):
        name, weights = key(case)
        path = self.made(name, weights, "qop")
        count = sum(n.op_type in ("MatMul", "Gemm") and n.input[1].endswith("weight")
                    for n in onnx.load(self.float_model(name)[0]).graph.node)
        nodes = [n.op_type for n in onnx.load(path).graph.node]
        self.assertEqual(count, nodes.count("MatMulNBits"))
        self.assertEqual(0, nodes.count("DequantizeLinear"))

    @for_each("mlp, int4 sym block(32)", "transformer, uint4 asym block(16)", "mlp, int8 sym block(32)", "mlp, int3 block(32)",
              "transformer, int2 block(32)")
    def test_matmulnbits_comes_back(self, case):
        """QDQ, MatMulNBits, QDQ: the same numbers."""
        name, weights = key(case)
        _, arrays, _ = self.float_model(name)
        back = self.scratch / "back.onnx"
        qxc(self.made(name, weights, "qop"), "-emit=qdq", "-no-sync", "-o", back)
        self.assertNotIn("MatMulNBits", [n.op_type for n in onnx.load(back).graph.node])
        excess = float_excess(self.results(back, arrays), self.results(self.made(name, weights, "qdq"), arrays))
        self.assertLessEqual(excess, 0)

    @for_each("mlp", "transformer")
    def test_no_worse_than_onnxruntimes_quantizer(self, name):
        """Its own rounding, put into the nodes that qxc has made."""
        path, arrays, want = self.float_model(name)
        floats = {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
        ours = self.made(name, "int4 sym block(32)", "qop")
        theirs = onnx.load(ours)
        stored = {t.name: t for t in theirs.graph.initializer}
        for node in theirs.graph.node:
            if node.op_type != "MatMulNBits":
                continue
            w = floats[node.input[1].removesuffix("_packed")]
            w = np.ascontiguousarray(w if w.shape[1] != 10 and node.name != "/y" else w.T)
            packed, scales = (np.zeros_like(numpy_helper.to_array(stored[i])) for i in node.input[1:3])
            quantize_matmul_4bits(packed, w, scales.reshape(-1), np.zeros(packed.size, np.uint8), 32,
                                  w.shape[1], w.shape[0], True)
            stored[node.input[1]].CopyFrom(numpy_helper.from_array(packed, node.input[1]))
            stored[node.input[2]].CopyFrom(numpy_helper.from_array(scales, node.input[2]))
        got = run_samples(session(theirs), theirs, arrays)["y"]
        ours = self.results(ours, arrays)
        talk(f"{name}: int4 in blocks of 32: qxc {sqnr(want, ours):.2f} dB, onnxruntime {sqnr(want, got):.2f} dB")
        self.assertGreater(sqnr(want, ours), sqnr(want, got) - 0.3)

    @for_each("2", "4", "8")
    def test_zero_points_of_float_and_groups(self, name):
        """MatMulNBits with zero points that are integers, though of float, and with a g_idx that says the usual: types.
        Others stay what they are and run; C too."""
        bits, k, n, block = int(name), 40, 6, 16
        rng, blocks = np.random.default_rng(bits), -(-k // block)
        whole = rng.integers(0, 1 << bits, (n, blocks)).astype(np.float32)
        x = rng.standard_normal((3, k)).astype(np.float32)
        path, back, source = (self.scratch / f for f in ("m.onnx", "back.onnx", "m.c"))
        order = np.arange(k, dtype=np.int32) // block
        for label, raised, zp, groups in (("integers", True, whole, None), ("fractions", False, whole + 0.25, None),
                                          ("in order", True, None, order), ("shuffled", False, None, rng.permutation(order)),
                                          ("both", False, whole - 0.5, rng.permutation(order))):
            stored = {"w": rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8),
                      "s": rng.uniform(0.01, 0.1, (n, blocks)).astype(np.float32), "z": zp, "g": groups,
                      "b": rng.standard_normal(n).astype(np.float32)}
            stored = {i: v for i, v in stored.items() if v is not None}
            node = helper.make_node("MatMulNBits", ["x"] + [i if i in stored else "" for i in "wszgb"], ["y"], "n",
                                    domain="com.microsoft", K=k, N=n, bits=bits, block_size=block)
            graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                                      [helper.make_tensor_value_info("y", TensorProto.FLOAT, (3, n))],
                                      [numpy_helper.from_array(v, i) for i, v in stored.items()])
            model = helper.make_model(graph, ir_version=10, opset_imports=[
                helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)])
            onnx.save(model, path)
            q = np.unpackbits(stored["w"].reshape(n, -1, 1), axis=2, bitorder="little").reshape(n, -1, bits)
            q = (q * (1 << np.arange(bits))).sum(axis=2)[:, :k].astype(np.float64)
            at = order if groups is None else groups
            w = (q - (1 << bits - 1 if zp is None else zp[:, at])) * stored["s"][:, at]
            want = x @ w.T + stored["b"]
            theirs = bits == 4 or (groups is None and zp is None)  # onnxruntime has kernels for
            with self.subTest(label):
                if theirs:
                    self.assertLess(np.max(np.abs(session(model).run(None, {"x": x})[0] - want)), 1e-4)
                got = qxc_outputs(path, {"x": x[None]}, self.scratch)["y"][0]
                self.assertLessEqual(float_excess(got, want), 0)
                self.assertEqual(not raised, "MatMulNBits" in qxc(path, "-form=true").stdout.replace("from(com.microsoft::MatMulNBits", ""))
                qxc(path, "-emit=qop", "-no-sync", "-o", back)
                self.assertEqual(["MatMulNBits"], [o.op_type for o in onnx.load(back).graph.node if o.op_type != "Add"])
                if theirs or bits == 8 and raised:
                    self.assertLess(np.max(np.abs(session(back).run(None, {"x": x})[0] - want)), 1e-4)
                qxc(path, "-emit=c", "-no-sync", "-o", source)

    @for_each("int2, 2, INT2", "uint2 asym, 2, UINT2", "int3, 3, INT4", "uint3, 3, UINT4", "uint3 sym, 3, UINT4")
    def test_two_and_three_bits(self, case):
        """Integers, scales and zero points of each block against the best that a search of numpy finds; 2 bits have a
        type of ONNX, 3 bits use 8 of the integers of 4. C computes what `run` does."""
        name, bits, kind = key(f"{case},")[0], *(part.strip() for part in case.split(",")[1:])
        bits, low = int(bits), 0 if name.startswith("u") else -(1 << int(bits) - 1)
        path, source = self.made("mlp", f"{name} block(32)", "qdq"), self.scratch / "mlp.c"
        model = onnx.load(path)
        floats = {t.name: numpy_helper.to_array(t) for t in onnx.load(self.float_model("mlp")[0]).graph.initializer}
        stored = {t.name: t for t in model.graph.initializer}
        nodes = [n for n in model.graph.node if n.op_type == "DequantizeLinear"]
        self.assertEqual(3, len(nodes))
        for n in nodes:
            w, axis = floats[n.input[0].removesuffix("_quantized")], n.attribute[0].i
            self.assertEqual(kind, TensorProto.DataType.Name(stored[n.input[0]].data_type))
            q, s, z = (numpy_helper.to_array(stored[i]).astype(np.float64) if i in stored else 0 for i in (*n.input, "")[:3])
            self.assertTrue(low <= q.min() and q.max() == low + (1 << bits) - 1, (q.min(), q.max()))
            blocks = [np.take(a, np.arange(w.shape[axis]) // 32, axis) if np.ndim(a) else a for a in (s, z)]
            got = self.missed(np.moveaxis(w, axis, 0), np.moveaxis((q - blocks[1]) * blocks[0], axis, 0))
            np.testing.assert_array_equal(q, np.clip(np.rint(w / blocks[0]) + blocks[1], low, low + (1 << bits) - 1))
            self.assertLess(got, 1.1 * self.best_by_search(np.moveaxis(w, axis, 0), 1 << bits, "sym" in name))
        qxc(path, "-emit=c", "-no-sync", "-o", source)
        arrays = self.float_model("mlp")[1]
        ours = qxc_outputs(path, arrays, self.scratch)["y"]
        (x,), made = arrays.values(), CModel(source)
        np.testing.assert_array_equal(ours.reshape(len(x), -1), np.stack([made.run(row)[0] for row in x]).reshape(len(x), -1))

    @staticmethod
    def missed(w, d):
        """passes/params.h: the squared error of each block of 32, and four times more the part of it that lies along the block."""
        x, e = (a.astype(np.float64).reshape(-1, 32, *a.shape[1:]) for a in (w, w - d))
        return (np.square(e).sum(axis=1) + 4 * np.square((x * e).sum(axis=1)) / np.square(x).sum(axis=1)).sum()

    def best_by_search(self, w, levels, middle):
        """What `missed` gives of rounding each column in blocks of 32: of 60 scales with any zero point the best."""
        lost = 0
        for i in range(0, len(w), 32):
            x, best = w[i:i + 32].astype(np.float64), np.inf
            for f in np.linspace(0.3, 1.2, 60):
                for zp in [levels // 2] if middle else range(levels):
                    s = f * np.abs(x).max(axis=0) * 2 / (levels - 1)
                    e = x - (np.clip(np.rint(x / s) + zp, 0, levels - 1) - zp) * s
                    along = np.square((x * e).sum(axis=0)) / np.square(x).sum(axis=0)
                    best = np.minimum(best, np.square(e).sum(axis=0) + 4 * along)
            lost += best.sum()
        return lost

    def test_stored_integers(self):
        """Per channel, int8: max|w| / 127, rounded half to even."""
        model = onnx.load(self.made("mlp", "int8 sym", "qdq"))
        floats = {t.name: numpy_helper.to_array(t) for t in onnx.load(self.float_model("mlp")[0]).graph.initializer}
        stored = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        nodes = [n for n in model.graph.node if n.op_type == "DequantizeLinear"]
        self.assertEqual(3, len(nodes))
        for n in nodes:
            axis = n.attribute[0].i
            w = floats[n.input[0].removesuffix("_quantized")]
            other = 1 - axis
            scale = (np.abs(w).max(axis=other).astype(np.float64) * 2 / 254).astype(np.float32)
            np.testing.assert_array_equal(scale, stored[n.input[1]])
            q = np.clip(np.rint(w / np.expand_dims(scale, other)), -128, 127).astype(np.int8)
            np.testing.assert_array_equal(q, stored[n.input[0]])

    @for_each("LSTM, int8 sym", "GRU, uint8 asym", "RNN, int4 sym", "GRU, int4 sym block(16)", "Attention, int8 sym")
    def test_weights_without_an_integer_form(self, case):
        """Of recurrent layers, in both directions, and of com.microsoft's Attention; in every form, and back."""
        name, weights = key(case)
        model = attention() if name == "Attention" else recurrent(name)
        path, made = self.scratch / "float.onnx", self.scratch / "stored.onnx"
        onnx.save(model, path)
        arrays = {"x": np.random.default_rng(1).normal(size=(6, 5, 2, 24)).astype(np.float32)}
        want = run_samples(session(path), model, arrays)["y"]
        bits = 4 if "int4" in weights else 8
        for form in ("qdq", "qop"):
            done = qxc(path, "-weight-only", f"-weights={weights}", f"-emit={form}", "-no-sync", "-o", made)
            self.assertIn(f"1 {name} (first: layer): its input is float, its weights alone are integers", done.stderr)
            nodes = [n for n in onnx.load(made).graph.node if n.op_type == "DequantizeLinear"]
            self.assertEqual({"w", "r"} if name != "Attention" else {"w"}, {n.input[0][0] for n in nodes})
            got = self.results(made, arrays)
            self.assertGreater(sqnr(want, got), 6.02 * bits - 12)
            self.assertLessEqual(float_excess(got, qxc_outputs(made, arrays, self.scratch)["y"]), 0)
            again = self.scratch / "again.onnx"
            qxc(made, "-emit=qdq", "-no-sync", "-o", again)
            np.testing.assert_array_equal(got, self.results(again, arrays))

    def test_keep_and_only(self):
        path = self.scratch / "some.onnx"
        qxc(self.float_model("mlp")[0], "-weight-only", "-keep=/fc2*", "-emit=qdq", "-no-sync", "-o", path)
        names = {n.input[0] for n in onnx.load(path).graph.node if n.op_type == "DequantizeLinear"}
        self.assertEqual({"fc1.weight", "fc3.weight"}, names)


if __name__ == "__main__":
    unittest.main()
