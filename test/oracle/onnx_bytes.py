"""What the ONNX tests share: running qxc, and models as messages whose text fields are bytes.

The messages come from frontend/onnx/onnx.proto, where every string is declared `bytes`, so that
names that are not UTF-8 can be made and compared.
"""

import functools
import os
import pathlib
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


def qxc(*args, timeout=20, **kwargs):
    return subprocess.run([QXC, *map(str, args)], capture_output=True, timeout=timeout, **kwargs)


def round_trip(data, folder, options=()):
    """The bytes after reading and writing again; raises with qxc's own words when that fails."""
    source, result = pathlib.Path(folder, "in.onnx"), pathlib.Path(folder, "out.onnx")
    source.write_bytes(data)
    result.unlink(missing_ok=True)
    done = qxc(source, "-emit=onnx", *options, "-o", result)
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
