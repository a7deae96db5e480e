#!/usr/bin/env python3
"""Measures qxc against onnxruntime and writes docs/benchmarks.md.

Usage: tools/bench.py [-o docs/benchmarks.md] [--rounds N] [--model NAME...]

Accuracy: signal to noise against quantize_static; differences at the end of the integer models.
Speed: the emitted C against onnxruntime, one thread, everything in this one process and in turn,
round by round, so that a noisy machine disturbs all alike; medians, and ratios of medians.
Needs build/qxc, the packages of test/requirements.txt and the models that QXC_SHARED names.
"""

import argparse
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test/oracle"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import onnx
import onnxruntime as ort

from cmodel import FLAGS, CModel
from common import BUILD, MODELS, NAMES, feed, qxc, session
from light import light
from quantized import FORMS, Case, case, sqnr_rows
from test_int_layers import end_to_end
from test_light_models import round_trip

TITLES = {"kws": "keyword spotting, DS-CNN", "ic": "image classification, ResNet-8",
          "vww": "visual wake words, MobileNetV1 0.25", "ad": "anomaly detection, autoencoder",
          "digits": "digits, the example here", "squeezenet": "SqueezeNet 1.0, random weights",
          "resnet50": "ResNet-50, random weights"}


def table(head, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


# ---- accuracy


def accuracy(folder):
    rows, gains = [], []
    for name in (*NAMES, "digits"):
        for form, mine, theirs in sqnr_rows(name, folder):
            gains.append(mine - theirs)
            rows.append((name, form, f"{mine:.2f}", f"{theirs:.2f}", f"{mine - theirs:+.2f}"))
    rows.append(("mean", "", "", "", f"{np.mean(gains):+.2f}"))
    return table(("model", "form", "qxc, dB", "quantize_static, dB", "difference"), rows)


def differences(folder):
    rows = []
    for name in NAMES:
        path = MODELS / f"{name}_int8_qdq.onnx"
        for what, counts in end_to_end(path, name, folder):
            total = counts.sum()
            shares = [f"{100 * c / total:.3f}" if c else "0" for c in counts[:4]]
            shares += ["0"] * (4 - len(shares))
            more = counts[4:].sum()
            rows.append((name, what, *shares, f"{100 * more / total:.3f}" if more else "0",
                         len(counts) - 1))
    return table(("model", "what", "0 steps, %", "1", "2", "3", "more", "largest"), rows)


# ---- speed


def bench_case(name, folder):
    if name in ("squeezenet", "resnet50"):
        path, images = light(name)
        rows = next(iter(images.values()))
        return Case(path, rows, rows, folder)
    return case(name, folder)


class Timed:
    """Something to call, and the times it took, in microseconds."""

    def __init__(self, call):
        self.call, self.times = call, []
        start = time.perf_counter()
        call()
        self.repeat = max(1, min(1000, int(0.02 / (time.perf_counter() - start + 1e-9))))

    def round(self):
        start = time.perf_counter()
        for _ in range(self.repeat):
            self.call()
        self.times.append(1e6 * (time.perf_counter() - start) / self.repeat)

    def median(self):
        return float(np.median(self.times))


def of_session(path, one):
    """onnxruntime as a user has it: optimized, one thread, inputs bound once."""
    runner = session(path, optimize=True)
    model = onnx.load(path)
    binding = runner.io_binding()
    for name, value in feed(model, one.test, 0).items():
        binding.bind_cpu_input(name, value)
    for output in model.graph.output:
        binding.bind_output(output.name)
    return Timed(lambda: runner.run_with_iobinding(binding))


def of_c(model, arrays):
    arguments, function = model.arguments(arrays), model.function
    assert function(*arguments) == 0
    return Timed(lambda: function(*arguments))


def speed_row(name, folder, rounds):
    one = bench_case(name, folder)
    source = folder / f"{one.name}_c.c"
    qxc(one.path, "-emit=c", f"-calib={one.calib_file}", f"-name={name}", "-no-sync", "-o", source)
    start = time.perf_counter()
    compiled = CModel(source, "gcc")
    compiling = time.perf_counter() - start
    qdq = one.by_qxc("qdq")
    sample = [np.ascontiguousarray(one.test[one.input][0])]
    contenders = [of_c(compiled, sample), of_session(qdq, one), of_session(one.path, one)]
    for _ in range(rounds):
        for each in contenders:
            each.round()
    c, int8, real = (each.median() for each in contenders)
    speed = (name, TITLES[name], *(f"{t:,.1f}" for t in (c, int8, real)),
             f"{int8 / c:.2f}", f"{real / c:.2f}")
    size = (name, *(f"{p.stat().st_size:,}" for p in (one.path, qdq, one.by_qxc("qop"))),
            f"{compiled.text_size():,}", f"{compiled.arena_size:,}", f"{compiling:.1f}")
    return speed, size


def memory(folder):
    path, _ = light("resnet50")
    size = path.stat().st_size
    return table(("step", "seconds", "of the processor", "peak memory, of the file's size"),
                 [(what, f"{seconds:.2f}", f"{busy:.2f}", f"{peak / size:.2f}")
                  for what, seconds, busy, peak in round_trip(path, folder)])


# ---- the page


def processor():
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    model = re.search(r"model name\s*:\s*(.*)", text)
    flags = re.search(r"flags\s*:\s*(.*)", text)
    have = [f for f in ("avx2", "avx512f", "avx512_vnni", "avx_vnni") if flags and f in flags[1].split()]
    return f"{model[1] if model else platform.machine()} ({', '.join(have)})"


def versions():
    gcc = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True)
    return (f"{processor()}; {gcc.stdout.splitlines()[0]}; onnxruntime {ort.__version__}, "
            f"onnx {onnx.__version__}, numpy {np.__version__}, Python {platform.python_version()}")


PAGE = """\
# Measurements

{versions}; one thread of {cores}.

    make && build/venv/bin/python tools/bench.py

writes this page (`make oracle` makes the virtual environment). What is slower or worse than
onnxruntime stands here as it is. The machine is shared and noisy (load average {load:.1f} at the end):
times of one table compare with each other and with nothing else.

## Accuracy of quantization

Signal to quantization noise at the output, against the float model. MinMax, weights int8 per
channel, activations uint8, the same calibration data for both; onnxruntime runs both results
without graph optimizations. `quantize_static` works on what its own `quant_pre_process` prepared.
Calibration and test data are real for ad (windows of one recording) and digits; for kws one real
spectrogram, shifted and rescaled; for ic and vww structured noise in the documented range.

{accuracy}
## Differences at the end of the integer models

The official integer models, 100 inputs each that reach at least half of the classes. Single layers
differ by at most one step (`make oracle T=int_layers` checks each with the same inputs, and the
QOperator form bit for bit); over many layers single steps grow, also between onnxruntime and
itself, which the third line of each model shows.

{differences}
## Speed

Microseconds for one inference, one thread: median of {rounds} rounds, the contenders taking turns.
The C is built with `gcc {flags}` and takes and gives float, as the models in
onnxruntime do; onnxruntime optimizes the graph, inputs and outputs are bound beforehand. int8 is
the QDQ form that qxc writes, which onnxruntime fuses. A ratio above 1 says that the C is faster.

{speed}
## Sizes

In bytes; the C as compiled above, code and weights together, and the memory it needs to run.

{sizes}
## A large model through the text and back

ResNet-50 ({resnet} MB) to `.qir` with its weights beside it, and back to ONNX, without waiting for
the disk. Memory counts the pages of the mapped file.

{memory}"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", dest="page", type=pathlib.Path, default=ROOT / "docs/benchmarks.md")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--model", nargs="*", default=list(TITLES), choices=list(TITLES))
    args = parser.parse_args()
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD) as folder:
        folder = pathlib.Path(folder)
        rows = []
        for name in args.model:
            rows.append(speed_row(name, folder, args.rounds))
            print(*rows[-1][0], file=sys.stderr)
        page = PAGE.format(
            versions=versions(), load=os.getloadavg()[0], cores=os.cpu_count(), rounds=args.rounds, flags=" ".join(FLAGS),
            accuracy=accuracy(folder), differences=differences(folder),
            speed=table(("model", "what", "emitted C", "onnxruntime int8", "onnxruntime float",
                         "C against int8", "C against float"), [r[0] for r in rows]),
            sizes=table(("model", "float ONNX", "QDQ", "QOperator", "C", "arena",
                         "seconds to compile"), [r[1] for r in rows]),
            resnet=f"{light('resnet50')[0].stat().st_size / 1e6:.1f}", memory=memory(folder))
    args.page.parent.mkdir(exist_ok=True)
    args.page.write_text(page)


if __name__ == "__main__":
    main()
