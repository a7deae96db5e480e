"""Parts of `make accuracy` that its page relies on: what is left in float, what the page says, and the process of a tool."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from types import SimpleNamespace
from unittest import mock

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import DIGITS, ROOT, OracleCase, qxc

PEERS = ROOT / "tools/peers"
sys.path += [str(PEERS), str(ROOT / "tools")]

from products import float_products


def page_module():
    """tools/bench has a page, too."""
    spec = importlib.util.spec_from_file_location("peers_page", PEERS / "page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def model_of(nodes, **constants):
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    made = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, made))


W = np.ones((4, 4), np.float32)
Q, SCALE = W.astype(np.int8), np.float32(0.5)


class Products(OracleCase):
    def test_of_qxc(self):
        """All of digits are quantized; of the float model none is."""
        out = self.scratch / "q.onnx"
        qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", "-emit=qdq", "-quiet", "-no-sync", "-o", out)
        left, count = float_products(onnx.load(DIGITS / "digits.onnx"))
        self.assertEqual((count, 5), (left, count))
        self.assertEqual((0, 5), float_products(onnx.load(out)))

    def test_through_moves(self):
        """A weight may be turned before or behind its DequantizeLinear; a Q and a DQ of a float constant are integers."""
        nodes = [helper.make_node("DequantizeLinear", ["q", "s"], ["d"]), helper.make_node("Transpose", ["d"], ["t"]),
                 helper.make_node("MatMul", ["x", "t"], ["a"]),
                 helper.make_node("QuantizeLinear", ["w", "s"], ["wq"]), helper.make_node("DequantizeLinear", ["wq", "s"], ["wd"]),
                 helper.make_node("MatMul", ["a", "wd"], ["b"]),
                 helper.make_node("Transpose", ["w"], ["wt"]), helper.make_node("MatMul", ["b", "wt"], ["y"])]
        self.assertEqual((1, 3), float_products(model_of(nodes, w=W, q=Q, s=SCALE)))

    def test_behind_a_guard(self):
        """A Sum of one weight is that weight; a Sum of two is a result."""
        nodes = [helper.make_node("DequantizeLinear", ["q", "s"], ["d"]), helper.make_node("Sum", ["d"], ["g"]),
                 helper.make_node("MatMul", ["x", "g"], ["a"]),
                 helper.make_node("Sum", ["d", "w"], ["two"]), helper.make_node("MatMul", ["a", "two"], ["y"])]
        self.assertEqual((0, 1), float_products(model_of(nodes, w=W, q=Q, s=SCALE)))

    def test_no_constant(self):
        """A product of two results is none of a weight, whatever is quantized before it."""
        nodes = [helper.make_node("QuantizeLinear", ["x", "s"], ["xq"]), helper.make_node("DequantizeLinear", ["xq", "s"], ["xd"]),
                 helper.make_node("MatMul", ["xd", "xd"], ["y"])]
        self.assertEqual((0, 0), float_products(model_of(nodes, s=SCALE)))


class Page(unittest.TestCase):
    def setUp(self):
        self.page = page_module()
        full = {"sqnr": 30.0, "float": 0, "products": 2, "cpu": 1.0, "mib": 9}
        self.found = {("W8A8", "quark", "CLE", "a"): [full], ("W8A8", "quark", "CLE", "b"): [{"why": "no"}],
                      ("W8A8", "modelopt", "max", "a"): [{"why": "it quantizes no product"}],
                      ("W8A8", "modelopt", "max", "b"): [{"why": "it quantizes no product"}],
                      ("W8A8", "qxc", "default", "a"): [{**full, "sqnr": 31.0, "float": 1}],
                      ("W8A8", "qxc", "default", "b"): [{**full, "sqnr": 20.0}]}

    def test_failures(self):
        self.assertEqual(["- W8A8, quark CLE, b: no", "- W8A8, modelopt max, all models: it quantizes no product"],
                         self.page.failures(self.found))
        self.found["W8A8", "quark", "CLE", "a"][0].pop("float")
        self.assertIn("- W8A8, quark CLE, a: measured before products left in float were counted", self.page.failures(self.found))

    def test_table(self):
        """What is left in float is marked; a recipe without any number has no row."""
        text = self.page.page(self.found, ["a", "b"], 1, "none")
        self.assertIn("| quark CLE | 30.0 |  |\n", text)
        self.assertIn("| `qxc` | **31.0**\\* | **20.0** |\n", text)
        self.assertNotIn("| modelopt max |", text)
        self.assertIn("| best of qxc over the best of the others |  |  |\n", text)

    def test_lead(self):
        """Of what is quantized as a whole: more signal of a model that is so in part is no lead, on either side."""
        full = self.found["W8A8", "quark", "CLE", "a"][0]
        self.found["W8A8", "qxc", "-preset=auto", "a"] = [{**full, "sqnr": 30.5}]
        self.found["W8A8", "quark", "AdaRound", "a"] = [{**full, "sqnr": 40.0, "float": 1}]
        self.assertIn("| best of qxc over the best of the others | +0.5 |  |\n", self.page.page(self.found, ["a", "b"], 1, "none"))


class Text(unittest.TestCase):
    def test_table(self):
        """Perplexity by bits, the least bold; a recipe without these bits has an empty cell."""
        cell = {"sqnr": 30.0, "float": 0, "products": 2, "plain perplexity": 3.5}
        four, two = "int4 in blocks of 32", "int2 in blocks of 32"
        text = page_module().page({(four, "onnxruntime", "RTN", "decoder"): [{**cell, "perplexity": 3.7}],
                                   (four, "qxc", "default", "decoder"): [{**cell, "perplexity": 3.6}],
                                   (two, "qxc", "default", "decoder"): [{**cell, "perplexity": 4.0}]}, ["decoder"], 1, "none")
        self.assertIn("Perplexity of decoder, which has 3.500 in float:", text)
        self.assertIn("| onnxruntime RTN | 3.700 |  |  |\n", text)
        self.assertIn("| `qxc` | **3.600** |  | **4.000** |\n", text)


class Through(OracleCase):
    """tools/peers --through: what each step gives, and what its page calls right."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import through
        import through_page
        cls.through, cls.page = through, through_page

    def made(self, last="QuantizeLinear"):
        """x, quantized, times W: a float product, or one whose result is quantized again."""
        nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]), helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
                 helper.make_node("DequantizeLinear", ["q", "s"], ["d"]), helper.make_node("MatMul", ["xd", "d"], ["m" if last else "y"])]
        if last:
            nodes += [helper.make_node("QuantizeLinear", ["m", "s", "z"], ["yq"]), helper.make_node("DequantizeLinear", ["yq", "s", "z"], ["y"])]
        path, model = self.scratch / "made.onnx", model_of(nodes, s=SCALE, q=Q, z=np.uint8(128))
        model.opset_import[0].version, model.ir_version = 17, 8
        onnx.save(model, path)
        return path

    def test_steps(self):
        """All steps of a whole integer model are right, and its C needs no floats; of a float result that is refused."""
        data = {"x": np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)}
        found = self.through.Way(self.made(), data, self.scratch).steps(None)
        self.assertEqual(set(self.through.STEPS), set(found))
        self.assertTrue(all(self.page.right(cell, None) for cell in found.values()), found)
        found = self.through.Way(self.made(last=None), data, self.scratch).steps(data | {"x": data["x"] @ W})
        self.assertIn("computes in floating point", found["integers"]["refused"])
        self.assertNotIn("refused", found["c"])
        self.assertIn("noise", found)

    def test_apart(self):
        """Of an output that is quantized in its scale's steps, of another in 1/255 of its range."""
        want = np.array([[0.0, 255.0]], np.float32)
        for last, steps in (("QuantizeLinear", 4), (None, 2)):
            with self.subTest(last=last):
                model = onnx.load(self.made(last))
                self.assertAlmostEqual(steps, self.through.apart(model, {"y": want}, {"y": want + 2})["steps"], 4)
        self.assertEqual({"sqnr": np.inf, "steps": 0.0}, self.through.apart(model, {"y": want}, {"y": want}))
        self.assertEqual(np.inf, self.through.apart(model, {"y": want}, {"y": want * np.nan})["steps"])

    def test_right(self):
        """A step is nothing, more is where it stays below half the tool's own noise; a refusal is never right."""
        for cell, noise, right in (({"sqnr": 20, "steps": 1}, 30, True), ({"sqnr": 34, "steps": 3}, 30, True),
                                   ({"sqnr": 32, "steps": 3}, 30, False), ({"sqnr": 90, "steps": 3}, None, False),
                                   ({"refused": "no"}, 30, False), ({"said": []}, None, True)):
            with self.subTest(cell=cell):
                self.assertEqual(right, self.page.right(cell, noise))

    def test_page(self):
        cells = dict.fromkeys(self.through.STEPS, {"sqnr": np.inf, "steps": 0})
        refused = {"refused": 'a.onnx: node "n" (Conv, #3): error: node "n" (Conv) stays float: its operand \'x\' is float'}
        text = self.page.page({("nncf", "W8A8"): {"a": cells, "b": {**cells, "c": refused}, "d": {"why": "no Gemm"}}}, "nncf 1", 16)
        self.assertIn("| nncf | W8A8 | 2 of 2 | 2 of 2 | 2 of 2 | 2 of 2 | 2 of 2 | 1 of 2 | 2 of 2 |\n", text)
        self.assertIn("- `c` a node (Conv) stays float: its operand is float: nncf W8A8 (b)\n", text)
        self.assertIn("- no Gemm: nncf W8A8 (d)\n", text)
        self.assertNotIn("## What is not right", text)

    def test_models(self):
        """The page names what it is about and what it leaves out; a file of a tool is neither."""
        import models
        cells = dict.fromkeys(self.through.STEPS, {"sqnr": np.inf, "steps": 0})
        first, *others = models.USUAL
        text = self.page.page({("nncf", "W8A8"): {first: cells}, ("torch", "PT2E"): {"pt2e_1": cells}}, "nncf 1", 16)
        self.assertIn(f" Models: {first}. Left out: {', '.join(others)}.\n", text)
        text = self.page.page({("nncf", "W8A8"): dict.fromkeys(models.USUAL, cells)}, "nncf 1", 16)
        self.assertIn(f" Models: {', '.join(models.USUAL)}.\n", text)

    def test_kept(self):
        """A page of what is kept asks no tool and runs no model; other runs do."""
        model = SimpleNamespace(name="made", path=self.made(), calib={}, test={})
        tools = {"KEPT": self.scratch / "kept", "python_of": lambda tool: sys.executable, "version_of": lambda *_: "1"}
        with mock.patch.multiple(self.through, **tools), mock.patch.object(self.through, "quantized") as quantized, \
             mock.patch.object(self.through, "reference_of") as reference:
            self.assertEqual(self.through.NOT_MEASURED, self.through.through(model, "nncf", "static", only_kept=True))
            quantized.assert_not_called()
            quantized.side_effect = self.through.Failed("it is asked")
            self.assertEqual({"why": "it is asked"}, self.through.through(model, "nncf", "static"))
            reference.assert_not_called()


class Perplexity(unittest.TestCase):
    def test_shares(self):
        """Of equal logits as many as there are, whatever they are; 1 where what comes is sure."""
        from perplexity import bits, perplexity
        labels = np.array([[0, 3, 2]])
        for level in (0, -1e30, 1e4):
            self.assertAlmostEqual(4, perplexity(np.full((1, 3, 4), level, np.float32), labels))
        sure = np.where(np.arange(4) == labels[..., None], 0, -np.inf).astype(np.float32)
        self.assertEqual(1, perplexity(sure, labels))
        half = np.log(np.array([[0.5, 0.25, 0.25]], np.float32))
        self.assertAlmostEqual(1, bits(half, np.array([0])), 6)
        self.assertAlmostEqual(2, bits(half, np.array([2])), 6)


class Feeding(unittest.TestCase):
    def test_reader(self):
        """One sample a time and then None, until it begins anew; the first costs none."""
        from feeding import Reader
        reader = Reader(["a", "b"])
        for _ in range(2):
            self.assertEqual("a", reader.get_first())
            self.assertEqual(["a", "b", None, None], [reader.get_next() for _ in range(4)])
            reader.rewind()


TOOL = """import sys
def main(what):
    print("said", what)
    if what == "fail":
        raise ValueError("of " + what)
    while what == "hang":
        pass
"""


class Serving(unittest.TestCase):
    def test_jobs(self):
        """Each job is a process of its own: a failure, and one that takes too long, leave the next alone."""
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/with_toy.py", "w") as file:
                file.write(TOOL)
            jobs = "".join(json.dumps({"words": [word], "folder": folder, "seconds": 1}) + "\n" for word in ("fail", "hang", "well"))
            ran = subprocess.run([sys.executable, PEERS / "serve.py", "toy"], input=jobs, capture_output=True, text=True, check=True,
                                 env={**os.environ, "PYTHONPATH": folder})
            answers = [json.loads(line) for line in ran.stdout.splitlines()]
            self.assertEqual([1, -signal.SIGXCPU, 0], [a["status"] for a in answers])
            with open(f"{folder}/said") as file:
                said = file.read()
            self.assertIn("ValueError: of fail", said)
            self.assertIn("said well", said)
            self.assertTrue(all(a["cpu"] > 0 and a["mib"] > 1 for a in answers))
