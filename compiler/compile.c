/* qxc INPUT -emit=KIND: read, compile, write. */
#include "backend/c/c.h"
#include "compiler/write_onnx.h"
#include "backend/qir/qir_write.h"
#include "compiler/emit_scales.h"
#include "compiler/emit_scheme.h"
#include "compiler/floats_in_c.h"
#include "compiler/metadata.h"
#include "compiler/mixed.h"
#include "compiler/report.h"
#include "compiler/session.h"
#include "exec/fold.h"
#include "exec/specialise.h"
#include "passes/target/tensorrt.h"

#include <unistd.h>

typedef struct Writing {
    Session *s;
    Job *j;
    Module *m;
    OutFiles *out;
    FILE *file; /* the main output: a staged file or stdout */
} Writing;

/* External data is looked for beside the model: elsewhere it has to become part of it. */
static bool leaves_folder(Writing *w) {
    const char *in = w->s->o.inputs.items[0], *out = w->s->o.output;
    Arena *a = w->m->arena;
    return !out || strcmp(path_dir(a, in), path_dir(a, out)) != 0 || w->s->o.external_data_dir;
}

/* External data is not found from another folder: it becomes part of the text or its blob. */
static void keep_external(Tensor *t, Str name, void *ctx) {
    (void)name;
    (void)ctx;
    if (t->place == TENSOR_EXTERNAL && t->data) {
        t->place = TENSOR_INLINE;
        t->external = (Meta){0};
    }
}

static bool write_qir(Writing *w) {
    if (leaves_folder(w))
        module_each_tensor(w->m, keep_external, NULL);
    const Options *o = &w->s->o;
    QirWriteOptions q = {.elide = o->elide_larger >= 0,
                         .elide_larger = o->elide_larger >= 0 ? (size_t)o->elide_larger : 0};
    if (o->output)
        return qir_write_file(w->m, w->out, o->output, &q);
    qir_write(w->m, stdout, &q);
    return true;
}

static bool write_onnx(Writing *w) {
    OnnxWriteOptions o = {.allow_newer = !w->j->ctx.newer_refused,
                          .inline_external = leaves_folder(w)};
    metadata_put(w->m);
    const char *path = w->s->o.output;
    const char *dir = path ? path_dir(w->m->arena, path) : ".";
    return write_onnx_checked(w->m, w->file, &o, dir, w->s->d);
}

/* "dir/model.h" beside "dir/model.c" or what C++ is called. */
static const char *path_beside(Arena *a, const char *path, const char *end) {
    static const char *const suffixes[] = {".c", ".cc", ".cpp", ".cxx", ".c++"};
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (str_ends(str_from(path), suffixes[i]) && strlen(suffixes[i]) < strlen(path))
            n = strlen(path) - strlen(suffixes[i]);
    return arena_strf(a, "%.*s%s", (int)n, path, end).s;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
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
        ok = runner_run(r, w->s->d);
        const void **i = NEW_ARRAY(a, const void *, p->n_inputs);
        const void **out = NEW_ARRAY(a, const void *, p->n_outputs);
        for (size_t k = 0; k < p->n_inputs; k++)
            i[k] = arena_copy(a, runner_input(r, k), p->buffers[p->inputs[k]].bytes);
        for (size_t k = 0; k < p->n_outputs; k++)
            out[k] = arena_copy(a, runner_output(r, k), p->buffers[p->outputs[k]].bytes);
        CTest t = {i, out};
        ARENA_PUSH(a, tests, n, cap, t);
    }
    ok = ok && samples_ok(in);
    if (n == TESTBENCH_SAMPLES && o->input.n)
        diag(w->s->d, DIAG_REMARK, LOC_NONE, "-testbench takes the first %d samples",
             TESTBENCH_SAMPLES);
    samples_close(in);
    c->tests = tests;
    c->n_tests = n;
    return ok;
}

/* The header, and the weights where they have a file of their own. */
static bool open_beside(Writing *w, CWriteOptions *c, CStreams *to) {
    const Options *o = &w->s->o;
    const char *h = path_beside(w->m->arena, o->output, ".h");
    c->header_name = base_name(h);
    if (strpbrk(c->header_name, "\"\\\n\r"))
        return diag_error(w->s->d, LOC_NONE,
                          "C cannot include a header of the name '%s': choose another -o",
                          diag_name(w->s->d, str_from(c->header_name)));
    if (!(to->header = out_open(w->out, h)))
        return false;
    if (!o->weights_file)
        return true;
    const char *path = path_beside(w->m->arena, o->output, ".weights.bin");
    c->weights_name = base_name(path);
    return (to->weights = out_open(w->out, path)) != NULL;
}

typedef struct Reasons {
    const Job *job;
    Uses *uses;
} Reasons;

static const char *why_float(const Node *n, void *ctx) {
    const Reasons *r = ctx;
    return report_node(r->job, n, r->uses).why;
}

/* The graph input whose open first dimension becomes 1: C takes a batch one by one. */
static const Value *open_batch(const Module *m) {
    for (size_t i = 0; i < m->graph->n_in; i++) {
        const Value *v = m->graph->in[i];
        if (v->type.kind == TYPE_TENSOR && v->type.rank > 0 && v->type.dims[0].value < 0)
            return v;
    }
    return NULL;
}

static void tell_batch(const Value *v, Str dim, Diags *d) {
    const char *name = diag_name(d, v->name);
    if (dim.s)
        diag(d, DIAG_NOTE, LOC_NONE,
             "graph input %s: its first dimension %s is 1 in C; -bind=%s=... fixes another", name,
             diag_name(d, dim), diag_name(d, dim));
    else
        diag(d, DIAG_NOTE, LOC_NONE,
             "graph input %s: its first dimension is 1 in C; -shape=INPUT=... fixes another", name);
}

static bool write_c(Writing *w) {
    const Options *o = &w->s->o;
    const Value *batch = open_batch(w->m);
    Str dim = batch ? batch->type.dims[0].param : STR_NONE;
    if (!module_bind_batch(w->m, w->s->d) || !module_check_static(w->m, w->s->d))
        return false;
    module_fold(w->m, NULL); /* shapes that nodes compute are fixed now, too */
    Program *p = program_build(w->m, &(ProgramOptions){.rounding = w->j->rounding}, w->s->d);
    if (!p)
        return false;
    Reasons reasons = {w->j, o->integer_only ? uses_new(w->m) : NULL};
    CWriteOptions c = {
        .integer_only = o->integer_only, .why_float = why_float, .why_ctx = &reasons};
    CStreams to = {.source = w->file};
    if (o->output && !out_is_device(o->output) && !open_beside(w, &c, &to))
        return false;
    c.prefix = o->name ? str_from(o->name)
                       : path_stem(w->m->arena, o->output ? o->output : o->inputs.items[0]);
    if (o->testbench && !make_tests(w, p, &c))
        return false;
    CSizes sizes = c_sizes(p);
    w->j->wrote_c = true;
    w->j->arena = sizes.arena;
    w->j->alive = sizes.alive;
    w->j->flash = sizes.weights + sizes.params;
    w->j->macs = sizes.macs;
    if (!c_write(p, &c, to, w->s->d))
        return false;
    note_floats(w->j, p);
    if (batch)
        tell_batch(batch, dim, w->s->d);
    return true;
}

/* What is a text of its own, made in memory; NULL for the others. */
static Str text_of(Writing *w) {
    Job *j = w->j;
    switch (j->emit) {
    case EMIT_SCHEME: return scheme_text(j, w->m);
    case EMIT_OVERRIDES: return scales_text(j, w->m, false);
    case EMIT_ENCODINGS: return scales_text(j, w->m, true);
    case EMIT_DOT: return dot_text(j, w->m);
    case EMIT_HTML: return report_text(w->s, j, w->m, true);
    case EMIT_JSON: return report_text(w->s, j, w->m, false);
    case EMIT_CALIB_TABLE: return tensorrt_calib_table(w->m, j->d);
    default: return STR_NONE;
    }
}

static bool write_text(Writing *w) {
    Str text = text_of(w);
    if (text.s)
        fwrite(text.s, 1, text.n, w->file);
    return text.s != NULL;
}

static bool is_binary(const Job *j) {
    return j->emit == EMIT_ONNX || j->emit == EMIT_QDQ || j->emit == EMIT_QOP;
}

/* Whether what was written has arrived is told by out_commit, and of standard output by main. */
ExitCode session_write(Session *s, Job *j, Module *m) {
    s->out = out_new(s->arena, s->d, !s->o.no_sync);
    Writing w = {s, j, m, s->out, stdout};
    bool is_qir = j->emit == EMIT_QIR;
    FILE *report = NULL;
    if ((s->o.output && !is_qir && !(w.file = out_open(w.out, s->o.output))) ||
        (s->o.report && !(report = out_open(w.out, s->o.report)))) {
        out_abort(w.out);
        return EXIT_IO;
    }
    bool ok = is_qir              ? write_qir(&w)
              : j->emit == EMIT_C ? write_c(&w)
              : is_binary(j)      ? write_onnx(&w)
                                  : write_text(&w);
    bool failed = is_qir && !ok; /* at opening a file */
    j->opset = module_opset(m, STR(""));
    ok = ok && (!report || report_write(s, j, m, report));
    if (!ok || diags_errors(s->d)) {
        out_abort(w.out);
        return failed ? EXIT_IO : EXIT_WRONG;
    }
    return out_commit(w.out) && !ferror(stdout) ? EXIT_DONE : EXIT_IO;
}

/* A suffix that belongs to another kind of output is most likely a slip. */
void session_check_suffix(Session *s, const Job *j) {
    const char *emit = s->o.emit ? s->o.emit : "qir", *o = s->o.output;
    bool text = j->emit == EMIT_QIR, onnx = is_binary(j);
    if (o &&
        ((!onnx && str_ends(str_from(o), ".onnx")) || (!text && str_ends(str_from(o), ".qir"))))
        diag_warning(s->d, LOC_NONE, "-emit=%s writes to %s: is the suffix right?", emit,
                     diag_name(s->d, str_from(o)));
}

typedef struct ValueSearch {
    Str name;
    const Value *found;
    const Node *node; /* of this name, or that one of this name became part of */
    Arena *arena;
    const char **names;
    size_t n, cap;
} ValueSearch;

static void look_for_value(Value *v, void *ctx) {
    ValueSearch *s = ctx;
    if (str_eq(v->name, s->name))
        s->found = v;
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

/* The answer is the product where nothing else was asked for. */
static ExitCode explain(const Job *j, Module *m, FILE *out) {
    const PassContext *c = &j->ctx;
    if (!c->explain)
        return EXIT_DONE;
    if (c->explanation.s) {
        fwrite(c->explanation.s, 1, c->explanation.n, out);
        return EXIT_DONE;
    }
    ValueSearch search = {.name = str_from(c->explain), .arena = m->arena};
    module_each_value(m, look_for_value, &search);
    if (!search.found)
        return no_such_value(j, m, &search);
    fprintf(out, "%s: %s\n  stated by the model: nothing was decided here\n",
            diag_name(j->d, search.name), type_text(m->arena, search.found->type));
    return EXIT_DONE;
}

ExitCode job_init_failure(const Job *j) {
    return j->unreadable ? EXIT_IO : EXIT_USAGE;
}

/* Told before minutes of calibration. */
static bool outputs_can_be_written(Session *s) {
    const char *paths[] = {s->o.output, s->o.report};
    bool ok = true;
    for (size_t i = 0; i < 2; i++)
        ok = (!paths[i] || out_check(s->arena, paths[i], s->d)) && ok;
    return ok;
}

ExitCode cmd_compile(Session *s) {
    Job j;
    if (!job_init(&j, &s->o, s->arena, s->d))
        return job_init_failure(&j);
    session_check_suffix(s, &j);
    if (s->o.report && !str_ends(str_from(s->o.report), ".html") &&
        !str_ends(str_from(s->o.report), ".json")) {
        diag_error(s->d, LOC_NONE, "-report=%s: the file's name ends in .html or .json",
                   diag_name(s->d, str_from(s->o.report)));
        return EXIT_USAGE;
    }
    if (is_binary(&j) && !s->o.output && isatty(STDOUT_FILENO)) {
        diag_error(s->d, LOC_NONE, "binary output does not go to a terminal: use -o FILE");
        return EXIT_USAGE;
    }
    if (!outputs_can_be_written(s))
        return EXIT_IO;
    ExitCode code = mixed_wanted(&s->o) ? mixed_decide(s, &j) : EXIT_DONE;
    if (code != EXIT_DONE)
        return code;
    Module *m = session_read(s, 0, &code);
    if (!m || !session_read_donors(s, &j, &code))
        return code;
    j.external[0] = external_bytes(m);
    if (!job_compile(&j, m))
        return j.ctx.misused ? EXIT_USAGE : EXIT_WRONG;
    if (j.nothing)
        diag_warning(
            s->d, LOC_NONE, "nothing was quantized: the result is the float model%s",
            scheme_has_parameters(&j.ctx.scheme)
                ? "; the parameters that the rules state are not of all operands of a node: "
                  "rules about weights go with -weight-only, -dynamic or -calib=PATH"
                : "");
    if (s->o.verify_roundtrip && !roundtrip_check(m, s->d))
        return EXIT_WRONG;
    bool only_told = j.o->explain && !j.o->emit && !j.o->output;
    code = explain(&j, m, only_told ? stdout : stderr);
    if (code != EXIT_DONE || only_told)
        return code;
    j.rounded_products = report_rounded(&j, m);
    j.external[1] = external_bytes(m);
    code = session_write(s, &j, m);
    if (code == EXIT_DONE && !s->o.quiet)
        summary_print(&j, m, s->o.inputs.items[0], s->o.output);
    return code;
}
