"""Functions of the model: inlined by qxc, against onnxruntime and onnx's own inliner."""

import random
import unittest

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T
from onnx import helper, inliner, numpy_helper

from common import OracleCase, qxc

DOMAIN = "pkg.module.1"


def node(op, inputs, outputs, domain="", overload="", **attrs):
    """A node; an attribute given as Ref("name", kind) refers to the function's."""
    refs = {k: v for k, v in attrs.items() if isinstance(v, Ref)}
    made = helper.make_node(op, inputs, outputs, domain=domain, overload=overload,
                            **{k: v for k, v in attrs.items() if k not in refs})
    for name, ref in refs.items():
        made.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=ref.name, type=ref.kind))
    return made


class Ref:
    def __init__(self, name, kind=onnx.AttributeProto.FLOAT):
        self.name, self.kind = name, kind


def named(made, name):
    made.name = name
    return made


def call(f, inputs, outputs, **attrs):
    return node(f, inputs, outputs, domain=DOMAIN, **attrs)


def function(name, inputs, outputs, nodes, attrs=(), defaults=None, opset=18, overload="", own=True):
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(DOMAIN, 1)] if own else [])
    f = helper.make_function(DOMAIN, name, inputs, outputs, nodes, imports, list(attrs),
                             [helper.make_attribute(k, v) for k, v in (defaults or {}).items()])
    f.overload = overload
    return f


def model(nodes, functions, inputs, outputs, inits=(), opset=18, result=None):
    """Results have the shape of the first operand where `result` gives none."""
    result = result or next(iter(inputs.values()))
    graph = helper.make_graph(
        nodes, "main", [helper.make_tensor_value_info(n, T.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(o, T.FLOAT, result) for o in outputs],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in dict(inits).items()])
    return helper.make_model(graph, functions=functions, ir_version=10, opset_imports=[
        helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)])


def scale(overload=""):
    """y = x * factor + bias; both attributes, one with a default."""
    return function("Scale", ["x"], ["y"], [
        node("Constant", [], ["f"], value_float=Ref("factor")),
        node("Constant", [], ["b"], value_float=Ref("bias")),
        node("Mul", ["x", "f"], ["t"]),
        node("Add", ["t", "b"], ["y"])], ["factor"], {"bias": 0.5}, overload=overload)


def nested():
    return function("Twice", ["x"], ["y", "z"], [
        call("Scale", ["x"], ["t"], factor=Ref("factor")),
        call("Scale", ["t"], ["y"], factor=2.0, bias=Ref("factor")),
        node("Relu", ["t"], ["z"])], ["factor"])


def clamp():
    """The operands may be left out, as Clip's may."""
    return function("Clamp", ["x", "lo", "hi"], ["y"], [node("Clip", ["x", "lo", "hi"], ["y"])])


def branches():
    """Subgraphs that see the function's operands and values."""
    def branch(name, op):
        y = helper.make_tensor_value_info("r", T.FLOAT, [3, 4])
        return helper.make_graph([node(op, ["x", "t"], ["r"])], name, [], [y])
    return function("Choose", ["x", "c"], ["y"], [
        node("Relu", ["x"], ["t"]),
        node("If", ["c"], ["y"], then_branch=branch("then", "Add"), else_branch=branch("else", "Sub"))])


X = {"x": [3, 4]}

CASES = {
    "attributes and defaults": model(
        [call("Scale", ["x"], ["a"], factor=3.0), call("Scale", ["a"], ["y"], factor=-1.5, bias=0.25)],
        [scale()], X, ["y"]),
    "nested": model(
        [named(call("Twice", ["x"], ["y", "z"], factor=2.0), "/a/Twice"),
         named(call("Twice", ["y"], ["w", ""], factor=0.5), "/b/Twice")],
        [scale(), nested()], X, ["z", "w"]),
    "operands left out": model(
        [call("Clamp", ["x", "", "hi"], ["a"]), call("Clamp", ["a", "lo"], ["b"]),
         call("Clamp", ["b"], ["y"])],
        [clamp()], X, ["y"], {"hi": np.float32(0.75), "lo": np.float32(-0.5)}),
    "subgraphs": model([call("Choose", ["x", "yes"], ["a"]), call("Choose", ["a", "no"], ["y"])],
                       [branches()], X, ["y"], {"yes": np.bool_(True), "no": np.bool_(False)}),
}


def called_in_branch():
    def branch(name, factor):
        y = helper.make_tensor_value_info(name + "_r", T.FLOAT, [3, 4])
        return helper.make_graph([call("Scale", ["x"], [name + "_r"], factor=factor)], name, [], [y])
    return model([
        node("If", ["yes"], ["a"], then_branch=branch("t", 2.0), else_branch=branch("e", 3.0)),
        node("If", ["no"], ["b"], then_branch=branch("t2", 4.0), else_branch=branch("e2", 5.0)),
        node("Sub", ["a", "b"], ["y"])],
                 [scale()], X, ["y"], {"yes": np.bool_(True), "no": np.bool_(False)})


CASES["called in a branch"] = called_in_branch()


def conv_net(rng):
    """As PyTorch exports modules: a function each, weights as operands, calls of calls."""
    conv = function("torch_nn_Conv2d_1", ["x", "w", "b"], ["y"], [
        named(node("Conv", ["x", "w", "b"], ["y"], pads=[1, 1, 1, 1], strides=Ref("strides", T.INT32 + 1)),
              "conv")], ["strides"])
    conv.node[0].attribute[-1].type = onnx.AttributeProto.INTS
    norm = function("torch_nn_BatchNorm2d_1", ["x", "s", "b", "m", "v"], ["y"], [
        named(node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"], epsilon=1e-5), "norm")])
    relu = function("torch_nn_ReLU_1", ["x"], ["y"], [named(node("Relu", ["x"], ["y"]), "relu")])
    block = function("torchvision_Block_1", ["x", "w", "b", "s", "t", "m", "v"], ["y"], [
        named(call("torch_nn_Conv2d_1", ["x", "w", "b"], ["c"], strides=Ref("strides")), "conv1"),
        named(call("torch_nn_BatchNorm2d_1", ["c", "s", "t", "m", "v"], ["n"]), "bn1"),
        named(call("torch_nn_ReLU_1", ["n"], ["y"]), "act")], ["strides"])
    block.node[0].attribute[-1].type = onnx.AttributeProto.INTS
    linear = function("torch_nn_Linear_1", ["x", "w", "b"], ["y"], [
        named(node("Gemm", ["x", "w", "b"], ["y"], transB=1), "gemm")])

    def f(*shape):
        return rng.standard_normal(shape).astype(np.float32) * np.float32(0.3)
    inits, nodes, x, channels = {}, [], "x", 3
    for i, (out, stride) in enumerate([(8, 1), (12, 2)]):
        p = f"layer{i}"
        inits |= {f"{p}.w": f(out, channels, 3, 3), f"{p}.b": f(out), f"{p}.s": f(out) + 1, f"{p}.t": f(out),
                  f"{p}.m": f(out), f"{p}.v": abs(f(out)) + np.float32(0.5)}
        nodes.append(named(call("torchvision_Block_1", [x] + [f"{p}.{k}" for k in "wbstmv"], [f"{p}"],
                                strides=[stride, stride]), p))
        x, channels = p, out
    inits |= {"fc.w": f(5, 12), "fc.b": f(5)}
    nodes += [node("GlobalAveragePool", [x], ["g"]), node("Flatten", ["g"], ["flat"]),
              named(call("torch_nn_Linear_1", ["flat", "fc.w", "fc.b"], ["y"]), "fc")]
    return model(nodes, [conv, norm, relu, block, linear], {"x": [1, 3, 8, 8]}, ["y"], inits, result=[1, 5])


UNARY = ("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Identity")
BINARY = ("Add", "Sub", "Mul")


def random_functions(rng):
    """Functions F0 .. Fn, each calling the ones before it, on one shape."""
    arity, functions = [], []

    def body(known, depth):
        nodes, values = [], list(known)
        for i in range(rng.randint(1, 4)):
            out = f"v{len(values)}"
            k = rng.randrange(len(functions)) if functions and rng.random() < 0.5 else None
            if k is None and rng.random() < 0.5:
                nodes.append(node(rng.choice(UNARY), [rng.choice(values)], [out]))
            elif k is None:
                nodes.append(node(rng.choice(BINARY), [rng.choice(values), rng.choice(values)], [out]))
            else:
                n_in, n_out = arity[k]
                outs = [out] + [f"{out}_{j}" if rng.random() < 0.7 else "" for j in range(1, n_out)]
                attrs = {"a": Ref("a") if depth else rng.uniform(-1, 1)} if rng.random() < 0.7 else {}
                nodes.append(call(f"F{k}", [rng.choice(values) for _ in range(n_in)], outs, **attrs))
                if rng.random() < 0.5:
                    nodes[-1].name = rng.choice((f"call{i}", f"v{i}", f"F{i}/v1"))
                values += [o for o in outs[1:] if o]
            values.append(out)
        return nodes, values

    for i in range(rng.randint(1, 5)):
        inputs = [f"p{j}" for j in range(rng.randint(1, 3))]
        first = [node("Constant", [], ["k"], value_float=Ref("a")), node("Mul", ["p0", "k"], ["v"])]
        nodes, values = body(inputs + ["v"], 1)
        outputs = [values[-1]] + rng.sample(values[len(inputs):-1], min(rng.randint(0, 1), len(values) - 2))
        outputs = list(dict.fromkeys(outputs))
        functions.append(function(f"F{i}", inputs, outputs, first + nodes, [], {"a": rng.uniform(-1, 1)}))
        arity.append((len(inputs), len(outputs)))
    nodes, values = body(["x"], 0)
    return model(nodes, functions, X, [values[-1]])


def live_ops(g):
    """Operators whose results are wanted: onnx's inliner also keeps what a call does not ask for."""
    wanted, ops = {o.name for o in g.output}, []
    for n in reversed(g.node):
        if wanted & set(n.output):
            ops.append(n.op_type)
            wanted |= set(n.input)
            for a in n.attribute:
                wanted |= {i for k in a.g.node for i in k.input} | {o.name for o in a.g.output}
    return sorted(ops)


class Functions(OracleCase):
    def sample(self, m, seed=1):
        rng = np.random.default_rng(seed)
        shape = [d.dim_value for d in m.graph.input[0].type.tensor_type.shape.dim]
        return rng.standard_normal(shape).astype(np.float32)

    def ort(self, m, x):
        options = ort.SessionOptions()
        options.log_severity_level = 4
        session = ort.InferenceSession(m.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return dict(zip([o.name for o in m.graph.output], session.run(None, {"x": x})))

    def run_qxc(self, path, x):
        x_file, y_file = self.scratch / "x.npz", self.scratch / "y.npz"
        np.savez(x_file, x=x if x.shape[0] == 1 else x[None])
        qxc("run", path, f"-input={x_file}", "-o", y_file)
        return {k: v[0] for k, v in np.load(y_file).items()}

    def agree(self, have, want, tolerance=1e-5):
        self.assertEqual(set(have), set(want))
        for name, v in want.items():
            v = np.asarray(v)
            np.testing.assert_allclose(have[name].reshape(v.shape), v, rtol=tolerance, atol=tolerance)

    def check(self, m, **more):
        path, inlined = self.scratch / "f.onnx", self.scratch / "inlined.onnx"
        onnx.save(m, path)
        x = self.sample(m)
        want = self.ort(m, x)
        self.agree(self.run_qxc(path, x), want, **more)
        qxc(path, "-passes=inline-functions", "-emit=onnx", "-o", inlined)
        done = onnx.load(inlined)
        self.assertEqual(len(done.functions), 0)
        self.assertEqual([o.domain for o in done.opset_import], [""])
        onnx.checker.check_model(done, full_check=True)
        self.agree(self.ort(done, x), want, **more)
        names = [o for n in done.graph.node for o in n.output if o]
        self.assertEqual(len(names), len(set(names)))
        theirs = inliner.inline_local_functions(m)
        self.assertEqual(live_ops(done.graph), live_ops(theirs.graph))

    def test_by_hand(self):
        for label, m in CASES.items():
            with self.subTest(label):
                onnx.checker.check_model(m)
                self.check(m)

    def test_overloads(self):
        """onnxruntime refuses overloads; ONNX's inliner knows them."""
        other = function("Scale", ["x"], ["y"], [node("Tanh", ["x"], ["y"])], overload="neg")
        m = model([call("Scale", ["x"], ["a"], overload="neg"), call("Scale", ["a"], ["y"], factor=2.0)],
                  [scale(), other], X, ["y"])
        path = self.scratch / "f.onnx"
        onnx.save(m, path)
        x = self.sample(m)
        self.agree(self.run_qxc(path, x), {"y": np.tanh(x) * 2 + np.float32(0.5)})

    def test_passed_through(self):
        """An operand as a result, and one value as two results; onnxruntime refuses both."""
        f = function("Pass", ["x"], ["x", "a", "a"], [node("Tanh", ["x"], ["a"])])
        m = model([call("Pass", ["x"], ["p", "q", "r"])], [f], X, ["p", "q", "r"])
        path = self.scratch / "f.onnx"
        onnx.save(m, path)
        x = self.sample(m)
        self.agree(self.run_qxc(path, x), {"p": x, "q": np.tanh(x), "r": np.tanh(x)})

    def test_other_opsets(self):
        """Each body is converted from the opset it was written for."""
        old = function("Old", ["x"], ["y"], [
            node("Unsqueeze", ["x"], ["u"], axes=Ref("axes")), node("Softmax", ["u"], ["s"]),
            node("Squeeze", ["s"], ["y"], axes=Ref("axes"))], ["axes"], opset=12, own=False)
        for n in (old.node[0], old.node[2]):
            n.attribute[0].type = onnx.AttributeProto.INTS
        new = function("New", ["x"], ["y"], [node("Softmax", ["x"], ["y"], axis=0)], opset=18, own=False)
        for opset in (12, 15, 18, 21):
            with self.subTest(opset=opset):
                m = model([node("Tanh", ["x"], ["n"]), call("Old", ["n"], ["a"], axes=[1]),
                           call("New", ["a"], ["b"]), node("Dropout", ["b"], ["c"]),
                           node("Softmax", ["c"], ["y"])], [old, new], {"x": [3, 4, 2]}, ["y"], opset=opset)
                path = self.scratch / "f.onnx"
                onnx.save(m, path)
                x = self.sample(m)

                def softmax(v, axes):
                    e = np.exp(v - v.max(axis=axes, keepdims=True))
                    return e / e.sum(axis=axes, keepdims=True)
                want = softmax(softmax(np.tanh(x), (1, 2)), 0)
                want = softmax(want, (1, 2) if opset < 13 else 2)
                self.agree(self.run_qxc(path, x), {"y": want})

    def test_exported_network(self):
        m = conv_net(np.random.default_rng(5))
        onnx.checker.check_model(m, full_check=True)
        self.check(m, tolerance=1e-4)

    def test_quantized_and_c(self):
        """A model of functions quantizes to what the same model without them does."""
        m = conv_net(np.random.default_rng(5))
        path, flat, calib = self.scratch / "f.onnx", self.scratch / "flat.onnx", self.scratch / "calib.npz"
        onnx.save(m, path)
        onnx.save(inliner.inline_local_functions(m), flat)
        np.savez(calib, x=np.random.default_rng(2).standard_normal((16, 3, 8, 8)).astype(np.float32))
        x = self.sample(m)
        for form in ("qdq", "qop"):
            results = []
            for source in (path, flat):
                out = self.scratch / f"{source.stem}.{form}.onnx"
                qxc(source, f"-emit={form}", f"-calib={calib}", "-o", out)
                results.append(self.ort(onnx.load(out), x)["y"])
            np.testing.assert_array_equal(*results)
            self.assertLess(np.abs(results[0] - self.ort(m, x)["y"]).max(), 0.2)
        code = [self.scratch / "a" / "net.c", self.scratch / "b" / "net.c"]
        for source, out in zip((path, flat), code):
            out.parent.mkdir()
            qxc(source, "-emit=c", f"-calib={calib}", "-o", out)
            self.assertRegex(out.read_text(), r"qk_conv2d_(nhwc_)?q")

    def test_kept_where_nothing_needs_it(self):
        m = conv_net(np.random.default_rng(5))
        path, text, back = (self.scratch / n for n in ("f.onnx", "f.qir", "back.onnx"))
        onnx.save(m, path)
        qxc(path, "-emit=qir", "-o", text)
        qxc(text, "-emit=onnx", "-o", back)
        self.assertEqual(onnx.load(back), m)

    def test_random(self):
        for seed in range(60):
            with self.subTest(seed=seed):
                rng = random.Random(seed)
                m = random_functions(rng)
                onnx.checker.check_model(m)
                path = self.scratch / "f.onnx"
                onnx.save(m, path)
                x = self.sample(m, seed)
                self.agree(self.run_qxc(path, x), self.ort(m, x), tolerance=1e-4)


if __name__ == "__main__":
    unittest.main()
