#!/usr/bin/env python3
"""The speed of .qir text beside that of onnx's own, on models that both can say, and on a quantized
one that only .qir can. For a look: test/bench/qir_speed.sh; for docs/benchmarks.md: tools/bench.py.

The program build/qir_speed measures .qir, this one onnx.printer and onnx.parser, in turn. Both count
processor time, leave files out of it, and run often enough that the memory they take was used before.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("BUILD", "build")).resolve()


def finished(nodes, shape, results, weights):
    graph = helper.make_graph(
        nodes, "main", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in results], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def chain():
    """100,000 nodes as an exporter names them: residual blocks of convolutions. Their names are
    words, since onnx.parser does not read others."""
    weights = [numpy_helper.from_array(np.linspace(-1, 1, 36, dtype=np.float32).reshape(2, 2, 3, 3), "weight"),
               numpy_helper.from_array(np.float32([0.25, -3]), "bias")]
    nodes, last = [], "x"
    for i in range(25000):
        conv, relu, pool, add = (f"layers_{i}_{op}_output_0" for op in ("Conv", "Relu", "MaxPool", "Add"))
        nodes += [
            helper.make_node("Conv", [last, "weight", "bias"], [conv], name=f"layers_{i}_Conv", dilations=[1, 1],
                             group=1, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]),
            helper.make_node("Relu", [conv], [relu], name=f"layers_{i}_Relu"),
            helper.make_node("MaxPool", [relu], [pool], name=f"layers_{i}_MaxPool", ceil_mode=0,
                             kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]),
            helper.make_node("Add", [last, pool], [add], name=f"layers_{i}_Add")]
        last = add
    return finished(nodes, ["N", 2, 56, 56], [last], weights)


def constants(dtype):
    """A million numbers that stand in the text."""
    random = np.random.default_rng(1)
    data = random.integers(-128, 128, 1000000) if dtype == np.int8 else random.normal(0, 0.1, 1000000)
    nodes = [helper.make_node("Cast", ["w"], ["f"], to=TensorProto.FLOAT), helper.make_node("Add", ["x", "f"], ["y"])]
    return finished(nodes, [1000000], ["y"], [numpy_helper.from_array(data.astype(dtype), "w")])


MODELS = {"100,000 nodes": chain, "1M int8": lambda: constants(np.int8), "1M float": lambda: constants(np.float32)}


def measure(*arguments):
    """Bytes and milliseconds of reading and of printing, and the peak of memory."""
    said = subprocess.run([BUILD / "qir_speed", *map(str, arguments)], check=True, capture_output=True,
                          text=True).stdout
    read, printed = re.findall(r"\((\d+) bytes, best .* ms, median (.*) ms\)", said)
    return [(int(n), float(ms)) for n, ms in (read, printed)] + [int(re.search(r"peak +(\d+)", said)[1])]


def spent(call):
    start = time.process_time()
    result = call()
    return 1e3 * (time.process_time() - start), result


def parsed(text):
    """True when onnx.parser reads what onnx.printer wrote."""
    try:
        onnx.parser.parse_model(text)
    except onnx.parser.ParseError as error:
        print(f"onnx.parser: {str(error).splitlines()[0]}", file=sys.stderr)
        return False
    return True


def of_both(proto, folder, rounds):
    """Sizes, and the medians of reading and printing, of .qir and of onnx's text."""
    model, qir = folder / "text.onnx", folder / "text.qir"
    onnx.save(proto, model)
    with open(qir, "wb") as out:  # to a file of its own it would put the large constants beside the text
        subprocess.run([BUILD / "qxc", model], check=True, stdout=out)
    times = []
    for _ in range(rounds):
        (size, read), (_, printed), peak = measure(qir, 3)
        print_onnx, text = spent(lambda: onnx.printer.to_text(proto))
        parse_onnx, ok = spent(lambda: parsed(text))
        times.append((read, printed, parse_onnx if ok else np.nan, print_onnx))
    return size, peak, len(text), np.median(times, axis=0)


def text_rows(folder, rounds):
    """Rows of a table: model, what is done, and of .qir and of onnx's text each MB, ms and MB/s; the
    ratio of the milliseconds, and the memory that .qir took by the size of the text."""
    rows = []
    for name, make in MODELS.items():
        size, peak, size_onnx, times = of_both(make(), folder, rounds)
        for what, ms, onnx_ms in (("read", times[0], times[2]), ("print", times[1], times[3])):
            rows.append((name, what, *speed(size, ms), *speed(size_onnx, onnx_ms), f"{onnx_ms / ms:.1f}",
                         f"{peak / size:.1f}" if what == "read" else ""))
    read, printed, peak = measure()
    rows.append(("quantized", "read", *speed(*read), "", "", "", "", f"{peak / read[0]:.1f}"))
    rows.append(("quantized", "print", *speed(*printed), "", "", "", "", ""))
    return rows


def speed(size, ms):
    return f"{size / 1e6:.1f}", f"{ms:.1f}", f"{size / ms / 1e3:.1f}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="text-", dir=BUILD) as scratch:
        for row in text_rows(pathlib.Path(scratch), 3):
            print(" | ".join(row))
