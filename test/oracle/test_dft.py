#!/usr/bin/env python3
"""DFT and STFT give NumPy's transforms in double, rounded once to float: of all lengths (powers of two,
composites, primes), zero-padded and cut, forward, inverse, half spectra; the same in emitted C. The
upgrade to opset 20, where the axis became an operand, means the same to onnxruntime."""

import itertools
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import OracleCase, for_each, qxc, qxc_outputs, session
from cmodel import CModel

LENGTHS = 1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 30, 49, 64, 97, 121, 128, 400


def model(op, inputs, x, opset, constants, elem=TensorProto.FLOAT, **attributes):
    graph = helper.make_graph(
        [helper.make_node(op, inputs, ["y"], **attributes)], "g",
        [helper.make_tensor_value_info("x", elem, x.shape)], [helper.make_tensor_value_info("y", elem, None)],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])


def dft(x, opset, axis, length=None, **attributes):
    constants = {} if length is None else {"n": np.int64(length)}
    inputs = ["x", "n" if constants else ""]
    if opset >= 20:
        constants["axis"] = np.int64(axis)
        inputs.append("axis")
    else:
        attributes["axis"] = axis
    elem = helper.np_dtype_to_tensor_dtype(x.dtype)
    return model("DFT", inputs, x, opset, constants, elem, **attributes)


def numbers(x):
    x = x.astype(np.float64)
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0] + 0j


def parts(z):
    return np.stack([z.real, z.imag], -1)


def expected(x, axis, length, inverse, onesided):
    z = numbers(x)
    if inverse and onesided:
        return np.fft.irfft(z, length, axis)[..., None]
    if onesided:
        return parts(np.fft.rfft(z.real, length, axis))
    return parts((np.fft.ifft if inverse else np.fft.fft)(z, length, axis))


class Dft(OracleCase):
    def close(self, got, want, dtype=np.float32):
        bound = 2 * np.finfo(dtype).eps * (1 if dtype == np.float32 else 20) * np.max(np.abs(want), initial=1e-30)
        self.assertEqual(got.size, want.size)
        self.assertLessEqual(np.max(np.abs(got.reshape(want.shape) - want), initial=0), bound)

    def outputs(self, proto, x, c=False):
        path = self.scratch / "m.onnx"
        onnx.save(proto, path)
        if c:
            source = self.scratch / "m.c"
            qxc(path, "-emit=c", "-o", source)
            return CModel(source).run(x)[0]
        return qxc_outputs(path, {"x": x[None]}, self.scratch)["y"]

    @for_each((0, 0), (1, 0), (0, 1), (1, 1))
    def test_dft(self, kind):
        inverse, onesided = kind
        rng = np.random.default_rng(7)
        for k, n in enumerate(LENGTHS):
            complex_too = [2] if inverse and onesided else [1] if onesided else [1, 2]
            for components in complex_too:
                dtype = np.float64 if k % 3 == 2 else np.float32
                axis = (1, -2, 0)[k % 3]
                shape = [2, 3, components]
                shape.insert(axis % 3 if axis >= 0 else 2, n)
                x = rng.normal(0, 1, shape).astype(dtype)
                if inverse and onesided and n == 1:
                    continue
                length = (None, n + 3, max(1, n - 2))[k // 2 % 3]
                opset = 17 + 3 * (k % 2)
                with self.subTest(n=n, length=length, shape=shape, axis=axis, opset=opset):
                    real_axis = axis if axis >= 0 else axis + 1
                    got = self.outputs(dft(x, opset, axis, length, inverse=inverse, onesided=onesided), x)
                    self.close(got, expected(x, real_axis, length, inverse, onesided), dtype)

    def test_stft(self):
        rng = np.random.default_rng(8)
        for components, windowed, given, onesided, step, size in itertools.product(
                (1, 2), (0, 1), (0, 1), (0, 1), (1, 7), (12, 25)):
            if onesided and components == 2 or not (windowed or given):
                continue
            x = rng.normal(0, 1, (2, 60, components)).astype(np.float32)
            window = np.hanning(size).astype(np.float32)
            constants = {"step": np.int64(step)} | ({"w": window} if windowed else {})
            constants |= {"size": np.int64(size)} if given else {}
            inputs = ["x", "step", "w" if windowed else "", "size" if given else ""]
            proto = model("STFT", inputs, x, 17, constants, onesided=onesided)
            z = numbers(x)
            rows = np.stack([z[:, f:f + size] for f in range(0, 60 - size + 1, step)], 1)
            rows = rows * window.astype(np.float64) if windowed else rows
            want = parts(np.fft.fft(rows, axis=-1))[..., :size // 2 + 1 if onesided else size, :]
            with self.subTest(components=components, windowed=windowed, given=given, step=step, size=size):
                self.close(self.outputs(proto, x), want)
                if windowed and not given:
                    theirs = session(proto).run(None, {"x": x})[0]
                    np.testing.assert_allclose(theirs, want, rtol=0, atol=1e-5 * np.max(np.abs(want)))

    def test_emitted_c(self):
        rng = np.random.default_rng(9)
        x = rng.normal(0, 1, (1, 30, 2)).astype(np.float32)
        proto = dft(x, 20, 1)
        np.testing.assert_array_equal(self.outputs(proto, x, c=True).ravel(), self.outputs(proto, x).ravel())
        x = rng.normal(0, 1, (1, 300)).astype(np.float32)[..., None]
        proto = model("STFT", ["x", "s", "w"], x, 17, {"s": np.int64(16), "w": np.hanning(40).astype(np.float32)})
        np.testing.assert_array_equal(self.outputs(proto, x, c=True).ravel(), self.outputs(proto, x).ravel())

    def test_upgrade(self):
        rng = np.random.default_rng(10)
        x = rng.normal(0, 1, (2, 8, 6, 1)).astype(np.float32)
        for attributes in {}, {"axis": 2}, {"axis": -3, "inverse": 1}, {"onesided": 1}:
            old = model("DFT", ["x"], x, 17, {}, **attributes)
            path, out = self.scratch / "old.onnx", self.scratch / "new.onnx"
            onnx.save(old, path)
            qxc(path, "-target-opset=20", "-emit=onnx", "-o", out)
            new = onnx.load(out)
            onnx.checker.check_model(new, full_check=True)
            self.assertEqual(new.opset_import[0].version, 20)
            np.testing.assert_array_equal(session(old).run(None, {"x": x})[0], session(new).run(None, {"x": x})[0])


if __name__ == "__main__":
    unittest.main()
