"""Emitted C on boards: no floating point in what the compiler makes, and the same bytes as here.

QEMU plays the boards. Without the cross compilers or QEMU the tests are skipped by name.
"""

import re
import shutil
import subprocess
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import DIGITS, ROOT, OracleCase, for_each, model_path, qxc, qxc_outputs
from cross import TARGETS, CrossModel
from inputs import int8_inputs
from test_recurrent import Layer

BOARDS = ("m0", "m3", "m4", "m7", "m55")
TOOLS = ("arm-none-eabi-gcc", "arm-none-eabi-nm", "arm-none-eabi-size", "qemu-system-arm", "make")


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise unittest.SkipTest(f"there is no {tool}: tools/install_deps.sh installs it")


class CortexM(OracleCase):
    expected_seconds = 2

    @for_each(*BOARDS)
    def test_example(self, board):
        """examples/cortex-m says that all samples are right; with a wrong expectation it does not."""
        need(*TOOLS)
        out = self.scratch / "example"

        def run():
            return subprocess.run(["make", "-s", "-C", ROOT / "examples/cortex-m", board, f"OUT={out}",
                                   f"QXC={self.qxc()}"], capture_output=True, text=True, check=False)

        done = run()
        self.assertIn("16 of 16 samples right", done.stdout, done.stderr[-2000:])
        self.assertEqual(0, done.returncode)
        source, good = out / "model.c", (out / "model.c").read_text()
        source.write_text(re.sub(r"(test1_out0\[\d+\] = \{\s*)(-?\d+)",
                                 lambda m: m[1] + str(int(m[2]) ^ 1), good))
        done = run()
        self.assertIn("15 of 16 samples right", done.stdout)
        self.assertNotEqual(0, done.returncode)
        source.write_text(good)

    @staticmethod
    def qxc():
        import common
        return common.QXC

    def emit(self, model, *options):
        folder = self.scratch / "model"
        folder.mkdir(exist_ok=True)
        qxc(model, "-emit=c", "-name=m", "-integer-only", "-no-sync", "-quiet", "-o",
            folder / "model.c", *options)
        return folder / "model.c"

    def test_no_floating_point(self):
        """Neither float routines of the library nor, with an FPU, its registers."""
        need(*TOOLS, "arm-none-eabi-objdump")
        models = [(model_path("relu6", "int8_qdq"), ()),
                  (DIGITS / "digits.onnx", (f"-calib={DIGITS / 'calib.npz'}",))]
        for (model, options), how in [(m, h) for m in models for h in ("exact", "single", "double")]:
            source = self.emit(model, f"-requant={how}", *options)
            for flags in (("-mcpu=cortex-m0", "-mfloat-abi=soft"), ("-mcpu=cortex-m3", "-mfloat-abi=soft"),
                          ("-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")):
                with self.subTest(model=model.name, how=how, flags=flags):
                    self.assertEqual([], self.float_routines(source, *flags))
                    code = subprocess.run(["arm-none-eabi-objdump", "-d", source.with_suffix(".o")],
                                          capture_output=True, text=True, check=True).stdout
                    self.assertEqual([], re.findall(r"\tv\S+.*", code))

    @for_each("int8", "uint8")
    def test_sums(self, kind):
        """Add and Sub of all pairs of 8-bit numbers in vectors: ties, large and small scales, saturation."""
        need(*TOOLS)
        every = np.arange(256).astype(np.uint8).view(kind)
        a, b = np.repeat(every, 256), np.tile(every, 256)
        scales = [(0.1, 0.07, 0.05), (0.5, 0.25, 1), (2**-6, 2**-7, 2**-5), (0.3, 0.001, 0.11), (0.9, 0.8, 0.25), (1, 1, 1 / 8)]
        for i, (sa, sb, sy) in enumerate(scales):
            zeros = (np.arange(3) * 37 + 11 * i).astype(kind)
            constants = [numpy_helper.from_array(np.float32(s), f"s{n}") for n, s in zip("aby", (sa, sb, sy))]
            constants += [numpy_helper.from_array(z, f"z{n}") for n, z in zip("aby", zeros)]
            nodes = [helper.make_node("DequantizeLinear", [n, f"s{n}", f"z{n}"], [f"{n}f"]) for n in "ab"]
            nodes += [helper.make_node(("Add", "Sub")[i % 2], ["af", "bf"], ["yf"]),
                      helper.make_node("QuantizeLinear", ["yf", "sy", "zy"], ["y"])]
            ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), [a.size]) for n in "aby"]
            model = self.scratch / f"sums-{kind}.onnx"
            onnx.save(helper.make_model(helper.make_graph(nodes, "sums", ports[:2], ports[2:], constants),
                                        opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
            (want,) = qxc_outputs(model, {"a": a[None], "b": b[None]}, self.scratch, "-io=quant").values()
            ((got,),) = CrossModel(self.emit(model), "cortex-m55").run([[a, b]])
            np.testing.assert_array_equal(got, want.reshape(-1), f"{scales[i]}")

    @for_each(*(t for t in TARGETS if t.startswith("cortex")))
    def test_long_rows(self, target):
        """One row times packed weights: it lies on the stack as a whole, in several parts, and in parts of which the last is odd."""
        need(*TOOLS)
        rng = np.random.default_rng(21)
        for k in (125, 128, 300, 640):
            weights = rng.integers(-127, 128, (k, 19)).astype(np.int8)
            constants = [numpy_helper.from_array(weights, "w")]
            for name, scale, zero in (("x", 0.05, -3), ("w", 0.01, 0), ("y", 1.7, 5)):
                constants += [numpy_helper.from_array(np.float32(scale), f"s{name}"), numpy_helper.from_array(np.int8(zero), f"z{name}")]
            nodes = [helper.make_node("DequantizeLinear", [n, f"s{n}", f"z{n}"], [f"{n}f"]) for n in "xw"]
            nodes += [helper.make_node("MatMul", ["xf", "wf"], ["yf"]), helper.make_node("QuantizeLinear", ["yf", "sy", "zy"], ["y"])]
            ports = [helper.make_tensor_value_info(n, TensorProto.INT8, [1, width]) for n, width in (("x", k), ("y", 19))]
            model = self.scratch / f"row-{target}.onnx"
            onnx.save(helper.make_model(helper.make_graph(nodes, "row", ports[:1], ports[1:], constants),
                                        opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
            x = rng.integers(-128, 128, (1, k)).astype(np.int8)
            sums = (x.astype(np.int64) + 3) @ weights.astype(np.int64)
            m = np.float32(np.float32(np.float32(0.05) * np.float32(0.01)) / np.float32(1.7))
            want = np.clip(np.rint(sums.astype(np.float32) * m) + 5, -128, 127).astype(np.int8)
            ((got,),) = CrossModel(self.emit(model), target).run([[x]])
            np.testing.assert_array_equal(want.ravel(), np.ravel(got), f"k = {k}")

    @for_each("int6", "uint7")
    def test_few_bits(self, kind):
        """Results that end before those of their bytes do."""
        need(*TOOLS)
        options = (f"-calib={DIGITS / 'calib.npz'}", f"-activations={kind}", "-io=quant")
        source, text = self.emit(DIGITS / "digits.onnx", *options), self.scratch / "digits.qir"
        qxc(DIGITS / "digits.onnx", *options, "-integer-only", "-target=c", "-emit=qir", "-form=true", "-quiet", "-o", text)
        with np.load(DIGITS / "test.npz") as test:
            samples = (test["image"][:4] * (31 if kind == "int6" else 127)).astype(np.dtype(kind.rstrip("67") + "8"))
        (want,) = qxc_outputs(text, {"image": samples}, self.scratch).values()
        for target in ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55"):
            got = CrossModel(source, target).run([[s] for s in samples])
            np.testing.assert_array_equal([g[0] for g in got], want.reshape(len(samples), -1), target)

    @for_each("LSTM", "GRU", "RNN")
    def test_recurrent(self, op):
        """Recurrent networks on a board without FPU: no float routines, and the bytes of `qxc run`."""
        need(*TOOLS)
        rng = np.random.default_rng(11)
        layer = Layer(op, rng, "bidirectional", steps=20, batch=1, size=6, hidden=12, lens=[17])
        model, calib = self.scratch / f"{op}.onnx", self.scratch / f"{op}.npz"
        onnx.save(layer.model(0), model)
        np.savez(calib, X=rng.standard_normal((8, 20, 1, 6)).astype(np.float32))
        source = self.emit(model, f"-calib={calib}")
        self.assertEqual([], self.float_routines(source, "-mcpu=cortex-m3", "-mfloat-abi=soft"))
        samples = rng.integers(-128, 128, (4, 20, 1, 6)).astype(np.int8)
        text = self.scratch / f"{op}.qir"
        qxc(model, f"-calib={calib}", "-integer-only", "-target=c", "-emit=qir", "-form=true", "-quiet", "-o", text)
        want = qxc_outputs(text, {"X": samples}, self.scratch)
        got = CrossModel(source, "cortex-m3").run([[s] for s in samples])
        for i, name in enumerate(n for n in ("Y", "Y_h", "Y_c") if n in want):
            np.testing.assert_array_equal([g[i] for g in got], want[name].reshape(len(samples), -1))

    @staticmethod
    def float_routines(source, *flags):
        made = source.with_suffix(".o")
        subprocess.run(["arm-none-eabi-gcc", "-std=c99", "-Os", "-mthumb", *flags, "-c", "-o", made, source],
                       check=True)
        undefined = subprocess.run(["arm-none-eabi-nm", "-u", made], capture_output=True, text=True,
                                   check=True).stdout.split()
        return [u for u in undefined if re.match(r"__aeabi_(\w*2)?[fd]|__\w+[sd]f", u)]

    def test_flash(self):
        """A network on a Cortex-M4: the weights and less than 20 KB of code."""
        need(*TOOLS)
        source = self.emit(model_path("relu6", "int8_qdq"))
        tables, params = map(int, re.search(r"flash (\d+) bytes of weights and tables, (\d+)",
                                            source.with_suffix(".h").read_text()).groups())
        for level, most in (("-Os", 6 * 1024), ("-O2", 20 * 1024)):
            made = source.with_suffix(".o")
            subprocess.run(["arm-none-eabi-gcc", "-std=c99", level, "-mcpu=cortex-m4", "-mthumb",
                            "-mfloat-abi=soft", "-c", "-o", made, source], check=True)
            text, data, bss = map(int, subprocess.run(
                ["arm-none-eabi-size", made], capture_output=True, text=True,
                check=True).stdout.splitlines()[1].split()[:3])
            self.assertEqual((0, 0), (data, bss))
            self.assertLess(text - tables - params, most, level)

    @for_each(*(t for t in TARGETS if t.startswith("cortex")))
    def test_trained(self, target):
        model = model_path("relu6", "int8_qdq")
        samples, _ = int8_inputs("relu6", 6)
        (want,) = qxc_outputs(model, {"image": samples}, self.scratch, "-io=quant").values()
        got = CrossModel(self.emit(model), target).run([[s] for s in samples])
        np.testing.assert_array_equal([g[0] for g in got], want.reshape(len(samples), -1))
