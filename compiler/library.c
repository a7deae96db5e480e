#include "compiler/library.h"

#include "frontend/qir/qir_read.h"
#include "support/embedded.h"

#include <assert.h>

/* Texts of lib/ as bits, lowest first. */
typedef uint64_t TextSet;

typedef struct Texts {
    Library library; /* first: what passes have of it */
    Diags *d;
    Map *defining; /* function_key without an overload -> TextSet */
    TextSet chains, read;
} Texts;

static const QirReadOptions functions_alone = {.functions_alone = true};

/* ---- which text defines what ---- */

/* The key of a function that a line defines, `func DOMAIN::NAME::OVERLOAD`, `func NAME`; its text
 * is `b`'s. */
static Str defined_by(Buf *b, const char *line) {
    const char *domain = line + strlen("func ");
    size_t n = strcspn(domain, ": ");
    bool has_domain = domain[n] == ':';
    const char *name = has_domain ? domain + n + 2 : domain;
    return function_key(b, (Str){domain, has_domain ? n : 0}, (Str){name, strcspn(name, ": ")},
                        STR_NONE);
}

static void add_defining(Texts *t, Str key, TextSet text) {
    TextSet *of = map_get(t->defining, key);
    if (!of) {
        of = NEW(t->library.arena, TextSet);
        map_set(t->defining, arena_str(t->library.arena, key), of);
    }
    *of |= text;
}

static void index_texts(Texts *t) {
    Buf key = buf_new(t->library.arena);
    assert(lib_texts_n <= 64);
    for (size_t i = 0; i < lib_texts_n; i++) {
        const char *text = lib_texts[i].text;
        t->chains |= (TextSet)(strstr(text, "\"recognise\"") != NULL) << i;
        for (const char *line = text; (line = strstr(line, "\nfunc ")); line++)
            add_defining(t, defined_by(&key, line + 1), (TextSet)1 << i);
    }
}

/* ---- reading ---- */

static void read_text(Texts *t, const Embedded *e) {
    Module *m =
        qir_read_text(t->library.arena, t->d, e->name, (Str){e->text, e->size}, &functions_alone);
    assert(m); /* a test reads each of them with -define */
    module_resolve(m, t->d);
    library_add(&t->library, m, false, t->d);
}

/* Chains come first, whoever asks: what they are tried in the order of depends on nothing else. */
static void read_texts(Texts *t, TextSet wanted) {
    TextSet chains = t->chains & ~t->read, others = wanted & ~t->chains & ~t->read;
    t->read |= chains | others;
    for (size_t i = 0; chains >> i && i < lib_texts_n; i++)
        if (chains >> i & 1)
            read_text(t, &lib_texts[i]);
    for (size_t i = 0; others >> i && i < lib_texts_n; i++)
        if (others >> i & 1)
            read_text(t, &lib_texts[i]);
}

static void read_part(Library *l, LibraryPart part) {
    read_texts((Texts *)l, part == LIBRARY_ALL ? ~(TextSet)0 : 0);
}

static void read_function(Library *l, Str key) {
    Texts *t = (Texts *)l;
    const TextSet *of = map_get(t->defining, key);
    if (of && *of & ~t->read)
        read_texts(t, *of);
}

Library *library_open(Arena *a, const char *const *defines, size_t n, Diags *d) {
    Texts *t = NEW(a, Texts);
    Library l = {.arena = a, .read_part = read_part, .read_function = read_function};
    l.by_name = map_new(a);
    *t = (Texts){.library = l, .d = d, .defining = map_new(a)};
    index_texts(t);
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        Module *m = qir_read(a, d, defines[i], &functions_alone);
        ok = m && module_check(m, VERIFY_WARN, d) && library_add(&t->library, m, true, d) && ok;
    }
    ok = library_check_calls(&t->library, d) && ok;
    return ok ? &t->library : NULL;
}

bool library_knows(Library *l, const char *op) {
    const Map *all = library_functions(l, LIBRARY_CHAINS);
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
