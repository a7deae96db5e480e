"""As python -m onnxruntime.quantization.preprocess, with the same options."""

from __future__ import annotations

import argparse
import sys

from qxc._program import Error
from qxc.onnxruntime.shape_inference import quant_pre_process

FLAGS = ("auto_merge", "guess_output_rank", "save_as_external_data", "all_tensors_to_one_file")
BOOLS = ("skip_optimization", "skip_onnx_shape", "skip_symbolic_shape")
NUMBERS = {"int_max": 2**31 - 1, "verbose": 0, "external_data_size_threshold": 1024}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m qxc.onnxruntime.preprocess", description=quant_pre_process.__doc__)
    parser.add_argument("--input", required=True, help="the model")
    parser.add_argument("--output", required=True, help="the model to write")
    parser.add_argument("--external_data_location", help="the file for external data")
    for name in FLAGS:
        parser.add_argument(f"--{name}", action="store_true")
    for name in BOOLS:  # any word but an empty one means yes there
        parser.add_argument(f"--{name}", type=bool, default=False)
    for name, number in NUMBERS.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    given = vars(parser.parse_args())
    try:
        quant_pre_process(given.pop("input"), given.pop("output"), **given)
    except (Error, OSError, ValueError) as error:
        print(f"qxc: error: {error}", file=sys.stderr)
        return getattr(error, "exit_code", 1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
