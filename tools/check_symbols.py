#!/usr/bin/env python3
"""Holds every call between objects against the order of the folders: check_symbols.py BUILD [--table].

What tools/check_layers.sh asks of includes holds for symbols, too: a header may stand low and what it declares may be
defined high. Prints what breaks this and exits 1. With --table it prints how often which folder names symbols of which.
"""

import collections
import pathlib
import subprocess
import sys

# A folder may use itself and those further left; folders of one level do not use each other.
LEVELS = [{"support", "texts"}, {"ir", "kernels"}, {"program"}, {"ir/ops"}, {"exec", "target"}, {"passes", "frontend", "backend"},
          {"passes/target"}, {"passes/raise", "passes/prepare", "passes/quantize", "passes/lower", "passes/shrink"},
          {"compiler"}]
LEVEL = {folder: level for level, folders in enumerate(LEVELS) for folder in folders}


def folder_of(path):
    parts = path.parts[1:-1]  # behind obj/ or gen/; build/kernels_gen.c lies outside
    name = "/".join(parts[:2])
    return name if name in LEVEL else parts[0] if parts else "kernels"


def uses(build):
    """For each two folders, how many objects of the first use each symbol of the second."""
    objects = (build / "sources").read_text().split()
    lines = subprocess.run(["nm", "-A", "-P", "-g", *objects], capture_output=True, text=True, check=True).stdout
    defined, used = {}, []
    for line in lines.splitlines():
        path, rest = line.split(": ", 1)
        symbol, kind = rest.split()[:2]
        folder = folder_of(pathlib.Path(path).resolve().relative_to(build.resolve()))
        if kind in "Uw":
            used.append((folder, symbol))
        else:
            defined[symbol] = folder
    table = collections.defaultdict(collections.Counter)
    for folder, symbol in used:
        if defined.get(symbol, folder) != folder:
            table[folder, defined[symbol]][symbol] += 1
    return table


def allowed(user, owner, symbol):
    """The functions of passes are rows of passes/passes.def, which all of passes/ may call."""
    if symbol.startswith("pass_") and user.startswith("passes") and owner.startswith("passes"):
        return True
    return LEVEL[owner] < LEVEL[user]


def main():
    table = uses(pathlib.Path(sys.argv[1]))
    if "--table" in sys.argv:
        for (user, owner), symbols in sorted(table.items()):
            print(f"{user:16} uses {owner:16} {symbols.total():4} times, {len(symbols):3} symbols")
        return 0
    wrong = sorted((user, owner, s) for (user, owner), symbols in table.items() for s in symbols
                   if not allowed(user, owner, s))
    for user, owner, symbol in wrong:
        print(f"{user} must not use {owner} ({symbol})")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
