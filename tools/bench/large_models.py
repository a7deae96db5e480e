"""Large models: through the text and back, and quantized beside plain copying."""

import os
import subprocess
import sys
import time

import numpy as np

from large import large
from light import light
from page import table
from test_light_models import measured, round_trip


def memory(folder):
    path, _ = light("resnet50")
    size = path.stat().st_size
    return table(("step", "seconds", "of the processor", "peak memory, of the file's size"),
                 [(what, f"{seconds:.2f}", f"{busy:.2f}", f"{peak / size:.2f}")
                  for what, seconds, busy, peak in round_trip(path, folder)])


QUANTIZED = {"`-dynamic`": ("-dynamic", "-emit=qdq"),
             "`-weight-only`": ("-weight-only", "-emit=qdq"),
             '`-weight-only -weights="int4 sym block(32)"`': ("-weight-only", "-weights=int4 sym block(32)", "-emit=qdq"),
             "the same as MatMulNBits": ("-weight-only", "-weights=int4 sym block(32)", "-emit=qop")}


def read_file(path):
    """Seconds for reading it, in parts, as it lies in the page cache."""
    part = bytearray(1 << 20)
    start = time.perf_counter()
    with open(path, "rb", buffering=0) as f:
        while f.readinto(part):
            pass
    return time.perf_counter() - start


def write_file(path, size):
    part = memoryview(os.urandom(1 << 20))
    start = time.perf_counter()
    with open(path, "wb", buffering=0) as f:
        for at in range(0, size, len(part)):
            f.write(part[:size - at])
        os.fsync(f.fileno())
    return time.perf_counter() - start


def quantizing(path, folder, rounds):
    """Rows: what qxc takes beside reading what it reads and writing what it writes, in turn."""
    files = [path, path.with_name(f"{path.name}.data")]
    files = [f for f in files if f.exists()]
    rows = []
    for what, options in QUANTIZED.items():
        out, times = folder / "large_q.onnx", []
        for _ in range(rounds):
            seconds, busy, peak = measured(path, *options, "-quiet", "-o", out)
            plain = sum(map(read_file, files)) + write_file(folder / "large_w", out.stat().st_size)
            times.append((seconds, busy, plain, peak))
        seconds, busy, plain, peak = np.median(times, axis=0)
        rows.append((what, f"{out.stat().st_size / 1e6:.1f}", f"{plain:.2f}", f"{seconds:.2f}", f"{busy:.2f}",
                     f"{np.median([t[0] / t[2] for t in times]):.2f}", f"{peak / 1e6:.0f}"))
        out.unlink()
    return rows


BY_ORT = """
import resource, sys, time
import onnx
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
seconds, busy = time.perf_counter(), time.process_time()
q = MatMulNBitsQuantizer(onnx.load(sys.argv[1]), block_size=32, is_symmetric=True)
q.process()
q.model.save_model_to_file(sys.argv[2], False)
print(time.perf_counter() - seconds, time.process_time() - busy,
      1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
BESIDE = {"`qxc`, MatMulNBits": QUANTIZED["the same as MatMulNBits"],
          "`qxc`, 8 bits, the same blocks": ("-weight-only", "-weights=int8 sym block(32)", "-emit=qdq")}


def by_onnxruntime(path, out):
    """Seconds, those of the processor, and peak bytes; without the import of its modules."""
    done = subprocess.run([sys.executable, "-c", BY_ORT, path, out], capture_output=True, text=True, check=True)
    return tuple(map(float, done.stdout.split()[-3:]))


def beside_table(path, folder, rounds):
    """4 bits in blocks, in turn with onnxruntime's quantizer, and with blocks whose scales are not searched for."""
    times, out = {}, folder / "large_q.onnx"
    for _ in range(rounds):
        for what, options in BESIDE.items():
            times.setdefault(what, []).append(measured(path, *options, "-quiet", "-no-sync", "-o", out))
        times.setdefault("`MatMulNBitsQuantizer`", []).append(by_onnxruntime(path, out))
    out.unlink()
    return table(("", "seconds", "of the processor", "peak memory, MB"),
                 [(what, f"{s:.2f}", f"{b:.2f}", f"{m / 1e6:.0f}")
                  for what, (s, b, m) in ((w, np.median(t, axis=0)) for w, t in times.items())])


def quantizing_tables(folder, rounds):
    """What the section says: size, rounds, a table each for weights inside and beside the model, and one beside
    onnxruntime's quantizer."""
    tables = {}
    for external in (False, True):
        path = large(folder / "large.onnx", external=external)
        size = sum(f.stat().st_size for f in folder.glob("large.onnx*"))
        tables[external] = table(("options", "result, MB", "read and write, s", "qxc, s", "of the processor",
                                  "ratio", "peak memory, MB"), quantizing(path, folder, rounds))
        if not external:
            theirs = beside_table(path, folder, rounds)
        for file in folder.glob("large*"):
            file.unlink()
    return QUANTIZING.format(size=f"{size / 1e6:.0f}", rounds=rounds, inside=tables[False], beside=tables[True],
                             theirs=theirs)


LARGE = """\
ResNet-50 ({resnet} MB) to `.qir` with its weights beside it, and back to ONNX, without waiting for
the disk. Memory counts the pages of the mapped file.

{table}"""

QUANTIZING = """\
{size} MB of random float weights, 31 layers of MatMul, Add and Relu (`test/oracle/large.py`): seconds
for quantizing them, and beside it, in the same round, for reading the same file and writing as many
bytes as the result has, both with fsync; medians of {rounds} rounds. The file is in the page cache.
The ratio is that of the two in one round.

Weights in the model's file:

{inside}
Weights in a file beside it:

{beside}
4 bits in blocks of 32 as qxc quantizes them, each scale searched for by least squares, and as onnxruntime's
`MatMulNBitsQuantizer`, which takes it from the largest number; without fsync. Blocks of 8 bits are rounded without a search:

{theirs}"""
