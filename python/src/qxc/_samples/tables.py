"""CSV files, a sample a line, and arrays of NumPy."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path

import numpy as np

from qxc._samples.faults import Unreadable, Wrong
from qxc._samples.port import Port

CSV = {".csv"}
ARRAYS = {".npy", ".npz"}


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def read_csv(path: Path) -> list[np.ndarray]:
    """Lines that begin with # and a first line without numbers, which names the columns, hold no sample."""
    rows: list[np.ndarray] = []
    first = True
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            for number, row in enumerate(csv.reader(file), 1):
                if not any(c.strip() for c in row) or row[0].lstrip().startswith("#"):
                    continue
                cells = [_number(c) for c in row]
                head, first = first and not any(c is not None for c in cells), False
                if any(";" in c for c in row) and (len(row) == 1 or not head):
                    raise Wrong(f"{path}:{number}: the separator is ';', and calib-data reads ','")
                if head:
                    continue
                if None in cells:
                    raise Wrong(f"{path}:{number}: {row[cells.index(None)]!r:.40} is no number")
                if rows and rows[0].size != len(row):
                    raise Wrong(f"{path}:{number}: a line of {len(row)} numbers, where the first has {rows[0].size}")
                rows.append(np.array(cells, np.float64))
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise Wrong(f"{path}: this is no CSV file: {error}") from None
    return rows


def _array_of(path: Path, port: Port) -> np.ndarray:
    with open(path, "rb") as file:
        held = np.load(file, allow_pickle=False)
        if isinstance(held, np.ndarray):
            return held
        with held:
            names = held.files
            if port.name in names:
                return held[port.name]
            if len(names) == 1:
                return held[names[0]]
    raise Wrong(f"{path}: there is no array {port.name}, but {', '.join(names)}")


def read_array(path: Path, port: Port) -> list[np.ndarray]:
    """Its first axis counts samples, unless the whole has the shape of one."""
    try:
        a = _array_of(path, port)
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror or error}") from None
    except (ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise Wrong(f"{path}: these are no arrays of numbers: {error}") from None
    if a.dtype.kind not in "fiub":
        raise Wrong(f"{path}: an array of {a.dtype} holds no numbers that can be used")
    if port.sample is not None and port.fits(a.shape):
        return [a]
    if not a.ndim:
        raise Wrong(f"{path}: a single number is no array of samples")
    return list(a)
