#!/usr/bin/env python3
"""The operator tables are current: ir/onnx_schema.def against the `onnx` package, byte for byte,
and ir/msft_schema.def against what onnxruntime registers."""

import importlib.util
import pathlib
import re
import sys
import unittest
from types import SimpleNamespace

import onnx
from onnx import defs
from onnxruntime.capi import onnxruntime_pybind11_state as ort

ROOT = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("gen", ROOT / "tools/gen_onnx_schema.py")
gen = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gen)


def squeeze(text):
    """Without comments and white space."""
    return re.sub(r"\s+|/\*.*?\*/", "", text, flags=re.S)


def op_texts(text):
    """{(domain, name, since): row} of a .def file."""
    text = squeeze(text)
    starts = [m.start() for m in re.finditer(r'OP\("', text)] + [len(text)]
    rows = [text[a:b] for a, b in zip(starts, starts[1:])]
    return {re.match(r'OP\("(.*?)","(.*?)",(\d+)', row).groups(): row for row in rows}


def set_values(text):
    """{name: five bit sets} of a .def file."""
    found = {}
    for name, values in re.findall(r"^TYPES\((\w+), (.*?)\)", text, flags=re.M):
        masks = []
        for value in values.split(","):
            assert re.fullmatch(r"[\s0-9a-fA-Fx<|]+", value), value
            masks.append(eval(value))  # only digits, << and | by the line above
        found[name] = tuple(masks)
    return found


def ort_op(schema):
    """An operator that onnxruntime registers, in the generator's terms."""
    def params(list_):
        return [SimpleNamespace(name=p.name, type_str=p.typeStr, homogeneous=p.isHomogeneous,
                                option=p.option.name, min_arity=1) for p in list_]

    def default(attr):
        return onnx.AttributeProto.FromString(attr._default_value) if attr._default_value else None

    return SimpleNamespace(
        domain=schema.domain, name=schema.name, since=schema.since_version, flags=[],
        constraints={c.type_param_str: c.allowed_type_strs for c in schema.type_constraints},
        inputs=params(schema.inputs), outputs=params(schema.outputs),
        attrs=[SimpleNamespace(name=a.name, type=a.type.name, required=a.required,
                               default=default(a)) for a in schema.attributes.values()])


class GeneratedTable(unittest.TestCase):
    def setUp(self):
        self.text = (ROOT / "ir/onnx_schema.def").read_text()

    def test_is_current(self):
        if self.text != gen.generate():
            self.fail("run tools/gen_onnx_schema.py -o ir/onnx_schema.def")

    def test_has_every_version(self):
        known = {(s.domain, s.name, str(s.since_version))
                 for s in defs.get_all_schemas_with_history()}
        self.assertEqual(set(op_texts(self.text)), known)

    def test_set_names_tell_their_contents(self):
        for name, masks in set_values(self.text).items():
            self.assertEqual(name, gen.types_name(masks))

    def test_spots(self):
        """Facts read off the published operator pages, not computed by the generator."""
        rows, sets = op_texts(self.text), set_values(self.text)

        def first_input(name, since):
            row = rows["", name, str(since)]
            return sets[re.search(r'IN\(\w+\(".*?",".*?",(\w+)', row)[1]][0]

        uint8, int8 = 1 << 2, 1 << 3
        self.assertEqual(first_input("Add", 13) & int8, 0)
        self.assertEqual(first_input("Add", 14) & int8, int8)
        self.assertEqual(first_input("Relu", 14) & (int8 | uint8), int8)
        self.assertEqual(first_input("QLinearConv", 10), int8 | uint8)
        self.assertIn('INT("axis",1)', rows["", "QuantizeLinear", "13"])
        self.assertIn('FLOAT("epsilon",0x1.4f8b580000000p-17f)',
                      rows["", "BatchNormalization", "15"])
        self.assertIn(",DEPRECATED,", rows["", "Upsample", "10"])


class OrtTable(unittest.TestCase):
    def test_rows_equal_those_of_onnxruntime(self):
        rows = op_texts((ROOT / "ir/ort_schema.def").read_text())
        registered = {(s.domain, s.name, str(s.since_version)): s for s in ort.get_all_operator_schema()}
        self.assertGreater(len(rows), 10)
        for key, row in rows.items():
            op = ort_op(registered[key])
            op.flags = ["ORT", *["DEPRECATED"] * registered[key].deprecated]
            self.assertEqual(row, squeeze(gen.op_row(op)).replace("T00010C02", "MS_ANY_FLOAT"), key[1])
            self.assertEqual(key[0], "")


class MicrosoftTable(unittest.TestCase):
    def setUp(self):
        text = (ROOT / "ir/msft_schema.def").read_text()
        self.rows, self.sets = op_texts(text), set_values(text)
        self.registered = {s.name: s for s in ort.get_all_operator_schema()
                           if s.domain == "com.microsoft"}

    def test_rows_equal_those_of_onnxruntime(self):
        names = {masks: name for name, masks in self.sets.items()}
        self.assertEqual(len(names), len(self.sets), "two names for one set")
        self.assertGreater(len(self.rows), 10)
        for (domain, name, _), row in self.rows.items():
            expected = gen.op_row(ort_op(self.registered[name]))
            for match in set(re.findall(r"T[0-9A-F]{8}", expected)):
                masks = (int(match[1:], 16), 0, 0, 0, 0)
                self.assertIn(masks, names, f"{name}: no set {match}")
                expected = expected.replace(match, names[masks])
            self.assertEqual(row, squeeze(expected), name)
            self.assertEqual(domain, "com.microsoft")


if __name__ == "__main__":
    sys.exit(unittest.main())
