"""Runs models once each, in Python on Arm64, which QEMU plays: `aarch64_runner.py JOBS RESULTS`. JOBS is JSON, [[runtime, model,
samples.npz], ...]; RESULTS gets the first output of each as .npz.

The plugin tells the instructions so far at each sched_yield. The first two stand around nothing, then two around each
model's second run.
"""

import json
import os
import sys

import numpy as np


def onnxruntime(path, feeds):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, value)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    return lambda: session.run_with_iobinding(binding), lambda: binding.copy_outputs_to_cpu()[0]


def litert(path, feeds):
    from ai_edge_litert.interpreter import Interpreter
    runner = Interpreter(model_path=path, num_threads=1)
    runner.allocate_tensors()
    (x,), (y,) = runner.get_input_details(), runner.get_output_details()
    runner.set_tensor(x["index"], next(iter(feeds.values())))
    return runner.invoke, lambda: runner.get_tensor(y["index"])


def counted(call):
    os.sched_yield()
    call()
    os.sched_yield()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        jobs = json.load(file)
    counted(lambda: None)
    results = {}
    for i, (runtime, path, data) in enumerate(jobs):
        with np.load(data) as arrays:
            call, result = {"onnxruntime": onnxruntime, "LiteRT": litert}[runtime](path, dict(arrays))
        call()
        counted(call)
        results[f"r{i}"] = result()
    np.savez(sys.argv[2], **results)


main()
