/* See ir/bound.h. */
#include "ir/bound.h"

static const StrPair *entry(const Node *n) {
    for (size_t i = 0; i < n->meta.n; i++)
        if (str_is(n->meta.items[i].key, META_BOUND))
            return &n->meta.items[i];
    return NULL;
}

bool node_bound(const Node *n, int64_t *most, Diags *d) {
    const StrPair *p = entry(n);
    int64_t x = 0;
    *most = -1;
    if (!p)
        return true;
    for (size_t i = 0; i < p->value.n && x <= INT32_MAX; i++) {
        char c = p->value.s[i];
        x = c < '0' || c > '9' ? INT64_MAX : 10 * x + (c - '0');
    }
    if (x < 1 || x > INT32_MAX)
        return diag_error(d, n->loc, "%s: " META_BOUND " is a number from 1 to 2^31-1, not '%s'",
                          node_text(n), diag_name(d, p->value));
    *most = x;
    return true;
}

void node_set_bound(Node *n, int64_t most) {
    Arena *a = n->graph->module->arena;
    meta_set(a, &n->meta, STR(META_BOUND), arena_strf(a, "%lld", (long long)most));
}

int type_open_axis(Type t) {
    int axis = -1;
    for (int i = 0; t.kind == TYPE_TENSOR && i < t.rank; i++) {
        if (t.dims[i].value >= 0)
            continue;
        if (axis >= 0)
            return -1;
        axis = i;
    }
    return axis;
}
