"""Models as onnxruntime saves them behind its optimizer, with com.microsoft's operators: channels last, fused with an
activation, tables in blocks."""

import unittest

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

from cmodel import CModel
from common import DIGITS, OracleCase, for_each, qxc, qxc_outputs, session

MS = "com.microsoft"
RNG = np.random.default_rng(0)
X = ["x", "xs", "xz"]
PARAMETERS = {"xs": np.float32(0.04), "xz": np.uint8(120), "ys": np.float32(0.1), "yz": np.uint8(110)}
WEIGHTS = {"w": RNG.integers(-128, 128, (4, 5, 3, 2), np.int8), "ws": np.float32(0.01), "wz": np.int8(0)}
CONV = [*X, "w", "ws", "wz", "ys", "yz"]
WINDOW = {"pads": [1, 0, 0, 1], "strides": [2, 1]}
CASES = {
    "QLinearConv": (CONV, {"channels_last": 1, **WINDOW}, (1, 8, 7, 5)),
    "QLinearConv, channels first": (CONV, WINDOW, (1, 5, 8, 7)),
    "QLinearConv, a row": ([*X, "v", "ws", "wz", "ys", "yz"], {"channels_last": 1}, (2, 7, 5)),
    "QLinearAveragePool": ([*X, "ys", "yz"], {"channels_last": 1, "kernel_shape": [2, 2]}, (1, 8, 7, 5)),
    "QLinearGlobalAveragePool": ([*X, "ys", "yz"], {"channels_last": 1}, (1, 8, 7, 5)),
    "NhwcMaxPool": (["x"], {"kernel_shape": [2, 3], **WINDOW}, (1, 8, 7, 5)),
}


class Saved(OracleCase):
    def same(self, path, x, want, step):
        """qxc run, C, and what is written back, in all forms, with and without optimizations."""
        samples = {"x": x if x.shape[0] == 1 else x[None]}
        self.near(qxc_outputs(path, samples, self.scratch)["y"], want, step)
        qxc(path, "-emit=c", "-no-sync", "-o", self.scratch / "m.c")
        self.near(CModel(self.scratch / "m.c").run(x)[0], want, step)
        for form in ("qdq", "qop"):
            back = self.scratch / f"{form}.onnx"
            qxc(path, f"-emit={form}", "-no-sync", "-o", back)
            nodes = onnx.load(back).graph.node
            self.assertFalse([n.op_type for n in nodes if n.op_type == "NhwcMaxPool" or
                              any(a.name == "channels_last" and a.i for a in n.attribute)])
            for optimize in (False, True):
                got = session(back, optimize).run(None, {"x": x})[0]
                self.near(got, want, max(step, int(form == "qdq")))

    def near(self, have, want, step):
        np.testing.assert_allclose(have.reshape(want.shape).astype(float), want.astype(float), rtol=0, atol=step)

    @for_each(*CASES)
    def test_operator(self, name):
        operands, attributes, shape = CASES[name]
        constants = {**PARAMETERS, **WEIGHTS, "v": WEIGHTS["w"][:, :, :, 0].copy()}
        node = helper.make_node(name.split(",")[0], operands, ["y"], "n", domain=MS, **attributes)
        x = RNG.integers(0, 256, shape, np.uint8)
        graph = helper.make_graph(
            [node], "g", [helper.make_tensor_value_info("x", T.UINT8, shape)], [onnx.ValueInfoProto(name="y")],
            [numpy_helper.from_array(constants[o], o) for o in operands[1:]])
        model = helper.make_model(graph, ir_version=8,
                                  opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)])
        want = session(model).run(None, {"x": x})[0]
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", T.UINT8, want.shape))
        onnx.save(model, self.scratch / "op.onnx")
        self.same(self.scratch / "op.onnx", x, want, int("Average" in name))

    @for_each("Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Clip", "")
    def test_fused_with_an_activation(self, name):
        """Conv, perhaps with a sum in between, and Gemm, in float."""
        params = {"LeakyRelu": [0.1], "HardSigmoid": [0.3, 0.6], "Clip": [-0.5, 0.75]}.get(name, [])
        attributes = {"activation": name} if name else {}
        listed = {"activation_params": params} if params else {}
        each = dict(zip(("activation_alpha", "activation_beta"), params))
        x = RNG.normal(size=(2, 5, 6, 4)).astype(np.float32)
        f32 = {k: RNG.normal(size=s).astype(np.float32) for k, s in
               (("w", (4, 5, 3, 2)), ("b", 4), ("z", (2, 4, 4, 3)), ("v", (120, 3)))}
        cases = [("FusedConv", ["x", "w", "b", "z"], listed), ("FusedConv", ["x", "w", "", "z"], listed),
                 ("FusedConv", ["x", "w", "b"], listed), ("FusedConv", ["x", "w"], listed)]
        if name not in ("Clip", ""):
            cases.append(("FusedGemm", ["flat", "v"], each))
        for op, operands, more in cases:
            with self.subTest(op=op, operands=operands):
                nodes = [helper.make_node(op, operands, ["y"], "n", domain=MS, **attributes, **more)]
                if op == "FusedGemm":
                    nodes.insert(0, helper.make_node("Flatten", ["x"], ["flat"]))
                graph = helper.make_graph(
                    nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, x.shape)],
                    [onnx.ValueInfoProto(name="y")],
                    [numpy_helper.from_array(f32[o], o) for o in operands[1:] if o])
                model = helper.make_model(graph, ir_version=8,
                                          opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)])
                want = session(model).run(None, {"x": x})[0]
                model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", T.FLOAT, want.shape))
                path, made = self.scratch / "fused.onnx", self.scratch / "made.onnx"
                onnx.save(model, path)
                got = qxc_outputs(path, {"x": x[None]}, self.scratch)["y"].reshape(want.shape)
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
                qxc(path, "-passes=unfuse", "-emit=onnx", "-no-sync", "-o", made)
                self.assertNotIn(op, [n.op_type for n in onnx.load(made).graph.node])
                np.testing.assert_allclose(session(made).run(None, {"x": x})[0], want, rtol=1e-5, atol=1e-5)
                np.savez(self.scratch / "x.npz", x=x[None])
                done = qxc(path, f"-calib={self.scratch / 'x.npz'}", "-emit=qdq", "-no-sync", "-o", made)
                self.assertNotIn(op, done.stderr)

    @for_each("int4", "uint4", "uint8 of 8 bits", "uint8 of 4 bits", "uint8 of 2 bits")
    def test_table_in_blocks(self, name):
        """GatherBlockQuantized, with zero points and without."""
        kind, bits = name.split()[0], int(name.split()[2]) if " " in name else 4
        element = {"int4": T.INT4, "uint4": T.UINT4, "uint8": T.UINT8}[kind]
        in_one = 8 // bits if kind == "uint8" else 1
        low, high = (-8, 8) if kind == "int4" else (0, 256 if kind == "uint8" else 16)
        tensor = lambda n, rows, columns: helper.make_tensor(  # columns: numbers, not bytes
            n, element, [rows, -(-columns // in_one)], RNG.integers(low, high, rows * -(-columns // in_one)).tolist())
        x = np.array([[1, 3], [-1, 0]], np.int64)
        for operands in (["w", "x", "s"], ["w", "x", "s", "z"]):
            with self.subTest(operands=operands):
                attributes = {"bits": bits} if kind == "uint8" else {}
                node = helper.make_node("GatherBlockQuantized", operands, ["y"], "n", domain=MS, block_size=16,
                                        gather_axis=0, quantize_axis=1, **attributes)
                scales = RNG.uniform(0.01, 0.1, (6, 3)).astype(np.float32)
                inits = [tensor("w", 6, 40), numpy_helper.from_array(scales, "s"), tensor("z", 6, 3)]
                graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", T.INT64, x.shape)],
                                          [helper.make_tensor_value_info("y", T.FLOAT, (2, 2, 40))],
                                          inits[:len(operands) - 1])
                model = helper.make_model(graph, ir_version=10,
                                          opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)])
                want = session(model).run(None, {"x": x})[0]
                path, back = self.scratch / "table.onnx", self.scratch / "back.onnx"
                onnx.save(model, path)
                np.testing.assert_array_equal(qxc_outputs(path, {"x": x[None]}, self.scratch)["y"][0], want)
                if bits == 2:
                    continue  # onnxruntime has no DequantizeLinear of 2 bits
                qxc(path, "-emit=qdq", "-no-sync", "-o", back)
                np.testing.assert_array_equal(session(back).run(None, {"x": x})[0], want)
                qxc(path, "-emit=qop", "-no-sync", "-o", back)
                self.assertEqual(["GatherBlockQuantized"], [n.op_type for n in onnx.load(back).graph.node])
                np.testing.assert_array_equal(session(back).run(None, {"x": x})[0], want)

    def test_network(self):
        """Nothing says what type the values in between have."""
        quantized, saved = self.scratch / "q.onnx", self.scratch / "saved.onnx"
        data = DIGITS / "calib.npz"
        qxc(DIGITS / "digits.onnx", f"-calib={data}", "-emit=qdq", "-input-names=x", "-output-names=y", "-no-sync",
            "-o", quantized)
        x = np.load(data)["image"][:1].reshape(1, 1, 8, 8)
        want = session(quantized, optimize=True, save=saved).run(None, {"x": x})[0]
        self.assertIn("NhwcMaxPool", [n.op_type for n in onnx.load(saved).graph.node])
        np.testing.assert_array_equal(qxc_outputs(saved, {"x": x}, self.scratch)["y"].reshape(want.shape), want)
        for form in ("qdq", "qop"):
            back = self.scratch / "back.onnx"
            qxc(saved, f"-emit={form}", "-no-sync", "-o", back)
            np.testing.assert_array_equal(session(back, optimize=True).run(None, {"x": x})[0], want)


if __name__ == "__main__":
    unittest.main()
