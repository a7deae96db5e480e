/* -emit=c: binds the module, and writes it with its header, test bench and weights. */
#include "backend/c/c.h"
#include "compiler/floats_in_c.h"
#include "compiler/no_integers.h"
#include "compiler/origin.h"
#include "compiler/max_arena.h"
#include "compiler/own_kernels.h"
#include "compiler/report.h"
#include "compiler/without_effect.h"
#include "compiler/write.h"
#include "exec/bounded.h"
#include "exec/fold.h"
#include "exec/specialise.h"
#include "program/bands.h"
#include "program/split.h"

/* "dir/model.h" beside "dir/model.c" or what C++ is called. */
static const char *path_beside(Arena *a, const char *path, const char *end) {
    static const char *const suffixes[] = {".c", ".cc", ".cpp", ".cxx", ".c++"};
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (str_ends(str_from(path), suffixes[i]) && strlen(suffixes[i]) < strlen(path))
            n = strlen(path) - strlen(suffixes[i]);
    return arena_strf(a, "%.*s%s", (int)n, path, end).s;
}

static bool make_tests(Writing *w, const Program *p, CWriteOptions *c) {
    Arena *a = w->m->arena;
    const Options *o = &w->s->o;
    Samples *in = o->input.n ? samples_open(a, w->m, o->input.items, o->input.n, w->s->d)
                             : samples_random(a, w->m, o->random > 0 ? (size_t)o->random : 1);
    if (!in)
        return false;
    if (!o->input.n && o->random <= 0)
        diag(w->s->d, DIAG_NOTE, LOC_NONE,
             "-testbench without -input=PATH checks one random sample, which says little of the "
             "model's own data; -random=N takes more");
    Runner *r = runner_new(a, p);
    CTest *tests = NULL;
    size_t n = 0, cap = 0;
    bool ok = true;
    while (ok && n < TESTBENCH_SAMPLES && samples_load(in, r)) {
        const void **i = NEW_ARRAY(a, const void *, p->n_inputs);
        const void **out = NEW_ARRAY(a, const void *, p->n_outputs);
        for (size_t k = 0; k < p->n_inputs; k++) /* a run may write over them */
            i[k] = arena_copy(a, runner_input(r, k), p->buffers[p->inputs[k]].bytes);
        ok = runner_run(r, w->s->d);
        for (size_t k = 0; k < p->n_outputs; k++)
            out[k] = arena_copy(a, runner_output(r, k), p->buffers[p->outputs[k]].bytes);
        CTest t = {i, out};
        ARENA_PUSH(a, tests, n, cap, t);
    }
    bool more = ok && o->input.n && n == TESTBENCH_SAMPLES && samples_load(in, r);
    ok = ok && samples_ok(in);
    if (more)
        diag(w->s->d, DIAG_REMARK, LOC_NONE, "-testbench takes the first %d samples",
             TESTBENCH_SAMPLES);
    samples_close(in);
    c->tests = tests;
    c->n_tests = n;
    return ok;
}

/* The program to run here: one with our kernels alone, each of them as a whole. */
static const Program *runnable(Writing *w, const Program *p, const ProgramOptions *o) {
    ProgramOptions ours = *o;
    ours.foreign = NULL;
    ours.bands = BANDS_NONE;
    return o->foreign || program_bands(p).calls ? program_build_bounded(w->m, &ours, w->s->d) : p;
}

/* The header, and the weights where they have a file of their own. */
static bool open_beside(Writing *w, CWriteOptions *c, CStreams *to) {
    const Options *o = &w->s->o;
    const char *h = path_beside(w->m->arena, o->output, ".h");
    c->header_name = path_base(h);
    if (strpbrk(c->header_name, "\"\\\n\r"))
        return diag_error(w->s->d, LOC_NONE,
                          "C cannot include a header of the name '%s': choose another -o",
                          diag_name(w->s->d, str_from(c->header_name)));
    if (!(to->header = out_side(w->out, h)))
        return false;
    if (!o->weights_file)
        return true;
    const char *path = path_beside(w->m->arena, o->output, ".weights.bin");
    c->weights_name = path_base(path);
    return (to->weights = out_side(w->out, path)) != NULL;
}

/* The source says what it was written with: by that the next run knows the files for its own. */
static bool settle_beside(Writing *w, const CStreams *to) {
    FILE *const files[] = {to->header, to->weights};
    for (size_t i = 0; i < 2; i++) {
        const SideFile *f = files[i] ? out_settle(w->out, files[i], w->s->o.output, true) : NULL;
        if (files[i] && !f)
            return false;
        if (f)
            fprintf(to->source, "/* %s: sha256 %s */\n", f->name, f->hash);
    }
    return true;
}

typedef struct Reasons {
    const Job *job;
    Uses *uses;
} Reasons;

static const char *why_float(const Node *n, void *ctx) {
    const Reasons *r = ctx;
    return report_node(r->job, n, r->uses).why;
}

/* How a model that came quantized becomes integers alone. */
static const char *way_on(const Job *j) {
    if (!j->decided_before)
        return NULL;
    if (j->only_floats)
        return "what a model computes in float stays so; " WRITTEN_IN_FLOATS;
    return j->data_completes
               ? "what a quantized model computes in float stays so without data; -calib=PATH "
                 "decides that, and keeps what is decided"
               : "what a quantized model computes in float stays so; -emit=float gives the float "
                 "model back, and -calib=PATH quantizes all of that";
}

static const Value *open_first(const Module *m) {
    for (size_t i = 0; i < m->graph->n_in; i++)
        if (!m->graph->in[i]->data && type_first_open(m->graph->in[i]->type))
            return m->graph->in[i];
    return NULL;
}

static void tell_first(Arena *a, const Value *v, Dim dim, Diags *d) {
    const char *name = diag_name(d, v->name);
    long long size = (long long)v->type.dims[0].value;
    if (dim_is_named(dim))
        diag(d, DIAG_NOTE, LOC_NONE,
             "graph input %s: its first dimension %s is %lld in C; -bind=%s=... fixes another",
             name, diag_name(d, dim.param), size, diag_name(d, dim.param));
    else
        diag(d, DIAG_NOTE, LOC_NONE,
             "graph input %s: its first dimension is %lld in C; an option such as %s fixes another",
             name, size, specialise_shape_option(a, v));
}

/* C takes a batch sample by sample; an open first dimension that is none is that of the data. Those
 * behind it are asked for. */
static bool bind_shapes(Writing *w) {
    const Options *o = &w->s->o;
    const TextList *files = o->calib.n ? &o->calib : &o->input;
    DataPaths data = pass_data(&w->j->ctx);
    data.paths = (const char *const *)files->items;
    data.n = module_others_known(w->m) ? files->n : 0;
    data.own_scales = true; /* of one sample, as C takes it, there is no other */
    return open_first(w->m) ? samples_bind(w->m, &data, NULL, w->s->d)
                            : module_check_static(w->m, w->s->d);
}

/* What went in the way of integers alone, where it is known; false. */
static bool refused(const Writing *w) {
    if (way_on(w->j))
        diag_note(w->s->d, LOC_NONE, "%s", way_on(w->j));
    return false;
}

static ProgramOptions program_options(const Writing *w) {
    const Options *o = &w->s->o;
    return (ProgramOptions){.least_arena = true,
                            .bands = BANDS_POOLS,
                            .rounding = w->j->rounding,
                            .ports_in_arena = o->io_in_arena,
                            .foreign = w->j->kernels,
                            .threads = (int)o->threads};
}

/* `po` becomes what -max-arena asks for. */
static Program *build(const Writing *w, ProgramOptions *po) {
    const Options *o = &w->s->o;
    Program *p = program_build_bounded(w->m, po, w->s->d);
    if (!p && o->integer_only && form_is_spelled(w->j->found))
        refused(w);
    return p && o->max_arena >= 0 ? fit_arena(w->m, p, po, (size_t)o->max_arena, w->s->d) : p;
}

static bool put_c(Writing *w, Program *p, const ProgramOptions *po) {
    const Options *o = &w->s->o;
    Reasons reasons = {w->j, o->integer_only ? uses_new(w->m) : NULL};
    CWriteOptions c = {.integer_only = o->integer_only,
                       .origin = origin_text(w->s, w->m->arena),
                       .why_float = why_float,
                       .why_ctx = &reasons,
                       .way_on = way_on(w->j)};
    CStreams to = {.source = w->file};
    if (o->output && !out_is_device(o->output) && !open_beside(w, &c, &to))
        return false;
    c.prefix = o->name ? str_from(o->name)
                       : path_stem(w->m->arena, o->output ? o->output : o->inputs.items[0]);
    return (!o->testbench || make_tests(w, runnable(w, p, po), &c)) &&
           c_write(p, &c, to, w->s->d) && settle_beside(w, &to);
}

/* For the summary. */
static void note_sizes(Job *j, Program *p) {
    CSizes sizes = c_sizes(p);
    j->wrote_c = true;
    j->c_program = p;
    j->arena = sizes.arena;
    j->alive = sizes.alive;
    j->flash = sizes.weights + sizes.params;
    j->macs = sizes.macs;
    note_floats(j, p);
}

static void tell_threads(const Program *p, int64_t threads, Diags *d) {
    if (threads > 1 && !program_is_split(p))
        diag(d, DIAG_NOTE, LOC_NONE,
             "-threads=%lld: no step that can fall into parts has enough to do for two threads%s",
             (long long)threads,
             p->n_bounds ? " (those whose lengths only a run tells stay whole)" : "");
}

/* What was done is told behind it: a refusal says nothing else. */
bool write_c(Writing *w) {
    const Options *o = &w->s->o;
    const Value *first = open_first(w->m);
    Dim dim = first ? first->type.dims[0] : (Dim){0};
    if (!bind_shapes(w))
        return false;
    module_fold(w->m, NULL); /* shapes that nodes compute are fixed now, too */
    if (o->integer_only && dynamic_scales(w->m, w->s->d))
        return refused(w);
    ProgramOptions po = program_options(w);
    Program *p = build(w, &po);
    if (!p)
        return false;
    find_floats(w->j, p);
    if (!put_c(w, p, &po))
        return false;
    note_sizes(w->j, p);
    tell_threads(p, o->threads, w->s->d);
    if (w->j->kernels)
        own_kernels_tell(p, w->j->kernels, w->s->d);
    if (first)
        tell_first(w->m->arena, first, dim, w->s->d);
    return true;
}
