#!/usr/bin/env python3
"""frontend/onnx/onnx.proto states the same wire format as the pinned `onnx` package.

Both descriptions are flattened to a set of facts, one per field, enum value, oneof member and
reserved number, and the sets must be equal. `string` and `bytes` count as the same type: their
encodings are, and our file says `bytes` throughout. A second check writes a model with `onnx` and
has our file's descriptor read it without an unknown field.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import onnx
from google.protobuf import descriptor_pb2 as pb
from google.protobuf import descriptor_pool, message_factory, unknown_fields

PROTO = pathlib.Path(__file__).resolve().parents[2] / "frontend/onnx/onnx.proto"

TEXT = (pb.FieldDescriptorProto.TYPE_STRING, pb.FieldDescriptorProto.TYPE_BYTES)


def compile_proto(text):
    """The FileDescriptorProto that protoc makes of the given .proto text."""
    with tempfile.TemporaryDirectory() as d:
        source = pathlib.Path(d, "onnx.proto")
        result = pathlib.Path(d, "onnx.pb")
        source.write_text(text)
        subprocess.run(
            ["protoc", f"-I{d}", f"--descriptor_set_out={result}", str(source)], check=True
        )
        return pb.FileDescriptorSet.FromString(result.read_bytes()).file[0]


def package_proto():
    file = pb.FileDescriptorProto()
    onnx.onnx_ml_pb2.DESCRIPTOR.CopyToProto(file)
    return file


def enum_facts(path, enum):
    return {(f"{path}{enum.name}.{v.name}", v.number) for v in enum.value}


def message_facts(path, message):
    path = f"{path}{message.name}."
    facts = {(path, "message")}
    for field in message.field:
        oneof = field.HasField("oneof_index") and message.oneof_decl[field.oneof_index].name
        kind = "text or bytes" if field.type in TEXT else field.type
        facts.add((path + field.name, field.number, field.label, kind, field.type_name,
                   field.options.packed, oneof, field.default_value))
    for gap in message.reserved_range:
        facts |= {(path, "reserved", number) for number in range(gap.start, gap.end)}
    facts |= {(path, "reserved", name) for name in message.reserved_name}
    for enum in message.enum_type:
        facts |= enum_facts(path, enum)
    for nested in message.nested_type:
        facts |= message_facts(path, nested)
    return facts


def file_facts(file):
    facts = {("package", file.package)}
    # protoc leaves `syntax` empty for proto2
    facts.add(("syntax", file.syntax or "proto2"))
    for enum in file.enum_type:
        facts |= enum_facts("", enum)
    for message in file.message_type:
        facts |= message_facts("", message)
    return facts


def count_unknown(message):
    found = len(unknown_fields.UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            found += sum(map(count_unknown, value if field.is_repeated else [value]))
    return found


class ProtoTest(unittest.TestCase):
    def setUp(self):
        self.text = PROTO.read_text()
        self.theirs = file_facts(package_proto())

    def test_same_facts(self):
        ours = file_facts(compile_proto(self.text))
        self.assertGreater(len(ours), 200)
        self.assertEqual(sorted(map(str, ours - self.theirs)), [], "not in the onnx package")
        self.assertEqual(sorted(map(str, self.theirs - ours)), [], "missing in onnx.proto")

    def test_no_string_fields(self):
        code = re.sub(r"//.*", "", self.text)
        self.assertIsNone(re.search(r"\bstring\b", code))

    def test_any_lost_line_is_noticed(self):
        """The comparison has teeth: every single field or enum value is missed when absent."""
        lines = self.text.splitlines()
        spots = [i for i, l in enumerate(lines) if re.match(r"\s+[\w ]+= \d+.*;", l)]
        base = compile_proto(self.text)
        self.assertEqual(len(spots), count_members(base))
        for which in range(len(spots)):
            file = pb.FileDescriptorProto()
            file.CopyFrom(base)
            name = remove_member(file, which)
            self.assertNotEqual(file_facts(file), self.theirs, name)

    def test_reads_a_model(self):
        pool = descriptor_pool.DescriptorPool()
        file = compile_proto(self.text)
        pool.Add(file)
        model_class = message_factory.GetMessageClass(pool.FindMessageTypeByName("onnx.ModelProto"))
        model = onnx.helper.make_model(
            onnx.parser.parse_graph("g (float[N,2] x) => (float[N,2] y) { y = Softmax<axis=1>(x) }")
        )
        wire = model.SerializeToString(deterministic=True)
        read = model_class.FromString(wire)
        self.assertEqual(count_unknown(read), 0)
        self.assertEqual(read.graph.node[0].op_type, b"Softmax")
        self.assertEqual(read.SerializeToString(deterministic=True), wire)


def member_lists(file):
    """Every list of fields or enum values in the file, nested ones included."""
    todo = list(file.message_type)
    lists = [enum.value for enum in file.enum_type]
    while todo:
        message = todo.pop()
        lists.append(message.field)
        lists += [enum.value for enum in message.enum_type]
        todo += message.nested_type
    return lists


def count_members(file):
    return sum(map(len, member_lists(file)))


def remove_member(file, which):
    for members in member_lists(file):
        if which < len(members):
            name = members[which].name
            del members[which]
            return name
        which -= len(members)
    raise IndexError(which)


if __name__ == "__main__":
    sys.exit(unittest.main())
