#!/usr/bin/env python3
"""Broken and hostile ONNX files: each is refused with an error that names the cause.

Always: exit 1 and an `error:` line, no output file, nothing from a sanitizer, no raw control
character on the terminal, and an answer within ten seconds.
"""

import os
import pathlib
import random
import re
import tempfile
import unittest

import onnx
from onnx import TensorProto, helper

import onnx_bytes
from onnx_bytes import field, varint

F, I = TensorProto.FLOAT, TensorProto.INT64
info = helper.make_tensor_value_info
SANITIZER = re.compile(rb"Sanitizer|runtime error:|LeakSanitizer|Segmentation|core dumped")
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")


def model(nodes=None, inputs=None, outputs=None, opset=21, ir=10, **graph):
    nodes = nodes or [helper.make_node("Relu", ["x"], ["y"], name="r")]
    g = helper.make_graph(nodes, "g", inputs or [info("x", F, [2])],
                          outputs or [info("y", F, [2])], **graph)
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir,
                             producer_name="p")


def node(op, inputs, outputs, **kw):
    return helper.make_node(op, inputs.split(), outputs.split(), **kw)


class Hostile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        (self.dir / "sub").mkdir()

    def run_on(self, data):
        """(exit status, stderr), after the checks that always hold."""
        source, result = self.dir / "sub/in.onnx", self.dir / "out.onnx"
        if isinstance(data, pathlib.Path):
            source = data
        else:
            source.write_bytes(data if isinstance(data, bytes) else data.SerializeToString())
        result.unlink(missing_ok=True)
        done = onnx_bytes.qxc(source, "-emit=onnx", "-o", result, timeout=10)
        self.assertIn(done.returncode, (0, 1, 3), done.stderr)
        self.assertIsNone(SANITIZER.search(done.stderr), done.stderr)
        self.assertIsNone(CONTROL.search(done.stderr), done.stderr)
        if done.returncode:
            self.assertIn(b"error:", done.stderr)
            self.assertEqual(sorted(p.name for p in self.dir.glob("*.onnx*")), [], "output left")
        return done.returncode, done.stderr.decode()

    def refused(self, data, why, name=None):
        with self.subTest(name or why):
            code, text = self.run_on(data)
            self.assertNotEqual(code, 0, "accepted")
            self.assertRegex(text, why)

    def accepted(self, data):
        code, text = self.run_on(data)
        self.assertEqual(code, 0, text)


class Wire(Hostile):
    def test_truncated(self):
        data = model(initializer=[helper.make_tensor("w", F, [64], bytes(256), raw=True)]
                     ).SerializeToString()
        for n in range(0, len(data), 3):
            self.refused(data[:n], "error:", f"first {n} bytes")

    def test_bit_flips(self):
        w = helper.make_tensor("w", F, [4], [1, 2, 3, 4])
        body = helper.make_graph([node("Neg", "x", "q")], "b", [], [info("q", F, None)])
        attrs = {"g": body, "f": 1.0, "is": [1, 2], "t": w}
        data = model([node("Relu", "x", "y", name="r", **attrs)], initializer=[w],
                     value_info=[info("w", F, [4])]).SerializeToString()
        rng = random.Random(20)
        for i in range(400):
            flipped = bytearray(data)
            for _ in range(rng.choice((1, 1, 2, 8))):
                flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            with self.subTest(i):
                self.run_on(bytes(flipped))  # may be a legal model; must not misbehave

    def test_random_bytes(self):
        rng = random.Random(21)
        for i in range(60):
            junk = rng.randbytes(rng.randrange(1, 200))
            self.refused(junk, "error:", f"junk {i}")
            self.refused(field(7, junk), "error:", f"junk graph {i}")

    def test_not_onnx(self):
        self.refused(b"", "no graph|no ir_version")
        self.refused(b"Hello, world. This is a text file.\n" * 20, "error:", "text")
        self.refused(b"\x89PNG\r\n\x1a\n" + bytes(100), "error:", "png")
        self.refused(self.dir, "folder")
        self.refused(self.dir / "missing.onnx", "cannot (open|read)")
        fifo = self.dir / "fifo"
        os.mkfifo(fifo)
        self.refused(fifo, "regular file")
        self.refused(pathlib.Path("/dev/zero"), "regular file", "/dev/zero")

    def test_bad_fields(self):
        good = model().SerializeToString()
        for name, bad, why in (
                ("varint of 11 bytes", b"\x08" + b"\x80" * 10 + b"\x01", "more than 10 bytes"),
                ("tag of 11 bytes", b"\x80" * 10 + b"\x01", "more than 10 bytes"),
                ("unfinished varint", b"\x08\x80", "ends within"),
                ("field 0", b"\x00\x00", "field number 0"),
                ("field 2^29", varint((1 << 29) << 3) + b"\0", "out of range"),
                ("wire type 6", b"\x0e\x00", "wire type"),
                ("wire type 7", b"\x0f\x00", "wire type"),
                ("group", b"\xa3\x06\xa4\x06", "groups"),
                ("end of no group", b"\xa4\x06", "groups"),
                ("group in known field", b"\x3b\x3c", "groups"),
                ("longer than the file", b"\x12\x7f", "longer than"),
                ("length 2^63", b"\x12" + varint(1 << 63), "longer than"),
                ("length 2^64 - 1", b"\x12" + varint(2**64 - 1), "longer than"),
                ("cut fixed64", b"\xa1\x06\x00\x00", "ends within"),
                ("cut fixed32", b"\xa5\x06\x00", "ends within"),
                ("graph as a number", b"\x38\x01", "wire type"),
                ("version as text", b"\x0a\x01a", "wire type"),
                ("second graph", field(7, b""), "stands twice"),
                ("our own field", varint(536870911 << 3 | 2) + b"\x18" + bytes(24), "reserved")):
            self.refused(good + bad, why, name)
        inner = model().graph.SerializeToString()
        self.refused(field(7, inner + b"\x12\x7f") + good, r"graph.*byte", "names the place")

    def test_forged_payload(self):
        # What the reader itself puts in place of a tensor's bytes must not come from a file.
        note = varint(536870911 << 3 | 2) + b"\x18" + (9).to_bytes(8, "little") + bytes(8) + \
            (1 << 40).to_bytes(8, "little")
        t = TensorProto(name="w", data_type=F, dims=[1 << 30]).SerializeToString() + note
        self.refused(field(7, model().graph.SerializeToString() + field(5, t)) +
                     b"\x08\x0a\x42\x02\x10\x15", "reserved")

    def test_nesting_bombs(self):
        graph = b""
        for _ in range(3000):  # graph in an attribute of a node of a graph ...
            graph = field(1, field(5, field(6, graph)))
        self.assertGreater(len(graph), 30000)
        self.refused(field(7, graph), "nested more than 100")
        kind = b""
        for _ in range(5000):
            kind = field(4, field(1, kind))
        self.refused(field(7, field(11, field(2, kind))), "nested more than 100")
        training = b""
        for _ in range(3000):
            training = field(1, field(5, field(6, training)))
        self.refused(field(20, field(1, training)), "nested more than 100")

    def test_many_empty_nodes(self):
        self.refused(field(7, field(1, b"") * 1200000) + b"\x08\x0a\x42\x02\x10\x15",
                     "at most 1000000|out of memory")

    def test_packed_numbers(self):
        tail = b"\x08\x0a\x42\x02\x10\x15"
        for name, number, payload in (("cut float", 4, b"\0\0\0"), ("cut double", 10, b"\0" * 7),
                                      ("cut varint", 7, b"\x80"),
                                      ("long varint", 5, b"\x80" * 10 + b"\1")):
            t = TensorProto(name="w", data_type=F, dims=[1]).SerializeToString()
            self.refused(field(7, field(5, t + field(number, payload))) + tail,
                         "list of numbers|more than 10", name)


class Tensors(Hostile):
    def tensor(self, why, **kw):
        extra = kw.pop("extra", b"")
        t = TensorProto(**{"name": "w", "data_type": F, "dims": [2], **kw})
        t = TensorProto.FromString(t.SerializeToString() + extra)
        m = model()
        m.graph.initializer.append(t)
        self.refused(m, why, str(kw) + str(extra))
        self.refused(model([node("Relu", "x", "y", t=t)]), why, "attribute " + str(kw))

    def test_dims(self):
        for dims in ([2**40, 2**40], [2**62, 4], [2**31], [65536, 65536], [2**63 - 1] * 8,
                     [1 << 32, 1 << 32, 1 << 32]):
            self.tensor("more than 2.31", dims=dims, raw_data=bytes(8))
        for dims in ([-1], [-2**63], [2, -3], [0, -1]):
            self.tensor("negative", dims=dims, raw_data=bytes(8))

    def test_types(self):
        for e in (0, 29, 99, -1, 1001, 1002, 2**31 - 1):
            self.tensor("element type", data_type=e, raw_data=bytes(8))

    def test_sizes(self):
        for n in (0, 7, 9, 4, 16):
            self.tensor("needs? 8|need 8", raw_data=bytes(n))
        self.tensor("no data")
        self.tensor("need 2", float_data=[1])
        self.tensor("need 2", float_data=[1, 2, 3])
        self.tensor("need 4", data_type=TensorProto.COMPLEX64, float_data=[1, 2])
        self.tensor("need 2", data_type=TensorProto.STRING, string_data=[b"a"])
        self.tensor("need 2", data_type=TensorProto.INT4, dims=[3], int32_data=[1, 2, 3])
        self.tensor("need 2", data_type=TensorProto.INT4, dims=[3], raw_data=bytes(3))
        self.tensor("need 3", data_type=TensorProto.FLOAT6E2M3, dims=[4], raw_data=bytes(4))
        self.tensor("need 2000000000", data_type=TensorProto.INT8, dims=[2000000000],
                    raw_data=bytes(3))

    def test_fields(self):
        self.tensor("more than one field", raw_data=bytes(8), float_data=[1, 2])
        self.tensor("more than one field", float_data=[1], int64_data=[1])
        twice = TensorProto(name="w", data_type=F, dims=[2]).SerializeToString()
        twice = field(5, twice + field(9, bytes(8)) * 2)
        self.refused(field(7, model().graph.SerializeToString() + twice) +
                     b"\x08\x0a\x42\x02\x10\x15", "more than one field", "raw_data twice")
        self.tensor("stand in int32_data", int32_data=[1, 2])
        self.tensor("stand in raw_data", data_type=TensorProto.STRING, raw_data=bytes(8))
        self.tensor("segments", raw_data=bytes(8), segment=TensorProto.Segment(begin=0, end=1))
        self.tensor("data location", raw_data=bytes(8), extra=b"\x70\x07")

    def test_numbers(self):
        T = TensorProto
        for e, v in ((T.INT8, 128), (T.INT8, -129), (T.UINT8, -1), (T.UINT8, 256), (T.BOOL, 2),
                     (T.FLOAT16, 65536), (T.FLOAT16, -1), (T.INT4, 256), (T.FLOAT6E2M3, 64),
                     (T.FLOAT8E5M2, 256)):
            self.tensor("out of range", data_type=e, dims=[1], int32_data=[v])
        self.tensor("out of range", data_type=T.UINT32, dims=[1], uint64_data=[2**32])

    def test_sparse(self):
        m = model()
        m.graph.sparse_initializer.add(dims=[2])
        self.refused(m, "lacks its values")
        s = helper.make_sparse_tensor(helper.make_tensor("v", F, [1], [3.0]),
                                      helper.make_tensor("i", I, [1], [2]), [-5])
        m = model([node("Relu", "x", "y", s=s)])
        self.refused(m, "negative")


class External(Hostile):
    def setUp(self):
        super().setUp()
        (self.dir / "secret").write_bytes(bytes(64))
        sub = self.dir / "sub"
        (sub / "w.bin").write_bytes(bytes(64))
        (sub / "link").symlink_to("w.bin")
        (sub / "out").symlink_to("../secret")
        (sub / "linked_dir").symlink_to(".")
        os.link(self.dir / "secret", sub / "hard")
        (sub / "dir").mkdir()
        os.mkfifo(sub / "fifo")

    def external(self, why, entries, **kw):
        if isinstance(entries, str):
            entries = [("location", entries)]
        t = TensorProto(**{"name": "w", "data_type": F, "dims": [2], "data_location": 1, **kw})
        for k, v in entries:
            t.external_data.add(key=k, value=v)
        m = model()
        m.graph.initializer.append(t)
        self.refused(m, why, str(entries) + str(kw))

    def test_good(self):
        m = model()
        t = m.graph.initializer.add(name="w", data_type=F, dims=[2], data_location=1)
        t.external_data.add(key="location", value="w.bin")
        self.accepted(m)

    def test_places(self):
        self.external("absolute", str(self.dir / "secret"))
        self.external("absolute", "/etc/passwd")
        self.external(r"\.\.", "../secret")
        self.external(r"\.\.", "dir/../../secret")
        self.external("symbolic link", "link")
        self.external("symbolic link", "out")
        self.external("symbolic link", "linked_dir/w.bin")
        self.external("hard link", "hard")
        self.external("regular file", "dir")
        self.external("regular file", "fifo")
        self.external("empty", "")
        self.external("NUL", "w.bin\0.txt")
        self.external("error:", "w.bin/")
        self.external("error:", "x" * 100000)

    def test_absent(self):
        """What is not there is only a warning, but never excuses another fault."""
        for location in ("missing.bin", "dir/missing.bin", "missing/w.bin", "\x1b[2Jw.bin"):
            m = model()
            t = m.graph.initializer.add(name="w", data_type=F, dims=[2], data_location=1)
            t.external_data.add(key="location", value=location)
            code, text = self.run_on(m)
            self.assertEqual(code, 0, text)
            self.assertRegex(text, 'warning: cannot use file ".*": No such file')
            self.assertEqual(onnx.load(self.dir / "out.onnx", load_external_data=False).graph, m.graph)
        self.external(r"\.\.", "missing/../../secret")
        self.external("symbolic link", "linked_dir/missing.bin")
        self.external("length 4", [("location", "missing.bin"), ("length", "4")])

    def test_entries(self):
        here = ("location", "w.bin")
        self.external("no location", [])
        self.external("no location", [("offset", "0")])
        self.external("two entries", [here, here])
        self.external("two entries", [here, ("offset", "0"), ("offset", "8")])
        for text in ("-1", "+1", " 1", "1 ", "0x10", "1e3", "", "18446744073709551616", "\u0661",
                     "1\0", "99999999999999999999999999999999"):
            self.external("not a decimal", [here, ("offset", text)])
            self.external("not a decimal", [here, ("length", text)])

    def test_ranges(self):
        here = ("location", "w.bin")
        self.external("not all in", [here, ("offset", "57")])
        self.external("not all in", [here, ("offset", "65")])
        self.external("not all in", [here, ("offset", "18446744073709551615")])
        self.external("not all in", [here, ("offset", "18446744073709551612"), ("length", "8")])
        self.external("not all in", [here], dims=[17])
        self.external("length 4", [here, ("length", "4")])
        self.external("length 16", [here, ("length", "16")])

    def test_kinds(self):
        self.external("external data and raw_data", "w.bin", raw_data=bytes(8))
        self.external("external data and float_data", "w.bin", float_data=[1, 2])
        self.external("strings", "w.bin", data_type=TensorProto.STRING)

    def test_every_fault_is_told(self):
        m = model()
        for i, (location, dims) in enumerate((("../secret", [2]), ("w.bin", [99]), ("hard", [2]))):
            t = m.graph.initializer.add(name=f"w{i}", data_type=F, dims=dims, data_location=1)
            t.external_data.add(key="location", value=location)
        code, text = self.run_on(m)
        self.assertEqual(text.count("error:"), 3, text)


class Names(Hostile):
    def test_defined_twice(self):
        x = info("x", F, [2])
        w = helper.make_tensor("w", F, [1], [1.0])
        self.refused(model(inputs=[x, x]), "defined twice", "inputs")
        self.refused(model([node("Relu", "x", "y"), node("Neg", "x", "y")]), "defined twice", "y")
        self.refused(model([node("Split", "x", "y y")]), "defined twice", "y y")
        self.refused(model([node("Relu", "x", "x")], outputs=[x]), "defined twice", "x")
        self.refused(model(initializer=[w, w]), "defined twice", "w w")
        self.refused(model([node("Relu", "x", "w"), node("Relu", "x", "y")], initializer=[w]),
                     "defined twice", "node and initializer")
        self.refused(model(initializer=[helper.make_tensor("x", F, [2], [1, 2])] * 2, ir=3),
                     "defined twice", "two defaults")
        m = model()
        f = helper.make_function("d", "F", ["x"], ["y"], [node("Relu", "x", "y")],
                                 [helper.make_opsetid("", 17)], ["k", "l"])
        m.functions.append(f)
        self.accepted(m)
        m.functions[0].attribute.append("k")
        self.refused(m, '"k" is given twice', "attributes of a function")

    def test_undefined(self):
        self.refused(model([node("Relu", "nowhere", "y")]), '"nowhere" is not defined')
        self.refused(model(outputs=[info("nowhere", F, [2])]), "no node, input or initializer")
        self.refused(model([node("Relu", "y", "y")]), "form a cycle", "itself")
        self.refused(model([node("Add", "x b", "a"), node("Neg", "a", "b"), node("Neg", "b", "y")]),
                     "form a cycle", "two nodes")
        self.accepted(model([node("Neg", "a", "y"), node("Neg", "x", "a")]))  # onnxruntime sorts them

    def test_bodies(self):
        def body(*nodes):
            return helper.make_graph(nodes, "b", [], [info("q", F, None)])
        both = {"then_branch": body(node("Neg", "late", "q")),
                "else_branch": body(node("Neg", "x", "q"))}
        inputs = [info("x", F, [2]), info("c", TensorProto.BOOL, [])]
        self.accepted(model([node("If", "c", "y", **both), node("Neg", "x", "late")], inputs))
        self.refused(model([node("If", "c", "y", **both), node("Neg", "y", "late")], inputs),
                     '"late" is not defined', "a cycle through a body")
        turned = {**both, "then_branch": body(node("Neg", "p", "q"), node("Neg", "x", "p"))}
        self.refused(model([node("If", "c", "y", **turned)], inputs), "not in order", "in a body")
        self.refused(model([node("If", "c", "t", **{**both, "then_branch": both["else_branch"]}),
                            node("Neg", "q", "y")], inputs), '"q" is not defined')
        cycle = body(node("Neg", "r", "q"), node("Neg", "q", "r"))
        self.refused(model([node("If", "c", "y", then_branch=cycle, else_branch=cycle)], inputs),
                     "form a cycle", "cycle in a body")

    def test_bad_names(self):
        long = "n" * 65537
        self.refused(model([node("Relu", "x", f"{long} y")]), "bytes long")
        self.refused(model([node("Relu", "x", "y", name=long)]), "bytes long", "node")
        self.refused(model([node(long, "x", "y")]), "bytes long", "operator")
        self.refused(model(inputs=[info("", F, [2]), info("x", F, [2])]), "has no name", "input")
        self.refused(model(initializer=[helper.make_tensor("", F, [1], [1.0])]), "has no name", "w")
        self.refused(model([node("", "x", "y")]), "no operator")
        self.refused(model([node("Relu", "\x1b[31m\x07bad\x7f", "y")]), "not defined", "escapes")
        self.refused(model([node("Relu", "bad\u202etxt", "y")]), "not defined", "bidi")


class Model(Hostile):
    def test_versions(self):
        for ir in (0, 15, -1, 2**62):
            self.refused(model(ir=ir), "IR version", f"ir {ir}")
        for opset in (0, 29, -3, 2**40):
            self.refused(model(opset=opset), "opset", f"opset {opset}")
        m = model()
        m.ClearField("ir_version")
        self.refused(m, "no ir_version")
        m = model()
        m.opset_import.add(domain="ai.onnx", version=20)
        self.refused(m, "imported twice, at versions 21 and 20")
        m.opset_import[1].domain = m.opset_import[0].domain
        self.refused(m, "imported twice", "same domain")
        m.opset_import[1].domain = "d"
        m.opset_import[1].ClearField("version")
        self.refused(m, "no version")
        m = model()
        del m.opset_import[:]
        self.refused(m, "no opset")
        m = model()
        m.ClearField("graph")
        self.refused(m, "no graph")

    def test_shapes(self):
        self.refused(model(inputs=[info("x", 77, [1])]), "77 is not an element type")
        self.refused(model(value_info=[info("x", 1001, [1])], outputs=[info("y", 1001, [1])]),
                     "1001 is not an element type")

    def attribute(self, why, *attrs, **kw):
        m = model()
        m.graph.node[0].attribute.extend(attrs)
        self.refused(m, why, str(attrs))

    def test_attributes(self):
        A = onnx.AttributeProto
        one = helper.make_attribute("a", 1)
        self.attribute("given twice", one, one)
        self.attribute("no name", A(type=A.INT, i=1))
        self.attribute("another type", A(name="a", type=A.INT, f=1.0))
        self.attribute("another type", A(name="a", type=A.INT, i=1, ints=[1]))
        for kind in (A.TENSOR, A.GRAPH, A.SPARSE_TENSOR, A.TYPE_PROTO, A.UNDEFINED):
            self.attribute("no value", A(name="a", type=kind))
        self.attribute("no value", A(name="a"))
        m = onnx_bytes.model(model().SerializeToString())
        attr = m.graph.node[0].attribute.add(name=b"a")
        attr.MergeFromString(b"\xa0\x01\x63")  # type 99: an enum value that is not known
        data = m.SerializeToString()
        self.refused(data, "type 99|no value", "type 99")
        many = [helper.make_attribute(f"a{i}", i) for i in range(40)]
        self.attribute("given twice", *many, many[20])

    def functions(self, why, *functions, calls="f"):
        m = model([node(calls, "x", "y", domain="d")])
        m.opset_import.add(domain="d", version=1)
        m.functions.extend(functions)
        self.refused(m, why)

    def test_functions(self):
        def function(name, *nodes, **kw):
            return helper.make_function("d", name, ["x"], ["y"], nodes,
                                        [helper.make_opsetid("", 21), helper.make_opsetid("d", 1)])
        def call(name, x="x", y="y"):
            return node(name, x, y, domain="d")
        self.functions("calls itself", function("f", call("f")))
        self.functions("calls itself", function("f", call("g")), function("g", call("f")))
        self.functions("calls itself", function("g", call("f")), function("f", call("g")))
        body = helper.make_graph([call("f", "x", "q")], "b", [], [info("q", F, None)])
        self.functions("calls itself", function("f", node("If", "x", "y", then_branch=body,
                                                          else_branch=body)))
        self.functions("defined twice", function("f", node("Neg", "x", "y")),
                       function("f", node("Abs", "x", "y")))
        self.functions("not defined", function("f", node("Neg", "outer", "y")))
        self.functions("no node or input", function("f", node("Neg", "x", "z")))
        bomb = [function(f"f{i}", call(f"f{i + 1}", "x", "t"), call(f"f{i + 1}", "t", "y"))
                for i in range(64)] + [function("f64", node("Neg", "x", "y"))]
        self.functions("once functions are inlined", *bomb, calls="f0")

    def test_all_faults_in_one_run(self):
        m = model([node("Relu", "gone1", "a"), node("Relu", "gone2", "a")], ir=99)
        m.graph.initializer.add(name="w", data_type=F, dims=[-1])
        code, text = self.run_on(m)
        self.assertGreaterEqual(text.count("error:"), 5, text)


class Large(Hostile):
    """Big but honest: linear time."""

    def test_chain(self):
        n = 100000
        nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(n)]
        self.accepted(model(nodes, [info("v0", F, [2])], [info(f"v{n}", F, [2])]))
        self.accepted(model(nodes[::-1], [info("v0", F, [2])], [info(f"v{n}", F, [2])]))

    def test_initializers(self):
        w = [helper.make_tensor(f"w{i}", F, [1], [1.0]) for i in range(50000)]
        self.accepted(model(initializer=w))
        inputs = [info("x", F, [2])] + [info(f"w{i}", F, [1]) for i in range(50000)]
        self.accepted(model(initializer=w[::-1], inputs=inputs, ir=3))

    def test_function_chain(self):
        m = model([node("f0", "x", "y", domain="d")])
        m.opset_import.add(domain="d", version=1)
        imports = [helper.make_opsetid("d", 1), helper.make_opsetid("", 21)]
        for i in range(20000):
            op = [node(f"f{i + 1}", "x", "y", domain="d")]
            m.functions.append(helper.make_function("d", f"f{i}", ["x"], ["y"], op, imports))
        last = [node("Neg", "x", "y")]
        m.functions.append(helper.make_function("d", "f20000", ["x"], ["y"], last, imports))
        self.accepted(m)


if __name__ == "__main__":
    unittest.main()
