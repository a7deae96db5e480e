#include "compiler/grown.h"

/* Constants of one kind, and the first of them. */
typedef struct Found {
    size_t n;
    unsigned long long bytes;
    const Value *first;
} Found;

typedef struct Causes {
    Map *integers; /* name of a constant as it was read -> the integers made from it */
    Map *first;    /* the same -> the first constant made from it */
    Found beside, further, ahead, widened;
} Causes;

/* The name under which a constant was read; STR_NONE where it was made from a node. */
static Str name_as_read(const Value *v) {
    if (!v->from.n)
        return v->name;
    return v->from.from[0].op.n ? STR_NONE : v->from.from[0].name;
}

static bool is_large(const Value *v) {
    return v->kind == VALUE_CONST && v->data && v->data->count > 1;
}

static void note_integers(Value *v, void *ctx) {
    Causes *g = ctx;
    if (is_large(v) && !elem_is_float(v->data->elem) && v->from.n && name_as_read(v).n)
        map_set(g->integers, name_as_read(v), v);
}

static void count_one(Found *f, const Value *v) {
    if (f->n++ == 0)
        f->first = v;
    f->bytes += v->data->bytes;
}

/* Whether another was made from the same constant: readers that can share one do. */
static bool is_further(Causes *g, Value *v) {
    Str name = name_as_read(v);
    if (!v->from.n || !name.n)
        return false;
    bool known = map_get(g->first, name);
    if (!known)
        map_set(g->first, name, v);
    return known;
}

static void count_cause(Value *v, void *ctx) {
    Causes *g = ctx;
    if (!is_large(v))
        return;
    if (elem_is_float(v->data->elem) && map_get(g->integers, name_as_read(v)))
        count_one(&g->beside, v);
    else if (is_further(g, v))
        count_one(&g->further, v);
    else if (pass_made(&v->from, PASS_fold_const))
        count_one(&g->ahead, v);
    else if (pass_made(&v->from, PASS_float32))
        count_one(&g->widened, v);
}

static const char *reader_of(Module *m, const Value *v) {
    const Use *use;
    if (uses_of(uses_new(m), v, &use) && use->node)
        return node_strf(use->node, "%s reads the floats", node_text(use->node));
    return "the graph yields the floats";
}

/* A cause that is worth naming: a quarter of it, or more. */
static bool matters(const Found *f, long long more) {
    return f->n && f->bytes >= (unsigned long long)more / 4;
}

static void tell(const Job *j, const Found *f, const char *what, const char *why) {
    fprintf(stderr, "larger: %zu constant%s %s, %llu bytes (first: %s)%s%s\n", f->n,
            f->n > 1 ? "s are" : " is", what, f->bytes, diag_name(j->d, f->first->name),
            why ? ": " : "", why ? why : "");
}

void explain_growth(const Job *j, Module *m, long long more) {
    Causes g = {.integers = map_new(m->arena), .first = map_new(m->arena)};
    module_each_value(m, note_integers, &g);
    module_each_value(m, count_cause, &g);
    bool beside = matters(&g.beside, more), ahead = matters(&g.ahead, more);
    bool widened = matters(&g.widened, more), further = matters(&g.further, more);
    if (beside)
        tell(j, &g.beside, "kept as floats beside their integers", reader_of(m, g.beside.first));
    if (further)
        tell(j, &g.further, "stored in a further form",
             "readers of one constant take other numbers, scales or layouts of it");
    if (ahead)
        tell(j, &g.ahead, "computed ahead from others", NULL);
    if (widened)
        tell(j, &g.widened, "float32 where 16 bits were", NULL);
    if (!beside && !further && !ahead && !widened && !j->decided_before && !j->nothing)
        fputs(
            "larger: the operators and parameters that quantization adds outweigh what it saves\n",
            stderr);
}
