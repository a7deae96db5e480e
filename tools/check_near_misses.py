#!/usr/bin/env python3
"""Every pass has a test in which it must not fire: test/lit/passes/near-miss/PASS.qir, whose cases are one step away from
what the pass does, and whose RUN lines compare the module behind the pass with the one before.

    tools/check_near_misses.py [FOLDER OF THE PROJECT]
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
FOLDER = ROOT / "test/lit/passes/near-miss"


def main():
    passes = re.findall(r'^PASS\(\w+, "([^"]+)"', (ROOT / "passes/passes.def").read_text(), re.M)
    wrong = []
    for name in passes:
        test = FOLDER / f"{name}.qir"
        if not test.exists():
            wrong.append(f"{name}: there is no {test.relative_to(ROOT)}")
        elif not re.search(rf"RUN: qxc %s .*-passes={name} .*\| diff %t\.before -", test.read_text()):
            wrong.append(f"{name}: {test.relative_to(ROOT)} does not compare what it leaves with what it got")
    for test in sorted(FOLDER.glob("*.qir")):
        if test.stem not in passes:
            wrong.append(f"{test.relative_to(ROOT)}: there is no such pass")
    print("\n".join(wrong) or f"{len(passes)} passes, each with cases in which it must not fire")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
