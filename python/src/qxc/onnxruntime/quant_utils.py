"""As onnxruntime.quantization.quant_utils: the types and forms, by their names."""

from __future__ import annotations

import enum
from typing import Any


class _Kind(enum.EnumMeta):
    """Says of a name that is not there which are."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in cls.__members__:  # Python before 3.12 looks for members here
            return cls.__members__[name]
        raise AttributeError(_unknown(cls, name))

    def __getitem__(cls, name: str) -> Any:
        if name not in cls.__members__:
            raise KeyError(_unknown(cls, name))
        return super().__getitem__(name)


def _unknown(kind: Any, name: str) -> str:
    return f"qxc has no {kind.__name__} {name!r}, but {', '.join(kind.__members__)}"


class Named(enum.Enum, metaclass=_Kind):
    """Prints as its name and is read from it, as a command line has it."""

    def __str__(self) -> str:
        return str(self.name)

    @classmethod
    def from_string(cls, name: str) -> Any:
        if name not in cls.__members__:
            raise ValueError(f"{name!r} is none of {', '.join(cls.__members__)}")
        return cls[name]


class QuantType(Named):
    QInt8 = 0
    QUInt8 = 1
    QInt16 = 3
    QUInt16 = 4
    QInt4 = 5
    QUInt4 = 6
    QInt2 = 7
    QUInt2 = 8

    @property
    def tensor_type(self) -> int:
        """The number that ONNX has for it."""
        return {"QInt8": 3, "QUInt8": 2, "QInt16": 5, "QUInt16": 4, "QInt4": 22, "QUInt4": 21, "QInt2": 26, "QUInt2": 25}[self.name]


class QuantFormat(Named):
    QOperator = 0
    QDQ = 1


class QuantizationMode(Named):
    IntegerOps = 0
    QLinearOps = 1
