//! kernel transpose2d
//! template T=x8,x16,x32,x64
// y[n][j][i] = x[n][i][j] for i < rows, j < columns: between channels first and channels last.
// Sixteen rows at a time, so that what is read stays in the cache until all of it is used.
typedef struct {
    int32_t n, rows, columns;
} qk_transpose2d_params;

static void $NAME(const qk_transpose2d_params *p, const $T *x, $T *y) {
    int32_t b, top, i, j, rows = p->rows, columns = p->columns;
    ptrdiff_t all = (ptrdiff_t)rows * columns;
    for (b = 0; b < p->n; b++, x += all, y += all)
        for (top = 0; top < rows; top += 16) {
            int32_t end = rows - top < 16 ? rows : top + 16;
            for (j = 0; j < columns; j++)
                for (i = top; i < end; i++)
                    y[(ptrdiff_t)j * rows + i] = x[(ptrdiff_t)i * columns + j];
        }
}
