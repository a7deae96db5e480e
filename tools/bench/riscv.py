"""Instructions of one inference on RISC-V, counted by QEMU: the C of qxc in portable form, and with vectors."""

import shutil

from aarch64 import static
from boards import Counted
from page import table

NAMES = ("kws", "ic", "vww", "ad", "digits")
TARGETS = ("riscv64", "riscv64-v128", "riscv64-v512")  # those of cross.py

TEXT = """\
Millions of instructions for one inference on RISC-V, as QEMU counts them, of qxc's C: portable (gcc -O2), and with vectors of
128 and 512 bits (V 1.0; clang 19 -O1), whose products fill 16 columns whatever the length. Behind the colon
stands how many times as many the portable form takes. Float at both ends.

{table}"""


def riscv_text(folder, names):
    """None without the compilers and QEMU for it."""
    if not all(map(shutil.which, ("riscv64-linux-gnu-gcc", "clang-19", "qemu-riscv64"))):
        return None
    folder, rows = folder / "riscv", []
    folder.mkdir()
    for name in (n for n in NAMES if n in names):
        model = static(name, folder)
        plain, *vectors = (Counted(model.source, t).one_run(model.arrays) / 1e6 for t in TARGETS)
        rows.append((name, f"{plain:,.2f}", *(f"{v:,.2f}: {plain / v:.2f}" for v in vectors)))
    return TEXT.format(table=table(("model", "portable", "128 bits", "512 bits"), rows))
