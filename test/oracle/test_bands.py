"""Emitted C whose convolutions and pools take turns in bands of rows: the bits of `qxc run`, which computes whole tensors,
in a smaller arena; and what stays whole."""

import re
import subprocess

import numpy as np
from onnx import save

from cmodel import CModel
from common import WARNINGS, OracleCase, compile_c, for_each, qxc, qxc_outputs
from networks import spotter
from test_threads import Picture

FORMS = {"float": ("-keep=*",), "int8": (), "uint8": ("-activations=uint8",), "int4": ("-weights=int4 sym",),
         "single": ("-requant=single",), "int16": ("-activations=int16",)}
SANITIZED = ("-O0", "-g", "-ffp-contract=off", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
NATIVE = {"native": ("gcc", "-march=native", *SANITIZED)}
BUILDS = {**NATIVE, "plain": ("gcc", *SANITIZED), "AVX2": ("gcc", "-mavx2", *SANITIZED),
          "portable": ("gcc", "-U__SSE2__", *SANITIZED), "clang": ("clang-19", "-O2", "-ffp-contract=off"),
          "threads": ("gcc", "-O2", "-fopenmp", "-ffp-contract=off")}

# Arrays as large as they say, at an end of memory that sanitizers watch.
MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    void *arena = NULL;
    IN *in = (IN *)malloc(sizeof(IN) * T_X_COUNT);
    OUT *out = (OUT *)malloc(sizeof(OUT) * OUTPUTS);
    if (posix_memalign(&arena, T_ARENA_ALIGN, T_ARENA_SIZE) || fread(in, sizeof(IN) * T_X_COUNT, 1, stdin) != 1)
        return 2;
    if (t_run(arena, in, out) != T_OK || fwrite(out, sizeof(OUT) * OUTPUTS, 1, stdout) != 1)
        return 3;
    free(out);
    free(in);
    free(arena);
    return 0;
}
"""


def pool_of(op, kernel, strides, **more):
    return lambda net: net.add(op, kernel_shape=list(kernel), strides=list(strides), **more)


def front(conv, pool, channels=3, height=33, width=21, batch=1, between=None):
    """A Conv and a pool, from an input that needs little memory."""
    net = Picture(channels, height, width, batch)
    kernel = conv.pop("kernel", (3, 3))
    net.conv(conv.pop("out", 16), kernel, **{"pads": [k // 2 for k in kernel] * 2, **conv})
    if between:
        net.add(between)
    pool(net)
    return net


TWO = pool_of("MaxPool", (2, 2), (2, 2))
SHAPES = {
    "pool 2x2": lambda: front({}, TWO),
    "squeezenet": lambda: front({"out": 48, "strides": [2, 2], "pads": [0] * 4}, pool_of("MaxPool", (3, 3), (2, 2)), height=51),
    "resnet": lambda: front({"out": 48, "kernel": (7, 7), "strides": [2, 2]},
                            pool_of("MaxPool", (3, 3), (2, 2), pads=[1] * 4), height=55),
    "average": lambda: front({"kernel": (5, 3)}, pool_of("AveragePool", (3, 2), (2, 2), pads=[1, 0, 1, 0])),
    "average, pads count": lambda: front({}, pool_of("AveragePool", (3, 3), (3, 3), pads=[1] * 4, count_include_pad=1)),
    "ceil": lambda: front({}, pool_of("MaxPool", (3, 3), (2, 2), ceil_mode=1), height=34),
    "average, ceil": lambda: front({}, pool_of("AveragePool", (2, 2), (2, 2), ceil_mode=1, count_include_pad=1)),
    "dilated pool": lambda: front({}, pool_of("MaxPool", (2, 2), (2, 1), dilations=[3, 1])),
    "auto_pad": lambda: front({}, pool_of("MaxPool", (3, 3), (2, 2), auto_pad="SAME_UPPER"), height=30),
    "gaps": lambda: front({}, pool_of("MaxPool", (1, 2), (3, 2))),
    "dilated": lambda: front({"dilations": [2, 2], "pads": [2] * 4}, TWO),
    "uneven pads": lambda: front({"pads": [2, 0, 0, 1]}, TWO),
    "groups": lambda: front({"out": 32, "group": 2}, TWO, channels=8),
    "batch": lambda: front({}, pool_of("MaxPool", (3, 3), (2, 2), pads=[1] * 4), batch=3),
    "one column": lambda: front({"kernel": (5, 1)}, pool_of("MaxPool", (4, 1), (4, 1)), channels=4, width=1),
    "a table between": lambda: front({}, TWO, between="Sigmoid"),
    "on top of others": lambda: front({}, TWO).conv(16, (3, 3), pads=[1] * 4),
}
WIDE = ("resnet", "average, pads count", "groups")  # in all forms and builds
CASES = {f"{shape} {form}": (shape, form) for shape in SHAPES for form in FORMS
         if shape in WIDE or form in ("float", "int8")}
BANDS = re.compile(r"(\d+) of its steps run in bands of rows")


def bands(source):
    """How many steps are in bands."""
    told = BANDS.search(source.with_suffix(".h").read_text())
    return int(told[1]) if told else 0


class Bands(OracleCase):
    def emit(self, net, name, *options):
        path, source = self.scratch / f"{name}.onnx", self.scratch / f"{name}.c"
        net.save(path)
        quantized = self.scratch / f"{name}.qir"
        form = [o for o in options if not o.startswith(("-requant", "-max", "-threads"))]
        qxc(path, "-emit=qir", "-quiet", "-calib-random=2", "-o", quantized, *form)
        rest = [o for o in options if o not in form]
        qxc(quantized, "-emit=c", "-name=t", "-quiet", "-o", source, *rest)
        x = np.random.default_rng(3).standard_normal(net.shape).astype(np.float32)
        want, = qxc_outputs(quantized, {"x": x}, self.scratch, "-form=true",
                            *[o for o in rest if o.startswith("-requant")]).values()
        return source, x, want

    def compare(self, source, x, want, builds=BUILDS):
        kinds = {"float32": "float", "int8": "int8_t", "uint8": "uint8_t"}
        text = self.scratch / "main.c"
        text.write_text("#define _POSIX_C_SOURCE 200112L\n" + source.read_text() + MAIN)
        for build, (compiler, *flags) in builds.items():
            with self.subTest(build):
                binary = self.scratch / f"{build}-program"
                compile_c(compiler, "-std=c99", *WARNINGS, *flags, f"-DIN={kinds[x.dtype.name]}",
                          f"-DOUT={kinds[want.dtype.name]}", f"-DOUTPUTS={want.size}", "-o", binary, text, "-lm")
                done = subprocess.run([binary], input=x.tobytes(), capture_output=True, check=False, timeout=300)
                self.assertEqual((b"", 0), (done.stderr, done.returncode))
                self.assertEqual(want.tobytes(), done.stdout)

    @for_each(*CASES)
    def test_bits(self, case):
        shape, form = CASES[case]
        source, x, want = self.emit(SHAPES[shape](), case.replace(" ", "-"), *FORMS[form])
        if form == "int16":
            self.assertEqual(0, bands(source))
        else:
            self.assertGreaterEqual(bands(source), 2)
        self.compare(source, x, want, BUILDS if shape in WIDE and form in ("float", "int8") else NATIVE)

    @for_each("int8", "float", "int4")
    def test_chains(self, form):
        """Layers in a row share bands where -max-arena asks for it: depthwise, strides, dilations, pools in between."""
        net = Picture(3, 49, 25).conv(16, (3, 3), strides=[2, 1], pads=[1] * 4).conv(16, (3, 3), group=16, pads=[1] * 4)
        net.conv(24, (1, 1)).conv(24, (3, 3), group=24, strides=[2, 2], pads=[0, 1, 2, 0]).conv(16, (1, 1))
        net.add("MaxPool", kernel_shape=[3, 3], pads=[1] * 4).conv(8, (3, 3), dilations=[2, 1], pads=[2, 1, 2, 1])
        source, *_ = self.emit(net, f"free-{form}", *FORMS[form])
        arena = CModel(source).arena_size
        source, x, want = self.emit(net, f"chains-{form}", *FORMS[form], f"-max-arena={2 * arena // 3}")
        self.assertLessEqual(CModel(source).arena_size, 2 * arena // 3)
        self.assertGreaterEqual(bands(source), 4)
        self.compare(source, x, want, NATIVE if form == "int4" else BUILDS)

    def test_spotter(self):
        """A third of the memory: the result of the first Conv alone has 31,360 bytes."""
        model, spectrograms = spotter()
        save(model, self.scratch / "spotter.onnx")
        np.savez(self.scratch / "calib.npz", **spectrograms(4, 1))
        source = self.scratch / "spotter.c"
        for options in ((), ("-io-in-arena",), ("-weights=int4 sym",)):
            qxc(self.scratch / "spotter.onnx", f"-calib={self.scratch / 'calib.npz'}", "-emit=c", "-quiet", "-o", source, *options)
            self.assertEqual(2, bands(source))
            self.assertLessEqual(CModel(source).arena_size, 9920)

    def test_shared_out(self):
        """A step that threads share stays whole; one that is a kernel of others does, too."""
        net = Picture(3, 96, 96).conv(32, (3, 3), pads=[1] * 4)
        source, x, want = self.emit(TWO(net), "threads", "-threads=2")
        self.assertIn("T_PARALLEL", source.read_text())
        self.assertEqual(0, bands(source))
        self.compare(source, x, want, {"threads": BUILDS["threads"]})
        kernels = self.scratch / "own.kernels"
        kernels.write_text('kernels "own"\ncall own_conv for conv2d_nhwc_q\n')
        qxc(self.scratch / "threads.qir", "-emit=c", "-name=t", "-quiet", f"-kernels={kernels}", "-o", source)
        self.assertIn("own_conv(", source.read_text())
        self.assertEqual(0, bands(source))
