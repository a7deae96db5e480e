"""A TensorFlow Lite model from a QDQ ONNX model: for comparing speed with LiteRT, not for more.

Takes what the benchmark's convolutional networks hold: int8 activations, symmetric int8 weights, one
input and one output, both float. Four-dimensional values lie with channels last, so that a Transpose
which brings pictures into the order of ONNX disappears. Raises Unsupported for anything else.
"""

import dataclasses

import flatbuffers
import numpy as np
import onnx
from ai_edge_litert import schema_py_generated as fb
from onnx import numpy_helper

NONE, RELU, RELU6 = 0, 1, 3
SAME, VALID = 0, 1
TYPES = {np.dtype(np.float32): fb.TensorType.FLOAT32, np.dtype(np.int8): fb.TensorType.INT8,
         np.dtype(np.int32): fb.TensorType.INT32}


class Unsupported(Exception):
    pass


@dataclasses.dataclass
class Const:
    """A constant of the ONNX model: its integers, or floats where scale is None."""
    data: np.ndarray
    scale: np.ndarray = None
    zero: int = 0


@dataclasses.dataclass
class Tensor:
    """A runtime value: its number in the result, its shape there, scale and zero point."""
    index: int
    shape: tuple
    scale: float = 0.0
    zero: int = 0


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


class Converter:
    def __init__(self, model):
        model = onnx.shape_inference.infer_shapes(model)
        graph = self.graph = model.graph
        self.const = {t.name: Const(numpy_helper.to_array(t)) for t in graph.initializer}
        self.tensors, self.buffers, self.operators, self.codes = [], [fb.BufferT()], [], {}
        self.value = {}    # by name: Tensor
        self.pending = {}  # by name: (node, activation), written when its grid is known
        self.shapes = {v.name: tuple(d.dim_value or 1 for d in v.type.tensor_type.shape.dim)
                       for v in (*graph.value_info, *graph.input, *graph.output)}
        self.inputs = []

    # ---- writing

    def tensor(self, shape, dtype, scale=None, zero=0, axis=0, data=None):
        t = fb.TensorT()
        t.shape, t.type, t.name = np.array(shape, np.int32), TYPES[np.dtype(dtype)], f"t{len(self.tensors)}"
        if scale is not None:
            t.quantization = fb.QuantizationParametersT()
            t.quantization.scale = np.atleast_1d(scale).astype(np.float32)
            t.quantization.zeroPoint = np.broadcast_to(zero, t.quantization.scale.shape).astype(np.int64)
            t.quantization.quantizedDimension = axis
        if data is not None:
            buffer = fb.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(data, dtype).tobytes(), np.uint8)
            t.buffer = len(self.buffers)
            self.buffers.append(buffer)
        self.tensors.append(t)
        return len(self.tensors) - 1

    def operator(self, name, inputs, outputs, options=None, kind=None, version=1):
        o = fb.OperatorT()
        key = (getattr(fb.BuiltinOperator, name), version)
        o.opcodeIndex = self.codes.setdefault(key, len(self.codes))
        o.inputs, o.outputs = np.array(inputs, np.int32), np.array(outputs, np.int32)
        if options:
            o.builtinOptions = options
            o.builtinOptionsType = getattr(fb.BuiltinOptions, kind)
        self.operators.append(o)

    def options(self, kind, **fields):
        made = getattr(fb, f"{kind}T")()
        for name, value in fields.items():
            setattr(made, name, value)
        return {"options": made, "kind": kind}

    def quantized(self, shape, scale, zero):
        return Tensor(self.tensor(shape, np.int8, scale, zero), tuple(shape), float(scale), int(zero))

    # ---- reading

    def stored(self, name):
        shape = self.shapes[name]
        return shape if len(shape) != 4 else (shape[0], *shape[2:], shape[1])

    def grid(self, node):
        scale, zero = self.const[node.input[1]].data, self.const[node.input[2]].data
        return scale, zero

    def activation(self, node, x):
        """Of Relu, or Clip from 0: what a fused one says; the grid cuts what lies above."""
        if node.op_type == "Relu":
            return RELU
        bounds = [self.const[i].data.item() for i in node.input[1:] if i in self.const]
        return RELU6 if bounds == [0, 6] else None

    def read(self, node):
        op, out = node.op_type, node.output[0]
        if op == "DequantizeLinear" and node.input[0] in self.const:
            scale, zero = self.grid(node)
            if np.any(zero):
                raise Unsupported("weights with a zero point")
            self.const[out] = Const(self.const[node.input[0]].data, scale)
        elif op == "DequantizeLinear":
            if node.input[0] not in self.value:
                raise Unsupported("integers between operators")
            self.value[out] = self.value[node.input[0]]
        elif op == "QuantizeLinear":
            self.quantize(node.input[0], out, *self.grid(node))
        elif op in ("Relu", "Clip") and node.input[0] in self.pending:
            producer, _ = self.pending.pop(node.input[0])
            activation = self.activation(node, producer)
            if activation is None:
                raise Unsupported("a Clip to other bounds")
            self.pending[out] = (producer, activation)
            self.shapes[producer.output[0]] = self.shapes[out]
        else:
            self.pending[out] = (node, NONE)

    def quantize(self, x, out, scale, zero):
        if zero.dtype != np.int8 or scale.ndim:
            raise Unsupported(f"activations of {zero.dtype}")
        scale, zero = float(scale), int(zero)
        if x in self.pending:
            node, activation = self.pending.pop(x)
            write = getattr(self, f"write_{node.op_type}", None)
            if not write:
                raise Unsupported(node.op_type)
            self.value[out] = write(node, activation, scale, zero)
        elif x in self.shapes and x not in self.value:  # the graph's input
            first = [n for n in self.graph.node if n.op_type == "Transpose"]
            moved = bool(first) and len(self.shapes[x]) == 4
            shape = self.shapes[x] if moved else self.stored(x)
            real = self.tensor(shape, np.float32)
            self.inputs.append(real)
            self.value[out] = self.quantized(shape, scale, zero)
            self.operator("QUANTIZE", [real], [self.value[out].index])
        else:
            self.value[out] = self.requantized(self.value[x], scale, zero)

    def requantized(self, x, scale, zero):
        if (x.scale, x.zero) == (scale, zero):
            return x
        y = self.quantized(x.shape, scale, zero)
        self.operator("QUANTIZE", [x.index], [y.index], version=2)
        return y

    def bias(self, node, x, scale, count):
        c = self.const.get(node.input[2]) if len(node.input) > 2 else None
        data = np.zeros(count, np.int32) if c is None else c.data
        if data.dtype != np.int32:
            raise Unsupported("a float bias")
        return self.tensor([count], np.int32, np.float32(x.scale) * np.broadcast_to(scale, count), 0, 0, data)

    def padded(self, node, x, kernel):
        """(x or a padded copy, padding, strides, dilations)"""
        a = attributes(node)
        stride, dilation = a.get("strides", [1, 1]), a.get("dilations", [1, 1])
        pads, size = a.get("pads", [0] * 4), x.shape[1:3]
        if a.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID") or len(kernel) != 2:
            raise Unsupported("auto_pad")
        same = []
        for n, k, s, d in zip(size, kernel, stride, dilation):
            total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
            same.append((total // 2, total - total // 2))
        if not any(pads):
            return x, VALID, stride, dilation
        if tuple(pads) == (same[0][0], same[1][0], same[0][1], same[1][1]) and not a.get("ceil_mode"):
            return x, SAME, stride, dilation
        table = self.tensor([4, 2], np.int32, data=[(0, 0), (pads[0], pads[2]), (pads[1], pads[3]), (0, 0)])
        shape = (x.shape[0], size[0] + pads[0] + pads[2], size[1] + pads[1] + pads[3], x.shape[3])
        y = self.quantized(shape, x.scale, x.zero)
        self.operator("PAD", [x.index, table], [y.index], **self.options("PadOptions"), version=2)
        return y, VALID, stride, dilation

    # ---- operators: each returns its result

    def write_Conv(self, node, activation, scale, zero):
        x, w = self.value[node.input[0]], self.const[node.input[1]]
        group, (oc, icg, *kernel) = attributes(node).get("group", 1), w.data.shape
        x, padding, (sh, sw), (dh, dw) = self.padded(node, x, kernel)
        y = self.quantized(self.stored(node.output[0]), scale, zero)
        depthwise = group > 1 and icg == 1 and oc == group
        if group > 1 and not depthwise:
            raise Unsupported("Conv in groups")
        data = w.data.transpose((1, 2, 3, 0) if depthwise else (0, 2, 3, 1))
        weights = self.tensor(data.shape, np.int8, w.scale, 0, 3 if depthwise else 0, data)
        fields = {"padding": padding, "strideH": sh, "strideW": sw, "dilationHFactor": dh,
                  "dilationWFactor": dw, "fusedActivationFunction": activation}
        operands = [x.index, weights, self.bias(node, x, w.scale, oc)]
        if depthwise:
            made = self.options("DepthwiseConv2DOptions", depthMultiplier=1, **fields)
            self.operator("DEPTHWISE_CONV_2D", operands, [y.index], **made, version=3)
        else:
            self.operator("CONV_2D", operands, [y.index], **self.options("Conv2DOptions", **fields), version=3)
        return y

    def write_Gemm(self, node, activation, scale, zero):
        a, x, w = attributes(node), self.value[node.input[0]], self.const[node.input[1]]
        data = w.data if a.get("transB") else w.data.T
        y = self.quantized(self.shapes[node.output[0]], scale, zero)
        weights = self.tensor(data.shape, np.int8, w.scale, 0, 0, data)
        self.operator("FULLY_CONNECTED", [x.index, weights, self.bias(node, x, w.scale, len(data))], [y.index],
                      **self.options("FullyConnectedOptions", fusedActivationFunction=activation), version=5)
        return y

    def write_Add(self, node, activation, scale, zero):
        y = self.quantized(self.stored(node.output[0]), scale, zero)
        self.operator("ADD", [self.value[i].index for i in node.input], [y.index],
                      **self.options("AddOptions", fusedActivationFunction=activation), version=2)
        return y

    def write_Concat(self, node, activation, scale, zero):
        if attributes(node)["axis"] != 1:
            raise Unsupported("Concat of other axes")
        parts = [self.requantized(self.value[i], scale, zero).index for i in node.input]
        y = self.quantized(self.stored(node.output[0]), scale, zero)
        self.operator("CONCATENATION", parts, [y.index],
                      **self.options("ConcatenationOptions", axis=3, fusedActivationFunction=NONE), version=2)
        return y

    def pool(self, node, code, scale, zero):
        kernel = attributes(node)["kernel_shape"]
        x, padding, (sh, sw), _ = self.padded(node, self.value[node.input[0]], kernel)
        y = self.quantized(self.stored(node.output[0]), x.scale, x.zero)
        self.operator(code, [x.index], [y.index], **self.options(
            "Pool2DOptions", padding=padding, strideH=sh, strideW=sw, filterHeight=kernel[0],
            filterWidth=kernel[1], fusedActivationFunction=NONE), version=2)
        return self.requantized(y, scale, zero)

    def write_MaxPool(self, node, activation, scale, zero):
        if any(attributes(node).get("pads", [0])) or attributes(node).get("ceil_mode"):
            return self.border(node, scale, zero)
        return self.pool(node, "MAX_POOL_2D", scale, zero)

    def border(self, node, scale, zero):
        """Padding with zeros is that of maxima where nothing is below zero."""
        x = self.value[node.input[0]]
        if x.zero != -128 or attributes(node).get("ceil_mode"):
            raise Unsupported("MaxPool with this padding")
        return self.pool(node, "MAX_POOL_2D", scale, zero)

    def write_AveragePool(self, node, activation, scale, zero):
        x = self.value[node.input[0]]
        if tuple(attributes(node)["kernel_shape"]) == x.shape[1:3]:
            return self.write_GlobalAveragePool(node, activation, scale, zero)
        return self.pool(node, "AVERAGE_POOL_2D", scale, zero)

    def write_GlobalAveragePool(self, node, activation, scale, zero):
        x = self.value[node.input[0]]
        y = self.quantized((x.shape[0], 1, 1, x.shape[3]), scale, zero)
        axes = self.tensor([2], np.int32, data=[1, 2])
        self.operator("MEAN", [x.index, axes], [y.index], **self.options("ReducerOptions", keepDims=True), version=2)
        return y

    def write_Reshape(self, node, activation, scale, zero):
        x, shape = self.value[node.input[0]], self.shapes[node.output[0]]
        if len(shape) != 2 or (len(x.shape) == 4 and x.shape[1:3] != (1, 1)):
            raise Unsupported("Reshape of planes")
        y = self.quantized(shape, x.scale, x.zero)
        self.operator("RESHAPE", [x.index, self.tensor([2], np.int32, data=shape)], [y.index],
                      **self.options("ReshapeOptions", newShape=list(shape)))
        return self.requantized(y, scale, zero)

    write_Flatten = write_Reshape

    def write_Transpose(self, node, activation, scale, zero):
        if attributes(node)["perm"] != [0, 3, 1, 2]:
            raise Unsupported("Transpose")
        return self.requantized(self.value[node.input[0]], scale, zero)

    def softmax(self, node):
        """In float, as grids of results differ."""
        x = self.real(self.value[node.input[0]])
        y = self.tensor(self.shapes[node.output[0]], np.float32)
        self.operator("SOFTMAX", [x], [y], **self.options("SoftmaxOptions", beta=1.0))
        return y

    def write_Softmax(self, node, activation, scale, zero):
        y = self.quantized(self.shapes[node.output[0]], scale, zero)
        self.operator("QUANTIZE", [self.softmax(node)], [y.index])
        return y

    def real(self, x):
        y = self.tensor(x.shape, np.float32)
        self.operator("DEQUANTIZE", [x.index], [y], version=2)
        return y

    # ---- the whole

    def output(self, name):
        if name in self.value:
            return self.real(self.value[name])
        node, _ = self.pending[name]
        if node.op_type != "Softmax":
            raise Unsupported(f"{node.op_type} with a float result")
        return self.softmax(node)

    def convert(self):
        for node in self.graph.node:
            self.read(node)
        graph, model = fb.SubGraphT(), fb.ModelT()
        graph.outputs = np.array([self.output(o.name) for o in self.graph.output], np.int32)
        graph.inputs = np.array(self.inputs, np.int32)
        graph.tensors, graph.operators = self.tensors, self.operators
        model.version, model.subgraphs, model.buffers, model.operatorCodes = 3, [graph], self.buffers, []
        for builtin, version in self.codes:
            code = fb.OperatorCodeT()
            code.builtinCode, code.deprecatedBuiltinCode, code.version = builtin, min(builtin, 127), version
            model.operatorCodes.append(code)
        builder = flatbuffers.Builder(1 << 20)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def convert(model):
    return Converter(model).convert()
