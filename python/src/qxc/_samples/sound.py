"""Recordings: WAV files of integers or floats, cut to a length or into frames."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from qxc._samples.faults import Unreadable, Usage, Wrong, plural
from qxc._samples.port import Port, shape_text
from qxc._samples.resample import resampled

SUFFIXES = {".wav", ".wave"}
INTEGERS, FLOATS, EXTENSIBLE = 1, 3, 0xFFFE
OPEN_END = (0, 0xFFFFFFFF)  # the length that a program writes which cannot go back to mend it


@dataclass
class Recording:
    rate: int
    samples: np.ndarray  #: [samples, channels], as they stand in the file
    zero: int  #: what stands for silence
    full: float  #: what stands for 1


def _chunks(data: bytes, path: Path) -> Iterator[tuple[bytes, bytes]]:
    at = 12
    while at + 8 <= len(data):
        name, size = data[at:at + 4], struct.unpack_from("<I", data, at + 4)[0]
        if name == b"data" and size in OPEN_END:
            size = len(data) - at - 8
        if at + 8 + size > len(data):
            raise Wrong(f"{path}: the file ends within its part {name.decode('latin-1')!r}, {len(data) - at - 8} bytes of {size}")
        yield name, data[at + 8:at + 8 + size]
        at += 8 + size + size % 2


def _decoded(data: bytes, tag: int, width: int, path: Path) -> tuple[np.ndarray, int, float]:
    """`width` bytes a number, the least first."""
    if tag == FLOATS and width in (4, 8):
        return np.frombuffer(data, f"<f{width}"), 0, 1.0
    if tag == INTEGERS and width == 1:
        return np.frombuffer(data, np.uint8), 128, 128.0
    if tag == INTEGERS and width == 3:
        four = np.zeros((len(data) // 3, 4), np.uint8)
        four[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        return four.view("<i4")[:, 0] >> 8, 0, 2.0**23
    if tag == INTEGERS and width in (2, 4):
        return np.frombuffer(data, f"<i{width}"), 0, 2.0**(8 * width - 1)
    raise Wrong(f"{path}: format {tag} with {8 * width} bits is not read: integers of 8, 16, 24 or 32 bits and floats of 32 or 64 are")


def read_wav(path: Path) -> Recording:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from None
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise Wrong(f"{path}: this is no WAV file")
    parts: dict[bytes, bytes] = {}
    for name, part in _chunks(data, path):
        parts.setdefault(name, part)
    form, body = parts.get(b"fmt ", b""), parts.get(b"data")
    if len(form) < 16 or body is None:
        raise Wrong(f"{path}: there is no part {'fmt' if len(form) < 16 else 'data'!r}")
    tag, channels, rate, _, align, _ = struct.unpack_from("<HHIIHH", form)
    if tag == EXTENSIBLE and len(form) >= 26:
        tag = struct.unpack_from("<H", form, 24)[0]
    if not channels or not rate or not align or align % channels:
        raise Wrong(f"{path}: {channels} channels at {rate} a second in {align} bytes make no sense")
    if len(body) % align:
        raise Wrong(f"{path}: the file ends within a sample")
    numbers, zero, full = _decoded(body, tag, align // channels, path)
    if not numbers.size:
        raise Wrong(f"{path}: the recording is empty")
    return Recording(rate, numbers.reshape(-1, channels), zero, full)


@dataclass
class Cut:
    """How recordings become alike, and what that took."""

    rate: int | None
    length: int | None
    hop: int | None
    mono: bool
    raw: bool
    last: bool  #: channels last
    seen: dict[tuple[int, int], Path] = field(default_factory=dict)  #: (rate, channels) -> the first file
    padded: int = 0
    shortened: int = 0

    def told(self) -> list[str]:
        """What became of their ends, and the rate."""
        rate = self.rate or next(iter(self.seen))[0]
        said = [f"{rate} samples a second"]
        if self.padded:
            said.append(f"{plural(self.padded, 'recording')} shorter than {self.length} samples, with zeros behind")
        if self.shortened:
            said.append(f"{plural(self.shortened, 'recording')} with an end that is left out")
        return said


def cut(given: Any, port: Port) -> Cut:
    """Of the options, and of the model where they say nothing."""
    if given.raw and given.rate:
        raise Usage("--raw keeps the numbers of the file, and --rate computes others: give one of them")
    length = given.length
    wide = [d for d in port.sample or [] if d != 1]
    if length is None and len(wide) in (1, 2) and not given.shape:
        long = [d for d in wide if isinstance(d, int)]
        if len(wide) == 2 and not (long and min(long) == 2):
            raise Wrong(f"input {port.name} has samples of {shape_text(port.sample or [])}, and a recording is one row of numbers "
                        "for each channel: .npy files can hold what is computed of them")
        length = max(long, default=None)
    if given.hop and length is None:
        raise Usage("--hop goes with --length, which says how long a frame is")
    last = given.layout == "NHWC" or (given.layout is None and len(wide) == 2 and wide[-1] == 2)
    return Cut(given.rate, length, given.hop, given.mono, given.raw, last)


def _alike(path: Path, r: Recording, want: Cut) -> None:
    rate = want.rate or r.rate
    channels = 1 if want.mono else r.samples.shape[1]
    first = next(iter(want.seen.items()), None)
    want.seen.setdefault((rate, channels), path)
    if first and first[0][0] != rate:
        raise Wrong(f"{path}: it has {rate} samples a second, {first[1]} has {first[0][0]}: --rate=HZ makes them alike")
    if first and first[0][1] != channels:
        raise Wrong(f"{path}: it has {plural(channels, 'channel')}, {first[1]} has {first[0][1]}: --mono makes one of them")


def _frames(x: np.ndarray, want: Cut, silence: float) -> list[np.ndarray]:
    length = want.length
    if length is None:
        return [x]
    if len(x) < length:
        want.padded += 1
        return [np.pad(x, ((0, length - len(x)), (0, 0)), constant_values=silence)]
    starts = range(0, len(x) - length + 1, want.hop) if want.hop else [0]
    want.shortened += starts[-1] + length < len(x)
    return [x[s:s + length] for s in starts]


def read(path: Path, want: Cut) -> list[np.ndarray]:
    """Frames, or the recording as one: [samples] or with channels first or last."""
    r = read_wav(path)
    _alike(path, r, want)
    x = r.samples.astype(np.float64)
    if not want.raw:
        x = (x - r.zero) / r.full
    if want.mono:
        x = x.mean(axis=1, keepdims=True)
    if want.rate and want.rate != r.rate:
        x = resampled(x, r.rate, want.rate)
    frames = _frames(x if want.raw else x.astype(np.float32), want, r.zero if want.raw else 0)
    if x.shape[1] == 1:
        return [f[:, 0] for f in frames]
    return frames if want.last else [f.T for f in frames]
