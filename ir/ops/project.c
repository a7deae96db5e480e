/* Products with a dynamically quantized operand that com.microsoft's LSTM and Attention share. */
#include "ir/ops/bind.h"

enum { MOST_TERMS = INT32_MAX / (255 * 255) };

/* Of W and R [directions, rows, length]: for each direction, or each row of each. */
static bool is_by_row(const Quant *q, int64_t directions) {
    int last = q->n_axes - 1;
    if (q->block[0] > 1 || q->block[last] > 1)
        return false;
    return last == 0 ? q->axis[0] == 0 || (q->axis[0] == 1 && directions == 1)
                     : last == 1 && q->axis[0] == 0 && q->axis[1] == 1;
}

/* Scales for all, or along the last axis of matrices, the first or the first two of others. */
bool bind_projects(const Value *w, int64_t len) {
    const Quant *q = op_quant(w);
    return q && q->kind == QUANT_PARAMS && elem_bits(w->type.elem) == 8 && len <= MOST_TERMS &&
           value_data(w) && value_data(w)->data &&
           (q->n_axes == 0 ||
            (w->type.rank == 2 ? q->n_axes == 1 && q->block[0] <= 1 && q->axis[0] == 1
                               : is_by_row(q, w->type.dims[0].value)));
}

void bind_row_params(Binder *b, const Value *w, size_t n, int *scale, int *zp) {
    const Quant *q = op_quant(w);
    float *scales = NEW_ARRAY(binder_arena(b), float, n);
    int32_t *zps = NEW_ARRAY(binder_arena(b), int32_t, n);
    for (size_t i = 0; i < n; i++) {
        size_t k = q->n_scale > 1 ? i * q->n_scale / n : 0; /* a row's, or a part's */
        scales[i] = quant_scale(q, k);
        zps[i] = (int32_t)quant_zp(q, k);
    }
    *scale = bind_const(b, ELEM_FLOAT, n, scales, "scales of the weights");
    *zp = bind_const(b, ELEM_INT32, n, zps, "zero points of the weights");
}

bool bind_projection(Binder *b, const Node *n, const Projection *p, const Value *x, const Value *w,
                     int bias, int y) {
    int params = bind_dynamic(b, x), scale, zp;
    ElemType e = bind_elem(w);
    if (params < 0)
        return bind_unsupported(b, n, "its input is no result of QuantizeLinear");
    bind_row_params(b, w, (size_t)p->parts * (size_t)p->columns, &scale, &zp);
    qk_project_params q = {p->rows, p->columns, p->len, p->part};
    int args[] = {bind_value(b, x),
                  params,
                  p->weights,
                  scale,
                  zp,
                  bias,
                  y,
                  bind_scratch(b, ELEM_INT16, (size_t)p->len)};
    return bind_call(b, n, bind_kernel(b, "project", 1, &e), &q, sizeof q, 8, args);
}
