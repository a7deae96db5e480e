"""What runs one model, each as a call without arguments: the C of qxc and of emx-onnx-cgen, onnxruntime,
OpenVINO, LiteRT. All take the same float sample and give floats; memory is bound beforehand.

A contender that cannot take a model raises Unavailable with the reason, which the page tells.
"""

import ctypes
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import onnx

from cmodel import FLAGS, CModel
from common import feed, qxc, session

NUMBERS = itertools.count()
PLAIN = ("-O3",)  # what x86-64 has everywhere: SSE2
WEIGHTS = """\
.section .rodata
.global m_weights
.balign 16
m_weights:
.incbin "{path}"
.section .note.GNU-stack,"",@progbits
"""


class Unavailable(Exception):
    pass


class Timed:
    """Something to call, the times it took, in microseconds, and what else is known of it."""

    ROUND = 0.02  # seconds that a round takes about

    def __init__(self, call, result, **facts):
        self.call, self.result, self.facts, self.times = call, result, facts, []
        start = time.perf_counter()
        call()
        self.repeat = max(1, min(1000, int(self.ROUND / (time.perf_counter() - start + 1e-9))))

    def round(self):
        start = time.perf_counter()
        for _ in range(self.repeat):
            self.call()
        self.times.append(1e6 * (time.perf_counter() - start) / self.repeat)

    def median(self):
        return float(np.median(self.times))


def interleave(contenders, rounds):
    for _ in range(rounds):
        for each in contenders:
            each.round()


def sample(one):
    return np.ascontiguousarray(one.test[one.input][0])


# ---- onnxruntime


def onnxruntime(path, one):
    """As a user has it: optimized, one thread, inputs and outputs bound once."""
    runner = session(path, optimize=True)
    model = onnx.load(path)
    binding = runner.io_binding()
    for name, value in feed(model, one.test, 0).items():
        binding.bind_cpu_input(name, value)
    for output in model.graph.output:
        binding.bind_output(output.name)
    return Timed(lambda: runner.run_with_iobinding(binding), lambda: binding.copy_outputs_to_cpu()[0])


# ---- OpenVINO


def openvino(path, one):
    """One thread; floats stay float32 where the processor has bfloat16, too."""
    try:
        import openvino as ov
    except ImportError as e:
        raise Unavailable("openvino is not installed") from e
    core, (value,) = ov.Core(), feed(onnx.load(path), one.test, 0).values()
    model = core.read_model(path)
    model.reshape(list(value.shape))
    compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY",
                                                 "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    request.set_input_tensor(ov.Tensor(value, shared_memory=True))
    made = Timed(request.infer, lambda: request.get_output_tensor().data)
    made.kept = value
    return made


# ---- C of qxc


def compiled(source, flags, one):
    start = time.perf_counter()
    model = CModel(source, "gcc", ("-std=gnu99", *flags))  # plain gcc, which fuses products and sums of floats
    spent = time.perf_counter() - start
    arguments, function = model.arguments([sample(one)]), model.function
    if function(*arguments) != 0:
        raise Unavailable("the function returns an error")
    return Timed(lambda: function(*arguments), lambda: model.results[0], bytes=model.text_size(),
                 arena=model.arena_size, compile=spent)


def qxc_int8(one, folder, flags=FLAGS):
    source = folder / f"{one.name}_int8.c"
    if not source.exists():
        qxc(one.path, "-emit=c", f"-calib={one.calib_file}", "-name=m", "-no-sync", "-quiet", "-o", source)
    made = compiled(source, flags, one)
    made.facts["alive"] = alive(source)
    return made


def alive(source):
    """What tensors alive at one time have, as the header says."""
    text = source.with_suffix(".h").read_text()
    return int(re.search(r"tensors alive at one time have (\d+)", text)[1])


def qxc_float(one, folder, flags=FLAGS):
    """Weights in a file of their own: as C text those of large models take long to compile."""
    source = folder / f"{one.name}_float.c"
    if not source.exists():
        qxc(one.path, "-emit=c", "-weights-file", "-name=m", "-no-sync", "-quiet", "-o", source)
        weights = source.with_suffix(".weights.bin")
        source.with_suffix(".S").write_text(WEIGHTS.format(path=weights))
    return compiled(source, (*flags, source.with_suffix(".S")), one)


# ---- C of emx-onnx-cgen


def emx_program():
    beside = pathlib.Path(sys.executable).with_name("emx-onnx-cgen")
    found = str(beside) if beside.exists() else shutil.which("emx-onnx-cgen")
    if not found:
        raise Unavailable("emx-onnx-cgen is not installed")
    return found


def emx(path, one, folder, flags=FLAGS):
    source = folder / f"{path.stem}_emx.c"
    if not source.exists():
        names = {d.dim_param for i in onnx.load(path).graph.input for d in i.type.tensor_type.shape.dim}
        fixed = [word for name in sorted(names - {""}) for word in ("--input-dim", f"{name}=1")]
        done = subprocess.run([emx_program(), "compile", path, source, "--model-name", "m",
                               "--large-weight-threshold", "0", *fixed], capture_output=True, text=True, check=False)
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise Unavailable(f"emx-onnx-cgen refuses it: {said[-1][:120]}")
    library = source.with_suffix(f".{next(NUMBERS)}.so")
    subprocess.run(["gcc", "-w", *flags, "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    function = ctypes.CDLL(str(library.resolve())).m
    x = sample(one).astype(np.float32)
    y = np.zeros(one.run(one.path)[0].size, np.float32)
    arguments = [ctypes.c_void_p(a.ctypes.data) for a in (x, y)]
    made = Timed(lambda: function(*arguments), lambda: y, bytes=library.stat().st_size)
    made.kept = x
    return made


# ---- LiteRT


def litert(path, one):
    """The QDQ form with int8 activations as a TensorFlow Lite model, with XNNPACK."""
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as e:
        raise Unavailable("ai-edge-litert is not installed") from e
    from tflite import Unsupported, convert
    try:
        content = convert(onnx.load(path))
    except Unsupported as e:
        raise Unavailable(f"no TensorFlow Lite model: {e}") from e
    runner = Interpreter(model_content=content, num_threads=1)
    runner.allocate_tensors()
    (x,), (y,) = runner.get_input_details(), runner.get_output_details()
    value = sample(one).reshape(-1, *sample(one).shape[-3:])
    if sample(one).ndim >= 3 and tuple(x["shape"]) != value.shape:
        value = value.transpose(0, 2, 3, 1)
    runner.set_tensor(x["index"], np.ascontiguousarray(value.reshape(x["shape"]), np.float32))
    return Timed(runner.invoke, lambda: runner.get_tensor(y["index"]))
