"""Operators whose forms need more than their schema and a line of operator_facts.py, drawn at random: `qxc run` and emitted C
against onnxruntime. The others are in test_random_ops.py.

QXC_CASES sets how many forms of each operator are drawn, QXC_SEED which. Emitted C gives the bits of `qxc run`.
"""

import itertools
import os
import random

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from cmodel import CModel
from common import OracleCase, float_excess, for_each, qxc, qxc_outputs, session

CASES, SEED = int(os.environ.get("QXC_CASES") or 12), int(os.environ.get("QXC_SEED") or 1)
FLOATS = (np.float32, np.float64)


class Form:
    """One node, its operands by name and which of them are constants; `by_onnx`: what its reference has is expected."""

    def __init__(self, op, operands, constants=(), domain="", opset=22, results=("y",), by_onnx=False, **attrs):
        self.by_onnx = by_onnx
        node = helper.make_node(op, list(operands), list(results), "it", domain=domain, **attrs)
        imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
        graph = helper.make_graph(
            [node], "g", [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
                          for n, v in operands.items() if n not in constants],
            [onnx.ValueInfoProto(name=r) for r in results], [numpy_helper.from_array(operands[n], n) for n in constants])
        self.model = helper.make_model(graph, ir_version=10, opset_imports=imports)
        self.data = {n: v for n, v in operands.items() if n not in constants}


def normal(rng, shape, kind=np.float32):
    return np.asarray(rng.normalvariate(0, 1) if not shape else np.random.RandomState(rng.randrange(1 << 31)).randn(*shape), kind)


def deform_conv(rng):
    group, offsets, kind = rng.randint(1, 2), rng.randint(1, 2), rng.choice(FLOATS)
    c, m = 2 * group * offsets, group * rng.randint(1, 3)
    kernel, stride, dilation = ([rng.randint(1, 2 + (i == 0)) for _ in range(2)] for i in range(3))
    pads = [rng.randint(0, 2) for _ in range(4)]
    h, w = rng.randint(5, 8), rng.randint(5, 8)
    out = [(size + pads[i] + pads[i + 2] - (kernel[i] - 1) * dilation[i] - 1) // stride[i] + 1 for i, size in enumerate((h, w))]
    n, taps = rng.randint(1, 2), kernel[0] * kernel[1] * offsets
    operands = {"x": normal(rng, (n, c, h, w), kind), "w": normal(rng, (m, c // group, *kernel), kind),
                "offset": normal(rng, (n, 2 * taps, *out), kind) * kind(rng.choice((0.5, 2, 20)))}
    if rng.random() < 0.6:
        operands["bias"] = normal(rng, (m,), kind)
        if rng.random() < 0.6:
            operands["mask"] = normal(rng, (n, taps, *out), kind)
    return Form("DeformConv", operands, ("w",), group=group, offset_group=offsets, strides=stride, dilations=dilation, pads=pads)


def max_unpool(rng):
    kernel, stride = [rng.randint(1, 3) for _ in range(2)], [rng.randint(1, 3) for _ in range(2)]
    shape = (rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 4), rng.randint(1, 4))
    total = int(np.prod([shape[0], shape[1], *((s - 1) * t + k for s, t, k in zip(shape[2:], stride, kernel))]))
    places = np.random.RandomState(rng.randrange(1 << 31)).choice(total, int(np.prod(shape)), replace=total < np.prod(shape))
    return Form("MaxUnpool", {"x": normal(rng, shape), "i": places.reshape(shape).astype(np.int64)},
                kernel_shape=kernel, strides=stride)


def wide_pool(rng, op):
    """Rows of more than sixteen windows, which are computed side by side, with what lies beside the padding."""
    kernel, stride, dilation = ([rng.randint(1, most) for _ in range(2)] for most in (4, 3, rng.choice((1, 1, 2))))
    pads = [rng.randint(0, (kernel[i % 2] - 1) // 2) for i in range(4)]
    shape = (rng.randint(1, 2), rng.randint(1, 3), rng.randint(7, 12), rng.randint(16, 70) * stride[1])
    more = {"count_include_pad": rng.randint(0, 1)} if op == "AveragePool" else {}
    return Form(op, {"x": normal(rng, shape, rng.choice(FLOATS) if op == "MaxPool" else np.float32)}, opset=19, kernel_shape=kernel, strides=stride,
                pads=pads, dilations=dilation, ceil_mode=rng.randint(0, 1), **more)


def max_roi_pool(rng):
    """Boxes of all sizes, which overlap, end before they begin, and lie outside."""
    shape = (rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 9), rng.randint(1, 9))
    count = rng.randint(1, 5)
    boxes = np.array([[rng.randint(0, shape[0] - 1), *(rng.choice((1, 1, 3)) * rng.uniform(-2, 9) for _ in range(4))] for _ in range(count)], np.float32)
    boxes[:, 1:] = np.where(np.array([rng.random() < 0.3 for _ in range(count)])[:, None], np.round(boxes[:, 1:]) + 0.5, boxes[:, 1:])
    return Form("MaxRoiPool", {"x": normal(rng, shape), "boxes": boxes}, opset=21, pooled_shape=[rng.randint(1, 4), rng.randint(1, 4)],
                spatial_scale=rng.choice((1.0, 0.5, 1.7)))


def col2im(rng):
    """onnxruntime has other sums where the image has one dimension or three."""
    rank = rng.randint(1, 3)
    image, block, stride, dilation = ([rng.randint(*r) for _ in range(rank)] for r in ((4, 7), (1, 3), (1, 2), (1, 2)))
    pads = [rng.randint(0, 1) for _ in range(2 * rank)]
    blocks = [(i + pads[d] + pads[d + rank] - (b - 1) * k - 1) // s + 1 for d, (i, b, s, k) in enumerate(zip(image, block, stride, dilation))]
    if min(blocks) < 1:
        return col2im(rng)
    shape = (rng.randint(1, 2), rng.randint(1, 3) * int(np.prod(block)), int(np.prod(blocks)))
    return Form("Col2Im", {"x": normal(rng, shape), "image": np.array(image), "block": np.array(block)}, ("image", "block"),
                opset=18, by_onnx=rank != 2, strides=stride, dilations=dilation, pads=pads)


def batchnorm_training(rng):
    kind, n, c = rng.choice(FLOATS), rng.randint(1, 4), rng.randint(1, 4)
    x = normal(rng, (n, c, *[rng.randint(1, 4) for _ in range(rng.randint(1 if n == 1 else 0, 3))]), kind)
    operands = {k: abs(normal(rng, (c,), kind)) for k in ("scale", "bias", "mean", "var")}
    return Form("BatchNormalization", {"x": x, **operands}, ("scale", "bias"), results=("y", "m", "v")[:rng.choice((1, 2, 3))],
                opset=15, by_onnx=True, training_mode=1, momentum=rng.choice((0.0, 0.9, 0.3)), epsilon=rng.choice((1e-5, 0.1)))


def dropout_training(rng):
    """ONNX states no generator; its reference draws with NumPy's."""
    operands = {"x": normal(rng, (3, 400), rng.choice(FLOATS)), "ratio": np.array(rng.choice((0, 0.1, 0.5, 0.9)), np.float32),
                "training": np.array(True)}
    return Form("Dropout", operands, ("ratio", "training"), results=("y", "mask"), by_onnx=True, seed=rng.randrange(1 << 32))


def drawn(rng, op, **attrs):
    seed = float(rng.choice((0, 1, 7.6, 12345)))
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(rng.choice(FLOATS)))
    if op.endswith("Like"):
        attrs |= {"dtype": kind} if rng.random() < 0.5 else {}
        return Form(op, {"x": normal(rng, (3, 301))}, by_onnx=True, seed=seed, **attrs)
    if op == "Bernoulli":
        return Form(op, {"x": np.clip(abs(normal(rng, (3, 301))) / 2, 0, 1)}, by_onnx=True, seed=seed, dtype=rng.choice((1, 2, 6, 9, 11)))
    return Form(op, {}, by_onnx=True, seed=seed, shape=[rng.randint(1, 4), 301], dtype=kind, **attrs)


def uniform(rng, like=""):
    return drawn(rng, f"RandomUniform{like}", low=rng.choice((0.0, -3.5)), high=rng.choice((1.0, 0.3, 1e3)))


def gaussian(rng, like=""):
    return drawn(rng, f"RandomNormal{like}", mean=rng.choice((0.0, -3.5)), scale=rng.choice((1.0, 0.3, 1e3)))


FORMS = {"DeformConv": deform_conv, "MaxPool": lambda rng: wide_pool(rng, "MaxPool"), "AveragePool": lambda rng: wide_pool(rng, "AveragePool"),
         "MaxRoiPool": max_roi_pool, "MaxUnpool": max_unpool, "Col2Im": col2im, "BatchNormalization": batchnorm_training,
         "Dropout": dropout_training, "RandomUniform": uniform, "RandomNormal": gaussian,
         "RandomUniformLike": lambda rng: uniform(rng, "Like"), "RandomNormalLike": lambda rng: gaussian(rng, "Like"),
         "Bernoulli": lambda rng: drawn(rng, "Bernoulli")}


F = np.float32
WILD = F([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 2**31, -2**31, 0, -1e9])


def wild(count):
    return np.resize(WILD, count)


# Numbers that no box, offset, index or probability is: whether `qxc run` refuses them, as onnxruntime does indices.
HOSTILE = {
    "boxes": (False, lambda: Form("RoiAlign", {"x": wild(60).reshape(1, 2, 5, 6), "boxes": np.stack([np.roll(wild(12), i) for i in range(4)], 1),
                                              "index": np.zeros(12, np.int64)}, opset=16, output_height=2, output_width=3)),
    "maxima": (False, lambda: Form("RoiAlign", {"x": wild(60).reshape(1, 2, 5, 6), "boxes": np.stack([np.roll(wild(12), i) for i in range(4)], 1),
                                               "index": np.zeros(12, np.int64)}, opset=16, mode="max", sampling_ratio=3)),
    "bins": (False, lambda: Form("MaxRoiPool", {"x": wild(60).reshape(2, 1, 5, 6), "boxes": np.stack([np.roll(wild(12), i) for i in range(5)], 1)},
                                 pooled_shape=[2, 3])),
    "images": (True, lambda: Form("RoiAlign", {"x": np.ones((2, 1, 3, 3), F), "boxes": np.ones((4, 4), F),
                                              "index": np.array([0, 2, -1, 1 << 62])}, opset=16)),
    "offsets": (False, lambda: Form("DeformConv", {"x": wild(32).reshape(1, 2, 4, 4), "w": wild(18).reshape(1, 2, 3, 3),
                                                  "offset": wild(72).reshape(1, 18, 2, 2)})),
    "places": (True, lambda: Form("MaxUnpool", {"x": np.ones((1, 1, 1, 4), F), "i": np.array([0, -1, 1 << 40, 8]).reshape(1, 1, 1, 4)},
                                  kernel_shape=[1, 2], strides=[1, 2])),
    "features": (True, lambda: Form("ArrayFeatureExtractor", {"x": np.ones((2, 3), F), "i": np.array([0, 3, -1])}, domain="ai.onnx.ml")),
    "powers": (False, lambda: Form("Pow", {"x": np.int32([[-(1 << 31)], [(1 << 31) - 1], [0], [-1]]), "e": wild(10)})),
    "long powers": (False, lambda: Form("Pow", {"x": np.int64([[-(1 << 63)], [(1 << 63) - 1], [0]]), "e": np.int64([2, 3, -1, 1 << 62, -(1 << 63)])})),
    "matrices": (False, lambda: Form("Det", {"x": wild(45).reshape(5, 3, 3)})),
    "chances": (False, lambda: Form("Bernoulli", {"x": wild(10)}, seed=float("nan"), dtype=7)),
    "classes": (False, lambda: Form("Multinomial", {"x": np.stack([wild(10), np.full(10, -np.inf, F), np.full(10, np.nan, F)])}, sample_size=5)),
    "batch": (False, lambda: Form("BatchNormalization", {"x": wild(40).reshape(2, 4, 5), **{k: wild(4) for k in "sbmv"}}, training_mode=1, opset=15,
                                  results=("y", "m2", "v2"))),
}


class SingleOps(OracleCase):
    expected_seconds = 3

    def check(self, form):
        path = self.scratch / "m.onnx"
        onnx.save(form.model, path)
        want = (ReferenceEvaluator if form.by_onnx else session)(form.model).run(None, form.data)
        data = {n: v if v.shape[:1] == (1,) else v[None] for n, v in form.data.items()}
        got = qxc_outputs(path, data, self.scratch)
        for out, values in zip(form.model.graph.output, want):
            have = got[out.name].reshape(values.shape)
            self.assertEqual(have.dtype, values.dtype)
            if values.dtype == np.bool_:  # their bytes: 2 is true, too
                have, values = have.view(np.uint8), values.view(np.uint8)
            if values.dtype.kind == "f" and values.size:
                excess = float_excess(have.reshape(1, -1), values.reshape(1, -1))
                self.assertLessEqual(excess, 0, (form.model.graph.node[0], have, values))
            else:
                np.testing.assert_array_equal(have, values, str((form.model.graph.node[0], form.data)))
        return path, got

    def check_c(self, form, path, got):
        if any(v.dtype == np.float16 for v in (*form.data.values(), *got.values())):
            return  # arrays of C have no such type
        source = self.scratch / "m.c"
        qxc(path, "-emit=c", "-no-sync", "-o", source)
        compiled = CModel(source, "gcc", flags=("-O0", "-fsanitize=undefined", "-fno-sanitize-recover=all"))
        compiled.arena[:] = 0xff
        made = compiled.run(*(v.view(np.uint8) if v.dtype == np.bool_ else v for v in form.data.values()))
        for name, values in zip(got, made):
            np.testing.assert_array_equal(values, got[name].ravel())

    @for_each(*FORMS)
    def test_forms(self, op):
        rng = random.Random(f"{SEED} {op}")
        for i in range(CASES):
            with self.subTest(op=op, i=i):
                form = FORMS[op](rng)
                path, got = self.check(form)
                if i < 2:
                    self.check_c(form, path, got)

    @for_each(*HOSTILE)
    def test_hostile(self, name):
        """Refused, or run in no time; emitted C has no way to refuse, and stays inside of its buffers."""
        refused, make = HOSTILE[name]
        form, path = make(), self.scratch / "hostile.onnx"
        onnx.save(form.model, path)
        np.savez(self.scratch / "x.npz", **{n: v if v.shape[:1] == (1,) else v[None] for n, v in form.data.items()})
        done = qxc("run", path, f"-input={self.scratch / 'x.npz'}", "-o", self.scratch / "y.npz", ok=False)
        self.assertEqual(done.returncode, int(refused), done.stderr)
        if refused:
            self.assertIn("error: ", done.stderr)
        source = self.scratch / "m.c"
        qxc(path, "-emit=c", "-no-sync", "-o", source)
        compiled = CModel(source, "gcc", flags=("-O0", "-fsanitize=undefined", "-fno-sanitize-recover=all"))
        compiled.arena[:] = 0xff
        made = compiled.run(*form.data.values())
        if not refused:
            with np.load(self.scratch / "y.npz") as run:
                for (out, _, _), values in zip(compiled.outputs, made):
                    np.testing.assert_array_equal(values, run[out].ravel())

    def test_nan_through_integers(self):
        """NaN becomes the least number of the type, of 2 and 4 bits as well; by one scale and by a scale for each row."""
        x = np.tile(np.float32([np.nan, 1, -9, 100, 0.25, np.nan, np.nan, 3, -3]), (2, 2))
        for kind, scales in itertools.product(("INT4", "UINT4", "INT2", "UINT2", "INT8", "UINT8", "INT16", "UINT16"),
                                              (np.float32(0.5), np.float32([0.5, 2]))):
            with self.subTest(kind=kind, scales=np.ndim(scales)):
                to = getattr(onnx.TensorProto, kind)
                form = Form("QuantizeLinear", {"x": x, "s": scales}, ("s",), opset=25, output_dtype=to, axis=0, results=("q",))
                graph = form.model.graph
                graph.node.append(helper.make_node("Cast", ["q"], ["y"], to=onnx.TensorProto.INT32))
                graph.output[0].CopyFrom(helper.make_tensor_value_info("y", onnx.TensorProto.INT32, x.shape))
                form.model.opset_import[0].version, form.model.ir_version = 25, 13
                self.check_c(form, *self.check(form))

    def test_multinomial(self):
        """No reference has it: classes come as often as they count, and the same ones each time."""
        counts = np.array([[1, 2, 0, 5], [1, 1, 1, 1]], np.float32)
        with np.errstate(divide="ignore"):
            form = Form("Multinomial", {"x": np.log(counts)}, sample_size=4000, seed=3.0, dtype=7)
        path = self.scratch / "multinomial.onnx"
        onnx.save(form.model, path)
        data = {"x": form.data["x"][None]}
        got = qxc_outputs(path, data, self.scratch)
        self.assertEqual(got["y"].dtype, np.int64)
        for row, want in zip(got["y"].reshape(2, -1), counts):
            share = np.bincount(row, minlength=4) / 4000
            np.testing.assert_allclose(share, want / want.sum(), atol=0.03)
            self.assertTrue((share[want == 0] == 0).all())
        np.testing.assert_array_equal(qxc_outputs(path, data, self.scratch)["y"], got["y"])
        self.check_c(form, path, got)
