"""A float bias beside a float result is added as it is, not in units of the sums: Conv and Gemm on integers against
onnxruntime, and emitted C with the bits of `qxc run`. Scales are large, so that a unit is."""

import numpy as np
import onnx
from onnx import TensorProto as T

from biased import biased
from cmodel import CModel
from common import OracleCase, for_each, qxc, qxc_outputs, session

# operator, attributes, shapes of x, w and bias, axis of the output channels
LAYERS = {
    "gemm": ("Gemm", {"transB": 1}, (3, 32), (37, 32), (37,), 0),
    "gemm_one": ("Gemm", {}, (1, 32), (32, 16), (1, 16), 1),
    "gemm_scalar": ("Gemm", {"beta": 1.5}, (3, 32), (32, 16), (), 1),
    "gemm_rows": ("Gemm", {"alpha": 0.75}, (3, 32), (32, 16), (3, 16), 1),
    "gemm_column": ("Gemm", {}, (3, 32), (32, 16), (3, 1), 1),
    "conv": ("Conv", {"pads": [1, 0, 0, 1]}, (2, 3, 6, 5), (18, 3, 2, 2), (18,), 0),
    "groups": ("Conv", {"group": 2}, (1, 4, 6, 5), (6, 2, 2, 2), (6,), 0),
    "depthwise": ("Conv", {"group": 4, "strides": [2, 1]}, (1, 4, 6, 5), (4, 1, 3, 2), (4,), 0),
    "line": ("Conv", {}, (1, 3, 9), (5, 3, 3), (5,), 0),
    "transposed": ("ConvTranspose", {"strides": [2, 2]}, (2, 3, 4, 5), (3, 5, 2, 2), (5,), 1),
    "transposed_plain": ("ConvTranspose", {"dilations": [2, 1]}, (2, 3, 4, 5), (3, 5, 2, 2), (5,), 1),
    "transposed_volume": ("ConvTranspose", {}, (1, 2, 4, 5, 3), (2, 3, 2, 2, 2), (3,), 1),
    "volume": ("Conv", {}, (1, 2, 4, 5, 3), (3, 2, 2, 3, 2), (3,), 0),
}
TYPES = {"int8": (T.INT8, T.INT8, 0), "uint8": (T.UINT8, T.INT8, 0), "offsets": (T.UINT8, T.UINT8, 131),
         "int4": (T.INT8, T.INT4, 0), "int16": (T.INT16, T.INT8, 0)}


class RealBias(OracleCase):
    def check(self, layer, kinds, per_channel, computed=False):
        *product, shape, axis = LAYERS[layer]
        x, w, w_zero = TYPES[kinds]
        bias = np.random.default_rng(7).normal(0, 3, shape).astype(np.float32)
        made, feeds = biased((*product, axis), (x, .5, 120 if x == T.UINT8 else 5), (w, .125, w_zero), None, per_channel,
                             np.asarray(bias), computed)
        path = self.scratch / "m.onnx"
        onnx.save(made, path)
        want, = session(path).run(None, feeds)
        got = qxc_outputs(path, feeds, self.scratch, "-batch=none")["y"]
        # A unit of the sums is 1/16 to 2, and half of it is lost where the bias is rounded to it.
        np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 * np.abs(want).max())
        source = self.scratch / "m.c"
        qxc(path, "-emit=c", "-name=m", "-quiet", "-no-sync", "-batch=none", "-o", source)
        emitted, = CModel(source, flags=("-O0", "-ffp-contract=off", "-fsanitize=undefined",
                                         "-fno-sanitize-recover")).run(*feeds.values())
        self.assertEqual(got.tobytes(), emitted.tobytes())

    @for_each(*LAYERS)
    def test_types(self, layer):
        for kinds in TYPES:
            for per_channel in (False, True):
                with self.subTest(types=kinds, per_channel=per_channel):
                    self.check(layer, kinds, per_channel)

    @for_each("gemm", "gemm_rows", "gemm_scalar", "conv", "groups", "depthwise", "line", "volume")
    def test_computed(self, layer):
        self.check(layer, "int8", True, computed=True)

    def test_a_quantized_result_has_it_on_the_grid(self):
        """As docs/ir.md defines it."""
        text = self.scratch / "m.qir"
        text.write_text("""qir 1
import "" 21
graph @g (%x : int8q<0.5>[1,1]) -> (%y) {
  const %w : int8q<0.5>[1,2] = [1, 1]
  const %b : float[2] = [0.375, 0.374]
  %y : int8q<0.125>[1,2] = Gemm(%x, %w, %b)
}
""")
        got = qxc_outputs(text, {"x": np.zeros((1, 1), np.int8)}, self.scratch, "-form=true")["y"].ravel()
        np.testing.assert_array_equal(got, [4, 2])
