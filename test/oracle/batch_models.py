"""Models whose open first dimension counts samples, and models in which it looks as if it did."""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

RNG = np.random.default_rng(7)


class Net:
    """Nodes that are chained: each takes the result before it, or what is said."""

    def __init__(self, *shapes, opset=17):
        self.nodes, self.inits, self.opset, self.count = [], [], opset, 0
        self.inputs = {f"x{i}": shape for i, shape in enumerate(shapes)}
        self.last = "x0"

    def const(self, value, dtype=np.float32):
        self.count += 1
        name = f"c{self.count}"
        self.inits.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def ints(self, *values):
        return self.const(values, np.int64)

    def weights(self, *shape):
        return self.const(np.random.default_rng(self.count).normal(size=shape))

    def op(self, kind, *operands, n_out=1, **attrs):
        self.count += 1
        outs = [f"v{self.count}_{i}" for i in range(n_out)]
        self.nodes.append(helper.make_node(kind, list(operands), outs, **attrs))
        self.last = outs[0]
        return outs[0] if n_out == 1 else outs

    def then(self, kind, *operands, **attrs):
        return self.op(kind, self.last, *operands, **attrs)

    def size(self, of="x0", axis=0):
        return self.op("Gather", self.op("Shape", of), self.const(axis, np.int64))

    def list_of(self, *parts):
        """A shape, of numbers and values."""
        return self.op("Concat", *(self.ints(p) if isinstance(p, int) else self.op("Unsqueeze", p, self.ints(0)) for p in parts),
                       axis=0)

    def model(self, *results):
        results = results or (self.last,)
        kinds = self.types
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info(n, kinds.get(n, T.FLOAT), s) for n, s in self.inputs.items()],
            [helper.make_empty_tensor_value_info(r) for r in results], self.inits)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        return onnx.shape_inference.infer_shapes(made)

    types = {}


def softmax0():
    n = Net(["T", 4])
    n.then("Softmax", axis=0)
    return n


def softmax_old():
    n = Net(["N", 2, 3], opset=11)
    n.then("Softmax", axis=0)
    return n


def attention():
    n = Net(["T", 8])
    q, k, v = (n.op("MatMul", "x0", n.weights(8, 8)) for _ in range(3))
    n.op("Softmax", n.op("MatMul", q, n.op("Transpose", k, perm=[1, 0])), axis=-1)
    n.then("MatMul", v)
    return n


def batched_attention(heads=2):
    """As torch writes it: heads are a part of the batch in between."""
    n = Net(["N", 5, 8])
    size = n.size()

    def split(x):
        x = n.op("Reshape", x, n.list_of(size, 5, heads, 4))
        x = n.op("Transpose", x, perm=[0, 2, 1, 3])
        return n.op("Reshape", x, n.ints(-1, 5, 4))
    q, k, v = (split(n.op("MatMul", "x0", n.weights(8, 8))) for _ in range(3))
    p = n.op("Softmax", n.op("MatMul", q, n.op("Transpose", k, perm=[0, 2, 1])), axis=-1)
    y = n.op("Reshape", n.op("MatMul", p, v), n.list_of(size, heads, 5, 4))
    n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 1, 3]), n.list_of(size, -1, 8))
    return n


def lstm(shape, layout=0, state=None, outputs=1):
    n = Net(shape)
    zeros = n.op("Expand", n.const(np.zeros((1, 1, 4))), n.list_of(1, n.size(axis=1), 4)) if state == "expand" else ""
    out = n.op("LSTM", "x0", n.weights(1, 16, 4), n.weights(1, 16, 4), "", "", zeros, zeros, hidden_size=4, n_out=3)
    n.last = out
    return n


def lstm_time():
    return lstm(["T", 1, 4])


def lstm_batch():
    return lstm([3, "N", 4], state="expand")


def lstm_in_transposes():
    n = Net(["N", 3, 4])
    n.then("Transpose", perm=[1, 0, 2])
    y, _, _ = n.op("LSTM", n.last, n.weights(1, 16, 4), n.weights(1, 16, 4), hidden_size=4, n_out=3)
    n.op("Squeeze", y, n.ints(1))
    n.then("Transpose", perm=[1, 0, 2])
    n.then("Gather", n.const(-1, np.int64), axis=1)
    return n


def reduce_mean0():
    n = Net(["N", 4])
    n.then("ReduceMean", axes=[0], keepdims=1)
    return n


def reduce_mean_all():
    n = Net(["N", 4])
    n.op("Sub", "x0", n.then("ReduceMean", keepdims=0))
    return n


def gather_last():
    n = Net(["T", 4])
    n.then("Gather", n.const(-1, np.int64), axis=0)
    return n


def conv1d():
    n = Net(["T", 1, 3])
    n.then("Transpose", perm=[1, 2, 0])
    n.then("Conv", n.weights(2, 3, 3), pads=[1, 1])
    return n


def cumsum():
    n = Net(["T", 4])
    n.then("CumSum", n.const(0, np.int64))
    return n


def slice0():
    n = Net(["T", 4])
    n.then("Slice", n.ints(0), n.ints(1), n.ints(0))
    return n


def slice_reversed():
    n = Net(["T", 4])
    n.then("Slice", n.ints(-1), n.ints(-100), n.ints(0), n.ints(-1))
    return n


def concat0():
    n = Net(["N", 4])
    n.then("Concat", n.weights(2, 4), axis=0)
    return n


def pad0():
    n = Net(["N", 4])
    n.then("Pad", n.ints(1, 0, 0, 0))
    return n


def argmax0():
    n = Net(["N", 4])
    n.then("ArgMax", axis=0)
    return n


def topk0():
    n = Net(["N", 4])
    n.last = n.op("TopK", "x0", n.ints(1), axis=0, n_out=2)
    return n


def positions():
    """Each row gets its number."""
    n = Net(["N", 4])
    rows = n.op("Range", n.const(0, np.int64), n.size(), n.const(1, np.int64))
    n.op("Add", "x0", n.op("Unsqueeze", n.op("Cast", rows, to=T.FLOAT), n.ints(1)))
    return n


def divided():
    n = Net(["N", 4])
    n.op("Div", "x0", n.op("Cast", n.size(), to=T.FLOAT))
    return n


def gram():
    n = Net(["N", 4])
    n.op("MatMul", "x0", n.op("Transpose", "x0", perm=[1, 0]))
    return n


def gemm_transposed():
    n = Net(["N", 4])
    n.op("Gemm", "x0", n.op("Relu", "x0"), transA=1)
    return n


def reinterpreted():
    n = Net(["N", 4])
    n.op("Reshape", "x0", n.list_of(4, n.size()))
    return n


def merged():
    n = Net(["N", 6])
    n.then("Reshape", n.ints(-1, 3))
    n.then("Softmax", axis=0)
    return n


def squeezed():
    """Without axes, a batch of 1 goes as well."""
    n = Net(["N", 1, 4])
    n.then("Squeeze")
    n.then("Softmax", axis=0)
    return n


def whole_softmax():
    n = Net(["N", 4], opset=11)
    n.then("Softmax", axis=0)
    return n


def einsum_mixed():
    n = Net(["N", 4])
    n.op("Einsum", "x0", "x0", equation="ij,kj->ik")
    return n


def dynamic():
    n = Net(["N", 4])
    q, s, z = n.op("DynamicQuantizeLinear", "x0", n_out=3)
    n.op("DequantizeLinear", q, s, z)
    return n


def shape_alone():
    n = Net(["N", 4])
    n.last = [n.then("Relu"), n.op("Shape", "x0")]
    return n


# ---- samples


def cnn():
    n = Net(["N", 2, 6, 6])
    n.then("Conv", n.weights(4, 2, 3, 3), pads=[1] * 4)
    n.then("BatchNormalization", n.const(np.ones(4)), n.const(np.zeros(4)), n.weights(4), n.const(np.ones(4)))
    n.then("Relu")
    n.then("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    n.then("Flatten")
    n.then("Gemm", n.weights(36, 5), n.weights(5))
    n.then("Softmax", axis=-1)
    return n


def reshaped():
    n = Net(["N", 4, 4])
    n.then("Reshape", n.ints(-1, 16))
    n.then("MatMul", n.weights(16, 3))
    return n


def reshaped_zero():
    n = Net(["N", 4, 4])
    n.then("Reshape", n.ints(0, -1))
    n.then("MatMul", n.weights(16, 3))
    return n


def torch_view():
    n = Net(["N", 4, 4])
    n.op("Reshape", "x0", n.list_of(n.size(), -1))
    n.then("LayerNormalization", n.const(np.ones(16)), n.const(np.zeros(16)))
    return n


def rows_of_rows():
    """The batch is merged with another axis for a while."""
    n = Net(["N", 3, 4])
    n.then("Reshape", n.ints(-1, 4))
    n.then("Gemm", n.weights(4, 5))
    n.then("Softmax", axis=1)
    n.then("Reshape", n.ints(-1, 3, 5))
    return n


def class_token():
    n = Net(["N", 3, 4])
    token = n.op("Expand", n.weights(1, 1, 4), n.list_of(n.size(), 1, 4))
    n.op("Concat", token, "x0", axis=1)
    n.then("Add", n.weights(1, 4, 4))
    n.then("Gather", n.const(0, np.int64), axis=1)
    return n


def depth_to_space():
    n = Net(["N", 4, 2, 2])
    n.then("DepthToSpace", blocksize=2)
    n.op("Resize", n.last, "", n.const([1, 1, 2, 2]), mode="nearest")
    n.then("Pad", n.ints(0, 0, 1, 1, 0, 0, 1, 1))
    n.then("GlobalAveragePool")
    return n


def resized_by_size():
    n = Net(["N", 2, 3, 3])
    n.op("Resize", "x0", "", "", n.list_of(n.size(), 2, 6, 6), mode="linear")
    return n


def last_axis():
    """Results have the samples elsewhere."""
    n = Net(["N", 3, 4])
    n.last = [n.op("Transpose", "x0", perm=[1, 0, 2]), n.op("Transpose", "x0", perm=[2, 1, 0]), n.op("ReduceSum", "x0", n.ints(1))]
    return n


def pairs(n, first, second):
    """Indices [N, 4, 2] of two numbers, each a row or a column that is spread over the other."""
    shape = n.list_of(n.size(), 4)
    parts = [n.op("Unsqueeze", n.op("Expand", part, shape), n.ints(2)) for part in (first, second)]
    return n.op("Concat", *parts, axis=2)


def numbers(n, start=0, step=1):
    """Of the samples, [N, 1]."""
    last = n.op("Add", n.op("Mul", n.size(), n.const(step, np.int64)), n.const(start, np.int64))
    return n.op("Unsqueeze", n.op("Range", n.const(start, np.int64), last, n.const(step, np.int64)), n.ints(1))


def own_rows():
    """Of each sample its own numbers at constant places, as exporters write masks (GatherND)."""
    n = Net(["N", 4])
    n.op("GatherND", "x0", pairs(n, numbers(n), n.ints(2, 0, 3, 3)))
    return n


def own_columns():
    """The samples stand along the second axis."""
    n = Net(["N", 4])
    turned = n.op("Transpose", "x0", perm=[1, 0])
    n.op("GatherND", turned, pairs(n, n.ints(2, 0, 3, 3), numbers(n)))
    return n


def rows_of_all(n, *places, sample=12, first=None):
    """Indices [N, 4] into the rows of all samples, which lie in one axis."""
    begin = n.op("Mul", first or numbers(n), n.const(sample, np.int64))
    return n.op("Reshape", "x0", n.ints(-1)), n.op("Add", begin, n.ints(*places))


def own_elements():
    """A view of memory, as torch's exporter writes it (as_strided)."""
    n = Net(["N", 3, 4])
    n.op("Gather", *rows_of_all(n, 0, 11, 5, 5))
    return n


def neighbours_elements():
    n = Net(["N", 3, 4])
    n.op("Gather", *rows_of_all(n, 0, 11, 5, -1))
    return n


def elements_of_others():
    n = Net(["N", 3, 4])
    n.op("Gather", *rows_of_all(n, 0, 11, 5, 5, first=n.op("Sub", n.op("Sub", n.size(), n.const(1, np.int64)), numbers(n))))
    return n


def half_samples():
    """Six numbers on for each sample of twelve."""
    n = Net(["N", 3, 4])
    n.op("Gather", *rows_of_all(n, 0, 1, 5, 5, sample=6))
    return n


def numbers_cut():
    """From the fourteenth sample on, all take the numbers of that one."""
    n = Net(["N", 4])
    n.op("GatherND", "x0", pairs(n, n.op("Min", numbers(n), n.ints(13)), n.ints(2, 0, 3, 3)))
    return n


def mask_of_few():
    n = Net(["N", 4])
    few = n.op("Cast", n.op("Less", numbers(n), n.ints(13)), to=T.FLOAT)
    n.op("Mul", "x0", few)
    return n


def rows_of_table():
    """Of a table that has the same numbers for twenty samples, and none for more."""
    n = Net(["N", 4])
    first = n.op("Slice", n.const(np.full((20, 4), 0.5)), n.ints(0), n.op("Unsqueeze", n.size(), n.ints(0)), n.ints(0))
    n.op("Add", "x0", first)
    return n


def rows_backwards():
    n = Net(["N", 4])
    back = n.op("Sub", n.op("Sub", n.size(), n.const(1, np.int64)), numbers(n))
    n.op("GatherND", "x0", pairs(n, back, n.ints(2, 0, 3, 3)))
    return n


def rows_moved():
    """The place in a sample depends on its number."""
    n = Net(["N", 4])
    n.op("GatherND", "x0", pairs(n, numbers(n), n.op("Mod", n.op("Add", numbers(n), n.ints(2, 0, 3, 3)), n.const(4, np.int64))))
    return n


def places_by_size():
    """The place in each sample depends on how many there are."""
    n = Net(["N", 4])
    place = n.op("Mod", n.op("Unsqueeze", n.size(), n.ints(0)), n.const(4, np.int64))
    n.op("GatherND", "x0", pairs(n, numbers(n), place))
    return n


def first_row():
    n = Net(["N", 4])
    n.op("GatherND", "x0", pairs(n, n.ints(0), n.ints(2, 0, 3, 3)))
    return n


def masked():
    """A mask that is the same for each sample, of as many as there are."""
    n = Net(["N", 3, 4])
    mask = n.op("Expand", n.const([[True, False, True, True]], np.bool_), n.list_of(n.size(), 3, 4))
    n.op("Where", mask, "x0", n.op("Where", mask, n.const(0.0), n.const(-4.0)))
    return n


MIXED = (softmax0, softmax_old, attention, lstm_time, reduce_mean0, reduce_mean_all, gather_last, conv1d, cumsum, slice0,
         slice_reversed, concat0, pad0, argmax0, topk0, positions, divided, gram, gemm_transposed, reinterpreted, merged, squeezed,
         whole_softmax, einsum_mixed, dynamic, shape_alone, rows_backwards, rows_moved, places_by_size, first_row, neighbours_elements,
         elements_of_others, half_samples)
APART = (cnn, reshaped, reshaped_zero, torch_view, rows_of_rows, class_token, depth_to_space, resized_by_size, last_axis,
         batched_attention, lstm_in_transposes, own_rows, own_columns, own_elements, masked)
BY_NAME = {make.__name__: make for make in MIXED + APART + (lstm_batch, numbers_cut, mask_of_few, rows_of_table)}
