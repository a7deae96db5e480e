"""Inputs for the models: real ones where there are some, else structured noise, all seeded.

White noise reaches one or three classes of a classifier. So candidates mix scales, contrasts,
gradients, stripes and (for keywords) the one real spectrogram shifted and rescaled; from a few
hundred of them those are taken that spread over the classes.
"""

import numpy as np
import onnx
from onnx import numpy_helper

from common import MODELS, NAMES, TRAINED_MODELS, model_path, session


def noise(rng, shape):
    """Noise at several scales along the two middle axes of [1,H,W,C], mean 0, deviation 1."""
    _, h, w, c = shape
    total = np.zeros(shape)
    for cell in (1, 2, 4, 8, 16, 32):
        rows, cols = -(-h // cell), -(-w // cell)
        coarse = rng.standard_normal((1, rows, cols, c)).repeat(cell, 1).repeat(cell, 2)
        total += rng.uniform(0, 2) * coarse[:, :h, :w]
    if rng.random() < 0.5:  # a grating of one colour
        y, x = np.meshgrid(np.arange(h), np.arange(w), indexing="ij")
        angle, period = rng.uniform(0, np.pi), rng.uniform(2, max(4, h / 2))
        wave = np.sin((x * np.cos(angle) + y * np.sin(angle)) * 2 * np.pi / period)
        total += rng.uniform(0, 3) * wave[None, :, :, None] * rng.standard_normal(c)
    total += rng.uniform(0, 2) * rng.standard_normal((1, 1, 1, c))  # a tint
    return (total - total.mean()) / (total.std() + 1e-9)


def picture(rng, shape):
    """In 0..1."""
    contrast, brightness = rng.uniform(0.05, 0.4), rng.uniform(0.15, 0.85)
    return np.clip(brightness + contrast * noise(rng, shape), 0, 1)


def spectrogram(rng, shape):
    """The real one shifted in time, rescaled, under noise; or one of a like distribution."""
    with np.load(MODELS / "kws_inputs.npz") as loaded:
        real = loaded["input"].astype(np.float64)
    column, spread = real.mean((0, 1, 3), keepdims=True), real.std((0, 1, 3), keepdims=True) + 1
    other = column + spread * noise(rng, shape)
    moved = np.roll(real, rng.integers(-20, 20), axis=1) * rng.uniform(0.4, 1.1)
    part = rng.choice([0.0, 0.3, 1.0], p=[0.3, 0.4, 0.3])
    return (1 - part) * moved + part * other


def windows(rng, _shape):
    """Feature windows of a machine: real ones, mixed and rescaled."""
    with np.load(MODELS / "ad_inputs.npz") as loaded:
        real = loaded["input"].astype(np.float64)
    a, b = real[rng.integers(len(real), size=2)]
    part = rng.uniform(0, 1) if rng.random() < 0.7 else 0
    return ((1 - part) * a + part * b + rng.uniform(0, 3) * rng.standard_normal(a.shape))[None]


MAKERS = {
    "kws": spectrogram,
    "ad": windows,
    "vww": picture,
    "ic": lambda rng, shape: 255 * picture(rng, shape),
}


def trained(name, part):
    """Samples of a network of test/models: [samples, ...]; `part` is calib or test."""
    with np.load(TRAINED_MODELS / f"{name}.{part}.npz") as loaded:
        return next(loaded[key] for key in loaded.files if key != "label")


def blends(name, count, rng):
    """Samples of the test set and, as often, mixtures of two with noise."""
    rows = trained(name, "test")
    a, b = rows[rng.integers(len(rows), size=(2, count))]
    part = (rng.uniform(0, 1, count) * (rng.random(count) < 0.5)).reshape(-1, *[1] * (a.ndim - 1))
    return ((1 - part) * a + part * b + 0.1 * part * rng.standard_normal(a.shape)).astype(np.float32)


def float_inputs(name, count, seed):
    """[count, ...] for the float model, in its documented range."""
    if name not in NAMES:
        return blends(name, count, np.random.default_rng([seed, *name.encode()]))
    shape = {"kws": (1, 49, 10, 1), "ad": (1, 640), "vww": (1, 96, 96, 3), "ic": (1, 32, 32, 3)}[name]
    rng = np.random.default_rng([seed, *name.encode()])
    rows = [MAKERS[name](rng, shape) for _ in range(count)]
    return np.concatenate(rows).astype(np.float32)


def calibration(name):
    """Real data where there is some: [samples, ...]."""
    if name not in NAMES:
        return trained(name, "calib")
    if name == "ad":
        with np.load(MODELS / "ad_inputs.npz") as loaded:
            return loaded["input"][:128]
    rows = float_inputs(name, 32, seed=3)
    if name == "kws":
        with np.load(MODELS / "kws_inputs.npz") as loaded:
            rows[0] = loaded["input"][0]
    return rows


def test_inputs(name):
    """Not seen in calibration."""
    if name not in NAMES:
        return trained(name, "test")[:128]
    if name == "ad":
        with np.load(MODELS / "ad_inputs.npz") as loaded:
            return loaded["input"][128:]
    return float_inputs(name, 64, seed=4)


def input_parameters(model):
    """Scale and zero point of a quantized model's input: of the first DequantizeLinear of what is computed, since a
    Transpose may come before it."""
    initial_names = {t.name for t in model.graph.initializer}
    node = next(n for n in model.graph.node if n.op_type == "DequantizeLinear" and n.input[0] not in initial_names)
    initial = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    return initial[node.input[1]], initial[node.input[2]]


def int8_inputs(name, count=100, candidates=500, seed=1):
    """int8 [count, ...] for NAME_int8_qdq.onnx, and the classes that they reach."""
    model = onnx.load(model_path(name, "int8_qdq"))
    scale, zero = input_parameters(model)
    classifies = name not in ("ad", "unet")
    rows = float_inputs(name, candidates if classifies else count, seed)
    stored = np.clip(np.rint(rows / scale) + zero, -128, 127).astype(np.int8)
    if not classifies:
        return stored, None
    runner = session(model, optimize=True)
    source = model.graph.input[0].name
    classes = np.array([np.argmax(runner.run(None, {source: x[None]})[0]) for x in stored])
    # One of each class in turn, until there are enough.
    order = np.argsort([np.count_nonzero(classes[:i] == c) for i, c in enumerate(classes)],
                       kind="stable")
    chosen = np.sort(order[:count])
    return stored[chosen], classes[chosen]
