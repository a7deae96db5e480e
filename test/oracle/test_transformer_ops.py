"""com.microsoft's transformer operators, as onnxruntime's optimizer leaves them: `qxc run` and
emitted C against onnxruntime, each result within 1e-5 * max + 1e-6.
"""

import itertools

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cmodel import CModel
from common import OracleCase, float_excess, qxc, qxc_outputs, session

KINDS = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float16): TensorProto.FLOAT16, np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8, np.dtype(np.int32): TensorProto.INT32, np.dtype(np.int64): TensorProto.INT64}


def model_of(op, operands, results, constants, domain="com.microsoft", **attrs):
    """One node. `operands` are (name, array), None for one left out; results (name, type)."""
    given = [o for o in operands if o]
    node = helper.make_node(op, [o[0] if o else "" for o in operands], [r[0] for r in results], "it",
                            domain=domain, **attrs)
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(n, KINDS[v.dtype], v.shape) for n, v in given
         if n not in constants],
        [helper.make_tensor_value_info(n, kind, None) for n, kind in results if n],
        [numpy_helper.from_array(v, n) for n, v in given if n in constants])
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])


class TransformerOps(OracleCase):
    def check(self, op, operands, results=("y",), constants=(), c=False, counted=None, **attrs):
        """`counted`: of a result [batch, heads, steps, size] how many steps of each sequence count, less one."""
        results = [r if isinstance(r, tuple) else (r, TensorProto.FLOAT) for r in results]
        model = model_of(op, operands, results, constants, **attrs)
        path = self.scratch / "m.onnx"
        onnx.save(model, path)
        data = {o[0]: o[1] for o in operands if o and o[0] not in constants}
        want = dict(zip([r[0] for r in results if r[0]], session(model).run(None, data)))
        got = qxc_outputs(path, {n: v if v.shape[:1] == (1,) else v[None] for n, v in data.items()},
                          self.scratch)
        self.assertEqual(set(got), set(want))
        for name, lengths in (counted or {}).items():
            for i, length in enumerate(lengths):
                want[name][i, :, length + 1:] = got[name].reshape(want[name].shape)[i, :, length + 1:]
        for name, values in want.items():
            self.assertEqual(got[name].size, values.size, name)
            if values.dtype != np.float32:
                np.testing.assert_array_equal(got[name].ravel(), values.ravel())
            elif values.size:
                excess = float_excess(got[name].reshape(1, -1), values.reshape(1, -1))
                self.assertLessEqual(excess, 0, f"{name} of {op} {attrs}")
        self.check_onnx_alone(path, data, want)
        if c:
            self.check_c(path, data, got)

    def check_onnx_alone(self, path, data, want):
        """-target=onnx spells the operator with ONNX's, be they of its opset or newer ones; 2e-5 times the largest."""
        spelled = self.scratch / "spelled.onnx"
        for more in ([], ["-target-opset=23"]):
            qxc(path, "-target=onnx", "-emit=onnx", "-no-sync", *more, "-o", spelled)
            made = onnx.load(spelled)
            for out in made.graph.output:  # the test's model states none, which the checker asks for
                out.CopyFrom(helper.make_tensor_value_info(out.name, KINDS[want[out.name].dtype], want[out.name].shape))
            onnx.checker.check_model(made, full_check=True)
            self.assertEqual({""}, {n.domain for n in made.graph.node})
            self.assertEqual([""], [i.domain for i in made.opset_import])
            for (name, values), got in zip(want.items(), session(made).run(list(want), data)):
                bound = (2e-5 * np.max(np.abs(values), initial=0) + 1e-6) * (values.dtype == np.float32)
                self.assertEqual(got.shape, values.shape)
                self.assertLessEqual(np.max(np.abs(got - values), initial=0), bound, name)

    def check_c(self, path, data, want):
        source = self.scratch / "m.c"
        qxc(path, "-emit=c", "-no-sync", "-o", source)
        compiled = CModel(source, "gcc", flags=("-O0", "-fsanitize=undefined"))
        compiled.arena[:] = 0xff
        for (name, kind, _), values in zip(compiled.outputs, compiled.run(*data.values())):
            if kind == np.float32:
                excess = float_excess(values.reshape(1, -1), want[name].reshape(1, -1))
                self.assertLessEqual(excess, 0, name)
            else:
                np.testing.assert_array_equal(values, want[name].ravel())

    # ---- Attention

    def masks(self, rng, batch, steps):
        """Of every kind; no row is hidden whole."""
        ends = rng.integers(1, steps + 1, batch).astype(np.int32)
        starts = np.array([rng.integers(0, e) for e in ends], np.int32)
        raw = rng.integers(0, 2, (batch, steps)).astype(np.int32)
        each = rng.integers(0, 2, (batch, steps, steps)).astype(np.int32)
        raw[:, 0] = 1
        each[:, :, 0] = 1
        return [None, ends, np.concatenate([ends, starts]), raw, each]

    def attention(self, rng, batch, steps, size, heads, head, value=None, mask=None, c=False, **attrs):
        width = heads * (2 * head + (value or head))
        if value:
            attrs["qkv_hidden_sizes"] = [heads * head, heads * head, heads * value]
        operands = [("x", rng.standard_normal((batch, steps, size)).astype(np.float32)),
                    ("w", rng.standard_normal((size, width)).astype(np.float32)),
                    ("b", rng.standard_normal(width).astype(np.float32)),
                    ("m", mask) if mask is not None else None]
        self.check("Attention", operands, constants=("w", "b"), c=c, num_heads=heads, **attrs)

    def test_attention(self):
        rng = np.random.default_rng(1)
        for batch, steps in ((1, 1), (2, 5), (3, 17)):
            for number, mask in enumerate(self.masks(rng, batch, steps)):
                for causal in (0, 1):
                    with self.subTest(batch=batch, steps=steps, mask=number, causal=causal):
                        self.attention(rng, batch, steps, 12, 3, 4, mask=mask,
                                       unidirectional=causal, c=steps == 5)

    def test_attention_sizes(self):
        rng = np.random.default_rng(2)
        for heads, head, value in ((1, 8, 3), (4, 16, 8), (2, 1, 1)):
            with self.subTest(heads=heads, head=head, value=value):
                self.attention(rng, 2, 6, 10, heads, head, value)
        self.attention(rng, 2, 6, 10, 2, 5, scale=0.2)
        mask = np.array([[1, 1, 0, 0], [1, 0, 0, 1]], np.int32)
        self.attention(rng, 2, 4, 10, 2, 5, mask=mask, mask_filter_value=-3.0)

    def test_attention_without_bias(self):
        """As with a bias of 0: onnxruntime's kernel ends the process where there is none."""
        rng = np.random.default_rng(6)
        x = rng.standard_normal((1, 3, 4)).astype(np.float32)
        w = rng.standard_normal((4, 12)).astype(np.float32)
        results = []
        for bias in (("b", np.zeros(12, np.float32)), None):
            path = self.scratch / "m.onnx"
            onnx.save(model_of("Attention", [("x", x), ("w", w)] + ([bias] if bias else []),
                               [("y", TensorProto.FLOAT)], ("w", "b"), num_heads=2), path)
            results.append(qxc_outputs(path, {"x": x}, self.scratch)["y"])
        np.testing.assert_array_equal(*results)

    def test_attention_refused(self):
        """What has no kernel is named, with exit code 1."""
        x, w = np.zeros((1, 3, 4), np.float32), np.zeros((4, 12), np.float32)
        past = np.zeros((2, 1, 2, 1, 2), np.float32)
        mask = np.zeros((1, 1, 3, 3), np.int32)
        for operands, attrs, why in (([("x", x), ("w", w), None, None, ("p", past)], {"past_present_share_buffer": 1}, "past or present"),
                                     ([("x", x), ("w", w)], {"do_rotary": 1}, "it has a rotary embedding"),
                                     ([("x", x), ("w", w), None, ("m", mask)], {}, "its mask is int32[1,1,3,3]")):
            path = self.scratch / "m.onnx"
            onnx.save(model_of("Attention", operands, [("y", TensorProto.FLOAT)], (), num_heads=2, **attrs), path)
            done = qxc("run", path, "-random=1", ok=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(why, done.stderr)

    def test_attention_with_past(self):
        """What the kernel lacks, products do."""
        rng = np.random.default_rng(10)
        x, past = rng.standard_normal((2, 3, 8)), rng.standard_normal((2, 2, 2, 4, 4))
        w, b, added = rng.standard_normal((8, 24)), rng.standard_normal(24), rng.standard_normal((2, 2, 3, 7))
        mask = np.array([[1, 1, 0, 1, 1, 1, 1], [1, 0, 1, 1, 1, 0, 1]], np.int32)
        x, past, w, b, added = (v.astype(np.float32) for v in (x, past, w, b, added))
        for causal in (0, 1):
            with self.subTest(causal=causal):
                self.check("Attention", [("x", x), ("w", w), ("b", b), ("m", mask), ("past", past)], ["y", "present"],
                           ("w", "b", "m"), c=True, num_heads=2, unidirectional=causal)
        self.check("Attention", [("x", x), ("w", w), ("b", b), None, None, ("add", added[..., :3].copy())],
                   constants=("w", "b"), c=True, num_heads=2)

    # ---- EmbedLayerNormalization

    def test_embed(self):
        rng = np.random.default_rng(3)

        def table(*shape):
            return rng.standard_normal(shape).astype(np.float32)

        for segments, mask, positions in itertools.product((False, True), (False, True), (0, 1, 2)):
            ids = rng.integers(0, 20, (2, 5)).astype(np.int32)
            at = rng.integers(0, 9, (positions, 5)).astype(np.int32) if positions else None
            operands = [("ids", ids),
                        ("s", rng.integers(0, 2, (2, 5)).astype(np.int32)) if segments else None,
                        ("word", table(20, 8)), ("place", table(9, 8)),
                        ("kind", table(2, 8)) if segments else None,
                        ("gamma", table(8)), ("beta", table(8)),
                        ("m", rng.integers(0, 2, (2, 5)).astype(np.int32)) if mask else None,
                        ("at", at) if positions else None]
            while operands[-1] is None:
                operands.pop()
            with self.subTest(segments=segments, mask=mask, positions=positions):
                self.check("EmbedLayerNormalization", operands,
                           ["y", ("count", TensorProto.INT32), "sum"],
                           ("word", "place", "kind", "gamma", "beta"), c=positions == 2,
                           epsilon=1e-5)

    # ---- FusedMatMul, SkipSimplifiedLayerNormalization

    def test_fused_matmul(self):
        rng = np.random.default_rng(4)
        for a, b in itertools.product((0, 1), (0, 1)):
            for left, right in (((), ()), ((3,), ()), ((2, 1), (4,))):
                x = rng.standard_normal(left + ((7, 5) if a else (5, 7))).astype(np.float32)
                y = rng.standard_normal(right + ((6, 7) if b else (7, 6))).astype(np.float32)
                with self.subTest(a=a, b=b, left=left):
                    self.check("FusedMatMul", [("a", x), ("b", y)], c=left == (3,), transA=a,
                               transB=b, alpha=0.125)

    def test_fused_matmul_batches(self):
        """transBatch moves the first axis to where rows are."""
        rng = np.random.default_rng(6)
        for turned in itertools.product((0, 1), repeat=4):
            for left, right in (((3,), (3,)), ((2, 3), (2, 3)), ((1, 3), (2, 1))):
                operands = []
                for name, shape, trans, batch in (("a", left + (7, 5), *turned[:2]),
                                                  ("b", right + (5, 6), *turned[2:])):
                    axes = list(range(len(shape)))
                    if batch:
                        axes = [*axes[1:-1], 0, axes[-1]]
                    if trans:
                        axes = [*axes[:-2], axes[-1], axes[-2]]
                    stored = tuple(shape[axes.index(i)] for i in range(len(shape)))
                    operands.append((name, rng.standard_normal(stored).astype(np.float32)))
                for constants in ((), ("b",)):
                    with self.subTest(turned=turned, left=left, constants=constants):
                        self.check("FusedMatMul", operands, ["y"], constants, c=left == (2, 3),
                                   transA=turned[0], transBatchA=turned[1], transB=turned[2],
                                   transBatchB=turned[3], alpha=0.125)

    def test_skip_simplified(self):
        rng = np.random.default_rng(5)
        x, skip = rng.standard_normal((2, 2, 5, 16)).astype(np.float32)
        gamma, bias = rng.standard_normal((2, 16)).astype(np.float32)
        operands = [("x", x), ("skip", skip), ("gamma", gamma)]
        for more in ([], [("bias", bias)]):
            with self.subTest(bias=bool(more)):
                self.check("SkipSimplifiedLayerNormalization", operands + more,
                           ["y", "", "", "sum"], ("gamma", "bias"), c=True, epsilon=1e-5)

    def test_simplified(self):
        """onnxruntime has it in ONNX's domain."""
        rng = np.random.default_rng(6)
        x = rng.standard_normal((2, 3, 4, 5)).astype(np.float32)
        for axis, results in ((-1, ["y"]), (-1, ["y", "spread"]), (3, ["y", "spread"]), (-2, ["y"]), (1, ["y"])):
            scale = rng.standard_normal(x.shape[axis:]).astype(np.float32)
            with self.subTest(axis=axis, results=len(results)):
                self.check("SimplifiedLayerNormalization", [("x", x), ("scale", scale)], results, ("scale",), c=True, domain="",
                           axis=axis, epsilon=1e-3)

    def test_simplified_elsewhere(self):
        """Others write it in com.microsoft's domain, where onnxruntime has none."""
        rng = np.random.default_rng(7)
        x, scale = rng.standard_normal((2, 3, 8)).astype(np.float32), rng.standard_normal(8).astype(np.float32)
        operands, path = [("x", x), ("scale", scale)], self.scratch / "m.onnx"
        results = [("y", TensorProto.FLOAT)]
        want = session(model_of("SimplifiedLayerNormalization", operands, results, ("scale",), "")).run(None, {"x": x})[0]
        onnx.save(model_of("SimplifiedLayerNormalization", operands, results, ("scale",)), path)
        got = qxc_outputs(path, {"x": x}, self.scratch)["y"]
        self.assertLessEqual(float_excess(got.reshape(1, -1), want.reshape(1, -1)), 0)

    def test_simplified_around(self):
        """What is beside it becomes quantized; it stays, for onnxruntime to run."""
        rng = np.random.default_rng(8)
        w = rng.standard_normal((8, 8)).astype(np.float32) / 3
        nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]),
                 helper.make_node("SimplifiedLayerNormalization", ["p", "scale"], ["n"], epsilon=1e-3),
                 helper.make_node("MatMul", ["n", "w"], ["y"])]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 8))],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 8))],
                                  [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.ones(8, np.float32), "scale")])
        path, made = self.scratch / "m.onnx", self.scratch / "q.onnx"
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)
        qxc(path, "-calib-random=4", "-emit=qdq", "-no-sync", "-o", made)
        model = onnx.load(made)
        self.assertEqual([""], [n.domain for n in model.graph.node if n.op_type == "SimplifiedLayerNormalization"])
        self.assertGreater(sum(n.op_type == "QuantizeLinear" for n in model.graph.node), 1)
        x = rng.standard_normal((4, 8)).astype(np.float32)
        want, got = (session(onnx.load(p)).run(None, {"x": x})[0] for p in (path, made))
        self.assertLess(np.max(np.abs(want - got)), 0.1 * np.max(np.abs(want)))


class OnnxAlone(OracleCase):
    """What TransformerOps does not run: activations, what `qxc run` has no kernel for, symbols, and refusals."""

    check_onnx_alone = TransformerOps.check_onnx_alone

    def check(self, op, operands, results=("y",), constants=(), **attrs):
        model = model_of(op, operands, [(r, TensorProto.FLOAT) for r in results], constants, **attrs)
        path = self.scratch / "m.onnx"
        onnx.save(model, path)
        data = {o[0]: o[1] for o in operands if o and o[0] not in constants}
        results = [r for r in results if r]
        self.check_onnx_alone(path, data, dict(zip(results, session(model).run(results, data))))

    def test_activations(self):
        x = np.linspace(-6, 6, 96, dtype=np.float32).reshape(2, 6, 8)
        bias = np.linspace(-1, 1, 8, dtype=np.float32)
        for op, more in (("Gelu", []), ("BiasGelu", [("b", bias)]), ("FastGelu", []), ("FastGelu", [("b", bias)]),
                         ("QuickGelu", [])):
            with self.subTest(op=op, more=len(more)):
                self.check(op, [("x", x), *more])
        self.check("QuickGelu", [("x", x)], alpha=-0.5)

    def test_skip(self):
        rng = np.random.default_rng(9)
        x, skip = rng.standard_normal((2, 2, 5, 16)).astype(np.float32)
        gamma, beta, bias = rng.standard_normal((3, 16)).astype(np.float32)
        operands = [("x", x), ("skip", skip), ("gamma", gamma), ("beta", beta), ("bias", bias)]
        for end in (3, 4, 5):
            with self.subTest(end=end):
                self.check("SkipLayerNormalization", operands[:end], epsilon=1e-3)
        self.check("SkipLayerNormalization", operands, ["y", "", "", "sum"], epsilon=1e-3)
        self.check("SkipLayerNormalization", [("x", x), ("skip", skip[0]), *operands[2:4]])

    def test_symbols(self):
        """Of any batch and length, quantized as well: masks are computed from the shapes at run time."""
        rng = np.random.default_rng(11)
        w, b = rng.standard_normal((8, 24)).astype(np.float32), rng.standard_normal(24).astype(np.float32)
        sizes = {"ends": 1, "steps": 2}
        for mask, causal in itertools.product(sizes, (0, 1)):
            model = model_of("Attention", [("x", np.zeros((2, 5, 8), np.float32)), ("w", w), ("b", b),
                                           ("m", np.zeros((2, 5)[:sizes[mask]], np.int32))], [("y", TensorProto.FLOAT)],
                             ("w", "b"), num_heads=2, unidirectional=causal)
            for i in model.graph.input:
                for dim, name in zip(i.type.tensor_type.shape.dim, ("B", "S")):
                    dim.dim_param = name
            path, spelled, quantized = (self.scratch / f"{n}.onnx" for n in "msq")
            onnx.save(model, path)
            qxc(path, "-target=onnx", "-emit=onnx", "-no-sync", "-o", spelled)
            qxc(path, "-dynamic", "-target=onnx", "-emit=qop", "-no-sync", "-o", quantized)
            made = onnx.load(quantized)
            self.assertEqual({""}, {n.domain for n in made.graph.node})
            self.assertIn("MatMulInteger", {n.op_type for n in made.graph.node})
            for batch, steps in ((1, 1), (3, 4), (2, 9)):
                ends = rng.integers(1, steps + 1, batch).astype(np.int32)
                raw = (np.arange(steps) < ends[:, None]).astype(np.int32)
                data = {"x": rng.standard_normal((batch, steps, 8)).astype(np.float32), "m": ends if mask == "ends" else raw}
                want = session(model).run(None, data)[0]
                with self.subTest(mask=mask, causal=causal, batch=batch):
                    self.assertLessEqual(np.max(np.abs(session(spelled).run(None, data)[0] - want)),
                                         2e-5 * np.max(np.abs(want)))
                    self.assertLess(np.max(np.abs(session(quantized).run(None, data)[0] - want)), 0.1 * np.max(np.abs(want)))

    def test_refused(self):
        """All of them at once, each with its reason, and nothing is written."""
        x = np.zeros((1, 3, 4), np.float32)
        model = model_of("Attention", [("x", x), ("w", np.zeros((4, 12), np.float32)), ("b", np.zeros(12, np.float32))],
                         [("y", TensorProto.FLOAT)], ("w", "b"), num_heads=2, do_rotary=1)
        model.graph.node.append(helper.make_node("BiasSplitGelu", ["y", "b"], ["z"], domain="com.microsoft"))
        model.graph.node.append(helper.make_node("Own", ["y"], ["o"], domain="my.own"))
        model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, None))
        model.graph.output.append(helper.make_tensor_value_info("o", TensorProto.FLOAT, None))
        model.opset_import.append(helper.make_opsetid("my.own", 1))
        path, out = self.scratch / "m.onnx", self.scratch / "o.onnx"
        onnx.save(model, path)
        for target, refused in (("onnx", 3), ("tensorrt", 2)):  # a domain of one's own: a plug-in of TensorRT
            done = qxc(path, "-weight-only", f"-target={target}", "-emit=qdq", "-o", out, ok=False)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(refused, done.stderr.count("error:"), done.stderr)
            self.assertIn("it has a rotary embedding", done.stderr)
            self.assertIn("BiasSplitGelu", done.stderr)
            self.assertEqual(target == "onnx", "my.own::Own is none of ONNX's" in done.stderr, done.stderr)
            self.assertFalse(out.exists())


class Dynamic(OracleCase):
    """-dynamic -emit=qop, in onnxruntime and in `qxc run`; within 1e-5 * max + 1e-6 of each other,
    as both take the same integers."""

    def check(self, model, data, op):
        path, made = self.scratch / "m.onnx", self.scratch / "q.onnx"
        onnx.save(model, path)
        qxc(path, "-dynamic", "-emit=qop", "-o", made)
        self.assertIn(op, [n.op_type for n in onnx.load(made).graph.node])
        feed = {n: v if v.shape[:1] == (1,) else v[None] for n, v in data.items()}
        got = qxc_outputs(made, feed, self.scratch)["y"].reshape(1, -1)
        self.assertLessEqual(float_excess(got, session(made).run(["y"], data)[0].reshape(1, -1)), 0)
        real = session(model).run(["y"], data)[0].reshape(1, -1)
        self.assertLess(np.max(np.abs(got - real)), 0.1 * np.max(np.abs(real)))
        qxc(path, "-dynamic", "-emit=c", "-o", self.scratch / "m.c")

    def test_attention(self):
        rng = np.random.default_rng(7)
        x = rng.standard_normal((2, 5, 8)).astype(np.float32)
        w = (rng.standard_normal((8, 24)) * 0.3).astype(np.float32)
        b, mask = rng.standard_normal(24).astype(np.float32), np.array([3, 5], np.int32)
        for causal in (0, 1):
            self.check(model_of("Attention", [("x", x), ("w", w), ("b", b), ("m", mask)],
                                [("y", TensorProto.FLOAT)], ("w", "b"), num_heads=2,
                                unidirectional=causal), {"x": x, "m": mask}, "QAttention")

    def test_embed(self):
        rng = np.random.default_rng(8)
        tables = {n: rng.standard_normal(shape).astype(np.float32) for n, shape in
                  (("word", (20, 8)), ("place", (9, 8)), ("kind", (2, 8)), ("gamma", 8), ("beta", 8))}
        ids, kinds = (rng.integers(0, n, (2, 5)).astype(np.int32) for n in (20, 2))
        results = [("y", TensorProto.FLOAT), ("count", TensorProto.INT32)]
        self.check(model_of("EmbedLayerNormalization",
                            [("ids", ids), ("s", kinds), *tables.items()], results, tables,
                            epsilon=1e-5), {"ids": ids, "s": kinds}, "QEmbedLayerNormalization")


if __name__ == "__main__":
    import unittest
    unittest.main()
