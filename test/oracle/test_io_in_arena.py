"""Emitted C with -io-in-arena: the bits of C whose inputs and outputs are the caller's, in less memory together."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

from cmodel import CModel
from common import TRAINED_MODELS, OracleCase, for_each, qxc

rng = np.random.default_rng(216)
FLOAT = TensorProto.FLOAT


def ports():
    """An input that is an output as well, one that nobody reads, a constant output, one that two results come from."""
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Relu", ["a"], ["y"]), helper.make_node("Add", ["y", "b"], ["z"]),
             helper.make_node("Identity", ["b"], ["w"]), helper.make_node("Mul", ["z", "k"], ["v"]),
             helper.make_node("Identity", ["k"], ["u"])]
    graph = helper.make_graph(
        nodes, "g", [value(n, FLOAT, [3, 5]) for n in ("a", "b", "unread")],
        [value(n, FLOAT, [3, 5]) for n in ("y", "w", "v")] + [value("u", FLOAT, [5])],
        [numpy_helper.from_array(np.arange(5, dtype=np.float32), "k")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


MODELS = ("cnn", "unet", "vit", "lstm", "charlm")
FORMS = {"int8": (), "integers": ("-integer-only",), "float": ("-keep=*",)}
CASES = {f"{model} {form}": (model, form) for model in MODELS for form in FORMS}


class IoInArena(OracleCase):
    def both(self, model, name, *options):
        programs = []
        for more in ((), ("-io-in-arena",)):
            source = self.scratch / f"{name}{len(more)}.c"
            qxc(model, "-emit=c", "-name=t", "-quiet", "-o", source, *options, *more)
            programs.append(CModel(source))
        return programs

    def check(self, apart, inside):
        """Twice: a run writes over the inputs, so that all of them are filled anew."""
        for _ in range(2):
            data = [rng.integers(0, 30, count).astype(kind) if np.dtype(kind).kind in "iu"
                    else rng.standard_normal(count).astype(kind) for _, kind, count in apart.inputs]
            for want, got in zip(apart.run(*data), inside.run(*data), strict=True):
                self.assertEqual(want.tobytes(), got.tobytes())

    @for_each(*CASES)
    def test_trained(self, case):
        model, form = CASES[case]
        apart, inside = self.both(TRAINED_MODELS / f"{model}.onnx", f"{model}-{form}",
                                  f"-calib={TRAINED_MODELS / model}.calib.npz", *FORMS[form])
        self.check(apart, inside)
        outside = sum(r.nbytes for r in apart.results)
        outside += sum(count * np.dtype(kind).itemsize for _, kind, count in apart.inputs)
        self.assertLessEqual(inside.arena_size, apart.arena_size + outside + 16 * (len(inside.ports) + 1))

    def test_ports(self):
        path = self.scratch / "ports.onnx"
        save(ports(), path)
        apart, inside = self.both(path, "ports")
        self.assertEqual(7, len(inside.ports))
        self.check(apart, inside)

    @for_each("kws", "ic", "vww")
    def test_inputs_cost_nothing(self, name):
        """The input of these is no larger than what is alive later, when nobody needs it any more."""
        path = self.shared_model(f"{name}_int8_qdq.onnx")
        apart, inside = self.both(path, name, "-integer-only")
        self.check(apart, inside)
        self.assertEqual(apart.arena_size, inside.arena_size)
