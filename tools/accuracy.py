#!/usr/bin/env python3
"""Measures what quantization costs, by qxc and by onnxruntime, and writes docs/accuracy.md.

Usage: tools/accuracy.py [-o docs/accuracy.md] [--light NAME...]

Output SQNR of float models quantized with the same data, 8 bits, weights per channel: every
calibrator of quantize_static against every one of qxc, and qxc's passes that use the data. Accuracy of
the digits example with weights of 8 and of 4 bits. Needs build/qxc, the packages of
test/requirements.txt and the models that QXC_SHARED names.
"""

import argparse
import logging
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test/oracle"))
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TQDM_DISABLE", "1")

import numpy as np
import onnx
import onnx.version_converter
from onnxruntime.quantization import (CalibrationMethod, QuantFormat, QuantType, quantize_dynamic,
                                      quantize_static)
from onnxruntime.quantization.shape_inference import quant_pre_process

import networks
from common import BUILD, NAMES, data_inputs, qxc
from light import light
from quantized import Case, Reader, case

THEIRS = {"MinMax": CalibrationMethod.MinMax, "Entropy": CalibrationMethod.Entropy,
          "Percentile": CalibrationMethod.Percentile}
OURS = {f"qxc {options}".strip(): options.split() for options in (
    "", "-no-bias-correction", "-no-bias-correction -calib-method=mse", "-calib-method=mse",
    "-calib-method=percentile", "-calib-method=entropy", "-adaround", "-equalize",
    "-equalize -calib-method=mse", "-equalize -adaround")}
BRIEF = {who: OURS[who] for who in ("qxc", "qxc -adaround", "qxc -equalize -calib-method=mse")}
SMOOTHED = ("", "-smooth-quant", "-equalize")
BITS = {"8": [], "4": ["-weights=int4 sym"]}
LIGHT_SPLITS = ((0, 1), (2, 3)), ((2, 3), (0, 1)), ((0, 2), (1, 3))
MENDED = ("-no-bias-correction", "-bias-correction", "", "-adaround", "-equalize")

PAGE = """# What quantization costs

    make && build/venv/bin/python tools/accuracy.py

writes this page. Signal to quantization noise at the output in dB, against the float model: weights int8 per
channel, activations uint8, QDQ, the same calibration data for all; onnxruntime runs all results without
graph optimizations. `quantize_static` works on what its own `quant_pre_process` prepared. Calibration and
test data are different, real for ad and digits; for kws one real spectrogram, shifted and rescaled; for ic
and vww structured noise in the documented range. Differences below 1 dB are chance: any change of rounding
moves these networks so far.

## By calibrator and pass

{sqnr}
The default is the plain range with corrected biases; a quantization from statistics alone is what `-no-bias-correction`
gives. Weights of 8 bits are rounded to the nearest, those of 6 bits and less as by `-adaround`. `-equalize` is worth trying for
networks of depthwise convolutions. `-search` tries them all ([search.md](search.md)).

Best of onnxruntime's calibrators, and how far above it qxc is:

{gains}
## Digits

Right answers of 397 in %, float: {float:.2f}. Activations have 8 bits.

{digits}
{light}"""

LIGHT = """## Other networks, random weights

The light models of the `onnx` package without their Softmax, which leaves nothing to compare of random weights, and the
detector and the transformer of test/oracle/networks.py. Light models: two images to calibrate on, two others to measure
with, mean of three such choices, as one says little: on squeezenet `Percentile` is 1.9 dB better than `MinMax` with the
first (and there 0.5 dB better than the default of qxc), 1.5 and 1.2 dB worse with the others. Two images are too few for
`-equalize` and `mse`, which fit the ranges to them.

{table}
{gains}
Dynamic: weights of 8 bits, `qxc -dynamic` and `quantize_dynamic` per channel.

{dynamic}
The transformer again, with four of the 48 channels behind its normalizations 20 times as large and the weights that they
meet as much smaller: the same function in float, and what `-smooth-quant` and `-equalize` are for.

{outliers}"""


def table(head, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def quiet(call, *args, **kwargs):
    """Their progress is for terminals."""
    logging.disable(logging.ERROR)
    kept = os.dup(1)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)
        try:
            return call(*args, **kwargs)
        finally:
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)
            logging.disable(logging.NOTSET)


def theirs(one, prepared, method):
    out = one.folder / f"{one.name}_theirs.onnx"
    quiet(quantize_static, prepared, out, Reader(one.model, one.calib),
          quant_format=QuantFormat.QDQ, per_channel=True, activation_type=QuantType.QUInt8,
          weight_type=QuantType.QInt8, calibrate_method=method)
    return one.sqnr(out)


def prepare(one):
    """What quantize_static is given: prepared by its own tool, at an opset that has scales per channel."""
    source, prepared = one.path, one.folder / f"{one.name}_prepared.onnx"
    if one.model.opset_import[0].version < 13:
        source = one.folder / f"{one.name}_13.onnx"
        model = onnx.ModelProto()
        model.CopyFrom(one.model)
        model.ir_version = max(8, model.ir_version)
        inputs = data_inputs(model.graph)
        model = onnx.version_converter.convert_version(model, 13)
        del model.graph.input[:]
        model.graph.input.extend(inputs)
        onnx.save(model, source)
    quiet(quant_pre_process, source, prepared, skip_symbolic_shape=True)
    return prepared


def measure(one, ours=None):
    """{who: dB}"""
    prepared = prepare(one)
    found = {f"quantize_static {name}": theirs(one, prepared, method)
             for name, method in THEIRS.items()}
    for name, options in (ours or OURS).items():
        found[name] = one.sqnr(one.by_qxc("qdq", *options))
    return found


def mean_of(cases, ours):
    """{who: mean dB over the cases of one model}"""
    found = [measure(one, ours) for one in cases]
    return {who: np.mean([f[who] for f in found]) for who in found[0]}


def sqnr_tables(cases, ours=None):
    """Of lists of cases, one for each model."""
    found = {ones[0].name.removesuffix("_fp32"): mean_of(ones, ours) for ones in cases}
    who = list(next(iter(found.values())))
    head = ("", *found)
    rows = [(f"`{w}`" if w.startswith("qxc") else w, *(f"{m[w]:.2f}" for m in found.values()))
            for w in who]
    best = {name: max(db for w, db in m.items() if w.startswith("quantize")) for name, m in found.items()}
    gains = [("best of quantize_static", *(f"{db:.2f}" for db in best.values()), "")]
    for w in who:
        if w.startswith("qxc"):
            gain = [m[w] - best[name] for name, m in found.items()]
            gains.append((f"`{w}`", *(f"{g:+.2f}" for g in gain), f"{np.mean(gain):+.2f}"))
    return table(head, rows), table((*head, "mean"), gains)


def right(one, path):
    with np.load(ROOT / "examples/digits/test.npz") as data:
        labels = data["labels"]
    logits = one.run(path).reshape(len(labels), -1)
    return 100 * np.mean(np.argmax(logits, axis=1) == labels)


def digits(one):
    rows = []
    for options in MENDED:
        rows.append((f"`qxc {options}".strip() + "`",
                     *(f"{right(one, one.by_qxc('qdq', *bits, *options.split())):.2f}"
                       for bits in BITS.values())))
    return table(("", *(f"weights of {bits} bits" for bits in BITS)), rows)


def light_cases(name, folder):
    path, images = light(name)
    rows = next(iter(images.values()))
    model = onnx.load(path)
    last = next(n for n in model.graph.node if n.output[0] == model.graph.output[0].name)
    if last.op_type == "Softmax":
        model.graph.node.remove(last)
        model.graph.output[0].name = last.input[0]
        path = folder / f"{name}.onnx"
        onnx.save(model, path)
    cases = []
    for k, (calib, test) in enumerate(LIGHT_SPLITS):
        (folder / f"{name}{k}").mkdir()
        cases.append(Case(path, rows[list(calib)], rows[list(test)], folder / f"{name}{k}"))
    return cases


def network_case(name, folder, change=lambda model: model):
    path = folder / f"{name}.onnx"
    model, samples = networks.detector() if name == "detector" else networks.transformer()
    rows = next(iter(samples(48, 5).values()))
    onnx.save(change(model), path)
    return Case(path, rows[::2], rows[1::2], folder)


def dynamic_sqnr(one, *options):
    out = one.folder / f"{one.name}_qxc_dynamic.onnx"
    data = [f"-calib={one.calib_file}"] if options else []
    qxc(one.path, "-dynamic", "-emit=qop", "-no-sync", "-o", out, *options, *data)
    return one.sqnr(out)


def dynamic_row(one):
    """dB of both, quantized without data."""
    theirs = one.folder / f"{one.name}_ort_dynamic.onnx"
    quiet(quantize_dynamic, prepare(one), theirs, per_channel=True, weight_type=QuantType.QInt8)
    return one.name, f"{one.sqnr(theirs):.2f}", f"{dynamic_sqnr(one):.2f}"


def outlier_table(folder):
    one = network_case("transformer", folder, networks.with_outliers)
    rows = []
    for options in SMOOTHED:
        dynamic = "" if "-equalize" in options else f"{dynamic_sqnr(one, *options.split()):.2f}"
        rows.append((f"`qxc {options}".strip() + "`", f"{one.sqnr(one.by_qxc('qdq', *options.split())):.2f}", dynamic))
    return table(("", "static", "`-dynamic`"), rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("-o", default=ROOT / "docs/accuracy.md", type=pathlib.Path)
    parser.add_argument("--light", nargs="*", default=["squeezenet", "shufflenet", "inception_v1", "densenet121"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="accuracy-", dir=BUILD) as folder:
        folder = pathlib.Path(folder)
        sqnr, gains = sqnr_tables([[case(name, folder)] for name in (*NAMES, "digits")])
        one = case("digits", folder)
        others = [[network_case(n, folder)] for n in ("detector", "transformer")]
        others += [light_cases(n, folder) for n in given.light]
        networks_sqnr, networks_gains = sqnr_tables(others, BRIEF)
        large = LIGHT.format(table=networks_sqnr, gains=networks_gains,
                             dynamic=table(("", "quantize_dynamic", "`qxc -dynamic`"),
                                           [dynamic_row(others[1][0])]),
                             outliers=outlier_table(folder))
        page = PAGE.format(sqnr=sqnr, gains=gains, float=right(one, one.path), digits=digits(one),
                           light=large)
    given.o.write_text(page.rstrip() + "\n")


if __name__ == "__main__":
    main()
