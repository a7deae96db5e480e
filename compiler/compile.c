/* qxc INPUT -emit=KIND: read, compile, write. */
#include "compiler/explain.h"
#include "compiler/external.h"
#include "compiler/in_place.h"
#include "compiler/mixed.h"
#include "compiler/preset.h"
#include "compiler/report.h"
#include "compiler/search.h"
#include "compiler/suffix.h"
#include "compiler/write.h"

#include <unistd.h>

static void look_for_maker(Value *v, void *ctx) {
    PassContext *c = ctx;
    if (str_is(v->name, c->explain))
        c->explain_node = v->def;
}

ExitCode job_init_failure(const Job *j) {
    return j->unreadable ? EXIT_IO : j->faulty_file ? EXIT_WRONG : EXIT_USAGE;
}

ExitCode job_failure(const Job *j) {
    return j->ctx.misused ? EXIT_USAGE : EXIT_WRONG;
}

/* Told before minutes of calibration. */
static bool outputs_can_be_written(Session *s) {
    const char *paths[] = {s->o.output, s->o.report, s->o.search_scheme};
    bool ok = true;
    for (size_t i = 0; i < 3; i++)
        ok = (!paths[i] || out_check(s->arena, paths[i], s->d)) && ok;
    return ok;
}

/* What the command line says of outputs, before any work. */
static bool outputs_fit(Session *s, const Job *j) {
    const char *report = s->o.report;
    if (!s->o.in_place && !suffix_fits(&s->o, j->emit, s->d))
        return false;
    if (report && !str_ends(str_from(report), ".html") && !str_ends(str_from(report), ".json"))
        return diag_error(s->d, LOC_NONE, "-report=%s: the file's name ends in .html or .json",
                          diag_name(s->d, str_from(report)));
    if (emits_binary(j) && !s->o.output && isatty(STDOUT_FILENO))
        return diag_error(s->d, LOC_NONE, "binary output does not go to a terminal: use -o FILE");
    return external_fits(s) && in_place_loses_nothing(s);
}

/* Reads the model and makes of it what is to be written; NULL after an error. */
static Module *compile(Session *s, Job *j, ExitCode *code) {
    Module *m = session_read(s, 0, code);
    if (!m || !session_read_donors(s, j, code))
        return NULL;
    *code = EXIT_USAGE;
    if (!in_place_fits(s))
        return NULL;
    j->external[0] = external_bytes(m, true);
    j->same_format = !s->is_text && emits_binary(j);
    if (j->ctx.explain)
        module_each_value(m, look_for_maker, &j->ctx);
    const char *functions = in_place_functions(s, m);
    bool ok = job_compile(j, m);
    if (ok)
        in_place_tell_functions(s, m, functions);
    *code = ok ? EXIT_DONE : job_failure(j);
    return ok ? m : NULL;
}

static void warn_of_nothing(const Job *j) {
    if (j->nothing)
        diag_warning(
            j->d, LOC_NONE, "nothing was quantized: the result is the float model%s",
            scheme_has_parameters(&j->ctx.scheme)
                ? "; the parameters that the rules state are not of all operands of a node: "
                  "rules about weights go with -weight-only, -dynamic or -calib=PATH"
                : "");
}

ExitCode cmd_compile(Session *s) {
    Job j;
    ExitCode preset = preset_apply(s);
    if (preset != EXIT_DONE)
        return preset;
    if (!job_init(&j, &s->o, s->arena, s->d))
        return job_init_failure(&j);
    if (!outputs_fit(s, &j))
        return EXIT_USAGE;
    if (!outputs_can_be_written(s))
        return EXIT_IO;
    s->refuses_unknown = job_lowers(&j);
    ExitCode code = s->o.search ? search_decide(s, &j) : EXIT_DONE;
    if (code == EXIT_DONE && mixed_wanted(&s->o))
        code = mixed_decide(s, &j);
    if (code != EXIT_DONE)
        return code;
    j.measures = !s->o.quiet || s->o.sqnr_metadata;
    Module *m = compile(s, &j, &code);
    if (!m)
        return code;
    warn_of_nothing(&j);
    if (s->o.sqnr_metadata && !j.measured)
        diag_warning(s->d, LOC_NONE, "-sqnr-metadata has no effect: nothing was measured%s%s",
                     j.unmeasured ? ", as " : "; it takes a model that is quantized by -calib=PATH",
                     j.unmeasured ? j.unmeasured : "");
    if (s->o.verify_roundtrip && !roundtrip_check(m, &s->o, s->d))
        return EXIT_WRONG;
    bool only_told = j.o->explain && !j.o->emit && !j.o->output;
    diags_flush(s->d);
    code = explain_print(&j, m, only_told ? stdout : stderr);
    if (code != EXIT_DONE || only_told)
        return code;
    j.rounded_products = report_rounded(&j, m);
    code = session_write(s, &j, m);
    if (code == EXIT_DONE && !s->o.quiet)
        summary_print(&j, m, s->out, s->o.inputs.items[0], s->o.output);
    if (code == EXIT_DONE)
        in_place_tell_left(s, m);
    return code;
}
