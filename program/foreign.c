/* Which calls become those of others. See foreign.h. */
#include "program/foreign.h"

#include <math.h>

/* ---- what a function gets ---- */

typedef struct Site {
    Arena *a;
    Program *p;
    const Call *call;
    const ForeignView *view; /* NULL: what the kernel gets */
    const KernelField *fields;
    size_t n_fields;
    const void *params;
} Site;

static Site site_of(Arena *a, Program *p, const Call *c) {
    Str kernel = arena_str(a, foreign_name(c->kernel));
    Site s = {a, p, c, foreign_view(kernel.s), c->kernel->fields, c->kernel->n_fields, c->params};
    if (s.view && c->plain) {
        s.fields = s.view->fields;
        s.n_fields = s.view->n_fields;
        s.params = foreign_view_params(a, s.view, c);
    }
    return s;
}

static int64_t number_of(const Site *s, const char *fact) {
    const char *at = s->params;
    int32_t narrow;
    int64_t wide = 0;
    for (size_t i = 0; i < s->n_fields; i++) {
        const KernelField *f = &s->fields[i];
        if (strcmp(f->name, fact) != 0)
            continue;
        if (f->kind == KF_I64)
            memcpy(&wide, at + f->offset, sizeof wide);
        else
            memcpy(&narrow, at + f->offset, sizeof narrow);
        return f->kind == KF_I64 ? wide : narrow;
    }
    return 0;
}

static bool in_ranges(const ForeignTest *t, int64_t v) {
    for (size_t i = 0; i < t->n; i++)
        if (v >= t->ranges[i].low && v <= t->ranges[i].high && v % t->ranges[i].step == 0)
            return true;
    return false;
}

/* The word that a fact is, other than a number. */
static Str word_of(const Site *s, const ForeignTest *t) {
    const Call *c = s->call;
    int arg = kernel_arg(c->kernel, t->fact);
    switch (t->kind) {
    case FACT_TYPE: return arg < 0 ? STR("") : str_from(foreign_type(c->kernel->args[arg].ctype));
    case FACT_ROUNDING: return str_from(foreign_rounding(c->kernel));
    case FACT_OP: return c->node ? c->node->op : STR("");
    default: return c->node ? c->node->name : STR("");
    }
}

static bool test_holds(const Site *s, const ForeignTest *t) {
    if (t->kind == FACT_NUMBER)
        return in_ranges(t, number_of(s, t->fact)) != t->negated;
    Str word = word_of(s, t);
    bool found = false;
    for (size_t i = 0; i < t->n && !found; i++)
        found = t->kind == FACT_LAYER ? str_glob(t->words[i], word) : str_is(word, t->words[i]);
    return found != t->negated;
}

/* A kernel with a view that packed nothing which others could read stays. */
static bool entry_holds(const Site *s, const ForeignEntry *e) {
    if (!foreign_is_named(s->call->kernel, e->kernel) || (s->view && !s->call->plain))
        return false;
    for (size_t i = 0; i < e->n_tests; i++)
        if (!test_holds(s, &e->tests[i]))
            return false;
    return true;
}

/* ---- the call ---- */

/* A sum beyond what scratch can have is held there. */
static int64_t scratch_bytes(const Site *s, const ForeignEntry *e) {
    double sum = 0, most = 0x1p62;
    for (size_t i = 0; i < e->n_scratch; i++) {
        double product = (double)e->scratch[i].factor;
        for (size_t j = 0; j < e->scratch[i].n; j++)
            product *= (double)number_of(s, e->scratch[i].facts[j]);
        sum += product;
    }
    return (int64_t)fmax(-most, fmin(most, sum));
}

static int scratch_of(const Site *s, int64_t bytes) {
    Program *p = s->p;
    Buffer b = {.kind = BUF_ARENA,
                .elem = ELEM_UINT8,
                .count = (size_t)bytes,
                .bytes = (size_t)bytes,
                .alias = -1,
                .port = -1,
                .first = -1,
                .last = -1,
                .scratch = true};
    if (bytes <= 0 || bytes > INT32_MAX)
        return -1;
    ARENA_PUSH(s->a, p->buffers, p->n_buffers, p->cap_buffers, b);
    return (int)p->n_buffers - 1;
}

typedef struct Pointers {
    KernelArg *args;
    int *buffers;
    int n;
} Pointers;

static void add_pointer(Pointers *q, KernelArg arg, int buffer) {
    q->args[q->n] = arg;
    q->buffers[q->n++] = buffer;
}

/* The pointers of ours, with the constants of the view in place of what is packed. */
static Pointers pointers_of(const Site *s, int64_t bytes) {
    static const KernelArg scratch = {"own_scratch", "uint8_t", 1, false};
    const Call *c = s->call;
    Pointers q = {NEW_ARRAY(s->a, KernelArg, CALL_MAX_ARGS + 1),
                  NEW_ARRAY(s->a, int, CALL_MAX_ARGS + 1), 0};
    int consts[VIEW_CONSTS];
    if (!s->view) {
        for (size_t i = 0; i < c->kernel->n_args; i++)
            add_pointer(&q, c->kernel->args[i], c->args[i]);
    } else {
        int x = kernel_arg(c->kernel, "x"), y = kernel_arg(c->kernel, "y");
        foreign_view_consts(s->a, s->p, s->view, c->plain, consts);
        add_pointer(&q, c->kernel->args[x], c->args[x]);
        for (int i = 0; i < VIEW_CONSTS; i++)
            add_pointer(&q, foreign_view_args[i], consts[i]);
        add_pointer(&q, c->kernel->args[y], c->args[y]);
    }
    add_pointer(&q, scratch, scratch_of(s, bytes));
    return q;
}

static const KernelDef *def_of(const Site *s, const ForeignEntry *e, const Pointers *q) {
    const KernelDef *ours = s->call->kernel;
    KernelDef k = {.name = e->function,
                   .params_type = s->view ? s->view->params_type : ours->params_type,
                   .params_size = s->view ? s->view->params_size : ours->params_size,
                   .fields = s->fields,
                   .n_fields = s->n_fields,
                   .args = q->args,
                   .n_args = (size_t)q->n,
                   .params_source = s->view ? s->view->params_source : ours->params_source,
                   .source = NULL,
                   .is_float = ours->is_float};
    return arena_copy(s->a, &k, sizeof k);
}

static void replace(const Site *s, Call *c, const ForeignEntry *e, const char *library) {
    Foreign f = {e, library, s->view, scratch_bytes(s, e), arena_copy(s->a, c, sizeof *c)};
    Pointers q = pointers_of(s, f.scratch_bytes);
    *c = (Call){.kind = CALL_KERNEL,
                .kernel = def_of(s, e, &q),
                .params = s->params,
                .n_args = q.n,
                .args = q.buffers,
                .foreign = arena_copy(s->a, &f, sizeof f),
                .node = c->node};
}

/* There is room for scratch behind the arguments that a call can have. */
static bool can_be_foreign(const Program *p, const Call *c) {
    return c->kind == CALL_KERNEL && !p->n_bounds && c->n_args < CALL_MAX_ARGS;
}

void program_call_foreign(Arena *a, Program *p, const ForeignKernels *k) {
    for (size_t i = 0; i < p->n_calls; i++) {
        Call *c = &p->calls[i];
        if (!can_be_foreign(p, c))
            continue;
        Site s = site_of(a, p, c);
        for (size_t e = 0; e < k->n; e++)
            if (entry_holds(&s, &k->entries[e])) {
                replace(&s, c, &k->entries[e], k->library);
                break;
            }
    }
}

size_t foreign_calls(const Program *p, const ForeignEntry *e) {
    size_t n = 0;
    for (size_t i = 0; i < p->n_calls; i++)
        n += p->calls[i].foreign && p->calls[i].foreign->entry == e;
    return n;
}
