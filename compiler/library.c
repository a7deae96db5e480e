#include "compiler/library.h"

#include "frontend/qir/qir_read.h"
#include "support/embedded.h"

#include <assert.h>

typedef struct Texts {
    Library library; /* first: what passes have of it */
    Diags *d;
} Texts;

static const QirReadOptions functions_alone = {.functions_alone = true};

static Module *read_embedded(Library *l, size_t i) {
    Diags *d = ((Texts *)l)->d;
    if (i >= lib_texts_n)
        return NULL;
    const Embedded *e = &lib_texts[i];
    Module *m = qir_read_text(l->arena, d, e->name, (Str){e->text, e->size}, &functions_alone);
    assert(m); /* a test reads each of them with -define */
    module_resolve(m, d);
    return m;
}

Library *library_open(Arena *a, const char *const *defines, size_t n, Diags *d) {
    Texts *t = NEW(a, Texts);
    *t = (Texts){{.arena = a, .read = read_embedded, .by_name = map_new(a)}, d};
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        Module *m = qir_read(a, d, defines[i], &functions_alone);
        ok = m && module_check(m, VERIFY_WARN, d) && library_add(&t->library, m, true, d) && ok;
    }
    ok = library_check_calls(&t->library, d) && ok;
    return ok ? &t->library : NULL;
}

bool library_knows(Library *l, const char *op) {
    const Map *all = library_all(l);
    const char **names = NEW_ARRAY(l->arena, const char *, map_size(all) + 1);
    size_t n = 0;
    for (size_t i = 0; i < map_size(all); i++) {
        const Overloads *of = map_value(all, i);
        for (size_t k = 0; k < of->n; k++)
            if (function_is_recognised(of->items[k]) &&
                (!n || !str_is(of->items[k]->name, names[n - 1])))
                names[n++] = arena_str(l->arena, of->items[k]->name).s;
    }
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], op) == 0)
            return true;
    Diags *d = ((Texts *)l)->d;
    diag_error(d, LOC_NONE, "-explain-match: no chain is recognised as '%s'",
               diag_name(d, str_from(op)));
    diag_did_you_mean(d, LOC_NONE, str_from(op), names, n);
    return false;
}
