"""Calibration in shards, on whatever engine maps functions."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qxc._data import write_data
from qxc._model import Folder, Model, load
from qxc._program import LOG, Error, call, options


def _one_shard(model: bytes, keywords: dict[str, Any], numbered: tuple[int, Any]) -> bytes | None:
    """The float model with the statistics of one shard, or None if it gave none. Runs wherever the engine puts it."""
    i, shard = numbered
    try:
        return _seen(load(model), keywords, shard)
    except Error as error:
        raise type(error)(f"shards[{i}]: {error}", error.diagnostics, error.exit_code) from error
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"shards[{i}]: {error}") from error


def _seen(source: Model, keywords: dict[str, Any], shard: Any) -> bytes | None:
    with tempfile.TemporaryDirectory(prefix="qxc-") as at:
        paths = write_data(shard, source._ports(keywords), Path(at, "data"))
        out = Path(at, "stats.onnx")
        call([source.path, "-emit=onnx", f"-o={out}", *[f"-calib={p}" for p in paths], *options(keywords)])
        return out.read_bytes() if load(out).info["came"] != "float" else None


def _merge(parts: list[bytes], to: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="qxc-") as at:
        names = []
        for i, part in enumerate(parts):
            names.append(str(Path(at, f"{i:06}.onnx")))
            Path(names[-1]).write_bytes(part)
        call(["stats", "merge", *names, f"-o={to}"])


def _with_statistics(parts: list[bytes | None]) -> list[bytes]:
    """A shard whose values are all NaN has nothing to merge."""
    without = [f"shards[{i}]" for i, part in enumerate(parts) if part is None]
    if len(without) == len(parts):
        raise ValueError("no shard gives statistics: its values are NaN or infinite throughout")
    if without:
        LOG.warning("%s: there are no statistics, so that the others decide alone", ", ".join(without))
    return [part for part in parts if part is not None]


def calibrate(model: Any, shards: Sequence[Any], client: Any = None, **keywords: Any) -> Model:
    """The float model with the statistics of all shards, each seen by a worker of its own.

    `shards` is a list of what `quantize` takes as data: paths that every worker can read, arrays,
    dicts. `client` is a Dask client or anything with a `map` (an executor of concurrent.futures, a
    multiprocessing pool); without one the shards are seen one after the other. The result has the
    bytes that one process over all data gives, in whatever order the shards stand and whoever finishes
    first. A worker that dies is the engine's to replace: the work of a shard has no side effects.
    `quantize(result)` decides from the statistics, without data, so that biases are not corrected. A
    shard whose values are NaN throughout is left out with a warning, and one that is wrong is named by
    its place. Every `calib_method` can be parted but `moving-average=WEIGHT`, which
    depends on the order of samples and is an error of several shards.
    """
    shards = list(shards)
    if not shards:
        raise ValueError("there is no shard to calibrate on")
    method = str(keywords.get("calib_method"))
    if len(shards) > 1 and method.startswith("moving-average="):  # before anybody works for nothing
        raise ValueError(f"{method} depends on the order of samples, so that shards cannot be merged: "
                         "moving-average weighs all samples alike")
    source = call([load(model).path, "-emit=onnx"]).stdout  # with what stands in files beside it
    mapped = (client.map if client is not None else map)(
        functools.partial(_one_shard, source, keywords), list(enumerate(shards)))
    parts = _with_statistics(list(client.gather(mapped) if hasattr(client, "gather") else mapped))
    folder = Folder()
    out = Path(folder.name, "model.onnx")
    if len(parts) == 1:
        out.write_bytes(parts[0])
    else:
        _merge(parts, out)
    return Model(out, folder=folder, reference=load(model))
