"""Emitted C on other processors: cross-compiled, run by QEMU on arrays from here."""

import dataclasses
import re
import shutil
import subprocess
import unittest

import numpy as np

from cmodel import KINDS
from common import WARNINGS, ROOT

BOARD = ROOT / "examples/cortex-m"


@dataclasses.dataclass
class Target:
    compiler: str
    flags: tuple
    emulator: tuple
    link: tuple = ()
    instruction: str = ""  # that only its micro-kernel has


def linux(name, *flags, cpu="max", instruction=""):
    return Target(f"{name}-linux-gnu-gcc", flags,
                  (f"qemu-{name}", "-cpu", cpu, "-L", f"/usr/{name}-linux-gnu"), ("-lm",), instruction)


def vectors(length):
    """RISC-V with vectors of so many bits, for which gcc 12 knows no intrinsics. With -O2 clang makes vectors of
    all other loops too, in more than twice the time."""
    return Target("clang-19", ("--target=riscv64-linux-gnu", "-march=rv64gcv", "-O1"),
                  ("qemu-riscv64", "-cpu", f"rv64,v=true,vext_spec=v1.0,vlen={length}", "-L",
                   "/usr/riscv64-linux-gnu"), ("-lm",), "vwmacc.vx")


def cortex(cpu, board, size, *flags, instruction=""):
    """Without an operating system; files are read and written through semihosting."""
    regions = [f"-Wl,--defsym={what}" for what in (
        "flash=0", f"flash_size={size:#x}", "ram=0x20000000", f"ram_size={size:#x}",
        "stack_size=0x4000")]
    return Target(
        "arm-none-eabi-gcc", (f"-mcpu={cpu}", "-mthumb", *(flags or ("-mfloat-abi=soft",))),
        ("qemu-system-arm", "-M", board, "-nographic", "-monitor", "none", "-serial", "none",
         "-semihosting-config", "enable=on,target=native", "-kernel"),
        ("-nostartfiles", "--specs=rdimon.specs", "-Wl,--gc-sections", "-T", str(BOARD / "board.ld"),
         *regions, str(BOARD / "startup.c")), instruction)


TARGETS = {
    "aarch64": linux("aarch64", instruction="smlsl2"),
    "aarch64-dotprod": linux("aarch64", "-march=armv8.2-a+dotprod", instruction="sdot"),
    "aarch64-i8mm": linux("aarch64", "-march=armv8.2-a+dotprod+i8mm", instruction="usmmla"),
    "riscv64": linux("riscv64", cpu="rv64"),
    "riscv64-v128": vectors(128),
    "riscv64-v512": vectors(512),
    "cortex-m0": cortex("cortex-m0", "mps2-an385", 0x400000),  # its instructions on an M3
    "cortex-m3": cortex("cortex-m3", "mps2-an385", 0x400000),
    "cortex-m4": cortex("cortex-m4", "mps2-an386", 0x400000, instruction="smlad"),
    "cortex-m7": cortex("cortex-m7", "mps2-an500", 0x400000, instruction="smlad"),
    "cortex-m55": cortex("cortex-m55", "mps3-an547", 0x80000, "-mfloat-abi=hard",
                          instruction="vmladava.u8"),
}


class CrossModel:
    """PREFIX_run of model.c, compiled for a target; a test without its tools is skipped."""

    def __init__(self, source, target, *flags):
        self.target = TARGETS[target]
        for tool in (self.target.compiler, self.target.emulator[0]):
            if not shutil.which(tool):
                raise unittest.SkipTest(f"there is no {tool}: tools/install_deps.sh installs it")
        self.folder = source.parent
        text = source.with_suffix(".h").read_text()
        prefix, parameters = re.search(r"\bint\s+(\w+)_run\s*\(([^;]*)\)\s*;", text).groups()
        self.ports = [re.fullmatch(r"\s*(const\s+)?(\w+)\s+(\w+)\s*\[(\d+)\]\s*", p).groups()
                      for p in parameters.split(",")[1:]]
        self.assembly, self.program = source.with_suffix(f".{target}.s"), source.with_suffix(f".{target}")
        self.compile("-std=c99", *WARNINGS, *flags, "-S", "-o", self.assembly, source)
        (self.folder / "driver.c").write_text(self.driver(prefix, source.with_suffix(".h").name))
        self.compile("-I", self.folder, "-o", self.program, self.folder / "driver.c", self.assembly,
                     *self.target.link)

    def compile(self, *arguments):
        subprocess.run([self.target.compiler, "-O2", *self.target.flags, *arguments], check=True)

    def is_portable(self, source):
        """Whether it has no micro-kernel of the processor's own (kernels/simd/simd.qk)."""
        made = source.with_suffix(".i")
        self.compile("-std=c99", "-E", "-dM", "-o", made, source)
        return "#define QK_PORTABLE" in made.read_text()

    def driver(self, prefix, header):
        arrays = "".join(f"static {kind} {name}[{count}];\n" for _, kind, name, count in self.ports)
        read = "".join(f"        if (fread({name}, sizeof {name}, 1, from) != 1) break;\n"
                       for const, _, name, _ in self.ports if const)
        write = "".join(f"        fwrite({name}, sizeof {name}, 1, to);\n"
                        for const, _, name, _ in self.ports if not const)
        names = ", ".join(name for _, _, name, _ in self.ports)
        upper = prefix.upper()
        return (f'#include <stdio.h>\n#include "{header}"\n{arrays}'
                f"static uint8_t memory[{upper}_ARENA_SIZE + 1] "
                f"__attribute__((aligned({upper}_ARENA_ALIGN)));\n"
                'int main(void) {\n    FILE *from = fopen("in.bin", "rb"), *to = fopen("out.bin", "wb");\n'
                "    if (!from || !to) return 2;\n    for (;;) {\n"
                f"{read}        if ({prefix}_run(memory, {names}) != 0) return 4;\n{write}    }}\n"
                "    return fclose(to) != 0;\n}\n")

    def run(self, samples):
        """The outputs of each sample (a list of arrays), flat."""
        with open(self.folder / "in.bin", "wb") as file:
            for sample in samples:
                for array in sample:
                    file.write(np.ascontiguousarray(array).tobytes())
        subprocess.run([*self.target.emulator, self.program.resolve()], check=True, cwd=self.folder,
                       timeout=300)
        data, at, results = (self.folder / "out.bin").read_bytes(), 0, []
        for _ in samples:
            results.append([])
            for const, kind, _, count in self.ports:
                if not const:
                    results[-1].append(np.frombuffer(data, KINDS[kind], int(count), at))
                    at += results[-1][-1].nbytes
        assert at == len(data)
        return results
