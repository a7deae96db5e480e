#!/bin/bash
# The tour: the digits model from float ONNX to text, to both quantized ONNX forms and to C, which
# is compiled and run over the test set. Called by `make demo`. Needs the program, a C compiler and
# nothing else; where Python has onnxruntime, that runs the two ONNX models too.
# Ends with exit status 1 as soon as anything fails.
set -eu -o pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build}
qxc=${QXC:-$build/qxc}
digits=examples/digits
out=$build/demo
worst=97 # per cent: what every form must reach

step() { printf '\n== %s\n' "$*"; }
run() {
    printf '$ %s\n' "$*"
    "$@"
}
bytes() { wc -c <"$1" | tr -d ' '; }

rm -rf "$out"
mkdir -p "$out"

step "calibrate on 200 images and decide: a text, to be read and edited"
run "$qxc" $digits/digits.onnx -calib=$digits/calib.npz -emit=qir -o "$out/digits.qir"
grep -m 4 '^quant ' "$out/digits.qir" | cut -c 1-96
grep -m 2 ' = Conv(' "$out/digits.qir" | cut -c 1-96

step "the text to QDQ, to QOperator, to C"
run "$qxc" "$out/digits.qir" -emit=qdq -quiet -o "$out/digits_qdq.onnx"
run "$qxc" "$out/digits.qir" -emit=qop -quiet -o "$out/digits_qop.onnx"
run "$qxc" "$out/digits.qir" -emit=c -name=digits -quiet -o "$out/digits.c"

step "compile the C and read the 397 test images with it"
run "$qxc" run $digits/digits.onnx -input=$digits/test.npz -o "$out/float.npz"
run "$qxc" run "$out/digits_qdq.onnx" -input=$digits/test.npz -o "$out/qdq.npz"
run "$qxc" run "$out/digits_qop.onnx" -input=$digits/test.npz -o "$out/qop.npz"
run "${CC:-cc}" -std=c99 -O3 -march=native -Wall -Wextra -Werror -I"$out" \
    $digits/eval.c "$out/digits.c" -o "$out/eval" -lm
(cd "$out" && ./eval "$OLDPWD/$digits/test.npz" float.npz qdq.npz qop.npz) | tee "$out/accuracy.txt"
for form in 'int8 C' qdq.npz qop.npz; do # no form may have lost what was learned
    grep -q "^$form " "$out/accuracy.txt"
done
awk -v worst=$worst '{ for (i = 2; i <= NF; i++) if ($i == "%" || $i == "%,") if ($(i - 1) < worst) bad = 1 }
    END { exit bad }' "$out/accuracy.txt"
for form in qdq.npz qop.npz; do # three ways to compute, one result
    grep -q "^$form .*bit for bit" "$out/accuracy.txt"
done

step "the same in onnxruntime"
python=
for p in build/venv/bin/python "${PYTHON:-python3}"; do
    if "$p" -c 'import numpy, onnxruntime' 2>/dev/null; then
        python=$p
        break
    fi
done
if [ -n "$python" ]; then
    "$python" - "$digits/test.npz" "$digits/digits.onnx" "$out/digits_qdq.onnx" \
        "$out/digits_qop.onnx" <<'END' | tee "$out/onnxruntime.txt"
import os, sys
import numpy, onnxruntime
data = numpy.load(sys.argv[1])
for path in sys.argv[2:]:
    run = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run
    got = [run(None, {"image": x[None]})[0].argmax() for x in data["image"]]
    right = int((got == data["labels"]).sum())
    print(f"{os.path.basename(path):28} {right} of {len(got)} right, {100 * right / len(got):.2f} %")
    if right / len(got) < 0.97:
        sys.exit(f"{path}: onnxruntime gets too few right")
END
else
    echo "(no Python with onnxruntime here: left out)"
fi

step "summary"
arena=$(sed -n 's/^#define DIGITS_ARENA_SIZE \([0-9]*\).*/\1/p' "$out/digits.h")
[ -n "$arena" ]
"${CC:-cc}" -std=c99 -Os -c "$out/digits.c" -o "$out/digits_small.o"
accuracy() { sed -n "s/^$1 .*right, \([0-9.]* %\).*/\1/p" "$2" | head -n 1; }
theirs() { [ -n "$python" ] && accuracy "$1" "$out/onnxruntime.txt" || echo '-'; }
row() { printf '%-38s %8s %12s %14s\n' "$@"; }
row form bytes accuracy onnxruntime
row "float ONNX" "$(bytes $digits/digits.onnx)" "$(accuracy float.npz "$out/accuracy.txt")" \
    "$(theirs digits.onnx)"
row "QDQ ONNX" "$(bytes "$out/digits_qdq.onnx")" "$(accuracy qdq.npz "$out/accuracy.txt")" \
    "$(theirs digits_qdq.onnx)"
row "QOperator ONNX" "$(bytes "$out/digits_qop.onnx")" \
    "$(accuracy qop.npz "$out/accuracy.txt")" "$(theirs digits_qop.onnx)"
row "C, compiled with -Os: code + weights" \
    "$(size "$out/digits_small.o" | awk 'NR == 2 { print $1 + $2 }')" \
    "$(accuracy 'int8 C' "$out/accuracy.txt")" '-'
echo "The C needs an arena of $arena bytes and nothing else; it gives the same bits as qxc run."
echo "All files are in $out. Next: change a scale in digits.qir and compile again."
