"""onnxruntime.quantization's entry points, with its arguments, computed by qxc.

    from qxc.onnxruntime import quantize_static, CalibrationDataReader, QuantFormat, QuantType

in place of ``from onnxruntime.quantization import ...``; modules in it have the same names, too, where scripts
import from them. onnxruntime itself need not be installed; its own enums, readers and configurations are taken.
docs/from-onnxruntime.md says what each option becomes. What has no counterpart here is an error, as nothing is left
out silently.
"""

from qxc.onnxruntime._calibrator import create_calibrator, write_calibration_table
from qxc.onnxruntime.calibrate import CalibrationDataReader, CalibrationMethod
from qxc.onnxruntime.quant_utils import QuantFormat, QuantizationMode, QuantType
from qxc.onnxruntime.quantize import (DynamicQuantConfig, StaticQuantConfig, get_qdq_config, quantize, quantize_dynamic,
                                      quantize_static)
from qxc.onnxruntime.shape_inference import quant_pre_process

__all__ = ["CalibrationDataReader", "CalibrationMethod", "DynamicQuantConfig", "QuantFormat", "QuantType", "QuantizationMode",
           "StaticQuantConfig", "create_calibrator", "get_qdq_config", "quant_pre_process", "quantize", "quantize_dynamic",
           "quantize_static", "write_calibration_table"]
