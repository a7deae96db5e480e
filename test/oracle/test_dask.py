"""Calibration of shards over a Dask cluster of two workers, of which one is killed on the way: the same bytes as of one process over all data."""

import os
import subprocess
import unittest

import numpy as np

from common import DIGITS, QXC, ROOT, OracleCase, python_with

SCRIPT = """
import os, signal, sys, threading, time
import numpy as np
import qxc
from distributed import Client, LocalCluster

def main():
    shards = np.array_split(np.load("calib.npz")["image"], 40)
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    client = Client(cluster)
    pids = sorted(client.run(os.getpid).values())
    killed = []

    def kill():
        while not any(f for f in client.who_has().values()):
            time.sleep(0.01)  # until the first shard is seen
        os.kill(pids[0], signal.SIGKILL)
        killed.append(pids[0])

    thread = threading.Thread(target=kill)
    thread.start()
    model = qxc.calibrate("digits.onnx", shards, client)
    thread.join()
    print(bool(killed), sorted(client.run(os.getpid).values()) != pids)
    open("dask.qir", "w").write(model.text)
    open("alone.qir", "w").write(qxc.calibrate("digits.onnx", ["calib.npz"]).text)
    client.close()
    cluster.close()

if __name__ == "__main__":
    main()
"""


class Dask(OracleCase):
    def test_a_worker_dies(self):
        python = python_with("dask", ["distributed==2026.8.0", f"numpy=={np.__version__}"], "Dask")
        for name in ("digits.onnx", "calib.npz"):
            os.symlink(DIGITS / name, self.scratch / name)
        (self.scratch / "script.py").write_text(SCRIPT)
        done = subprocess.run([python, "script.py"], cwd=self.scratch, capture_output=True, text=True, check=False, timeout=300,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "python/src"), "QXC_PROGRAM": QXC})
        self.assertEqual(0, done.returncode, done.stderr[-3000:])
        self.assertEqual("True True", done.stdout.strip().splitlines()[-1])
        self.assertEqual((self.scratch / "alone.qir").read_text(), (self.scratch / "dask.qir").read_text())


if __name__ == "__main__":
    unittest.main()
