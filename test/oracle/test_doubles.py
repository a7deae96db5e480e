"""Operators on plain doubles, and Cast between all types, against onnxruntime: bit for bit where one
rounding is all there is. The emitted C gives the bits of `qxc run`.
"""

import itertools

import numpy as np
import onnx
from onnx import TensorProto, helper

from cmodel import CModel
from common import OracleCase, for_each, qxc, qxc_outputs, session

EXACT = {  # name: operands
    "Add": 2, "Sub": 2, "Mul": 2, "Div": 2, "Max": 2, "Min": 2, "Equal": 2, "Less": 2, "GreaterOrEqual": 2,
    "Round": 1, "Floor": 1, "Ceil": 1, "Abs": 1, "Neg": 1, "Sqrt": 1, "Relu": 1, "Sign": 1, "Clip": 3,
    "Where": 2, "Concat": 2, "Transpose": 1, "ReduceMax": 1, "Identity": 1}
CLOSE = {"MatMul": 2, "ReduceMean": 1, "Softmax": 1, "Sigmoid": 1, "Exp": 1, "Tanh": 1, "Gemm": 3}
TYPES = {"float": np.float32, "double": np.float64, "bool": np.bool_,
         **{f"{u}int{b}": np.dtype(f"{u}int{b}") for u in ("", "u") for b in (8, 16, 32, 64)}}
SHAPE = (4, 4)


def numbers(seed):
    """Ties of Round, bounds of int32 and uint32 and their neighbours, what float does not hold."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 4, (4, *SHAPE))
    x[0, 0] = [0.5, -1.5, 2147483647.5, -2147483648.5]
    x[1, 0] = [4294967295.5, 0.1, -0.0, 1e300]
    x[1, 1] = [np.inf, -np.inf, 2.0**53 + 2, 1 / 3]
    x[2] = np.round(x[2] * 2) / 2
    x[3] *= 1e9
    return rng.permuted(x, axis=2)


def model(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def elem(name):
    return TensorProto.DataType.Value(name.upper())


class Doubles(OracleCase):
    def both(self, made, feeds):
        """Outputs of onnxruntime, of qxc, and those of the emitted C; one array a sample."""
        path = self.scratch / "m.onnx"
        onnx.checker.check_model(made, full_check=True)
        onnx.save(made, path)
        runner = session(made)
        count = len(next(iter(feeds.values())))
        rows = [runner.run(None, {k: np.asarray(v[i]) for k, v in feeds.items()}) for i in range(count)]
        want = {o.name: np.stack([r[k] for r in rows]) for k, o in enumerate(made.graph.output)}
        have = {k: v.reshape(want[k].shape) for k, v in qxc_outputs(path, feeds, self.scratch).items()}
        qxc(path, "-emit=c", "-no-sync", "-quiet", "-o", self.scratch / "m.c")
        compiled = CModel(self.scratch / "m.c", flags=("-O2", "-ffp-contract=off"))
        for i in range(count):
            results = compiled.run(*(v[i].view("u1") if v.dtype == bool else v[i] for v in feeds.values()))
            for o, result in zip(made.graph.output, results):
                np.testing.assert_array_equal(have[o.name][i].ravel().view(f"u{result.itemsize}"),
                                              result.view(f"u{result.itemsize}"), f"C, {o.name}")
        return want, have

    def test_operators(self):
        inputs = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, SHAPE) for n in "xyzuvw"]
        nodes, outputs = [], []
        for op, count in {**EXACT, **CLOSE}.items():
            operands, attributes = list("uvw" if op in CLOSE else "xyz")[:count], {}
            if op == "Clip":
                operands = ["x", "low", "high"]
            elif op == "Where":
                operands = ["o.Less", "x", "y"]
            elif op == "Concat":
                attributes = {"axis": 0}
            nodes.append(helper.make_node(op, operands, [f"o.{op}"], **attributes))
            outputs.append(helper.make_empty_tensor_value_info(f"o.{op}"))
        constants = [helper.make_tensor("low", TensorProto.DOUBLE, [], [-2147483648.0]),
                     helper.make_tensor("high", TensorProto.DOUBLE, [], [2147483647.0])]
        made = onnx.shape_inference.infer_shapes(model(nodes, inputs, outputs, constants))
        feeds = {n: numbers(i) for i, n in enumerate("xyz")}
        rng = np.random.default_rng(7)
        feeds.update({n: rng.normal(0, 4, (4, *SHAPE)) for n in "uvw"})
        want, have = self.both(made, feeds)
        for op in EXACT:
            with self.subTest(op):
                np.testing.assert_array_equal(have[f"o.{op}"], want[f"o.{op}"])
        for op in CLOSE:
            with self.subTest(op):
                np.testing.assert_allclose(have[f"o.{op}"], want[f"o.{op}"], rtol=1e-13, atol=1e-13)

    def test_clip_by_computed_bounds(self):
        """The upper bound wins; float and integers as well."""
        for name in ("float", "double", "int32", "uint8", "int64"):
            with self.subTest(name):
                inputs = [helper.make_tensor_value_info("x", elem(name), SHAPE),
                          helper.make_tensor_value_info("low", elem(name), []),
                          helper.make_tensor_value_info("high", elem(name), [])]
                outputs = [helper.make_tensor_value_info(n, elem(name), SHAPE) for n in "abc"]
                nodes = [helper.make_node("Clip", ["x", "low", "high"], ["a"]),
                         helper.make_node("Clip", ["x", "low"], ["b"]),
                         helper.make_node("Clip", ["x", "", "high"], ["c"])]
                feeds = {"x": np.arange(32).reshape(2, *SHAPE), "low": np.array([3, 9]), "high": np.array([7, 4])}
                want, have = self.both(model(nodes, inputs, outputs), {k: v.astype(TYPES[name]) for k, v in feeds.items()})
                for n in "abc":
                    np.testing.assert_array_equal(have[n], want[n])

    def test_clip_without_a_bound(self):
        """The largest number of the type stands for a bound that is missing, and infinities become that; a bound that is NaN
        cuts nothing off."""
        odd = np.array([np.inf, -np.inf, np.nan, 0.5, 3, -3, 0, -0.0])
        for name, computed in itertools.product(("float", "double"), (False, True)):
            with self.subTest(name, computed=computed):
                kind = np.dtype(TYPES[name])
                bounds = {"one": 1, "less": -1, "nan": np.nan, "inf": np.inf}
                if computed:
                    del bounds["nan"]  # Max and Min hand it on
                info = helper.make_tensor_value_info
                inputs = [info("x", elem(name), [8])]
                cases = [["x"], ["x", "", "one"], ["x", "less"], ["x", "less", "one"], ["x", "one", "less"],
                         ["x", "less", "inf"], ["x", "", "inf"]] + [["x", "nan"], ["x", "nan", "one"], ["x", "", "nan"]] * (not computed)
                nodes = [helper.make_node("Clip", case, [f"y{i}"]) for i, case in enumerate(cases)]
                outputs = [info(f"y{i}", elem(name), [8]) for i in range(len(cases))]
                values = {k: np.array(v, kind) for k, v in bounds.items()}
                feeds = {"x": odd.astype(kind)[None]}
                if computed:
                    inputs += [info(k, elem(name), []) for k in values]
                    feeds |= {k: v[None] for k, v in values.items()}
                made = model(nodes, inputs, outputs)
                if not computed:
                    made.graph.initializer.extend(onnx.numpy_helper.from_array(v, k) for k, v in values.items())
                want, have = self.both(made, feeds)
                for i, case in enumerate(cases):
                    np.testing.assert_array_equal(have[f"y{i}"], want[f"y{i}"], str(case))

    @for_each(*TYPES)
    def test_cast(self, source):
        rng = np.random.default_rng(3)
        kind = np.dtype(TYPES[source])
        x = rng.normal(0, 60, (2, *SHAPE)) if kind.kind == "f" else rng.integers(0, 250, (2, *SHAPE))
        if kind.kind == "f":
            x[0, 0] = [0.5, -1.5, 0.0, 127.9]
            x = np.abs(x)  # negative numbers in unsigned types are nobody's promise
        if kind.kind == "i":
            x[0, 0] = [np.iinfo(kind).min, np.iinfo(kind).max, -1, 0]
        if kind.kind == "u":
            x = x.astype(kind)
            x[0, 0] = [np.iinfo(kind).max, 255 % 2**(8 * kind.itemsize), 0, 1]
        x = x.astype(kind)
        nodes = [helper.make_node("Cast", ["x"], [f"to.{t}"], to=elem(t)) for t in TYPES]
        outputs = [helper.make_tensor_value_info(f"to.{t}", elem(t), SHAPE) for t in TYPES]
        made = model(nodes, [helper.make_tensor_value_info("x", elem(source), SHAPE)], outputs)
        want, have = self.both(made, {"x": x})
        for t in TYPES:
            with self.subTest(t):
                np.testing.assert_array_equal(have[f"to.{t}"], want[f"to.{t}"])


if __name__ == "__main__":
    import unittest
    unittest.main()
