"""Writes networks of Round and Clip in which a step must not be left free, as nothing would make up for it: NAME.qir."""
import pathlib
import sys

HEAD = """qir 1
import "" 21
graph @g (%x : float[1,2,4,4]) -> (%y{more}) {{
  const %lo : float[] = [-128.0]
  const %hi : float[] = [127.0]
  const %zero : float[] = [0.0]
  const %top : float[] = [255.0]
  const %four : float[] = [4.0]
  const %three : float[] = [3.0]
  const %quarter : float[] = [0.25]
  const %half : float[] = [0.5]
  const %out : float[] = [0.05]
  const %m : float[] = [0.0625]
  const %w : float[2,2,1,1] = [1.0, 2.0, -3.0, 4.0]
  const %w2 : float[2,4,1,1] = [1.0, 2.0, -3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
"""
ROUND = "  %{to}_r = Round(%{x})\n  %{to} = Clip(%{to}_r, %lo, %hi)\n"
INPUT = "  %xm = Mul(%x, %four)\n" + ROUND.format(to="a", x="xm")
END = ROUND.format(to="c", x="s") + "  %y = Mul(%c, %out)\n"

CASES = {
    "product_of_floats": "  %g = Conv(%x, %w)\n  %s = Mul(%g, %m)\n" + END,
    "relu_between": INPUT + "  %g = Conv(%a, %w)\n  %gm = Mul(%g, %m)\n  %s = Relu(%gm)\n" + END,
    "two_factors": INPUT + "  %g = Conv(%a, %w)\n  %gm = Mul(%g, %m)\n  %s = Mul(%gm, %three)\n" + END,
    "average": INPUT + "  %p = AveragePool(%a) <kernel_shape=[2,2], strides=[2,2]>\n  %g = Conv(%p, %w)\n  %s = Mul(%g, %m)\n" + END,
    "floor_of_average": INPUT + "  %q = Relu(%a)\n  %p = AveragePool(%q) <kernel_shape=[2,2], strides=[2,2]>\n"
                        "  %h = Add(%p, %half)\n  %f = Floor(%h)\n  %c = Clip(%f, %lo, %hi)\n  %y = Mul(%c, %quarter)\n",
    "signed_and_unsigned": INPUT + "  %b = Clip(%a_r, %zero, %top)\n  %j = Concat(%a, %b) <axis=1>\n"
                           "  %g = Conv(%j, %w2)\n  %s = Mul(%g, %m)\n" + END,
    "another_scale": INPUT + "  %d = Div(%a, %three)\n" + ROUND.format(to="c", x="d") + "  %y = Mul(%c, %three)\n",
    "two_outputs": INPUT + "  %f = Flatten(%a)\n  %y = Mul(%f, %quarter)\n  %z = Mul(%f, %quarter)\n",
    "floor_of_floats": INPUT + "  %g = Conv(%x, %w)\n  %s = Mul(%g, %m)\n  %y = Floor(%s)\n  %z = Mul(%a, %out)\n",
}

for name, body in CASES.items():
    text = HEAD.format(more=", %z" if "%z =" in body else "") + body + "}\n"
    pathlib.Path(sys.argv[1], f"{name}.qir").write_text(text)
