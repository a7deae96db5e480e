"""with_aimet.py MODEL CALIB.npz OUT WEIGHT_BITS ACTIVATION_BITS [enhanced] [htp] [cle] [seqmse] [adaround=STEPS]"""

import logging
import sys

import onnx

logging.disable(logging.ERROR)

from aimet_onnx import QuantizationSimModel, apply_adaround, apply_seq_mse
from aimet_onnx.cross_layer_equalization import equalize_model

from feeding import prepared, rows


def main(path, calib, out, weights, activations, *words):
    model = prepared(path, out)
    samples = rows(model, calib)
    if "cle" in words:
        equalize_model(model)
    sim = QuantizationSimModel(model, param_type=f"int{weights}", activation_type=f"int{activations}",
                               quant_scheme="tf_enhanced" if "enhanced" in words else "min_max",
                               config_file="htp_v81" if "htp" in words else "default")
    if "seqmse" in words:
        apply_seq_mse(sim, samples)
    for steps in (word.split("=")[1] for word in words if word.startswith("adaround=")):
        apply_adaround(sim, samples, num_iterations=int(steps))
    sim.compute_encodings(samples)
    onnx.save(sim.to_onnx_qdq(), out)


if __name__ == "__main__":
    main(*sys.argv[1:])
