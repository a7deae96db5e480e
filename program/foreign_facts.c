/* What conditions of kernels of others can be about. See foreign.h. */
#include "program/foreign.h"

/* ---- one kernel ---- */

Str foreign_name(const KernelDef *k) {
    size_t before = strlen("qk_"), behind = strlen("_params");
    return (Str){k->params_type + before, strlen(k->params_type) - before - behind};
}

bool foreign_is_named(const KernelDef *k, const char *kernel) {
    return str_is(foreign_name(k), kernel);
}

static const char *const roundings[] = {"exact", "single", "double", "shift"};
static const char *const suffixes[] = {"", "_single", "_double", "_shift"};
enum { N_ROUNDINGS = sizeof roundings / sizeof *roundings };

static SumRounding rounding_of(const KernelDef *k) {
    Str name = str_from(k->name);
    for (int i = ROUND_EXACT + 1; i < N_ROUNDINGS; i++)
        if (str_ends(name, suffixes[i]))
            return (SumRounding)i;
    return ROUND_EXACT;
}

const char *foreign_type(const char *ctype) {
    static const char *const words[][2] = {
        {"int8_t", "int8"},   {"uint8_t", "uint8"},   {"int16_t", "int16"}, {"uint16_t", "uint16"},
        {"int32_t", "int32"}, {"uint32_t", "uint32"}, {"int64_t", "int64"}, {"uint64_t", "uint64"},
        {"float", "float"},   {"double", "double"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], ctype) == 0)
            return words[i][1];
    return ctype;
}

const char *foreign_rounding(const KernelDef *k) {
    return roundings[rounding_of(k)];
}

/* ---- facts ---- */

typedef struct Facts {
    Arena *a;
    Map *kinds; /* by name: its kind, plus 1 */
    const char **names;
    size_t n, cap;
} Facts;

static void add_fact(Facts *f, const char *name, FactKind kind) {
    Str key = str_from(name);
    if (map_get(f->kinds, key))
        return;
    map_set(f->kinds, key, arena_copy(f->a, &kind, sizeof kind));
    ARENA_PUSH(f->a, f->names, f->n, f->cap, name);
}

/* One number; of lists and of floats there are no conditions. */
static void add_fields(Facts *f, const KernelField *fields, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!fields[i].count && fields[i].kind != KF_F32)
            add_fact(f, fields[i].name, FACT_NUMBER);
}

static Facts facts_of(Arena *a, const char *kernel) {
    Facts f = {.a = a, .kinds = map_new(a)};
    const ForeignView *v = foreign_view(kernel);
    bool rounds = false;
    if (v)
        add_fields(&f, v->fields, v->n_fields);
    for (size_t i = 0; i < kernel_count(); i++) {
        const KernelDef *k = kernel_at(i);
        if (!foreign_is_named(k, kernel))
            continue;
        if (!v)
            add_fields(&f, k->fields, k->n_fields);
        for (size_t j = 0; j < k->n_args && !v; j++)
            add_fact(&f, k->args[j].name, FACT_TYPE);
        rounds = rounds || rounding_of(k) != ROUND_EXACT;
    }
    if (v) { /* weights are int8, and tables int32 */
        add_fact(&f, "x", FACT_TYPE);
        add_fact(&f, "y", FACT_TYPE);
    }
    if (rounds)
        add_fact(&f, "rounding", FACT_ROUNDING);
    add_fact(&f, "op", FACT_OP);
    add_fact(&f, "layer", FACT_LAYER);
    return f;
}

FactKind foreign_fact(Arena *a, const char *kernel, Str fact) {
    const FactKind *kind = map_get(facts_of(a, kernel).kinds, fact);
    return kind ? *kind : FACT_NONE;
}

const char **foreign_facts(Arena *a, const char *kernel, size_t *n) {
    Facts f = facts_of(a, kernel);
    *n = f.n;
    return f.names;
}

const char **foreign_kernels(Arena *a, size_t *n) {
    Facts f = {.a = a, .kinds = map_new(a)};
    for (size_t i = 0; i < kernel_count(); i++)
        add_fact(&f, arena_str(a, foreign_name(kernel_at(i))).s, FACT_NONE);
    *n = f.n;
    return f.names;
}

const char *const *foreign_words(FactKind kind, size_t *n) {
    static const char *const types[] = {"int8",   "uint8", "int16",  "uint16", "int32",
                                        "uint32", "int64", "uint64", "float",  "double"};
    *n = kind == FACT_TYPE ? sizeof types / sizeof *types : kind == FACT_ROUNDING ? N_ROUNDINGS : 0;
    return kind == FACT_TYPE ? types : roundings;
}
