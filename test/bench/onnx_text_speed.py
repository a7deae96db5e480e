#!/usr/bin/env python3
"""The speed of onnx's own text format, on the chain of qir_speed.c without the quantization, which
it cannot say: bytes of text per second of processor time."""

import time

import onnx
from onnx import TensorProto, helper

BLOCKS, RUNS = 2000, 3


def model():
    nodes, weights, last = [], [], "input"
    for i in range(BLOCKS):
        conv, relu = f"layers.{i}.conv", f"layers.{i}.relu"
        weights.append(helper.make_tensor(f"layers.{i}.bias", TensorProto.INT32, [4], [3 * i, -7, 17, 4]))
        nodes.append(helper.make_node(
            "Conv", [last, f"layers.{i}.weight", f"layers.{i}.bias"], [conv], name=f"layers.{i}.Conv",
            dilations=[1, 1], group=1, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]))
        nodes.append(helper.make_node("Relu", [conv], [relu], name=f"layers.{i}.Relu"))
        last = relu
    shape = ["N", 64, 56, 56]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("input", last)]
    graph = helper.make_graph(nodes, "main", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def best(call):
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        result = call()
        times.append(time.process_time() - start)
    return min(times), result


proto = model()
took, text = best(lambda: onnx.printer.to_text(proto))
print(f"onnx.printer {len(text) / took / 1e6:6.1f} MB/s  ({len(text) / 1e6:.1f} MB)")
try:
    took, _ = best(lambda: onnx.parser.parse_model(text))
    print(f"onnx.parser  {len(text) / took / 1e6:6.1f} MB/s")
except onnx.parser.ParseError as error:
    print(f"onnx.parser  does not read what onnx.printer wrote: {str(error).splitlines()[0]}")
