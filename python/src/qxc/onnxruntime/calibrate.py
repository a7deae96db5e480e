"""As onnxruntime.quantization.calibrate: what gives the data, and what becomes of them."""

from __future__ import annotations

import abc
import enum
from typing import Any

import numpy as np


class CalibrationMethod(enum.Enum):
    MinMax = 0
    Entropy = 1
    Percentile = 2
    Distribution = 3


class CalibrationDataReader(metaclass=abc.ABCMeta):
    """Gives one feed after the other: a dict of arrays by input, None behind the last."""

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        return callable(getattr(other, "get_next", None)) or NotImplemented

    @abc.abstractmethod
    def get_next(self) -> dict[str, np.ndarray] | None:
        """The next feed."""

    def __iter__(self) -> CalibrationDataReader:
        return self

    def __next__(self) -> dict[str, np.ndarray]:
        feed = self.get_next()
        if feed is None:
            raise StopIteration
        return feed
