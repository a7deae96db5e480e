"""The types of a text's nodes where its inputs have names for lengths: open_types.py TEXT FOLDER."""
import pathlib
import re
import subprocess
import sys

text = pathlib.Path(sys.argv[1]).read_text()


def named(m):
    return f"%{m[1]} : {m[2]}[{','.join(f'{m[1]}{i}' for i in range(len(m[3].split(','))))}] = const"


lines = [re.sub(r"%(\w+) : (\w+)\[([0-9,]+)\] = const", named, line) if line.startswith("graph") else line for line in text.split("\n")]
to = pathlib.Path(sys.argv[2]) / "open.qir"
to.write_text("\n".join(lines))
done = subprocess.run(["qxc", str(to)], capture_output=True, text=True, check=True)
for line in done.stdout.split("\n"):
    if re.match(r"  %.* = [\w.:]+\(", line):
        print(re.sub(r" inferred\b", "", line.split(" = ")[0].strip()))
