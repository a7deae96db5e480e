"""Emitted C, compiled into a shared library and called from here."""

import ctypes
import itertools
import os
import re
import subprocess

import numpy as np

KINDS = {"float": np.float32, "double": np.float64, "int8_t": np.int8, "uint8_t": np.uint8,
         "int16_t": np.int16, "uint16_t": np.uint16, "int32_t": np.int32, "int64_t": np.int64, "uint32_t": np.uint32,
         "uint64_t": np.uint64}
FLAGS = ("-O3", "-march=native")  # where it has to be fast
PLAIN = ("-O0", "-march=native")  # where it has to be right: compiled in a third of the time; test_emitted_c has all levels
NUMBERS = itertools.count()  # a loaded library must not be overwritten by the next


def library(sources, compiler=None, flags=PLAIN):
    """Emitted programs, all in one library."""
    made = sources[0].with_suffix(f".{next(NUMBERS)}.so")
    subprocess.run([*(compiler or os.environ.get("CC") or "cc").split(), "-std=c99", "-Wall", "-Wextra",
                    "-Wno-invalid-feature-combination", "-Werror", *flags, "-shared", "-fPIC", "-o", made, *sources, "-lm"],
                   check=True)
    return made


def compiled_together(sources, compiler=None, flags=PLAIN):
    """The models of several sources, which one run of the compiler makes."""
    made = library(sources, compiler, flags)
    return [CModel(source, library_path=made) for source in sources]


class CModel:
    """PREFIX_run of model.c, as model.h declares it."""

    def __init__(self, source, compiler=None, flags=PLAIN, library_path=None):
        text = source.with_suffix(".h").read_text()
        found = re.search(r"\bint\s+(\w+)_run\s*\(([^;]*)\)\s*;", text)
        self.prefix, parameters = found[1], found[2].split(",")
        self.library = library_path or library([source], compiler, flags)
        loaded = ctypes.CDLL(str(self.library.resolve()))
        self.arena_size = ctypes.c_size_t.in_dll(loaded, f"{self.prefix}_arena_size").value
        self.function = loaded[f"{self.prefix}_run"]
        self.inputs, self.outputs = [], []
        for parameter in parameters[1:]:
            const, kind, name, count = re.fullmatch(
                r"\s*(const\s+)?(\w+)\s+(\w+)\s*\[(\d+)\]\s*", parameter).groups()
            (self.inputs if const else self.outputs).append((name, KINDS[kind], int(count)))
        room = np.zeros(self.arena_size + 64, np.uint8)
        start = -room.ctypes.data % 64
        self.arena = room[start:start + self.arena_size]
        self.ports = self.inside(text) if len(parameters) == 1 else None
        self.results = [np.zeros(count, kind) for _, kind, count in self.outputs]

    def inside(self, text):
        """With -io-in-arena: the inputs and outputs as parts of the arena; the type is that of a pointer to each."""
        ports = []
        for way, macro, count, place in re.findall(
                r"/\* (input|output) \d+: [^/]*/\n#define (\w+)_COUNT (\d+)\n#define \w+_OFFSET (\d+)\n", text):
            kind = KINDS[re.search(rf"{macro}_AT\(arena\) \(\((\w+) \*\)", text)[1]]
            size = int(count) * np.dtype(kind).itemsize
            ports.append((way, self.arena[int(place):int(place) + size].view(kind)))
        return ports

    def run_inside(self, *arrays):
        places = [place for way, place in self.ports if way == "input"]
        for place, array in zip(places, arrays, strict=True):
            place[:] = np.ascontiguousarray(array).ravel()
        status = self.function(ctypes.c_void_p(self.arena.ctypes.data))
        assert status == 0, f"{self.prefix}_run returned {status}"
        return [place.copy() for way, place in self.ports if way == "output"]

    def arguments(self, arrays):
        flat = [np.ascontiguousarray(a).ravel() for a in arrays]
        for array, (name, kind, count) in zip(flat, self.inputs, strict=True):
            assert array.dtype == kind and array.size == count, (name, array.dtype, array.size)
        self.kept = flat
        return [ctypes.c_void_p(a.ctypes.data) for a in (self.arena, *flat, *self.results)]

    def run(self, *arrays):
        """The outputs of one sample, flat."""
        if self.ports is not None:
            return self.run_inside(*arrays)
        status = self.function(*self.arguments(arrays))
        assert status == 0, f"{self.prefix}_run returned {status}"
        return [r.copy() for r in self.results]

    def text_size(self):
        """Bytes of code and constants."""
        done = subprocess.run(["size", self.library], capture_output=True, text=True, check=True)
        text, data, _ = done.stdout.splitlines()[1].split()[:3]
        return int(text) + int(data)
