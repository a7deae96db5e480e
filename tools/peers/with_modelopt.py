"""with_modelopt.py MODEL CALIB.npz OUT int8|int4 METHOD [block]"""

import sys

import onnx
from modelopt.onnx.quantization import quantize

from feeding import Reader, prepared, rows


def main(path, calib, out, mode, method, *words):
    samples = rows(prepared(path, out), calib)
    # What is not quantized stays float32 as with the other tools; the default is half of that.
    quantize(out + ".prepared.onnx", quantize_mode=mode, calibration_method=method, calibration_data_reader=Reader(samples),
             calibration_eps=["cpu"], high_precision_dtype="fp32", output_path=out, log_level="ERROR",
             **({"block_size": int(words[0])} if words else {}))


if __name__ == "__main__":
    main(*sys.argv[1:])
