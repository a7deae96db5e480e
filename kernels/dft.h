//! kernel dft
//! template T=f32,f64
// Discrete Fourier transforms of length n (ONNX DFT, STFT): y[k] = sum_j x[j] e^(-2 pi i j k / n), computed
// in double. Signals and results lie at strides, in elements of T: `outer` times `inner` of them. Elements
// are real (parts 1) or complex (2); behind the `have` first ones x is 0, or with `half` conj(x[n - j]).
// window (NULL: ones) is multiplied with x. Of the results there are `bins`, real parts alone where
// y_parts is 1. `inverse`: e^(+2 pi i j k / n), divided by n. turn: e^(-2 pi i j / n), n complex numbers;
// radix: factors of n, then 0; work: 4 n numbers. Each pass splits off a factor of what is left, and leaves
// the results in order (Stockham's form of Cooley and Tukey's algorithm, 1965, for any factors).
typedef struct {
    int32_t outer, inner, n, have, parts, half, bins, y_parts, inverse;
    int32_t x_outer, x_inner, x_step, y_outer, y_inner, y_step;
} qk_dft_params;

static void $NAME_load(const qk_dft_params *p, const $T *x, const $T *window, double *to) {
    int32_t j;
    for (j = 0; j < p->n; j++) {
        int32_t back = p->half && j > p->n / 2, from = back ? p->n - j : j;
        const $T *v = x + (ptrdiff_t)from * p->x_step;
        double by = window ? (double)window[j] : 1.0;
        to[2 * j] = to[2 * j + 1] = 0.0;
        if (from >= p->have)
            continue;
        to[2 * j] = (double)v[0] * by;
        if (p->parts == 2)
            to[2 * j + 1] = (back ? -(double)v[1] : (double)v[1]) * by;
    }
}

/* One factor r: s transforms of length r * m become r * s of length m. */
static void $NAME_pass(const qk_dft_params *p, int32_t r, int32_t m, int32_t s, const double *turn,
                       const double *a, double *b) {
    int32_t i, j, k, q;
    for (i = 0; i < m; i++)
        for (k = 0; k < r; k++) {
            double *to = b + 2 * ((ptrdiff_t)i * r + k) * s;
            for (q = 0; q < 2 * s; q++)
                to[q] = 0.0;
            for (j = 0; j < r; j++) {
                const double *from = a + 2 * ((ptrdiff_t)j * m + i) * s;
                const double *w = turn + 2 * ((int64_t)k * s * ((int64_t)j * m + i) % p->n);
                double re = w[0], im = p->inverse ? -w[1] : w[1];
                for (q = 0; q < 2 * s; q += 2) {
                    to[q] += from[q] * re - from[q + 1] * im;
                    to[q + 1] += from[q] * im + from[q + 1] * re;
                }
            }
        }
}

static void $NAME(const qk_dft_params *p, const $T *x, const $T *window, const double *turn,
                  const int32_t *radix, double *work, $T *y) {
    int32_t o, i, k;
    for (o = 0; o < p->outer; o++)
        for (i = 0; i < p->inner; i++) {
            double *a = work, *b = work + 2 * (ptrdiff_t)p->n, *t;
            int32_t m = p->n, s = 1, f;
            $T *to = y + (ptrdiff_t)o * p->y_outer + (ptrdiff_t)i * p->y_inner;
            $NAME_load(p, x + (ptrdiff_t)o * p->x_outer + (ptrdiff_t)i * p->x_inner, window, a);
            for (f = 0; radix[f]; f++) {
                m /= radix[f];
                $NAME_pass(p, radix[f], m, s, turn, a, b);
                s *= radix[f];
                t = a;
                a = b;
                b = t;
            }
            for (k = 0; k < p->bins; k++, to += p->y_step) {
                to[0] = ($T)(p->inverse ? a[2 * k] / p->n : a[2 * k]);
                if (p->y_parts == 2)
                    to[1] = ($T)(p->inverse ? a[2 * k + 1] / p->n : a[2 * k + 1]);
            }
        }
}
