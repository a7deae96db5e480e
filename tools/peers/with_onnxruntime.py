"""with_onnxruntime.py MODEL CALIB.npz OUT static|static16|static4|operators HOW
with_onnxruntime.py MODEL CALIB.npz OUT dynamic
with_onnxruntime.py MODEL CALIB.npz OUT nbits DEFAULT|HQQ|KQUANT|GPTQ BLOCK BITS
"""

import logging
import sys

import onnx
from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_dynamic, quantize_static

from feeding import Reader, prepared, rows

logging.disable(logging.ERROR)


def nbits(path, calib, out, how, block, bits):
    from onnxruntime.quantization import matmul_nbits_quantizer as q
    model = onnx.load(path)
    config = {"DEFAULT": lambda: q.DefaultWeightOnlyQuantConfig(block_size=block, is_symmetric=False, bits=bits),
              "HQQ": lambda: q.HQQWeightOnlyQuantConfig(block_size=block, bits=bits),
              "KQUANT": lambda: q.KQuantWeightOnlyQuantConfig(),
              "GPTQ": lambda: q.GPTQWeightOnlyQuantConfig(Reader(rows(model, calib)), block_size=block)}[how]()
    made = q.MatMulNBitsQuantizer(model, bits=bits, block_size=block, is_symmetric=False, algo_config=config)
    made.process()
    made.model.save_model_to_file(str(out))


def main(path, calib, out, kind, *words):
    if kind == "nbits":
        nbits(path, calib, out, words[0], *map(int, words[1:]))
        return
    model = prepared(path, out)
    if kind == "dynamic":
        quantize_dynamic(model, out, per_channel=True)
        return
    quantize_static(model, out, Reader(rows(model, calib)), per_channel=True,
                    quant_format=QuantFormat.QOperator if kind == "operators" else QuantFormat.QDQ,
                    activation_type=QuantType.QUInt16 if kind == "static16" else QuantType.QUInt8,
                    weight_type=QuantType.QInt4 if kind == "static4" else QuantType.QInt8,
                    calibrate_method=getattr(CalibrationMethod, words[0]))


if __name__ == "__main__":
    main(*sys.argv[1:])
