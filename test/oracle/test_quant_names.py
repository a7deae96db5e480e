"""Raising and lowering a quantized model loses nothing: QDQ -> quantized types -> QDQ gives back the
names, the order, the sharing and the layout of every Q, DQ, scale and zero point.

Every model here takes two ways back: through the .qir text, and in one process. What remains
different is listed in docs/ir.md under "How ONNX spelled it"; nothing else may.
"""

import itertools
import unittest

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import OracleCase, for_each, for_each_model, model_path, qxc

import onnxruntime.quantization as ortq

F, I8, U8, I32 = TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32


# ---- comparing ----

def tensor_text(t):
    """All of a tensor but the field its numbers stand in."""
    return (t.name, t.data_type, tuple(t.dims), t.doc_string,
            tuple((p.key, p.value) for p in t.metadata_props),
            numpy_helper.to_array(t).tobytes())


def node_text(n):
    plain = onnx.NodeProto()
    plain.CopyFrom(n)
    for a in plain.attribute:
        a.ClearField("g")
    return str(plain)


def differences(x, y, where="main"):
    """What two graphs differ in, in words."""
    found = []
    if len(x.node) != len(y.node):
        found.append(f"{where}: {len(x.node)} nodes became {len(y.node)}")
    for i, (n, k) in enumerate(zip(x.node, y.node)):
        if node_text(n) != node_text(k):
            found.append(f"{where}: node {i} was {node_text(n)!r}, is {node_text(k)!r}")
        for a, b in zip(n.attribute, k.attribute):
            if a.type == onnx.AttributeProto.GRAPH:
                found += differences(a.g, b.g, f"{where}/{n.name}")
    a, b = map(lambda g: [tensor_text(t) for t in g.initializer], (x, y))
    if a != b:
        found.append(f"{where}: initializers were {[t[0] for t in a]}, are {[t[0] for t in b]}; "
                     f"changed: {[t[0] for t in a if t not in b]}")
    for field in ("input", "output", "value_info"):
        a, b = (sorted(str(v) for v in getattr(g, field)) for g in (x, y))
        if a != b:
            found.append(f"{where}: {field} lost {[v for v in a if v not in b]}, "
                         f"gained {[v for v in b if v not in a]}")
    return found


def without_guards(model):
    """The model without each Sum of one operand that keeps onnxruntime from a fusion it has no kernel for."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    nodes = model.graph.node
    for s in [n for n in nodes if n.op_type == "Sum" and len(n.input) == 1]:
        for n in nodes:
            n.input[:] = [s.input[0] if i == s.output[0] else i for i in n.input]
        nodes.remove(s)
    return model


# ---- hand-made models ----

class Model:
    """A small QDQ model in the making."""

    def __init__(self, opset=13, ir_version=8):
        self.opset, self.ir_version = opset, ir_version
        self.nodes, self.inits, self.infos = [], [], []
        self.inputs = [helper.make_tensor_value_info("x", F, [1, 4])]
        self.outputs = [helper.make_tensor_value_info("y", F, [1, 3])]

    def init(self, name, array, **more):
        t = numpy_helper.from_array(np.asarray(array), name)
        if "doc" in more:
            t.doc_string = more["doc"]
        for key, value in more.get("meta", {}).items():
            t.metadata_props.add(key=key, value=value)
        self.inits.append(t)
        return name

    def node(self, op, ins, out, name=None, **attributes):
        self.nodes.append(helper.make_node(op, ins, [out], name=name or f"n/{out}", **attributes))
        return out

    def q(self, x, s, z, out, **more):
        return self.node("QuantizeLinear", [x, s] + ([z] if z is not None else []), out, **more)

    def dq(self, x, s, z, out, **more):
        return self.node("DequantizeLinear", [x, s] + ([z] if z is not None else []), out, **more)

    def scalars(self):
        self.init("scale of x", np.float32(0.05))
        self.init("zp of x", np.uint8(3))

    def build(self):
        graph = helper.make_graph(self.nodes, "g", self.inputs, self.outputs, self.inits,
                                  value_info=self.infos)
        imports = [helper.make_opsetid("", self.opset)]
        if any(n.domain == "com.microsoft" for n in self.nodes):
            imports.append(helper.make_opsetid("com.microsoft", 1))
        return helper.make_model(graph, opset_imports=imports, ir_version=self.ir_version)


def gemm(m, x="dx", out="f", w="dw"):
    return m.node("MatMul", [x, w], out)


def plain(opset=13, domain=None, zp=True, scale_shape=(), axis=None, name_odd=False, **more):
    """x -> Q -> DQ -> MatMul <- DQ <- w; -> Q -> DQ -> y."""
    m = Model(opset)
    d = {"domain": domain} if domain else {}
    s = m.init("s\x01\"%é" if name_odd else "s", np.full(scale_shape, 0.05, np.float32), **more)
    z = m.init("z", np.full(scale_shape, 3, np.uint8)) if zp else None
    m.q("x", s, z, "qx!", **d)
    m.dq("qx!", s, z, "dx", **d)
    m.init("w", np.arange(-6, 6, dtype=np.int8).reshape(4, 3))
    if axis is None:
        m.init("ws", np.float32(0.01))
        m.dq("w", "ws", m.init("wz", np.int8(0)) if zp else None, "dw", **d)
    else:
        m.init("ws", np.float32([0.01, 0.02, 0.03]))
        wz = m.init("wz", np.zeros(3, np.int8)) if zp else None
        m.dq("w", "ws", wz, "dw", axis=axis, **d)
    gemm(m)
    m.init("ys", np.float32(0.1))
    yz = m.init("yz", np.uint8(128)) if zp else None
    m.q("f", "ys", yz, "qy", **d)
    m.dq("qy", "ys", yz, "y", **d)
    return m.build()


def shared():
    """One scale and zero point for all there is."""
    m = Model()
    m.scalars()
    p = ("scale of x", "zp of x")
    m.q("x", *p, "qx")
    m.dq("qx", *p, "dx")
    m.init("w", np.arange(12, dtype=np.uint8).reshape(4, 3))
    m.dq("w", *p, "dw")
    gemm(m)
    m.q("f", *p, "qf")
    m.dq("qf", *p, "df")
    m.node("Relu", ["df"], "r")
    m.q("r", *p, "qr")
    m.dq("qr", *p, "y")
    return m.build()


def equal_but_apart():
    """Equal parameters, a scale and a zero point of its own for each node."""
    m = Model()
    def p(i):
        return m.init(f"s{i}", np.float32(0.05)), m.init(f"z{i}", np.uint8(3))
    m.q("x", *p(0), "qx")
    m.dq("qx", *p(1), "dx")
    m.init("w", np.arange(12, dtype=np.uint8).reshape(4, 3))
    m.dq("w", *p(2), "dw")
    gemm(m)
    m.q("f", *p(3), "qf")
    m.dq("qf", *p(4), "y")
    return m.build()


def constants_in_nodes():
    m = Model()
    for name, value in (("s", np.float32(0.05)), ("z", np.uint8(3)), ("ws", np.float32(0.01)),
                        ("w", np.arange(12, dtype=np.uint8).reshape(4, 3))):
        m.node("Constant", [], name, value=numpy_helper.from_array(np.asarray(value), "t" + name))
    m.q("x", "s", "z", "qx")
    m.dq("qx", "s", "z", "dx")
    m.dq("w", "ws", None, "dw")
    gemm(m)
    m.q("f", "s", "z", "qf")
    m.dq("qf", "s", "z", "y")
    return m.build()


def numbers_in_nodes():
    """Scales as Constant nodes without a tensor: value_float, value_floats."""
    m = Model()
    m.node("Constant", [], "s", value_float=0.05)
    m.node("Constant", [], "s1", value_floats=[0.1])
    m.node("Constant", [], "ws", value_floats=[0.01, 0.02, 0.03])
    m.init("z", np.uint8(3))
    m.init("z1", np.uint8([7]))
    m.init("w", np.arange(-6, 6, dtype=np.int8).reshape(4, 3))
    m.dq(m.q("x", "s", "z", "qx"), "s", "z", "dx")
    m.dq("w", "ws", None, "dw", axis=1)
    gemm(m)
    m.dq(m.q("f", "s1", "z1", "qf"), "s1", "z1", "y")
    return m.build()


def shapes_differ(scale, zero_point):
    """A scalar and a list of one are the same to runtimes, and both occur side by side."""
    m = Model()
    m.init("s", np.full(scale, 0.05, np.float32))
    m.init("z", np.full(zero_point, 3, np.uint8))
    m.init("w", np.arange(12, dtype=np.uint8).reshape(4, 3))
    m.dq(m.q("x", "s", "z", "qx"), "s", "z", "dx")
    m.dq("w", "s", "z", "dw")
    gemm(m)
    m.dq(m.q("f", "s", "z", "qf"), "s", "z", "y")
    return m.build()


def blocked(axis=0, block=2, zp=True, elem=None, float_x=False):
    """Weights in blocks, as of opset 21."""
    m = Model(opset=21, ir_version=10)
    if not float_x:
        m.scalars()
    p = ("scale of x", "zp of x")
    w = np.arange(-6, 6, dtype=np.int8).reshape(4, 3)
    grid = [4, 3]
    grid[axis] = -(-grid[axis] // block)
    m.init("w", w if elem is None else w.astype(elem))
    m.init("ws", np.linspace(0.01, 0.3, grid[0] * grid[1], dtype=np.float32).reshape(grid))
    if zp:
        m.init("wz", (np.arange(grid[0] * grid[1]) % 3).astype(elem or np.int8).reshape(grid))
    m.dq("w", "ws", "wz" if zp else None, "dw", axis=axis, block_size=block)
    if float_x:
        gemm(m, "x", "y")
        return m.build()
    m.dq(m.q("x", *p, "qx"), *p, "dx")
    gemm(m)
    m.dq(m.q("f", *p, "qf"), *p, "y")
    return m.build()


def dq_for_each_consumer():
    m = Model()
    m.scalars()
    p = ("scale of x", "zp of x")
    m.q("x", *p, "qx")
    m.init("w", np.arange(12, dtype=np.uint8).reshape(4, 3))
    m.dq("qx", *p, "dx1")
    m.dq("qx", *p, "dx2")
    m.dq("w", *p, "dw1")
    m.dq("w", *p, "dw2")
    gemm(m, "dx1", "f1", "dw1")
    gemm(m, "dx2", "f2", "dw2")
    m.q("f1", *p, "q1")
    m.q("f2", *p, "q2")
    m.dq("q1", *p, "d1")
    m.dq("q2", *p, "d2")
    m.node("Add", ["d1", "d2"], "a")
    m.q("a", *p, "qa")
    m.dq("qa", *p, "y")
    return m.build()


def several_q():
    """One value, quantized several times over: equal and different parameters."""
    m = Model()
    m.scalars()
    m.init("s2", np.float32(0.2))
    p = ("scale of x", "zp of x")
    m.outputs = [helper.make_tensor_value_info(n, F, [1, 4]) for n in ("y1", "y2", "y3")]
    m.q("x", *p, "qa")
    m.q("x", *p, "qb")
    m.q("x", "s2", "zp of x", "qc")
    for i, n in enumerate(("qa", "qb", "qc")):
        s = "s2" if n == "qc" else "scale of x"
        m.dq(n, s, "zp of x", f"d{i}")
        m.node("Neg", [f"d{i}"], f"y{i + 1}")
    return m.build()


def read_otherwise():
    """Integers that are read with the scale that made them, and twice with another."""
    m = Model()
    m.scalars()
    m.init("s2", np.float32(0.2))
    m.outputs = [helper.make_tensor_value_info(n, F, [1, 4]) for n in ("y1", "y2")]
    m.q("x", "scale of x", "zp of x", "q")
    m.dq("q", "s2", "zp of x", "d1")
    m.dq("q", "scale of x", "zp of x", "d2")
    m.node("Add", ["d1", "d2"], "a")
    m.q("a", "s2", "zp of x", "qa")
    m.dq("qa", "scale of x", "zp of x", "d3")
    m.node("Neg", ["d3"], "y1")
    m.dq("q", "s2", "zp of x", "d4")
    m.node("Neg", ["d4"], "y2")
    return m.build()


def chain():
    """Q, DQ, Q, DQ on one grid, and then on another."""
    m = Model()
    m.scalars()
    m.init("s2", np.float32(0.2))
    p = ("scale of x", "zp of x")
    m.outputs = [helper.make_tensor_value_info("y", F, [1, 4])]
    m.dq(m.q("x", *p, "q1"), *p, "d1")
    m.dq(m.q("d1", *p, "q2"), *p, "d2")
    m.dq(m.q("d2", "s2", "zp of x", "q3"), "s2", "zp of x", "d3")
    m.node("Neg", ["d3"], "y")
    return m.build()


def float_weights():
    """A weight that stays float, behind a Q and a DQ (AddQDQPairToWeight)."""
    m = Model()
    m.scalars()
    p = ("scale of x", "zp of x")
    m.dq(m.q("x", *p, "qx"), *p, "dx")
    m.init("w", np.linspace(0, 3, 12, dtype=np.float32).reshape(4, 3))
    m.init("ws", np.float32(0.0123))
    m.init("wz", np.uint8(7))
    m.dq(m.q("w", "ws", "wz", "qw"), "ws", "wz", "dw")
    gemm(m)
    m.dq(m.q("f", *p, "qf"), *p, "y")
    return m.build()


def infos():
    m = Model()
    m.scalars()
    p = ("scale of x", "zp of x")
    m.dq(m.q("x", *p, "qx"), *p, "dx")
    m.init("w", np.arange(12, dtype=np.uint8).reshape(4, 3))
    m.dq("w", *p, "dw")
    gemm(m)
    m.node("Relu", ["f"], "r")
    m.dq(m.q("r", *p, "qr"), *p, "y")
    m.infos = [helper.make_tensor_value_info(n, t, s)
               for n, t, s in (("qx", U8, [1, 4]), ("dx", F, [1, 4]), ("dw", F, [4, 3]),
                               ("f", F, [1, 3]), ("r", F, [1, 3]), ("qr", U8, [1, 3]))]
    return m.build()


def documented():
    model = plain(doc="the scale", meta={"key": "value"})
    for i, n in enumerate(model.graph.node):
        n.doc_string = f"node {i}"
        n.metadata_props.add(key="k", value=str(i))
    return model


def unnamed():
    model = plain()
    for n in model.graph.node:
        n.name = ""
    return model


def movers_on_integers():
    """Reshape of the integers, and of the float numbers behind them."""
    m = Model()
    m.scalars()
    p = ("scale of x", "zp of x")
    m.init("shape", np.array([4, 1], np.int64))
    m.init("back", np.array([1, 4], np.int64))
    m.outputs = [helper.make_tensor_value_info("y", F, [1, 4])]
    m.q("x", *p, "qx")
    m.node("Reshape", ["qx", "shape"], "qr")
    m.dq("qr", *p, "dr")
    m.node("Reshape", ["dr", "back"], "rr")
    m.node("Sin", ["rr"], "y")
    return m.build()


def movers_on_floats():
    m = Model()
    m.scalars()
    p = ("scale of x", "zp of x")
    m.init("shape", np.array([4, 1], np.int64))
    m.outputs = [helper.make_tensor_value_info("y", F, [4, 1])]
    m.dq(m.q("x", *p, "qx"), *p, "dx")
    m.node("Reshape", ["dx", "shape"], "r")
    m.dq(m.q("r", *p, "qr"), *p, "dr")
    m.node("Neg", ["dr"], "y")
    return m.build()


def branches():
    """Q and DQ inside the branches of If, with a scale from outside and one of their own."""
    def branch(name, own):
        inits = [numpy_helper.from_array(np.float32(0.5), f"{name} s")] if own else []
        s = f"{name} s" if own else "scale of x"
        nodes = [helper.make_node("QuantizeLinear", ["x", s, "zp of x"], [f"{name} q"], name=f"{name}Q"),
                 helper.make_node("DequantizeLinear", [f"{name} q", s, "zp of x"], [f"{name} d"],
                                  name=f"{name}DQ"),
                 helper.make_node("Neg", [f"{name} d"], [f"{name} y"], name=f"{name}N")]
        return helper.make_graph(nodes, name, [],
                                 [helper.make_tensor_value_info(f"{name} y", F, [1, 4])], inits)
    m = Model()
    m.scalars()
    m.inputs.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    m.outputs = [helper.make_tensor_value_info("y", F, [1, 4])]
    m.node("If", ["c"], "y", then_branch=branch("t", True), else_branch=branch("e", False))
    return m.build()


def weight_on_two_grids():
    m = Model()
    m.scalars()
    p = ("scale of x", "zp of x")
    m.init("s2", np.float32(0.25))
    m.init("w", np.arange(12, dtype=np.uint8).reshape(4, 3))
    m.dq(m.q("x", *p, "qx"), *p, "dx")
    m.dq("w", *p, "dw1")
    m.dq("w", "s2", "zp of x", "dw2")
    gemm(m, out="f1", w="dw1")
    gemm(m, out="f2", w="dw2")
    m.dq(m.q("f1", *p, "q1"), *p, "d1")
    m.dq(m.q("f2", *p, "q2"), *p, "d2")
    m.node("Add", ["d1", "d2"], "a")
    m.dq(m.q("a", *p, "qa"), *p, "y")
    return m.build()


def integer_io():
    """Integers come in and go out."""
    model = plain()
    g = model.graph
    del g.node[0], g.node[-1]
    g.node[0].input[0] = "x"
    g.node[-1].output[0] = "y"
    g.input[0].type.tensor_type.elem_type = U8
    g.output[0].type.tensor_type.elem_type = U8
    return model


def suffixed():
    """Names that qxc itself would have given, on other things than it would."""
    model = plain()
    names = {"w": "w_quantized", "dw": "f_scale", "dx": "f_QuantizeLinear_Output", "f": "w",
             "qx!": "f_zero_point", "s": "w_scale", "qy": "f"}
    for n in model.graph.node:
        for field in (n.input, n.output):
            field[:] = [names.get(v, v) for v in field]
    for t in model.graph.initializer:
        t.name = names.get(t.name, t.name)
    return model


MADE = {
    "plain": plain,
    "opset_10": lambda: plain(opset=10),
    "opset_21": lambda: plain(opset=21),
    "microsoft": lambda: plain(domain="com.microsoft"),
    "no_zero_point": lambda: plain(zp=False),
    "scale_of_rank_1": lambda: plain(scale_shape=(1,)),
    "per_axis": lambda: plain(axis=1),
    "negative_axis": lambda: plain(axis=-1),
    "odd_names": lambda: plain(name_odd=True),
    "shared": shared,
    "equal_but_apart": equal_but_apart,
    "constants_in_nodes": constants_in_nodes,
    "numbers_in_nodes": numbers_in_nodes,
    "scalar_scale_list_zero_point": lambda: shapes_differ((), (1,)),
    "list_scale_scalar_zero_point": lambda: shapes_differ((1,), ()),
    "blocked": blocked,
    "blocked_without_zero_point": lambda: blocked(zp=False),
    "blocked_columns": lambda: blocked(axis=1, block=3),
    "blocked_last_shorter": lambda: blocked(axis=0, block=3),
    "blocked_negative_axis": lambda: blocked(axis=-1, block=2),
    "blocked_int4": lambda: blocked(elem=ml_dtypes.int4),
    "blocked_weights_alone": lambda: blocked(float_x=True),
    "blocked_int4_weights_alone": lambda: blocked(elem=ml_dtypes.int4, float_x=True),
    "dq_for_each_consumer": dq_for_each_consumer,
    "several_q": several_q,
    "read_otherwise": read_otherwise,
    "chain": chain,
    "float_weights": float_weights,
    "infos": infos,
    "documented": documented,
    "unnamed": unnamed,
    "movers_on_integers": movers_on_integers,
    "movers_on_floats": movers_on_floats,
    "branches": branches,
    "weight_on_two_grids": weight_on_two_grids,
    "integer_io": integer_io,
    "suffixed": suffixed,
}


# ---- onnxruntime's quantizer ----

def small_float_model():
    """Conv, Relu, MaxPool, Conv, Add, GlobalAveragePool, Gemm: what quantizers treat differently."""
    rng = np.random.default_rng(1)
    init = []

    def w(name, *shape):
        init.append(numpy_helper.from_array(rng.normal(0, 0.2, shape).astype(np.float32), name))
        return name
    nodes = [
        helper.make_node("Conv", ["x", w("w1", 8, 3, 3, 3), w("b1", 8)], ["c1"], "conv1", pads=[1] * 4),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("MaxPool", ["r1"], ["p1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", w("w2", 8, 8, 3, 3), w("b2", 8)], ["c2"], "conv2",
                         pads=[1] * 4),
        helper.make_node("Add", ["c2", "p1"], ["a1"], "add1"),
        helper.make_node("GlobalAveragePool", ["a1"], ["g1"], "gap"),
        helper.make_node("Flatten", ["g1"], ["f1"], "flat"),
        helper.make_node("Gemm", ["f1", w("w3", 8, 5), w("b3", 5)], ["y"], "fc"),
    ]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", F, [1, 3, 8, 8])],
                              [helper.make_tensor_value_info("y", F, [1, 5])], init)
    return onnx.shape_inference.infer_shapes(helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


class Data(ortq.CalibrationDataReader):
    def __init__(self):
        rng = np.random.default_rng(2)
        self.items = iter([{"x": rng.normal(0, 1, (1, 3, 8, 8)).astype(np.float32)}
                           for _ in range(4)])

    def get_next(self):
        return next(self.items, None)


T = ortq.QuantType
QOPERATORS = {
    "default": {},
    "per_channel": {"per_channel": True, "activation_type": T.QUInt8},
    "uint8": {"activation_type": T.QUInt8, "weight_type": T.QUInt8},
}
QUANTIZER = {
    "default": {},
    "per_channel": {"per_channel": True},
    "uint8": {"activation_type": T.QUInt8, "weight_type": T.QUInt8},
    "int16": {"activation_type": T.QInt16, "weight_type": T.QInt16},
    "uint16": {"activation_type": T.QUInt16, "weight_type": T.QUInt8},
    "int4": {"weight_type": T.QInt4, "per_channel": True},
    "symmetric": {"extra_options": {"ActivationSymmetric": True, "WeightSymmetric": True}},
    "asymmetric_weights": {"extra_options": {"WeightSymmetric": False}},
    "pair_on_weight": {"extra_options": {"AddQDQPairToWeight": True}},
    "pair_on_weight_channel": {"per_channel": True, "extra_options": {"AddQDQPairToWeight": True}},
    "dedicated": {"extra_options": {"DedicatedQDQPair": True}},
    "float_bias": {"extra_options": {"QuantizeBias": False}},
    "microsoft": {"extra_options": {"UseQDQContribOps": True}},
    "reduce_range": {"reduce_range": True},
}


# ---- tests ----

class QuantNames(OracleCase):
    def lower(self, source, out, emit="lower-qdq"):
        qxc(source, f"-passes={emit}", "-keep-float-weights", "-emit=onnx", "-quiet", "-o", out)
        return onnx.load(out)

    def ways(self, path):
        """The model raised and lowered: through the text, in one process, and once more."""
        text, out = self.scratch / "m.qir", self.scratch / "out.onnx"
        qxc(path, "-passes=raise-quant", "-emit=qir", "-quiet", "-verify-roundtrip", "-o", text)
        yield "text", self.lower(text, out)
        yield "one process", self.lower(path, self.scratch / "one.onnx", "raise-quant,lower-qdq")
        self.assertEqual(out.read_bytes(), (self.scratch / "one.onnx").read_bytes())
        qxc(out, "-passes=raise-quant", "-emit=qir", "-quiet", "-o", text)
        self.lower(text, self.scratch / "again.onnx")
        self.assertEqual(out.read_bytes(), (self.scratch / "again.onnx").read_bytes())

    def check(self, model, path=None):
        if not path:
            path = self.scratch / "in.onnx"
            onnx.save(model, path)
        onnx.checker.check_model(model)
        for way, back in self.ways(path):
            with self.subTest(way):
                onnx.checker.check_model(back)
                if len(back.graph.node) > len(model.graph.node):
                    back = without_guards(back)
                self.assertEqual(differences(model.graph, back.graph), [])
                self.assertEqual(model.opset_import, back.opset_import)

    def test_external_parameters(self):
        """Scales and zero points in a file of their own stay there, as long as nothing changes them."""
        model, path = plain(axis=1), self.scratch / "in.onnx"
        onnx.save_model(model, path, save_as_external_data=True, location="in.bin", size_threshold=0)
        model, stored = onnx.load(path), onnx.load(path, load_external_data=False)

        def external(m):
            return {t.name: sorted((e.key, e.value) for e in t.external_data) for t in m.graph.initializer}
        self.assertTrue(all(external(stored).values()))
        for way, _ in self.ways(path):
            with self.subTest(way):
                out = self.scratch / ("out.onnx" if way == "text" else "one.onnx")
                back = onnx.load(out, load_external_data=False)
                self.assertEqual(external(back), external(stored))
                self.assertEqual(differences(model.graph, onnx.load(out).graph), [])
        text = self.scratch / "m.qir"
        text.write_text(text.read_text().replace("uint8q<0.1, 128>", "uint8q<0.25, 128>"))
        self.lower(text, self.scratch / "out.onnx")
        changed = external(onnx.load(self.scratch / "out.onnx", load_external_data=False))
        self.assertEqual({n for n, e in external(stored).items() if changed[n] != e}, {"ys"})
        elsewhere = self.scratch / "elsewhere"  # where the file is not: all becomes part of the text
        elsewhere.mkdir()
        qxc(path, "-passes=raise-quant", "-emit=qir", "-quiet", "-o", elsewhere / "m.qir")
        self.assertNotIn("in.bin", (elsewhere / "m.qir").read_text())
        back = self.lower(elsewhere / "m.qir", elsewhere / "out.onnx")
        self.assertEqual(differences(model.graph, back.graph), [])

    def edited(self, model, *changes):
        """Raised, changed as text, lowered."""
        path, text = self.scratch / "in.onnx", self.scratch / "m.qir"
        onnx.save(model, path)
        qxc(path, "-passes=raise-quant", "-emit=qir", "-quiet", "-o", text)
        content = text.read_text()
        for old, new in changes:
            self.assertEqual(content.count(old), 1, content)
            content = content.replace(old, new)
        text.write_text(content)
        return self.lower(text, self.scratch / "out.onnx")

    def test_edited_scale(self):
        """A changed scale changes its initializer and nothing else."""
        model = plain()
        back = self.edited(model, ("uint8q<0.1, 128>", "uint8q<0.25, 128>"))
        want = onnx.ModelProto()
        want.CopyFrom(model)
        [scale] = [t for t in want.graph.initializer if t.name == "ys"]
        scale.CopyFrom(numpy_helper.from_array(np.float32(0.25), "ys"))
        self.assertEqual(differences(want.graph, back.graph), [])

    def test_edited_zero_point_where_there_was_none(self):
        model = plain(zp=False)
        back = self.edited(model, ("quant !f = uint8q<0.1>", "quant !f = uint8q<0.1, 5>"))
        q = [n for n in back.graph.node if "ys" in n.input]
        self.assertEqual([n.name for n in q], ["n/qy", "n/y"])
        for n in q:
            self.assertEqual(len(n.input), 3)

    def test_edited_share(self):
        """A scale that several values shared is split where they no longer agree."""
        back = self.edited(shared(), ("%f : !f[1,3]", "%f : uint8q<0.25, 3>[1,3]"))
        onnx.checker.check_model(back)
        value = {t.name: float(numpy_helper.to_array(t)) for t in back.graph.initializer
                 if "scale" in t.name}
        scale = {n.name: value[n.input[1]] for n in back.graph.node
                 if n.op_type == "QuantizeLinear"}
        self.assertEqual(scale["n/qf"], 0.25)
        self.assertEqual({n.input[1] for n in back.graph.node if n.name in ("n/qx", "n/qr")},
                         {"scale of x"})
        self.assertAlmostEqual(value["scale of x"], 0.05)

    def test_edited_weight(self):
        """Integers that were edited win over the float weight they came of."""
        back = self.edited(float_weights(), ("[7, 29,", "[9, 29,"))
        names = [t.name for t in back.graph.initializer]
        w = numpy_helper.to_array(back.graph.initializer[names.index("w")])
        self.assertEqual(w.dtype, np.uint8)
        self.assertEqual(w.flat[0], 9)

    def test_float_weight_as_integers(self):
        """Unless it is asked for, a weight is stored as the integers that its Q makes."""
        path, out = self.scratch / "in.onnx", self.scratch / "out.onnx"
        onnx.save(float_weights(), path)
        qxc(path, "-emit=qdq", "-quiet", "-o", out)
        back = onnx.load(out)
        kinds = {t.name: t.data_type for t in back.graph.initializer}
        self.assertEqual(kinds["w"], onnx.TensorProto.UINT8)
        self.assertNotIn("n/qw", [n.name for n in back.graph.node])

    @for_each("dq_for_each_consumer", "float_weights", "chain", "branches")
    def test_senseless_lines(self, name):
        """Lines that fit nothing are ignored or refused; the model stays a model."""
        keys = ["in", "out", "of", "scale", "zero_point", "at", "to", "stated", "local", "data",
                "axis", "block_size", "output_dtype"]
        values = ["5", "-3", '"x"', '["a", "b:0"]', "[1, 2]", "9223372036854775807", "1.5", '""',
                  "tensor(float[3], [0.1, 0.2, 0.3] name \"s\")", "tensor(int8[1], [1])",
                  'tensor(string[1], ["a"])']
        words = ["QuantizeLinear", "DequantizeLinear", "float", "integers"]
        path, text = self.scratch / "in.onnx", self.scratch / "m.qir"
        onnx.save(MADE[name](), path)
        qxc(path, "-passes=raise-quant", "-emit=qir", "-quiet", "-o", text)
        lines = text.read_text().splitlines()
        rng = np.random.default_rng(7)
        for _ in range(20):
            changed = list(lines)
            for i, line in enumerate(lines):
                if line.startswith("  onnx %") and rng.random() < 0.5:
                    some = rng.choice(keys, rng.integers(1, 7), replace=False)
                    fields = ", ".join(f"{k}={rng.choice(values)}" for k in some)
                    changed[i] = f"{line.split(' = ')[0]} = {rng.choice(words)} <{fields}>"
            text.write_text("\n".join(changed) + "\n")
            for emit in ("lower-qdq", "lower-qop"):
                out = self.scratch / "out.onnx"
                done = qxc(text, f"-passes={emit}", "-emit=onnx", "-quiet", "-o", out, ok=False)
                self.assertIn(done.returncode, (0, 1), done.stderr)
                if done.returncode == 0:
                    onnx.checker.check_model(onnx.load(out))

    def test_deleted_lines(self):
        """Without the onnx lines the model is lowered as any other."""
        path, text = self.scratch / "in.onnx", self.scratch / "m.qir"
        onnx.save(plain(), path)
        qxc(path, "-passes=raise-quant", "-emit=qir", "-quiet", "-o", text)
        lines = text.read_text().splitlines(True)
        text.write_text("".join(l for l in lines if not l.startswith("  onnx ")))
        back = self.lower(text, self.scratch / "out.onnx")
        onnx.checker.check_model(back)
        self.assertIn("w_scale", [t.name for t in back.graph.initializer])

    @for_each_model()
    def test_trained(self, name):
        path = model_path(name, "int8_qdq")
        self.check(onnx.load(path), path)

    @for_each(*MADE)
    def test_made(self, name):
        self.check(MADE[name]())

    @for_each(*QUANTIZER)
    def test_onnxruntime(self, name):
        source, out = self.scratch / "float.onnx", self.scratch / "quantized.onnx"
        onnx.save(small_float_model(), source)
        ortq.quantize_static(source, out, Data(), **QUANTIZER[name])
        self.check(onnx.load(out))

    @for_each(*QOPERATORS)
    def test_qoperator(self, name):
        """QOperators -> types -> QOperators, as far as nothing is chosen anew."""
        source, out = self.scratch / "float.onnx", self.scratch / "quantized.onnx"
        onnx.save(small_float_model(), source)
        ortq.quantize_static(source, out, Data(), quant_format=ortq.QuantFormat.QOperator,
                             **QOPERATORS[name])
        text = self.scratch / "m.qir"
        qxc(out, "-passes=raise-quant", "-emit=qir", "-quiet", "-o", text)
        back = self.lower(text, self.scratch / "back.onnx", "lower-qop")
        model = onnx.load(out)
        values = {o for n in model.graph.node for o in n.output}
        stale = [v for v in model.graph.value_info if v.name not in values]
        for v in stale:  # of the float model; the raised values take their names
            model.graph.value_info.remove(v)
        for n in model.graph.node:  # channels_last=0 says what holds anyway
            for a in [a for a in n.attribute if a.name == "channels_last"]:
                n.attribute.remove(a)
        for v in [v for v in back.graph.value_info if v.name not in values]:
            back.graph.value_info.remove(v)
        self.assertEqual(differences(model.graph, back.graph), [])


if __name__ == "__main__":
    unittest.main()
