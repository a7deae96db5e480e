#!/usr/bin/env python3
"""Statistics in ONNX files: what calibration saw is written beside the float model and read back bit
by bit, and a quantization made from the file is the one made from the data."""

import unittest

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

    @common.for_each(*METHODS)
    def test_shards_merge(self, method):
        """Files of statistics joined say what one calibration on all the data says."""
        model, data = DIGITS / "digits.onnx", DIGITS / "calib.npz"
        s = self.scratch
        arrays = dict(np.load(data))
        parts = {"a": slice(0, 30), "b": slice(30, 90), "c": slice(90, None), "all": slice(None)}
        for name, part in parts.items():
            np.savez(s / f"{name}.npz", **{k: v[part] for k, v in arrays.items()})
            common.qxc(model, f"-calib={s / name}.npz", f"-calib-method={method}", "-emit=onnx",
                       "-o", s / f"{name}.onnx")
        common.qxc("stats", "merge", *(s / f"{n}.onnx" for n in "abc"), "-emit=onnx", "-o",
                   s / "abc.onnx")
        for name in "abc", "all":
            common.qxc(s / f"{name}.onnx", "-emit=qdq", "-o", s / f"{name}_q.onnx")
        abc, whole = (self.parameters(s / f"{n}_q.onnx") for n in ("abc", "all"))
        self.assertTrue(whole)
        self.assertEqual(set(abc), set(whole))
        for name, parameter in whole.items():  # averages are rounded once for each shard
            near = 1e-6 if method == "moving-average" else 0
            np.testing.assert_allclose(abc[name], parameter, rtol=near, err_msg=name)

    def parameters(self, path):
        g = onnx.load(path).graph
        return {t.name: onnx.numpy_helper.to_array(t).tolist() for t in g.initializer
                if t.name.endswith(("_scale", "_zero_point"))}

    def test_quantized_models_have_none(self):
        model = common.model_path("cnn", "int8_qdq")
        out = self.scratch / "none.onnx"
        done = common.qxc(model, "-calib-random", "-emit=onnx", "-o", out, ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("quantized already", done.stderr)
        self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main()
