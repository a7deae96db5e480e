"""Calibration data of files, as `qxc calib-data` makes them.

Images, recordings (WAV), lines of CSV files or arrays (.npy, .npz) become one .npz that -calib and -input
take. A folder stands for the files in it and below; names that begin with a dot are left out.

  qxc calib-data photos/ --model model.onnx -o calib.npz --mean 0.485 0.456 0.406 --std 0.229 0.224 0.225
  qxc calib-data words/ --model kws.onnx -o calib.npz --rate 16000 --labels
  qxc calib-data windows.csv --input x --shape 1 49 10 -o calib.npz

Without an installation: PYTHONPATH=python/src python3 -m qxc.calib_data
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from qxc._data import save_npz
from qxc._program import Error
from qxc._samples.faults import Unreadable, Usage, Wrong, plural
from qxc._samples.kinds import KINDS, Kind, check_options, kind_of, one_kind
from qxc._samples.port import Port, of_model, shape_text

NUMBERS = {"--resize": 2, "--crop": 2, "--mean": 0, "--std": 0, "--shape": 0}  # how many at most; 0: any
REAL = {"--mean", "--std"}  # the others are whole
LABELS = "labels"


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Usage(f"{message}: see qxc calib-data --help")


def numbers_of(kind: type, least: float | None) -> Any:
    """The numbers of "8,8"."""
    def parse(text: str) -> list[Any]:
        found = [kind(x) for x in text.split(",")]
        if not all(np.isfinite(x) and (least is None or x >= least) for x in found):
            raise ValueError(text)
        return found
    parse.__name__ = f"number{'' if least is None else f' of {least} or more'}"
    return parse


def count(text: str) -> int:
    return int(numbers_of(int, 1)(text)[0])


def parser() -> Parser:
    top, rest = (__doc__ or "").split("\n\n", maxsplit=1)
    p = Parser(prog="qxc calib-data", description=top, epilog=rest, allow_abbrev=False,
               formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files of one kind, and folders of them")
    p.add_argument("-o", required=True, type=Path, metavar="FILE", help="the .npz to write; one that is there is replaced")
    p.add_argument("--model", help="the model, whose input gives name, shape, layout and type, which the data have to fit")
    p.add_argument("--input", metavar="NAME", help="the model's input; needed without --model")
    p.add_argument("--limit", type=count, metavar="N", help="at most so many samples, evenly spread")
    p.add_argument("--labels", action="store_true", help=f"add the array {LABELS}: folders are classes, numbered in order of name")
    size, some = numbers_of(int, 1), numbers_of(float, None)
    p.add_argument("--shape", type=size, metavar="D", help="of a sample, where that of the file is another: 1 49 10")
    p.add_argument("--layout", choices=["NCHW", "NHWC"], help="channels first (default) or last, also of recordings")
    p.add_argument("--raw", action="store_true", help="numbers of the file (pixels from 0 to 255), not from 0 or -1 to 1")
    g = p.add_argument_group("images")
    g.add_argument("--resize", type=size, metavar="N", help="the short side; two numbers: height and width, whatever the proportions")
    g.add_argument("--exact", action="store_true", help="to a square, or the model's size, whatever the proportions")
    g.add_argument("--crop", type=size, metavar="N", help="height and width to take from the middle; one number: a square")
    g.add_argument("--grey", action="store_true", help="one channel")
    g.add_argument("--mean", type=some, metavar="M", help="to subtract, one number or one a channel")
    g.add_argument("--std", type=some, metavar="S", help="to divide by then")
    g = p.add_argument_group("recordings")
    g.add_argument("--rate", type=count, metavar="HZ", help="samples a second; other rates are resampled")
    g.add_argument("--length", type=count, metavar="N", help="samples; zeros are put behind what is shorter, the end of what is longer is left out")
    g.add_argument("--hop", type=count, metavar="N", help="take a frame of --length at every N-th sample, not only the first")
    g.add_argument("--mono", action="store_true", help="the mean of all channels")
    return p


def _goes_on(option: str, first: bool, word: str) -> bool:
    """Whether a word is a number of this option: behind its first, what is there as a file or folder is none."""
    kind = float if option in REAL else int
    try:
        numbers = re.match(r"-?\.?\d", word) and [kind(x) for x in word.split(",")]
    except ValueError:
        return False
    return bool(numbers) and (first or not os.path.exists(word))


def words(argv: list[str]) -> list[str]:
    """For argparse: options have two dashes, as both are right for qxc, and several numbers are one word."""
    out: list[str] = []
    for word in argv:
        if re.match(r"-[a-z]{2}", word):
            word = "-" + word
        before = out[-1].split("=")[0] if out else ""
        if before in NUMBERS and _goes_on(before, "=" not in out[-1], word):
            out[-1] += ("," if "=" in out[-1] else "=") + word
        else:
            out.append(word)
    return out


def parse(argv: list[str]) -> argparse.Namespace:
    given = parser().parse_args(words(argv))
    for option, most in NUMBERS.items():
        if most and len(getattr(given, option[2:]) or []) > most:
            raise Usage(f"{option} has one number, or height and width")
    if given.o.suffix != ".npz":
        raise Usage(f"-o {given.o}: the file's name ends in .npz")
    if not given.o.absolute().parent.is_dir():
        raise Unreadable(f"-o {given.o}: there is no such folder")
    if not (given.model or given.input):
        raise Usage("--model=MODEL or --input=NAME says which input the data are for")
    if given.labels and given.input == LABELS:
        raise Usage(f"--labels adds an array {LABELS}, which is the input's name here")
    return given


def files_of(given: Any) -> list[Path]:
    """In the order of the command line, those of a folder by name."""
    found = list(_each(given))
    if not found:
        raise Wrong("there is no image, no recording, no CSV file and no array in " + ", ".join(map(str, given.paths)))
    for path in [*found, *([Path(given.model)] if given.model else [])]:
        if given.o.exists() and path.exists() and given.o.samefile(path):
            raise Usage(f"-o {given.o} would overwrite what is read")
    return found


def _each(given: Any) -> Iterator[Path]:
    for path in given.paths:
        if path.is_dir():
            for p in sorted(path.rglob("*")):
                hidden = any(part.startswith(".") for part in p.relative_to(path).parts)
                if not hidden and p.is_file() and kind_of(p) and p.absolute() != given.o.absolute():
                    yield p
        elif not path.exists():
            raise Unreadable(f"{path} does not exist")
        elif kind_of(path):
            yield path
        else:
            known = " ".join(sorted(s for k in KINDS for s in k.suffixes))
            raise Wrong(f"{path}: a file of this name is none that is read: {known}")


def spread(items: list[Any], limit: int | None) -> list[Any]:
    """At most `limit` of them, evenly."""
    if limit is None or len(items) <= limit:
        return items
    return [items[i * len(items) // limit] for i in range(limit)]


def ready(sample: np.ndarray, path: Path, given: Any, kind: Kind, port: Port) -> np.ndarray:
    """As the input takes it."""
    if given.shape:
        if int(np.prod(given.shape)) != sample.size:
            raise Wrong(f"{path}: a sample has {plural(sample.size, 'number')}, --shape {int(np.prod(given.shape))}")
        sample = sample.reshape(given.shape)
    sample = port.shaped(sample)
    if not port.fits(sample.shape):
        raise Wrong(f"{path}: a sample is {shape_text(sample.shape)}, and input {port.name} takes "
                    f"{shape_text(port.sample or [])}{_mend(kind)}")
    if kind.name == "arrays" and not port.known:
        return sample
    return port.typed(sample, str(path))


def _mend(kind: Kind) -> str:
    return {"images": ": --crop, --resize, --grey and --layout change that",
            "recordings": ": --length, --mono and --layout change that"}.get(kind.name, ": --shape=D,D changes that")


def folder_of(path: Path) -> str:
    return path.absolute().parent.name


def collect(given: Any, port: Port) -> tuple[Kind, np.ndarray, list[int], list[str]]:
    """The samples, the class of each, and the names of all classes, also of those that --limit leaves out."""
    files = files_of(given)
    classes = sorted({folder_of(p) for p in files})
    kind = one_kind(files)
    check_options(given, kind)
    if kind.name == "images":  # a file is a sample: no other has to be read
        files = spread(files, given.limit)
    read = kind.reader(given, port)
    found: list[tuple[np.ndarray, int]] = []
    for path in files:
        for sample in read(path):
            found.append((ready(sample, path, given, kind, port), classes.index(folder_of(path))))
            if found[0][0].shape != found[-1][0].shape:
                raise Wrong(f"{path}: a sample is {shape_text(sample.shape)}, those before are {shape_text(found[0][0].shape)}"
                            f"{_mend(kind)}")
    if not found:
        raise Wrong("there is no sample in " + ", ".join(map(str, given.paths)))
    found = spread(found, given.limit)
    return kind, np.stack([s for s, _ in found]), [c for _, c in found], classes


def write(to: Path, arrays: dict[str, np.ndarray]) -> None:
    """All of it, or nothing."""
    part = to.with_name(f".{to.name}.{os.getpid()}")
    try:
        try:
            save_npz(part, arrays)
            os.replace(part, to)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise Unreadable(f"cannot write {to}: {error.strerror}") from None


def make(argv: list[str]) -> list[str]:
    """Makes the file; what there is to say of it."""
    given = parse(argv)
    port = of_model(given.model, given.input) if given.model else Port(given.input)
    if given.labels and port.name == LABELS:
        raise Usage(f"--labels adds an array {LABELS}, which is the input's name here")
    kind, data, labels, classes = collect(given, port)
    arrays = {port.name: data}
    said = [f"{given.o}: input {port.name}, {plural(len(data), 'sample')} of {kind.name}, {data.dtype}{shape_text(data.shape[1:])}, "
            f"from {data.min():g} to {data.max():g}"]
    if kind.name == "recordings":
        said.append("; ".join(given.cut.told()))
    if given.labels:
        arrays[LABELS] = np.array(labels, np.int64)
        said.append(f"{LABELS}: " + ", ".join(f"{i} is {c}" for i, c in enumerate(classes)))
    write(given.o, arrays)
    return said


def main(argv: list[str] | None = None) -> int:
    """The exit code, as of qxc."""
    try:
        said = make(sys.argv[1:] if argv is None else argv)
    except Wrong as error:
        print(f"qxc: error: {error}", file=sys.stderr)
        return error.exit_code
    except Error as error:
        print(error if error.diagnostics else f"qxc: error: {error}", file=sys.stderr)
        return error.exit_code
    print("\n".join(said), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
