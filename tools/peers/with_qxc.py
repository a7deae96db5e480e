"""with_qxc.py MODEL CALIB.npz OUT OPTION...: the program takes the place of this small process, so that memory is its own."""

import os
import pathlib

QXC = pathlib.Path(os.environ.get("BUILD") or pathlib.Path(__file__).resolve().parents[2] / "build") / "qxc"


def main(path, calib, out, *options):
    os.execv(QXC, [str(QXC), path, "-emit=qdq", f"-calib={calib}", "-no-sync", "-o", out, *options])
