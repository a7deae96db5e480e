#!/usr/bin/env python3
"""Sparse tensors: what onnx.checker takes is read and written as it was, what it refuses is refused."""

import random
import tempfile
import unittest

import onnx
from onnx import TensorProto, checker, helper

import onnx_bytes


def sparse(values, indices, dims, indices_dims=None):
    """`indices` None: the field is not there."""
    s = onnx.SparseTensorProto(dims=dims)
    s.values.CopyFrom(helper.make_tensor("v", TensorProto.FLOAT, [len(values)], values))
    if indices is not None:
        s.indices.CopyFrom(helper.make_tensor("i", TensorProto.INT64, indices_dims or [len(indices)],
                                              indices))
    return s


def model(s, attribute):
    nodes = [helper.make_node("Constant", [], ["y"], sparse_value=s) if attribute else
             helper.make_node("Identity", ["v"], ["y"])]
    shape = [f"d{i}" for i in range(len(s.dims))]
    g = helper.make_graph(nodes, "g", [], [helper.make_tensor_value_info("y", 1, shape)])
    if not attribute:
        g.sparse_initializer.append(s)
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def taken(m):
    try:
        checker.check_model(m)
        return True
    except checker.ValidationError:
        return False


class Sparse(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def same_verdict(self, s):
        """Whether the checker takes it."""
        verdict = None
        for attribute in (False, True):
            m = model(s, attribute)
            verdict = taken(m)
            with self.subTest(str(s), attribute=attribute):
                if verdict:
                    again = onnx_bytes.round_trip(m.SerializeToString(), self.folder)
                    self.assertEqual(onnx.load_from_string(again), m)
                else:
                    with self.assertRaisesRegex(AssertionError, "exit 1.*error:"):
                        onnx_bytes.round_trip(m.SerializeToString(), self.folder)
        return verdict

    def test_by_hand(self):
        for good in (sparse([1, 2], [0, 11], [3, 4]), sparse([1, 2], [0, 0, 2, 3], [3, 4], [2, 2]),
                     sparse([], None, [3]), sparse([], [], [3]), sparse([], [], [3, 4], [0, 2]),
                     sparse([1, 2], [0, 2], [4], [2, 1]), sparse([1], [2**40], [2**21, 2**21])):
            self.assertTrue(self.same_verdict(good))
        for bad in (sparse([1], None, [3]), sparse([1], [0], []), sparse([], [], [0]),
                    sparse([1, 2], [0, 1, 2], [4]), sparse([1, 2], [0, 1], [4], [2, 1, 1]),
                    sparse([], [], [3, 4], [0, 3]), sparse([1], [0], [2**40, 2**40])):
            self.assertFalse(self.same_verdict(bad))

    def test_random(self):
        rng, good = random.Random(4), 0
        for _ in range(150):
            dims = [rng.randrange(1, 4) for _ in range(rng.randrange(1, 4))]
            n = rng.randrange(4)
            width = rng.choice((0, len(dims)))
            row = [tuple(rng.randrange(-1 if rng.random() < 0.02 else 0, d + (rng.random() < 0.02))
                         for d in (dims if width else [12])) for _ in range(n)]
            if rng.random() < 0.8:
                row.sort()
            flat = [k for r in row for k in r]
            good += self.same_verdict(sparse([1.5] * n, flat, dims, [n, width] if width else [n]))
        self.assertTrue(20 < good < 130, good)


if __name__ == "__main__":
    unittest.main()
