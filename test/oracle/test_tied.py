"""-tie-tables: a table that rows are looked up in and a product of the same numbers are stored once."""

import re
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cmodel import CModel
from common import OracleCase, float_excess, for_each, qxc, qxc_outputs, session

WORDS, WIDTH, LENGTH = 80, 64, 6
TYPES = {"int4 block(32)": 4, "int4 sym block(16)": 4, "int8 block(16)": 8, "int2 block(16)": 2, "int8": 8, "int4": 4, "int3 block(32)": 4}
BLOCKS = {"int4 block(32)", "int4 sym block(16)", "int8 block(16)", "int2 block(16)", "int3 block(32)"}  # that MatMulNBits and the lookup share
FORMS = ("turned", "gemm", "second", "rows")


def language_model(form, width=WIDTH, other=0.0):
    """ids [1, 6] to the logits of WORDS words; `other` is added to the last number of the product's weights."""
    rng = np.random.default_rng(7)
    table, middle = (rng.normal(size=s).astype(np.float32) for s in ((WORDS, width), (width, width)))
    last = table.copy()
    last[-1, -1] += other
    constants = {"table": table, "middle": middle / np.float32(width ** 0.5)}
    nodes = [helper.make_node("Gather", ["table", "ids"], ["looked"], "look"),
             helper.make_node("MatMul", ["looked", "middle"], ["mixed"], "mix"),
             helper.make_node("Add", ["mixed", "looked"], ["sum"], "add")]
    if form == "turned":
        nodes += [helper.make_node("Transpose", ["table"], ["t"], "turn", perm=[1, 0]),
                  helper.make_node("MatMul", ["sum", "t"], ["y"], "head")]
    elif form == "second":
        constants["head"] = np.ascontiguousarray(last.T)
        nodes += [helper.make_node("MatMul", ["sum", "head"], ["y"], "head")]
    else:
        constants["shape"] = np.array([LENGTH, width])
        if form == "rows":
            constants["head"] = last
        nodes += [helper.make_node("Reshape", ["sum", "shape"], ["flat"], "flatten"),
                  helper.make_node("Gemm", ["flat", "head" if form == "rows" else "table"], ["y"], "head", transB=1)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, LENGTH])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


class Tied(OracleCase):
    ids = np.random.default_rng(1).integers(0, WORDS, (4, 1, LENGTH))

    def made(self, model, weights, form, *options):
        path, out = self.scratch / "m.onnx", self.scratch / f"made.{form}"
        onnx.save(model, path)
        said = qxc(path, "-weight-only", f"-weights={weights}", *options, f"-emit={form}", "-no-sync", "-o", out).stderr
        return out, said

    def run_all(self, path, optimize=False):
        runner = session(path, optimize)
        return np.stack([runner.run(None, {"ids": ids})[0] for ids in self.ids]).reshape(len(self.ids), -1)

    @staticmethod
    def tables(path, bits):
        """How many constants hold integers of a whole table, packed or not."""
        whole = {WORDS * WIDTH * bits // 8, WORDS * WIDTH}
        return sum(t.data_type != TensorProto.FLOAT and len(t.raw_data) in whole for t in onnx.load(path).graph.initializer)

    @for_each(*(f"{f}, {t}" for f in FORMS for t in TYPES))
    def test_numbers_are_those_of_two_copies(self, case):
        """The product has the integers that it has untied, and the table computes as a copy of them would."""
        form, weights = (part.strip() for part in case.split(",", 1))
        model = language_model(form)
        untied = self.scratch / "untied.onnx"
        qxc(self.made(model, weights, "qdq")[0], "-emit=float", "-no-sync", "-o", untied)
        floats = {t.name: numpy_helper.to_array(t) for t in onnx.load(untied).graph.initializer}
        head = next(n for n in onnx.load(untied).graph.node if n.name == "head").input[1]
        rows = floats[head] if floats[head].shape == (WORDS, WIDTH) else floats[head].T
        copies = onnx.load(untied)
        look = next(n for n in copies.graph.node if n.op_type == "Gather")
        look.input[0] = "rows"
        copies.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(rows), "rows"))
        want = self.run_all(copies)
        for emit in ("qdq", "qop"):
            path, said = self.made(model, weights, emit, "-tie-tables")
            self.assertIn("1 table is stored once with the product of the same numbers", said)
            with self.subTest(emit):
                onnx.checker.check_model(onnx.load(path))
                tied = self.tables(path, TYPES[weights])
                self.assertLessEqual(float_excess(self.run_all(path), want), 0)
                ours = qxc_outputs(path, {"ids": self.ids}, self.scratch)["y"].reshape(len(self.ids), -1)
                self.assertLessEqual(float_excess(ours, want), 0)
                self.assertEqual((2, 1), (self.tables(self.made(model, weights, emit)[0], TYPES[weights]), tied))
        source, _ = self.made(model, weights, "c", "-tie-tables")
        text, _ = self.made(model, weights, "qir", "-tie-tables", "-form=true")
        self.assertEqual(1, len(re.findall(r"const %\w+ : !?\w+\[(?:80,64|64,80)\]", text.read_text())))
        ours = qxc_outputs(text, {"ids": self.ids}, self.scratch)["y"].reshape(len(self.ids), -1)
        c = CModel(source)
        self.assertLessEqual(float_excess(ours, want), 0)
        np.testing.assert_array_equal(ours, np.stack([c.run(ids)[0] for ids in self.ids]).reshape(len(self.ids), -1))

    @for_each(*(f"{f}, {t}" for f in FORMS for t in sorted(BLOCKS)))
    def test_operators_share_one_tensor(self, case):
        form, weights = (part.strip() for part in case.split(",", 1))
        path, _ = self.made(language_model(form), weights, "qop", "-tie-tables")
        nodes = {n.op_type: n for n in onnx.load(path).graph.node}
        head = next(n for n in onnx.load(path).graph.node if n.name == "head")
        look = nodes["GatherBlockQuantized"]
        self.assertEqual(("MatMulNBits", 0), (head.op_type, sum(n.op_type in ("DequantizeLinear", "Transpose") for n in nodes.values())))
        self.assertEqual((nodes["Reshape"].input[0] if form in ("turned", "second") else head.input[1]), head.input[1])
        self.assertEqual(list(head.input[2:4]), list(look.input[2:4]))

    @for_each("other", "type", "float", "block", "width")
    def test_what_is_not_tied(self, name):
        """Other numbers, a rule of another type, a table that stays float, other blocks: two copies; rows that end within
        a block: two copies in MatMulNBits alone."""
        scheme = self.scratch / "s.scheme"
        rule = {"type": "value \"table\" int8q", "float": "node \"look\" keep float", "block": "value \"table\" block(16)"}.get(name)
        scheme.write_text(f"scheme {{\n{rule or 'weights sym'}\n}}\n")
        model = language_model("second", 40 if name == "width" else WIDTH, other=0.01 if name == "other" else 0.0)
        for emit in ("qdq", "qop"):
            plain, _ = self.made(model, "int4 block(32)", emit, f"-scheme={scheme}")
            want = plain.read_bytes()
            path, said = self.made(model, "int4 block(32)", emit, f"-scheme={scheme}", "-tie-tables")
            if name == "width":
                self.assertEqual(emit == "qop", "share rows of whole blocks" in said)
                self.assertIn("stored once", said)
                continue
            self.assertEqual(want, path.read_bytes())
            self.assertIn("warning: -tie-tables has no effect", said)
            self.assertEqual(name != "other", "is not stored with them" in said)

    def test_scheme_and_text_give_it_back(self):
        """What was decided as a scheme, and the text: the same bytes."""
        model, weights = language_model("second"), "int4 block(32)"
        want, _ = self.made(model, weights, "qop", "-tie-tables")
        want = want.read_bytes()
        scheme, _ = self.made(model, weights, "scheme", "-tie-tables")
        again, _ = self.made(model, weights, "qop", "-tie-tables", f"-scheme={scheme}")
        self.assertEqual(want, again.read_bytes())
        text, _ = self.made(model, weights, "qir", "-tie-tables")
        qxc(text, "-emit=qop", "-no-sync", "-o", again)
        self.assertEqual(want, again.read_bytes())


if __name__ == "__main__":
    unittest.main()
