"""Quantized models by hand, in each of the ways in which Q and DQ, their constants and names are spelled."""

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

F, I8, U8, I32 = TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32


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
