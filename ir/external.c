#include "ir/external.h"

typedef struct External {
    FileMap *map; /* NULL: could not be had, which has been said */
    bool absent;
} External;

static const External *open_file(ExternalFiles *x, Str location, Loc at, Diags *d) {
    Arena *a = x->module->arena;
    x->files = x->files ? x->files : map_new(a);
    External *e = map_get(x->files, location);
    if (!e) {
        e = NEW(a, External);
        e->map = file_map_beside(x->in, location, &e->absent, at, d);
        if (e->map)
            module_keep_map(x->module, e->map);
        map_set(x->files, location, e);
    }
    return e;
}

/* Digits only: no sign, no space, no overflow. */
static bool parse_decimal(Str s, uint64_t *v) {
    *v = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.s[i];
        if (c < '0' || c > '9' || __builtin_mul_overflow(*v, 10, v) ||
            __builtin_add_overflow(*v, (uint64_t)(c - '0'), v))
            return false;
    }
    return s.n > 0;
}

/* The value of a key, which may stand once. NULL data where it is absent. */
static bool entry(const Tensor *t, const char *key, Str *value, Loc at, Diags *d) {
    *value = STR_NONE;
    for (size_t i = 0; i < t->external.n; i++) {
        if (!str_is(t->external.items[i].key, key))
            continue;
        if (value->s)
            return diag_error(d, at, "external data has two entries \"%s\"", key);
        *value = t->external.items[i].value.s ? t->external.items[i].value : STR("");
    }
    return true;
}

static bool number_entry(const Tensor *t, const char *key, uint64_t otherwise, uint64_t *v, Loc at,
                         Diags *d) {
    Str text;
    if (!entry(t, key, &text, at, d))
        return false;
    *v = otherwise;
    return !text.s || parse_decimal(text, v) ||
           diag_error(d, at, "external data: %s \"%s\" is not a decimal number", key,
                      diag_name(d, text));
}

bool external_read(ExternalFiles *x, Tensor *t, Loc at, Diags *d) {
    Str location;
    uint64_t offset, length;
    if (t->elem == ELEM_STRING)
        return diag_error(d, at, "strings cannot be external data");
    if (!x->in.dir)
        return diag_error(d, at, "external data is not supported here");
    if (!entry(t, "location", &location, at, d) || !number_entry(t, "offset", 0, &offset, at, d) ||
        !number_entry(t, "length", t->bytes, &length, at, d))
        return false;
    if (!location.s)
        return diag_error(d, at, "external data has no location");
    if (length != t->bytes)
        return diag_error(d, at, "external data has length %llu; the tensor takes %zu bytes",
                          (unsigned long long)length, t->bytes);
    if (x->references_only)
        return true;
    const External *e = open_file(x, location, at, d);
    if (!e->map)
        return e->absent;
    Str file = file_bytes(e->map);
    if (offset > file.n || length > file.n - offset)
        return diag_error(
            d, at, "external data: %llu bytes from %llu on are not all in \"%s\", which has %zu",
            (unsigned long long)length, (unsigned long long)offset, diag_name(d, location), file.n);
    t->data = (const uint8_t *)file.s + offset;
    return true;
}
