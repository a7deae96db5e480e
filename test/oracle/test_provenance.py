#!/usr/bin/env python3
"""Where the nodes of a written model came from: metadata_props "qxc.from" of the ONNX file."""

import re
import unittest

import onnx

import common
import onnx_bytes

ORIGIN = re.compile(r'([A-Za-z_][\w.:]*) "((?:[^"\\]|\\.)*)"')


def origins(said):
    """Operators and names of a clause; nodes without a name are told by nothing."""
    return set(ORIGIN.findall(re.split(r'\) (?:by|in) "', said or "")[0]))


def provenance(model):
    """Per node: what its metadata say, or None."""
    return [(n, next((e.value for e in n.metadata_props if e.key == "qxc.from"), None))
            for n in model.graph.node]


class Provenance(common.OracleCase):
    def emit(self, name, kind, *options):
        source = common.model_path(name, "fp32")
        path = self.scratch / f"{kind}.onnx"
        common.qxc(source, *options, f"-emit={kind}", "-o", path)
        return onnx.load(source), onnx.load(path), path

    @common.for_each("qdq", "qop")
    def test_every_node_is_one_of_the_model_or_says_from_which(self, kind):
        before, after, _ = self.emit("cnn", kind, "-calib-random=2")
        known = {(n.op_type, n.name) for n in before.graph.node}
        seen = 0
        for n, said in provenance(after):
            with self.subTest(n.name):
                if said is None:
                    self.assertIn((n.op_type, n.name), known)
                    continue
                seen += len(origins(said))
                self.assertLessEqual(origins(said), known, said)
        self.assertGreater(seen, 10)

    def test_each_qoperator_names_what_it_computes(self):
        """Every operator of the float model is found in one of the quantized one, or stayed."""
        before, after, _ = self.emit("cnn", "qop", "-calib-random=2")
        found = {(n.op_type, n.name) for n in after.graph.node}
        for _, said in provenance(after):
            found |= origins(said)
        named = {(n.op_type, n.name) for n in before.graph.node if n.name}
        self.assertLessEqual(named, found)
        for n, said in provenance(after):
            if n.op_type == "QLinearConv":
                self.assertRegex(said, r'^from\(Conv "')

    @common.for_each("qdq", "qop")
    def test_round_trip(self, kind):
        _, _, path = self.emit("cnn", kind, "-calib-random=2")
        data = path.read_bytes()
        back = onnx_bytes.round_trip(data, str(self.scratch))
        self.assertEqual(onnx_bytes.canonical(back), onnx_bytes.canonical(data))
        back = onnx_bytes.canonical_raw(onnx_bytes.round_trip_as_text(data, str(self.scratch)))
        self.assertEqual(back, onnx_bytes.canonical_raw(data))
        text = common.qxc(path, "-emit=qir").stdout
        self.assertRegex(text, r' from(?: %\S+ )?\(Conv "')
        self.assertNotIn("qxc.from", text)


if __name__ == "__main__":
    unittest.main()
