"""with_quark.py MODEL CALIB.npz OUT ACTIVATIONS CALIBRATOR [channel] [cle] [smooth] [bias] [adaround] [adaquant]
with_quark.py MODEL CALIB.npz OUT nbits DEFAULT|HQQ|GPTQ BLOCK BITS

ACTIVATIONS: int8 | uint8 | uint16, or xint8, whose scales are powers of two. CALIBRATOR: a name of CalibMethod.
"""

import sys

from quark.onnx import AdaQuantConfig, AdaRoundConfig, BiasCorrectionConfig, CLEConfig, ModelQuantizer, QConfig, QLayerConfig, SmoothQuantConfig
from quark.onnx.quantization.config.spec import CalibMethod, Int8Spec, QuantGranularity, UInt8Spec, UInt16Spec, XInt8Spec

from feeding import Reader, prepared, rows

SPECS = {"int8": Int8Spec, "uint8": UInt8Spec, "uint16": UInt16Spec, "xint8": XInt8Spec}


def algorithms(words, count):
    """As the presets of Quark have them, with all samples; a step of AdaRound and AdaQuant sees one."""
    known = {"cle": CLEConfig, "smooth": SmoothQuantConfig, "bias": BiasCorrectionConfig,
             "adaround": lambda: AdaRoundConfig(learning_rate=0.1, num_iterations=1000, data_size=count),
             "adaquant": lambda: AdaQuantConfig(learning_rate=1e-5, num_iterations=3000, data_size=count)}
    return [make() for word, make in known.items() if word in words]


def static(activations, calibrator, words, count):
    activation = SPECS[activations](calibration_method=getattr(CalibMethod, calibrator))
    weight = XInt8Spec() if activations == "xint8" else Int8Spec(calibration_method=CalibMethod.MinMax)
    if "channel" in words:
        weight.set_quant_granularity(QuantGranularity.Channel)
    # The options are those of the preset A8W8 without what it aligns for the NPU.
    return QConfig(QLayerConfig(activation=activation, weight=weight), algo_config=algorithms(words, count),
                   extra_options={"ForceQuantizeNoInputCheck": True, "FoldRelu": True, "EnableNPUCnn": False})


def nbits(algorithm, block, bits):
    params = {"Algorithm": algorithm, "GroupSize": block, "Symmetric": False, "Bits": bits}
    gptq = {"Bits": bits, "GroupSize": block, "PerChannel": True, "WeightSymmetric": False}
    return QConfig(QLayerConfig(activation=UInt8Spec(), weight=Int8Spec()),  # these are asked for, and say nothing here
                   extra_options={"UseMatMulNBits": True, "OptimizeModel": False, "SimplifyModel": False,
                                  "MatMulNBitsParams": params, "GPTQParams": gptq})


def main(path, calib, out, kind, how, *words):
    samples = rows(prepared(path, out), calib)
    if kind == "nbits":  # of MatMul alone: the model as it is, in which none became Gemm
        ModelQuantizer(nbits(how, *map(int, words))).quantize_model(path, out, Reader(samples))
        return
    config = static(kind, how, words, len(samples))
    ModelQuantizer(config).quantize_model(out + ".prepared.onnx", out, Reader(samples))


if __name__ == "__main__":
    main(*sys.argv[1:])
