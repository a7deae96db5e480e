/* qxc INPUT -emit=KIND: read, compile, write; -explain. */
#include "compiler/external.h"
#include "compiler/in_place.h"
#include "compiler/mixed.h"
#include "compiler/report.h"
#include "compiler/suffix.h"
#include "compiler/write.h"

#include <unistd.h>

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
    return j->unreadable ? EXIT_IO : j->faulty_file ? EXIT_WRONG : EXIT_USAGE;
}

ExitCode job_failure(const Job *j) {
    return j->ctx.misused ? EXIT_USAGE : EXIT_WRONG;
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
    if (!s->o.in_place && !suffix_fits(&s->o, j.emit, s->d))
        return EXIT_USAGE;
    if (s->o.report && !str_ends(str_from(s->o.report), ".html") &&
        !str_ends(str_from(s->o.report), ".json")) {
        diag_error(s->d, LOC_NONE, "-report=%s: the file's name ends in .html or .json",
                   diag_name(s->d, str_from(s->o.report)));
        return EXIT_USAGE;
    }
    if (emits_binary(&j) && !s->o.output && isatty(STDOUT_FILENO)) {
        diag_error(s->d, LOC_NONE, "binary output does not go to a terminal: use -o FILE");
        return EXIT_USAGE;
    }
    if (!external_fits(s) || !in_place_loses_nothing(s))
        return EXIT_USAGE;
    if (!outputs_can_be_written(s))
        return EXIT_IO;
    ExitCode code = mixed_wanted(&s->o) ? mixed_decide(s, &j) : EXIT_DONE;
    if (code != EXIT_DONE)
        return code;
    j.measures = !s->o.quiet;
    Module *m = session_read(s, 0, &code);
    if (!m || !session_read_donors(s, &j, &code))
        return code;
    if (!in_place_fits(s))
        return EXIT_USAGE;
    j.external[0] = external_bytes(m, true);
    j.same_format = !s->is_text && emits_binary(&j);
    if (!job_compile(&j, m))
        return job_failure(&j);
    if (j.nothing)
        diag_warning(
            s->d, LOC_NONE, "nothing was quantized: the result is the float model%s",
            scheme_has_parameters(&j.ctx.scheme)
                ? "; the parameters that the rules state are not of all operands of a node: "
                  "rules about weights go with -weight-only, -dynamic or -calib=PATH"
                : "");
    if (s->o.verify_roundtrip && !roundtrip_check(m, &s->o, s->d))
        return EXIT_WRONG;
    bool only_told = j.o->explain && !j.o->emit && !j.o->output;
    code = explain(&j, m, only_told ? stdout : stderr);
    if (code != EXIT_DONE || only_told)
        return code;
    j.rounded_products = report_rounded(&j, m);
    code = session_write(s, &j, m);
    if (code == EXIT_DONE && !s->o.quiet)
        summary_print(&j, m, s->out, s->o.inputs.items[0], s->o.output);
    return code;
}
