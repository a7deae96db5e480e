/* See compiler/columns.h. */
#include "compiler/columns.h"
#include "ir/minifloat.h"
#include "support/buf.h"
#include "support/npy.h"

#include <math.h>

static ElemType reported(ElemType e) {
    if (elem_is_float(e) && e != ELEM_DOUBLE && e != ELEM_FLOAT16)
        return ELEM_FLOAT;
    if (elem_bits(e) >= 8)
        return e;
    return elem_is_signed(e) ? ELEM_INT8 : ELEM_UINT8;
}

bool column_new(Column *c, const Value *v, Str name, bool open) {
    size_t count = 0;
    if (open && v->type.kind == TYPE_NONE) {
        *c = (Column){.v = v, .name = name, .elem = ELEM_UNDEFINED};
        return true;
    }
    if (v->type.kind != TYPE_TENSOR || !npy_dtype(reported(v->type.elem)) ||
        (!open && !type_count(v->type, &count)))
        return false;
    *c = (Column){.v = v, .name = name, .elem = reported(v->type.elem)};
    if (!open)
        c->shape.rank = type_lengths(v->type, c->shape.dims);
    c->bytes = elem_bytes(c->elem, count);
    return true;
}

/* ---- one more sample ---- */

/* A program has floats for float16; the lowest float, which a window of padding has, is beyond it.
 */
static void put_elements(const Column *col, const void *data, char *to) {
    if (col->elem != ELEM_FLOAT16) {
        memcpy(to, data, col->bytes);
        return;
    }
    for (size_t i = 0; i < col->bytes / 2; i++) {
        uint64_t bits;
        double x = (double)((const float *)data)[i];
        if (!float_encode(ELEM_FLOAT16, x, &bits))
            float_encode(ELEM_FLOAT16, copysign((double)INFINITY, x), &bits);
        memcpy(to + 2 * i, &bits, 2);
    }
}

/* Room for one more sample; none of a constant that has one. */
static char *new_sample(Column *col, Arena *a) {
    if (col->n && col->v->kind == VALUE_CONST) {
        col->n++;
        return NULL;
    }
    if (col->n == col->cap) {
        size_t cap = col->cap ? 2 * col->cap : 1;
        char *data = arena_grow(a, col->data, col->n * col->bytes, cap * col->bytes);
        if (col->cap)
            arena_release(a, col->data, col->cap * col->bytes);
        col->data = data;
        col->cap = cap;
    }
    return col->data + col->n++ * col->bytes;
}

void column_add(Column *col, Arena *a, const void *data) {
    char *to = data ? new_sample(col, a) : NULL;
    if (to && col->bytes)
        put_elements(col, data, to);
}

static bool same_shape(const Column *col, const Tensor *t) {
    return col->shape.rank == t->rank &&
           (t->rank == 0 ||
            memcmp(col->shape.dims, t->dims, (size_t)t->rank * sizeof *t->dims) == 0);
}

bool column_add_tensor(Column *c, Arena *a, const Tensor *t, Diags *d) {
    if (c->n && reported(t->elem) != c->elem)
        return diag_error(d, c->v->loc,
                          "'%s' is %s for sample %zu and %s for those before, so that they make no "
                          "array: run them one by one, or without -o",
                          diag_name(d, c->name), elem_name(reported(t->elem)), c->n + 1,
                          elem_name(c->elem));
    if (c->n && !same_shape(c, t))
        return diag_error(d, c->v->loc,
                          "'%s' has another shape for sample %zu than for those before, so that "
                          "they make no array: run them one by one, or without -o",
                          diag_name(d, c->name), c->n + 1);
    c->elem = reported(t->elem);
    c->shape.rank = t->rank;
    if (t->rank)
        memcpy(c->shape.dims, t->dims, (size_t)t->rank * sizeof *t->dims);
    c->bytes = elem_bytes(c->elem, t->count);
    char *to = new_sample(c, a);
    if (to && c->bytes)
        memcpy(to, (t->elem == c->elem ? t : tensor_unpacked(a, t))->data, c->bytes);
    return true;
}

/* ---- all of them ---- */

static void print_element(const Tensor *t, size_t i, Buf *b) {
    if (elem_is_float(t->elem))
        buf_f32(b, (float)tensor_float(t, i));
    else if (t->elem == ELEM_UINT64)
        buf_u64(b, (uint64_t)tensor_int(t, i));
    else
        buf_i64(b, tensor_int(t, i));
}

void column_print(Column *c, Arena *a, Buf *b) {
    const Tensor *t = tensor_of(a, c->elem, c->shape.rank, c->shape.dims, c->data);
    Type type = c->v->type.kind == TYPE_TENSOR ? c->v->type : tensor_type(a, t);
    type.rank = c->shape.rank;
    type.dims = tensor_type(a, t).dims;
    buf_text(b, "%");
    buf_escaped(b, c->name);
    buf_fmt(b, " : %s = [", type_text(a, type));
    for (size_t i = 0; i < t->count; i++) {
        buf_text(b, i ? ", " : "");
        print_element(t, i, b);
    }
    buf_text(b, "]\n");
    arena_release(a, c->data, c->cap * c->bytes);
    c->n = c->cap = 0;
}

Shape column_stack(const Column *c, bool replaces) {
    Shape s = c->shape;
    if (!replaces || s.rank == 0 || s.dims[0] != 1) {
        memmove(s.dims + 1, s.dims, (size_t)s.rank * sizeof *s.dims);
        s.rank++;
    }
    s.dims[0] = (int64_t)c->n;
    return s;
}

Shape column_join(Column *c, Arena *a, size_t stride, int axis) {
    Shape s = c->shape;
    size_t elem = elem_bytes(c->elem, 1), step = stride * elem, at = 0;
    char *all = c->n ? arena_alloc(a, c->n * c->bytes + 1) : NULL;
    for (size_t block = 0; step && block < c->bytes; block += step)
        for (size_t k = 0; k < c->n; k++, at += step)
            memcpy(all + at, c->data + k * c->bytes + block, step);
    c->data = all;
    s.dims[axis] *= (int64_t)c->n;
    return s;
}

Arrangement arrangement_of(const Module *m, const Samples *in, const Batch *batch) {
    Arrangement as = {batch, samples_seen(in), false};
    as.alike = as.seen.files == 1;
    for (size_t i = 0; batch && i < m->graph->n_in; i++)
        as.alike &= batch->stride[m->graph->in[i]->id] > 0 || !samples_several(in, m->graph->in[i]);
    return as;
}

/* What says where the samples of the value are; NULL where they stand one behind the other. */
static const Batch *batch_of(const Column *c, const Arrangement *as) {
    return as->seen.extra || !as->batch || c->v->id >= as->batch->n_values ? NULL : as->batch;
}

/* Whether one sample says it all. */
static bool stands_alone(const Batch *b, const Arrangement *as) {
    bool one = !as->seen.extra && as->seen.n == 1 && as->seen.files <= 1;
    return one || (b && as->alike && as->seen.n);
}

bool column_counts_samples(const Column *c, const Arrangement *as) {
    const Batch *b = batch_of(c, as);
    return b && as->seen.n > 1 && b->stride[c->v->id] < 0 && stands_alone(b, as);
}

/* Each sample has the same. */
static void repeat(Column *c, Arena *a) {
    char *all = arena_alloc(a, c->n * c->bytes + 1);
    for (size_t k = 0; c->bytes && k < c->n; k++)
        memcpy(all + k * c->bytes, c->data, c->bytes);
    c->data = all;
}

Shape column_arrange(Column *c, Arena *a, const Arrangement *as) {
    const Batch *b = batch_of(c, as);
    bool joined = b && b->stride[c->v->id] > 0, alone = !joined && stands_alone(b, as);
    if (!alone && c->v->kind == VALUE_CONST)
        repeat(c, a);
    if (joined)
        return column_join(c, a, (size_t)b->stride[c->v->id], b->axis[c->v->id]);
    return alone ? c->shape : column_stack(c, !as->seen.extra);
}
