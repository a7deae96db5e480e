"""Eight times the layers take about eight times the instructions: no pass looks at every layer for
every layer. Instructions, because time grows with what caches and a busy machine add; what valgrind
counts is the same in every run. Start-up makes it less than eight times: 7.85 where all is linear."""

import os
import re
import shutil
import subprocess
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import HANG, QXC, OracleCase, for_each, qxc

LAYERS, READERS, TIMES = 500, 1000, 8
BOUND = 8.25  # a pass that is quadratic and takes 0.75 % of the instructions of the fewer layers is one too many
HEAD = 'qir 1\nimport "" 21\nmodel <ir_version=10>\n'


def sigmoids(n):
    """Sigmoid, QuantizeLinear, DequantizeLinear, n times, each with parameters of its own."""
    lines = [f"graph @g (%x : float[4]) -> (%d{n}) {{"]
    for i in range(n + 1):
        lines += [f"const %s{i} : float[] = [{0.01 + i * 1e-6:.6f}]",
                  f"const %z{i} : uint8[] = [{i % 256}]"]
    for i in range(n + 1):
        source = f"Sigmoid(%d{i - 1})" if i else "Identity(%x)"
        lines += [f"%f{i} : float[4] = {source}",
                  f"%q{i} : uint8[4] = QuantizeLinear(%f{i}, %s{i}, %z{i})",
                  f"%d{i} : float[4] = DequantizeLinear(%q{i}, %s{i}, %z{i})"]
    return HEAD + "\n".join(lines) + "\n}\n"


def convolutions(n):
    """n Convs in a row with statistics, to be quantized."""
    lines = [f"graph @g (%y0 : float[1,2,1,1]) -> (%y{n}) {{"]
    for i in range(1, n + 1):
        lines += [f"const %w{i} : float[2,2,1,1] = [1.0, 0.5, 0.5, 1.0]",
                  f"const %b{i} : float[2] = [1.0, 0.0]"]
    lines += [f"%y{i} : float[1,2,1,1] = Conv(%y{i - 1}, %w{i}, %b{i})" for i in range(1, n + 1)]
    lines += [f"stat %y{i} <min=-1.0, max={1 + i * 1e-4:.4f}>" for i in range(n + 1)]
    return HEAD + "\n".join(lines) + "\n}\n"


def readers(n):
    """A value that n DequantizeLinear read, each with a Relu behind it."""
    lines = ["graph @g (%x : float[4]) -> (%y0) {", "const %s : float[] = [0.5]", "const %z : int8[] = [3]",
             "%q : int8[4] = QuantizeLinear(%x, %s, %z)"]
    for i in range(n):
        lines += [f"%d{i} : float[4] = DequantizeLinear(%q, %s, %z)", f"%y{i} : float[4] = Relu(%d{i})"]
    return HEAD + "\n".join(lines) + "\n}\n"


def gelus(n):
    """n Gelus as exporters spell them."""
    lines = [f"graph @g (%y0 : float[4]) -> (%y{n}) {{", "const %half : float[] = [0.5]",
             "const %root : float[] = [1.4142135]", "const %one : float[] = [1.0]"]
    for i in range(n):
        lines += [f"%a{i} : float[4] = Div(%y{i}, %root)", f"%b{i} : float[4] = Erf(%a{i})",
                  f"%c{i} : float[4] = Add(%b{i}, %one)", f"%d{i} : float[4] = Mul(%y{i}, %c{i})",
                  f"%y{i + 1} : float[4] = Mul(%d{i}, %half)"]
    return HEAD + "\n".join(lines) + "\n}\n"


def factors(n):
    """Nodes of which every other may be the last of a chain that is recognised, and none is."""
    lines = [f"graph @g (%y0 : float[4,16]) -> (%y{n}) {{", "const %c : float[16] = splat(1.01)", "const %b : float[] = [0.1]"]
    for i in range(n):
        lines += [f"%y{i + 1} = " + ("Mul(%y{0}, %c)", "Add(%y{0}, %b)", "Sigmoid(%y{0})", "Relu(%y{0})")[i % 4].format(i)]
    return HEAD + "\n".join(lines) + "\n}\n"


def stated(n):
    """n nodes, each of which states its quantization."""
    lines = [f"graph @g (%y0 : float[4]) -> (%y{n}) {{"]
    lines += [f'%y{i + 1} = Sigmoid(%y{i}) name "n{i}" meta <"quantization.out"="int8">' for i in range(n)]
    lines += [f"stat %y{i} <min=0.0, max={1 + i * 1e-4:.4f}>" for i in range(n + 1)]
    return HEAD + "\n".join(lines) + "\n}\n"


def ruled(n):
    """n nodes, with a rule for the value of every other one and for the node of each of the rest."""
    rules = [f'  value "y{i}" int8' if i % 2 else f'  node "n{i}" in int8q' for i in range(n)]
    lines = ["scheme {", *rules, '  value "other*" int8', "}", f"graph @g (%y0 : float[4]) -> (%y{n}) {{"]
    lines += [f'%y{i + 1} = Sigmoid(%y{i}) name "n{i}"' for i in range(n)]
    lines += [f"stat %y{i} <min=0.0, max={1 + i * 1e-4:.4f}>" for i in range(n + 1)]
    return HEAD + "\n".join(lines) + "\n}\n"


MODELS = {"sigmoids": (sigmoids, LAYERS, "-emit=qdq"), "convolutions": (convolutions, LAYERS, "-emit=qdq"),
          "readers": (readers, READERS, "-emit=qdq"), "gelus": (gelus, LAYERS, "-passes=fuse-gelu"),
          "stated": (stated, LAYERS, "-form=fake"),
          "ruled": (ruled, LAYERS, "-form=fake"), "report": (convolutions, LAYERS, "-emit=json")}

# KiB for what stands in the model for one n: three nodes, one that becomes five, two, one with a text of its own
ROOM = {"sigmoids": 18, "convolutions": 24, "readers": 6, "stated": 28}


class Growth(OracleCase):
    expected_seconds = 10

    def instructions(self, model, layers, option):
        path = self.scratch / f"{layers}.qir"
        path.write_text(model(layers))
        counted = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=no",
                                  "--cachegrind-out-file=/dev/null", QXC, path, option, "-quiet",
                                  "-no-sync", "-o", self.scratch / "out"],
                                 capture_output=True, text=True, check=False, timeout=HANG)
        self.assertEqual(counted.returncode, 0, counted.stderr)
        return int(re.search(r"I +refs: +([\d,]+)", counted.stderr)[1].replace(",", ""))

    def need_valgrind(self):
        if not shutil.which("valgrind") or os.environ.get("SANITIZE"):
            self.skipTest("there is no valgrind, or the program has a sanitizer, which does not run in it")

    def test_chains_nobody_has(self):
        """Looking for chains costs little where there are none: beside a pass that does nothing there."""
        self.need_valgrind()
        look, idle = (self.instructions(factors, 40 * LAYERS, option) for option in ("-passes=recognise", "-passes=freeze"))
        self.assertLess(look / idle, 1.07, f"{look} instructions, {idle} without")

    @for_each(*MODELS)
    def test_many_layers(self, name):
        self.need_valgrind()
        model, n, option = MODELS[name]
        few, many = self.instructions(model, n, option), self.instructions(model, TIMES * n, option)
        self.assertLess(many / few, BOUND, f"{few} instructions, then {many}")

    @for_each(*ROOM)
    def test_memory(self, name):
        """What passes need for a while is given back: a hundred thousand nodes fit by default."""
        model, n = MODELS[name][0], 2 * TIMES * MODELS[name][1]
        path = self.scratch / "model.qir"
        path.write_text(model(n))
        limit = ROOM[name] * n // 1024 + 1
        qxc(path, "-emit=qdq", "-quiet", "-no-sync", f"-max-memory={limit}", "-o", self.scratch / "out.onnx")

    def test_memory_of_programs(self):
        """What runs the float model for a pass is gone behind the pass: four look, and there is room for one."""
        width, rng = 1024, np.random.default_rng(1)
        path, data, out = (self.scratch / name for name in ("wide.onnx", "wide.npz", "wide.qdq.onnx"))
        weights = {f"w{i}": rng.standard_normal([width, width]).astype(np.float32) / 32 for i in range(2)}
        nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
                 helper.make_node("MatMul", ["b", "w1"], ["y"])]
        ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", width])] for name in "xy"]
        graph = helper.make_graph(nodes, "g", *ports, [numpy_helper.from_array(w, n) for n, w in weights.items()])
        onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), path)
        np.savez(data, x=rng.standard_normal([8, width]).astype(np.float32))
        qxc(path, f"-calib={data}", "-equalize", "-bias-correction", "-emit=qdq", "-no-sync", "-max-memory=40",
            "-o", out)


if __name__ == "__main__":
    unittest.main()
