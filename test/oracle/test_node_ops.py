"""ONNX's own operator tests, for every operator that qxc has a row or a function for.

Every case either gives ONNX's expected values or is named in UNSUPPORTED with the reason that qxc
states; a case that starts or stops working fails here.
"""

import os
import pathlib
import re
import subprocess
import unittest

import numpy as np
import onnx
from onnx import numpy_helper

from common import BUILD, QXC, ROOT, OracleCase, alone, for_each, session
from node_cases import node_cases

DOMAINS = {"", "ai.onnx.ml", "ai.onnx.preview"}
LIST = pathlib.Path(__file__).with_name("node_ops_unsupported.txt")
OUTSIDE = pathlib.Path(__file__).with_name("node_ops_outside.txt")


def our_operators():
    text = (ROOT / "ir/ops/ops.def").read_text()
    return set(re.findall(r"^OP\((\w+)\)", text, re.M))


def our_functions():
    """Operators of ONNX that texts of lib/ say the meaning of."""
    texts = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "lib").glob("*.qir"))
    names = [name.split("::") for name in re.findall(r"^func (\S+)", texts, re.M)]
    return {name[len(name) > 1] for name in names if len(name) == 1 or name[0] in DOMAINS}


# Read by qxc as the float operator of the same name.
QOPERATORS = {"QLinearConv", "QLinearMatMul"}


# Rows of operators of other domains, and those of ONNX's own that it has no cases of.
UNTESTED = {"Affine", "BiasGelu", "CallBegin", "CallEnd", "Crop", "EmbedLayerNormalization", "FastGelu", "FusedMatMul", "GlobalLpPool",
            "ImageScaler", "MatMulNBits", "MaxRoiPool", "MsAttention", "MsGelu", "MultiThreshold", "Multinomial", "ParametricSoftplus", "QuickGelu",
            "RandomNormal", "RandomNormalLike", "RandomUniform", "Reinterpret", "Requantize", "ScaledTanh",
            "SimplifiedLayerNormalization", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"}
ROWS = sorted((our_operators() | QOPERATORS) - UNTESTED)
TESTED = sorted({*ROWS, *our_functions()} - UNTESTED)


def not_ours(case):
    """Operators of the case that qxc does not run."""
    ours = {*our_operators(), *our_functions(), *QOPERATORS}
    found = {n.op_type for n in case.model.graph.node if n.op_type not in ours or n.domain not in DOMAINS}
    return sorted(found | {f.name for f in case.model.functions})


def cases(op="*"):
    """The cases whose operators are all ours, of those that begin with `op`."""
    return (case for case in node_cases(op) if not not_ours(case))


def outside():
    """How many cases there are, and those of operators that qxc does not run; docs/operators.md says so."""
    known = list(node_cases("*"))
    lines = ["# Cases of ONNX's operator tests with operators that qxc does not run.\n", f"all: {len(known)}\n"]
    return "".join(lines + sorted(f"{case.name}: {', '.join(not_ours(case))}\n" for case in known if not_ours(case)))


# Here ONNX's tests divide by the exact length less 1, which is a fraction; its schema's formula, onnxruntime and PyTorch go by the length
# that comes out.
BY_ONNXRUNTIME = {"test_resize_downsample_scales_cubic_align_corners", "test_resize_downsample_scales_linear_align_corners"}


# What NumPy lacks, as it is fed and reported.
PLAIN = {"bfloat16": np.float32, "int4": np.int8, "uint4": np.uint8, "int2": np.int8, "uint2": np.uint8}


def as_arrays(values):
    """None where there are sequences, or strings."""
    values = [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in values]
    found = [None if v is None or isinstance(v, list) else np.asarray(v) for v in values]
    return found if all(v is not None and v.dtype.kind != "O" for v in found) else None


def is_small(v):
    """A float of 8 bits or 4, which no input or output of a program can be."""
    return v.dtype.name.startswith(("float8", "float4"))


def arrays(values):
    """As numpy arrays; None where they are sequences, strings or small floats."""
    found = as_arrays(values)
    return found if found is not None and not any(map(is_small, found)) else None


def without_small(model, inputs, outputs):
    """The model with small floats inside of it alone: such operands are constants, and a Cast to float, which is exact,
    stands behind such results."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    kept = [not is_small(v) for v in inputs]
    graph.initializer.extend(numpy_helper.from_array(v, i.name) for i, v in zip(graph.input, inputs) if is_small(v))
    ports = [i for i, keep in zip(graph.input, kept) if keep]
    del graph.input[:]
    graph.input.extend(ports)
    for out, v in zip(graph.output, outputs):
        if is_small(v):
            inner = f"{out.name}_small"
            for node in graph.node:
                node.output[:] = [inner if o == out.name else o for o in node.output]
            graph.node.append(onnx.helper.make_node("Cast", [inner], [out.name], to=onnx.TensorProto.FLOAT))
            out.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return changed, [v for v, keep in zip(inputs, kept) if keep], [v.astype(np.float32) if is_small(v) else v for v in outputs]


def plain(v):
    return v.astype(PLAIN.get(v.dtype.name, v.dtype))


def run(model, inputs, folder):
    """Outputs by name, or the reason why not. Arrays have the shapes of the inputs, so outputs have exactly those of the model."""
    path, x, y = folder / "m.onnx", folder / "x.npz", folder / "y.npz"
    onnx.save(model, path)
    np.savez(x, **{i.name: plain(v) for i, v in zip(model.graph.input, inputs)})
    y.unlink(missing_ok=True)
    command = [QXC, "run", path, "-o", y] + ([f"-input={x}"] if len(inputs) else [])
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode == 1 and "error: " in done.stderr:
        return None, reason(done.stderr)
    if done.returncode:
        raise AssertionError(f"exit {done.returncode}: {done.stderr[-2000:]}")
    return dict(np.load(y)), None


def reason(stderr):
    """The first message without file and node."""
    line = next(l for l in stderr.splitlines() if "error: " in l)
    line = line.split("error: ", 1)[1].replace(str(BUILD), "build")
    line = re.sub(r" \(\d+ nodes?: .*$", "", line)
    return line


def same(have, want, label):
    """float16 and bfloat16 are rounded here behind each operator, in the expected values elsewhere."""
    rough = {"float16": (4e-3, 1e-3), "bfloat16": (2e-2, 1e-2)}.get(want.dtype.name, (1e-3, 1e-7))
    want = plain(want)
    if have.shape != want.shape:
        return f"{label}: shape {have.shape}, expected {want.shape}"
    if have.dtype != want.dtype:
        return f"{label}: {have.dtype}, expected {want.dtype}"
    if label.startswith(("test_dft", "test_stft")):  # what is expected are sums in single precision
        rough = 0, 1e-6 * np.max(np.abs(want))
    if np.issubdtype(want.dtype, np.floating):
        close = np.allclose(have, want, rtol=rough[0], atol=rough[1], equal_nan=True)
    else:
        close = np.array_equal(have, want)
    return None if close else f"{label}: {have.ravel()[:8]}, expected {want.ravel()[:8]}"


def drawn_alike(have, want, label):
    """What ONNX drew from a state that the model does not state; zeros and ones of the same type and shape."""
    alike = have.shape == want.shape and have.dtype == want.dtype and np.isin(have, (0, 1)).all()
    return None if alike else f"{label}: {have}"


def read_list():
    if not LIST.exists():
        return {}
    pairs = (line.split(": ", 1) for line in LIST.read_text().splitlines() if line and line[0] != "#")
    return {name: why for name, why in pairs}


def update_list(ran, found):
    with alone(BUILD / "node_cases"):
        listed = {name: why for name, why in read_list().items() if name not in ran} | found
        lines = ["# Cases of ONNX's operator tests that qxc cannot run, and what it says.\n"]
        LIST.write_text("".join(lines + [f"{n}: {why}\n" for n, why in sorted(listed.items())]))


class NodeOps(OracleCase):
    def check(self, name, model, data_sets):
        """None when the values are right, else the reason why it cannot run."""
        for inputs, outputs in data_sets:
            inputs, outputs = as_arrays(inputs), as_arrays(outputs)
            if inputs is None or outputs is None:
                return "its values are sequences, optionals or strings"
            if any(map(is_small, [*inputs, *outputs])):
                model, inputs, outputs = without_small(model, inputs, outputs)
            values, why = run(model, inputs, self.scratch)
            if why:
                return why
            drawn = name.startswith("test_bernoulli")
            if name in BY_ONNXRUNTIME:
                outputs = session(model).run(None, dict(zip([i.name for i in model.graph.input], inputs)))
            for out, want in zip(model.graph.output, outputs):
                self.assertIsNone((drawn_alike if drawn else same)(values[out.name], want, f"{name} {out.name}"))
            if name in BY_ONNXRUNTIME:
                return "onnxruntime and PyTorch go by the schema's formula, which gives other numbers"
            if drawn:
                return "ONNX does not state which numbers it drew"
        return None

    @for_each(*TESTED)
    def test_operator(self, op):
        expected, found, ran = read_list(), {}, set()
        for name, model, data_sets in cases(op):
            with self.subTest(name):
                ran.add(name)
                why = self.check(name, model, data_sets)
                if why:
                    found[name] = why
        if os.environ.get("QXC_UPDATE"):
            update_list(ran, found)
            return
        self.assertTrue(ran)
        self.assertEqual(found, {name: why for name, why in expected.items() if name in ran})

    def test_another_shape_is_another_value(self):
        for have, want in (((1, 2), (2,)), ((1,), ()), ((2, 1), (2,)), ((0, 2), (2, 0))):
            self.assertIn("shape", same(np.zeros(have), np.zeros(want), "x") or "")
        self.assertIsNone(same(np.zeros((1, 2)), np.zeros((1, 2)), "x"))

    def test_all_are_known(self):
        """Operators without cases, and cases that are said not to run."""
        known = list(cases())
        self.assertGreater(len(known), 250)
        self.assertEqual({*our_operators(), *our_functions()} - {case.model.graph.node[0].op_type for case in known}, UNTESTED)
        self.assertLessEqual(set(read_list()), {case.name for case in known})
        if os.environ.get("QXC_UPDATE"):
            OUTSIDE.write_text(outside())
        self.assertEqual(OUTSIDE.read_text(), outside())


if __name__ == "__main__":
    unittest.main()
