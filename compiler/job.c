/* The options that concern the pipeline, checked once. */
#include <stdio.h>
#include <stdlib.h>

#include "compiler/library.h"
#include "compiler/own_kernels.h"
#include "compiler/placement.h"
#include "compiler/pipeline.h"
#include "compiler/scheme_flags.h"
#include "frontend/qir/qir_read.h"
#include "frontend/scales/scales_read.h"
#include "passes/recipe.h"

static bool choose(const char *option, const char *text, const char *const *names, size_t n,
                   size_t *index, Diags *d) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, names[i]) == 0) {
            *index = i;
            return true;
        }
    char all[256] = "";
    for (size_t i = 0, used = 0; i < n && used < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s",
                                 i == 0      ? ""
                                 : i + 1 < n ? ", "
                                             : " and ",
                                 names[i]);
    diag_error(d, LOC_NONE, "-%s has no kind '%s'; there %s %s", option,
               diag_name(d, str_from(text)), n == 1 ? "is" : "are", all);
    diag_did_you_mean(d, LOC_NONE, str_from(text), names, n);
    return false;
}

static const struct Emit {
    const char *name;
    Form form, decided;
} emits[] = {
#define EMIT(id, name, file, form, decided) {name, FORM_##form, FORM_##decided},
#include "compiler/pipeline.def"
};
enum { N_EMITS = sizeof emits / sizeof emits[0] };

static bool init_emit(Job *j) {
    const char *names[N_EMITS];
    for (size_t i = 0; i < N_EMITS; i++)
        names[i] = emits[i].name;
    size_t i = 0;
    if (j->o->emit && !choose("emit", j->o->emit, names, N_EMITS, &i, j->d))
        return false;
    j->emit = (EmitKind)i;
    j->form = emits[i].form;
    return true;
}

bool job_writes_beside(const Job *j) {
    return j->emit == EMIT_ONNX && j->o->annotate;
}

/* What shows decisions, where nothing else is asked for. */
static Form form_of_decisions(const Job *j) {
    return job_writes_beside(j) ? FORM_FAKE : emits[j->emit].decided;
}

/* -form=NAME. False after a diagnostic. */
static bool choose_form(Job *j) {
    static const char *const all[] = {
#define FORM(id, name, steps) name,
#include "compiler/pipeline.def"
    };
    const char *names[sizeof all / sizeof *all];
    Form of[sizeof all / sizeof *all];
    size_t n = 0, i = 0;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (all[k]) {
            of[n] = (Form)k;
            names[n++] = all[k];
        }
    if (!choose("form", j->o->form, names, n, &i, j->d))
        return false;
    j->form = of[i];
    return true;
}

static bool init_form(Job *j) {
    if (!init_emit(j))
        return false;
    bool text = j->emit == EMIT_QIR || job_writes_beside(j), onnx = j->emit == EMIT_ONNX;
    if (onnx && (j->o->dynamic || (j->o->weight_only && !j->ctx.annotate_nodes)))
        j->form = FORM_QDQ; /* no data is to come: these are complete */
    if (j->o->dynamic && j->form == FORM_AS_IS)
        j->form = FORM_TRUE; /* decided at run time: there is nothing to edit before */
    if ((options_have_data(j->o) || j->o->weight_only || j->o->explain || j->o->redecide.n ||
         ((j->o->scheme || j->o->scales_from || j->o->weights_from) && text)) &&
        j->form == FORM_AS_IS)
        j->form = form_of_decisions(j);
    return !j->o->form || choose_form(j);
}

static bool check_shown(const char *option, const char *pass, Diags *d) {
    return !pass || strcmp(pass, "all") == 0 || pass_find(pass) || pass_unknown(pass, option, d);
}

/* What is not exact on a processor: only AVX2 is known for it. */
static bool init_processor(Job *j) {
    static const char *const names[] = {"avx2", "vnni", "arm64"};
    size_t i = 1;
    if (j->o->target_cpu && !choose("target-cpu", j->o->target_cpu, names, 3, &i, j->d))
        return false;
    j->ctx.saturates = i == 0;
    return true;
}

/* -annotate[=nodes]: nodes state decisions beside a float model alone. */
static bool check_annotations(const Job *j) {
    const char *text = j->o->annotate;
    static const char *const kinds[] = {"nodes"};
    size_t kind;
    if (text && *text && !choose("annotate", text, kinds, 1, &kind, j->d))
        return false;
    if (!j->ctx.annotate_nodes)
        return true;
    if (j->o->dynamic)
        return diag_error(j->d, LOC_NONE,
                          "-annotate=nodes does not go with -dynamic: what is decided at run time "
                          "cannot be stated");
    return j->emit == EMIT_ONNX ||
           diag_error(j->d, LOC_NONE,
                      "-annotate=nodes goes with -emit=onnx: of -emit=qdq and -emit=qop the nodes "
                      "are quantized themselves");
}

/* What cannot be read is no mistake of usage. */
static bool readable(Job *j, const char *path) {
    if (strcmp(path, "-") == 0)
        return true; /* can be read once only */
    FileMap *file = file_map(path, LOC_NONE, j->d);
    j->unreadable = j->unreadable || !file;
    if (file)
        file_unmap(file);
    return file;
}

/* Nor is what stands in it. */
static bool is_sound(Job *j, bool read) {
    j->faulty_file = j->faulty_file || !read;
    return read;
}

/* -smooth-quant[=ALPHA]. */
static bool init_smoothing(Job *j) {
    const char *text = j->o->smooth_quant;
    char *end = NULL;
    j->ctx.smooth_alpha = text && *text ? strtod(text, &end) : 0.5;
    if (end && (*end || end == text || !(j->ctx.smooth_alpha >= 0 && j->ctx.smooth_alpha <= 1)))
        return diag_error(j->d, LOC_NONE, "-smooth-quant wants a number from 0 to 1, not '%s'",
                          diag_name(j->d, str_from(text)));
    return true;
}

/* -keep=/head/fc -only=Gemm means something; the same of both does not. */
static bool check_kept(const Scheme *flags, Diags *d) {
    bool ok = true;
    for (size_t i = 0; i < flags->n; i++)
        for (size_t k = i + 1; flags->rules[i].of == SCHEME_OP_OR_NODE && k < flags->n; k++) {
            const SchemeRule *x = &flags->rules[i], *y = &flags->rules[k];
            if (y->of == SCHEME_OP_OR_NODE && x->keep != y->keep &&
                strcmp(x->pattern, y->pattern) == 0)
                ok = diag_error(d, LOC_NONE, "%s=%s and %s=%s exclude each other", x->flag,
                                x->pattern, y->flag, y->pattern);
        }
    return ok;
}

/* What decides as the model runs takes data only where something is moved into weights before. */
static bool check_data(const Job *j) {
    const Options *o = j->o;
    bool used = o->smooth_quant || o->equalize;
    if (o->weight_only && o->calib_random >= 0)
        return diag_error(j->d, LOC_NONE,
                          "-weight-only needs no data, and random ones mend nothing: -calib=PATH");
    return !o->dynamic || !options_have_data(o) || used ||
           diag_error(j->d, LOC_NONE, "-dynamic needs no calibration data");
}

/* -target=NAME, or the page of a user's own; NULL after diagnostics. */
static const TargetPage *read_target(Job *j, Arena *a) {
    const char *asked = j->o->target;
    size_t n = target_count();
    const char **names = NEW_ARRAY(a, const char *, n);
    if (target_text(str_from(asked)).s)
        return target_find(a, asked, j->d);
    if (strpbrk(asked, "./")) {
        Str text;
        j->unreadable = !file_text(a, asked, LOC_NONE, j->d, &text);
        const TargetPage *page = j->unreadable ? NULL : target_read(a, j->d, asked, text);
        j->faulty_file = j->faulty_file || (!j->unreadable && !page);
        return page;
    }
    for (size_t i = 0; i < n; i++)
        names[i] = arena_str(a, target_name(i)).s;
    size_t none;
    choose("target", asked, names, n, &none, j->d);
    return NULL;
}

/* Emitted C is a target of its own; what shows decisions can show those for it. */
static bool init_target(Job *j, Arena *a) {
    const char *by_emit = j->emit == EMIT_C ? "c" : j->emit == EMIT_CALIB_TABLE ? "tensorrt" : NULL;
    const TargetPage *asked = j->o->target ? read_target(j, a) : NULL;
    j->ctx.target = asked && !by_emit ? asked : target_find(a, by_emit ? by_emit : "ort-cpu", j->d);
    if (j->o->target && !asked)
        return false;
    if (asked && j->emit == EMIT_C && !asked->forms[TARGET_FORM_C])
        return diag_error(j->d, LOC_NONE, "-emit=c has the target c, not %s", j->o->target);
    if (asked && asked->forms[TARGET_FORM_C] && (j->form >= FORM_QDQ || j->emit == EMIT_ONNX))
        return diag_error(j->d, LOC_NONE,
                          "-target=%s goes with -emit=c and with what shows decisions: qir, "
                          "scheme, overrides, encodings, dot",
                          asked->name);
    return true;
}

/* What is asked for in a form that the target does not take. */
static bool check_target_form(const Job *j) {
    const TargetPage *t = j->ctx.target;
    static const char *const options[N_TARGET_FORMS] = {"-emit=qdq", "-emit=qop", "-dynamic",
                                                        "-weight-only", "-emit=c"};
    const bool asked[N_TARGET_FORMS] = {[TARGET_FORM_QDQ] = j->form == FORM_QDQ,
                                        [TARGET_FORM_QOP] = j->form == FORM_QOP,
                                        [TARGET_FORM_DYNAMIC] = j->o->dynamic,
                                        [TARGET_FORM_WEIGHT_ONLY] = j->o->weight_only};
    for (size_t i = N_TARGET_FORMS; i-- > 0;)
        if (asked[i] && !t->forms[i])
            return t->no_form[i]
                       ? diag_error(j->d, LOC_NONE, "%s", t->no_form[i])
                       : diag_error(j->d, LOC_NONE, "%s does not take %s", t->runtime, options[i]);
    return true;
}

/* What options choose by a word. */
static bool init_words(Job *j) {
    static const char *const kinds[] = {"float", "quant"};
    static const char *const roundings[] = {"exact", "single", "double", "shift"};
    const Options *o = j->o;
    size_t io = 0, rounding = 0;
    bool ok = check_shown("-print-before: ", o->print_before, j->d);
    ok = check_shown("-print-after: ", o->print_after, j->d) && ok;
    if (o->io)
        ok = choose("io", o->io, kinds, 2, &io, j->d) && ok;
    if (o->requant)
        ok = choose("requant", o->requant, roundings, 4, &rounding, j->d) && ok;
    j->rounding = (SumRounding)rounding;
    j->quant_io = io == 1 || o->integer_only;
    return ok;
}

static bool init_library(Job *j, Arena *a) {
    const Options *o = j->o;
    bool ok = true;
    for (size_t i = 0; i < o->define.n; i++)
        ok = readable(j, o->define.items[i]) && ok;
    j->ctx.library = j->unreadable
                         ? NULL
                         : library_open(a, (const char *const *)o->define.items, o->define.n, j->d);
    return j->ctx.library &&
           (!o->explain_match || library_knows(j->ctx.library, o->explain_match)) && ok;
}

/* Of the command line, and of files. What has parameters shows decisions. */
static bool init_rules(Job *j, Arena *a) {
    const Options *o = j->o;
    Diags *d = j->d;
    bool ok = scheme_of_flags(&j->flags, o, a, d);
    ok = recipe_check(j->flags.whole[SCHEME_RECIPE].text, LOC_NONE, "-recipe: ", d) && ok;
    if (o->scales_from && scales_are_json(o->scales_from))
        ok = readable(j, o->scales_from) &&
             is_sound(j, scales_read(a, d, o->scales_from, &j->file)) && ok;
    if (o->scheme)
        ok =
            readable(j, o->scheme) && is_sound(j, qir_read_scheme(a, d, o->scheme, &j->file)) && ok;
    if (j->form == FORM_AS_IS && j->emit != EMIT_ONNX &&
        (scheme_has_parameters(&j->file) || o->scales_from || o->weights_from))
        j->form = form_of_decisions(j);
    return ok;
}

/* What passes are told; the form and the target are settled. */
static void init_context(Job *j) {
    const Options *o = j->o;
    PassContext *c = &j->ctx;
    bool binary =
        j->emit == EMIT_ONNX || j->emit == EMIT_QDQ || j->emit == EMIT_QOP || j->emit == EMIT_FLOAT;
    c->products_alone = o->dynamic || o->weight_only;
    c->weights_alone = o->weight_only;
    c->tie_tables = o->tie_tables;
    c->outliers_alone = !o->equalize && !o->passes;
    c->may_wait = binary && o->weight_only && !o->calib.n && !o->keep_float_weights && !o->report &&
                  !o->verify_each && !o->verify_roundtrip;
    c->keep_float_weights = o->keep_float_weights;
    c->float_biases_stay = j->form == FORM_QDQ;
    c->explain = o->explain;
    c->explain_match = o->explain_match;
    c->input_names = o->input_names;
    c->output_names = o->output_names;
    c->axes = (const char *const *)o->dynamic_axis.items;
    c->n_axes = o->dynamic_axis.n;
    c->no_floats = o->integer_only || c->target->no_floats;
    c->runtime_alone = c->target->n_fusions && (binary || o->target);
    c->float_outputs = !j->quant_io;
    c->keeps_calls = j->form >= FORM_QDQ && binary && !c->no_floats;
    c->newer_refused = binary && j->form != FORM_AS_IS && o->target_opset <= 0;
    c->data = (const char *const *)o->calib.items;
    c->n_data = o->calib.n;
    c->batch = o->batch;
    c->random = o->calib_random < 0 ? 0 : o->calib_random > 0 ? (size_t)o->calib_random : 16;
    j->calib.keep = j->form <= FORM_FLOAT;
}

bool job_init(Job *j, const Options *o, Arena *a, Diags *d) {
    *j = (Job){.o = o, .d = d, .ctx = {.d = d}};
    j->ctx.annotate_nodes = o->annotate && strcmp(o->annotate, "nodes") == 0;
    bool ok = init_form(j);
    ok = init_target(j, a) && ok;
    ok = ok && placement_init(j);
    ok = init_words(j) && ok;
    ok = init_processor(j) && ok;
    ok = check_annotations(j) && ok;
    ok = check_target_form(j) && ok;
    ok = init_library(j, a) && ok;
    ok = init_rules(j, a) && ok;
    ok = own_kernels_read(j, a) && ok;
    init_context(j);
    ok = check_data(j) && ok;
    ok = check_kept(&j->flags, d) && ok;
    ok = init_smoothing(j) && ok;
    int newest = onnx_schema_newest(STR(""));
    if (o->target_opset > newest)
        ok = diag_error(d, LOC_NONE, "-target-opset=%lld: the newest opset qxc knows is %d",
                        (long long)o->target_opset, newest);
    return ok;
}
