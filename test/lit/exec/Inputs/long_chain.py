"""long_chain.py FOLDER: a chain of 20000 nodes at whose end a shape depends on the data."""

import pathlib
import sys

import numpy as np

folder, n = pathlib.Path(sys.argv[1]), 20000
chain = "".join(f"  %v{i + 1} : int64[1] = Abs(%v{i})\n" for i in range(n))
(folder / "chain.qir").write_text(f"""qir 1
import "" 21
graph @g (%v0 : int64[1], %z : float[1,3]) -> (%y) {{
{chain}  %y : float[1,1,3] = Unsqueeze(%z, %v{n})
}}
""")
np.savez(folder / "chain.npz", v0=np.array([1]), z=np.ones((1, 3), np.float32))
