"""The light models of the `onnx` package with sensible random weights, made once and kept."""

import hashlib
import os
import subprocess
import sys

import numpy as np

from common import ROOT, alone

FOLDER = ROOT / "build/light"  # one for all build folders: 1.4 GB
SMALL = ("squeezenet", "shufflenet", "inception_v1", "densenet121")
MEDIUM = ("inception_v2", "resnet50")
BIG = ("bvlc_alexnet", "zfnet512", "vgg19")
IMAGES = 4
TOOL = ROOT / "tools/refill_light.py"


def selected():
    """QXC_LIGHT=small leaves out what takes long, and so do sanitizers unless told QXC_LIGHT=all."""
    default = "small" if os.environ.get("SANITIZE") else "all"
    return SMALL if os.environ.get("QXC_LIGHT", default) == "small" else SMALL + MEDIUM + BIG


def light(name, narrow=False):
    """The model's path, and its images: {input: [IMAGES, ...]}. `narrow`: with a quarter of the channels."""
    file = f"{name}_narrow" if narrow else name
    path, images, stamp = (FOLDER / f"{file}{end}" for end in (".onnx", "_inputs.npz", ".made-by"))
    key = hashlib.sha256(TOOL.read_bytes()).hexdigest()
    with alone(FOLDER):
        if not (stamp.exists() and stamp.read_text() == key and path.exists() and images.exists()):
            subprocess.run([sys.executable, TOOL, "-o", FOLDER, "--inputs", str(IMAGES),
                            f"--narrow={4 if narrow else 1}", name],
                           check=True, stdout=subprocess.DEVNULL)
            stamp.write_text(key)
    with np.load(images) as loaded:
        return path, {key: rows.reshape(len(rows), *rows.shape[-3:]) for key, rows in loaded.items()}
