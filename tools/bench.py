#!/usr/bin/env python3
"""Measures qxc against onnxruntime and writes docs/benchmarks.md.

Usage: tools/bench.py [-o docs/benchmarks.md] [--rounds N] [--model NAME...] [--section NAME...]

With --section only these parts of the page are measured and written anew.

Accuracy: signal to noise against quantize_static; differences at the end of the integer models.
Speed: the emitted C against onnxruntime, one thread, everything in this one process and in turn,
round by round, so that a noisy machine disturbs all alike; medians, and ratios of medians.
Needs build/qxc, the packages of test/requirements.txt and the models that QXC_SHARED names.
"""

import argparse
import functools
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "test/oracle"), str(ROOT / "test/bench")]
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import onnx
import onnxruntime as ort

from cmodel import FLAGS, CModel
from common import BUILD, MODELS, NAMES, feed, qxc, session
from large import large
from light import BIG, MEDIUM, SMALL, light
from networks import detector, transformer
from quantized import FORMS, Case, case, sqnr_rows
from test_int_layers import end_to_end
from test_light_models import measured, round_trip
from text_speed import text_rows

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


# ---- quantized by qxc and by onnxruntime, run by onnxruntime

NETWORKS = {"detector": detector, "transformer": transformer}
RUNTIME = (*NAMES, "digits", *NETWORKS, *SMALL, *MEDIUM, *BIG)


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
    contenders = [of_session(path, one) for path in paths]
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


# ---- quantizing a large model

QUANTIZED = {"`-dynamic`": ("-dynamic", "-emit=qdq"),
             "`-weight-only`": ("-weight-only", "-emit=qdq"),
             '`-weight-only -weights="int4 sym block(32)"`': ("-weight-only", "-weights=int4 sym block(32)", "-emit=qdq"),
             "the same as MatMulNBits": ("-weight-only", "-weights=int4 sym block(32)", "-emit=qop")}


def read_file(path):
    """Seconds for reading it, in parts, as it lies in the page cache."""
    part = bytearray(1 << 20)
    start = time.perf_counter()
    with open(path, "rb", buffering=0) as f:
        while f.readinto(part):
            pass
    return time.perf_counter() - start


def write_file(path, size):
    part = memoryview(os.urandom(1 << 20))
    start = time.perf_counter()
    with open(path, "wb", buffering=0) as f:
        for at in range(0, size, len(part)):
            f.write(part[:size - at])
        os.fsync(f.fileno())
    return time.perf_counter() - start


def quantizing(path, folder, rounds):
    """Rows: what qxc takes beside reading what it reads and writing what it writes, in turn."""
    files = [path, path.with_name(f"{path.name}.data")]
    files = [f for f in files if f.exists()]
    rows = []
    for what, options in QUANTIZED.items():
        out, times = folder / "large_q.onnx", []
        for _ in range(rounds):
            seconds, busy, peak = measured(path, *options, "-quiet", "-o", out)
            plain = sum(map(read_file, files)) + write_file(folder / "large_w", out.stat().st_size)
            times.append((seconds, busy, plain, peak))
        seconds, busy, plain, peak = np.median(times, axis=0)
        rows.append((what, f"{out.stat().st_size / 1e6:.1f}", f"{plain:.2f}", f"{seconds:.2f}", f"{busy:.2f}",
                     f"{np.median([t[0] / t[2] for t in times]):.2f}", f"{peak / 1e6:.0f}"))
        out.unlink()
    return rows


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


HEAD = """\
# Measurements

{versions}; one thread of {cores}.

    make && build/venv/bin/python tools/bench.py

writes this page (`make oracle` makes the virtual environment; `--section Text` measures one part
anew). What is slower or worse than onnxruntime stands here as it is. The machine is shared and
noisy (load average {load:.1f} at the end): times of one table compare with each other and with
nothing else.

"""

ACCURACY = """\
Signal to quantization noise at the output, against the float model. MinMax, weights int8 per
channel, activations uint8, the same calibration data for both; onnxruntime runs both results
without graph optimizations. `quantize_static` works on what its own `quant_pre_process` prepared.
Calibration and test data are real for ad (windows of one recording) and digits; for kws one real
spectrogram, shifted and rescaled; for ic and vww structured noise in the documented range.

{table}"""

DIFFERENCES = """\
The official integer models, 100 inputs each that reach at least half of the classes. Single layers
differ by at most one step (`make oracle T=int_layers` checks each with the same inputs, and the
QOperator form bit for bit); over many layers single steps grow, also between onnxruntime and
itself, which the third line of each model shows.

{table}"""

SPEED = """\
Microseconds for one inference, one thread: median of {rounds} rounds, the contenders taking turns.
The C is built with `gcc {flags}` and takes and gives float, as the models in
onnxruntime do; onnxruntime optimizes the graph, inputs and outputs are bound beforehand. int8 is
the QDQ form that qxc writes, which onnxruntime fuses. A ratio above 1 says that the C is faster.

{table}"""

SIZES = """\
In bytes; the C as compiled above, code and weights together, and the memory it needs to run.

{table}"""

TEXT = """\
Reading and printing the same models as `.qir` and in onnx's own text format (`onnx.parser`,
`onnx.printer`): milliseconds of processor time, the median of {rounds} rounds in turn, without
files. A ratio above 1 says that `.qir` is faster. The quantized model, which onnx's text cannot
say, is the one of `test/bench/qir_speed.sh`. Memory is what reading and printing take at the
peak, as a multiple of the text's size.

{table}"""

LARGE = """\
ResNet-50 ({resnet} MB) to `.qir` with its weights beside it, and back to ONNX, without waiting for
the disk. Memory counts the pages of the mapped file.

{table}"""


RUNTIME_TEXT = """\
The QDQ form that qxc writes and that of `quantize_static` (prepared by `quant_pre_process`), same
data and types, both optimized and run by onnxruntime: microseconds for one inference, one thread,
median of at least {rounds} rounds in turn. The first ratio is the median of those of the rounds, the
second that of the fastest of all rounds, which other work on the machine disturbs less; above 1 qxc's
is faster. Signal to quantization noise without graph optimizations, as above.

{table}"""

QUANTIZING = """\
{size} MB of random float weights, 31 layers of MatMul, Add and Relu (`test/oracle/large.py`): seconds
for quantizing them, and beside it, in the same round, for reading the same file and writing as many
bytes as the result has, both with fsync; medians of {rounds} rounds. The file is in the page cache.
The ratio is that of the two in one round.

Weights in the model's file:

{inside}
Weights in a file beside it:

{beside}"""


class Bench:
    """What the sections are measured with; each method gives the text of one."""

    def __init__(self, folder, rounds, models):
        self.folder, self.rounds, self.models = folder, rounds, models

    @functools.cached_property
    def rows(self):
        rows = []
        for name in self.models:
            rows.append(speed_row(name, self.folder, self.rounds))
            print(*rows[-1][0], file=sys.stderr)
        return rows

    def accuracy(self):
        return ACCURACY.format(table=accuracy(self.folder))

    def differences(self):
        return DIFFERENCES.format(table=differences(self.folder))

    def speed(self):
        return SPEED.format(rounds=self.rounds, flags=" ".join(FLAGS), table=table(
            ("model", "what", "emitted C", "onnxruntime int8", "onnxruntime float",
             "C against int8", "C against float"), [r[0] for r in self.rows]))

    def sizes(self):
        return SIZES.format(table=table(("model", "float ONNX", "QDQ", "QOperator", "C", "arena",
                                         "seconds to compile"), [r[1] for r in self.rows]))

    def text(self):
        subprocess.run([ROOT / "test/bench/qir_speed.sh", "-build"], check=True)
        rounds = min(self.rounds, 7)
        return TEXT.format(rounds=rounds, table=table(
            ("model", "", ".qir, MB", "ms", "MB/s", "onnx text, MB", "ms", "MB/s", "ratio",
             "memory"), text_rows(self.folder, rounds)))

    def large(self):
        resnet = f"{light('resnet50')[0].stat().st_size / 1e6:.1f}"
        return LARGE.format(resnet=resnet, table=memory(self.folder))

    def runtime(self):
        rows = []
        for name in RUNTIME:
            rows.append(runtime_row(name, self.folder, self.rounds))
            print(*rows[-1], file=sys.stderr)
        return RUNTIME_TEXT.format(rounds=self.rounds, table=table(
            ("model", "qxc", "quantize_static", "float", "ratio", "fastest", "qxc, dB", "quantize_static, dB"), rows))

    def quantizing(self):
        rounds, tables = min(self.rounds, 5), {}
        for external in (False, True):
            path = large(self.folder / "large.onnx", external=external)
            size = sum(f.stat().st_size for f in self.folder.glob("large.onnx*"))
            tables[external] = table(("options", "result, MB", "read and write, s", "qxc, s", "of the processor",
                                      "ratio", "peak memory, MB"), quantizing(path, self.folder, rounds))
            for file in self.folder.glob("large*"):
                file.unlink()
        return QUANTIZING.format(size=f"{size / 1e6:.0f}", rounds=rounds, inside=tables[False],
                                 beside=tables[True])


SECTIONS = {"Accuracy of quantization": Bench.accuracy,
            "Differences at the end of the integer models": Bench.differences,
            "Speed": Bench.speed, "Speed in onnxruntime": Bench.runtime, "Sizes": Bench.sizes, "Text": Bench.text,
            "A large model through the text and back": Bench.large,
            "Quantizing a large model": Bench.quantizing}


def sections_of(page):
    """What a page has under its titles."""
    parts = re.split(r"^## (.*)\n\n", page, flags=re.M)
    return parts[0], dict(zip(parts[1::2], parts[2::2]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", dest="page", type=pathlib.Path, default=ROOT / "docs/benchmarks.md")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--model", nargs="*", default=list(TITLES), choices=list(TITLES))
    parser.add_argument("--section", nargs="*", default=list(SECTIONS), choices=list(SECTIONS))
    args = parser.parse_args()
    BUILD.mkdir(exist_ok=True)
    head, texts = sections_of(args.page.read_text() if args.page.exists() else "")
    with tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD) as folder:
        bench = Bench(pathlib.Path(folder), args.rounds, args.model)
        texts |= {title: SECTIONS[title](bench) for title in args.section}
    if set(args.section) == set(SECTIONS):
        head = HEAD.format(versions=versions(), load=os.getloadavg()[0], cores=os.cpu_count())
    page = head + "\n".join(f"## {t}\n\n{texts[t].rstrip()}\n" for t in SECTIONS if t in texts)
    args.page.parent.mkdir(exist_ok=True)
    args.page.write_text(page)


if __name__ == "__main__":
    main()
