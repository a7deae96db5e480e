"""Emitted C of models in which a run tells lengths (-max-elements): built under sanitizers, run in a process of its own, and
compared with `qxc run`, which makes a program for each length."""

import re
import shutil
import subprocess

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cmodel import KINDS
from common import OracleCase, qxc

F, I, B, U8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.UINT8
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
SANITIZERS = ("-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def const(name, value, kind=np.int64):
    return numpy_helper.from_array(np.asarray(value, kind), name)


def model(nodes, inputs, outputs, constants=(), opset=17):
    def info(values):
        return [helper.make_tensor_value_info(*v) for v in values]
    graph = helper.make_graph(nodes, "g", info(inputs), info(outputs), list(constants))
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])


MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "HEADER"
int main(void) {
    static void *arena, *p[32];
    arena = aligned_alloc(16, M_ARENA_SIZE ? M_ARENA_SIZE : 16);
    memset(arena, 0xa5, M_ARENA_SIZE);
    ALLOCATE
    for (;;) {
        READ
        int status = m_run(arenaARGUMENTS);
        fwrite(&status, sizeof status, 1, stdout);
        WRITE
    }
}
"""


class Emitted:
    """PREFIX_run in a process of its own, whose buffers are of exactly the stated size and are used again."""

    def __init__(self, folder, made, *options):
        path = folder / "m.onnx"
        onnx.save(made, path)
        qxc(path, "-emit=c", "-name=m", *options, "-quiet", "-o", folder / "m.c")
        header = (folder / "m.h").read_text()
        self.text = (folder / "m.c").read_text()
        parameters = re.search(r"\bint\s+m_run\s*\(([^;]*)\)\s*;", header)[1].split(",")[1:]
        self.ports, put = [], {"ALLOCATE": "", "READ": "", "WRITE": "", "ARGUMENTS": ""}
        for i, parameter in enumerate(parameters):
            given, kind, name, count = re.fullmatch(r"\s*(const\s+)?(\w+)\s+(\w+)\s*\[(\d+)\]\s*", parameter).groups()
            self.ports.append((bool(given), name, KINDS[kind], int(count)))
            size = f"{count} * sizeof({kind})"
            put["ALLOCATE"] += f"p[{i}] = malloc({size}); memset(p[{i}], 0x5a, {size});\n    "
            put["READ" if given else "WRITE"] += (
                f"if (fread(p[{i}], {size}, 1, stdin) != 1) return 0;\n        " if given else
                f"fwrite(p[{i}], {size}, 1, stdout);\n        ")
            put["ARGUMENTS"] += f", p[{i}]"
        main = MAIN.replace("HEADER", "m.h")
        for word, text in put.items():
            main = main.replace(word, text)
        (folder / "main.c").write_text(main)
        self.program = folder / "m"
        clang = shutil.which("clang") or shutil.which("clang-19")
        if clang:
            subprocess.run([clang, *WARNINGS, "-fsyntax-only", folder / "m.c"], check=True)
        subprocess.run(["gcc", *WARNINGS, *SANITIZERS, "-c", "-o", folder / "m.o", folder / "m.c"], check=True)
        subprocess.run(["gcc", "-std=c11", *SANITIZERS, "-o", self.program, folder / "m.o", folder / "main.c", "-lm"],
                       check=True)

    def run(self, feeds):
        """Of each feed the status, and the outputs by name, flat."""
        def sent_of(array, kind):
            return np.ascontiguousarray(array).astype(kind).tobytes() or bytes(np.dtype(kind).itemsize)  # C has no arrays of 0

        sent = b"".join(sent_of(feed[name], kind)
                        for feed in feeds for given, name, kind, _ in self.ports if given)
        done = subprocess.run([self.program], input=sent, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        answers, at = [], 0
        for _ in feeds:
            status, outputs = int(np.frombuffer(done.stdout, np.int32, 1, at)[0]), {}
            at += 4
            for given, name, kind, count in self.ports:
                if not given:
                    outputs[name] = np.frombuffer(done.stdout, kind, count, at)
                    at += outputs[name].nbytes
            answers.append((status, outputs))
        assert at == len(done.stdout)
        return answers


OK, ERROR_LENGTH = 0, 5


class BoundedCase(OracleCase):
    def check(self, made, bounds, feeds, statuses=None, told=True):
        """C gives the bits that `qxc run` gives, zeros behind them, and the length. What C refuses `run` does, too: with `told` in
        words about the bound, with None perhaps."""
        folder = self.scratch
        options = [f"-max-elements={b}" for b in bounds]
        emitted = Emitted(folder, made, *options)
        x, y = folder / "x.npz", folder / "y.npz"
        for i, (feed, (status, have)) in enumerate(zip(feeds, emitted.run(feeds))):
            expected = statuses[i] if statuses else OK
            with self.subTest(feed=i):
                self.assertEqual(status, expected)
                np.savez(x, **feed)
                if status != OK and told is None:
                    continue
                if status != OK:
                    said = qxc("run", folder / "m.onnx", f"-input={x}", "-batch=none", "-quiet", *options, "-o", y, ok=False)
                    self.assertEqual(said.returncode, 1)
                    if told:
                        self.assertIn("-max-elements allows", said.stderr)
                    continue
                qxc("run", folder / "m.onnx", f"-input={x}", "-batch=none", "-quiet", *options, "-o", y)
                self.same(dict(np.load(y)), have)
        return emitted

    def same(self, want, have):
        for name, value in want.items():
            flat = have[name].view(np.uint8 if value.dtype == bool else have[name].dtype)
            n = value.size
            self.assertEqual(value.tobytes(), flat[:n].astype(value.dtype).tobytes(), name)
            self.assertFalse(flat[n:].view(np.uint8).any(), f"{name}: what is behind it")
            if f"{name}_count" in have:
                self.assertIn(have[f"{name}_count"][0], value.shape)
