#!/usr/bin/env python3
"""Parts of real models (-cut-outputs, -cut-inputs) beside onnxruntime's values inside the whole: head and tail at every
value, bit by bit, of float models, of integer ones in each spelling, and of texts with decisions."""

import unittest

import numpy as np
import onnx

import common

SAMPLES = 3
TRAINED = ("cnn", "relu6", "unet", "vit", "lstm", "charlm", "cancer")


def data_of(name, model):
    """Some samples; of integer models, at the scale and zero point that the text states, so any numbers will do."""
    rng = np.random.default_rng(1)
    arrays = np.load(common.TRAINED_MODELS / f"{name}.test.npz")
    feeds = {}
    for value in common.data_inputs(model.graph):
        kind = value.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if dtype == arrays[value.name].dtype:
            count = kind.shape.dim[0].dim_value or SAMPLES
            feeds[value.name] = arrays[value.name][:count]
        else:
            feeds[value.name] = rng.integers(0, 100, [d.dim_value or SAMPLES for d in kind.shape.dim]).astype(dtype)
    return feeds


def run(path, feeds):
    """What onnxruntime gives of a model, fed those of the values that are inputs there."""
    onnx.checker.check_model(str(path), full_check=True)
    runner = common.session(path)
    names = [o.name for o in runner.get_outputs()]
    return dict(zip(names, runner.run(names, {i.name: feeds[i.name] for i in runner.get_inputs()})))


class CutTest(common.OracleCase):
    expected_seconds = 20

    def cut(self, source, name, *options):
        part = self.scratch / name
        common.qxc(source, "-emit=onnx", "-no-sync", "-quiet", *options, "-o", part)
        return part

    def same(self, got, want, what):
        self.assertEqual(got.dtype, want.dtype, what)
        self.assertEqual(got.shape, want.shape, what)
        self.assertEqual(got.tobytes(), want.tobytes(), what)

    def check_cuts(self, path, feeds, each=1):
        """Head, tail and what both give in a row, at every value, or every `each`th, that an output needs."""
        model = onnx.load(path)
        names = common.computed_names(model.graph)
        ends = [o.name for o in model.graph.output]
        inner = dict(zip(names, common.session(common.with_outputs(model, names)).run(names, feeds)))
        for name in names[::each]:
            with self.subTest(value=name):
                head = run(self.cut(path, "head.onnx", f"-cut-outputs={name}"), feeds)
                self.assertEqual(list(head), [name])
                self.same(head[name], inner[name], "head")
                tail = self.cut(path, "tail.onnx", f"-cut-inputs={name}")
                self.assertIn(name, [i.name for i in onnx.load(tail).graph.input])
                got = run(tail, {**feeds, **head})
                self.assertEqual(list(got), ends)
                for end in ends:
                    self.same(got[end], inner[end], f"tail, output {end}")

    @common.for_each(*TRAINED)
    def test_float(self, name):
        path = common.TRAINED_MODELS / f"{name}.onnx"
        self.check_cuts(path, data_of(name, onnx.load(path)))

    @common.for_each(*common.TRAINED)
    def test_integers_of_onnxruntime(self, name):
        path = common.TRAINED_MODELS / f"{name}_int8_qdq.onnx"
        self.check_cuts(path, data_of(name, onnx.load(path)))

    @common.for_each("qdq", "qop")
    def test_integers_of_qxc(self, form):
        for name in ("cnn", "vit"):  # products that go out as float are com.microsoft's, whose types ONNX does not tell
            path = self.scratch / f"{name}.{form}.onnx"
            common.qxc(common.TRAINED_MODELS / f"{name}.onnx", f"-calib={common.TRAINED_MODELS}/{name}.calib.npz",
                       f"-emit={form}", "-placement=all", "-no-sync", "-quiet", "-o", path)
            self.check_cuts(path, data_of(name, onnx.load(path)), each=1 if name == "cnn" else 7)

    @common.for_each("fake", "true")
    def test_texts(self, form):
        """A value keeps its type, so the parts are quantized as the whole is, and give its numbers in a row."""
        text, whole = self.scratch / f"{form}.qir", self.scratch / f"{form}.onnx"
        model = common.TRAINED_MODELS / "cnn.onnx"
        common.qxc(model, f"-calib={common.TRAINED_MODELS}/cnn.calib.npz", f"-form={form}", "-no-sync", "-quiet", "-o", text)
        common.qxc(text, "-emit=qdq", "-no-sync", "-quiet", "-o", whole)
        feeds = data_of("cnn", onnx.load(whole))
        want = run(whole, feeds)["gemm_55"]
        for name in ("relu_8", "relu_16", "relu_25", "maxpool_26", "relu_34", "relu_50", "globalaveragepool_51"):
            with self.subTest(value=name):
                parts = []
                for option in (f"-cut-outputs={name}", f"-cut-inputs={name}"):
                    parts.append(self.scratch / f"part{len(parts)}.onnx")
                    common.qxc(text, option, "-emit=qdq", "-no-sync", "-quiet", "-verify-roundtrip", "-o", parts[-1])
                head = run(parts[0], feeds)
                taken = common.data_inputs(onnx.load(parts[1]).graph)
                self.assertEqual([value.name for value in taken if value.name not in feeds], [name])
                self.same(run(parts[1], {**feeds, **head})["gemm_55"], want, "head and tail")

    def test_what_the_file_said_of_other_ends(self):
        """An output whose type the file states in two ways, and nodes out of order: nothing of that is of the part."""
        info, floats = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
        node = onnx.helper.make_node
        graph = onnx.helper.make_graph(
            [node("Neg", ["h"], ["y"]), node("Reshape", ["x", "shape"], ["h"])], "g", [info("x", floats, [2, 6])],
            [info("y", floats, ["N", 4])], [onnx.numpy_helper.from_array(np.array([3, 4]), "shape")],
            value_info=[info("y", floats, [3, 4]), info("h", floats, [3, 4])])
        path = self.scratch / "two.onnx"
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
        part = onnx.load(self.cut(path, "h.onnx", "-cut-outputs=h")).graph
        self.assertEqual([n.op_type for n in part.node], ["Reshape"])
        self.assertEqual(list(part.output), [info("h", floats, [3, 4])])
        self.assertEqual([v.name for v in part.value_info], [])
        feeds = {"x": np.arange(12, dtype=np.float32).reshape(2, 6)}
        self.same(run(self.scratch / "h.onnx", feeds)["h"], feeds["x"].reshape(3, 4), "h")
        both = onnx.load(self.cut(path, "both.onnx", "-cut-outputs=h,y")).graph
        self.assertEqual([v.name for v in both.output], ["h", "y"])
        self.assertEqual([n.op_type for n in both.node], ["Reshape", "Neg"])

    @common.for_each(*TRAINED)
    def test_near_miss_ends(self, name):
        """Cut at its own inputs and outputs a model stays the same file."""
        path = common.TRAINED_MODELS / f"{name}.onnx"
        graph = onnx.load(path).graph
        ends = [f"-cut-inputs={v.name}" for v in common.data_inputs(graph)]
        ends += [f"-cut-outputs={v.name}" for v in graph.output]
        self.assertEqual(self.cut(path, "cut.onnx", *ends).read_bytes(), self.cut(path, "whole.onnx").read_bytes())


if __name__ == "__main__":
    unittest.main()
