"""Memory of quantizing models that are large: it follows one weight, neither the model nor the result.

Beyond -weights-memory weights wait on the disk, and come out with the same bytes.

How long it takes stands in docs/benchmarks.md.
"""

import os
import resource
import subprocess
import sys
import unittest

import numpy as np
import onnx

from common import QXC, ROOT, OracleCase, for_each, qxc, talk
from large import large, many
from test_light_models import measured

MB = 1 << 20
LAYERS, WIDTH = 24, 1024  # 100 MB in weights of 4
WEIGHT = 4 * WIDTH * WIDTH
ITSELF = 16 * MB  # the program, its libraries, tables

# form, options, how often the result is held: MatMulNBits wants its integers in another order
WAYS = {"dynamic": ("qdq", ("-dynamic",), 1),
        "weights of 8 bits": ("qdq", ("-weight-only",), 1),
        "weights of 4 bits": ("qdq", ("-weight-only", "-weights=int4 sym"), 1),
        "one scale for each": ("qdq", ("-weight-only", "-weights=int4 sym", "-per-tensor"), 1),
        "blocks of 4 bits": ("qdq", ("-weight-only", "-weights=uint4 asym block(32)"), 1),
        "MatMulNBits": ("qop", ("-weight-only", "-weights=int4 sym block(32)"), 2)}


@unittest.skipIf(os.environ.get("SANITIZE"), "sanitizers take memory of their own")
class Large(OracleCase):
    expected_seconds = 10

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.models = {external: large(cls.scratch / f"model{external:d}.onnx", LAYERS, WIDTH, external)
                      for external in (False, True)}

    @for_each(*WAYS)
    def test_memory(self, way):
        form, options, times = WAYS[way]
        sizes = []
        for external, path in self.models.items():
            out = self.scratch / "out.onnx"
            _, _, peak = measured(path, *options, f"-emit={form}", "-no-sync", "-quiet", "-o", out)
            sizes.append(out.stat().st_size)
            talk(f"{way:18} {'beside' if external else 'inside':6} result {sizes[-1] / MB:5.1f} MB, peak {peak / MB:5.1f} MB")
            self.assertLess(peak, times * sizes[-1] + 2 * WEIGHT + ITSELF)
            onnx.checker.check_model(out)
        self.assertLess(max(sizes), LAYERS * WEIGHT / 3)

    def test_memory_of_a_run(self):
        """Weights that stand at no multiple of 4 in the model's file are packed from there: there is no copy beside."""
        path, data = self.models[False], self.scratch / "x.npy"
        np.save(data, np.ones((1, WIDTH), np.float32))
        size = path.stat().st_size
        _, _, peak = measured("run", path, f"-input={data}", "-quiet", "-o", self.scratch / "y.npz")
        talk(f"a run of {size / MB:.1f} MB: peak {peak / MB:.1f} MB")
        self.assertLess(peak, 2 * size + ITSELF)

    def test_many_nodes(self):
        """Whatever a node takes, it takes once: not once for each pass that looks at it."""
        nodes = []
        for layers in (2000, 16000):
            path, out = many(self.scratch / "many.onnx", layers), self.scratch / "out.onnx"
            _, _, peak = measured(path, "-weight-only", "-emit=qdq", "-no-sync", "-quiet", "-o", out)
            nodes.append((3 * layers, peak))
        (few, less), (more, most) = nodes
        each = (most - less) / (more - few)
        talk(f"a node takes {each:.0f} bytes")
        self.assertLess(each, 3000)

    @for_each(*WAYS)
    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "there is one processor")
    def test_one_processor_and_all(self, way):
        """The same bytes, however many share the work."""
        form, options, _ = WAYS[way]
        results, everywhere = [], os.sched_getaffinity(0)
        for processors in ({min(everywhere)}, everywhere):
            out = self.scratch / "out.onnx"
            os.sched_setaffinity(0, processors)
            try:
                qxc(self.models[False], *options, f"-emit={form}", "-no-sync", "-quiet", "-o", out)
            finally:
                os.sched_setaffinity(0, everywhere)
            results.append(out.read_bytes())
        self.assertTrue(results[0] == results[1])


TEXT = ("qir", ("-weight-only", "-form=true"), 1)
BUDGET = 16  # -weights-memory
HIDDEN, INNER, WORDS = 1024, 2816, 4096
LARGEST = 4 * HIDDEN * WORDS


def llama(path, layers, *dense, width=HIDDEN, inner=INNER, words=WORDS):
    """tools/llama_model.py: sparse but for the blocks in `dense`."""
    subprocess.run([sys.executable, ROOT / "tools/llama_model.py", path, f"--layers={layers}", f"--width={width}",
                    f"--inner={inner}", f"--vocabulary={words}", "--heads=4", "--dense", *dense], check=True)
    return path


def constants(path):
    return {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}


def before(model):
    """Parameters of each DequantizeLinear, by what it dequantizes."""
    return {n.input[0]: n.input[1:] for n in model.graph.node if n.op_type == "DequantizeLinear"}


class Streamed(OracleCase):
    expected_seconds = 20

    @unittest.skipIf(os.environ.get("SANITIZE"), "sanitizers take memory of their own")
    def test_memory_stays(self):
        """Twice the blocks take no more memory: 430 MB of weights, in files with holes."""
        paths = [llama(self.scratch / f"holes{n}.onnx", n, "none") for n in (4, 8)]
        for way, (form, options, _) in {**WAYS, "text": TEXT}.items():
            beside = () if form == "qir" else ("-external-data",)
            peaks = [measured(path, *options, f"-emit={form}", *beside, f"-weights-memory={BUDGET}", "-no-sync", "-quiet",
                              "-o", self.scratch / f"out.{form}")[2] for path in paths]
            talk(f"{way:18} peaks {peaks[0] / MB:5.1f} and {peaks[1] / MB:5.1f} MB")
            with self.subTest(way=way):
                self.assertLess(peaks[1], BUDGET * MB + 3 * LARGEST + ITSELF)
                self.assertLess(peaks[1] - peaks[0], 8 * MB)

    def small(self):
        return llama(self.scratch / "small.onnx", 2, "all", width=256, inner=704, words=512)

    @for_each(*WAYS, "text", "floats")
    def test_both_ways(self, way):
        """The same bytes, whether weights wait in memory or on the disk."""
        form, options, _ = WAYS.get(way, TEXT)
        path, results = self.small(), []
        if way == "floats":
            path, form, options = self.scratch / "quantized.onnx", "float", ()
            qxc(large(self.scratch / "float.onnx", 2, 256), "-weight-only", "-emit=qdq", "-quiet", "-o", path)
        beside = () if form == "qir" else ("-external-data",)
        for memory in (0, 1000):
            folder = self.scratch / f"{way} {memory}"
            folder.mkdir()
            qxc(path, *options, f"-emit={form}", *beside, f"-weights-memory={memory}", "-no-sync", "-quiet", "-o",
                folder / f"out.{form}")
            results.append({f.name: f.read_bytes() for f in folder.iterdir()})
        self.assertEqual(2, len(results[0]))
        self.assertTrue(results[0] == results[1])

    @for_each("int8", "int4")
    def test_numbers(self, kind):
        """A block among holes: each integer is its number in steps of its scale, and all others are 0."""
        path, out = llama(self.scratch / "one.onnx", 3, "1", width=256, inner=704, words=512), self.scratch / "out.onnx"
        options = ("-weights=int4 sym block(32)",) if kind == "int4" else ()
        qxc(path, "-weight-only", *options, "-emit=qdq", "-external-data", "-weights-memory=0", "-quiet", "-o", out)
        floats, integers, parameters = constants(path), constants(out), before(onnx.load(out, load_external_data=False))
        low, high, seen = (-8, 7, 0) if kind == "int4" else (-127, 127, 0)
        for name, (scale, zero) in ((n, p) for n, p in parameters.items() if n in integers):
            source = name.removesuffix("_1")
            got, steps = integers[name].astype(np.int32), integers[scale]
            self.assertFalse(integers[zero].any() if zero else False)
            if not source.startswith("layers.1."):
                self.assertFalse(got.any(), source)
                continue
            seen += 1
            want = floats[source] / np.float32(1 if source == name else 8)  # scores are divided by 8 = 64^0.5
            if kind == "int8":
                np.testing.assert_array_equal(np.abs(want).max(axis=0) / np.float32(127), steps)
            each = np.repeat(steps, 32, axis=0) if kind == "int4" else steps
            np.testing.assert_array_equal(np.clip(np.rint(want / each), low, high), got)
        self.assertEqual(7, seen)

    def test_no_room(self):
        """Where the disk takes less than the result, there is an error and no file."""
        folder = self.scratch / "full"
        folder.mkdir()
        path, most = self.small(), 100 * 1024
        done = subprocess.run([QXC, path, "-weight-only", "-emit=qdq", "-external-data", "-weights-memory=0", "-quiet", "-o",
                               folder / "out.onnx"], capture_output=True, text=True, restore_signals=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
        self.assertEqual(3, done.returncode)
        self.assertIn("cannot write", done.stderr)
        self.assertEqual([], list(folder.iterdir()))


if __name__ == "__main__":
    unittest.main()
