"""Texts that leave decisions to qxc: they are lived in, edited, completed, taken up again (docs/ir.md, Left open)."""

import re

import numpy as np
import onnx

from common import DIGITS, OracleCase, for_each, qxc, qxc_outputs, run_samples, session

MODEL, CALIB = DIGITS / "digits.onnx", DIGITS / "calib.npz"
PER_NODE = {  # by node: weights, activations
    "W4A4": ("int4q sym", "int4q in uint8q"),
    "W8A4": ("int8q sym", "int4q in uint8q"),
    "W4A16": ("int4q sym", "int16q"),
}


def lines(text, pattern):
    return [line for line in text.read_text().splitlines() if re.match(pattern, line)]


def quants(text):
    """By name, what its `quant` statement says, which may wrap."""
    found = re.findall(r"^quant !(\S+) = ([^>]*>)", text.read_text(), re.MULTILINE)
    return {name: " ".join(quant.split()) for name, quant in found}


class Decide(OracleCase):
    def text(self, name, *options, of=MODEL):
        path = self.scratch / name
        qxc(of, "-quiet", "-no-sync", *options, "-o", path)
        return path

    def halves(self):
        with np.load(CALIB) as data:
            image = data["image"]
        paths = self.scratch / "first.npz", self.scratch / "second.npz"
        np.savez(paths[0], image=image[: len(image) // 2])
        np.savez(paths[1], image=image[len(image) // 2:] * 0.75)
        return paths

    def edit(self, text, *changes):
        old = text.read_text()
        for pattern, to in changes:
            old, n = re.subn(pattern, to, old, flags=re.MULTILINE)
            self.assertGreater(n, 0, pattern)
        text.write_text(old)

    def accurate(self, path, least):
        """The QOperators of it in onnxruntime, bit for bit as here, and what they get right."""
        out = path.with_suffix(".onnx")
        qxc(path, "-emit=qop", "-quiet", "-no-sync", "-o", out)
        with np.load(DIGITS / "test.npz") as data:
            image, labels = data["image"], data["labels"]
        model = onnx.load(out)
        theirs = run_samples(session(out, False), model, {"image": image})["logits"].reshape(-1, 10)
        ours = qxc_outputs(out, {"image": image}, self.scratch)["logits"].reshape(-1, 10)
        np.testing.assert_array_equal(theirs, ours)
        self.assertGreater(np.mean(np.argmax(theirs, axis=1) == labels), least)
        return model

    def test_one_layer_to_4_bits(self):
        """The scale is left to qxc: the layer changes, and nothing else does."""
        text = self.text("four.qir", f"-calib={CALIB}", "-no-bias-correction")
        before = quants(text), lines(text, r"  [%c]")
        self.edit(text, (r"^quant !head\.weight = [^>]*>", "quant !head.weight = int4q<?>"),
                  (r"^quant !head\.pool = .*", "quant !head.pool = uint4q<?>"))
        said = qxc(text, f"-calib={CALIB}", "-in-place", "-no-sync").stderr
        self.assertIn("decided 3: ", said)
        after = quants(text)
        self.assertRegex(after.pop("head.weight"), r"int4q<\[.*, axis=0, range=-7:7>")
        self.assertRegex(after.pop("head.pool"), r"uint4q<0\.3\d+, 0>")
        for name, quant in after.items():
            self.assertEqual(before[0][name], quant)
        changed = set(before[1]) - set(lines(text, r"  [%c]"))
        self.assertTrue(all(re.match(r"  (const %head\.(weight|bias)|%logits) ", line) for line in changed), changed)
        self.accurate(text, 0.95)

    def test_parts(self):
        """Quantized in parts: one half is decided, then the other, and it is what one run decides."""
        whole = self.text("whole.qir", f"-calib={CALIB}", "-no-bias-correction")
        part = self.text("part.qir", f"-calib={CALIB}", "-no-bias-correction", "-only=stem*,widen*")
        self.assertNotIn("head.weight", quants(part))
        written = quants(part)
        kept = self.text("kept.qir", f"-calib={CALIB}", "-no-bias-correction", of=part)
        self.assertEqual(written, quants(kept))  # -only said so, and the text does
        self.edit(part, (r' meta <"quantization\.keep"="float">', ""))
        said = qxc(part, f"-calib={CALIB}", "-no-bias-correction", "-in-place", "-no-sync").stderr
        self.assertRegex(said, r"kept \d+ as written, decided \d+: ")
        self.assertEqual(quants(whole), quants(part))
        model = self.accurate(part, 0.98)
        self.assertEqual({"Conv", "Add", "Gemm"} & {n.op_type for n in model.graph.node}, set())

    def test_part(self):
        """The part below the head is a model of its own: one value of it gets 4 bits, and it goes to a board without an FPU."""
        text = self.text("part.qir", "-cut-outputs=head.pool", f"-calib={CALIB}")
        self.assertEqual(1, len(lines(text, r"graph .*-> \(%head\.pool\)")))
        self.assertEqual([], lines(text, r"  (const %head\.weight|%logits) "))
        self.edit(text, (r"^quant !head\.pool = .*", "quant !head.pool = uint4q<?>"))
        self.assertIn("kept", qxc(text, "-in-place", "-no-sync").stderr)
        self.assertRegex(quants(text)["head.pool"], r"uint4q<0\.3\d+, 0>")
        out = self.scratch / "part.onnx"
        qxc(text, "-emit=qop", "-quiet", "-no-sync", "-o", out)
        with np.load(DIGITS / "test.npz") as data:
            image = data["image"]
        theirs = run_samples(session(out, False), onnx.load(out), {"image": image})["head.pool"]
        ours = qxc_outputs(out, {"image": image}, self.scratch)["head.pool"]
        np.testing.assert_array_equal(theirs, ours.reshape(theirs.shape))
        said = qxc(text, "-emit=c", "-integer-only", "-io=quant", "-no-sync", "-o", self.scratch / "part.c").stderr
        self.assertIn("no floating point", said)

    @for_each("minmax", "moving-average", "percentile=99", "percentile=95", "mse", "entropy")
    def test_own_decisions_are_no_doubt(self, method):
        """What qxc itself decides clips as it was asked to: reading it again warns of nothing; an edit that clips is warned of."""
        for bits in "uint8", "uint4":
            text = self.text(f"{method}-{bits}.qir", f"-calib={CALIB}", f"-calib-method={method}", f"-activations={bits}")
            out = self.scratch / "out.qir"
            self.assertNotIn("was seen", qxc(text, "-form=true", "-no-sync", "-o", out).stderr)
            self.edit(text, (r"^quant !stem\.relu = .*", f"quant !stem.relu = {bits}q<0.001, 0>"))
            self.assertIn("was seen", qxc(text, "-form=true", "-no-sync", "-o", out).stderr)

    def test_taken_up_again(self):
        """With other data: the same as what these decide of the float model."""
        first, second = self.halves()
        options = "-no-bias-correction", "-activations=uint8 pow2"
        text = self.text("again.qir", f"-calib={first}", *options)
        fresh = self.text("fresh.qir", f"-calib={second}", *options)
        self.assertNotEqual(quants(text), quants(fresh))
        qxc(text, f"-calib={second}", "-redecide=*", "-no-bias-correction", "-in-place", "-no-sync", "-quiet")
        self.assertEqual(quants(fresh), quants(text))  # powers of two still, though nobody says it again
        self.assertEqual(lines(fresh, "  stat "), lines(text, "  stat "))
        self.accurate(text, 0.9)

    def test_weights_given_back(self):
        """4 bits and back to 8: rounding has taken the weights' numbers, and -weights-from gives them back, folded as before."""
        four = self.text("four.qir", f"-calib={CALIB}", "-weights=int4")
        again = f"-calib={CALIB}", "-redecide=*", "-weights=int8", "-no-sync", "-o"
        lost, back = self.scratch / "lost.qir", self.scratch / "back.qir"
        said = qxc(four, *again, lost).stderr
        self.assertRegex(said, r"four\.qir:\d+:\d+: warning: '[\w.]+' \(and \d+ others\) was rounded to int4 before")
        self.assertIn("constants of which were rounded before: SQNR", said)
        said = qxc(four, f"-weights-from={MODEL}", *again, back).stderr
        self.assertNotIn("rounded", said)
        fresh = self.text("fresh.qir", f"-calib={CALIB}", "-weights=int8")
        self.assertEqual(quants(fresh), quants(back))
        self.assertEqual(sorted(lines(fresh, " +const ")), sorted(lines(back, " +const ")))
        self.assertNotEqual(sorted(lines(fresh, " +const ")), sorted(lines(lost, " +const ")))

    @for_each(*PER_NODE)
    def test_chain(self, name):
        """Types of one Conv reach what is fused with it: nothing is float, or requantized, in between."""
        weights, activations = PER_NODE[name]
        scheme = self.scratch / f"{name}.scheme"
        scheme.write_text(f'scheme {{ node "stem.conv" weights {weights} activations {activations} }}\n')
        options = f"-calib={CALIB}", f"-scheme={scheme}"
        text = self.text(f"{name}.qir", *options, "-form=true")
        chain = lines(text, r"  %(stem|image_quantized)")
        self.assertEqual([re.search(r"= (\w+)\(", line)[1] for line in chain],
                         ["QuantizeLinear", "Conv", "Relu", "MaxPool"])
        self.assertEqual(len({re.search(r": (\S+)\[", line)[1] for line in chain[1:]}), 1)
        if name == "W4A16":
            return  # ONNX's QLinearConv has 8 bits
        out = self.text(f"{name}.onnx", *options, "-emit=qop")
        ops = [n.op_type for n in onnx.load(out).graph.node][:5]
        self.assertEqual(ops, ["QuantizeLinear", "QLinearConv", "Clip", "MaxPool", "QLinearConv"])
        self.accurate(self.text(f"{name}-fake.qir", *options), 0.95)


class Parts(OracleCase):
    """Q and DQ before products alone, as ModelOpt places them: what is between is decided with data."""

    def setUp(self):
        rng = np.random.default_rng(0)
        self.inits, self.nodes = [], []
        y = self.conv("x", "c1", rng, 1, 4)
        self.node("Relu", [y], "r1")
        y = self.conv("r1", "c2", rng, 4, 4)
        self.node("Add", [y, "r1"], "sum")
        self.node("Relu", ["sum"], "r2")
        self.node("MaxPool", ["r2"], "p", kernel_shape=[2, 2], strides=[2, 2])
        y = self.conv("p", "c3", rng, 4, 2, quantized=False)
        self.node("Relu", [y], "out")
        info = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph(self.nodes, "g", [info("x", 1, ["N", 1, 8, 8])], [info("out", 1, ["N", 2, 4, 4])],
                                       self.inits)
        self.model = self.scratch / "part.onnx"
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), self.model)
        self.x = {"x": rng.normal(size=(40, 1, 8, 8)).astype(np.float32)}
        self.calib = self.scratch / "part.npz"
        np.savez(self.calib, **self.x)

    def node(self, op, operands, result, **attributes):
        self.nodes.append(onnx.helper.make_node(op, operands, [result], f"{result}_{op}", **attributes))
        return result

    def const(self, name, values):
        self.inits.append(onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def qdq(self, x, scale, zeros, **attributes):
        params = [self.const(f"{x}_scale", np.float32(scale)), self.const(f"{x}_zero", np.int8(zeros))]
        q = self.node("QuantizeLinear", [x, *params], f"{x}_q", **attributes)
        return self.node("DequantizeLinear", [q, *params], f"{x}_d", **attributes)

    def conv(self, x, name, rng, c_in, c_out, quantized=True):
        w = rng.normal(size=(c_out, c_in, 3, 3)).astype(np.float32) * 0.3
        operands = [x, self.const(f"{name}.w", w)]
        if quantized:
            operands = [self.qdq(x, 0.03, 0), self.qdq(f"{name}.w", np.abs(w).max(axis=(1, 2, 3)) / 127, np.zeros(c_out),
                                                       axis=0)]
        bias = self.const(f"{name}.b", rng.normal(size=c_out).astype(np.float32) * 0.1)
        return self.node("Conv", [*operands, bias], f"{name}.y", pads=[1] * 4)

    def sqnr(self, want, got):
        return 10 * np.log10(np.sum(want**2) / max(np.sum((want - got)**2), 1e-20))

    @for_each("qdq", "qop")
    def test_completed(self, form):
        out = self.scratch / f"{form}.onnx"
        said = qxc(self.model, f"-calib={self.calib}", f"-emit={form}", "-no-sync", "-o", out).stderr
        self.assertIn("kept 4 as written, decided ", said)
        model, came = onnx.load(out), onnx.load(self.model)
        numbers = [{c.name: onnx.numpy_helper.to_array(c) for c in m.graph.initializer} for m in (came, model)]
        for name in ("c1.w", "c2.w"):  # the same integers, by the same scales
            scale = numbers[0][f"{name}_scale"].reshape(-1, 1, 1, 1)
            ints = np.clip(np.rint(numbers[0][name] / scale), -128, 127)
            kept = numbers[1][name]  # with -emit=qdq as it came, in float
            self.assertTrue((ints == (kept if kept.dtype == np.int8 else np.rint(kept / scale))).all(), name)
        self.assertIn(np.float32(0.03), [v for v in numbers[1].values() if v.shape == ()])
        if form == "qop":
            ops = [n.op_type for n in model.graph.node]
            self.assertEqual({"Conv", "Add"} & set(ops), set())
            self.assertEqual((ops.count("QuantizeLinear"), ops.count("DequantizeLinear")), (1, 1))
        want = run_samples(session(self.model, False), came, self.x)["out"]
        theirs = run_samples(session(out, False), model, self.x)["out"]
        self.assertGreater(self.sqnr(want, theirs), 25)
        ours = qxc_outputs(out, self.x, self.scratch)["out"]
        self.assertGreater(self.sqnr(ours.reshape(theirs.shape), theirs), 35)  # QLinearAdd is a step off at times

    def test_biases(self):
        """Whether corrected biases are better is judged against the model as it came."""
        reached = []
        for options in ([], ["-bias-correction"]):
            said = qxc(self.model, f"-calib={self.calib}", "-emit=qdq", "-no-sync", *options, "-o",
                       self.scratch / "biases.onnx").stderr
            self.assertNotRegex(said, "made the outputs [0-9]{2}")
            reached.append(float(re.search(r"SQNR ([0-9.]+) dB", said)[1]))
        self.assertGreater(reached[0], reached[1] - 0.5)

    def test_without_data_it_is_what_it_was(self):
        text = qxc(self.model, "-form=true", "-quiet", "-o", "-").stdout
        self.assertEqual(text.count("QuantizeLinear("), 2)
        whole = self.scratch / "whole.onnx"
        qxc(self.model, f"-calib={self.calib}", "-emit=qdq", "-no-sync", "-quiet", "-o", whole)
        again = qxc(whole, f"-calib={self.calib}", "-emit=qdq", "-no-sync", "-o", self.scratch / "again.onnx").stderr
        self.assertIn("quantized already: -calib decides nothing", again)
