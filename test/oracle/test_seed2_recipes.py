"""What Neural Compressor's export to ONNX offers. Every way of quantizing in every format, with its options: opset,
names of inputs and outputs, dynamic axes. Recipes, that is how the bias of a fully connected layer is added: the exact
operators in both forms, and numbers against formulas in numpy, in onnxruntime, in `qxc run` and in emitted C."""

import itertools
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cmodel import CModel
from common import OracleCase, for_each, qxc, qxc_outputs, session

RECIPES = ("QDQ_OP_FP32_BIAS", "QDQ_OP_INT32_BIAS", "QDQ_OP_FP32_BIAS_QDQ")
FORMS = ("qdq", "qop")

Q, DQ = "QuantizeLinear", "DequantizeLinear"
INTEGER = ["MatMulInteger", "Add", "Cast", "Mul"]
# The activation's side alone: the DequantizeLinear of the constant weights stands beside it.
SUBGRAPHS = {
    ("QDQ_OP_FP32_BIAS", "qdq"): [Q, DQ, "MatMul", "Add"],
    ("QDQ_OP_FP32_BIAS", "qop"): [Q, "MatMulIntegerToFloat", "Add"],
    ("QDQ_OP_INT32_BIAS", "qdq"): [Q, *INTEGER],
    ("QDQ_OP_INT32_BIAS", "qop"): [Q, *INTEGER],
    ("QDQ_OP_FP32_BIAS_QDQ", "qdq"): [Q, DQ, "MatMul", "Add", Q, DQ],
    ("QDQ_OP_FP32_BIAS_QDQ", "qop"): [Q, "MatMulIntegerToFloat", "Add", Q, DQ],
}

X_TYPES = {"u8 middle": ("uint8", 0.03, 128), "u8 low": ("uint8", 0.02, 0), "u8 high": ("uint8", 0.02, 255),
           "s8 low": ("int8", 0.02, -128), "s8 high": ("int8", 0.02, 127)}
W_TYPES = {"s8 per channel": ("int8", None, 0), "s8": ("int8", 0.015, 0), "u8 low": ("uint8", 0.01, 0),
           "u8 high": ("uint8", 0.01, 255), "s8 odd": ("int8", 0.015, -7)}
K, N = 16, 10
W_SCALES = np.float32(0.01) * np.arange(1, N + 1, dtype=np.float32)
Y_TYPE = ("uint8", 0.25, 117)


def path_of(model, name):
    """Operators that the data passes through from input x on, each once; one reader a value."""
    ops, readers = [], {}
    for node in model.graph.node:
        for value in node.input:
            readers.setdefault(value, []).append(node)
    at = "x"
    while at in readers:
        node, = readers[at] if len(readers[at]) == 1 else (None,)
        ops.append(node.op_type)
        at = node.output[0]
    assert at == name, at
    return ops


def layer(kind, bias=True):
    """A model of one fully connected layer, as exporters write it; with its weights [K, N] and bias as they count."""
    rng = np.random.default_rng(7)
    w, b = (rng.standard_normal(s).astype(np.float32) for s in ((K, N), (N,)))
    shape = {"rows": [4, K], "gemm": [4, K], "batch": [3, 2, K], "vector": [K], "factors": [4, K]}[kind]
    operands = ["x", "w", "b"] if bias else ["x", "w"]
    constants = {"w": w, "b": b}
    if kind in ("gemm", "factors"):
        attributes = {"alpha": 0.5, "beta": -2.0} if kind == "factors" else {}
        nodes = [helper.make_node("Gemm", operands, ["y"], "fc", transB=1, **attributes)]
        constants["w"] = np.ascontiguousarray(w.T)
        if kind == "factors":
            w, b = w * np.float32(0.5), b * np.float32(-2)
    elif bias:
        nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], "fc"), helper.make_node("Add", ["m", "b"], ["y"], "bias")]
    else:
        nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], "fc")]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "layer", [info("x", TensorProto.FLOAT, shape)],
                              [info("y", TensorProto.FLOAT, [*shape[:-1], N])],
                              [numpy_helper.from_array(v, k) for k, v in constants.items() if k in operands])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=7), w, b


def quantized(x, kind, scale, zero):
    limits = np.iinfo(kind)
    return np.clip(np.rint(np.float32(x) / np.float32(scale)) + zero, limits.min, limits.max).astype(np.int64)


def reference(recipe, x, w, b, types):
    """In integers, then in float32 in the order of the subgraph."""
    (xk, xs, xz), (wk, ws, wz) = types
    ws = W_SCALES if ws is None else ws
    acc = (quantized(x, xk, xs, xz) - xz) @ (quantized(w, wk, ws, wz) - wz)
    scale = np.float32(xs) * np.asarray(ws, np.float32)
    if recipe == "QDQ_OP_INT32_BIAS":
        if b is not None:
            acc += np.rint(b.astype(np.float64) / scale.astype(np.float64)).astype(np.int64)
        return acc.astype(np.float32) * scale
    y = acc.astype(np.float32) * scale
    if b is not None:
        y += b
    if recipe == "QDQ_OP_FP32_BIAS_QDQ":
        y = (quantized(y, *Y_TYPE) - Y_TYPE[2]).astype(np.float32) * np.float32(Y_TYPE[1])
    return y


def type_text(types, axis):
    kind, scale, zero = types
    if scale is None:
        return f"{kind}q<[{', '.join(repr(float(s)) for s in W_SCALES)}], 0, axis={axis}>"
    return f"{kind}q<{scale}, {zero}>"


class Recipes(OracleCase):
    def made(self, kind, recipe, form, types, bias=True):
        """Parameters are stated, so that the reference need not read them out of the result."""
        model, w, b = layer(kind, bias)
        source, scheme, out = (self.scratch / n for n in ("layer.onnx", "scheme", f"{recipe}.{form}.onnx"))
        onnx.save(model, source)
        axis = 0 if kind == "gemm" else 1  # transB
        rules = [f'value "x" {type_text(types[0], 0)}', f'value "y" {type_text(Y_TYPE, 0)}',
                 f'value "w" {type_text(types[1], axis)}']
        scheme.write_text("scheme {\n" + "\n".join(rules) + "\n}\n")
        qxc(source, f"-scheme={scheme}", f"-recipe={recipe}", f"-emit={form}", "-target-opset=14", "-no-sync", "-quiet",
            "-o", out)
        return out, w, b if bias else None

    def data(self, kind):
        model, _, _ = layer(kind)
        shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        return np.random.default_rng(11).standard_normal([6, *shape]).astype(np.float32)

    def results(self, path, x, optimize=False):
        onnx.checker.check_model(onnx.load(path))
        runner = session(path, optimize)
        return np.stack([runner.run(None, {"x": s})[0] for s in x])

    def close(self, recipe, form, want, got):
        """Equal, but where QDQ multiplies floats: there the order of the sum is the runtime's."""
        if recipe == "QDQ_OP_INT32_BIAS" or (form == "qop" and recipe == "QDQ_OP_FP32_BIAS"):
            np.testing.assert_array_equal(want, got)
        elif recipe == "QDQ_OP_FP32_BIAS":
            np.testing.assert_allclose(want, got, rtol=0, atol=1e-5 * np.abs(want).max())
        else:
            steps = np.rint((want - got) / np.float32(Y_TYPE[1]))
            self.assertLessEqual(np.abs(steps).max(), 1)
            self.assertLess(np.mean(steps != 0), 0.01)

    @for_each(*(f"{k}, {r}, {f}" for k in ("rows", "gemm", "batch", "vector", "factors") for r in RECIPES for f in FORMS))
    def test_subgraph(self, case):
        kind, recipe, form = case.split(", ")
        weights = "s8" if kind in ("factors", "vector") else "s8 per channel"
        out, w, b = self.made(kind, recipe, form, (X_TYPES["u8 middle"], W_TYPES[weights]))
        model = onnx.load(out)
        self.assertEqual(SUBGRAPHS[recipe, form], path_of(model, "y"))
        extra = [DQ] if form == "qdq" and recipe != "QDQ_OP_INT32_BIAS" else []  # of the weights
        self.assertEqual(sorted(SUBGRAPHS[recipe, form] + extra), sorted(n.op_type for n in model.graph.node))
        self.assertEqual({"": 14, "com.microsoft": 1} if form == "qop" and recipe != "QDQ_OP_INT32_BIAS" else {"": 14},
                         {i.domain: i.version for i in model.opset_import})
        x = self.data(kind)
        want = reference(recipe, x, w, b, (X_TYPES["u8 middle"], W_TYPES[weights]))
        got = self.results(out, x)
        self.close(recipe, form, want, got)
        ours = qxc_outputs(out, {"x": x}, self.scratch)["y"].reshape(want.shape)
        self.close(recipe, form, got, ours)
        if recipe == "QDQ_OP_INT32_BIAS":
            np.testing.assert_array_equal(got, self.results(out, x, True))

    @for_each(*(f"{x}, {w}, {r}" for x in X_TYPES for w in W_TYPES for r in RECIPES))
    def test_types(self, case):
        """Zero points at both ends, signed and unsigned, of data and weights."""
        xt, wt, recipe = case.split(", ")
        types = (X_TYPES[xt], W_TYPES[wt])
        x = self.data("rows") * 3  # beyond what the type holds: it saturates
        for form in FORMS:
            out, w, b = self.made("rows", recipe, form, types)
            ops = path_of(onnx.load(out), "y")
            if types[0][0] == "int8" and types[1][0] == "uint8" and form == "qop" and recipe != "QDQ_OP_INT32_BIAS":
                self.assertIn("MatMul", ops)  # onnxruntime has no such MatMulIntegerToFloat
                continue
            self.assertEqual(SUBGRAPHS[recipe, form], ops)
            self.close(recipe, form, reference(recipe, x, w, b, types), self.results(out, x))

    @for_each(*(f"{r}, {f}" for r in RECIPES for f in FORMS))
    def test_without_a_bias(self, case):
        recipe, form = case.split(", ")
        types = (X_TYPES["u8 middle"], W_TYPES["s8 per channel"])
        out, w, _ = self.made("rows", recipe, form, types, bias=False)
        want = [op for op in SUBGRAPHS[recipe, form] if op != "Add"]
        if (recipe, form) == ("QDQ_OP_FP32_BIAS_QDQ", "qop"):  # nothing between product and Q: it is one operator
            want = [Q, "QLinearMatMul", DQ]
        self.assertEqual(want, path_of(onnx.load(out), "y"))
        x = self.data("rows")
        self.close(recipe, form, reference(recipe, x, w, None, types), self.results(out, x))

    @for_each(*(f"{r}, {f}" for r in RECIPES for f in FORMS))
    def test_comes_back(self, case):
        """Types, and the other form and the same again without saying the recipe."""
        recipe, form = case.split(", ")
        out, _, _ = self.made("batch", recipe, form, (X_TYPES["u8 high"], W_TYPES["s8 per channel"]))
        text = qxc(out, "-form=true", "-quiet").stdout
        self.assertIn("= MatMul(", text)
        self.assertIn("= Add(", text)
        self.assertNotIn("MatMulInteger", text)
        self.assertEqual(recipe == "QDQ_OP_INT32_BIAS", "int32q<" in text)
        x = self.data("batch")
        for again in FORMS:
            back = self.scratch / "back.onnx"
            qxc(out, f"-emit={again}", "-no-sync", "-quiet", "-o", back)
            self.assertEqual(SUBGRAPHS[recipe, again], path_of(onnx.load(back), "y"))
            self.close(recipe, "qdq" if "qdq" in (form, again) else "qop", self.results(out, x), self.results(back, x))

    @for_each(*RECIPES)
    def test_emitted_c(self, recipe):
        out, _, _ = self.made("batch", recipe, "qdq", (X_TYPES["u8 middle"], W_TYPES["s8 per channel"]))
        x = self.data("batch")
        source = self.scratch / "layer.c"
        qxc(out, "-emit=c", "-no-sync", "-quiet", "-o", source)
        if recipe == "QDQ_OP_INT32_BIAS":
            self.assertNotIn("double", source.read_text())
        c = CModel(source)
        want = qxc_outputs(out, {"x": x}, self.scratch)["y"]
        for sample, ours in zip(x, want.reshape(len(x), -1), strict=True):
            np.testing.assert_array_equal(ours, c.run(sample)[0])

    @for_each(*RECIPES)
    def test_calibrated(self, recipe):
        """Two layers with Relu between, decided from data: in both forms within 5 % of float."""
        rng = np.random.default_rng(5)
        constants = {n: rng.standard_normal(s).astype(np.float32)
                     for n, s in (("w1", (K, 24)), ("b1", (24,)), ("w2", (N, 24)), ("b2", (N,)))}
        nodes = [helper.make_node("MatMul", ["x", "w1"], ["m"]), helper.make_node("Add", ["b1", "m"], ["a"]),
                 helper.make_node("Relu", ["a"], ["r"]), helper.make_node("Gemm", ["r", "w2", "b2"], ["y"], transB=1)]
        info = helper.make_tensor_value_info
        graph = helper.make_graph(nodes, "two", [info("x", TensorProto.FLOAT, ["N", K])],
                                  [info("y", TensorProto.FLOAT, ["N", N])],
                                  [numpy_helper.from_array(v, k) for k, v in constants.items()])
        source, calib = self.scratch / "two.onnx", self.scratch / "two.npz"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=7), source)
        x = rng.standard_normal((64, K)).astype(np.float32)
        np.savez(calib, x=x)
        want = session(source).run(None, {"x": x})[0]
        for form in FORMS:
            out = self.scratch / f"two.{form}.onnx"
            qxc(source, f"-calib={calib}", f"-recipe={recipe}", f"-emit={form}", "-no-sync", "-quiet", "-o", out)
            got = session(out).run(None, {"x": x})[0]
            self.assertLess(np.abs(got - want).max(), 0.05 * np.abs(want).max())
            ops = path_of(onnx.load(out), "y")
            if recipe != "QDQ_OP_FP32_BIAS_QDQ":  # the Relu between two float sums is float, too
                first, second = (SUBGRAPHS[recipe, form],) * 2
                self.assertEqual([*first, "Relu", *second], ops)

    def test_flag_and_rule_say_the_same(self):
        for recipe, form in itertools.product(RECIPES, FORMS):
            model, _, _ = layer("gemm")
            source, scheme, calib = (self.scratch / n for n in ("same.onnx", "same", "same.npz"))
            onnx.save(model, source)
            np.savez(calib, x=self.data("gemm"))
            scheme.write_text(f"scheme {{ recipe {recipe} }}")
            outs = [self.scratch / f"same{i}.onnx" for i in range(2)]
            for out, option in zip(outs, (f"-recipe={recipe}", f"-scheme={scheme}"), strict=True):
                qxc(source, f"-calib={calib}", option, f"-emit={form}", "-no-sync", "-quiet", "-o", out)
            self.assertEqual(outs[0].read_bytes(), outs[1].read_bytes())

    def test_a_bias_that_int32_cannot_hold_stays_float(self):
        model, _, _ = layer("rows")
        big = np.full(N, 1e8, np.float32)
        model.graph.initializer[1].CopyFrom(numpy_helper.from_array(big, "b"))
        source, calib, out = (self.scratch / n for n in ("big.onnx", "big.npz", "big.qdq.onnx"))
        onnx.save(model, source)
        np.savez(calib, x=self.data("rows"))
        said = qxc(source, f"-calib={calib}", "-recipe=QDQ_OP_INT32_BIAS", "-emit=qdq", "-no-sync", "-o", out).stderr
        self.assertIn("does not fit int32", said)
        self.assertEqual(SUBGRAPHS["QDQ_OP_FP32_BIAS", "qdq"], path_of(onnx.load(out), "y"))


def network(qat=False):
    """Conv, Relu, pooling, Reshape to a fixed batch, a fully connected layer; with QAT's Q and DQ where asked for."""
    rng = np.random.default_rng(9)
    constants = {"cw": rng.standard_normal((6, 3, 3, 3)) * 0.3, "cb": rng.standard_normal(6) * 0.1,
                 "fw": rng.standard_normal((10, 54)) * 0.2, "fb": rng.standard_normal(10) * 0.1}
    constants = {k: v.astype(np.float32) for k, v in constants.items()}
    constants["shape"] = np.array([1, 54], np.int64)
    nodes = []

    def fake(value, scale, zero, axis=None):
        """QuantizeLinear, DequantizeLinear, as training's FakeQuantize is exported."""
        if not qat:
            return value
        constants.update({f"{value}_s": np.asarray(scale, np.float32), f"{value}_z": np.asarray(zero)})
        attributes = {} if axis is None else {"axis": axis}
        nodes.append(helper.make_node(Q, [value, f"{value}_s", f"{value}_z"], [f"{value}_q"], **attributes))
        nodes.append(helper.make_node(DQ, [f"{value}_q", f"{value}_s", f"{value}_z"], [f"{value}_dq"], **attributes))
        return f"{value}_dq"

    def weight(name):
        w = constants[name]
        scale = np.abs(w).reshape(len(w), -1).max(axis=1) / 127
        return fake(name, scale, np.zeros(len(w), np.int8), 0)

    def add(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], output, **attributes))
        return output

    x = fake("image", 4 / 128, np.uint8(128))
    x = add("Conv", [x, weight("cw"), "cb"], "conv")
    x = fake(add("Relu", [x], "relu"), 5 / 255, np.uint8(0))
    x = add("MaxPool", [x], "pool", kernel_shape=[2, 2], strides=[2, 2])
    x = add("Reshape", [x, "shape"], "rows")
    x = fake(x, 5 / 255, np.uint8(0)) if qat else x
    add("Gemm", [x, weight("fw"), "fb"], "logits", transB=1)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "network", [info("image", TensorProto.FLOAT, [1, 3, 8, 8])],
                              [info("logits", TensorProto.FLOAT, [1, 10])],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)


WAYS = {"dynamic": ["-dynamic"], "static": ["-calib="], "QAT": ["-recipe=QDQ_OP_FP32_BIAS"]}
FORMATS = {"fp32": ["-emit=onnx"], "QDQ": ["-emit=qdq"], "QLinear": ["-emit=qop"]}


class Export(OracleCase):
    """The table of ways and formats; every file is made with all options and runs with another batch size."""

    OPTIONS = ("-target-opset=14", "-input-names=input", "-output-names=output",
               "-dynamic-axis=input:0:batch_size", "-dynamic-axis=output:0:batch_size")

    @for_each(*(f"{w}, {f}" for w in WAYS for f in FORMATS))
    def test_cell(self, case):
        way, form = case.split(", ")
        x = np.random.default_rng(2).uniform(-1, 1, (40, 1, 3, 8, 8)).astype(np.float32)
        calib, out = self.scratch / "calib.npz", self.scratch / "out.onnx"
        np.savez(calib, image=x[:, 0])
        onnx.save(network(), self.scratch / "float.onnx")
        source = self.scratch / "source.onnx"
        onnx.save(network(qat=way == "QAT" and form != "fp32"), source)  # the model before and after training's Q, DQ
        flags = [] if form == "fp32" else [f"{o}{calib}" if o == "-calib=" else o for o in WAYS[way]]
        qxc(source, *flags, *FORMATS[form], *self.OPTIONS, "-no-sync", "-quiet", "-o", out)
        model = onnx.load(out)
        onnx.checker.check_model(model)
        self.assertEqual(14, next(i.version for i in model.opset_import if not i.domain))
        for port, name, shape in ((model.graph.input, "input", ["batch_size", 3, 8, 8]),
                                  (model.graph.output, "output", ["batch_size", 10])):
            self.assertEqual([name], [p.name for p in port])
            self.assertEqual(shape, [d.dim_param or d.dim_value for d in port[0].type.tensor_type.shape.dim])
        ops = {n.op_type for n in model.graph.node}
        wanted = {"fp32": {"Conv", "Gemm"}, "QDQ": {Q, DQ, "Conv"}, "QLinear": {Q, "QLinearConv"}}[form]
        if way == "dynamic" and form != "fp32":
            wanted = {"DynamicQuantizeLinear", "ConvInteger",
                      "MatMulInteger" if form == "QDQ" else "DynamicQuantizeMatMul"} - {
                          "DynamicQuantizeLinear" if form == "QLinear" else ""}
        elif form != "fp32":  # the last result of the QAT model is float, which is what recipes are about
            linear = {"static": ("Gemm", "QGemm"), "QAT": ("MatMul", "MatMulIntegerToFloat")}[way]
            wanted.add(linear[form == "QLinear"])
        self.assertLessEqual(wanted, ops)
        if form == "QLinear" and way != "dynamic":
            self.assertFalse({"Conv", "Gemm", "MatMul"} & ops)
        want = np.concatenate([session(self.scratch / "float.onnx").run(None, {"image": s})[0] for s in x])
        for optimize in (False, True):
            runner = session(out, optimize)
            got = runner.run(None, {"input": x[:, 0]})[0]
            each = np.concatenate([runner.run(None, {"input": s})[0] for s in x])
            if form == "fp32":
                np.testing.assert_allclose(want, got, rtol=0, atol=1e-5)
            self.assertLess(np.abs(got - want).max(), 0.1 * np.abs(want).max())
            if way != "dynamic" or form == "fp32":  # a dynamic scale is that of the whole batch
                np.testing.assert_allclose(each, got, rtol=0, atol=1e-5)

    @for_each("QDQ", "QLinear")
    def test_what_training_found_is_kept(self, form):
        """Integers of the weights and all scales are those of the QAT model's Q and DQ."""
        model = network(qat=True)
        source, out = self.scratch / "qat.onnx", self.scratch / "out.onnx"
        onnx.save(model, source)
        qxc(source, *FORMATS[form], *self.OPTIONS, "-no-sync", "-quiet", "-o", out)
        values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        made = [numpy_helper.to_array(t) for t in onnx.load(out).graph.initializer]
        for name in ("cw", "fw"):
            scale = values[f"{name}_s"]
            ints = np.clip(np.rint(values[name] / scale.reshape(-1, *[1] * (values[name].ndim - 1))), -128, 127)
            self.assertTrue(any(np.array_equal(m, ints) for m in made), name)
            self.assertTrue(any(m.dtype == np.float32 and np.array_equal(m, scale) for m in made), name)
        for name in ("image_s", "relu_s"):
            self.assertTrue(any(m.dtype == np.float32 and m.ndim == 0 and m == values[name] for m in made), name)

    @for_each("QDQ", "QLinear")
    def test_only_what_was_quantized_is(self, form):
        """The decisions for one model, as a scheme, taken over for another of the same names."""
        source, calib, scheme, out = (self.scratch / n for n in ("float.onnx", "c.npz", "s", "out.onnx"))
        onnx.save(network(), source)
        np.savez(calib, image=np.random.default_rng(2).uniform(-1, 1, (40, 3, 8, 8)).astype(np.float32))
        qxc(source, f"-calib={calib}", "-keep=Conv", "-target=ort-cpu", "-emit=scheme", "-no-sync", "-quiet", "-o", scheme)
        qxc(source, f"-scheme={scheme}", *FORMATS[form], "-no-sync", "-quiet", "-o", out)
        ops = [n.op_type for n in onnx.load(out).graph.node]
        self.assertIn("Conv", ops)
        self.assertNotIn("QLinearConv", ops)
        self.assertIn("QGemm" if form == "QLinear" else "Gemm", ops)
        direct = self.scratch / "direct.onnx"
        qxc(source, f"-calib={calib}", "-keep=Conv", *FORMATS[form], "-no-sync", "-quiet", "-o", direct)
        scales = [sorted(float(v) for t in onnx.load(p).graph.initializer if t.name.endswith("_scale")
                         for v in numpy_helper.to_array(t).ravel()) for p in (out, direct)]
        self.assertEqual(*scales)
        x = np.random.default_rng(4).uniform(-1, 1, (1, 3, 8, 8)).astype(np.float32)
        a, b = (session(p).run(None, {"image": x})[0] for p in (out, direct))
        self.assertLess(np.abs(a - b).max(), 1.1 * max(scales[0]))  # with data the biases are corrected, too


if __name__ == "__main__":
    unittest.main()
