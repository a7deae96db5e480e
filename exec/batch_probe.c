/* See exec/batch_probe.h. */
#include "exec/batch_probe.h"
#include "exec/batch.h"
#include "exec/fold.h"
#include "exec/specialise.h"
#include "ir/ops/op.h"

enum { MOST_BYTES = 64 << 20, ROOM = MOST_BYTES / 2 }; /* of constants that are folded */

static void take_snapshot(Value *v, void *ctx) {
    Probe *p = ctx;
    if (v->id < p->n)
        p->of[v->id] = (Snapshot){v->type, value_is_const(v) ? v->data : NULL};
}

static int64_t *sizes_at(Module *m, const int64_t *sizes, int64_t size) {
    int64_t *at = NEW_ARRAY(m->arena, int64_t, m->graph->n_in + 1);
    for (size_t i = 0; i < m->graph->n_in; i++)
        at[i] = sizes[i] == BATCH_SIZE ? size : sizes[i];
    return at;
}

Probe batch_probe(Module *m, const int64_t *sizes, int64_t size, Diags *quiet) {
    Probe p = {.of = NEW_ARRAY(m->arena, Snapshot, m->n_values), .n = m->n_values, .size = size};
    p.fits = module_bind_first(m, sizes_at(m, sizes, size), quiet);
    if (!p.fits)
        return p;
    module_fold(m, &(FoldOptions){.max_bytes = MOST_BYTES});
    p.fits = module_check(m, VERIFY_ERRORS, quiet);
    module_each_value(m, take_snapshot, &p);
    return p;
}

int64_t axis_step(Type t, int axis) {
    int64_t n = 1;
    for (int i = axis + 1; i < t.rank; i++)
        n = dim_mul(n, t.dims[i].value);
    return n;
}

int axis_of_samples(Type t, int64_t size, int64_t stride, int64_t *inner) {
    for (int i = t.rank - 1; i >= 0; i--) {
        int64_t step = axis_step(t, i);
        *inner = step > 0 ? stride / step : 0;
        if (step > 0 && stride % step == 0 && t.dims[i].value % (*inner * size) == 0 &&
            t.dims[i].value > 1)
            return i;
    }
    return -1;
}

int growing_axis(Type few, Type many, int64_t size) {
    int axis = NO_AXIS;
    if (few.kind != TYPE_TENSOR || many.kind != TYPE_TENSOR || few.rank != many.rank ||
        few.rank < 0)
        return SEVERAL;
    for (int i = 0; i < few.rank; i++) {
        int64_t x = few.dims[i].value, y = many.dims[i].value;
        if (x < 0 || y < 0)
            return SEVERAL;
        if (x != y && (axis != NO_AXIS || y != x * size))
            return SEVERAL;
        axis = x != y ? i : axis;
    }
    return axis;
}

/* ---- constants ---- */

bool snapshot_same(const Snapshot *few, const Snapshot *many) {
    const Tensor *x = few->data, *y = many->data;
    return x == y || (x && y && x->elem == y->elem && x->bytes == y->bytes &&
                      (!x->bytes || memcmp(x->data, y->data, x->bytes) == 0));
}

bool snapshot_repeats(const Snapshot *few, const Snapshot *many, int axis, int64_t samples) {
    int64_t n = many->type.dims[axis].value / few->type.dims[axis].value;
    const Tensor *x = few->data, *y = many->data;
    if (!x || !y || x->elem != y->elem || elem_bits(y->elem) % 8 ||
        x->count * (size_t)n != y->count)
        return false;
    size_t size = (size_t)elem_bits(y->elem) / 8;
    size_t run = (size_t)(axis_step(few->type, axis) * few->type.dims[axis].value);
    for (size_t i = 0; i < x->count; i += run)
        for (int64_t k = 0; k < samples; k++)
            if (memcmp(y->data + (i * (size_t)n + (size_t)k * run) * size, x->data + i * size,
                       run * size) != 0)
                return false;
    return true;
}

bool snapshot_counts(const Snapshot *few, const Snapshot *many, int axis, int64_t rows) {
    int64_t n = many->type.dims[axis].value / few->type.dims[axis].value;
    const Tensor *x = few->data, *y = many->data;
    if (!x || !y || x->elem != y->elem || x->count * (size_t)n != y->count)
        return false;
    size_t run = (size_t)(axis_step(few->type, axis) * few->type.dims[axis].value);
    for (size_t i = 0; i < x->count; i++) {
        int64_t row = tensor_int(x, i);
        if (row < 0 || row >= rows)
            return false;
        for (int64_t k = 0; k < n; k++)
            if (tensor_int(y, (i / run * (size_t)n + (size_t)k) * run + i % run) != row + k * rows)
                return false;
    }
    return true;
}

int64_t probe_room(const Probe *few, const Probe *many) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < many->n; i++)
        if (many->of[i].data && !snapshot_same(&few->of[i], &many->of[i]))
            bytes += many->of[i].data->bytes;
    return bytes ? (int64_t)(ROOM / bytes) * many->size : 0;
}

int64_t probe_size(int64_t least) {
    int64_t factor = 2;
    while (factor * factor <= least)
        if (least % factor)
            factor++;
        else {
            least++;
            factor = 2;
        }
    return least;
}
