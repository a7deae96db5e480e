"""The report as JSON: it fits docs/report.schema.json, its numbers are onnxruntime's, and names are harmless."""

import json
import shlex
import subprocess
import unittest

import numpy as np
import onnx
from onnx import helper, numpy_helper

from common import DIGITS, QXC, ROOT, OracleCase, for_each, model_path, python_with, qxc, session

MODEL, CALIB = DIGITS / "digits.onnx", DIGITS / "calib.npz"
SCHEMA = ROOT / "docs/report.schema.json"
CHECK = """
import json, sys, jsonschema
schema, *reports = [json.load(open(p, encoding="utf-8")) for p in sys.argv[1:]]
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
print(json.dumps([[f"{e.json_path}: {e.message[:200]}" for e in validator.iter_errors(r)] for r in reports]))
"""
KINDS = {"qdq": [f"-calib={CALIB}", "-emit=qdq"], "qop": [f"-calib={CALIB}", "-emit=qop"],
         "c": [f"-calib={CALIB}", "-emit=c"], "qir": [f"-calib={CALIB}", "-emit=qir"],
         "stats": [f"-calib={CALIB}", "-emit=onnx"], "float": ["-emit=onnx"],
         "dynamic": ["-dynamic", "-emit=qop"], "weights": ["-weight-only", "-emit=qdq"],
         "blocks": ["-weight-only", "-weights=int4 block(16)", "-emit=qdq"],
         "kept": [f"-calib={CALIB}", "-keep=widen.conv", "-emit=qdq"], "random": ["-calib-random=2", "-emit=qdq"]}
FLOAT8 = """qir 1
import "" 19
graph @g (%x : float[1,4]) -> (%y) {
  %q : float8e4m3fnq<0.5>[1,4] = QuantizeLinear(%x)
  %d : float[1,4] = DequantizeLinear(%q)
  %y : float[1,4] = Relu(%d)
}
"""
ENDS = {"c": "c", "qir": "qir"}
EVIL = "</script><script src='http://x'>&\"\\ \u2028 \x01\x1b naïve 模型"


def snr(x, y):
    return 10 * np.log10(np.sum(np.square(x, dtype=np.float64)) / np.sum(np.square(x.astype(np.float64) - y)))


class Report(OracleCase):
    expected_seconds = 20

    def report(self, model, *options, end="onnx"):
        path = self.scratch / "report.json"
        qxc(model, *options, "-no-sync", "-quiet", "-o", self.scratch / f"out.{end}", f"-report={path}")
        return json.loads(path.read_text(encoding="utf-8"))

    def errors(self, *reports):
        python = python_with("jsonschema", ["jsonschema==4.26.0"], "a validator of JSON Schema")
        paths = []
        for i, r in enumerate(reports):
            paths.append(self.scratch / f"checked{i}.json")
            paths[-1].write_text(json.dumps(r), encoding="utf-8")
        done = subprocess.run([python, "-c", CHECK, SCHEMA, *paths], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def consistent(self, r):
        layers, values = r["layers"], r["values"]
        for i, v in enumerate(values):
            if v["maker"] is not None:
                self.assertIn(i, layers[v["maker"]]["outputs"])
            for reader in v["readers"]:
                self.assertIn(i, layers[reader]["inputs"])
        for i, layer in enumerate(layers):
            self.assertTrue(all(values[k]["maker"] == i for k in layer["outputs"]))
            self.assertTrue(all(i in values[k]["readers"] for k in layer["inputs"]))
        self.assertEqual(r["layers_integer"] + r["layers_float"], len(layers))
        self.assertEqual(r["conversions"], sum(n["conversions"] for n in layers))
        if "arena" in r:
            self.assertEqual(r["multiply_accumulates"], sum(n["macs"] for n in layers))
            ends = [t["offset"] + t["bytes"] for t in r["arena"]["tensors"]]
            self.assertLessEqual(max(ends, default=0), r["arena"]["bytes"])
            self.assertLess(r["arena"]["bytes"] - max(ends, default=0), 16)  # up to the alignment

    def test_schema(self):
        reports = {k: self.report(MODEL, *o, end=ENDS.get(k, "onnx")) for k, o in KINDS.items()}
        for kind, found in zip(reports, self.errors(*reports.values())):
            with self.subTest(kind):
                self.assertEqual([], found)
                self.consistent(reports[kind])

    def test_near_misses(self):
        """What is no report is none to the schema either."""
        right = self.report(MODEL, *KINDS["qdq"])
        wrong = [json.loads(json.dumps(right)) for _ in range(5)]
        wrong[0]["schema_version"] = 2
        del wrong[1]["layers"][0]["kind"]
        wrong[2]["values"][0]["quantization"]["scale"] = "0.1"
        wrong[3]["values"][1]["histogram"]["counts"].append(1)
        del wrong[4]["values"][0]["quantization"]["zero_point"]
        found = self.errors(right, *wrong)
        self.assertEqual([], found[0])
        self.assertNotIn([], found[1:])

    def test_float8(self):
        """A grid of floats has no integers and no zero point but 0."""
        path = self.scratch / "f8.qir"
        path.write_text(FLOAT8)
        r = self.report(path, "-emit=qdq")
        self.assertEqual([[]], self.errors(r))
        q = r["values"][0]["quantization"]
        self.assertEqual(("float8e4m3fn", 0, [-224.0, 224.0]), (q["storage"], q["zero_point"], q["real_range"]))
        self.assertNotIn("integers", q)

    @for_each("cnn", "relu6", "unet")
    def test_quantized_elsewhere(self, name):
        r = self.report(model_path(name, "int8_qdq"), "-emit=qdq")
        self.assertEqual([[]], self.errors(r))
        self.consistent(r)
        inner = [v for v in r["values"] if "quantization" in v]
        self.assertGreater(len(inner), len(r["values"]) // 2)

    def test_layers_are_those_of_the_model(self):
        """Each node once, whatever spells it; what a pass folded away is in none."""
        model = onnx.load(MODEL)
        nodes = {n.name for n in model.graph.node if n.op_type != "BatchNormalization"}
        for kind in "qdq", "c", "qir", "weights":
            r = self.report(MODEL, *KINDS[kind], end=ENDS.get(kind, "onnx"))
            self.assertEqual(nodes, {n["name"] for n in r["layers"]}, kind)
        self.assertEqual(len(nodes), len(self.report(MODEL, *KINDS["dynamic"])["layers"]))

    def test_aliases_are_resolved(self):
        for kind in "qop", "qir", "qdq":
            values = self.report(MODEL, *KINDS[kind], end=ENDS.get(kind, "onnx"))["values"]
            relu = next(v for v in values if v["name"] == "stem.relu")["quantization"]
            self.assertEqual(("uint8", 0, [0, 255]), (relu["storage"], relu["zero_point"], relu["integers"]))
            self.assertAlmostEqual(relu["scale"] * 255, relu["real_range"][1], 6)

    def floats(self, names, samples):
        """What onnxruntime computes for these values of the float model."""
        model = onnx.load(MODEL)
        for name in names:
            if name not in {o.name for o in model.graph.output}:
                model.graph.output.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
        path = self.scratch / "all.onnx"
        onnx.save(model, path)
        return dict(zip(names, session(path).run(names, {"image": samples})))

    def test_histograms(self):
        """Ranges and what is cut off, held against onnxruntime on the samples that are looked at."""
        percentile = "-calib-method=percentile=99"
        r = self.report(MODEL, *KINDS["qdq"], percentile)
        images = np.load(CALIB)["image"]
        at = [(2 * j + 1) * len(images) // 64 for j in range(32)]
        values = {v["name"]: v for v in r["values"] if v["name"] in ("stem.relu", "widen.relu", "block.norm2", "block_relu")}
        clipped = 0
        for name, x in self.floats(list(values), images[at].reshape(32, 1, 8, 8)).items():
            h, q = values[name]["histogram"], values[name]["quantization"]
            self.assertEqual(x.size, h["elements"])
            self.assertEqual(x.size, sum(h["counts"]))
            np.testing.assert_allclose([h["low"], h["high"]], [x.min(), x.max()], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(h["counts"], np.histogram(x, 40, (h["low"], h["high"]))[0], atol=2 + x.size // 1000)
            beyond = np.sum(x > q["real_range"][1] + q["scale"] / 2), np.sum(x < q["real_range"][0] - q["scale"] / 2)
            np.testing.assert_allclose([h["clipped_above"], h["clipped_below"]], beyond, atol=2)
            clipped += h["clipped_above"]
        self.assertGreater(clipped, 0)
        self.assertEqual(0, sum(v["histogram"]["clipped_above"] for v in self.report(MODEL, *KINDS["qdq"])["values"]
                                if v["name"] in values))

    def test_sensitivity(self):
        """The loss of the output where one value alone is rounded, held against a model with one pair of Q and DQ."""
        r = self.report(MODEL, *KINDS["qdq"])
        images = np.load(CALIB)["image"]
        few = images[[(2 * j + 1) * len(images) // 8 for j in range(4)]].reshape(4, 1, 8, 8)
        want = session(MODEL).run(["logits"], {"image": few})[0]
        tried = [v for v in r["values"] if "sensitivity_db" in v and v["role"] == "inner"]
        self.assertGreater(len(tried), 5)
        for v in tried:
            model, q = onnx.load(MODEL), v["quantization"]
            model.graph.initializer.extend([
                numpy_helper.from_array(np.float32(q["scale"]), "s"),
                numpy_helper.from_array(np.array(q["zero_point"], q["storage"]), "z")])
            for n in model.graph.node:
                for i, name in enumerate(n.input):
                    if name == v["name"]:
                        n.input[i] = "rounded"
            place = next(i for i, n in enumerate(model.graph.node) if v["name"] in n.output) + 1
            model.graph.node.insert(place, helper.make_node("QuantizeLinear", [v["name"], "s", "z"], ["q"]))
            model.graph.node.insert(place + 1, helper.make_node("DequantizeLinear", ["q", "s", "z"], ["rounded"]))
            path = self.scratch / "one.onnx"
            onnx.save(model, path)
            got = session(path).run(["logits"], {"image": few})[0]
            self.assertAlmostEqual(snr(want, got), v["sensitivity_db"], delta=0.5, msg=v["name"])

    def test_next(self):
        """The commands that are suggested work as they stand, with data in place of DATA.npz."""
        models = {k: self.report(MODEL, *KINDS[k], end=ENDS.get(k, "onnx")) for k in ("qdq", "float", "stats", "dynamic", "weights", "random")}
        models["coarse"] = self.report(MODEL, f"-calib={CALIB}", "-weights=int2", "-activations=uint4", "-emit=qdq")
        models["came"] = self.report(model_path("unet", "int8_qdq"), "-emit=qdq")
        whys, folder = set(), self.scratch / "next"
        folder.mkdir()
        for kind, r in models.items():
            self.assertGreater(len(r["next"]), 0, kind)
            for n in r["next"]:
                whys.add(n["why"][:20])
                if kind == "came" and "DATA.npz" in n["command"]:
                    continue  # of which there are none here
                words = [w.replace("DATA.npz", str(CALIB)) for w in shlex.split(n["command"])]
                self.assertEqual("qxc", words[0])
                done = subprocess.run([QXC, *words[1:], "-no-sync", "-quiet"], cwd=folder, capture_output=True, text=True, check=False)
                self.assertEqual(0, done.returncode, f"{kind}: {n['command']}\n{done.stderr}")
        self.assertGreaterEqual(len(whys), 5, whys)

    def test_names(self):
        """Names that try to be markup or that a terminal would obey are the same names in JSON and in the page's data."""
        model = onnx.load(MODEL)
        model.graph.node[0].name = EVIL
        for n in model.graph.node:
            n.input[:] = [EVIL if i == "stem.relu" else i for i in n.input]
            n.output[:] = [EVIL if o == "stem.relu" else o for o in n.output]
        onnx.save(model, self.scratch / "evil.onnx")
        page = self.scratch / "page.html"
        r = self.report(self.scratch / "evil.onnx", *KINDS["qdq"])
        qxc(self.scratch / "evil.onnx", f"-calib={CALIB}", "-emit=html", "-quiet", "-no-sync", "-o", page)
        text = page.read_text(encoding="utf-8")
        shown = json.loads(text.partition('id="data">\n')[2].partition("\n</script>")[0])
        for data in r, shown:
            self.assertEqual(EVIL, data["layers"][0]["name"])
            self.assertIn(EVIL, [v["name"] for v in data["values"]])
        self.assertEqual((2, 2), (text.count("<script"), text.count("</script")))
        self.assertEqual([[]], self.errors(r))

    def test_the_same_twice(self):
        for end in "json", "html":
            texts = []
            for _ in range(2):
                path = self.scratch / f"twice.{end}"
                qxc(MODEL, *KINDS["qdq"], "-no-sync", "-quiet", "-o", self.scratch / "m.onnx", f"-report={path}")
                texts.append(path.read_bytes())
            self.assertEqual(*texts)


if __name__ == "__main__":
    unittest.main()
