"""As onnxruntime.quantization.shape_inference: what stands before quantization there."""

from __future__ import annotations

import os
from typing import Any

from qxc._model import load
from qxc._program import LOG, call, options

OPTIMIZES = "freeze,fold-const,inline-branches,drop-identities,fold-pad,fold-affine"


def quant_pre_process(input_model: Any = None, output_model_path: str | os.PathLike | None = None,
                      skip_optimization: bool = False, skip_onnx_shape: bool = False, skip_symbolic_shape: bool = False,
                      auto_merge: bool = False, int_max: int = 2**31 - 1, guess_output_rank: bool = False, verbose: int = 0,
                      save_as_external_data: bool = False, all_tensors_to_one_file: bool = False,
                      external_data_location: str | None = None, external_data_size_threshold: int = 1024,
                      **deprecated_kwargs: Any) -> None:
    """As onnxruntime.quantization.quant_pre_process: folds what is constant, and BatchNormalization into what is before it.

    qxc infers shapes and folds whenever it quantizes, so that nothing depends on this step. What steers onnxruntime's
    inference of shapes has no effect; where it is asked for a warning says so.
    """
    model = input_model if input_model is not None else deprecated_kwargs.pop("input_model_path", None)
    if model is None or output_model_path is None:
        raise ValueError("quant_pre_process wants input_model and output_model_path")
    if deprecated_kwargs:
        raise TypeError(f"quant_pre_process has no argument {next(iter(deprecated_kwargs))!r}")
    for name, asked in (("auto_merge", auto_merge), ("guess_output_rank", guess_output_rank), ("int_max", int_max != 2**31 - 1),
                       ("external_data_size_threshold", save_as_external_data and external_data_size_threshold != 1024)):
        if asked:
            LOG.warning("quant_pre_process: %s has no effect: qxc decides that itself", name)
    keywords: dict[str, Any] = {"emit": "onnx", "passes": "" if skip_optimization else OPTIMIZES,
                "external_data": external_data_location or bool(save_as_external_data)}
    said = call([load(model).path, f"-o={os.fspath(output_model_path)}", *options(keywords)])
    LOG.info("%s", said.summary)
