/* What calls in bands are, for who tells of them or writes them. See program/bands.h. */
#include "program/bands.h"

#include <string.h>

#include "kernels_gen.h"

BandsTotal program_bands(const Program *p) {
    BandsTotal t = {0};
    const KernelDef *slide = kernel_find("qk_slide");
    for (size_t c = 0; c < p->n_calls; c++) {
        const Bands *b = p->calls[c].bands;
        t.calls += b && p->calls[c].kernel != slide;
        if (!b || b->first != c)
            continue;
        t.between += b->between;
        t.whole += b->whole;
        t.moved += b->moved;
    }
    return t;
}

/* ---- params that bands share ---- */

bool bands_same_params(const Call *c, size_t x, size_t y) {
    const void *a = c->parts[x].params, *b = c->parts[y].params;
    return a && b ? memcmp(a, b, c->kernel->params_size) == 0 : a == b;
}

/* The first part with the params of this one. */
static size_t first_like(const Call *c, size_t part) {
    size_t first = 0;
    while (first < part && !bands_same_params(c, first, part))
        first++;
    return first;
}

static size_t different(const Call *c, size_t parts) {
    size_t n = 0;
    for (size_t i = 0; i < parts; i++)
        n += c->parts[i].params && first_like(c, i) == i;
    return n;
}

size_t bands_params_of(const Call *c, size_t part) {
    return different(c, first_like(c, part));
}

size_t bands_params(const Call *c) {
    return different(c, c->n_parts);
}

size_t call_params_held(const Call *c) {
    return c->bands ? bands_params(c) : c->n_parts ? c->n_parts : 1;
}
