"""The models of the comparison, with data to calibrate on and others to measure with."""

import pathlib
import sys

import numpy as np
import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/oracle"), str(ROOT / "tools")]

import networks
from common import BUILD, NAMES, data_inputs
from quantized import float_path, splits

TRAINED = ("cnn", "relu6", "unet", "vit", "charlm", "lstm", "cancer")
OWN = ROOT / "test/models"
DECODER = BUILD / "lm/small"  # tools/language_model.py makes it
TEXT = ("charlm", "decoder")  # they say what comes next


class Model:
    """calib and test: {input: samples}; labels of `test` or None."""

    def __init__(self, name, path, calib, test, labels=None):
        self.name, self.path, self.labels = name, path, labels
        self.calib, self.test = calib, test

    def part(self, seed):
        """Data of a seed: the first has all, others two thirds, drawn."""
        if seed == 0:
            return self.calib
        count = len(next(iter(self.calib.values())))
        rows = np.sort(np.random.default_rng(seed).permutation(count)[:max(1, 2 * count // 3)])
        return {name: data[rows] for name, data in self.calib.items()}


def inputs_of(path, file):
    wanted = {v.name for v in data_inputs(onnx.load(path).graph)}
    with np.load(file) as data:
        return {name: data[name] for name in data.files if name in wanted}


def trained(name):
    path = OWN / f"{name}.onnx"
    labels = np.load(OWN / f"{name}.y.npy")
    return Model(name, path, inputs_of(path, OWN / f"{name}.calib.npz"), inputs_of(path, OWN / f"{name}.test.npz"),
                 labels if np.issubdtype(labels.dtype, np.integer) else None)


def measured(name):
    path = float_path(name)
    calib, test = splits(name)[0]
    wanted = data_inputs(onnx.load(path).graph)[0].name
    labels = np.load(ROOT / "examples/digits/test.npz")["labels"] if name == "digits" else None
    return Model(name, path, {wanted: calib}, {wanted: test}, labels)


def decoder(name):
    path = DECODER / "decoder.onnx"
    with np.load(DECODER / "calib.npz") as calib, np.load(DECODER / "test.npz") as test:
        return Model(name, path, {"ids": calib["ids"]}, {"ids": test["ids"][..., :-1]}, test["ids"][:, 0, 1:])


def made(name, folder):
    model, samples = {"detector": networks.detector, "transformer": networks.transformer,
                      "outliers": networks.transformer}[name]()
    path = folder / f"{name}.onnx"
    onnx.save(networks.with_outliers(model) if name == "outliers" else model, path)
    data = samples(48, 5)
    return Model(name, path, {k: v[::2] for k, v in data.items()}, {k: v[1::2] for k, v in data.items()})


MADE = ("detector", "transformer", "outliers")
USUAL = ("digits", *TRAINED, *NAMES, *MADE)
ALL = (*USUAL, "decoder")


def load(name, folder):
    if name in MADE:
        return made(name, folder)
    return trained(name) if name in TRAINED else decoder(name) if name == "decoder" else measured(name)
