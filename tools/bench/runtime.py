"""The forms that qxc writes and that of quantize_static, both run by onnxruntime."""

import sys

import numpy as np
import onnx

from common import qxc
from contenders import onnxruntime
from light import BIG, MEDIUM, SMALL, light
from networks import detector, transformer
from page import table
from quantized import Case, case

NETWORKS = {"detector": detector, "transformer": transformer}
RUNTIME = ("digits", *NETWORKS, *SMALL, *MEDIUM, *BIG)


def runtime_case(name, folder):
    if name in SMALL + MEDIUM + BIG:
        path, images = light(name)
        rows, newer = next(iter(images.values())), folder / f"{name}.onnx"
        qxc(path, "-emit=onnx", "-target-opset=13", "-no-sync", "-quiet", "-o", newer)
        return Case(newer, rows, rows, folder)
    if name not in NETWORKS:
        return case(name, folder)
    model, inputs = NETWORKS[name]()
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    (calib,), (test,) = inputs(24, 1).values(), inputs(8, 2).values()
    return Case(path, calib, test, folder)


def runtime_row(name, folder, rounds):
    one = runtime_case(name, folder)
    paths = one.by_qxc("qdq"), one.by_onnxruntime("qdq"), one.path
    contenders = [onnxruntime(path, one) for path in paths]
    for each in contenders:  # shorter than what the scheduler gives at once: a round is disturbed or not
        each.repeat = max(1, each.repeat // 8)
    for _ in range(4 * rounds if contenders[0].repeat > 1 else rounds):
        for each in contenders:
            each.round()
    ratio = np.median([b / a for a, b in zip(contenders[0].times, contenders[1].times)])
    fastest = [min(each.times) for each in contenders]
    quality = [f"{one.sqnr(path):.2f}" for path in paths[:2]]
    for path in paths[:2]:
        path.unlink()
    return (name, *(f"{c.median():,.1f}" for c in contenders), f"{ratio:.2f}", f"{fastest[1] / fastest[0]:.2f}",
            *quality)


def runtime_table(folder, rounds, official):
    rows = []
    for name in (*official, *RUNTIME):
        rows.append(runtime_row(name, folder, rounds))
        print(*rows[-1], file=sys.stderr)
    return table(("model", "qxc", "quantize_static", "float", "ratio", "fastest", "qxc, dB",
                  "quantize_static, dB"), rows)


RUNTIME_TEXT = """\
The QDQ form that qxc writes and that of `quantize_static` (prepared by `quant_pre_process`), same
data and types, both optimized and run by onnxruntime: microseconds for one inference, one thread,
median of at least {rounds} rounds in turn. The first ratio is the median of those of the rounds, the
second that of the fastest of all rounds, which other work on the machine disturbs less; above 1 qxc's
is faster. Signal to quantization noise without graph optimizations, as above.

{table}"""
