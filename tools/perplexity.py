"""How well a model of text tells what comes next."""

import numpy as np


def bits(logits, labels):
    """Mean of -log2 of the share that logits [..., classes] give to labels [...]."""
    logits = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    sure = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return -float(np.take_along_axis(sure, labels[..., None].astype(int), -1).mean() / np.log(2))


def perplexity(logits, labels):
    """Among how many equally likely ones that is a choice."""
    return 2 ** bits(logits, labels)
