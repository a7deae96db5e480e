"""The program itself: where it is, how it is called, what it says."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

BESIDE = Path(__file__).parent / "_bin" / ("qxc.exe" if os.name == "nt" else "qxc")
LOG = logging.getLogger("qxc")
MISSED = 4  # the exit code of an accuracy that was asked for and not reached


@dataclass(frozen=True)
class Diagnostic:
    """A message of the compiler, at its place. Notes belong to the message before them."""

    severity: str  #: "error", "warning", "remark" or "note"
    message: str
    file: str = ""  #: as it was given; "qxc" where the message is about options
    line: int | None = None  #: from 1, of a text, or of the text that shows an ONNX model
    column: int | None = None
    end_column: int | None = None
    source: str | None = None  #: the line
    place: str | None = None  #: the part of an ONNX model, in words

    def __str__(self) -> str:
        where = self.file
        if self.place:
            where += f": {self.place}"
        elif self.line is not None:
            where += f":{self.line}:{self.column}"
        text = f"{where}: {self.severity}: {self.message}"
        if self.source is None or self.column is None:
            return text
        width = max(1, (self.end_column or self.column + 1) - self.column)
        return f"{text}\n{self.source}\n{' ' * (self.column - 1)}^{'~' * (width - 1)}"


class Error(Exception):
    """The program refused. `diagnostics` holds all that it said, with places."""

    def __init__(self, text: str, diagnostics: list[Diagnostic] | None = None, exit_code: int = 1):
        super().__init__(text)
        self.diagnostics = diagnostics or []
        self.exit_code = exit_code

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.diagnostics if d.severity == "error"]


class AccuracyMissed(Error):
    """An accuracy that was asked for (min_sqnr, max_drop) was not reached."""


@dataclass
class Said:
    """What a call of the program gave."""

    stdout: bytes
    diagnostics: list[Diagnostic] = field(default_factory=list)
    summary: str = ""  #: the closing lines, which are no messages


def program() -> str:
    """The path of the program: that of QXC_PROGRAM, the one in this package, or one on the PATH."""
    given = os.environ.get("QXC_PROGRAM")
    if given:
        return given
    if BESIDE.is_file() and os.access(BESIDE, os.X_OK):
        return str(BESIDE)
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, "qxc")
        if os.path.isfile(path) and os.access(path, os.X_OK) and not _is_script(path):
            return path
    raise Error(f"the program of qxc is not in this installation ({BESIDE}) nor on the PATH: "
                "install the wheel again, or name the program in QXC_PROGRAM")


def _is_script(path: str) -> bool:
    """Such as the one of this package, which would call itself."""
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def version() -> str:
    """The version of the program."""
    return call(["-version"]).stdout.decode().split()[1]


def call(arguments: list[str]) -> Said:
    """Calls the program and waits for it. Raises Error with its messages where it fails; of a call that goes
    well they go to the logger "qxc", which shows warnings unless told otherwise.
    """
    command = [program(), *arguments, "-diagnostics=json"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as e:
        raise Error(f"cannot run {command[0]}: {e.strerror}") from e
    said = _said(done)
    if done.returncode == 0:
        for d in said.diagnostics:
            LOG.log(logging.WARNING if d.severity == "warning" else logging.INFO, "%s", d)
        return said
    kind = AccuracyMissed if done.returncode == MISSED else Error
    raise kind(_why(said, done.returncode), said.diagnostics, done.returncode)


def _said(done: subprocess.CompletedProcess) -> Said:
    said, others = Said(done.stdout), []
    for line in done.stderr.decode("utf-8", "replace").split("\n"):
        found = _diagnostic(line)
        if found:
            said.diagnostics.append(found)
        elif line:
            others.append(line)
    said.summary = "\n".join(others)
    return said


def _diagnostic(line: str) -> Diagnostic | None:
    """A message; None of other text, which may begin with a brace, too."""
    try:
        row = json.loads(line) if line.startswith("{") else None
    except ValueError:
        return None
    if not isinstance(row, dict) or not {"severity", "message"} <= row.keys():
        return None
    return Diagnostic(**{k: v for k, v in row.items() if k in Diagnostic.__dataclass_fields__})


def _why(said: Said, code: int) -> str:
    shown, on = [], False
    for d in said.diagnostics:
        on = d.severity == "error" or (on and d.severity == "note")
        if on:
            shown.append(str(d))
    if not shown and code < 0:
        shown = [f"the program was ended by signal {-code}"]
    return "\n".join(shown) or said.summary or f"the program failed with exit code {code}"


def options(keywords: dict[str, object]) -> list[str]:
    """Keywords as options of the command line."""
    out: list[str] = []
    for name, value in keywords.items():
        option = "-" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            out.append(option)
        elif isinstance(value, (list, tuple)):
            out += [f"{option}={os.fspath(v) if isinstance(v, os.PathLike) else v}" for v in value]
        else:
            out.append(f"{option}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return out


def main() -> None:
    """The command `qxc`: becomes the program, but for the command that this package has."""
    if sys.argv[1:2] == ["calib-data"] or sys.argv[1:] == ["help", "calib-data"]:
        from qxc import calib_data
        raise SystemExit(calib_data.main(sys.argv[2:] if sys.argv[1] != "help" else ["--help"]))
    try:
        path = program()
        if os.name == "nt":
            raise SystemExit(subprocess.call([path, *sys.argv[1:]]))
        os.execv(path, [path, *sys.argv[1:]])
    except Error as e:
        raise SystemExit(f"qxc: error: {e}") from None
    except OSError as e:
        raise SystemExit(f"qxc: error: cannot run {path}: {e.strerror}") from None
