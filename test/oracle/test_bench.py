"""Parts of `make bench` that a measurement relies on: the chart, the page, and counting instructions."""

import pathlib
import shutil
import sys
import unittest
import xml.etree.ElementTree as ElementTree

import numpy as np

from common import DIGITS, ROOT, OracleCase, for_each, qxc

sys.path.append(str(ROOT / "tools/bench"))

import boards
from chart import chart
from page import page_of, sections_of
from speed import with_means

RATIOS = {"kws": {"a": 1.5, "b": 0.25, "c": None}, "x<y": {"a": 64.0, "b": 1.0, "c": 2.0}}
SVG = "{http://www.w3.org/2000/svg}"


class Chart(unittest.TestCase):
    def test_bars(self):
        """One for each number, its length the logarithm; those of what is faster lie left of 1."""
        root = ElementTree.fromstring(chart("How <long>", "qxc", RATIOS))
        bars = {r.find(f"{SVG}title").text: r for r in root.iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None}
        self.assertEqual(5, len(bars))
        widths = {title: float(bar.get("width")) for title, bar in bars.items()}
        self.assertAlmostEqual(widths["x<y, a: 64.00"], 3 * widths["kws, b: 0.25"], delta=0.3)
        self.assertEqual(0, widths["x<y, b: 1.00"])
        one = float(bars["kws, a: 1.50"].get("x"))
        self.assertLess(float(bars["kws, b: 0.25"].get("x")), one)
        width = float(root.get("width"))
        for bar in bars.values():
            self.assertLessEqual(float(bar.get("x")) + float(bar.get("width")), width)

    def test_page(self):
        text = page_of("# Top\n\n", {"B": "two\n", "A": "one"}, ("A", "B", "C"))
        self.assertEqual(("# Top\n\n", {"A": "one\n\n", "B": "two\n"}), sections_of(text))


class Means(unittest.TestCase):
    def test_means(self):
        """Of what there is; the best is of those named alone."""
        ratios = {"m": {"a": 2.0, "b": 8.0, "c": 1.0}, "n": {"a": 8.0, "b": None, "c": 1.0}}
        rows = with_means(ratios, ("a", "b"))
        self.assertEqual([2.0, 8.0], [rows[m]["best"] for m in ratios])
        for name, want in {"a": 4.0, "b": 8.0, "c": 1.0, "best": 4.0}.items():
            self.assertAlmostEqual(want, rows["geometric mean"][name])


class Instructions(OracleCase):
    def test_arm64(self):
        """Dot products take fewer."""
        model = self.scratch / "model.c"
        qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", "-emit=c", "-name=m", "-quiet", "-no-sync", "-o", model)
        with np.load(DIGITS / "test.npz") as test:
            sample = test["image"][:1].astype(np.float32)
        neon, again, dots = (boards.Counted(model, t).one_run([sample]) for t in ("aarch64", "aarch64", "aarch64-dotprod"))
        self.assertEqual(neon, again)
        self.assertGreater(neon, dots)
        self.assertGreater(dots, 20_000)

    @for_each("m0", "m4")
    def test_counts(self, core):
        """The same each time, and more for a model that does more."""
        for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
            if not shutil.which(tool):
                raise unittest.SkipTest(f"there is no {tool}: tools/install_deps.sh installs it")
        sample = self.rows()[:1].reshape(-1)
        once, again = (self.count(core, sample) for _ in range(2))
        self.assertEqual(once, again)
        self.assertGreater(once, 200_000)  # more than its multiplications
        self.assertLess(once, 5_000_000)
        self.assertLess(self.count(core, sample, "-requant=single"), once)

    @staticmethod
    def rows():
        with np.load(DIGITS / "test.npz") as test:
            return (test["image"] * 127).astype(np.int8)

    def count(self, core, sample, *options):
        model = pathlib.Path(self.scratch, "digits.qir")
        if not model.exists():
            qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", "-activations=int8", "-io=quant",
                "-quiet", "-no-sync", "-o", model)
        return boards.count(model, sample, core, self.scratch, *options)


if __name__ == "__main__":
    unittest.main()
