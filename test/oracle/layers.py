"""Layer by layer: each layer of a reference model is fed the values that qxc computed.

`Layers` cuts the reference at every value that qxc computed as well, with the same element type. What lies between two cuts is a layer; one onnxruntime session runs them all
side by side, so that an error in one does not reach the next.
"""

import numpy as np
import onnx

from common import computed_names, data_inputs, feed, float_excess, session, with_outputs

CUT = "__cut"
CONVERSIONS = ("QuantizeLinear", "DequantizeLinear")
ROUNDS_ITSELF = ("Add", "AveragePool", "Softmax", "Sigmoid", "QLinearAdd", "QLinearAveragePool",
                 "QLinearSoftmax", "QLinearSigmoid")


class Layers:
    def __init__(self, model, arrays, values):
        """values: what qxc computed from `arrays` for a model with the same names."""
        self.model, self.arrays, self.values = model, arrays, values
        self.graph = model.graph
        self.maker = {o: n for n in self.graph.node for o in n.output}
        first = self.first_sample()
        self.mine = self.names_of_qxc(first)
        self.known = set(self.mine)
        self.shapes = {name: first[name].shape for name in self.known}
        self.kinds = {name: first[name].dtype for name in self.known}

    def first_sample(self):
        names = computed_names(self.graph)
        runner = session(with_outputs(self.model, names))
        return dict(zip(names, runner.run(names, feed(self.model, self.arrays, 0))))

    def names_of_qxc(self, first):
        """{value: its name in qxc}. What a QuantizeLinear makes of %x, qxc may call %x."""
        mine = {name: name for name, value in first.items() if self.same_kind(name, value)}
        for node in self.graph.node:
            if node.op_type == "QuantizeLinear" and node.output[0] not in mine:
                if self.same_kind(node.input[0], first.get(node.output[0])):
                    mine[node.output[0]] = node.input[0]
        return mine

    def same_kind(self, name, value):
        if name not in self.values.files or value is None:
            return False
        mine = self.values[name]
        return mine.dtype == value.dtype and mine.size == value.size * len(mine)

    def cone(self, name):
        """The nodes between a value and the cuts before it."""
        found, todo = [], [name]
        while todo:
            node = self.maker.get(todo.pop())
            if node is None or any(node is f for f in found):
                continue
            found.append(node)
            todo += [i for i in node.input if i not in self.known]
        return found

    def uncovered(self):
        """Operators that no layer contains, conversions aside."""
        covered = {id(n) for name in self.known for n in self.cone(name)}
        live = set(computed_names(self.graph))
        return [f"{n.op_type} -> {n.output[0]}" for n in self.graph.node
                if id(n) not in covered and n.op_type not in CONVERSIONS and n.output[0] in live]

    def cut_model(self):
        cut = onnx.ModelProto()
        cut.CopyFrom(self.model)
        for node in cut.graph.node:
            for i, name in enumerate(node.output):
                if name in self.known:
                    node.output[i] = name + CUT
        used = {i for n in cut.graph.node for i in n.input}
        del cut.graph.output[:]
        for name in sorted(self.known):
            cut.graph.output.append(onnx.ValueInfoProto(name=name + CUT))
            if name in used:
                cut.graph.input.append(onnx.helper.make_tensor_value_info(
                    name, onnx.helper.np_dtype_to_tensor_dtype(self.kinds[name]),
                    self.shapes[name]))
        # Shapes that were inferred for the values as they were called before.
        del cut.graph.value_info[:]
        return cut

    def run(self):
        """{value: (what onnxruntime's layer gives, what qxc computed)}, both [samples, ...]."""
        cut = self.cut_model()
        runner = session(cut)
        names = [o.name for o in runner.get_outputs()]
        data = {i.name for i in data_inputs(cut.graph)}
        fed = [n for n in self.known if n in data]
        count = len(next(iter(self.arrays.values())))
        mine = {name: self.values[of] for name, of in self.mine.items()}
        rows = []
        for k in range(count):
            feeds = feed(self.model, self.arrays, k)
            for name in fed:
                feeds[name] = mine[name][k].reshape(self.shapes[name])
            rows.append(runner.run(names, feeds))
        result = {}
        for i, name in enumerate(names):
            reference = np.stack([row[i] for row in rows])
            name = name.removesuffix(CUT)
            result[name] = reference, mine[name].reshape(reference.shape)
        return result

    def steps_allowed(self, name, exact):
        """Integers may differ by so many steps. `exact`: the reference is in QOperator form."""
        if not exact:
            return 1
        ops = {n.op_type for n in self.cone(name)}
        return 1 if ops & set(ROUNDS_ITSELF) or "DequantizeLinear" in ops else 0

    def check(self, exact):
        """Returns (complaints, table of operators: layers, elements, differing ones)."""
        complaints, table = [], {}
        for name, (want, got) in self.run().items():
            cone = self.cone(name)
            ops = "+".join(dict.fromkeys(
                n.op_type for n in reversed(cone) if n.op_type not in CONVERSIONS)) or "Quantize"
            if want.dtype.kind == "f":
                excess = float_excess(got, want)
                if excess > 0:
                    complaints.append(f"{name} ({ops}): {excess:.3g} beyond the float bound")
                continue
            steps = np.abs(want.astype(np.int64) - got.astype(np.int64))
            row = table.setdefault(ops, [0, 0, 0, 0])
            row[0] += 1
            row[1] += steps.size
            row[2] += int(np.count_nonzero(steps))
            row[3] = max(row[3], int(steps.max(initial=0)))
            allowed = self.steps_allowed(name, exact)
            if steps.max(initial=0) > allowed:
                complaints.append(
                    f"{name} ({ops}): {int(steps.max())} steps where {allowed} are allowed, "
                    f"{np.count_nonzero(steps > allowed)} of {steps.size} elements")
        return complaints, table
