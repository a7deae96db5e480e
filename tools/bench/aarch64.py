"""Instructions of one inference on Arm64, counted by QEMU: the C of qxc with the micro-kernels of three kinds of processors,
and the wheels of onnxruntime and LiteRT on the same kinds. aarch64_root.sh gets those and a Python for them."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx

from boards import Counted, plugin
from common import BUILD, data_inputs, feed, qxc
from kinds import forms, sample, trained
from networks import mobilenet_v2
from page import table
from quantized import Case
from speed import bench_case, by_qxc

RUNNER = pathlib.Path(__file__).with_name("aarch64_runner.py")
BASE = "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"
DOTS = f"{BASE} atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp"
# What the C is compiled for (cross.py), which processor QEMU plays for the others, and what Linux says of it, which they read.
PROCESSORS = {"NEON": ("aarch64", "cortex-a72", "0xd08", BASE),
              "DOTPROD": ("aarch64-dotprod", "neoverse-n1", "0xd0c", DOTS),
              "I8MM": ("aarch64-i8mm", "max,sve=off,sme=off", "0xd49", f"{DOTS} i8mm")}
CPUINFO = """\
processor\t: 0
Features\t: {features}
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x0
CPU part\t: {part}
CPU revision\t: 0
"""
PLAIN = "-std=gnu99", "-O3"  # plain gcc, which fuses products and sums of floats
NINE = ("kws", "ic", "vww", "ad", "digits", "squeezenet", "shufflenet", "mobilenet_v2", "resnet50")
TRAINED = ("cnn", "relu6", "unet", "lstm", "vit", "charlm")

TEXT = """\
Millions of instructions for one inference on Arm64, as QEMU counts them: of qxc's C (gcc -O3), and behind the colon how many
times as many onnxruntime {version} and LiteRT take from their wheels for aarch64, on processors with NEON alone, with dot products
(DOTPROD), and with products of matrices (I8MM); below 1 they take fewer. All take and give float and run one thread. Static: of
u8s8 and s8s8 onnxruntime has the form that takes fewer, LiteRT an s8s8 form of integers alone; dynamic as above. Instructions are not
cycles. The command: `tools/bench/aarch64_root.sh`, which gets those wheels and a Python for them, then
`make bench SECTIONS="Instructions on Arm64"`.

{table}
{missing}"""


def root():
    return pathlib.Path(os.environ.get("QXC_AARCH64", BUILD / "aarch64")).resolve()


class Model:
    """One row: the source of qxc's C, the sample's arrays, and what the others run: [(runtime, file, samples)]."""

    def __init__(self, name, form, source, arrays, jobs):
        self.name, self.form, self.source, self.arrays, self.jobs = name, form, source, arrays, jobs


def case_of(name, folder):
    if name not in TRAINED:
        return bench_case(name, folder)
    path = folder / f"{name}.onnx"
    onnx.save(trained(name), path)
    shared = pathlib.Path(os.environ["QXC_SHARED"], "models/trained")
    with np.load(shared / f"{name}.calib.npz") as calib, np.load(shared / f"{name}.test.npz") as test:
        first = data_inputs(onnx.load(path).graph)[0].name
        return Case(path, calib[first], test[first][:1], folder)


def static(name, folder):
    one = case_of(name, folder)
    source = folder / name / "model.c"
    source.parent.mkdir()
    qxc(one.path, "-emit=c", f"-calib={one.calib_file}", "-name=m", "-no-sync", "-quiet", "-o", source)
    (x,) = feed(onnx.load(one.path), one.test, 0).values()
    data = folder / f"{name}_sample.npz"
    np.savez(data, **{one.input: x})
    s8s8 = by_qxc(one, "s8s8", "-activations=int8")
    jobs = [("onnxruntime", by_qxc(one, "u8s8"), data), ("onnxruntime", s8s8, data)]
    everywhere = by_qxc(one, "all_s8s8", "-activations=int8", "-placement=all")  # as TensorFlow Lite has integers
    tflite = light_model(everywhere, folder / f"{name}.tflite")
    if tflite:
        last = x.reshape(-1, *x.shape[-3:])
        if x.ndim >= 3 and tflite[1] != last.shape:
            last = last.transpose(0, 2, 3, 1)
        np.savez(folder / f"{name}_last.npz", x=np.ascontiguousarray(last.reshape(tflite[1]), np.float32))
        jobs.append(("LiteRT", tflite[0], folder / f"{name}_last.npz"))
    return Model(name, "static", source, [x], jobs)


def light_model(path, made):
    """(the file, the shape of its input), or None."""
    try:
        from ai_edge_litert.interpreter import Interpreter
        from tflite import Unsupported, convert
    except ImportError:
        return None
    try:
        made.write_bytes(convert(onnx.load(path)))
    except Unsupported:
        return None
    return made, tuple(Interpreter(model_path=str(made)).get_input_details()[0]["shape"])


def dynamic(name, folder):
    model = trained(name) if name in TRAINED else mobilenet_v2()[0]
    path = next(path for form, _, path in forms(folder, name, model) if form == "dynamic")
    source = folder / f"{name}_dynamic" / "model.c"
    source.parent.mkdir()
    qxc(path, "-emit=c", "-name=m", "-no-sync", "-quiet", "-o", source)
    feeds, data = dict(sample(onnx.load(path))), folder / f"{name}_dynamic.npz"
    np.savez(data, **feeds)
    return Model(name, "dynamic", source, list(feeds.values()), [("onnxruntime", path, data)])


def describe(part, features):
    """Programs that QEMU plays see these files in place of this machine's, which has another kind of processor."""
    files = {"proc/cpuinfo": CPUINFO.format(part=part, features=features)}
    files |= {f"sys/devices/system/cpu/{name}": "0\n" for name in ("possible", "present")}
    for name, text in files.items():
        made = root() / "root" / name
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(text)


def others(models, cpu, folder):
    """{(row, runtime): the fewest instructions of its forms}"""
    jobs = [(i, job) for i, model in enumerate(models) for job in model.jobs]
    listed = folder / "jobs.json"
    listed.write_text(json.dumps([[str(part) for part in job] for _, job in jobs]))
    there = root()
    environment = {**os.environ, "PYTHONHOME": there / "root/usr", "PYTHONPATH": there / "site", "PYTHONHASHSEED": "0",
                   "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(["qemu-aarch64", "-plugin", plugin(folder), "-d", "plugin", "-cpu", cpu, "-L", there / "root",
                           there / "root/usr/bin/python3.11", RUNNER, listed, folder / "results.npz"],
                          check=True, capture_output=True, text=True, env=environment)
    marks = [int(n) for n in re.findall(r"so far: (\d+)", done.stderr + done.stdout)]
    assert len(marks) == 2 * len(jobs) + 2, "something else yields"
    spent, found = [b - a for a, b in zip(marks[::2], marks[1::2])], {}
    for (i, (runtime, *_)), count in zip(jobs, spent[1:], strict=True):
        found[i, runtime] = min(count - spent[0], found.get((i, runtime), count - spent[0]))
    return found


def arm64_rows(folder, models):
    rows = [[f"{m.name}", m.form] for m in models]
    there = (root() / "root").exists()
    for target, cpu, *about in PROCESSORS.values():
        theirs = {}
        if there:
            describe(*about)
            theirs = others(models, cpu, folder)
        for i, model in enumerate(models):
            ours = Counted(model.source, target, *PLAIN).one_run(model.arrays)
            times = [theirs.get((i, runtime)) for runtime in ("onnxruntime", "LiteRT")]
            rows[i].append(f"{ours / 1e6:,.2f}: " + ", ".join(f"{t / ours:.2f}" if t else "–" for t in times))
            print("aarch64", target, *rows[i], file=sys.stderr)
    return rows


def arm64_text(folder, names):
    """None without a compiler and QEMU for it."""
    if not shutil.which("aarch64-linux-gnu-gcc") or not shutil.which("qemu-aarch64"):
        return None
    folder = folder / "aarch64"
    folder.mkdir()
    shared = trained("cnn") is not None
    models = [static(name, folder) for name in (*(n for n in NINE if n in names), *(TRAINED if shared else ()))]
    models += [dynamic(name, folder) for name in (*(("vit", "charlm") if shared else ()), "mobilenet_v2")]
    missing = "" if (root() / "root").exists() else \
        f"- onnxruntime, LiteRT: there is no {root().name}/root, which `tools/bench/aarch64_root.sh` makes.\n"
    found = sorted(root().glob("site/onnxruntime-*.dist-info"))
    version = found[0].name.split("-")[1].removesuffix(".dist") if found else "(not there)"
    rows = arm64_rows(folder, models)
    return TEXT.format(version=version, table=table(("model", "form", *PROCESSORS), rows), missing=missing)
