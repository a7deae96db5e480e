#!/usr/bin/env python3
"""Random models with every field of ONNX's schema survive ONNX -> ONNX and ONNX -> .qir -> ONNX.

modelgen.py makes them. Compared field by field, presence included; on the way through text typed
data (float_data, ...) become raw_data. The text also prints, parses and prints the same bytes.
QXC_RANDOM_MODELS=N tests N models in place of 300, QXC_RANDOM_FIRST the first seed.
"""

import concurrent.futures
import os
import pathlib
import tempfile
import unittest

import onnx

import modelgen
import modelgen_fields
import modelgen_values
import onnx_bytes

COUNT = int(os.environ.get("QXC_RANDOM_MODELS", "300"))
FIRST = int(os.environ.get("QXC_RANDOM_FIRST", "0"))


def trip(seed):
    """What goes wrong with one model, or None."""
    data = modelgen.model_bytes(seed)
    with tempfile.TemporaryDirectory() as folder:
        modelgen_values.write_external(folder)
        try:
            back = onnx_bytes.round_trip(data, folder)
            if onnx_bytes.canonical(data) != onnx_bytes.canonical(back):
                return "ONNX -> ONNX: " + onnx_bytes.difference(data, back)
            back = onnx_bytes.round_trip_as_text(data, folder)
            if onnx_bytes.canonical_raw(data) != onnx_bytes.canonical_raw(back):
                return "as text: " + onnx_bytes.difference(data, back)
            return reprint(folder)
        except AssertionError as e:
            return str(e)


def reprint(folder):
    """The .qir that round_trip_as_text left, printed again."""
    text = pathlib.Path(folder, "in.qir")
    again = pathlib.Path(folder, "again.qir")
    done = onnx_bytes.qxc(text, "-emit=qir", "-quiet", "-o", again)
    if done.returncode != 0:
        return "the text does not read: " + done.stderr.decode(errors="replace")
    if text.read_bytes() != again.read_bytes():
        return "the text prints differently"
    return None


class RandomModels(unittest.TestCase):
    expected_seconds = 20

    def test_schema_is_covered(self):
        known = modelgen_fields.HANDLED | modelgen_fields.REFUSED
        self.assertEqual(known - modelgen_fields.schema_fields(), set(), "fields that are not in the schema")
        self.assertEqual(modelgen_fields.schema_fields() - known, set(),
                         "new fields of the schema: modelgen.py does not make them")

    def test_every_field_is_filled(self):
        filled, types, attributes = set(), set(), set()
        for seed in range(FIRST, FIRST + max(COUNT, 300)):
            model = onnx_bytes.model(modelgen.model_bytes(seed))
            modelgen_fields.filled_fields(model, filled)
            types |= {t.data_type for t in model.graph.initializer}
            attributes |= {a.type for n in model.graph.node for a in n.attribute}
        self.assertEqual(modelgen_fields.HANDLED - filled, set(), "never filled")
        self.assertEqual(types, set(onnx.TensorProto.DataType.values()) - {0})
        self.assertEqual(attributes - {0}, set(onnx.AttributeProto.AttributeType.values()) - {0})

    def test_same_seed_same_model(self):
        self.assertEqual(modelgen.model_bytes(FIRST), modelgen.model_bytes(FIRST))

    def test_round_trip(self):
        seeds = range(FIRST, FIRST + COUNT)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for seed, wrong in zip(seeds, pool.map(trip, seeds)):
                with self.subTest(seed=seed):
                    self.assertIsNone(wrong)

    def test_segments_are_refused(self):
        model = onnx_bytes.model(modelgen.model_bytes(FIRST))
        t = model.graph.initializer.add(name=b"in segments", data_type=1, dims=[2], float_data=[1, 2])
        t.segment.begin, t.segment.end = 0, 2
        with tempfile.TemporaryDirectory() as folder:
            modelgen_values.write_external(folder)
            with self.assertRaisesRegex(AssertionError, "segments"):
                onnx_bytes.round_trip(model.SerializeToString(), folder)


if __name__ == "__main__":
    unittest.main()
