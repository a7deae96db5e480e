"""What onnxruntime would fuse wrongly or has no kernels for is written so that it loads, and means the
same with all its optimizations as without any.
"""

import itertools

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import OracleCase, for_each, qxc, qxc_outputs, session

SHAPE = (1, 4, 8, 8)
POOLS = {
    "dilated": {"dilations": [2, 2]},
    "ceil_and_padding": {"pads": [1] * 4, "strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1},
}
FEW_BITS = ("-activations=int4", "-activations=uint4", "-activations=int4 sym", "-weights=int2")


def model(nodes, constants=()):
    rng = np.random.default_rng(5)
    weights = [numpy_helper.from_array(np.asarray(c) if isinstance(c, list) else
                                       rng.normal(0, 0.3, c).astype(np.float32), n)
               for n, c in constants]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


def pool(**attributes):
    return model([helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], **attributes)])


def chain():
    make = helper.make_node
    return model(
        [make("Conv", ["x", "w"], ["c"]), make("Relu", ["c"], ["r"]),
         make("MaxPool", ["r"], ["p"], kernel_shape=[2, 2]), make("Reshape", ["p", "shape"], ["f"]),
         make("Gemm", ["f", "v"], ["g"]), make("Sigmoid", ["g"], ["s"]), make("Mul", ["s", "g"], ["y"])],
        [("w", (4, 4, 3, 3)), ("shape", [1, -1]), ("v", (100, 8))])


def stacked():
    return model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("w", (4, 8, 5))])


# operator, attributes, weights and the axis of their scales; x is [2, 8], of Conv [1, 2, 2, 4]
SCALED = {
    "MatMul_rows": ("MatMul", {}, (8, 8), 0),
    "MatMul_columns": ("MatMul", {}, (8, 8), 1),
    "Gemm_rows": ("Gemm", {}, (8, 8), -2),
    "Gemm_transposed": ("Gemm", {"transB": 1}, (8, 8), 1),
    "Conv_channels_in": ("Conv", {}, (2, 2, 2, 2), 1),
    "Conv_channels_in_other_number": ("Conv", {}, (4, 2, 2, 2), 1),
    "Conv_height": ("Conv", {}, (2, 2, 2, 2), -2),
    "Conv_channels_out": ("Conv", {}, (4, 2, 2, 2), 0),
}

# operator, what adds the bias, as which operand, shapes of data and bias, its scale (None: the product of the scales), how
# many guards are written
BIASES = {
    "own": ("MatMul", "Add", 0, (2, 8), (6,), 7e-4, 1),
    "own_second": ("MatMul", "Add", 1, (2, 8), (6,), 7e-4, 1),
    "of_stack": ("MatMul", "Add", 0, (2, 3, 8), (6,), 7e-4, 1),
    "column": ("MatMul", "Add", 0, (2, 8), (2, 1), 7e-4, 1),
    "matrix": ("MatMul", "Add", 0, (2, 8), (2, 6), 7e-4, 1),
    "sum": ("Gemm", "Sum", 1, (2, 8), (6,), 7e-4, 1),
    "gemm_column": ("Gemm", None, 2, (2, 8), (2, 1), 7e-4, 1),
    "gemm_matrix": ("Gemm", None, 2, (2, 8), (2, 6), 7e-4, 0),
    "at_the_product": ("MatMul", "Add", 0, (2, 8), (6,), None, 0),
    "gemm_at_the_product": ("Gemm", None, 2, (2, 8), (6,), None, 0),
}

PRODUCT = """qir 1
import "" 21
quant !w = {weight}
quant !x = {data}
quant !y = {result}
graph @g (%x : float[1,{k}]) -> (%z) {{
  const %w : !w[{k},5] = [{integers}]
  %q : !x[1,{k}] = QuantizeLinear(%x)
  %y : !y[1,5] = {op}(%q, %w)
  %z : float[1,5] = DequantizeLinear(%y)
}}
"""
DATA = {"bytes": "uint8q<0.05, 128>", "wide": "int32q<1e-3, 918>", "centred": "int32q<1e-3>"}
RESULTS = {"float": None, "wide": "int32q<1e-4, 279>"}
LOWEST = {"uint2": 0, "int2": -2, "uint4": 0, "int8": -2}


def product(op, weight, data, result, k):
    integers = np.random.default_rng(k).integers(0, 4, k * 5) + LOWEST[weight]
    text = PRODUCT.format(op=op, weight=f"{weight}q<2^-3>", data=DATA[data], k=k,
                          result=RESULTS[result] or "uint8q<1>", integers=", ".join(map(str, integers)))
    if not RESULTS[result]:
        text = text.replace("%y : !y", "%z : float").replace("  %z : float[1,5] = DequantizeLinear(%y)\n", "")
    return text


def pair(x, parameters, y, **attributes):
    """QuantizeLinear and DequantizeLinear."""
    return [helper.make_node("QuantizeLinear", [x, *parameters], [y + "_q"], **attributes),
            helper.make_node("DequantizeLinear", [y + "_q", *parameters], [y])]


class Guard(OracleCase):
    def same_with_optimizations(self, nodes, constants, shape=(2, 8)):
        """A model that is quantized already, which onnxruntime itself need not get right."""
        folder, inits = self.scratch, [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
        x = np.random.default_rng(1).normal(0, 1, shape).astype(np.float32)
        infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape), onnx.ValueInfoProto(name="y")]
        built = helper.make_model(helper.make_graph(nodes, "g", infos[:1], infos[1:], inits), ir_version=10,
                                  opset_imports=[helper.make_opsetid("", 21)])
        want = session(built).run(None, {"x": x})[0]
        built.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, want.shape))
        onnx.save(built, folder / "m.onnx")
        for form, optimize in itertools.product(("qdq", "qop"), (False, True)):
            with self.subTest(form=form, optimize=optimize):
                qxc(folder / "m.onnx", f"-emit={form}", "-no-sync", "-o", folder / "o.onnx")
                np.testing.assert_array_equal(session(folder / "o.onnx", optimize).run(None, {"x": x})[0], want)

    @for_each("dilations", "axes")
    def test_what_says_nothing_more(self, name):
        """Dilations of 1 its QLinearAveragePool does not know; axes of Pad it forgets where it moves channels last."""
        make, rng = helper.make_node, np.random.default_rng(7)
        c = {"s": np.float32(0.02), "z": np.int8(0), "t": np.float32(2), "w": rng.integers(-9, 9, (4, 4, 3, 3)).astype(np.int8),
             "pads": np.array([1, 2, 1, 0]), "axes": np.array([3, -2])}
        middle = (make("AveragePool", ["c"], ["p"], kernel_shape=[2, 2], dilations=[1, 1]) if name == "dilations" else
                  make("Pad", ["c", "pads", "", "axes"], ["p"]))
        self.same_with_optimizations(
            [*pair("x", ["s", "z"], "xd"), make("DequantizeLinear", ["w", "s", "z"], ["wd"]), make("Conv", ["xd", "wd"], ["v"]),
             *pair("v", ["s", "z"], "c"), middle, *pair("p", ["s", "z"], "d"), make("Conv", ["d", "wd"], ["f"]),
             *pair("f", ["t", "z"], "y")], c, SHAPE)

    @for_each(*BIASES)
    def test_bias_elsewhere(self, name):
        """onnxruntime reads every int32 bias at the product of the scales, whatever it is at."""
        op, adds, at, shape, bias, scale, guards = BIASES[name]
        rng, columns = np.random.default_rng(6), np.linspace(0.005, 0.02, 6, dtype=np.float32)
        of_bias = np.float32(0.02) * columns if scale is None else np.float32(scale)
        c = {"xs": np.float32(0.02), "xz": np.uint8(120), "ys": np.float32(0.05), "yz": np.uint8(100), "s": columns,
             "bs": of_bias, "w": rng.integers(-127, 128, (8, 6)).astype(np.int8), "b": rng.integers(-900, 900, bias, np.int32)}
        make = helper.make_node
        nodes = [*pair("x", ["xs", "xz"], "xd"), make("DequantizeLinear", ["w", "s"], ["wd"]),
                 make("DequantizeLinear", ["b", "bs"], ["bd"], **({"axis": 0} if of_bias.ndim else {}))]
        if adds:
            nodes += [make(op, ["xd", "wd"], ["m"]), make(adds, ["m", "bd"] if at else ["bd", "m"], ["f"])]
        else:
            nodes += [make(op, ["xd", "wd", "bd"], ["f"])]
        self.same_with_optimizations([*nodes, *pair("f", ["ys", "yz"], "y")], c, shape)
        qxc(self.scratch / "m.onnx", "-emit=qdq", "-no-sync", "-o", self.scratch / "o.onnx")
        written = onnx.load(self.scratch / "o.onnx").graph.node
        self.assertEqual(sum(n.op_type == "Sum" and len(n.input) == 1 for n in written), guards)

    @for_each("Sigmoid", "Add", "Concat", "Reshape", "Relu")
    def test_type_stated_by_output_dtype(self, op):
        """onnxruntime refuses its own fusion of what has no zero point, and changes zero points alone."""
        operands = {"Add": ["a", "a"], "Concat": ["a", "a"], "Reshape": ["a", "shape"]}.get(op, ["a"])
        for kind in (TensorProto.INT8, TensorProto.INT16):
            scale = np.float32(0.03 if kind == TensorProto.INT8 else 0.001)
            attributes = {"axis": 1} if op == "Concat" else {}
            nodes = [*pair("x", ["s"], "a", output_dtype=kind), helper.make_node(op, operands, ["m"], **attributes),
                     *pair("m", ["s"], "y", output_dtype=kind)]
            self.same_with_optimizations(nodes, {"s": scale, "shape": np.array([4, 4])})

    @for_each(*SCALED)
    def test_scales_of_weights(self, name):
        """Scales of weights along any axis are taken for such of the output channels."""
        op, attributes, shape, axis = SCALED[name]
        rng = np.random.default_rng(3)
        nodes = [*pair("x", ["s", "z"], "a"), *pair("m", ["t", "z"], "y"),
                 helper.make_node("DequantizeLinear", ["w", "ws"], ["v"], axis=axis)]
        nodes[2:2] = [nodes.pop(), helper.make_node(op, ["a", "v"], ["m"], **attributes)]
        if op == "Conv":
            nodes[2:2] = [helper.make_node("Reshape", ["a", "image"], ["i"])]
            nodes[4].input[0] = "i"
        constants = {"s": np.float32(0.02), "t": np.float32(0.1), "z": np.uint8(128), "image": np.array([1, 2, 2, 4]),
                     "w": rng.integers(-127, 128, shape, np.int8),
                     "ws": rng.uniform(0.005, 0.03, shape[axis]).astype(np.float32)}
        self.same_with_optimizations(nodes, constants)

    def check(self, built, *options):
        folder = self.scratch
        onnx.save(built, folder / "model.onnx")
        x = np.random.default_rng(1).normal(0, 1, (4, *SHAPE[1:])).astype(np.float32)
        np.savez(folder / "calib.npz", x=x)
        for form in ("qdq", "qop"):
            path = folder / f"{form}.onnx"
            qxc(folder / "model.onnx", f"-calib={folder / 'calib.npz'}", f"-emit={form}", *options,
                "-no-sync", "-o", path)
            want = qxc_outputs(path, {"x": x}, folder)["y"]
            for optimize in (False, True):
                with self.subTest(form=form, optimize=optimize):
                    run = session(path, optimize)
                    got = np.stack([run.run(None, {"x": x[i:i + 1]})[0] for i in range(len(x))])
                    step = np.ptp(got) / 8 if "int4" in str(options) else np.ptp(got) / 100
                    np.testing.assert_allclose(want.reshape(got.shape), got, rtol=0, atol=step)

    @for_each(*POOLS)
    def test_pool(self, name):
        self.check(pool(**POOLS[name]))

    @for_each(*FEW_BITS)
    def test_few_bits(self, option):
        self.check(chain(), option)

    @for_each("MatMul", "Gemm")
    def test_products(self, op):
        """Weights of 2 bits, of which MatMulNBits makes other numbers, and 32-bit data, which it
        rounds to 8 bits."""
        folder = self.scratch
        cases = [c for c in itertools.product(LOWEST, DATA, RESULTS) if "2" in c[0] or c[1] != "bytes"]
        for (weight, data, result), k, form in itertools.product(cases, (4, 64), ("qdq", "qop")):
            with self.subTest(weight=weight, data=data, result=result, k=k, form=form):
                (folder / "p.qir").write_text(product(op, weight, data, result, k))
                qxc(folder / "p.qir", f"-emit={form}", "-o", folder / "p.onnx")
                x = {"x": np.random.default_rng(2).normal(0, 2, (1, k)).astype(np.float32)}
                want, got = (session(folder / "p.onnx", optimize).run(None, x)[0]
                             for optimize in (False, True))
                step = 1.01e-4 if RESULTS[result] else 0  # sums in another order may round the other way
                np.testing.assert_allclose(got, want, rtol=0, atol=step + np.abs(want).max() / 2**16)

    def test_stacked_weights(self):
        self.check(stacked())

    def test_moved_int8(self):
        """A mover of int8 that no QuantizeLinear follows: a Clip, for the range, or nothing at all."""
        built = chain()
        built.graph.node.pop(), built.graph.node.pop()
        built.graph.node.append(helper.make_node("Transpose", ["g"], ["y"]))
        for opset in ("21", "23"):
            self.check(built, "-activations=int8 sym", f"-target-opset={opset}")

    @for_each(0, 4, "T")
    def test_extremes_of_none(self, length):
        """onnxruntime moves the DequantizeLinear behind them, where -infinity is the integer of another scale."""
        folder, names = self.scratch, ("max", "min", "same")
        nodes = [helper.make_node("DequantizeLinear", ["x", "fine", "zero"], ["d"])]
        for name, op, scale in zip(names, ("ReduceMax", "ReduceMin", "ReduceMax"), ("coarse", "coarse", "fine")):
            nodes += [helper.make_node(op, ["d", "axis"], [name + "_f"]),
                      helper.make_node("QuantizeLinear", [name + "_f", scale, "zero"], [name])]
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            nodes, "g", [info("x", TensorProto.INT8, [2, length])], [info(n, TensorProto.INT8, [2, 1]) for n in names],
            [numpy_helper.from_array(v, n) for n, v in (("fine", np.float32(0.1)), ("coarse", np.float32(0.5)),
                                                        ("zero", np.int8(3)), ("axis", np.array([1])))])
        onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)]), folder / "m.onnx")
        qxc(folder / "m.onnx", "-emit=qdq", "-o", folder / "o.onnx", "-quiet")
        for count in (0, 4) if length == "T" else (length,):
            x = {"x": np.random.default_rng(1).integers(-100, 100, (2, count)).astype(np.int8)}
            np.savez(folder / "x.npz", **x)
            want = session(folder / "m.onnx", False).run(None, x)
            qxc("run", folder / "m.onnx", f"-input={folder / 'x.npz'}", "-o", folder / "y.npz", "-quiet")
            np.testing.assert_equal([np.load(folder / "y.npz")[n] for n in names], want)
            for optimize in (False, True) if count or not length else (False,):
                np.testing.assert_equal(session(folder / "o.onnx", optimize).run(None, x), want)

    @for_each("ort-cpu", "onnx")
    def test_softmax_of_any_length(self, target):
        """Rows as long as the data: the integers of one number's row are 1, not 0."""
        folder = self.scratch
        infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["B", 3, "T"]) for n in "xy"]
        built = helper.make_model(
            helper.make_graph([helper.make_node("Softmax", ["x"], ["y"])], "g", infos[:1], infos[1:]),
            ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
        onnx.save(built, folder / "model.onnx")
        rng = np.random.default_rng(1)
        np.savez(folder / "calib.npz", x=rng.normal(0, 1, (8, 3, 5)).astype(np.float32))
        for form, optimize, length in itertools.product(("qdq", "qop"), (False, True), (1, 2, 5)):
            with self.subTest(form=form, optimize=optimize, length=length):
                qxc(folder / "model.onnx", f"-calib={folder / 'calib.npz'}", f"-emit={form}",
                    f"-target={target}", "-no-sync", "-o", folder / "o.onnx")
                x = {"x": rng.normal(0, 1, (2, 3, length)).astype(np.float32)}
                want, got = (session(folder / name, on).run(None, x)[0]
                             for name, on in (("model.onnx", False), ("o.onnx", optimize)))
                np.testing.assert_allclose(got, want, rtol=0, atol=0.03)  # a 1 wrapped to 0 is far off

    @for_each("ort-cpu", "onnx")
    def test_resize_between_pixels(self, target):
        """Integers in between are rounded, which onnxruntime's kernels on integers do not do."""
        built = model([helper.make_node("Conv", ["x", "w"], ["c"]),
                       helper.make_node("Resize", ["c", "", "s"], ["y"], mode="linear")],
                      [("w", (4, 4, 1, 1)), ("s", [1.0, 1.0, 2.0, 2.0])])
        built.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "s"))
        self.check(built, f"-target={target}")
        resize = [n for n in onnx.load(self.scratch / "qop.onnx").graph.node if n.op_type == "Resize"]
        made = {o: n.op_type for n in onnx.load(self.scratch / "qop.onnx").graph.node for o in n.output}
        self.assertNotIn(made[resize[0].input[0]], ("QLinearConv", "QuantizeLinear"))

    def test_bias_beyond_int32(self):
        """Of 16-bit operands a float bias stays float, which onnxruntime would round to int32."""
        built = model([helper.make_node("Conv", ["x", "w", "b"], ["c"]),
                       helper.make_node("Relu", ["c"], ["y"])],
                      [("w", (4, 4, 3, 3)), ("b", (4,))])
        for name, factor in (("w", 1e-3), ("b", 10)):
            t = next(t for t in built.graph.initializer if t.name == name)
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t) * np.float32(factor), name))
        self.check(built, "-activations=int16", "-weights=int16 sym")
        x = np.random.default_rng(1).normal(0, 1, (4, *SHAPE[1:])).astype(np.float32)
        want = session(self.scratch / "model.onnx").run(None, {"x": x[:1]})[0]
        got = qxc_outputs(self.scratch / "qdq.onnx", {"x": x[:1]}, self.scratch)["y"]
        np.testing.assert_allclose(got, want, rtol=0, atol=np.abs(want).max() / 1000)
