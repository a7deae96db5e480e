//! chunk dot
//! template E=s16,s32 W=s8,s16,s32
//! widen A = E
//! skip E=s16 W=s32
/* acc[j * m + i] = sum over k of a[i * len + k] * w[j * len + k], for i < m and j < n <= 4. Four by
 * four sums at a time share their loads; compilers turn the loop over k into multiply-add pairs. */
static void qk_dot_$e_$w(const $E *a, int32_t m, const $W *w, int32_t n, int32_t len, $A *acc) {
    const $W *w0 = w, *w1 = n > 1 ? w + len : w, *w2 = n > 2 ? w + 2 * (ptrdiff_t)len : w;
    const $W *w3 = n > 3 ? w + 3 * (ptrdiff_t)len : w;
    int32_t i = 0, j, k;
    for (; n == 4 && i + 4 <= m; i += 4) {
        const $E *a0 = a + (ptrdiff_t)i * len, *a1 = a0 + len, *a2 = a1 + len, *a3 = a2 + len;
        $A s00 = 0, s01 = 0, s02 = 0, s03 = 0, s10 = 0, s11 = 0, s12 = 0, s13 = 0;
        $A s20 = 0, s21 = 0, s22 = 0, s23 = 0, s30 = 0, s31 = 0, s32 = 0, s33 = 0;
        for (k = 0; k < len; k++) {
            s00 += ($A)a0[k] * w0[k];
            s01 += ($A)a0[k] * w1[k];
            s02 += ($A)a0[k] * w2[k];
            s03 += ($A)a0[k] * w3[k];
            s10 += ($A)a1[k] * w0[k];
            s11 += ($A)a1[k] * w1[k];
            s12 += ($A)a1[k] * w2[k];
            s13 += ($A)a1[k] * w3[k];
            s20 += ($A)a2[k] * w0[k];
            s21 += ($A)a2[k] * w1[k];
            s22 += ($A)a2[k] * w2[k];
            s23 += ($A)a2[k] * w3[k];
            s30 += ($A)a3[k] * w0[k];
            s31 += ($A)a3[k] * w1[k];
            s32 += ($A)a3[k] * w2[k];
            s33 += ($A)a3[k] * w3[k];
        }
        acc[i] = s00, acc[i + 1] = s10, acc[i + 2] = s20, acc[i + 3] = s30;
        acc[m + i] = s01, acc[m + i + 1] = s11, acc[m + i + 2] = s21, acc[m + i + 3] = s31;
        acc[2 * m + i] = s02, acc[2 * m + i + 1] = s12;
        acc[2 * m + i + 2] = s22, acc[2 * m + i + 3] = s32;
        acc[3 * m + i] = s03, acc[3 * m + i + 1] = s13;
        acc[3 * m + i + 2] = s23, acc[3 * m + i + 3] = s33;
    }
    for (; i < m; i++) { /* the rest: four sums at a time, those beyond n are dropped */
        const $E *a0 = a + (ptrdiff_t)i * len;
        $A s[4] = {0, 0, 0, 0};
        for (k = 0; k < len; k++) {
            s[0] += ($A)a0[k] * w0[k];
            s[1] += ($A)a0[k] * w1[k];
            s[2] += ($A)a0[k] * w2[k];
            s[3] += ($A)a0[k] * w3[k];
        }
        for (j = 0; j < n; j++)
            acc[j * m + i] = s[j];
    }
}
