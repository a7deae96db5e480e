"""The kinds of files, how each is read, and which options it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qxc._samples import images, sound, tables
from qxc._samples.faults import Usage, Wrong, plural
from qxc._samples.port import Port


@dataclass(frozen=True)
class Kind:
    name: str
    suffixes: frozenset[str]
    options: frozenset[str]
    reader: Callable[[Any, Port], Callable[[Path], list[np.ndarray]]]


def _images(given: Any, port: Port) -> Callable[[Path], list[np.ndarray]]:
    look = images.look(given, port)

    def read(path: Path) -> list[np.ndarray]:
        pixels = _normal(images.read(path, look), given, look.raw)
        return [pixels if look.layout == "NHWC" else np.moveaxis(pixels, -1, 0)]
    return read


def _normal(x: np.ndarray, given: Any, raw: bool) -> np.ndarray:
    """Minus the mean, divided by the deviation; each has one number, or one a channel."""
    for option, numbers in (("--mean", given.mean), ("--std", given.std)):
        if numbers and len(numbers) not in (1, x.shape[-1]):
            raise Usage(f"{option} has {plural(len(numbers), 'number')} for {plural(x.shape[-1], 'channel')}")
    if given.std and 0 in given.std:
        raise Usage("--std holds a 0, by which nothing can be divided")
    x = x - np.float32(given.mean) if given.mean else x
    return x / np.float32(given.std) if given.std else x


def _recordings(given: Any, port: Port) -> Callable[[Path], list[np.ndarray]]:
    given.cut = sound.cut(given, port)
    return lambda path: sound.read(path, given.cut)


def _lines(given: Any, port: Port) -> Callable[[Path], list[np.ndarray]]:
    return tables.read_csv


def _arrays(given: Any, port: Port) -> Callable[[Path], list[np.ndarray]]:
    return lambda path: tables.read_array(path, port)


KINDS = (
    Kind("images", frozenset(images.SUFFIXES),
         frozenset({"resize", "exact", "crop", "grey", "raw", "mean", "std", "layout"}), _images),
    Kind("recordings", frozenset(sound.SUFFIXES),
         frozenset({"rate", "length", "hop", "mono", "raw", "layout", "shape"}), _recordings),
    Kind("CSV files", frozenset(tables.CSV), frozenset({"shape"}), _lines),
    Kind("arrays", frozenset(tables.ARRAYS), frozenset({"shape"}), _arrays),
)


def kind_of(path: Path) -> Kind | None:
    return next((k for k in KINDS if path.suffix.lower() in k.suffixes), None)


def one_kind(files: list[Path]) -> Kind:
    """Of files that all have a kind."""
    found = {k.name: p for p in reversed(files) if (k := kind_of(p))}
    if len(found) > 1:
        raise Wrong(f"there are files of several kinds, {', '.join(f'{n} ({p})' for n, p in found.items())}: "
                    "give files of one kind, such as photos/*.png")
    return next(k for k in KINDS if k.name in found)


def check_options(given: Any, kind: Kind) -> None:
    """An option that has no effect on this kind is a slip."""
    for option in sorted(set().union(*(k.options for k in KINDS)) - kind.options):
        if getattr(given, option) not in (None, False):
            others = " and ".join(k.name for k in KINDS if option in k.options)
            raise Usage(f"--{option} is about {others}, and these are {kind.name}")
