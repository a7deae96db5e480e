#!/usr/bin/env python3
"""Executes the examples of a Markdown page.

Usage: check_docs.py QXC PAGE...   Exits 1 and names PAGE:LINE of each block that does not pass.

    ```qir              is read, printed and read again; -verify-roundtrip compares
    ```qir OPTION...    qxc passes on it with these options: -verify-diagnostics, -wide-zp
    ```qir file=x.qir   is kept under that name for the commands below
    ```target file=x.target
                        likewise, as it is: a page of -target
    ```qir library file=x.qir   functions alone, kept and read with -define
    ```console          each `$ command` is run by a shell in one folder for the whole page, and
                        the lines under it are what it prints, both streams; a line `...` is any
                        number of lines, `...` in a line any text. A command may fail only where an
                        error is shown.
    ```python needs=A,B is run in that folder, by the Python that runs this; lines `# prints: ...` are what it prints
    ... needs=A,B       a block that is skipped, and named, where one of these programs or Python modules is missing

A qir block may leave out what each file has: `qir 1` with `import "" 21` before it, and a graph with
the inputs %x, %y : float[2,4] around its lines, if the first one is indented, or else around those
behind the first empty one.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[1]


@dataclass
class Block:
    line: int
    language: str
    words: list
    text: str


def blocks(page):
    """The blocks of the page that have a language."""
    block = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if block and line.strip() == "```":
            if block.language:
                yield block
            block = None
        elif block:
            block.text += line + "\n"
        elif line.strip().startswith("```"):
            words = line.strip()[3:].split()
            block = Block(number, words[0] if words else "", words[1:], "")


def whole_part(text):
    if re.search(r"^qir 1$", text, re.M):
        return text
    lines = text.splitlines()
    if not re.search(r"^graph ", text, re.M):
        first = 0 if lines[0].startswith("  ") else lines.index("") if "" in lines else len(lines)
        lines[first:first] = ["graph @main (%x : float[2,4], %y : float[2,4]) -> (%x) {"]
        lines.append("}")
    return "\n".join(["qir 1", 'import "" 21', *lines, ""])


def whole(text):
    """The file that a block is a part of; each of the inputs between lines `// -----` is one."""
    return "// -----\n".join(map(whole_part, text.split("// -----\n")))


def check_qir(qxc, block, folder):
    names = [w[5:] for w in block.words if w.startswith("file=")]
    options = [w for w in block.words if w.startswith("-")]
    path = folder / (names[0] if names else "block.qir")
    if "library" in block.words:
        path.write_text(block.text, encoding="utf-8")
        run = subprocess.run([qxc, "list", "functions", f"-define={path.name}"], cwd=folder,
                             capture_output=True, text=True, check=False)
        return run.stderr
    path.write_text(whole(block.text), encoding="utf-8")
    run = subprocess.run([qxc, path.name, *(options or ["-emit=qir", "-verify-roundtrip"])], cwd=folder,
                         capture_output=True, text=True, check=False)
    return run.stderr if run.returncode else ""


def keep(_qxc, block, folder):
    (folder / block.words[0].removeprefix("file=")).write_text(block.text, encoding="utf-8")
    return ""


def matches(want, got):
    """Are the lines those that are shown? A line `...` stands for any number of lines."""
    if not want:
        return not got
    if want[0] == "...":
        return any(matches(want[1:], got[i:]) for i in range(len(got) + 1))
    pattern = ".*".join(map(re.escape, want[0].rstrip().split("...")))
    return bool(got) and bool(re.fullmatch(pattern, got[0].rstrip())) and matches(want[1:], got[1:])


def commands(text):
    """(command, lines shown under it)."""
    out = []
    for line in text.splitlines():
        if line.startswith("$ "):
            out.append((line[2:], []))
        elif out and not out[-1][1] and out[-1][0].endswith("\\"):
            out[-1] = (out[-1][0] + "\n" + line, [])
        elif out:
            out[-1][1].append(line)
    return out


def check_console(qxc, block, folder):
    path = f"{pathlib.Path(qxc).parent}{os.pathsep}{os.environ['PATH']}"
    for command, want in commands(block.text):
        run = subprocess.run(["bash", "-c", command], cwd=folder, text=True, check=False,
                             env={**os.environ, "PATH": path, "NO_COLOR": "1"},
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if run.returncode and not any("error" in line for line in want):
            return f"$ {command}\n{run.stdout}exit status {run.returncode}"
        if not matches(want, run.stdout.splitlines()):
            return f"$ {command}\n{run.stdout}"
    return ""


def check_python(_qxc, block, folder):
    want = re.findall(r"# prints: (.*)", block.text)
    run = subprocess.run([sys.executable, "-c", block.text], cwd=folder, text=True, check=False,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return "" if run.returncode == 0 and matches(want, run.stdout.splitlines()) else run.stdout or "it prints nothing"


def missing(block):
    """What `needs=` names and this machine lacks."""
    names = [n for w in block.words if w.startswith("needs=") for n in w[6:].split(",")]
    return [n for n in names if not shutil.which(n) and not importlib.util.find_spec(n)]


def check_of(block):
    """The function that checks the block, if any does."""
    if block.language == "python" and not any(w.startswith("needs=") for w in block.words):
        return None  # a part of a page that a test runs as a whole
    return {"qir": check_qir, "console": check_console, "target": keep, "python": check_python}.get(block.language)


def check_page(qxc, page):
    """(number of blocks that are executed, [(line, problem)])."""
    count, problems = 0, []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "examples").symlink_to(ROOT / "examples")
        for block in blocks(page):
            check = check_of(block)
            if check and missing(block):
                print(f"{page}:{block.line}: skipped, needs {', '.join(missing(block))}", flush=True)
            elif check:
                count += 1
                problem = check(qxc, block, folder)
                if problem:
                    problems.append((block.line, problem))
    return count, problems


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    qxc = str(pathlib.Path(shutil.which(sys.argv[1]) or sys.argv[1]).absolute())
    failed = checked = 0
    for name in sys.argv[2:]:
        count, problems = check_page(qxc, pathlib.Path(name))
        checked += count
        failed += len(problems)
        for line, problem in problems:
            print(f"{name}:{line}: this block does not pass:\n{problem}", file=sys.stderr)
    print(f"{checked - failed} of {checked} blocks pass")
    return failed > 0 or checked == 0


if __name__ == "__main__":
    sys.exit(main())
