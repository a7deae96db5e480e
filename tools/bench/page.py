"""What the sections of docs/benchmarks.md share: tables, the head, and putting sections into a page."""

import importlib.metadata
import os
import pathlib
import platform
import re
import shutil
import subprocess


def table(head, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def processor():
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    model = re.search(r"model name\s*:\s*(.*)", text)
    flags = re.search(r"flags\s*:\s*(.*)", text)
    have = [f for f in ("avx2", "avx512f", "avx512_vnni", "avx_vnni") if flags and f in flags[1].split()]
    return f"{model[1] if model else platform.machine()} ({', '.join(have)})"


def first_line(*command):
    if not shutil.which(command[0]):
        return f"no {command[0]}"
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]


def package(name):
    try:
        return f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return f"no {name}"


def versions():
    tools = [first_line("gcc", "--version"), first_line("arm-none-eabi-gcc", "--version"),
             first_line("qemu-system-arm", "--version")]
    packages = [package(p) for p in ("onnxruntime", "onnx", "numpy", "emx-onnx-cgen", "ai-edge-litert", "openvino")]
    return "; ".join((processor(), *tools, ", ".join((*packages, f"Python {platform.python_version()}"))))


HEAD = """\
# Measurements

{versions}; one thread of {cores}.

`make bench` measures emitted C (speed, sizes, instructions) in about ten minutes and writes those sections anew, with
`docs/benchmarks.svg`; `make bench SECTIONS=all` measures everything. What is slower or worse than another stands
here as it is. The machine is shared and noisy (load average {load:.1f} at the end): times of one table
compare with each other and with nothing else.

"""


def head():
    return HEAD.format(versions=versions(), cores=os.cpu_count(), load=os.getloadavg()[0])


def sections_of(page):
    """(what stands before the first title, {title: text})"""
    parts = re.split(r"^## (.*)\n\n", page, flags=re.M)
    return parts[0], dict(zip(parts[1::2], parts[2::2]))


def page_of(start, texts, order):
    return start + "\n".join(f"## {title}\n\n{texts[title].rstrip()}\n" for title in order if title in texts)
