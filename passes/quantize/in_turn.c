/* See passes/quantize/in_turn.h. */
#include "passes/quantize/in_turn.h"
#include "exec/fixed_shapes.h"
#include "passes/edit.h"
#include "passes/quantize/in_step.h"
#include "passes/quantize/mac_rows.h"

enum {
    LARGEST_SQUARE = 2048, /* terms; a gram and what it varies with take 64 MB */
    BYTES_MOST = 512 << 20,
    POSITIONS_MOST = 128, /* of a sample */
    ROWS_MOST = 1 << 14,
    UNASKED_MOST = 32 << 20, /* bytes of constants */
    SAMPLES_GRAM = 256,      /* samples that weights are rounded with, */
    SAMPLES_MEAN = 128,      /* and that are enough for a mean */
    HELD_EACH = 8,           /* of so many samples one is held back from rounding, to judge it, */
    HELD_MOST = 256,         /* and of all those so many sums */
};

typedef struct Turns {
    Module *m;
    PassContext *c;
    MacGramFn *gram;
    MacDataFn *fn;
    void *ctx; /* of both */
    const char *pass;
    bool judged;
    InStep *step;
    size_t n; /* nodes that are mended */
    const Node *first_left_out;
    size_t left_out, left_nodes;
} Turns;

/* Whether its weights are quantized. */
static bool is_mended(Node *n, Diags *d, MacRows *r) {
    return mac_rows_of(n, d, r) && edit_tilde(n->in[n->def->quant.mac.weight]);
}

static bool has_gram(const Turns *t, const Node *n, const MacRows *r) {
    size_t k = r->data.terms, square = k * k * sizeof(double);
    return t->gram && k <= LARGEST_SQUARE && r->data.groups <= BYTES_MOST / 2 / square &&
           t->gram(t->ctx, n);
}

static int64_t positions(const Turns *t) {
    int64_t of_each = ROWS_MOST / (int64_t)in_step_samples(t->step);
    return of_each < 1 ? 1 : of_each < POSITIONS_MOST ? of_each : POSITIONS_MOST;
}

static void look(Turns *t, Node *n, MacRows *r, Arena *a) {
    size_t samples = in_step_samples(t->step), held = samples / HELD_EACH;
    for (size_t i = 0; i < samples; i++) {
        const float *now = in_step_operand(t->step, n, SIDE_NOW, i);
        const float *real = in_step_operand(t->step, n, SIDE_FLOAT, i);
        if (r->data.gram && i % HELD_EACH == HELD_EACH - 1)
            mac_rows_hold(r, a, now, real, (int64_t)(HELD_MOST / held) + 1, HELD_MOST);
        else
            mac_rows_add(r, now, real, positions(t));
    }
    t->first_left_out = r->left_out && !t->first_left_out ? n : t->first_left_out;
    t->left_out += r->left_out;
    t->left_nodes += r->left_out > 0;
}

/* The tables of a node are gone with it. */
static void mend(Turns *t, Node *n, MacRows *r) {
    Arena *a = arena_scratch(t->m->arena);
    bool gram = has_gram(t, n, r);
    mac_rows_begin(r, a, NEW_ARRAY(a, double, mac_rows_size(r, gram, true)), gram, true);
    look(t, n, r, a);
    if (r->data.rows > 0) {
        mac_rows_finish(r);
        t->fn(t->ctx, n, &r->data);
    }
    arena_free(a);
}

static bool walk(Turns *t) {
    Progress *progress = diags_progress(t->c->d);
    size_t level = progress_begin(progress, "layer", t->n), at = 0;
    bool ok = true;
    FOR_NODES(n, t->m->graph) {
        MacRows r;
        if (at == t->n || !is_mended(n, t->c->d, &r))
            continue;
        progress_step(progress, level, at++);
        ok = ok && in_step_to(t->step, n);
        if (ok)
            mend(t, n, &r);
    }
    progress_end(progress, level);
    if (!ok)
        diag(t->c->d, DIAG_REMARK, LOC_NONE,
             "%s leaves layers as they are, as the model does not run in parts", t->pass);
    mac_rows_say_left_out(t->c, t->pass, t->first_left_out, t->left_out, t->left_nodes);
    return true;
}

static const Node *last_of(Turns *t) {
    const Node *last = NULL;
    FOR_NODES(n, t->m->graph) {
        MacRows r;
        if (is_mended(n, t->c->d, &r)) {
            last = n;
            t->n++;
        }
    }
    return last;
}

/* Programs of parts take as long to build as one that computes two samples of a convolutional
 * network. Where nobody asked for it, large models with few samples had rather not. */
static bool is_worth_it(Module *m, bool judged, bool rounds) {
    return !judged || rounds || module_const_bytes(m) <= UNASKED_MOST;
}

/* Within shapes_fix; `*done`: not where that has to be done otherwise. */
static bool in_turn(Turns *t, bool *done) {
    bool can = is_worth_it(t->m, t->judged, t->gram) && !in_step_why_not(t->m, t->c);
    const Node *last = can ? last_of(t) : NULL;
    *done = false;
    if (!last)
        return true;
    t->step = in_step_new(t->m, t->c, last, t->gram ? SAMPLES_GRAM : SAMPLES_MEAN, t->judged);
    if (!t->step)
        return false;
    *done = in_step_samples(t->step) > 0;
    bool ok = !*done || walk(t);
    in_step_free(t->step);
    return ok;
}

bool mac_in_turn(Module *m, PassContext *c, const char *pass, bool judged, MacGramFn *gram,
                 MacDataFn *fn, void *ctx) {
    Turns t = {.m = m, .c = c, .gram = gram, .fn = fn, .ctx = ctx, .pass = pass, .judged = judged};
    DataPaths data = pass_data(c);
    FixedShapes *shapes = shapes_fix(m, &data, c->d);
    bool done = false;
    if (!shapes)
        return false;
    bool ok = in_turn(&t, &done);
    shapes_restore(m, shapes);
    return ok && (done || mac_data(m, c, pass, gram, fn, ctx));
}
