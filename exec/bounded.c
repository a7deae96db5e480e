/* See exec/bounded.h. What changes with lengths is learnt in exec/bounded_fit.c, and becomes part
 * of the program in exec/bounded_apply.c. */
#include "exec/bounded_parts.h"
#include "exec/fixed_shapes.h"
#include "exec/fold.h"
#include "exec/specialise.h"
#include "ir/bound.h"
#include "ir/ops/op.h"

/* ---- which lengths ---- */

/* Shapes beyond the bounds follow from those: a length is enough for each. */
static void set_length(Module *m, const LengthBound *b) {
    for (size_t i = 0; i < b->node->n_out; i++) {
        Value *v = b->node->out[i];
        int axis = v ? type_open_axis(v->type) : -1;
        if (axis < 0)
            continue;
        Dim *dims = arena_copy(m->arena, v->type.dims, (size_t)v->type.rank * sizeof *dims);
        dims[axis] = dim_of(b->length);
        v->type.dims = dims;
    }
    module_refine_early(m, m->mute);
    module_fold(m, NULL);
}

static bool has_open_result(const Node *n) {
    size_t count;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && !type_count(n->out[i]->type, &count))
            return true;
    return false;
}

static bool operands_known(const Node *n) {
    size_t count;
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && !type_count(n->in[i]->type, &count))
            return false;
    return true;
}

static int64_t longest(const Node *n) {
    OpCtx c = op_ctx(n, n->graph->module->mute);
    return n->def->longest ? n->def->longest(&c) : -1;
}

typedef struct Finding {
    Module *m;
    Diags *d;
    const Uses *uses;
    LengthBound *items;
    size_t n, cap;
    bool ok;
} Finding;

static bool is_read(const Finding *f, const Node *n) {
    const Use *use;
    for (size_t i = 0; i < n->n_out; i++)
        for (size_t k = n->out[i] ? uses_of(f->uses, n->out[i], &use) : 0; k-- > 0;)
            if (use[k].node)
                return true;
    return false;
}

static void needs_bound(Finding *f, const Node *n, const Value *v) {
    int64_t most = longest(n);
    const char *name = diag_name(f->d, v->name);
    f->ok = diag_error(f->d, n->loc,
                       "only a run tells how long '%s' is, and C needs to know how long it can be: "
                       "-max-elements=%s:%lld%s",
                       name, name, (long long)(most > 0 ? most : 100),
                       most > 0 ? " is enough for all data" : ", or what your data need");
}

/* Why C takes no bound for the shape of v. */
static const char *why_none(Diags *d, const Node *n, const Value *v) {
    int open = 0, rank = v->type.kind == TYPE_TENSOR ? v->type.rank : -1;
    for (int i = 0; i < rank; i++)
        open += v->type.dims[i].value < 0;
    Arena *a = n->graph->module->arena;
    if (!n->def->bind_length)
        return arena_strf(a, "C takes no bound for %s", diag_name(d, n->op)).s;
    if (rank < 0)
        return "C takes a bound for one dimension, and it is not known how many there are: state "
               "its type";
    return arena_strf(a,
                      "C takes a bound for one dimension, and %d are open: state the others in its "
                      "type",
                      open)
        .s;
}

bool bounded_refuse(Diags *d, Loc at, const char *option, const Node *n, const Value *v) {
    const Value *by = node_shape_operand(n);
    if (!by)
        return true;
    const char *name = diag_name(d, by->name);
    bool input = by->kind == VALUE_INPUT;
    return diag_error(
        d, at, "%sthe shape of '%s' follows from numbers in '%s', which only a run tells; %s%s%s%s",
        option, diag_name(d, v->name), name, why_none(d, n, v), input ? "; -set=" : "",
        input ? name : "", input ? "=... makes a constant of it" : "");
}

static void no_bound(Finding *f, const Node *n) {
    if (n->n_out && n->out[0]) /* else the binder says what it lacks */
        f->ok = bounded_refuse(f->d, n->loc, "", n, n->out[0]) && f->ok;
}

static void add_bound(Finding *f, const Node *n, const Value *v, int64_t most) {
    int64_t all = longest(n);
    LengthBound b = {.node = n, .value = v, .axis = type_open_axis(v->type), .most = most};
    b.length = most < LENGTH_BUILT && (all < 0 || all >= LENGTH_BUILT) ? LENGTH_BUILT : most;
    b.length = n->def->bind_length && all >= 0 && b.length > all ? all : b.length;
    b.most = b.most > b.length ? b.length : b.most;
    ARENA_PUSH(f->m->arena, f->items, f->n, f->cap, b);
    set_length(f->m, &b);
}

static void look_at(Finding *f, const Node *n) {
    const Value *v = NULL;
    int64_t most;
    for (size_t i = 0; i < n->n_out && !v; i++)
        v = n->out[i] && type_open_axis(n->out[i]->type) >= 0 ? n->out[i] : NULL;
    bool bounds = n->def && (n->def->counts || n->def->bind_length);
    if (!has_open_result(n) || !operands_known(n))
        return;
    if (!v || !bounds || !(n->def->counts || node_shape_operand(n)))
        no_bound(f, n); /* where nothing tells a length, it is the binder that says what is wrong */
    else if (!node_bound(n, &most, f->d))
        f->ok = false;
    else if (most >= 0)
        add_bound(f, n, v, most);
    else if (n->def->enter && longest(n) > 0)
        add_bound(f, n, v, longest(n)); /* a Loop of so many iterations, which may end before */
    else if (!n->def->counts || n->def->enter || is_read(f, n))
        needs_bound(f, n, v);
}

/* Nodes that lengths make constant go in between. */
static void look_at_all(Finding *f) {
    const Node **nodes = NULL;
    size_t n = 0, cap = 0;
    FOR_NODES(node, f->m->graph) ARENA_PUSH(f->m->arena, nodes, n, cap, node);
    for (size_t i = 0; i < n; i++)
        if (nodes[i]->prev || f->m->graph->first == nodes[i])
            look_at(f, nodes[i]);
}

/* ---- building ---- */

typedef struct Building {
    Module *m;
    const ProgramOptions *o;
    LengthBound *bounds;
    size_t n;
    Diags *d;
} Building;

/* The module keeps the lengths' shapes. The program lives in `a`. */
static Binder *bind_lengths(const Building *w, Arena *a, const LengthBound *bounds, Diags *d) {
    ProgramOptions o = *w->o;
    o.arena = a;
    o.bounds = bounds;
    o.n_bounds = w->n;
    o.any_length = true;
    o.shorter = bounds != w->bounds;
    for (size_t i = 0; i < w->n; i++)
        set_length(w->m, &bounds[i]);
    return program_bind(w->m, &o, d);
}

typedef enum Trial { TRIAL_FITS, TRIAL_DIFFERS, TRIAL_NONE } Trial;
typedef bool TrialFn(Fit *f, const Program *p, const LengthBound *bounds, size_t i);

/* What a program of these lengths says; `d` hears why there is none. */
static Trial try(const Building *w, Fit *f, TrialFn *fn, const LengthBound *bounds, size_t i,
                 Diags *d) {
    FixedShapes *before = shapes_save(w->m);
    Arena *a = arena_scratch(w->m->arena);
    const Binder *b = bind_lengths(w, a, bounds, d);
    bool ok = b && fn(f, b->program, bounds, i);
    arena_free(a);
    shapes_undo(w->m, before);
    return !b ? TRIAL_NONE : ok ? TRIAL_FITS : TRIAL_DIFFERS;
}

static LengthBound *lengths(const Building *w) {
    return arena_copy(w->m->arena, w->bounds, w->n * sizeof *w->bounds);
}

/* A program is made for LENGTH_BUILT elements where a bound is less. */
static bool is_within(const Building *w, const LengthBound *bounds) {
    bool within = true;
    for (size_t i = 0; i < w->n; i++)
        within = within && bounds[i].length <= bounds[i].most;
    return within;
}

/* Behind an error about a model with these lengths. */
static void tell_lengths(const Building *w, const LengthBound *bounds) {
    Buf b = buf_new(w->m->arena);
    for (size_t i = 0; i < w->n; i++)
        buf_fmt(&b, "%s%lld element%s of '%s'", i ? " and " : "", (long long)bounds[i].length,
                plural(bounds[i].length), diag_name(w->d, bounds[i].value->name));
    Str text = buf_as_str(&b);
    diag_note(w->d, bounds[0].value->loc,
              "shapes are those with " STR_FMT ", which only a run tells: %s", STR_ARG(text),
              is_within(w, bounds)
                  ? "in C they have to go together however many there are"
                  : "C is made for more than the bound where that is small, as few elements have "
                    "kernels of their own");
}

static const Node *first_faulty(const Graph *g) {
    FOR_NODES(n, g)
    if (n->faulty)
        return n;
    return NULL;
}

/* The node whose operands do not go together with these lengths; NULL: there is none. */
static const Node *in_the_way(const Building *w, const LengthBound *bounds, Diags *d) {
    FixedShapes *before = shapes_save(w->m);
    for (size_t i = 0; i < w->n; i++)
        set_length(w->m, &bounds[i]);
    const Node *n = module_check_runnable(w->m, d) ? NULL : first_faulty(w->m->graph);
    shapes_undo(w->m, before);
    return n;
}

/* Lengths within the bounds for which the same node is in the way as for these; else these. */
static const LengthBound *to_tell(const Building *w, const LengthBound *bounds) {
    const Node *n = is_within(w, bounds) ? NULL : in_the_way(w, bounds, w->m->mute);
    for (int64_t length = LENGTH_BUILT - 1; n && length >= 0; length--) {
        LengthBound *b = arena_copy(w->m->arena, bounds, w->n * sizeof *bounds);
        for (size_t i = 0; i < w->n; i++)
            if (b[i].length > b[i].most)
                b[i].length = length < b[i].most ? length : b[i].most;
        if (in_the_way(w, b, w->m->mute) == n)
            return b;
    }
    return bounds;
}

/* Whether these lengths do; else it is told which node is in the way. */
static bool goes(const Building *w, Fit *f, TrialFn *fn, const LengthBound *bounds, size_t i) {
    Trial t = try(w, f, fn, bounds, i, w->m->mute);
    if (t == TRIAL_FITS)
        return true;
    if (t == TRIAL_NONE) {
        bounds = to_tell(w, bounds);
        try(w, f, fn, bounds, i, w->d);
        tell_lengths(w, bounds);
        return false;
    }
    fit_blame_product(f);
    return diag_error(w->d, f->odd ? f->odd->loc : LOC_NONE,
                      "%s computes in another way for each length that only a run tells, which C "
                      "cannot (%s)",
                      f->odd ? node_text(f->odd) : "the model", f->why);
}

enum { WAYS = 6 };

static int64_t tried(int64_t most, int way, int64_t odd) {
    const int64_t lengths[WAYS] = {2, 2 + odd, 3, most / 3 + odd, most / 2 + odd, most - 2};
    int64_t n = lengths[way] < 2 ? 2 : lengths[way];
    return n > most ? most : n;
}

/* Lengths of which something is learnt, and some that it has to hold for. 2 and more have no ways
 * of their own; what is cut at an end shows at the least. */
static bool learn(const Building *w, Fit *f) {
    for (size_t i = 0; i < w->n; i++) {
        LengthBound *b = lengths(w);
        b[i].length--;
        if (!goes(w, f, fit_learn, b, i))
            return false;
    }
    for (int way = 0; way < WAYS; way++) {
        LengthBound *b = lengths(w);
        for (size_t i = 0; i < w->n; i++)
            b[i].length = tried(b[i].length, way, (int64_t)(i % 3));
        if (!goes(w, f, fit_holds, b, 0))
            return false;
    }
    return true;
}

/* The least length, from 2 on down. Some nodes know shorter ways for one element, of which the
 * general one gives the same. Without elements kernels whose results have none are not called, and
 * others have to be ready for it. */
static int64_t least_length(const Building *w, Fit *f, size_t i) {
    int64_t least = w->bounds[i].length < 2 ? w->bounds[i].length : 2;
    for (; least > 0; least--) {
        LengthBound *b = lengths(w);
        b[i].length = least - 1;
        if (try(w, f, fit_takes_few, b, i, w->m->mute) != TRIAL_FITS)
            break;
    }
    return least;
}

static Program *build(const Building *w) {
    const LengthBound *told = to_tell(w, w->bounds);
    if (told != w->bounds) {
        in_the_way(w, told, w->d);
        tell_lengths(w, told);
        return NULL;
    }
    FixedShapes *before = shapes_save(w->m);
    Arena *a = w->o->arena ? w->o->arena : w->m->arena;
    Binder *b = bind_lengths(w, a, w->bounds, w->d);
    if (!b) {
        /* Without a faulty node something is in the way that shapes have no part in. */
        if (first_faulty(w->m->graph))
            tell_lengths(w, w->bounds);
        return NULL;
    }
    Fit *f = fit_new(a, b->program);
    shapes_undo(w->m, before);
    if (!learn(w, f))
        return NULL;
    for (size_t i = 0; i < w->n; i++)
        w->bounds[i].least = least_length(w, f, i);
    for (size_t i = 0; i < w->n; i++)
        set_length(w->m, &w->bounds[i]);
    if (!fit_apply(f, b, w->d))
        return NULL;
    program_place(b->program, w->o);
    return b->program;
}

Program *program_build_bounded(Module *m, const ProgramOptions *o, Diags *d) {
    lengths_from_results(m);
    FixedShapes *before = shapes_save(m);
    Finding f = {.m = m, .d = d, .uses = uses_new(m), .ok = true};
    look_at_all(&f);
    shapes_undo(m, before);
    if (!f.ok)
        return NULL;
    Building w = {m, o, f.items, f.n, d};
    return f.n ? build(&w) : program_build(m, o, d);
}
