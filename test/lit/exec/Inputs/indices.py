"""Models that index with their inputs, and data with indices inside and outside of the axes."""
import os
import sys

import numpy as np

to = sys.argv[1]
INPUTS = {"x": "float[3,2]", "i": "int64[2]", "ik": "int32[2,1]", "at": "int64[2,2]",
          "lens": "int64[2]", "no": "bool[]"}
NODES = {
    "gather": ("float[2,2]", "Gather(%x, %i)"),
    "elements": ("float[2,1]", "GatherElements(%x, %ik) <axis=0>"),
    "nd": ("float[2]", "GatherND(%x, %at)"),
    "scatter": ("float[3,2]", "ScatterElements(%x, %ik, %u) <axis=0>"),
    "scatter_nd": ("float[3,2]", "ScatterND(%x, %at, %v)"),
    "reversed": ("float[3,2]", "ReverseSequence(%x, %lens)"),
}


def write(name, nodes, body):
    inputs = ", ".join(f"%{n} : {t}" for n, t in INPUTS.items())
    outputs = ", ".join(f"%{n}" for n in nodes)
    with open(os.path.join(to, name + ".qir"), "w") as f:
        f.write(f'qir 1\nimport "" 17\ngraph @main ({inputs}) -> ({outputs}) {{\n'
                "  const %u : float[2,1] = [7.0, 8.0]\n  const %v : float[2] = [7.0, 8.0]\n"
                f"{body}}}\n")


def line(name):
    kind, call = NODES[name]
    return f"  %{name} : {kind} = {call}\n"


for name in NODES:
    write(name, [name], line(name))
write("all", NODES, "".join(line(name) for name in NODES))
write("branch", ["y"], """  const %zeros : float[2,2] = [0.0, 0.0, 0.0, 0.0]
  %y : float[2,2] = If(%no) <
    then_branch=graph @then () -> (%t) {
      %t : float[2,2] = Gather(%x, %i)
    },
    else_branch=graph @else () -> (%e) {
      %e : float[2,2] = Identity(%zeros)
    }>
""")
with open(os.path.join(to, "computed.qir"), "w") as f:
    f.write('qir 1\nimport "" 17\ngraph @main () -> (%y) {\n'
            "  const %x : float[3] = [1.0, 2.0, 3.0]\n  const %two : int64[2] = [2, 1]\n"
            "  %i : int64[2] = Add(%two, %two)\n  %y : float[2] = Gather(%x, %i)\n}\n")


def data(name, i, ik, at, lens):
    np.savez(os.path.join(to, name + ".npz"), x=np.arange(6, dtype=np.float32).reshape(1, 3, 2),
             i=np.array([i]), ik=np.array([ik], np.int32).reshape(1, 2, 1),
             at=np.array([at]), lens=np.array([lens]), no=np.array([False]))


data("ends", [-3, 2], [0, -1], [[-3, 0], [2, -1]], [0, 1])
data("high", [0, 3], [0, 3], [[0, 0], [3, 1]], [1, 4])
data("low", [-4, 0], [-4, 0], [[0, -3], [0, 0]], [-1, 1])
