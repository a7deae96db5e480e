/* See ir/later.h. */
#include "ir/later.h"
#include "support/store.h"

void later_make(Module *m, Tensor *t) {
    if (!t->later)
        return;
    uint8_t *bytes = store_begin(m->arena, t->bytes);
    t->later->make(m, t->later->ctx, bytes);
    t->data = store_end(m->arena, bytes, t->bytes);
    t->later = NULL;
}

Tensor *later_tensor(Module *m, ElemType elem, int rank, const int64_t *dims, Later how,
                     bool may_wait) {
    Tensor *t = tensor_of(m->arena, elem, rank, dims, NULL);
    t->later = arena_copy(m->arena, &how, sizeof how);
    if (may_wait && store_is_out(m->arena, t->bytes))
        m->has_later = true;
    else
        later_make(m, t);
    return t;
}

static void make_one(Tensor *t, Str name, void *m) {
    (void)name;
    later_make(m, t);
}

void later_make_all(Module *m) {
    if (m->has_later)
        module_each_tensor(m, make_one, m);
    m->has_later = false;
}

static const uint8_t *make_at(const Module *m, const Tensor *t, uint8_t *room) {
    t->later->make(m, t->later->ctx, room);
    return room;
}

const uint8_t *later_made(const Module *m, const Tensor *t) {
    return t->later ? make_at(m, t, store_room(m->arena, t->bytes)) : t->data;
}

const uint8_t *later_made_in(Arena *a, const Module *m, const Tensor *t) {
    return t->later ? make_at(m, t, arena_alloc(a, t->bytes)) : t->data;
}
