#!/usr/bin/env python3
"""Makes NAME_int8_qdq.onnx of NAME.onnx here, with onnxruntime's quantize_static: int8 activations, int8 weights
per channel, int8 at both ends, one sample at a time. Its results are committed, so that tests judge the same models
whatever the version of onnxruntime.

Usage: build/venv/bin/python test/models/make_integer.py [NAME...]
"""

import logging
import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

HERE = pathlib.Path(__file__).resolve().parent
NAMES = ("cnn", "relu6", "unet")


class Reader(CalibrationDataReader):
    def __init__(self, arrays, name):
        self.rows = ({name: row[None]} for row in arrays[name])

    def get_next(self):
        return next(self.rows, None)


def one_sample(model):
    """The dimension N becomes 1."""
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_value = 1
    return model


def without_ends(model):
    """Integers at both ends: without the first QuantizeLinear and the last DequantizeLinear."""
    graph = model.graph
    first = next(n for n in graph.node if n.op_type == "QuantizeLinear" and n.input[0] == graph.input[0].name)
    last = next(n for n in graph.node if graph.output[0].name in n.output)
    assert last.op_type == "DequantizeLinear", last.op_type
    for node in graph.node:
        for i, name in enumerate(node.input):
            if name == first.output[0]:
                node.input[i] = graph.input[0].name
    maker = next(n for n in graph.node if last.input[0] in n.output)
    maker.output[list(maker.output).index(last.input[0])] = last.output[0]
    for value in (graph.input[0], graph.output[0]):
        value.type.tensor_type.elem_type = onnx.TensorProto.INT8
    for node in (first, last):
        graph.node.remove(node)
    del graph.value_info[:]
    used = {i for n in graph.node for i in n.input}
    for tensor in [t for t in graph.initializer if t.name not in used]:
        graph.initializer.remove(tensor)
    return model


def make(name, folder):
    source, prepared, made = (folder / f"{name}_{kind}.onnx" for kind in ("one", "prepared", "made"))
    onnx.save(one_sample(onnx.load(HERE / f"{name}.onnx")), source)
    quant_pre_process(source, prepared, skip_symbolic_shape=True)
    with np.load(HERE / f"{name}.calib.npz") as arrays:
        quantize_static(prepared, made, Reader(arrays, onnx.load(source).graph.input[0].name),
                        quant_format=QuantFormat.QDQ, per_channel=True, activation_type=QuantType.QInt8,
                        weight_type=QuantType.QInt8)
    model = without_ends(onnx.load(made))
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, HERE / f"{name}_int8_qdq.onnx")


def main():
    logging.getLogger().setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or NAMES:
            make(name, pathlib.Path(folder))


if __name__ == "__main__":
    main()
