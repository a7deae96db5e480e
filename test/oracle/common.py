"""What the comparisons with onnxruntime share: where things are, how to run qxc and onnxruntime.

The environment may set QXC (the program), BUILD (where scratch files go) and QXC_SHARED (a folder
with models/); test/run.sh sets all three.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
import onnx
import onnxruntime as ort

import saturation

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("BUILD", "build")).resolve()
QXC = os.environ.get("QXC") or str(BUILD / "qxc")
SHARED = pathlib.Path(os.environ.get("QXC_SHARED") or ROOT.parent / "shared")
MODELS = SHARED / "models"
DIGITS = ROOT / "examples/digits"
NAMES = ("kws", "ic", "vww", "ad")  # MLPerf Tiny's, in MODELS
TRAINED = ("cnn", "relu6", "unet")  # in test/models, as float and as integer models
TRAINED_MODELS = ROOT / "test/models"

FLOATS = (np.float32, np.float64, np.float16)


class QxcError(AssertionError):
    """qxc failed; the message holds the command and what it said."""


HANG = 600  # seconds; the longest run, a sanitized vgg19, takes a fifth of it


def qxc(*args, ok=True):
    """Runs qxc; returns what it wrote to stderr and stdout."""
    command = [QXC, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG)
    if ok and done.returncode:
        raise QxcError(f"exit {done.returncode}: {' '.join(command)}\n{done.stderr[-3000:]}")
    return done


@contextlib.contextmanager
def alone(folder):
    """Of the processes that make what several tests need in `folder`, one at a time is inside; the next finds it made."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def python_with(name, packages, what):
    """The interpreter of an environment of its own, BUILD/venv-NAME, with these packages from PyPI: made where there is none,
    and where it was made from others. The test is skipped where it cannot be made; `what` says what it needs."""
    folder, wanted = BUILD / f"venv-{name}", " ".join(packages)
    python, made = folder / "bin/python", folder / "made-from"
    with alone(BUILD / f"venv-{name}.lock"):
        if made.exists() and made.read_text() == wanted:
            return python
        shutil.rmtree(folder, ignore_errors=True)
        for command in ([sys.executable, "-m", "venv", folder],
                        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]):
            if subprocess.run(command, check=False, capture_output=True, timeout=600).returncode:
                raise unittest.SkipTest(f"needs {what} from PyPI: {wanted}")
        made.write_text(wanted)
    return python


# Of each compiler of C. clang 19 finds fault with what it makes of -march=native itself where the processor has AVX10.
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wcast-align",
            "-Wno-invalid-feature-combination", "-Werror")


def compile_c(*command):
    """Runs a C or C++ compiler; without that compiler the test, or its subTest, is skipped."""
    if not shutil.which(command[0]):
        raise unittest.SkipTest(f"there is no {command[0]}")
    subprocess.run(command, check=True)


def for_each(*items):
    """Makes one test of a method and an item: test_x(self, item) becomes test_x_ITEM for each."""
    def mark(method):
        method.items = items
        return method
    return mark


def for_each_model(*more):
    """for_each of the networks of test/models, of `more`, and of "official": all of NAMES in one test, which is skipped
    where they are not there."""
    def mark(method):
        def one(self, name):
            if name != "official":
                method(self, name)
                return
            self.shared_model(f"{NAMES[0]}_fp32.onnx")
            for official in NAMES:
                with self.subTest(model=official):
                    method(self, official)
        one.__doc__ = method.__doc__
        one.items = (*TRAINED, *more, "official")
        return one
    return mark


def model_path(name, kind):
    """A float model ("fp32") or one of integers ("int8_qdq"), of NAMES, TRAINED or the digits."""
    if name == "digits":
        return DIGITS / "digits.onnx"
    if name in NAMES:
        return MODELS / f"{name}_{kind}.onnx"
    return TRAINED_MODELS / (f"{name}.onnx" if kind == "fp32" else f"{name}_{kind}.onnx")


def ends(path):
    """The names of a model's first input and output."""
    graph = onnx.load(path).graph
    return data_inputs(graph)[0].name, graph.output[0].name


class OracleCase(unittest.TestCase):
    """A test with a scratch folder, and models that may be absent.

    A class whose tests take many seconds of processor time says how many one takes, so that a first run starts with
    them and shares them out (pool.py).
    """

    maxDiff = None
    expected_seconds = 1

    def __init_subclass__(cls):
        for name, method in list(vars(cls).items()):
            for item in getattr(method, "items", ()):
                def test(self, method=method, item=item):
                    return method(self, item)
                test.__doc__ = method.__doc__
                setattr(cls, f"{name}_{getattr(item, '__name__', item)}", test)
            if hasattr(method, "items"):
                delattr(cls, name)

    @classmethod
    def setUpClass(cls):
        if not os.access(QXC, os.X_OK):
            raise AssertionError(f"there is no program {QXC}")
        BUILD.mkdir(exist_ok=True)
        cls._scratch = tempfile.TemporaryDirectory(prefix="oracle-", dir=BUILD)
        cls.scratch = pathlib.Path(cls._scratch.name)

    @classmethod
    def tearDownClass(cls):
        cls._scratch.cleanup()

    def try_seeds(self, one, most, seconds):
        """Calls one(seed) for as many seeds as that time allows."""
        end = time.monotonic() + seconds
        for seed in range(most):
            if time.monotonic() > end:
                break
            with self.subTest(seed=seed):
                one(seed)
        self.assertGreater(seed, 10, "too slow to try more than a few models")

    def shared_model(self, name):
        path = MODELS / name
        if not path.exists():
            self.skipTest(f"needs the models of QXC_SHARED=DIR (DIR/models): {name}")
        return path


def talk(text=""):
    """For tables that a reader of the log wants to see."""
    print(text, file=sys.stderr, flush=True)


# ---- onnxruntime


def session(model, optimize=False, save=None, int8=False):
    """One thread; without optimizations unless asked for. `model` is a path or a ModelProto.

    `int8`: fuses signed activations as they are, as it does on Arm; else they become uint8 where nothing is in the way.
    """
    options = saturation.quiet()
    if not optimize:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if int8:
        options.add_session_config_entry("session.qdqisint8allowed", "1")
    if save:
        options.optimized_model_filepath = str(save)
    return saturation.session(model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model), options)


def constant_names(graph):
    """Values that depend on initializers alone."""
    known = {t.name for t in graph.initializer} | {""}
    for node in graph.node:
        if all(name in known for name in node.input):
            known.update(node.output)
    return known


def computed_names(graph):
    """Values that depend on the inputs and that something uses, in order.

    Nobody reads the mask of an old Dropout, and onnxruntime fills it with what it likes.
    """
    constant = constant_names(graph)
    used = {i for n in graph.node for i in n.input} | {o.name for o in graph.output}
    return [o for n in graph.node for o in n.output if o in used and o not in constant]


def with_outputs(model, names):
    """A copy whose outputs are these values; onnxruntime finds their types."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return copy


def data_inputs(graph):
    initial = {t.name for t in graph.initializer}
    return [i for i in graph.input if i.name not in initial]


def feed(model, arrays, k):
    """Sample k of arrays that have a leading sample axis, in the shapes of the model's inputs."""
    result = {}
    for value in data_inputs(model.graph):
        shape = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
        result[value.name] = np.ascontiguousarray(arrays[value.name][k]).reshape(shape)
    return result


def run_samples(runner, model, arrays, count=None):
    """Every output of every sample, stacked: name -> [samples, ...]."""
    names = [o.name for o in runner.get_outputs()]
    count = len(next(iter(arrays.values()))) if count is None else count
    rows = [runner.run(names, feed(model, arrays, k)) for k in range(count)]
    return {name: np.stack([row[i] for row in rows]) for i, name in enumerate(names)}


# ---- qxc run


def qxc_values(model_path, arrays, folder, *options):
    """All values that `qxc run` computes: name -> [samples, ...], quantized ones as integers."""
    inputs, result = folder / "in.npz", folder / "out.npz"
    np.savez(inputs, **arrays)
    qxc("run", model_path, f"-input={inputs}", "-all-values", "-no-sync", "-o", result, *options)
    return np.load(result)


def qxc_outputs(model_path, arrays, folder, *options):
    inputs, result = folder / "in.npz", folder / "out.npz"
    np.savez(inputs, **arrays)
    qxc("run", model_path, f"-input={inputs}", "-no-sync", "-o", result, *options)
    with np.load(result) as loaded:
        return dict(loaded)


# ---- how far apart


def float_excess(got, reference):
    """How far the worst element is beyond 1e-5 * max|reference| + 1e-6; not positive: equal enough.

    Per sample, as a large value in one sample is no excuse for another.
    """
    got = got.reshape(len(reference), -1).astype(np.float64)
    want = reference.reshape(len(reference), -1).astype(np.float64)
    if want.shape[1] == 0:
        return -1.0
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0, np.abs(got - want))
    bound = 1e-5 * np.max(np.abs(np.where(np.isfinite(want), want, 0)), axis=1, keepdims=True) + 1e-6
    return float(np.nan_to_num(np.max(error - bound), nan=np.inf))


def sqnr(reference, got):
    """In dB, over all samples."""
    reference, got = reference.astype(np.float64), got.astype(np.float64).reshape(reference.shape)
    noise = np.sum((reference - got) ** 2)
    return float(10 * np.log10(np.sum(reference**2) / noise)) if noise else np.inf
