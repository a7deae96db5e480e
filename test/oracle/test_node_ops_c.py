"""ONNX's own operator tests through emitted C: each that runs gives ONNX's values in exactly ONNX's shapes, under the
sanitizers, as it is or with constants for the operands that C has to know. Why it is not as it is stands in node_ops_c.txt, and
so do those that C does not take.

The suite compiles with gcc alone, and leaves out the cases that spell an operator out by others. NODE_C=all (`make node-c`)
compiles all of them with gcc and clang.
"""

import os
import pathlib
import re
import shutil
import unittest

import numpy as np
import onnx
from onnx import numpy_helper

from common import BUILD, OracleCase, alone, for_each
from programs import EmittedProgram, answers, compiled, emit
from test_node_ops import TESTED, as_arrays, cases, is_small, plain, read_list, reason, same, without_small

LIST = pathlib.Path(__file__).with_name("node_ops_c.txt")
ALL = os.environ.get("NODE_C") == "all"
COMPILERS = ("gcc", "clang-19") if ALL else ("gcc",)
C_FLAGS = ("-std=c99", "-O0", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wcast-align", "-Werror",
           "-ffp-contract=off", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
DRAWN = {"Bernoulli", "RandomUniformLike"}  # ONNX does not state what their cases drew


def with_constants(model, inputs):
    """All operands but the first as initializers, as real models have shapes, axes and bounds; the first, too,
    of what makes a table of numbers."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    keep = 1 if len(inputs) > 1 and model.graph.node[0].op_type != "MelWeightMatrix" else 0
    for info, value in list(zip(model.graph.input, inputs))[keep:]:
        changed.graph.initializer.append(numpy_helper.from_array(value, info.name))
    del changed.graph.input[keep:]
    return changed, inputs[:keep]


def how_read(text):
    """What stands behind the colon of each line."""
    return dict(line.split(": ", 1) for line in text.splitlines() if line and line[0] != "#")


def why_refused(stderr):
    """Without the names of values."""
    text = re.sub(r"^operator (\w+) cannot run: ", r"\1: ", reason(stderr))
    text = re.sub(r"^the shape of .* C takes no bound for (\w+).*", r"\1: its shape follows from numbers that only a run tells", text)
    text = re.sub(r"^the shape of .* C takes a bound for one dimension.*", "several dimensions that only a run tells", text)
    text = re.sub(r"^only a run tells how long .*", "a length that only a run tells", text)
    return re.sub(r"'[^']*'", "a value", text)


class Case:
    """A case as C takes it, and how that is."""

    def __init__(self, name, model, data_set, folder, number):
        inputs, outputs = map(as_arrays, data_set)
        if any(map(is_small, [*inputs, *outputs])):
            model, inputs, outputs = without_small(model, inputs, outputs)
        self.name, self.model, self.inputs, self.outputs = name, model, inputs, outputs
        self.program, self.path = None, folder / f"c{number}.onnx"
        self.how = self.emit()

    def emit(self):
        stderr = self.attempt()
        if not stderr:
            return None
        why, self.model, self.inputs = why_refused(stderr), *with_constants(self.model, self.inputs)
        return f"refused, {why}" if self.attempt() else f"constant, {why}"

    def attempt(self):
        onnx.save(self.model, self.path)
        stderr = emit(self.path, self.path.stem, self.path.with_suffix(".c"))
        self.program = None if stderr else EmittedProgram(self.path.stem, self.path.with_suffix(".c"))
        return stderr

    def wrong(self, answer):
        """What is wrong with it, or None."""
        if isinstance(answer, str) or answer[0]:
            return f"{self.name}: {answer if isinstance(answer, str) else f'status {answer[0]}'}"
        have = {p.name: (p, v) for p, v in zip(self.program.outputs, answer[1])}
        wanted = {out.name: want for out, want in zip(self.model.graph.output, self.outputs)}
        lengths = [int(v) for name, (_, v) in have.items() if name not in wanted]
        for name, want in wanted.items():
            port, value = have[name]
            complaint = same(plain(as_long(value, want.shape, lengths) if port.most else value), want, f"{self.name} {name}")
            if complaint:
                return complaint
        return None


def as_long(value, shape, lengths):
    """The elements that stand at the front, where the lengths that the program tells are among those of the shape, and zeros
    are behind them."""
    size = int(np.prod(shape, dtype=np.int64))
    right = all(n in shape for n in lengths) and not np.any(value[size:])
    return value[:size].reshape(shape) if right else value


def to_compile(op):
    """Name, model and first data set of what `qxc run` computes as ONNX does."""
    refused = read_list()
    for name, model, data_sets in cases(op):
        if name not in refused and (ALL or "_expanded" not in name):
            yield name, model, data_sets[0]


class NodeOpsInC(OracleCase):
    expected_seconds = 3

    def check(self, compiler, tried):
        if not shutil.which(compiler):
            self.skipTest(f"there is no {compiler}")
        tried = [c for c in tried if c.program]
        if not tried:
            return
        executable = compiled([c.program for c in tried], self.scratch, compiler, C_FLAGS)
        for case, answer in zip(tried, answers(executable, [c.program for c in tried], [c.inputs for c in tried])):
            with self.subTest(case.name, compiler=compiler):
                self.assertIsNone(case.wrong(answer))

    @for_each(*TESTED)
    def test_operator(self, op):
        tried = [Case(*each, self.scratch, i) for i, each in enumerate(to_compile(op))]
        found = {c.name: c.how for c in tried if c.how}
        names = {c.name for c in tried}
        self.assertEqual(bool(tried), op not in DRAWN)
        if os.environ.get("QXC_UPDATE"):
            update(names, found)
        self.assertEqual(found, {name: how for name, how in how_read(LIST.read_text()).items() if name in names})
        for compiler in COMPILERS:
            with self.subTest(compiler=compiler):
                self.check(compiler, tried)


def update(names, found):
    with alone(BUILD / "node_cases"):
        listed = how_read(LIST.read_text()) if LIST.exists() else {}
        listed = {n: how for n, how in listed.items() if n not in names} | found
        head = "# Cases of ONNX's operator tests that C does not take as they are: how it takes them, or why it does not.\n"
        LIST.write_text("".join([head] + [f"{n}: {how}\n" for n, how in sorted(listed.items())]))


if __name__ == "__main__":
    unittest.main()
