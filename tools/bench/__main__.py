#!/usr/bin/env python3
"""Measures qxc beside others and writes docs/benchmarks.md with its chart: `make bench`.

Usage: python tools/bench [-o PAGE] [--rounds N] [--model NAME...] [--section NAME...|all]

Only the sections named are measured and written anew, by default those of emitted C. Needs build/qxc,
the packages of test/requirements.txt and the models that QXC_SHARED names; those of
tools/bench/requirements.txt and a cross compiler with QEMU for what runs beside it. Models that are not there are
skipped by name, and the page is build/benchmarks.md then.
"""

import argparse
import functools
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/oracle"), str(ROOT / "test/bench")]

import aarch64
import boards
import interpreter
import kinds
import large_models
import quality
import riscv
import runtime
from chart import chart
from cmodel import FLAGS
from common import BUILD, NAMES, model_path
from light import light
from page import head, page_of, sections_of, table
from speed import FLOAT, INT8, TITLES, Speeds
from text_speed import text_rows

SPEED = """\
Microseconds for one inference, one thread: median of {rounds} rounds, the contenders taking turns. All take and
give float. The C of qxc and of emx-onnx-cgen is built with `gcc {flags}`; onnxruntime optimizes the graph, inputs
and outputs are bound beforehand; LiteRT has XNNPACK; OpenVINO has the u8s8 form and keeps floats float32. u8s8 and s8s8 are QDQ forms that qxc writes, with activations
in uint8 and int8, which onnxruntime fuses. LiteRT gets the s8s8 form as a TensorFlow Lite model, emx-onnx-cgen the
u8s8 form.

{times}
How many times as long as the C of qxc they take, the median of the rounds' ratios. Below 1 they are faster. The best runtime
is the fastest of onnxruntime, LiteRT and OpenVINO with the same types; means are those of the models that a contender takes:

{ratios}
![chart](benchmarks.svg)

The same in float:

{float_times}
{float_ratios}
{missing}"""

PLAIN = """\
The same, with `gcc -O3` alone: what every x86-64 has. The ratios say how many times as long the C of emx-onnx-cgen
takes.

{table}
With `gcc -O3 -mavx2`:

{avx2}"""

SIZES = """\
In bytes; the C as compiled above, code and weights together, and the memory it needs to run: no layout that keeps
tensors apart needs less than what those alive at one time have.

{table}"""

INSTRUCTIONS = """\
Millions of instructions for one run of MLPerf Tiny's integer models, as QEMU counts them (a plugin,
`tools/bench/count_insns.c`); the C is written with `-integer-only` and built with `arm-none-eabi-gcc {level}`. They
repeat exactly. Instructions are not cycles: how long one takes differs by processor and memory.

{table}
With `-requant=single`:

{single}
CMSIS-NN, called with the shapes of the same layers and random weights (its head of November 2026, `-O3`, requantization in
inline assembly; counted once, not by this command): its millions of instructions, and how many times as many the C takes, exact and
with `-requant=single`; below 1 the C takes fewer:

{cmsis}"""

TEXT = """\
Reading and printing the same models as `.qir` and in onnx's own text format (`onnx.parser`,
`onnx.printer`): milliseconds of processor time, the median of {rounds} rounds in turn, without
files. A ratio above 1 says that `.qir` is faster. The quantized model, which onnx's text cannot
say, is the one of `test/bench/qir_speed.sh`. Memory is what reading and printing take at the
peak, as a multiple of the text's size.

{table}"""


class Bench:
    """What the sections are measured with; each method gives the text of one, or None without a model for it.
    `official` names the models of QXC_SHARED that are there."""

    def __init__(self, folder, args, official):
        self.folder, self.rounds, self.models, self.page = folder, args.rounds, args.model, args.page
        self.official = official

    @functools.cached_property
    def speeds(self):
        return Speeds(self.folder, self.rounds, self.models)

    def accuracy(self):
        return quality.ACCURACY.format(table=quality.accuracy(self.folder, (*self.official, "digits")))

    def differences(self):
        if not self.official:
            return None
        return quality.DIFFERENCES.format(table=quality.differences(self.folder, self.official))

    def speed(self):
        s, others = self.speeds, (*INT8[1:], "onnxruntime float")
        text = SPEED.format(rounds=self.rounds, flags=" ".join(FLAGS), times=s.times(INT8),
                            ratios=s.ratio_table("qxc", others), float_times=s.times(FLOAT),
                            float_ratios=s.ratio_table(FLOAT[0], FLOAT[1:]), missing=s.missing())
        self.page.with_suffix(".svg").write_text(
            chart("Time of one inference, int8, one thread: how many times that of qxc's C", "qxc",
                  s.ratios("qxc", others)))
        return text

    def plain(self):
        return PLAIN.format(table=self.speeds.plain_table(()), avx2=self.speeds.plain_table(("-mavx2",)))

    def sizes(self):
        return SIZES.format(table=self.speeds.sizes())

    def instructions(self):
        if not self.official:
            return None
        exact, single = (boards.instruction_counts(self.folder, self.official, *o) for o in ((), ("-requant=single",)))
        return INSTRUCTIONS.format(level=boards.LEVEL, table=boards.instruction_table(exact),
                                   single=boards.instruction_table(single), cmsis=boards.cmsis_table(exact, single))

    def arm64(self):
        return aarch64.arm64_text(self.folder, self.models)

    def riscv(self):
        return riscv.riscv_text(self.folder, self.models)

    def kinds(self):
        return kinds.KINDS.format(table=kinds.kinds_table(self.folder, self.rounds))

    def text(self):
        subprocess.run([ROOT / "test/bench/qir_speed.sh", "-build"], check=True)
        rounds = min(self.rounds, 7)
        return TEXT.format(rounds=rounds, table=table(
            ("model", "", ".qir, MB", "ms", "MB/s", "onnx text, MB", "ms", "MB/s", "ratio",
             "memory"), text_rows(self.folder, rounds)))

    def large(self):
        resnet = f"{light('resnet50')[0].stat().st_size / 1e6:.1f}"
        return large_models.LARGE.format(resnet=resnet, table=large_models.memory(self.folder))

    def runtime(self):
        return runtime.RUNTIME_TEXT.format(rounds=self.rounds,
                                           table=runtime.runtime_table(self.folder, self.rounds, self.official))

    def interpreter(self):
        rounds = min(self.rounds, 5)
        return interpreter.INTERPRETER.format(rounds=rounds, table=interpreter.interpreter_table(self.folder, rounds))

    def quantizing(self):
        return large_models.quantizing_tables(self.folder, min(self.rounds, 5))


SECTIONS = {"Accuracy of quantization": Bench.accuracy,
            "Differences at the end of the integer models": Bench.differences,
            "Speed": Bench.speed, "Speed of other kinds of models": Bench.kinds,
            "Speed with plain x86-64 instructions": Bench.plain, "Sizes": Bench.sizes,
            "Instructions on Cortex-M": Bench.instructions, "Instructions on Arm64": Bench.arm64,
            "Instructions on RISC-V": Bench.riscv, "Speed in onnxruntime": Bench.runtime,
            "Speed of run": Bench.interpreter, "Text": Bench.text, "A large model through the text and back": Bench.large,
            "Quantizing a large model": Bench.quantizing}
EMITTED_C = ("Speed", "Speed with plain x86-64 instructions", "Sizes", "Instructions on Cortex-M")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", dest="page", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--model", nargs="*", default=list(TITLES), choices=list(TITLES))
    parser.add_argument("--section", nargs="*", default=EMITTED_C, choices=[*SECTIONS, "all"])
    args = parser.parse_args()
    if "all" in args.section:
        args.section = list(SECTIONS)
    return args


def main():
    args, start = arguments(), time.monotonic()
    official = [n for n in NAMES if model_path(n, "int8_qdq").exists()]
    absent = [n for n in NAMES if n not in official]
    if absent:
        print(f"bench: skips {', '.join(absent)}, which need QXC_SHARED=DIR (DIR/models)", file=sys.stderr)
    args.model = [m for m in args.model if m not in absent]
    if not args.page:  # that of the repository has all models
        args.page = BUILD / "benchmarks.md" if absent else ROOT / "docs/benchmarks.md"
    BUILD.mkdir(exist_ok=True)
    args.page.parent.mkdir(exist_ok=True)
    top, texts = sections_of(args.page.read_text() if args.page.exists() else "")
    with tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD) as folder:
        bench = Bench(pathlib.Path(folder), args, official)
        for title in args.section:
            text = SECTIONS[title](bench)
            if text is None:
                print(f"bench: skips the section '{title}', which is about {', '.join(NAMES)}", file=sys.stderr)
                continue
            texts[title] = text
            print(f"{time.monotonic() - start:.0f} s: {title}", file=sys.stderr)
    if set(EMITTED_C) <= set(args.section):
        top = head()
    args.page.write_text(page_of(top, texts, SECTIONS))
    print(f"bench: wrote {args.page}", file=sys.stderr)


if __name__ == "__main__":
    main()
