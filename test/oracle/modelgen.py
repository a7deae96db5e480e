"""Random valid ONNX models that use every field of the schema.

`model_bytes(seed)` is one serialized model; the same seed gives the same bytes. External data stand
in a file EXTERNAL, which `write_external(folder)` makes. HANDLED is the set of fields (by full name)
that the models fill, REFUSED those that qxc does not take; together they are the schema.

Texts are bytes here (see onnx_bytes), so names that are not UTF-8 occur. Numbers keep odd bits: NaN
with payloads, -0.0, all patterns of the narrow types.
"""

import functools
import pathlib
import random
import struct

import onnx

import onnx_bytes

EXTERNAL, EXTERNAL_SIZE = "weights.bin", 4096
MAX_DEPTH = 3

# A tensor in segments is refused, except in training graphs, which travel as they are.
REFUSED = {"onnx.TensorProto.segment", "onnx.TensorProto.Segment.begin",
           "onnx.TensorProto.Segment.end"}

BITS = {2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 1: 32, 14: 64,
        15: 128, 16: 16, 17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8, 25: 2, 26: 2, 27: 6,
        28: 6}
WELL_KNOWN = (b"com.microsoft", b"ai.onnx.ml")  # domains that runtimes know without an import
STRING, BOOL, FLOAT = 8, 9, 1
TYPED = {1: "float_data", 14: "float_data", 11: "double_data", 15: "double_data", 7: "int64_data",
         12: "uint64_data", 13: "uint64_data"}  # the others stand in int32_data
SIGNED = {3: 8, 5: 16, 6: 32}
OURS = [(b"qxc.from", b'from(Conv "c") by "fold"'), (b"qxc.stat", b"min=-1.0, max=3.5"),
        (b"qxc.stat", b"count=3")]
UNARY = ("Relu", "Neg", "Abs", "Sigmoid", "Tanh", "Exp", "Floor", "Ceil", "Sqrt", "Reciprocal")


def write_external(folder):
    data = random.Random(7).randbytes(EXTERNAL_SIZE)
    pathlib.Path(folder, EXTERNAL).write_bytes(data)


@functools.cache
def onnx_schemas():
    """ONNX's operators: name -> schemas, the oldest first."""
    found = {}
    for s in sorted(onnx.defs.get_all_schemas_with_history(), key=lambda s: (s.name, s.since_version)):
        if s.domain == "":
            found.setdefault(s.name, []).append(s)
    return found


def plain_schema(name, opset):
    """The operator as it is at an opset, or None; only such as stand in a function by themselves."""
    s = max((s for s in onnx_schemas()[name] if s.since_version <= opset),
            key=lambda s: s.since_version, default=None)
    if not s or s.deprecated or not s.outputs or name == "Constant":
        return None
    graphs = any(a.type.name in ("GRAPH", "GRAPHS") for a in s.attributes.values())
    return None if graphs or any(p.option.name == "Variadic" for p in s.outputs) else s


class Scope:
    """Names that a node may use: those of the graph so far and of the graphs around it."""

    def __init__(self, outer=None):
        self.visible = list(outer.visible) if outer else []
        self.floats = list(outer.floats) if outer else []  # float[2]
        self.own = []

    def add(self, name, is_float=False):
        self.visible.append(name)
        self.own.append(name)
        if is_float:
            self.floats.append(name)


class Generator:
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

    def attribute(self, a, name, scope, depth):
        a.name = name
        if self.chance(0.03):
            a.ref_attr_name = b""  # which is no reference
        kinds = [1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14]
        if depth < MAX_DEPTH and scope is not None:
            kinds += [5, 10]
        kind = self.pick(kinds)
        if self.chance(0.95) or kind not in (1, 2, 3, 4, 5, 11, 13):
            a.type = kind  # early IR versions left it to the reader to see which value is there
        elif kind in (1, 2, 3) and self.chance(0.1):
            a.type = kind  # no value is the default's
            return
        many = self.some(2)
        r = self.rng
        if kind == 1:
            a.f = self.pick((0.0, -0.0, 1.5, float("nan"), float("inf"), 1e-45))
        elif kind == 2:
            a.i = self.pick((0, -1, 2**63 - 1, -2**63))
        elif kind == 3:
            a.s = self.junk()
        elif kind == 4:
            self.tensor(a.t)
        elif kind == 5:
            self.graph(a.g, scope, depth + 1)
        elif kind == 6:
            a.floats.extend(r.uniform(-1, 1) for _ in many)
        elif kind == 7:
            a.ints.extend(r.randrange(-2**63, 2**63) for _ in many)
        elif kind == 8:
            a.strings.extend(self.junk() for _ in many)
        elif kind == 9:
            for _ in many:
                self.tensor(a.tensors.add())
        elif kind == 10:
            for _ in many:
                self.graph(a.graphs.add(), scope, depth + 1)
        elif kind == 11:
            self.sparse(a.sparse_tensor)
        elif kind == 12:
            for _ in many:
                self.sparse(a.sparse_tensors.add())
        elif kind == 13:
            self.type(a.tp)
        elif kind == 14:
            for _ in many:
                self.type(a.type_protos.add())
        self.text(a, "doc_string", 0.1)

    def reference(self, a, name):
        a.name = name
        a.ref_attr_name = self.pick(self.formals)
        a.type = self.rng.randrange(15)
        if self.chance(0.1):  # means nothing, and travels all the same
            a.type = self.pick((1, 2, 3, 6, 7, 8))
            a.MergeFrom(self.plain_value(a.type))
        self.text(a, "doc_string", 0.1)

    def plain_value(self, kind):
        value = self.M["AttributeProto"]()
        if kind == 1:
            value.f = self.pick((0.0, -0.0, float("nan")))
        elif kind == 2:
            value.i = self.pick((0, -1, 2**63 - 1))
        elif kind == 3:
            value.s = self.junk()
        elif kind == 6:
            value.floats.extend((-0.0, 1.5))
        elif kind == 7:
            value.ints.extend((0, -2**63))
        else:
            value.strings.extend((b"", self.junk()))
        return value

    def attributes(self, node, scope, depth):
        for _ in self.some(3):
            a = node.attribute.add()
            if self.formals and self.chance(0.3):
                self.reference(a, self.name())
            else:
                self.attribute(a, self.name(), scope, depth)

    # ---- nodes ----

    def devices(self, node):
        for _ in self.some(2) if self.chance(0.1) else ():
            c = node.device_configurations.add()
            self.text(c, "configuration_id", 0.8)
            if self.chance(0.5):
                c.pipeline_stage = self.rng.randrange(4)
            for _ in self.some(2):
                s = c.sharding_spec.add()
                self.text(s, "tensor_name", 0.8)
                s.device.extend([0, -1, 2**40])
                for _ in self.some(2):
                    s.index_to_device_group_map.add(key=self.rng.randrange(9), value=[1, 2])
                for _ in self.some(2):
                    d = s.sharded_dim.add(axis=-1)
                    for _ in self.some(2):
                        simple = d.simple_sharding.add(num_shards=2)
                        if self.chance(0.5):
                            simple.dim_value = 4
                        else:
                            simple.dim_param = b"N"

    def notes(self, node):
        self.text(node, "name", 0.6)
        self.text(node, "doc_string", 0.1)
        self.pairs(node.metadata_props)
        self.devices(node)

    def default_domain(self, node):
        """The default domain is absent, "", or "ai.onnx"."""
        if self.chance(0.4):
            node.domain = self.pick((b"", b"ai.onnx"))

    def unary(self, node, scope, name):
        node.op_type = self.pick(UNARY).encode()
        node.input.append(self.pick(scope.floats))
        node.output.append(name)
        self.default_domain(node)
        scope.add(name, is_float=True)

    def custom_node(self, node, scope, depth):
        node.op_type = self.pick((b"Op", b"my op", b"Relu", self.name()))
        node.domain = self.pick([d for d in self.custom if d])
        if self.well_known and self.chance(0.05):
            node.domain = self.pick(WELL_KNOWN)
        if self.chance(0.15):
            node.overload = self.pick((b"", b"fast", b"a b"))
        for _ in self.some(3):
            usable = scope.visible and self.chance(0.8)
            node.input.append(self.pick(scope.visible) if usable else b"")
        self.attributes(node, scope, depth)
        for _ in self.some(3):
            name = self.name() if self.chance(0.85) else b""
            node.output.append(name)
            if name:
                scope.add(name)

    def branch(self, node, scope, depth):
        node.op_type = b"If"
        node.input.append(self.condition)
        for name in (b"then_branch", b"else_branch"):
            a = node.attribute.add(name=name, type=5)
            self.graph(a.g, scope, depth + 1, float_output=True)
        name = self.name()
        node.output.append(name)
        self.default_domain(node)
        scope.add(name, is_float=True)

    def node(self, node, scope, depth):
        kind = self.rng.randrange(10)
        if (kind < 4 or self.old) and scope.floats:
            self.unary(node, scope, self.name())
        elif kind == 4 and depth < MAX_DEPTH and scope.floats and self.condition:
            self.branch(node, scope, depth)
        elif kind == 5 and self.functions:
            self.call(node, scope)
        else:
            self.custom_node(node, scope, depth)
        self.notes(node)

    # ---- graphs ----

    def graph(self, g, outer=None, depth=0, float_output=False):
        scope = Scope(outer)
        g.SetInParent()
        self.text(g, "name", 0.8)
        self.text(g, "doc_string", 0.2)
        if depth == 0:
            self.main_inputs(g, scope)
        elif not float_output:
            for _ in self.some(2):
                name = self.name()
                scope.add(name)
                self.info(g.input.add(), name)
        self.initializers(g, scope)
        for _ in range(self.rng.randrange(1, 5 if depth == 0 else 3)):
            self.node(g.node.add(), scope, depth)
        if float_output:
            self.unary(g.node.add(), scope, self.name())
        self.outputs(g, scope, depth, float_output)
        self.value_infos(g, scope)
        if depth == 0 and self.condition is not None and self.chance(0.15):  # runtimes sort them
            nodes = list(g.node)
            self.rng.shuffle(nodes)
            del g.node[:]
            g.node.extend(nodes)
        for _ in self.some(2) if self.chance(0.2) else ():
            q = g.quantization_annotation.add()
            self.text(q, "tensor_name", 0.9)
            self.pairs(q.quant_parameter_tensor_names, 0.9)
        self.pairs(g.metadata_props)

    def main_inputs(self, g, scope):
        self.condition = self.name()
        cond = g.input.add(name=self.condition)
        cond.type.tensor_type.elem_type = BOOL
        cond.type.tensor_type.shape.SetInParent()
        for i in range(self.rng.randrange(1, 4)):
            name = self.name()
            scope.add(name, is_float=i == 0)
            self.info(g.input.add(), name, is_float=i == 0)

    def initializers(self, g, scope):
        for _ in self.some(3):
            name = self.name()
            self.tensor(g.initializer.add(), name)
            scope.add(name)
        if g.input and self.chance(0.3):  # a default, as in IR version 3
            name = self.name()
            elem = self.rng.randrange(1, 29)
            v = g.input.add(name=name)
            v.type.tensor_type.elem_type = elem
            shape = v.type.tensor_type.shape.dim.add()
            if self.chance(0.7):
                shape.dim_value = 2
            elif self.chance(0.5):
                shape.dim_param = b"N"
            self.tensor(g.initializer.add(), name, elem, [2])
            scope.add(name)
        for _ in self.some(2) if self.chance(0.3) else ():
            name = self.name()
            s = g.sparse_initializer.add()
            self.sparse(s, name)
            scope.add(name)
            if g.input and self.chance(0.4):  # the default of an input
                v = g.input.add(name=name)
                t = v.type.sparse_tensor_type if self.chance(0.5) else v.type.tensor_type
                t.elem_type = s.values.data_type
                t.shape.SetInParent()
                for d in s.dims:
                    t.shape.dim.add(dim_value=d)

    def outputs(self, g, scope, depth, float_output):
        if float_output:
            self.result_info(g.output.add(), scope.own[-1], scope)
            return
        for _ in self.some(3):
            around = [v for v in scope.visible if v not in scope.own]
            if scope.own and self.chance(0.9):
                self.output(g, scope, self.pick(scope.own))
            elif around and depth:
                self.output(g, scope, self.pick(around))

    def output(self, g, scope, name):
        """Its type is that of the value where one was stated; else one, or none."""
        stated = [v for v in g.input if v.name == name]
        v = g.output.add(name=name)
        if stated and self.chance(0.8):
            v.CopyFrom(stated[0])
        elif not stated and name in [o for n in g.node for o in n.output] and self.chance(0.3):
            self.result_info(v, name, scope)
        else:
            self.text(v, "doc_string", 0.2)
            self.pairs(v.metadata_props)

    def value_infos(self, g, scope):
        """Some values' types, in any order; values that are not there, too."""
        results = [o for n in g.node for o in n.output if o]
        self.rng.shuffle(results)
        for name in results[:self.rng.randrange(4)]:
            self.result_info(g.value_info.add(), name, scope)
        others = [v.name for v in list(g.input) + list(g.output) + list(g.initializer)] + results
        for _ in self.some(3) if self.chance(0.3) else ():
            name = self.pick(others) if others and self.chance(0.8) else self.name()
            at = self.pick((None, 0))
            v = self.M["ValueInfoProto"](name=name)
            if name not in others or name in g.output:
                self.info(v, name)
            elif self.chance(0.3):
                self.text(v, "doc_string", 0.9)
            g.value_info.append(v)
            if at == 0:
                rest = list(g.value_info)
                self.rng.shuffle(rest)
                del g.value_info[:]
                g.value_info.extend(rest)

    # ---- functions ----

    def function_imports(self, f, opset):
        f.opset_import.add(domain=b"", version=opset)
        if self.chance(0.1):
            f.opset_import.add(domain=b"ai.onnx", version=opset)
        for d in self.custom:
            if d:
                f.opset_import.add(domain=d, version=self.rng.randrange(9))

    def function(self, f, opset):
        f.name = self.name()
        f.domain = self.pick([d for d in self.custom if d])
        if self.chance(0.3):
            f.overload = self.pick((b"", b"fast"))
        self.text(f, "doc_string", 0.2)
        self.pairs(f.metadata_props)
        if self.chance(0.9):  # else it has the model's
            self.function_imports(f, opset)
        f.attribute.extend(self.name() for _ in self.some(2))
        for _ in self.some(2):
            self.attribute(f.attribute_proto.add(), self.name(), Scope(), 1)
        self.formals = list(f.attribute) + [a.name for a in f.attribute_proto]
        scope = Scope()
        for _ in range(self.rng.randrange(1, 3)):
            scope.add(self.name())
            f.input.append(scope.own[-1])
        for _ in range(self.rng.randrange(1, 4)):
            self.body_node(f.node.add(), scope, opset)
        f.output.extend(self.pick(scope.own) for _ in range(self.rng.randrange(1, 3)))
        for name in scope.own:  # whether its nodes take them or not
            if self.chance(0.2):
                self.info(f.value_info.add(), name)
        self.formals = None

    def body_node(self, node, scope, opset):
        """An operator of ONNX in the form of the function's opset, or a custom one."""
        s = plain_schema(self.pick(list(onnx_schemas())), opset)
        required = [a for a in s.attributes.values() if a.required] if s else []
        if not s or required and not self.formals or self.chance(0.3):
            self.custom_node(node, scope, MAX_DEPTH - 1)
        else:
            node.op_type = s.name.encode()
            node.input.extend(self.pick(scope.visible) for _ in range(s.min_input))
            for i in range(s.min_output):
                node.output.append(self.name())
                scope.add(node.output[-1])
            others = [a for a in s.attributes.values() if not a.required]
            for a in required + ([self.pick(others)] if others and self.formals else []):
                r = node.attribute.add(name=a.name.encode(), ref_attr_name=self.pick(self.formals))
                if self.chance(0.8):
                    r.type = a.type.value if self.chance(0.8) else 0
            self.default_domain(node)
        self.notes(node)

    def call(self, node, scope):
        f = self.pick(self.functions)
        node.op_type, node.domain = f.name, f.domain
        if f.HasField("overload"):
            node.overload = f.overload
        for _ in f.input:
            node.input.append(self.pick(scope.visible) if scope.visible else b"")
        for name in list(f.attribute)[:self.rng.randrange(3)]:
            self.attribute(node.attribute.add(), name, None, MAX_DEPTH)
        for _ in f.output:
            node.output.append(self.name())
            scope.add(node.output[-1])

    # ---- the model ----

    def imports(self, m, opset):
        i = m.opset_import.add(version=opset)
        if self.chance(0.7):
            i.domain = self.pick((b"", b"ai.onnx"))
        if self.chance(0.1):  # again, by the one name or the other
            m.opset_import.add(domain=self.pick((b"", b"ai.onnx")), version=opset)
        for d in self.custom:
            if d:
                m.opset_import.add(domain=d, version=self.pick((0, 1, 7, 2**62)))
        if self.chance(0.3):
            m.opset_import.add(domain=b"unused", version=3)

    def training(self, m):
        for _ in self.some(2) if self.chance(0.15) else ():
            t = m.training_info.add()
            if self.chance(0.7):
                self.graph(t.initialization)
            if self.chance(0.7):
                self.graph(t.algorithm)
            self.pairs(t.initialization_binding)
            self.pairs(t.update_binding)

    def model(self):
        m = self.M["ModelProto"]()
        m.ir_version = self.rng.randrange(1, 15)
        opset = self.rng.randrange(1, 29)
        old = m.ir_version < 3 and self.chance(0.2)  # before there were imports
        for field in ("producer_name", "producer_version", "domain", "doc_string"):
            self.text(m, field, 0.4)
        if self.chance(0.4):
            m.model_version = self.pick((0, -1, 2**40))
        if not old:
            self.imports(m, opset)
        self.pairs(m.metadata_props)
        self.functions, self.old, self.condition = [], old, None
        self.well_known = False
        for _ in self.some(2) if self.chance(0.4) and not old else ():
            f = m.functions.add()
            self.function(f, opset)
        self.functions = list(m.functions)
        self.well_known = not old
        self.graph(m.graph)
        self.training(m)
        for _ in self.some(2) if self.chance(0.2) else ():
            c = m.configuration.add(num_devices=2)
            self.text(c, "name", 0.8)
            c.device.extend([b"cpu", b""])
        for message in list(messages_in(m)):
            self.unknown(message)
        return m


def messages_in(message):
    """The message and all in it."""
    yield message
    for f, value in message.ListFields():
        if f.type == f.TYPE_MESSAGE:
            for part in value if f.is_repeated else [value]:
                yield from messages_in(part)


def model_bytes(seed):
    return Generator(seed).model().SerializeToString(deterministic=True)


def schema_fields():
    """Full names of all fields of a ModelProto, in the installed `onnx` package."""
    seen, todo, fields = set(), [onnx.ModelProto.DESCRIPTOR], set()
    while todo:
        message = todo.pop()
        if message.full_name in seen:
            continue
        seen.add(message.full_name)
        for f in message.fields:
            fields.add(f.full_name)
            if f.message_type:
                todo.append(f.message_type)
    return fields


def filled_fields(message, out):
    """Adds the full names of the fields that a message and those in it have."""
    for f, value in message.ListFields():
        out.add(f.full_name)
        if f.type == f.TYPE_MESSAGE:
            for part in value if f.is_repeated else [value]:
                filled_fields(part, out)
    return out


# The fields that the methods above know how to fill, written down: a field that is new in the schema is
# in none of the two sets, and the test says so.
HANDLED = {f"onnx.{message}.{field}" for message, names in {
    "AttributeProto": "name ref_attr_name doc_string type f i s t g sparse_tensor tp floats ints strings "
                      "tensors graphs sparse_tensors type_protos",
    "DeviceConfigurationProto": "name num_devices device",
    "FunctionProto": "name input output attribute attribute_proto node doc_string opset_import domain "
                     "overload value_info metadata_props",
    "GraphProto": "node name initializer sparse_initializer doc_string input output value_info "
                  "quantization_annotation metadata_props",
    "IntIntListEntryProto": "key value",
    "ModelProto": "ir_version opset_import producer_name producer_version domain model_version doc_string "
                  "graph metadata_props training_info functions configuration",
    "NodeDeviceConfigurationProto": "configuration_id sharding_spec pipeline_stage",
    "NodeProto": "input output name op_type domain overload attribute doc_string metadata_props "
                 "device_configurations",
    "OperatorSetIdProto": "domain version",
    "ShardedDimProto": "axis simple_sharding",
    "ShardingSpecProto": "tensor_name device index_to_device_group_map sharded_dim",
    "SimpleShardedDimProto": "dim_value dim_param num_shards",
    "SparseTensorProto": "values indices dims",
    "StringStringEntryProto": "key value",
    "TensorAnnotation": "tensor_name quant_parameter_tensor_names",
    "TensorProto": "dims data_type float_data int32_data string_data int64_data name doc_string raw_data "
                   "external_data data_location double_data uint64_data metadata_props",
    "TensorShapeProto": "dim",
    "TensorShapeProto.Dimension": "dim_value dim_param denotation",
    "TrainingInfoProto": "initialization algorithm initialization_binding update_binding",
    "TypeProto": "tensor_type sequence_type map_type optional_type sparse_tensor_type opaque_type "
                 "denotation",
    "TypeProto.Map": "key_type value_type",
    "TypeProto.Opaque": "domain name",
    "TypeProto.Optional": "elem_type",
    "TypeProto.Sequence": "elem_type",
    "TypeProto.SparseTensor": "elem_type shape",
    "TypeProto.Tensor": "elem_type shape",
    "ValueInfoProto": "name type doc_string metadata_props",
}.items() for field in names.split()}
