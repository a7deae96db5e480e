"""Many emitted programs in one executable, which one run of the compiler makes: each is fed with what ONNX feeds, and
answers with what ONNX compares.

Their buffers are of exactly the stated sizes, so a sanitizer sees an access past an end. What it finds ends the executable;
the programs behind that one then run in another process.
"""

import re
import subprocess

import numpy as np
import onnx
from onnx import numpy_helper

from cmodel import KINDS
from common import QXC

MAIN = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
%(includes)s
typedef int Run(void *arena, void **p);
typedef struct { Run *run; size_t arena; int inputs, ports; const size_t *sizes; } Program;
%(runs)s
static const Program programs[] = {
%(table)s};
static void *room(size_t size) {
    return memset(malloc(size), 0x5a, size);
}
static int answer(const Program *p) {
    void *arena = room(p->arena), *ports[32];
    int i, status;
    for (i = 0; i < p->ports; i++)
        ports[i] = room(p->sizes[i]);
    for (i = 0; i < p->inputs; i++)
        if (fread(ports[i], 1, p->sizes[i], stdin) != p->sizes[i])
            return 1;
    status = p->run(arena, ports);
    fwrite(&status, sizeof status, 1, stdout);
    for (i = p->inputs; i < p->ports; i++)
        fwrite(ports[i], 1, p->sizes[i], stdout);
    for (i = 0; i < p->ports; i++)
        free(ports[i]);
    free(arena);
    return fflush(stdout);
}
int main(int argc, char **argv) {
    size_t i = argc > 1 ? (size_t)atoi(argv[1]) : 0;
    for (; i < sizeof programs / sizeof *programs; i++)
        if (answer(&programs[i]))
            return 1;
    return 0;
}
"""


class Port:
    """An input or output: its type and shape as the header states them, of `size` bytes. Where there is room for the most that
    there may be, the shape is how many elements that are."""

    def __init__(self, given, kind, count, stated):
        self.given = given
        self.name, elem, dims, self.most = stated
        self.elem = getattr(onnx.TensorProto, elem.upper())
        self.shape = (int(count),) if self.most else tuple(int(d) for d in dims.split(",") if d)
        self.size = int(count) * np.dtype(KINDS[kind]).itemsize if 0 not in self.shape else 0  # C has no array of length 0

    def array(self, raw):
        """As ONNX has the elements: several of few bits lie in one byte."""
        return numpy_helper.to_array(onnx.TensorProto(dims=self.shape, data_type=self.elem, raw_data=raw))


class EmittedProgram:
    def __init__(self, name, source):
        header = source.with_suffix(".h").read_text(encoding="utf-8")
        self.name, self.source = name, source
        parameters = re.search(rf"\bint\s+{name}_run\s*\(([^;]*)\)\s*;", header)[1].split(",")[1:]
        stated = re.findall(r'^/\* (?:input|output) \d+: "(.*?)" (\w+?)(?:q<[^>]*>)?\[([\d,?]*)\](; there is room)?', header, re.M)
        found = (re.fullmatch(r"\s*(const\s+)?(\w+)\s+\w+\s*\[(\d+)\]\s*", p).groups() for p in parameters)
        self.ports = [Port(bool(given), kind, count, s) for (given, kind, count), s in zip(found, stated, strict=True)]
        self.inputs = [p for p in self.ports if p.given]
        self.outputs = [p for p in self.ports if not p.given]

    def size(self):
        return 4 + sum(p.size for p in self.outputs)

    def answers(self, raw):
        """The status and the outputs in order; None where it wrote less."""
        if len(raw) < self.size():
            return None
        status, at, values = int.from_bytes(raw[:4], "little", signed=True), 4, []
        for port in self.outputs:
            values.append(port.array(raw[at:at + port.size]))
            at += port.size
        return status, values


def emit(path, name, source):
    """None where it is emitted, else what qxc says."""
    command = [QXC, path, "-emit=c", f"-name={name}", "-no-sync", "-quiet", "-o", source]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode and "error: " not in done.stderr:
        raise AssertionError(f"exit {done.returncode}: {done.stderr[-2000:]}")
    return done.stderr if done.returncode else None


def main_of(programs):
    runs, table = [], []
    for p in programs:
        ports = "".join(f", q[{i}]" for i in range(len(p.ports)))
        sizes = ", ".join(str(port.size) for port in p.ports) or "0"
        runs.append(f"static int {p.name}_call(void *arena, void **q) {{ (void)q; return {p.name}_run(arena{ports}); }}\n"
                    f"static const size_t {p.name}_sizes[] = {{{sizes}}};\n")
        table.append(f"    {{{p.name}_call, {p.name.upper()}_ARENA_SIZE, {len(p.inputs)}, {len(p.ports)}, {p.name}_sizes}},\n")
    return MAIN % {"includes": "".join(f'#include "{p.name}.h"\n' for p in programs), "runs": "".join(runs), "table": "".join(table)}


def compiled(programs, folder, compiler, flags):
    """The executable of them all."""
    main = folder / "main.c"
    main.write_text(main_of(programs), encoding="utf-8")
    command = [compiler, *flags, "-o", folder / f"{compiler}.bin", main, *(p.source for p in programs), "-lm"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return folder / f"{compiler}.bin"


def answers(executable, programs, feeds):
    """Of each program its status and outputs, or what was said as it ended without them. `feeds`: of each a list of arrays."""
    results = []
    while len(results) < len(programs):
        at = len(results)
        sent = b"".join(numpy_helper.from_array(v).raw_data for feed in feeds[at:] for v in feed)
        done = subprocess.run([executable, str(at)], input=sent, capture_output=True, check=False)
        raw = done.stdout
        for p in programs[at:]:
            found = p.answers(raw)
            results.append(found or done.stderr.decode(errors="replace"))
            if found is None:
                break
            raw = raw[p.size():]
    return results
