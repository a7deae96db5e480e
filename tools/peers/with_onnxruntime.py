"""with_onnxruntime.py MODEL CALIB.npz OUT static|static16|nbits HOW"""

import logging
import sys

import onnx
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static

from feeding import prepared, rows

logging.disable(logging.ERROR)


class Reader(CalibrationDataReader):
    def __init__(self, data):
        self.data = iter(data)

    def get_next(self):
        return next(self.data, None)


def nbits(model, how, out):
    from onnxruntime.quantization import matmul_nbits_quantizer as q
    config = {"DEFAULT": lambda: q.DefaultWeightOnlyQuantConfig(block_size=16, is_symmetric=False),
              "HQQ": lambda: q.HQQWeightOnlyQuantConfig(block_size=16, bits=4),
              "KQUANT": lambda: q.KQuantWeightOnlyQuantConfig()}[how]()
    made = q.MatMulNBitsQuantizer(onnx.load(model), block_size=16, algo_config=config)
    made.process()
    made.model.save_model_to_file(str(out))


def main(path, calib, out, kind, how):
    if kind == "nbits":
        nbits(path, how, out)
        return
    model = prepared(path, out)
    quantize_static(model, out, Reader(rows(model, calib)), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt16 if kind == "static16" else QuantType.QUInt8,
                    weight_type=QuantType.QInt8, calibrate_method=getattr(CalibrationMethod, how))


if __name__ == "__main__":
    main(*sys.argv[1:])
