"""The input that samples are for: its name, the shape of one sample, its type."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from qxc._data import Ports
from qxc._program import call
from qxc._samples.faults import Usage, Wrong

ELEMENTS: dict[str, Any] = {"float": np.float32, "double": np.float64, "float16": np.float16, "bfloat16": np.float32,
            **{f"{u}int{n}": np.dtype(f"{u}int{n}").type for u in ("", "u") for n in (8, 16, 32, 64)}, "bool": np.bool_}
CHANNELS = (1, 3)  # of images: grey, and red, green and blue


def shape_text(shape: Any) -> str:
    return f"[{','.join('?' if d is None else str(d) for d in shape)}]"


@dataclass
class Port:
    """`sample` is None where nothing is known; its dimensions are numbers, or names and None of what is open."""

    name: str
    element: str = "float"
    sample: list[Any] | None = None
    known: bool = False  #: from a model

    @property
    def dtype(self) -> Any:
        return ELEMENTS[self.element]

    def fits(self, shape: tuple[int, ...]) -> bool:
        if self.sample is None:
            return True
        return len(shape) == len(self.sample) and all(
            not isinstance(d, int) or d == n for d, n in zip(self.sample, shape))

    def number(self, axis: int) -> int | None:
        """A dimension of a sample, or None where it is open."""
        d = self.sample[axis] if self.sample is not None and -len(self.sample) <= axis < len(self.sample) else None
        return d if isinstance(d, int) else None

    def shaped(self, sample: np.ndarray) -> np.ndarray:
        """With the dimensions of 1 that the input has and the sample has not, or the other way round."""
        want = self.sample
        if want is None or self.fits(sample.shape):
            return sample
        kept = [d for d in sample.shape if d != 1]
        wide = [d for d in want if d != 1]
        if len(kept) != len(wide):
            return sample
        numbers = iter(kept)
        return sample.reshape([1 if d == 1 else next(numbers) for d in want])

    def typed(self, sample: np.ndarray, where: str) -> np.ndarray:
        """In the type of the input, which must be able to hold it."""
        if not np.all(np.isfinite(sample)):
            raise Wrong(f"{where}: there is a number that is not finite")
        with np.errstate(over="ignore", invalid="ignore"):
            cast: np.ndarray = sample.astype(self.dtype)
        whole = np.dtype(self.dtype).kind in "iub"
        if not (np.array_equal(cast, sample) if whole else np.all(np.isfinite(cast))):
            raise Wrong(f"{where}: input {self.name} is of type {self.element}, which cannot hold "
                        f"numbers from {sample.min():g} to {sample.max():g}{_hint(sample) if whole else ''}")
        return cast


def _hint(sample: np.ndarray) -> str:
    return "" if np.array_equal(sample, np.rint(sample)) else " that are not whole; --raw keeps those of the file"


def of_model(model: str, name: str | None) -> Port:
    """The input `name` of a model, or its only one."""
    info = json.loads(call(["info", "-json", model]).stdout)
    ports = Ports(info)
    if not ports.names:
        raise Wrong(f"{model} has no inputs")
    if name is None and len(ports.names) > 1:
        raise Usage(f"{model} has {len(ports.names)} inputs: give --input, one of {', '.join(ports.names)}")
    name = name or ports.names[0]
    if name not in ports.names:
        raise Usage(f"{model} has no input {name}: it has {', '.join(ports.names)}")
    element = next(i.get("element") for i in info["inputs"] if i["name"] == name)
    if element not in ELEMENTS:
        raise Wrong(f"{model}: input {name} is of type {element or 'other than a tensor'}, for which there are no data to make")
    shape = ports.shapes[name]
    counts = bool(shape) and (shape[0] == 1 or (not isinstance(shape[0], int) and ports.batch))
    return Port(name, element, shape[1:] if counts else shape, known=True)
