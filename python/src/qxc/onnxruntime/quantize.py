"""As onnxruntime.quantization.quantize: the functions that quantize, and what holds their arguments."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from qxc._data import write_data
from qxc._model import load
from qxc._program import LOG, call, options
from qxc.onnxruntime._options import (DYNAMIC, STATIC, check_extra, common, method_of, plain, rules, storage_of, symmetric,
                                      word)
from qxc.onnxruntime.calibrate import CalibrationMethod
from qxc.onnxruntime.quant_utils import QuantFormat, QuantType


class QuantConfig:
    """What `quantize` takes; the fields of its kinds are arguments of quantize_static and quantize_dynamic."""


@dataclass
class StaticQuantConfig(QuantConfig):
    calibration_data_reader: Any
    calibrate_method: Any = CalibrationMethod.MinMax
    quant_format: Any = QuantFormat.QDQ
    activation_type: Any = QuantType.QInt8
    weight_type: Any = QuantType.QInt8
    op_types_to_quantize: list[str] | None = None
    nodes_to_quantize: list[str] | None = None
    nodes_to_exclude: list[str] | None = None
    per_channel: bool = False
    reduce_range: bool = False
    use_external_data_format: bool = False
    calibration_providers: Any = None
    extra_options: dict[str, Any] | None = None
    target: ClassVar[str | None] = None  #: the runtime, where a function chose the configuration for one


@dataclass
class DynamicQuantConfig(QuantConfig):
    weight_type: Any = QuantType.QInt8
    op_types_to_quantize: list[str] | None = None
    nodes_to_quantize: list[str] | None = None
    nodes_to_exclude: list[str] | None = None
    per_channel: bool = False
    reduce_range: bool = False
    use_external_data_format: bool = False
    extra_options: dict[str, Any] | None = None


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
    if calibration_cache_path:
        raise ValueError("calibration_cache_path has no counterpart: qxc.calibrate gives a model that holds statistics")
    _static(model_input, model_output, StaticQuantConfig(
        calibration_data_reader, calibrate_method, quant_format, activation_type, weight_type, op_types_to_quantize,
        nodes_to_quantize, nodes_to_exclude, per_channel, reduce_range, use_external_data_format, calibration_providers,
        extra_options))


def _static(model_input: Any, model_output: str | os.PathLike, c: StaticQuantConfig) -> None:
    if c.calibration_data_reader is None:
        raise ValueError("calibration_data_reader is missing: there is nothing to calibrate on")
    if c.calibration_providers:
        raise ValueError("calibration_providers has no counterpart: calibration runs in qxc itself")
    extra = dict(c.extra_options or {})
    check_extra(extra, STATIC)
    source = load(model_input)
    keywords = {
        "target": c.target,
        "emit": "qdq" if word(c.quant_format, QuantFormat) == "QDQ" else "qop",
        "activations": symmetric(storage_of(c.activation_type), extra.get("ActivationSymmetric", False), False),
        "weights": symmetric(storage_of(c.weight_type), extra.get("WeightSymmetric"), True),
        "calib_method": method_of(c.calibrate_method, extra),
        "smooth_quant": extra.get("SmoothQuantAlpha", 0.5) if extra.get("SmoothQuant") else None,
        "keep_float_weights": bool(extra.get("AddQDQPairToWeight")),
        **common(c.per_channel, c.reduce_range, c.use_external_data_format),
    }
    with tempfile.TemporaryDirectory(prefix="qxc-") as at:
        arguments = rules(c.op_types_to_quantize, c.nodes_to_quantize, c.nodes_to_exclude, extra, Path(at))
        if extra.get("TensorQuantOverrides"):
            overrides = Path(at, "overrides.json")
            overrides.write_text(json.dumps(extra["TensorQuantOverrides"], default=plain), encoding="utf-8")
            arguments.append(f"-scales-from={overrides}")
        data = write_data(c.calibration_data_reader, source._ports({}), Path(at, "data"))
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
    check_extra(extra, DYNAMIC)
    source = load(model_input)
    keywords = {"dynamic": True, "emit": "qop",
                "weights": symmetric(storage_of(weight_type), extra.get("WeightSymmetric"), True),
                **common(per_channel, reduce_range, use_external_data_format)}
    with tempfile.TemporaryDirectory(prefix="qxc-") as at:
        arguments = rules(op_types_to_quantize, nodes_to_quantize, nodes_to_exclude, extra, Path(at))
        said = call([source.path, f"-o={os.fspath(model_output)}", *options(keywords), *arguments])
    LOG.info("%s", said.summary)


def quantize(model_input: Any, model_output: str | os.PathLike, quant_config: Any) -> None:
    """As onnxruntime.quantization.quantize, also with onnxruntime's own StaticQuantConfig and DynamicQuantConfig."""
    kinds = {c.__name__ for c in type(quant_config).__mro__}
    if "StaticQuantConfig" in kinds:
        own = isinstance(quant_config, StaticQuantConfig)
        config = quant_config if own else StaticQuantConfig(**_fields(quant_config, StaticQuantConfig))
        _static(model_input, model_output, config)
    elif "DynamicQuantConfig" in kinds:
        quantize_dynamic(model_input, model_output, **_fields(quant_config, DynamicQuantConfig))
    else:
        raise TypeError(f"quantize takes a StaticQuantConfig or a DynamicQuantConfig, not a {type(quant_config).__name__}")


def _fields(config: Any, kind: Any) -> dict[str, Any]:
    return {f.name: getattr(config, f.name) for f in fields(kind)}


# What get_qdq_config's calibrate_args are as extra_options.
_CALIBRATE = {"symmetric": "CalibTensorRangeSymmetric", "moving_average": "CalibMovingAverage",
              "averaging_constant": "CalibMovingAverageConstant", "max_intermediate_outputs": "CalibMaxIntermediateOutputs",
              "percentile": "CalibPercentile"}


def _excluded(model: Any, chosen: Callable[[Any, Any], bool]) -> list[str]:
    """The nodes that a function of the caller's chooses, which looks at what the package onnx reads. A node without a
    name is known by its first result."""
    import onnx
    proto = model if isinstance(model, onnx.ModelProto) else onnx.load(model, load_external_data=False)
    return [n.name or n.output[0] for n in proto.graph.node if chosen(proto, n)]


def get_qdq_config(model_input: Any, calibration_data_reader: Any, calibrate_method: Any = CalibrationMethod.MinMax,
                   calibrate_args: dict[str, Any] | None = None, activation_type: Any = QuantType.QUInt8,
                   weight_type: Any = QuantType.QInt8, activation_symmetric: bool = False,
                   weight_symmetric: bool | None = None, per_channel: bool = False, reduce_range: bool = False,
                   keep_removable_activations: bool = False, min_real_range: float | None = None,
                   tensor_quant_overrides: dict[str, Any] | None = None, calibration_providers: Any = None,
                   op_types_to_quantize: list[str] | None = None, nodes_to_exclude: Any = None,
                   extra_options: dict[str, Any] | None = None) -> StaticQuantConfig:
    """As onnxruntime.quantization.get_qdq_config: everything that can be is quantized."""
    unknown = sorted(set(calibrate_args or {}) - set(_CALIBRATE))
    if unknown:
        raise ValueError(f"calibrate_args: {', '.join(unknown)} has no counterpart here")
    given = {"ActivationSymmetric": activation_symmetric or None, "WeightSymmetric": weight_symmetric,
             "MinimumRealRange": min_real_range, "QDQKeepRemovableActivations": keep_removable_activations or None,
             "TensorQuantOverrides": tensor_quant_overrides or None}
    extra = {k: v for k, v in given.items() if v is not None}
    extra |= {_CALIBRATE[k]: v for k, v in (calibrate_args or {}).items()}
    return StaticQuantConfig(
        calibration_data_reader, calibrate_method=calibrate_method, quant_format=QuantFormat.QDQ,
        activation_type=activation_type, weight_type=weight_type, op_types_to_quantize=op_types_to_quantize,
        nodes_to_exclude=_excluded(model_input, nodes_to_exclude) if callable(nodes_to_exclude) else nodes_to_exclude,
        per_channel=per_channel, reduce_range=reduce_range, calibration_providers=calibration_providers,
        extra_options={**extra, **(extra_options or {})})
