#!/usr/bin/env python3
"""Makes calibration data for qxc, an .npz, from a folder of images or from CSV files.

Images are resized (the short side to --resize, or exactly with --exact), cropped in the middle to --crop, and
become float32: pixel / 255, minus --mean, divided by --std, one number or one a channel. A CSV file has
one sample a line; lines that begin with '#' and a first line of words are left out.

    make_calib.py photos/ -o calib.npz --input image --crop 224 --mean 0.485 0.456 0.406 --std 0.229 0.224 0.225
    make_calib.py windows.csv -o calib.npz --input x --shape 1,49,10
    make_calib.py digits/ -o test.npz --input image --grey --crop 28 --labels

With --labels the folders that images lie in are classes, numbered in order of name: array `labels`.
Needs numpy, and Pillow for images.
"""

import argparse
import csv
import pathlib
import sys

import numpy as np

IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".webp", ".tif", ".tiff"}


def fail(text):
    sys.exit(f"make_calib.py: error: {text}")


def resized(image, given):
    from PIL import Image
    size = given.resize or given.crop
    if size and given.exact:
        image = image.resize((size, size), Image.BILINEAR)
    elif size:
        width, height = image.size
        scale = size / min(width, height)
        image = image.resize((max(size, round(width * scale)), max(size, round(height * scale))),
                             Image.BILINEAR)
    if given.crop:
        width, height = image.size
        left, top = (width - given.crop) // 2, (height - given.crop) // 2
        image = image.crop((left, top, left + given.crop, top + given.crop))
    return image


def read_image(path, given):
    try:
        from PIL import Image
    except ImportError:
        fail("images need Pillow: pip install pillow")
    try:
        with Image.open(path) as image:
            pixels = np.asarray(resized(image.convert("L" if given.grey else "RGB"), given), np.float32)
    except OSError as error:
        fail(f"{path}: {error}")
    pixels = pixels.reshape(*pixels.shape[:2], -1) / np.float32(1 if given.raw else 255)
    pixels = (pixels - np.float32(given.mean)) / np.float32(given.std)
    return pixels if given.nhwc else np.moveaxis(pixels, -1, 0)


def read_csv(path):
    rows = []
    with open(path, newline="", encoding="utf-8") as file:
        for number, row in enumerate(csv.reader(file), 1):
            if not row or row[0].lstrip().startswith("#"):
                continue
            try:
                rows.append(np.array([float(x) for x in row], np.float32))
            except ValueError:
                if rows or number > 1:
                    fail(f"{path}:{number}: not a number in {row!r:.60}")
    return rows


def files_of(paths):
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.suffix.lower() in IMAGES | {".csv"})
        elif path.exists():
            yield path
        else:
            fail(f"{path} does not exist")


def spread(files, limit):
    """At most `limit` of them, evenly."""
    if not limit or len(files) <= limit:
        return files
    return [files[i * len(files) // limit] for i in range(limit)]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0],
                                     epilog=__doc__.split("\n\n", maxsplit=1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=pathlib.Path, help="images, CSV files, folders of them")
    parser.add_argument("-o", required=True, type=pathlib.Path, help="the .npz to write")
    parser.add_argument("--input", required=True, help="the model's input")
    parser.add_argument("--resize", type=int, help="length of the short side")
    parser.add_argument("--exact", action="store_true", help="resize to a square, whatever the proportions")
    parser.add_argument("--crop", type=int, help="side of the square taken from the middle")
    parser.add_argument("--grey", action="store_true", help="one channel")
    parser.add_argument("--nhwc", action="store_true", help="channels last (default: first)")
    parser.add_argument("--raw", action="store_true", help="pixels 0..255 in place of 0..1")
    parser.add_argument("--mean", type=float, nargs="+", default=[0.0])
    parser.add_argument("--std", type=float, nargs="+", default=[1.0])
    parser.add_argument("--shape", help="of a sample, where it is not that of a line: 1,49,10")
    parser.add_argument("--limit", type=int, help="use at most so many files, evenly spread")
    parser.add_argument("--labels", action="store_true", help="add classes, from the folders' names")
    return parser.parse_args()


def main():
    given = parse()
    files = spread(list(files_of(given.paths)), given.limit)
    samples, folders = [], []
    for path in files:
        read = read_csv(path) if path.suffix.lower() == ".csv" else [read_image(path, given)]
        samples += read
        folders += [path.parent.name] * len(read)
    if not samples:
        fail("there are no images and no lines of numbers")
    shapes = {s.shape for s in samples}
    if len(shapes) > 1:
        fail(f"samples of different shapes: {sorted(shapes)[:4]}; --crop or --exact --resize makes "
             "images alike")
    data = np.stack(samples)
    if given.shape:
        shape = [int(d) for d in given.shape.split(",")]
        if np.prod(shape) != data[0].size:
            fail(f"a sample has {data[0].size} numbers, --shape={given.shape} {np.prod(shape)}")
        data = data.reshape(len(data), *shape)
    arrays = {given.input: data}
    if given.labels:
        classes = sorted(set(folders))
        arrays["labels"] = np.array([classes.index(f) for f in folders], np.int64)
    np.savez(given.o, **arrays)
    print(f"{given.o}: {given.input} {list(data.shape)}, {data.min():g} to {data.max():g}")


if __name__ == "__main__":
    main()
