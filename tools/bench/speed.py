"""The speed of emitted C beside that of others: everything in this one process and in turn, round by
round, so that a noisy machine disturbs all alike; medians, and medians of the rounds' ratios."""

import functools
import sys

import numpy as np
import onnx

import contenders as c
from blocks import BLOCKS
from cmodel import FLAGS
from light import light
from networks import mobilenet_v2
from page import table
from quantized import Case, case

TITLES = {"kws": "keyword spotting, DS-CNN", "ic": "image classification, ResNet-8",
          "vww": "visual wake words, MobileNetV1 0.25", "ad": "anomaly detection, autoencoder",
          "digits": "digits, the example here", "squeezenet": "SqueezeNet 1.0, random weights",
          "shufflenet": "ShuffleNet 1.0, random weights", "mobilenet_v2": "MobileNetV2's layers, random weights",
          "resnet50": "ResNet-50, random weights", "silu_se": "SiLU with squeeze-and-excitation, random weights",
          "mobilenet_v3": "MobileNetV3-Small's layers, random weights",
          "unet": "U-Net with ConvTranspose, random weights"}
DRAWN = {"mobilenet_v2": mobilenet_v2, **BLOCKS}
EMX_LARGEST = 8e6  # bytes of the float model: compiling what emx-onnx-cgen makes of larger ones takes minutes
INT8 = ("qxc", "onnxruntime u8s8", "onnxruntime s8s8", "LiteRT", "OpenVINO", "emx-onnx-cgen")
FLOAT = ("qxc float", "onnxruntime float", "OpenVINO float", "emx-onnx-cgen float")
PLAIN = ("qxc", "emx-onnx-cgen", "qxc float", "emx-onnx-cgen float")


def bench_case(name, folder):
    if name in DRAWN:
        model, inputs = DRAWN[name]()
        path = folder / f"{name}.onnx"
        onnx.save(model, path)
        (calib,), (test,) = inputs(4, 1).values(), inputs(2, 2).values()
        return Case(path, calib, test, folder)
    if name in ("squeezenet", "shufflenet", "resnet50"):
        path, images = light(name)
        rows = next(iter(images.values()))
        return Case(path, rows, rows, folder)
    return case(name, folder)


def by_qxc(one, name, *options):
    """The QDQ form under a name of its own."""
    made = one.by_qxc("qdq", *options)
    return made.rename(made.with_name(f"{one.name}_{name}.onnx"))


def emx(path, one, folder, flags):
    if one.path.stat().st_size > EMX_LARGEST:
        raise c.Unavailable("the C takes minutes to compile")
    return c.emx(path, one, folder, flags)


class Race:
    """All contenders on one model; `missing` says why some are not among them."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.one = bench_case(name, folder)
        self.u8s8 = by_qxc(self.one, "u8s8")
        self.s8s8 = by_qxc(self.one, "s8s8", "-activations=int8")
        # TensorFlow Lite has integers everywhere.
        self.all_s8s8 = by_qxc(self.one, "all_s8s8", "-activations=int8", "-placement=all")
        self.missing = {}

    def makers(self, flags):
        one, folder = self.one, self.folder
        yield "qxc", lambda: c.qxc_int8(one, folder, flags)
        yield "onnxruntime u8s8", lambda: c.onnxruntime(self.u8s8, one)
        yield "onnxruntime s8s8", lambda: c.onnxruntime(self.s8s8, one)
        yield "LiteRT", lambda: c.litert(self.all_s8s8, one)
        yield "OpenVINO", lambda: c.openvino(self.u8s8, one)
        yield "emx-onnx-cgen", lambda: emx(self.u8s8, one, folder, flags)
        yield "qxc float", lambda: c.qxc_float(one, folder, flags)
        yield "onnxruntime float", lambda: c.onnxruntime(one.path, one)
        yield "OpenVINO float", lambda: c.openvino(one.path, one)
        yield "emx-onnx-cgen float", lambda: emx(one.path, one, folder, flags)

    def run(self, rounds, flags=FLAGS, only=None):
        """{name: Timed}, after all rounds."""
        runners = {}
        for name, make in self.makers(flags):
            if only and name not in only:
                continue
            try:
                runners[name] = make()
            except c.Unavailable as e:
                self.missing[name] = str(e)
        self.check(runners)
        c.interleave(runners.values(), rounds)
        print(self.name, *(f"{n} {t.median():,.1f}" for n, t in runners.items()), sep="  ", file=sys.stderr)
        return runners

    def check(self, runners):
        """They compute the same function, as far as quantization goes: int8 keeps little of a deep network with random
        weights, but unrelated outputs of 1000 numbers stay below 0.15."""
        want = np.ravel(self.one.run(self.one.path)[0]).astype(np.float64)
        for name, runner in runners.items():
            got = np.ravel(runner.result()).astype(np.float64)
            close = got @ want / np.sqrt((got @ got) * (want @ want) + 1e-30)
            if close < (0.99 if "float" in name else 0.2):
                raise AssertionError(f"{self.name}: {name} computes something else (cosine {close:.3f})")


def ratio(slow, fast):
    return np.median([a / b for a, b in zip(slow.times, fast.times)]) if slow and fast else None


def geometric_mean(values):
    """Of those that there are, None without one."""
    there = [v for v in values if v is not None]
    return float(np.exp(np.mean(np.log(there)))) if there else None


def with_means(ratios, of):
    """The ratios by model with that of the fastest of some contenders as `best`, and with the geometric means of all models."""
    rows = {}
    for model, row in ratios.items():
        there = [row[n] for n in of if row[n] is not None]
        rows[model] = {**row, "best": min(there) if there else None}
    names = next(iter(rows.values()), {})
    return {**rows, "geometric mean": {n: geometric_mean([row[n] for row in rows.values()]) for n in names}}


def shown(value, form="{:,.1f}"):
    return "–" if value is None else form.format(value)


class Speeds:
    """What the sections about emitted C are made of."""

    def __init__(self, folder, rounds, models):
        self.folder, self.rounds, self.models = folder, rounds, models

    @functools.cached_property
    def races(self):
        return {name: Race(name, self.folder) for name in self.models}

    @functools.cached_property
    def native(self):
        return {name: race.run(self.rounds) for name, race in self.races.items()}

    @functools.cached_property
    def plain(self):
        """{flags: {model: {name: Timed}}}"""
        return {flags: {name: race.run(self.rounds, (*c.PLAIN, *flags), PLAIN) for name, race in self.races.items()}
                for flags in ((), ("-mavx2",))}

    def times(self, names):
        rows = [(model, *(shown(run[n].median() if n in run else None) for n in names))
                for model, run in self.native.items()]
        return table(("model", *names), rows)

    def ratios(self, first, others):
        """How many times as long as the first each takes, by model."""
        return {model: {n: ratio(run.get(n), run.get(first)) for n in others}
                for model, run in self.native.items()}

    def ratio_table(self, first, others):
        """The best is that of the runtimes with the same types."""
        same = [n for n in others if not n.startswith("emx") and n.endswith("float") == first.endswith("float")]
        rows = with_means(self.ratios(first, others), same)
        return table(("model", *others, "best runtime"),
                     [(m, *(shown(r, "{:.2f}") for r in row.values())) for m, row in rows.items()])

    def plain_table(self, flags):
        runs = self.plain[flags]
        ratios = {model: {n: ratio(run.get(f"emx-onnx-cgen{n}"), run.get(f"qxc{n}")) for n in ("", " float")}
                  for model, run in runs.items()}
        means = with_means(ratios, ())["geometric mean"]
        rows = []
        for model, run in runs.items():
            times = [shown(n in run and run[n].median() or None) for n in PLAIN]
            rows.append((model, *times[:2], shown(ratios[model][""], "{:.1f}"), *times[2:],
                         shown(ratios[model][" float"], "{:.1f}")))
        rows.append(("geometric mean", "", "", shown(means[""], "{:.1f}"), "", "", shown(means[" float"], "{:.1f}")))
        return table(("model", "qxc int8", "emx int8", "ratio", "qxc float", "emx float", "ratio"), rows)

    def missing(self):
        """Why there are gaps, a line for each reason."""
        reasons = {}
        for model, race in self.races.items():
            for name, why in race.missing.items():
                reasons.setdefault((name.removesuffix(" float"), why), []).append(model)
        return "".join(f"- {name}, {', '.join(dict.fromkeys(models))}: {why}.\n"
                       for (name, why), models in reasons.items())

    def sizes(self):
        rows = []
        for model, run in self.native.items():
            race, facts = self.races[model], run["qxc"].facts
            paths = (race.one.path, race.u8s8, race.one.by_qxc("qop"))
            rows.append((model, *(f"{p.stat().st_size:,}" for p in paths),
                         *(f"{facts[f]:,}" for f in ("bytes", "arena", "alive")), f"{facts['compile']:.1f}"))
        return table(("model", "float ONNX", "QDQ", "QOperator", "C", "arena", "tensors alive at one time",
                      "seconds to compile"), rows)
