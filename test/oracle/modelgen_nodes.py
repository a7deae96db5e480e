"""Random nodes of ONNX models: attributes, and operators of ONNX, of nobody, and with branches."""

from modelgen_values import Values

MAX_DEPTH = 3
WELL_KNOWN = (b"com.microsoft", b"ai.onnx.ml")  # domains that runtimes know without an import
UNARY = ("Relu", "Neg", "Abs", "Sigmoid", "Tanh", "Exp", "Floor", "Ceil", "Sqrt", "Reciprocal")


class Nodes(Values):
    """Bodies are made by `graph`, calls of functions by `call`: modelgen.Generator has both."""

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
