"""As onnxruntime.quantization.execution_providers.qnn: what Qualcomm's NPUs take."""

from __future__ import annotations

from typing import Any, ClassVar

from qxc._program import LOG
from qxc.onnxruntime._options import storage_of
from qxc.onnxruntime.calibrate import CalibrationMethod
from qxc.onnxruntime.quant_utils import QuantType
from qxc.onnxruntime.quantize import StaticQuantConfig, get_qdq_config


class QnnConfig(StaticQuantConfig):
    target: ClassVar[str | None] = "qnn"


def get_qnn_qdq_config(model_input: Any, calibration_data_reader: Any, calibrate_method: Any = CalibrationMethod.MinMax,
                       activation_type: Any = QuantType.QUInt8, weight_type: Any = QuantType.QUInt8, per_channel: bool = False,
                       init_overrides: dict[str, Any] | None = None, add_qtype_converts: bool = True,
                       activation_symmetric: bool = False, weight_symmetric: bool | None = None,
                       keep_removable_activations: bool = False, stride: int | None = None, calibration_providers: Any = None,
                       op_types_to_quantize: list[str] | None = None, nodes_to_exclude: list[str] | None = None) -> StaticQuantConfig:
    """As onnxruntime's: with 8 and 16 bits the rules of -target=qnn hold, which knows no others. Types are converted where neighbours differ, whatever
    `add_qtype_converts` says, and memory does not grow with the samples, whatever `stride` says."""
    c = get_qdq_config(model_input, calibration_data_reader, calibrate_method, None, activation_type, weight_type,
                       activation_symmetric, weight_symmetric, per_channel, False, keep_removable_activations, None,
                       init_overrides, calibration_providers, op_types_to_quantize, nodes_to_exclude)
    if {storage_of(activation_type), storage_of(weight_type)} <= {"int8", "uint8", "uint16"}:
        return QnnConfig(**vars(c))
    LOG.warning("get_qnn_qdq_config: the target qnn knows 8 and 16 bits alone, so that nothing is held against its rules")
    return c
