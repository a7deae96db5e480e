/* See exec/lengths.h. */
#include "exec/lengths.h"
#include "ir/bound.h"

int64_t length_fn_at(LengthFn f, const int64_t *lengths, size_t n) {
    int64_t y = f.base;
    for (size_t i = 0; i < n; i++)
        y += f.per[i] * lengths[i];
    return y;
}

static void store(const Patch *p, void *params, int64_t v) {
    char *at = (char *)params + p->field->offset + p->at * (p->field->kind == KF_I64 ? 8 : 4);
    int32_t narrow = (int32_t)v;
    float real = (float)v;
    switch (p->field->kind) {
    case KF_I64: memcpy(at, &v, sizeof v); break;
    case KF_I32: memcpy(at, &narrow, sizeof narrow); break;
    case KF_F32: memcpy(at, &real, sizeof real); break;
    }
}

const void *call_params(const Call *c, void *const *args, void *to) {
    const Patches *p = c->patches;
    int64_t lengths[CALL_MAX_ARGS];
    size_t n = (size_t)p->n_lengths;
    for (size_t i = 0; i < n; i++)
        lengths[i] = *(const int64_t *)args[c->kernel->n_args + i];
    if (p->skips && length_fn_at(p->result, lengths, n) == 0)
        return NULL;
    memcpy(to, c->params, c->kernel->params_size);
    for (size_t i = 0; i < p->n; i++)
        store(&p->items[i], to, length_fn_at(p->items[i].to, lengths, n));
    return to;
}

bool length_bound_of(const Value *v, LengthBound *out, Diags *d) {
    *out = (LengthBound){.node = v->def, .value = v, .axis = type_open_axis(v->type), .most = -1};
    return v->kind != VALUE_NODE || out->axis < 0 || node_bound(v->def, &out->most, d);
}

bool length_check(const LengthBound *b, int64_t length, Diags *d) {
    const char *name = diag_name(d, b->value->name);
    if (length >= b->least && length <= b->most)
        return true;
    if (length < 0)
        return diag_error(d, b->node->loc, "%s: its operands give '%s' no length",
                          node_text(b->node), name);
    if (b->stated)
        return diag_error(d, b->node->loc,
                          "'%s' gets %lld elements along axis %d, where the model states %lld",
                          name, (long long)length, b->axis, (long long)b->most);
    if (length > b->most)
        return diag_error(d, b->node->loc,
                          "'%s' gets more than %lld elements along axis %d, which is all that "
                          "-max-elements allows",
                          name, (long long)b->most, b->axis);
    return diag_error(d, b->node->loc,
                      "'%s' has %lld elements along axis %d; what follows needs %lld", name,
                      (long long)length, b->axis, (long long)b->least);
}
