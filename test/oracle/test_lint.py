"""What compilers with all warnings and checkers of firmware say about emitted C: nothing, but for what
docs/c.md explains."""

import re
import shutil
import subprocess
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import WARNINGS, DIGITS, NAMES, ROOT, OracleCase, compile_c, for_each, model_path, qxc

QUIET = ("bugprone-casting-through-void",  # how -Wcast-align is told that the arena is aligned
         "bugprone-easily-swappable-parameters")  # kernels take many numbers
CHECKS = ",".join(("-*", "bugprone-*", "clang-analyzer-*", *(f"-{q}" for q in QUIET)))
# As on a PC, and as on a processor without micro-kernels.
BUILDS = {"plain": (), "portable": ("-U__SSE2__",)}

COMPILERS = {"gcc": ("gcc", "-std=c99"), "g++": ("g++", "-x", "c++", "-std=c++17"),
             "clang": ("clang-19", "-std=c99"), "clang++": ("clang++-19", "-x", "c++", "-std=c++17")}
# clang warns of what it reads alone.
WHOLE = {c: ("-fsyntax-only",) if c.startswith("clang") else ("-S", "-o", "/dev/null") for c in COMPILERS}
# Optimised, as gcc sees more then, for what this machine has and for processors it may not be.
PROCESSORS = {"portable": ("-U__SSE2__",), "plain": (), "avx2": ("-mavx2",), "native": ("-march=native",),
              "icelake": ("-march=icelake-server",)}
# For clang, whose header of the instructions knows signed and unsigned vectors apart.
CORTEX = ("m0", "m3", "m4", "m7", "m33", "m55")
ROUNDINGS = {"exact": (), "single": (), "double": (), "shift": ("-pow2",)}


def one_conv(file, groups, size=3):
    """Tables of 16 entries, half a tile; a depthwise Conv where there are as many groups as channels."""
    random = np.random.RandomState(3)
    channels = groups if groups > 1 else 3
    shape = (16, channels // groups, size, size)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], group=groups, pads=[size // 2] * 4)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, channels, 8, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 16, 8, 8))],
        [numpy_helper.from_array(random.randn(*shape).astype(np.float32), "w")])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), file)
    np.savez(file.with_suffix(".npz"), x=random.randn(2, channels, 8, 8).astype(np.float32))


def plain_products(file):
    """Products that lie as in ONNX, and without bias: a ConvTranspose, a grouped Conv, a MatMul of two results."""
    random = np.random.RandomState(4)
    graph = helper.make_graph(
        [helper.make_node("ConvTranspose", ["x", "t"], ["a"], strides=[2, 2]),
         helper.make_node("Conv", ["a", "w"], ["b"], group=2), helper.make_node("MatMul", ["b", "a"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 6, 6))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 6, 12, 12))],
        [numpy_helper.from_array(random.randn(4, 6, 2, 2).astype(np.float32), "t"),
         numpy_helper.from_array(random.randn(6, 3, 1, 1).astype(np.float32), "w")])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), file)


def many_operators(file):
    """One behind the other, on data that have all signs: the kernels that the networks here do not use."""
    random = np.random.RandomState(5)
    floats = {"w": random.randn(6, 6, 2, 2), "slope": random.rand(6, 1, 1), "gate": random.randn(6, 1, 1),
              "sizes": [1, 1, 2, 2]}
    inits = [numpy_helper.from_array(np.asarray(v, np.float32), k) for k, v in floats.items()]
    pads = numpy_helper.from_array(np.array([0, 0, 1, 1, 0, 0, 0, 1]), "pads")
    nodes = [("ConvTranspose", ["x", "w"], {"strides": [2, 2], "group": 1}), ("PRelu", ["v0", "slope"], {}),
             ("Mul", ["v1", "gate"], {}), ("Add", ["v2", "v1"], {}), ("Max", ["v3", "v1"], {}), ("Pad", ["v4", "pads"], {}),
             ("AveragePool", ["v5"], {"kernel_shape": [2, 3], "strides": [2, 1]}),
             ("Resize", ["v6", "", "sizes"], {"mode": "linear"}), ("ReduceMax", ["v7"], {"axes": [2]}),
             ("Concat", ["v8", "v8"], {"axis": 1}), ("Transpose", ["v9"], {"perm": [0, 3, 1, 2]}),
             ("ReduceMin", ["v10"], {"axes": [3], "keepdims": 0}), ("ReduceMean", ["v11"], {"axes": [1], "keepdims": 0}),
             ("Softmax", ["v12"], {"axis": 1}), ("ArgMax", ["v13"], {"axis": 1})]
    made = [helper.make_node(op, i, ["y" if k == len(nodes) - 1 else f"v{k}"], **a) for k, (op, i, a) in enumerate(nodes)]
    graph = helper.make_graph(made, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 6, 5, 4))],
                              [helper.make_tensor_value_info("y", TensorProto.INT64, (1, 1))], [*inits, pads])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), file)
    np.savez(file.with_suffix(".npz"), x=random.randn(4, 6, 5, 4).astype(np.float32))


def small_products(file, sizes, kind, zero):
    """Products of one row with constants, all of them results; those with a zero point are not packed."""
    random = np.random.RandomState(6)
    inits = {"s": np.float32(0.1), "z": kind(3), "wz": kind(zero), "t": np.float32(10)}
    nodes = []
    for i, (k, n) in enumerate(zip(sizes, sizes[1:])):
        inits[f"w{i}"] = random.randint(0, 100, (k, n)).astype(kind)
        operands = [f"x{i}", "t" if i else "s", "z", f"w{i}", "s", "wz", "t", "z"]
        nodes.append(helper.make_node("QLinearMatMul", operands, [f"x{i + 1}"]))
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x0", element, (1, sizes[0]))],
        [helper.make_tensor_value_info(f"x{i + 1}", element, (1, n)) for i, n in enumerate(sizes[1:])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in inits.items()])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), file)


class Lint(OracleCase):
    expected_seconds = 8

    def emit(self, name):
        source = self.scratch / f"{name}.c"
        if name == "digits":
            options = (DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", "-requant=single")
        elif name == "floats":
            options = (DIGITS / "digits.onnx",)
        elif name == "products":
            plain_products(self.scratch / "products.onnx")
            options = (self.scratch / "products.onnx", "-calib-random=2")
        else:
            if name in NAMES:
                self.shared_model(f"{name}_int8_qdq.onnx")
            options = (model_path(name, "int8_qdq"),)
        qxc(*options, "-emit=c", *(() if name == "floats" else ("-io=quant",)), "-no-sync", "-quiet", "-o", source)
        return source

    def compile_optimised(self, model, data, rounding, compilers, processors):
        source = self.scratch / f"{rounding}.c"
        qxc(model, f"-calib={data}", "-emit=c", f"-requant={rounding}", *ROUNDINGS[rounding], "-no-sync", "-quiet",
            "-o", source)
        for compiler in compilers:
            for processor in processors:
                with self.subTest(compiler=compiler, processor=processor):
                    compile_c(*COMPILERS[compiler], "-O2", *PROCESSORS[processor], *WARNINGS, *WHOLE[compiler], source)

    @for_each(*ROUNDINGS)
    def test_warnings_of_optimisers(self, rounding):
        all_of_them = rounding == "exact"
        self.compile_optimised(DIGITS / "digits.onnx", DIGITS / "calib.npz", rounding,
                               COMPILERS if all_of_them else ("gcc", "clang++"),
                               PROCESSORS if all_of_them else ("plain", "avx2", "icelake"))

    @for_each("conv", "depthwise")
    def test_warnings_of_small_tables(self, name):
        model = self.scratch / f"{name}.onnx"
        one_conv(model, 16 if name == "depthwise" else 1)
        for rounding in ROUNDINGS:
            self.compile_optimised(model, model.with_suffix(".npz"), rounding, ("gcc", "g++"),
                                   ("native", "icelake") if rounding == "exact" else ("avx2", "icelake"))

    def test_warnings_of_wide_windows(self):
        """Of a depthwise Conv, without micro-kernels: gcc knows how many channels there are."""
        self.need("arm-none-eabi-gcc")
        model, source = self.scratch / "wide.onnx", self.scratch / "wide.c"
        one_conv(model, 16, 5)
        qxc(model, f"-calib={model.with_suffix('.npz')}", "-emit=c", "-integer-only", "-no-sync", "-quiet", "-o", source)
        for level in ("-Os", "-O2", "-O3"):
            for compiler in (("gcc", "-U__SSE2__"), ("arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m0"), ("arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m3")):
                with self.subTest(level=level, compiler=compiler):
                    compile_c(*compiler, "-std=c99", level, *WARNINGS, "-c", "-o", "/dev/null", source)

    def test_warnings_of_many_operators(self):
        model = self.scratch / "many.onnx"
        many_operators(model)
        for rounding in ("exact", "double"):
            self.compile_optimised(model, model.with_suffix(".npz"), rounding, COMPILERS,
                                   ("portable", "plain", "avx2", "icelake"))

    @for_each("packed", "plain")
    def test_warnings_of_small_products(self, name):
        """Where gcc knows every size and has room to inline all."""
        model = self.scratch / f"{name}.onnx"
        sizes, zero = ((16, 40), 0) if name == "packed" else ((16, 40, 5), 7)
        for kind in (np.int8, np.uint8):
            small_products(model, sizes, kind, zero)
            source = model.with_suffix(".c")
            qxc(model, "-emit=c", "-no-sync", "-quiet", "-o", source)
            for compiler in ("gcc", "g++"):
                for flags in (("-Os",), ("-O2",), ("-O2", "-mavx2")):
                    with self.subTest(kind=kind.__name__, compiler=compiler, flags=flags):
                        compile_c(*COMPILERS[compiler], *flags, *WARNINGS, "-c", "-o", "/dev/null", source)

    def need(self, tool):
        if not shutil.which(tool):
            raise unittest.SkipTest(f"there is no {tool}: tools/install_deps.sh installs it")

    @for_each("digits", "relu6", "cnn", "products")
    def test_warnings_of_clang_for_cortex_m(self, name):
        self.need("arm-none-eabi-gcc")
        found = subprocess.run(["arm-none-eabi-gcc", "-print-file-name=libc.a"], capture_output=True, text=True,
                               check=True).stdout.strip()
        headers = Path(found).parent.parent / "include"
        if not (headers / "string.h").exists():
            raise unittest.SkipTest("there is no newlib for Arm: tools/install_deps.sh installs it")
        source = self.emit(name)
        for cpu in CORTEX:
            for floats in ("soft", "hard") if cpu == "m55" else ("soft",):
                with self.subTest(cpu=cpu, floats=floats):
                    compile_c("clang-19", "--target=arm-none-eabi", f"-mcpu=cortex-{cpu}", "-mthumb",
                              f"-mfloat-abi={floats}", "-Os", "-std=c99", *WARNINGS, "-isystem", headers, "-c", "-o",
                              "/dev/null", source)

    @for_each("relu6", "cnn")
    def test_registers_that_firmware_keeps(self, name):
        """One of the platform (r9) and that of the frame, without optimization: what is written in instructions has room."""
        self.need("arm-none-eabi-gcc")
        source = self.emit(name)
        for cpu in ("m3", "m4", "m7"):
            for flags in (("-O0", "-ffixed-r9"), ("-O2", "-ffixed-r9", "-fno-omit-frame-pointer"),
                          ("-O0", "-fpic", "-msingle-pic-base")):
                with self.subTest(cpu=cpu, flags=flags):
                    compile_c("arm-none-eabi-gcc", f"-mcpu=cortex-{cpu}", "-mthumb", "-std=c99", *flags, *WARNINGS, "-c", "-o",
                              "/dev/null", source)

    def test_documented_flash(self):
        """The table of docs/c.md: text of gcc for Cortex-M, of which the code within 5 %."""
        self.need("arm-none-eabi-gcc")
        rows = re.findall(r"\| Cortex-(M\d+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|",
                          (ROOT / "docs/c.md").read_text())
        self.assertGreater(len(rows), 4)
        source = self.emit("kws")
        header = source.with_suffix(".h").read_text()
        weights, params = map(int, re.search(r"flash (\d+) bytes of weights and tables, (\d+)", header).groups())
        arena = int(re.search(r"KWS_ARENA_SIZE (\d+)", header)[1])
        for cpu, *numbers in rows:
            text, tables, code, told = (int(n.replace(",", "")) for n in numbers)
            flags = ("-mfloat-abi=hard" if cpu == "M55" else "-mfloat-abi=soft",)
            compile_c("arm-none-eabi-gcc", f"-mcpu=cortex-{cpu.lower()}", "-mthumb", *flags, "-Os", "-std=c99", "-c",
                      "-o", self.scratch / "kws.o", source)
            size = subprocess.run(["arm-none-eabi-size", self.scratch / "kws.o"], capture_output=True, text=True,
                                  check=True).stdout.split("\n")[1].split()
            with self.subTest(cpu=cpu):
                self.assertEqual((weights + params, arena), (tables, told))
                self.assertEqual(text, tables + code)
                self.assertLess(abs(int(size[0]) - text), code / 20)

    @for_each("digits", "floats", "relu6", "cnn", "products")
    def test_clang_tidy(self, name):
        self.need("clang-tidy-19")
        source = self.emit(name)
        for build, flags in (BUILDS if name in ("digits", "floats") else {"portable": BUILDS["portable"]}).items():
            with self.subTest(build=build):
                done = subprocess.run(
                    ["clang-tidy-19", "--quiet", f"--checks={CHECKS}", "--warnings-as-errors=*", source,
                     "--", "-std=c99", *flags], capture_output=True, text=True, check=False)
                self.assertEqual((0, ""), (done.returncode, done.stdout[:3000]))

    @for_each("digits", "floats", "relu6", "products")
    def test_cppcheck(self, name):
        """The portable code: -D says that no other macro is defined. Large tables take it minutes."""
        self.need("cppcheck")
        done = subprocess.run(
            ["cppcheck", "--quiet", "--std=c99", "--enable=warning,performance,portability",
             "--error-exitcode=1", "-D__GNUC__=12", self.emit(name)], capture_output=True, text=True,
            check=False)
        self.assertEqual((0, ""), (done.returncode, done.stderr[:3000]))

    def test_a_fault_is_found(self):
        """Otherwise the checkers might look at nothing."""
        self.need("clang-tidy-19")
        self.need("cppcheck")
        source = self.emit("products")
        source.write_text(source.read_text() + "\nint fault(void);\nint fault(void) {\n"
            "    int a[2] = {1, 2};\n    return a[2];\n}\n")
        for command in (["clang-tidy-19", "--quiet", f"--checks={CHECKS}", "--warnings-as-errors=*", source,
                         "--", "-std=c99"], ["cppcheck", "--quiet", "--error-exitcode=1", source]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertNotEqual(0, done.returncode, command[0])


if __name__ == "__main__":
    unittest.main()
