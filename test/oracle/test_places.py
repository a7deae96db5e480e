#!/usr/bin/env python3
"""Messages about ONNX models: which node, in which graph, and the line of -emit=qir that shows it."""

import re
import subprocess
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import common

F = TensorProto.FLOAT
info = helper.make_tensor_value_info


def conv(name, group=3):
    return helper.make_node("Conv", ["x", "w"], ["y"], name=name, group=group)


def model(nodes, outputs=("y",), functions=(), **graph):
    w = numpy_helper.from_array(np.ones((3, 3, 1, 1), np.float32), "w")
    g = helper.make_graph(nodes, "main", [info("x", F, [1, 2, 3, 4]), info("c", TensorProto.BOOL, [])],
                          [info(n, F, None) for n in outputs], [w], **graph)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("f", 1)]
    return helper.make_model(g, opset_imports=imports, ir_version=10, functions=functions)


class Places(common.OracleCase):
    def messages(self, m, stdin=False):
        path = self.scratch / "in.onnx"
        path.write_bytes(m.SerializeToString())
        data = path.read_bytes() if stdin else None
        done = subprocess.run([common.QXC, "-" if stdin else str(path), "-emit=qir"], input=data,
                              capture_output=True, check=False, timeout=60)
        return done.stderr.decode().splitlines()

    def shown(self, m, place, text, caret, stdin=False):
        """One message: its place, and under it the line of the text with a mark under `caret`."""
        lines = self.messages(m, stdin)
        heads = [i for i, line in enumerate(lines) if re.search(text, line)]
        self.assertEqual(len(heads), 1, lines)
        head, line, marks = lines[heads[0]:heads[0] + 3]
        name = "-" if stdin else str(self.scratch / "in.onnx")
        number = re.search(r"line (\d+) of -emit=qir", head)
        self.assertTrue(number, head)
        self.assertTrue(head.startswith(f"{name}: {place % number[1]}: "), head)
        at = marks.index("^")
        self.assertEqual(line[at:at + marks.count("~") + 1], caret, "\n".join(lines))
        return int(number[1]), line

    def test_node(self):
        place = 'node "/conv1/Conv" (Conv, #1 in graph "main"; line %s of -emit=qir)'
        relu = helper.make_node("Relu", ["x"], ["r"])
        for stdin in False, True:
            bad = model([relu, conv("/conv1/Conv")])
            number, line = self.shown(bad, place, "weights want 9", "%w", stdin)
            self.assertIn('name "/conv1/Conv"', line)
        # The line is that of the text: seen where the same model without the fault prints.
        bad.graph.node[1].attribute[0].i = 1
        bad.graph.input[0].CopyFrom(info("x", F, [1, 3, 3, 4]))
        good = self.scratch / "good.onnx"
        good.write_bytes(bad.SerializeToString())
        text = common.qxc(good).stdout.splitlines()
        self.assertIn("/conv1/Conv", text[number - 1])

    def test_attribute(self):
        bad = helper.make_node("Softmax", ["x"], ["y"], name="s", axis=4)
        self.shown(model([bad]), 'node "s" (Softmax, #0 in graph "main"; line %s of -emit=qir)',
                   "axis 4 is out of range", "4")

    def test_unnamed_node(self):
        self.shown(model([conv("")]), 'node #0 (Conv in graph "main"; line %s of -emit=qir)',
                   "weights want 9", "%w")

    def test_branches(self):
        """Two branches with equal nodes: the graph's path and the line tell them apart."""
        def branch(group):
            return helper.make_graph([conv("same", group)], "body", [], [info("y", F, None)])
        for bad in "then_branch", "else_branch":
            groups = {"then_branch": 1, "else_branch": 1} | {bad: 3}
            choice = helper.make_node("If", ["c"], ["z"], name="choice",
                                      **{k: branch(g) for k, g in groups.items()})
            m = model([choice], ["z"])
            m.graph.input[0].CopyFrom(info("x", F, [1, 3, 3, 4]))
            place = f'node "same" (Conv, #0 in {bad} of node "choice" (If, #0) in graph "main"'
            with self.subTest(bad):
                _, line = self.shown(m, place + "; line %s of -emit=qir)", "weights want 9", "%w")
                self.assertIn("group=3", line)

    def test_function(self):
        body = helper.make_function("f", "Strange", ["a"], ["b"], [
            helper.make_node("Nonsense", ["a"], ["b"], name="n")], [helper.make_opsetid("", 21)])
        call = helper.make_node("Strange", ["x"], ["y"], domain="f")
        self.shown(model([call], functions=[body]),
                   'node "n" (Nonsense, #0 in function "Strange"; line %s of -emit=qir)',
                   "no operator Nonsense", "Nonsense")

    def test_metadata(self):
        m = model([helper.make_node("Relu", ["x"], ["y"])])
        m.graph.input[0].metadata_props.add(key="qxc.stat", value="?")
        self.shown(m, 'input "x" in graph "main" (line %s of -emit=qir)', "kept as it is", "%x")

    def test_unreadable(self):
        """Without a module there is no text; the place is named all the same."""
        m = model([conv("/c")])
        m.graph.node[0].input[1] = "nope"
        lines = self.messages(m)
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines[0].endswith(
            'in.onnx: node "/c" (Conv, #0 in graph "main"): error: input "nope" is not defined'), lines)


if __name__ == "__main__":
    unittest.main()
