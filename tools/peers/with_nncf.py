"""with_nncf.py MODEL CALIB.npz OUT static [minmax] [full_bias] [mixed] [transformer]
with_nncf.py MODEL CALIB.npz OUT weights MODE BLOCK [awq] [scale_estimation] [gptq]
"""

import logging
import sys

import nncf
import numpy as np
import onnx
from nncf.quantization.range_estimator import RangeEstimatorParametersSet

from feeding import prepared, rows

logging.disable(logging.ERROR)


def pack_zero_points(model):
    """Two of 4 bits in a byte, as MatMulNBits has them: NNCF 3.4 writes a byte for each, which onnxruntime refuses."""
    arrays = {t.name: t for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type != "MatMulNBits" or len(node.input) < 4 or not node.input[3]:
            continue
        attributes = {a.name: a.i for a in node.attribute}
        blocks = -(-attributes["K"] // attributes["block_size"])
        values = onnx.numpy_helper.to_array(arrays[node.input[3]])
        if attributes["bits"] == 4 and values.dtype == np.uint8 and values.size == attributes["N"] * blocks:
            rows = np.pad(values.reshape(-1, blocks), ((0, 0), (0, blocks % 2)))
            packed = rows[:, ::2] | rows[:, 1::2] << 4
            arrays[node.input[3]].CopyFrom(onnx.numpy_helper.from_array(packed, node.input[3]))


def main(path, calib, out, kind, *words):
    model = prepared(path, out)
    samples = rows(model, calib)
    data, count = nncf.Dataset(samples), len(samples)
    if kind == "weights":
        mode, block, *methods = words
        advanced = {"dataset": data} | dict.fromkeys(methods, True) if methods else {}
        adjusted = nncf.AdvancedCompressionParameters(group_size_fallback_mode=nncf.GroupSizeFallbackMode.ADJUST)
        # Embeddings and the last product have 8 bits, as by default, and Conv stays float: onnxruntime does not load what
        # it makes of these otherwise.
        made = nncf.compress_weights(model, mode=nncf.CompressWeightsMode[mode], group_size=int(block), ratio=1.0,
                                     ignored_scope=nncf.IgnoredScope(types=["Conv"], validate=False), subset_size=count, advanced_parameters=adjusted, **advanced)
        pack_zero_points(made)
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
