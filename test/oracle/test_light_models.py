"""Nine well-known networks: read, written, run, quantized, against onnxruntime.

The first run makes the models (50 s, 1.5 GB in build/light). QXC_LIGHT=all (the default) takes all
nine, two to three minutes on two cores; QXC_LIGHT=small the four that are quick, half a minute.
"""

import os
import subprocess
import sys
import time

import onnx

from common import QXC, OracleCase, for_each, qxc, qxc_values, run_samples, session, talk
from layers import Layers
from light import light, selected
from test_float_values import compare_values

NARROW = ("vgg19", "zfnet512")  # where numbers are compared: size is the point of what goes through text and back
MACS = ("Conv", "FusedConv", "Gemm", "FusedGemm", "MatMul", "FusedMatMul")


def difference(a, b, where="model"):
    """Where two protobuf messages differ first."""
    for field in a.DESCRIPTOR.fields:
        x, y = getattr(a, field.name), getattr(b, field.name)
        here = f"{where}.{field.name}"
        if field.is_repeated:
            if len(x) != len(y):
                return f"{here}: {len(x)} and {len(y)} entries"
            if field.type == field.TYPE_MESSAGE:
                for i, (p, q) in enumerate(zip(x, y)):
                    if p != q:
                        return difference(p, q, f"{here}[{i}]")
            elif list(x) != list(y):
                return f"{here}: {str(list(x))[:200]} and {str(list(y))[:200]}"
        elif field.has_presence and a.HasField(field.name) != b.HasField(field.name):
            return f"{here}: set in one only"
        elif field.type == field.TYPE_MESSAGE:
            if x != y:
                return difference(x, y, here)
        elif x != y:
            return f"{here}: {str(x)[:200]} and {str(y)[:200]}"
    return f"{where}: unknown fields" if a != b else ""


# In a process of its own, as the peak of a new process starts at that of its parent.
MEASURE = """
import os, sys, time
start = time.perf_counter()
child = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
print(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""


def measured(*args):
    """Seconds, those of the processor, and peak resident bytes of one run of qxc."""
    done = subprocess.run([sys.executable, "-S", "-c", MEASURE, QXC, *map(str, args)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seconds, busy, peak = done.stdout.split()
    return float(seconds), float(busy), int(peak)


def round_trip(path, folder):
    """[(what, seconds, processor seconds, peak bytes)] of the two halves, the best of three."""
    qir, back = folder / "model.qir", folder / "back.onnx"
    halves = (("onnx to qir", (path, "-emit=qir", "-no-sync", "-quiet", "-o", qir)),
              ("qir to onnx", (qir, "-emit=onnx", "-no-sync", "-quiet", "-o", back)))
    runs = [[measured(*args) for _, args in halves] for _ in range(3)]
    return [(what, min(r[i][0] for r in runs), min(r[i][1] for r in runs), max(r[i][2] for r in runs))
            for i, (what, _) in enumerate(halves)]


class LightModels(OracleCase):
    expected_seconds = 15

    @for_each(*selected())
    def test_through_text_and_back(self, name):
        path, _ = light(name)
        qir, back = self.scratch / f"{name}.qir", self.scratch / f"{name}.onnx"
        qxc(path, "-emit=qir", "-no-sync", "-quiet", "-o", qir)
        qxc(qir, "-emit=onnx", "-no-sync", "-quiet", "-o", back)
        before, after = onnx.load(path), onnx.load(back)
        self.assertEqual("", difference(before, after))
        for file in self.scratch.glob(f"{name}.*"):
            file.unlink()

    @for_each(*selected())
    def test_float_values(self, name):
        path, images = light(name, narrow=name in NARROW)
        complaints, compared = compare_values(path, {k: v[:1] for k, v in images.items()}, self.scratch)
        self.assertEqual([], complaints)
        self.assertGreater(compared, 15)

    @for_each(*selected())
    def test_quantized(self, name):
        path, images = light(name, narrow=name in NARROW)
        calib, types = path.with_name(f"{path.stem}_inputs.npz"), self.scratch / f"{name}.qir"
        arrays = {k: v[:1] for k, v in images.items()}
        start = time.perf_counter()
        qxc(path, f"-calib={calib}", "-emit=qir", "-no-sync", "-quiet", "-o", types)  # once for both forms
        spent = time.perf_counter() - start
        for form in ("qdq", "qop"):
            out = self.scratch / f"{name}_{form}.onnx"
            qxc(types, f"-emit={form}", "-no-sync", "-quiet", "-o", out)
            model = onnx.load(out)
            saved = self.scratch / "optimized.onnx"
            run_samples(session(out, optimize=True, save=saved), model, arrays)
            left = [n.name for n in onnx.load(saved).graph.node if n.op_type in MACS]
            self.assertEqual([], left, f"float layers in {form}")
            with qxc_values(out, arrays, self.scratch) as values:
                cut = Layers(model, arrays, values)
                self.assertEqual([], cut.uncovered())
                complaints, table = cut.check(exact=form == "qop")
            layers = sum(row[0] for row in table.values())
            differ = sum(row[2] for row in table.values())
            talk(f"{name:13}{form}  quantized in {spent:5.1f} s, {layers:3} layers, "
                 f"{differ} of {sum(row[1] for row in table.values())} elements differ")
            self.assertEqual([], complaints)
            out.unlink()
        for file in self.scratch.glob(f"{name}.*"):
            file.unlink()

    def test_round_trip_of_resnet50_is_light(self):
        """Less than half as much memory again as the file has bytes."""
        if os.environ.get("SANITIZE"):
            self.skipTest("sanitizers take memory of their own")
        if "resnet50" not in selected():
            self.skipTest("QXC_LIGHT leaves out resnet50")
        path, _ = light("resnet50")
        size = path.stat().st_size
        halves = round_trip(path, self.scratch)
        for what, seconds, busy, peak in halves:
            talk(f"resnet50 {what}: {seconds:.2f} s, {busy:.2f} s of the processor, peak "
                 f"{peak / size:.2f} of the file's size")
        self.assertLess(max(half[-1] for half in halves), 1.5 * size)
