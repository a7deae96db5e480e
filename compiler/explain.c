/* -explain=VALUE: why a value has its type. */
#include "compiler/explain.h"

#include "passes/edit.h"

#include <math.h>

typedef struct ValueSearch {
    Str name;
    const Value *found;
    const Value *made; /* of what had this name when it came */
    const Node *node;  /* of this name, or that one of this name became part of */
    Arena *arena;
    const char **names;
    size_t n, cap;
} ValueSearch;

static void look_for_value(Value *v, void *ctx) {
    ValueSearch *s = ctx;
    if (str_eq(v->name, s->name))
        s->found = v;
    for (size_t i = 0; !s->made && i < v->from.n; i++)
        if (!v->from.from[i].op.s && str_eq(v->from.from[i].name, s->name))
            s->made = v;
    ARENA_PUSH(s->arena, s->names, s->n, s->cap, arena_str(s->arena, v->name).s);
}

static void look_for_node(Graph *g, void *ctx) {
    ValueSearch *s = ctx;
    FOR_NODES(n, g) {
        bool is = str_eq(n->name, s->name);
        for (size_t i = 0; i < n->from.n; i++)
            is = is || str_eq(n->from.from[i].name, s->name);
        if (is && !s->node && n->n_out && n->out[0])
            s->node = n;
    }
}

static ExitCode no_such_value(const Job *j, Module *m, ValueSearch *s) {
    module_each_graph(m, look_for_node, s);
    diag_error(j->d, LOC_NONE, "-explain: the model has no value '%s'", diag_name(j->d, s->name));
    if (s->node)
        diag_note(j->d, LOC_NONE, "the result of %s is the value '%s'", node_text(s->node),
                  diag_name(j->d, s->node->out[0]->name));
    else
        diag_did_you_mean(j->d, LOC_NONE, s->name, s->names, s->n);
    return EXIT_WRONG;
}

/* ---- a value that the model states ---- */

/* "m.qir:9", or nothing for what has no line. */
static void put_line(Buf *b, const Job *j, Loc at) {
    int line = diags_line(j->d, at);
    if (line)
        buf_fmt(b, ", %s:%d", diags_source_name(j->d, at.source), line);
}

static void put_two(Buf *b, const char *what, float x, const char *between, float y) {
    buf_text(b, what);
    buf_f32(b, x);
    buf_text(b, between);
    buf_f32(b, y);
}

static void put_grid(Buf *b, const Quant *q) {
    if (!quant_is_known(q) || !quant_is_integers(q))
        return;
    double lo = INFINITY, hi = -INFINITY;
    for (size_t i = 0; i < q->n_scale; i++) {
        double s = quant_scale(q, i), zp = (double)quant_zp(q, i);
        lo = fmin(lo, s * ((double)quant_lo(q) - zp));
        hi = fmax(hi, s * ((double)quant_hi(q) - zp));
    }
    put_two(b, "  its grid: ", (float)lo, " to ", (float)hi);
    if (q->n_scale > 1)
        buf_fmt(b, ", of %zu scales", q->n_scale);
    buf_byte(b, '\n');
}

/* Of a constant its numbers. */
static void put_statistics(Buf *b, const Job *j, const Value *v) {
    const Stat *s = v->stat;
    float min, max;
    if (edit_float_const(v) && edit_range(v, &min, &max)) {
        put_two(b, "  its numbers: ", min, " to ", max);
        buf_byte(b, '\n');
    }
    if (!s || s->n != 1 || !s->min || !s->max)
        return;
    put_two(b, "  its statistics: ", *s->min, " to ", *s->max);
    if (s->avg && s->std)
        put_two(b, ", ", *s->avg, " +- ", *s->std);
    put_line(b, j, s->loc);
    buf_byte(b, '\n');
}

typedef struct SharedWith {
    const Value *v;
    const Job *j;
    Buf *b;
    size_t n;
} SharedWith;

static void look_for_sharer(Value *v, void *ctx) {
    enum { NAMED = 6 };
    SharedWith *s = ctx;
    if (v == s->v || v->type.quant != s->v->type.quant || ++s->n > NAMED + 1)
        return;
    buf_fmt(s->b, s->n > NAMED ? ", ..." : "%s%s",
            s->n > 1 ? ", " : "  shared with: ", diag_name(s->j->d, v->name));
}

static void put_stated(Buf *b, const Job *j, Module *m, const Value *v) {
    const Quant *q = v->type.quant;
    buf_fmt(b, "%s: %s\n", diag_name(j->d, v->name), type_text(m->arena, v->type));
    buf_text(b, "  stated by the model");
    put_line(b, j, q && q->loc.source ? q->loc : v->loc);
    if (q && q->alias.s)
        buf_fmt(b, ": quant !" STR_FMT, STR_ARG(q->alias));
    if (q && q->alias.s && q->n_scale == 1) {
        buf_text(b, " = ");
        quant_print(b, q);
    }
    buf_byte(b, '\n');
    if (q) {
        SharedWith s = {v, j, b, 0};
        put_grid(b, q);
        put_statistics(b, j, v);
        module_each_value(m, look_for_sharer, &s);
        buf_text(b, s.n ? "\n" : "");
    }
    buf_text(b, "  nothing was decided here");
    if (q)
        buf_fmt(b, "; -redecide=%s does, from -calib data or its statistics",
                diag_name(j->d, v->name));
    buf_byte(b, '\n');
}

/* The answer is the product where nothing else was asked for. */
ExitCode explain_print(const Job *j, Module *m, FILE *out) {
    const PassContext *c = &j->ctx;
    if (!c->explain)
        return EXIT_DONE;
    if (c->explanation.s) {
        fwrite(c->explanation.s, 1, c->explanation.n, out);
        return EXIT_DONE;
    }
    ValueSearch search = {.name = str_from(c->explain), .arena = m->arena};
    module_each_value(m, look_for_value, &search);
    if (!search.found && !search.made)
        return no_such_value(j, m, &search);
    Buf b = buf_new(m->arena);
    if (!search.found)
        buf_fmt(&b, "%s: it is part of '%s' now\n", c->explain, diag_name(j->d, search.made->name));
    put_stated(&b, j, m, search.found ? search.found : search.made);
    fwrite(b.p, 1, b.n, out);
    return EXIT_DONE;
}
