"""Quantizes small trained networks in many ways and prints how near each comes: quantized_models.py MODELS FOLDER."""
import re
import subprocess
import sys

MODELS, FOLDER = sys.argv[1:3]
WAYS = {
    "cancer": ["", "-weights=int2", "-weights=int3 -activations=int16", "-weights=int4 -placement=all", "-pow2", "-calib-method=mse",
               "-no-bias-correction", "-per-tensor", "-weight-only -weights=int4", "-weight-only -weights=int2 -adaround",
               "-target=tensorrt", "-target=qnn", "-target=tract", "-min-sqnr=45", "-reduce-range", "-activations=uint4"],
    "lstm": ["", "-weights=int2", "-weights=int4 -activations=int16", "-calib-method=mse", "-placement=all"],
    "vit": ["-weights=int2", "-equalize -weights=int4", "-smooth-quant", "-target=openvino", "-preset=vit"],
    "cnn": ["-weights=int3", "-per-tensor", "-equalize"],
}

for model, ways in WAYS.items():
    for way in ways:
        done = subprocess.run(["qxc", f"{MODELS}/{model}.onnx", f"-calib={MODELS}/{model}.calib.npz", *way.split(), "-emit=qdq",
                               "-no-sync", "-o", f"{FOLDER}/q.onnx"], capture_output=True, text=True, check=False)
        told = re.findall(r"SQNR (\S+) dB|worst values: (.*)|error: (.*)", done.stderr)
        print(f"{model} {way}:", ", ".join("".join(t) for t in told))
