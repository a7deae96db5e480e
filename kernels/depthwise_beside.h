//! chunk depthwise_beside
//! uses simd
/* Windows that lie side by side in a row, one column apart, are as good as channels: where 32 is a
 * multiple of the channels, 32 results come from so many windows at once. Weights and tables are
 * repeated for that. */
#if defined(__AVX2__)
#define QK_BESIDE
typedef struct {
    int32_t bias[32], mul[32], shift[32];
    int8_t w[2048]; /* pairs of at most 64 taps */
} qk_beside;

static void qk_beside_repeat(void *to, const void *from, size_t all, size_t bytes) {
    size_t at;
    for (at = 0; at < all; at += bytes)
        memcpy((uint8_t *)to + at, from, bytes);
}

/* How many windows are taken together, 0 if not several. */
static int32_t qk_beside_each(qk_beside *to, int32_t c, int32_t taps, const int8_t *w,
                              const int32_t *bias, const int32_t *mul, const int32_t *shift) {
    size_t one = (size_t)c;
    int32_t t;
    if (c < 1 || c > 16 || 32 % c)
        return 0;
    for (t = 0; t < (taps + 1) / 2; t++, w += 2 * one)
        qk_beside_repeat(to->w + (ptrdiff_t)64 * t, w, 64, 2 * one);
    qk_beside_repeat(to->bias, bias, sizeof to->bias, sizeof *bias * one);
    qk_beside_repeat(to->mul, mul, sizeof to->mul, sizeof *mul * one);
    qk_beside_repeat(to->shift, shift, sizeof to->shift, sizeof *shift * one);
    return 32 / c;
}
#endif
