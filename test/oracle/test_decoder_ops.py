"""com.microsoft's attention of decoders and encoders that are functions of lib/transformer.qir: `qxc run`, emitted C, and
what ONNX's operators spell, against onnxruntime."""

import itertools

import numpy as np
import onnx

import test_transformer_ops
from common import OracleCase, qxc, qxc_outputs, session


def normal(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


def tables(size, steps=16):
    angle = np.arange(steps)[:, None] / 100 ** (np.arange(size // 2) / (size // 2))
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


class DecoderOps(OracleCase):
    check = test_transformer_ops.TransformerOps.check
    check_onnx_alone = test_transformer_ops.TransformerOps.check_onnx_alone
    check_c = test_transformer_ops.TransformerOps.check_c

    def test_rotary(self):
        rng = np.random.default_rng(1)
        for interleaved in (0, 1):
            for ids in (np.array([3], np.int64), np.array([[0, 1, 2], [5, 4, 15]], np.int64)):
                for x, size, attrs in ((normal(rng, 2, 3, 24), 8, {}), (normal(rng, 2, 3, 24), 8, {"num_heads": 3}),
                                       (normal(rng, 2, 3, 24), 4, {"num_heads": 3, "rotary_embedding_dim": 4}),
                                       (normal(rng, 2, 3, 3, 8), 8, {}),
                                       (normal(rng, 2, 3, 3, 8), 4, {"num_heads": 3, "rotary_embedding_dim": 4})):
                    cos, sin = tables(size)
                    with self.subTest(interleaved=interleaved, ids=ids.shape, x=x.shape, **attrs):
                        self.check("RotaryEmbedding", [("x", x), ("ids", ids), ("cos", cos), ("sin", sin)],
                                   constants=("cos", "sin", "ids"), c=True, interleaved=interleaved, **attrs)

    def heads(self, rng, past=0, **more):
        """Queries of 3 steps, keys of 5, 2 heads of 4 numbers, values of 6; with a past all are of 3 steps and 4 numbers."""
        keys, size = (3, 4) if past else (5, 6)
        values = [("q", normal(rng, 2, 3, 8)), ("k", normal(rng, 2, keys, 8)), ("v", normal(rng, 2, keys, 2 * size)),
                  more.get("bias"), more.get("mask"), more.get("added")]
        if past:
            values += [("pk", normal(rng, 2, 2, past, 4)), ("pv", normal(rng, 2, 2, past, 4))]
        while values[-1] is None:
            values.pop()
        return values

    def test_multi_head(self):
        rng = np.random.default_rng(2)
        bias, added = ("b", normal(rng, 28)), ("a", normal(rng, 2, 2, 3, 5))
        cases = [({}, {}), ({}, {"scale": 0.3}), ({"bias": bias}, {}), ({"added": added}, {}),
                 ({"added": ("a", normal(rng, 1, 2, 3, 5))}, {"mask_filter_value": -1e4}),
                 ({"mask": ("m", np.array([[1, 1, 0, 1, 0], [1, 0, 1, 1, 1]], np.int32))}, {}),
                 ({"mask": ("m", rng.integers(0, 2, (2, 3, 5)).astype(np.int32))}, {"mask_filter_value": -50.0}),
                 ({"mask": ("m", np.array([3, 5], np.int32))}, {"mask_filter_value": -2.0})]
        for more, attrs in cases:
            with self.subTest(more=list(more), **attrs):
                self.check("MultiHeadAttention", self.heads(rng, **more), c=True, num_heads=2, **attrs)
        for past, causal in ((2, 0), (2, 1), (0, 1)):
            with self.subTest(past=past, causal=causal):
                operands = self.heads(rng, past)
                if not past:
                    operands = [(n, v[:, :3]) for n, v in operands]
                results = ("y", "present_k", "present_v") if past else ("y",)
                self.check("MultiHeadAttention", operands, results, c=True, num_heads=2, unidirectional=causal)

    def test_multi_head_causal(self):
        """Of more keys than steps the last step sees all; of fewer each sees those there are."""
        rng = np.random.default_rng(12)
        for steps, keys in ((3, 5), (1, 5), (5, 3)):
            with self.subTest(steps=steps, keys=keys):
                self.check("MultiHeadAttention", [("q", normal(rng, 2, steps, 8)), ("k", normal(rng, 2, keys, 8)), ("v", normal(rng, 2, keys, 8))],
                           c=True, num_heads=2, unidirectional=1)

    def test_multi_head_scores(self):
        """The fourth result is what goes into the softmax."""
        rng = np.random.default_rng(13)
        more = {"mask": ("m", np.array([[1, 1, 0, 1, 0], [1, 0, 1, 1, 1]], np.int32)), "added": ("a", normal(rng, 2, 2, 3, 5))}
        for operands, attrs in ((self.heads(rng), {}), (self.heads(rng, **more), {"scale": 0.3}), (self.heads(rng), {"unidirectional": 1})):
            with self.subTest(**attrs):
                self.check("MultiHeadAttention", operands, ("y", "", "", "scores"), c=True, num_heads=2, **attrs)

    def test_multi_head_in_room(self):
        """The past has room for what is new, and its length is an operand."""
        rng = np.random.default_rng(14)
        for steps, length, causal in ((1, 0, 0), (1, 3, 0), (1, 7, 1), (3, 2, 0), (3, 2, 1)):
            for added in (None, ("a", normal(rng, 1, 2, steps, length + steps))):
                operands = [(name, normal(rng, 2, steps, 8)) for name in "qkv"] + [None, None, added]
                operands += [("pk", normal(rng, 2, 2, 8, 4)), ("pv", normal(rng, 2, 2, 8, 4)), ("n", np.array([length], np.int32))]
                with self.subTest(steps=steps, length=length, causal=causal, added=bool(added)):
                    self.check("MultiHeadAttention", operands, ("y", "present_k", "present_v"), ("n",), c=True, num_heads=2,
                               unidirectional=causal)

    def test_multi_head_layouts(self):
        rng = np.random.default_rng(3)
        cross = [("q", normal(rng, 2, 3, 8)), ("k", normal(rng, 2, 2, 5, 4)), ("v", normal(rng, 2, 2, 5, 4))]
        self.check("MultiHeadAttention", cross, c=True, num_heads=2)
        self.check("MultiHeadAttention", [*cross, ("b", normal(rng, 24))], c=True, num_heads=2)
        kv = normal(rng, 2, 5, 2, 2, 4)  # what onnxruntime has no kernel for
        parts = [cross[0]] + [(name, np.ascontiguousarray(kv[:, :, :, i].reshape(2, 5, 8))) for i, name in enumerate("kv")]
        packed, apart = (self.outputs("MultiHeadAttention", operands, num_heads=2) for operands in ([cross[0], ("kv", kv)], parts))
        np.testing.assert_allclose(packed, apart, rtol=1e-6)
        qkv = normal(rng, 2, 3, 2, 3, 4)  # what onnxruntime has no kernel for
        parts = [(name, np.ascontiguousarray(qkv[:, :, :, i].reshape(2, 3, 8))) for i, name in enumerate("qkv")]
        packed, apart = (self.outputs("MultiHeadAttention", operands, num_heads=2) for operands in ([("qkv", qkv)], parts))
        np.testing.assert_allclose(packed, apart, rtol=1e-6)

    def outputs(self, op, operands, kind=onnx.TensorProto.FLOAT, constants=(), **attrs):
        path = self.scratch / "own.onnx"
        onnx.save(test_transformer_ops.model_of(op, operands, [("y", kind)], constants, **attrs), path)
        return qxc_outputs(path, {o[0]: o[1][None] for o in operands if o and o[0] not in constants}, self.scratch)["y"]

    def grouped(self, rng, steps, past, lengths, total, packed=False, **more):
        """4 heads of queries share 2 of keys, of 16 numbers."""
        batch = len(lengths)
        q, k, v = normal(rng, batch, steps, 64), normal(rng, batch, steps, 32), normal(rng, batch, steps, 32)
        three = [("q", np.concatenate([q, k, v], 2)), None, None] if packed else [("q", q), ("k", k), ("v", v)]
        before = [("pk", normal(rng, batch, 2, past, 16)), ("pv", normal(rng, batch, 2, past, 16))] if past else [None, None]
        operands = three + before + [("n", np.array(lengths, np.int32)), ("t", np.array([total], np.int32))]
        operands += [("c", more["tables"][0]), ("s", more["tables"][1])] if "tables" in more else [None, None]
        operands += [more.get("ids"), more.get("added"), more.get("sink")]
        while operands[-1] is None:
            operands.pop()
        return operands

    def check_grouped(self, operands, lengths, **attrs):
        """What a cache has behind the last step of a sequence is nobody's."""
        self.check("GroupQueryAttention", operands, ("y", "present_k", "present_v"), ("n", "t", "c", "s", "ids"), c=True,
                   counted={name: lengths for name in ("present_k", "present_v")}, num_heads=4, kv_num_heads=2, **attrs)

    def test_grouped(self):
        rng = np.random.default_rng(4)
        for packed in (False, True):
            for steps, past, lengths, total in ((3, 0, [2, 2], 3), (1, 4, [4, 4], 5), (1, 4, [4, 2], 5), (1, 6, [4, 3], 5),
                                                (2, 4, [5], 6)):
                for attrs in ({}, {"do_rotary": 1}, {"do_rotary": 1, "rotary_interleaved": 1}, {"scale": 0.2, "softcap": 1.5},
                              {"local_window_size": 2}):
                    more = {"tables": tables(16)} if "do_rotary" in attrs else {}
                    with self.subTest(packed=packed, steps=steps, past=past, lengths=lengths, **attrs):
                        self.check_grouped(self.grouped(rng, steps, past, lengths, total, packed, **more), lengths, **attrs)

    def test_grouped_more(self):
        rng = np.random.default_rng(5)
        self.check_grouped(self.grouped(rng, 3, 0, [2, 2], 3, added=("a", normal(rng, 1, 4, 3, 3))), [2, 2])
        self.check_grouped(self.grouped(rng, 2, 2, [3], 4, tables=tables(16), ids=("ids", np.array([[3, 7]], np.int64))), [3],
                           do_rotary=1)

    def test_grouped_places(self):
        """Those of a first prompt are counted from the first number of all; of later steps each has its own."""
        rng = np.random.default_rng(21)
        for steps, past, lengths, total in ((3, 0, [2, 2], 3), (3, 6, [2], 3), (1, 6, [0, 0], 1), (1, 4, [4, 2], 5), (2, 4, [5], 6)):
            ids = rng.integers(0, 10, (len(lengths), steps))
            for interleaved in (0, 1):
                with self.subTest(steps=steps, past=past, interleaved=interleaved):
                    self.check_grouped(self.grouped(rng, steps, past, lengths, total, tables=tables(16), ids=("ids", ids)), lengths,
                                       do_rotary=1, rotary_interleaved=interleaved)

    def test_grouped_softmax(self):
        """One more score in the sum: 0, or a number of each head. -1 is what onnxruntime's tools write for neither."""
        rng = np.random.default_rng(15)
        for steps, past, lengths, total in ((3, 0, [2, 2], 3), (1, 4, [4, 2], 5)):
            for attrs in ({"smooth_softmax": 1}, {"smooth_softmax": 1, "local_window_size": 2, "softcap": 1.5}, {"smooth_softmax": -1}, {"causal": 0}):
                for sink in (None, ("sink", 3 * normal(rng, 4))):
                    with self.subTest(past=past, sink=bool(sink), **attrs):
                        self.check_grouped(self.grouped(rng, steps, past, lengths, total, sink=sink), lengths, **attrs)

    def test_grouped_scores(self):
        """A fourth result has the scores before the softmax or behind it, of as many keys as count."""
        rng = np.random.default_rng(16)
        for steps, past, total in ((3, 0, 3), (1, 4, 5), (1, 6, 5)):
            for attrs in ({}, {"softcap": 1.5}, {"local_window_size": 2}, {"smooth_softmax": 1}):
                for output in (1, 2):
                    with self.subTest(past=past, output=output, **attrs):
                        lengths = [total - 1] * 2
                        self.check("GroupQueryAttention", self.grouped(rng, steps, past, lengths, total), ("y", "present_k", "present_v", "scores"),
                                   ("n", "t"), c=True, counted={name: lengths for name in ("present_k", "present_v")}, num_heads=4,
                                   kv_num_heads=2, qk_output=output, **attrs)

    def test_grouped_in_room(self):
        """Scores are added to the keys that count; the cache has room for more."""
        rng = np.random.default_rng(17)
        self.check_grouped(self.grouped(rng, 1, 6, [4, 4], 5, added=("a", normal(rng, 2, 4, 1, 5))), [4, 4])

    def test_grouped_integers(self):
        """Caches of 8 and 4 bits, whose integers are onnxruntime's bit for bit."""
        rng = np.random.default_rng(18)
        for bits, kind, (steps, past, lengths, total) in itertools.product((8, 4), ("PER_TENSOR", "PER_CHANNEL"), ((3, 0, [2, 2], 3), (1, 4, [4, 2], 5), (1, 6, [4, 3], 5))):
            with self.subTest(bits=bits, kind=kind, past=past):
                size = 16 * bits // 8
                shape = (1,) if kind == "PER_TENSOR" else (1, 2, 1, 16)
                step = 0.02 if bits == 8 else 0.3
                scales = [(name, (step * (1 + rng.random(shape))).astype(np.float32)) for name in ("ks", "vs")]
                cache = [(name, rng.integers(0, 256, (2, 2, past, size)).astype(np.uint8).view(np.int8 if bits == 8 else np.uint8)) for name in ("pk", "pv")]
                operands = self.grouped(rng, steps, 0, lengths, total)
                operands += [None] * (12 - len(operands)) + scales
                operands[3:5] = cache
                kind_of_cache = onnx.TensorProto.INT8 if bits == 8 else onnx.TensorProto.UINT8
                self.check("GroupQueryAttention", operands, ("y", ("present_k", kind_of_cache), ("present_v", kind_of_cache)), ("n", "t", "ks", "vs"), c=past > 0,
                           counted={name: lengths for name in ("present_k", "present_v")}, num_heads=4, kv_num_heads=2, kv_cache_bit_width=bits,
                           k_quant_type=kind, v_quant_type=kind)

    def test_half(self):
        """What hides scores is a number that float16 has; onnxruntime has these operators of float alone."""
        rng = np.random.default_rng(20)
        operands = [(name, normal(rng, 2, 3, 8)) for name in "qkv"]
        for op, more, attrs in (("MultiHeadAttention", [], {"num_heads": 2, "unidirectional": 1}),
                                ("GroupQueryAttention", [None, None, ("n", np.array([2, 2], np.int32)), ("t", np.array([3], np.int32))],
                                 {"num_heads": 2, "kv_num_heads": 2})):
            constants = [o[0] for o in more if o]
            whole = self.outputs(op, operands + more, constants=constants, **attrs)
            halves = [(n, v.astype(np.float16)) for n, v in operands]
            half = self.outputs(op, halves + more, onnx.TensorProto.FLOAT16, constants, **attrs)
            self.assertEqual(half.dtype, np.float16)
            np.testing.assert_allclose(half, whole, atol=2e-2)

    def test_grouped_refused(self):
        """What onnxruntime's processor kernels refuse, and a cache that moves on by itself."""
        rng = np.random.default_rng(19)
        norms = [None] * 4 + [("qn", normal(rng, 16)), ("kn", normal(rng, 16))]
        for more, attrs in ((norms, {}), ([], {"sliding_window_cache": 1, "local_window_size": 2})):
            operands = self.grouped(rng, 1, 4, [4, 4], 5)
            operands += [None] * (10 - len(operands)) + more if more else []
            model = test_transformer_ops.model_of("GroupQueryAttention", operands, [("y", onnx.TensorProto.FLOAT)], (), num_heads=4, kv_num_heads=2, **attrs)
            onnx.save(model, self.scratch / "m.onnx")
            for how in (["run", self.scratch / "m.onnx", "-random=1"], [self.scratch / "m.onnx", "-emit=c"]):
                done = qxc(*how, "-o", self.scratch / "no", ok=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn("GroupQueryAttention", done.stderr)
                self.assertFalse((self.scratch / "no").exists())

    def test_quantized(self):
        """The products inside are integers."""
        rng = np.random.default_rng(6)
        operands = self.grouped(rng, 3, 0, [2, 2], 3, tables=tables(16))
        constants = [name for name, _ in filter(None, operands) if name not in "qkv"]
        results = [(name, onnx.TensorProto.FLOAT) for name in ("y", "present_k", "present_v")]
        model = test_transformer_ops.model_of("GroupQueryAttention", operands, results, constants, num_heads=4, kv_num_heads=2,
                                              do_rotary=1)
        path, data, quantized = (self.scratch / name for name in ("m.onnx", "d.npz", "q.onnx"))
        onnx.save(model, path)
        feeds = {name: normal(rng, 8, 2, 3, 64 if name == "q" else 32) for name in "qkv"}
        np.savez(data, **feeds)
        qxc(path, f"-calib={data}", "-placement=products", "-emit=qdq", "-no-sync", "-quiet", "-o", quantized)
        made = onnx.load(quantized).graph
        by = {result: n.op_type for n in made.node for result in n.output}
        products = [n for n in made.node if n.op_type == "MatMul"]
        self.assertEqual(2, len(products))
        for n in products:
            self.assertEqual(["DequantizeLinear"] * 2, [by[v] for v in n.input])
        for i in range(8):
            one = {name: v[i] for name, v in feeds.items()}
            want, got = (session(m).run(["y"], one)[0] for m in (model, onnx.load(quantized)))
            self.assertGreater(20 * np.log10(np.linalg.norm(want) / np.linalg.norm(got - want)), 25)
