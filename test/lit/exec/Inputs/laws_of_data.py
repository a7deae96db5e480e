"""laws_of_data.py FOLDER: models with symbols for dimensions, and data that give them sizes which break a law."""

import pathlib
import sys

import numpy as np

folder = pathlib.Path(sys.argv[1])


def case(name, text, **data):
    (folder / f"{name}.qir").write_text(f'qir 1\nimport "" 24\n{text}\n')
    np.savez(folder / f"{name}.npz", **{k: np.ones(d, np.float32) for k, d in data.items()})


case("gemm", """graph @g (%x : float[N,K]) -> (%y) {
  const %w : float[3,4] = splat(1.0)
  %y : float[N,4] = Gemm(%x, %w)
}""", x=(2, 5))
case("scatter", """graph @g (%x : float[N,K], %u : float[N,L]) -> (%y) {
  const %i : int64[1,3] = [0, 1, 2]
  %y : float[N,K] = ScatterElements(%x, %i, %u) <axis=1>
}""", x=(2, 5), u=(2, 2))
case("attention", """graph @g (%q : float[N,1,S,4], %m : float[1,M,S]) -> (%y) {
  %y : float[N,1,S,4] = Attention(%q, %q, %q, %m)
}""", q=(2, 1, 3, 4), m=(2, 2, 3))
case("conv", """graph @g (%x : float[N,C,4,4]) -> (%y) {
  const %w : float[2,3,1,1] = splat(1.0)
  %y : float[N,2,4,4] = Conv(%x, %w)
}""", x=(2, 5, 4, 4))
