/* See bind.h. */
#include "ir/ops/overlay.h"
#include "kernels/requant_host.h"

#include <math.h>

ElemType bind_elem(const Value *v) {
    ElemType e = v->type.elem;
    int bits = elem_bits(e);
    if (bits == 0 || bits >= 8 || !elem_is_int(e))
        return e;
    return elem_is_signed(e) ? ELEM_INT8 : ELEM_UINT8;
}

bool bind_is_packed(const Value *v) {
    const Tensor *t = value_data(v);
    return t && t->data && t->count && elem_bits(t->elem) < 8 && t->elem == v->type.elem;
}

int bind_packed(Binder *b, const Value *v) {
    const Tensor *t = value_data(v);
    int buffer = bind_const(b, ELEM_UINT8, t->bytes, t->data, "packed");
    bind_holds(b, buffer, v);
    return buffer;
}

int32_t bind_count(const Value *v) {
    size_t count = 0;
    type_count(v->type, &count);
    return (int32_t)count;
}

int32_t bind_extent(Type t, int from, int to) {
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= t.dims[i].value;
    return (int32_t)n;
}

bool bind_equal_quant(const Value *x, const Value *y) {
    const Quant *p = op_quant(x), *q = op_quant(y);
    return p && q ? quant_equal(p, q) : p == q;
}

bool quant_plain(const Quant *q) {
    return q && q->kind == QUANT_PARAMS && quant_is_per_tensor(q);
}

void quant_range(const Quant *q, int32_t *lo, int32_t *hi) {
    *lo = (int32_t)quant_lo(q);
    *hi = (int32_t)quant_hi(q);
}

bool bind_into_range(Binder *b, const Node *n) {
    Value *y = n->out[0];
    const Quant *q = op_quant(y);
    ElemType e = bind_elem(y);
    if (!q || (quant_lo(q) == elem_min(e) && quant_hi(q) == elem_max(e)))
        return true;
    qk_clamp_params p = {.n = bind_count(y)};
    quant_range(q, &p.lo, &p.hi);
    int at = bind_is_last(b, y) ? bind_last(b, n, y) : bind_value(b, y);
    if (!bind_call(b, n, bind_kernel(b, "clamp", 1, &e), &p, sizeof p, 2, (int[]){at, at}))
        return false;
    bind_in_place(b, 0);
    return true;
}

int32_t quant_zero(const Quant *q) {
    return (int32_t)quant_zp(q, 0);
}

bool bind_one_storage(const Node *n) {
    const Value *y = n->out[0];
    bool one = quant_plain(op_quant(y));
    for (size_t i = 0; one && i < n->n_in; i++)
        one = quant_plain(op_quant(n->in[i])) && bind_elem(n->in[i]) == bind_elem(y);
    return one;
}

bool bind_any_quant(const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (op_quant(n->in[i]))
            return true;
    for (size_t i = 0; i < n->n_out; i++)
        if (op_quant(n->out[i]))
            return true;
    return false;
}

bool bind_floats_only(Binder *b, const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && (n->in[i]->type.elem != bind_real(b) || op_quant(n->in[i])))
            return bind_unsupported(b, n, "operand %zu is %s; only float has a kernel", i,
                                    op_quant(n->in[i]) ? "quantized"
                                                       : elem_name(n->in[i]->type.elem));
    for (size_t i = 0; i < n->n_out; i++)
        if (op_quant(n->out[i]))
            return bind_unsupported(b, n, "its result is quantized; only float has a kernel");
    return true;
}

/* ---- shapes ---- */

void bind_strides(Type t, int rank, int32_t *stride) {
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        int k = i - (rank - t.rank);
        int64_t dim = k < 0 ? 1 : t.dims[k].value;
        stride[i] = dim == 1 ? 0 : (int32_t)step;
        step *= dim;
    }
}

/* Axis 1 after all others. */
static void channels_last(int rank, int32_t *v) {
    int32_t channels = v[1];
    for (int i = 1; i + 1 < rank; i++)
        v[i] = v[i + 1];
    v[rank - 1] = channels;
}

/* Strides of t's elements, which are laid out as those of `y` or as ONNX has them. */
static void strides_last(Type t, Type y, int32_t *stride) {
    int64_t step = 1;
    bind_strides(t, y.rank, stride);
    channels_last(y.rank, stride);
    if (!type_same_shape(t, y))
        return;
    for (int k = y.rank - 1; k >= 0; k--) {
        int64_t dim = y.dims[k == 0 ? 0 : k == y.rank - 1 ? 1 : k + 1].value;
        stride[k] = dim == 1 ? 0 : (int32_t)step;
        step *= dim;
    }
}

static Broadcast merge(int rank, const int32_t *dims, const int32_t *as, const int32_t *bs) {
    Broadcast r = {0};
    for (int i = 0; i < rank; i++) {
        int32_t dim = dims[i], last = r.rank - 1;
        if (dim == 1)
            continue;
        if (r.rank && r.as[last] == as[i] * dim && r.bs[last] == bs[i] * dim) {
            r.dim[last] *= dim;
            r.as[last] = as[i];
            r.bs[last] = bs[i];
            continue;
        }
        r.dim[r.rank] = dim;
        r.as[r.rank] = as[i];
        r.bs[r.rank++] = bs[i];
    }
    return r;
}

Broadcast bind_broadcast(Type a, Type b, Type y) {
    int32_t as[MAX_RANK], bs[MAX_RANK], dims[MAX_RANK];
    bind_strides(a, y.rank, as);
    bind_strides(b, y.rank, bs);
    for (int i = 0; i < y.rank; i++)
        dims[i] = (int32_t)y.dims[i].value;
    return merge(y.rank, dims, as, bs);
}

/* Both operands with channels last where one of the result's shape already is. */
Broadcast bind_pair(Binder *b, const Node *n, int args[3]) {
    const Value *in[] = {n->in[0], n->in[1]}, *y = n->out[0];
    int32_t stride[2][MAX_RANK], dims[MAX_RANK];
    bool last = false;
    for (int i = 0; i < 2; i++)
        last |= bind_is_last(b, in[i]) && type_same_shape(in[i]->type, y->type);
    args[2] = last ? bind_last(b, n, y) : bind_value(b, y);
    for (int i = 0; i < 2; i++)
        args[i] = last && type_same_shape(in[i]->type, y->type) ? bind_last(b, n, in[i])
                                                                : bind_value(b, in[i]);
    if (!last)
        return bind_broadcast(in[0]->type, in[1]->type, y->type);
    for (int i = 0; i < y->type.rank; i++)
        dims[i] = (int32_t)y->type.dims[i].value;
    channels_last(y->type.rank, dims);
    strides_last(in[0]->type, y->type, stride[0]);
    strides_last(in[1]->type, y->type, stride[1]);
    return merge(y->type.rank, dims, stride[0], stride[1]);
}

enum { MAX_REACH = INT32_MAX / 4 }; /* of windows over padded input, so that indices cannot wrap */

WindowAxis window_axis(const Window *w, int i, Type x, Type y) {
    if (i < 0)
        return (WindowAxis){1, 1, 1, 1, 1, 0, 0};
    int32_t out = (int32_t)y.dims[2 + i].value, kernel = (int32_t)w->kernel[i];
    return (WindowAxis){.in = (int32_t)x.dims[2 + i].value,
                        .out = out,
                        .kernel = kernel,
                        .stride = out > 1 ? (int32_t)w->stride[i] : 1,
                        .dilation = kernel > 1 ? (int32_t)w->dilation[i] : 1,
                        .begin = (int32_t)w->pad_begin[i],
                        .end = (int32_t)w->pad_end[i]};
}

bool bind_spatial(Binder *b, const Node *n, const Window *w, Type x, Type y, Spatial *s) {
    if (w->n < 1 || w->n > 3)
        return bind_unsupported(b, n, "%d spatial dimensions; kernels take up to three", w->n);
    for (int i = 0; i < w->n; i++) {
        int64_t span = (w->kernel[i] - 1) * w->dilation[i] + 1, steps = y.dims[2 + i].value;
        int64_t reach = (steps > 0 ? steps - 1 : 0) * w->stride[i] + span;
        if (x.dims[2 + i].value + w->pad_begin[i] + w->pad_end[i] > MAX_REACH || reach > MAX_REACH)
            return bind_unsupported(b, n, "its windows reach too far for 32-bit indices");
    }
    WindowAxis down = window_axis(w, w->n - 2, x, y), across = window_axis(w, w->n - 1, x, y);
    *s = (Spatial){.n = (int32_t)x.dims[0].value,
                   .ic = (int32_t)x.dims[1].value,
                   .ih = down.in,
                   .iw = across.in,
                   .oc = (int32_t)y.dims[1].value,
                   .oh = down.out,
                   .ow = across.out,
                   .kh = down.kernel,
                   .kw = across.kernel,
                   .sh = down.stride,
                   .sw = across.stride,
                   .dh = down.dilation,
                   .dw = across.dilation,
                   .pt = down.begin,
                   .pl = across.begin,
                   .pb = down.end,
                   .pr = across.end};
    return true;
}

bool bind_first(Binder *b, const Node *n, const char *kernel, const void *params, size_t size) {
    return bind_call(b, n, kernel, params, size, 2,
                     (int[]){bind_value(b, n->in[0]), bind_value(b, n->out[0])});
}

bool bind_copy_rows(Binder *b, const Node *n, int x, int y, ElemType e, int32_t rows, int32_t row,
                    int32_t step, int64_t offset) {
    qk_copy_nd_params p = {
        .rank = 2, .dim = {rows, row}, .ss = {row, 1}, .ds = {step, 1}, .dst_offset = offset};
    return bind_call(b, n, bind_kernel(b, "copy_nd", 1, &e), &p, sizeof p, 2, (int[]){x, y});
}

int bind_reals(Binder *b, size_t count, const double *data, const char *comment) {
    if (bind_real(b) == ELEM_DOUBLE)
        return bind_const(b, ELEM_DOUBLE, count, data, comment);
    float *narrow = NEW_ARRAY(binder_arena(b), float, count);
    for (size_t i = 0; i < count; i++)
        narrow[i] = (float)data[i];
    return bind_const(b, ELEM_FLOAT, count, narrow, comment);
}
