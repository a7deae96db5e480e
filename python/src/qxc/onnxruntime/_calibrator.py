"""As onnxruntime's create_calibrator and write_calibration_table: ranges of a float model's values, and TensorRT's table of them."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qxc._data import write_data
from qxc._model import Folder, Model, load, quantize
from qxc._program import LOG, call
from qxc.onnxruntime._options import method_of
from qxc.onnxruntime.calibrate import CalibrationMethod

STEPS = 127  # of int8, symmetric


@dataclass
class TensorData:
    """A range, as arrays of one number."""

    lowest: np.ndarray
    highest: np.ndarray

    @property
    def range_value(self) -> tuple[np.ndarray, np.ndarray]:
        return self.lowest, self.highest

    def to_dict(self) -> dict[str, Any]:
        return {"lowest": self.lowest, "highest": self.highest, "CLS": "TensorData"}


class TensorsData(dict[str, TensorData]):
    """Ranges by value."""


def _range(lowest: float, highest: float) -> TensorData:
    return TensorData(np.array(lowest, np.float32), np.array(highest, np.float32))


class Calibrator:
    """Takes data in as many parts as the caller likes, and says the ranges of all of them."""

    def __init__(self, model: Any, op_types: list[str], method: Any, extra: dict[str, Any]):
        self.model, self.op_types = load(model), list(op_types)
        theirs = {"moving_average": "CalibMovingAverage", "percentile": "CalibPercentile"}
        self.method = method_of(method, {theirs[k]: v for k, v in extra.items() if k in theirs})
        self.symmetric = bool(extra.get("symmetric"))
        self.folder = Folder()
        self.parts: list[str] = []

    def set_execution_providers(self, execution_providers: Any = None) -> None:
        LOG.warning("set_execution_providers has no effect: calibration runs in qxc itself")

    def collect_data(self, data_reader: Any) -> None:
        self.parts += write_data(data_reader, self.model._ports({}), Path(self.folder.name, f"part-{len(os.listdir(self.folder.name))}"))

    def compute_data(self) -> TensorsData:
        """Of the activations that are quantized: what was seen with MinMax, else what the method chose."""
        if not self.parts:
            raise ValueError("there are no data: collect_data comes before compute_data")
        decided = quantize(self.model, self.parts, activations="int8 sym", calib_method=self.method)
        rows = {r["value"]: r for r in json.loads(call(["list", "quant", decided.path, "-json"]).stdout)}
        seen = self.method in ("minmax", "moving-average")
        found = {name: self._seen(rows[name]) if seen and rows.get(name, {}).get("min") is not None
                 else _range(-STEPS * scale, STEPS * scale) for name, scale in _scales(decided)}
        return TensorsData(self._of_types(found, decided) if self.op_types else found)

    def _seen(self, row: dict[str, Any]) -> TensorData:
        most = max(abs(row["min"]), abs(row["max"]))
        return _range(-most, most) if self.symmetric else _range(row["min"], row["max"])

    def _of_types(self, found: dict[str, TensorData], decided: Model) -> dict[str, TensorData]:
        """Operands and results of these operators, whether a rule for the type alone would quantize them or not."""
        said = json.loads(call([decided.path, "-emit=json"]).stdout)
        beside = {said["values"][v]["name"] for layer in said["layers"] if _ops(layer) & set(self.op_types)
                  for v in layer["inputs"] + layer["outputs"]}
        kept = {name: range_ for name, range_ in found.items() if name in beside}
        if not kept:
            raise ValueError(f"op_types_to_calibrate: the model has no operator {', '.join(self.op_types)} "
                             "beside a value that is quantized")
        return kept

    compute_range = compute_data  # its name of old


def _ops(layer: dict[str, Any]) -> set[str]:
    """The operators of a layer, and those that became part of it."""
    return {layer["op"], *layer["operators"], *(n["op"] for n in layer["from"])}


def _scales(decided: Model) -> Iterator[tuple[str, float]]:
    """Behind a line of its own, a line a tensor: its name and the bits of its scale."""
    for line in call([decided.path, "-emit=calib-table"]).stdout.decode().splitlines()[1:]:
        name, bits = line.rsplit(": ", 1)
        yield name, struct.unpack(">f", bytes.fromhex(bits))[0]


def create_calibrator(model: Any, op_types_to_calibrate: Any = None, augmented_model_path: Any = "augmented_model.onnx",
                      calibrate_method: Any = CalibrationMethod.MinMax, use_external_data_format: bool = False,
                      providers: Any = None, extra_options: dict[str, Any] | None = None) -> Calibrator:
    """As onnxruntime.quantization.create_calibrator. There is no augmented model: qxc sees all values of this one."""
    extra = dict(extra_options or {})
    unknown = set(extra) - {"percentile", "moving_average", "symmetric", "max_intermediate_outputs"}
    if unknown:
        raise ValueError(f"extra_options: {', '.join(sorted(unknown))} has no counterpart here")
    calibrator = Calibrator(model, op_types_to_calibrate or [], calibrate_method, extra)
    if providers:
        calibrator.set_execution_providers(providers)
    return calibrator


def _flatbuffer(rows: dict[str, str]) -> bytes:
    """The FlatBuffers of onnxruntime's trt_cal_table.fbs: a table with a vector of tables of two texts. What an offset
    points to stands behind it; both kinds of table share a description, at 4 and 12."""
    n, table, vector = len(rows), 20, 28
    first = vector + 4 + 4 * n
    out = struct.pack("<I HHHxx HHHH iI I", table, 6, 8, 4, 8, 12, 4, 8, table - 4, vector - table - 4, n)
    out += b"".join(struct.pack("<I", first + 12 * i - len(out) - 4 * i) for i in range(n))
    pairs, texts, end = b"", b"", first + 12 * n
    for i, pair in enumerate(rows.items()):
        at = first + 12 * i
        pairs += struct.pack("<i", at - 12)
        for k, text in enumerate(pair):
            pairs += struct.pack("<I", end + len(texts) - at - 4 - 4 * k)
            data = text.encode()
            texts += struct.pack("<I", len(data)) + data + bytes(4 - len(data) % 4)
    return out + pairs + texts


def write_calibration_table(calibration_cache: Any, dir: str | os.PathLike = ".") -> None:
    """As onnxruntime's: calibration.flatbuffers for its TensorRT provider, .cache and .json, in this folder."""
    ends = {name: calibration_cache[name].range_value for name in sorted(calibration_cache.keys())}
    rows = {name: str(max(float(np.asarray(low).item()), float(np.asarray(high).item()))) for name, (low, high) in ends.items()}
    plain = {name: {"lowest": float(np.asarray(low).item()), "highest": float(np.asarray(high).item())} for name, (low, high) in ends.items()}
    at = Path(dir)
    at.joinpath("calibration.json").write_text(json.dumps(plain), encoding="utf-8")
    at.joinpath("calibration.cache").write_text("".join(f"{name} {value}\n" for name, value in rows.items()), encoding="utf-8")
    at.joinpath("calibration.flatbuffers").write_bytes(_flatbuffer(rows))
