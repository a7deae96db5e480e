"""with_nncf.py MODEL CALIB.npz OUT static [minmax] [full_bias] [mixed] [transformer] | weights [awq] [scale_estimation]"""

import logging
import sys

import nncf
import onnx
from nncf.quantization.range_estimator import RangeEstimatorParametersSet

from feeding import prepared, rows

logging.disable(logging.ERROR)


def main(path, calib, out, kind, *words):
    model = prepared(path, out)
    samples = rows(model, calib)
    data, count = nncf.Dataset(samples), len(samples)
    if kind == "weights":
        advanced = {"dataset": data, "awq": True} if "awq" in words else {}
        if "scale_estimation" in words:
            advanced |= {"dataset": data, "scale_estimation": True}
        adjusted = nncf.AdvancedCompressionParameters(group_size_fallback_mode=nncf.GroupSizeFallbackMode.ADJUST)
        made = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT4_ASYM, group_size=32, ratio=1.0,
                                     all_layers=True, subset_size=count, advanced_parameters=adjusted, **advanced)
    else:
        # All integers of weights are used: onnxruntime's products do not overflow on processors with VNNI.
        whole = nncf.AdvancedQuantizationParameters(overflow_fix=nncf.OverflowFix.DISABLE)
        if "minmax" in words:
            whole.activations_range_estimator_params = RangeEstimatorParametersSet.MINMAX
        made = nncf.quantize(model, data, subset_size=count, fast_bias_correction="full_bias" not in words,
                             advanced_parameters=whole,
                             preset=nncf.QuantizationPreset.MIXED if "mixed" in words else None,
                             model_type=nncf.ModelType.TRANSFORMER if "transformer" in words else None)
    onnx.save(made, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
