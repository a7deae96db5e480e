"""external_data.py FOLDER: writes m.onnx with external data in constants, a default, an attribute and
a nested graph. external_data.py FOLDER NAME: fails unless that model computes the same."""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

folder = pathlib.Path(sys.argv[1])
BIG, SMALL = np.arange(4096, dtype=np.float32), np.arange(8, dtype=np.float32) + 0.5


def external(name, array, offset):
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=array.shape)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "w.bin"), ("offset", offset), ("length", array.nbytes)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def info(name, *shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def branch(name, source, consts):
    return helper.make_graph([helper.make_node("Identity", [source], [name])], name + "_branch", [],
                             [info(name, 8)], consts)


def write():
    (folder / "w.bin").write_bytes(BIG.tobytes() + SMALL.tobytes())
    at = BIG.nbytes
    nodes = [
        helper.make_node("Add", ["x", "w"], ["y"]),
        helper.make_node("Constant", [], ["c"], value=external("", SMALL, at)),
        helper.make_node("If", ["cond"], ["z"], then_branch=branch("t", "u", [external("u", SMALL, at)]),
                         else_branch=branch("e", "v", [])),
    ]
    graph = helper.make_graph(
        nodes, "g", [info("x", 4096), info("cond", kind=TensorProto.BOOL), info("v", 8)],
        [info("y", 4096), info("z", 8), info("c", 8)],
        [external("w", BIG, 0), external("v", SMALL, at)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (folder / "m.onnx").write_bytes(model.SerializeToString())


def check(name):
    import onnxruntime

    run = onnxruntime.InferenceSession(folder / name).run
    for cond in (True, False):
        y, z, c = run(None, {"x": BIG, "cond": np.array(cond)})
        assert (y == BIG * 2).all() and (z == SMALL).all() and (c == SMALL).all()


write() if len(sys.argv) == 2 else check(sys.argv[2])
