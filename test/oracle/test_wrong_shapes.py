"""What shapes are wrong: in ONNX's own operator tests one operand gets another dimension, one less, or one that is longer
by 1. qxc refuses what ONNX's inference refuses, and takes what it takes.

Where they differ stands in wrong_shapes.txt with what qxc says: it knows more than that inference. QXC_UPDATE=1 rewrites the list, and its diff belongs into the commit.
"""

import os
import pathlib

import onnx
from onnx import shape_inference

from common import BUILD, OracleCase, alone, for_each, qxc
from test_node_ops import ROWS, cases, reason

LIST = pathlib.Path(__file__).with_name("wrong_shapes.txt")
HEAD = "# Operator tests of ONNX with one operand of another shape, where ONNX's inference and qxc differ.\n"


def others(dims):
    """(what was changed, the shape)"""
    yield "more", [1, *dims]
    if dims:
        yield "fewer", dims[1:]
    for i, dim in enumerate(dims):
        yield f"longer {i}", [*dims[:i], dim + 1, *dims[i + 1:]]


def reshaped(model, n, dims):
    """With input `n` of that shape; what is said of results is left out."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    shape = changed.graph.input[n].type.tensor_type.shape
    del shape.dim[:]
    for dim in dims:
        shape.dim.add().dim_value = dim
    for info in changed.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    return changed


def onnx_refuses(model):
    try:
        shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except shape_inference.InferenceError:
        return True
    return False


def read_list():
    lines = LIST.read_text().splitlines() if LIST.exists() else []
    return dict(line.split(": ", 1) for line in lines if not line.startswith("#"))


class WrongShapes(OracleCase):
    def verdict(self, model):
        """What qxc says where it differs from ONNX, else None."""
        path = self.scratch / "m.onnx"
        onnx.save(model, path)
        done = qxc(path, "-emit=qir", "-no-sync", "-quiet", ok=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        if bool(done.returncode) == onnx_refuses(model):
            return None
        return reason(done.stderr) if done.returncode else "taken"

    @for_each(*ROWS)
    def test_operator(self, op):
        found, ran = {}, set()
        case = next((c for c in cases(op) if "_expanded" not in c.name), None)
        for n, info in enumerate(case.model.graph.input if case else ()):
            dims = [d.dim_value for d in info.type.tensor_type.shape.dim]
            for what, shape in others(dims) if info.type.HasField("tensor_type") else ():
                name = f"{case.name} {info.name} {what}"
                ran.add(name)
                said = self.verdict(reshaped(case.model, n, shape))
                if said:
                    found[name] = said
        if not os.environ.get("QXC_UPDATE"):
            self.assertEqual({name: why for name, why in read_list().items() if name in ran}, found)
            return
        with alone(BUILD / "node_cases"):
            listed = {name: why for name, why in read_list().items() if name not in ran} | found
            LIST.write_text(HEAD + "".join(f"{name}: {why}\n" for name, why in sorted(listed.items())))
