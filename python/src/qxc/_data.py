"""Data for calibration and for runs: from what Python has to files that the program streams."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

SHARD_BYTES = 64 << 20  # of memory for data that come piece by piece; a file each


class Ports:
    """What the data have to fit: the inputs of a model, as `qxc info -json` tells them."""

    def __init__(self, info: dict[str, Any], joins: bool = True):
        self.names = [i["name"] for i in info["inputs"]]
        self.shapes = {i["name"]: i.get("shape") for i in info["inputs"]}
        self.batch = joins and bool(info.get("batch"))

    def name_of_one(self) -> str:
        if len(self.names) != 1:
            raise ValueError(f"the model has {len(self.names)} inputs ({', '.join(self.names)}): "
                             "give a dict of arrays by name")
        return self.names[0]

    def counts_samples(self, name: str, array: np.ndarray) -> bool:
        """Whether the first dimension of a batch counts samples, which can stand behind others."""
        shape = self.shapes.get(name)
        if not shape or len(shape) != array.ndim:
            return False
        first = shape[0]
        return first == 1 or (not isinstance(first, int) and self.batch)


    def check_counts(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Inputs whose first dimension is the same have as many samples; a single one serves all."""
        seen: dict[Any, dict[str, int]] = {}
        for name, a in arrays.items():
            if self.counts_samples(name, a):
                seen.setdefault((self.shapes[name] or [None])[0], {})[name] = len(a)
        for counts in seen.values():
            if len(set(counts.values()) - {1}) > 1:
                raise ValueError("inputs differ in their samples: " + ", ".join(f"{name} has {n}" for name, n in counts.items()))


def as_array(x: Any, name: str) -> np.ndarray:
    """A NumPy array of what an array, a torch tensor or nested lists hold; bfloat16 as float32."""
    if hasattr(x, "detach"):  # torch
        x = x.detach().cpu()
        x = (x.float() if str(getattr(x, "dtype", "")) == "torch.bfloat16" else x).numpy()
    a = np.asarray(x)
    if a.dtype.name.startswith(("bfloat16", "float8")):  # of ml_dtypes
        return a.astype(np.float32)
    if a.dtype == object or a.dtype.kind in "USV":
        raise TypeError(f"the data of input {name} are no numbers: {a.dtype}")
    return a


def _is_array(x: Any) -> bool:
    return hasattr(x, "shape") or hasattr(x, "__array__")


def _by_name(batch: Any, ports: Ports) -> dict[str, np.ndarray]:
    """One batch of an iterable. Of a sequence of arrays, what stands behind the inputs are labels."""
    if isinstance(batch, Mapping):
        return {str(k): as_array(v, str(k)) for k, v in batch.items()}
    if isinstance(batch, (list, tuple)) and batch and _is_array(batch[0]):
        if len(batch) < len(ports.names):
            raise ValueError(f"a batch holds {len(batch)} arrays, the model has "
                             f"{len(ports.names)} inputs: {', '.join(ports.names)}")
        return {n: as_array(x, n) for n, x in zip(ports.names, batch)}
    name = ports.name_of_one()
    return {name: as_array(batch, name)}


def _next_batches(data: Any) -> Iterator[Any]:
    """Also of onnxruntime's CalibrationDataReader, which says None behind the last."""
    if hasattr(data, "get_next"):
        while (batch := data.get_next()) is not None:
            yield batch
    else:
        yield from data


def save_npz(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """An .npz with arrays of any name, which numpy.savez takes for its own arguments."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:
        for name, a in arrays.items():
            with z.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(a) if a.ndim else a, allow_pickle=False)


class _Shards:
    """Collects batches, and writes a file when they are many or differ in shape or type."""

    def __init__(self, folder: Path, ports: Ports):
        self.folder, self.ports, self.n = folder, ports, 0
        self.kept: dict[str, list[np.ndarray]] = {}
        self.bytes = 0

    def add(self, batch: dict[str, np.ndarray]) -> None:
        """With an axis that counts samples in front: an array's own, or a new one for what is one sample."""
        self.ports.check_counts(batch)
        counts = {k: self.ports.counts_samples(k, v) for k, v in batch.items()}
        if any(counts.values()) and not all(counts.values()):
            self.write()  # what counts none serves all samples of its file
            self._write(batch)
            return
        batch = {k: v if counts[k] else v[None] for k, v in batch.items()}
        kept = {k: (v[0].shape[1:], v[0].dtype) for k, v in self.kept.items()}
        if kept and kept != {k: (v.shape[1:], v.dtype) for k, v in batch.items()}:
            self.write()
        for k, v in batch.items():
            self.kept.setdefault(k, []).append(v.copy())  # a loader may fill the same array again
            self.bytes += v.nbytes
        if self.bytes >= SHARD_BYTES:
            self.write()

    def write(self) -> None:
        if self.kept:
            self._write({k: np.concatenate(v) for k, v in self.kept.items()})
        self.kept, self.bytes = {}, 0

    def _write(self, arrays: dict[str, np.ndarray]) -> None:
        save_npz(self.folder / f"shard-{self.n:06}.npz", arrays)
        self.n += 1


def write_data(data: Any, ports: Callable[[], Ports], folder: Path) -> list[str]:
    """Paths for -calib= or -input=. What Python holds goes to files in `folder`, which is made."""
    if isinstance(data, (str, os.PathLike)):
        return [os.fspath(data)]
    if isinstance(data, (list, tuple)) and data and all(isinstance(x, (str, os.PathLike)) for x in data):
        return [os.fspath(x) for x in data]
    one = isinstance(data, np.ndarray) or hasattr(data, "detach") or (hasattr(data, "__array__") and not isinstance(data, Iterable))
    if not one and not isinstance(data, Iterable) and not hasattr(data, "get_next"):
        raise TypeError(f"data are an array, a dict of arrays, a path or an iterable of batches, not {type(data).__name__}")
    folder.mkdir()
    if one:
        data = {ports().name_of_one(): data}
    if isinstance(data, Mapping):
        arrays = {str(k): as_array(v, str(k)) for k, v in data.items()}
        if len({len(a) for a in arrays.values() if a.ndim}) > 1:
            ports().check_counts(arrays)
        save_npz(folder / "data.npz", arrays)
        return [str(folder / "data.npz")]
    fits = ports()
    shards = _Shards(folder, fits)
    for batch in _next_batches(data):
        shards.add(_by_name(batch, fits))
    shards.write()
    if not shards.n:
        raise ValueError("the data hold no batch")
    return [str(folder)]
