"""Emitted C computes, bit for bit, what `qxc run` computes, and compiles everywhere without a warning.

Each int8 model runs on 100 structured inputs in one driver program per compiler; between them the
inputs reach at least half of the classes. Float models must agree within rounding.
"""

import re
import subprocess

import numpy as np

from common import WARNINGS, OracleCase, compile_c, ends, float_excess, for_each, for_each_model, model_path, qxc, qxc_outputs
from inputs import float_inputs, int8_inputs

BUILDS = {
    "gcc-O0": ["gcc", "-std=c99", "-O0"],
    "gcc-O3": ["gcc", "-std=c99", "-O3", "-march=native"],
    "gcc-AVX2": ["gcc", "-std=c99", "-O2", "-mavx2"],
    "gcc-portable": ["gcc", "-std=c99", "-O2", "-U__SSE2__"],
    "gcc-integer-only": ["gcc", "-std=c99", "-O2", "-mavx2", "-DQXC_INTEGER_ONLY"],
    "clang": ["clang-19", "-std=c99", "-O2"],
    "clang-native": ["clang-19", "-std=c99", "-O2", "-march=native"],
    "sanitized": ["gcc", "-std=c99", "-O1", "-g", "-fsanitize=address,undefined",
                  "-fno-sanitize-recover=all"],
}
CXX = {"g++": ["g++", "-x", "c++", "-std=c++17"],
       "clang++": ["clang++-19", "-x", "c++", "-std=c++17"]}

# Reads samples from a file, writes outputs to another. The arena is exactly as large as it has to
# be, so that the sanitizer sees an access past its end.
DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include "model.h"

int main(int argc, char **argv) {
    static IN_TYPE in[IN_COUNT];
    static OUT_TYPE out[OUT_COUNT];
    FILE *from = argc > 1 ? fopen(argv[1], "rb") : NULL, *to = argc > 2 ? fopen(argv[2], "wb") : NULL;
    void *arena = NULL;
    if (!from || !to || posix_memalign(&arena, M_ARENA_ALIGN, m_arena_size + !m_arena_size))
        return 2;
    if (m_run(NULL, in, out) != M_ERROR_NULL || m_run((char *)arena + 1, in, out) != M_ERROR_ALIGNMENT)
        return 3;
    while (fread(in, sizeof in, 1, from) == 1) {
        if (m_run(arena, in, out) != M_OK)
            return 4;
        fwrite(out, sizeof out, 1, to);
    }
    free(arena);
    return fclose(to) != 0;
}
"""


def emit(model, folder, *options):
    qxc(model, "-emit=c", "-name=m", "-no-sync", "-o", folder / "model.c", *options)
    return (folder / "model.c").read_text(), (folder / "model.h").read_text()


def compile_model(folder, build):
    """Only the model has to be free of warnings under -std=c99; the driver uses POSIX."""
    compile_c(*BUILDS[build], *WARNINGS, "-c", "-o", folder / "model.o", folder / "model.c")
    driver = [o for o in BUILDS[build] if not o.startswith("-std")]
    compile_c(*driver, "-I", folder, "-o", folder / build, folder / "driver.c",
              folder / "model.o", "-lm")


def port(header, name):
    kind, count = re.search(r"(\w+) %s\[(\d+)\]" % name, header).groups()
    return kind, int(count)


def write_driver(folder, header, source, result):
    (in_kind, in_count), (out_kind, out_count) = port(header, source), port(header, result)
    text = DRIVER
    for name, value in (("IN_TYPE", in_kind), ("IN_COUNT", in_count),
                        ("OUT_TYPE", out_kind), ("OUT_COUNT", out_count)):
        text = re.sub(rf"\b{name}\b", str(value), text)
    (folder / "driver.c").write_text(text)


def run_driver(folder, build, samples, dtype):
    samples.tofile(folder / "in.bin")
    subprocess.run([folder / build, folder / "in.bin", folder / "out.bin"], check=True)
    return np.fromfile(folder / "out.bin", dtype).reshape(len(samples), -1)


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


class EmittedC(OracleCase):
    expected_seconds = 4

    def folder(self, name):
        path = self.scratch / name
        path.mkdir(exist_ok=True)
        return path

    def classes_reached(self, outputs):
        reached = len(set(np.argmax(outputs, axis=1)))
        self.assertGreaterEqual(2 * reached, outputs.shape[1], "inputs reach too few classes")

    @for_each_model()
    def test_integer_model(self, name):
        """Every build of each int8 model on 100 inputs."""
        model = model_path(name, "int8_qdq")
        folder = self.folder(name)
        samples, classes = int8_inputs(name)
        (key, expected), = qxc_outputs(model, {ends(model)[0]: samples}, folder).items()
        expected = expected.reshape(len(samples), -1)
        self.assertGreater(len(np.unique(expected)), 1, key)
        if classes is not None:
            self.classes_reached(expected)
        _, header = emit(model, folder, "-io=quant")
        write_driver(folder, header, *ends(model))
        for build in BUILDS:
            with self.subTest(build=build):
                compile_model(folder, build)
                got = run_driver(folder, build, samples, expected.dtype)
                np.testing.assert_array_equal(got, expected)

    @for_each_model()
    def test_float_model(self, name):
        model = model_path(name, "fp32")
        folder = self.folder(name)
        samples = float_inputs(name, 8, seed=11)
        (_, expected), = qxc_outputs(model, {ends(model)[0]: samples}, folder).items()
        _, header = emit(model, folder)
        write_driver(folder, header, *ends(model))
        compile_model(folder, "gcc-O3")
        got = run_driver(folder, "gcc-O3", samples, np.float32)
        self.assertLessEqual(float_excess(got, expected.reshape(len(samples), -1)), 0)

    @for_each_model()
    def test_compiles_as_cxx(self, name):
        folder = self.folder("cxx")
        for kind in ("fp32", "int8_qdq"):
            emit(model_path(name, kind), folder)
            for compiler, command in CXX.items():
                with self.subTest(model=f"{name}_{kind}", compiler=compiler):
                    compile_c(*command, *WARNINGS, "-c", "-o", folder / "model.o",
                              folder / "model.c")

    @for_each("single", "double")
    def test_fixed_point_compiles(self, how):
        """Each processor's vectors, C and C++, without a warning."""
        folder = self.folder(how)
        emit(model_path("relu6", "int8_qdq"), folder, f"-requant={how}")
        for build, command in (BUILDS | CXX).items():
            with self.subTest(build=build):
                compile_c(*command, *WARNINGS, "-c", "-o", folder / "model.o", folder / "model.c")

    @for_each_model()
    def test_integer_only_has_no_float(self, name):
        """-integer-only keeps its word for each of the models."""
        folder = self.folder("integer")
        qxc(model_path(name, "int8_qdq"), "-emit=c", "-name=m", "-integer-only", "-no-sync", "-o", folder / "model.c")
        for file in ("model.c", "model.h"):
            code = without_comments((folder / file).read_text())
            self.assertIsNone(re.search(r"\b(float|double)\b|\d\.\d|math\.h", code), file)

    def test_nothing_static_is_written(self):
        folder = self.folder("static")
        emit(model_path("cnn", "int8_qdq"), folder)
        subprocess.run(["gcc", "-std=c99", "-O1", "-c", "-o", folder / "model.o", folder / "model.c"],
                       check=True)
        done = subprocess.run(["nm", folder / "model.o"], capture_output=True, text=True, check=True)
        kinds = {line.split()[-2] for line in done.stdout.splitlines()}
        self.assertLessEqual(kinds, set("rRtTUN"), done.stdout)

    def test_one_file_on_stdout(self):
        folder = self.folder("stdout")
        text = qxc(model_path("relu6", "int8_qdq"), "-emit=c").stdout
        (folder / "one.c").write_text(text)
        subprocess.run(["gcc", "-std=c99", *WARNINGS, "-c", "-o", folder / "one.o", folder / "one.c"],
                       check=True)

    def test_helper_macros(self):
        """QUANTIZE and DEQUANTIZE of the header against the ONNX definition, ties and NaN included."""
        folder = self.folder("macros")
        _, header = emit(model_path("relu6", "int8_qdq"), folder, "-io=quant")
        scale = np.float32(re.search(r"M_IMAGE_SCALE (\S+)f", header)[1])
        zero = int(re.search(r"M_IMAGE_ZERO_POINT \((\S+)\)\n", header)[1])
        steps = np.arange(-600, 600, dtype=np.float32) / 2
        x = np.concatenate([steps * scale, np.float32([np.inf, -np.inf, np.nan, 1e30, -1e-30])])
        x.astype(np.float32).tofile(folder / "x.bin")
        (folder / "m.c").write_text("""
            #include <stdio.h>
            #include "model.h"
            int main(int argc, char **argv) {
                float x;
                FILE *f = fopen(argv[argc - 1], "rb");
                while (f && fread(&x, sizeof x, 1, f) == 1)
                    printf("%d\\n", M_IMAGE_QUANTIZE(x));
                for (int q = -128; q < 128; q++)
                    printf("%.9g\\n", (double)M_IMAGE_DEQUANTIZE(q));
                return !f;
            }\n""")
        for flags in (["gcc", "-O0"], ["gcc", "-O3"], ["clang-19", "-O2"]):
            compile_c(*flags, "-std=c99", *WARNINGS, "-o", folder / "m", folder / "m.c")
            done = subprocess.run([folder / "m", folder / "x.bin"], capture_output=True, text=True,
                                  check=True)
            got = done.stdout.split()
            with np.errstate(invalid="ignore"):
                want = np.clip(np.rint(x / scale) + zero, -128, 127)
            want[np.isnan(want)] = -128
            np.testing.assert_array_equal(np.array(got[:len(x)], int), want.astype(int))
            want = (np.arange(-128, 128) - zero).astype(np.float32) * scale
            np.testing.assert_array_equal(np.array(got[len(x):], np.float32), want)

    def test_helper_macros_of_reordered_sums(self):
        """QUANTIZE rounds ties to even where the compiler may reorder sums of floats, too; the scale
        is a power of two, so that dividing by it is exact in any order."""
        folder = self.folder("macros-fast")
        (folder / "in.qir").write_text("""qir 1
            import "" 17
            model <ir_version=8>
            graph @g (%x : int16q<0.25, -7>[1]) -> (%y) {
              %y : int16q<0.25, -7>[1] = Relu(%x)
            }\n""")
        emit(folder / "in.qir", folder, "-io=quant")
        (folder / "m.c").write_text("""
            #include <stdio.h>
            #include "model.h"
            int main(void) {
                for (int i = -140000; i < 140000; i++)
                    printf("%d\\n", M_X_QUANTIZE((float)i * 0.0625f));
                return 0;
            }\n""")
        want = np.clip(np.rint(np.arange(-140000, 140000) / 4) - 7, -32768, 32767)
        for flags in (["gcc", "-O2"], ["gcc", "-O3", "-march=native"], ["clang-19", "-O2"]):
            compile_c(*flags, "-ffast-math", "-std=c99", *WARNINGS, "-o", folder / "m", folder / "m.c")
            done = subprocess.run([folder / "m"], capture_output=True, text=True, check=True)
            np.testing.assert_array_equal(np.array(done.stdout.split(), int), want)

    def test_lists_of_parameters(self):
        """Inputs and outputs with several scales have them in the header, as lists for arrays."""
        folder = self.folder("lists")
        scales = np.float32([0.1, 0.25, 0.3, 1e-30, 7, 3, 2])
        zeros = [1, -2, 3, 127, -128, 0, 0]
        listed = ", ".join(map(str, scales)), ", ".join(map(str, zeros))
        (folder / "in.qir").write_text("""qir 1
            import "" 17
            model <ir_version=8>
            graph @g (%%x : int8q<[%s], [%s], axis=1>[2,7]) -> (%%y) {
              %%y : int8q<[%s], [%s], axis=0>[7,2] = Transpose(%%x)
            }\n""" % (listed * 2))
        (folder / "m.c").write_text("""
            #include <math.h>
            #include <stdio.h>
            #include "model.h"
            static const int z[] = M_X_ZERO_POINTS, zy[M_Y_SCALE_COUNT] = M_Y_ZERO_POINTS;
            #ifdef M_X_SCALES
            static const float s[] = M_X_SCALES;
            #else
            static const long m[] = M_X_SCALE_MANTISSAS;
            static const int e[] = M_X_SCALE_EXPONENTS;
            #endif
            int main(void) {
                for (int i = 0; i < M_X_SCALE_COUNT; i++) {
            #ifdef M_X_SCALES
                    printf("%.9g %d %d\\n", (double)s[i], z[i], zy[i]);
            #else
                    printf("%.9g %d %d\\n", ldexp((double)m[i], e[i]), z[i], zy[i]);
            #endif
                }
                return 0;
            }\n""")
        for options in ((), ("-integer-only",)):
            emit(folder / "in.qir", folder, *options)
            compile_c("gcc", "-std=c99", *WARNINGS, "-o", folder / "m", folder / "m.c", "-lm")
            done = subprocess.run([folder / "m"], capture_output=True, text=True, check=True)
            got = np.array(done.stdout.split(), np.float64).reshape(-1, 3)
            np.testing.assert_array_equal(got[:, 0].astype(np.float32), scales)
            np.testing.assert_array_equal(got[:, 1:], np.stack([zeros, zeros], 1))

    def test_testbench(self):
        """The embedded main() passes; it fails once an expected number is changed."""
        folder = self.folder("bench")
        model = model_path("cnn", "int8_qdq")
        samples, _ = int8_inputs("cnn", 3)
        np.savez(folder / "in.npz", image=samples)
        source, _ = emit(model, folder, "-testbench", f"-input={folder / 'in.npz'}")

        def run(text):
            (folder / "bench.c").write_text(text)
            subprocess.run(["gcc", "-std=c99", *WARNINGS, "-I", folder, "-o", folder / "bench",
                            folder / "bench.c", "-lm"], check=True)
            return subprocess.run([folder / "bench"], capture_output=True, text=True, check=False)

        good = run(source)
        self.assertEqual((good.returncode, good.stdout), (0, "3 of 3 samples right\n"))
        changed = re.sub(r"(test1_out0\[\d+\] = \{\s*)(-?\d+)", lambda m: m[1] + str(int(m[2]) ^ 1),
                         source)
        bad = run(changed)
        self.assertEqual(bad.returncode, 1)
        self.assertIn("sample 1: wrong", bad.stdout)
