"""ONNX's integer operators where nobody made types of them: MatMulInteger and ConvInteger whose int32 sums are
read by other operators or leave the graph, DynamicQuantizeLinear without a product. `qxc run`, emitted C and every form
that is written back give onnxruntime's numbers, bit for bit."""

import unittest

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

from cmodel import CModel
from common import OracleCase, for_each, qxc, qxc_outputs, session

RNG = np.random.default_rng(0)


def u8(*shape):
    return RNG.integers(0, 256, shape, np.uint8)


def s8(*shape):
    return RNG.integers(-128, 128, shape, np.int8)


def f32(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def node(op, inputs, *outputs, **attributes):
    return helper.make_node(op, inputs.split(","), list(outputs), **attributes)


def conv(inputs, *outputs, **attributes):
    return node("ConvInteger", inputs, *outputs, **attributes)


def to_float(ints, scale, y):
    return [node("Cast", ints, "real", to=T.FLOAT), node("Mul", f"real,{scale}", y)]


# nodes, inputs, constants, outputs
CASES = {
    "sums leave the graph": (
        [node("MatMulInteger", "x,w", "y")], {"x": u8(2, 8)}, {"w": s8(8, 5)}, "y"),
    "zero points, a column each": (
        [node("MatMulInteger", "x,w,xz,wz", "y")], {"x": u8(2, 8)},
        {"w": s8(8, 5), "xz": np.uint8(7), "wz": s8(5)}, "y"),
    "computed weights and zero points": (
        [node("MatMulInteger", "x,w,xz,wz", "y")],
        {"x": u8(2, 8), "w": s8(8, 5), "xz": np.array(200, np.uint8), "wz": s8(5)}, {}, "y"),
    "Add of int32": (
        [node("MatMulInteger", "x,w,xz", "p"), node("Add", "p,b", "y")], {"x": u8(2, 8)},
        {"w": s8(8, 5), "xz": np.uint8(255), "b": np.arange(5, dtype=np.int32)}, "y"),
    "Cast alone": (
        [node("MatMulInteger", "x,w,xz", "p"), node("Cast", "p", "y", to=T.FLOAT)], {"x": u8(2, 8)},
        {"w": s8(8, 5), "xz": np.uint8(1)}, "y"),
    "sums also leave the graph": (
        [node("MatMulInteger", "x,w,xz", "p"), *to_float("p", "k", "y")], {"x": u8(2, 8)},
        {"w": s8(8, 5), "xz": np.uint8(1), "k": np.float32(0.0123)}, "p y"),
    "a batch of matrices": (
        [node("MatMulInteger", "x,w,xz,wz", "y")], {"x": s8(2, 3, 5)},
        {"w": u8(2, 5, 4), "xz": np.int8(-3), "wz": u8(2, 1, 4)}, "y"),
    "a vector": (
        [node("MatMulInteger", "x,w", "y")], {"x": s8(5)}, {"w": u8(2, 5, 4)}, "y"),
    "sums that wrap": (
        [node("MatMulInteger", "x,w", "y")], {"x": np.full((2, 40000), 255, np.uint8)},
        {"w": np.full((40000, 2), 255, np.uint8)}, "y"),
    "static, by scales that are no products": (
        [node("QuantizeLinear", "x,s,z", "q"), node("MatMulInteger", "q,w,z", "p"), *to_float("p", "k", "y")],
        {"x": f32(2, 8)}, {"w": s8(8, 4), "s": np.float32(0.02), "z": np.uint8(117), "k": f32(4)}, "y"),
    "two products added": (
        [node("QuantizeLinear", "x,s,z", "q"), node("MatMulInteger", "q,w,z", "p"),
         node("MatMulInteger", "q,v,z", "r"), node("Add", "p,r", "t"), *to_float("t", "k", "y")],
        {"x": f32(2, 8)},
        {"w": s8(8, 4), "v": s8(8, 4), "s": np.float32(0.02), "z": np.uint8(117), "k": f32(4)}, "y"),
    "convolution": (
        [conv("x,w", "y", pads=[1, 1, 1, 1])], {"x": u8(1, 3, 6, 6)}, {"w": s8(4, 3, 3, 3)}, "y"),
    "convolution in groups": (
        [conv("x,w,xz,wz", "y", group=2, strides=[2, 1], dilations=[1, 2], pads=[1, 0, 0, 2])],
        {"x": u8(2, 2, 7, 6)}, {"w": u8(4, 1, 3, 2), "xz": np.uint8(200), "wz": np.uint8(100)}, "y"),
    "convolution of rows": (
        [conv("x,w,xz", "y", auto_pad="SAME_UPPER")], {"x": u8(2, 2, 7)},
        {"w": u8(4, 2, 3), "xz": np.uint8(200)}, "y"),
    "static convolution": (
        [node("QuantizeLinear", "x,s,z", "q"), conv("q,w,z,wz", "p", pads=[1, 1, 1, 1]), *to_float("p", "k", "y")],
        {"x": f32(1, 3, 6, 6)},
        {"w": s8(4, 3, 3, 3), "s": np.float32(0.02), "z": np.uint8(120), "wz": np.int8(3), "k": np.float32(0.01)},
        "y"),
    "static convolution, bias, a scale each": (
        [node("QuantizeLinear", "x,s,z", "q"), conv("q,w,z", "p"), node("Add", "p,b", "pb"), *to_float("pb", "k", "y")],
        {"x": f32(1, 3, 6, 6)},
        {"w": s8(4, 3, 3, 3), "s": np.float32(0.02), "z": np.uint8(120), "k": f32(4, 1, 1),
         "b": np.arange(-200, 200, 100, dtype=np.int32).reshape(1, 4, 1, 1)}, "y"),
    "integers with their parameters": (
        [node("DynamicQuantizeLinear", "x", "q", "s", "z")], {"x": f32(2, 8)}, {}, "q s z"),
    "integers of zeros": (
        [node("DynamicQuantizeLinear", "x", "q", "s", "z")], {"x": np.zeros((2, 8), np.float32)}, {}, "q s z"),
    "integers alone": (
        [node("DynamicQuantizeLinear", "x", "q", "s", "z")], {"x": f32(2, 8)}, {}, "q"),
    "integers into Gather": (
        [node("DynamicQuantizeLinear", "x", "q", "s", "z"), node("Gather", "q,i", "y")], {"x": f32(2, 8)},
        {"i": np.array([1, 0, 1])}, "y s z"),
    "to integers and back": (
        [node("DynamicQuantizeLinear", "x", "q", "s", "z"), node("Reshape", "q,i", "r"),
         node("DequantizeLinear", "r,s,z", "y")], {"x": f32(2, 8)}, {"i": np.array([4, 4])}, "y"),
    "a product of what was moved": (
        [node("DynamicQuantizeLinear", "x", "q", "s", "z"), node("Reshape", "q,i", "r"),
         node("MatMulInteger", "r,w,z", "p"), node("Mul", "s,ws", "k"), *to_float("p", "k", "y")],
        {"x": f32(2, 8)}, {"i": np.array([4, 4]), "w": s8(4, 3), "ws": np.float32(0.01)}, "y"),
    "both factors as they come": (
        [node("DynamicQuantizeLinear", "x", "q", "s", "z"), node("DynamicQuantizeLinear", "w", "wq", "ws", "wz"),
         node("MatMulInteger", "q,wq,z,wz", "p"), node("Mul", "s,ws", "k"), *to_float("p", "k", "y")],
        {"x": f32(2, 8), "w": f32(8, 3)}, {}, "y"),
}


def info(name, array):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def build(nodes, inputs, constants, outputs):
    graph = helper.make_graph(
        nodes, "g", [info(k, v) for k, v in inputs.items()], [onnx.ValueInfoProto(name=o) for o in outputs.split()],
        [numpy_helper.from_array(v, k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    want = dict(zip(outputs.split(), session(model).run(outputs.split(), inputs)))
    del model.graph.output[:]
    model.graph.output.extend(info(o, want[o]) for o in outputs.split())
    onnx.checker.check_model(model, full_check=True)
    return model, want


class IntegerOps(OracleCase):
    @for_each(*CASES)
    def test_same(self, name):
        nodes, inputs, constants, outputs = CASES[name]
        model, want = build(nodes, inputs, constants, outputs)
        path = self.scratch / "m.onnx"
        onnx.save(model, path)
        samples = {k: v if v.shape[:1] == (1,) else v[None] for k, v in inputs.items()}
        got = qxc_outputs(path, samples, self.scratch)
        for key, value in want.items():
            self.assertEqual(got[key].dtype, value.dtype)
            np.testing.assert_array_equal(got[key].reshape(value.shape), value, key)
        qxc(path, "-emit=c", "-no-sync", "-o", self.scratch / "m.c")
        ran = CModel(self.scratch / "m.c").run(*inputs.values())
        for have, value in zip(ran, want.values(), strict=True):
            np.testing.assert_array_equal(have.reshape(value.shape), value)
        for emit in ("onnx", "qdq", "qop"):
            back = self.scratch / f"{emit}.onnx"
            qxc(path, f"-emit={emit}", "-no-sync", "-o", back)
            onnx.checker.check_model(str(back), full_check=True)
            for key, value in zip(want, session(back).run(list(want), inputs)):
                np.testing.assert_array_equal(value, want[key], f"{emit} {key}")


if __name__ == "__main__":
    unittest.main()
