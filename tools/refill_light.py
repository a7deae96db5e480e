#!/usr/bin/env python3
"""Gives the light models of the `onnx` package weights that a network could have.

Usage: refill_light.py -o FOLDER [--seed N] [--inputs N] [--narrow N] [MODEL...]

The nine models (resnet50, vgg19, ...) are real topologies, opset 9 and IR 3, but all their weights
are one constant, mostly made by ConstantOfShape nodes. This writes copies with random weights as
initializers, which stay graph inputs as IR 3 wants it.

Random weights of the textbook size do not keep a deep network alive: its channels drift to
constants. So each layer is drawn and then run on a few images: its weights are scaled to unit
output, the bias or the statistics of a batch normalization are set from what comes out, as training
would. The result is then checked with onnxruntime on images not seen before and on white noise:
the standard deviation of every value must lie in 0.01..100, and no class may take all.
The same seed gives the same bytes on one machine.

With --narrow=4 each layer of a network in a row (vgg19, zfnet512) has a quarter of its channels: MODEL_narrow.onnx.
"""

import argparse
import pathlib
import sys
import time
import zipfile
import zlib

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

LIGHT = pathlib.Path(onnx.__file__).parent / "backend/test/data/light"
PICTURES, NOISE = 4, 2  # inputs that the weights are fitted to; both kinds must work afterwards
LOGIT_STD = 2.0  # of the last layer; everywhere else 1
AVERAGED_LOGIT_STD = 12.0  # of a last layer whose output is averaged over the image
LOW, HIGH, SATURATED = 1e-2, 1e2, 0.9
CLASSES = 1000


def image(rng, shape):
    """Noise at several scales, as pictures have it; mean 0, standard deviation 1."""
    total = rng.standard_normal(shape)
    for cell in (8, 32, 112):
        coarse = rng.standard_normal((*shape[:2], shape[2] // cell, shape[3] // cell))
        total += coarse.repeat(cell, 2).repeat(cell, 3)
    return ((total - total.mean()) / total.std()).astype(np.float32)


def white_noise(rng, shape):
    return rng.standard_normal(shape).astype(np.float32)


def session(model, optimize=False):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    if not optimize:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def node_session(node, opset):
    """A session of one node, all its inputs as graph inputs."""
    def info(name, kind):
        return helper.make_tensor_value_info(name, kind, None)

    kinds = [TensorProto.FLOAT] * len(node.input)
    if node.op_type == "Reshape":
        kinds[1] = TensorProto.INT64
    graph = helper.make_graph([node], "node", list(map(info, dict.fromkeys(node.input), kinds)),
                              [info(node.output[0], TensorProto.FLOAT)])
    return session(helper.make_model(graph, opset_imports=opset, ir_version=8), optimize=True)


class Refill:
    """Runs one model node by node and gives each weight its value when its node is reached."""

    def __init__(self, model, seed):
        self.model, self.graph, self.seed = model, model.graph, seed
        self.initial = {t.name: numpy_helper.to_array(t) for t in self.graph.initializer}
        self.weights = {}  # name -> value, filled as nodes are reached
        self.leaves = {}  # value that is a weight, perhaps in another shape -> (weight, shape)
        for name, array in self.initial.items():
            if array.dtype == np.float32:
                self.leaves[name] = (name, array.shape)
        for node in self.graph.node:
            if node.op_type == "ConstantOfShape":
                shape = tuple(int(d) for d in self.initial[node.input[0]])
                self.leaves[node.output[0]] = (node.output[0], shape)
        self.uses = {}
        for node in self.graph.node:
            for name in node.input:
                self.uses.setdefault(name, []).append(node)

    def rng(self, name):
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def fill(self, value, make):
        """Sets the weight behind `value` to make(rng, shape), once."""
        leaf, shape = self.leaves[value]
        if leaf not in self.weights:
            array = np.asarray(make(self.rng(leaf), shape), np.float32)
            self.weights[leaf] = array.reshape(self.leaves[leaf][1])
        return self.weights[leaf].reshape(shape)

    def set(self, value, array):
        leaf, _ = self.leaves[value]
        self.weights[leaf] = np.asarray(array, np.float32).reshape(self.leaves[leaf][1])

    def only_reshapes_a_weight(self, node):
        if node.op_type not in ("Unsqueeze", "Reshape") or node.input[0] not in self.leaves:
            return False
        leaf, shape = self.leaves[node.input[0]]
        if node.op_type == "Reshape":
            shape = np.empty(shape, np.float32).reshape(self.initial[node.input[1]]).shape
        else:
            axes = next(a.ints for a in node.attribute if a.name == "axes")
            shape = np.expand_dims(np.empty(shape, np.float32), tuple(axes)).shape
        self.leaves[node.output[0]] = (leaf, shape)
        return True

    def prepare(self, node, inputs):
        """Draws the weights of a node; those of Conv and Gemm are scaled afterwards by fit()."""
        data = node.input
        if node.op_type in ("Conv", "Gemm"):
            assert data[1] in self.leaves, node.name
            flag = next((a.i for a in node.attribute if a.name == "transB"), 0)
            self.fill(data[1], lambda rng, s: he_normal(rng, s, node.op_type == "Conv" or flag))
            if len(data) > 2:
                self.fill(data[2], lambda rng, s: np.zeros(s))
        elif node.op_type == "BatchNormalization":
            x = np.concatenate(inputs[data[0]])
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
            self.fill(data[1], lambda rng, s: 1 + 0.1 * rng.standard_normal(s))
            self.fill(data[2], lambda rng, s: 0.1 * rng.standard_normal(s))
            self.fill(data[3], lambda rng, s: mean)
            self.fill(data[4], lambda rng, s: np.maximum(var, 0.05 * var.mean()))
        else:
            base = 1 if node.op_type == "Mul" else 0
            for name in data[1:]:
                if name in self.leaves:
                    self.fill(name, lambda rng, s: base + 0.1 * rng.standard_normal(s))

    def fit(self, node, outputs):
        """Scales a Conv or Gemm to unit output around its bias. Returns the new outputs."""
        y = np.concatenate(outputs)
        axes = tuple(a for a in range(y.ndim) if a != 1)
        mean = y.mean(axes, keepdims=True)
        spread = max(np.sqrt(y.var(axes).mean()), y.std() / 4)  # never lifts noise out of nothing
        gain = self.gain(node) / spread
        self.set(node.input[1], self.fill(node.input[1], None) * np.float32(gain))
        if len(node.input) < 3:
            return [o * np.float32(gain) for o in outputs]
        noise = 0.1 * self.rng(node.input[2]).standard_normal(mean.shape)
        bias = (noise - mean * gain).astype(np.float32)
        self.set(node.input[2], bias)
        return [o * np.float32(gain) + bias for o in outputs]

    def gain(self, node):
        """The standard deviation to give a layer: more before the softmax, most if averaged."""
        gain, todo = LOGIT_STD, [node]
        while todo:
            for user in self.uses.get(todo.pop().output[0], []):
                if user.op_type in ("Conv", "Gemm", "BatchNormalization"):
                    return 1.0
                if user.op_type == "GlobalAveragePool":
                    gain = AVERAGED_LOGIT_STD
                todo.append(user)
        return gain

    def run(self, images):
        data = next(i.name for i in self.graph.input if i.name not in self.initial)
        values, left = {data: images}, {name: len(nodes) for name, nodes in self.uses.items()}
        for node in self.graph.node:
            if node.op_type == "ConstantOfShape" or self.only_reshapes_a_weight(node):
                continue
            self.prepare(node, values)
            runner = node_session(node, self.model.opset_import)
            outputs = []
            for i in range(len(images)):
                feeds = {name: self.value(values, name, i) for name in node.input}
                outputs += runner.run([node.output[0]], feeds)
            values[node.output[0]] = (
                self.fit(node, outputs) if node.op_type in ("Conv", "Gemm") else outputs)
            for name in node.input:
                left[name] -= 1
                if left[name] == 0:
                    values.pop(name, None)

    def value(self, values, name, i):
        if name in values:
            return values[name][i]
        return self.fill(name, None) if name in self.leaves else self.initial[name]

    def result(self):
        """The model with the weights in place of the nodes that made them."""
        made = {n.input[0]: n.output[0] for n in self.graph.node if n.op_type == "ConstantOfShape"}
        initializers, inputs = [], []
        for tensor in self.graph.initializer:
            name = made.get(tensor.name, tensor.name)
            array = self.weights.get(name, self.initial.get(name))
            initializers.append(numpy_helper.from_array(array, name))
        for value in self.graph.input:
            name = made.get(value.name)
            inputs.append(value if name is None else helper.make_tensor_value_info(
                name, TensorProto.FLOAT, self.weights[name].shape))
        nodes = [n for n in self.graph.node if n.op_type != "ConstantOfShape"]
        graph = helper.make_graph(nodes, self.graph.name, inputs, self.graph.output, initializers)
        return helper.make_model(graph, opset_imports=self.model.opset_import,
                                 ir_version=self.model.ir_version,
                                 producer_name="refill_light.py")


def he_normal(rng, shape, outputs_first):
    fan_in = np.prod(shape[1:] if outputs_first else shape[:-1])
    return rng.standard_normal(shape) * np.sqrt(2 / fan_in)


def check(model, data, images):
    """Least and greatest standard deviation of any value, and the likeliest class."""
    tapped = onnx.ModelProto()
    tapped.CopyFrom(model)
    names = [n.output[0] for n in model.graph.node]
    constant = {t.name for t in model.graph.initializer}
    for node in model.graph.node:
        if all(name in constant for name in node.input):
            constant.add(node.output[0])
    del tapped.graph.output[:]
    names = [name for name in names if name not in constant]
    tapped.graph.output.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    runner = session(tapped)
    results = [runner.run(names, {data: x}) for x in images]
    stds = [(float(np.std(value)), name) for r in results for name, value in zip(names, r)
            if name != model.graph.output[0].name]
    scores = np.stack([r[-1].ravel() for r in results]).astype(np.float64)
    if model.graph.node[-1].op_type != "Softmax":  # densenet121 ends in logits
        scores = np.exp(scores - scores.max(1, keepdims=True))
    return min(stds), max(stds), float((scores / scores.sum(1, keepdims=True)).max())


def write_inputs(path, name, images):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
        with archive.open(entry, "w") as file:
            np.lib.format.write_array(file, np.concatenate(images))


def narrow(graph, by):
    """Fewer channels, in the shapes that the weights are made of; classes and colours stay."""
    def fewer(n):
        return n // by if n >= 64 and n != CLASSES else n

    sizes = {}
    for tensor in graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.int64:
            array = np.array([fewer(int(n)) for n in array], np.int64)
        elif array.ndim == 1:
            array = array[: fewer(len(array))]
        sizes[tensor.name] = array.shape
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    for value in graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, sizes.get(value.name, ())):
            dim.dim_value = size


def refill(name, args):
    start = time.perf_counter()
    model = onnx.load(LIGHT / f"light_{name}.onnx")
    if args.narrow > 1:
        narrow(model.graph, args.narrow)
        name += "_narrow"
    refill = Refill(model, args.seed)
    data = next(i for i in model.graph.input if i.name not in refill.initial)
    shape = tuple(d.dim_value for d in data.type.tensor_type.shape.dim)
    rng = np.random.default_rng([args.seed, 1])
    refill.run([image(rng, shape) for _ in range(PICTURES)]
               + [white_noise(rng, shape) for _ in range(NOISE)])
    result = refill.result()
    path = args.folder / f"{name}.onnx"
    path.write_bytes(result.SerializeToString(deterministic=True))
    fresh = [image(rng, shape) for _ in range(max(2, args.inputs))]
    if args.inputs:
        write_inputs(args.folder / f"{name}_inputs.npz", data.name, fresh[: args.inputs])
    spent = time.perf_counter() - start

    low, high, top = check(result, data.name, [*fresh[:2], white_noise(rng, shape)])
    good = LOW <= low[0] and high[0] <= HIGH and top < SATURATED
    print(f"{name:14} {path.stat().st_size / 1e6:6.1f} MB {spent:5.1f} s  "
          f"std {low[0]:.3f} ({low[1]}) .. {high[0]:.2f} ({high[1]}), top class {top:.3f}"
          f"{'' if good else '  OUT OF RANGE'}", flush=True)
    return good


def main():
    known = sorted(p.stem.removeprefix("light_") for p in LIGHT.glob("*.onnx"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", dest="folder", type=pathlib.Path, required=True, help="where to write")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inputs", type=int, default=0,
                        help="also write MODEL_inputs.npz with so many images")
    parser.add_argument("--narrow", type=int, default=1, help="divide channels by so much")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {' '.join(known)}")
    args = parser.parse_args()
    unknown = set(args.models) - set(known)
    if unknown:
        parser.error(f"no such model: {' '.join(sorted(unknown))}")
    args.folder.mkdir(parents=True, exist_ok=True)
    return 0 if all([refill(name, args) for name in args.models or known]) else 1


if __name__ == "__main__":
    sys.exit(main())
