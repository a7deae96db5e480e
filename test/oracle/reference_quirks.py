"""Where onnxruntime or onnx.reference is not what ONNX says: such forms are not compared with it."""

import numpy as np


class Quirk:
    """Where one of the references is not what ONNX says; other forms are drawn then. `when` has the drawing and the name of the
    reference."""

    def __init__(self, why, when):
        self.why, self.when = why, when


def has_same(d):
    return d.attribute("auto_pad") in ("SAME_UPPER", "SAME_LOWER")


def dilated(d):
    return any(n > 1 for n in d.attribute("dilations") or ())


def steps_to_largest(d):
    """Whether an end of Slice is the largest int32 where a step is negative."""
    ends, steps = d.operands.get("x2"), d.operands.get("x4")
    return ends is not None and steps is not None and bool(np.any((ends == (1 << 31) - 1) & (steps < 0)))


def single_numbers(d):
    full = d.shape("n c S")
    return int(np.prod([full[a] for a in d.attribute("axes") or (0, 2, 3)])) == 1


def integer(x):
    return x.dtype.kind in "iu"


def beyond(x, y):
    """Whether a power is more than the type of its base holds."""
    most = np.iinfo(x.dtype).max
    with np.errstate(all="ignore"):
        return bool(np.any(np.abs(x.astype(np.float64)) ** y.astype(np.float64) > most))


def holds_lowest(x):
    return x.dtype.kind == "f" and bool(np.any(np.isneginf(x)))


SAME_DILATED = Quirk("onnxruntime leaves the dilations out of the pads of SAME_UPPER and SAME_LOWER, so that results are shorter than ONNX says",
                     lambda d, by: has_same(d) and dilated(d))
NO_LOGARITHM = Quirk("no integer is the logarithm of a number below 0", lambda d, by: integer(d.operands["x0"]) and bool(np.any(d.operands["x0"] < 0)))
CUT_EXPONENTIALS = Quirk("onnxruntime cuts exponentials of integers to integers before it adds them",
                         lambda d, by: by == "onnxruntime" and d.operands["x0"].dtype.kind == "i")
SHRINK_IN_FLOAT = Quirk("onnxruntime shrinks all types as float, which has not all of their numbers",
                        lambda d, by: by == "onnxruntime" and d.op == "Shrink" and d.operands["x0"].dtype != np.float32
                        and bool(np.any(np.abs(d.operands["x0"].astype(np.float64)) > 2.0 ** 20)))
SAME_CUTS = Quirk("onnxruntime cuts elements off in front of pools of SAME_UPPER and SAME_LOWER where strides are longer than kernels; pads are 0 or more in ONNX",
                  lambda d, by: has_same(d) and any(s > k for s, k in zip(d.attribute("strides") or (), d.attribute("kernel_shape"))))
LEAST_NUMBER = Quirk("onnxruntime has the least finite number for the maximum of windows of -infinity",
                     lambda d, by: by == "onnxruntime" and holds_lowest(d.operands["x0"]))
FIRST_BIAS = Quirk("onnx.reference adds the bias of the first channels to each group",
                   lambda d, by: by == "onnx.reference" and (d.attribute("group") or 1) > 1 and d.operands.get("x2") is not None)
POOL_REFERENCE = Quirk("onnx.reference counts windows wrongly that lie in the padding, and skips NaN", lambda d, by: by == "onnx.reference")
SAME_STRIDES = Quirk("onnxruntime does not fill up results of SAME_UPPER and SAME_LOWER where strides are longer than kernels", lambda d, by: has_same(d))
NO_REFERENCE = Quirk("onnx.reference leaves out lengths, activations and clipping", lambda d, by: by == "onnx.reference")
LARGEST_END = Quirk("onnxruntime takes the largest int32 for an open end where steps are negative", lambda d, by: steps_to_largest(d))
SCALAR_NONZERO = Quirk("onnxruntime gives a scalar one row of indices, ONNX none", lambda d, by: len(d["A"]) == 0)

MOST_OF_PLANES = Quirk("onnx.reference takes the maximum over two dimensions, however many there are",
                       lambda d, by: by == "onnx.reference" and len(d.shape("n c S")) != 4)
SIGNED_NORM = Quirk("onnx.reference takes sums for norms", lambda d, by: by == "onnx.reference")
LRN_BATCH = Quirk("onnx.reference counts images where it means channels", lambda d, by: by == "onnx.reference")
NOTHING_TO_SUM = Quirk("onnxruntime gives the operand's shape to sums of doubles of which there are none",
                       lambda d, by: by == "onnxruntime" and 0 in d["A"])
ONE_OF_ONE = Quirk("onnxruntime divides by a deviation of 0, to which ONNX adds 1e-9", lambda d, by: by == "onnxruntime" and single_numbers(d))
ONE_HOT_SUMS = Quirk("onnx.reference adds differences of the two values, and rounds",
                     lambda d, by: by == "onnx.reference" and d.types["T3"].kind == "f")
MEAN_OF_NONE = Quirk("onnxruntime gives 0 for the mean of no losses, which is 0 / 0", lambda d, by: d.empty)
NO_CHANNELS = Quirk("onnxruntime leaves what it has as it is where there are no channels to sum", lambda d, by: 0 in (d["g"], d["c"]))
CAUSAL_PAST = Quirk("onnxruntime hides keys of the past behind the diagonal", lambda d, by: by == "onnxruntime" and d["past"] and d.attribute("is_causal"))
NO_AXES = Quirk("onnxruntime takes an empty list of axes for none", lambda d, by: by == "onnxruntime" and d.opset > 12 and np.size(d.operands.get("x1", 1)) == 0)
HALF_INVERSE = Quirk("onnxruntime takes half a spectrum back for another length than is asked for",
                     lambda d, by: by == "onnxruntime" and d.attribute("inverse") and d.attribute("onesided"))
ZEROS_BETWEEN = Quirk("onnx.reference fills dilated kernels up with zeros, and has NaN of those and infinities",
                      lambda d, by: by == "onnx.reference" and dilated(d))
ALL_AT_ONCE = Quirk("onnx.reference multiplies three operands at once, onnxruntime two of them first, which overflows elsewhere",
                    lambda d, by: by == "onnx.reference" and d["equation"].count(",") > 1)
ALL_INFINITE = Quirk("onnx.reference takes an infinity from itself", lambda d, by: by == "onnx.reference")
NOTHING_TO_MULTIPLY = Quirk("onnxruntime takes the third operand as it is, whatever beta is, where there is nothing to multiply",
                            lambda d, by: by == "onnxruntime" and d["k"] == 0)
ONE_IN_PLANE = Quirk("onnxruntime rounds the deviation of one number, which is 0", lambda d, by: by == "onnxruntime" and int(np.prod(d.shape("S"))) == 1)
NEAREST_OUTSIDE = Quirk("onnx.reference takes the weight from the one number that nearest has where it lies outside",
                        lambda d, by: by == "onnx.reference" and d.attribute("exclude_outside") and d.attribute("mode") == "nearest")
SLOPE_OF_ZERO = Quirk("onnx.reference multiplies zeros by the slope, and has NaN of infinite ones",
                      lambda d, by: by == "onnx.reference" and bool(np.any(d.operands["x0"] == 0)) and bool(np.any(np.isinf(d.operands["x1"]))))
SIGN_OF_NAN = Quirk("onnxruntime has 0 for the sign of a NaN of float16, and NaN in all other types",
                    lambda d, by: by == "onnxruntime" and d.op == "Sign" and d.operands["x0"].dtype == np.float16 and bool(np.any(np.isnan(d.operands["x0"]))))
HARDMAX_OF_AXIS = Quirk("onnx.reference looks along the axis where opsets before 13 look at all axes from there on",
                        lambda d, by: by == "onnx.reference" and d.opset < 13)
TOO_LARGE = Quirk("powers that an integer type does not hold are nothing that ONNX says, and onnx.reference leaves out their upper bits",
                  lambda d, by: by == "onnx.reference" and integer(d.operands["x0"]) and beyond(d.operands["x0"], d.operands["x1"]))
