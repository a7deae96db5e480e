"""Whether an open first dimension counts samples: `run` gives what onnxruntime gives for the same feed, whatever it is."""

import unittest

import numpy as np
import onnx

from batch_models import APART, BY_NAME, MIXED, RNG
from common import OracleCase, for_each, qxc, session


def feed(model, sizes=5):
    return {i.name: RNG.normal(size=[d.dim_value or sizes for d in i.type.tensor_type.shape.dim]).astype(np.float32)
            for i in model.graph.input}


class Batch(OracleCase):
    def build(self, name):
        net = BY_NAME[name]()
        model = net.model(*(net.last if isinstance(net.last, list) else [net.last]))
        path = self.scratch / f"{name}.onnx"
        onnx.save(model, path)
        return path, model

    def run_qxc(self, path, data, *options):
        np.savez(self.scratch / "x.npz", **data)
        done = qxc("run", path, f"-input={self.scratch / 'x.npz'}", "-o", self.scratch / "y.npz", *options)
        with np.load(self.scratch / "y.npz") as y:
            return dict(y), done.stderr

    def check(self, have, want, names):
        for name, w in zip(names, want):
            self.assertEqual(have[name].shape, w.shape, name)
            np.testing.assert_allclose(have[name], w, rtol=1e-4, atol=1e-5, err_msg=name)

    def compare(self, name, size):
        path, model = self.build(name)
        runner = session(path)
        data = feed(model, size)
        have, said = self.run_qxc(path, data)
        names = [o.name for o in runner.get_outputs()]
        self.check(have, runner.run(None, data), names)
        several = [feed(model, size) for _ in range(3)]
        have, _ = self.run_qxc(path, {k: np.stack([d[k] for d in several]) for k in data})
        self.check(have, [np.stack(w) for w in zip(*(runner.run(None, d) for d in several))], names)
        return said

    @for_each(*(make.__name__ for make in MIXED))
    def test_mixed(self, name):
        """Computed as a whole, which is said, and C asks for the size."""
        self.assertIn("first axis is that dimension", self.compare(name, 5))
        self.assertNotIn("first axis", self.compare(name, 1) if name != "slice_reversed" else "")
        path, _ = self.build(name)
        done = qxc(path, "-emit=c", "-o", self.scratch / "m.c", ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"-bind=[NT]=SIZE .*-batch=[NT]")

    @for_each(*(make.__name__ for make in APART))
    def test_apart(self, name):
        for size in (1, 5):
            self.assertEqual(self.compare(name, size), "")
        path, _ = self.build(name)
        self.assertIn("is 1 in C", qxc(path, "-emit=c", "-o", self.scratch / "m.c").stderr)

    @for_each("numbers_cut", "mask_of_few")
    def test_of_many(self, name):
        """What constants are for a few samples they are not for more, which the data say."""
        self.assertEqual(self.compare(name, 5), "")
        self.assertIn("first axis is that dimension", self.compare(name, 20))

    def test_as_many_as_there_are(self):
        """The next prime is more than the model takes."""
        self.assertEqual(self.compare("rows_of_table", 20), "")

    def test_behind_the_first_axis(self):
        """A dimension that is not the first is the data's, as ever."""
        self.compare("lstm_batch", 5)


if __name__ == "__main__":
    unittest.main()
