"""terminal.py QXC MODEL: a long run says how far it is on a terminal alone, and leaves nothing there."""

import os
import subprocess
import sys

LONG_ENOUGH = 2  # seconds without a word


def on_terminal(command):
    """What the program writes to stderr where that is a terminal."""
    here, there = os.openpty()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=there) as process:
        os.close(there)
        text = b""
        while True:
            try:
                piece = os.read(here, 65536)
            except OSError:  # nobody has it open any more
                piece = b""
            if not piece:
                break
            text += piece
    os.close(here)
    assert process.returncode == 0, text
    return text.decode()


def shown(text):
    """What is left to be seen of a line after carriage returns."""
    cells = []
    for part in text.split("\r"):
        cells[:len(part)] = part
    return "".join(cells).rstrip()


def command(qxc, model, samples):
    return [qxc, "run", model, f"-random={samples}", "-o", os.devnull]


def main(qxc, model):
    samples = 20000
    while not (text := on_terminal(command(qxc, model, samples))):
        samples *= 2  # this machine is faster
    lines = text.split("\r")
    assert any(line.startswith("running: sample ") and line.endswith(" left") for line in lines), text
    assert shown(text) == "", text
    for quiet in ["-quiet"], ["-diagnostics=json"]:
        assert on_terminal(command(qxc, model, samples) + quiet) == ""
    piped = subprocess.run(command(qxc, model, samples), capture_output=True, text=True, check=True)
    assert piped.stderr == "", piped.stderr
    print("seen and gone")


if __name__ == "__main__":
    main(*sys.argv[1:])
