"""Float models quantized twice with the same data and settings: by qxc and by onnxruntime.

MinMax, weights int8 per channel, activations uint8: what quantize_static calls
per_channel=True, activation_type=QUInt8, weight_type=QInt8.
"""

import logging

import numpy as np
import onnx
from onnxruntime.quantization import (CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType,
                                      quantize_static)
from onnxruntime.quantization.shape_inference import quant_pre_process

from common import DIGITS, NAMES, data_inputs, feed, model_path, qxc, run_samples, session, sqnr
from inputs import calibration, float_inputs, test_inputs

FORMS = {"qdq": QuantFormat.QDQ, "qop": QuantFormat.QOperator}


class Reader(CalibrationDataReader):
    def __init__(self, model, arrays):
        self.rows = (feed(model, arrays, k) for k in range(len(next(iter(arrays.values())))))

    def get_next(self):
        return next(self.rows, None)


class Case:
    """A float model with calibration and test data."""

    def __init__(self, path, calib, test, folder):
        self.path, self.folder, self.name = path, folder, path.stem
        self.model = onnx.load(path)
        self.input = data_inputs(self.model.graph)[0].name
        self.output = self.model.graph.output[0].name
        self.calib, self.test = {self.input: calib}, {self.input: test}
        self.calib_file = folder / f"{self.name}_calib.npz"
        np.savez(self.calib_file, **self.calib)

    def by_qxc(self, form, *options):
        out = self.folder / f"{self.name}_qxc_{form}.onnx"
        qxc(self.path, f"-emit={form}", f"-calib={self.calib_file}", "-no-sync", "-o", out, *options)
        return out

    def by_onnxruntime(self, form, prepare=True, method=CalibrationMethod.MinMax):
        out = self.folder / f"{self.name}_ort_{form}.onnx"
        source = self.path
        if prepare:  # folds batch normalization, without which the comparison would be unfair
            source = self.folder / f"{self.name}_prepared.onnx"
            quant_pre_process(self.path, source, skip_symbolic_shape=True)
        level = logging.getLogger().level
        logging.getLogger().setLevel(logging.ERROR)
        quantize_static(source, out, Reader(self.model, self.calib), quant_format=FORMS[form],
                        per_channel=True, activation_type=QuantType.QUInt8,
                        weight_type=QuantType.QInt8, calibrate_method=method)
        logging.getLogger().setLevel(level)
        return out

    def run(self, path, optimize=False):
        model = onnx.load(path)
        return run_samples(session(path, optimize), model, self.test)[model.graph.output[0].name]

    def reference(self):
        return self.run(self.path)

    def sqnr(self, path):
        return sqnr(self.reference(), self.run(path))


def case(name, folder):
    return Case(float_path(name), *splits(name)[0], folder)


def splits(name):
    """[(calibration, test)], each pair without an overlap: where errors of a network are mostly chance,
    one pair says little. The first is the one of case()."""
    if name == "digits":
        with np.load(DIGITS / "calib.npz") as calib, np.load(DIGITS / "test.npz") as test:
            return with_halves(calib["image"], test["image"])
    first = calibration(name), test_inputs(name)
    if name not in NAMES:
        return with_halves(*first)
    if name == "ad":
        rows = np.concatenate(first)
        return [first, (rows[68:], rows[:68]), (rows[::2], rows[1::2])]
    return [first] + [tuple(float_inputs(name, 32, seed) for seed in pair) for pair in ((5, 6), (7, 8))]


def with_halves(rows, test):
    """The pair, and the halves of what is for calibration."""
    half = len(rows) // 2
    return [(rows, test), (rows[:half], rows[half:]), (rows[half:], rows[:half])]


def float_path(name):
    return model_path(name, "fp32")


def sqnr_rows(name, folder):
    """[(form, dB of qxc, dB of onnxruntime)] at the output, the mean over all splits."""
    found = []
    for calib, test in splits(name):
        one = Case(float_path(name), calib, test, folder)
        found.append([(one.sqnr(one.by_qxc(form)), one.sqnr(one.by_onnxruntime(form))) for form in FORMS])
    return [(form, *np.mean(found, 0)[i]) for i, form in enumerate(FORMS)]
