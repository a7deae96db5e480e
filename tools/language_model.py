#!/usr/bin/env python3
"""Makes and trains a small causal language model, and measures its perplexity with weights of few bits.

Usage: tools/language_model.py [--size tiny|small] [--text GLOB]... [--threads N]

The model predicts bytes of text that Debian ships (Perl's documentation and modules, licences): a decoder of the usual kind
(LayerNorm, causal attention, GELU). `small` trains for some 40 minutes on two processors, `tiny` for two. It is trained
with torch from PyPI, in a virtual environment of its own, build/lm/venv; text, weights and model stay under build/lm, so
that a second run only measures. Needs build/qxc. Nothing of it is part of the tests.

Bits a character are those of held-out text, run by onnxruntime: float, and `qxc -weight-only` in blocks of 32 without data and
with 128 pieces of the training text, beside onnxruntime's own rounding (MatMulNBitsQuantizer) where it has the bits.
"""

import argparse
import glob
import logging
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/lm"
PYTHON = BUILD / "venv/bin/python"
PACKAGES = ["torch", "onnx", "onnxruntime", "onnx_ir", "numpy"]
TEXTS = ["/usr/share/common-licenses/*", "/usr/share/perl/*/**/*.pod", "/usr/share/perl/*/**/*.pm"]
BYTES = 256  # what there is to predict
SIZES = {  # width, layers, heads, context, batch, steps, bytes of text
    "tiny": (128, 4, 4, 128, 16, 300, 2 << 20),
    "small": (256, 6, 8, 256, 24, 1500, 12 << 20),
}
WINDOWS = {"train": 128, "test": 64}  # pieces of text to calibrate with, and to measure on


def environment():
    """This file again, in the environment that has torch."""
    if pathlib.Path(sys.prefix) == PYTHON.parents[1]:
        return
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", PYTHON.parents[1]], check=True)
        subprocess.run([PYTHON, "-m", "pip", "-q", "install", *PACKAGES], check=True)
    os.execv(PYTHON, [str(PYTHON), *sys.argv])


def read_text(globs, most):
    """Bytes to train on and others to judge by: of pieces of 4 KiB every tenth."""
    import numpy as np

    paths = sorted({os.path.realpath(p) for pattern in globs for p in glob.glob(pattern, recursive=True) if os.path.isfile(p)})
    text = b"".join(pathlib.Path(p).read_bytes() for p in paths)[:most]
    if len(text) < 1 << 18:
        sys.exit(f"language_model: {len(text)} bytes of text are too few: --text names others")
    pieces = np.frombuffer(text[:len(text) >> 12 << 12], np.uint8).reshape(-1, 4096)
    held = np.arange(len(pieces)) % 10 == 9
    return pieces[~held].reshape(-1), pieces[held].reshape(-1)


def windows(text, n, length):
    """[n, length] of bytes, evenly spread."""
    import numpy as np

    starts = np.linspace(0, len(text) - length - 1, n).astype(int)
    return np.stack([text[s:s + length] for s in starts]).astype(np.int64)


# ---- training


def network(size):
    import torch
    from torch import nn
    from torch.nn import functional

    width, layers, heads, context = SIZES[size][:4]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            n, t = x.shape[:2]
            q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(n, t, width))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(BYTES, width), nn.Embedding(context, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, BYTES)

        def forward(self, ids):
            x = self.words(ids) + self.places.weight[: ids.shape[1]]
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    torch.manual_seed(0)
    return Decoder()


def train(size, text, threads):
    """Weights by name."""
    import numpy as np
    import torch
    from torch.nn import functional

    torch.set_num_threads(threads)
    context, batch, steps = SIZES[size][3:6]
    model, rng = network(size), np.random.default_rng(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    begin = time.monotonic()
    for step in range(steps):
        starts = rng.integers(0, len(text) - context - 1, batch)
        ids = torch.from_numpy(np.stack([text[s:s + context + 1] for s in starts]).astype(np.int64))
        loss = functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rate.step()
        if step % 50 == 49:
            print(f"step {step + 1} of {steps}: {loss.item() / np.log(2):.3f} bits a character, "
                  f"{time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return {k: v.detach().numpy() for k, v in model.state_dict().items()}


# ---- the model as ONNX


def export(size, weights, path):
    """ids [1, context] -> logits [1, context, BYTES], opset 20."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    width, layers, heads, context = SIZES[size][:4]
    nodes, constants = [], {}

    def const(name, value):
        constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def node(op, inputs, name, **attributes):
        nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def norm(x, name):
        return node("LayerNormalization", [x, const(f"{name}.weight", weights[f"{name}.weight"]),
                                           const(f"{name}.bias", weights[f"{name}.bias"])], name, axis=-1)

    def linear(x, name, scale=1.0):
        w, b = (weights[f"{name}.{part}"] * np.float32(scale) for part in ("weight", "bias"))
        return node("Add", [node("MatMul", [x, const(f"{name}.weight", w.T)], f"{name}.product"), const(f"{name}.bias", b)], name)

    def split(x, name, order):
        x = node("Reshape", [x, const("by_head", np.array([1, context, heads, width // heads]))], f"{name}.heads")
        return node("Transpose", [x], f"{name}.turned", perm=order)

    def attention(x, name):
        parts = {}
        for i, part in enumerate("qkv"):
            for kind in ("weight", "bias"):
                weights[f"{name}.{part}.{kind}"] = weights[f"{name}.qkv.{kind}"][i * width:(i + 1) * width]
            order = [0, 2, 3, 1] if part == "k" else [0, 2, 1, 3]
            parts[part] = split(linear(x, f"{name}.{part}"), f"{name}.{part}", order)
        scores = node("MatMul", [parts["q"], parts["k"]], f"{name}.scores")
        scaled = node("Mul", [scores, const("scale", np.float32((width // heads) ** -0.5))], f"{name}.scaled")
        mask = const("mask", np.triu(np.full((context, context), -1e4, np.float32), 1))
        shares = node("Softmax", [node("Add", [scaled, mask], f"{name}.masked")], f"{name}.shares", axis=-1)
        y = node("Transpose", [node("MatMul", [shares, parts["v"]], f"{name}.mixed")], f"{name}.back", perm=[0, 2, 1, 3])
        return linear(node("Reshape", [y, const("joined", np.array([1, context, width]))], f"{name}.joined"), f"{name}.out")

    x = node("Gather", [const("words", weights["words.weight"]), "ids"], "embedded")
    x = node("Add", [x, const("places", weights["places.weight"])], "placed")
    for i in range(layers):
        b = f"blocks.{i}"
        x = node("Add", [x, attention(norm(x, f"{b}.norm1"), b)], f"{b}.first")
        up = node("Gelu", [linear(norm(x, f"{b}.norm2"), f"{b}.up")], f"{b}.gelu")
        x = node("Add", [x, linear(up, f"{b}.down")], f"{b}.second")
    linear(norm(x, "norm"), "head")
    graph = helper.make_graph(nodes, "decoder", [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, context])],
                              [helper.make_tensor_value_info("head", TensorProto.FLOAT, [1, context, BYTES])], list(constants.values()))
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])
    onnx.checker.check_model(model)
    onnx.save(model, path)


# ---- measuring


def bits_of(model, ids):
    """Mean of -log2 of what the model gives the byte that comes."""
    import numpy as np
    import onnxruntime
    from perplexity import bits

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options)
    return np.mean([bits(session.run(None, {"ids": row[None, :-1]})[0][0], row[1:]) for row in ids])


def quantized(path, width, calib=None):
    out = path.with_suffix(f".int{width}{'.data' if calib else ''}.onnx")
    subprocess.run([ROOT / "build/qxc", path, "-weight-only", f"-weights=int{width} block(32)", *([f"-calib={calib}"] if calib else []),
                    "-emit=qop", "-no-sync", "-quiet", "-o", out], check=True)
    return str(out)


def rounded_by_onnxruntime(path, width):
    """None where it has no such bits for this."""
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

    logging.disable(logging.INFO)  # it tells of each node
    if width not in (2, 4):
        return None
    config = DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=False, bits=width)
    made = MatMulNBitsQuantizer(onnx.load(path), bits=width, block_size=32, is_symmetric=False, algo_config=config)
    made.process()
    return made.model.model.SerializeToString()


def measure(path, calib, ids):
    plain = bits_of(str(path), ids)
    print(f"float: {plain:.4f} bits a character, perplexity {2 ** plain:.4f}")
    print("weights, blocks of 32 | onnxruntime | qxc | qxc with data | perplexity with data, to float")
    for width in (4, 3, 2):
        theirs = rounded_by_onnxruntime(path, width)
        ours = [bits_of(quantized(path, width, data), ids) for data in (None, calib)]
        row = [f"{bits_of(theirs, ids):.4f}" if theirs else "-", *(f"{b:.4f}" for b in ours), f"+{100 * (2 ** (ours[1] - plain) - 1):.2f} %"]
        print(f"int{width} | {' | '.join(row)}", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--size", choices=SIZES, default="small")
    options.add_argument("--text", action="append", help="files to learn from (default: Perl's documentation, licences)")
    options.add_argument("--threads", type=int, default=2)
    args = options.parse_args()
    environment()
    import numpy as np

    folder = BUILD / args.size
    folder.mkdir(parents=True, exist_ok=True)
    path, calib = folder / "decoder.onnx", folder / "calib.npz"
    context, most = SIZES[args.size][3], SIZES[args.size][6]
    learned, held = read_text(args.text or TEXTS, most)
    judged = windows(held, WINDOWS["test"], context + 1)
    if not path.exists():
        export(args.size, train(args.size, learned, args.threads), path)
        np.savez(calib, ids=windows(learned, WINDOWS["train"], context)[:, None])
    np.savez(folder / "test.npz", ids=judged[:, None])  # for tools/peers
    measure(path, calib, judged)


if __name__ == "__main__":
    main()
