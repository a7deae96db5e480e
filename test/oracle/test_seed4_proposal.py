"""The proposal to add quantized tensor types to ONNX (onnx/onnx issue 2659), point by point, and its comments.

  integer types with scale and offset; int8q, int16q,  test_a_type_is_a_scale_and_an_offset
    int32q, unsigned ones, 4, 2 and 1 bits
  the offset is int32, whatever the storage holds      test_offsets_are_int32
  the example of a type in a tensor                    test_the_example
  four schemas that nobody has to state                test_four_schemas
  a symmetric schema saves subtractions,               test_symmetric_saves_subtractions,
    a power of two makes scales shifts                   test_power_of_two_is_shifts
  operators stay what they are: no ConvInteger         test_operators_stay
  a vector of parameters along an axis or axes;        test_parts_of_a_tensor
    each slice of a depthwise convolution its own
  statistics on all values, so that parameters need    test_statistics_in_the_model
    no training data
  what a group of operators was decomposed from        test_what_operators_came_from
  types in a model file                                test_types_survive_in_onnx
"""

import re
import unittest

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from common import DIGITS, OracleCase, for_each, qxc, qxc_outputs, session

STORAGE = {f"{sign}int{bits}": (0 if sign else -(1 << bits - 1), (1 << bits - bool(not sign)) - 1)
           for sign in ("", "u") for bits in (2, 4, 8, 16, 32)} | {"int1": (0, 1), "uint1": (0, 1)}


class Proposal(OracleCase):
    def text(self, body, inputs="", outputs="%y", before=""):
        path = self.scratch / "m.qir"
        path.write_text(f'qir 1\nimport "" 21\n{before}\ngraph @main ({inputs}) -> ({outputs}) {{\n{body}\n}}\n')
        return path

    @for_each(*STORAGE)
    def test_a_type_is_a_scale_and_an_offset(self, storage):
        """xf = scale * (xq - offset)."""
        low, high = STORAGE[storage]
        stored, offset = sorted({low, high, (low + high) // 2}), low + (high - low) // 3
        numbers = ", ".join(map(str, stored))
        path = self.text(f"  const %x : {storage}q<0.23, {offset}>[{len(stored)}] = [{numbers}]\n"
                         f"  %y : float[{len(stored)}] = DequantizeLinear(%x)")
        said = qxc("run", path).stdout
        got = [np.float32(v) for v in re.search(r"= \[(.*)\]", said)[1].split(",")]
        want = [np.float32(q - offset) * np.float32(0.23) for q in stored]
        np.testing.assert_array_equal(np.float32(got), np.float32(want))

    @for_each(-1000, 70000)
    def test_offsets_are_int32(self, offset):
        """Refused where real 0 would have no integer, unless it is asked for."""
        path = self.text(f"  %y : int8q<0.23, {offset}>[3] = QuantizeLinear(%x)\n  %z : float[3] = DequantizeLinear(%y)",
                         "%x : float[3]", "%z")
        self.assertIn("real 0 would have no representation", qxc(path, ok=False).stderr)
        x = np.float32([[-offset * 0.23, -offset * 0.23 + 9.9, 0]])
        got = qxc_outputs(path, {"x": x}, self.scratch, "-wide-zp")["z"]
        want = np.clip(np.rint(x / np.float32(0.23)) + offset, -128, 127) - offset
        np.testing.assert_allclose(got, want * np.float32(0.23), rtol=1e-6)

    def test_the_example(self):
        """elem_type, scale: 0.23, offset: -10, shape of 5: a line."""
        path = self.text("", "%x : int8q<0.23, -10>[5]", "%x")
        self.assertIn("(%x : int8q<0.23, -10>[5])", qxc(path, "-quiet").stdout)

    def test_four_schemas(self):
        """Read off the parameters; a scheme can ask for one by its name."""
        kinds = {"Asymmetric": "0.1, 3", "Symmetric": "0.1", "AsymmetricWithPower2Scale": "2^-3, 3",
                 "SymmetricWithPower2Scale": "2^-3"}
        path = self.text("", ", ".join(f"%{k} : int8q<{v}>[2]" for k, v in kinds.items()), "%Symmetric")
        rows = [line.split() for line in qxc("list", "quant", path).stdout.splitlines()]
        self.assertEqual({k: k for k in kinds}, {row[-1]: row[1] for row in rows if row[-1] in kinds})
        for kind in kinds:
            rules, text = self.scratch / "rules.scheme", self.scratch / "digits.qir"
            rules.write_text(f"scheme {{\n  activations int8q {kind}\n}}\n")
            qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", f"-scheme={rules}", "-quiet", "-no-sync", "-o", text)
            rows = [line.split() for line in qxc("list", "quant", text).stdout.splitlines()]
            made = {row[1] for row in rows if "float" in row and row[2] == "tensor"}  # weights: one a channel
            narrower = {kind, kind.replace("Asymmetric", "Symmetric"), kind + "WithPower2Scale" * ("Power" not in kind)}
            self.assertLessEqual(made, narrower, kind)  # an offset may happen to be 0

    def quantized(self, *options):
        source = self.scratch / "digits.c"
        qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", "-emit=c", "-integer-only", "-quiet", "-no-sync",
            "-o", source, *options)
        return source.read_text()

    def test_symmetric_saves_subtractions(self):
        """No zero point of data in any call; the asymmetric ones have theirs."""
        points = {kind: {int(v) for v in re.findall(r"/\* yz \*/ (-?\d+)", self.quantized(f"-activations=int8 {kind}"))}
                  for kind in ("sym", "asym")}
        self.assertEqual({0}, points["sym"])
        self.assertGreater(len(points["asym"]), 2)

    def test_power_of_two_is_shifts(self):
        """Sums are only shifted: no multiplier is left in the C."""
        self.assertNotIn("requantization: multipliers", self.quantized("-pow2", "-requant=shift"))
        self.assertIn("requantization: multipliers", self.quantized("-requant=single"))

    def test_operators_stay(self):
        """ConvInteger, whose zero points are operands, is Conv on types."""
        rng = np.random.default_rng(2)
        constants = {"w": rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8), "wz": np.int8(0), "ws": np.float32(0.02)}
        nodes = [helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "xs", "xz"]),
                 helper.make_node("ConvInteger", ["q", "w", "xz", "wz"], ["acc"]),
                 helper.make_node("Cast", ["acc"], ["f"], to=T.FLOAT), helper.make_node("Mul", ["xs", "ws"], ["s"]),
                 helper.make_node("Mul", ["f", "s"], ["y"])]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, [1, 3, 6, 6])],
                                  [helper.make_tensor_value_info("y", T.FLOAT, [1, 4, 4, 4])],
                                  [numpy_helper.from_array(v, k) for k, v in constants.items()])
        path = self.scratch / "integer.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
        text = qxc(path, "-form=true", "-quiet").stdout
        for line in ("quant !w = int8q<0.02, 0>", "%x_quantized : uint8q<dynamic>[1,3,6,6] = QuantizeLinear(%x)",
                     "%y : float[1,4,4,4] = Conv(%x_quantized, %w)"):
            self.assertTrue(line in text, line)
        x = rng.normal(size=(5, 3, 6, 6)).astype(np.float32)
        runner = session(path)
        want = np.concatenate([runner.run(None, {"x": sample[None]})[0] for sample in x])
        np.testing.assert_array_equal(qxc_outputs(path, {"x": x}, self.scratch)["y"].reshape(want.shape), want)

    def test_parts_of_a_tensor(self):
        """A row each, blocks along one axis, a grid along two; a depthwise Conv with a scale for each slice."""
        for quant, per in {"int8q<[0.5, 2.0], [1, -1], axis=0>": np.float32([[0.5] * 4, [2.0] * 4]),
                           "int8q<[0.5, 2.0], [1, -1], axis=1, block=2>": np.float32([[0.5, 0.5, 2.0, 2.0]] * 2),
                           "int8q<[0.5, 2.0, 4.0, 8.0], 0, axis=[0, 1], block=[1, 2]>":
                               np.float32([[0.5, 0.5, 2, 2], [4, 4, 8, 8]])}.items():
            path = self.text(f"  const %x : {quant}[2,4] = [1, 2, 3, 4, 5, 6, 7, 8]\n  %y : float[2,4] = DequantizeLinear(%x)")
            got = np.float32(re.search(r"= \[(.*)\]", qxc("run", path).stdout)[1].split(","))
            offset = np.zeros((2, 4)) if "axis=[" in quant else np.where(per == 0.5, 1, -1)
            np.testing.assert_array_equal(got.reshape(2, 4), (np.arange(1, 9).reshape(2, 4) - offset) * per)
        path = self.text("  const %w : !w[2,1,1,1] = [10, 10]\n  %y : float[1,2,1,1] = Conv(%x, %w) <group=2>",
                         "%x : int8q<1.0>[1,2,1,1]", before="quant !w = int8q<[0.5, 0.25], 0, axis=0>")
        got = qxc_outputs(path, {"x": np.int8([[[[1]], [[1]]]]).reshape(1, 2, 1, 1)}, self.scratch)["y"]
        np.testing.assert_array_equal(got.ravel(), [5, 2.5])

    def test_statistics_in_the_model(self):
        """min, max, average and deviation of every value, in the ONNX file; later nobody needs the data."""
        kept = self.scratch / "kept.onnx"
        qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", "-emit=onnx", "-quiet", "-no-sync", "-o", kept)
        model = onnx.load(kept)
        stats = {v.name: next((p.value for p in v.metadata_props if p.key == "qxc.stat"), None)
                 for v in [*model.graph.value_info, *model.graph.input, *model.graph.output]}
        computed = {o for n in model.graph.node for o in n.output} | {i.name for i in model.graph.input}
        self.assertLessEqual(computed, {name for name, stat in stats.items() if stat})
        for stat in filter(None, stats.values()):
            for word in ("min=", "max=", "avg=", "std="):
                self.assertIn(word, stat)
        session(kept)  # it is the float model still
        for kind in ("uint8 asym", "int16 sym", "int8 sym pow2"):  # each user decides what to do with them
            later = self.scratch / "later.onnx"
            done = qxc(kept, "-emit=qdq", f"-activations={kind}", "-no-sync", "-o", later)
            self.assertIn("quantized without data", done.stderr)
            self.assertIn("QuantizeLinear", {n.op_type for n in onnx.load(later).graph.node})

    def test_what_operators_came_from(self):
        """A folded BatchNormalization, an inlined function: name and operator of each original."""
        kept = self.scratch / "kept.onnx"
        qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", "-emit=qop", "-quiet", "-no-sync", "-o", kept)
        notes = {n.name: next((p.value for p in n.metadata_props if p.key == "qxc.from"), "") for n in onnx.load(kept).graph.node}
        self.assertTrue(any(re.search(r'Conv ".*BatchNormalization "', note) for note in notes.values()), notes)

    def test_types_survive_in_onnx(self):
        """As annotations of tensors, which is the field that ONNX has for it; read back they are types again."""
        text, noted = self.scratch / "digits.qir", self.scratch / "noted.onnx"
        qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", "-no-bias-correction", "-quiet", "-no-sync", "-o", text)
        qxc(text, "-emit=onnx", "-annotate", "-quiet", "-no-sync", "-o", noted)
        notes = {a.tensor_name: {p.key for p in a.quant_parameter_tensor_names}
                 for a in onnx.load(noted).graph.quantization_annotation}
        self.assertEqual({"SCALE_TENSOR", "ZERO_POINT_TENSOR"}, set().union(*notes.values()))
        rows = [re.findall(r"^(\w+) +(\w+) +(\w+).* (\S+)$", qxc("list", "quant", path, *options).stdout, re.M)
                for path, options in ((text, ()), (noted, ("-form=fake",)))]
        self.assertEqual({row[3] for row in rows[0] if row[3] in notes}, set(notes))


if __name__ == "__main__":
    unittest.main()
