/* Data of tensors in files beside the model. They are mapped, never copied, and only read from the
 * model's folder, or the one given in its place. */
#include "frontend/onnx/read.h"

/* A file of external data, mapped when first named. */
typedef struct External {
    FileMap *map; /* NULL: could not be had, which has been said */
    bool absent;
} External;

static const External *open_external(Reader *r, Loc at, Str location) {
    if (!r->externals)
        r->externals = map_new(r->arena);
    External *e = map_get(r->externals, location);
    if (!e) {
        e = NEW(r->arena, External);
        e->map = file_map_beside(r->dir, location, &e->absent, at, r->diags);
        if (e->map)
            module_keep_map(r->module, e->map);
        map_set(r->externals, location, e);
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
static bool entry(Reader *r, Loc at, const Tensor *t, const char *key, Str *value) {
    *value = STR_NONE;
    for (size_t i = 0; i < t->external.n; i++) {
        if (!str_is(t->external.items[i].key, key))
            continue;
        if (value->s)
            return diag_error(r->diags, at, "external data has two entries \"%s\"", key);
        *value = t->external.items[i].value.s ? t->external.items[i].value : STR("");
    }
    return true;
}

static bool number_entry(Reader *r, Loc at, const Tensor *t, const char *key, uint64_t otherwise,
                         uint64_t *v) {
    Str text;
    if (!entry(r, at, t, key, &text))
        return false;
    *v = otherwise;
    return !text.s || parse_decimal(text, v) ||
           diag_error(r->diags, at, "external data: %s \"%s\" is not a decimal number", key,
                      diag_name(r->diags, text));
}

bool read_external(Reader *r, Loc at, Tensor *t) {
    Str location;
    uint64_t offset, length;
    if (t->elem == ELEM_STRING)
        return diag_error(r->diags, at, "strings cannot be external data");
    if (!r->dir || !entry(r, at, t, "location", &location) ||
        !number_entry(r, at, t, "offset", 0, &offset) ||
        !number_entry(r, at, t, "length", t->bytes, &length))
        return r->dir ? false : diag_error(r->diags, at, "external data is not supported here");
    if (!location.s)
        return diag_error(r->diags, at, "external data has no location");
    if (length != t->bytes)
        return diag_error(r->diags, at,
                          "external data has length %llu; its type and dimensions need %zu",
                          (unsigned long long)length, t->bytes);
    const External *e = open_external(r, at, location);
    if (!e->map)
        return e->absent; /* the reference is kept */
    Str file = file_bytes(e->map);
    if (offset > file.n || length > file.n - offset)
        return diag_error(
            r->diags, at,
            "external data: %llu bytes from %llu on are not all in \"%s\", which has %zu",
            (unsigned long long)length, (unsigned long long)offset, diag_name(r->diags, location),
            file.n);
    t->data = (const uint8_t *)file.s + offset;
    return true;
}
