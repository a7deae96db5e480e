"""`qxc run` of float models, on which calibration runs, beside onnxruntime."""

import contextlib
import os
import resource
import statistics
import sys
import time

import numpy as np
import onnx

from common import TRAINED, data_inputs, feed, model_path, qxc, session
from light import BIG, MEDIUM, SMALL, light
from page import table

INTERPRETER = """\
`qxc run` of float models, on which calibration, `-min-sqnr` and `compare` run: milliseconds of processor time for one
sample on one processor, what starting takes left out; onnxruntime optimizes, with one thread. The median of {rounds} rounds in turn. Sums of
qxc are not contracted, so that its bits are those of the C and of every processor; onnxruntime's multiply and add at once, which is one
operation of the processor in place of two.

{table}"""


def drawn(model, count):
    """As many samples for each input, without the axis of a batch of one."""
    rng, arrays = np.random.default_rng(1), {}
    for value in data_inputs(model.graph):
        shape = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
        arrays[value.name] = rng.random((count, *shape)).astype(np.float32)
    return arrays


def seconds_of_qxc(path, arrays, folder):
    np.savez(folder / "run.npz", **{n: a[:, 0] if a.shape[1] == 1 else a for n, a in arrays.items()})
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    qxc("run", path, f"-input={folder / 'run.npz'}", "-quiet", "-no-sync", "-o", folder / "ran.npz")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def row(name, path, count, folder, rounds):
    model = onnx.load(path)
    arrays = drawn(model, count)
    one = {n: a[:1] for n, a in arrays.items()}
    runner, own, theirs = session(path, optimize=True), [], []
    for _ in range(rounds):
        own.append((seconds_of_qxc(path, arrays, folder) - seconds_of_qxc(path, one, folder)) / (count - 1))
        start = time.process_time()
        for k in range(count):
            runner.run(None, feed(model, arrays, k))
        theirs.append((time.process_time() - start) / count)
    ratio = statistics.median(a / b for a, b in zip(own, theirs))
    return name, *(f"{1e3 * statistics.median(t):,.3f}" for t in (own, theirs)), f"{ratio:.2f}"


@contextlib.contextmanager
def one_processor():
    """qxc uses all that it may run on."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def interpreter_table(folder, rounds):
    rows = []
    for name, path, count in [*((n, model_path(n, "fp32"), 400) for n in TRAINED),
                              *((n, light(n)[0], 8) for n in (*SMALL, *MEDIUM, *BIG))]:
        with one_processor():
            rows.append(row(name, path, count, folder, rounds))
        print(*rows[-1], file=sys.stderr)
    return table(("model", "qxc run", "onnxruntime", "ratio"), rows)
