"""Operators in forms that are drawn from their schemas: `qxc run` against onnxruntime, and emitted C against `qxc run`.

Form N of an operator is always the same: QXC_SEED=7 QXC_OPS=Conv QXC_CASES=1 draws form 7 of Conv, and QXC_CASES=20000 many of all
operators. What qxc refuses and a reference runs stands in random_ops_limits.txt, with the number of one form that shows it;
QXC_UPDATE=1 adds what is new and takes out what no longer is.
"""

import json
import os
import pathlib
import re

import onnx

from common import BUILD, OracleCase, alone, for_each, qxc, talk
from differ import Differ, Limit
from operator_facts import BY_NAME, UNDRAWN

CASES, SEED = int(os.environ.get("QXC_CASES") or 500), int(os.environ.get("QXC_SEED") or 1)
OPERATORS = os.environ["QXC_OPS"].split(",") if os.environ.get("QXC_OPS") else sorted(BY_NAME)
PARTS, TOGETHER = 10, 100  # of a run, and forms that one C library is made of
LIST = pathlib.Path(__file__).with_name("random_ops_limits.txt")


def listed_limits():
    lines = [line for line in LIST.read_text().splitlines() if line and line[0] != "#"]
    found = [re.fullmatch(r"(\w+) (\w+) (\d+): (.*)", line).groups() for line in lines]
    return [Limit(way, op, int(seed), why) for way, op, seed, why in found]


def write_limits(limits):
    lines = ["# Forms that a reference runs and qxc does not, each with the number of one that shows it.\n"]
    LIST.write_text("".join(lines + sorted(f"{x}\n" for x in limits)))


def add_limits(found):
    """Those that are not there yet."""
    with alone(BUILD / "random_ops"):
        write_limits(({x.key: x for x in reversed(found)} | {x.key: x for x in listed_limits()}).values())


def numbered(part, parts):
    """(operator, number of the form) of one part: each operator in turn."""
    return [(OPERATORS[i % len(OPERATORS)], SEED + i // len(OPERATORS)) for i in range(CASES * part // parts, CASES * (part + 1) // parts)]


class RandomOps(OracleCase):
    expected_seconds = 10

    @for_each(*range(PARTS))
    def test_forms(self, part):
        differ, wanted = Differ(self.scratch), numbered(part, PARTS)
        for first in range(0, len(wanted), TOGETHER):
            differ.all(wanted[first:first + TOGETHER])
        if os.environ.get("QXC_UPDATE"):
            add_limits(differ.limits)
        else:
            known = {x.key for x in listed_limits()}
            differ.failures += [f"refused: {x} (QXC_OPS={x.op} QXC_SEED={x.seed} QXC_CASES=1)" for x in differ.limits if x.key not in known]
        talk(f"part {part}: {differ.ran} forms run, {differ.in_c} in C")
        self.assertEqual("", "\n".join(differ.failures))

    def test_limits(self):
        """What is said to be refused is."""
        differ, listed = Differ(self.scratch), listed_limits()
        differ.all([(x.op, x.seed) for x in listed], and_c=False)
        there = {*listed} & {*differ.limits}
        if os.environ.get("QXC_UPDATE"):
            write_limits(there)
        else:
            self.assertEqual(set(listed), there)

    def test_operators(self):
        """Every operator of ONNX that runs is drawn, or there is a reason why not."""
        ours = {x["op"].rpartition(":")[2] for x in json.loads(qxc("list", "ops", "-json").stdout) if x["runs"]}
        onnx_ops = {s.name for s in onnx.defs.get_all_schemas()}
        self.assertEqual({op for op in ours if op in onnx_ops} - set(BY_NAME), set(UNDRAWN))
