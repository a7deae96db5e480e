/* Where the elements of a value lie: in the order of ONNX, [N, C, ...], with channels last, or
 * both. Nodes ask for the one they compute with, and conversions come in between where needed. See
 * program/program.h. */
#include "program/binder.h"
#include "kernels_gen.h"

void binder_reset_layout(Binder *b) {
    for (size_t i = 0; i < b->n_slots; i++)
        b->last[i] = -1;
    b->n_made = b->n_marks = 0;
}

/* ---- branches ---- */

void binder_enter(Binder *b) {
    ARENA_PUSH(b->arena, b->marks, b->n_marks, b->cap_marks, b->n_made);
}

void binder_leave(Binder *b) {
    size_t mark = b->marks[--b->n_marks];
    while (b->n_made > mark) {
        MadeSlot m = b->made[--b->n_made];
        (m.last ? b->last : b->program->value_buffer)[m.id] = -1;
    }
}

static int fill(Binder *b, const Value *v, bool last, int buffer) {
    MadeSlot m = {v->id, last};
    (last ? b->last : b->program->value_buffer)[v->id] = buffer;
    if (b->n_marks)
        ARENA_PUSH(b->arena, b->made, b->n_made, b->cap_made, m);
    return buffer;
}

uint32_t binder_new_slot(Binder *b) {
    if (b->n_slots == b->cap_slots) {
        size_t cap = 2 * b->cap_slots + 16;
        int *plain = NEW_ARRAY(b->arena, int, cap), *last = NEW_ARRAY(b->arena, int, cap);
        memcpy(plain, b->program->value_buffer, b->n_slots * sizeof *plain);
        memcpy(last, b->last, b->n_slots * sizeof *last);
        b->program->value_buffer = plain;
        b->last = last;
        b->cap_slots = cap;
    }
    b->program->value_buffer[b->n_slots] = b->last[b->n_slots] = -1;
    return (uint32_t)b->n_slots++;
}

/* ---- conversion ---- */

typedef struct Planes {
    int32_t n, channels, plane;
} Planes;

static Planes planes_of(const Value *v) {
    Planes p = {1, 1, 1};
    for (int i = 0; i < v->type.rank; i++)
        *(i == 0 ? &p.n : i == 1 ? &p.channels : &p.plane) *= (int32_t)v->type.dims[i].value;
    return p;
}

/* Whether both orders are the same bytes. */
static bool one_order(const Value *v) {
    Planes p = planes_of(v);
    return v->type.rank < 3 || p.channels <= 1 || p.plane <= 1;
}

/* Transposes [n][rows][columns] of `from` into a new buffer. */
static int transposed(Binder *b, const Node *n, const Value *v, int from, int32_t rows,
                      int32_t columns) {
    Buffer to = b->program->buffers[from];
    to.kind = BUF_ARENA;
    to.alias = to.port = -1;
    to.value = v;
    int buffer = binder_add_buffer(b, to);
    qk_transpose2d_params p = {.n = planes_of(v).n, .rows = rows, .columns = columns};
    bind_call(b, n, bind_kernel(b, "transpose2d", 1, &to.elem), &p, sizeof p, 2,
              (int[]){from, buffer});
    return buffer;
}

bool bind_is_last(const Binder *b, const Value *v) {
    return v && b->last[v->id] >= 0 && b->program->value_buffer[v->id] < 0;
}

int bind_value(Binder *b, const Value *v) {
    if (!v)
        return -1;
    int have = b->program->value_buffer[v->id], last = b->last[v->id];
    if (have >= 0)
        return have;
    if (last < 0)
        return b->program->value_buffer[v->id] = binder_new_value(b, v);
    Planes p = planes_of(v);
    return fill(b, v, false, transposed(b, v->def, v, last, p.plane, p.channels));
}

int bind_last(Binder *b, const Node *n, const Value *v) {
    if (b->last[v->id] >= 0)
        return b->last[v->id];
    if (one_order(v))
        return bind_value(b, v);
    bool makes = n && v->def && (v->def == n || v->def == b->stands_for);
    if (b->program->value_buffer[v->id] < 0 && makes)
        return b->last[v->id] = binder_new_value(b, v);
    Planes p = planes_of(v);
    return fill(b, v, true, transposed(b, n, v, bind_value(b, v), p.channels, p.plane));
}

void bind_each(Binder *b, const Node *n, const Value *x, const Value *y, int *from, int *to) {
    bool last = bind_is_last(b, x) && b->program->value_buffer[y->id] < 0;
    *from = last ? bind_last(b, n, x) : bind_value(b, x);
    *to = last ? bind_last(b, n, y) : bind_value(b, y);
}
