/* Spatial windows of Conv and the pools: kernel, strides, dilations, padding, output size. */
#include "ir/ops/op.h"

bool op_list_fits(const OpCtx *c, const char *name, Ints list, size_t n, int64_t least) {
    if (list.v && list.n != n)
        return op_error_attr(c, name, "%s has %zu numbers, the input's spatial dimensions take %zu",
                             name, list.n, n);
    for (size_t i = 0; list.v && i < n; i++)
        if (list.v[i] < least || list.v[i] > INT32_MAX)
            return op_error_attr(c, name, "%s must be from %lld to 2147483647, not %lld", name,
                                 (long long)least, (long long)list.v[i]);
    return true;
}

/* SAME_UPPER and SAME_LOWER: as many outputs as ceil(in / stride), the odd pad after or before. */
static void pad_same(Window *w, int i, int64_t in, int64_t span, bool lower) {
    int64_t out = dim_parts(in, w->stride[i]);
    int64_t total = (out - 1) * w->stride[i] + span - in;
    if (total < 0)
        total = 0;
    w->pad_begin[i] = lower ? total - total / 2 : total / 2;
    w->pad_end[i] = total - w->pad_begin[i];
    w->out[i] = dim_of(out);
}

static bool explicit_size(const OpCtx *c, Window *w, int i, int64_t in, int64_t span, bool ceil) {
    int64_t room = in + w->pad_begin[i] + w->pad_end[i] - span;
    /* ceil_mode counts the first window, too, where it overhangs by less than a step. */
    if (ceil && in > 0 && room < 0 && room > -w->stride[i]) {
        w->out[i] = dim_of(1);
        return true;
    }
    if (room < 0)
        return op_error(c,
                        "the window covers %lld elements of spatial dimension %d, which has %lld"
                        " with padding",
                        (long long)span, i, (long long)(room + span));
    int64_t steps = room / w->stride[i];
    /* ceil_mode counts a last window that overhangs, but not one that starts in the end padding. */
    if (ceil && room % w->stride[i] && (steps + 1) * w->stride[i] < in + w->pad_begin[i])
        steps++;
    w->out[i] = dim_of(steps + 1);
    return true;
}

/* 0 explicit, 1 SAME_UPPER, 2 SAME_LOWER, 3 VALID. */
static int pad_mode(Str s) {
    static const char *const names[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    for (int i = 1; i < 4; i++)
        if (str_is(s, names[i]))
            return i;
    return 0;
}

static bool kernel_size(const OpCtx *c, const WindowAttrs *a, const int64_t *kernel, Window *w) {
    for (int i = 0; i < w->n; i++) {
        int64_t k = kernel ? kernel[i] : -1, stated = a->kernel_shape.v ? a->kernel_shape.v[i] : -1;
        if (k == 0 || stated == 0)
            return op_error(c, "the kernel has no elements");
        if (k > 0 && stated > 0 && k != stated)
            return op_error_attr(
                c, "kernel_shape",
                "kernel_shape says %lld for spatial dimension %d, the weights %lld",
                (long long)stated, i, (long long)k);
        w->kernel[i] = k > 0 ? k : stated;
        if (w->kernel[i] > INT32_MAX)
            return op_error(c, "the kernel is too large");
    }
    return true;
}

static bool size_of_dim(const OpCtx *c, Window *w, int i, int64_t in, int mode, bool ceil) {
    w->out[i] = dim_unknown();
    if (in < 0 || w->kernel[i] < 0)
        return true;
    if (in > INT32_MAX)
        return op_error(c, "spatial dimension %d is too large", i);
    int64_t span = (w->kernel[i] - 1) * w->dilation[i] + 1;
    if (mode == 1 || mode == 2) {
        pad_same(w, i, in, span, mode == 2);
        return true;
    }
    return explicit_size(c, w, i, in, span, ceil);
}

bool op_window(const OpCtx *c, const WindowAttrs *a, Type x, const int64_t *kernel, Window *w) {
    *w = (Window){.n = x.rank - 2};
    size_t n = (size_t)w->n;
    int mode = pad_mode(a->auto_pad);
    if (!op_list_fits(c, "kernel_shape", a->kernel_shape, n, 1) ||
        !op_list_fits(c, "strides", a->strides, n, 1) ||
        !op_list_fits(c, "dilations", a->dilations, n, 1) ||
        !op_list_fits(c, "pads", a->pads, 2 * n, 0))
        return false;
    if (!kernel_size(c, a, kernel, w))
        return false;
    bool ok = true;
    for (int i = 0; i < w->n; i++) {
        w->stride[i] = a->strides.v ? a->strides.v[i] : 1;
        w->dilation[i] = a->dilations.v ? a->dilations.v[i] : 1;
        if (mode == 0 && a->pads.v) {
            w->pad_begin[i] = a->pads.v[i];
            w->pad_end[i] = a->pads.v[i + w->n];
        }
        ok = ok && size_of_dim(c, w, i, x.dims[2 + i].value, mode, a->ceil_mode != 0);
    }
    return ok;
}

bool op_window_grow(Node *n, const WindowAttrs *a, const int64_t *before, const int64_t *after,
                    const int64_t *limit) {
    int rank = n->in[0]->type.rank, spatial = rank - 2;
    bool own = str_is(a->auto_pad, "NOTSET") && a->pads.v;
    int64_t pads[2 * MAX_RANK];
    if (rank < 3 || (!str_is(a->auto_pad, "NOTSET") && !str_is(a->auto_pad, "VALID")))
        return false;
    for (int i = 0; i < 2; i++)
        if (before[i] || after[i])
            return false;
    for (int i = 0; i < spatial; i++) {
        pads[i] = before[2 + i] + (own ? a->pads.v[i] : 0);
        pads[spatial + i] = after[2 + i] + (own ? a->pads.v[spatial + i] : 0);
        int64_t most = limit ? limit[i] - 1 : INT32_MAX;
        if (pads[i] > most || pads[spatial + i] > most)
            return false;
    }
    node_drop_attr(n, "auto_pad");
    node_set_ints(n, "pads", pads, 2 * (size_t)spatial);
    return true;
}
