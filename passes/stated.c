/* See passes/stated.h. */
#include "passes/stated.h"

static const char OF_OPERAND[] = META_QUANTIZATION "in.", OF_RESULT[] = META_QUANTIZATION "out.";

bool stated_key(Str key, bool *result, size_t *index) {
    enum { MOST_DIGITS = 9 };
    *result = str_starts(key, OF_RESULT);
    if (!*result && !str_starts(key, OF_OPERAND))
        return false;
    size_t at = *result ? strlen(OF_RESULT) : strlen(OF_OPERAND), digits = key.n - at;
    if (!digits || digits > MOST_DIGITS || (digits > 1 && key.s[at] == '0'))
        return false;
    for (*index = 0; at < key.n; at++) {
        if (key.s[at] < '0' || key.s[at] > '9')
            return false;
        *index = *index * 10 + (size_t)(key.s[at] - '0');
    }
    return true;
}

Str stated_quant(Arena *a, const Quant *q) {
    if (q->kind == QUANT_ACC)
        return STR_NONE;
    Buf b = buf_new(a);
    if (q->alias.n) {
        name_print(&b, '!', q->alias);
        buf_text(&b, " = ");
    }
    quant_print(&b, q);
    return buf_as_str(&b);
}

Str stated_range(Arena *a, const Quant *q) {
    return arena_strf(a, "range=%lld:%lld", (long long)q->lo, (long long)q->hi);
}

static bool put(Node *n, const char *role, size_t index, Str text, Diags *d) {
    Arena *a = n->graph->module->arena;
    Str key = arena_strf(a, "%s%zu", role, index);
    Str old = node_meta(n, key);
    if (old.s)
        return str_eq(old, text) ||
               diag_error(d, n->loc, "%s: %s \"%s\" is to be \"%s\" now: take out the old one",
                          node_text(n), key.s, diag_name(d, old), diag_name(d, text));
    meta_set(a, &n->meta, key, text);
    return true;
}

bool stated_put(const Uses *u, Value *v, Str text, Diags *d, size_t *n_nodes) {
    bool ok = true;
    *n_nodes = 0;
    for (size_t i = 0; v->def && i < v->def->n_out; i++)
        if (v->def->out[i] == v && ++*n_nodes)
            ok = put(v->def, OF_RESULT, i, text, d) && ok;
    const Use *uses;
    size_t n = v->def ? 0 : uses_of(u, v, &uses);
    for (size_t i = 0; i < n; i++)
        if (uses[i].node && ++*n_nodes)
            ok = put(uses[i].node, OF_OPERAND, uses[i].index, text, d) && ok;
    return ok;
}
