/* See exec/within.h. */
#include "exec/within.h"

static bool in_range(int64_t at, int64_t length, bool from_end) {
    return at < length && at >= (from_end ? -length : 0);
}

bool call_within(const Program *p, const Call *c, void *const *args, Outside *out) {
    for (const Within *w = c->within; w; w = w->next) {
        const Buffer *b = &p->buffers[c->args[w->arg]];
        for (size_t i = 0; i < b->count; i++) {
            int64_t at = elem_load_int(b->elem, args[w->arg], i);
            int32_t length = w->lengths[i % (size_t)w->n];
            if (in_range(at, length, w->from_end))
                continue;
            *out = (Outside){w, at, length};
            return false;
        }
    }
    return true;
}

bool outside_error(const Call *c, const Outside *o, Diags *d) {
    const char *name = diag_name(d, o->of->of->name);
    if (o->of->from_end)
        return diag_error(d, c->node->loc,
                          STR_FMT ": index %lld of '%s' is out of range for an axis of length %ld",
                          STR_ARG(c->node->op), (long long)o->number, name, (long)o->length);
    return diag_error(d, c->node->loc, STR_FMT ": %lld of '%s' is out of range: 0 to %ld",
                      STR_ARG(c->node->op), (long long)o->number, name, (long)o->length - 1);
}
