"""qxc, a compiler for quantized neural networks, from Python.

    import qxc
    model = qxc.quantize("model.onnx", calibration_data)  # an array, a dict, an .npz, a DataLoader
    print(model.text)                                     # what was decided, to read and to edit
    print(model.compare(data=test_data))                  # which value lost how much
    model.to_onnx("qdq", "model.int8.onnx")               # for a runtime
    model.to_c("firmware/model.c")                        # for a board

Options of the program are keywords: ``calib_method="percentile"`` is ``-calib-method=percentile``,
``integer_only=True`` is ``-integer-only``, a list repeats its option. ``qxc help`` shows them all.
"""

from qxc._calibrate import calibrate
from qxc._model import Model, Report, load, quantize
from qxc._program import AccuracyMissed, Diagnostic, Error, program, version

__all__ = ["AccuracyMissed", "Diagnostic", "Error", "Model", "Report", "calibrate", "load", "program",
           "quantize", "version"]
