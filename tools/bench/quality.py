"""How good quantization is: against quantize_static, and integer models against onnxruntime."""

import numpy as np

from common import model_path
from page import table
from quantized import sqnr_rows
from test_int_layers import end_to_end


def accuracy(folder, names):
    rows, gains = [], []
    for name in names:
        for form, mine, theirs in sqnr_rows(name, folder):
            gains.append(mine - theirs)
            rows.append((name, form, f"{mine:.2f}", f"{theirs:.2f}", f"{mine - theirs:+.2f}"))
    rows.append(("mean", "", "", "", f"{np.mean(gains):+.2f}"))
    return table(("model", "form", "qxc, dB", "quantize_static, dB", "difference"), rows)


def differences(folder, names):
    rows = []
    for name in names:
        path = model_path(name, "int8_qdq")
        for what, counts in end_to_end(path, name, folder):
            total = counts.sum()
            shares = [f"{100 * c / total:.3f}" if c else "0" for c in counts[:4]]
            shares += ["0"] * (4 - len(shares))
            more = counts[4:].sum()
            rows.append((name, what, *shares, f"{100 * more / total:.3f}" if more else "0",
                         len(counts) - 1))
    return table(("model", "what", "0 steps, %", "1", "2", "3", "more", "largest"), rows)


ACCURACY = """\
Signal to quantization noise at the output, against the float model. MinMax, weights int8 per
channel, activations uint8, the same calibration data for both; onnxruntime runs both results
without graph optimizations. `quantize_static` works on what its own `quant_pre_process` prepared.
Calibration and test data are real for ad (windows of one recording) and digits; for kws one real
spectrogram, shifted and rescaled; for ic and vww structured noise in the documented range.

{table}"""

DIFFERENCES = """\
The official integer models, 100 inputs each that reach at least half of the classes. Single layers
differ by at most one step (`make oracle T=int_layers` checks each with the same inputs, and the
QOperator form bit for bit); over many layers single steps grow, also between onnxruntime and
itself, which the third line of each model shows.

{table}"""
