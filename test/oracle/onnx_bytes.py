"""What the ONNX tests share: running qxc, and models as messages whose text fields are bytes.

The messages come from frontend/onnx/onnx.proto, where every string is declared `bytes`, so that
names that are not UTF-8 can be made and compared.
"""

import functools
import os
import pathlib
import struct
import subprocess
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

ROOT = pathlib.Path(__file__).resolve().parents[2]
QXC = os.environ.get("QXC", str(ROOT / "build/qxc"))
SHARED = pathlib.Path(os.environ.get("QXC_SHARED", ROOT / "../shared"))


@functools.cache
def messages():
    """Classes by name (ModelProto, ...) in a pool of their own."""
    with tempfile.TemporaryDirectory() as d:
        out = pathlib.Path(d, "onnx.pb")
        subprocess.run(["protoc", f"-I{ROOT}/frontend/onnx", f"--descriptor_set_out={out}",
                        "onnx.proto"], check=True)
        file = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file[0]
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {m.name: message_factory.GetMessageClass(pool.FindMessageTypeByName("onnx." + m.name))
            for m in file.message_type}


def model(data):
    return messages()["ModelProto"].FromString(data)


def varint(v):
    """A number as protobuf writes it."""
    out = b""
    while v >= 0x80:
        out += bytes([v & 0x7F | 0x80])
        v >>= 7
    return out + bytes([v])


def field(number, payload):
    """A field of a message, of bytes or a message within."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def qxc(*args, timeout=20, **kwargs):
    return subprocess.run([QXC, *map(str, args)], capture_output=True, timeout=timeout, **kwargs)


def round_trip(data, folder):
    """The bytes after reading and writing again; raises with qxc's own words when that fails."""
    source, result = pathlib.Path(folder, "in.onnx"), pathlib.Path(folder, "out.onnx")
    source.write_bytes(data)
    result.unlink(missing_ok=True)
    done = qxc(source, "-emit=onnx", "-o", result)
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode}: {done.stderr.decode(errors='replace')}")
    return result.read_bytes()


def canonical(data):
    """The same message gives the same bytes, NaNs and unknown fields included."""
    return model(data).SerializeToString(deterministic=True)


def difference(x, y):
    """The first line in which two models differ, for the failure message."""
    for a, b in zip(str(model(x)).splitlines(), str(model(y)).splitlines()):
        if a != b:
            return f"{a[:200]!r} became {b[:200]!r}"
    return "one is longer than the other"


LAYOUT = {1: "f", 2: "B", 3: "b", 4: "H", 5: "h", 6: "i", 7: "q", 9: "B", 10: "H", 11: "d",
          12: "I", 13: "Q", 14: "f", 15: "d", 16: "H"}  # float8 and the rest are bytes


def to_raw(t):
    """The numbers of a TensorProto as raw_data."""
    kind, count = t.data_type, 1
    for d in t.dims:
        count *= d
    values = [v for name in ("float_data", "int32_data", "int64_data", "double_data",
                             "uint64_data") for v in getattr(t, name)]
    raw = t.raw_data
    if values and kind in (27, 28):
        bits = sum(v << 6 * i for i, v in enumerate(values))
        raw = bits.to_bytes((6 * count + 7) // 8, "little")
    elif values:
        raw = struct.pack(f"<{len(values)}{LAYOUT.get(kind, 'B')}", *values)
    for name in ("float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
        t.ClearField(name)
    if not t.string_data and t.data_location != 1 and kind != 8:
        t.raw_data = raw


def raw_everywhere(message):
    for f, value in message.ListFields():
        if f.type != f.TYPE_MESSAGE:
            continue
        for part in value if f.is_repeated else [value]:
            raw_everywhere(part)
    if message.DESCRIPTOR.name == "TensorProto":
        to_raw(message)


def canonical_raw(data):
    """As canonical, with every tensor's numbers in raw_data."""
    m = model(data)
    raw_everywhere(m)
    return m.SerializeToString(deterministic=True)


def round_trip_as_text(data, folder):
    """The bytes after ONNX -> .qir -> ONNX."""
    source, text, result = (pathlib.Path(folder, n) for n in ("in.onnx", "in.qir", "out.onnx"))
    source.write_bytes(data)
    for a, emit, b in ((source, "-emit=qir", text), (text, "-emit=onnx", result)):
        done = qxc(a, emit, "-o", b)
        if done.returncode != 0:
            raise AssertionError(f"{emit}: exit {done.returncode}: "
                                 f"{done.stderr.decode(errors='replace')}")
    return result.read_bytes()
