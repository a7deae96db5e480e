"""Loop and Scan against onnxruntime: what they carry, what they scan, and when they end. The emitted C
gives the bits of `qxc run`.
"""

import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.helper import make_node as node

from cmodel import CModel
from common import OracleCase, qxc, qxc_outputs, session

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(*values):
    """(name, type, shape); a shape of None is not stated."""
    return [helper.make_tensor_value_info(*v) for v in values]


def const(name, value, kind=np.float32):
    return numpy_helper.from_array(np.asarray(value, kind), name)


def graph(name, nodes, inputs, outputs, constants=()):
    return helper.make_graph(nodes, name, info(*inputs), info(*outputs), list(constants))


class Loops(OracleCase):
    def check_model(self, nodes, inputs, outputs, feeds, constants=(), opset=17, emit=True):
        made = helper.make_model(graph("g", nodes, inputs, outputs, constants), ir_version=8,
                                 opset_imports=[helper.make_opsetid("", opset)])
        onnx.checker.check_model(made, full_check=True)
        path = self.scratch / "m.onnx"
        onnx.save(made, path)
        runner = session(made)
        count = len(next(iter(feeds.values())))
        rows = [runner.run(None, {k: np.asarray(v[i]) for k, v in feeds.items()}) for i in range(count)]
        want = {o[0]: np.stack([r[k] for r in rows]) for k, o in enumerate(outputs)}
        flat = {i[0]: v.reshape(len(v), *i[2][1:]) if i[2][:1] == [1] else v for i, v in zip(inputs, feeds.values())}
        have = {k: v.reshape(want[k].shape) for k, v in qxc_outputs(path, flat, self.scratch).items()}
        self.assertEqual(set(have), set(want))
        for name in want:
            if want[name].dtype.kind == "f":
                np.testing.assert_allclose(have[name], want[name], rtol=1e-5, atol=1e-6, err_msg=name)
            else:
                np.testing.assert_array_equal(have[name], want[name], name)
        if emit:
            qxc(path, "-emit=c", "-no-sync", "-quiet", "-o", self.scratch / "m.c")
            compiled = CModel(self.scratch / "m.c", flags=("-O2", "-ffp-contract=off"))
            for i in range(count):
                results = compiled.run(*(np.asarray(v[i]).view("u1") if v.dtype == bool else v[i] for v in feeds.values()))
                for o, result in zip(outputs, results):
                    np.testing.assert_array_equal(result.view(f"u{result.itemsize}"),
                                                  have[o[0]][i].ravel().view(f"u{result.itemsize}"), o[0])
        return path, have

    def test_counted(self):
        """Scan outputs of states before and after they change, of the number, of what is outside."""
        body = graph("body", [node("Mul", ["s", "factor"], ["m"]), node("Add", ["m", "outer"], ["next"]),
                              node("Identity", ["cond"], ["go"]), node("Identity", ["i"], ["number"]), node("Identity", ["outer"], ["out"])],
                     [("i", I, []), ("cond", B, []), ("s", F, [3])],
                     [("go", B, []), ("next", F, [3]), ("s", F, [3]), ("next", F, [3]), ("number", I, []), ("out", F, [3])],
                     [const("factor", 0.5)])
        self.check_model([node("Neg", ["x"], ["outer"]),
                          node("Loop", ["trips", "", "x"], ["y", "before", "after", "numbers", "outside"], body=body)],
                         [("x", F, [3])],
                         [("y", F, [3]), ("before", F, [5, 3]), ("after", F, [5, 3]), ("numbers", I, [5]), ("outside", F, [5, 3])],
                         {"x": np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)}, [const("trips", 5, np.int64)])

    def test_states_change_places(self):
        """Fibonacci: each result is the other's next state; one state passes unchanged."""
        body = graph("body", [node("Add", ["a", "b"], ["sum"]), node("Identity", ["cond"], ["go"])],
                     [("i", I, []), ("cond", B, []), ("a", I, [2]), ("b", I, [2]), ("k", I, [2])],
                     [("go", B, []), ("b", I, [2]), ("sum", I, [2]), ("k", I, [2])])
        self.check_model([node("Loop", ["n", "", "a0", "b0", "b0"], ["y", "z", "w"], body=body)],
                         [("a0", I, [2]), ("b0", I, [2]), ("n", I, [])], [("y", I, [2]), ("z", I, [2]), ("w", I, [2])],
                         {"a0": np.array([[0, 1]] * 4), "b0": np.array([[1, 1]] * 4), "n": np.array([0, 1, 10, -3])})

    def test_condition(self):
        """Ends when the data say so, at once, or at the count."""
        body = graph("body", [node("Mul", ["s", "two"], ["next"]), node("ReduceSum", ["next"], ["sum"], keepdims=0),
                              node("Less", ["sum", "limit"], ["go"])],
                     [("i", I, []), ("cond", B, []), ("s", F, None)], [("go", B, []), ("next", F, None)], [const("two", 2)])
        self.check_model([node("Loop", ["n", "start", "x"], ["y"], body=body)],
                         [("x", F, [2]), ("limit", F, []), ("n", I, []), ("start", B, [])], [("y", F, [2])],
                         {"x": np.ones((5, 2), np.float32), "limit": np.float32([1, 100, 1e6, 1e6, 5]),
                          "n": np.array([9, 99, 5, 2**62, 7]), "start": np.array([True, True, True, True, False])})

    def test_branch_and_loop_inside(self):
        inner = graph("inner", [node("Add", ["t", "row"], ["u"]), node("Identity", ["c2"], ["g2"])],
                      [("j", I, []), ("c2", B, []), ("t", F, [2])], [("g2", B, []), ("u", F, [2]), ("u", F, [2])])
        then = graph("then", [node("Mul", ["v", "v"], ["square"])], [], [("square", F, [2])])
        other = graph("other", [node("Identity", ["s"], ["same"])], [], [("same", F, [2])])
        body = graph("body", [node("Gather", ["table", "i"], ["row"]),
                              node("Loop", ["three", "", "s"], ["v", "steps"], body=inner),
                              node("ReduceSum", ["v"], ["sum"], keepdims=0), node("Less", ["sum", "limit"], ["small"]),
                              node("If", ["small"], ["next"], then_branch=then, else_branch=other),
                              node("Identity", ["cond"], ["go"])],
                     [("i", I, []), ("cond", B, []), ("s", F, [2])], [("go", B, []), ("next", F, [2]), ("steps", F, [3, 2])])
        self.check_model([node("Loop", ["four", "yes", "x"], ["y", "all"], body=body)], [("x", F, [2])],
                         [("y", F, [2]), ("all", F, [4, 3, 2])],
                         {"x": np.random.default_rng(1).normal(size=(6, 2)).astype(np.float32)},
                         [const("table", np.arange(8).reshape(4, 2) / 8), const("three", 3, np.int64), const("four", 4, np.int64),
                          const("yes", True, np.bool_), const("limit", 2.5)])

    def test_scan(self):
        """Both directions, other axes, several states; a cell of a recurrent network."""
        rng = np.random.default_rng(2)
        body = graph("body", [node("Gemm", ["x_t", "w"], ["a"]), node("Gemm", ["h", "r", "a"], ["b"]), node("Tanh", ["b"], ["h_next"]),
                              node("Add", ["count", "back_t"], ["count_next"]), node("Concat", ["h_next", "count"], ["both"], axis=1),
                              node("Identity", ["h_next"], ["h_out"])],  # onnxruntime: a result once
                     [("h", F, [2, 4]), ("count", F, [2, 1]), ("x_t", F, [2, 3]), ("back_t", F, [2, 1])],
                     [("h_next", F, [2, 4]), ("count_next", F, [2, 1]), ("h_out", F, [2, 4]), ("both", F, [2, 5])],
                     [const("w", rng.normal(size=(3, 4))), const("r", rng.normal(size=(4, 4)))])
        self.check_model([node("Scan", ["h0", "count0", "x", "back"], ["h_end", "count_end", "hs", "pairs"], body=body, num_scan_inputs=2,
                               scan_input_axes=[1, 0], scan_input_directions=[0, 1], scan_output_axes=[0, -1],
                               scan_output_directions=[1, 0])],
                         [("h0", F, [2, 4]), ("count0", F, [2, 1]), ("x", F, [2, 7, 3]), ("back", F, [7, 2, 1])],
                         [("h_end", F, [2, 4]), ("count_end", F, [2, 1]), ("hs", F, [7, 2, 4]), ("pairs", F, [2, 5, 7])],
                         {n: rng.normal(size=(3, *s)).astype(np.float32) for n, s in
                          (("h0", (2, 4)), ("count0", (2, 1)), ("x", (2, 7, 3)), ("back", (7, 2, 1)))})

    def test_memory(self):
        """What lives across the end of an iteration keeps its memory: large values inside and outside."""
        rng = np.random.default_rng(3)
        body = graph("body", [node("Exp", ["s"], ["big"]), node("ReduceSum", ["big", "axes"], ["sum"], keepdims=1), node("Div", ["big", "sum"], ["d"]),
                              node("Mul", ["d", "later"], ["next"]), node("Identity", ["cond"], ["go"])],
                     [("i", I, []), ("cond", B, []), ("s", F, [64])], [("go", B, []), ("next", F, [64]), ("d", F, [64])],
                     [const("axes", [0], np.int64)])
        self.check_model([node("Abs", ["x"], ["later"]), node("Neg", ["x"], ["first"]),
                          node("Loop", ["n", "", "first"], ["end", "all"], body=body), node("Add", ["end", "later"], ["y"]),
                          node("ReduceSum", ["all", "axes0"], ["z"], keepdims=0)],
                         [("x", F, [64])], [("y", F, [64]), ("z", F, [64])], {"x": rng.normal(size=(3, 64)).astype(np.float32)},
                         [const("n", 6, np.int64), const("axes0", [0], np.int64)])

    def test_calibration(self):
        """Statistics are over all iterations; a body quantizes."""
        body = graph("body", [node("Gemm", ["s", "w"], ["g"]), node("Relu", ["g"], ["next"]), node("Identity", ["cond"], ["go"])],
                     [("i", I, []), ("cond", B, []), ("s", F, [1, 8])], [("go", B, []), ("next", F, [1, 8])],
                     [const("w", np.eye(8) * 2)])
        x = np.random.default_rng(4).uniform(-1, 1, (32, 8)).astype(np.float32)
        path, have = self.check_model([node("Loop", ["n", "", "x"], ["y"], body=body)], [("x", F, [1, 8])], [("y", F, [1, 8])],
                                      {"x": x.reshape(32, 1, 8)}, [const("n", 3, np.int64)])
        data, stats = self.scratch / "x.npz", self.scratch / "s.qir"
        np.savez(data, x=x)
        qxc(path, f"-calib={data}", "-form=float", "-o", stats)
        found = dict(line.strip()[6:].split(" <") for line in stats.read_text().splitlines() if line.startswith("      stat %"))
        for name, least, most in (("next", 0, 8), ("s", x.min(), 4), ("g", 2 * x.min(), 8)):
            low, high = (float(part.split("=")[1]) for part in found[name].split(", ")[:2])
            np.testing.assert_allclose((low, high), (least, most * x.max()), rtol=1e-6, err_msg=name)
        for form in ("qdq", "qop"):
            out = self.scratch / f"{form}.onnx"
            qxc(path, f"-calib={data}", f"-emit={form}", "-o", out)
            runner = session(out)
            got = np.stack([runner.run(None, {"x": v[None]})[0] for v in x])
            self.assertLess(np.abs(got - have["y"]).max(), 0.2)  # 4 roundings, doubled up to thrice
            again = qxc_outputs(out, {"x": x}, self.scratch)["y"].reshape(got.shape)
            np.testing.assert_allclose(again, got, atol=0.07)
        qxc(path, f"-calib={data}", "-emit=c", "-o", self.scratch / "q.c")

    def test_weights_handed_on(self):
        """A body that hands weights on, as Keras' recurrent networks do: quantized like what reads them outside, in any
        number of iterations, none included."""
        rng = np.random.default_rng(5)
        inner = graph("inner", [node("MatMul", ["t", "v2"], ["a2"]), node("Tanh", ["a2"], ["t_next"]), node("Identity", ["c2"], ["g2"])],
                      [("j", I, []), ("c2", B, []), ("t", F, [1, 128]), ("v2", F, [128, 128])],
                      [("g2", B, []), ("t_next", F, [1, 128]), ("v2", F, [128, 128])])
        body = graph("body", [node("MatMul", ["s", "w_in"], ["m"]), node("Add", ["m", "b_in"], ["a"]), node("Tanh", ["a"], ["h"]),
                              node("Loop", ["two", "", "h", "v_in"], ["next", "v_next"], body=inner),
                              node("Identity", ["cond"], ["go"]), node("Identity", ["w_in"], ["w_next"])],
                     [("i", I, []), ("cond", B, []), ("s", F, [1, 128]), ("w_in", F, [128, 128]), ("b_in", F, [128]), ("v_in", F, [128, 128])],
                     [("go", B, []), ("next", F, [1, 128]), ("w_next", F, [128, 128]), ("b_in", F, [128]), ("v_next", F, [128, 128])])
        x, trips = rng.normal(size=(6, 1, 128)).astype(np.float32), np.array([3, 1, 0, 2, 5, 3])
        path, have = self.check_model(
            [node("MatMul", ["x", "w"], ["first"]),
             node("Loop", ["trips", "", "first", "w", "b", "v"], ["last", "w_out", "b_out", "v_out"], body=body),
             node("MatMul", ["last", "w_out"], ["wide"]), node("Add", ["wide", "b_out"], ["y"])],
            [("x", F, [1, 128]), ("trips", I, [])], [("y", F, [1, 128]), ("b_out", F, [128])], {"x": x, "trips": trips},
            [const("w", rng.normal(size=(128, 128)) / 11), const("v", rng.normal(size=(128, 128)) / 11), const("b", rng.normal(size=128) / 11),
             const("two", 2, np.int64)])
        data, out = self.scratch / "x.npz", self.scratch / "out.onnx"
        np.savez(data, x=x, trips=trips)
        least = {"-weight-only": 35, "-dynamic": 32, f"-calib={data}": 27}  # dB
        for how, emit in ((h, e) for h in least for e in ("qdq", "qop")):
            with self.subTest(how.split("=")[0], emit=emit):
                qxc(path, how, f"-emit={emit}", "-o", out)
                self.assertLess(out.stat().st_size, path.stat().st_size / 2.5)
                floats = [t.name for t in onnx.load(out).graph.initializer if t.data_type == F and len(t.dims) == 2 and t.dims[0] == 128]
                self.assertEqual(floats, [])
                runner = session(out)
                rows = [runner.run(None, {"x": v, "trips": np.asarray(n)}) for v, n in zip(x, trips)]
                error = np.stack([r[0] for r in rows]).ravel() - have["y"].ravel()
                self.assertGreater(10 * np.log10((have["y"] ** 2).sum() / (error**2).sum()), least[how])
                for _, same in rows:
                    np.testing.assert_allclose(same, have["b_out"][0], atol=0.01)
        qxc(path, f"-calib={data}", "-emit=c", "-o", self.scratch / "q.c")

    def refused(self, words, nodes, inputs, outputs, constants=(), command=("run", "-random=1")):
        made = helper.make_model(graph("g", nodes, inputs, outputs, constants), ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
        path = self.scratch / "r.onnx"
        onnx.save(made, path)
        done = qxc(*command, path, ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(words, done.stderr)

    def to_c(self):
        return "-emit=c", "-o", self.scratch / "r.c"

    def test_refused(self):
        grow = graph("body", [node("Concat", ["s", "s"], ["next"], axis=0), node("Identity", ["cond"], ["go"])],
                     [("i", I, []), ("cond", B, []), ("s", F, None)], [("go", B, []), ("next", F, None)])
        self.refused("its shape from one iteration to the next", [node("Loop", ["n", "", "x"], ["y"], body=grow)],
                     [("x", F, [2])], [("y", F, None)], [const("n", 3, np.int64)], self.to_c())
        same = graph("body", [node("Neg", ["s"], ["next"]), node("Identity", ["cond"], ["go"])],
                     [("i", I, []), ("cond", B, []), ("s", F, [2])], [("go", B, []), ("next", F, [2]), ("next", F, [2])])
        self.refused("only a run tells how long 'z' is", [node("Loop", ["n", "", "x"], ["y", "z"], body=same)],
                     [("x", F, [2]), ("n", I, [])], [("y", F, [2]), ("z", F, None)], (), self.to_c())
        endless = graph("body", [node("Neg", ["s"], ["next"]), node("Equal", ["i", "i"], ["go"])],
                        [("i", I, []), ("cond", B, []), ("s", F, [2])], [("go", B, []), ("next", F, [2])])
        self.refused("did not end: 10000000 iterations", [node("Loop", ["", "", "x"], ["y"], body=endless)],
                     [("x", F, [2])], [("y", F, [2])])
        counted = graph("body", [node("Neg", ["s"], ["next"]), node("Identity", ["cond"], ["go"])],
                        [("i", I, []), ("cond", B, []), ("s", F, [2])], [("go", B, []), ("next", F, [2])])
        self.refused("it runs 2000000000 times", [node("Loop", ["n", "", "x"], ["y"], body=counted)],
                     [("x", F, [2])], [("y", F, [2])], [const("n", 2000000000, np.int64)])


if __name__ == "__main__":
    unittest.main()
