"""docs/peers.md of what was measured."""

import numpy as np

from recipes import FORMATS, LANGUAGE, RECIPES

HEAD = """# Beside other quantizers

    make accuracy

writes this page. Each tool quantizes the same float model on the same data, in a process and an environment of its own: {versions}. Results are QDQ
models (MatMulNBits for weights alone), which onnxruntime runs without graph optimizations on test data that no tool saw. Cells are the
signal to quantization noise of the worst output in dB{seeds}; bold is the best of a column. \\* marks models of which
some product with weights is left in float, which no lead counts. A cell without a number has its reason at the end; the limit is ten minutes of CPU.
What is measured is kept in `build/peers`, so that a run goes on where one stopped; qxc's cells are measured anew where the program has changed.
"""

COSTS = (("cpu", "## Cost\n\nCPU seconds of W8A8, the start of Python included:\n\n", lambda x: f"{x:.1f}"),
         ("mib", "MiB of memory at most, of the same:\n\n", lambda x: f"{x:.0f}"))

USE = """## How the tools are used

Figures in this part are of 28 November 2026.

Weights are symmetric along channels and activations have zero points, where a recipe has no name of its own. All samples of the calibration
data go to each tool, one at a time.

- AIMET has its default configuration, in which results of all operators and constants of all kinds are quantized. The constants that scale
  the inputs of cancer lie between 0.003 and 835, and with one step for all of them 62 % of its answers are right. AdaRound takes 2000
  steps: on digits the 10000 that AIMET recommends take 83 CPU seconds and reach 36.7 dB, 2000 take 30 and reach 36.8. This version has no
  bias correction for ONNX.
- Quark's A8W8 and XINT8 are its presets, and the other recipes have uint8 activations. AdaRound and AdaQuant have the steps of the
  presets, 1000 and 3000. Its GPTQ for MatMulNBits comes within 0.0001 dB of its RTN. It cannot be asked for weights of 4 bits with
  activations of 8.
- ModelOpt puts quantizers where TensorRT wants them: products of one row stay float, which are all of lstm, cancer and ad, and so do those
  whose weights have fewer than 16 rows or columns.
- NNCF uses all integers of weights (its default spares one bit for processors without VNNI).
"""

# What these two say was found by hand: it keeps its date, whatever is measured anew.
LOST = """## Where another tool is ahead

As of 28 November 2026:

On the detector NNCF is ahead of what `qxc` makes for onnxruntime: its quantizers stand where OpenVINO wants them, before products alone, and in
onnxruntime a Conv without a QuantizeLinear behind it is float. Its models of vit, charlm and detector take 1.7, 1.6 and 2.1 times as long
as those of `qxc` there, and longer than the float model. `-target=openvino` has quantizers in the same places, and is ahead on the detector.
On ad its full correction of biases is ahead of `qxc` by the step of the input alone, which is 0.2 % larger: with that one (a rule that
states it) `qxc` has 48.5 dB, and 49.9 with `-adaround`. The same larger steps cost 0.3 to 0.8 dB on cancer, kws, ic and transformer.
With activations of 16 bits the CLE of Quark and of AIMET is ahead of the default on kws by 1.3 and 1.5 dB, and AIMET's of `-adaround` by 0.2 dB.
There `-preset=auto` loses 4 dB by its `-equalize`.
Of the weights in 4 bits NNCF leaves embeddings and the last product in 8 bits, and Conv is float; qxc has 4 bits everywhere.
"""


TEXT = """## Text

How well the next character is told, with weights of few bits alone: perplexity of a character (a byte of the decoder's text), less is
better. charlm is a model of two layers. The decoder has six and 4.9 million weights; `tools/language_model.py --size=small` trains it. qxc has the
calibration data, as all recipes that take data.
"""


def mean(cells, what):
    numbers = [c[what] for c in cells if what in c]
    return float(np.mean(numbers)) if numbers and len(numbers) == len(cells) else None


def rows_of(found, form, what):
    """[(tool, recipe, {model: mean or None})]"""
    rows = []
    for tool, formats in RECIPES.items():
        for recipe in formats.get(form, ()):
            rows.append((tool, recipe, {m: mean(cells, what) for (f, t, r, m), cells in found.items()
                                        if (f, t, r) == (form, tool, recipe)}))
    return [row for row in rows if any(value is not None for value in row[2].values())]


def label(tool, recipe):
    return f"`qxc {recipe}`".replace(" default", "") if tool == "qxc" else f"{tool} {recipe}"


def partly(found, form):
    """{(tool, recipe, model)} of those whose products are quantized in part."""
    return {(t, r, m) for (f, t, r, m), cells in found.items() if f == form and any(c.get("float") for c in cells)}


def table(rows, models, text, best=max, marked=()):
    lines = ["| | " + " | ".join(models) + " |", "|---" * (len(models) + 1) + "|"]
    top = {m: best((r[2][m] for r in rows if r[2].get(m) is not None), default=None) for m in models}
    for tool, recipe, cells in rows:
        shown = [("" if cells.get(m) is None else f"**{text(cells[m])}**" if cells[m] == top[m] else text(cells[m])) +
                 ("\\*" if cells.get(m) is not None and (tool, recipe, m) in marked else "") for m in models]
        lines.append(f"| {label(tool, recipe)} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def lead(rows, models, marked):
    """How far the best of qxc is above the best of the others, of models that are quantized as a whole."""
    cells = []
    for m in models:
        whole = [(tool, of[m]) for tool, recipe, of in rows if of.get(m) is not None and (tool, recipe, m) not in marked]
        ours, others = [v for tool, v in whole if tool == "qxc"], [v for tool, v in whole if tool != "qxc"]
        cells.append(f"{max(ours) - max(others):+.1f}" if ours and others else "")
    return "| best of qxc over the best of the others | " + " | ".join(cells) + " |\n"


def failures(found):
    """One line for each reason of a recipe, with the models that have it."""
    reasons, asked = {}, {}
    for (form, tool, recipe, model), cells in found.items():
        asked.setdefault((form, tool, recipe), []).append(model)
        why = next((c["why"] for c in cells if "why" in c), None)
        if not why and not all("float" in c for c in cells):
            why = "measured before products left in float were counted"
        if why:
            reasons.setdefault((form, tool, recipe), {}).setdefault(why.split("(")[0], []).append(model)
    return [f"- {form}, {label(tool, recipe)}, {'all models' if models == asked[form, tool, recipe] else ', '.join(models)}: {why.strip()}"
            for (form, tool, recipe), of in reasons.items() for why, models in of.items()]


def language(found, models):
    """Perplexity of text with weights of few bits: a table for each model, by bits."""
    parts = []
    for model in models:
        plain = {c["plain perplexity"] for (*_, m), cells in found.items() for c in cells if m == model and "plain perplexity" in c}
        shown = {(tool, recipe): {form: mean(found.get((form, tool, recipe, model), []), "perplexity") for form in LANGUAGE}
                 for tool, formats in RECIPES.items() for recipe in dict.fromkeys(r for f in LANGUAGE for r in formats.get(f, ()))}
        rows = [(*key, cells) for key, cells in shown.items() if any(cells.values())]
        marked = {(t, r, f) for f in LANGUAGE for t, r, m in partly(found, f) if m == model}
        if rows:
            parts.append(f"Perplexity of {model}, which has {max(plain):.3f} in float:\n\n" + table(rows, LANGUAGE, lambda x: f"{x:.3f}", min, marked))
    return [TEXT, *parts] if parts else []


def page(found, models, seeds, versions):
    parts = [HEAD.format(versions=versions, seeds=f", the mean of {seeds} choices of the data" if seeds > 1 else "")]
    for form in (f for f in FORMATS if f not in LANGUAGE):
        rows = rows_of(found, form, "sqnr")
        if not rows:
            continue
        some = [m for m in models if any(m in r[2] for r in rows)]
        marked = partly(found, form)
        parts.append(f"## {form}\n\n" + table(rows, some, lambda x: f"{x:.1f}", marked=marked) + lead(rows, some, marked))
        right = rows_of(found, form, "right")
        labelled = [m for m in some if any(r[2].get(m) is not None for r in right)]
        if labelled:
            parts.append("Right answers in %:\n\n" + table(right, labelled, lambda x: f"{x:.2f}"))
    parts += language(found, models)
    for what, text, shape in COSTS:
        rows = rows_of(found, "W8A8", what)
        some = [m for m in models if any(r[2].get(m) is not None for r in rows)]
        parts.append(text + table(rows, some, shape, min))
    parts += [LOST, USE]
    missing = failures(found)
    if missing:
        parts.append("## What is missing\n\nThe leads above are over what was measured alone.\n\n" + "\n".join(missing) + "\n")
    return "\n".join(parts)
