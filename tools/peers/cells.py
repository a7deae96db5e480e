"""One cell: a model that a tool quantized, measured. Kept as JSON, so that a run goes on where one stopped; failures are
not kept."""

import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

from common import BUILD, run_samples, session, sqnr

HERE = pathlib.Path(__file__).resolve().parent
KEPT = BUILD / "peers"
MOST_SECONDS = 900


class Failed(Exception):
    """Why a tool gave nothing, in a line."""


def python_of(tool):
    """The interpreter of the tool's own environment, or None where it cannot be installed."""
    venv = KEPT / f"venv-{tool}"
    done, failed = venv / "done", KEPT / f"venv-{tool}.failed"
    if not done.exists() and not failed.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        pip = subprocess.run([venv / "bin/pip", "install", "--quiet", "-r", HERE / f"requirements-{tool}.txt"],
                             capture_output=True, text=True, check=False)
        (failed if pip.returncode else done).write_text(pip.stderr[-400:])
    return venv / "bin/python" if done.exists() else None


def version_of(tool, python):
    names = {"aimet": "aimet-onnx"}
    code = f"import importlib.metadata as m; print(m.version('{names.get(tool, tool)}'))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def command_of(tool, options, model, calib, out):
    if tool == "qxc":
        return [BUILD / "qxc", model.path, "-emit=qdq", f"-calib={calib}", "-no-sync", "-o", out,
                *(word for word in options.split("|") if word)]
    return [python_of(tool), HERE / f"with_{tool}.py", model.path, calib, out, *shlex.split(options)]


def timed(command, cwd):
    """CPU seconds of the process and its children; Failed with the last line that it said."""
    with tempfile.TemporaryFile("w+") as told:
        start = time.monotonic()
        child = subprocess.Popen(list(map(str, command)), cwd=cwd, stdout=told, stderr=told,
                                 env={**os.environ, "OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1"})
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - start > MOST_SECONDS:
                child.kill()
                os.wait4(child.pid, 0)
                raise Failed(f"more than {MOST_SECONDS} seconds")
            time.sleep(0.05)
        child.returncode = os.waitstatus_to_exitcode(status)
        told.seek(0)
        lines = [line.strip() for line in told.read().splitlines() if line.strip()]
    if child.returncode:
        raise Failed(lines[-1][:160] if lines else f"exit {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def judged(model, path):
    """Worst output's SQNR in dB, and right answers in % where there are labels."""
    reference = run_samples(session(model.path), onnx.load(model.path), model.test)
    got = run_samples(session(path), onnx.load(path), model.test)
    found = {"sqnr": min(float(sqnr(reference[k], got[k])) for k in reference if reference[k].dtype == np.float32)}
    if model.labels is not None:
        first = got[next(iter(reference))]
        rows = first.reshape(*model.labels.shape, -1)
        found["right"] = float(100 * np.mean(rows.argmax(-1) == model.labels))
    return found


def key_of(model, tool, options, seed, version):
    digest = hashlib.sha256()
    scripts = [(HERE / name).read_bytes() for name in (f"with_{tool}.py", "feeding.py")] if tool != "qxc" else []
    for part in (model.path.read_bytes(), tool, options, str(seed), version, *scripts):
        digest.update(part if isinstance(part, bytes) else part.encode())
    return digest.hexdigest()[:16]


def measured(model, tool, options, seed):
    """{"sqnr", "right", "cpu"} or {"why"}."""
    python = None if tool == "qxc" else python_of(tool)
    if tool != "qxc" and not python:
        return {"why": "it could not be installed"}
    version = hashlib.sha256((BUILD / "qxc").read_bytes()).hexdigest() if tool == "qxc" else version_of(tool, python)
    kept = KEPT / "cells" / f"{model.name}-{tool}-{key_of(model, tool, options, seed, version)}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    with tempfile.TemporaryDirectory(prefix="peers-", dir=BUILD) as folder:
        folder = pathlib.Path(folder)
        calib, out = folder / "calib.npz", folder / "out.onnx"
        np.savez(calib, **model.part(seed))
        try:
            cpu = timed(command_of(tool, options, model, calib, out), folder)
            found = {**judged(model, out), "cpu": round(cpu, 2)}
        except Failed as why:
            return {"why": str(why).replace(f"{folder}/", "")}
        except Exception as why:  # what onnxruntime says of their model
            said = str(why).splitlines()[0].replace(f"{folder}/", "")
            return {"why": f"its model does not run: {said[:140]}"}
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(found))
    return found
