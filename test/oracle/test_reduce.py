"""`qxc reduce` isolates what makes a command fail, in models of real size; what it writes is valid ONNX
that still fails, in few tests, and the same every time.
"""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import QXC, OracleCase, model_path, qxc


def judge(pattern, end):
    """A command that ends like that where the model's text holds the pattern."""
    return f"'{QXC}' -quiet {{}} | grep -q '{pattern}' && {end}; true"


def resnet(blocks):
    """Convolutions, normalizations and additions, as in a residual network; one LeakyRelu in the middle."""
    rng = np.random.default_rng(1)
    nodes, constants = [], []

    def layer(op, inputs, shapes=(), **attributes):
        name = f"{op}_{len(nodes)}"
        weights = [f"{name}.{i}" for i in range(len(shapes))]
        constants.extend(numpy_helper.from_array(rng.uniform(0.1, 1, s).astype(np.float32), w)
                         for s, w in zip(shapes, weights))
        nodes.append(helper.make_node(op, [*inputs, *weights], [name], name=name, **attributes))
        return name

    x = layer("Conv", ["image"], [(16, 3, 3, 3)], pads=[1] * 4)
    for block in range(blocks):
        y = x
        for _ in range(2):
            y = layer("Conv", [y], [(16, 16, 3, 3)], pads=[1] * 4)
            y = layer("BatchNormalization", [y], [(16,)] * 4)
            y = layer("LeakyRelu" if block == blocks // 2 else "Relu", [y], **(
                {"alpha": 0.5} if block == blocks // 2 else {}))
        x = layer("Add", [x, y])
    layer("GlobalAveragePool", [x])
    graph = helper.make_graph(
        nodes, "resnet",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, 32, 32])],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, ["N", 16, 1, 1])],
        constants)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])


class Reduce(OracleCase):
    expected_seconds = 4

    def setUp(self):
        self.temporary = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        os.environ["TMPDIR"] = str(self.temporary)

    def tearDown(self):
        del os.environ["TMPDIR"]
        self.assertEqual(list(self.temporary.iterdir()), [])

    def reduce(self, model, pattern, end="exit 3", out="out.onnx"):
        out = self.scratch / out
        done = qxc("reduce", model, f"-test={judge(pattern, end)}", "-o", out)
        tests = int(re.findall(r"(\d+) tests", done.stderr)[-1])
        return out, onnx.load(out), tests

    def test_resnet(self):
        """153 nodes; the one that fails remains, with the attribute that matters, in the same bytes twice."""
        path = self.scratch / "resnet.onnx"
        onnx.save(resnet(21), path)
        out, small, tests = self.reduce(path, " LeakyRelu(.*alpha")
        onnx.checker.check_model(small, full_check=True)
        self.assertEqual([n.op_type for n in small.graph.node], ["LeakyRelu"])
        self.assertEqual([a.name for a in small.graph.node[0].attribute], ["alpha"])
        self.assertEqual(len(small.graph.initializer), 0)
        self.assertLess(tests, 40)
        again, _, _ = self.reduce(path, " LeakyRelu(.*alpha", out="again.onnx")
        self.assertEqual(out.read_bytes(), again.read_bytes())

    def test_segv(self):
        path = self.scratch / "resnet.onnx"
        onnx.save(resnet(5), path)
        _, small, _ = self.reduce(path, " BatchNormalization(", "kill -SEGV $$")
        onnx.checker.check_model(small, full_check=True)
        self.assertEqual([n.op_type for n in small.graph.node], ["BatchNormalization"])

    def test_never_fails(self):
        path = self.scratch / "resnet.onnx"
        onnx.save(resnet(1), path)
        done = qxc("reduce", path, f"-test={judge(' Erf(', 'exit 3')}", "-o",
                   self.scratch / "none.onnx", ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not fail on the model", done.stderr)
        self.assertFalse((self.scratch / "none.onnx").exists())

    def test_trained_models(self):
        """A layer of each, and nothing else."""
        for name, kind, op in (("vit", "fp32", "Softmax"), ("relu6", "int8_qdq", "DequantizeLinear"),
                               ("cnn", "fp32", "Relu")):
            with self.subTest(name):
                _, small, tests = self.reduce(model_path(name, kind), f" {op}(")
                onnx.checker.check_model(small, full_check=True)
                self.assertEqual([n.op_type for n in small.graph.node], [op])
                self.assertLess(tests, 40)

    def test_many_nodes(self):
        """Two nodes far apart in a chain of 20000 that are both needed."""
        ops = ["Relu"] * 20000
        ops[6000], ops[15000] = "Tanh", "Erf"
        lines = [f"  %x{i + 1} : float[1,8] = {op}(%x{i})" for i, op in enumerate(ops)]
        path = self.scratch / "chain.qir"
        path.write_text('qir 1\nimport "" 17\ngraph @g (%x0 : float[1,8]) -> '
                        f"(%x{len(ops)}) {{\n" + "\n".join(lines) + "\n}\n")
        out = self.scratch / "chain.out.qir"
        done = qxc("reduce", path, "-test=grep -q Tanh {} && grep -q Erf {} && exit 1; true", "-o", out)
        self.assertEqual(re.findall(r"= (\w+)\(", out.read_text()), ["Tanh", "Erf"])
        self.assertLess(int(re.findall(r"(\d+) tests", done.stderr)[-1]), 100)

    def test_interrupt(self):
        """Ctrl-C ends the command too; the smallest so far is written, and said to be no more than that."""
        path, out = self.scratch / "resnet.onnx", self.scratch / "so_far.onnx"
        onnx.save(resnet(5), path)
        marks = self.scratch / "marks"
        test = f"echo >> {marks}; [ $(wc -l < {marks}) -gt 4 ] && exec sleep 1000; false"
        with subprocess.Popen([QXC, "reduce", path, f"-test={test}", "-o", out],
                              stderr=subprocess.PIPE, text=True) as process:
            while not marks.exists() or len(marks.read_text()) < 5:
                self.assertIsNone(process.poll())
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=20)[1]
        self.assertEqual(process.returncode, 1)
        self.assertIn("interrupted: what was written is the smallest so far", said)
        self.assertLess(out.stat().st_size, path.stat().st_size)
        onnx.checker.check_model(onnx.load(out), full_check=True)
