"""Models of one node, drawn from ONNX's schema of its operator and from what operator_facts.py says of it.

The schema has the operands, the attributes, the element types and the opsets; the facts have shapes and ranges of numbers.
"""

import random

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.defs import OpSchema

from fact_words import ATTRIBUTES, LETTERS

NATIVE = {f"tensor({name})": np.dtype(kind) for name, kind in (
    ("float", "f4"), ("double", "f8"), ("float16", "f2"), ("int8", "i1"), ("uint8", "u1"), ("int16", "i2"), ("uint16", "u2"),
    ("int32", "i4"), ("uint32", "u4"), ("int64", "i8"), ("uint64", "u8"), ("bool", "?"))}
OLDEST, NEWEST = 7, onnx.defs.onnx_opset_version()
ORT_OPSET = 26  # the newest that onnxruntime takes


class Undrawable(Exception):
    """What was drawn cannot go on: another form is drawn."""


def versions_of(domain, op):
    """The schemas that an opset from OLDEST on has."""
    found = {}
    for version in range(1 if domain else OLDEST, NEWEST + 1):
        try:
            schema = onnx.defs.get_schema(op, version, domain)
        except onnx.defs.SchemaError:
            continue
        if not schema.deprecated:
            found.setdefault(schema.since_version, []).append(version)
    return list(found.values())


class Drawing:
    """What is drawn for one node. Letters stand for lengths and capitals for shapes: each is drawn when it is first asked for."""

    def __init__(self, family, op, rng):
        self.family, self.op, self.rng = family, op, rng
        self.empty = rng.random() < 0.06
        versions = versions_of(family.domain, op)
        opsets = versions[-1] if rng.random() < 0.6 else rng.choice(versions)
        self.opset = rng.choice([v for v in opsets if v <= ORT_OPSET] or opsets)
        self.schema = onnx.defs.get_schema(op, self.opset, family.domain)
        self.letters, self.types, self.attributes, self.operands, self.place = {}, {}, {}, {}, 0
        self.draw_types()

    # ---- what facts ask for

    def one_of(self, *choices):
        return self.rng.choice(choices)

    def chance(self, p):
        return self.rng.random() < p

    def below(self, n):
        if n < 1:
            raise Undrawable
        return self.rng.randrange(n)

    def length(self):
        return 0 if self.empty and self.chance(0.3) else self.one_of(1, 1, 2, 2, 3, 3, 4, 5)

    @staticmethod
    def tensor(values):
        return numpy_helper.from_array(values)

    def axis(self, rank):
        """An axis counted from the front or from the back."""
        return self.below(rank) - (rank if self.chance(0.4) else 0)

    def axes(self, rank, least=0):
        chosen = self.rng.sample(range(rank), self.rng.randint(min(least, rank), rank))
        return [a - (rank if self.chance(0.4) else 0) for a in chosen]

    def indices(self, shape, n, negative=True):
        return np.array([self.below(n) - (n if negative and self.chance(0.3) else 0) for _ in range(int(np.prod(shape)))],
                        np.int64).reshape(shape)

    def __getitem__(self, letter):
        if letter not in self.letters:
            draw = self.family.letters.get(letter) or LETTERS.get(letter) or Drawing.length
            self.letters[letter] = draw(self)
        return self.letters[letter]

    def attribute(self, name):
        """Its value, or its default; None where there is neither."""
        if name in self.attributes or name not in self.schema.attributes:
            return self.attributes.get(name)
        default = self.schema.attributes[name].default_value
        value = helper.get_attribute_value(default) if default.name else None
        return value.decode() if isinstance(value, bytes) else value

    # ---- shapes

    def shape(self, text):
        """Of "n g*c S": lengths and products of them, and shapes; "~S" is one that broadcasts with S, "<S" one that
        broadcasts to S."""
        shape = []
        for word in text.split():
            if word[0] in "~<":
                full = self[word[1:]]
                kept = full[self.rng.randint(0, len(full)) if self.chance(0.4) else 0:]
                shape.extend(1 if self.chance(0.25) else n for n in kept)
            else:
                value = eval(word, {}, self)  # pylint: disable=eval-used
                shape.extend(value if isinstance(value, (list, tuple)) else [value])
        return tuple(shape)

    # ---- numbers

    def numbers(self, shape, kind, how):
        """Of an element type, which are "tame", "wild" or "rare" (among them what is rare; without the largest and the smallest floats),
        "positive", "small", "ties" or "unit" (0 to 1); "known": no NaN, "in-range": no extreme integers."""
        count = int(np.prod(shape))
        random_state = np.random.RandomState(self.below(1 << 31))
        if kind == np.bool_:
            return (random_state.rand(count) < 0.5).reshape(shape)
        if kind.kind == "f":
            values = random_state.randn(count) * self.one_of(0.3, 1, 3, 10)
            limits, rare = np.finfo(kind), [np.nan, np.inf, -np.inf, -0.0, 0.0, 0.5, 1.5, 2.5, -0.5, 1, -1]
            if "known" in how:
                del rare[0]
            if "wild" in how:
                rare += [limits.max, limits.min, limits.tiny, limits.smallest_subnormal, -limits.smallest_subnormal, 88.8, -104, 1e3]
        else:
            limits = np.iinfo(kind)
            values = np.round(random_state.randn(count) * self.one_of(1, 5, 50))
            rare = [0, 1] if "in-range" in how else [limits.min, limits.max, 0, 1, limits.min + 1, limits.max // 2]
        if how == "ties":
            values = np.round(values / 3)
        if how == "unit":
            values = np.abs(values) % 1
        if how == "positive":
            values = np.abs(values) + (0.1 if kind.kind == "f" else 1)
        if how == "small":
            values = values / np.maximum(np.abs(values).max(initial=1), 1) * (2 if kind.kind == "f" else 7)
        if kind.kind in "iu":
            values = np.clip(values, max(int(limits.min), -(1 << 62)), min(int(limits.max), 1 << 62))
        values = values.astype(kind)
        if "wild" in how and self.chance(0.5) or "rare" in how and self.chance(0.3):
            places = random_state.rand(count) < self.one_of(0.05, 0.4)
            chosen = np.array(rare).astype(kind) if kind.kind == "f" else np.array(rare, dtype=object)
            values[places] = random_state.choice(chosen, int(places.sum())).astype(kind)
        return values.reshape(shape)

    # ---- the parts of a node

    def draw_types(self):
        for constraint in self.schema.type_constraints:
            allowed = [t for t in constraint.allowed_type_strs if t in NATIVE]
            allowed = [t for t in allowed if NATIVE[t] in self.family.types(constraint.type_param_str)]
            if not allowed:
                raise Undrawable
            likely = [t for t in ("tensor(float)", "tensor(float)", "tensor(int64)", "tensor(double)") if t in allowed]
            self.types[constraint.type_param_str] = NATIVE[self.rng.choice(sorted(allowed) + likely)]

    def type_of(self, word):
        """The dtype of a type parameter or of a type that the schema spells out."""
        if word in self.types:
            return self.types[word]
        if word not in NATIVE:
            raise Undrawable
        return NATIVE[word]

    def type_number(self, word):
        return helper.np_dtype_to_tensor_dtype(self.types[word])

    def fact(self, name):
        return self.family.facts.get(name, ATTRIBUTES.get(name))

    def draw_attributes(self):
        order = {name: i for i, name in enumerate(self.family.facts)}
        for name, attribute in sorted(self.schema.attributes.items(), key=lambda item: (order.get(item[0], -1), item[0])):
            fact = self.fact(name)
            if not attribute.required and self.chance(0.4) and name not in self.family.always:
                continue
            if fact is None:
                fact = {OpSchema.AttrType.INT: lambda d: d.below(2),
                        OpSchema.AttrType.FLOAT: lambda d: d.one_of(0.5, -1.5, 1.0, 2.0, 0.0, 0.1)}.get(attribute.type)
            if fact is None:
                raise KeyError(f"{self.op}: nothing says what {name} may be")
            value = fact(self) if callable(fact) else self.one_of(*fact)
            if value is not None and value != []:
                self.attributes[name] = value

    def operand(self, parameter, place):
        """The array of one operand; None where the facts want none."""
        kind, fact, how = self.type_of(parameter.type_str), self.fact(parameter.name), self.family.numbers
        if fact is None:
            shapes = self.family.operands.split(",")
            fact = shapes[min(place, len(shapes) - 1)]
        if isinstance(fact, tuple):
            how, fact = fact
        self.place = place
        value = fact(self) if callable(fact) else fact
        if isinstance(value, str):
            value = self.shape(value)
        if isinstance(value, tuple):
            value = self.numbers(value, kind, how)
        return None if value is None else np.asarray(value).astype(kind)

    def draw_operands(self):
        drawn, Option = [], OpSchema.FormalParameterOption
        for place, parameter in enumerate(self.schema.inputs):
            if parameter.option == Option.Variadic:
                count = self.family.count(self) if self.family.count else self.one_of(1, 2, 2, 3, 4)
                drawn += [self.operand(parameter, place + i) for i in range(count)]
                continue
            left_out = parameter.option == Option.Optional and parameter.name not in self.family.always and self.chance(0.4)
            drawn.append(None if left_out else self.operand(parameter, place))
            if drawn[-1] is None and parameter.option == Option.Single:
                raise Undrawable
        self.operands = {f"x{i}": v for i, v in enumerate(drawn)}

    def results(self):
        names = []
        count = self.family.results(self) if self.family.results else len(self.schema.outputs)
        for i in range(count):
            parameter = self.schema.outputs[min(i, len(self.schema.outputs) - 1)]
            optional = parameter.option == OpSchema.FormalParameterOption.Optional
            names.append("" if optional and self.chance(0.4) else f"y{i}")
        while names and not names[-1]:
            names.pop()
        if not names:
            raise Undrawable
        return names

    def draw(self):
        """The model and the arrays of its inputs."""
        self.draw_attributes()
        self.draw_operands()
        names = [n if v is not None else "" for n, v in self.operands.items()]
        while names and not names[-1]:
            names.pop()
        results = self.results()
        node = helper.make_node(self.op, names, results, "it", domain=self.family.domain, **self.attributes)
        present = {n: v for n, v in self.operands.items() if v is not None}
        share = self.one_of(0, 0.5, 0.5, 0.9)
        constant = [n for i, n in enumerate(present) if self.chance(share if i else 0.1)]
        inputs = {n: v for n, v in present.items() if n not in constant}
        imports = [helper.make_opsetid("", 22 if self.family.domain else self.opset)]
        if self.family.domain:
            imports.append(helper.make_opsetid(self.family.domain, self.opset))
        graph = helper.make_graph(
            [node], "g", [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in inputs.items()],
            [onnx.ValueInfoProto(name=r) for r in results if r], [numpy_helper.from_array(present[n], n) for n in constant])
        return helper.make_model(graph, ir_version=10, opset_imports=imports), inputs


def draw(family, op, seed):
    """Forms of one seed, one after the other; what cannot be drawn is left out."""
    for attempt in range(200):
        try:
            drawing = Drawing(family, op, random.Random(f"{op} {seed} {attempt}"))
            yield (drawing, *drawing.draw())
        except Undrawable:
            continue
