"""A model: read, quantize, look, run, compare, write."""

from __future__ import annotations

import html
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qxc._metric import Served
from qxc._data import Ports, write_data
from qxc._program import Diagnostic, Said, call, options

if TYPE_CHECKING:
    import pandas

    Table = pandas.DataFrame | list[dict[str, Any]]

SHAPING = ("bind", "cut_inputs", "cut_outputs", "define", "external_data_dir", "set", "shape")


def _table(rows: list[dict[str, Any]]) -> Table:
    """A DataFrame where pandas is there."""
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


class Folder:
    """A folder that goes with its object."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="qxc-")
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)


class Report:
    """A report as one HTML page; a notebook shows it."""

    def __init__(self, page: str):
        self.html = page

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{html.escape(self.html)}" title="report of qxc" '
                'style="width:100%;height:40em;border:0"></iframe>')

    def save(self, path: str | os.PathLike) -> None:
        Path(path).write_text(self.html, encoding="utf-8")


class Model:
    """A model in any of its forms: float or quantized, ONNX or text. `load` and `quantize` make it.

    It lives in files: those that were given, or a folder of its own that goes with the object.
    """

    def __init__(self, path: str | os.PathLike, *, folder: Folder | None = None,
                 reference: Model | None = None, said: Said | None = None):
        at = os.fspath(path)
        self.path = os.path.join(".", at) if at.startswith("-") else at  # which would be an option
        self._folder = folder
        self.reference = reference  #: the model that this one was made of, or None
        self.diagnostics: list[Diagnostic] = said.diagnostics if said else []  #: of its making
        self.summary: str = said.summary if said else ""  #: what the program said of its making

    def __repr__(self) -> str:
        return f"<qxc.Model {self.info['model']}: {self.info['came']}>"

    # ---- what it is ----

    @property
    def info(self) -> dict[str, Any]:
        """Inputs, outputs, operators, work, memory, and what to do next (docs/info.md)."""
        return json.loads(call(["info", "-json", self.path]).stdout)

    @property
    def text(self) -> str:
        """The whole model as `.qir`: types, decisions, operators, numbers."""
        return call([self.path, "-emit=qir"]).stdout.decode()

    @property
    def values(self) -> Table:
        """What is quantized: a row a value, with scales, zero points, and the range that was seen."""
        return _table(json.loads(call(["list", "quant", self.path, "-json"]).stdout))

    def explain(self, value: str) -> str:
        """Where the quantization of a value comes from."""
        return call([self.path, f"-explain={value}"]).stdout.decode()

    # ---- running it ----

    def run(self, data: Any, **keywords: Any) -> dict[str, np.ndarray]:
        """The outputs by name. `data` as in `quantize`; all samples are run.

        ``form="true"`` computes on integers where decisions stand; ``all_values=True`` gives every
        value that the run has, of quantized ones the integers, which `values` has the scales of.
        """
        with tempfile.TemporaryDirectory(prefix="qxc-") as at:
            paths = write_data(data, self._ports(keywords), Path(at, "data"))
            out = Path(at, "out.npz")
            call(["run", self.path, f"-o={out}", *[f"-input={p}" for p in paths], *options(keywords)])
            with np.load(out) as arrays:
                return {k: arrays[k] for k in arrays.files}

    def compare(self, reference: Any = None, data: Any = None, **keywords: Any) -> Table:
        """How far this model is from another, value by value and weight by weight, the worst first.

        `reference` is a model as in `load`; without one the model that this one was made of.
        The columns: `kind` ("output", "value" or "weight"), `name`, `elements`, `sqnr_db`,
        `max_error`, `cosine`.
        """
        other = self.reference if reference is None else load(reference)
        if other is None:
            raise ValueError("compare wants a model to compare with")
        if data is None:
            raise ValueError("compare wants data to run both on")
        with tempfile.TemporaryDirectory(prefix="qxc-") as at:
            paths = write_data(data, other._ports(keywords), Path(at, "data"))
            said = call(["compare", other.path, self.path, "-json", *[f"-input={p}" for p in paths],
                         *options(keywords)])
        found = json.loads(said.stdout)
        rows = [_row("output" if r["output"] else "value", r) for r in found["values"]]
        return _table(rows + [_row("weight", r) for r in found["weights"]])

    # ---- what comes of it ----

    def to_onnx(self, form: str = "qdq", path: str | os.PathLike | None = None, **keywords: Any) -> bytes | Model:
        """As ONNX: "qdq", "qop" (QOperators), "float", or "onnx" (as it is).

        The bytes, or with a path the model in that file.
        """
        if path is None:
            return call([self.path, f"-emit={form}", *options(keywords)]).stdout
        said = call([self.path, f"-emit={form}", f"-o={os.fspath(path)}", *options(keywords)])
        return Model(path, reference=self.reference or self, said=said)

    def to_c(self, path: str | os.PathLike | None = None, **keywords: Any) -> dict[str, str | bytes]:
        """As C99, with its header: what is in the files by their names. A path also writes them there.

        ``weights_file=True`` puts weights into a file of bytes beside them.
        """
        with tempfile.TemporaryDirectory(prefix="qxc-") as at:
            to = Path(path) if path is not None else Path(at, f"{keywords.get('name', 'model')}.c")
            call([self.path, "-emit=c", f"-o={to}", *options(keywords)])
            made: dict[str, str | bytes] = {p.name: p.read_text(encoding="utf-8") for p in (to, to.with_suffix(".h"))}
            weights = to.with_suffix(".weights.bin")
            if keywords.get("weights_file") and weights.exists():
                made[weights.name] = weights.read_bytes()
            return made

    def save(self, path: str | os.PathLike, **keywords: Any) -> Model:
        """As `.qir`, or ONNX by the ending of the path; what is not small stands in a file beside it."""
        emit = "onnx" if os.fspath(path).endswith(".onnx") else "qir"
        said = call([self.path, f"-emit={emit}", f"-o={os.fspath(path)}", *options(keywords)])
        return Model(path, reference=self.reference, said=said)

    def report(self, path: str | os.PathLike | None = None, data: Any = None, **keywords: Any) -> Report:
        """What is integer, what stayed float and why; with data what each value lost.

        A path that ends in .html gets the page, one that ends in .json the same as docs/report.schema.json has it.
        """
        end = Path(path).suffix if path is not None else ".html"
        if end not in (".html", ".htm", ".json"):
            raise ValueError(f"a report is a file that ends in .html, .htm or .json, not {os.fspath(path or '')}")
        with tempfile.TemporaryDirectory(prefix="qxc-") as at:
            given = write_data(data, self._ports(keywords), Path(at, "data")) if data is not None else []
            about = [self.path, *[f"-input={p}" for p in given], *options(keywords)]
            report = Report(call([*about, "-emit=html"]).stdout.decode())
            if path is not None and end == ".json":
                call([*about, "-emit=json", f"-o={os.fspath(path)}"])
        if path is not None and end != ".json":
            report.save(path)
        return report

    def requantize(self, data: Any = None, **keywords: Any) -> Model:
        """Decides what is left open (`~ ?`), or with ``redecide=GLOB`` what that names, anew."""
        return quantize(self, data, **keywords)

    def _ports(self, keywords: dict[str, Any]) -> Callable[[], Ports]:
        """What data have to fit, asked when it has to be known, with the options that it depends on."""
        among = {k: keywords.get(k) for k in SHAPING}
        return lambda: Ports(json.loads(call(["info", "-json", self.path, *options(among)]).stdout),
                             joins=keywords.get("batch") != "none")


def _row(kind: str, r: dict[str, Any]) -> dict[str, Any]:
    return {"kind": kind, **{k: v for k, v in r.items() if k != "output"}}


def load(model: Any) -> Model:
    """A model from a path, from bytes of ONNX, an `onnx.ModelProto`, or a text, which has several lines."""
    if isinstance(model, Model):
        return model
    if isinstance(model, os.PathLike) or (isinstance(model, str) and "\n" not in model):
        path = os.fspath(model)
        if os.path.isdir(path):
            raise IsADirectoryError(f"{path} is a folder, not a model")
        if not os.path.isfile(path):
            raise FileNotFoundError(f"there is no model {path}")
        return Model(path)
    if isinstance(model, str):
        name, data = "model.qir", model.encode()
    elif isinstance(model, (bytes, bytearray, memoryview)):
        data = bytes(model)
        name = "model"  # the program looks at its first bytes
    elif hasattr(model, "SerializeToString"):
        name, data = "model.onnx", model.SerializeToString()
    else:
        raise TypeError(f"a model is a path, bytes, an onnx.ModelProto or a text, not {type(model).__name__}")
    folder = Folder()
    path = Path(folder.name, name)
    path.write_bytes(data)
    return Model(path, folder=folder)


def _scheme_path(scheme: Any, at: Path) -> str:
    """A scheme is a file, or the text of one, around which `scheme { }` may be left out."""
    if not isinstance(scheme, str) or os.path.exists(scheme):
        return os.fspath(scheme)
    if len(scheme.split()) == 1 and "{" not in scheme:  # no rule is a single word
        raise FileNotFoundError(f"there is no scheme {scheme}")
    path = at / "rules.scheme"
    whole = scheme.partition("{")[0].split() == ["scheme"]
    path.write_text(scheme if whole else f"scheme {{\n{scheme}\n}}\n", encoding="utf-8")
    return str(path)


def quantize(model: Any, data: Any = None, *, scheme: Any = None, target: str | None = None,
             **keywords: Any) -> Model:
    """Decides how a float model is to be computed on integers.

    `model` is a path, bytes of ONNX, an `onnx.ModelProto`, a text, or a `Model`.

    `data` are samples to calibrate on: a path (.npz, .npy, a folder of them) or several, an array (of
    a model with one input), a dict of arrays by input, or an iterable of batches (a PyTorch
    DataLoader, a generator, onnxruntime's CalibrationDataReader), which is read once and never held
    in memory as a whole. A batch is an array, a dict, or a tuple of arrays in the order of the
    inputs; what stands behind these in the tuple are labels and is not looked at. Without data,
    ``dynamic=True`` or ``weight_only=True`` quantize what needs none, and a model with statistics is
    decided from these; of another float model it is an error.

    `scheme` holds rules for what is quantized how: a file, or its text. `target` names the runtime.
    Other keywords are options of the program: ``min_sqnr=40``, ``keep=["Gemm"]``, ``weights="int4"``.

    `metric`, for `search=True` and `max_drop=`, is a command or a function: it gets a dict of the arrays that docs/search.md tells
    of, and gives a number that is larger for a better model.

    The result has decisions at its values (`float ~ q`); to_onnx and to_c compile them on. Raises
    `Error` with located messages, `AccuracyMissed` where min_sqnr or max_drop are not reached.
    """
    if callable(keywords.get("metric")):
        with Served(keywords.pop("metric")) as served:
            return quantize(model, data, target=target, scheme=scheme, metric=served.command, **keywords)
    if "o" in keywords:
        raise TypeError("quantize gives the model, which save, to_onnx and to_c write: o= has no use")
    source = load(model)
    folder = Folder()
    out = Path(folder.name, "model.qir")
    with tempfile.TemporaryDirectory(prefix="qxc-") as at:
        arguments = [source.path, f"-o={out}", *options({"target": target, **keywords})]
        if scheme is not None:
            arguments.append(f"-scheme={_scheme_path(scheme, Path(at))}")
        if data is not None:
            arguments += [f"-calib={p}" for p in write_data(data, source._ports(keywords), Path(at, "data"))]
        elif "form" not in keywords and source.info["came"] in ("float", "float with statistics"):
            arguments.append("-form=fake")  # with decisions, or an error if there is nothing to decide by
        said = call(arguments)
    return Model(out, folder=folder, reference=source.reference or source, said=said)
