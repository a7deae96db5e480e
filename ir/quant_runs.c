/* Walking over the elements of a quantized tensor, run by run: dozens of millions of them, so that
 * nothing is worked out for each. */
#include "ir/type.h"

QuantRuns quant_runs(const Quant *q, int rank, const int64_t *dims, size_t from, size_t to) {
    QuantRuns r = {
        .at = from, .q = q, .rank = rank, .dims = dims, .end = to, .row = to, .block = to};
    int last = 0;
    for (int i = 1; i < q->n_axes; i++)
        if (q->axis[i] > q->axis[last])
            last = i;
    if (from >= to || q->n_axes == 0)
        return r;
    size_t inner = dims_step(rank, dims, q->axis[last]);
    r.row = inner * (size_t)dims[q->axis[last]];
    r.block = inner * (size_t)q->block[last];
    r.step = 1;
    for (int i = last + 1; i < q->n_axes; i++)
        r.step *= (size_t)((dims[q->axis[i]] + q->block[i] - 1) / q->block[i]);
    r.each = r.block == 1 && r.step == 1;
    return r;
}

bool quant_runs_next(QuantRuns *r) {
    bool starts = r->n == 0;
    r->at += r->n;
    if (r->at >= r->end)
        return false;
    size_t in_row = r->at % r->row, block = in_row / r->block, end = (block + 1) * r->block;
    if (in_row == 0 || starts)
        r->first = quant_index(r->q, r->rank, r->dims, r->at - in_row);
    if (r->each || end > r->row)
        end = r->row;
    r->entry = r->first + block * r->step;
    size_t left = end - in_row < r->end - r->at ? end - in_row : r->end - r->at;
    r->n = left < QUANT_RUN_MAX ? left : QUANT_RUN_MAX;
    return true;
}
