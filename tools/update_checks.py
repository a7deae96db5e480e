#!/usr/bin/env python3
"""Writes the checks of lit tests from what their RUN lines print.

    tools/update_checks.py [--check] [--adopt] [--qxc=PROGRAM] TEST...

A TEST (or every test in a folder) that holds the line

    // NOTE: checks written by tools/update_checks.py

has all lines of its prefixes (CHECK:, CHECK-NEXT:, ...) replaced, at the end of the file, by the output of its RUN lines;
all other lines stay. Other tests are left alone, unless --adopt makes them such tests. --check writes nothing and exits 1
when a test would change. Read the diff before you commit it: the tool writes down what is, not what is right.

Every `RUN: COMMAND | FileCheck %s [--check-prefix(es)=...]` gives a block of checks under the most common of its prefixes
whose RUN lines all print the same. Lines that open a graph or function are CHECK-LABEL, the others CHECK-NEXT; the block ends
with the end of the output. The test's own path becomes its name, and line numbers after it relative ones.
"""

import argparse
import difflib
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTE = "NOTE: checks written by tools/update_checks.py"
RUN = re.compile(r"^(?P<lead>.*?)\bRUN:\s*(?P<text>.*)$")
CHECKED = re.compile(r"^(?P<command>.*)\|\s*FileCheck\s+(?P<options>[^|]*)$")
KINDS = r"(?:-(?:NEXT|SAME|LABEL|EMPTY|NOT|DAG|COUNT-\d+))?(?:\{[A-Z,]+\})?"
TIMEOUT = 60


class Wrong(Exception):
    """What keeps a test from being updated."""


def run_lines(lines):
    """(line number, lead, command) of each RUN, with continued lines joined."""
    runs, open_run = [], False
    for number, line in enumerate(lines, 1):
        m = RUN.match(line)
        if not m:
            if open_run:
                raise Wrong(f"line {number}: the RUN before it is not ended")
            continue
        text = m["text"].rstrip()
        if open_run:
            runs[-1][2] += " " + text
        else:
            runs.append([number, m["lead"], text])
        open_run = text.endswith("\\")
        if open_run:
            runs[-1][2] = runs[-1][2][:-1].rstrip()
    if not runs:
        raise Wrong("it has no RUN line")
    return runs


def prefixes_of(number, options):
    words = shlex.split(options)
    if "%s" not in words:
        raise Wrong(f"line {number}: FileCheck does not read the checks of this file (%s)")
    found = []
    for word in words:
        m = re.fullmatch(r"--?check-prefix(?:es)?=(.*)", word)
        if m:
            found += m[1].split(",")
    return found or ["CHECK"], "allow-unused-prefixes" in options


def substitute(command, test, scratch):
    table = {"%s": test, "%S": test.parent, "%t": scratch / "t", "%root": ROOT, "%python": sys.executable}
    return re.sub(r"%(root|python|[sSt])(?![A-Za-z0-9_])|%t(?=\.)",
                  lambda m: str(table[m[0]]), command)


def execute(number, command, programs):
    script = 'set -o pipefail; not() { ! "$@"; }; PATH=$1:$PATH; ' + command
    done = subprocess.run(["bash", "-c", script, "bash", programs], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=TIMEOUT, check=False)
    if done.returncode:
        raise Wrong(f"line {number}: the command exits with {done.returncode}\n{done.stderr.rstrip()}")
    return done.stdout


def outputs(runs, test, qxc):
    """[(prefixes, whether some may be unused, output)] of the RUN lines that have checks; all of them are run, in order."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        scratch, programs = pathlib.Path(folder), pathlib.Path(folder) / "bin"
        programs.mkdir()
        (programs / "qxc").symlink_to(qxc)
        for number, _, text in runs:
            m = CHECKED.match(text)
            if not m and "FileCheck" in text:
                raise Wrong(f"line {number}: only `COMMAND | FileCheck %s` is understood")
            output = execute(number, substitute(m["command"] if m else text, test, scratch), programs)
            if m:
                found.append((*prefixes_of(number, m["options"]), output.replace(str(scratch), "%SCRATCH%")))
    if not found:
        raise Wrong("no RUN line pipes into FileCheck")
    return found


def blocks_of(found):
    """{prefix: output}: each RUN under one of its prefixes under which all print the same, the most common of them."""
    printed, used = {}, {}
    for prefixes, _, output in found:
        for prefix in prefixes:
            printed.setdefault(prefix, set()).add(output)
            used[prefix] = used.get(prefix, 0) + 1
    blocks = {}
    for prefixes, _, output in found:
        same = [p for p in prefixes if len(printed[p]) == 1]
        if not same:
            raise Wrong(f"RUN lines with the prefixes {', '.join(prefixes)} print different things: "
                        "give each a prefix of its own")
        blocks[max(same, key=used.get)] = output
    for prefixes, may_be_unused, _ in found:
        unused = [p for p in prefixes if p not in blocks]
        if len(prefixes) - len(unused) > 1:
            raise Wrong(f"a RUN line with the prefixes {', '.join(prefixes)} would check its output twice")
        if unused and not may_be_unused:
            raise Wrong(f"nothing is checked under {unused[0]}: drop it or give FileCheck --allow-unused-prefixes")
    return blocks


def pattern(line, test, here, moved):
    """A line of output as FileCheck matches it; `here` is the number of the line that checks it, `moved` where the
    lines of the test are after the update."""
    line = re.sub(r"\{\{|\[\[", lambda m: "{{[{][{]}}" if m[0] == "{{" else r"{{\[\[}}", line)

    def place(m):
        offset = moved.get(int(m[1]), int(m[1])) - here if m[1] else 0
        return "{{.*}}" + test.name + (f":[[#@LINE{offset:+d}]]" if m[1] else "")
    line = re.sub(re.escape(str(test)) + r"(?::(\d+))?", place, line)
    return re.sub(r"%SCRATCH%/?", "{{.*}}", line)


def checks(prefix, output, lead, test, first, moved):
    """The lines of a block, the first of which will be line `first` of the test."""
    made = []
    for line in output.rstrip("\n").split("\n") if output.strip() else []:
        kind = "-NEXT" if made else ""
        text = pattern(line, test, first + len(made), moved)
        if not line.strip():
            if made:
                made.append(f"{lead}{prefix}-EMPTY:")
            continue
        if re.match(r"(graph|func)\b", line) and "@LINE" not in text:
            kind = "-LABEL"
        made.append(f"{lead}{prefix}{kind}: {text}")
    made.append(f"{lead}{prefix}-NOT: {{{{.+}}}}")
    return made


def updated(text, test, qxc, adopt):
    """The whole test anew, or None where it is not ours."""
    lines = text.rstrip("\n").split("\n")
    ours = any(line.rstrip().endswith(NOTE) for line in lines)
    if not ours and not adopt:
        return None
    runs = run_lines(lines)
    lead = runs[0][1]
    blocks = blocks_of(outputs(runs, test, qxc))
    every = {p for m in map(CHECKED.match, (r[2] for r in runs)) if m
             for p in prefixes_of(0, m["options"])[0]}
    old = re.compile(rf"^\s*(?://|;|#)?\s*(?:{'|'.join(map(re.escape, every))}){KINDS}:")
    for output in blocks.values():
        if any(old.match(line) for line in output.split("\n")):
            raise Wrong("the output holds the checks themselves")
    last_run = max(i for i, line in enumerate(lines) if RUN.match(line))
    kept, moved = [], {}
    for i, line in enumerate(lines):
        if not old.match(line):
            kept.append(line)
            moved[i + 1] = len(kept)
        if i == last_run and not ours:
            kept.append(f"{lead}{NOTE}")
    while kept and not kept[-1].strip(" /"):
        kept.pop()
    for prefix, output in blocks.items():
        kept.append("")
        kept += checks(prefix, output, lead, test, len(kept) + 1, moved)
    return "\n".join(kept) + "\n"


def tests_in(path):
    if not path.is_dir():
        return [path]
    return sorted(p for p in path.rglob("*") if p.suffix in (".qir", ".test") and "Inputs" not in p.parts)


def main():
    parser = argparse.ArgumentParser(description="Writes the checks of lit tests from what they print.")
    parser.add_argument("--check", action="store_true", help="only tell which tests would change")
    parser.add_argument("--adopt", action="store_true", help="also tests without the note; gives it to them")
    parser.add_argument("--qxc", default=str(ROOT / "build/qxc"), help="the program (build/qxc)")
    parser.add_argument("tests", nargs="+", type=pathlib.Path, metavar="TEST")
    options = parser.parse_args()
    failed = changed = ours = 0
    for test in (t.resolve() for path in options.tests for t in tests_in(path)):
        try:
            text = test.read_text()
            fresh = updated(text, test, pathlib.Path(options.qxc).resolve(), options.adopt)
        except (Wrong, OSError, UnicodeDecodeError, subprocess.TimeoutExpired) as why:
            print(f"{test}: {why}", file=sys.stderr)
            failed += 1
            continue
        ours += fresh is not None
        if fresh in (None, text):
            continue
        changed += 1
        if options.check:
            print(f"{test} would change:", file=sys.stderr)
            sys.stderr.writelines(list(difflib.unified_diff(
                text.splitlines(True), fresh.splitlines(True), "as it is", "as it would be"))[:40])
        else:
            test.write_text(fresh)
    print(f"{ours} tests with written checks, {changed} {'would change' if options.check else 'changed'}, "
          f"{failed} failed")
    return failed > 0 or (options.check and changed > 0)


if __name__ == "__main__":
    sys.exit(main())
