#!/usr/bin/env python3
"""Reads and prints every block of a Markdown page that is marked qir, as the page promises.

Usage: check_docs.py QXC PAGE...   Exits 1 and names PAGE:LINE of each block that does not pass.
"""

import pathlib
import subprocess
import sys
import tempfile


def blocks(page):
    """The (line, text) of each ```qir block."""
    begin, lines = 0, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if begin and line.strip() == "```":
            yield begin, "\n".join(lines) + "\n"
            begin = 0
        elif begin:
            lines.append(line)
        elif line.strip() == "```qir":
            begin, lines = number, []


def check(qxc, text, folder):
    path = pathlib.Path(folder) / "block.qir"
    path.write_text(text, encoding="utf-8")
    run = subprocess.run([qxc, str(path), "-emit=qir", "-verify-roundtrip"],
                         capture_output=True, text=True, check=False)
    return run.stderr if run.returncode else ""


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    failed = checked = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[2:]:
            for line, text in blocks(pathlib.Path(name)):
                checked += 1
                problem = check(sys.argv[1], text, folder)
                if problem:
                    failed += 1
                    print(f"{name}:{line}: this block does not pass:\n{problem}", file=sys.stderr)
    print(f"{checked - failed} of {checked} blocks pass")
    return failed > 0 or checked == 0


if __name__ == "__main__":
    sys.exit(main())
