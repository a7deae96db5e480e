"""Eight times the text takes about eight times the time: reading, checking and printing .qir look at
nothing once for each of as many others. Where memory would grow before time does, a limit tells."""

import resource
import unittest

import onnx
from onnx import TensorProto, helper

from common import OracleCase, for_each, qxc

TIMES, BOUND, LEAST = 8, 24, 0.02
HEAD = 'qir 1\nimport "" 21\nmodel <ir_version=10>\n'


def graph(*lines, inputs="%x : float[4]", output="%y"):
    return HEAD + f"graph @g ({inputs}) -> ({output}) {{\n" + "\n".join(lines) + "\n}\n"


def same_quant_names(n):
    """Bodies, each with a quantization of two scales by the name of its value, all the same."""
    body = ("graph () -> (%f) {{\nconst %w : int8q<[0.5, 1.{0:05d}], [0, 0], 0>[2] = [1, 2]\n"
            "%f : float[2] = qxc::dequantize(%w)\n}}")
    lines = [f"%y{i} = If(%c) <then_branch={body.format(i)}, else_branch={body.format(i + n)}>"
             for i in range(n)]
    return graph(*lines, inputs="%c : bool[]", output="%y0")


def waiting_constants(n):
    """A constant that waits for the last of many nodes, beside as many that do not."""
    lines = ["const %w : int8q<0.5, 0>[4] = [1, 2, 3, 4]"]
    lines += [f"const %k{i} : float[] = [1.0]" for i in range(n)]
    lines += [f"%y{i} : float[4] = Relu(%{f'y{i - 1}' if i else 'x'})" for i in range(n)]
    lines += [f"%q : int8q<0.5, 0>[4] = qxc::quantize(%y{n - 1})",
              "const %b : acc<%q, %w>[4] = [1, 2, 3, 4]"]
    return graph(*lines, output=f"%y{n - 1}")


def many_imports(n):
    lines = [f"%y{i} = d{i}::F(%x)" for i in range(n)]
    head, body = graph(*lines, output="%y0").split("model", 1)
    return head + "".join(f'import "d{i}" 1\n' for i in range(n)) + "model" + body


def spelling_lines(n):
    lines = ["%y : uint8q<0.5, 3>[4] = qxc::quantize(%x)"]
    lines += [f'onnx %y = DequantizeLinear name "n{i}"' for i in range(n)]
    return graph(*lines)


def closing_braces(n):
    """On one line, behind a mistake: each is looked at for the body that it may close."""
    return graph(f"  %y = = Relu(%x) {'} ' * n}")


TEXTS = {
    "closing braces": (closing_braces, 50000),
    "quantizations of one name": (same_quant_names, 750),
    "constants that wait": (waiting_constants, 10000),
    "imports": (many_imports, 2500),
    "onnx lines": (spelling_lines, 7500),
}


def references(n):
    names = [f"attribute_with_a_long_name_{i}" for i in range(n)]
    nodes = [f"%y{i} = Custom(%x) <a=${name}>" for i, name in enumerate(names)]
    return (HEAD + 'import "d" 1\n'
            + f"func d::F <{', '.join(names)}> (%x) -> (%y0) {{\nimport \"\" 21\n" + "\n".join(nodes)
            + "\n}\n" + graph("%y = d::F(%x)").removeprefix(HEAD))


def wrong_names(n):
    """Bodies, each with a name that is not there."""
    body = "graph () -> (%f) {\n%f : float[4] = Relu(%wrong)\n}"
    lines = [f"%y{i} = If(%c) <then_branch={body}, else_branch={body}>" for i in range(n)]
    return graph(*lines, inputs="%c : bool[]", output="%y0")


def unknown_attributes(n):
    """Attributes that a function with many does not have."""
    formals, given = ([f"{kind}{i}" for i in range(n)] for kind in ("formal", "given"))
    attrs = ", ".join(f"{name}=1" for name in given)
    return (HEAD + 'import "d" 1\n'
            + f"func d::F <{', '.join(formals)}> (%x) -> (%y) {{\nimport \"\" 21\n%y = Relu(%x)\n}}\n"
            + graph(f"%y = d::F(%x) <{attrs}>").removeprefix(HEAD))


def unknown_functions(n):
    """Operators that are none of as many functions."""
    functions = [f'func d::F{i} (%x) -> (%y) {{\nimport "" 21\n%y = Relu(%x)\n}}\n' for i in range(n)]
    lines = [f"%y{i} = d::G{i}(%x)" for i in range(n)]
    return (HEAD + 'import "d" 1\n' + "".join(functions)
            + graph(*lines, output="%y0").removeprefix(HEAD))


LARGE = {
    "references to attributes": (references, 8000, 0),
    "wrong names": (wrong_names, 2000, 1),
    "unknown attributes": (unknown_attributes, 6000, 0),
    "unknown functions": (unknown_functions, 4000, 0),
}


class GrowthOfText(OracleCase):
    def seconds(self, model, n):
        """CPU time of the better of two runs."""
        path = self.scratch / f"{n}.qir"
        path.write_text(model(n))
        times = []
        for _ in range(2):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            qxc(path, "-quiet", "-no-sync", "-o", self.scratch / "out.qir", ok=model is not closing_braces)
            times.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        return min(times)

    @for_each(*TEXTS)
    def test_time(self, name):
        model, n = TEXTS[name]
        few, many = self.seconds(model, n), self.seconds(model, TIMES * n)
        self.assertLess(many / max(few, LEAST), BOUND, f"{few:.3f} s, then {many:.3f} s")

    @for_each(*LARGE)
    def test_memory(self, name):
        model, n, errors = LARGE[name]
        path = self.scratch / "large.qir"
        path.write_text(model(n))
        done = qxc(path, "-max-memory=100", "-no-sync", "-o", self.scratch / "out.qir", ok=False)
        self.assertEqual(done.returncode, errors, done.stderr[:2000])
        self.assertNotIn("more memory", done.stderr)

    def test_many_inputs(self):
        """Each of the inputs of one file takes no more than itself, and keeps its line numbers."""
        n = 8000
        path = self.scratch / "inputs.qir"
        text = "\n// -----\n".join(["qir 1\ngraph @g () -> () {\n}"] * n) + "\n"
        path.write_text(text)
        qxc("fmt", "-max-memory=2", "-no-sync", path)
        self.assertEqual(path.read_text(), text)
        path.write_text(text + "// -----\nqir 1\n")
        done = qxc(path, "-split-input-file", ok=False)
        self.assertIn(f":{4 * n + 2}:1: error: the file has no graph", done.stderr)

    def test_repeated_output(self):
        """An output with long documentation, and its value as an output again and again."""
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4]) for _ in range(500)]
        outputs[0].doc_string = "long " * 200_000
        g = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], outputs)
        path = self.scratch / "repeated.onnx"
        onnx.save(helper.make_model(g), path)
        qxc(path, "-quiet", "-max-memory=100", "-no-sync", "-o", self.scratch / "out.qir")


if __name__ == "__main__":
    unittest.main()
