"""Runs drawn forms with `qxc run` and as C, and says where they differ from the reference."""

import re
import subprocess
from typing import NamedTuple

import numpy as np
import onnx

from cmodel import compiled_together
from common import QXC
from drawn_cases import Case, found_cases
from operator_facts import BY_NAME
from test_node_ops import our_functions, plain, reason

PREPARED = {*our_functions(), "BatchNormalization", "Div", "Gemm"}  # what comes before C folds numbers of these into constants, which rounds otherwise


def difference(got, want, family):
    """What is wrong with a result; None: nothing."""
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if got.dtype != want.dtype:
        return f"{got.dtype}, expected {want.dtype}"
    if not want.size:
        return None
    if want.dtype.kind != "f":
        equal = got.view(np.uint8) == want.view(np.uint8) if want.dtype == np.bool_ else got == want
    else:
        a, b = got.astype(np.float64), want.astype(np.float64)
        with np.errstate(all="ignore"):
            finite = np.where(np.isfinite(b), np.abs(b), 0)
            unit = max(np.finfo(want.dtype).eps, np.finfo(np.float32).eps * family.single)
            of_itself, of_largest, of_one = (*family.bound, 0)[:3]
            room = unit * (of_itself * finite + of_largest * finite.max() + of_one) + (np.finfo(np.float32 if family.single else want.dtype).tiny if any(family.bound) else 0)
            equal = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= room)
            if not any(family.bound) and not family.either_zero:
                equal &= (np.signbit(a) == np.signbit(b)) | (a != 0)
    if np.all(equal):
        return None
    at = np.flatnonzero(~np.asarray(equal).ravel())[:6]
    return f"at {at}: {got.ravel()[at]}, expected {want.ravel()[at]}"


def plain_reason(text):
    """Without numbers, shapes, the name of the operator and what composites call their values, so that one reason is one text."""
    text = re.sub(r"^(operator \w+ cannot run|\w+): ", "", reason(text))
    text = re.sub(r"the shape of '.*?' follows from numbers in .*", "a shape follows from numbers that only a run tells", text)
    text = re.sub(r"only a run tells how long .*", "only a run tells how long a result is", text)
    text = re.sub(r"-?\d+(\.\d+)?", "N", text)
    return re.sub(r"'\w+' is (u?intN|floatN?|double|bool)\[[N?,*]*\]", "it", text)


class Limit(NamedTuple):
    """What qxc refuses: in which way, the operator, the form that shows it, the reason. What C refuses, it refuses of all operators."""

    way: str
    op: str
    seed: int
    why: str

    @property
    def key(self):
        return self.why if self.way == "c" else (self.op, self.why)

    def __str__(self):
        return f"{self.way} {self.op} {self.seed}: {self.why}"


def as_c(v):
    """Flat, in a type that C has; arrays of C are not empty."""
    flat = v.ravel().view({np.dtype(np.bool_): np.uint8, np.dtype(np.float16): np.uint16}.get(v.dtype, v.dtype))
    return flat if flat.size else np.zeros(1, flat.dtype)


class Differ:
    """Runs forms; `failures` and `limits` are what came of them."""

    def __init__(self, folder):
        self.folder, self.failures, self.limits, self.ran, self.in_c = folder, [], [], 0, 0

    def call(self, *words):
        return subprocess.run([QXC, *map(str, words)], capture_output=True, text=True, check=False, timeout=120)

    def refused(self, case, way, done):
        if done.returncode == 1 and "error: " in done.stderr:
            self.limits.append(Limit(way, case.op, case.seed, plain_reason(done.stderr)))
        else:
            self.failed(case, f"{way} ended with {done.returncode}: {done.stderr[-1000:]}")

    def failed(self, case, text):
        node = case.model.graph.node[0]
        shapes = {t.name: f"{onnx.numpy_helper.to_array(t).dtype}{list(t.dims)}" for t in case.model.graph.initializer}
        shapes |= {n: f"{v.dtype}{list(v.shape)}" for n, v in case.data.items()}
        said = " ".join(onnx.printer.to_text(node).split())
        self.failures.append(f"{case}, opset {case.model.opset_import[-1].version}: {said} {shapes}: {text} ({case.reference})")

    def run(self, case):
        """Its outputs, None where they are not what is expected."""
        path, x, y = (self.folder / n for n in ("m.onnx", "x.npz", "y.npz"))
        onnx.save(case.model, path)
        np.savez(x, **{n: plain(v) for n, v in case.data.items()})
        done = self.call("run", path, "-no-sync", "-quiet", "-o", y, *([f"-input={x}"] if case.data else []))
        if done.returncode:
            return self.refused(case, "run", done)
        with np.load(y) as loaded:
            got = dict(loaded)
        outputs = case.model.graph.output
        wrong = [f"{o.name}: {d}" for o, want in zip(outputs, case.want, strict=True)
                 if (d := difference(got[o.name], want, BY_NAME[case.op]))]
        if wrong:
            return self.failed(case, "; ".join(wrong))
        self.ran += 1
        return [got[o.name] for o in outputs]

    def source(self, case, number):
        """Emitted C of the model that was run last."""
        source = self.folder / f"m{number}.c"
        done = self.call(self.folder / "m.onnx", "-emit=c", "-no-sync", "-quiet", "-o", source)
        if done.returncode:
            return self.refused(case, "c", done)
        return source

    def compare_c(self, made):
        """All of them in one library."""
        flags = ("-O0", "-ffp-contract=off", "-fsanitize=undefined", "-fno-sanitize-recover=all")
        for (case, got, _), compiled in zip(made, compiled_together([source for *_, source in made], "gcc", flags)):
            compiled.arena[:] = 0xff
            values = compiled.run(*map(as_c, case.data.values()))
            values = {name: v for (name, *_), v in zip(compiled.outputs, values)}
            wrong = []
            for out, run in zip(case.model.graph.output, got):
                c = values[out.name].view(np.uint8 if run.dtype == np.bool_ else run.dtype)
                run = np.concatenate([as_c(run).view(c.dtype), np.zeros(c.size, c.dtype)])[:c.size]
                # Where the data decide how much there is, zeros stand behind it.
                if not np.array_equal(run, c, equal_nan=c.dtype.kind == "f") and not (
                        case.op in PREPARED and not difference(c, run, BY_NAME[case.op])):
                    wrong.append(f"C gives {c[:8]}, run {run[:8]}")
            if wrong:
                self.failed(case, "; ".join(wrong))
            self.in_c += 1

    def all(self, wanted, and_c=True):
        made = []
        for op, seed, case in found_cases(wanted):
            if not isinstance(case, Case):
                self.failures += [f"QXC_OPS={op} QXC_SEED={seed} QXC_CASES=1: {case}"] if case else []
                continue
            got = self.run(case)
            source = got is not None and self.source(case, len(made))
            if source:
                made.append((case, got, source))
        if made and and_c:
            self.compare_c(made)
