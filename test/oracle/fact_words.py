"""What the table of operator_facts.py is written with: families, shapes, and operands whose numbers depend on what was drawn before.

Each function here has the drawing (drawing.Drawing) and gives a value or a shape.
"""

import numpy as np

EVERYTHING = "f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8 ?"


class Family:
    """Operators that are drawn alike.

    `numbers`: of the operands that no fact is about; `bound`: how many roundings a float may be away, of itself, of the largest
    one of the result, and perhaps of 1; `single`: a reference computes doubles in float; `either_zero`: 0 and -0 are as large,
    and either may be the result; `letters`: of shapes; `kinds`: element
    types, by type parameter; `count`: of variadic operands; `results`: how many; `always`: attributes and operands that are
    never left out; `quirks`: where a reference is wrong.
    """

    def __init__(self, names, operands="A", numbers="wild", bound=(0, 0), single=False, either_zero=False, letters=None, kinds=None, count=None,
                 results=None, always="", domain="", quirks=(), **facts):
        self.names, self.operands, self.numbers, self.bound, self.single = names.split(), operands, numbers, bound, single
        self.either_zero = either_zero
        self.letters, self.kinds, self.count, self.results = letters or {}, kinds or {}, count, results
        self.always, self.domain, self.quirks, self.facts = always.split(), domain, quirks, facts

    def types(self, parameter):
        return {np.dtype(k) for k in self.kinds.get(parameter, EVERYTHING).split()}


def shape(low, high):
    """Of so many dimensions."""
    return lambda d: tuple(d.length() for _ in range(d.rng.randint(low, high)))


def planes(low, high, longest=7):
    """Lengths of axes that windows move along."""
    return lambda d: tuple(d.rng.randint(1, longest) for _ in range(d.rng.randint(low, high)))


def each(letter, low, high, times=1):
    """Numbers, `times` for every axis of a shape."""
    return lambda d: [d.rng.randint(low, high) for _ in range(times * len(d[letter]))]


LETTERS = {"A": shape(0, 4), "I": shape(0, 2), "S": planes(1, 3), "K": lambda d: tuple(d.rng.randint(1, 3) for _ in d["S"]),
           "B": shape(0, 2), "g": lambda d: d.one_of(1, 1, 2, 3)}


def pads(d):
    return None if d.attribute("auto_pad") not in (None, "NOTSET") else each("S", 0, 2, 2)(d)


ATTRIBUTES = {
    "axis": lambda d: d.axis(len(d["A"])), "axes": lambda d: d.axes(len(d["A"])), "auto_pad": ("NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"),
    "strides": each("S", 1, 3), "dilations": each("S", 1, 2), "pads": pads, "kernel_shape": lambda d: list(d["K"]), "group": lambda d: d["g"],
    "epsilon": (1e-5, 1e-3, 0.1), "stash_type": (1,)}


def divisor(d):
    """No zero, nor -1: integer types have no result then."""
    kind = d.types["T"]
    return d.numbers(d.shape("~A"), kind, "wild" if kind.kind == "f" else "positive")


def shift(d):
    return d.rng.choice([0, 1, 2, 7]) * np.ones(d.shape("~A"))


def reshaped(d):
    """The same elements in other dimensions; 0 keeps a length and -1 is what is left."""
    left, sizes = int(np.prod(d["A"])), []
    for _ in range(d.below(4)):
        n = d.one_of(*[k for k in range(1, left + 1) if left % k == 0] or [1])
        sizes.append(n)
        left //= max(n, 1)
    sizes.append(left)
    for i, n in enumerate(sizes):
        if i < len(d["A"]) and d["A"][i] == n and d.chance(0.3):
            sizes[i] = 0
    if d.chance(0.4):
        sizes[d.below(len(sizes))] = -1
    return sizes


def at_axis(letter, n):
    """The shape with another length along the axis."""
    def of(d):
        full = list(d[letter])
        full[d.attribute("axis") % len(full)] = n(d)
        return tuple(full)
    return of


def along(d, default=0):
    """How long the operand is along the axis."""
    axis = d.attribute("axis")
    axis = default if axis is None else axis
    if not -len(d["A"]) <= axis < len(d["A"]):
        d.below(0)
    return d["A"][axis]


def smaller(d):
    """A shape of the operand's rank, inside of it."""
    along(d)
    return tuple(d.rng.randint(min(1, n), n) for n in d["A"])


def distinct(d):
    """Indices of ScatterElements; where nothing is reduced, no two are the same place."""
    n, axis, inner = along(d), d.attribute("axis") or 0, d["E"]
    if d.attribute("reduction") not in (None, "none"):
        return d.indices(inner, n)
    order = np.random.RandomState(d.below(1 << 31)).rand(*[n if i == axis % len(inner) else k for i, k in enumerate(inner)]).argsort(axis)
    picked = np.take(order, range(inner[axis]), axis)
    return np.where(d.numbers(inner, np.dtype("?"), ""), picked, picked - n)


def cells(d):
    """Indices of ScatterND and GatherND: rows of `depth` numbers behind the batch."""
    batch, full = d.attribute("batch_dims") or 0, d["A"]
    depth = d["depth"]
    rows = (*full[:batch], *d["rows"])
    inner = full[batch:batch + depth]
    total, count = int(np.prod(inner)), int(np.prod(rows))
    picker = np.random.RandomState(d.below(1 << 31))
    if total == 0 or d.op == "ScatterND" and d.attribute("reduction") in (None, "none") and count > total:
        d.below(0)
    flat = picker.choice(total, count, replace=count > total)
    index = np.stack(np.unravel_index(flat, inner), -1) if inner else np.zeros((count, 0))
    return np.where(picker.rand(*index.shape) < 0.3, index - np.array(inner), index).reshape(*rows, depth)


def depth(d):
    rank = len(d["A"]) - (d.attribute("batch_dims") or 0)
    return 1 + d.below(rank)


def scattered(d):
    return (*d["rows"], *d["A"][d["depth"]:])


def partition(d):
    """Lengths that add up to the axis."""
    n, count = along(d), d.rng.randint(1, 4)
    cuts = sorted(d.rng.randint(0, n) for _ in range(count - 1))
    return [b - a for a, b in zip([0, *cuts], [*cuts, n])]


def split(d):
    return d["parts"] if d["equal"] == 0 else None


def edges(d):
    return [d.one_of(0, 1, 2, 3, -1, -2, -5, 9, (1 << 31) - 1, -(1 << 31)) for _ in d["cut"]]


def converted(d):
    """What a Cast takes: a float becomes an integer inside of its range."""
    source, target = d.types["T1"], d.types["T2"]
    if source.kind == "f" and target.kind in "iu":
        values = d.numbers(d["A"], source, "small") * d.one_of(1, 7, 60)
        return np.abs(values) if target.kind == "u" else values
    return d.numbers(d["A"], source, "wild")


def bits(d):
    return d.numbers(d["A"], d.types["T1"], "wild" if d.types["T2"].kind != "b" else "")


def scales_shape(d):
    """One for all, one for each along the axis, or one for each block."""
    block, axis = d.attribute("block_size") or 0, d.attribute("axis")
    if block:
        full = list(d["A"])
        along(d, 1)
        full[axis] = -(-full[axis] // block)
        return tuple(full)
    return (along(d, 1),) if d["each"] else ()


def scales(d):
    kind = d.type_of(next(i for i in d.schema.inputs if "scale" in i.name).type_str)
    return np.abs(d.numbers(d["Q"], kind, "tame")) * kind.type(0.1) + kind.type(0.01)


def zero_point(d):
    parameter = next(i for i in d.schema.inputs if i.name.endswith("zero_point"))
    kind = d.type_of(parameter.type_str)
    return np.zeros(d["Q"]) if kind == np.int32 else d.numbers(d["Q"], kind, "tame")


def from_axis(d):
    return tuple(d["A"][d.attribute("axis"):])


ACTIVATIONS = {"RNN": (1, "Tanh Relu Sigmoid Affine LeakyRelu ThresholdedRelu ScaledTanh HardSigmoid Elu Softsign Softplus"),
               "GRU": (2, "Sigmoid Tanh Relu"), "LSTM": (3, "Sigmoid Tanh Relu")}


def activations(d):
    count, words = ACTIVATIONS[d.op]
    return [d.one_of(*words.split()) for _ in range(count * d["dirs"])]


def sequence(letters):
    """Shapes with the time in front, or behind the batch where layout is 1."""
    return lambda d: d.shape(letters if not d.attribute("layout") else " ".join([letters.split()[1], letters.split()[0], *letters.split()[2:]]))


def dirs(d):
    return 2 if d.attribute("direction") == "bidirectional" else 1


def scale_factors(d):
    full = d.shape("n c S")
    return [d.one_of(1, 1, 2, 0.5, 1.5, 3, 0.7) if i > 1 else 1 for i in range(len(full))]


def up_factors(d):
    return [d.one_of(1, 2, 3, 1.5) if i > 1 else 1 for i in range(2 + len(d["S"]))]


def corners(d):
    """Of boxes of all sizes, most of them the right way round."""
    ends = d.numbers((2, d["r"], 2), np.dtype("f4"), "tame") * d.one_of(1, 4)
    return np.concatenate(list(np.sort(ends, axis=0) if d.chance(0.8) else ends), axis=1)


EQUATIONS = ("ij,jk->ik", "ij->ji", "ii->i", "ij->", "i,i->", "i,j->ij", "bij,bjk->bik", "...ij,...jk->...ik", "bhid,bhjd->bhij", "ijk,kl,lm->ijm",
             "ij,ij->ij", "i...->...", "ab,cb", "ijj->i", "ij,k->kij", "...ii->...i", "abc,cd->abd")


def term(d):
    words = d["equation"].replace("->", ">").split(">")[0].split(",")[d.place]
    return " ".join(w for w in ("~B" if t == "@" else t for t in words.replace("...", "@")))
