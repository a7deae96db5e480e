"""Random layers and whole models as emitted C on other processors, run by QEMU: the same bytes as here.

Each processor family has micro-kernels of its own; test_channels_last does the same for this machine.
"""

import functools
import itertools

import numpy as np
import onnx

from common import OracleCase, for_each, model_path, qxc, qxc_outputs
from cross import TARGETS, CrossModel
from inputs import int8_inputs
from test_channels_last import Layers
from test_dynamic_kernels import Layers as DynamicLayers
from test_pairs import Pairs
from test_requant import edges
from test_sums import Sums
from test_tables import Functions

SMALL = 40  # layers that fit into the memory of boards


class Cross(OracleCase):
    expected_seconds = 5

    def emit(self, model, name, *options):
        folder = self.scratch / name
        folder.mkdir(exist_ok=True)
        qxc(model, "-emit=c", "-name=m", "-no-sync", "-quiet", "-o", folder / "model.c", *options)
        return folder / "model.c"

    layers = staticmethod(functools.cache(lambda how, count: Layers(5, how, count)))

    def compare(self, target, how):
        layers = self.layers(how, SMALL if target.startswith("cortex") else 100)
        model = self.scratch / f"{target}-{how}.onnx"
        layers.save(model)
        source = self.emit(model, target, f"-requant={how}")
        model = CrossModel(source, target)
        if model.target.instruction:
            self.assertIn(model.target.instruction, model.assembly.read_text())
        self.assertEqual(not model.target.instruction, model.is_portable(source))
        (got,) = model.run([list(layers.feeds.values())])
        differ = [name for name, values in zip(layers.want, got, strict=True)
                  if not np.array_equal(values, layers.want[name].ravel())]
        self.assertEqual([], [(name, layers.about[name][-1].op_type) for name in differ])

    @for_each(*TARGETS)
    def test_layers(self, target):
        self.compare(target, "exact")

    @for_each("single", "double", "shift")
    def test_rounding(self, how):
        for target in ("aarch64", "riscv64-v128", "cortex-m3", "cortex-m4", "cortex-m55"):
            with self.subTest(target=target):
                self.compare(target, how)

    @for_each("exact", "single", "double", "shift")
    def test_edges_of_rounding(self, how):
        wanted = edges(how, self.scratch / "edges.onnx")[how]
        source = self.emit(self.scratch / "edges.onnx", f"edges-{how}", f"-requant={how}")
        for target in ("aarch64", "cortex-m0", "cortex-m3", "cortex-m55"):
            (got,) = CrossModel(source, target).run([[np.zeros(4, np.int8)]])
            for values, want in zip(got, wanted, strict=True):
                np.testing.assert_array_equal(values, want, target)

    @for_each(*(t for t in TARGETS if not t.startswith("cortex")))
    def test_tables(self, target):
        drawn, model = Functions(0), self.scratch / f"{target}-tables.onnx"
        onnx.save(drawn.model(drawn.outputs), model)
        want = qxc_outputs(model, drawn.feeds, self.scratch)
        self.compare_all(target, model, drawn.feeds, {name: want[name] for name in drawn.outputs})

    @for_each(*(t for t in TARGETS if not t.startswith("cortex")))
    def test_products(self, target):
        pairs, model = Pairs(0), self.scratch / f"{target}-pairs.onnx"
        pairs.save(model)
        self.compare_all(target, model, pairs.feeds, pairs.want)

    @for_each(*(t for t in TARGETS if not t.startswith("cortex")))
    def test_ends(self, target):
        """Activations and weights at the ends of their types, whose products are the greatest."""
        rng, nodes, inputs, results, feeds, want = np.random.default_rng(3), [], [], [], {}, {}
        constants = [onnx.numpy_helper.from_array(np.float32(1), "one")]
        sizes = itertools.product((1, 2, 3, 7, 9), (4, 8, 13, 39, 1100), (np.int8, np.uint8))
        for i, (m, k, kind) in enumerate(sizes):
            ends = np.iinfo(kind).min, np.iinfo(kind).max
            x, w = rng.choice(np.array(ends, kind), (m, k)), rng.choice(np.int8([-128, 127]), (k, 20))
            x[0], w[:, 0], w[:, 1] = ends[i // 2 % 2], -128, 127
            feeds[f"x{i}"], want[f"y{i}"] = x, (x.astype(np.int64) @ w.astype(np.int64)).astype(np.float32)
            for names, name, array in ((inputs, f"x{i}", x), (results, f"y{i}", want[f"y{i}"])):
                dtype = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
                names.append(onnx.helper.make_tensor_value_info(name, dtype, array.shape))
            constants.append(onnx.numpy_helper.from_array(w, f"w{i}"))
            nodes += [onnx.helper.make_node("DequantizeLinear", [f"{of}{i}", "one"], [f"{of}{i}_real"]) for of in "xw"]
            nodes.append(onnx.helper.make_node("MatMul", [f"x{i}_real", f"w{i}_real"], [f"y{i}"]))
        model = self.scratch / f"{target}-ends.onnx"
        onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "ends", inputs, results, constants),
                                         opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), model)
        self.compare_all(target, model, feeds, want)

    @for_each(*(t for t in TARGETS if not t.startswith("cortex") or t == "cortex-m55"))
    def test_sums(self, target):
        sums, model = Sums(1), self.scratch / f"{target}-sums.onnx"
        sums.save(model)
        self.compare_all(target, model, sums.feeds, sums.want)

    @for_each(*(t for t in TARGETS if not t.startswith("cortex")))
    def test_dynamic(self, target):
        """Activations that are quantized as they come, with weights whose zero points stay, one row longer than the stack has room."""
        for name, layers in ("layers", DynamicLayers(0)), ("long", DynamicLayers(2, (2047, 3072))):
            model = self.scratch / f"{target}-{name}.onnx"
            layers.save(model)
            (got,) = CrossModel(self.emit(model, model.stem), target, "-ffp-contract=off").run([list(layers.feeds.values())])
            for result, values in zip(layers.want, got, strict=True):
                np.testing.assert_array_equal(values, np.ravel(layers.want[result]), err_msg=result)

    @for_each(*(t for t in TARGETS if not t.startswith("cortex")))
    def test_quantizers(self, target):
        """Ties, what saturates, NaN and infinities, with zero points at both ends of the type."""
        values = np.float32([*np.arange(-133, 134) / 4, np.nan, np.inf, -np.inf, 1e9, -1e9, 3e38, -3e38, -0.0, 1e-40])
        x, made = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [len(values)]), {}
        for zero in (*map(np.int8, (-128, -3, 127)), *map(np.uint8, (0, 100, 255))):
            made[f"{zero.dtype}_{zero}".replace("-", "m")] = zero
        constants = [onnx.numpy_helper.from_array(np.float32(0.5), "half")]
        constants += [onnx.numpy_helper.from_array(np.array(zero), f"{name}_zero") for name, zero in made.items()]
        nodes = [onnx.helper.make_node("QuantizeLinear", ["x", "half", f"{name}_zero"], [name]) for name in made]
        results = [onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(zero.dtype),
                                                         [len(values)]) for name, zero in made.items()]
        model = self.scratch / f"{target}-quantizers.onnx"
        onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "quantizers", [x], results, constants),
                                         opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), model)
        self.compare_all(target, model, {"x": values}, qxc_outputs(model, {"x": values}, self.scratch))

    def compare_all(self, target, model, feeds, want):
        (got,) = CrossModel(self.emit(model, model.stem), target).run([list(feeds.values())])
        for name, values in zip(want, got, strict=True):
            np.testing.assert_array_equal(values, np.ravel(want[name]), err_msg=name)

    @for_each(*(t for t in TARGETS if not t.startswith("cortex")))
    def test_models(self, target):
        """With floating point allowed, too: vectors of float32 round as integers do."""
        for name in ("relu6", "cnn"):
            model = model_path(name, "int8_qdq")
            samples, _ = int8_inputs(name, 20)
            (want,) = qxc_outputs(model, {"image": samples}, self.scratch, "-io=quant").values()
            source = self.emit(model, f"{target}-{name}", "-io=quant")
            got = CrossModel(source, target).run([[s] for s in samples])
            np.testing.assert_array_equal([g[0] for g in got], want.reshape(len(samples), -1))
