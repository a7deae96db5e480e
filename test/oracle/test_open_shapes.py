"""What follows of shapes that are known in part: for ONNX's own operator tests, with dimensions left open, qxc knows of each
result what ONNX's inference knows, and contradicts it nowhere."""

import re

import onnx
from onnx import numpy_helper, shape_inference

from common import OracleCase, for_each, qxc
from test_node_ops import ROWS, arrays, cases

CASES = 4  # of each operator
OPEN = {  # which of the dimensions of the first operand are open
    "all": lambda i, rank: True, "first": lambda i, rank: i == 0, "last": lambda i, rank: i == rank - 1,
    "but first": lambda i, rank: i > 0}
VARIANTS = (*OPEN, "rank", "values")  # the rank is open; shapes are known and no operand is a constant
LESS = {  # where qxc knows less
    "Attention": "the scores, behind operands without a rank", "ConvTranspose": "output_shape, where the operand is open",
    "DFT": "the rank is 4, where the axis is no constant", "GridSample": "the samples, of which the grid tells",
    "Resize": "sizes, where the operand is open", "Scan": "operands that are open"}
ONNX_IS_WRONG = {"Scan": "fails at version 8", "STFT": "forgets that onesided is 1 by default"}


def opened(case, inputs, variant):
    """The model, all operands but the first constants, what it says of results left out."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    if variant != "values":
        for info, value in list(zip(graph.input, inputs))[1:]:
            graph.initializer.append(numpy_helper.from_array(value, info.name))
        del graph.input[1:]
        kind = graph.input[0].type.tensor_type if graph.input else onnx.TypeProto.Tensor()
        rank = len(kind.shape.dim)
        for i, dim in enumerate(kind.shape.dim):
            if variant in OPEN and OPEN[variant](i, rank):
                dim.Clear()
        if variant == "rank":
            kind.ClearField("shape")
    for info in graph.output:
        info.type.tensor_type.ClearField("shape")
    return model


def onnx_dims(info):
    """None where the rank is open; of dimensions None where they are."""
    kind = info.type.tensor_type
    return [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim] if kind.HasField("shape") else None


def qxc_dims(text, name):
    found = re.search(rf'%"?{re.escape(name)}"? : \w+(\[[^\]]*\])?', text)
    inside = (found[1] or "[]")[1:-1]
    return None if inside == "*" else [int(d) if d.isdigit() else None for d in inside.split(",") if d]


def contradicts(have, want):
    return have is not None and want is not None and (
        len(have) != len(want) or any(None not in pair and pair[0] != pair[1] for pair in zip(have, want)))


def knows_less(have, want):
    return want is not None and (have is None or any(h is None and w is not None for h, w in zip(have, want)))


class OpenShapes(OracleCase):
    def one(self, case, inputs, variant, op):
        model, path = opened(case, inputs, variant), self.scratch / "m.onnx"
        known = shape_inference.infer_shapes(model, strict_mode=op not in ONNX_IS_WRONG, data_prop=True)
        onnx.save(model, path)
        text = qxc(path, "-emit=qir", "-no-sync", "-quiet").stdout
        for info in known.graph.output:
            have, want = qxc_dims(text, info.name), onnx_dims(info)
            if op not in ONNX_IS_WRONG:
                self.assertFalse(contradicts(have, want), (info.name, have, want))
            if op not in LESS:
                self.assertFalse(knows_less(have, want), (info.name, have, want))

    @for_each(*ROWS)
    def test_operator(self, op):
        few = [(c, arrays(c.data_sets[0][0])) for c in cases(op) if "_expanded" not in c.name]
        few = [(c, i) for c, i in few if i is not None and all(o.type.HasField("tensor_type") for o in c.model.graph.output)]
        for case, inputs in few[:CASES]:
            for variant in VARIANTS:
                with self.subTest(case.name, variant=variant):
                    self.one(case, inputs, variant, op)
