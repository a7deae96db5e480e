/* See program/split.h. A kernel says how its work falls into parts (KernelSplit), and its fields by
 * their names how much there is. */
#include "program/split.h"
#include "program/windows.h"

/* ---- one call ---- */

typedef struct Split {
    Arena *arena;
    Program *program;
    const Splitting *how;
    Call *call;
    int out; /* index of the result's argument */
    int32_t n_parts;
    CallPart *parts;
    bool uneven; /* a buffer is no whole number of what it is taken apart into */
} Split;

static void set(const Split *s, int32_t part, const char *name, int32_t v) {
    *call_field(s->call, s->parts[part].params, name) = v;
}

/* The first unit, of `units`, that belongs to a part; whole steps of `step` units. */
static int32_t begin_of(const Split *s, int32_t part, int32_t units, int32_t step) {
    int64_t steps = (units + step - 1) / step;
    int64_t begin = steps * part / s->n_parts * step;
    return begin < units ? (int32_t)begin : units;
}

/* Moves argument `arg` by `units` of the `all` that it consists of. */
static void move(Split *s, int32_t part, int arg, int64_t units, int64_t all) {
    const Buffer *b = &s->program->buffers[s->call->args[arg]];
    s->uneven |= b->bytes % (size_t)all != 0;
    s->parts[part].at[arg] = b->bytes / (size_t)all * (size_t)units;
}

/* All that it is ever faster with. */
static void grow_scratch(const Split *s) {
    const Growth *g = &s->call->growth;
    if (!s->how->grown || !g->step)
        return;
    Buffer *b = &s->program->buffers[g->buffer];
    if (g->most > b->bytes)
        b->bytes += (g->most - b->bytes) / g->step * g->step;
    *g->bytes = (int32_t)b->bytes;
}

static void start(Split *s, int64_t work, int32_t units) {
    int64_t n = work / s->how->worth;
    n = n < s->how->parts ? n : s->how->parts;
    n = n < units ? n : units;
    if (n < 2)
        return;
    grow_scratch(s);
    s->n_parts = (int32_t)n;
    s->parts = NEW_ARRAY(s->arena, CallPart, (size_t)s->n_parts);
    for (int32_t i = 0; i < s->n_parts; i++) {
        s->parts[i].params = arena_copy(s->arena, s->call->params, s->call->kernel->params_size);
        s->parts[i].at = NEW_ARRAY(s->arena, size_t, (size_t)s->call->n_args);
    }
}

/* ---- rows of windows ---- */

/* Rows of the output as an image of its own, of the input rows that their windows reach. */
static bool take_rows(Split *s, int32_t part, Rows out) {
    const Call *c = s->call;
    Rows in;
    if (!windows_reach(c, out, &in))
        return false;
    windows_take(c, s->parts[part].params, out, in);
    move(s, part, 0, in.from, call_get(c, "ih", 0));
    move(s, part, s->out, out.from, call_get(c, "oh", 0));
    return true;
}

static bool split_rows(Split *s) {
    const Call *c = s->call;
    int32_t n = call_get(c, "n", 0), oh = call_get(c, "oh", 0),
            ic = call_get(c, "ic", 1) / call_get(c, "group", 1);
    int64_t count = (int64_t)s->program->buffers[c->args[s->out]].count;
    start(s, count * call_get(c, "kh", 1) * call_get(c, "kw", 1) * ic, n > 1 ? n : oh);
    for (int32_t i = 0; i < s->n_parts; i++) {
        int32_t units = n > 1 ? n : oh;
        int32_t from = begin_of(s, i, units, 1), to = begin_of(s, i + 1, units, 1);
        if (n == 1 && !take_rows(s, i, (Rows){from, to}))
            return false;
        if (n == 1)
            continue;
        set(s, i, "n", to - from);
        move(s, i, 0, from, n);
        move(s, i, s->out, from, n);
    }
    return s->n_parts > 0;
}

/* ---- products ---- */

/* Rows, or where there is one alone its columns: two blocks of 16 are what is multiplied at a time.
 */
static bool split_product(Split *s) {
    static const char *const tables[] = {"bias", "mul", "shift", "scale", "add", "zero"};
    const Call *c = s->call;
    int32_t m = call_get(c, "m", 0), n = call_get(c, "n", 0), k = call_get(c, "k", 0),
            blocks = (n + 15) / 16;
    bool rows = m > 1;
    start(s, (int64_t)m * n * k, rows ? m : (blocks + 1) / 2);
    for (int32_t i = 0; i < s->n_parts; i++) {
        int32_t units = rows ? m : n;
        int32_t from = begin_of(s, i, units, rows ? 1 : 32),
                to = begin_of(s, i + 1, units, rows ? 1 : 32);
        set(s, i, rows ? "m" : "n", to - from);
        move(s, i, s->out, from, units);
        if (rows)
            move(s, i, 0, from, m);
        for (size_t t = 0; !rows && t < sizeof tables / sizeof *tables; t++) {
            int arg = kernel_arg(c->kernel, tables[t]);
            if (arg >= 0)
                s->parts[i].at[arg] = c->kernel->args[arg].size * (size_t)from;
        }
        if (!rows)
            move(s, i, 1, from / 16, blocks);
    }
    return s->n_parts > 0;
}

/* ---- elements ---- */

/* What maps elements alone, along the first of its dimensions; one that a factor is repeated along
 * moves nothing of it. */
static bool split_each(Split *s) {
    const Call *c = s->call;
    const int32_t *dim = call_field(c, c->params, "dim");
    if (!dim || call_get(c, "rank", 0) < 1)
        return false;
    start(s, (int64_t)s->program->buffers[c->args[s->out]].count, dim[0]);
    for (int32_t i = 0; i < s->n_parts; i++) {
        int32_t from = begin_of(s, i, dim[0], 1);
        set(s, i, "dim", begin_of(s, i + 1, dim[0], 1) - from);
        move(s, i, s->out, from, dim[0]);
        for (int arg = 0; arg < c->kernel->n_each; arg++)
            s->parts[i].at[arg] = c->kernel->args[arg].size *
                                  (size_t)*kernel_strides(c->kernel, c->params, arg) * (size_t)from;
    }
    return s->n_parts > 0;
}

/* ---- memory ---- */

/* What else than the result a call writes is scratch, of which each part gets its own. */
static bool only_scratch(const Split *s) {
    const Call *c = s->call;
    for (int i = 0; i < c->n_args; i++)
        if (i != s->out && !c->kernel->args[i].is_const && c->args[i] >= 0 &&
            !s->program->buffers[c->args[i]].scratch)
            return false;
    return true;
}

static void multiply_scratch(const Split *s) {
    Call *c = s->call;
    for (int i = 0; i < c->n_args; i++) {
        Buffer *b = c->args[i] < 0 ? NULL : &s->program->buffers[c->args[i]];
        if (!b || !b->scratch)
            continue;
        size_t each = (b->bytes + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
        for (int32_t part = 0; part < s->n_parts; part++)
            s->parts[part].at[i] = each * (size_t)part;
        b->bytes = each * (size_t)s->n_parts;
        b->count = b->bytes / c->kernel->args[i].size;
    }
    c->growth = (Growth){0};
}

/* Elements alone may still go to where one of the same size came from. */
static void drop_overlays(const Split *s) {
    Call *c = s->call;
    int kept = 0;
    for (int i = 0; i < c->n_overlays && c->kernel->n_each; i++)
        if (c->overlays[i].exact &&
            c->kernel->args[c->overlays[i].arg].size == c->kernel->args[s->out].size)
            c->overlays[kept++] = c->overlays[i];
    c->n_overlays = kept;
}

void program_split(Arena *a, Program *p, const Splitting *how) {
    for (size_t i = 0; i < p->n_calls; i++) {
        Call *c = &p->calls[i];
        Split s = {.arena = a, .program = p, .how = how, .call = c, .out = call_output(p, c)};
        if (s.out < 0 || c->patches || !only_scratch(&s))
            continue;
        bool split = c->kernel->split == SPLIT_ROWS      ? split_rows(&s)
                     : c->kernel->split == SPLIT_PRODUCT ? split_product(&s)
                     : c->kernel->n_each                 ? split_each(&s)
                                                         : false;
        if (!split || s.uneven)
            continue;
        c->n_parts = (size_t)s.n_parts;
        c->parts = s.parts;
        multiply_scratch(&s);
        drop_overlays(&s);
    }
}

bool call_for_threads(const Call *c) {
    return c->n_parts && !c->bands;
}

bool program_is_split(const Program *p) {
    for (size_t i = 0; i < p->n_calls; i++)
        if (call_for_threads(&p->calls[i]))
            return true;
    return false;
}
