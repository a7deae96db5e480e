/* See exec/compare.h. */
#include <math.h>

#include "exec/compare_inputs.h"
#include "exec/compare_parts.h"
#include "ir/ops/op.h"

void compare_finish(CompareRow *row, const ErrorSums *s) {
    row->count = s->count;
    row->max_abs = s->max_abs;
    row->sqnr = error_sqnr(s);
    row->power = s->count ? s->xx / (double)s->count : 0;
    if (!isfinite(row->max_abs)) { /* whatever the other elements are */
        row->sqnr = -INFINITY;
        row->cosine = NAN;
    } else if (s->count && !s->finite)
        row->cosine = 1;
    else if (s->xx == 0 || s->yy == 0)
        row->cosine = s->xx == s->yy ? 1 : 0;
    else
        row->cosine = s->xy / (sqrt(s->xx) * sqrt(s->yy));
}

bool is_cut_by_clamp(const Uses *uses, const Value *v) {
    const Use *use;
    if (!v->type.quant || uses_of(uses, v, &use) != 1 || !use->node || !use->node->def)
        return false;
    const Node *n = use->node;
    return n->def->quant.kind == QUANT_CLAMP && n->out[0] && n->out[0]->type.quant &&
           quant_equal(n->out[0]->type.quant, v->type.quant);
}

/* ---- running ---- */

typedef struct Pair {
    Side a, b;
    bool shared; /* samples are made up, for a, and passed on to b */
    CompareTwin *twins;
    size_t n_twins;
    Others others; /* of a, in this sample */
    Diags *diags;
    bool failed;
} Pair;

static bool load_both(Pair *p) {
    if (!model_run_load(p->a.run, p->a.samples))
        return false;
    if (!p->shared)
        return model_run_load(p->b.run, p->b.samples);
    for (size_t i = 0; i < p->n_twins && !p->failed; i++)
        p->failed = !compare_pass_on(&p->twins[i], p->a.run, p->b.run, p->diags);
    return !p->failed;
}

static bool open_samples(Side *s, const CompareData *data, Diags *d) {
    Module *m = s->module;
    s->samples = data->n ? samples_open(m->arena, m, data->paths, data->n, d)
                         : samples_random(m->arena, m, data->random);
    return s->samples && samples_ok(s->samples) &&
           (!data->n || samples_take(s->samples, data->part));
}

static bool open_side(Side *s, Module *m, const ProgramOptions *o, Diags *d) {
    ProgramOptions all = o ? *o : (ProgramOptions){0};
    all.keep_all = true;
    s->module = m;
    s->run = model_run_new(m->arena, m, &all, d);
    if (!s->run)
        return false;
    compare_list(s);
    return true;
}

/* Room for the elements of one value of both. */
typedef struct Reals {
    Arena *arena;
    double *x, *y;
    size_t room;
} Reals;

static void make_room(Reals *r, size_t n) {
    if (n <= r->room)
        return;
    r->room = n < 2 * r->room ? 2 * r->room : n;
    r->x = NEW_ARRAY(r->arena, double, r->room);
    r->y = NEW_ARRAY(r->arena, double, r->room);
}

/* How many elements there are to compare, which then are in `r`; -1: a and b have not as many. */
static ptrdiff_t load_value(const Side *a, const Side *b, const CompareRow *row, Reals *r) {
    Type x, y;
    size_t n, k;
    const void *of_a = model_run_value(a->run, row->a, &x);
    const void *of_b = model_run_value(b->run, row->b, &y);
    if (!of_a || !of_b || !type_count(x, &n) || !type_count(y, &k))
        return 0;
    if (n != k)
        return -1;
    make_room(r, n);
    type_reals(x, of_a, n, r->x);
    type_reals(y, of_b, n, r->y);
    return (ptrdiff_t)n;
}

/* Everything that both picked by is known. */
static void find_others(Pair *p) {
    const Module *m = p->a.module;
    others_start(&p->others);
    FOR_NODES(n, m->graph) others_look(&p->others, n, p->a.picks, p->b.picks->sums);
}

static void compare_sample(const Pair *p, Comparison *c, ErrorSums *sums, Reals *r) {
    const Side *a = &p->a, *b = &p->b;
    bool alike = picks_chose_alike(a->picks, b->picks->sums);
    for (size_t i = 0; i < c->n; i++) {
        CompareRow *row = &c->rows[i];
        bool like = (alike || !choice_is_open(row->a)) && !is_other(&p->others, row->a);
        ptrdiff_t n = like ? load_value(a, b, row, r) : -1;
        row->unlike += n < 0;
        if (n > 0)
            error_add(&sums[i], r->x, r->y, (size_t)n);
    }
}

/* What was never compared has no number, and is the worst. */
static void finish(CompareRow *row, const ErrorSums *sums) {
    compare_finish(row, sums);
    if (row->count || !row->unlike)
        return;
    row->sqnr = -INFINITY;
    row->max_abs = row->cosine = NAN;
}

/* Class numbers, say: how far they are from each other is no number, so that where they differ the
 * floats that they were made of are judged. */
static bool is_other_choice(const CompareRow *r) {
    return r->is_output && choice_is_integers(r->a) && r->max_abs > 0;
}

bool compare_judges(const Comparison *c, const CompareRow *r) {
    return r->count && (r->is_output ? !is_other_choice(r) : r->stands_in && c->in_part);
}

static void find_unseen(Comparison *c) {
    bool stands = false;
    for (size_t i = 0; i < c->n; i++) {
        const CompareRow *r = &c->rows[i];
        stands = stands || (r->stands_in && r->count);
        if (r->is_output && (r->unlike || is_other_choice(r))) {
            c->unseen = r->b;
            c->unseen_in = r->unlike ? r->unlike : c->samples;
        }
    }
    c->in_part = c->in_part || c->unseen;
    c->unseen = stands ? NULL : c->unseen;
}

static void see(void *ctx, const Value *v, Type now, const void *data) {
    picks_see(ctx, v, now, data);
}

static void watch(Pair *p) {
    Module *a = p->a.module, *b = p->b.module;
    const Uses *uses = uses_new(a);
    const PickedBy *const *by = choice_picks(a);
    p->a.picked = choice_picked(a, by, uses);
    p->b.picked = choice_picked(b, choice_picks(b), uses_new(b));
    p->others = others_new(a, by, uses);
    p->a.picks = picks_new(a);
    p->b.picks = picks_like(b, p->a.picks);
    model_run_observe(p->a.run, see, p->a.picks);
    model_run_observe(p->b.run, see, p->b.picks);
}

static bool run_both(Pair *p, Comparison *c, Arena *arena) {
    ErrorSums *sums = NEW_ARRAY(arena, ErrorSums, c->n);
    Reals reals = {.arena = arena};
    while (load_both(p)) {
        picks_start(p->a.picks);
        picks_start(p->b.picks);
        if (!model_run_sample(p->a.run, p->diags) || !model_run_sample(p->b.run, p->diags))
            return false;
        find_others(p);
        compare_sample(p, c, sums, &reals);
        c->samples++;
    }
    size_t kept = 0; /* a value that never came up in both is not compared */
    for (size_t i = 0; i < c->n; i++)
        if (sums[i].count || c->rows[i].is_output || c->rows[i].unlike) {
            finish(&c->rows[i], &sums[i]);
            c->rows[kept++] = c->rows[i];
        }
    c->n = kept;
    find_unseen(c);
    return !p->failed && samples_ok(p->a.samples) && (p->shared || samples_ok(p->b.samples));
}

bool compare_modules(Module *a, Module *b, const CompareData *data, const ProgramOptions *options_a,
                     const ProgramOptions *options_b, Comparison *out, Diags *d) {
    Pair p = {.shared = data->n == 0, .diags = d};
    size_t level = progress_begin(diags_progress(d), "comparison", 0);
    *out = (Comparison){0};
    bool ok = open_side(&p.a, a, options_a, d) && open_side(&p.b, b, options_b, d);
    if (ok)
        watch(&p);
    ok = ok && open_samples(&p.a, data, d) &&
         (p.shared ? compare_match_inputs(a, b, &p.twins, &p.n_twins, d)
                   : open_samples(&p.b, data, d)) &&
         compare_pair(&p.a, &p.b, out, d) && run_both(&p, out, a->arena);
    if (ok)
        out->unmeasured = compare_unmeasured(&p.b, out);
    if (p.a.samples)
        samples_close(p.a.samples);
    if (p.b.samples)
        samples_close(p.b.samples);
    model_run_free(p.a.run);
    model_run_free(p.b.run);
    progress_end(diags_progress(d), level);
    return ok;
}
