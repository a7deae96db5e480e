#!/usr/bin/env python3
"""Automatic mixed precision: the gate holds for what onnxruntime computes, the scheme that is written
gives the same bytes, and where a gate cannot be met nothing is written and the exit code is 4."""

import re
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

import common
from common import DIGITS, OracleCase, qxc, run_samples, session, sqnr

CALIB = DIGITS / "calib.npz"
TEST = DIGITS / "test.npz"
MODEL = DIGITS / "digits.onnx"
FEW = "-weights=int4 sym"


class Mixed(OracleCase):
    def run_on(self, path, data):
        model = onnx.load(path)
        with np.load(data) as loaded:
            return run_samples(session(path), model, {"image": loaded["image"]})["logits"]

    def kept(self, done):
        return [line.split()[0] for line in done.stderr.splitlines() if "stays float (" in line]

    def test_the_gate_holds(self):
        found = []
        want = self.run_on(MODEL, CALIB)
        for least in 15, 20, 25, 35:
            out = self.scratch / "gate.onnx"
            done = qxc(MODEL, f"-calib={CALIB}", FEW, f"-min-sqnr={least}", "-emit=qdq", "-o", out)
            found.append(len(self.kept(done)))
            self.assertGreaterEqual(sqnr(want, self.run_on(out, CALIB)), least - 0.1)
        common.talk(f"digits with weights of 4 bits, layers float for 15, 20, 25, 35 dB: {found}")
        self.assertEqual(found[0], 0)
        self.assertEqual(found, sorted(found))
        self.assertLess(found[1], 4)

    def test_top_1(self):
        with np.load(TEST) as loaded:
            labels = loaded["labels"]

        def right(path):
            """Of the samples that are held back: every third."""
            answers = self.run_on(path, TEST).reshape(len(labels), -1).argmax(1)
            return 100 * np.mean((answers == labels)[2::3])

        out = self.scratch / "top1.onnx"
        done = qxc(MODEL, f"-calib={TEST}", "-weights=int2 sym", "-no-bias-correction", "-max-drop=5%", "-labels=labels", "-emit=qdq", "-o", out)
        self.assertTrue(self.kept(done), done.stderr)
        self.assertLessEqual(right(MODEL) - right(out), 5)
        self.assertRegex(done.stderr, rf"top-1 falls by {right(MODEL) - right(out):.2f} points from {right(MODEL):.2f}%")
        self.assertIn("every third held back to judge by: 132, with labels of 10 of 10 classes", done.stderr)
        with np.load(TEST) as loaded:  # as many labels as samples, and integers
            np.savez(self.scratch / "floats.npz", image=loaded["image"], labels=loaded["labels"] * 1.0)
            np.savez(self.scratch / "beyond.npz", image=loaded["image"], labels=loaded["labels"] + 1)
            np.savez(self.scratch / "two.npz", image=loaded["image"][:2], labels=loaded["labels"][:2])
            np.savez(self.scratch / "short.npz", image=loaded["image"], labels=loaded["labels"][:9])
        for name, key, words in (("floats", "labels", "wanted one integer a sample"),
                                 ("short", "labels", "9 labels for 397 samples"),
                                 ("beyond", "labels", "has the label 10, which is no class"),
                                 ("two", "labels", "holds every third sample back to judge by: 2 samples are too few"),
                                 ("short", "label", "holds no such array")):
            done = qxc(MODEL, f"-calib={self.scratch / name}.npz", "-max-drop=1", f"-labels={key}", "-emit=qdq",
                       "-o", self.scratch / "none.onnx", ok=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)

    @common.for_each("qdq", "qop")
    def test_the_scheme_gives_the_same(self, kind):
        options = [MODEL, f"-calib={CALIB}", "-quiet"]
        direct, again, later = (self.scratch / f"{n}.{kind}" for n in ("direct", "again", "later"))
        scheme = self.scratch / "m.scheme"
        for out in direct, again:
            qxc(*options, "-min-sqnr=42", f"-emit={kind}", "-o", out)
        qxc(*options, "-min-sqnr=42", "-target=ort-cpu", "-emit=scheme", "-o", scheme)  # a text is for every backend
        self.assertRegex(scheme.read_text(), 'node "[a-z.]+" keep float')
        qxc(*options, f"-scheme={scheme}", f"-emit={kind}", "-o", later)
        self.assertEqual(direct.read_bytes(), again.read_bytes())
        self.assertEqual(direct.read_bytes(), later.read_bytes())

    def test_the_scheme_without_data(self):
        """Found with what data mends left out, it computes the same; else it is told what is missing."""
        plain = ["-no-bias-correction", "-quiet"]
        scheme, direct, later = (self.scratch / n for n in ("p.scheme", "p_direct.onnx", "p_later.onnx"))
        options = [MODEL, f"-calib={CALIB}", FEW, "-min-sqnr=20"]
        qxc(*options, *plain, "-target=ort-cpu", "-emit=scheme", "-o", scheme)
        qxc(*options, *plain, "-emit=qdq", "-o", direct)
        qxc(MODEL, *plain, f"-scheme={scheme}", "-emit=qdq", "-o", later)
        np.testing.assert_array_equal(self.run_on(direct, TEST), self.run_on(later, TEST))
        done = qxc(MODEL, f"-scheme={scheme}", "-emit=qdq", "-o", later)
        self.assertIn("biases are not corrected, weights of few bits not rounded", done.stderr)

    def test_missed(self):
        out = self.scratch / "missed.c"
        done = qxc(MODEL, f"-calib={CALIB}", "-min-sqnr=100", "-integer-only", "-emit=c", "-o", out, ok=False)
        self.assertEqual(done.returncode, 4)
        self.assertRegex(done.stderr, r"-min-sqnr=100 cannot be met: the best reached is 8\d\.\d\d dB, with 16 bits for all values and weights; "
                         r"what limits it is 'stem.relu' \(Relu\), the first value that is worse: \d\d\.\d\d dB")
        self.assertFalse(out.exists())

    def test_16_bits_where_nothing_may_be_float(self):
        out = self.scratch / "wide.c"
        done = qxc(MODEL, f"-calib={CALIB}", "-min-sqnr=39.5", "-integer-only", "-emit=c", "-o", out)
        self.assertIn("gets 16 bits", done.stderr)
        self.assertNotIn("gets weights of 16 bits", done.stderr)
        self.assertIn("int16_t", out.read_text())

    def test_weights_of_16_bits_where_values_do_not_do(self):
        out, later, scheme = (self.scratch / n for n in ("both.c", "later.c", "both.scheme"))
        options = [MODEL, f"-calib={CALIB}", "-integer-only", "-name=m"]
        done = qxc(*options, "-min-sqnr=50", "-emit=c", "-o", out)
        self.assertRegex(done.stderr, r"stem.conv gets weights of 16 bits \(alone: \d\d")
        qxc(MODEL, f"-calib={CALIB}", "-integer-only", "-min-sqnr=50", "-target=c", "-emit=scheme", "-o", scheme)
        self.assertIn('node "stem.conv" weights int16q\n', scheme.read_text())
        qxc(*options, f"-scheme={scheme}", "-emit=c", "-o", later)
        self.assertEqual(*(re.findall(r"(?m)^ *\{?-?\d.*", path.read_text()) for path in (out, later)))

    def test_nodes_without_names(self):
        rng = np.random.default_rng(1)
        weights = [rng.standard_normal((6, 6)).astype(np.float32) * np.exp(2 * rng.standard_normal((6, 1)))
                   for _ in range(3)]
        nodes = [helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(3)]
        graph = helper.make_graph(
            nodes, "g", [helper.make_tensor_value_info("v0", TensorProto.FLOAT, [1, 6])],
            [helper.make_tensor_value_info("v3", TensorProto.FLOAT, None)],
            [onnx.numpy_helper.from_array(w.astype(np.float32), f"w{i}") for i, w in enumerate(weights)])
        path, data, out = (self.scratch / n for n in ("plain.onnx", "plain.npz", "plain_q.onnx"))
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)
        np.savez(data, v0=rng.standard_normal((50, 6)).astype(np.float32))
        done = qxc(path, f"-calib={data}", FEW, "-min-sqnr=30", "-emit=qdq", "-o", out)
        self.assertTrue(self.kept(done), done.stderr)

    def test_nodes_without_names_or_weights(self):
        """A product of two operands that are computed, and of a constant that the graph returns, too."""
        infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
                 for n, s in (("x", [2, 6]), ("k", [6, 4]), ("p", [2, 4]), ("q", [4, 4]), ("w", [4, 4]))]
        nodes = [helper.make_node("MatMul", ["x", "k"], ["p"]), helper.make_node("MatMul", ["k", "w"], ["t"]),
                 helper.make_node("Transpose", ["t"], ["u"]), helper.make_node("MatMul", ["u", "t"], ["q"])]
        rng = np.random.default_rng(1)
        weights = onnx.numpy_helper.from_array(rng.standard_normal((4, 4)).astype(np.float32), "w")
        graph = helper.make_graph(nodes, "g", infos[:2], infos[2:], [weights])
        path, data, out = (self.scratch / n for n in ("bare.onnx", "bare.npz", "bare_q.onnx"))
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)
        np.savez(data, x=rng.standard_normal((20, 2, 6)).astype(np.float32),
                 k=rng.standard_normal((20, 6, 4)).astype(np.float32))
        done = qxc(path, f"-calib={data}", "-min-sqnr=60", "-placement=products", "-emit=qdq", "-o", out)
        self.assertEqual({"p", "t", "q"}, {name for name in ("p", "t", "q") if f"  {name} stays float" in done.stderr})

    def test_usage(self):
        for options, words in (
                (["-min-sqnr=x", f"-calib={CALIB}"], "wants a number of dB"),
                (["-max-drop=1"], "go together"), (["-labels=labels"], "go together"),
                (["-min-sqnr=20"], "-calib=PATH"), (["-min-sqnr=20", "-dynamic"], "static"),
                (["-min-sqnr=20", "-emit=onnx", f"-calib={CALIB}"], "nothing is quantized")):
            emit = [] if any(o.startswith("-emit") for o in options) else ["-emit=qdq"]
            done = qxc(MODEL, *options, *emit, "-o", self.scratch / "no.onnx", ok=False)
            self.assertEqual(done.returncode, 2, options)
            self.assertIn(words, done.stderr)


class Seven(OracleCase):
    """40 dB of integers alone, of each network of the folder trained/: reached, or told what is in the way."""

    expected_seconds = 60

    @common.for_each("cancer", "charlm", "cnn", "lstm", "relu6", "unet", "vit")
    def test_40_dB(self, name):
        model = self.shared_model(f"trained/{name}.onnx")
        few, out = self.scratch / f"{name}.npz", self.scratch / f"{name}.c"
        with np.load(model.with_suffix(".calib.npz")) as data:
            np.savez(few, **{k: v[:24] for k, v in data.items()})
        done = qxc(model, f"-calib={few}", "-min-sqnr=40", "-emit=c", "-integer-only", "-o", out, ok=False)
        if name == "cancer":  # its columns are of very different sizes, in one scale
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertRegex(done.stderr, r"the best reached is 1\d\.\d\d dB, .*; what limits it is 'div_4' \(Div\)")
            self.assertFalse(out.exists())
            return
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(float(re.findall(r"(?:all quantized|spared): ([\d.]+) dB", done.stderr)[-1]), 40)
        self.assertIn("no floating point", done.stderr)


if __name__ == "__main__":
    unittest.main()
