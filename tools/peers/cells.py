"""One cell: a model that a tool quantized, measured. Kept as JSON, so that a run goes on where one stopped."""

import functools
import hashlib
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile

import numpy as np
import onnx

from common import BUILD, run_samples, session, sqnr
from models import TEXT
from perplexity import perplexity
from products import float_products

HERE = pathlib.Path(__file__).resolve().parent
KEPT = BUILD / "peers"
MOST_SECONDS = 600  # of CPU
TOO_LONG = f"more than {MOST_SECONDS // 60} minutes of CPU"
PACKAGE = {"aimet": "aimet-onnx", "quark": "amd-quark", "modelopt": "nvidia-modelopt"}  # where it is not the tool's name
ON_TORCH = ("onnxruntime", "aimet", "quark", "modelopt")


class Failed(Exception):
    """Why a tool gave nothing, in a line."""


def install(tool, venv):
    """Makes an environment; gives what pip said where that failed. torch, which takes 5 GB, is there once for all."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
    torch = python_of("torch") if tool in ON_TORCH else None
    if torch:
        site = "lib/python{}.{}/site-packages".format(*sys.version_info)
        (venv / site / "torch.pth").write_text(f"{torch.parents[1] / site}\n")
    pip = subprocess.run([venv / "bin/python", "-m", "pip", "install", "--quiet", "-r", HERE / f"requirements-{tool}.txt"],
                         capture_output=True, text=True, check=False)
    return pip.stderr[-400:] if pip.returncode else None


def python_of(tool):
    """The interpreter of the tool's own environment, or None where it cannot be installed; any for a program."""
    if tool == "qxc":
        return sys.executable
    venv = KEPT / f"venv-{tool}"
    done, failed = venv / "done", KEPT / f"venv-{tool}.failed"
    if not done.exists() and not failed.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        why = install(tool, venv)
        (failed if why else done).write_text(why or "")
    return venv / "bin/python" if done.exists() else None


@functools.cache
def version_of(tool, python):
    """What pip says; of qxc a digest of the program."""
    if tool == "qxc":
        return hashlib.sha256((BUILD / "qxc").read_bytes()).hexdigest()
    code = f"import importlib.metadata as m; print(m.version('{PACKAGE.get(tool, tool)}'))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@functools.cache
def server_of(tool):
    """The process of a tool, which forks for each cell; what it says while it starts goes to a file."""
    return subprocess.Popen([python_of(tool), HERE / "serve.py", tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=open(KEPT / f"start-{tool}.log", "w"), text=True,
                            env={**os.environ, "OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1"})


def last_line(path):
    lines = [line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:160] if lines else "it says nothing"


def served(tool, words, folder):
    server = server_of(tool)
    job = {"words": list(map(str, words)), "folder": str(folder), "seconds": MOST_SECONDS}
    try:
        server.stdin.write(json.dumps(job) + "\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())
    except (BrokenPipeError, json.JSONDecodeError):
        raise Failed(f"it does not start: {last_line(KEPT / f'start-{tool}.log')}") from None


def quantized(tool, options, model, calib, out):
    """{"cpu", "mib"}; Failed with the last line that the tool said."""
    words = [word for word in options.split("|") if word] if tool == "qxc" else shlex.split(options)
    told = served(tool, [model.path, calib, out, *words], out.parent)
    if told["status"] == -signal.SIGXCPU:
        raise Failed(TOO_LONG)
    if told["status"]:
        raise Failed(last_line(out.parent / "said"))
    start = 0 if tool == "qxc" else told["start"]  # a program needs no Python
    return {"cpu": round(told["cpu"] + start, 2), "mib": round(told["mib"])}


@functools.cache
def reference_of(model):
    return run_samples(session(model.path), onnx.load(model.path), model.test)


def judged(model, path):
    """Worst output's SQNR in dB, right answers in % where there are labels, perplexity of text, and how many products are left
    in float."""
    made = onnx.load(path)
    left, products = float_products(made)
    if left == products:
        raise Failed("it quantizes no product")
    reference = reference_of(model)
    got = run_samples(session(path), made, model.test)
    found = {"sqnr": min(float(sqnr(reference[k], got[k])) for k in reference if reference[k].dtype == np.float32),
             "float": left, "products": products}
    if model.labels is not None:
        first = got[next(iter(reference))]
        rows = first.reshape(*model.labels.shape, -1)
        found["right"] = float(100 * np.mean(rows.argmax(-1) == model.labels))
        if model.name in TEXT:
            found["perplexity"] = perplexity(rows, model.labels)
            found["plain perplexity"] = perplexity(next(iter(reference.values())).reshape(rows.shape), model.labels)
    return found


def key_of(model, tool, options, seed, version):
    digest = hashlib.sha256()
    scripts = [(HERE / name).read_bytes() for name in (f"with_{tool}.py", "feeding.py")] if tool != "qxc" else []
    for part in (model.path.read_bytes(), tool, options, str(seed), version, *scripts):
        digest.update(part if isinstance(part, bytes) else part.encode())
    return digest.hexdigest()[:16]


def tried(model, tool, options, seed):
    with tempfile.TemporaryDirectory(prefix="peers-", dir=BUILD) as folder:
        folder = pathlib.Path(folder)
        calib, out = folder / "calib.npz", folder / "out.onnx"
        np.savez(calib, **model.part(seed))
        try:
            cost = quantized(tool, options, model, calib, out)
            return {**judged(model, out), **cost}
        except Failed as why:
            return {"why": str(why).replace(f"{folder}/", "")}
        except Exception as why:  # what onnxruntime says of their model
            said = str(why).splitlines()[0].replace(f"{folder}/", "")
            return {"why": f"its model does not run: {said[:140]}"}


def measured(model, tool, options, seed, only_kept=False):
    """{"sqnr", "right", "float", "products", "cpu", "mib"} or {"why"}. What failed is tried again, if not for its time."""
    python = python_of(tool)
    if not python:
        return {"why": "it could not be installed"}
    kept = KEPT / "cells" / f"{model.name}-{tool}-{key_of(model, tool, options, seed, version_of(tool, python))}.json"
    if kept.exists():
        found = json.loads(kept.read_text())
        if only_kept or found.get("why", TOO_LONG) == TOO_LONG:
            return found
    if only_kept:
        return {"why": "it was not measured"}
    found = tried(model, tool, options, seed)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(found))
    return found
