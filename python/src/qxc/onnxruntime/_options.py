"""What becomes of the arguments of onnxruntime's quantizer."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import numpy as np

from qxc._program import LOG
from qxc.onnxruntime.calibrate import CalibrationMethod
from qxc.onnxruntime.quant_utils import QuantType


def word(value: Any, among: type[enum.Enum]) -> str:
    """The name of an enum's member, this module's or onnxruntime's."""
    name = value.name if isinstance(value, enum.Enum) else str(value)
    if name not in among.__members__:
        raise ValueError(f"{value!r} is no {among.__name__} that qxc has: {', '.join(among.__members__)}")
    return name


def storage_of(value: Any) -> str:
    return word(value, QuantType)[1:].lower()  # QUInt8 -> uint8


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
    "CalibMovingAverageConstant": (
        0.01, "samples weigh alike; calib_method='moving-average=WEIGHT' of qxc.quantize weighs the last most", True),
    "SmoothQuantFolding": (True, "the division goes into what is before, or stays where it is", False),
    "UseQDQContribOps": (False, "the opset is raised to what the types need", False),
    "MinimumRealRange": (None, "a range below the smallest normal float gets scale 1, others are kept", True),
    "QDQKeepRemovableActivations": (True, "Relu and Clip stay in the QDQ form", False),
    "QDQDisableWeightAdjustForInt32Bias": (False, "without it the bias overflows", True),
    "ActivationRestrictedAsymmetric": (False, "no target needs zero points of 0 or 128 alone", True),
    "DefaultTensorType": (None, "types of values are inferred", False),
    "BlockSize": (0, "blocks are a rule: qxc.quantize(..., weights='int4 block(32)')", True),
}
STATIC = {"ActivationSymmetric", "WeightSymmetric", "AddQDQPairToWeight", "CalibMovingAverage", "CalibPercentile",
          "OpTypesToExcludeOutputQuantization", "QuantizeBias", "SmoothQuant", "SmoothQuantAlpha", "TensorQuantOverrides"}
DYNAMIC = {"WeightSymmetric"}


def check_extra(extra: dict[str, Any], known: set[str]) -> None:
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


def symmetric(storage: str, said: bool | None, signed: bool) -> str:
    sym = said if said is not None else signed and not storage.startswith("u")
    return f"{storage} {'sym' if sym else 'asym'}"


def method_of(method: Any, extra: dict[str, Any]) -> str:
    name = word(method, CalibrationMethod)
    if name == "Percentile":
        return f"percentile={extra.get('CalibPercentile', 99.999)}"
    if name == "Entropy":
        return "entropy"
    if name == "Distribution":
        raise ValueError("CalibrationMethod.Distribution is for float8, which onnxruntime alone quantizes to")
    return "moving-average" if extra.get("CalibMovingAverage") else "minmax"


def plain(value: Any) -> Any:
    """Overrides as JSON: arrays are lists, enums their names."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"TensorQuantOverrides holds a {type(value).__name__}")


def rules(op_types: list[str] | None, nodes: list[str] | None, excluded: list[str] | None, extra: dict[str, Any],
          at: Path) -> list[str]:
    """What is quantized, as a scheme: names of nodes are kept apart from types of operators there."""
    if op_types and nodes:
        raise ValueError("op_types_to_quantize and nodes_to_quantize together have no counterpart: give one of them")
    lines = ["keep float"] if op_types or nodes else []
    lines += [f"op {t} quantize" for t in op_types or []]
    lines += [f"node {_pattern(n)} quantize" for n in nodes or []]
    lines += [f"node {_pattern(n)} keep float" for n in excluded or []]
    lines += [f"op {t} out float" for t in extra.get("OpTypesToExcludeOutputQuantization") or []]
    lines += ["bias float"] if extra.get("QuantizeBias") is False else []
    if not lines:
        return []
    path = at / "rules.scheme"
    path.write_text("scheme {\n" + "".join(f"  {line}\n" for line in lines) + "}\n", encoding="utf-8")
    return [f"-scheme={path}"]


def common(per_channel: bool, reduce_range: bool, use_external_data_format: bool) -> dict[str, Any]:
    return {"per_tensor": not per_channel, "per_channel": bool(per_channel), "reduce_range": bool(reduce_range),
            "external_data": bool(use_external_data_format)}
