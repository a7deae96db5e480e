"""The models that the `onnx` wheel brings with their outputs: what PyTorch wrote at opset 6, small ones of later opsets, and
well-known networks whose weights are all the same number. Each gives ONNX's values in `qxc run`, in exactly the shapes that ONNX
has, and those of PyTorch's operators in emitted C as well, or is refused for what stands in wheel_models.txt."""

import pathlib
import re
import subprocess

import numpy as np
import onnx

from common import QXC, OracleCase, compile_c, data_inputs, for_each, qxc
from light import selected
from test_node_ops import as_arrays, plain, same
from test_node_ops_c import C_FLAGS

DATA = pathlib.Path(onnx.__file__).parent / "backend/test/data"
LIST = pathlib.Path(__file__).with_name("wheel_models.txt")
SETS = ("pytorch-converted", "pytorch-operator", "simple")


def listed():
    """How many models each set has, and by SET/MODEL the operator that qxc does not run."""
    lines = [line.split(": ") for line in LIST.read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    return {name: int(n) for name, n in lines if "/" not in name}, {name: op for name, op in lines if "/" in name}


def tensors(folder, what):
    files = sorted(folder.glob(f"{what}_*.pb"), key=lambda f: int(re.search(r"\d+", f.name)[0]))
    return as_arrays([onnx.TensorProto.FromString(f.read_bytes()) for f in files])


class WheelModels(OracleCase):
    expected_seconds = 15

    def run_one(self, model, inputs):
        """The outputs by name, or what it says. Strings (None) cannot be fed."""
        path, x, y = (self.scratch / n for n in ("m.onnx", "x.npz", "y.npz"))
        onnx.save(model, path)
        np.savez(x, **{i.name: plain(v) for i, v in zip(data_inputs(model.graph), inputs or [])})
        data = "-random=1" if inputs is None else f"-input={x}"
        done = subprocess.run([QXC, "run", path, data, "-o", y], capture_output=True, text=True, check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return (done.stderr, None) if done.returncode else (None, dict(np.load(y)))

    def in_c(self):
        """The testbench compares with what `qxc run` gives."""
        source, program = self.scratch / "c.c", self.scratch / "c.bin"
        qxc(self.scratch / "m.onnx", "-emit=c", "-testbench", f"-input={self.scratch / 'x.npz'}", "-no-sync", "-quiet", "-o", source)
        compile_c("gcc", *C_FLAGS, "-o", program, source, "-lm")
        done = subprocess.run([program], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-500:] + done.stderr[-500:])

    def one(self, kind, folder):
        """Whether it runs."""
        model = onnx.load(folder / "model.onnx")
        refused = listed()[1].get(f"{kind}/{folder.name}")
        for data in sorted(folder.glob("test_data_set_*")):
            inputs = tensors(data, "input")
            if refused:
                self.assertIn(f"operator {refused} cannot run", self.run_one(model, inputs)[0] or "")
                return False
            outputs = tensors(data, "output")
            why, values = self.run_one(model, inputs)
            self.assertIsNone(why)
            for info, want in zip(model.graph.output, outputs):
                self.assertIsNone(same(values[info.name], want, folder.name))
        if kind == "pytorch-operator":
            self.in_c()
        return True

    @for_each(*SETS)
    def test_set(self, kind):
        sizes, refused = listed()
        ran = 0
        for folder in sorted((DATA / kind).iterdir()):
            with self.subTest(folder.name):
                ran += self.one(kind, folder)
        self.assertEqual(ran, sizes[kind] - sum(name.startswith(f"{kind}/") for name in refused))

    @for_each(*selected())
    def test_light(self, name):
        """ONNX's own input of these, which counts up; test_light_models.py has better weights."""
        model = onnx.load(DATA / f"light/light_{name}.onnx")
        info, = data_inputs(model.graph)
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        x = np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)
        why, values = self.run_one(model, [x.astype(np.float32)])
        self.assertIsNone(why)
        want = onnx.TensorProto.FromString((DATA / f"light/light_{name}_output_0.pb").read_bytes())
        out, = model.graph.output
        self.assertIsNone(same(values[out.name], onnx.numpy_helper.to_array(want), name))
