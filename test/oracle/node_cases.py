"""ONNX's own operator tests, which its package computes anew each time that they are asked for: here they are computed
once, and kept in build/node_cases, a file for each operator."""

import collections
import pickle
import warnings

import onnx

from common import BUILD, alone

FOLDER = BUILD / "node_cases" / onnx.__version__

# data_sets: pairs of lists, the values of inputs and outputs, arrays or messages of ONNX.
NodeCase = collections.namedtuple("NodeCase", "name model data_sets")


def make():
    from onnx.backend.test.case.node import collect_testcases
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    by_op = collections.defaultdict(list)
    for case in found:
        op = case.model.graph.node[0].op_type
        by_op[op].append((case.name, case.model.SerializeToString(), case.data_sets))
    for op, cases in by_op.items():
        (FOLDER / f"{op}.pickle").write_bytes(pickle.dumps(cases))
    (FOLDER / "made").touch()


def node_cases(op="*"):
    """All, in the order of the operators of their first nodes, or those of one operator."""
    with alone(FOLDER):
        if not (FOLDER / "made").exists():
            make()
    for path in sorted(FOLDER.glob(f"{op}.pickle")):
        for name, model, data_sets in pickle.loads(path.read_bytes()):
            yield NodeCase(name, onnx.ModelProto.FromString(model), data_sets)
