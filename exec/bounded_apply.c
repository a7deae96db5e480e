/* What was learnt of lengths becomes part of the program. See exec/bounded.h. */
#include "exec/bounded_parts.h"
#include "ir/ops/op.h"
#include "kernels_gen.h"

/* ---- patches ---- */

static bool any_slope(const Fit *f, const int64_t *slopes, size_t bound, size_t n) {
    for (size_t k = 0; slopes && k < n; k++)
        if (slopes[k * f->n + bound])
            return true;
    return false;
}

/* The slopes of those bounds alone that a call reads. */
static LengthFn affine_of(const Fit *f, int64_t largest, const int64_t *slopes, const size_t *read,
                          size_t n) {
    LengthFn all = fit_affine(f, largest, slopes);
    int64_t *per = NEW_ARRAY(f->arena, int64_t, n + 1);
    for (size_t i = 0; i < n; i++)
        per[i] = slopes[read[i]];
    return (LengthFn){all.base, per};
}

/* Whether the number follows from some of those lengths, and from no others. */
static bool follows(const Fit *f, const int64_t *slopes, const size_t *read, size_t n) {
    size_t of = 0, all = 0;
    for (size_t i = 0; i < n; i++)
        of += slopes[read[i]] != 0;
    for (size_t i = 0; i < f->n; i++)
        all += slopes[i] != 0;
    return of && of == all;
}

/* The lengths go behind the kernel's own arguments. */
static bool add_lengths(const Fit *f, Call *c, const size_t *read, size_t n) {
    int *args = NEW_ARRAY(f->arena, int, CALL_MAX_ARGS);
    if ((size_t)c->n_args + n > CALL_MAX_ARGS)
        return false;
    if (c->n_args)
        memcpy(args, c->args, (size_t)c->n_args * sizeof *args);
    for (size_t i = 0; i < n; i++)
        args[c->n_args++] = f->program->lengths[read[i]];
    c->args = args;
    return true;
}

/* False: it has more arguments than a call may. */
static bool patch(const Fit *f, Call *c, const int64_t *slopes) {
    size_t numbers = params_count(c->kernel), n = 0, at;
    size_t *read = NEW_ARRAY(f->arena, size_t, f->n);
    Patch *items = NEW_ARRAY(f->arena, Patch, numbers);
    Patches *p = NEW(f->arena, Patches);
    for (size_t j = 0; j < f->n; j++)
        if (any_slope(f, slopes, j, numbers))
            read[n++] = j;
    *p = (Patches){.items = items, .n_lengths = (int)n};
    for (size_t k = 0; k < numbers; k++) {
        const KernelField *field = params_field(c->kernel, k, &at);
        int64_t largest = 0;
        bool whole = params_number(field, c->params, at, &largest);
        for (size_t i = 0; whole && i < n; i++)
            if (slopes[k * f->n + read[i]]) {
                items[p->n++] =
                    (Patch){field, at, affine_of(f, largest, &slopes[k * f->n], read, n)};
                break;
            }
    }
    int result = fit_filled(f, c);
    const int64_t *counts = &f->counts[(size_t)(result < 0 ? 0 : result) * f->n];
    if (result >= 0 && follows(f, counts, read, n)) {
        p->result = affine_of(f, (int64_t)f->program->buffers[result].count, counts, read, n);
        p->skips = true;
    }
    c->patches = p;
    c->within = NULL; /* behind those there are, indices are no one's */
    c->growth = (Growth){0};
    return add_lengths(f, c, read, n);
}

static bool patch_all(Fit *f, Diags *d) {
    Program *p = f->program;
    for (size_t c = 0; c < p->n_calls; c++)
        if (f->params[c] && !patch(f, &p->calls[c], f->params[c]))
            return diag_error(d, p->calls[c].node->loc, "%s has more operands than C takes here",
                              node_text(p->calls[c].node));
    return true;
}

/* ---- calls of our own ---- */

/* Patched where slopes, by number of the params and then by bound, are given. */
static Call own_call(const Fit *f, const Node *n, const char *kernel, const void *params, int to,
                     const int64_t *slopes) {
    Call c = {.kind = CALL_KERNEL, .kernel = kernel_find(kernel), .node = n, .n_args = 1};
    c.params = arena_copy(f->arena, params, c.kernel->params_size);
    c.args = arena_copy(f->arena, &to, sizeof to);
    if (slopes)
        patch(f, &c, slopes);
    return c;
}

static void insert(Fit *f, size_t at, Call c) {
    Program *p = f->program;
    size_t n = p->n_calls;
    ARENA_PUSH(f->arena, p->calls, p->n_calls, p->cap_calls, c);
    memmove(p->calls + at + 1, p->calls + at, (n - at) * sizeof *p->calls);
    p->calls[at] = c;
}

/* ---- constants that follow from lengths ---- */

static size_t first_reader(const Program *p, int buffer) {
    for (size_t c = 0; c < p->n_calls; c++)
        for (int i = 0; i < p->calls[c].n_args; i++)
            if (p->calls[c].args[i] >= 0 && program_root(p, p->calls[c].args[i]) == buffer)
                return c;
    return p->n_calls;
}

static const char *length_kernel(ElemType e) {
    return e == ELEM_INT32   ? "qk_length_s32"
           : e == ELEM_INT64 ? "qk_length_s64"
           : e == ELEM_FLOAT ? "qk_length_f32"
                             : "qk_length_f64";
}

static void make_table(Fit *f, size_t i) {
    Buffer *b = &f->program->buffers[i];
    size_t at = first_reader(f->program, (int)i);
    if (at == f->program->n_calls)
        return;
    qk_length_params p = {.n = (int32_t)b->count};
    int64_t *slopes = NEW_ARRAY(f->arena, int64_t, 9 * f->n); /* n comes first */
    memcpy(slopes + f->n, f->tables[i], b->count * f->n * sizeof *slopes);
    for (size_t k = 0; k < b->count; k++)
        table_number(b, k, &p.number[k]);
    b->kind = BUF_ARENA;
    b->data = NULL;
    insert(f, at,
           own_call(f, f->program->calls[at].node, length_kernel(b->elem), &p, (int)i, slopes));
}

/* ---- outputs ---- */

/* The axis of an output whose length a run tells; -1: none does; -2: of several. */
static int open_axis(const Fit *f, size_t o) {
    int found = -1;
    uint32_t id = f->program->yields[o]->id;
    for (int k = 0; f->dims[id] && k < f->types[id].rank; k++)
        for (size_t j = 0; j < f->n; j++)
            if (f->dims[id][(size_t)k * f->n + j]) {
                found = found < 0 || found == k ? k : -2;
                break;
            }
    return found;
}

/* The bound whose length this is; n: it is computed of some. */
static size_t plain_bound(const Fit *f, int64_t largest, const int64_t *slopes) {
    size_t found = f->n;
    for (size_t j = 0; j < f->n; j++) {
        if (slopes[j] == 1 && largest == f->bounds[j].length && found == f->n)
            found = j;
        else if (slopes[j])
            return f->n;
    }
    return found;
}

static int length_buffer(Fit *f, Binder *b, size_t o, int axis) {
    uint32_t id = f->program->yields[o]->id;
    const int64_t *slopes = &f->dims[id][(size_t)axis * f->n];
    int64_t largest = f->types[id].dims[axis].value;
    size_t plain = plain_bound(f, largest, slopes);
    if (plain < f->n)
        return f->program->lengths[plain];
    qk_length_params p = {.n = 1, .number = {largest}};
    int64_t *of = NEW_ARRAY(f->arena, int64_t, 9 * f->n);
    memcpy(of + f->n, slopes, f->n * sizeof *of);
    int to = bind_temp(b, ELEM_INT64, 1);
    insert(f, f->program->n_calls,
           own_call(f, f->program->yields[o]->def, "qk_length_s64", &p, to, of));
    return to;
}

/* Nothing of an earlier run shall stand behind the elements. */
static void clear_rest(Fit *f, Binder *b, size_t o) {
    const Program *p = f->program;
    int to = p->outputs[o];
    ElemType e = p->buffers[to].elem;
    size_t count = p->buffers[to].count;
    bool changes = false;
    for (size_t i = 0; i < f->n; i++)
        changes = changes || f->counts[(size_t)to * f->n + i];
    if (!changes) /* what counts elements has cleared them */
        return;
    qk_clear_params params = {.from = (int64_t)count, .to = (int64_t)count};
    int64_t *slopes = NEW_ARRAY(f->arena, int64_t, 2 * f->n);
    memcpy(slopes, &f->counts[(size_t)to * f->n], f->n * sizeof *slopes);
    Call c = own_call(f, p->yields[o]->def, bind_kernel(b, "clear", 1, &e), &params, to, slopes);
    ((Patches *)(uintptr_t)c.patches)->skips = false;
    insert(f, p->n_calls, c);
}

static bool count_output(Fit *f, Binder *b, size_t o, Diags *d) {
    const Value *v = f->program->yields[o];
    int axis = open_axis(f, o);
    if (axis == -1)
        return true;
    if (axis < 0)
        return diag_error(d, v->loc,
                          "output %s: several of its dimensions are known only as it runs; C "
                          "tells one",
                          diag_name(d, v->name));
    clear_rest(f, b, o);
    program_count_output(b, o, length_buffer(f, b, o, axis));
    return true;
}

bool fit_apply(Fit *f, Binder *b, Diags *d) {
    size_t n_buffers = f->program->n_buffers, n_out = f->program->n_outputs;
    if (!patch_all(f, d))
        return false;
    bool ok = true;
    for (size_t i = 0; i < n_out; i++)
        ok = count_output(f, b, i, d) && ok;
    for (size_t i = 0; i < n_buffers; i++)
        if (f->tables[i])
            make_table(f, i);
    return ok;
}
