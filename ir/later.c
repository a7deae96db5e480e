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

const uint8_t *later_made(const Module *m, const Tensor *t) {
    if (!t->later)
        return t->data;
    uint8_t *room = store_room(m->arena, t->bytes);
    t->later->make(m, t->later->ctx, room);
    return room;
}
