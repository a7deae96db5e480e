"""What scripts of other tools share: the data as they want them, and the model prepared for them."""

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader
from onnxruntime.quantization.shape_inference import quant_pre_process


def rows(model, calib):
    """One sample a time, with its first axis where the model has one for samples."""
    arrays = dict(np.load(calib))
    ranks = {v.name: len(v.type.tensor_type.shape.dim) for v in model.graph.input}
    count = len(next(iter(arrays.values())))
    return [{k: v[i:i + 1] if ranks[k] == v.ndim else v[i] for k, v in arrays.items()} for i in range(count)]


def prepared(path, out):
    """BatchNormalization folded, constants computed: tools that do not do so themselves ask for it."""
    quant_pre_process(path, out + ".prepared.onnx", skip_symbolic_shape=True)
    return onnx.load(out + ".prepared.onnx")


class Reader(CalibrationDataReader):
    """Samples as tools with onnxruntime's interface ask for them. Quark and ModelOpt begin anew, and ModelOpt looks at the first."""

    def __init__(self, data):
        self.rows = data
        self.rewind()

    def rewind(self):
        self.data = iter(self.rows)

    def get_next(self):
        return next(self.data, None)

    def get_first(self):
        return self.rows[0]
