/* How the calls of a program change with its lengths. See exec/bounded.h. */
#include "exec/bounded_parts.h"

/* ---- numbers ---- */

size_t params_count(const KernelDef *k) {
    size_t n = 0;
    for (size_t i = 0; i < k->n_fields; i++)
        n += kernel_field_count(&k->fields[i]);
    return n;
}

const KernelField *params_field(const KernelDef *k, size_t at, size_t *index) {
    const KernelField *f = k->fields;
    for (; at >= kernel_field_count(f); f++)
        at -= kernel_field_count(f);
    *index = at;
    return f;
}

/* A number that floats hold exactly, with all whole numbers below it. */
static bool whole(double x, int64_t *out) {
    if (!(x >= -0x1p24 && x <= 0x1p24))
        return false;
    *out = (int64_t)x;
    return (double)*out == x;
}

bool params_number(const KernelField *f, const void *params, size_t i, int64_t *out) {
    const char *at = (const char *)params + f->offset + i * (f->kind == KF_I64 ? 8 : 4);
    int32_t narrow;
    float real;
    if (f->kind == KF_I64)
        return memcpy(out, at, sizeof *out), true;
    if (f->kind == KF_F32)
        return memcpy(&real, at, sizeof real), whole((double)real, out);
    memcpy(&narrow, at, sizeof narrow);
    *out = narrow;
    return true;
}

bool table_number(const Buffer *b, size_t i, int64_t *out) {
    if (b->elem == ELEM_INT32 || b->elem == ELEM_INT64)
        return *out = elem_load_int(b->elem, b->data, i), true;
    return (b->elem == ELEM_FLOAT || b->elem == ELEM_DOUBLE) &&
           whole(elem_load_real(b->elem, b->data, i), out);
}

/* ---- slopes ---- */

static void keep_type(Value *v, void *ctx) {
    Fit *f = ctx;
    if (type_is_static(v->type))
        f->types[v->id] = v->type;
}

Fit *fit_new(Arena *a, Program *p) {
    Fit *f = NEW(a, Fit);
    *f = (Fit){.arena = a,
               .program = p,
               .bounds = p->bounds,
               .n = p->n_bounds,
               .n_buffers = p->n_buffers,
               .params = NEW_ARRAY(a, int64_t *, p->n_calls),
               .tables = NEW_ARRAY(a, int64_t *, p->n_buffers),
               .counts = NEW_ARRAY(a, int64_t, p->n_buffers * p->n_bounds),
               .dims = NEW_ARRAY(a, int64_t *, p->module->n_values),
               .types = NEW_ARRAY(a, Type, p->module->n_values),
               .n_values = p->module->n_values};
    module_each_value(p->module, keep_type, f);
    return f;
}

LengthFn fit_affine(const Fit *f, int64_t largest, const int64_t *slopes) {
    for (size_t i = 0; i < f->n; i++)
        largest -= slopes[i] * f->bounds[i].length;
    return (LengthFn){largest, slopes};
}

/* What is looked at: the program of a length less by 1, of which something is learnt; or one of
 * `lengths`, which is held against that. */
typedef struct Look {
    Fit *f;
    const Program *p;
    size_t learn; /* the length; n: nothing is learnt */
    size_t few;   /* the length that is 1 or 0; n: none */
    const LengthBound *lengths;
} Look;

static bool odd(const Look *l, const Node *n, const char *why) {
    l->f->odd = n;
    l->f->why = why;
    return false;
}

/* `slopes` may be NULL while nothing changed; `list` is where new ones go, for `n` numbers. */
static bool fits(const Look *l, int64_t largest, int64_t now, int64_t **list, size_t n, size_t k) {
    Fit *f = l->f;
    if (l->learn < f->n) {
        if (!*list && largest != now)
            *list = NEW_ARRAY(f->arena, int64_t, n * f->n);
        if (*list)
            (*list)[k * f->n + l->learn] = largest - now;
        return true;
    }
    int64_t want = largest;
    for (size_t i = 0; *list && i < f->n; i++)
        want += (*list)[k * f->n + i] * (l->lengths[i].length - f->bounds[i].length);
    return want == now;
}

/* ---- calls ---- */

/* How much scratch there is does not follow from lengths. */
static bool is_growth(const Call *c, const KernelField *f) {
    return c->growth.bytes && (const char *)c->growth.bytes == (const char *)c->params + f->offset;
}

static bool params_fit(const Look *l, size_t c) {
    const Call *x = &l->f->program->calls[c], *y = &l->p->calls[c];
    size_t n = params_count(x->kernel), i;
    if (memcmp(x->params, y->params, x->kernel->params_size) == 0 && !l->f->params[c])
        return true;
    for (size_t k = 0; k < n; k++) {
        const KernelField *f = params_field(x->kernel, k, &i);
        const char *at = (const char *)x->params + f->offset, *other = y->params;
        size_t size = f->kind == KF_I64 ? 8 : 4;
        int64_t largest, now;
        bool same = memcmp(at + i * size, other + f->offset + i * size, size) == 0;
        if (is_growth(x, f))
            continue;
        if (!params_number(f, x->params, i, &largest) || !params_number(f, y->params, i, &now)
                ? !same
                : !fits(l, largest, now, &l->f->params[c], n, k))
            return odd(l, x->node, node_strf(x->node, "'%s' of %s", f->name, x->kernel->name));
    }
    return true;
}

/* What results may lie over is what may for all lengths. */
static void meet_overlays(Call *x, const Call *y) {
    int n = 0;
    for (int i = 0; i < x->n_overlays; i++)
        for (int k = 0; k < y->n_overlays; k++) {
            Overlay a = x->overlays[i], b = y->overlays[k];
            if (a.arg != b.arg || a.exact != b.exact)
                continue;
            a.lead = a.lead > b.lead ? a.lead : b.lead;
            x->overlays[n++] = a;
            break;
        }
    x->n_overlays = n;
}

static bool call_fits(const Look *l, size_t c) {
    Call *x = &l->f->program->calls[c];
    const Call *y = &l->p->calls[c];
    if (x->kind != y->kind || x->node != y->node || x->kernel != y->kernel ||
        x->n_args != y->n_args || memcmp(x->args, y->args, (size_t)x->n_args * sizeof *x->args))
        return odd(l, x->node, "the kernels that it calls");
    if (x->kind != CALL_KERNEL)
        return true;
    meet_overlays(x, y);
    return params_fit(l, c);
}

/* ---- buffers ---- */

static const Node *reader_of(const Program *p, size_t buffer) {
    for (size_t c = 0; c < p->n_calls; c++)
        for (int i = 0; i < p->calls[c].n_args; i++)
            if (p->calls[c].args[i] >= 0 && program_root(p, p->calls[c].args[i]) == (int)buffer)
                return p->calls[c].node;
    return NULL;
}

/* A table of another length is that much of the longest. */
static bool const_fits(const Look *l, size_t i) {
    const Buffer *x = &l->f->program->buffers[i], *y = &l->p->buffers[i];
    int64_t largest, now;
    if (y->bytes > x->bytes)
        return false;
    if (!l->f->tables[i] && (x->data == y->data || memcmp(x->data, y->data, y->bytes) == 0))
        return true;
    if (x->count != y->count || x->count > 8)
        return false;
    for (size_t k = 0; k < x->count; k++)
        if (!table_number(x, k, &largest) || !table_number(y, k, &now) ||
            !fits(l, largest, now, &l->f->tables[i], x->count, k))
            return false;
    return true;
}

static bool buffer_fits(const Look *l, size_t i) {
    const Buffer *x = &l->f->program->buffers[i], *y = &l->p->buffers[i];
    int64_t *counts = &l->f->counts[i * l->f->n];
    if (x->kind != y->kind || x->elem != y->elem || x->alias != y->alias || x->port != y->port ||
        x->scratch != y->scratch)
        return odd(l, reader_of(l->f->program, i), "where its operands lie");
    if (x->kind == BUF_CONST && x->alias < 0 && !const_fits(l, i))
        return odd(l, reader_of(l->f->program, i), "a table that it reads");
    if (y->bytes > x->bytes)
        return odd(l, reader_of(l->f->program, i), "memory that a shorter length has more of");
    if (x->scratch || x->kind == BUF_CONST)
        return true;
    return fits(l, (int64_t)x->count, (int64_t)y->count, &counts, 1, 0) ||
           odd(l, reader_of(l->f->program, i),
               "how many elements there are does not grow in proportion");
}

/* A value and its shape in the program that is looked at. */
typedef struct Shapes {
    const Look *look;
    bool ok;
} Shapes;

static void shape_fits(Value *v, void *ctx) {
    Shapes *s = ctx;
    const Look *l = s->look;
    if (!s->ok || v->id >= l->f->n_values || l->f->types[v->id].kind != TYPE_TENSOR)
        return;
    Type now = v->type, largest = l->f->types[v->id];
    for (int k = 0; s->ok && k < largest.rank; k++)
        s->ok =
            now.rank == largest.rank && fits(l, largest.dims[k].value, now.dims[k].value,
                                             &l->f->dims[v->id], (size_t)largest.rank, (size_t)k);
    if (!s->ok)
        odd(l, v->def, "its shape is cut, or grows by steps");
}

/* Of all values: where results are cut at an end, kernels of lengths beyond would go astray. */
static bool dims_fit(const Look *l) {
    Shapes s = {l, true};
    module_each_value(l->f->program->module, shape_fits, &s);
    return s.ok;
}

/* A shape with two dimensions that follow from lengths has as many elements as their product. */
static bool is_product(const Fit *f, const Value *v) {
    const int64_t *slopes = v && v->id < f->n_values ? f->dims[v->id] : NULL;
    int open = 0;
    for (int k = 0; slopes && k < f->types[v->id].rank; k++) {
        bool any = false;
        for (size_t i = 0; i < f->n; i++)
            any = any || slopes[(size_t)k * f->n + i];
        open += any;
    }
    return open > 1;
}

void fit_blame_product(Fit *f) {
    FOR_NODES(n, f->program->module->graph) {
        for (size_t i = 0; i < n->n_out; i++)
            if (is_product(f, n->out[i])) {
                f->odd = n;
                f->why = "two dimensions of its result follow from lengths";
                return;
            }
        if (n == f->odd)
            return;
    }
}

static bool same_zeros(const Fit *f, int x, int y) {
    const int64_t *a = &f->counts[(size_t)x * f->n], *b = &f->counts[(size_t)y * f->n];
    for (size_t i = 0; i < f->n; i++)
        if (!a[i] != !b[i])
            return false;
    return true;
}

int fit_filled(const Fit *f, const Call *c) {
    const Program *p = f->program;
    int found = -1;
    for (int i = 0; c->kind == CALL_KERNEL && i < c->n_args; i++) {
        int to = call_writes(c, i) ? c->args[i] : -1;
        if (to < 0 || p->buffers[to].scratch)
            continue;
        if ((size_t)to >= f->n_buffers) /* made since: nothing was learnt of it */
            return -1;
        LengthFn n = fit_affine(f, (int64_t)p->buffers[to].count, &f->counts[(size_t)to * f->n]);
        if (n.base || (found >= 0 && !same_zeros(f, found, to)))
            return -1;
        found = to;
    }
    return found;
}

/* Whether it is not called where that length is 0. */
static bool is_skipped(const Look *l, size_t c) {
    const Fit *f = l->f;
    int to = fit_filled(f, &f->program->calls[c]);
    for (size_t i = 0; to >= 0 && i < f->n; i++)
        if (!f->counts[(size_t)to * f->n + i] != (i != l->few))
            return false;
    return to >= 0;
}

static bool calls_fit(const Look *l) {
    const Program *x = l->f->program, *y = l->p;
    bool same = x->n_calls == y->n_calls;
    for (size_t c = 0; c < x->n_calls; c++) {
        bool counts = same || l->f->params[c]; /* of other calls some are not there */
        if (counts && !(same && call_fits(l, c)) && !(l->few < l->f->n && is_skipped(l, c)))
            return !same && odd(l, x->calls[c].node, "the kernels that it calls");
    }
    return same || l->few < l->f->n;
}

static bool looks_right(const Look *l) {
    const Program *x = l->f->program, *y = l->p;
    if (l->few < l->f->n)
        return dims_fit(l) && (l->lengths[l->few].length || calls_fit(l));
    if (!dims_fit(l) || !calls_fit(l))
        return false;
    if (x->n_buffers != y->n_buffers)
        return odd(l, NULL, "the memory that it needs");
    for (size_t i = 0; i < x->n_buffers; i++)
        if (!buffer_fits(l, i))
            return false;
    return true;
}

bool fit_learn(Fit *f, const Program *p, const LengthBound *lengths, size_t i) {
    (void)lengths;
    return looks_right(&(Look){.f = f, .p = p, .learn = i, .few = f->n});
}

bool fit_holds(Fit *f, const Program *p, const LengthBound *lengths, size_t i) {
    (void)i;
    return looks_right(&(Look){.f = f, .p = p, .learn = f->n, .lengths = lengths, .few = f->n});
}

bool fit_takes_few(Fit *f, const Program *p, const LengthBound *lengths, size_t i) {
    return looks_right(&(Look){.f = f, .p = p, .learn = f->n, .lengths = lengths, .few = i});
}
