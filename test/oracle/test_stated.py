"""Decisions as metadata of nodes: a decided text, written as a plain float ONNX model, is read again as what it was.

The float model passes ONNX's checker and runs in onnxruntime as a model of floats; what is read again quantizes each value as
the text does, and gives the same numbers bit for bit, as `float ~`, on integers and as C.
"""

import pathlib
import re
import unittest

import numpy as np
import onnx

from common import DIGITS, OracleCase, for_each, qxc, session

MODELS = pathlib.Path(__file__).parents[1] / "models"
KEY = "quantization."


def quant_lines(path, *options):
    """The lines `quant`, with all numbers, and which value has which."""
    text = qxc(path, "-plain", "-inline=1000000", "-quiet", *options).stdout
    lines = re.findall(r"^quant (!\S+) = (.*(?:\n +.*)*)", text, re.M)
    values = re.findall(r"(%\S+) : float\[[^\]]*\] ~ ([^=)]*?)(?=,? %| =|\)| inferred)", text)
    return dict(lines), values


class Stated(OracleCase):
    def plain(self, path, *options):
        out = self.scratch / f"{path.stem}.plain.onnx"
        qxc(path, "-emit=onnx", "-annotate=nodes", "-quiet", "-no-sync", "-o", out, *options)
        m = onnx.load(out)
        onnx.checker.check_model(m, full_check=True)
        self.assertFalse({n.op_type for n in m.graph.node} & {"QuantizeLinear", "DequantizeLinear"})
        self.assertTrue(any(p.key.startswith(KEY) for n in m.graph.node for p in n.metadata_props))
        self.assertFalse(m.graph.quantization_annotation)
        return out

    def text(self, path, form, *options):
        out = self.scratch / f"{path.stem}.{form}.qir"
        qxc(path, f"-form={form}", "-quiet", "-no-sync", "-o", out, *options)
        return out

    def values(self, path, data, *options):
        out = self.scratch / "values.npz"
        qxc("run", path, f"-input={data}", "-all-values", "-quiet", "-no-sync", "-o", out, *options)
        with np.load(out) as arrays:
            return {k: arrays[k].tobytes() for k in arrays.files}

    def c_of(self, path):
        out = self.scratch / f"{path.stem}.c" / "m.c"
        out.parent.mkdir(exist_ok=True)
        qxc(path, "-emit=c", "-quiet", "-no-sync", "-bind=N=1", "-o", out)
        # A Swish, newer than runtimes load, is spelled: the node has another name then.
        return re.sub(r"/\*.*?\*/|_QuickGelu", "", out.read_text(), flags=re.S)

    def check(self, text, form, data, same_c=True):
        plain = self.plain(text)
        again = self.text(plain, form)
        self.assertEqual(quant_lines(again), quant_lines(text))
        for options in ((), ("-form=true",)):
            self.assertEqual(self.values(again, data, *options), self.values(text, data, *options), options)
        if same_c:
            self.assertEqual(self.c_of(again), self.c_of(text))
        return plain

    @for_each("cancer", "charlm", "cnn", "lstm", "relu6", "unet", "vit")
    def test_of_trained(self, name):
        for form in ("fake", "true"):
            text = self.text(MODELS / f"{name}.onnx", form, f"-calib={MODELS / f'{name}.calib.npz'}")
            plain = self.check(text, form, MODELS / f"{name}.test.npz")
        with np.load(MODELS / f"{name}.test.npz") as arrays:
            sample = {k: arrays[k][:1] for k in arrays.files}
        got = session(plain).run(None, sample)
        sample_path = self.scratch / "sample.npz"
        np.savez(sample_path, **sample)
        out = self.scratch / "float.npz"
        qxc("run", plain, f"-input={sample_path}", "-quiet", "-no-sync", "-o", out)
        with np.load(out) as arrays:
            for have, k in zip(got, arrays.files, strict=True):
                np.testing.assert_allclose(have, arrays[k], rtol=1e-3, atol=1e-3)

    @for_each("int4 block(16)", "uint8 asym", "int16 sym pow2", "int4 sym")
    def test_of_schemes(self, weights):
        """Blocks, zero points of weights, powers of two, 4 bits."""
        path = self.scratch / f"{len(weights)}.digits.onnx"
        path.write_bytes((DIGITS / "digits.onnx").read_bytes())
        text = self.text(path, "fake", f"-calib={DIGITS / 'calib.npz'}", f"-weights={weights}",
                         "-activations=int4 in uint8" if "16 sym" not in weights else "-activations=int16 sym")
        self.check(text, "fake", DIGITS / "calib.npz")

    def test_weights_alone(self):
        text = self.text(DIGITS / "digits.onnx", "fake", "-weight-only", "-weights=int4 block(16)")
        self.check(text, "fake", DIGITS / "calib.npz", same_c=False)

    def test_annotations_keep_ranges(self):
        """-annotate says it with tensors, and what is left with metadata."""
        text = self.text(DIGITS / "digits.onnx", "fake", f"-calib={DIGITS / 'calib.npz'}", "-weights=int4 sym",
                         "-activations=int4 in uint8")
        out = self.scratch / "annotated.onnx"
        said = qxc(text, "-emit=onnx", "-annotate", "-no-sync", "-o", out).stderr
        self.assertNotIn("warning", said)
        stated = [p.value for n in onnx.load(out).graph.node for p in n.metadata_props if p.key.startswith(KEY)]
        self.assertIn("range=0:15", stated)
        self.assertIn("range=-7:7", stated)
        again = self.text(out, "fake")
        self.assertEqual(sorted(quant_lines(again)[0].values()), sorted(quant_lines(text)[0].values()))
        data = DIGITS / "calib.npz"
        self.assertEqual(self.values(again, data), self.values(text, data))

    def test_edited_by_another_tool(self):
        """Nodes and values that were renamed, and a copy of a node, keep their types."""
        text = self.text(MODELS / "cnn.onnx", "fake", f"-calib={MODELS / 'cnn.calib.npz'}")
        m = onnx.load(self.plain(text))
        names = {v: f"renamed.{i}" for i, v in enumerate(v for n in m.graph.node for v in n.output)}
        for n in m.graph.node:
            n.name = ""
            n.input[:] = [names.get(v, v) for v in n.input]
            n.output[:] = [names[v] for v in n.output]
        m.graph.output[0].name = names[m.graph.output[0].name]
        del m.graph.value_info[:]
        edited = self.scratch / "edited.onnx"
        onnx.save(m, edited)
        data = MODELS / "cnn.test.npz"
        out = self.text(edited, "fake")
        self.assertEqual(quant_lines(out)[0], quant_lines(text)[0])
        self.assertEqual(list(self.values(out, data).values())[-1], list(self.values(text, data).values())[-1])


if __name__ == "__main__":
    unittest.main()
