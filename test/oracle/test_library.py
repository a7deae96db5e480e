"""The functions of lib/ prove themselves: every spelling of a marked function is recognised, and the operator's kernel
computes what the chain does; one step away from a spelling whatever is recognised still computes the same."""

import itertools
import re

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper

from common import OracleCase, ROOT, qxc, qxc_outputs, session, talk

HEAD = re.compile(r"^func (?P<name>\S+) (?:<(?P<attrs>[^>]*)> )?\((?P<ins>[^)]*)\) -> \((?P<outs>[^)]*)\)"
                  r"(?P<mark> meta <\"recognise\"=\"yes\">)? \{$")
LINE = re.compile(r"^  (?P<outs>%[^=]*?)(?: : \S+)? = (?P<op>[\w:]+)\((?P<ins>[^)]*)\)(?: <(?P<attrs>.*)>)?$")
BOUND = 2e-5  # of the largest number: kernels work in double, chains in float
SHAPES = {"plane": "[2,8,4,5]", "line": "[2,8,6]", "volume": "[2,3,2,4,5]",  # overloads that are about these; else rows
          "deviation": "[2,8,3,4]"}
VALUES = {"alpha": (1.702, 0.75), "epsilon": (0.001, 1e-5)}
FREE = {v for values in VALUES.values() for v in values}  # with another number these chains are the operator, too


def split(text):
    """At commas, but not those within brackets."""
    return [part.strip() for part in re.split(r",(?![^\[]*\])", text) if part.strip()] if text else []


class Function:
    def __init__(self, head):
        parts = head["name"].removeprefix("::").split("::")
        self.overload = parts.pop() if head["name"].startswith("::") or len(parts) > 2 else ""
        self.name = "::".join(parts)
        self.attrs = dict(part.partition("=")[::2] for part in split(head["attrs"]))
        self.ins, self.outs, self.marked = split(head["ins"]), split(head["outs"]), bool(head["mark"])
        self.lines = []


def library():
    functions = []
    for path in sorted((ROOT / "lib").glob("*.qir")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if HEAD.match(line):
                functions.append(Function(HEAD.match(line)))
            elif LINE.match(line):
                functions[-1].lines.append(LINE.match(line))
    return functions


class Spellings:
    """Chains of operators: a list of (result, op, operands, attributes); Constants hold their text."""

    def __init__(self, functions):
        self.helpers = {}
        for f in functions:
            if f.name.startswith("qxc::") and not f.marked:
                self.helpers.setdefault(f.name, []).append(f)
        self.count = itertools.count()

    def of(self, f, ins, attrs):
        """Every chain that the function stands for, as (nodes, results)."""
        chains = [([], dict(zip(f.ins, ins)))]
        for line in f.lines:
            outs, op, operands = split(line["outs"]), line["op"], split(line["ins"])
            text = re.sub(r"\$(\w+)(?::\w+)?", lambda m: attrs[m[1]], line["attrs"] or "")
            made = []
            for nodes, values in chains:
                given = [values.get(v, v) for v in operands]
                if op in self.helpers:
                    inner_attrs = dict(part.partition("=")[::2] for part in split(text))
                    for inner in self.helpers[op]:
                        if len(inner.ins) < len(given):
                            continue
                        for more, results in self.of(inner, given, {**inner.attrs, **inner_attrs}):
                            made.append((nodes + more, {**values, **dict(zip(outs, results))}))
                else:
                    name = f"%v{next(self.count)}"
                    made.append((nodes + [(name, op, given, text)], {**values, outs[0]: name}))
            chains = made
        return [(nodes, [values[v] for v in f.outs if v in values]) for nodes, values in chains]


def renamed(nodes, prefix):
    """The chain again, under other names."""
    own = {node[0]: f"%{prefix}{i}" for i, node in enumerate(nodes)}
    return [(own[out], op, [own.get(v, v) for v in ins], attrs) for out, op, ins, attrs in nodes]


def text_of(chains, inputs, opset):
    """A model of many chains, each (nodes, further results)."""
    results = [v for nodes, more in chains for v in (nodes[-1][0], *more)]
    lines = ["qir 1", f'import "" {opset}',
             f"graph @g ({', '.join(f'{k} : float{v}' for k, v in inputs.items())}) -> ({', '.join(results)}) {{"]
    for nodes, _ in chains:
        lines += [f"  {out} = {op}({', '.join(ins)})" + (f" <{attrs}>" if attrs else "") for out, op, ins, attrs in nodes]
    return "\n".join([*lines, "}", ""])


def steps_away(nodes):
    """Chains with one number changed, one order changed, one operator changed, or one inner value yielded: nodes, what is
    yielded, and whether the chain is the operator all the same, with another attribute."""
    for i, (out, op, ins, attrs) in enumerate(nodes):
        if op == "Constant" and "value_float=" in attrs:
            number = float(attrs.partition("=")[2])
            other = number + abs(number) / 4 + 0.125
            yield nodes[:i] + [(out, op, ins, f"value_float={other}")] + nodes[i + 1:], [], number in FREE
        if op in ("Sub", "Div"):
            yield nodes[:i] + [(out, op, ins[::-1], attrs)] + nodes[i + 1:], [], False
        other = {"Add": "Sub", "Mul": "Sub", "Tanh": "Sigmoid", "Sigmoid": "Tanh", "Erf": "Tanh"}.get(op)
        if other:
            yield nodes[:i] + [(out, other, ins, attrs)] + nodes[i + 1:], [], False
        if i + 1 < len(nodes) and op != "Constant":
            yield nodes, [out], False


class Library(OracleCase):
    def setUp(self):
        super().setUp()
        self.inputs = {"%x": "[2,3,16]", "%scale": "[16]", "%bias": "[16]", "%scale_two": "[3,16]", "%bias_two": "[3,16]",
                       "%scale_three": "[2,3,16]", "%bias_three": "[2,3,16]",
                       **{f"%{k}": v for k, v in SHAPES.items()}}
        rng = np.random.default_rng(7)
        self.data = {}
        for name, shape in self.inputs.items():
            dims = [int(d) for d in shape.strip("[]").split(",")]
            self.data[name[1:]] = rng.uniform(-6, 6, dims).astype(np.float32)
        self.data["x"].flat[:8] = [0, -0.0, 20, -20, 3, -3, 1e-30, 6]

    def compute(self, folder, path):
        np.savez(folder / "data.npz", **{k: v[None] for k, v in self.data.items()})
        qxc("run", path, f"-input={folder / 'data.npz'}", "-o", folder / "out.npz", "-quiet", "-batch=none")
        with np.load(folder / "out.npz") as out:
            return {k: out[k] for k in out.files}

    def compare(self, folder, chains, opset):
        """The text of what is recognised in the chains; it computes what they do."""
        plain, known = folder / "plain.qir", folder / "known.qir"
        plain.write_text(text_of(chains, self.inputs, opset), encoding="utf-8")
        qxc(plain, "-passes=recognise", "-o", known, "-quiet")
        want, has = self.compute(folder, plain), self.compute(folder, known)
        for name, value in want.items():
            both = np.isfinite(value) & np.isfinite(has[name])
            scale = max(1, np.abs(value[both]).max(initial=0))
            self.assertLessEqual(np.abs(value - has[name])[both].max(initial=0), BOUND * scale, name)
        return known.read_text(encoding="utf-8")

    def spellings(self):
        functions = library()
        made = Spellings(functions)
        for f in functions:
            if not f.marked:
                continue
            own = SHAPES.get(f.overload)
            kind = f.overload.partition("_")[0]
            ins = [f"%{f.overload}" if own else f"{v}_{kind}" if f"{v}_{kind}" in self.inputs else v for v in f.ins]
            for k in range(2 if any(a in VALUES for a in f.attrs) else 1):
                attrs = {a: str(VALUES[a][k]) if a in VALUES else v for a, v in f.attrs.items()}
                for nodes, _ in made.of(f, ins, attrs):
                    yield f, nodes

    def test_spellings(self):
        folder, opset = self.scratch, 21
        chains = [(f, renamed(nodes, f"c{i}_")) for i, (f, nodes) in enumerate(self.spellings())]
        text = self.compare(folder, [(nodes, []) for _, nodes in chains], opset)
        made = {"qxc::StandardRows": "LayerNormalization", "qxc::StandardPlanes": "InstanceNormalization", "qxc::PooledRows": "Flatten",
                "qxc::StandardChannels": "Transpose"}
        known = 0
        for f, nodes in chains:
            with self.subTest(function=f.name, overload=f.overload):
                line = re.search(rf"^  {nodes[-1][0]} : .*?= ([\w:]+)\(", text, re.M)
                self.assertEqual(line[1].split("::")[-1], made.get(f.name, f.name))
                known += 1
        overloads = len({(f.name, f.overload) for f, _ in chains})
        talk(f"library: {known} of {len(chains)} instances of {overloads} functions are recognised")
        self.assertGreater(len(chains), 100)

    def test_near_misses(self):
        folder, opset = self.scratch, 21
        seen, near = {}, []
        for f, nodes in self.spellings():
            seen[f.name, f.overload] = seen.get((f.name, f.overload), 0) + 1
            if seen[f.name, f.overload] in (1, 2, 5):
                near += [(f, *step) for step in steps_away(nodes)]
        chains = []
        for i, (f, nodes, more, _) in enumerate(near):
            again = renamed(nodes, f"n{i}_")
            own = {old[0]: new[0] for old, new in zip(nodes, again)}
            chains.append((f, again, [own[v] for v in more]))
        text = self.compare(folder, [(nodes, more) for _, nodes, more in chains], opset)
        taken = 0
        for (f, nodes, _), step in zip(chains, near):
            line = re.search(rf"^  {nodes[-1][0]} : .*?= ([\w:]+)\(", text, re.M)
            is_operator = line[1].split("::")[-1] == f.name and len(nodes) > 1 and nodes[-1][1] != f.name
            self.assertLessEqual(is_operator, step[3], (f.name, f.overload, nodes))
            taken += is_operator
        talk(f"library: {len(chains)} near misses, {taken} of them the operator with another attribute; all compute the same")
        self.assertGreater(len(chains), 200)

    def test_mean_variance(self):
        """It runs as its body does, against onnxruntime, and over planes and over channels it is an InstanceNormalization."""
        x = np.random.default_rng(3).standard_normal((2, 3, 4, 5)).astype(np.float32)
        path, known = self.scratch / "mvn.onnx", self.scratch / "mvn.qir"
        shape = helper.make_tensor_value_info("x", T.FLOAT, x.shape), helper.make_tensor_value_info("y", T.FLOAT, x.shape)
        for axes, opset in itertools.product((None, [2, 3], [1], [0, 1, 2, 3]), (9, 13, 21)):
            with self.subTest(axes=axes, opset=opset):
                node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], **({"axes": axes} if axes else {}))
                graph = helper.make_graph([node], "g", shape[:1], shape[1:])
                onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
                want = session(path).run(None, {"x": x})[0]
                qxc(path, "-passes=inline-functions,recognise", "-o", known, "-quiet")
                self.assertEqual("InstanceNormalization" in known.read_text(encoding="utf-8"), axes in (None, [2, 3]))
                for file in (path, known):
                    got = qxc_outputs(file, {"x": x[None]}, self.scratch, "-batch=none")["y"]
                    np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-5, atol=1e-5)

    def test_bodies_run(self):
        """What has no kernel runs as its body does: against onnxruntime."""
        rng = np.random.default_rng(3)
        data = {"x": rng.standard_normal((4, 5, 3)).astype(np.float32), "l": rng.integers(0, 5, (4, 3))}
        path = self.scratch / "loss.onnx"
        np.savez(self.scratch / "loss.npz", **{k: v[None] for k, v in data.items()})
        for op, how, opset in itertools.product(("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"),
                                                (None, "mean", "sum", "none"), (13, 21)):
            with self.subTest(op=op, reduction=how, opset=opset):
                node = helper.make_node(op, ["x", "l"], ["y"], **({"reduction": how} if how else {}))
                graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", T.FLOAT, [4, 5, 3]),
                                                        helper.make_tensor_value_info("l", T.INT64, [4, 3])],
                                          [helper.make_tensor_value_info("y", T.FLOAT, [4, 3] if how == "none" else [])])
                onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
                want = session(path).run(None, data)[0]
                qxc("run", path, f"-input={self.scratch / 'loss.npz'}", "-o", self.scratch / "y.npz", "-quiet", "-batch=none")
                with np.load(self.scratch / "y.npz") as out:
                    np.testing.assert_allclose(out["y"].reshape(want.shape), want, rtol=1e-6, atol=1e-6)
