/* The options that concern the pipeline, checked once. */
#include <stdlib.h>

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
    diag_error(d, LOC_NONE, "-%s has no kind '%s'", option, text);
    diag_did_you_mean(d, LOC_NONE, str_from(text), names, n);
    return false;
}

static const struct Emit {
    const char *name;
    EmitKind kind;
    Form form;
} emits[] = {
    {"qir", EMIT_QIR, FORM_AS_IS},
    {"onnx", EMIT_ONNX, FORM_AS_IS},
    {"qdq", EMIT_QDQ, FORM_QDQ},
    {"qop", EMIT_QOP, FORM_QOP},
    {"c", EMIT_C, FORM_TRUE},
    {"scheme", EMIT_SCHEME, FORM_AS_IS},
    {"overrides", EMIT_OVERRIDES, FORM_AS_IS},
    {"encodings", EMIT_ENCODINGS, FORM_AS_IS},
    {"calib-table", EMIT_CALIB_TABLE, FORM_AS_IS},
    {"dot", EMIT_DOT, FORM_AS_IS},
    {"html", EMIT_HTML, FORM_QDQ},
    {"json", EMIT_JSON, FORM_QDQ},
};
enum { N_EMITS = sizeof emits / sizeof emits[0] };

static bool init_emit(Job *j) {
    const char *names[N_EMITS];
    for (size_t i = 0; i < N_EMITS; i++)
        names[i] = emits[i].name;
    size_t i = 0;
    if (j->o->emit && !choose("emit", j->o->emit, names, N_EMITS, &i, j->d))
        return false;
    j->emit = emits[i].kind;
    j->form = emits[i].form;
    return true;
}

/* What shows decisions, where nothing else is asked for. ONNX has no words for them but
 * annotations; in a drawing what is integer shows. */
static Form form_of_decisions(const Job *j) {
    if (j->emit == EMIT_ONNX && !j->o->annotate)
        return FORM_FLOAT;
    return j->emit == EMIT_DOT ? FORM_TRUE : FORM_FAKE;
}

static bool init_form(Job *j) {
    static const char *const forms[] = {"float", "fake", "true", "qop"};
    static const Form of_form[] = {FORM_FLOAT, FORM_FAKE, FORM_TRUE, FORM_QOP};
    size_t i = 0;
    if (!init_emit(j))
        return false;
    bool text = j->emit == EMIT_QIR, onnx = j->emit == EMIT_ONNX;
    if ((j->o->dynamic || j->o->weight_only) && onnx)
        j->form = FORM_QDQ; /* no data is to come: these are complete */
    if (j->o->dynamic && j->form == FORM_AS_IS)
        j->form = FORM_TRUE; /* decided at run time: there is nothing to edit before */
    if ((options_have_data(j->o) || j->o->weight_only || j->o->explain ||
         ((j->o->scheme || j->o->scales_from || j->o->weights_from) && text)) &&
        j->form == FORM_AS_IS)
        j->form = form_of_decisions(j);
    if (j->o->annotate && !(onnx || j->emit == EMIT_QDQ || j->emit == EMIT_QOP))
        return diag_error(j->d, LOC_NONE, "-annotate goes with -emit=onnx, qdq or qop");
    if (j->o->form) {
        if (!text && j->emit != EMIT_DOT)
            return diag_error(j->d, LOC_NONE, "-form goes with -emit=qir and dot");
        if (!choose("form", j->o->form, forms, 4, &i, j->d))
            return false;
        j->form = of_form[i];
    }
    return true;
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

/* -smooth-quant[=ALPHA], which is about activations. */
static bool init_smoothing(Job *j) {
    const char *text = j->o->smooth_quant;
    char *end = NULL;
    j->ctx.smooth_alpha = text && *text ? strtod(text, &end) : 0.5;
    if (end && (*end || end == text || !(j->ctx.smooth_alpha >= 0 && j->ctx.smooth_alpha <= 1)))
        return diag_error(j->d, LOC_NONE, "-smooth-quant wants a number from 0 to 1, not '%s'",
                          diag_name(j->d, str_from(text)));
    return true;
}

static bool check_pairs(const Options *o, Diags *d) {
    const struct {
        const char *x, *y;
        bool both;
    } pairs[] = {
        {"dynamic", "weight-only", o->dynamic && o->weight_only},
        {"bias-correction", "no-bias-correction", o->bias_correction && o->no_bias_correction},
        {"adaround", "no-bias-correction", o->adaround && o->no_bias_correction},
        {"per-channel", "per-tensor", o->per_channel && o->per_tensor},
        {"calib", "calib-random", o->calib.n && o->calib_random >= 0},
        {"io=float", "integer-only", o->io && strcmp(o->io, "float") == 0 && o->integer_only},
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].both)
            ok = diag_error(d, LOC_NONE, "-%s and -%s exclude each other", pairs[i].x, pairs[i].y);
    return ok;
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

/* Options that say nothing of the kind of quantization asked for. */
static bool check_kind(Job *j) {
    const Options *o = j->o;
    const char *kind = o->dynamic ? "dynamic" : o->weight_only ? "weight-only" : NULL;
    const struct {
        const char *name;
        bool given, senseless;
        const char *about;
    } options[] = {
        {"recipe", o->recipe, kind, "static quantization"},
        {"activations", o->activations, kind, "static quantization"},
        {"adaround", o->adaround, kind, "static quantization"},
        {"bias-correction", o->bias_correction, kind, "static quantization"},
        {"calib-method", o->calib_method, kind, "static quantization"},
        {"smooth-quant", o->smooth_quant, o->weight_only, "activations"},
        {"equalize", o->equalize, o->weight_only, "activations"},
    };
    bool ok = true, data = options_have_data(o);
    ok = check_pairs(o, j->d);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && options[i].senseless)
            ok = diag_error(j->d, LOC_NONE, "-%s is about %s: it does not go with -%s",
                            options[i].name, options[i].about, kind);
    if (kind && data && (o->weight_only || !(o->smooth_quant || o->equalize)))
        ok = diag_error(j->d, LOC_NONE, "-%s needs no calibration data", kind);
    return check_kept(&j->flags, j->d) && ok;
}

/* Emitted C is a target of its own; what shows decisions can show those for it. */
static bool init_target(Job *j) {
    static const char *const names[] = {"ort-cpu", "onnx", "tensorrt", "aidge", "c"};
    static const Target of_name[] = {TARGET_ORT_CPU, TARGET_ONNX, TARGET_TENSORRT, TARGET_AIDGE,
                                     TARGET_C};
    size_t i = 0;
    if (j->o->target && !choose("target", j->o->target, names, 5, &i, j->d))
        return false;
    Target asked = of_name[i];
    if (j->emit == EMIT_C && j->o->target && asked != TARGET_C)
        return diag_error(j->d, LOC_NONE, "-emit=c has the target c, not %s", j->o->target);
    if (asked == TARGET_C && (j->form >= FORM_QDQ || j->emit == EMIT_ONNX))
        return diag_error(j->d, LOC_NONE,
                          "-target=c goes with -emit=c and with what shows decisions: qir, scheme, "
                          "overrides, encodings, dot");
    j->ctx.target = j->emit == EMIT_C             ? TARGET_C
                    : j->emit == EMIT_CALIB_TABLE ? TARGET_TENSORRT
                                                  : asked;
    return true;
}

bool job_init(Job *j, const Options *o, Arena *a, Diags *d) {
    static const char *const kinds[] = {"float", "quant"};
    static const char *const roundings[] = {"exact", "single", "double", "shift"};
    size_t io = 0, rounding = 0;
    *j = (Job){.o = o, .d = d, .ctx = {.d = d}};
    bool ok = init_form(j);
    ok = init_target(j) && ok;
    ok = check_shown("-print-before: ", o->print_before, d) && ok;
    ok = check_shown("-print-after: ", o->print_after, d) && ok;
    if (o->io)
        ok = choose("io", o->io, kinds, 2, &io, d) && ok;
    if (o->requant)
        ok = choose("requant", o->requant, roundings, 4, &rounding, d) && ok;
    if (o->requant && o->emit && j->emit != EMIT_C)
        ok = diag_error(d, LOC_NONE, "-requant goes with -emit=c, run and compare");
    if (o->weights_file && (j->emit != EMIT_C || !o->output || out_is_device(o->output)))
        ok = diag_error(d, LOC_NONE, "-weights-file goes with -emit=c and -o FILE");
    j->rounding = (SumRounding)rounding;
    ok = init_processor(j) && ok;
    if (j->ctx.target == TARGET_TENSORRT && o->dynamic)
        ok =
            diag_error(d, LOC_NONE,
                       "TensorRT has no parameters computed at run time (-dynamic): give data with "
                       "-calib=PATH");
    else if (j->ctx.target == TARGET_TENSORRT && j->form == FORM_QOP)
        ok = diag_error(d, LOC_NONE,
                        "TensorRT reads QuantizeLinear and DequantizeLinear, no operators on "
                        "integers: -emit=qdq");
    else if (j->ctx.target == TARGET_AIDGE && (o->dynamic || j->form == FORM_QOP))
        ok = diag_error(
            d, LOC_NONE,
            "Aidge runs QuantizeLinear and DequantizeLinear with constant parameters, no "
            "operators on integers: -emit=qdq, without -dynamic");
    j->quant_io = io == 1 || o->integer_only;
    j->ctx.products_alone = o->dynamic || o->weight_only;
    j->ctx.weights_alone = o->weight_only;
    j->ctx.explain = o->explain;
    j->ctx.input_names = o->input_names;
    j->ctx.output_names = o->output_names;
    j->ctx.axes = (const char *const *)o->dynamic_axis.items;
    j->ctx.n_axes = o->dynamic_axis.n;
    j->ctx.no_floats = o->integer_only;
    ok = scheme_of_flags(&j->flags, o, a, d) && ok;
    ok = recipe_check(j->flags.recipe, LOC_NONE, "-recipe: ", d) && ok;
    if (o->scales_from && scales_are_json(o->scales_from))
        ok = readable(j, o->scales_from) && scales_read(a, d, o->scales_from, &j->file) && ok;
    ok = (!o->scheme || (readable(j, o->scheme) && qir_read_scheme(a, d, o->scheme, &j->file))) &&
         ok;
    if (j->form == FORM_AS_IS && j->emit != EMIT_ONNX &&
        (scheme_has_parameters(&j->file) || o->scales_from || o->weights_from))
        j->form = form_of_decisions(j);
    bool binary = j->emit == EMIT_ONNX || j->emit == EMIT_QDQ || j->emit == EMIT_QOP;
    j->ctx.runtime_alone = j->ctx.target == TARGET_ORT_CPU && (binary || o->target);
    j->ctx.float_outputs = !j->quant_io;
    j->ctx.newer_refused = binary && j->form != FORM_AS_IS && o->target_opset <= 0;
    j->ctx.data = (const char *const *)o->calib.items;
    j->ctx.n_data = o->calib.n;
    j->ctx.batch = o->batch;
    j->ctx.random = o->calib_random < 0 ? 0 : o->calib_random > 0 ? (size_t)o->calib_random : 16;
    j->calib.keep = j->form <= FORM_FLOAT;
    ok = check_kind(j) && ok;
    ok = init_smoothing(j) && ok;
    int newest = onnx_schema_newest(STR(""));
    if (o->target_opset > newest)
        ok = diag_error(d, LOC_NONE, "-target-opset=%lld: the newest opset qxc knows is %d",
                        (long long)o->target_opset, newest);
    return ok;
}
