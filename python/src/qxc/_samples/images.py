"""Images: read, brought to a size, as numbers with channels last."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qxc._samples.faults import Unreadable, Usage, Wrong
from qxc._samples.port import CHANNELS, Port, shape_text

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".webp", ".tif", ".tiff"}
GREYS_OF_16_BITS = ("I;16", "I;16L", "I;16B", "I;16N")


@dataclass
class Look:
    """How images become alike."""

    channels: int
    layout: str  #: NCHW or NHWC
    size: tuple[int, ...] | None  #: to resize to: the short side, or height and width
    crop: tuple[int, int] | None  #: height and width
    raw: bool


def _layout(port: Port) -> str | None:
    """As the shape of the input says, or None where it says nothing."""
    if port.sample is None or len(port.sample) != 3:
        return None
    first, last = (port.number(axis) in CHANNELS for axis in (0, -1))
    if first and last:
        raise Usage(f"input {port.name} has samples of {shape_text(port.sample)}: --layout=NCHW or NHWC says where the channels are")
    return "NCHW" if first else "NHWC" if last else None


def _pair(given: list[int] | None) -> tuple[int, int] | None:
    return (given[0], given[-1]) if given else None


def look(given: Any, port: Port) -> Look:
    """Of the options, and of the model where they say nothing."""
    layout = given.layout or _layout(port)
    grid = port.sample is not None and len(port.sample) == 3
    channels = port.number(0 if (layout or "NCHW") == "NCHW" else -1) if grid else None
    flat = port.sample is not None and len(port.sample) == 2  # height and width alone
    if channels is not None and channels not in CHANNELS:
        raise Wrong(f"input {port.name} has samples of {shape_text(port.sample or [])}: images have 1 channel or 3")
    crop = _pair(given.crop)
    if (grid or flat) and not crop:
        at = 0 if flat or layout == "NHWC" else 1
        height, width = port.number(at), port.number(at + 1)
        crop = (height, width) if height and width else None
    resize = tuple(given.resize) if given.resize else None
    if given.exact:
        resize = _pair(given.resize) or crop
        if resize is None:
            raise Usage("--exact goes with --resize, --crop or --model, which say the size")
    return Look(1 if given.grey or flat else channels or 3, layout or "NCHW", resize, crop, given.raw)


def _scaled(image: Any, want: Look) -> Any:
    from PIL import Image
    width, height = image.size
    if want.size and len(want.size) == 2:
        return image.resize(want.size[::-1], Image.Resampling.BILINEAR)
    if want.size:
        scale, least = want.size[0] / min(width, height), (want.size[0], want.size[0])
    elif want.crop:
        scale, least = max(want.crop[0] / height, want.crop[1] / width), want.crop
    else:
        return image
    return image.resize((max(least[1], round(width * scale)), max(least[0], round(height * scale))), Image.Resampling.BILINEAR)


def _cropped(image: Any, crop: tuple[int, int]) -> Any:
    width, height = image.size
    if height < crop[0] or width < crop[1]:
        raise Wrong(f"{height} by {width} pixels are too few to take {crop[0]} by {crop[1]} from the middle")
    left, top = (width - crop[1]) // 2, (height - crop[0]) // 2
    return image.crop((left, top, left + crop[1], top + crop[0]))


def _opened(image: Any, want: Look) -> tuple[Any, bool]:
    """In grey or colours, and whether it has 16 bits, which Pillow would cut to 8."""
    from PIL import Image
    if image.mode in GREYS_OF_16_BITS or (image.mode == "I" and image.format in ("PNG", "PPM")):
        return Image.fromarray(np.asarray(image).astype(np.float32)), True
    if image.mode in ("I", "F"):
        raise Wrong("nothing says which range its 32-bit numbers have; an .npy file can hold them")
    return image.convert("L" if want.channels == 1 else "RGB"), False


def read(path: Path, want: Look) -> np.ndarray:
    """[height, width, channels], from 0 to 1, or to 255 where it is raw."""
    try:
        from PIL import Image
    except ImportError:
        raise Unreadable("images need Pillow: pip install 'qxc[images]'") from None
    try:
        with Image.open(path) as file:
            image, sixteen = _opened(file, want)
            image = _scaled(image, want)
            pixels = np.asarray(_cropped(image, want.crop) if want.crop else image, np.float32)
    except Wrong as error:
        raise Wrong(f"{path}: {error}") from None
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise Unreadable(f"{path}: this image cannot be read: {error}") from None
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    if pixels.shape[2] != want.channels:
        pixels = np.repeat(pixels, want.channels, axis=2)
    if sixteen:
        pixels = pixels / np.float32(257)
    return pixels if want.raw else pixels / np.float32(255)
