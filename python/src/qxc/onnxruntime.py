"""onnxruntime.quantization's entry points, with its arguments, computed by qxc.

    from qxc.onnxruntime import quantize_static, CalibrationDataReader, QuantFormat, QuantType

in place of ``from onnxruntime.quantization import ...``. onnxruntime itself need not be installed; its
own enums and readers are taken, too. docs/from-onnxruntime.md says what each option becomes. What has no
counterpart here is an error, as nothing is left out silently.
"""

from __future__ import annotations

import abc
import enum
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from qxc._data import write_data
from qxc._model import load
from qxc._program import LOG, call, options

__all__ = ["CalibrationDataReader", "CalibrationMethod", "QuantFormat", "QuantType",
           "quantize_dynamic", "quantize_static"]


class QuantType(enum.Enum):
    QInt8 = 0
    QUInt8 = 1
    QInt16 = 3
    QUInt16 = 4
    QInt4 = 5
    QUInt4 = 6
    QInt2 = 7
    QUInt2 = 8


class QuantFormat(enum.Enum):
    QOperator = 0
    QDQ = 1


class CalibrationMethod(enum.Enum):
    MinMax = 0
    Entropy = 1
    Percentile = 2
    Distribution = 3


class CalibrationDataReader(metaclass=abc.ABCMeta):
    """Gives one feed after the other: a dict of arrays by input, None behind the last."""

    @abc.abstractmethod
    def get_next(self) -> dict[str, np.ndarray] | None:
        """The next feed."""

    def __iter__(self) -> CalibrationDataReader:
        return self

    def __next__(self) -> dict[str, np.ndarray]:
        feed = self.get_next()
        if feed is None:
            raise StopIteration
        return feed


def _word(value: Any, among: type[enum.Enum]) -> str:
    """The name of an enum's member, this module's or onnxruntime's."""
    name = value.name if isinstance(value, enum.Enum) else str(value)
    if name not in among.__members__:
        raise ValueError(f"{value!r} is no {among.__name__} that qxc has: {', '.join(among.__members__)}")
    return name


def _storage(value: Any) -> str:
    return _word(value, QuantType)[1:].lower()  # QUInt8 -> uint8


def _pattern(name: str) -> str:
    """A quoted glob of a scheme that means this name alone."""
    glob = "".join("\\" + c if c in "*?,\\" else c for c in name)
    return '"' + glob.replace("\\", "\\\\").replace('"', '\\"') + '"'


# Of extra_options those without an option here: what happens whatever they say, why, and whether it is an
# error to ask for something else, or a warning.
_FIXED = {
    "EnableSubgraph": (True, "bodies of If, Loop and Scan are always quantized", False),
    "ForceQuantizeNoInputCheck": (False, "a mover follows its neighbours", False),
    "MatMulConstBOnly": (True, "the second operand of an integer MatMul is constant", False),
    "DedicatedQDQPair": (False, "onnxruntime splits shared pairs itself", False),
    "QDQOpTypePerChannelSupportToAxis": ({}, "the axis is that of the output channels", True),
    "CalibTensorRangeSymmetric": (None, "it follows from ActivationSymmetric", False),
    "CalibStridedMinMax": (None, "memory does not grow with the samples", False),
    "CalibMaxIntermediateOutputs": (None, "memory does not grow with the samples", False),
    "CalibMovingAverageConstant": (0.01, "the constant is 0.01", True),
    "SmoothQuantFolding": (True, "the division goes into what is before, or stays where it is", False),
    "UseQDQContribOps": (False, "the opset is raised to what the types need", False),
    "MinimumRealRange": (None, "a range below the smallest normal float gets scale 1, others are kept", True),
    "QDQKeepRemovableActivations": (True, "Relu and Clip stay in the QDQ form", False),
    "QDQDisableWeightAdjustForInt32Bias": (False, "without it the bias overflows", True),
    "ActivationRestrictedAsymmetric": (False, "no target needs zero points of 0 or 128 alone", True),
    "DefaultTensorType": (None, "types of values are inferred", False),
    "BlockSize": (0, "blocks are a rule: qxc.quantize(..., weights='int4 block(32)')", True),
    "OpTypesToExcludeOutputQuantization": ([], "it is a rule of a scheme: op Gemm out float", True),
    "QuantizeBias": (True, "it is a rule of a scheme: bias float", True),
}
_STATIC = {"ActivationSymmetric", "WeightSymmetric", "AddQDQPairToWeight", "CalibMovingAverage", "CalibPercentile",
           "SmoothQuant", "SmoothQuantAlpha", "TensorQuantOverrides"}
_DYNAMIC = {"WeightSymmetric"}


def _check_extra(extra: dict[str, Any], known: set[str]) -> None:
    for name, value in extra.items():
        if name in known:
            continue
        if name not in _FIXED:
            raise ValueError(f"extra_options has no {name!r} here")
        happens, why, wrong = _FIXED[name]
        if value == happens:
            continue
        if wrong:
            raise ValueError(f"extra_options: {name}={value!r} has no counterpart: {why}")
        LOG.warning("extra_options: %s=%r has no effect: %s", name, value, why)


def _symmetric(storage: str, said: bool | None, signed: bool) -> str:
    sym = said if said is not None else signed and not storage.startswith("u")
    return f"{storage} {'sym' if sym else 'asym'}"


def _method(method: Any, extra: dict[str, Any]) -> str:
    name = _word(method, CalibrationMethod)
    if name == "Percentile":
        return f"percentile={extra.get('CalibPercentile', 99.999)}"
    if name == "Entropy":
        return "entropy"
    if name == "Distribution":
        raise ValueError("CalibrationMethod.Distribution is for float8, which onnxruntime alone quantizes to")
    return "moving-average" if extra.get("CalibMovingAverage") else "minmax"


def _plain(value: Any) -> Any:
    """Overrides as JSON: arrays are lists, enums their names."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"TensorQuantOverrides holds a {type(value).__name__}")


def _rules(op_types: list[str] | None, nodes: list[str] | None, excluded: list[str] | None, at: Path) -> list[str]:
    """What is quantized, as a scheme: names of nodes are kept apart from types of operators there."""
    if op_types and nodes:
        raise ValueError("op_types_to_quantize and nodes_to_quantize together have no counterpart: give one of them")
    lines = ["keep float"] if op_types or nodes else []
    lines += [f"op {t} quantize" for t in op_types or []]
    lines += [f"node {_pattern(n)} quantize" for n in nodes or []]
    lines += [f"node {_pattern(n)} keep float" for n in excluded or []]
    if not lines:
        return []
    path = at / "rules.scheme"
    path.write_text("scheme {\n" + "".join(f"  {line}\n" for line in lines) + "}\n", encoding="utf-8")
    return [f"-scheme={path}"]


def _common(per_channel: bool, reduce_range: bool, use_external_data_format: bool) -> dict[str, Any]:
    return {"per_tensor": not per_channel, "per_channel": bool(per_channel), "reduce_range": bool(reduce_range),
            "external_data": bool(use_external_data_format)}


def quantize_static(model_input: Any, model_output: str | os.PathLike, calibration_data_reader: Any = None,
                    quant_format: Any = QuantFormat.QDQ, op_types_to_quantize: list[str] | None = None,
                    per_channel: bool = False, reduce_range: bool = False,
                    activation_type: Any = QuantType.QInt8, weight_type: Any = QuantType.QInt8,
                    nodes_to_quantize: list[str] | None = None, nodes_to_exclude: list[str] | None = None,
                    use_external_data_format: bool = False,
                    calibrate_method: Any = CalibrationMethod.MinMax,
                    calibration_providers: Any = None, extra_options: dict[str, Any] | None = None,
                    calibration_cache_path: str | os.PathLike | None = None) -> None:
    """As onnxruntime.quantization.quantize_static. Warnings and the summary go to the logger "qxc"."""
    if calibration_data_reader is None:
        raise ValueError("calibration_data_reader is missing: there is nothing to calibrate on")
    if calibration_providers:
        raise ValueError("calibration_providers has no counterpart: calibration runs in qxc itself")
    if calibration_cache_path:
        raise ValueError("calibration_cache_path has no counterpart: qxc.calibrate gives a model that holds statistics")
    extra = dict(extra_options or {})
    _check_extra(extra, _STATIC)
    source = load(model_input)
    keywords = {
        "emit": "qdq" if _word(quant_format, QuantFormat) == "QDQ" else "qop",
        "activations": _symmetric(_storage(activation_type), extra.get("ActivationSymmetric", False), False),
        "weights": _symmetric(_storage(weight_type), extra.get("WeightSymmetric"), True),
        "calib_method": _method(calibrate_method, extra),
        "smooth_quant": extra.get("SmoothQuantAlpha", 0.5) if extra.get("SmoothQuant") else None,
        "keep_float_weights": bool(extra.get("AddQDQPairToWeight")),
        **_common(per_channel, reduce_range, use_external_data_format),
    }
    with tempfile.TemporaryDirectory(prefix="qxc-") as at:
        arguments = _rules(op_types_to_quantize, nodes_to_quantize, nodes_to_exclude, Path(at))
        if extra.get("TensorQuantOverrides"):
            overrides = Path(at, "overrides.json")
            overrides.write_text(json.dumps(extra["TensorQuantOverrides"], default=_plain), encoding="utf-8")
            arguments.append(f"-scales-from={overrides}")
        data = write_data(calibration_data_reader, source._ports({}), Path(at, "data"))
        said = call([source.path, f"-o={os.fspath(model_output)}", *options(keywords), *arguments,
                     *[f"-calib={p}" for p in data]])
    LOG.info("%s", said.summary)


def quantize_dynamic(model_input: Any, model_output: str | os.PathLike,
                     op_types_to_quantize: list[str] | None = None, per_channel: bool = False,
                     reduce_range: bool = False, weight_type: Any = QuantType.QInt8,
                     nodes_to_quantize: list[str] | None = None, nodes_to_exclude: list[str] | None = None,
                     use_external_data_format: bool = False, extra_options: dict[str, Any] | None = None) -> None:
    """As onnxruntime.quantization.quantize_dynamic. Warnings and the summary go to the logger "qxc"."""
    extra = dict(extra_options or {})
    _check_extra(extra, _DYNAMIC)
    source = load(model_input)
    keywords = {"dynamic": True, "emit": "qop",
                "weights": _symmetric(_storage(weight_type), extra.get("WeightSymmetric"), True),
                **_common(per_channel, reduce_range, use_external_data_format)}
    with tempfile.TemporaryDirectory(prefix="qxc-") as at:
        arguments = _rules(op_types_to_quantize, nodes_to_quantize, nodes_to_exclude, Path(at))
        said = call([source.path, f"-o={os.fspath(model_output)}", *options(keywords), *arguments])
    LOG.info("%s", said.summary)
