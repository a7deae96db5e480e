"""-requant=exact, single, double, shift at the edges, against the formulas of their sources.

Random layers are compared in test_channels_last. Here one Gemm, whose bias makes any int32 sum and
whose weights' scales make any multiplier, holds ties and their neighbours, saturation, tiny and huge
multipliers; `qxc run` and emitted C, with the micro-kernels of each processor here, must give what the
formula gives (test_cross does the same for others).
"""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from cmodel import CModel
from common import DIGITS, OracleCase, for_each, model_path, qxc, qxc_outputs, session
from inputs import int8_inputs
from rounding import ROUND, rounded

MODES = ("exact", "single", "double", "shift")
SX, SY = np.float32(2**-5), np.float32(2**-3)
ZEROS = np.int8(-3), np.int8(127), np.uint8(0), np.uint8(255)
BUILDS = {
    "plain": ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover=all"),
    "AVX2": ("-mavx2",),
    "native": ("-march=native",),
    "portable": ("-O0", "-U__SSE2__", "-fsanitize=undefined", "-fno-sanitize-recover=all"),
}


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


def gemms(sums, scales, zeros):
    """One for each zero point. Their input is zero: the sums are the biases. Four rows of weights make
    it worth packing them."""
    n, constants = len(sums), []

    def constant(name, array):
        constants.append(numpy_helper.from_array(array, name))
        return name

    zw = np.zeros(n, np.int8)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", constant("sx", SX),
                                              constant("xz", np.int8(0))], ["xr"]),
        helper.make_node("DequantizeLinear", [constant("w", np.ones((4, n), np.int8)),
                                              constant("sw", scales), constant("wz", zw)],
                         ["wr"], axis=1),
        helper.make_node("DequantizeLinear", [constant("b", sums.astype(np.int32)),
                                              constant("sb", SX * scales),
                                              constant("bz", zw.astype(np.int32))],
                         ["br"], axis=0)]
    outputs = []
    for i, zero in enumerate(zeros):
        nodes.append(helper.make_node("Gemm", ["xr", "wr", "br"], [f"yr{i}"], name=f"edges{i}"))
        nodes.append(helper.make_node("QuantizeLinear", [f"yr{i}", constant(f"sy{i}", SY),
                                                         constant(f"yz{i}", zero)], [f"y{i}"]))
        kind = helper.np_dtype_to_tensor_dtype(zero.dtype)
        outputs.append(helper.make_tensor_value_info(f"y{i}", kind, (1, n)))
    x = helper.make_tensor_value_info("x", onnx.TensorProto.INT8, (1, 4))
    return helper.make_model(helper.make_graph(nodes, "g", [x], outputs, constants),
                             opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def edges(how, path):
    """A model of these cases, and what its outputs are."""
    sums, scales = cases(how)
    multipliers = scales.astype(np.float64) * float(SX) / float(SY)
    onnx.save(gemms(sums, scales, ZEROS), path)
    return {of: [rounded(ROUND[of](sums, multipliers), (None, 1, zero)) for zero in ZEROS]
            for of in {how, "exact"}}


class Requant(OracleCase):
    @for_each(*MODES)
    def test_edges(self, how):
        path, nothing = self.scratch / f"{how}.onnx", np.zeros((1, 4), np.int8)
        wanted = edges(how, path)
        for mine, exact in zip(wanted[how], wanted["exact"]):
            self.assertLessEqual(np.abs(mine.astype(int) - exact.astype(int)).max(), 1)
        got = qxc_outputs(path, {"x": nothing}, self.scratch, f"-requant={how}").values()
        for values, want in zip(got, wanted[how], strict=True):
            np.testing.assert_array_equal(values.ravel(), want)
        for integers in ((), ("-integer-only",)):
            qxc(path, "-emit=c", "-name=m", f"-requant={how}", *integers, "-no-sync", "-quiet", "-o",
                self.scratch / "model.c")
            for name, flags in BUILDS.items():
                model = CModel(self.scratch / "model.c", "gcc", ("-O1", *flags))
                for values, want in zip(model.run(nothing), wanted[how], strict=True):
                    np.testing.assert_array_equal(values, want, f"{name} {integers}")

    @for_each(*MODES, "ties")
    def test_products(self, name):
        """Mul of all pairs of 8-bit numbers. onnxruntime computes with its QLinearMul."""
        how = "exact" if name == "ties" else name
        sa, sb = np.float32([2**-3, 2**-4] if name in ("shift", "ties") else [0.11, 0.07])
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
        if how == "exact":
            (want,) = session(path, optimize=True).run(None, {"a": a[:, None], "b": b[None]})
        else:
            want = rounded(ROUND[how](products, float(sa) * float(sb) / float(sy)), (None, 1, za))
        np.testing.assert_array_equal(got.reshape(256, 256), want)

    def test_sums(self):
        """Add and Sub of all pairs of 8-bit numbers, whose exact sums are rounded once: many ties, and
        what float32 alone would get wrong, a few of a million."""
        rng, a, b = np.random.default_rng(4), *(v.ravel() for v in np.meshgrid(*[np.arange(-128, 128)] * 2))
        grids = [(0.11, 0.07, 0.13), (0.5, 0.25, 1), (0.3, 0.7, 0.002), (0.013, 0.4, 1.7), (1e-6, 1, 1)]
        grids = np.float32([*grids, *rng.uniform(0.5, 1, (20, 3))])
        zeros = np.concatenate([[(-128, 127, 0), (127, -128, -128), (3, -7, 127), (0, 0, 0), (-128,) * 3],
                                rng.integers(-128, 128, (20, 3))])
        nodes, constants, ports, feeds, wanted = [], [], [], {}, []
        for i, (scales, zero) in enumerate(zip(grids, zeros)):
            kind, (op, sign) = (np.int8, np.uint8)[i % 2], (("Add", 1), ("Sub", -1))[i // 2 % 2]
            moved = 128 * (i % 2)
            feeds |= {f"a{i}": (a + moved).astype(kind), f"b{i}": (b + moved).astype(kind)}
            for name, s, z in zip((f"a{i}", f"b{i}", f"y{i}"), scales, zero):
                constants += [numpy_helper.from_array(s, f"{name}s"),
                              numpy_helper.from_array(np.asarray(z + moved, kind), f"{name}z")]
                ports.append(helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), [1, a.size]))
                if name[0] != "y":
                    nodes.append(helper.make_node("DequantizeLinear", [name, f"{name}s", f"{name}z"],
                                                  [f"{name}r"]))
            nodes += [helper.make_node(op, [f"a{i}r", f"b{i}r"], [f"r{i}"]),
                      helper.make_node("QuantizeLinear", [f"r{i}", f"y{i}s", f"y{i}z"], [f"y{i}"])]
            sa, sb, sy = scales.astype(np.longdouble)
            real = ((a - zero[0]) * sa + sign * (b - zero[1]) * sb) / sy
            sure = np.abs(np.abs(real - np.rint(real)) - 0.5) > 2.0**-20
            wanted.append((np.clip(np.rint(real) + zero[2], -128, 127) + moved, sure))
        path = self.scratch / "sums.onnx"
        graph = helper.make_graph(nodes, "g", [p for p in ports if p.name in feeds],
                                  [p for p in ports if p.name not in feeds], constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10),
                  path)
        got = qxc_outputs(path, {name: v[None] for name, v in feeds.items()}, self.scratch).values()
        for values, (want, sure) in zip(got, wanted, strict=True):
            apart = np.abs(values.ravel() - want)
            self.assertLessEqual(apart.max(), 1)
            self.assertEqual(0, apart[sure].max())
        qxc(path, "-emit=c", "-name=m", "-no-sync", "-quiet", "-o", self.scratch / "model.c")
        for name, flags in BUILDS.items():
            model = CModel(self.scratch / "model.c", "gcc", ("-O1", *flags))
            for values, want in zip(model.run(*feeds.values()), got, strict=True):
                np.testing.assert_array_equal(values, want.ravel(), name)

    def test_modes_differ(self):
        """Otherwise the option might do nothing."""
        results = set()
        for how in MODES[:3]:
            sums, scales = cases("single")
            path = self.scratch / "differ.onnx"
            onnx.save(gemms(sums, scales, [np.int8(0)]), path)
            (got,) = qxc_outputs(path, {"x": np.zeros((1, 4), np.int8)}, self.scratch,
                                 f"-requant={how}").values()
            results.add(got.tobytes())
        self.assertEqual(3, len(results))

    @for_each("single", "double")
    def test_model(self, how):
        """A whole model: interpreter and C agree; the final classes are those of exact rounding."""
        path = model_path("relu6", "int8_qdq")
        samples, _ = int8_inputs("relu6", 40)
        sample = {"image": samples}
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
