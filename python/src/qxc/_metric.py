"""A metric that is a function here, as a command that the program can run."""

from __future__ import annotations

import os
import shlex
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from types import TracebackType

import numpy as np

Metric = Callable[[Mapping[str, np.ndarray]], float]

_CLIENT = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode()); "
           "s.shutdown(socket.SHUT_WR); got = s.makefile().read(); print(got); sys.exit(not got)")


class Served:
    """While it is entered, `command` calls the function with what stands in an .npz. Calls come one at a time, from a thread.
    What the function raises is raised again on leaving, in place of the program's error.
    """

    def __init__(self, metric: Metric):
        self._metric = metric
        self._raised: BaseException | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="qxc-")
        at = os.path.join(self._folder.name, "metric")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(at)
        self._socket.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.command = shlex.join([sys.executable, "-S", "-E", "-c", _CLIENT, at])

    def _answer(self, path: str) -> str:
        try:
            with np.load(path) as arrays:
                return repr(float(self._metric({k: arrays[k] for k in arrays})))
        except BaseException as e:  # noqa: BLE001 - raised where it was called from
            self._raised = self._raised or e
            return ""

    def _serve(self) -> None:
        while True:
            try:
                one, _ = self._socket.accept()
            except OSError:
                return
            with one, one.makefile("r", encoding="utf-8") as asked:
                path = asked.read()
                if not path:
                    return
                try:
                    one.sendall(self._answer(path).encode())
                except OSError:
                    pass  # a time limit ended who asked

    def __enter__(self) -> Served:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(os.path.join(self._folder.name, "metric"))
        self._thread.join()
        self._socket.close()
        self._folder.cleanup()
        if self._raised:
            raise self._raised from error
