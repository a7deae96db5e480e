"""Emitted C whose steps fall into parts (-threads): the bits of C that has none, in whatever order the parts run."""

import re
import subprocess

import numpy as np
from onnx import TensorProto, helper, load, numpy_helper, save

from cmodel import CModel
from common import WARNINGS, OracleCase, compile_c, for_each, qxc

rng = np.random.default_rng(21)


def weights(*shape):
    return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


class Picture:
    """A model of one picture, layer behind layer."""

    def __init__(self, channels, height, width, batch=1):
        self.nodes, self.constants, self.channels = [], [], channels
        self.shape, self.last = [batch, channels, height, width], "x"

    def add(self, op, *constants, more=(), **attributes):
        names = [f"{op}{len(self.nodes)}_{i}" for i in range(len(constants))]
        self.constants += [numpy_helper.from_array(c, n) for c, n in zip(constants, names, strict=True)]
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [self.last, *names, *more], [out], out, **attributes))
        self.last = out
        return self

    def conv(self, out, kernel, group=1, **attributes):
        self.add("Conv", weights(out, self.channels // group, *kernel), weights(out, 4)[:, 0].copy(), group=group,
                 **attributes)
        self.channels = out
        return self.add("Relu")

    def save(self, path):
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None)], self.constants)
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        return path


def windows():
    """Pads that only the first and the last part have, strides, dilations, channels alone, pools."""
    net = Picture(3, 61, 37)
    net.conv(24, (5, 3), pads=[2, 1, 2, 1], strides=[2, 1])
    net.conv(24, (3, 3), group=24, pads=[1, 1, 1, 1]).conv(32, (1, 1))
    net.conv(32, (3, 3), pads=[3, 2, 1, 2], dilations=[2, 2]).add("MaxPool", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    net.conv(64, (3, 3), group=4, pads=[1, 1, 1, 1])
    net.add("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    branch = net.last
    net.conv(64, (3, 3), pads=[1, 1, 1, 1])
    return net.add("Add", more=[branch])


def rows():
    """A layer of many columns, which one row shares out, and behind it some with many rows."""
    net = Picture(8, 7, 7)
    net.add("Flatten").add("Gemm", weights(1000, 392), weights(1000, 4)[:, 0].copy(), transB=1)
    net.add("Relu").add("Reshape", np.array([40, 25], np.int64)).add("MatMul", weights(25, 300))
    return net.add("MatMul", weights(300, 33))


def pictures():
    """Several pictures at once: a part has some of them."""
    return Picture(16, 20, 20, batch=3).conv(32, (3, 3), pads=[1, 1, 1, 1]).conv(32, (3, 3), group=32)


def elements():
    """Two and three operands that are mapped element by element, one of them the same for a row or for all channels."""
    net = Picture(4, 370, 290).add("Sigmoid")
    bent = net.last
    net.add("Sub", more=["x"]).add("Mul", weights(1, 4, 1, 1)).add("Max", more=[bent])
    row, most = np.float32(rng.random((290,)) + 0.5), net.last
    net.add("Div", row).add("Greater", more=[bent])
    net.nodes.append(helper.make_node("Where", [net.last, most, bent], ["chosen"], "chosen"))
    net.last = "chosen"
    return net


MODELS = {"windows": windows, "rows": rows, "pictures": pictures, "elements": elements}
FORMS = {"float": ("-keep=*",), "int8": (), "uint8": ("-activations=uint8",), "int4": ("-weights=int4 sym",),
         "integers": ("-integer-only", "-requant=single")}
CASES = {f"{model} {form}": (model, form) for model in MODELS for form in FORMS if model != "elements" or form in ("float", "int8")}

# The last part first, and parts that threads make.
BACKWARDS = "#define T_PARALLEL(fn, c, n) do { for (int32_t i = (n); i > 0; i--) fn(c, i - 1); } while (0)\n"
HOOK = r"""
#include <pthread.h>
#include <stdint.h>
typedef struct { void (*fn)(const void *, int32_t); const void *context; int32_t part; } job;
static void *one_part(void *p) {
    const job *j = (const job *)p;
    j->fn(j->context, j->part);
    return 0;
}
static void in_threads(void (*fn)(const void *, int32_t), const void *context, int32_t parts) {
    pthread_t threads[64];
    job jobs[64];
    int32_t i;
    for (i = 0; i < parts; i++) {
        job j = {fn, context, i};
        jobs[i] = j;
        pthread_create(&threads[i], 0, one_part, &jobs[i]);
    }
    for (i = 0; i < parts; i++)
        pthread_join(threads[i], 0);
}
#define T_PARALLEL in_threads
"""
MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    void *arena = NULL;
    static IN in[T_X_COUNT];
    static OUT out[OUTPUTS];
    if (posix_memalign(&arena, T_ARENA_ALIGN, T_ARENA_SIZE) || fread(in, sizeof in, 1, stdin) != 1)
        return 2;
    if (t_run(arena, in, out) != T_OK || fwrite(out, sizeof out, 1, stdout) != 1)
        return 3;
    free(arena);
    return 0;
}
"""
BUILDS = {
    "gcc": ("gcc", "-O2", ""), "native": ("gcc", "-O3 -march=native", ""), "openmp": ("gcc", "-O2 -mavx2 -fopenmp", ""),
    "backwards": ("gcc", "-O0 -g -fsanitize=address,undefined -fno-sanitize-recover", BACKWARDS),
    "races": ("gcc", "-O0 -g -march=native -fsanitize=thread -pthread", HOOK), "clang": ("clang-19", "-O2", BACKWARDS)}


class Threads(OracleCase):
    def emit(self, model, form, *more):
        """The C without parts, run; the text of the C that has some."""
        path = self.scratch / f"{model}.onnx"
        if not path.exists():
            MODELS[model]().save(path)
        options = ["-emit=c", "-name=t", "-calib-random=4", "-quiet", *FORMS[form]]
        whole = self.scratch / f"{model}-{form}-whole.c"
        parted = self.scratch / f"{model}-{form}-parted.c"
        qxc(path, "-o", whole, *options)
        qxc(path, "-o", parted, "-threads=3", *options, *more)
        program = CModel(whole, flags=("-O2", "-march=native"))
        (_, kind, count), = program.inputs
        x = rng.standard_normal(count).astype(np.float32)
        x = x if kind == np.float32 else np.clip(x * 40, -128, 127).astype(kind)
        return program, x, parted

    @for_each(*CASES)
    def test_bits(self, case):
        program, x, parted = self.emit(*CASES[case])
        want = program.run(x)[0].tobytes()
        text = parted.read_text()
        self.assertIn("T_PARALLEL(qk_part_", text)
        names = {np.float32: "float", np.int8: "int8_t", np.uint8: "uint8_t"}
        macros = [f"-DIN={names[program.inputs[0][1]]}", f"-DOUT={names[program.outputs[0][1]]}",
                  f"-DOUTPUTS={program.outputs[0][2]}"]
        form = CASES[case][1]
        for build, (compiler, flags, hook) in BUILDS.items():
            if form in ("uint8", "int4") and build not in ("races", "backwards"):
                continue  # what the compiler makes of such kernels is the same with parts and without
            with self.subTest(build):
                source = self.scratch / f"{build}.c"
                source.write_text("#define _POSIX_C_SOURCE 200112L\n" + hook + text + MAIN)
                binary = self.scratch / f"{build}-program"
                compile_c(compiler, "-std=c99", *WARNINGS, *flags.split(), *macros, "-o", binary, source, "-lm")
                done = subprocess.run([binary], input=x.tobytes(), capture_output=True, check=False, timeout=300)
                if b"unexpected memory mapping" in done.stderr:
                    continue  # ThreadSanitizer does not run here
                self.assertEqual((b"", 0), (done.stderr, done.returncode))
                self.assertEqual(want, done.stdout)

    def test_parts_are_needed(self):
        """Each part counts: without the last one, the result is another."""
        program, x, parted = self.emit("windows", "int8")
        skipped = self.scratch / "skipped.c"
        calls = re.sub(r"#define T_PARALLEL.*", r"#define T_PARALLEL(fn, c, n) qk_parallel(fn, c, (n) - 1)", parted.read_text())
        skipped.write_text(calls)
        skipped.with_suffix(".h").write_text(parted.with_suffix(".h").read_text())
        self.assertNotEqual(program.run(x)[0].tobytes(), CModel(skipped).run(x)[0].tobytes())

    def test_names_of_ports(self):
        """An input and an output that are called as the parameters of a thread's function are."""
        path = self.scratch / "names.onnx"
        net = Picture(3, 61, 37).conv(24, (5, 3), pads=[2, 1, 2, 1])
        net.nodes[0].input[0], net.nodes[-1].output[0], net.last = "context", "part", "part"
        loaded = load(net.save(path))
        loaded.graph.input[0].name = "context"
        save(loaded, path)
        qxc(path, "-keep=*", "-emit=c", "-name=t", "-threads=3", "-quiet", "-o", self.scratch / "names.c")
        done = CModel(self.scratch / "names.c")
        self.assertEqual(["context", "part"], [done.inputs[0][0], done.outputs[0][0]])

    def test_weights_file(self):
        program, x, parted = self.emit("windows", "int8", "-weights-file")
        blob = self.scratch / "weights.S"
        binary = parted.with_suffix(".weights.bin")
        blob.write_text(f'.section .rodata\n.global t_weights\n.balign 16\nt_weights:\n.incbin "{binary}"\n'
                        '.section .note.GNU-stack,"",%progbits\n')
        made = self.scratch / "with-weights.so"
        compile_c("gcc", "-std=c99", "-O2", "-shared", "-fPIC", "-o", made, parted, blob, "-lm")
        self.assertEqual(program.run(x)[0].tobytes(), CModel(parted, library_path=made).run(x)[0].tobytes())
