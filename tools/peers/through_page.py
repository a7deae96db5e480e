"""docs/from-others.md of what was measured."""

import re

from models import USUAL
from through import STEPS

HEAD = """# Coming from other quantizers

    tools/peers --through

writes this page: each tool writes small models in each of its forms ({versions}), and qxc takes them. The command needs what
[peers.md](peers.md) needs, and keeps what it made and measured in `build/peers`; with `--kept` the page has what was measured. Files that tools
wrote for this project and that `QXC_SHARED` has stand below under their folder. Models: {models}.{absent}

| step | what is done | what is right |
|---|---|---|
| read | the file becomes `.qir` | no error |
| run | `qxc run` on {samples} samples of test data | onnxruntime's results of the file, unoptimized |
| qdq | `-emit=qdq` | the same, in onnxruntime |
| qop | `-emit=qop` | the same, in onnxruntime |
| back | QDQ of those operators | the results of the operators |
| c | `-emit=c`, compiled by `cc` | the bits of `qxc run` |
| integers | `-emit=c -integer-only` | the same |

A result that lies between two steps may go to either: sums in another order decide, as do biases, which QOperator and C round to the
grid of the sums. So a result is right where each output is at most one of its steps away (of 256 over its range where it is float), or
has at most half the power of the noise that the tool itself added to the float model. Cells say how many models are right, of how many, and the least signal to
noise over them in dB where results differ at all.

"""

MARGIN = 3.01  # dB


def right(cell, noise):
    """A refusal is none; what is not compared is right when it was done."""
    if "refused" in cell:
        return False
    return "sqnr" not in cell or cell["steps"] <= 1 or (noise is not None and cell["sqnr"] >= noise + MARGIN)


def cell_of(rows, step):
    done = [(row[step], row.get("noise")) for row in rows]
    worst = min((cell["sqnr"] for cell, _ in done if "sqnr" in cell), default=float("inf"))
    return f"{sum(right(*of) for of in done)} of {len(done)}" + (f", {worst:.0f} dB" if worst < 1000 else "")


def table(found):
    lines = ["| tool | form | " + " | ".join(STEPS) + " |", "|---|---" + "|---" * len(STEPS) + "|"]
    for (tool, form), models in found.items():
        rows = [row for row in models.values() if "why" not in row]
        if rows:
            lines.append(f"| {tool} | {form} | " + " | ".join(cell_of(rows, step) for step in STEPS) + " |")
    return "\n".join(lines) + "\n"


def reason(cell):
    """What a refusal says without the names of the model."""
    said = cell["refused"].split("error: ")[-1]
    return re.sub(r"'[^']*' ", "", re.sub(r'node "[^"]*"', "a node", said))


def grouped(found, lines_of):
    """{line: ["tool form (models)"]}"""
    groups = {}
    for (tool, form), models in found.items():
        for model, row in models.items():
            for line in lines_of(row):
                groups.setdefault(line, {}).setdefault(f"{tool} {form}", []).append(model)
    return "\n".join(f"- {line}: " + "; ".join(f"{who} ({', '.join(models)})" for who, models in of.items())
                     for line, of in sorted(groups.items())) + "\n"


def refused(row):
    return [f"`{step}` {reason(cell)}" for step, cell in row.items() if isinstance(cell, dict) and "refused" in cell]


def wrong(row):
    return [f"`{step}` is {cell['sqnr']:.1f} dB and {cell['steps']:.1f} steps away" + (f", where the tool's own noise is at {row['noise']:.1f} dB" if "noise" in row else "")
            for step, cell in row.items() if isinstance(cell, dict) and "sqnr" in cell and not right(cell, row.get("noise"))]


def warned(row):
    return sorted({f"`{step}` {line.split('warning: ')[-1]}" for step, cell in row.items() if isinstance(cell, dict) for line in cell.get("said", ())})


REFUSED = """C of integers alone is for models that compute on integers alone. It is refused where a tool leaves an operator, an input or the last
result in float, where weights alone are quantized, and where scales are computed at run time. C without `-integer-only` takes all of these.

"""

WRONG = """As of 28 November 2026: in AIMET's transformer of 8 bits results part where a sum lies within 0.002 steps of a tie, at one integer of
1500 behind the first products, and products and Softmax behind them spread that. onnxruntime with its optimizations is 35.1 dB away from its
own results without them.

"""

PARTS = (("What is refused, and why", REFUSED, refused), ("What is not right", WRONG, wrong), ("What is warned of", "", warned),
         ("What onnxruntime does not run", "", lambda row: [f"{row['alone']}; what `qxc run` computes is the reference"] if "alone" in row else []),
         ("What there is no model of", "", lambda row: [row["why"]] if "why" in row else []))


def page(found, versions, samples):
    measured = {model for of in found.values() for model in of}
    models, absent = (", ".join(model for model in USUAL if (model in measured) is there) for there in (True, False))
    parts = [HEAD.format(versions=versions, samples=samples, models=models, absent=absent and f" Left out: {absent}."), table(found)]
    for title, words, lines_of in PARTS:
        lines = grouped(found, lines_of)
        if lines.strip():
            parts.append(f"\n## {title}\n\n{words}{lines}")
    return "".join(parts)
