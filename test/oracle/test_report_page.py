"""The report as a page, in Chromium: it shows what its data say, in light, in the dark and on a phone; nothing overlaps or is
loaded from elsewhere, and axe has nothing serious to say."""

import json
import shutil
import subprocess
import unittest

import numpy as np
import onnx
from onnx import helper, numpy_helper

from common import DIGITS, HANG, MODELS, OracleCase, model_path, python_with, qxc

PROBE = DIGITS.parents[1] / "test/oracle/page_probe.py"
PACKAGES = ["playwright==1.65.2", "axe-playwright-python==0.1.8", "pillow==13.0.0"]
BROWSERS = "chromium", "chromium-browser", "google-chrome"
VIEWS = {"wide": (1600, 1000), "dark": (1280, 900), "phone": (390, 844)}
EVIL = "</script><script>document.body.remove()</script>&\"'\x01\u202e" + "naïve模型" * 30


def deep(blocks):
    """Five nodes a block, which is added to what it reads."""
    rng, nodes, weights, x = np.random.default_rng(1), [], [], "x"
    for i in range(blocks):
        for k in "ab":
            weights.append(numpy_helper.from_array(rng.standard_normal((8, 8, 1, 1)).astype(np.float32) * np.float32(0.3), f"w{i}{k}"))
        nodes += [helper.make_node("Conv", [x, f"w{i}a"], [f"c{i}"], f"block{i}/conv"),
                  helper.make_node("Relu", [f"c{i}"], [f"r{i}"], f"block{i}/relu"),
                  helper.make_node("Conv", [f"r{i}", f"w{i}b"], [f"d{i}"], f"block{i}/out"),
                  helper.make_node("Tanh", [f"d{i}"], [f"t{i}"], f"block{i}/tanh"),
                  helper.make_node("Add", [x, f"t{i}"], [f"a{i}"], f"block{i}/add")]
        x = f"a{i}"
    ports = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in (("x", ["N", 8, 4, 4]), (x, None))]
    graph = helper.make_graph(nodes, "deep", ports[:1], ports[1:], weights)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


class ReportPage(OracleCase):
    expected_seconds = 60

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = next((p for p in map(shutil.which, BROWSERS) if p), None)

    def page(self, name, model, *options):
        path = self.scratch / f"{name}.html"
        qxc(model, *options, "-quiet", "-no-sync", "-o", self.scratch / f"{name}.onnx", f"-report={path}")
        return path

    def facts(self, *pages):
        if not self.browser:
            self.skipTest(f"needs one of {', '.join(BROWSERS)}")
        python = python_with("browser", PACKAGES, "a driver of Chromium, axe and pillow")
        done = subprocess.run([python, PROBE, self.browser, self.scratch, *pages], capture_output=True, text=True, check=False,
                              timeout=HANG)
        self.assertEqual(0, done.returncode, done.stderr[-3000:])
        return json.loads(done.stdout)

    def sound(self, facts):
        for path, views in facts.items():
            for view, f in views.items():
                with self.subTest(page=path, view=view):
                    self.assertEqual(([], [], [], []), (f["said"], f["asked"], f["axe"], f["bad"]))
                    self.assertLessEqual(f["wider"], 0)
                    self.assertEqual(list(VIEWS[view]), f["size"])
                    self.assertTrue(f["light"] < 70 if view == "dark" else f["light"] > 180, f["light"])
                    self.works(f["works"])
            self.assertGreater(views["wide"]["paper"], 10000)

    def works(self, w):
        self.assertEqual(w["layers"], w["rows"])
        self.assertEqual(w["layers"], len(w["names"]))
        self.assertEqual(sorted(w["sqnr"]), w["sqnr"])
        self.assertTrue(w["right"])
        self.assertTrue(0 < w["found"] <= w["layers"])
        self.assertEqual(0, w["none"])
        self.assertEqual("layer-1", w["chosen"])
        self.assertGreater(w["opened"], 0)

    def test_digits(self):
        calib = f"-calib={DIGITS / 'calib.npz'}"
        model = DIGITS / "digits.onnx"
        pages = {"qdq": self.page("qdq", model, calib, "-emit=qdq"), "kept": self.page("kept", model, calib, "-emit=qdq", "-keep=Add", "-placement=all"),
                 "float": self.page("float", model, "-emit=onnx"), "dynamic": self.page("dynamic", model, "-dynamic", "-emit=qop")}
        facts = self.facts(*pages.values())
        self.sound(facts)
        of = {k: facts[str(p)]["wide"]["works"] for k, p in pages.items()}
        self.assertEqual((0, 1, 17), tuple(of[k]["float"] for k in ("qdq", "kept", "float")))
        self.assertGreater(of["qdq"]["histograms"], 0)
        self.assertEqual("stem.conv", of["qdq"]["names"][0])

    def test_branches(self):
        """Skips over many rows, and a model that came quantized."""
        self.sound(self.facts(self.page("unet", model_path("unet", "int8_qdq"), "-emit=qdq"),
                              self.page("relu6", model_path("relu6", "fp32"), "-calib-random=2", "-emit=qop")))

    def test_larger(self):
        for name in "vww_fp32.onnx", "trained/vit.onnx":
            self.shared_model(name)
        vit = MODELS / "trained/vit.onnx"
        self.sound(self.facts(self.page("vww", MODELS / "vww_fp32.onnx", "-calib-random=2", "-emit=qdq"),
                              self.page("vit", vit, f"-calib={vit.with_suffix('.calib.npz')}", "-emit=qdq")))

    def test_names(self):
        """Names that would end the script, or that are long, leave the page as it is."""
        model = onnx.load(DIGITS / "digits.onnx")
        for i, n in enumerate(model.graph.node):
            n.name = EVIL + str(i)
        path = self.scratch / "evil.onnx"
        onnx.save(model, path)
        page = self.page("names", path, f"-calib={DIGITS / 'calib.npz'}", "-emit=qdq")
        facts = self.facts(page)
        self.sound(facts)
        self.assertIn("</script><script>document.body.remove()", facts[str(page)]["wide"]["works"]["names"][0])

    def test_600_nodes(self):
        """Twice the nodes are twice the work until the page is there, which is counted: time would be the machine's."""
        data, pages = self.scratch / "deep.npz", {}
        np.savez(data, x=np.random.default_rng(2).standard_normal((8, 8, 4, 4)).astype(np.float32))
        for n in 300, 600:
            path = self.scratch / f"blocks{n}.onnx"
            onnx.save(deep(n // 5), path)
            pages[n] = str(self.page(f"deep{n}", path, f"-calib={data}", "-emit=qdq"))
        facts = self.facts(*pages.values())
        self.sound(facts)
        for view in VIEWS:
            half, whole = (facts[pages[n]][view] for n in (300, 600))
            with self.subTest(view=view):
                self.assertEqual((300, 600), (half["works"]["layers"], whole["works"]["layers"]))
                self.assertGreater(half["steps"], 300)
                self.assertLess(whole["steps"], 2.2 * half["steps"])
                self.assertLess(whole["elements"], 2.5 * half["elements"])
                self.assertLess(whole["layouts"], half["layouts"] + 20)


if __name__ == "__main__":
    unittest.main()
