#!/usr/bin/env python3
"""Measures qxc beside other quantizers, and writes docs/peers.md.

Usage: tools/peers [-o docs/peers.md] [--model NAME...] [--tool NAME...] [--format NAME...] [--seeds N] [--kept]
       tools/peers --through [-o docs/from-others.md] [--model NAME...] [--tool NAME...]

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
import through
import through_page
from cells import BUILD, measured, python_of, version_of
from page import page
from recipes import FORMATS, MODELS_OF, NOT_OF, RECIPES
from spellings import SPELLINGS


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


def measure(given, loaded):
    found = {}
    for form, tool, recipe, options, model in wanted(given, loaded):
        cells = [measured(model, tool, options, seed, given.kept) for seed in range(given.seeds)]
        found[form, tool, recipe, model.name] = cells
        given.kept or print(f"{form:12} {tool:11} {recipe:30} {model.name:12} {cells[0]}", file=sys.stderr, flush=True)
    return page(found, [m.name for m in loaded], given.seeds, versions(given.tool))


def go_through(given, loaded):
    """What other tools write through qxc, of these models and of files that lie beside them."""
    found = {}
    tools = [tool for tool in given.tool if tool in SPELLINGS]
    for tool, form, options, model in ((t, f, o, m) for m in loaded for t in tools for f, o in SPELLINGS[t].items()):
        found.setdefault((tool, form), {})[model.name] = through.through(model, tool, options, given.kept)
        given.kept or print(f"{tool:11} {form:30} {model.name:12} {found[tool, form][model.name]}", file=sys.stderr, flush=True)
    for (tool, form), paths in through.files().items():
        found[tool, form] = {name: through.gone(path, only_kept=given.kept) for name, path in paths.items()}
    known = {key: {m: row for m, row in of.items() if row != through.NOT_MEASURED} for key, of in found.items()}
    return through_page.page({key: of for key, of in known.items() if of}, versions(tools), through.SAMPLES)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("-o", type=pathlib.Path)
    parser.add_argument("--model", nargs="*", choices=models.ALL)
    parser.add_argument("--tool", nargs="*", default=tuple(RECIPES), choices=tuple(RECIPES))
    parser.add_argument("--format", nargs="*", default=FORMATS, choices=FORMATS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--kept", action="store_true", help="write the page of what was measured, and measure nothing")
    parser.add_argument("--through", action="store_true", help="take what the other tools write through qxc, and write docs/from-others.md")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="peers-", dir=BUILD) as folder:
        loaded = load(given.model or (models.USUAL if given.through else models.ALL), pathlib.Path(folder))
        text = go_through(given, loaded) if given.through else measure(given, loaded)
        (given.o or models.ROOT / "docs" / ("from-others.md" if given.through else "peers.md")).write_text(text.rstrip() + "\n")


if __name__ == "__main__":
    main()
