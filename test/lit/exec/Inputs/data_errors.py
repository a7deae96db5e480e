"""data_errors.py FOLDER: models and arrays, most of which do not fit each other."""

import pathlib
import sys

import numpy as np

folder = pathlib.Path(sys.argv[1])
f, i = np.float32, np.int32


def arrays(name, **data):
    np.savez(folder / f"{name}.npz", **data)


def model(name, body):
    (folder / f"{name}.qir").write_text(f'qir 1\nimport "" 21\ngraph {body}\n')


x, k = np.zeros((4, 2), f), np.zeros((4, 3), i)
arrays("good", x=x, k=k)
arrays("missing", x=x, other=k)
arrays("shape", x=np.zeros((4, 3), f), k=k)
arrays("kind", x=x, k=np.zeros((4, 3), f))
arrays("counts", x=x, k=np.zeros((5, 3), i))
arrays("range", x=x, k=np.full((4, 3), 2**40))
arrays("fortran", x=np.asfortranarray(x), k=k)
arrays("none-at-all", x=x[:0], k=k[:0])
arrays("nan", x=np.array([[np.nan, 1], [2, np.inf]], f))
arrays("ones", x=np.array([[0, 0], [1, 1], [1, 1]], f))
arrays("labels", x=x, reals=np.zeros(4, f), few=np.zeros(3, i))
arrays("huge", x=np.zeros((2, 6), f), s=np.full((2, 2), 2**63 + 5, np.uint64))
arrays("long", x=np.zeros((2, 6), f), s=np.ones((2, 3), np.int64))
(folder / "text.npz").write_text("no archive")

model("m", "@m (%x : float[1,2], %k : int32[1,3]) -> (%y, %z) {\n  %y = Relu(%x)\n  %z = Identity(%k)\n}")
model("nan", "@m (%x : float[1,2]) -> (%y) {\n  %y = Relu(%x)\n}")
model("own", "@m (%x : float[1,2]) -> (%z) {\n  %a = Abs(%x)\n  %h = Neg(%a)\n  %y = Sqrt(%h)\n  %z = Relu(%y)\n}")
model("outputs", "@m (%x : float[1,2]) -> (%y, %z) {\n  %y = Relu(%x)\n  %z = Neg(%x)\n}")
model("wider", "@m (%x : float[1,3]) -> (%y) {\n  %y = Relu(%x)\n}")
model("double", "@m (%x : bool[1,2]) -> (%y) {\n  %y = Not(%x)\n}")
model("strings", '@m (%x : float[1]) -> (%y) {\n  const %s : string[1] = ["a"]\n  %y = Identity(%s)\n}')
model("sequence", "@m (%s : seq<float[1]>) -> (%s) {\n}")
model("unknown", "@m (%q : int8q<?>[1]) -> (%q) {\n}")
model("no-output", "@m (%x : float[1,2]) -> () {\n  %y = Relu(%x)\n}")
model("reshape", "@m (%x : float[1,6], %s : int64[2]) -> (%y) {\n  %y = Reshape(%x, %s)\n}")
model("untyped", "@m (%u) -> (%u) {\n}")

# One value for all samples; arrays stacked in front of a dimension of 1; one name for two dimensions.
state, gain = np.array([1, 2], f), np.array(10, f)
arrays("state", x=np.array([[1], [3]], f), state=state, gain=gain)
arrays("state-one", x=np.array([[0]], f), state=state, gain=gain)
arrays("state-wrong", x=np.array([[0]], f), state=np.zeros(3, f), gain=gain)
np.save(folder / "stacked.npy", np.zeros((2, 1, 2, 3), f))
np.save(folder / "image.npy", np.zeros((1, 2, 3), f))
model("state", "@m (%x : float[1,1], %state : float[2], %gain : float[]) -> (%y) {\n"
      "  const %shape : int64[1] = [1]\n  %flat : float[1] = Reshape(%x, %shape)\n"
      "  %sum : float[1] = Add(%flat, %gain)\n  %y : float[2] = Mul(%sum, %state)\n}")
model("image", '@m (%x : float[N,"?","?"]) -> (%y) {\n  %y = Relu(%x)\n}')
