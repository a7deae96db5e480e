#!/usr/bin/env python3
"""Entries of value_info that speak of a value a second time, or of what it once was.

They come back from ONNX -> .qir -> ONNX; a model that is compiled says of each value one thing, which is right:
onnxruntime loads it, onnx checks it, and it computes as the same model without them.
"""

import collections
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

import float_models
import onnx_bytes
from common import OracleCase, feed, for_each, qxc, session

EMITS = ("-emit=qdq", "-emit=qop", "-emit=qop -io=quant")


def doubled(model):
    for v in list(model.graph.value_info):
        model.graph.value_info.add().CopyFrom(v)


def doubled_wrongly(model):
    for v in list(model.graph.value_info):
        model.graph.value_info.append(helper.make_tensor_value_info(v.name, TensorProto.INT8, [7]))


def of_others(model):
    """Inputs, outputs, constants, and names that compiling gives to values."""
    names = [v.name for v in (*model.graph.input, *model.graph.output, *model.graph.initializer)]
    results = [n.output[0] for n in model.graph.node]
    names += [r + s for r in names + results for s in ("_quantized", "_scale", "_QuantizeLinear_Output",
                                                      "_DequantizeLinear_Output")]
    for i, name in enumerate(dict.fromkeys(names)):
        info = helper.make_tensor_value_info(name, (TensorProto.DOUBLE, TensorProto.FLOAT)[i % 2], [3])
        model.graph.value_info.insert(i % (len(model.graph.value_info) + 1), info)


def without_types(model):
    """As shape inference leaves entries that it knows nothing of."""
    for v in model.graph.value_info:
        v.type.Clear()
        v.type.SetInParent()
    for t in model.graph.initializer:
        model.graph.value_info.add(name=t.name).type.SetInParent()


SPOILED = {f.__name__: f for f in (doubled, doubled_wrongly, of_others, without_types)}


class ValueInfo(OracleCase):
    def load(self, path):
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        said = collections.Counter(v.name for v in model.graph.value_info)
        self.assertEqual([name for name, n in said.items() if n > 1], [])
        return session(path)

    def holds(self, model, spoiled, *options):
        """Both compile, with the same numbers."""
        onnx.save(model, self.scratch / "model.onnx")
        onnx.save(spoiled, self.scratch / "spoiled.onnx")
        data = spoiled.SerializeToString()
        self.assertEqual(onnx_bytes.canonical(data),
                         onnx_bytes.canonical(onnx_bytes.round_trip(data, self.scratch)))
        arrays = float_models.samples(model, 1)
        for emit in EMITS:
            results = []
            for name in ("model", "spoiled"):
                qxc(self.scratch / f"{name}.onnx", *emit.split(), *options, "-quiet", "-o",
                    self.scratch / "out.onnx")
                run = self.load(self.scratch / "out.onnx")
                types = {"tensor(float)": np.float32, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8}
                given = feed(model, arrays, 0)
                results.append(run.run(None, {i.name: given[v.name].astype(types[i.type]) for i, v in
                                              zip(run.get_inputs(), model.graph.input)}))
            for x, y in zip(*results):
                np.testing.assert_array_equal(x, y)

    @for_each(*SPOILED)
    def test_float(self, how):
        model = onnx.shape_inference.infer_shapes(float_models.convnet())
        spoiled = onnx.ModelProto()
        spoiled.CopyFrom(model)
        SPOILED[how](spoiled)
        self.holds(model, spoiled, "-calib-random=2")

    @for_each(*SPOILED, "inferred")
    def test_qdq(self, how):
        """Of qxc's own QDQ, whose entries carry statistics; onnx's shape inference doubles those."""
        onnx.save(float_models.convnet(), self.scratch / "float.onnx")
        qxc(self.scratch / "float.onnx", "-emit=qdq", "-calib-random=2", "-quiet", "-o",
            self.scratch / "qdq.onnx")
        model = onnx.load(self.scratch / "qdq.onnx")
        if how == "inferred":
            spoiled = onnx.shape_inference.infer_shapes(model)
        else:
            spoiled = onnx.ModelProto()
            spoiled.CopyFrom(onnx.shape_inference.infer_shapes(model))
            SPOILED[how](spoiled)
        self.holds(model, spoiled)

    def test_statistics_stay(self):
        onnx.save(float_models.convnet(), self.scratch / "float.onnx")
        qxc(self.scratch / "float.onnx", "-emit=onnx", "-calib-random=2", "-quiet", "-o",
            self.scratch / "stats.onnx")
        model = onnx.load(self.scratch / "stats.onnx")
        self.holds(model, onnx.shape_inference.infer_shapes(model))


if __name__ == "__main__":
    unittest.main()
