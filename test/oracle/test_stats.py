#!/usr/bin/env python3
"""Statistics in ONNX files: what calibration saw is written beside the float model and read back bit
by bit, and a quantization made from the file is the one made from the data."""

import itertools
import math
import os
import re
import unittest
from fractions import Fraction

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import common
import onnx_bytes

METHODS = ("minmax", "moving-average", "percentile=99.9", "entropy", "mse")
F = TensorProto.FLOAT
DIGITS = onnx_bytes.ROOT / "examples/digits"

TEXT = """qir 1
import "" 21
import "my.ops" 1
model <ir_version=10>

func my.ops::Twice (%x) -> (%y) inferred {
  import "" 21
  %h = Abs(%x)
  %y = Add(%h, %h)

  stat %x <max=3.0>
  stat %h <min=0.0>
  stat %y <count=1>
}

graph @main (%c : bool[], %x : float[2,3]) -> (%z, %k) inferred {
  const %w : float[2,3] = splat(0.5)
  const %k : float[1] stated = [1.0]

  %s : float[2,3] = Mul(%x, %w) name "s"
  %t : float[2,3] stated = my.ops::Twice(%s)
  %z : float[2,3] = If(%c) <
    then_branch = graph @yes () -> (%a) {
      %b : float[2,3] = Neg(%t)
      %a : float[2,3] = Relu(%b)

      stat %b <min=-1.0, max=-0.0>
      stat %a <min=1.0e-45, max=3.4028235e+38>
    },
    else_branch = graph @no () -> (%n) {
      %n : float[2,3] = Relu(%t)
    }>

  stat %x <axis=1, min=[-1.0, nan(0x7fc01234), -inf], max=[0.1, nan, inf], count=9223372036854775807>
  stat %w <min=0.5, max=0.5>
  stat %k <avg=1.0>
  stat %s <min=-0.33333334, max=0.1, avg=1.0e-10, std=0.2, count=7, hist=[1, 0, 7], method="kl", edges=[-0.5, 0.5], bins=tensor(int64[4], [1, 2, 3, 4]), words=["a", "\\n"]>
  stat %t <hist=tensor(float[2], [0x1.8p-149, -0.0])>
  stat %z <std=2.0>
}
"""


def metadata(entries):
    return {e.key: e.value for e in entries}


def infos(model):
    g = model.graph
    return {v.name: v for v in [*g.input, *g.value_info, *g.output]}


class Lossless(common.OracleCase):
    def write(self, name, text):
        path = self.scratch / name
        path.write_text(text)
        return path

    def test_every_kind_of_statistic(self):
        text = self.write("all.qir", TEXT)
        first, again = self.scratch / "all.onnx", self.scratch / "again.onnx"
        common.qxc(text, "-emit=onnx", "-o", first)
        shown = common.qxc(first, "-emit=qir", "-quiet").stdout
        plain = common.qxc(text, "-emit=qir", "-quiet").stdout
        self.assertEqual(plain.count("stat %"), 11)
        self.assertEqual(shown, plain)
        self.write("shown.qir", shown)
        common.qxc(self.scratch / "shown.qir", "-emit=onnx", "-o", again)
        self.assertEqual(first.read_bytes(), again.read_bytes())
        onnx.checker.check_model(onnx.load(first))

    def test_place_and_words(self):
        """ValueInfo's metadata_props, in the words of the text: also where no type is stated."""
        text = self.write("place.qir", TEXT)
        path = self.scratch / "place.onnx"
        common.qxc(text, "-emit=onnx", "-o", path)
        model = onnx.load(path)
        at = infos(model)
        self.assertEqual(metadata(at["w"].metadata_props), {"qxc.stat": "min=0.5, max=0.5"})
        self.assertFalse(at["s"].HasField("type"))
        self.assertEqual(metadata(at["z"].metadata_props), {"qxc.stat": "std=2.0"})
        self.assertEqual(metadata(model.functions[0].value_info[0].metadata_props),
                         {"qxc.stat": "max=3.0"})

    def test_what_is_not_ours_stays(self):
        """Whatever stands under our keys: kept byte by byte, and a warning where it is not ours."""
        texts = ["", "min", "min=", "min=1", "min=1.0,max=2.0", "min=1.0> stat %v <max=2.0",
                 "min=1.0>\n}\n", "min=[1.0, 2.0], max=[1.0]", "axis=-1, min=[1.0]",
                 "min=" + "[" * 200, "hist=graph @g () -> () {}",
                 "hist=external(\"../../etc/passwd\", 0, 4)", "min=1.0 // comment", "count=0",
                 "min=0x1p0", "hist=tensor(float[9999999999], splat(0))", "\x00", "min=\x00", "é",
                 "from(Conv \"a\")", "from()", "from(Conv \"a\") by", "from( Conv \"a\")",
                 "from(Conv \"a\") name \"b\"", "from(Conv \"a\")\n() = x()"]
        for key in "qxc.stat", "qxc.from":
            for text in texts:
                ours = key == "qxc.from" and text == 'from(Conv "a")'
                with self.subTest(key=key, text=text):
                    self.check_kept(key, text, ours)

    def check_kept(self, key, text, ours):
        node = helper.make_node("Relu", ["x"], ["y"])
        x, y = (helper.make_tensor_value_info(n, F, [2]) for n in "xy")
        entry = (node if key == "qxc.from" else y).metadata_props.add(key=key)
        entry.value = text
        model = helper.make_model(helper.make_graph([node], "g", [x], [y]), ir_version=10,
                                  opset_imports=[helper.make_opsetid("", 21)])
        data = model.SerializeToString()
        path = self.scratch / "kept.onnx"
        path.write_bytes(data)
        done = common.qxc(path, "-emit=onnx", "-o", self.scratch / "back.onnx")
        self.assertEqual("kept as it is" in done.stderr, not ours, done.stderr)
        back = (self.scratch / "back.onnx").read_bytes()
        self.assertEqual(onnx_bytes.canonical(back), onnx_bytes.canonical(data))
        back = onnx_bytes.round_trip_as_text(data, str(self.scratch))
        self.assertEqual(onnx_bytes.canonical_raw(back), onnx_bytes.canonical_raw(data))


class FromStatistics(common.OracleCase):
    """Direct quantization and quantization from the file's statistics give the same bytes, but for
    biases, whose correction takes the data itself."""

    def compare(self, model, data, method):
        s = self.scratch
        options = [data, f"-calib-method={method}"]
        common.qxc(model, *options, "-emit=onnx", "-o", s / "stats.onnx")
        common.qxc(s / "stats.onnx", "-emit=qir", "-o", s / "stats.qir")
        for kind in "qdq", "qop":
            common.qxc(model, *options, "-no-bias-correction", f"-emit={kind}", "-o",
                       s / "direct.onnx")
            direct = (s / "direct.onnx").read_bytes()
            for source in "stats.onnx", "stats.qir":
                common.qxc(s / source, f"-emit={kind}", "-o", s / "later.onnx")
                self.assertEqual((s / "later.onnx").read_bytes(), direct, f"{source} {kind}")

    @common.for_each(*METHODS)
    def test_trained(self, method):
        calib = common.TRAINED_MODELS / "relu6.test.npz"
        self.compare(common.model_path("relu6", "fp32"), f"-calib={calib}", method)

    def test_random_data(self):
        self.compare(common.model_path("cnn", "fp32"), "-calib-random", "minmax")

    def test_the_float_model_is_the_same(self):
        model = common.model_path("cnn", "fp32")
        path = self.scratch / "float.onnx"
        common.qxc(model, "-calib-random=2", "-emit=onnx", "-o", path)
        onnx.checker.check_model(onnx.load(path), full_check=True)
        kinds = {n.op_type for n in onnx.load(path).graph.node}
        self.assertFalse(kinds & {"QuantizeLinear", "DequantizeLinear"})
        run = [onnxruntime.InferenceSession(p) for p in (model, path)]
        x = run[0].get_inputs()[0]
        shape = [d if isinstance(d, int) else 1 for d in x.shape]
        feed = {x.name: np.random.default_rng(1).normal(size=shape).astype(np.float32)}
        a, b = (r.run(None, feed)[0] for r in run)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

    def test_quantized_models_have_none(self):
        model = common.model_path("cnn", "int8_qdq")
        out = self.scratch / "none.onnx"
        done = common.qxc(model, "-calib-random", "-emit=onnx", "-o", out, ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("quantized already", done.stderr)
        self.assertFalse(out.exists())


class Shards(common.OracleCase):
    """Files of statistics of parts of the data become, byte by byte, the file of one calibration on all of it."""

    def calibrate(self, model, arrays, name, *options):
        s = self.scratch
        np.savez(s / f"{name}.npz", **arrays)
        common.qxc(model, f"-calib={s / name}.npz", *options, "-emit=onnx", "-o", s / f"{name}.onnx")
        return s / f"{name}.onnx"

    def merge(self, paths, *options):
        out = self.scratch / ("merged.qir" if "-emit=qir" in options else "merged.onnx")
        done = common.qxc("stats", "merge", *paths, "-o", out, *options)
        self.assertNotIn("warning", done.stderr)
        return out.read_bytes()

    def check(self, model, arrays, cuts, *options):
        """Each of `cuts` parts the samples; orders of its shards are all of 3, else a few."""
        n = len(next(iter(arrays.values())))
        whole = self.calibrate(model, arrays, "whole", *options).read_bytes()
        self.assertIn(b"sums=[", whole)
        for cut in cuts:
            ends = [0, *cut, n]
            parts = [self.calibrate(model, {k: v[a:b] for k, v in arrays.items()}, f"part{i}", *options)
                     for i, (a, b) in enumerate(zip(ends, ends[1:]))]
            self.assertNotIn(whole, [p.read_bytes() for p in parts])
            orders = itertools.permutations(parts) if len(parts) == 3 else (parts, parts[::-1], parts[1::2] + parts[::2])
            for order in orders:
                self.assertEqual(self.merge(order), whole, f"{cut} {order}")

    @common.for_each("cancer", "charlm", "cnn", "lstm", "relu6", "unet", "vit")
    def test_trained(self, name):
        arrays = dict(np.load(common.TRAINED_MODELS / f"{name}.calib.npz"))
        self.check(common.model_path(name, "fp32"), arrays, [[7], [1, 9], [1, 2, 5, 11]])

    @common.for_each(*METHODS)
    def test_method(self, method):
        arrays = dict(np.load(DIGITS / "calib.npz"))
        self.check(DIGITS / "digits.onnx", arrays, [[60], [30, 90], [13, 60, 61, 140]], f"-calib-method={method}")

    def test_merged_in_steps(self):
        arrays = dict(np.load(DIGITS / "calib.npz"))
        whole = self.calibrate(DIGITS / "digits.onnx", arrays, "whole")
        a, b, c = (self.calibrate(DIGITS / "digits.onnx", {k: v[i::3] for k, v in arrays.items()}, f"step{i}") for i in range(3))
        half = self.scratch / "half.onnx"
        half.write_bytes(self.merge([c, a]))
        self.assertEqual(self.merge([b, half]), whole.read_bytes())

    def test_as_text(self):
        """Through .qir as well, which prints the same again."""
        arrays = dict(np.load(DIGITS / "calib.npz"))
        whole = self.calibrate(DIGITS / "digits.onnx", arrays, "whole", "-calib-method=moving-average")
        texts = []
        for i in range(2):
            part = self.calibrate(DIGITS / "digits.onnx", {k: v[i::2] for k, v in arrays.items()}, f"half{i}",
                                  "-calib-method=moving-average")
            texts.append(part.with_suffix(".qir"))
            common.qxc(part, "-emit=qir", "-o", texts[-1])
            common.qxc(texts[-1], "-emit=qir", "-o", part.with_suffix(".again"))
            self.assertEqual(part.with_suffix(".again").read_bytes(), texts[-1].read_bytes())
        self.assertEqual(self.merge(texts, "-emit=onnx"), whole.read_bytes())

    @common.for_each("minmax", "percentile=90", "mse")
    def test_odd_numbers(self, method):
        """NaN, infinities, zeros of both signs, numbers at a float's ends, a branch that only some samples take, and a
        mask that hides something in some samples only."""
        model = self.scratch / "odd.qir"
        model.write_text("""qir 1
import "" 21
graph @main (%c : bool[], %x : float[1,6], %mask : float[1,6], %zero : float[1,6]) -> (%z, %p, %o) {
  %n : float[1,6] = Neg(%x)
  %z : float[1,6] = If(%c) <
    then_branch = graph @yes () -> (%a) {
      %a : float[1,6] = Relu(%n)
    },
    else_branch = graph @no () -> (%b) {
      %b : float[1,6] = Abs(%n)
    }>
  %h : float[1,6] = Tanh(%x)
  %s : float[1,6] = Add(%h, %mask)
  %p : float[1,6] = Softmax(%s)
  %o : float[1,6] = Neg(%zero)
}
""")
        pick = np.random.default_rng(3)
        x = pick.normal(size=(40, 1, 6)).astype(np.float32)
        x[0:9] = 0
        x[4, 0, :4] = np.nan, np.inf, -np.inf, 1e-45
        x[21, 0, :3] = 3.4e38, -3.4e38, 1e-38
        x[22] = np.nan
        mask = np.where(pick.random((40, 1, 6)) < 0.3, -10000, 0).astype(np.float32)
        mask[:, 0, 0] = mask[:25] = 0
        arrays = {"c": np.arange(40) >= 35, "x": x, "mask": mask,
                  "zero": np.where(np.arange(40) % 5 < 2, 0.0, -0.0).astype(np.float32).repeat(6).reshape(40, 1, 6)}
        self.check(model, arrays, [[3], [25, 30], [2, 4, 22, 23]], f"-calib-method={method}")

    def test_per_axis(self):
        """What a text states of each channel: extremes have no order either."""
        paths = []
        for i, row in enumerate(("min=[-0.0, -3.0], max=[1.0, 0.0], count=3", "min=[0.0, -1.0], max=[2.5, -0.0], count=1",
                                 "min=[0.0, -2.0], max=[0.5, -0.0], count=9")):
            paths.append(self.scratch / f"axis{i}.qir")
            paths[-1].write_text('qir 1\nimport "" 21\ngraph @g (%x : float[1,2]) -> (%y) {\n  %y : float[1,2] = Abs(%x)\n'
                                 f'  stat %x <axis=1, {row}>\n}}\n')
        merged = {self.merge(order, "-emit=qir") for order in itertools.permutations(paths)}
        self.assertEqual(len(merged), 1)
        self.assertIn(b"<axis=1, min=[0.0, -3.0], max=[2.5, 0.0], count=13>", merged.pop())

    def test_sums_are_those_of_fractions(self):
        """Any float, as exact as Python's fractions; samples one by one, or as a batch that the model takes at once."""
        pick = np.random.default_rng(5)
        x = pick.integers(0, 1 << 32, (64, 5), dtype=np.uint32).view(np.float32)
        x[~np.isfinite(x)] = 1
        x[7] = 3.4028235e38, -3.4028235e38, 1e-45, -1e-45, 0.1
        said = []
        for batch in 1, 4:
            model = self.scratch / "abs.qir"
            model.write_text(f'qir 1\nimport "" 21\ngraph @g (%x : float[{batch},5]) -> (%y) {{\n  %y : float[{batch},5] = Abs(%x)\n}}\n')
            path = self.calibrate(model, {"x": x.reshape(-1, batch, 5)}, "abs")
            stat = metadata(infos(onnx.load(path))["x"].metadata_props)["qxc.stat"]
            said.append(stat[stat.index("elements"):])
        self.assertEqual(*said)
        n, first, second = re.fullmatch(r'elements=(\d+), sums=\["(.*)", "(.*)"\]', said[0]).groups()
        numbers = [Fraction(float(v)) for v in x.flat]
        total, squares = sum(numbers), sum(v * v for v in numbers)
        self.assertEqual((int(n), fraction(first), fraction(second)), (len(numbers), total, squares))
        row = dict(re.findall(r"(\w+)=([^,]+)", stat))
        self.assertEqual(np.float32(row["avg"]), np.float32(float(total / len(numbers))))
        variance = squares / len(numbers) - (total / len(numbers)) ** 2
        self.assertEqual(np.float32(row["std"]), np.float32(math.sqrt(variance)))

    def test_processors(self):
        arrays = dict(np.load(common.TRAINED_MODELS / "unet.calib.npz"))
        several = self.calibrate(common.model_path("unet", "fp32"), arrays, "several").read_bytes()
        everywhere = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, {min(everywhere)})
            one = self.calibrate(common.model_path("unet", "fp32"), arrays, "one").read_bytes()
        finally:
            os.sched_setaffinity(0, everywhere)
        self.assertEqual(one, several)

    def test_decided_models_state_no_sums(self):
        arrays = dict(np.load(DIGITS / "calib.npz"))
        stats = self.calibrate(DIGITS / "digits.onnx", arrays, "whole")
        for options in ([DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}"], [stats]):
            for kind in "qdq", "qop", "qir":
                out = self.scratch / f"decided.{kind}"
                common.qxc(*options, f"-emit={kind}", *(["-form=true"] if kind == "qir" else []), "-o", out)
                self.assertNotIn(b"sums=", out.read_bytes(), kind)
                self.assertNotIn(b"elements=", out.read_bytes(), kind)

    def test_older_files(self):
        """Without sums files are joined as ever, weighted by samples, and a warning says so once."""
        text = re.sub(r",\s+elements=\d+,\s+sums=\[[^]]*\]", "", common.qxc(
            self.calibrate(DIGITS / "digits.onnx", dict(np.load(DIGITS / "calib.npz")), "new"), "-emit=qir").stdout)
        self.assertFalse("sums" in text)
        old = self.scratch / "old.qir"
        old.write_text(text)
        for order in ([old, self.scratch / "new.onnx", old], [self.scratch / "new.onnx", old, old]):
            done = common.qxc("stats", "merge", *order, "-emit=qir")
            self.assertEqual(done.stderr.count("do not state their sums"), 1, done.stderr)
            self.assertFalse("sums=" in done.stdout)
            self.assertTrue("count=600>" in done.stdout)
        self.assertEqual(re.findall("avg=[^,]*", done.stdout), re.findall("avg=[^,]*", text))


def fraction(text):
    whole, _, part = text.replace("-", "").removeprefix("0x").partition(".")
    return (-1 if text[0] == "-" else 1) * Fraction(int(whole + part, 16), 16 ** len(part))


if __name__ == "__main__":
    unittest.main()
