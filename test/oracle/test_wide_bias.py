"""A float bias beside a 16-bit result: where a unit of the sums is several steps of the result, the sums are made
finer. Conv, ConvTranspose, Gemm and MatMul against onnxruntime, one step apart at most, and emitted C with the bits of
`qxc run`; where nothing can be made finer, a remark says how many steps results are off."""

import unittest

import numpy as np
import onnx
from onnx import TensorProto as T

from biased import biased
from cmodel import CModel
from common import OracleCase, for_each, qxc, qxc_outputs, session

# operator, attributes, shape of x and w, axis of the output channels
LAYERS = {
    "gemm": ("Gemm", {"transB": 1}, (3, 2), (5, 2), 0),
    "gemm_scaled": ("Gemm", {"alpha": .75, "beta": 1.5}, (3, 2), (2, 5), 1),
    "conv": ("Conv", {"pads": [1, 0, 0, 1]}, (1, 3, 6, 5), (4, 3, 2, 2), 0),
    "groups": ("Conv", {"group": 2}, (1, 4, 6, 5), (6, 2, 2, 2), 0),
    "depthwise": ("Conv", {"group": 4, "strides": [2, 1]}, (1, 4, 6, 5), (4, 1, 3, 2), 0),
    "transposed": ("ConvTranspose", {"strides": [2, 2]}, (1, 3, 4, 3), (3, 4, 2, 2), 1),
}


class WideBias(OracleCase):
    def steps_off(self, made, feeds):
        """Of `qxc run` against onnxruntime; with the remarks."""
        path, ints = self.scratch / "m.onnx", feeds["x"]
        onnx.save(made, path)
        want = session(path).run(None, {"x": ints})[0].astype(int)
        got = qxc_outputs(path, {"x": ints if ints.shape[0] == 1 else ints[None]}, self.scratch)["y"].reshape(want.shape)
        for options in ((), ("-integer-only",)):
            qxc(path, "-emit=c", "-name=m", "-quiet", "-no-sync", "-o", self.scratch / "m.c", *options)
            emitted = CModel(self.scratch / "m.c", flags=("-O0", "-fsanitize=undefined", "-fno-sanitize-recover")).run(ints)[0]
            np.testing.assert_array_equal(emitted.reshape(want.shape), got)
        talk = qxc(path, "-emit=c", "-no-sync", "-o", self.scratch / "m.c").stderr
        return np.abs(got - want).max(), talk

    @for_each(*LAYERS)
    def test_finer(self, layer):
        for x, w, y, per_channel in (
                ((T.UINT8, .0125, 0), (T.INT8, .00238, 0), (T.INT16, 4.3e-6, 0), False),
                ((T.INT8, .0125, -5), (T.INT8, .00238, 0), (T.UINT16, 9e-6, 30001), True),
                ((T.UINT8, .02, 128), (T.UINT8, .003, 77), (T.INT16, 5e-6, -7), False),
                ((T.INT8, .02, 3), (T.INT4, .01, 0), (T.INT16, 5e-6, 0), False)):
            with self.subTest(x=x, w=w, y=y):
                steps, talk = self.steps_off(*biased(LAYERS[layer], x, w, y, per_channel and layer != "transposed"))
                self.assertLessEqual(steps, 1)
                self.assertNotIn("steps off", talk)

    def test_says_so(self):
        """Weights of 16 bits leave no room; results of 8 bits keep their kernels."""
        for x, w, y in (((T.UINT8, .0125, 0), (T.INT16, .00238, 0), (T.INT16, 4.3e-6, 0)),
                        ((T.UINT8, .0125, 0), (T.INT8, .00238, 0), (T.INT8, 4.3e-6, 0))):
            with self.subTest(w=w, y=y):
                made, _ = biased(LAYERS["gemm"], x, w, y, bias=np.full(5, 2.4 * .0125 * .00238, np.float32))
                onnx.save(made, self.scratch / "m.onnx")
                talk = qxc(self.scratch / "m.onnx", "-emit=c", "-no-sync", "-o", self.scratch / "m.c").stderr
                self.assertRegex(talk, r'"layer" \(Gemm\): float bias rounded.*: results are up to 2\.77 steps off')


if __name__ == "__main__":
    unittest.main()
