"""What -dynamic writes is read again: `run`, other forms and C of it give the numbers that onnxruntime gives."""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from cmodel import CModel
from common import OracleCase, for_each, qxc, qxc_outputs, session

rng = np.random.default_rng(5)
TABLE, OTHER, SQUARE = (rng.normal(size=s).astype(np.float32) for s in ((600, 8), (600, 8), (8, 8)))


def weights(*shape):
    return rng.normal(size=shape).astype(np.float32)


# A table of so many rows becomes integers. Name: nodes behind it (operator, operands, attributes), constants, outputs.
BEHIND = {
    "alone": ([("MatMul", "e w", {})], {"w": weights(8, 4)}, "y"),
    "two_products": ([("MatMul", "e w", {}), ("MatMul", "e v", {})], {"w": weights(8, 16), "v": weights(8, 3)}, "y z"),
    "added_to": ([("MatMul", "e w", {}), ("Add", "y e", {})], {"w": SQUARE}, "z"),
    "an_output_itself": ([("MatMul", "e w", {})], {"w": SQUARE}, "y e"),
    "moved": ([("Transpose", "e", {"perm": [1, 0]}), ("MatMul", "y w", {})], {"w": weights(5, 3)}, "z"),
    "reshaped": ([("Reshape", "e s", {}), ("Gemm", "y w b", {})],
                 {"s": np.int64([1, 40]), "w": weights(40, 3), "b": weights(3)}, "z"),
    "joined": ([("Gather", "u ids", {}), ("Concat", "e y", {"axis": -1}), ("MatMul", "z w", {})],
               {"u": OTHER, "w": weights(16, 3)}, "v"),
}


class DynamicAgain(OracleCase):
    def model(self, name):
        nodes, constants, outputs = BEHIND[name]
        made = [helper.make_node("Gather", ["t", "ids"], ["e"])]
        made += [helper.make_node(op, operands.split(), [result], **attributes)
                 for (op, operands, attributes), result in zip(nodes, ("y", "z", "v"))]
        graph = helper.make_graph(
            made, "g", [helper.make_tensor_value_info("ids", T.INT64, [5])],
            [helper.make_tensor_value_info(o, T.FLOAT, None) for o in outputs.split()],
            [numpy_helper.from_array(v, n) for n, v in {"t": TABLE, **constants}.items()])
        path = self.scratch / f"{name}.onnx"
        onnx.save(onnx.shape_inference.infer_shapes(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)), path)
        return path, {"ids": np.arange(5)}

    @for_each(*BEHIND)
    def test_table(self, name):
        path, feeds = self.model(name)
        written, again, source = (self.scratch / f"{name}.{end}" for end in ("d.onnx", "a.onnx", "c"))
        for form in ("qdq", "qop"):
            with self.subTest(form=form):
                qxc(path, "-dynamic", f"-emit={form}", "-quiet", "-no-sync", "-o", written)
                self.assertTrue(any(n.op_type.startswith("DynamicQuantize") for n in onnx.load(written).graph.node))
                names = [o.name for o in session(written).get_outputs()]
                want = session(written).run(None, feeds)
                got = qxc_outputs(written, feeds, self.scratch, "-batch=none")
                for other in ("qdq", "qop"):
                    qxc(written, f"-emit={other}", "-quiet", "-no-sync", "-o", again)
                    for w, o in zip(want, session(again).run(None, feeds), strict=True):
                        np.testing.assert_array_equal(w, o)
                qxc(written, "-emit=c", "-name=m", "-quiet", "-no-sync", "-o", source)
                emitted = CModel(source, flags=("-O0", "-ffp-contract=off")).run(*feeds.values())
                for w, n, c in zip(want, names, emitted, strict=True):
                    np.testing.assert_array_equal(w, got[n])
                    self.assertEqual(got[n].tobytes(), c.tobytes())
