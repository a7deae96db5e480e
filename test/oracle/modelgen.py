"""Random valid ONNX models that use every field of the schema (modelgen_fields).

`model_bytes(seed)` is one serialized model; the same seed gives the same bytes.
"""

import functools

import onnx

from modelgen_nodes import MAX_DEPTH, Nodes
from modelgen_values import BOOL


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


class Generator(Nodes):

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
