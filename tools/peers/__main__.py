#!/usr/bin/env python3
"""Measures qxc beside other quantizers, and writes docs/peers.md.

Usage: tools/peers [-o docs/peers.md] [--model NAME...] [--tool NAME...] [--format NAME...] [--seeds N] [--kept]

Needs build/qxc, the packages of test/requirements.txt, and for MLPerf Tiny the models that QXC_SHARED names. Each
tool is installed from PyPI into build/peers; one that cannot be has no cells. torch, which three of them import, is there
once (5 GB). --kept writes the page of what was measured so far.
"""

import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import models
from cells import BUILD, measured, python_of, version_of
from page import page
from recipes import FORMATS, MODELS_OF, NOT_OF, RECIPES


def wanted(given, loaded):
    """(format, tool, recipe, options, model), in the order of the page."""
    for form in given.format:
        for tool in given.tool:
            for recipe, options in RECIPES[tool].get(form, {}).items():
                for model in loaded:
                    if model.name in MODELS_OF.get(form, models.USUAL) and model.name not in NOT_OF.get((tool, recipe), ()):
                        yield form, tool, recipe, options, model


def versions(tools):
    return ", ".join(f"{t} {version_of(t, python_of(t)) if python_of(t) else '(which could not be installed)'}"
                     for t in tools if t != "qxc")


def load(names, folder):
    """What has its files; others are named."""
    found = []
    for name in names:
        try:
            found.append(models.load(name, folder))
        except (FileNotFoundError, OSError) as why:
            print(f"peers: without {name}: {why}", file=sys.stderr)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("-o", default=models.ROOT / "docs/peers.md", type=pathlib.Path)
    parser.add_argument("--model", nargs="*", default=models.ALL, choices=models.ALL)
    parser.add_argument("--tool", nargs="*", default=tuple(RECIPES), choices=tuple(RECIPES))
    parser.add_argument("--format", nargs="*", default=FORMATS, choices=FORMATS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--kept", action="store_true", help="write the page of what was measured, and measure nothing")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="peers-", dir=BUILD) as folder:
        loaded = load(given.model, pathlib.Path(folder))
        found = {}
        for form, tool, recipe, options, model in wanted(given, loaded):
            cells = [measured(model, tool, options, seed, given.kept) for seed in range(given.seeds)]
            found[form, tool, recipe, model.name] = cells
            given.kept or print(f"{form:12} {tool:11} {recipe:30} {model.name:12} {cells[0]}", file=sys.stderr, flush=True)
        given.o.write_text(page(found, [m.name for m in loaded], given.seeds, versions(given.tool)).rstrip() + "\n")


if __name__ == "__main__":
    main()
