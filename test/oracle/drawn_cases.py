"""Forms that a reference runs: onnxruntime, or onnx.reference where it has no kernel. What both refuse is no case."""

import contextlib
import os
import pickle
import traceback
import warnings
from typing import NamedTuple

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from common import session
from drawing import ORT_OPSET, draw
from operator_facts import BY_NAME

LARGEST = 20000  # elements of a result
REFUSALS = tuple(getattr(ort_errors, n) for n in ("Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "RuntimeException"))


class NoCase(Exception):
    """The reference refuses the form."""


class Case(NamedTuple):
    op: str
    seed: int
    model: onnx.ModelProto
    data: dict
    want: list
    reference: str

    def __str__(self):
        return f"QXC_OPS={self.op} QXC_SEED={self.seed} QXC_CASES=1"


def by_onnx(model, data):
    """What onnx.reference gives of a model that ONNX's checker takes."""
    try:
        typed = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        onnx.checker.check_model(typed)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            values = [np.asarray(v) for v in ReferenceEvaluator(model).run(None, data)]
    except Exception as e:  # pylint: disable=broad-except  # its operators raise what they like
        raise NoCase(str(e)) from e
    for value, info in zip(values, typed.graph.output, strict=True):
        stated = info.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else n for d, n in zip(stated.shape.dim, value.shape)]
        if onnx.helper.np_dtype_to_tensor_dtype(value.dtype) != stated.elem_type or stated.HasField("shape") and shape != list(value.shape):
            raise NoCase("onnx.reference gives another type than ONNX infers")
    return values


def expected(model, data):
    """The outputs, and whose they are."""
    if max(o.version for o in model.opset_import) > ORT_OPSET:
        return by_onnx(model, data), "onnx.reference"
    try:
        return session(model).run(None, data), "onnxruntime"
    except ort_errors.NotImplemented:
        return by_onnx(model, data), "onnx.reference"
    except REFUSALS as e:
        raise NoCase(str(e)) from e


def find_case(op, seed):
    for drawing, model, data in draw(BY_NAME[op], op, seed):
        try:
            want, reference = expected(model, data)
            if any(quirk.when(drawing, reference) for quirk in drawing.family.quirks):
                continue
        except NoCase:
            continue
        if sum(v.size for v in want) <= LARGEST:
            return Case(op, seed, model, data, want, reference)
    return None


def find_all(wanted, pipe):
    """In a process of its own: what onnxruntime says is nobody's business, and it may end by a signal."""
    with os.fdopen(pipe, "wb") as out:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        for op, seed in wanted:
            try:
                found = find_case(op, seed)
            except Exception:  # pylint: disable=broad-except
                found = traceback.format_exc()
            pickle.dump(found, out)
            out.flush()


def found_cases(wanted):
    """(op, seed, its Case; None where there is none; a text where the reference did not come back) of each."""
    wanted = list(wanted)
    while wanted:
        back, there = os.pipe()
        process = os.fork()
        if not process:
            find_all(wanted, there)
            os._exit(0)
        os.close(there)
        try:
            with os.fdopen(back, "rb") as found, contextlib.suppress(EOFError):
                while wanted:
                    case = pickle.load(found)
                    yield (*wanted.pop(0), case)
        finally:
            status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if wanted:
            yield (*wanted.pop(0), f"the reference ended with {status}")
