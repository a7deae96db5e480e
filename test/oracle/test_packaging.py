"""What `make install` puts down, and the examples that show how emitted C becomes part of a program.

Without the tools (cmake, pkg-config, arm-none-eabi-g++, ...) the tests are skipped by name.
"""

import os
import re
import shutil
import subprocess
import unittest

from common import WARNINGS, BUILD, QXC, ROOT, OracleCase, compile_c, qxc

EXAMPLES = ROOT / "examples"
LICENCES = ("LICENSE", "LICENSE-0BSD", "NOTICE")
PICTURES = {"two": 2, "seven": 7, "zero": 0}

# What the sketch needs of Arduino's core. main() plays the board for one round of loop().
ARDUINO = """
#pragma once
#include <stdint.h>
#include <stdio.h>
struct SerialPort {
    void begin(long) {}
    void print(const char *text) { printf("%s", text); }
    void print(int value) { printf("%d", value); }
    void println(int value) { printf("%d\\n", value); }
    void println(unsigned long value) { printf("%lu\\n", value); }
};
static SerialPort Serial;
static inline unsigned long micros() { return 0; }
static inline void delay(unsigned long) {}
void setup();
void loop();
"""
ARDUINO_MAIN = """
int main() {
    setup();
    loop();
    return 0;
}
"""
# What the sample needs of Zephyr.
KERNEL = """
#include <stdint.h>
#define __aligned(n) __attribute__((aligned(n)))
static inline uint32_t k_cycle_get_32(void) { return 0; }
"""
PRINTK = """
#include <stdio.h>
#define printk printf
"""
ZEPHYR = """
cmake_minimum_required(VERSION 3.20)
project(stand_in C)
set(CONFIG_QXC_DIGITS y)
set(CONFIG_QXC_DIGITS_WEIGHTS_FILE @WEIGHTS@)
macro(zephyr_library_named name)
  set(ZEPHYR_CURRENT_LIBRARY ${name})
  add_library(${name} STATIC)
endmacro()
function(zephyr_library_sources)
  target_sources(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endfunction()
function(zephyr_include_directories)
  target_include_directories(${ZEPHYR_CURRENT_LIBRARY} PUBLIC ${ARGN})
endfunction()
add_subdirectory(@MODULE@ module)
add_executable(app @MODULE@/sample/src/main.c)
target_include_directories(app PRIVATE stubs)
target_compile_definitions(app PRIVATE CONFIG_QXC_DIGITS=1)
target_link_libraries(app PRIVATE qxc_digits)
"""
# A project that knows nothing of C.
OTHER_LANGUAGE = """
cmake_minimum_required(VERSION 3.18)
project(app CXX)
find_package(qxc REQUIRED)
add_executable(app main.cpp)
foreach(form IN ITEMS inline file)
  set(options "")
  if(form STREQUAL file)
    set(options WEIGHTS_FILE)
  endif()
  qxc_compile_model(${form} @DIGITS@/digits.onnx CALIB @DIGITS@/calib.npz ${options} OPTIONS -io=quant)
  target_link_libraries(app PRIVATE ${form})
endforeach()
"""
OTHER_MAIN = """
#include "file.h"
#include "inline.h"
alignas(INLINE_ARENA_ALIGN) static unsigned char arena[INLINE_ARENA_SIZE];
int main() {
    static int8_t x[INLINE_IMAGE_COUNT], a[INLINE_LOGITS_COUNT], b[FILE_LOGITS_COUNT];
    if (inline_run(arena, x, a) != INLINE_OK || file_run(arena, x, b) != FILE_OK)
        return 1;
    return a[0] != b[0];
}
"""


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise unittest.SkipTest(f"there is no {tool}: tools/install_deps.sh installs it")


def run(*command, **more):
    """stdout and stderr of a command that has to succeed."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)
    if done.returncode:
        raise AssertionError(f"exit {done.returncode}: {command}\n{done.stdout[-3000:]}")
    return done.stdout


def outside_make():
    """An environment in which no make is the parent, and qxc is not on the way."""
    return {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "QXC")}


class Installed(OracleCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.prefix = cls.scratch / "stage/opt/qxc"
        run("make", "-s", "-C", ROOT, "install-files", f"BUILD={BUILD}", f"DESTDIR={cls.scratch / 'stage'}",
            "PREFIX=/opt/qxc", f"PROGRAM={QXC}", env=outside_make())

    def cmake(self, source, *options):
        build = self.scratch / f"build-{source.name}"
        run("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}", *options, env=outside_make())
        return build, run("cmake", "--build", build, env=outside_make())

    def test_files(self):
        there = {str(p.relative_to(self.prefix)) for p in self.prefix.rglob("*") if p.is_file()}
        self.assertEqual({"bin/qxc", "lib/cmake/qxc/qxcConfig.cmake", "lib/cmake/qxc/qxcConfigVersion.cmake",
                          "lib/pkgconfig/qxc.pc", "share/man/man1/qxc.1", "share/bash-completion/completions/qxc",
                          "share/zsh/site-functions/_qxc", "share/fish/vendor_completions.d/qxc.fish", *(f"share/doc/qxc/{n}" for n in LICENCES)}, there)
        for file in there - {"bin/qxc"}:
            text = (self.prefix / file).read_text()
            self.assertNotIn("@VERSION@", text)
            self.assertNotIn(str(self.scratch), text)

    def test_uninstall(self):
        """What was put down goes, and what others put beside it stays."""
        stage = self.scratch / "again"
        there = {"BUILD": BUILD, "DESTDIR": stage, "PREFIX": "/opt/q x c", "PROGRAM": QXC}
        words = [f"{k}={v}" for k, v in there.items()]
        run("make", "-s", "-C", ROOT, "install-files", *words, env=outside_make())
        other = stage / "opt/q x c/lib/cmake/qxc/other.cmake"
        other.write_text("")
        run("make", "-s", "-C", ROOT, "uninstall", *words, env=outside_make())
        self.assertEqual([other], [p for p in stage.rglob("*") if p.is_file()])
        run("make", "-s", "-C", ROOT, "uninstall", *words, env=outside_make())

    def test_program(self):
        """What is installed has no symbols, and the guards that the Makefile promises."""
        need("readelf")
        if os.environ.get("SANITIZE"):
            self.skipTest("a sanitized program has guards of its own: make test runs this")
        program = self.prefix / "bin/qxc"
        said = run("readelf", "-W", "-h", "-l", "-d", "-S", program)
        for sign in ("DYN (", "GNU_RELRO", "BIND_NOW"):
            self.assertIn(sign, said)
        self.assertNotIn(".symtab", said)
        self.assertNotRegex(said, r"GNU_STACK.*RWE")
        symbols = run("readelf", "-W", "--dyn-syms", program)
        self.assertIn("__stack_chk_fail", symbols)
        self.assertIn("__memcpy_chk", symbols)

    def test_pkg_config(self):
        need("pkg-config")
        where = {**outside_make(), "PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")}
        version = run(self.prefix / "bin/qxc", "-version").split()[1]
        self.assertEqual(version, run("pkg-config", "--modversion", "qxc", env=where).strip())
        program = run("pkg-config", "--variable=qxc", "qxc", env=where).strip()
        self.assertIn(version, run(program, "-version"))
        folder = run("pkg-config", "--variable=cmakedir", "qxc", env=where).strip()
        self.assertTrue(os.path.exists(os.path.join(folder, "qxcConfig.cmake")))

    def test_cmake(self):
        """The example is built, made again when the model is newer, and finds the digit."""
        need("cmake")
        build, said = self.cmake(EXAMPLES / "cmake")
        self.assertIn("qxc digits", said)
        self.assertIn("100% tests passed", run("ctest", "--test-dir", build))
        for picture, digit in PICTURES.items():
            self.assertIn(f": {digit}\n", run(build / "classify", EXAMPLES / f"pc/{picture}.pgm"))
        self.assertNotIn("qxc digits", run("cmake", "--build", build, env=outside_make()))
        (build / "digits.qxc/digits.c").unlink()
        (build / "digits.qxc/digits.h").write_text("/* of a source that is gone */\n")
        self.assertIn("qxc digits", run("cmake", "--build", build, env=outside_make()))
        self.assertTrue((build / "digits.qxc/digits.weights.bin").exists())
        self.assertFalse((build / "fixed.qxc/fixed.weights.bin").exists())

    def test_cmake_of_a_project_in_another_language(self):
        """Models are compiled as C all the same."""
        need("cmake", "g++")
        source = self.scratch / "other-language"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(OTHER_LANGUAGE.replace("@DIGITS@", str(EXAMPLES / "digits")))
        (source / "main.cpp").write_text(OTHER_MAIN)
        build, _ = self.cmake(source)
        run(build / "app")

    def test_cmake_embeds(self):
        """The same with #embed."""
        need("cmake", "clang-19")
        build = self.scratch / "build-embed"
        run("cmake", "-S", EXAMPLES / "cmake", "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            "-DCMAKE_C_COMPILER=clang-19", env=outside_make())
        run("cmake", "--build", build, env=outside_make())
        self.assertFalse((build / "digits.qxc/digits.weights.o").exists())
        self.assertIn(": 2\n", run(build / "classify", EXAMPLES / "pc/two.pgm"))

    def test_cmake_refuses(self):
        need("cmake")
        for number, (line, message) in enumerate((
                ("find_package(qxc 99 REQUIRED)", "99"),
                ("find_package(qxc)\nqxc_compile_model(a m.onnx CALIBB x)", "not understood: 'CALIBB;x'"),
                ("find_package(qxc)\nqxc_compile_model(a-b m.onnx)", "'a-b' is no prefix"))):
            source = self.scratch / f"refused{number}"
            source.mkdir()
            (source / "CMakeLists.txt").write_text(
                f"cmake_minimum_required(VERSION 3.18)\nproject(refused C)\n{line}\n")
            with self.assertRaises(AssertionError) as raised:
                self.cmake(source)
            self.assertIn(message, re.sub(r"\s+", " ", str(raised.exception)))

    def test_zephyr(self):
        """The module's CMakeLists.txt with stand-ins for Zephyr's functions and headers."""
        need("cmake")
        for name, text in (("kernel.h", KERNEL), ("sys/printk.h", PRINTK)):
            for weights in ("n", "y"):
                file = self.scratch / f"zephyr-{weights}/stubs/zephyr" / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        for weights in ("n", "y"):
            with self.subTest(weights=weights):
                source = self.scratch / f"zephyr-{weights}"
                (source / "CMakeLists.txt").write_text(
                    ZEPHYR.replace("@MODULE@", str(EXAMPLES / "zephyr")).replace("@WEIGHTS@", weights))
                build, _ = self.cmake(source)
                self.assertIn("digit 2,", run(build / "app"))
                found = (build / "module/digits.qxc/digits.weights.bin").exists()
                self.assertEqual(weights == "y", found)
                main = EXAMPLES / "zephyr/sample/src/main.c"
                for c in (main, build / "module/digits.qxc/digits.c"):
                    compile_c("arm-none-eabi-gcc", "-std=c11", "-Os", "-mcpu=cortex-m3", "-mthumb", *WARNINGS,
                              "-DCONFIG_QXC_DIGITS=1", "-I", source / "stubs", "-I", build / "module/digits.qxc",
                              "-c", "-o", "/dev/null", c)


class Examples(OracleCase):
    expected_seconds = 5

    def test_pc(self):
        need("make", "gcc", "pkg-config")
        out = self.scratch / "pc"
        said = run("make", "-s", "-C", EXAMPLES / "pc", "run", f"OUT={out}", f"QXC={QXC}", "CC=gcc",
                   f"CFLAGS=-O2 {' '.join(WARNINGS)}", env=outside_make())
        self.assertEqual(sorted(f"{p}.pgm: {d}" for p, d in PICTURES.items()), sorted(said.split("\n")[:-1]))
        broken = self.scratch / "broken.pgm"
        broken.write_text("P2 8 8 16 1 2 3")
        self.assertEqual(1, subprocess.run([out / "classify", broken], stderr=subprocess.PIPE, check=False).returncode)

    def test_arduino(self):
        """The library and the sketch, as C++ on the PC and for boards."""
        need("make", "g++")
        properties = dict(line.split("=", 1) for line in
                          (EXAMPLES / "arduino/library.properties").read_text().splitlines())
        needed = "name version author maintainer sentence paragraph category architectures".split()
        self.assertEqual([], [k for k in needed if not properties.get(k)])
        src, stub = self.scratch / "arduino/src", self.scratch / "arduino/core"
        stub.mkdir(parents=True)
        (stub / "Arduino.h").write_text(ARDUINO)
        run("make", "-s", "-C", EXAMPLES / "arduino", f"OUT={src}", f"QXC={QXC}", env=outside_make())
        self.assertTrue((src / properties["includes"]).exists())
        sketch = EXAMPLES / "arduino/examples/Digits/Digits.ino"
        whole = stub / "sketch.cpp"
        whole.write_text(f'#include "Arduino.h"\n#line 1 "Digits.ino"\n{sketch.read_text()}{ARDUINO_MAIN}')
        compile_c("g++", "-std=c++17", *WARNINGS, "-O2", "-I", stub, "-I", src, "-o", stub / "played", whole,
                  "-x", "c++", src / "digits.c")
        self.assertIn("digit 7, microseconds: ", run(stub / "played"))
        # What the header and the paragraph say of memory is the same.
        size = int(re.search(r"DIGITS_ARENA_SIZE (\d+)", (src / "digits.h").read_text())[1])
        self.assertIn(f"{size / 1000:.1f} kB of RAM", properties["paragraph"])
        for cpu in ("cortex-m0plus", "cortex-m4"):
            board = ("-mthumb", f"-mcpu={cpu}", "-Os", *WARNINGS, "-I", stub, "-I", src, "-c", "-o", "/dev/null")
            compile_c("arm-none-eabi-g++", "-std=c++17", *board, whole)
            compile_c("arm-none-eabi-g++", "-std=c++17", *board, "-x", "c++", src / "digits.c")
            compile_c("arm-none-eabi-gcc", "-std=c99", *board, src / "digits.c")

    def test_zephyr_files(self):
        """Names in one file of the module stand in the others."""
        folder = EXAMPLES / "zephyr"
        module = (folder / "zephyr/module.yml").read_text()
        self.assertRegex(module, r"(?m)^build:\n  cmake: \.\n  kconfig: Kconfig$")
        options = set(re.findall(r"(?m)^config (\w+)$", (folder / "Kconfig").read_text()))
        used = set()
        for file in ("CMakeLists.txt", "sample/prj.conf", "sample/src/main.c"):
            used |= set(re.findall(r"CONFIG_(QXC_\w+)", (folder / file).read_text()))
        self.assertEqual(options, used)
        self.assertIn('"digit 2, .*"', (folder / "sample/sample.yaml").read_text())
