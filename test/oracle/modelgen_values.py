"""Random texts, types, shapes and tensors of ONNX models, with every field that the schema has for them.

Texts are bytes here (see onnx_bytes), so names that are not UTF-8 occur. Numbers keep odd bits: NaN with payloads,
-0.0, all patterns of the narrow types. External data stand in a file EXTERNAL, which `write_external(folder)` makes.
"""

import pathlib
import random
import struct

import onnx_bytes

EXTERNAL, EXTERNAL_SIZE = "weights.bin", 4096

BITS = {2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 1: 32, 14: 64,
        15: 128, 16: 16, 17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8, 25: 2, 26: 2, 27: 6,
        28: 6}
STRING, BOOL, FLOAT = 8, 9, 1
TYPED = {1: "float_data", 14: "float_data", 11: "double_data", 15: "double_data", 7: "int64_data",
         12: "uint64_data", 13: "uint64_data"}  # the others stand in int32_data
SIGNED = {3: 8, 5: 16, 6: 32}
OURS = [(b"qxc.from", b'from(Conv "c") by "fold"'), (b"qxc.stat", b"min=-1.0, max=3.5"),
        (b"qxc.stat", b"count=3")]


def write_external(folder):
    data = random.Random(7).randbytes(EXTERNAL_SIZE)
    pathlib.Path(folder, EXTERNAL).write_bytes(data)



class Values:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.M = onnx_bytes.messages()
        self.count = 0
        self.custom = [b"my.ops", b"", b"caf\xc3\xa9", b"x y", b"\xff\x00"]
        self.formals = None  # of the function being made

    # ---- chances ----

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, items):
        return self.rng.choice(items)

    def some(self, most):
        return range(self.rng.randrange(most + 1))

    # ---- texts ----

    def junk(self):
        return self.pick((b"", b"a", b"two\nlines", b'"%\\', "\u00e9\u4e2d".encode(), b"\0", b"\xff\xfe",
                          b"%x", b"// -----", self.rng.randbytes(5), b"long" * 40, b"\t \r"))

    def name(self):
        """One that was not used yet."""
        self.count += 1
        tail = str(self.count).encode()
        return self.pick((b"v" + tail, b"v" + tail, b"/a.b/v-" + tail, tail, self.junk() + tail,
                          b"m::" + tail, b"x:" + tail, b"a::::" + tail, b"::" + tail + b"::"))

    def text(self, message, field, p=0.3):
        """Sets an optional text: absent, empty, or any."""
        if self.chance(p):
            setattr(message, field, self.junk())

    def pairs(self, target, p=0.25, entries=2):
        for _ in self.some(entries) if self.chance(p) else ():
            entry = target.add()
            self.text(entry, "key", 0.9)
            self.text(entry, "value", 0.9)
        if self.chance(0.05):  # ours, with others around it
            for key, value in self.rng.sample(OURS, self.rng.randrange(1, 3)):
                entry = target.add(key=key)
                if self.chance(0.9):
                    entry.value = value
            if self.chance(0.5):
                self.text(target.add(), "key")

    def unknown(self, message, p=0.02):
        """Fields of numbers that the schema does not have, of every wire type."""
        if not self.chance(p):
            return
        number = self.rng.randrange(600, 700)
        kind = self.rng.randrange(4)
        tag = (number << 3 | (0, 1, 2, 5)[kind])
        head = bytes([tag & 0x7F | 0x80, tag >> 7])
        body = (b"\xfd\xff\xff\xff\xff\xff\xff\xff\xff\x01", self.rng.randbytes(8),
                b"\x04kept", self.rng.randbytes(4))[kind]
        message.MergeFromString(head + body)

    # ---- types ----

    def shape(self, shape):
        shape.SetInParent()
        for _ in self.some(3) if self.chance(0.9) else range(12):
            dim = shape.dim.add()
            kind = self.rng.randrange(4)
            if kind == 0:
                dim.dim_value = self.pick((0, 1, 3, 2**40, -1, -2**63))
            elif kind == 1:
                dim.dim_param = self.pick((b"N", b"h*w/2", b"", b"a b", self.junk()))
            self.text(dim, "denotation", 0.1)

    def tensor_type(self, t):
        t.SetInParent()
        if self.chance(0.95):
            t.elem_type = self.rng.randrange(29)
        if self.chance(0.8):
            self.shape(t.shape)

    def type(self, t, depth=0):
        t.SetInParent()
        kind = self.rng.randrange(8 if depth < 3 else 3)
        if kind < 2:
            self.tensor_type(t.tensor_type)
        elif kind == 2:
            self.tensor_type(t.sparse_tensor_type)
        elif kind == 3:
            self.type(t.sequence_type.elem_type, depth + 1)
        elif kind == 4:
            self.type(t.optional_type.elem_type, depth + 1)
        elif kind == 5:
            t.map_type.key_type = self.pick((2, 3, 4, 5, 6, 7, 8, 12, 13))
            self.type(t.map_type.value_type, depth + 1)
        elif kind == 6:
            t.opaque_type.SetInParent()
            self.text(t.opaque_type, "domain", 0.5)
            self.text(t.opaque_type, "name", 0.5)
        self.text(t, "denotation", 0.15)

    def info(self, v, name, is_float=False):
        v.name = name
        if is_float:
            v.type.tensor_type.elem_type = FLOAT
            v.type.tensor_type.shape.dim.add(dim_value=2)
        elif self.chance(0.9):
            self.type(v.type)
        self.text(v, "doc_string", 0.2)
        self.pairs(v.metadata_props)

    def result_info(self, v, name, scope):
        """What a model states of a node's result: sometimes what the operator does not yield."""
        self.info(v, name, is_float=name in scope.floats and not self.chance(0.2))

    # ---- tensors ----

    def dims(self):
        return self.pick(([], [], [1], [3], [0], [2, 3], [2, 0, 3], [1, 1, 5], [7], [1] * 9, [2] + [1] * 70))

    def raw(self, elem, count):
        if elem == BOOL:
            return bytes(self.rng.randrange(2) for _ in range(count))
        raw = bytearray(self.rng.randbytes((count * BITS[elem] + 7) // 8))
        specials = {32: (0x7FC01234, 0x80000000, 0x7F800001, 0xFF800000), 16: (0x7E01, 0x8000, 0xFFFF)}
        if BITS[elem] in specials and count and self.chance(0.5):
            word = self.pick(specials[BITS[elem]])
            raw[:BITS[elem] // 8] = word.to_bytes(BITS[elem] // 8, "little")
        return bytes(raw)

    def typed_data(self, t, elem, count):
        r = self.rng
        field = getattr(t, TYPED.get(elem, "int32_data"))
        if elem in TYPED:
            count *= 2 if elem in (14, 15) else 1
            for _ in range(count):
                field.append(
                    self.pick((1.5, -0.0, float("nan"), float("-inf"), 1e-40)) if elem in (1, 11, 14, 15)
                    else r.randrange(-2**63, 2**63) if elem == 7
                    else r.randrange(2**32 if elem == 12 else 2**64))
        elif BITS[elem] == 6:
            field.extend(r.randrange(64) for _ in range(count))
        elif BITS[elem] < 8:
            field.extend(r.randrange(256) for _ in range((count * BITS[elem] + 7) // 8))
        elif elem in SIGNED:
            half = 1 << SIGNED[elem] - 1
            field.extend(r.randrange(-half, half) for _ in range(count))
        else:
            field.extend(r.randrange(2 if elem == BOOL else 1 << BITS[elem]) for _ in range(count))

    def external_data(self, t, size):
        t.data_location = 1
        entries = [(b"location", EXTERNAL.encode())]
        if self.chance(0.7):
            entries.append((b"offset", str(self.rng.randrange(EXTERNAL_SIZE - size)).encode()))
        if self.chance(0.7):
            entries.append((b"length", str(size).encode()))
        if self.chance(0.3):
            entries.append((b"checksum", b"0123"))
        if self.chance(0.2):  # a key or a value that is not there
            entries.append(self.pick(((b"_", b"x"), (b"flag", None), (None, b"x"), (None, None), (b"", b""))))
        self.rng.shuffle(entries)
        for key, value in entries:
            t.external_data.add(key=key, value=value)

    def tensor(self, t, name=None, elem=None, dims=None, external=True):
        elem = elem or self.rng.randrange(1, 29)
        t.SetInParent()
        t.data_type = elem
        t.dims.extend(self.dims() if dims is None else dims)
        count = 1
        for d in t.dims:
            count *= d
        how = self.rng.randrange(10)
        if elem == STRING:
            t.string_data.extend(self.junk() for _ in range(count))
        elif how == 0 and external:
            self.external_data(t, (count * BITS[elem] + 7) // 8)
        elif how < 5:
            self.typed_data(t, elem, count)
        elif count == 0 and how < 8:
            pass
        else:
            t.raw_data = self.raw(elem, count)
        if not t.data_location and self.chance(0.05):
            t.data_location = 0
        if name is not None:
            t.name = name
        else:
            self.text(t, "name")
        self.text(t, "doc_string", 0.1)
        self.pairs(t.metadata_props)

    def sparse(self, s, name=None):
        s.SetInParent()
        n, linear = self.rng.randrange(3), self.chance(0.5)
        self.tensor(s.values, name, self.pick((1, 6, 11, 8)), [n], external=False)
        indices = sorted(self.rng.sample(range(12), n))
        flat = indices if linear else [k for i in indices for k in (i // 4, i % 4)]
        s.dims.extend([3, 4])
        if n == 0 and self.chance(0.3):
            return  # without values there need be no indices
        t = s.indices
        t.data_type = 7
        t.dims.extend([n] if linear else [n, 2])
        if self.chance(0.5):
            t.int64_data.extend(flat)
        else:
            t.raw_data = struct.pack(f"<{len(flat)}q", *flat)
        self.text(t, "name", 0.1)

    # ---- attributes ----
