"""Runs the pass of each test of this folder on its text, and compares the numbers of both: same_numbers.py FOLDER.

A text that cannot run, as it has a foreign operator or an open length, or nothing to compare, is left out.
"""
import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[1]
# What these passes write anew computes the same, but for the order of sums.
PASSES = {"dynamic-axis", "drop-identities", "fold-affine", "fold-const", "fold-pad", "fold-params", "freeze", "front-end", "fuse-gelu",
          "gemm-to-matmul", "hoist-invariants", "inline-branches", "inline-functions", "lower-nbits", "lower-qdq", "lower-qop",
          "lower-tables", "matmul-to-gemm", "order-integers", "quant-io", "raise-annotations", "raise-integer-form", "raise-qonnx",
          "raise-quant", "raise-scaling", "recognise", "spell-newer", "split-bias", "split-products", "split-unbound", "sum-to-add",
          "unfuse", "upgrade"}
OTHER_INPUTS = {"lower-qop/pad.qir"}  # integers in place of a quantized type
LEAST_DB, FEWEST = 100, 110


def qxc(*args):
    done = subprocess.run(["qxc", *map(str, args), "-no-sync"], capture_output=True, text=True, check=False)
    if done.returncode < 0 or done.returncode > 4:
        print(f"{args}: exit {done.returncode}: {done.stderr}")  # it crashed
    return done


def pass_of(text):
    """(name, options that go with it) of the first RUN line with one pass that keeps numbers, or None."""
    for line in re.findall(r"^// RUN: qxc %s (.*)", text, re.M):
        words = re.split(r"[|>]", line)[0].split()
        names = [w.removeprefix("-passes=") for w in words if w.startswith("-passes=")]
        if names and names[0] in PASSES and "-split-input-file" not in words:
            return names[0], [w for w in words if w.startswith("-target")]
    return None


def main():
    after, compared = pathlib.Path(sys.argv[1]) / "after.qir", 0
    for path in sorted(FOLDER.glob("**/*.qir")):
        name = str(path.relative_to(FOLDER))
        found = None if path.parent.name == "Inputs" or name in OTHER_INPUTS else pass_of(path.read_text())
        if not found or qxc(path, f"-passes={found[0]}", *found[1], "-quiet", "-o", after).returncode:
            continue
        how = ["-random=2", f"-min-sqnr={LEAST_DB}"]
        done = qxc("compare", path, after, *how)
        if done.returncode == 0:
            compared += 1
        elif done.returncode == 4 or qxc("compare", path, path, *how).returncode == 0:
            print(f"{name}: {found[0]}: {done.stderr}")
    print("enough texts were compared" if compared >= FEWEST else f"only {compared} texts were compared")


main()
