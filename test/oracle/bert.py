"""BERT as PyTorch exports it, with random weights: any batch and length, shapes that are computed, masks by Where,
Gelu spelled out with Erf. BERT-base is Bert(layers=12, width=768, heads=12, words=30522)."""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper

from networks import Net

LOWEST = float(np.finfo(np.float32).min)


class Bert(Net):
    PLACES, KINDS, CLASSES = 512, 2, 5

    def __init__(self, layers, width, heads, words, seed=3):
        super().__init__(seed)
        self.layers, self.width, self.heads, self.words = layers, width, heads, words
        self.rng = np.random.default_rng(seed)

    def normal(self, *shape, spread):
        return self.const(spread * self.rng.standard_normal(shape, np.float32))

    def dense(self, x, size, out, spread=1.0):
        """PyTorch's Linear on three dimensions: weights turned by the exporter."""
        y = self.op("MatMul", x, self.normal(size, out, spread=spread / np.sqrt(size)))
        return self.op("Add", self.normal(out, spread=0.1), y)

    def norm(self, x):
        scale = self.rng.normal(1, 0.1, self.width)
        scale[:: self.width // 6] *= 4  # some channels are large, as in the trained model
        return self.op("LayerNormalization", x, self.const(scale), self.normal(self.width, spread=0.1),
                       axis=-1, epsilon=1e-12)

    def size(self, axis):
        return self.op("Unsqueeze", self.op("Gather", self.op("Shape", "input_ids"), self.const(axis, np.int64)),
                       self.ints(0))

    def mask(self):
        """[batch, 1, length, length]: 0 where the token counts, else the lowest float."""
        keep = self.op("Unsqueeze", self.op("Unsqueeze", "attention_mask", self.ints(1)), self.ints(2))
        shape = self.op("Concat", self.size(0), self.ints(1), self.size(1), self.size(1), axis=0)
        hide = self.op("Sub", self.const(1.0), self.op("Cast", self.op("Expand", keep, shape), to=T.FLOAT))
        return self.op("Where", self.op("Cast", hide, to=T.BOOL), self.const(LOWEST), hide)

    def embedding(self):
        words = self.op("Gather", self.normal(self.words, self.width, spread=0.05), "input_ids")
        kinds = self.op("Gather", self.normal(self.KINDS, self.width, spread=0.05), "token_type_ids")
        numbers = self.op("Slice", self.const(np.arange(self.PLACES)[None], np.int64), self.ints(0), self.size(1),
                          self.ints(1))
        places = self.op("Gather", self.normal(self.PLACES, self.width, spread=0.05), numbers)
        return self.norm(self.op("Add", self.op("Add", words, kinds), places))

    def split(self, x, perm):
        shape = self.op("Concat", self.size(0), self.size(1), self.ints(self.heads), self.ints(self.width // self.heads),
                        axis=0)
        return self.op("Transpose", self.op("Reshape", x, shape), perm=perm)

    def attention(self, x, mask):
        q, k, v = (self.dense(x, self.width, self.width, spread) for spread in (0.5, 0.5, 1.0))
        scores = self.op("MatMul", self.split(q, [0, 2, 1, 3]), self.split(k, [0, 2, 3, 1]))
        scores = self.op("Div", scores, self.const(np.sqrt(self.width / self.heads)))
        weights = self.op("Softmax", self.op("Add", scores, mask), axis=-1)
        y = self.op("Transpose", self.op("MatMul", weights, self.split(v, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
        shape = self.op("Concat", self.size(0), self.size(1), self.ints(self.width), axis=0)
        return self.dense(self.op("Reshape", y, shape), self.width, self.width)

    def gelu(self, x):
        y = self.op("Add", self.op("Erf", self.op("Div", x, self.const(np.sqrt(2)))), self.const(1.0))
        return self.op("Mul", self.op("Mul", x, y), self.const(0.5))

    def encoder(self):
        mask, x = self.mask(), self.embedding()
        for _ in range(self.layers):
            x = self.norm(self.op("Add", self.attention(x, mask), x))
            inner = self.gelu(self.dense(x, self.width, 4 * self.width))
            x = self.norm(self.op("Add", self.dense(inner, 4 * self.width, self.width), x))
        return x

    def build(self):
        x = self.encoder()
        first = self.op("Gather", x, self.const(0, np.int64), axis=1)
        pooled = self.op("Tanh", self.op("Gemm", first, self.normal(self.width, self.width, spread=self.width**-0.5),
                                         self.normal(self.width, spread=0.1), transB=1))
        y = self.op("Gemm", pooled, self.normal(self.CLASSES, self.width, spread=self.width**-0.5),
                    self.normal(self.CLASSES, spread=0.1), transB=1)
        names = {x: "last_hidden_state", y: "logits"}
        for node in self.nodes:
            node.input[:] = [names.get(i, i) for i in node.input]
            node.output[:] = [names.get(o, o) for o in node.output]
        shape = ["batch", "length"]
        graph = helper.make_graph(
            self.nodes, "bert",
            [helper.make_tensor_value_info(n, T.INT64, shape) for n in ("input_ids", "attention_mask", "token_type_ids")],
            [helper.make_tensor_value_info("last_hidden_state", T.FLOAT, [*shape, self.width]),
             helper.make_tensor_value_info("logits", T.FLOAT, ["batch", self.CLASSES])], self.constants)
        domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, ir_version=9, opset_imports=domains[:1 + isinstance(self, FusedBert)])

    def sentences(self, count, length, seed):
        """Token numbers of sentences of all lengths, filled up with 0."""
        rng = np.random.default_rng(seed)
        keep = np.arange(length) < rng.integers(length // 4 + 1, length + 1, (count, 1))
        return {"input_ids": rng.integers(1, self.words, (count, length)) * keep,
                "attention_mask": keep.astype(np.int64),
                "token_type_ids": ((np.arange(length) > length // 2) & keep).astype(np.int64)}


class FusedBert(Bert):
    """The same as onnxruntime's transformer optimizer leaves it, in operators of com.microsoft."""

    def ms(self, op, *operands, results=1, **attributes):
        made = self.op(op, *operands, results=results, **attributes)
        self.nodes[-1].domain = "com.microsoft"
        return made

    def norms(self):
        scale = self.rng.normal(1, 0.1, self.width)
        scale[:: self.width // 6] *= 4
        return self.const(scale), self.normal(self.width, spread=0.1)

    def skip(self, x, y, size):
        """LayerNormalization of y W + x, and of the bias."""
        product = self.op("MatMul", y, self.normal(size, self.width, spread=size**-0.5))
        return self.ms("SkipLayerNormalization", product, x, *self.norms(), self.normal(self.width, spread=0.1),
                       epsilon=1e-12)

    def encoder(self):
        ids, mask, kinds = (self.op("Cast", n, to=T.INT32) for n in ("input_ids", "attention_mask", "token_type_ids"))
        tables = [self.normal(rows, self.width, spread=0.05) for rows in (self.words, self.PLACES, self.KINDS)]
        x, index = self.ms("EmbedLayerNormalization", ids, kinds, *tables, *self.norms(), mask, results=2, epsilon=1e-12)
        for _ in range(self.layers):
            w = self.normal(self.width, 3 * self.width, spread=0.6 * self.width**-0.5)
            y = self.ms("Attention", x, w, self.normal(3 * self.width, spread=0.1), index, num_heads=self.heads)
            x = self.skip(x, y, self.width)
            inner = self.op("MatMul", x, self.normal(self.width, 4 * self.width, spread=self.width**-0.5))
            inner = self.ms("BiasGelu", inner, self.normal(4 * self.width, spread=0.1))
            x = self.skip(x, inner, 4 * self.width)
        return x


def bert_base(layers=12):
    return Bert(layers=layers, width=768, heads=12, words=30522)


def small():
    return Bert(layers=2, width=96, heads=4, words=200)


def small_fused():
    return FusedBert(layers=2, width=96, heads=4, words=200)


def save(net, path):
    onnx.save(net.build(), path)
