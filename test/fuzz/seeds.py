#!/usr/bin/env python3
"""Makes what libFuzzer starts from: seeds.py QXC FOLDER.

FOLDER/NAME/ gets inputs for the target fuzz_NAME, from the repository's own tests, from the models
of ONNX's node tests, and from the generator of random models. FOLDER/NAME.dict gets the words of
the language. Nothing of it is committed.
"""

import io
import pathlib
import re
import shlex
import subprocess
import sys
import warnings

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_docs  # noqa: E402

MAX_SEED = 4096  # larger ones slow every mutation down


def save(folder, name, data):
    if len(data) <= MAX_SEED:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / re.sub(r"[^\w.-]", "_", name)).write_bytes(data)


def qir_texts():
    """(name, text) of every file under test/lit, split where -split-input-file does, and of the
    language reference."""
    for path in sorted((ROOT / "test/lit").rglob("*.qir")):
        for i, part in enumerate(re.split(rb"(?m)^// -----.*\n", path.read_bytes())):
            yield f"{path.stem}.{i}", part
    for block in check_docs.blocks(ROOT / "docs/ir.md"):
        if block.language == "qir":
            yield f"reference.{block.line}", check_docs.whole(block.text).encode()


def node_models():
    """(name, bytes): the first two of ONNX's node tests of each operator."""
    from onnx.backend.test.case.node import collect_testcases
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    seen = {}
    for case in cases:
        op = case.model.graph.node[0].op_type
        seen[op] = seen.get(op, 0) + 1
        if seen[op] <= 2:
            yield case.name, case.model.SerializeToString()


def random_models():
    sys.path.insert(0, str(ROOT / "test/oracle"))
    try:
        import modelgen
    except ImportError:
        return
    for seed in range(200):
        yield f"random{seed}", modelgen.model_bytes(seed)


def arrays():
    for dtype in ("f4", "f8", ">i2", "u1", "?", "i8", "f2"):
        for shape in ((), (3,), (2, 0), (2, 3)):
            b = io.BytesIO()
            np.save(b, np.ones(shape, dtype))
            yield f"{dtype}{shape}.npy", b.getvalue()
    for save_as in (np.savez, np.savez_compressed):
        b = io.BytesIO()
        save_as(b, x=np.arange(6.0).reshape(2, 3), y=np.zeros((4, 0), np.int8))
        yield f"{save_as.__name__}.npz", b.getvalue()
    for header in (b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
                   b'"b":{"dtype":"I8","shape":[],"data_offsets":[8,9]}}',
                   b'{"__metadata__":{"k":"v"}}'):
        yield "a.safetensors", len(header).to_bytes(8, "little") + header + bytes(9)


def command_lines():
    """(name, words, files) of each plain use of qxc in a RUN line under test/lit whose files are all there."""
    for path in sorted([*(ROOT / "test/lit").rglob("*.qir"), *(ROOT / "test/lit").rglob("*.test")]):
        for i, line in enumerate(re.findall(r"RUN: *(?:not )?qxc (.*)", path.read_text())):
            try:
                words = shlex.split(re.split(r"[|<>;]|2>|&&", line)[0])
            except ValueError:
                continue
            command, files = [], {}
            for word in words:
                option, value = re.fullmatch(r"(-[\w-]+=)?(.*)", word, re.DOTALL).groups()
                source = pathlib.Path(value.replace("%root", str(ROOT)).replace("%S", str(path.parent))
                                      .replace("%s", str(path)))
                if "%" in value and source.is_file():
                    files[source.name] = source.read_bytes()
                    value = source.name
                command.append((option or "") + value.replace("%t", "t").replace("/", ""))
            if command and command[0] != "reduce" and files:
                yield f"{path.stem}.{i}", command, files


def pages():
    """(name, words, files): each page of a target, and each function of the library, as a user's own."""
    model = (b'qir 1\nimport "" 17\nquant !q = uint8q<0.05, 128>\ngraph @g (%x : float[1,4] ~ !q) -> (%y) {\n'
             b'  %s : float[1,4] ~ !q = Sigmoid(%x)\n  %y : float[1,4] ~ !q = Mul(%x, %s)\n}\n')
    for path in sorted((ROOT / "target").glob("*.target")):
        yield path.stem, ["m.qir", "-target=p.target", "-emit=qdq", "-o=m.onnx"], {
            "m.qir": model, "p.target": path.read_bytes()}
    for path in sorted((ROOT / "lib").glob("*.qir")):
        head, *functions = re.split(r"(?m)^(?=func )", path.read_text())
        for i, text in enumerate(functions):
            yield f"{path.stem}.{i}", ["m.qir", "-define=d.qir", "-emit=qdq", "-o=m.onnx"], {
                "m.qir": model, "d.qir": (head + text.replace("func ", "func acme::", 1)).encode()}


def command_input(words, files):
    """What test/fuzz/fuzz_command.c reads."""
    return "".join(w + "\n" for w in words).encode() + b"\n".join(
        f"-- {name} --\n".encode() + data for name, data in files.items())


def words():
    """What the lexer, the reader and the tables of types and operators spell out."""
    def found(pattern, *files):
        for f in files:
            yield from re.findall(pattern, f.read_text())
    qir = ROOT / "frontend/qir"
    yield from found(r'(?m)^ +"([^"%!@$\\ ]+)"', qir / "lexer.re")
    yield from found(r'"([a-z_]{2,20})[=(]?"', *sorted(qir.glob("*.c")))
    yield from found(r'"([a-z]+[0-9][a-z0-9]*|float|double|bool|string)"', *sorted(ROOT.glob("ir/*.c")))
    yield from found(r"OP\((\w+)", ROOT / "ir/ops/ops.def")
    yield from found(r"A_\w+\(\w+, (\w+)", *sorted(ROOT.glob("ir/ops/*.c")))
    yield from ("hex(", "coo(", "splat(", "elided(\"crc32:", "external(", "2^-7", "nan(0x7fc01234)",
                "axis=[0, 1]", "block=", "range=", "expr=", "com.microsoft", "0x1.8p-7")


def dictionary(path, all_words):
    lines = sorted({'"' + w.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\x0A") + '"'
                    for w in all_words})
    path.write_text("\n".join(lines) + "\n")


def main():
    qxc, out = sys.argv[1], pathlib.Path(sys.argv[2])
    for name, text in qir_texts():
        save(out / "qir", name, text)
        save(out / "pipeline", name, text + bytes([sum(name.encode()) % 17]))
    for name, data in [*node_models(), *random_models()]:
        save(out / "onnx", name, data)
        text = subprocess.run([qxc, "-", "-quiet"], input=data, capture_output=True).stdout
        if text:
            save(out / "qir", name, text)
            save(out / "pipeline", name, text + bytes([sum(name.encode()) % 17]))
    for name, data in arrays():
        save(out / "data", name, data)
    given = set()
    for name, command, files in [*command_lines(), *pages()]:
        save(out / "command", name, command_input(command, files))
        given.update(w + "\n" for w in command if w.isascii() and w.isprintable())
    for name in ("qir", "pipeline", "onnx", "data", "command"):
        dictionary(out / f"{name}.dict", given if name == "command" else words())
        print(f"{name}: {len(list((out / name).iterdir()))} seeds")


if __name__ == "__main__":
    main()
