#!/usr/bin/env python3
"""Whether two builds of qxc emit the same bytes and say the same: forty.py QXC OTHER_QXC [PART_OF_A_NAME].

forty.txt names the models. What one compiler leaves open and another decides differently (the order in which
arguments are evaluated, of all) shows here. Ends with a line `N passed, N failed, N skipped`, of models.
"""

import concurrent.futures
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import onnx

import bert
import float_models
import networks
import zoo
from common import DIGITS, MODELS, ROOT
from light import light
from packaged import packaged

CALIBRATED = ("-calib-random=2",)
EMISSIONS = {"qir": (), "onnx": ("-emit=onnx",), "decided": CALIBRATED, "true": (*CALIBRATED, "-form=true"),
             **{kind: (*CALIBRATED, f"-emit={kind}") for kind in ("qdq", "qop", "c", "json", "encodings")},
             **{f"plain-{kind}": (f"-emit={kind}",) for kind in ("qdq", "qop", "c")},
             "dynamic": ("-dynamic", "-emit=qop"), "weights": ("-weight-only", "-emit=qdq")}


def trained(name):
    committed = ROOT / f"test/models/{name}.onnx"
    return committed if committed.exists() else MODELS / f"trained/{name}.onnx"


MADE = {"networks": lambda name: {"detector": networks.detector, "mobilenet_v2": networks.mobilenet_v2,
                                  "transformer": networks.transformer}[name](),
        "float_models": lambda name: float_models.MODELS[{"attention": "transformer"}.get(name, name)](),
        "bert": lambda name: getattr(bert, name)().build(),
        "zoo": lambda name: zoo.zoo(int(name.removeprefix("zoo")))}
FOUND = {"examples": lambda name: DIGITS / f"{name}.onnx", "light": lambda name: light(name)[0],
         "packaged": lambda name: packaged(name)[0], "shared": lambda name: MODELS / f"{name}.onnx",
         "trained": trained, "lit": lambda name: ROOT / f"test/lit/{name}.qir"}


def model(name, source, folder):
    """The model's path."""
    if source in FOUND:
        path = FOUND[source](name)
        if not path.exists():
            raise unittest.SkipTest(f"there is no {path}")
        return path
    path = folder / f"{source}-{name}.onnx"
    made = MADE[source](name)
    onnx.save(made[0] if isinstance(made, tuple) else made, path)
    return path


def emission(qxc, path, options, folder):
    """What qxc writes and says, as a digest; the exit code, and what it said."""
    out = folder / ("m.onnx" if {"-emit=onnx", "-emit=qdq", "-emit=qop"} & set(options) else
                    "m.c" if "-emit=c" in options else "m.txt")
    done = subprocess.run([qxc, path, *options, "-o", out], capture_output=True, text=True, check=False)
    said = (done.stdout + done.stderr).replace(str(folder), "")
    digest = hashlib.sha256(said.encode())
    for written in sorted(folder.iterdir()):
        digest.update(written.name.encode() + written.read_bytes())
        written.unlink()
    return digest.hexdigest(), done.returncode, said


def differences(builds, name, source, kinds, scratch):
    """A line for each emission that differs; how many were refused by both."""
    path, found = model(name, source, scratch), []
    for kind in kinds:
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            one, other = (emission(qxc, path, EMISSIONS[kind], pathlib.Path(folder)) for qxc in builds)
        if one[1] not in (0, 1) or one[0] != other[0]:
            found.append(f"{name}: {kind} differs (exit {one[1]} and {other[1]})")
        elif one[1]:
            print(f"{name}: {kind} is refused: {one[2].splitlines()[0][:150]}")
    return found


def rows(part):
    lines = (line.split() for line in pathlib.Path(__file__).with_suffix(".txt").read_text().splitlines())
    return [(name, source, kinds) for name, source, *kinds in (l for l in lines if l and l[0] != "#") if part in name]


def main():
    builds, part = [str(pathlib.Path(p).resolve()) for p in sys.argv[1:3]], (sys.argv + [""])[3]
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory() as scratch, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [(row[0], pool.submit(differences, builds, *row, pathlib.Path(scratch))) for row in rows(part)]
        for name, job in jobs:
            try:
                found = job.result()
            except unittest.SkipTest as e:
                print(f"{name} is skipped: {e}")
                skipped += 1
                continue
            for line in found:
                print(f"FAIL: {line}")
            passed, failed = passed + (not found), failed + bool(found)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
