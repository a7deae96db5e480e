"""As onnxruntime.quantization.qdq_loss_debug, whose functions on activations find what they look for in models that qxc wrote.

Running models is onnxruntime's here, so it has to be installed. Of weights qxc keeps the names, and so has a matching of its
own. `qxc compare` needs neither, and has both in one table.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnxruntime.quantization.qdq_loss_debug import (collect_activations, compute_activation_error,
                                                     compute_signal_to_quantization_noice_ratio, compute_weight_error,
                                                     create_activation_matching, modify_model_output_intermediate_tensors)

from qxc._program import LOG

__all__ = ["collect_activations", "compute_activation_error", "compute_signal_to_quantization_noice_ratio",
           "compute_weight_error", "create_activation_matching", "create_weight_matching",
           "modify_model_output_intermediate_tensors"]


def _constants(path: str | os.PathLike) -> tuple[Any, dict[str, Any]]:
    graph = onnx.load(path).graph
    return graph, {t.name: t for t in graph.initializer}


def _along(p: np.ndarray, like: np.ndarray, axis: int) -> np.ndarray:
    """A scale or zero point for each element: of the tensor, of a slice along `axis`, or of a block along it."""
    if p.size == 1:
        return p.reshape(())
    if p.ndim == like.ndim:
        block = -(-like.shape[axis] // p.shape[axis])
        return np.repeat(p, block, axis).take(range(like.shape[axis]), axis)
    return p.reshape([-1 if i == axis % like.ndim else 1 for i in range(like.ndim)])


def _dequantized(node: Any, constants: dict[str, Any]) -> np.ndarray:
    q, scale, *zero = (numpy_helper.to_array(constants[name]) for name in node.input if name)
    axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
    integers = q.astype(np.float32) if q.dtype.itemsize < 4 else q.astype(np.float64)
    if zero:
        integers = integers - _along(zero[0].astype(integers.dtype), q, axis)
    return (integers * _along(scale.astype(integers.dtype), q, axis)).astype(np.float32)


def create_weight_matching(float_model_path: str | os.PathLike, qdq_model_path: str | os.PathLike) -> dict[str, dict[str, np.ndarray]]:
    """The weights that both models have: "float" and "dequantized" by name. One that folding made, as of a Conv and the
    BatchNormalization behind it, is in the float model that quant_pre_process writes."""
    _, floats = _constants(float_model_path)
    graph, constants = _constants(qdq_model_path)
    found = {}
    for node in graph.node:
        if node.op_type != "DequantizeLinear" or any(name and name not in constants for name in node.input):
            continue
        name = node.input[0]
        name = name if name in floats else name.removesuffix("_quantized")
        if name in floats:
            found[name] = {"float": numpy_helper.to_array(floats[name]), "dequantized": _dequantized(node, constants)}
        else:
            LOG.warning("%s: the float model has no weight %s", qdq_model_path, name)
    return found
