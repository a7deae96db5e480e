"""Large weights in emitted C.

Arrays from 64 KiB on are strings, which compilers read fast. With -weights-file they are in a binary
beside the C, which computes the same bytes however it gets at them: `#embed` (clang 19), an object
file (from assembly, from ld and objcopy) or a pointer of the caller.
"""

import ctypes
import os
import re
import resource
import shutil
import subprocess
import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from cmodel import CModel
from common import WARNINGS, DIGITS, ROOT, OracleCase, compile_c, for_each, for_each_model, model_path, qxc, qxc_outputs, talk
from inputs import int8_inputs
from light import light, selected



def assembly_of_docs():
    """weights.S as docs/c.md shows it, of a model named m."""
    block = re.search(r"(?m)^    /\* weights\.S \*/\n((?:    .*\n)+)", (ROOT / "docs/c.md").read_text())[1]
    return block.replace("digits_weights", "m_weights").replace("digits.weights.bin", "model.weights.bin")


OK, NULL, ALIGNMENT, WEIGHTS = range(4)


def emit(model, folder, *options):
    folder.mkdir(exist_ok=True)
    qxc(model, "-emit=c", "-name=m", "-no-sync", "-quiet", "-o", folder / "model.c", *options)
    return folder / "model.c"


def object_by_assembly(folder):
    (folder / "weights.S").write_text(assembly_of_docs())
    compile_c("gcc", "-c", "-I", folder, f"-Wa,-I{folder}", "-o", folder / "weights.o", folder / "weights.S")
    return folder / "weights.o"


def object_by_linker(folder):
    made = folder / "linked.o"
    subprocess.run(["ld", "-r", "-b", "binary", "-z", "noexecstack", "-o", made.name, "model.weights.bin"],
                   cwd=folder, check=True)
    subprocess.run(["objcopy", "--rename-section", ".data=.rodata,alloc,load,readonly,data,contents",
                    "--set-section-alignment", ".data=16", "--redefine-sym",
                    "_binary_model_weights_bin_start=m_weights", made], check=True)
    return made


class Pointed:
    """The model in a library without weights; they are read from the file."""

    def __init__(self, source, compiler="gcc"):
        library = source.with_suffix(".pointer.so")
        compile_c(compiler, "-std=c99", "-O2", *WARNINGS, "-DM_WEIGHTS_FROM=M_WEIGHTS_POINTER", "-shared",
                  "-fPIC", "-o", library, source, "-lm")
        self.library = ctypes.CDLL(str(library.resolve()))
        self.file = source.with_suffix(".weights.bin").read_bytes()
        self.weights = self.aligned(len(self.file))
        self.weights[:] = np.frombuffer(self.file, np.uint8)
        self.arena = self.aligned(ctypes.c_size_t.in_dll(self.library, "m_arena_size").value)

    @staticmethod
    def aligned(size):
        room = np.zeros(size + 64, np.uint8)
        start = -room.ctypes.data % 16
        return room[start:start + size]

    def run(self, sample, result, past=0):
        pointers = self.weights.ctypes.data + past, self.arena.ctypes.data, sample.ctypes.data, result.ctypes.data
        return self.library.m_run_with(*map(ctypes.c_void_p, pointers))

    def check(self, past=0):
        return self.library.m_weights_check(ctypes.c_void_p(self.weights.ctypes.data + past))


class Strings(OracleCase):
    @for_each("int8", "uint8")
    def test_all_bytes(self, kind):
        """Each byte in front of each other, in particular octal numbers in front of digits."""
        rng = np.random.default_rng(7)
        weights = rng.integers(0, 256, (256, 2048)).astype(np.uint8).view(kind)
        stored = getattr(TensorProto, kind.upper())
        node = helper.make_node("Gather", ["w", "x"], ["y"])
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.INT64, [256])],
                                  [helper.make_tensor_value_info("y", stored, [256, 2048])],
                                  [numpy_helper.from_array(weights, "w")])
        path = self.scratch / f"{kind}.onnx"
        path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
                         .SerializeToString())
        source = emit(path, self.scratch / kind)
        text = source.read_text()
        self.assertEqual(1, text.count("-Woverlength-strings"))
        self.assertLess(max(map(len, text.splitlines())), 4095)
        x = rng.permutation(256)
        want = weights[x].ravel()
        for compiler, flags in (("gcc", WARNINGS), ("clang-19", WARNINGS), ("gcc", ("-U__SSE2__", *WARNINGS))):
            if shutil.which(compiler):
                np.testing.assert_array_equal(want, CModel(source, compiler, ("-O2", *flags)).run(x)[0])
        for compiler in ("g++", "clang++-19"):
            compile_c(compiler, "-x", "c++", "-std=c++17", *WARNINGS, "-c", "-o", "/dev/null", source)


class WeightsFile(OracleCase):
    def emit_digits(self, name, *options):
        return emit(DIGITS / "digits.onnx", self.scratch / name, f"-calib={DIGITS / 'calib.npz'}", *options)

    @for_each_model()
    def test_same_bytes(self, name):
        model = model_path(name, "int8_qdq")
        inline = emit(model, self.scratch / f"{name}_inline")
        source = emit(model, self.scratch / name, "-weights-file")
        reference = CModel(inline, "gcc", ("-O2",))
        count = reference.inputs[0][2]
        samples = np.ascontiguousarray(int8_inputs(name, 8, 20)[0]).reshape(8, count)
        want = [reference.run(s)[0] for s in samples]
        self.assertGreater(len({w.tobytes() for w in want}), 1)
        builds = {"assembly": ("gcc", object_by_assembly(source.parent)),
                  "linker": ("gcc", object_by_linker(source.parent))}
        if shutil.which("clang-19"):
            builds["embed"] = ("clang-19", None)
            builds["clang, object"] = ("clang-19 -DM_WEIGHTS_FROM=M_WEIGHTS_OBJECT", builds["linker"][1])
        for build, (compiler, made) in builds.items():
            with self.subTest(build=build):
                flags = ("-O2", *WARNINGS[2:-1], *([made] if made else []))
                got = CModel(source, compiler, flags)
                for sample, expected in zip(samples, want):
                    np.testing.assert_array_equal(expected, got.run(sample)[0])
        pointed = Pointed(source)
        for sample, expected in zip(samples, want):
            result = np.zeros_like(expected)
            self.assertEqual(OK, pointed.run(sample, result))
            np.testing.assert_array_equal(expected, result)

    def test_layout(self):
        """Size, checksum and alignment are those that the header says."""
        source = self.emit_digits("layout", "-weights-file")
        header, data = source.with_suffix(".h").read_text(), source.with_suffix(".weights.bin").read_bytes()
        stated = {k: int(v, 0) for k, v in re.findall(r"#define M_WEIGHTS_(\w+) (\w+?)u?\n", header)}
        words = np.frombuffer(data[:16], "<u4")
        self.assertEqual([len(data)] * 2, [stated["SIZE"], words[2]])
        self.assertEqual([zlib.crc32(data[16:])] * 2, [stated["CRC32"], words[3]])
        self.assertEqual(b"QXCW", data[:4])
        offsets = [int(n) for n in re.findall(r"^    k\w+ = (\d+), ", source.read_text(), re.M)]
        self.assertGreater(len(offsets), 20)
        self.assertEqual([], [o for o in offsets if o % stated["ALIGN"]])
        self.assertLess(len(source.read_text()), len(self.emit_digits("inline").read_text()))

    def test_wrong_weights_are_found(self):
        source = self.emit_digits("wrong", "-weights-file", "-integer-only")
        model = Pointed(source)
        sample, result = np.zeros(64, np.int8), np.zeros(10, np.int8)
        self.assertEqual((OK, OK), (model.run(sample, result), model.check()))
        self.assertEqual((ALIGNMENT, ALIGNMENT), (model.run(sample, result, 1), model.check(1)))
        self.assertEqual(NULL, model.library.m_weights_check(None))
        for byte in range(16):
            model.weights[byte] ^= 1
            self.assertEqual((WEIGHTS, WEIGHTS), (model.run(sample, result), model.check()))
            model.weights[byte] ^= 1
        for byte in (16, len(model.weights) // 2, len(model.weights) - 1):
            model.weights[byte] ^= 128
            self.assertEqual(WEIGHTS, model.check())
            model.weights[byte] ^= 128
        self.assertEqual(OK, model.check())

    def test_embedded_file_of_another_size(self):
        source = self.emit_digits("resized", "-weights-file")
        file = source.with_suffix(".weights.bin")
        for change in (-1, 1):
            data = file.read_bytes()
            file.write_bytes(data[:-1] if change < 0 else data + b"x")
            with self.assertRaises(subprocess.CalledProcessError):
                compile_c("clang-19", "-std=c99", "-c", "-o", "/dev/null", source)
            file.write_bytes(data)
        compile_c("clang-19", "-std=c99", *WARNINGS, "-c", "-o", "/dev/null", source)
        compile_c("clang++-19", "-x", "c++", "-std=c++17", *WARNINGS, "-c", "-o", "/dev/null", source)

    def test_big_endian_is_refused(self):
        source = self.emit_digits("endian", "-weights-file", "-integer-only")
        build = ["arm-none-eabi-gcc", "-std=c99", "-c", "-o", "/dev/null", source]
        compile_c(*build)
        with self.assertRaises(subprocess.CalledProcessError):
            compile_c(*build, "-mbig-endian")
        compile_c(*build[:-1], "-mbig-endian", self.emit_digits("endian_inline", "-integer-only"))

    def test_testbench(self):
        source = self.emit_digits("bench", "-weights-file", "-testbench", f"-input={DIGITS / 'test.npz'}")
        program = source.with_suffix("")
        compile_c("gcc", "-std=c99", *WARNINGS, "-Wl,--fatal-warnings", "-o", program, source,
                  object_by_assembly(source.parent))
        done = subprocess.run([program], capture_output=True, text=True, check=True)
        self.assertEqual("16 of 16 samples right\n", done.stdout)

    def test_all_or_none(self):
        """Where the third file cannot be written the others stay as they were."""
        folder = self.scratch / "blocked"
        (folder / "model.weights.bin").mkdir(parents=True)
        for name in ("model.c", "model.h"):
            (folder / name).write_text("old")
        done = qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", "-emit=c", "-weights-file", "-force", "-o",
                   folder / "model.c", ok=False)
        self.assertNotEqual(0, done.returncode)
        self.assertIn("model.weights.bin", done.stderr)
        self.assertEqual({"model.c", "model.h", "model.weights.bin"}, set(os.listdir(folder)))
        self.assertEqual(["old", "old"], [(folder / n).read_text() for n in ("model.c", "model.h")])

    def test_twice_the_same(self):
        first, second = (self.emit_digits(n, "-weights-file") for n in ("first", "second"))
        for suffix in (".c", ".h", ".weights.bin"):
            self.assertEqual(first.with_suffix(suffix).read_bytes(), second.with_suffix(suffix).read_bytes())

    @for_each("resnet50")
    def test_large(self, name):
        """Less than three times the weights' size, compiled in less than 5 seconds, equal to qxc run."""
        if name not in selected() or os.environ.get("SANITIZE"):
            self.skipTest(f"QXC_LIGHT or SANITIZE leave out {name}")
        path, images = light(name)
        qdq = self.scratch / "large.onnx"
        qxc(path, f"-calib={path.with_name(name + '_inputs.npz')}", "-emit=qdq", "-placement=all", "-no-sync", "-quiet", "-o", qdq)
        source = emit(qdq, self.scratch / name, "-weights-file")
        size = source.with_suffix(".weights.bin").stat().st_size
        text = source.stat().st_size + source.with_suffix(".h").stat().st_size
        made = object_by_assembly(source.parent)
        first = {key: rows[:1] for key, rows in images.items()}
        want = next(iter(qxc_outputs(qdq, first, self.scratch).values())).ravel()
        inline = emit(qdq, self.scratch / f"{name}_inline")
        for source, compiler, extra in ((source, "gcc", [made]), (source, "clang-19", []), (inline, "gcc", []),
                                        (inline, "clang-19", [])):
            if not shutil.which(compiler):
                continue
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            model = CModel(source, compiler, ("-O2", "-march=native", "-ffp-contract=off", *extra))  # its Softmax is of floats
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            talk(f"{name}: {size} bytes of weights, {source.stat().st_size} of C, compiled by {compiler} in {spent:.1f} s")
            self.assertLess(spent, 5)
            np.testing.assert_array_equal(want, model.run(*first.values())[0])
        self.assertLess(size + text, 3 * size)
        self.assertLess(inline.stat().st_size, 3 * size)
