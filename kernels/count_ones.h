//! kernel count_ones
// y[r] = how many of x[r, 0..n) are 1.
typedef struct {
    int32_t rows, n;
} qk_count_ones_params;

static void $NAME(const qk_count_ones_params *p, const int32_t *x, int32_t *y) {
    int32_t r, i;
    for (r = 0; r < p->rows; r++, x += p->n) {
        y[r] = 0;
        for (i = 0; i < p->n; i++)
            y[r] += x[i] == 1;
    }
}
