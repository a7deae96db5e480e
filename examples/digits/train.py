#!/usr/bin/env python3
"""Trains a small convolutional network on scikit-learn's 8x8 digits and writes it as ONNX.

Usage: train.py [-o FOLDER]     writes digits.onnx, calib.npz and test.npz

The same versions (requirements.txt) on the same kind of machine give the same bytes.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy: the order of its sums must not vary

import argparse
import io
import pathlib
import sys
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from sklearn.datasets import load_digits

from layers import BatchNorm, Conv, Head, MaxPool, Relu, Residual, Sequence, leaves

SEED = 7
TEST, CALIBRATION = 397, 200  # of 1797 samples; calibration is a part of the training samples
EPOCHS, BATCH = 40, 50
RATE, DECAY = 3e-3, 1e-4
WANTED_ACCURACY = 0.975
INPUT, OUTPUT = "image", "logits"


def load(rng):
    """Training and test samples: images [n, 1, 8, 8] in 0..1 and their digits."""
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, None]
    labels = digits.target.astype(np.int64)
    order = rng.permutation(len(images))
    test, train = order[:TEST], order[TEST:]
    return images[train], labels[train], images[test], labels[test]


def build(rng):
    return Sequence(
        stem=Sequence(conv=Conv(rng, 1, 16, 3), norm=BatchNorm(16), relu=Relu(), pool=MaxPool()),
        widen=Sequence(conv=Conv(rng, 16, 32, 3), norm=BatchNorm(32), relu=Relu()),
        block=Residual(Sequence(
            depthwise=Conv(rng, 32, 32, 3, depthwise=True), norm1=BatchNorm(32), relu=Relu(),
            pointwise=Conv(rng, 32, 32, 1), norm2=BatchNorm(32))),
        block_relu=Relu(),
        head=Head(rng, 32, 10),
    )


class Adam:
    """Adam, with decoupled weight decay on the weights of Conv and Gemm."""

    def __init__(self, layers):
        self.layers, self.step = layers, 0
        self.state = [{k: (np.zeros_like(v), np.zeros_like(v)) for k, v in l.params.items()}
                      for l in layers]

    def update(self, rate):
        self.step += 1
        rate = rate * np.sqrt(1 - 0.999**self.step) / (1 - 0.9**self.step)
        for layer, state in zip(self.layers, self.state):
            for key, g in layer.grads.items():
                m, v = state[key]
                m += np.float32(0.1) * (g - m)
                v += np.float32(0.001) * (g * g - v)
                layer.params[key] -= np.float32(rate) * m / (np.sqrt(v) + np.float32(1e-8))
                if key == "weight":
                    layer.params[key] *= np.float32(1 - RATE * DECAY)


def shifted(rng, images):
    """Each image moved by up to one pixel each way."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    offsets = rng.integers(0, 3, (len(images), 2))
    return np.stack([p[:, y:y + 8, x:x + 8] for p, (y, x) in zip(padded, offsets)])


def loss_gradient(logits, labels):
    """Mean cross entropy and its gradient."""
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(p[rows, labels]).mean()
    p[rows, labels] -= 1
    return loss, p / np.float32(len(labels))


def train(rng, net, images, labels):
    optimizer = Adam(leaves(net))
    for epoch in range(EPOCHS):
        rate = RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        order, losses = rng.permutation(len(images)), []
        for start in range(0, len(order), BATCH):
            batch = order[start:start + BATCH]
            logits = net.forward(shifted(rng, images[batch]), training=True)
            loss, gradient = loss_gradient(logits, labels[batch])
            net.backward(gradient)
            optimizer.update(rate)
            losses.append(loss)
        print(f"epoch {epoch + 1:2} loss {np.mean(losses):.4f}", flush=True)


class GraphMaker:
    """Collects nodes and initializers; a node's output has the node's name."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def weight(self, name, value):
        self.weights.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def node(self, op, name, inputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name


def export(net):
    make = GraphMaker()
    net.onnx(make, "", INPUT)
    make.nodes[-1].output[0] = OUTPUT
    graph = helper.make_graph(
        make.nodes, "digits",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["N", 10])],
        make.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                              ir_version=8, producer_name="digits/train.py")
    onnx.checker.check_model(model, full_check=True)
    return model


def write_npz(path, **arrays):
    """np.savez stamps the time of day and so never gives the same file twice."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            data = io.BytesIO()
            np.lib.format.write_array(data, array, allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            archive.writestr(entry, data.getvalue())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", dest="folder", type=pathlib.Path,
                        default=pathlib.Path(__file__).parent, help="where to write")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)

    rng = np.random.default_rng(SEED)
    images, labels, test_images, test_labels = load(rng)
    net = build(rng)
    train(rng, net, images, labels)
    model = export(net)

    logits = ReferenceEvaluator(model).run(None, {INPUT: test_images})[0]
    own = net.forward(test_images, training=False)
    assert np.abs(logits - own).max() < 1e-3, "the exported model computes something else"
    right = int((logits.argmax(1) == test_labels).sum())
    print(f"test accuracy {right}/{TEST} = {right / TEST:.4f}")
    if right / TEST < WANTED_ACCURACY:
        sys.exit("accuracy is too low; nothing written")

    (folder / "digits.onnx").write_bytes(model.SerializeToString(deterministic=True))
    write_npz(folder / "calib.npz", **{INPUT: images[:CALIBRATION]})
    write_npz(folder / "test.npz", **{INPUT: test_images, "labels": test_labels})


if __name__ == "__main__":
    main()
