#!/usr/bin/env python3
"""Writes docs/operators.md, what becomes of every operator, from `qxc list ops -json` and the lists of ONNX's tests that
do not run, or not as C.

Usage: gen_operators.py build/qxc            writes the page
       gen_operators.py build/qxc --check    exits 1 where the page is not what would be written
"""

import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/operators.md"
EXCLUDED = ROOT / "test/oracle/node_ops_unsupported.txt"
OUTSIDE = ROOT / "test/oracle/node_ops_outside.txt"
IN_C = ROOT / "test/oracle/node_ops_c.txt"
WHEEL = ROOT / "test/oracle/wheel_models.txt"

HEAD = """# Operators

<!-- Written by tools/gen_operators.py from `qxc list ops -json`; a test holds it against that. -->

Every operator of ONNX and com.microsoft that qxc has a schema of, and its own. All of them are read, printed and written.

| runs | what that means |
|---|---|
| kernel | it has kernels of its own, in `qxc run` and in emitted C |
| function | a text in `lib/` says what it is made of ([functions.md](functions.md)) |
| types | it computes on integers, and is read as the operator on quantized types |
| parts | it is taken apart into that product and an activation |
| - | it is read, printed and written, and no more |

`since` is the opset of its newest version. *Integers* says what a quantized operand makes of it: an operator that *moves data* or *keeps
order* has its operand's parameters, one that *clamps* or *joins* may share them, one that *accumulates* multiplies, and one
that *computes* has parameters of its own for every operand and the result.
"""

INTEGERS = """
## What becomes of integers

What computes on integers is the definition (dequantize, compute, quantize) within a step, and the rounded real number unless that is as
near to a tie as its rounding errors are large. Most are within 2^-12 of a step before they are rounded. Of these it depends on more:

| operator | off by less than, before it is rounded |
|---|---|
| Resize, cubic, antialiased, along three axes, or of a part | 2^-22 (16 bits: 2^-14) of the operand's step for each coefficient; nothing where lengths double |
| GridSample | 2^-18 (16 bits: 2^-10) of the operand's step, at a place that is off by up to 2^-24 of an element |
| RotaryEmbedding | 2^-21 (16 bits: 2^-13) of a step, where cosines are at most 1 |
| Pow of two that are computed | 2^-28 of the result, and 2^-27 for each unit of the exponent |
| ScatterND, ScatterElements that add | 2^-21 of a step, times the square of the numbers that meet at an element |
| ScatterND, ScatterElements that multiply | 2^-29 of the product for each number that meets at an element |
| ReduceProd | 2^-29 of the product, up to 2^15 numbers |
| ReduceLogSum, ReduceLogSumExp | 2^-25, in logarithms |
| LpPool, GlobalLpPool of p above 2 | 2^-25 of the norm |
| Attention | 2^-18 of a step (16 bits: 2^-4, for scores up to 2); with keys of the past 2^-12 (16 bits likewise) |

These forms stay float, which `-integer-only` refuses:

| form | why |
|---|---|
| com.microsoft Attention with do_rotary, or past and present in one buffer | its products are quantized one by one, and there is no way to say those of these |
| Attention that yields scores, or with a mask of integers or doubles | its kernel has none of them |
| Pow with an exponent that is a constant of several numbers, or computed as integers | it is neither a table nor a quantized operand |
| RotaryEmbedding with one constant table and one computed | tables are taken in one way |

onnxruntime has no QLinearConvTranspose in com.microsoft: ConvTranspose on quantized types computes on integers here, and is written with conversions
around it.
"""

DOMAINS = {"": "ai.onnx", "qxc": "qxc, of its own: see [ir.md](ir.md)"}


def rows(qxc):
    """By domain, in order."""
    text = subprocess.run([qxc, "list", "ops", "-json"], check=True, capture_output=True, text=True).stdout
    found = collections.defaultdict(list)
    for row in json.loads(text):
        domain, _, name = row["op"].rpartition("::")
        found[domain].append({**row, "name": name})
    return found


def table(ops):
    yield "| operator | since | runs | integers | float or QOperator form |\n|---|---|---|---|---|\n"
    for op in ops:
        cells = op["name"], op["since"] or "", op["runs"] or "-", op["integers"], op["qoperator"]
        yield "| " + " | ".join(map(str, cells)) + " |\n"


def listed(path):
    """What stands before and behind the colon of each line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines if line and line[0] != "#")


def cell(text):
    return text.replace("|", "\\|")


def tests_that_run():
    """How many there are, how many run, and the others by reason."""
    outside, by_reason = listed(OUTSIDE), collections.defaultdict(list)
    total = int(outside.pop("all"))
    for name, why in listed(EXCLUDED).items():
        by_reason[why].append(name)
    for name, ops in outside.items():
        by_reason[f"{ops}: {'is' if ',' not in ops else 'are'} read, printed and written, and no more"].append(name)
    return total, total - sum(map(len, by_reason.values())), by_reason


def excluded():
    total, runs, by_reason = tests_that_run()
    yield (f"\n## ONNX's tests that do not run\n\nOf the {total:,} operator tests that the `onnx` package has, {runs:,} run as they are "
           "and give ONNX's numbers, in exactly ONNX's shapes. These do not.\n\n| reason | tests |\n|---|---|\n")
    for why, names in sorted(by_reason.items()):
        yield f"| {cell(why)} | {', '.join(f'`{n}`' for n in names)} |\n"


def in_c():
    runs, by_how = tests_that_run()[1], collections.defaultdict(lambda: collections.defaultdict(list))
    for name, how in listed(IN_C).items():
        way, _, why = how.partition(", ")
        by_how[way][why].append(name)
    count = {way: sum(map(len, found.values())) for way, found in by_how.items()}
    refused, constant = (count.get(way, 0) for way in ("refused", "constant"))
    which = f"Of these {runs:,}, {runs - refused:,}" if refused else f"These {runs:,}"
    yield (f"\n## ONNX's tests in C\n\n{which} give ONNX's numbers as emitted C, too, in ONNX's shapes: gcc and clang "
           "compile it without a warning (`-std=c99 -Wall -Wextra -Wconversion -Wshadow -Wcast-align -Werror`), and AddressSanitizer and UBSan find "
           f"nothing (`make node-c`). {runs - refused - constant:,} are compiled as they are, and {constant} with constants for all operands but the first, as C has to know some of them:\n\n"
           "| what C has to know | tests |\n|---|---|\n")
    for why, names in sorted(by_how["constant"].items()):
        yield f"| {cell(why)} | {len(names)} |\n"
    if refused:
        yield "\nThese have no C:\n\n| reason | tests |\n|---|---|\n"
    for why, names in sorted(by_how["refused"].items()):
        yield f"| {cell(why)} | {', '.join(f'`{n}`' for n in names)} |\n"


def wheel():
    """The sets of models in ONNX's package."""
    lines = listed(WHEEL)
    missing = {name: op for name, op in lines.items() if "/" in name}
    yield "\n## The models of ONNX's package\n\n| set | models | run | the others have |\n|---|---|---|---|\n"
    for name in lines:
        if name in missing:
            continue
        ops = [op for model, op in missing.items() if model.startswith(f"{name}/")]
        others = ", ".join(f"{op.split('::')[-1]} ({ops.count(op)})" for op in sorted(set(ops)))
        yield f"| {name} | {lines[name]} | {int(lines[name]) - len(ops)} | {others} |\n"


def page(qxc):
    yield HEAD
    for domain, ops in rows(qxc).items():
        runs = sum(op["runs"] is not None for op in ops)
        yield f"\n## {DOMAINS.get(domain, domain)}\n\n{runs} of {len(ops)} run.\n\n"
        yield from table(ops)
    yield INTEGERS
    yield from excluded()
    yield from in_c()
    yield from wheel()


def main(qxc, check=False):
    text = "".join(page(qxc))
    if not check:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        sys.exit("docs/operators.md is not what tools/gen_operators.py writes: run it")


if __name__ == "__main__":
    main(sys.argv[1], "--check" in sys.argv[2:])
