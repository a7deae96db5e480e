"""Resize in all its modes against onnxruntime, as float and between conversions."""

import itertools

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import OracleCase, for_each, qxc, qxc_outputs, session

COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric")
SHAPE = (1, 3, 9, 7)
TO = {"up": (13, 11), "down": (4, 3), "mixed": (5, 16), "one": (1, 1)}
KINDS = {
    "cubic": {"mode": "cubic"},
    "cubic_coefficient": {"mode": "cubic", "cubic_coeff_a": -0.5},
    "cubic_exclude_outside": {"mode": "cubic", "exclude_outside": 1},
    "cubic_antialias": {"mode": "cubic", "antialias": 1},
    "linear_antialias": {"mode": "linear", "antialias": 1},
    "linear_antialias_exclude_outside": {"mode": "linear", "antialias": 1, "exclude_outside": 1},
}


def model(shape, attributes, sizes=None, scales=None, roi=None):
    constants = {"roi": roi, "scales": scales, "sizes": sizes}
    kinds = {"roi": np.float32, "scales": np.float32, "sizes": np.int64}
    graph = helper.make_graph(
        [helper.make_node("Resize", ["x", *(k if v is not None else "" for k, v in constants.items())], ["y"], **attributes)],
        "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(v, kinds[k]), k) for k, v in constants.items() if v is not None])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 19)])


class Resize(OracleCase):
    def check(self, made, shape, **tolerance):
        path = self.scratch / "m.onnx"
        onnx.save(made, path)
        x = np.random.default_rng(4).normal(0, 1, shape).astype(np.float32)
        want = session(made).run(None, {"x": x})[0]
        got = qxc_outputs(path, {"x": x if shape[0] == 1 else x[None]}, self.scratch)["y"].reshape(want.shape)
        np.testing.assert_allclose(got, want, **{"rtol": 0, "atol": 1e-5, **tolerance})

    @for_each(*KINDS)
    def test_sums(self, name):
        for coordinates, to in itertools.product(COORDINATES, TO):
            attributes = {**KINDS[name], "coordinate_transformation_mode": coordinates}
            if attributes.get("antialias") and coordinates == "half_pixel_symmetric":
                continue  # onnxruntime has no symmetric center there
            with self.subTest(coordinates=coordinates, to=to):
                self.check(model(SHAPE, attributes, sizes=[1, 3, *TO[to]]), SHAPE)

    @for_each("linear", "nearest")
    def test_crop(self, mode):
        for roi in ([0.1, 0.2, 0.8, 0.7], [-0.3, 0.2, 1.2, 0.9], [0.9, 0, 0.1, 1], [0, 0, 1, 1]):
            for to in TO:
                with self.subTest(roi=roi, to=to):
                    attributes = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize",
                                  "extrapolation_value": 7.5}
                    full = [0, 0, roi[0], roi[1], 1, 1, roi[2], roi[3]]
                    self.check(model(SHAPE, attributes, sizes=[1, 3, *TO[to]], roi=full), SHAPE)

    @for_each("stretch", "not_larger", "not_smaller")
    def test_policy(self, policy):
        for mode, to in itertools.product(("nearest", "linear", "cubic"), TO):
            with self.subTest(mode=mode, to=to):
                attributes = {"mode": mode, "axes": [3, 2], "keep_aspect_ratio_policy": policy}
                self.check(model(SHAPE, attributes, sizes=TO[to]), SHAPE)

    @for_each("linear", "nearest", "cubic")
    def test_fractions(self, mode):
        """Scales whose product with a length is not whole; align_corners goes by the length that comes out."""
        kinds = [{}] if mode == "nearest" else [{}, {"antialias": 1}]
        for coordinates, more, scales in itertools.product(COORDINATES, kinds, ((1.3, 0.65), (0.45, 1.7), (0.15, 2.9))):
            if more and coordinates == "half_pixel_symmetric":
                continue  # onnxruntime has no symmetric center there
            with self.subTest(coordinates=coordinates, scales=scales, **more):
                attributes = {"mode": mode, "coordinate_transformation_mode": coordinates, **more}
                self.check(model(SHAPE, attributes, scales=[1, 1, *scales]), SHAPE)

    def test_linear_along_three_axes(self):
        shape = (1, 2, 4, 5, 3)
        for coordinates in COORDINATES[:4]:
            attributes = {"mode": "linear", "coordinate_transformation_mode": coordinates}
            with self.subTest(coordinates=coordinates):
                self.check(model(shape, attributes, scales=[1, 1, 1.5, 0.6, 2]), shape)

    @for_each(*KINDS)
    def test_stays_float(self, name):
        """Between integers: Resize itself stays float, with what it needs around it."""
        made = model(SHAPE, KINDS[name], sizes=[1, 3, *TO["mixed"]])
        made.graph.node[0].input[0] = "c"
        made.graph.node.insert(0, helper.make_node("Conv", ["x", "w"], ["c"]))
        w = np.random.default_rng(5).normal(0, 1, (3, 3, 1, 1)).astype(np.float32)
        made.graph.initializer.append(numpy_helper.from_array(w, "w"))
        path, data, out = (self.scratch / n for n in ("m.onnx", "x.npz", "q.onnx"))
        onnx.save(made, path)
        x = np.random.default_rng(6).normal(0, 1, (4, *SHAPE[1:])).astype(np.float32)
        np.savez(data, x=x)
        qxc(path, f"-calib={data}", "-emit=qdq", "-no-sync", "-o", out)
        for optimize in (False, True):
            want, got = (session(p, optimize).run(None, {"x": x[:1]})[0] for p in (path, out))
            self.assertLess(np.abs(got - want).max(), np.ptp(want) / 50)


if __name__ == "__main__":
    import unittest
    unittest.main()
