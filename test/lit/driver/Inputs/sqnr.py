"""sqnr.py MODEL COMPARED: what nodes state under qxc.sqnr, and whether `qxc compare -json` says the same."""

import json
import sys

import onnx


def main(model_path, compared_path):
    model = onnx.load(model_path)
    onnx.checker.check_model(model, full_check=True)
    with open(compared_path, encoding="utf-8") as file:
        compared = json.load(file)
    expected = {row["name"]: row["sqnr_db"] for row in compared["values"]}
    agree = differ = 0
    for node in model.graph.node:
        for text in [p.value for p in node.metadata_props if p.key == "qxc.sqnr"]:
            print(f"{node.op_type} {node.name}: {text}")
            if node.output[0] in expected and text.endswith(" dB"):
                close = abs(float(text.removesuffix(" dB")) - expected[node.output[0]]) < 0.02
                agree += close
                differ += not close
    print(f"{agree} agree with compare, {differ} differ")


if __name__ == "__main__":
    main(*sys.argv[1:])
