"""Models whose shapes depend on their data, against onnxruntime: operators that count (NonZero, Compress, Unique,
NonMaxSuppression), what reads their results, branches and loops whose values change their shapes."""

import subprocess
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.helper import make_node as node

from cmodel import CModel
from common import OracleCase, qxc, session

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
RNG = np.random.default_rng(7)


def info(*values):
    return [helper.make_tensor_value_info(*v) for v in values]


def const(name, value, kind=np.int64):
    return numpy_helper.from_array(np.asarray(value, kind), name)


def model(nodes, inputs, outputs, constants=(), opset=17):
    graph = helper.make_graph(nodes, "g", info(*inputs), info(*outputs), list(constants))
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])


def body(name, nodes, inputs, outputs, constants=()):
    return helper.make_graph(nodes, name, info(*inputs), info(*outputs), list(constants))


class OpenData(OracleCase):
    def check(self, made, *feeds):
        """Each feed alone gives the values and shapes that onnxruntime gives."""
        path, x, y = (self.scratch / n for n in ("m.onnx", "x.npz", "y.npz"))
        onnx.save(made, path)
        runner = session(made)
        for feed in feeds:
            want = dict(zip([o.name for o in made.graph.output], runner.run(None, feed)))
            np.savez(x, **feed)
            qxc("run", path, f"-input={x}", "-batch=none", "-quiet", "-o", y)
            have = dict(np.load(y))
            self.assertEqual({k: (v.shape, v.dtype) for k, v in have.items()},
                             {k: (v.shape, v.dtype) for k, v in want.items()})
            for name, value in want.items():
                np.testing.assert_allclose(have[name], value, rtol=1e-6, atol=1e-6, err_msg=name)
        return path

    def test_places_of_nonzero_elements_are_read_again(self):
        made = model([node("NonZero", ["x"], ["at"]), node("Transpose", ["at"], ["rows"]),
                      node("GatherND", ["x", "rows"], ["picked"]), node("ReduceSum", ["picked"], ["sum"]),
                      node("Shape", ["at"], ["shape"])],
                     [("x", F, [3, 4])], [("rows", I, None), ("picked", F, None), ("sum", F, None), ("shape", I, [2])])
        x = RNG.integers(-1, 2, (3, 4)).astype(np.float32)
        self.check(made, {"x": x}, {"x": np.zeros((3, 4), np.float32)}, {"x": np.full((3, 4), np.nan, np.float32)})

    def test_compress(self):
        for axis in (None, 0, -1):
            made = model([node("Compress", ["x", "c"], ["y"], **({} if axis is None else {"axis": axis})),
                          node("Neg", ["y"], ["z"])],
                         [("x", F, [3, 5]), ("c", B, [3])], [("z", F, None)])
            x = RNG.standard_normal((3, 5)).astype(np.float32)
            self.check(made, {"x": x, "c": np.array([1, 0, 1], bool)}, {"x": x, "c": np.zeros(3, bool)})

    def test_unique(self):
        for opts in ({}, {"axis": 0}, {"axis": 1}, {"sorted": 0}, {"axis": -1, "sorted": 0}):
            made = model([node("Unique", ["x"], ["y", "first", "which", "times"], **opts),
                          node("Mul", ["y", "y"], ["square"])],
                         [("x", F, [4, 6])],
                         [("square", F, None), ("y", F, None), ("first", I, None), ("which", I, None), ("times", I, None)])
            x = RNG.integers(0, 2, (4, 6)).astype(np.float32)
            self.check(made, {"x": x}, {"x": np.repeat(x[:, :1], 6, 1)}, {"x": np.repeat(x[:1], 4, 0)})

    def nms(self, batch, classes, boxes, **attrs):
        return model([node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["at"], **attrs),
                      node("Gather", ["at", "last"], ["index"], axis=1), node("Squeeze", ["index", "one"], ["flat"]),
                      node("Reshape", ["boxes", "rows"], ["all"]), node("Gather", ["all", "flat"], ["kept"])],
                     [("boxes", F, [batch, boxes, 4]), ("scores", F, [batch, classes, boxes])],
                     [("at", I, None), ("kept", F, None)],
                     [const("most", 20), const("overlap", 0.4, np.float32), const("least", 0.3, np.float32),
                      const("last", [2]), const("one", [1]), const("rows", [-1, 4])])

    def test_suppression(self):
        for batch, classes, boxes in ((1, 1, 50), (2, 3, 100)):
            centre, size = RNG.random((batch, boxes, 2)), RNG.random((batch, boxes, 2)) / 4
            scores = np.round(RNG.random((batch, classes, boxes)), 1).astype(np.float32)  # many are equal
            corners = np.concatenate([centre - size, centre + size], 2).astype(np.float32)
            corners[:, ::3] = corners[:, ::3][..., [2, 3, 0, 1]]  # in any order
            self.check(self.nms(batch, classes, boxes), {"boxes": corners, "scores": scores},
                       {"boxes": corners, "scores": 0 * scores})
            self.check(self.nms(batch, classes, boxes, center_point_box=1),
                       {"boxes": np.concatenate([centre, size], 2).astype(np.float32), "scores": scores})

    def test_a_branch_decides_the_shape(self):
        then = body("t", [node("Concat", ["x", "x"], ["a"], axis=0)], [], [("a", F, None)])
        other = body("e", [node("Slice", ["x", "zero", "two"], ["b"])], [], [("b", F, None)],
                     [const("zero", [0]), const("two", [2])])
        made = model([node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "nought"], ["c"]),
                      node("If", ["c"], ["y"], then_branch=then, else_branch=other), node("Abs", ["y"], ["z"])],
                     [("x", F, [3])], [("z", F, None)], [const("nought", 0, np.float32)])
        self.check(made, {"x": np.array([1, 2, 3], np.float32)}, {"x": np.array([-1, -2, -3], np.float32)})

    def growing(self, trips, scanned):
        """Appends to a list as long as its sum stays below a limit, and keeps each sum."""
        inner = body("b", [node("Concat", ["list", "x"], ["longer"], axis=0), node("ReduceSum", ["longer"], ["sum"], keepdims=0),
                           node("Less", ["sum", "limit"], ["again"])] + ([node("Identity", ["sum"], ["kept"])] if scanned else []),
                     [("i", I, []), ("c", B, []), ("list", F, None)],
                     [("again", B, []), ("longer", F, None)] + ([("kept", F, [])] if scanned else []))
        return model([node("Loop", ["trips" if trips else "", "go", "x"], ["y", "sums"] if scanned else ["y"], body=inner)],
                     [("x", F, [2]), ("limit", F, [])], [("y", F, None)] + ([("sums", F, None)] if scanned else []),
                     [const("go", True, bool)] + ([const("trips", 5)] if trips else []))

    def test_a_carried_value_grows(self):
        x = np.array([1, 2], np.float32)
        for trips in (False, True):
            for scanned in (False, True):
                self.check(self.growing(trips, scanned), {"x": x, "limit": np.array(10, np.float32)},
                           {"x": x, "limit": np.array(-1, np.float32)})

    def test_loops_within_loops(self):
        inner = body("inner", [node("Concat", ["l", "l"], ["l2"], axis=0), node("Identity", ["ci"], ["co"])],
                     [("j", I, []), ("ci", B, []), ("l", F, None)], [("co", B, []), ("l2", F, None)])
        outer = body("outer", [node("Add", ["i", "one"], ["n"]), node("Loop", ["n", "c", "x"], ["grown"], body=inner),
                               node("ReduceSum", ["grown"], ["s"], keepdims=0), node("Identity", ["c"], ["d"]),
                               node("Add", ["acc", "s"], ["acc2"])],
                     [("i", I, []), ("c", B, []), ("acc", F, [])], [("d", B, []), ("acc2", F, []), ("s", F, [])],
                     [const("one", 1)])
        made = model([node("Loop", ["three", "go", "start"], ["total", "each"], body=outer)],
                     [("x", F, [2])], [("total", F, None), ("each", F, None)],
                     [const("three", 3), const("go", True, bool), const("start", 0, np.float32)])
        self.check(made, {"x": np.array([1, 2], np.float32)})

    def test_scan_of_what_is_counted(self):
        inner = body("b", [node("Add", ["s", "e"], ["s2"]), node("Mul", ["s2", "e"], ["p"])],
                     [("s", F, []), ("e", F, [])], [("s2", F, []), ("p", F, [])])
        for direction in (0, 1):
            made = model([node("Compress", ["x", "c"], ["some"], axis=0),
                          node("Scan", ["start", "some"], ["sum", "parts"], body=inner, num_scan_inputs=1,
                               scan_input_directions=[direction], scan_output_directions=[direction])],
                         [("x", F, [4]), ("c", B, [4])], [("sum", F, []), ("parts", F, None)],
                         [const("start", 0, np.float32)])
            x = np.arange(1, 5, dtype=np.float32)
            self.check(made, {"x": x, "c": np.array([1, 0, 1, 1], bool)})

    def test_samples_of_several_shapes(self):
        path, x, y = (self.scratch / n for n in ("several.onnx", "x.npz", "several.npz"))
        onnx.save(model([node("NonZero", ["x"], ["y"])], [("x", F, [1, 3])], [("y", I, None)]), path)
        np.savez(x, x=np.array([[1, 0, 1], [0, 2, 0]], np.float32))
        run = subprocess.run([qxc.__globals__["QXC"], "run", path, f"-input={x}", "-o", y], capture_output=True, text=True,
                             check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("'y' has another shape for sample 2 than for those before", run.stderr)
        self.assertFalse(y.exists())
        self.assertEqual(qxc("run", path, f"-input={x}").stdout,
                         "%y : int64[2,2] = [0, 0, 0, 2]\n%y : int64[2,1] = [0, 1]\n")
        np.savez(x, x=np.array([[1, 0, 1], [0, 2, 3]], np.float32))
        qxc("run", path, f"-input={x}", "-o", y)
        np.testing.assert_array_equal(np.load(y)["y"], [[[0, 0], [0, 2]], [[0, 0], [1, 2]]])

    def test_c_says_how_many_there_are(self):
        made = self.nms(2, 3, 40)
        del made.graph.node[1:], made.graph.output[1:]
        path = self.scratch / "m.onnx"
        onnx.save(made, path)
        qxc(path, "-emit=c", "-no-sync", "-quiet", "-o", self.scratch / "m.c")
        compiled = CModel(self.scratch / "m.c", flags=("-O2", "-ffp-contract=off"))
        boxes = RNG.random((2, 40, 4)).astype(np.float32)
        scores = RNG.random((2, 3, 40)).astype(np.float32)
        want = session(made).run(None, {"boxes": boxes, "scores": scores})[0]
        at, count = compiled.run(boxes, scores)
        self.assertEqual(count[0], len(want))
        np.testing.assert_array_equal(at.reshape(-1, 3)[:len(want)], want)
        self.assertFalse(at.reshape(-1, 3)[len(want):].any())


if __name__ == "__main__":
    unittest.main()
