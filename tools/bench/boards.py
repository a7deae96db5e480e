"""Instructions of one run on another processor, counted by QEMU: a program runs the model once, and once more,
and what the second run adds is counted. The numbers are the same each time and on each machine."""

import re
import subprocess

import numpy as np

from common import ROOT, model_path, qxc
from cross import CrossModel
from inputs import int8_inputs
from page import table

CORES = ("m0", "m3", "m4", "m7", "m55")
LEVEL = "-O2"
# Millions of instructions of CMSIS-NN (November 2026, -O3, requantization in inline assembly), its functions called with the
# shapes of the same layers and random weights, counted in the same way. They are not measured here, as they need its sources.
CMSIS_NN = {"kws": {"m3": 10.09, "m4": 7.31, "m55": 1.78}, "ic": {"m3": 40.1, "m4": 28.4, "m55": 4.79},
            "vww": {"m3": 30.6, "m4": 23.1, "m55": 6.39}, "ad": {"m3": 0.94, "m4": 0.57, "m55": 0.28}}


def plugin(folder):
    made = folder / "count_insns.so"
    if not made.exists():
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", made,
                        ROOT / "tools/bench/count_insns.c"], check=True)
    return made


class Counted(CrossModel):
    """Reads how often to run, then one sample."""

    def driver(self, prefix, header):
        text = super().driver(prefix, header)
        text = text.replace("int main(void) {\n", "int main(void) {\n    int runs;\n", 1)
        text = text.replace("    for (;;) {\n", "    if (fread(&runs, sizeof runs, 1, from) != 1) return 3;\n    for (;;) {\n")
        call = re.search(r"        (if \(\w+_run\(.*\) != 0\) return 4;)\n", text)
        return text.replace(call[1], f"for (int i = 0; i < runs; i++) {call[1]}")

    def instructions(self, sample, runs):
        with open(self.folder / "in.bin", "wb") as file:
            file.write(np.int32(runs).tobytes())
            for array in sample:
                file.write(np.ascontiguousarray(array).tobytes())
        emulator, *options = self.target.emulator
        command = [emulator, "-plugin", plugin(self.folder), "-d", "plugin", *options, self.program.resolve()]
        done = subprocess.run(command, check=True, cwd=self.folder, timeout=600, capture_output=True, text=True)
        return int(re.search(r"instructions: (\d+)", done.stdout + done.stderr)[1])

    def one_run(self, sample):
        return self.instructions(sample, 2) - self.instructions(sample, 1)


def count(model, samples, core, folder, *options):
    """Instructions of a run of an integer model."""
    source = folder / "model.c"
    qxc(model, "-emit=c", "-name=m", "-integer-only", "-no-sync", "-quiet", "-o", source, *options)
    return Counted(source, f"cortex-{core}").one_run([samples])


def instruction_counts(folder, models, *options):
    """{model: {core: millions}}"""
    found = {}
    for name in models:
        samples, _ = int8_inputs(name, 1)
        found[name] = {core: count(model_path(name, "int8_qdq"), samples[0], core, folder, *options) / 1e6
                       for core in CORES}
    return found


def instruction_table(counts):
    return table(("model", *(f"Cortex-{core.upper()}" for core in CORES)),
                 [(name, *(f"{n:,.2f}" for n in row.values())) for name, row in counts.items()])


def cmsis_table(exact, single):
    """What CMSIS-NN takes, and how many times as much the C does with each kind of rounding."""
    cores = next(iter(CMSIS_NN.values()))
    rows = [(name, *(f"{CMSIS_NN[name][core]:.2f}: {exact[name][core] / CMSIS_NN[name][core]:.2f}, "
                     f"{single[name][core] / CMSIS_NN[name][core]:.2f}" for core in cores)) for name in exact if name in CMSIS_NN]
    return table(("model", *(f"Cortex-{core.upper()}" for core in cores)), rows)


