"""What other tools wrote, through qxc: read, run, and written as QDQ, QOperator and C. Cells are kept as JSON."""

import functools
import hashlib
import json
import pathlib
import re
import subprocess
import tempfile

import numpy as np
import onnx

from cells import BUILD, KEPT, MOST_SECONDS, Failed, key_of, python_of, quantized, reference_of, version_of
from common import MODELS, QXC, data_inputs, qxc_outputs, run_samples, session, sqnr
from products import float_products
from spellings import FILES

SAMPLES = 16  # as many as the check in emitted C takes


def written(model, tool, options, only_kept=False):
    """The model that a tool writes, kept; Failed says why there is none."""
    python = python_of(tool)
    if not python:
        raise Failed("it could not be installed")
    key = key_of(model, tool, options, 0, version_of(tool, python))
    kept = KEPT / "written" / f"{model.name}-{tool}-{key}.onnx"
    why = kept.with_suffix(".why")
    kept.parent.mkdir(parents=True, exist_ok=True)
    if not kept.exists() and not why.exists():
        if only_kept:
            raise Failed(NOT_MEASURED["why"])
        with tempfile.TemporaryDirectory(prefix="peers-", dir=BUILD) as folder:
            calib, out = pathlib.Path(folder) / "calib.npz", pathlib.Path(folder) / "out.onnx"
            np.savez(calib, **model.calib)
            try:
                quantized(tool, options, model, calib, out)
                onnx.save(onnx.load(out), kept)
            except Failed as said:
                why.write_text(str(said).replace(f"{folder}/", ""))
    if why.exists():
        raise Failed(why.read_text())
    left, products = float_products(onnx.load(kept))
    if left == products:
        raise Failed("it quantizes no product")
    return kept


def step_of(model, name, reference):
    """The step of an output: the scale of the DequantizeLinear that yields it, else of 8 bits over its range."""
    constants = {t.name: t for t in model.graph.initializer}
    for node in model.graph.node:
        if name in node.output and node.op_type == "DequantizeLinear" and node.input[1] in constants:
            return float(np.max(onnx.numpy_helper.to_array(constants[node.input[1]])))
    return max(float(np.ptp(reference)) / 255, 1e-30) if reference.dtype.kind == "f" else 1.0


def apart(model, reference, got):
    """{"sqnr", "steps"}: of the worst output, and the largest difference in its steps."""
    found = []
    for (name, want), have in zip(reference.items(), got.values(), strict=True):
        have = have.reshape(want.shape)
        with np.errstate(invalid="ignore"):
            far = np.where(want == have, 0, np.abs(want.astype(np.float64) - have.astype(np.float64)))
        found.append((sqnr(want, have), float(np.nan_to_num(far, nan=np.inf).max(initial=0)) / step_of(model, name, want)))
    return {"sqnr": min(s for s, _ in found), "steps": max(f for _, f in found)}


class Refused(Exception):
    """A way that qxc does not go, and what it says."""


def qxc(*words):
    """Gives what it warns of."""
    done = subprocess.run([QXC, *map(str, words), "-no-sync"], capture_output=True, text=True, check=False, timeout=MOST_SECONDS)
    errors, warnings = ([line for line in done.stderr.splitlines() if f"{kind}: " in line] for kind in ("error", "warning"))
    if done.returncode:
        raise Refused(errors[0] if errors else f"exit {done.returncode}")
    return warnings


def batch_of(model):
    """The open first dimension of an input counts samples: data goes through one sample a time, here as in the reference."""
    dims = [value.type.tensor_type.shape.dim for value in data_inputs(model.graph)]
    return [f"-batch={shape[0].dim_param}" for shape in dims if shape and shape[0].dim_param][:1]


class Way:
    """One model on its way: what each step gives is kept beside it, for the next."""

    def __init__(self, path, data, folder):
        self.path, self.folder = path, folder
        self.model = onnx.load(path)
        self.data = {name: rows[:SAMPLES] for name, rows in data.items()}
        self.input = folder / "in.npz"
        self.batch = batch_of(self.model)
        np.savez(self.input, **self.data)

    def reference(self, path):
        return run_samples(session(path), onnx.load(path), self.data)

    def emitted(self, source, form):
        out = self.folder / f"{form}-{source.stem}.onnx"
        said = qxc(source, f"-emit={form}", "-o", out)
        return out, said

    def read(self):
        return {"said": qxc(self.path, "-o", self.folder / "model.qir")}

    def computed(self):
        return qxc_outputs(self.path, self.data, self.folder, "-quiet", *self.batch)

    def run(self):
        return apart(self.model, self.plain, self.computed())

    def qdq(self):
        out, said = self.emitted(self.path, "qdq")
        return {**apart(self.model, self.plain, self.reference(out)), "said": said}

    def qop(self):
        out, said = self.emitted(self.path, "qop")
        return {**apart(self.model, self.plain, self.reference(out)), "said": said}

    def back(self):
        """QDQ of the operators, against these."""
        operators, _ = self.emitted(self.path, "qop")
        out, said = self.emitted(operators, "qdq")
        return {**apart(self.model, self.reference(operators), self.reference(out)), "said": said}

    def c(self, *options):
        """Its check compares with `qxc run`, bit for bit."""
        source = self.folder / "model.c"
        said = qxc(self.path, "-emit=c", *options, *self.batch, "-testbench", f"-input={self.input}", "-force", "-o", source)
        subprocess.run(["cc", "-std=c99", "-O1", "-w", "-o", source.with_suffix(".exe"), source, "-lm"], check=True)
        done = subprocess.run([source.with_suffix(".exe")], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Refused(f"its check fails: {(done.stdout + done.stderr).strip().splitlines()[-1]}")
        return {"said": said}

    def integers(self):
        return self.c("-integer-only")

    def steps(self, original):
        """{step: what it gives}, "noise" of the file itself in dB where `original`, the float model's results, are known, and
        "alone", why onnxruntime does not run the file: what `qxc run` computes is the reference then."""
        found = {}
        try:
            self.plain = self.reference(self.path)
        except Exception as why:  # onnxruntime has classes of its own for what it does not run
            found["alone"] = re.sub(r"Load model from \S+ failed:", "", str(why).splitlines()[0])[:140]
            try:
                self.plain = self.computed()
            except AssertionError as error:
                return {"why": f"neither onnxruntime nor qxc runs it: {str(error).splitlines()[1].split('error: ')[-1]}"}
        if original:
            found["noise"] = apart(self.model, {name: rows[:SAMPLES] for name, rows in original.items()}, self.plain)["sqnr"]
        for step in STEPS:
            try:
                found[step] = getattr(self, step)()
            except (Refused, AssertionError) as why:
                found[step] = {"refused": str(why).replace(f"{self.folder}/", "")}
            except Exception as why:  # onnxruntime, or a compiler
                found[step] = {"refused": f"what was written does not run: {str(why).splitlines()[0][:140]}"}
        return found


NOT_MEASURED = {"why": "it was not measured"}
STEPS = ("read", "run", "qdq", "qop", "back", "c", "integers")


@functools.cache
def measured_by():
    """The program, and what it is measured with."""
    return pathlib.Path(QXC).read_bytes() + pathlib.Path(__file__).read_bytes()


def gone(path, data=None, original=lambda: None, only_kept=False):
    """What each step gives, kept; data is drawn where there is none. `original()` gives the float model's results."""
    parts = (path.read_bytes(), measured_by())
    kept = KEPT / "through" / f"{path.stem}-{hashlib.sha256(b''.join(parts)).hexdigest()[:16]}.json"
    if not kept.exists() and only_kept:
        return NOT_MEASURED
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="peers-", dir=BUILD) as folder:
            kept.write_text(json.dumps(Way(path, data or drawn(onnx.load(path)), pathlib.Path(folder)).steps(original())))
    return json.loads(kept.read_text())


def files():
    """{(tool, form): {name: (path, data)}} of files that tools wrote, which QXC_SHARED may have: by the start of their names."""
    found = {}
    for path in sorted((MODELS / "tools").glob("*/*.onnx")):
        form = next((form for form, names in FILES.get(path.parent.name, {}).items() if re.search(names, path.stem)), None)
        if form:
            found.setdefault((path.parent.name, form), {})[path.stem] = path
    return found


def drawn(model):
    """Data for a file that has none."""
    rng = np.random.default_rng(0)
    shapes = {value.name: [d.dim_value for d in value.type.tensor_type.shape.dim] for value in data_inputs(model.graph)}
    return {name: rng.standard_normal((SAMPLES, *shape[shape[:1] in ([0], [1]):])).astype(np.float32) for name, shape in shapes.items()}


def through(model, tool, options, only_kept=False):
    """Of a model that a tool quantizes: what each step gives, or {"why"} there is no such model."""
    try:
        return gone(written(model, tool, options, only_kept), model.test, lambda: reference_of(model), only_kept)
    except Failed as why:
        return {"why": str(why)}
