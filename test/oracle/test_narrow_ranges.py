"""Activations of a part of their storage's range, such as 4 bits in a byte: what `qxc run` computes,
against both forms that qxc emits, in onnxruntime with and without its optimizer.

One graph a grid, in which each operator stands alone between integers. Equal bit for bit but for
what sums floats or multiplies by another constant, where a number that lies on a tie between two integers
may go to either: one step, as SOME_STEPS says for each of the four.
"""

import re
import unittest

import numpy as np
import onnx

from common import OracleCase, for_each, qxc, qxc_outputs, run_samples, session

GRIDS = {  # type, lowest, highest, zero point
    "s4": ("int8q", -8, 7, -1), "u4": ("uint8q", 0, 15, 7), "s4 sym": ("int8q", -7, 7, 0), "u4 relu": ("uint8q", 0, 15, 0),
    "s4 low": ("int8q", -128, -113, -128), "odd": ("uint8q", 5, 250, 130), "12 in 16": ("uint16q", 0, 4095, 2000),
    "s16": ("int16q", -2000, 2000, 3), "int4": ("int4q", -8, 7, 0), "int4 sym": ("int4q", -7, 7, 0)}

SAME = None  # the operand's grid
OPERATORS = {  # call, shape of the result, its largest number, what follows it
    "conv": ("Conv(%x, %w, %b) <pads=[1, 1, 1, 1]>", (4, 8, 8), 12),
    "conv_relu": ("Conv(%x, %w, %b) <pads=[1, 1, 1, 1]>", (4, 8, 8), 6),
    "matmul": ("MatMul(%x, %m)", (4, 8, 8), 8),
    "gemm": ("Gemm(%row, %m)", (8,), 8),
    "add": ("Add(%x, %x2)", (4, 8, 8), 6),
    "sub": ("Sub(%x, %x2)", (4, 8, 8), 6),
    "mul": ("Mul(%x, %x2)", (4, 8, 8), 6),
    "mean": ("GlobalAveragePool(%x)", (4, 1, 1), 1),
    "average": ("AveragePool(%x) <kernel_shape=[2, 2]>", (4, 7, 7), 3),
    "softmax": ("Softmax(%x)", (4, 8, 8), 1),
    "concat": ("Concat(%x, %x2) <axis=1>", (8, 8, 8), 4),
    "sigmoid": ("Sigmoid(%x)", (4, 8, 8), 2),
    "leaky": ("LeakyRelu(%x) <alpha=0.1>", (4, 8, 8), 3),
    "tanh": ("Tanh(%x)", (4, 8, 8), 2),
    "clip": ("Clip(%x, %lo, %hi)", (4, 8, 8), 2),
    "relu": ("Relu(%x)", (4, 8, 8), 3),
    "relu_same": ("Relu(%x)", (4, 8, 8), SAME),
    "max": ("MaxPool(%x) <kernel_shape=[2, 2]>", (4, 7, 7), SAME),
    "transpose": ("Transpose(%x) <perm=[0, 1, 3, 2]>", (4, 8, 8), SAME),
    "pad": ("Pad(%x, %pads)", (4, 10, 8), SAME)}

SUMS = {"conv", "conv_relu", "matmul", "gemm", "mean", "average"}  # of floats, where nothing fuses them
# QLinearAdd rounds with the zero point inside; Sub has no QOperator, and where Add has none either it is two products
# and a sum of floats.
OTHERS = {"add", "sub"}
SOME_STEPS = {("qop", False): OTHERS, ("qop", True): OTHERS, ("qdq", False): SUMS | OTHERS, ("qdq", True): OTHERS}
# Not bytes: onnxruntime fuses none of it, and has no QOperators for 16 bits. Those of 4 bits are bytes in QOperators.
WIDE = SUMS | OTHERS | {"concat", "mul", "leaky", "sigmoid", "tanh", "relu"}


def grid(name, size, low_zero=False):
    storage, lo, hi, zero = GRIDS[name]
    scale = np.float32(size / (hi - lo) * (0.5 if zero == lo else 1))
    return f"{storage}<{float(scale)!r}, {lo if low_zero else zero}, range={lo}:{hi}>", scale


def text(name, rng):
    types, body, steps = {"x": grid(name, 4)[0], "x2": grid(name, 5)[0]}, [], {}
    for op, (call, shape, size) in OPERATORS.items():
        quant, scale = grid(name, 4 if size is SAME else size, op == "conv_relu")
        types[op], steps[f"{op}.f"] = quant, scale
        shape = f"[1,{','.join(map(str, shape))}]"
        if op == "conv_relu":
            body += [f"%before : !{op}{shape} = {call}", f"%{op} : !{op}{shape} = Relu(%before)"]
        else:
            body.append(f"%{op} : !{op}{shape} = {call}")
        body.append(f"%{op}.f : float{shape} = DequantizeLinear(%{op})")
    quants = "\n".join(f"quant !{k} = {v}" for k, v in types.items())
    weights = rng.integers(-127, 128, 208).tolist()
    lines = [f"const %w : int8q<0.004, 0>[4,4,3,3] = {weights[:144]}", f"const %m : int8q<0.008, 0>[8,8] = {weights[144:]}",
             "const %lo : float[] = [-0.5]", "const %hi : float[] = [1.5]", "const %pads : int64[8] = [0, 0, 1, 0, 0, 0, 1, 0]",
             "const %at : int64[1] = [0]", "const %to : int64[2] = [1, 8]",
             "%x : !x[1,4,8,8] = QuantizeLinear(%in)", "%x2 : !x2[1,4,8,8] = QuantizeLinear(%in2)",
             f"const %b : acc<%x, %w>[4] = {rng.integers(-90, 90, 4).tolist()}",
             "%part : !x[1,1,8,8] = Gather(%x, %at) <axis=1>", "%rows : !x[1,1,1,8] = Gather(%part, %at) <axis=2>",
             "%row : !x[1,8] = Reshape(%rows, %to)"]
    return (f'qir 1\nimport "" 21\nmodel <ir_version=10>\n{quants}\ngraph @g (%in : float[1,4,8,8], %in2 : float[1,4,8,8]) -> '
            f"({', '.join('%' + s for s in steps)}) {{\n  " + "\n  ".join(lines + body) + "\n}\n"), steps


class NarrowRanges(OracleCase):
    @for_each(*GRIDS)
    def test_grid(self, name):
        rng, path, saved = np.random.default_rng(5), self.scratch / "m.qir", self.scratch / "fused.onnx"
        source, steps = text(name, rng)
        path.write_text(source)
        x = {k: rng.normal(0, 1.5, (25, 4, 8, 8)).astype(np.float32) for k in ("in", "in2")}
        want = qxc_outputs(path, x, self.scratch)
        for form, optimize in SOME_STEPS:
            out = self.scratch / f"{form}.onnx"
            qxc(path, f"-emit={form}", "-no-sync", "-quiet", "-o", out)
            onnx.checker.check_model(onnx.load(out), full_check=True)
            got = run_samples(session(out, optimize, saved, int8=True), onnx.load(out), x)
            loose = SOME_STEPS[form, optimize]
            if "16" in name or (form == "qdq" and "int4" in name):
                loose = WIDE
            for value, step in steps.items():
                with self.subTest(form=form, optimize=optimize, value=value):
                    away = np.rint(np.abs(got[value].reshape(want[value].shape) - want[value]) / step)
                    self.assertLessEqual(away.max(), value[:-2] in loose)
                    self.assertLess((away > 0).mean(), 0.15)
                    self.assertGreater(len(np.unique(want[value])), 3)
            if form == "qdq" and optimize and name[:3] not in ("int", "s16", "12 "):
                ops = {n.op_type for n in onnx.load(saved).graph.node}
                self.assertFalse(ops & {"Conv", "FusedConv", "MatMul", "Gemm", "Add", "AveragePool"}, "not fused")

    @for_each(*GRIDS)
    def test_types_come_back(self, name):
        """QDQ and QOperators read again have the ranges that were written; written again they are the same nodes."""
        def types(file):
            text = qxc(file, "-form=true", "-quiet").stdout
            alias = dict(re.findall(r"^quant !(\w+) = (.*)$", text, re.M))
            found = re.findall(r"^  %(\w+) : (?:!(\w+)|([^\[]*))\[", text, re.M)
            return {value: alias[name] if name else given for value, name, given in found}

        path, out, again = (self.scratch / n for n in ("m.qir", "out.onnx", "again.onnx"))
        path.write_text(text(name, np.random.default_rng(5))[0])
        want = types(path)
        for form in ("qdq", "qop"):
            qxc(path, f"-emit={form}", "-no-sync", "-quiet", "-o", out)
            have = types(out)
            for op in OPERATORS:
                if form == "qop" and op == "relu_same" and op not in have:
                    continue  # it cuts nothing there, and is gone
                whole = want[op].replace(", range=-8:7", "") if "int4q" in want[op] else want[op]
                at = f"{op}_QuantizeLinear_Output"  # 16 bits behind a table stay a conversion of a float
                self.assertEqual(have.get(at, have.get(op)), whole if form == "qdq" else want[op].replace("int4q", "int8q"), (form, op))
            qxc(out, f"-emit={form}", "-no-sync", "-quiet", "-o", again)
            nodes = [sorted((n.op_type, len(n.input)) for n in onnx.load(f).graph.node) for f in (out, again)]
            self.assertEqual(*nodes)
            if form == "qdq" and "16" not in name and "int4" not in name:
                self.assertEqual(out.read_bytes(), again.read_bytes())


if __name__ == "__main__":
    unittest.main()
