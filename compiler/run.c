/* qxc run INPUT -input=x.npz: outputs (or all values) as .npz, or as text without -o. */
#include "compiler/left_out.h"
#include "compiler/session.h"
#include "compiler/suffix.h"
#include "compiler/trace.h"
#include "exec/evaluate.h"
#include "exec/samples.h"
#include "support/buf.h"
#include "support/npz.h"

typedef struct Collect {
    Session *s;
    Arena *arena;
    Column *cols;
    size_t n;
    Evaluator *evaluator; /* of a model whose shapes depend on its data; else NULL */
    Buf text;             /* what is printed, without -o */
    size_t samples;
    const bool *from_file; /* by value id: a constant of the file itself, which is not reported */
    size_t n_from_file;
    Arrangement as;
    ValuesLeftOut left_out;
} Collect;

static void add_column(Collect *c, const Value *v, Str name) {
    c->n += column_new(&c->cols[c->n], v, name, c->evaluator != NULL);
}

static void count_values(Graph *g, void *ctx) {
    size_t *n = ctx;
    *n += g->n_in + g->n_consts;
    FOR_NODES(node, g) *n += node->n_out;
}

static void add_graph(Graph *g, void *ctx) {
    Collect *c = ctx;
    if (c->evaluator && g->owner)
        return;                                       /* gone with each iteration */
    for (size_t i = 0; !g->owner && i < g->n_in; i++) /* those of a body change while it runs */
        add_column(c, g->in[i], g->in[i]->name);
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            add_column(c, n->out[i], n->out[i]->name);
}

static void add_consts(Graph *g, void *ctx) {
    Collect *c = ctx;
    for (size_t i = 0; i < g->n_consts; i++)
        if (g->consts[i]->id >= c->n_from_file || !c->from_file[g->consts[i]->id])
            add_column(c, g->consts[i], g->consts[i]->name);
}

static void mark_consts(Graph *g, void *ctx) {
    bool *is_const = ctx;
    for (size_t i = 0; i < g->n_consts; i++)
        is_const[g->consts[i]->id] = true;
    for (size_t i = 0; i < g->n_in; i++)
        is_const[g->in[i]->id] = g->in[i]->data;
}

/* What no call reads is not in the program: a constant has its elements all the same. */
static bool store_all(Collect *c, Runner *r) {
    bool ok = true;
    for (size_t i = 0; i < c->n; i++) {
        Column *col = &c->cols[i];
        const void *data = runner_computed(r, col->v) || col->v->kind != VALUE_NODE
                               ? runner_value(r, col->v)
                               : NULL;
        if (!data && col->v->kind == VALUE_CONST)
            ok = column_add_tensor(col, c->arena, col->v->data, c->s->d) && ok;
        else
            column_add(col, c->arena, data);
    }
    return ok;
}

/* Results must make an array; what lies between may be left out. */
static bool store_tensor(Collect *c, Column *col, const Tensor *t) {
    bool result = value_is_output(col->v);
    Diags *d = result ? c->s->d : col->v->graph->module->mute;
    if (!t || col->varies || column_add_tensor(col, c->arena, t, d))
        return true;
    col->varies = true;
    return !result;
}

static bool store_tensors(Collect *c) {
    bool ok = true;
    for (size_t i = 0; i < c->n; i++)
        ok = store_tensor(c, &c->cols[i], evaluator_value(c->evaluator, c->cols[i].v)) && ok;
    return ok;
}

static void print_all(Collect *c) {
    for (size_t i = 0; i < c->n; i++)
        if (c->cols[i].n)
            column_print(&c->cols[i], c->arena, &c->text);
}

/* `r` is NULL where there is an evaluator. */
static bool run_all(Collect *c, Runner *r, Samples *in) {
    for (; r ? samples_load(in, r) : evaluator_load(c->evaluator, in); c->samples++) {
        if (!(r ? runner_run(r, c->s->d) : evaluator_run(c->evaluator, c->s->d)))
            return false;
        if (!(r ? store_all(c, r) : store_tensors(c)))
            return false;
        if (!c->s->o.output)
            print_all(c);
    }
    return samples_ok(in);
}

static ExitCode write_npz(Collect *c, const char *path) {
    OutFiles *out = c->s->out = session_outputs(c->s);
    FILE *f = out_open(out, path);
    if (!f)
        return EXIT_IO;
    NpzWriter *w = npz_writer(c->arena, f);
    for (size_t i = 0; i < c->n; i++) {
        Column *col = &c->cols[i];
        WhyLeftOut why = column_left_out(col, &c->as);
        if (why != NOT_LEFT_OUT) {
            values_leave_out(&c->left_out, col->name, why);
            continue;
        }
        Arena *a = arena_scratch(c->arena);
        Shape shape = column_arrange(col, a, &c->as);
        npz_add(w, col->name, col->elem, shape.rank, shape.dims, col->data);
        arena_free(a);
    }
    npz_finish(w);
    if (session_inputs_are_whole(c->s))
        return out_commit(out) ? EXIT_DONE : EXIT_IO;
    out_abort(out);
    return EXIT_IO;
}

static Samples *open_samples(Session *s, Module *m) {
    if (s->o.input.n)
        return samples_open(m->arena, m, s->o.input.items, s->o.input.n, s->d);
    return samples_random(m->arena, m, s->o.random > 0 ? (size_t)s->o.random : 1);
}

/* What has to be known of the model as it came. */
static Collect collect_begin(Session *s, Module *m) {
    bool *from_file = NEW_ARRAY(m->arena, bool, m->n_values);
    module_each_graph(m, mark_consts, from_file);
    return (Collect){.s = s,
                     .arena = m->arena,
                     .text = buf_new(m->arena),
                     .from_file = from_file,
                     .n_from_file = m->n_values,
                     .left_out = values_of_file(m, s->o.all_values)};
}

static void collect_columns(Collect *c, Module *m, Evaluator *e) {
    size_t n = 0;
    module_each_graph(m, count_values, &n);
    c->cols = NEW_ARRAY(m->arena, Column, n + m->graph->n_out);
    c->evaluator = e;
    if (c->s->o.all_values) {
        module_each_graph(m, add_graph, c);
        module_each_graph(m, add_consts, c);
    } else {
        for (size_t i = 0; i < m->graph->n_out; i++)
            add_column(c, m->graph->out[i], m->graph->out[i]->name);
    }
}

static ExitCode print_text(const Collect *c) {
    fwrite(c->text.p, 1, c->text.n, stdout);
    return EXIT_DONE;
}

ExitCode cmd_run(Session *s) {
    Job j;
    ExitCode code;
    if (!job_init(&j, &s->o, s->arena, s->d))
        return job_init_failure(&j);
    if (!suffix_is(&s->o, "run", ".npz", s->d))
        return EXIT_USAGE;
    Module *m = session_read(s, 0, &code);
    if (!m)
        return code;
    if (session_lacks_data(s, m)) {
        diag_error(s->d, LOC_NONE, "run needs data: -input=PATH or -random=N");
        return EXIT_USAGE;
    }
    Collect c = collect_begin(s, m);
    if (!job_prepare_run(&j, m))
        return job_failure(&j);
    ProgramOptions po = {.ignore_quant = s->o.ignore_quant,
                         .keep_all = s->o.all_values,
                         .rounding = j.rounding,
                         .run_parts = runner_parts()};
    bool open = module_is_open(m);
    Program *p = open ? NULL : program_build(m, &po, s->d);
    Evaluator *e = open ? evaluator_new(m, &po, s->d) : NULL;
    Samples *in = p || e ? open_samples(s, m) : NULL;
    if (!in)
        return EXIT_WRONG;
    collect_columns(&c, m, e);
    size_t level = progress_begin(diags_progress(s->d), "running", 0);
    trace_begin(s->o.trace);
    bool ok = run_all(&c, p ? runner_new(m->arena, p) : NULL, in);
    trace_end(s->o.trace, "running");
    progress_end(diags_progress(s->d), level);
    c.as = arrangement_of(m, in, j.batch);
    samples_close(in);
    if (!ok)
        return EXIT_WRONG;
    code = s->o.output ? write_npz(&c, s->o.output) : print_text(&c);
    if (code == EXIT_DONE)
        values_tell_left_out(&c.left_out, c.cols, c.n, s->d);
    return code;
}
