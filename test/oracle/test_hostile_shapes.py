"""Operators on shapes, axes and attributes that nobody meant: refused with an error, or run.

ONNX's own operator tests, each changed at random in one to three places. A law that stands nowhere shows as a signal,
or, under make check-san, as an access out of bounds. QXC_CASES sets how many are tried, QXC_SEED which, QXC_OPS of which
operators ("Attention,Scan").
"""

import os
import random
import subprocess
import unittest

import numpy as np
import onnx
from onnx import helper, numpy_helper

from common import BUILD, QXC, OracleCase
from test_node_ops import arrays, cases

CASES, SEED = int(os.environ.get("QXC_CASES") or 600), int(os.environ.get("QXC_SEED") or 1)
INTS = (0, 1, 2, 3, 4, 5, 7, 8, 16, -1, -2, -3, -4, -5, 1 << 31, 1 << 32, (1 << 32) + 1, -(1 << 31), (1 << 63) - 1, -(1 << 63))
DIMS = (0, 1, 1, 2, 2, 3, 4, 5, 7, 9)
STRINGS = ("", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", "linear", "nearest", "cubic", "bilinear", "reflection",
           "border", "edge", "reflect", "wrap", "align_corners", "half_pixel", "tf_crop_and_resize", "CRD", "DCR", "add",
           "mul", "max", "min", "bidirectional", "reverse", "floor", "ceil", "round_prefer_floor", "not_larger")


def number(rng):
    """Mostly small, as those that pass the first laws are."""
    return rng.choice(INTS[:14] if rng.random() < 0.85 else INTS)


def other_shape(rng, shape):
    shape = list(shape)
    what = rng.randrange(5)
    if what == 0:
        shape.insert(rng.randrange(len(shape) + 1), rng.choice(DIMS))
    elif what == 1 and shape:
        del shape[rng.randrange(len(shape))]
    elif what == 2:
        rng.shuffle(shape)
    elif shape:
        i = rng.randrange(len(shape))
        shape[i] = rng.choice(DIMS) if rng.random() < 0.6 else max(shape[i] + rng.choice((-1, 1)), 0)
    return shape


def other_array(rng, v):
    """Of another shape, or, where it may be axes, sizes or indices, with other numbers."""
    if v.dtype.kind in "iu" and v.size and rng.random() < 0.6:
        v = v.copy()
        i, limits = rng.randrange(v.size), np.iinfo(v.dtype)
        v.reshape(-1)[i] = min(max(number(rng), int(limits.min)), int(limits.max))
        return v
    return np.resize(v, other_shape(rng, v.shape)).astype(v.dtype)


def change_attribute(rng, node):
    if not node.attribute:
        return
    a = rng.choice(node.attribute)
    if a.type == onnx.AttributeProto.INT:
        a.i = number(rng)
    elif a.type == onnx.AttributeProto.INTS:
        ints = list(a.ints)
        what = rng.randrange(4)
        if what == 0:
            ints.append(number(rng))
        elif what == 1 and ints:
            ints.pop()
        elif ints:
            ints[rng.randrange(len(ints))] = number(rng)
        a.ClearField("ints")
        a.ints.extend(ints)
    elif a.type == onnx.AttributeProto.FLOAT:
        a.f = rng.choice((0.0, -1.0, 0.5, 3.0, 1e30, float("nan"), float("inf")))
    elif a.type == onnx.AttributeProto.STRING:
        a.s = rng.choice(STRINGS).encode()
    elif a.type == onnx.AttributeProto.GRAPH and a.g.input:
        a.g.input.pop(rng.randrange(len(a.g.input)))


def add_attribute(rng, node, schema):
    """One that the schema knows and the case leaves at its default."""
    free = [a for n, a in sorted(schema.attributes.items()) if n not in {x.name for x in node.attribute}]
    kinds = {onnx.defs.OpSchema.AttrType.INT: number(rng), onnx.defs.OpSchema.AttrType.STRING: rng.choice(STRINGS),
             onnx.defs.OpSchema.AttrType.INTS: [number(rng) for _ in range(rng.randrange(1, 5))],
             onnx.defs.OpSchema.AttrType.FLOAT: rng.choice((0.5, -1.0, 1e30))}
    free = [a for a in free if a.type in kinds]
    if free:
        a = rng.choice(free)
        node.attribute.append(helper.make_attribute(a.name, kinds[a.type]))


def changed(rng, model, inputs):
    """The model with other operands, all but some as constants, and no shapes stated for results."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    node = rng.choice(m.graph.node)
    version = next(o.version for o in m.opset_import if o.domain == node.domain)
    inputs = [np.asarray(v) for v in inputs]
    for _ in range(rng.choice((1, 1, 2, 3))):
        what = rng.random()
        if what < 0.55 and inputs:
            i = rng.randrange(len(inputs))
            inputs[i] = other_array(rng, inputs[i])
        elif what < 0.75:
            change_attribute(rng, node)
        elif what < 0.87:
            add_attribute(rng, node, onnx.defs.get_schema(node.op_type, version, node.domain))
        elif what < 0.95 and node.input:
            i = rng.randrange(len(node.input))
            node.input[i] = rng.choice(["", *(v.name for v in m.graph.input)])
        elif len(node.output) > 1:
            node.output[rng.randrange(len(node.output))] = ""
    kept = []
    for info, v in zip(m.graph.input, inputs):
        if v.dtype.kind in "iub" or rng.random() < 0.5:
            m.graph.initializer.append(numpy_helper.from_array(v, info.name))
        else:
            kept.append(helper.make_tensor_value_info(info.name, info.type.tensor_type.elem_type, v.shape))
    results = {o for n in m.graph.node for o in n.output if o}
    outputs = [o for o in m.graph.output if o.name in results]
    for o in outputs:
        o.type.tensor_type.ClearField("shape")
    for field, values in (("input", kept), ("output", outputs)):
        m.graph.ClearField(field)
        getattr(m.graph, field).extend(values)
    del m.graph.value_info[:]
    return m


MODES = (("run", "-random=1"), ("-calib-random=1", "-emit=qdq"), ("-calib-random=1", "-emit=qop"), ("-emit=c",),
         ("-dynamic", "-emit=qdq"), ("-dynamic", "-emit=qop"), ("-weight-only", "-emit=qdq"), ("-emit=qdq",), ("-emit=qop",),
         ("-calib-random=1", "-equalize", "-emit=qdq"), ("-calib-random=1", "-smooth-quant", "-emit=c"), ("-form=true",),
         ("-calib-random=1", "-adaround", "-target=tensorrt", "-emit=qdq"), ("-calib-random=1", "-emit=json"))


def constant_operands(model, inputs):
    """Those after the first as initializers, as weights are."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    for info, v in list(zip(m.graph.input, inputs))[1:]:
        m.graph.initializer.append(numpy_helper.from_array(np.asarray(v), info.name))
    del m.graph.input[1:]
    return m


def deeper(rng, model):
    """The same numbers in more dimensions than kernels and tables have room for."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    for info in m.graph.input:
        shape = info.type.tensor_type.shape
        dims, ones = list(shape.dim), rng.choice((0, 6, 9, 60))
        shape.ClearField("dim")
        shape.dim.extend([onnx.TensorShapeProto.Dimension(dim_value=1)] * ones + dims)
    for t in m.graph.initializer:
        dims = [1] * rng.choice((0, 0, 9)) + list(t.dims)
        t.ClearField("dims")
        t.dims.extend(dims)
    for o in m.graph.output:
        o.type.tensor_type.ClearField("shape")
    del m.graph.value_info[:]
    return m


class HostileShapes(OracleCase):
    expected_seconds = 10

    def test_changed_cases(self):
        rng, ran = random.Random(SEED), 0
        known = [(name, model, data) for name, model, data in cases()
                 if data and all(i.type.HasField("tensor_type") for i in model.graph.input)]
        by_operator = {}
        for case in known:
            by_operator.setdefault(case[1].graph.node[0].op_type, []).append(case)
        operators = sorted(by_operator)
        if os.environ.get("QXC_OPS"):
            operators = os.environ["QXC_OPS"].split(",")
        for i in range(CASES):
            name, model, data = rng.choice(by_operator[operators[i % len(operators)]])
            inputs = arrays(data[0][0])
            if inputs is None or sum(v.size for v in inputs) > 20000:
                continue
            with self.subTest(f"{i} {name}"):
                ran += self.run_one(changed(rng, model, inputs), f"{SEED}-{i}-{name}")
        self.assertGreater(ran, CASES // 12, "hardly any case ran: the changes are too wild")

    def test_many_dimensions(self):
        """Of each operator, in float and in both integer forms."""
        rng, seen = random.Random(SEED), set()
        for name, model, data in cases():
            op, inputs = model.graph.node[0].op_type, data and arrays(data[0][0])
            if op in seen or not inputs or not all(i.type.HasField("tensor_type") for i in model.graph.input):
                continue
            seen.add(op)
            forms = [constant_operands(model, inputs)]
            for form in ("qdq", "qop"):
                path, made = self.scratch / "plain.onnx", self.scratch / f"{form}.onnx"
                path.write_bytes(forms[0].SerializeToString())
                if subprocess.run([QXC, path, "-calib-random=1", f"-emit={form}", "-quiet", "-o", made],
                                  capture_output=True, check=False, timeout=60).returncode == 0:
                    forms.append(onnx.load(made))
            for k, form in enumerate(forms):
                with self.subTest(f"{name} {k}"):
                    model, axis = deeper(rng, form), ()
                    if model.graph.input:
                        axis = ((f"-dynamic-axis={model.graph.input[0].name}:{rng.randrange(3)}:N", "-emit=qir"),)
                    for mode in (*rng.sample(MODES, 3), *axis):
                        self.run_one(model, f"deep-{SEED}-{name}-{k}", mode)
        self.assertGreater(len(seen), 120)

    def run_one(self, model, name, mode=("run", "-random=1")):
        """Whether it ran. What misbehaves stays in the build folder."""
        path = BUILD / f"hostile-{name}.onnx"
        path.write_bytes(model.SerializeToString())
        words = [*mode, path] if mode[0] == "run" else [*mode, path, "-force", "-o", self.scratch / "out"]
        done = subprocess.run([QXC, *words], capture_output=True, check=False, timeout=60)
        self.assertIn(done.returncode, (0, 1, 2), f"{path}: {mode}: {done.stderr[-1500:]}")
        if done.returncode:
            self.assertIn(b"error:", done.stderr, path)
        for bad in (b"Sanitizer", b"runtime error:"):
            self.assertNotIn(bad, done.stderr, path)
        path.unlink()
        return done.returncode == 0


if __name__ == "__main__":
    unittest.main()
