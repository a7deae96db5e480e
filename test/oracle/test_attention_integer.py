"""com.microsoft's Attention on integers: its projection and products, one by one, where integers are asked for everywhere."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cmodel import CModel
from common import OracleCase, qxc, qxc_outputs, session

SAMPLES, LEAST = 8, 22  # dB, of softmax and sums in 8 bits


def sqnr(want, got):
    return 20 * np.log10(np.linalg.norm(want) / np.linalg.norm(got - want))


class AttentionIntegers(OracleCase):
    """4 heads over 3 steps of 32 numbers, of which they make 64, in 2 samples."""

    def model(self, op="Attention", more=(), columns=192, **attrs):
        """`more`: further operands, (name, array), which are constant; None for one left out."""
        rng = np.random.default_rng(4)
        constants = {"w": (rng.normal(size=(32, columns)) / 5).astype(np.float32), "b": rng.normal(size=columns).astype(np.float32)}
        constants |= {n: v for n, v in filter(None, more)}
        inputs = ["x", "w", "b", *(o[0] if o else "" for o in more)]
        node = helper.make_node(op, inputs, ["y"], "it", domain="com.microsoft", num_heads=4, **attrs)
        graph = helper.make_graph(
            [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 32])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(v, n) for n, v in constants.items() if n in inputs])
        model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
        onnx.save(model, self.scratch / "m.onnx")
        return model

    def data(self):
        x = np.random.default_rng(5).normal(size=(SAMPLES, 2, 3, 32)).astype(np.float32)
        np.savez(self.scratch / "d.npz", x=x)
        return x

    def cases(self):
        mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
        rng = np.random.default_rng(6)
        yield {}
        yield {"unidirectional": 1}
        yield {"scale": 0.1}
        yield {"columns": 160, "qkv_hidden_sizes": [64, 64, 32]}
        yield {"more": [("m", mask)]}
        yield {"more": [("m", np.array([2, 3], np.int32))]}
        yield {"more": [("m", np.array([3, 3, 1, 0], np.int32))]}
        yield {"more": [("m", np.array([[[1, 0, 0], [1, 1, 0], [1, 1, 1]]] * 2, np.int32))]}
        yield {"more": [None, None, ("added", rng.normal(size=(2, 4, 3, 3)).astype(np.float32))]}

    def calib(self, **case):
        model, x = self.model(**case), self.data()
        return model, x, [self.scratch / "m.onnx", f"-calib={self.scratch / 'd.npz'}", "-no-sync"]

    def test_c(self):
        """C computes what `qxc run` does, bit by bit, near the float model as onnxruntime has it."""
        text, source = self.scratch / "q.qir", self.scratch / "m.c"
        for case in self.cases():
            with self.subTest(**{k: str(v) for k, v in case.items()}):
                model, x, calib = self.calib(**case)
                qxc(*calib, "-target=c", "-form=true", "-emit=qir", "-quiet", "-o", text)
                self.assertIn("\nfloating point in conversions alone", qxc(*calib, "-emit=c", "-o", source).stderr)
                compiled = CModel(source, "gcc", ("-O1", "-fsanitize=undefined"))
                run = qxc_outputs(text, {"x": x}, self.scratch)["y"]
                for one, got in zip(x, run):
                    np.testing.assert_array_equal(compiled.run(one)[0], got.ravel())
                    want = session(model).run(None, {"x": one})[0]
                    self.assertGreater(sqnr(want, got.reshape(want.shape)), LEAST)
                self.assertIn("\nno floating point", qxc(*calib, "-integer-only", "-emit=c", "-o", source).stderr)

    def test_qdq(self):
        """onnxruntime runs what is taken apart where all is asked for, and has the one operator where it is not."""
        made = self.scratch / "q.onnx"
        for case in self.cases():
            with self.subTest(**{k: str(v) for k, v in case.items()}):
                model, x, calib = self.calib(**case)
                qxc(*calib, "-emit=qdq", "-placement=all", "-quiet", "-o", made)
                quantized = onnx.load(made)
                ops = [n.op_type for n in quantized.graph.node]
                self.assertEqual((ops.count("Attention"), ops.count("Softmax"), ops.count("MatMul") + ops.count("Gemm")), (0, 1, 3))
                self.assertEqual([""], [i.domain for i in quantized.opset_import])
                for one in x:
                    want, got = (session(m).run(None, {"x": one})[0] for m in (model, quantized))
                    self.assertGreater(sqnr(want, got), LEAST)

    def test_stays(self):
        """Without integers everywhere, or without data, it is one operator; so it is where there is no way to say its products."""
        model, _, calib = self.calib()
        for options in ([*calib, "-emit=qdq"], [calib[0], "-dynamic", "-emit=qdq"], [calib[0], "-weight-only", "-emit=qdq"]):
            qxc(*options, "-quiet", "-o", self.scratch / "q.onnx")
            self.assertEqual([n.op_type for n in onnx.load(self.scratch / "q.onnx").graph.node if n.domain], ["Attention"])
        qxc(calib[0], "-emit=c", "-quiet", "-no-sync", "-o", self.scratch / "m.c")
        self.assertIn("qk_attention_f32", (self.scratch / "m.c").read_text())
        turned, _, calib = self.calib(more=[None, None], do_rotary=1)
        done = qxc(*calib, "-integer-only", "-emit=c", "-o", self.scratch / "no.c", ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("it has a rotary embedding", done.stderr)
        self.assertFalse((self.scratch / "no.c").exists())

    def test_past(self):
        """No kernel takes keys of the past, but its products run on data: the projection is integers, or all stays one operator."""
        rng = np.random.default_rng(7)
        constants = {"w": rng.normal(size=(32, 192)) / 5, "b": rng.normal(size=192), "wo": rng.normal(size=(64, 8)) / 8}
        nodes = [helper.make_node("Attention", ["x", "w", "b", "", "past"], ["a", "present"], "it", domain="com.microsoft", num_heads=4),
                 helper.make_node("MatMul", ["a", "wo"], ["y"], "last")]
        shapes = {"x": [2, 3, 32], "past": [2, 2, 4, 5, 16]}
        graph = helper.make_graph(
            nodes, "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y", "present")],
            [numpy_helper.from_array(v.astype(np.float32), n) for n, v in constants.items()])
        model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
        path, data, made = (self.scratch / n for n in ("m.onnx", "d.npz", "q.onnx"))
        onnx.save(model, path)
        feeds = {n: rng.normal(size=[SAMPLES, *s]).astype(np.float32) for n, s in shapes.items()}
        np.savez(data, **feeds)
        for options, whole in ((["-placement=auto"], 0), (["-placement=all"], 0), (["-only=last"], 1)):
            with self.subTest(options=options):
                qxc(path, f"-calib={data}", "-emit=qdq", *options, "-no-sync", "-quiet", "-o", made)
                quantized = onnx.load(made)
                ops = [n.op_type for n in quantized.graph.node]
                self.assertEqual((ops.count("Attention"), ops.count("Softmax")), (whole, 1 - whole))
                self.assertEqual("com.microsoft" in [i.domain for i in quantized.opset_import], bool(whole))
                weights = {t.name: t.data_type for t in quantized.graph.initializer}
                self.assertEqual(whole, sum(n == "w" and kind == TensorProto.FLOAT for n, kind in weights.items()))
                for i in range(SAMPLES):
                    one = {n: v[i] for n, v in feeds.items()}
                    (want, present), (got, kept) = (session(m).run(["y", "present"], one) for m in (model, quantized))
                    self.assertGreater(sqnr(want, got), LEAST)
                    if whole:
                        np.testing.assert_array_equal(kept, present)
