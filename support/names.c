#include "support/names.h"

#include "support/buf.h"
#include "support/map.h"

struct Names {
    Arena *arena, *scratch;
    Map *used; /* name -> the number last tried after it as a base */
};

Names *names_new(Arena *a, Arena *scratch) {
    Names *n = NEW(scratch, Names);
    n->arena = a;
    n->scratch = scratch;
    n->used = map_new(scratch);
    return n;
}

void names_use(Names *n, Str name) {
    if (!map_get(n->used, name))
        map_set(n->used, name, NEW(n->scratch, size_t));
}

Str names_make(Names *n, Str base) {
    Str name = base;
    size_t *last = map_get(n->used, base);
    Buf b = buf_new(n->scratch);
    while (map_get(n->used, name)) {
        b.n = 0;
        buf_str(&b, base);
        buf_byte(&b, '_');
        buf_u64(&b, ++*last);
        name = buf_as_str(&b);
    }
    name = arena_str(n->arena, name);
    names_use(n, name);
    return name;
}
