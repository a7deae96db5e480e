"""com.microsoft's mixtures of experts and products with weights of bitsandbytes, functions of lib/: `qxc run`, emitted C,
and what ONNX's operators spell, against onnxruntime, or NumPy where it has no kernel."""

import itertools

import numpy as np
import onnx

import test_transformer_ops
from common import OracleCase, qxc, qxc_outputs
from test_decoder_ops import normal

ROWS, HIDDEN, INNER, EXPERTS = 5, 32, 64, 4
LIMITED = {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 0.7}


def packed(integers, bits):
    """Bytes along the last axis, the first integer in the lowest bits; what is left of the last byte is 0."""
    count = 8 // bits
    room = np.zeros((*integers.shape[:-1], -integers.shape[-1] % count), np.int64)
    parts = np.concatenate([integers, room], -1).reshape(*integers.shape[:-1], -1, count)
    return (parts << (bits * np.arange(count))).sum(-1).astype(np.uint8)


def quantized(rng, outer, inner, bits, block, zeros):
    """Weights of each expert as bytes, their scales, and zero points or None; one scale a row where `block` is 0."""
    blocks = (outer, inner // block) if block else (outer,)
    scales = (0.01 + 0.1 * rng.random((EXPERTS, *blocks))).astype(np.float32)
    points = rng.integers(0, 2**bits, (EXPERTS, *blocks))
    return packed(rng.integers(0, 2**bits, (EXPERTS, outer, inner)), bits), scales, packed(points, bits) if zeros else None


def named(*arrays):
    """Operands by place; those that are None are left out."""
    return [None if a is None else (f"i{k}", a) for k, a in enumerate(arrays)]


def stored(arrays):
    """The names of all but the rows and the router."""
    return [f"i{k}" for k, a in enumerate(arrays) if k > 1 and a is not None]


class ExpertOps(OracleCase):
    check = test_transformer_ops.TransformerOps.check
    check_onnx_alone = test_transformer_ops.TransformerOps.check_onnx_alone
    check_c = test_transformer_ops.TransformerOps.check_c

    def mixture(self, op, arrays, constant=True, **attrs):
        self.check(op, named(*arrays), constants=stored(arrays) if constant else (), c=True, **attrs)

    def test_mixtures(self):
        rng = np.random.default_rng(1)
        for kind, (k, normal_sum, biased) in itertools.product(("relu", "gelu", "silu", "identity"), ((1, 0, 1), (2, 1, 0), (4, 1, 1))):
            with self.subTest(kind=kind, k=k):
                fc1, fc2 = normal(rng, EXPERTS, INNER, HIDDEN), normal(rng, EXPERTS, HIDDEN, INNER)
                biases = (normal(rng, EXPERTS, INNER), normal(rng, EXPERTS, HIDDEN)) if biased else (None, None)
                self.mixture("MoE", (normal(rng, ROWS, HIDDEN), normal(rng, ROWS, EXPERTS), fc1, biases[0], fc2, biases[1]),
                             activation_type=kind, k=k, normalize_routing_weights=normal_sum)

    def test_gated(self):
        """Gates and what they let through are one product, in turns; rows may be [batch, steps, numbers]."""
        rng = np.random.default_rng(2)
        for attrs in ({}, LIMITED):
            self.mixture("MoE", (normal(rng, 1, ROWS, HIDDEN), normal(rng, ROWS, EXPERTS), normal(rng, EXPERTS, 2 * INNER, HIDDEN),
                                 normal(rng, EXPERTS, 2 * INNER), normal(rng, EXPERTS, HIDDEN, INNER)),
                         activation_type="swiglu", k=2, normalize_routing_weights=1, swiglu_fusion=1, **attrs)

    def test_gated_by_two_products(self):
        """The same in the orders that onnxruntime has no kernel for: as one product in turns is."""
        rng = np.random.default_rng(3)
        x, router, fc2 = normal(rng, ROWS, HIDDEN), normal(rng, ROWS, EXPERTS), normal(rng, EXPERTS, HIDDEN, INNER)
        gate, more = normal(rng, 2, EXPERTS, INNER, HIDDEN)
        gate_bias, more_bias = normal(rng, 2, EXPERTS, INNER)
        both, both_bias = np.stack([gate, more], 2).reshape(EXPERTS, -1, HIDDEN), np.stack([gate_bias, more_bias], 2).reshape(EXPERTS, -1)
        attrs = {"activation_type": "swiglu", "k": 2, **LIMITED}
        want = self.ours((x, router, both, both_bias, fc2), swiglu_fusion=1, **attrs)
        for fusion, arrays in ((0, (x, router, gate, gate_bias, fc2, None, more, more_bias)),
                               (2, (x, router, np.concatenate([gate, more], 1), np.concatenate([gate_bias, more_bias], 1), fc2))):
            np.testing.assert_allclose(self.ours(arrays, swiglu_fusion=fusion, **attrs), want, rtol=1e-5, atol=1e-5)

    def ours(self, arrays, op="MoE", **attrs):
        """What `qxc run` gives."""
        model = test_transformer_ops.model_of(op, named(*arrays), [("y", onnx.TensorProto.FLOAT)], stored(arrays), **attrs)
        onnx.save(model, self.scratch / "m.onnx")
        return qxc_outputs(self.scratch / "m.onnx", {"i0": arrays[0][None], "i1": arrays[1][None]}, self.scratch)["y"]

    def test_quantized(self):
        """Weights of 2, 4 and 8 bits, with a scale a row or a block, zero points, and weights of the router's own."""
        rng = np.random.default_rng(4)
        for bits, block, zeros in itertools.product((2, 4, 8), (0, 16, 32), (False, True)):
            weights, gated = rng.random(2) < 0.5
            gated = gated and (bits, block) != (2, 32)  # there rows of these are rounded to 8 bits in any case
            with self.subTest(bits=bits, block=block, zeros=zeros, weights=weights, gated=gated):
                outer = 2 * INNER if gated else INNER
                first, second = quantized(rng, outer, HIDDEN, bits, block, zeros), quantized(rng, HIDDEN, INNER, bits, block, zeros)
                arrays = [normal(rng, ROWS, HIDDEN), normal(rng, ROWS, EXPERTS), *first[:2], normal(rng, EXPERTS, outer), *second[:2],
                          normal(rng, EXPERTS, HIDDEN), None, None, None, first[2], second[2], None]
                arrays += [np.abs(normal(rng, ROWS, EXPERTS))] if weights else []
                # Rows are rounded to 8 bits for stored weights in blocks of 8 bits, and for some of 2.
                self.mixture("QMoE", arrays, not block or bits == 4, activation_type="swiglu" if gated else "silu", swiglu_fusion=int(gated), k=2,
                             expert_weight_bits=bits, normalize_routing_weights=int(rng.integers(2)), **({"block_size": block} if block else {}))

    def test_quantized_in_two_widths(self):
        """onnxruntime has no kernel: as 8 bits that hold what 4 do."""
        rng = np.random.default_rng(5)
        fc1, fc2 = rng.integers(0, 16, (EXPERTS, INNER, HIDDEN)), rng.integers(0, 256, (EXPERTS, HIDDEN, INNER))
        x, router, scales = normal(rng, ROWS, HIDDEN), normal(rng, ROWS, EXPERTS), [0.01 + rng.random((EXPERTS, n)).astype(np.float32) for n in (INNER, HIDDEN)]
        zeros = [np.full((EXPERTS, n), 8) for n in (INNER, HIDDEN)]
        def arrays(bits):
            return [x, router, packed(fc1, bits), scales[0], None, packed(fc2, 8), scales[1], None, None, None, None, packed(zeros[0], bits), packed(zeros[1], 8)]
        want = self.ours(arrays(8), "QMoE", expert_weight_bits=8, k=2)
        for attrs in ({"expert_weight_bits": 8, "fc1_expert_weight_bits": 4}, {"expert_weight_bits": 4, "fc2_expert_weight_bits": 8}):
            np.testing.assert_array_equal(self.ours(arrays(4), "QMoE", k=2, **attrs), want)

    def test_bitsandbytes(self):
        """Both tables, blocks that end within a row, a last block and a last byte that are not full."""
        rng = np.random.default_rng(6)
        for kind, size, rows, block in ((0, 16, 5, 16), (1, 7, 5, 16), (1, 3, 1, 16), (0, 64, 16, 32), (1, 5, 3, 32)):
            with self.subTest(kind=kind, size=size, rows=rows):
                self.check("MatMulBnb4", [("x", normal(rng, 2, 3, size)), ("w", rng.integers(0, 256, (rows * size + 1) // 2).astype(np.uint8)),
                                          ("a", rng.random((rows * size + block - 1) // block).astype(np.float32))],
                           constants=("w", "a"), c=True, K=size, N=rows, block_size=block, quant_type=kind)

    def test_bitsandbytes_not_turned(self):
        """transB=0 multiplies with the weights as they are, which onnxruntime reads from other places: as transB=1 with turned ones."""
        rng = np.random.default_rng(8)
        x, codes, largest = normal(rng, 3, 32), rng.integers(0, 16, (32, 16)), np.full(32, 0.625, np.float32)
        results = []
        for stored, attrs in ((codes, {"K": 16, "N": 32, "transB": 0}), (codes.T, {"K": 32, "N": 16})):
            pairs = np.ascontiguousarray(stored).reshape(-1, 2)
            weights = (pairs[:, 0] << 4 | pairs[:, 1]).astype(np.uint8)
            model = test_transformer_ops.model_of("MatMulBnb4", named(x, weights, largest), [("y", onnx.TensorProto.FLOAT)], ("i1", "i2"),
                                                  block_size=16, quant_type=1, **attrs)
            onnx.save(model, self.scratch / "m.onnx")
            results.append(qxc_outputs(self.scratch / "m.onnx", {"i0": x[None]}, self.scratch)["y"])
        np.testing.assert_array_equal(*results)
        self.assertEqual(results[0].size, 3 * 16)

    def test_refused(self):
        """What no function says the meaning of is named, and nothing is written."""
        rng = np.random.default_rng(7)
        arrays = (normal(rng, ROWS, HIDDEN), normal(rng, ROWS, EXPERTS), normal(rng, EXPERTS, INNER, HIDDEN), None, normal(rng, EXPERTS, HIDDEN, INNER))
        for attrs, words in (({"use_sparse_mixer": 1}, "use_sparse_mixer is 1, not 0"), ({"activation_type": "tanh"}, 'MoE: activation_type is "tanh", must be "relu", "gelu", "silu", "identity" or "swiglu"'),
                             ({"activation_type": "swiglu"}, "the call leaves operand weights out, which the body needs"), ({"k": 9}, "k")):
            with self.subTest(**attrs):
                model = test_transformer_ops.model_of("MoE", named(*arrays), [("y", onnx.TensorProto.FLOAT)], stored(arrays), **attrs)
                onnx.save(model, self.scratch / "m.onnx")
                done = qxc("run", self.scratch / "m.onnx", "-random=1", "-o", self.scratch / "no.npz", ok=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn(words, done.stderr)
                self.assertFalse((self.scratch / "no.npz").exists())
