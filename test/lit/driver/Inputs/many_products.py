"""many_products.py FILE: 2000 products of int8, one after the other."""

import pathlib
import sys

LAYERS = 2000
lines = ["qir 1", 'import "" 21', "quant !q = int8q<0.1, 0>", f"graph @main (%v0 : !q[1,16]) -> (%v{LAYERS}) {{",
         "const %w : !q[16,16] = splat(1)"]
lines += [f"%v{i + 1} : !q[1,16] = MatMul(%v{i}, %w)" for i in range(LAYERS)]
pathlib.Path(sys.argv[1]).write_text("\n".join([*lines, "}", ""]))
