"""The page that a text is: what people read and edit stands in front, numbers and bookkeeping behind, in lines that a screen
shows. Held against real models, as what fills a page are their numbers."""

import re
import unittest

from common import NAMES, TRAINED, OracleCase, for_each, model_path, qxc

NODE = re.compile(r"^  (%\S+|_) .*= \S+\(")
MOST = {"kws": 110}  # lines to the end of the operators
WIDE = 120  # columns that only lines of nodes may have more than


def last_node(lines):
    return max(i for i, line in enumerate(lines) if NODE.match(line)) + 1


class Page(OracleCase):
    @for_each(*NAMES)
    def test_true_form(self, name):
        self.shared_model(f"{name}_int8_qdq.onnx")
        text = qxc(model_path(name, "int8_qdq"), "-form=true", "-quiet").stdout
        self.holds(name, text)

    @for_each(*TRAINED)
    def test_trained(self, name):
        model = model_path(name, "fp32")
        for form in "fake", "true", "qop":
            self.holds(name, qxc(model, f"-calib={model.with_suffix('.calib.npz')}", f"-form={form}", "-quiet").stdout)

    def holds(self, name, text):
        lines = text.splitlines()
        self.assertEqual([], [line for line in lines if len(line) > WIDE and not NODE.match(line)])
        first = next(i for i, line in enumerate(lines) if NODE.match(line))
        self.assertEqual([], [line for line in lines[:last_node(lines)] if line.startswith("  const")])
        self.assertLess(first, last_node(lines))
        self.assertLessEqual(last_node(lines), MOST.get(name, len(lines)))
        path = self.scratch / "page.qir"
        path.write_text(text)
        self.assertEqual(text, qxc(path, "-verify-roundtrip", "-quiet").stdout)
        qxc("fmt", path)
        self.assertEqual(text, path.read_text())


if __name__ == "__main__":
    unittest.main()
