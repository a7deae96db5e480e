"""qxc calib-data: samples of images, recordings, CSV files and arrays are what the files hold, fit the model, and calibrate it;
what is wrong is told with an exit code, and no file is left."""

import contextlib
import io
import json
import os
import struct
import subprocess
import sys
import unittest
import wave

import numpy as np
import onnx
from onnx import TensorProto, helper

from common import DIGITS, QXC, ROOT, OracleCase, python_with, qxc

sys.path.insert(0, str(ROOT / "python/src"))
os.environ["QXC_PROGRAM"] = QXC

from qxc import calib_data

MODEL = DIGITS / "digits.onnx"
PILLOW = ["pillow==13.0.0", f"numpy=={np.__version__}"]


def relu(path, shape, elem=TensorProto.FLOAT, name="x"):
    """A model of one input and one output of this shape."""
    x, y = (helper.make_tensor_value_info(n, elem, shape) for n in (name, "y"))
    graph = helper.make_graph([helper.make_node("Identity", [name], ["y"])], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def riff(path, tag, channels, rate, bits, data, extensible=False, size=None):
    """A WAV file as its bytes, with a part in front that nobody knows."""
    form = struct.pack("<HHIIHH", 0xFFFE if extensible else tag, channels, rate, 0, channels * bits // 8, bits)
    if extensible:
        form += struct.pack("<HHIH14s", 22, bits, 3, tag, b"")
    body = b"WAVEodd " + struct.pack("<I", 3) + b"abc\0fmt " + struct.pack("<I", len(form)) + form
    body += b"data" + struct.pack("<I", len(data) if size is None else size) + data
    path.write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)
    return path


def tone(hertz, rate, n):
    return np.sin(2 * np.pi * hertz * np.arange(n) / rate)


class Case(OracleCase):
    def setUp(self):
        super().setUp()
        self.at = self.scratch / self.id().rsplit(".", 1)[-1]
        self.at.mkdir()
        self.out = self.at / "out.npz"

    def run_it(self, *args):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            code = calib_data.main([*map(str, args), "-o", str(self.out)])
        return code, said.getvalue()

    def made(self, *args, name="x"):
        code, said = self.run_it(*args)
        self.assertEqual(0, code, said)
        self.said = said
        with np.load(self.out) as arrays:
            self.arrays = dict(arrays)
        return self.arrays[name]

    def refused(self, code, what, *args):
        self.out.unlink(missing_ok=True)
        got, said = self.run_it(*args)
        self.assertRegex(said, what)
        self.assertEqual(code, got, said)
        self.assertEqual(1, said.count("error"), said)
        self.assertEqual([], [p.name for p in self.at.iterdir() if "out.npz" in p.name])


class Sound(Case):
    def test_each_form_of_numbers(self):
        want = np.array([[0.5, -0.25], [-1, 0.75], [0, 0.125]])
        whole = {8: np.uint8(want * 128 + 128), 16: np.int16(want * 2**15), 32: np.int32(want * 2**31)}
        for bits, ints in whole.items():
            for extensible in False, True:
                got = self.made(riff(self.at / "a.wav", 1, 2, 8000, bits, ints.tobytes(), extensible), "--input", "x")
                np.testing.assert_array_equal(got, want.T[None].astype(np.float32))
        three = np.int32(want * 2**23).astype("<i4").view(np.uint8).reshape(-1, 4)[:, :3]
        np.testing.assert_array_equal(self.made(riff(self.at / "a.wav", 1, 2, 8000, 24, three.tobytes()), "--input=x"), want.T[None])
        for kind in "<f4", "<f8":
            path = riff(self.at / "a.wav", 3, 2, 8000, 8 * int(kind[2]), want.astype(kind).tobytes(), size=0xFFFFFFFF)
            np.testing.assert_array_equal(self.made(path, "--input=x", "--layout=NHWC"), want[None])
        raw = self.made(riff(self.at / "a.wav", 1, 2, 8000, 16, whole[16].tobytes()), "--raw", "--model",
                        relu(self.at / "m.onnx", ["N", 2, 3], TensorProto.INT16))
        self.assertEqual(np.int16, raw.dtype)
        np.testing.assert_array_equal(raw, whole[16].T[None])

    def test_the_standard_library_writes_what_is_read(self):
        ints = np.arange(-300, 300, dtype="<i2")
        with wave.open(str(self.at / "a.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16000)
            file.writeframes(ints.tobytes())
        np.testing.assert_array_equal(self.made(self.at / "a.wav", "--input", "x"), ints[None] / np.float32(32768))
        self.assertIn("16000 samples a second", self.said)

    def test_lengths_and_frames(self):
        for name, n in (("a", 10), ("b", 4), ("c", 6)):
            riff(self.at / f"{name}.wav", 3, 1, 8000, 32, np.arange(1, n + 1, dtype="<f4").tobytes())
        got = self.made(self.at, "--input", "x", "--length", "6")
        np.testing.assert_array_equal(got, [[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 0, 0], [1, 2, 3, 4, 5, 6]])
        self.assertIn("1 recording shorter than 6 samples, with zeros behind; 1 recording with an end that is left out", self.said)
        got = self.made(self.at / "a.wav", self.at / "b.wav", "--model", relu(self.at / "m.onnx", [1, 1, 6]), "--hop", 3)
        np.testing.assert_array_equal(got[:, 0, 0], [1, 4, 1])
        self.assertEqual((3, 1, 6), got.shape)
        self.assertIn("1 recording with an end", self.said)
        self.refused(1, "c.wav: a sample is .6., those before are .4.: --length", self.at / "b.wav", self.at / "c.wav", "--input", "x")
        self.refused(2, "--hop goes with --length", self.at / "a.wav", "--input", "x", "--hop", 2)

    def test_other_rates(self):
        """A tone comes out as it would have been recorded, one above what the new rate holds not at all."""
        for rate, to in ((48000, 16000), (44100, 16000), (8000, 16000), (22050, 48000)):
            with self.subTest(rate=rate, to=to):
                high = 0.51 * min(rate, to) if rate > to else 0.4 * rate
                x = np.stack([tone(1000, rate, rate), tone(high, rate, rate)], 1)
                path = riff(self.at / "a.wav", 3, 2, rate, 64, x.astype("<f8").tobytes())
                got = self.made(path, "--input", "x", "--rate", to)[0]
                self.assertEqual((2, to), got.shape)
                inner = slice(to // 10, -to // 10)  # silence before and behind the recording reaches in a little
                np.testing.assert_allclose(got[0, inner], tone(1000, to, to)[inner], atol=1e-5)
                np.testing.assert_allclose(got[1, inner], 0 if rate > to else tone(high, to, to)[inner], atol=2e-5)
        ones = riff(self.at / "a.wav", 3, 1, 44100, 32, np.ones(44100, "<f4").tobytes())
        np.testing.assert_allclose(self.made(ones, "--input", "x", "--rate", 16000)[0, 1000:-1000], 1, atol=1e-6)

    def test_what_differs(self):
        a = riff(self.at / "a.wav", 3, 1, 8000, 32, np.ones(8, "<f4").tobytes())
        b = riff(self.at / "b.wav", 3, 2, 8000, 32, np.arange(16, dtype="<f4").tobytes())
        c = riff(self.at / "c.wav", 3, 1, 16000, 32, np.ones(16, "<f4").tobytes())
        self.refused(1, "c.wav: it has 16000 samples a second, .*a.wav has 8000: --rate", a, c, "--input", "x")
        self.refused(1, "b.wav: it has 2 channels, .*a.wav has 1: --mono", a, b, "--input", "x")
        np.testing.assert_array_equal(self.made(a, b, "--input", "x", "--mono")[1], np.arange(16).reshape(8, 2).mean(1))
        self.refused(2, "--raw keeps .* --rate", a, "--input", "x", "--raw", "--rate", 16000)
        self.refused(1, "x is of type int16, .* not whole; --raw", riff(self.at / "d.wav", 3, 1, 8, 32, np.float32([0.5]).tobytes()),
                     "--model", relu(self.at / "m.onnx", ["N", 1], TensorProto.INT16))
        self.refused(1, r"samples of \[1,49,10\], and a recording is one row", a, "--model", relu(self.at / "s.onnx", [1, 1, 49, 10]))

    def test_broken_files(self):
        good = riff(self.at / "a.wav", 1, 1, 8000, 16, bytes(20)).read_bytes()
        for data, what in ((good[:-3], "ends within its part 'data'"), (b"RIFX" + good[4:], "no WAV file"), (b"", "no WAV file"),
                           (good[:48], "there is no part 'data'"), (good.replace(struct.pack("<HH", 1, 1), struct.pack("<HH", 85, 1), 1), "format 85"),
                           (good.replace(struct.pack("<HH", 1, 1), struct.pack("<HH", 1, 0), 1), "make no sense")):
            with self.subTest(what):
                (self.at / "a.wav").write_bytes(data)
                self.refused(1, f"a.wav: .*{what}", self.at / "a.wav", "--input", "x")
        self.refused(1, "recording is empty", riff(self.at / "a.wav", 1, 1, 8000, 16, b""), "--input", "x")
        self.refused(1, "not finite", riff(self.at / "a.wav", 3, 1, 8000, 32, np.float32([np.nan]).tobytes()), "--input", "x")


class Tables(Case):
    def csv(self, text, name="a.csv"):
        (self.at / name).write_text(text)
        return self.at / name

    def test_lines(self):
        path = self.csv("a,b,c,d\n# a comment\n1,2,3,4\n\n5,6,7,8.5\n")
        got = self.made(path, "--input", "x", "--shape", 2, 2)
        np.testing.assert_array_equal(got, np.float32([[[1, 2], [3, 4]], [[5, 6], [7, 8.5]]]))
        np.testing.assert_array_equal(self.made(self.csv("# a comment\n\na,b\n1,2\n"), "--input", "x"), np.float32([[1, 2]]))
        tokens = self.made(self.csv("16777217,2\n"), "--model", relu(self.at / "m.onnx", ["N", 2], TensorProto.INT64))
        np.testing.assert_array_equal(tokens, np.int64([[16777217, 2]]))
        for text, what in (("1,2\n3\n", "a.csv:2: a line of 1 number"), ("1,2\n3,x\n", "a.csv:2: 'x' is no number"),
                           ("1,x\n", "a.csv:1: 'x'"), ("a,b\n", "no sample"), ("1,nan\n", "not finite"), ("1,,2\n", "a.csv:1: '' is no"),
                           ("# a\n1;2\n", "a.csv:2: the separator is ';', and calib-data reads ','"), ("a;b\n1,2\n", "a.csv:1: the separator"), ("1,5;2,5\n", "a.csv:1: the separator"),
                           ("# a\na,b\nc,d\n1,2\n", "a.csv:3: 'c' is no number")):
            self.refused(1, what, self.csv(text), "--input", "x")
        self.refused(1, "a sample has 2 numbers, --shape 3", self.csv("1,2\n"), "--input", "x", "--shape", 3)
        self.refused(1, r"a sample is \[3\], and input x takes \[2\]", self.csv("1,2,3\n"), "--model", self.at / "m.onnx")

    def test_arrays(self):
        calib = np.load(DIGITS / "calib.npz")["image"]
        np.testing.assert_array_equal(calib, self.made(DIGITS / "calib.npz", "--model", MODEL, name="image"))
        np.save(self.at / "one.npy", calib[3])
        np.testing.assert_array_equal(calib[3:4], self.made(self.at / "one.npy", "--model", MODEL, name="image"))
        np.save(self.at / "flat.npy", calib.reshape(200, 64).astype(np.float64))
        np.testing.assert_array_equal(calib, self.made(self.at / "flat.npy", "--model", MODEL, "--shape=1,8,8", name="image"))
        np.save(self.at / "ids.npy", np.array([[1], [2**40]]))
        self.assertEqual(np.int64, self.made(self.at / "ids.npy", "--input", "x").dtype)
        self.assertEqual(4, len(self.made(DIGITS / "calib.npz", "--model", MODEL, "--limit", 4, name="image")))
        np.testing.assert_array_equal(self.arrays["image"], calib[::50])
        self.refused(1, r"flat.npy: a sample is \[64\], and input image takes \[1,8,8\]: --shape", self.at / "flat.npy", "--model", MODEL)
        np.savez(self.at / "two.npz", a=calib, b=calib)
        self.refused(1, "two.npz: there is no array image, but a, b", self.at / "two.npz", "--model", MODEL)
        np.save(self.at / "text.npy", np.array(["a"]))
        self.refused(1, "text.npy: an array of <U1", self.at / "text.npy", "--input", "x")
        (self.at / "bad.npz").write_bytes(b"PK\3\4 what is this")
        self.refused(1, "bad.npz: these are no arrays", self.at / "bad.npz", "--input", "x")

    def test_labels_and_limits(self):
        for folder in "b", "a", ".hidden":
            (self.at / folder).mkdir()
            self.csv("1,2\n3,4\n", f"{folder}/x.csv")
        self.made(self.at, "--input", "x", "--labels")
        np.testing.assert_array_equal([0, 0, 1, 1], self.arrays["labels"])
        self.assertIn("labels: 0 is a, 1 is b", self.said)
        self.made(self.at, "--input", "x", "--labels", "--limit", 2)  # its own result lies in the folder
        np.testing.assert_array_equal([0, 1], self.arrays["labels"])
        self.made(self.at, "--input", "x", "--labels", "--limit", 1)
        self.assertIn("labels: 0 is a, 1 is b", self.said)  # whatever the limit left
        self.refused(2, "--labels adds an array labels", self.at / "a", "--input", "labels", "--labels")


class CommandLine(Case):
    def test_slips(self):
        path = self.at / "a.csv"
        path.write_text("1,2\n")
        two = self.at / "two.onnx"
        x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", 2]) for n in "xy")
        graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"])], "g", [x, y],
                                  [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["N", 2])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), two)
        for code, what, args in (
                (2, "--model=MODEL or --input=NAME", [path]),
                (2, "required: PATH", ["--input", "x"]),
                (2, "unrecognized arguments: --inptu", [path, "--inptu", "x"]),
                (2, "--resize is about images, and these are CSV files", [path, "--input", "x", "--resize", 8]),
                (2, "2 inputs: give --input, one of x, y", [path, "--model", two]),
                (2, "no input z: it has x, y", [path, "--model", two, "--input", "z"]),
                (2, "--limit: invalid", [path, "--input", "x", "--limit", 0]),
                (2, "--crop has one number", [path, "--input", "x", "--crop", 1, 2, 3]),
                (3, "none.csv does not exist", [self.at / "none.csv", "--input", "x"]),
                (3, "cannot read .*none.onnx", [path, "--model", self.at / "none.onnx"]),
                (1, "two.onnx: a file of this name", [two, "--input", "x"])):
            with self.subTest(what):
                self.refused(code, what, *args)
        self.assertEqual(0, self.run_it(path, "-model", two, "-input=y")[0])  # one dash, as other commands have
        (self.at / "b.wav").write_bytes(b"")
        self.refused(1, r"several kinds, .*give files of one kind", self.at, "--input", "x")

    def test_paths_that_begin_with_a_digit(self):
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.at)
        for name in "2024", "224":
            (self.at / name).mkdir()
        for given, want in ((["--resize", "224", "2024", "cats"], ["--resize=224", "2024", "cats"]),
                            (["--resize", "8", "9", "2024"], ["--resize=8,9", "2024"]),
                            (["--crop", "8", "3.csv"], ["--crop=8", "3.csv"]), (["--shape=1", "2", "0.5"], ["--shape=1,2", "0.5"]),
                            (["--mean", "-.5", "0.25", "1e-3", "2nd"], ["--mean=-.5,0.25,1e-3", "2nd"])):
            self.assertEqual(want, calib_data.words(given))

    def test_what_is_there_is_kept_until_the_new_is_whole(self):
        (self.at / "a.csv").write_text("1,2\n")
        self.out.write_bytes(b"before")
        self.assertEqual(1, self.run_it(self.at / "a.csv", "--model", MODEL)[0])
        self.assertEqual(b"before", self.out.read_bytes())
        self.assertEqual(0, self.run_it(self.at / "a.csv", "--input", "file")[0])  # a name that numpy.savez has a use for
        with np.load(self.out) as arrays:
            self.assertEqual(["file"], arrays.files)
        code, said = self.run_it(self.out, "--input", "file")
        self.assertEqual((2, True), (code, "would overwrite what is read" in said))
        self.out.unlink()
        self.out = self.at / "no.where"
        self.refused(2, "name ends in .npz", self.at / "a.csv", "--input", "x")
        self.out = self.at / "none/out.npz"
        self.refused(3, "no such folder", self.at / "a.csv", "--input", "x")

    def test_the_entry_script(self):
        code = "import sys; from qxc import _program; sys.argv[0] = 'qxc'; _program.main()"
        env = {**os.environ, "PYTHONPATH": str(ROOT / "python/src")}

        def script(*args):
            return subprocess.run([sys.executable, "-c", code, *map(str, args)], env=env, capture_output=True, text=True, check=False)
        self.assertIn("files of one kind, and folders", script("calib-data", "--help").stdout)
        self.assertEqual(script("calib-data", "--help").stdout, script("help", "calib-data").stdout)
        done = script("calib-data", DIGITS / "calib.npz", "-model", MODEL, "-o", self.out)
        self.assertEqual((0, ""), (done.returncode, done.stdout), done.stderr)
        self.assertIn("came as float", script("info", MODEL).stdout)
        self.assertEqual(2, script("calib-data").returncode)


def pnm(path, pixels, most=255):
    """A grey or a colour image of any size, as one reads it by hand."""
    path.parent.mkdir(exist_ok=True)
    kind = b"P6" if pixels.ndim == 3 else b"P5"
    path.write_bytes(b"%s %d %d %d\n" % (kind, pixels.shape[1], pixels.shape[0], most) + pixels.astype(">u2" if most > 255 else np.uint8).tobytes())
    return path


class Images(Case):
    """In an environment that has Pillow, which the package can do without."""

    def run_it(self, *args):
        python = python_with("images", PILLOW, "Pillow")
        done = subprocess.run([python, "-m", "qxc.calib_data", *map(str, args), "-o", self.out], capture_output=True, text=True,
                              check=False, env={**os.environ, "PYTHONPATH": str(ROOT / "python/src")})
        return done.returncode, done.stderr

    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(3)

    def test_pixels(self):
        colour, grey = self.rng.integers(0, 256, (12, 10, 3)), self.rng.integers(0, 256, (12, 10))
        a, b = pnm(self.at / "a.ppm", colour), pnm(self.at / "b.pgm", grey)
        middle = colour[3:9, 2:8]
        np.testing.assert_array_equal(self.made(a, "--input=x", "--resize=10", "--crop", 6, "--layout=NHWC", "--raw"), middle[None])
        mean, std = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
        got = self.made(a, "--input=x", "--resize=10", "--crop", 6, "--mean", *mean, "--std", *std)
        np.testing.assert_array_equal(got, ((np.float32(middle) / 255 - mean) / std).transpose(2, 0, 1)[None])
        got = self.made(a, b, "--input", "x", "--raw")
        np.testing.assert_array_equal(got[1], np.stack([grey] * 3))
        np.testing.assert_array_equal(self.made(b, "--input", "x", "--raw", "--grey")[0, 0], grey)
        deep = self.rng.integers(0, 65536, (12, 10))
        got = self.made(pnm(self.at / "c.pgm", deep, 65535), "--input", "x", "--grey")
        np.testing.assert_allclose(got[0, 0], deep / 65535, atol=1e-6)

    def test_sizes(self):
        a = pnm(self.at / "a.ppm", np.full((40, 60, 3), [255, 51, 0]))
        for args, shape in ((["--resize", 8], (8, 12)), (["--resize", 8, 9], (8, 9)), (["--resize", 8, "--exact"], (8, 8)),
                            (["--resize", 8, "--crop", 4, 6], (4, 6)), (["--crop", 5, 20], (5, 20)), ([], (40, 60))):
            with self.subTest(args):
                got = self.made(a, "--input", "x", *args)
                self.assertEqual((1, 3, *shape), got.shape)
                np.testing.assert_allclose(got, np.broadcast_to(np.float32([1, 0.2, 0]).reshape(3, 1, 1), got.shape), atol=1e-6)
        half = np.zeros((20, 40, 3))
        half[:, 20:] = 255
        got = self.made(pnm(self.at / "h.ppm", half), "--input", "x", "--crop", 10)[0, 0]  # the middle, in proportion
        np.testing.assert_array_equal(got[:, :4], 0)
        np.testing.assert_array_equal(got[:, 6:], 1)
        self.refused(1, "a.ppm: 8 by 12 pixels are too few to take 10 by 10", a, "--input", "x", "--resize", 8, "--crop", 10)
        self.refused(1, r"h.ppm: a sample is \[3,8,16\], those before are \[3,8,12\]: --crop", a, self.at / "h.ppm", "--input", "x", "--resize", 8)

    def test_a_model_says_the_rest(self):
        a = pnm(self.at / "a.ppm", self.rng.integers(0, 256, (30, 20, 3)))
        for shape, want in (((1, 3, 8, 6), (1, 3, 8, 6)), (("N", 8, 6, 3), (1, 8, 6, 3)), (("N", 1, 5, 5), (1, 1, 5, 5)), (("N", 7, 8), (1, 7, 8))):
            with self.subTest(shape):
                self.assertEqual(want, self.made(a, "--model", relu(self.at / "m.onnx", shape)).shape)
        got = self.made(a, "--raw", "--model", relu(self.at / "u.onnx", (1, 3, 30, 20), TensorProto.UINT8))
        self.assertEqual(np.uint8, got.dtype)
        self.refused(1, "of type uint8, .*--raw", a, "--model", self.at / "u.onnx")
        self.refused(1, "images have 1 channel or 3", a, "--model", relu(self.at / "m.onnx", (1, 4, 8, 8)))
        self.refused(2, "--layout=NCHW or NHWC says", a, "--model", relu(self.at / "m.onnx", (1, 3, 8, 3)))
        self.refused(1, r"takes \[3,8,6\]", a, "--grey", "--model", relu(self.at / "m.onnx", (1, 3, 8, 6)))
        self.refused(2, "--mean has 2 numbers for 3 channels", a, "--input", "x", "--mean", 1, 2)
        self.refused(2, "--std holds a 0", a, "--input", "x", "--std", 0)
        self.refused(3, "b.png: this image cannot be read", self.broken(), "--input", "x")

    def broken(self):
        (self.at / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        return self.at / "b.png"

    def test_digits_calibrate(self):
        """Images of the digits' own test data, and their classes, give the numbers that the test data have."""
        with np.load(DIGITS / "test.npz") as held:
            test, labels = held["image"], held["label" if "label" in held.files else "labels"]
        for i in range(60):
            pnm(self.at / f"{labels[i]}" / f"{i:03}.pgm", np.rint(test[i, 0] * 255))
        got = self.made(self.at, "--model", MODEL, "--labels", name="image")
        order = sorted(range(60), key=lambda i: (labels[i], i))
        np.testing.assert_allclose(got, test[order], atol=1 / 255)
        np.testing.assert_array_equal(self.arrays["labels"], np.unique(labels[order], return_inverse=True)[1])
        q = self.at / "q.onnx"
        self.assertIn("calibrated on 60 samples", qxc(MODEL, f"-calib={self.out}", "-emit=qdq", "-o", q).stderr)
        self.assertEqual(5, json.loads(qxc("info", "-json", q).stdout)["products_quantized"])


class WithoutPillow(Case):
    def test_it_is_asked_for(self):
        self.refused(3, r"images need Pillow: pip install 'qxc\[images\]'", pnm(self.at / "a.ppm", np.zeros((2, 2, 3))), "--input", "x")


if __name__ == "__main__":
    unittest.main()
