#!/usr/bin/env python3
"""Keeps texts and schemes of a release, so that later versions can be held to what they meant.

Usage: keep.py QXC FOLDER TEXT|SCHEME...   FOLDER is test/corpus/VERSION, QXC the program of that version.

Copies each text (with its blob) that the program reads, and writes beside it what it means, in other
people's formats: NAME.onnx (-emit=onnx), NAME.json (-emit=overrides: scale, zero point and axis of each
value), NAME.npz (what it computes of the inputs in NAME.in.npz). A text of which none of these can be made
is left out. A scheme means what it decides of statistics.qir. test/oracle/test_corpus.py reads all again.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

MOST = 64 * 1024  # bytes of a text, or of what it means


def made(qxc, text, options, out):
    run = subprocess.run([qxc, text, *options, "-quiet", "-o", out], capture_output=True)
    return run.returncode == 0 and out.exists() and out.stat().st_size <= MOST


def keep(qxc, text, folder):
    name = text.parent.name + "-" + text.stem if text.parent.parent.name == "lit" else text.stem
    to = folder / f"{name}.qir"
    if text.stat().st_size > MOST or to.exists():
        return False
    shutil.copy(text, to)
    for blob in text.parent.glob(text.stem + "*.safetensors"):
        shutil.copy(blob, folder)
    data = text.with_suffix(".in.npz")
    means = {".onnx": ["-emit=onnx"], ".json": ["-emit=overrides"]}
    with tempfile.TemporaryDirectory() as scratch:
        for end, options in means.items():
            out = pathlib.Path(scratch) / (name + end)
            if made(qxc, to, options, out):
                shutil.copy(out, folder)
    if data.exists():
        shutil.copy(data, folder / f"{name}.in.npz")
        subprocess.run([qxc, "run", to, f"-input={data}", "-quiet", "-o", folder / f"{name}.npz"],
                       check=True)
    if any((folder / (name + end)).exists() for end in (".onnx", ".json", ".npz")):
        return True
    to.unlink()
    return False


def keep_scheme(qxc, scheme, folder):
    shutil.copy(scheme, folder)
    out = folder / (scheme.name + ".json")
    return made(qxc, folder / "statistics.qir", [f"-scheme={scheme}", "-emit=overrides"], out)


def main():
    qxc, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    paths = [pathlib.Path(p).resolve() for p in sys.argv[3:]]
    kept = sum((keep_scheme if p.suffix == ".scheme" else keep)(qxc, p, folder) for p in paths)
    print(f"{kept} of {len(sys.argv) - 3} texts kept")


if __name__ == "__main__":
    main()
