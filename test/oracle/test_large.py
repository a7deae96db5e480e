"""Memory of quantizing models that are large: it follows the result and one weight, not the model.

How long it takes stands in docs/benchmarks.md.
"""

import os
import unittest

import onnx

from common import OracleCase, for_each, qxc, talk
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


if __name__ == "__main__":
    unittest.main()
