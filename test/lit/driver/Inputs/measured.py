"""Data for measured.test: measured.py FOLDER writes plain.npz, steady.npz, odd.npz, [20, 4] each."""

import sys

import numpy as np

x = np.sin(np.arange(80, dtype=np.float32)).reshape(20, 4)
odd = x.copy()
odd[4, 1] = np.nan
for name, data in ("plain", x), ("steady", np.full_like(x, 3)), ("odd", odd):
    np.savez(f"{sys.argv[1]}/{name}.npz", x=data)
