"""NaN in the windows of MaxPool and GlobalMaxPool: one that comes first in its window is the result, any other is passed over.

onnxruntime does so for double, for dilated windows and where it gives indices, as long as it keeps channels as they are; for other
windows of float its result depends on where vectors begin and end, and there the same rule is held against its definition.
"""

import itertools

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cmodel import FLAGS, PLAIN, CModel
from common import OracleCase, for_each, qxc, qxc_outputs, session

SHAPES = {"row": (2, 3, 53), "plane": (2, 3, 9, 45), "volume": (2, 3, 5, 6, 23)}


def window(rank, kernel, stride=1, dilation=1, pad=0):
    return {"kernel_shape": [kernel] * rank, "strides": [stride] * rank, "dilations": [dilation] * rank, "pads": [pad] * 2 * rank}


def model(op, shape, attributes, kind=np.float32, outputs=("y",), before=()):
    types = [helper.np_dtype_to_tensor_dtype(np.dtype(kind)), TensorProto.INT64]
    weights = np.eye(shape[1], dtype=kind).reshape(shape[1], shape[1], *[1] * (len(shape) - 2))
    nodes = [*before, helper.make_node(op, ["c" if before else "x"], [*outputs], **attributes)]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", types[0], shape)],
        [helper.make_tensor_value_info(o, t, None) for o, t in zip(outputs, types)],
        [numpy_helper.from_array(weights, "w")] if before else [])
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 19)]))


def data(shape, kind=np.float32):
    rng = np.random.default_rng(sum(shape))
    return np.where(rng.random(shape) < 0.2, np.nan, rng.normal(0, 1, shape)).astype(kind)


def largest(x, at):
    """By definition, for windows without dilation."""
    spatial = range(2, x.ndim)
    begin = at["pads"][:x.ndim - 2]
    places = [range(0, x.shape[d] + 2 * begin[d - 2] - at["kernel_shape"][d - 2] + 1, at["strides"][d - 2]) for d in spatial]
    y = np.empty((*x.shape[:2], *map(len, places)), x.dtype)
    for index in itertools.product(*(range(len(p)) for p in places)):
        start = [p[i] - b for p, i, b in zip(places, index, begin)]
        part = x[(..., *(slice(max(s, 0), s + k) for s, k in zip(start, at["kernel_shape"])))].reshape(*x.shape[:2], -1)
        first = part[..., 0]
        y[(..., *index)] = np.where(np.isnan(first), first, np.fmax.reduce(part, -1))
    return y


class NanInPools(OracleCase):
    def same(self, made, x, wants):
        path, source = self.model_of(made), self.scratch / "m.c"
        got = qxc_outputs(path, {"x": x}, self.scratch)
        qxc(path, "-emit=c", "-no-sync", "-o", source)
        for flags in (PLAIN, FLAGS):
            for have, ours, want in zip(CModel(source, flags=flags).run(x), got.values(), wants):
                np.testing.assert_array_equal(ours.reshape(want.shape), want)
                np.testing.assert_array_equal(have.reshape(want.shape), want)

    def model_of(self, made):
        path = self.scratch / "m.onnx"
        onnx.save(made, path)
        return path

    def there(self, made, x):
        return session(made).run(None, {"x": x})

    @for_each(*SHAPES)
    def test_double(self, name):
        shape = SHAPES[name]
        for sizes in ((3,), (2, 2), (3, 1, 1, 1), (3, 2, 2, 1)):
            made = model("MaxPool", shape, window(len(shape) - 2, *sizes), np.float64)
            x = data(shape, np.float64)
            self.same(made, x, self.there(made, x))

    @for_each(*SHAPES)
    def test_dilated(self, name):
        shape = SHAPES[name]
        for sizes in ((2, 1, 2), (2, 2, 3, 1)):
            made, x = model("MaxPool", shape, window(len(shape) - 2, *sizes)), data(shape)
            self.same(made, x, self.there(made, x))

    def test_dilated_in_blocks(self):
        """onnxruntime's optimizer keeps 16 channels in blocks, where its kernel has no such rule: windows without a NaN agree."""
        shape = (2, 16, 11, 13)
        made, x = model("MaxPool", shape, window(2, 3, 1, 2)), data(shape)
        y = qxc_outputs(self.model_of(made), {"x": x[None]}, self.scratch)["y"]
        blocks = session(made, optimize=True)
        odd = self.there(made, np.isnan(x).astype(np.float32))[0] > 0
        self.assertTrue(odd.any() and not odd.all())
        want = blocks.run(None, {"x": x})[0]
        np.testing.assert_array_equal(y.reshape(want.shape)[~odd], want[~odd])
        np.testing.assert_array_equal(y.reshape(want.shape), self.there(made, x)[0])

    @for_each(*SHAPES)
    def test_indices(self, name):
        shape = SHAPES[name]
        made, x = model("MaxPool", shape, window(len(shape) - 2, 3, 2, 1, 1), outputs=("y", "at")), data(shape)
        self.same(made, x, self.there(made, x))

    @for_each(*SHAPES)
    def test_float(self, name):
        shape = SHAPES[name]
        for sizes in ((3,), (2, 2), (3, 1, 1, 1), (3, 2, 1, 1)):
            at = window(len(shape) - 2, *sizes)
            self.same(model("MaxPool", shape, at), data(shape), [largest(data(shape), at)])

    @for_each(*SHAPES)
    def test_whole_planes(self, name):
        shape = SHAPES[name]
        x = data(shape)
        x[0, 0] = np.nan
        x[0, 1].flat[0] = np.nan
        x[1].reshape(3, -1)[:, 0] = 0
        at = {"kernel_shape": shape[2:], "strides": [1] * (len(shape) - 2), "pads": [0] * 2 * (len(shape) - 2)}
        want = largest(x, at)
        self.assertEqual(list(np.isnan(want).ravel()[:2]), [True, True])
        self.assertTrue(np.isfinite(want[1]).all())
        self.same(model("GlobalMaxPool", shape, {}), x, [want])

    def test_channels_last(self):
        """Behind a Conv, which keeps its result so; each channel has one number that the Conv leaves as it is."""
        shape, at = (1, 16, 9, 11), window(2, 3, 2, 1, 1)
        x = data((1, 1, 9, 11)).repeat(16, 1)  # what is NaN in one channel is so in all of them
        conv = helper.make_node("Conv", ["x", "w"], ["c"])
        path = self.scratch / "m.onnx"
        onnx.save(model("MaxPool", shape, at, before=[conv]), path)
        qxc(path, "-emit=c", "-no-sync", "-o", self.scratch / "m.c")
        self.assertIn("maxpool2d_nhwc", (self.scratch / "m.c").read_text())
        self.same(model("MaxPool", shape, at, before=[conv]), x, [largest(x, at)])


if __name__ == "__main__":
    import unittest
    unittest.main()
