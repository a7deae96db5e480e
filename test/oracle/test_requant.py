"""-requant=exact, single, double, shift at the edges, against the formulas of their sources.

Random layers are compared in test_channels_last. Here one Gemm, whose bias makes any int32 sum and
whose weights' scales make any multiplier, holds ties and their neighbours, saturation, tiny and huge
multipliers; `qxc run` and emitted C must give what the formula gives.
"""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from cmodel import CModel
from common import DIGITS, OracleCase, for_each, qxc, qxc_outputs
from inputs import int8_inputs
from rounding import ROUND, rounded

MODES = ("exact", "single", "double", "shift")
SX, SY = np.float32(2**-5), np.float32(2**-3)


def cases(how):
    """Sums and scales of weights: pairs, one a column."""
    rng = np.random.default_rng(3)
    scales = np.exp2(np.arange(-36, 32)).astype(np.float32)
    if how != "shift":
        odd = np.exp(rng.uniform(np.log(1e-10), np.log(300), 120))
        scales = np.concatenate([scales, odd, [0.1, np.nextafter(np.float32(0.25), 0)]])
    sums, chosen = [], []
    for scale in scales.astype(np.float32):
        m = float(SX) * float(scale) / float(SY)
        ties = [round((q + 0.5) / m) + d for q in (-130, -129, -128, -2, -1, 0, 1, 2, 126, 127)
                for d in (-1, 0, 1)]
        few = [0, 1, -1, 2, -3, 2**24 + 1, -2**24 - 1, 2**31 - 1, -2**31, *ties]
        few += (rng.uniform(-200, 200, 10) / m).tolist()
        few = [int(s) for s in few if -2**31 <= s < 2**31]
        sums += few
        chosen += [scale] * len(few)
    return np.array(sums, np.int64), np.array(chosen, np.float32)


def gemm(sums, scales, zero):
    """Its input is zero: the sums are the biases."""
    n, constants = len(sums), []

    def constant(name, array):
        constants.append(numpy_helper.from_array(array, name))
        return name

    zeros = np.zeros(n, np.int8)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", constant("sx", SX),
                                              constant("xz", np.int8(0))], ["xr"]),
        helper.make_node("DequantizeLinear", [constant("w", np.ones((1, n), np.int8)),
                                              constant("sw", scales), constant("wz", zeros)],
                         ["wr"], axis=1),
        helper.make_node("DequantizeLinear", [constant("b", sums.astype(np.int32)),
                                              constant("sb", SX * scales),
                                              constant("bz", zeros.astype(np.int32))],
                         ["br"], axis=0),
        helper.make_node("Gemm", ["xr", "wr", "br"], ["yr"], name="edges"),
        helper.make_node("QuantizeLinear", ["yr", constant("sy", SY), constant("yz", zero)], ["y"])]
    kind = helper.np_dtype_to_tensor_dtype(zero.dtype)
    return helper.make_model(
        helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", onnx.TensorProto.INT8, (1, 1))],
                          [helper.make_tensor_value_info("y", kind, (1, n))], constants),
        opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


class Requant(OracleCase):
    @for_each(*MODES)
    def test_edges(self, how):
        sums, scales = cases(how)
        multipliers = scales.astype(np.float64) * float(SX) / float(SY)
        for zero in (np.int8(-3), np.int8(127), np.uint8(0), np.uint8(255)):
            path = self.scratch / f"{how}.onnx"
            onnx.save(gemm(sums, scales, zero), path)
            want = rounded(ROUND[how](sums, multipliers), (None, 1, zero))
            (got,) = qxc_outputs(path, {"x": np.zeros((1, 1), np.int8)}, self.scratch,
                                 f"-requant={how}").values()
            np.testing.assert_array_equal(got.ravel(), want)
            exact = rounded(ROUND["exact"](sums, multipliers), (None, 1, zero))
            apart = np.abs(want.astype(int) - exact.astype(int))
            self.assertLessEqual(apart.max(), 1)
            qxc(path, "-emit=c", "-name=m", f"-requant={how}", "-integer-only", "-no-sync", "-quiet",
                "-o", self.scratch / "model.c")
            model = CModel(self.scratch / "model.c", "gcc", ("-O1", "-fsanitize=undefined",
                                                             "-fno-sanitize-recover=all"))
            np.testing.assert_array_equal(model.run(np.zeros((1, 1), np.int8))[0], want)

    @for_each(*MODES)
    def test_products(self, how):
        """Mul of all pairs of 8-bit numbers."""
        sa, sb = np.float32([2**-3, 2**-4] if how == "shift" else [0.11, 0.07])
        sy, za, zb = np.float32(2**-1), np.int8(-5), np.int8(100)
        a, b = np.arange(-128, 128, dtype=np.int8), np.arange(-128, 128, dtype=np.int8)
        names = {"sa": sa, "sb": sb, "sy": sy, "za": za, "zb": zb}
        nodes = [helper.make_node("DequantizeLinear", ["a", "sa", "za"], ["ar"]),
                 helper.make_node("DequantizeLinear", ["b", "sb", "zb"], ["br"]),
                 helper.make_node("Mul", ["ar", "br"], ["yr"]),
                 helper.make_node("QuantizeLinear", ["yr", "sy", "za"], ["y"])]
        ports = [helper.make_tensor_value_info(name, onnx.TensorProto.INT8, shape)
                 for name, shape in (("a", (256, 1)), ("b", (1, 256)), ("y", (256, 256)))]
        graph = helper.make_graph(nodes, "g", ports[:2], ports[2:],
                                  [numpy_helper.from_array(v, k) for k, v in names.items()])
        path = self.scratch / "mul.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10),
                  path)
        feeds = {"a": a.reshape(1, 256, 1), "b": b.reshape(1, 256)}
        (got,) = qxc_outputs(path, feeds, self.scratch, f"-requant={how}").values()
        products = (a.astype(int) - int(za))[:, None] * (b.astype(int) - int(zb))
        m = sa * sb / sy if how == "exact" else float(sa) * float(sb) / float(sy)
        want = rounded(ROUND[how](products, m), (None, 1, za))
        np.testing.assert_array_equal(got.reshape(256, 256), want)

    def test_modes_differ(self):
        """Otherwise the option might do nothing."""
        results = set()
        for how in MODES[:3]:
            sums, scales = cases("single")
            path = self.scratch / "differ.onnx"
            onnx.save(gemm(sums, scales, np.int8(0)), path)
            (got,) = qxc_outputs(path, {"x": np.zeros((1, 1), np.int8)}, self.scratch,
                                 f"-requant={how}").values()
            results.add(got.tobytes())
        self.assertEqual(3, len(results))

    @for_each("single", "double")
    def test_model(self, how):
        """A whole model: interpreter and C agree; the final classes are those of exact rounding."""
        path = self.shared_model("kws_int8_qdq.onnx")
        samples, _ = int8_inputs("kws", 40)
        sample = {"input": samples}
        (exact,) = qxc_outputs(path, sample, self.scratch, "-io=quant").values()
        (got,) = qxc_outputs(path, sample, self.scratch, "-io=quant", f"-requant={how}").values()
        same = np.argmax(exact.reshape(len(samples), -1), 1) == np.argmax(got.reshape(len(samples), -1), 1)
        self.assertGreaterEqual(same.mean(), 0.9)
        qxc(path, "-emit=c", "-name=m", f"-requant={how}", "-integer-only", "-no-sync", "-quiet", "-o",
            self.scratch / "model.c")
        model = CModel(self.scratch / "model.c")
        for k, sample in enumerate(samples):
            np.testing.assert_array_equal(model.run(sample)[0], got[k].ravel())

    def test_shifts_need_powers_of_two(self):
        done = qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", "-emit=c", "-requant=shift",
                   "-integer-only", "-o", self.scratch / "no.c", ok=False)
        self.assertEqual(1, done.returncode)
        self.assertIn("no power of two", done.stderr)
        self.assertGreater(done.stderr.count("error:"), 3, "each layer is named")
        self.assertFalse((self.scratch / "no.c").exists())

    def test_shifts_alone(self):
        """With -pow2 scales no multiplier table is left, and C equals the interpreter."""
        model = self.scratch / "pow2.qir"
        qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", "-pow2", "-activations=int8 sym",
            "-form=true", "-io=quant", "-no-sync", "-quiet", "-o", model)
        qxc(model, "-emit=c", "-name=m", "-requant=shift", "-integer-only", "-no-sync", "-quiet", "-o",
            self.scratch / "model.c")
        text = (self.scratch / "model.c").read_text()
        self.assertNotIn("requantization: multipliers", text)
        self.assertIn("sums are multiplied with M = 2^-n, ", text)
        data = np.random.default_rng(1).integers(-128, 127, (20, 64), np.int8, endpoint=True)
        shape = (20, 1, 8, 8)
        (want,) = qxc_outputs(model, {"image": data.reshape(shape)}, self.scratch,
                              "-requant=shift").values()
        built = CModel(self.scratch / "model.c")
        for k in range(20):
            np.testing.assert_array_equal(built.run(data[k])[0], want[k].ravel())
