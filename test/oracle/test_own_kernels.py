"""-kernels=FILE: functions of a project in place of our kernels, in the bits of ours."""

import re
import subprocess

from common import DIGITS, ROOT, WARNINGS, OracleCase, compile_c, for_each, qxc

KERNELS = """kernels "plain C"
call plain_conv for conv2d_nhwc_q when op Conv scratch 16
call plain_depthwise for depthwise_nhwc_q
call plain_dense for matmul_packed_q
call plain_pool for maxpool2d_nhwc when kh 2 and kw 2 and pt 0 and pl 0
"""

# Written down from the header's formulas, with nothing of ours but its structs. ROUND is how sums are rounded.
PLAIN = r"""
#include "model.h"
#include <math.h>
static int32_t rounded(int32_t sum, int32_t mul, int32_t shift) {
    const int64_t product = (int64_t)sum * mul;
    (void)product;
#if ROUND == 0 /* as float32 does */
    return (int32_t)rintf((float)sum * (float)ldexp((double)mul, shift - 31));
#elif ROUND == 1
    return (int32_t)((product + ((int64_t)1 << (30 - shift))) >> (31 - shift));
#else /* twice: half up, then half away from zero */
    int64_t high = (product + (product < 0 ? 1 - (1 << 30) : 1 << 30)) / ((int64_t)1 << 31);
    int64_t half = shift < 0 ? (int64_t)1 << (-shift - 1) : 0;
    return (int32_t)(high < 0 ? -((-high + half) >> -shift) : (high + half) >> -shift);
#endif
}
static TYPE result(int32_t sum, int32_t mul, int32_t shift, int32_t yz, int32_t lo, int32_t hi) {
    int32_t y = rounded(sum, mul, shift) + yz + WRONG;
    return (TYPE)(y < lo ? lo : y > hi ? hi : y);
}
static TYPE window(const qxc_conv_params *p, const TYPE *x, int32_t from, int32_t n, const int8_t *w, int32_t step,
                   const int32_t *bias, const int32_t *mul, const int32_t *shift, int32_t i, int32_t c) {
    int32_t sum = bias[c], ky, kx, k;
    for (ky = 0; ky < p->kh; ky++)
        for (kx = 0; kx < p->kw; kx++)
            for (k = 0; k < n; k++, w += step) {
                int32_t iy = i / p->ow * p->sh - p->pt + ky * p->dh, ix = i % p->ow * p->sw - p->pl + kx * p->dw;
                if (iy >= 0 && iy < p->ih && ix >= 0 && ix < p->iw)
                    sum += (x[(iy * p->iw + ix) * p->ic + from + k] - p->xz) * *w;
            }
    return result(sum, mul[c], shift[c], p->yz, p->lo, p->hi);
}
int plain_conv(const qxc_conv_params *p, const TYPE *x, const int8_t *w, const int32_t *bias, const int32_t *mul,
               const int32_t *shift, TYPE *y, uint8_t *scratch, int32_t scratch_bytes) {
    int32_t i, c, icg = p->ic / p->group, ocg = p->oc / p->group;
    if (scratch_bytes != 16 || (uintptr_t)scratch % 16 || p->n != 1)
        return 1;
    for (i = 0; i < 16; i++) /* nothing but ours */
        scratch[i] = 0xa5;
    for (i = 0; i < p->oh * p->ow; i++)
        for (c = 0; c < p->oc; c++)
            *y++ = window(p, x, c / ocg * icg, icg, w + c * p->kh * p->kw * icg, 1, bias, mul, shift, i, c);
    return 0;
}
int plain_depthwise(const qxc_conv_params *p, const TYPE *x, const int8_t *w, const int32_t *bias, const int32_t *mul,
                    const int32_t *shift, TYPE *y, uint8_t *scratch, int32_t scratch_bytes) {
    int32_t i, c;
    if (scratch || scratch_bytes || p->group != p->ic || p->oc != p->ic)
        return 1;
    for (i = 0; i < p->oh * p->ow; i++)
        for (c = 0; c < p->oc; c++)
            *y++ = window(p, x, c, 1, w + c, p->oc, bias, mul, shift, i, c);
    return 0;
}
int plain_dense(const qxc_dense_params *p, const TYPE *x, const int8_t *w, const int32_t *bias, const int32_t *mul,
                const int32_t *shift, TYPE *y, uint8_t *scratch, int32_t scratch_bytes) {
    int32_t i, j, k;
    (void)scratch;
    for (i = 0; i < p->m; i++)
        for (j = 0; j < p->n; j++) {
            int32_t sum = bias[j];
            for (k = 0; k < p->k; k++)
                sum += (x[i * p->k + k] - p->xz) * w[j * p->k + k];
            *y++ = result(sum, mul[j], shift[j], p->yz, p->lo, p->hi);
        }
    return scratch_bytes;
}
int plain_pool(const qk_maxpool2d_nhwc_params *p, const TYPE *x, TYPE *y, uint8_t *scratch, int32_t scratch_bytes) {
    int32_t i, c, k;
    (void)scratch;
    for (i = 0; i < p->oh * p->ow; i++)
        for (c = 0; c < p->c; c++) {
            TYPE most = x[((i / p->ow * p->sh) * p->iw + i % p->ow * p->sw) * p->c + c];
            for (k = 0; k < 4; k++) {
                TYPE v = x[((i / p->ow * p->sh + k / 2) * p->iw + i % p->ow * p->sw + k % 2) * p->c + c];
                most = v > most ? v : most;
            }
            *y++ = most;
        }
    return scratch_bytes;
}
"""

ROUNDS = {"exact": 0, "single": 1, "double": 2, "shift": 1}
FORMS = {"exact": ("exact",), "single": ("single",), "double": ("double",), "shift": ("shift", "-pow2"),
         "uint8": ("single", "-activations=uint8 asym"), "tensor": ("exact", "-per-tensor"),
         "threads": ("single", "-threads=2"), "inside": ("single", "-io-in-arena"), "file": ("single", "-weights-file"),
         "cxx": ("single",)}


class OwnKernels(OracleCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.scratch / "plain.c").write_text(PLAIN.replace("-128 + 0 * (TYPE)-1 > 0 ? 0 : ", ""))
        (cls.scratch / "own.kernels").write_text(KERNELS)

    def emitted(self, name, rounding, *options, kernels=True, bench=True):
        folder = self.scratch / name
        folder.mkdir(exist_ok=True)
        own = (f"-kernels={self.scratch / 'own.kernels'}",) if kernels else ()
        checks = ("-testbench", f"-input={DIGITS / 'test.npz'}") if bench else ()
        qxc(DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", "-emit=c", "-io=quant", f"-requant={rounding}",
            *options, *own, *checks, "-no-sync", "-quiet", "-force", "-o", folder / "model.c")
        return folder

    def build(self, folder, rounding, *flags, cxx=False, wrong=0, kind="int8_t"):
        language = ("g++", "-std=c++17", "-x", "c++") if cxx else ("gcc", "-std=c99")
        rest = [f for f in WARNINGS if f not in ("-Wconversion", "-Wpedantic")]
        weights = ("-DMODEL_WEIGHTS_FROM=2",) if (folder / "model.weights.bin").exists() else ()
        compile_c(*language, "-O1", *WARNINGS, *weights, "-c", folder / "model.c", "-o", folder / "model.o")
        compile_c("gcc", "-std=c99", "-O1", *rest, f"-DTYPE={kind}", f"-DROUND={ROUNDS[rounding]}", f"-DWRONG={wrong}",
                  f"-I{folder}", "-c", self.scratch / "plain.c", "-o", folder / "plain.o")
        objects = [folder / "model.o", folder / "plain.o", *flags]
        if weights:
            (folder / "w.s").write_text('.globl model_weights\n.section .rodata\n.balign 16\nmodel_weights:\n.incbin "'
                                        f'{folder / "model.weights.bin"}"\n.section .note.GNU-stack,"",%progbits\n')
            objects.append(folder / "w.s")
        compile_c("g++" if cxx else "gcc", "-o", folder / "program", *objects, "-lm")
        return subprocess.run([folder / "program"], capture_output=True, text=True, check=False)

    @for_each(*FORMS)
    def test_bits(self, form):
        rounding, *options = FORMS[form]
        folder = self.emitted(form, rounding, *options)
        done = self.build(folder, rounding, cxx=form == "cxx", kind="uint8_t" if form == "uint8" else "int8_t")
        # 3 Conv, 1 depthwise, 1 Gemm, 1 MaxPool of 16 samples
        self.assertEqual(("16 of 16 samples right\n96 of 96 results of layers as our kernels give them\n", "", 0),
                         (done.stdout, done.stderr, done.returncode))

    def test_wrong(self):
        """One step off: each layer with sums says so, and the bench fails though its results are ours."""
        done = self.build(self.emitted("wrong", "single"), "single", wrong=1)
        self.assertEqual(1, done.returncode)
        first = done.stdout.splitlines()[0]
        self.assertRegex(first, r"^stem\.conv: \d+ of 1024 differ, the first at index \d+: plain_conv gives \S+, not \S+$")
        got, want = map(int, re.search(r"gives (\S+), not (\S+)", first).groups())
        self.assertEqual(want + 1, got)
        self.assertIn("\n16 of 16 samples right\n16 of 96 results of layers as our kernels give them\n", done.stdout)
        self.assertIn("\nhead.linear: ", done.stdout)

    def test_failing(self):
        """A function that returns another number than 0 ends the run."""
        (self.scratch / "own.kernels").write_text(KERNELS.replace("scratch 16", "scratch 8 * kh"))
        try:
            folder = self.emitted("failing", "single")
        finally:
            (self.scratch / "own.kernels").write_text(KERNELS)
        done = self.build(folder, "single")
        self.assertIn("stem.conv: plain_conv failed\nsample 0: wrong\n", done.stdout)
        self.assertEqual(1, done.returncode)

    def test_ours_are_left_out(self):
        own = (self.emitted("plain", "single", bench=False) / "model.c").read_text()
        ours = (self.emitted("ours", "single", bench=False, kernels=False) / "model.c").read_text()
        for kernel in ("qk_conv2d_nhwc_q", "qk_depthwise_nhwc_q", "qk_gemm_tile", "qk_maxpool2d_nhwc_s8"):
            self.assertIn(f"static void {kernel}", ours)
            self.assertNotIn(f"static void {kernel}", own)
        self.assertIn("static void qk_add_q", own)

    def test_example(self):
        done = subprocess.run(["make", "-s", "-C", ROOT / "examples/kernels", "run", f"OUT={self.scratch / 'example'}",
                               f"QXC={ROOT / 'build/qxc'}", "CFLAGS=-O1 -Wall -Wextra -Werror"],
                              capture_output=True, text=True, check=True)
        self.assertEqual("16 of 16 samples right\n64 of 64 results of layers as our kernels give them\n", done.stdout)
