#!/usr/bin/env python3
"""Is every rule of the grammar of .qir used by an example of docs/ir.md?

Usage: check_grammar.py TRACER PAGE FOLDER

TRACER is build/grammar_trace. Rules that go on after a syntax error must be used by a .qir file of
FOLDER (test/lit) instead. Prints those that are not, and exits 1.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import check_docs
import gen_grammar


def reduced(tracer, texts):
    """The rules that reading these texts uses."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i, text in enumerate(texts):
            paths.append(pathlib.Path(folder) / f"{i}.qir")
            paths[-1].write_bytes(text)
        out = subprocess.run([tracer, *paths], capture_output=True, text=True, check=True).stdout
    return set(out.splitlines())


def inputs(data):
    """The texts of a file, for -split-input-file; from the line on with which the language begins."""
    for part in re.split(rb"^// -----.*$", data, flags=re.M):
        yield part


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    tracer, page, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    blocks = [b for b in check_docs.blocks(page) if b.language == "qir"]
    documented = reduced(tracer, [p for b in blocks for p in inputs(check_docs.whole(b.text).encode())])
    tested = reduced(tracer, [p for f in sorted(folder.rglob("*.qir")) for p in inputs(f.read_bytes())])
    missing = 0
    rules = gen_grammar.rules(gen_grammar.PARSER.read_text(encoding="utf-8"))
    for _, left, symbols in rules:
        recovery = "error" in symbols or "broken" in symbols
        if gen_grammar.written(left, symbols) not in (tested if recovery else documented):
            missing += 1
            print(f"{folder if recovery else page}: nothing uses the rule '{gen_grammar.written(left, symbols)}'")
    print(f"{len(rules) - missing} of {len(rules)} rules are used")
    return missing > 0


if __name__ == "__main__":
    sys.exit(main())
