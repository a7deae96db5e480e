#include "compiler/without_effect.h"

bool options_fit(const Options *o, Diags *d) {
    const char *c = o->command, *listed = o->inputs.n ? o->inputs.items[0] : "";
    bool compile = !*c, run = strcmp(c, "run") == 0, compare = strcmp(c, "compare") == 0,
         list = strcmp(c, "list") == 0, reduce = strcmp(c, "reduce") == 0,
         to_c = compile && o->emit && strcmp(o->emit, "c") == 0,
         for_c = to_c || (compile && o->target && strcmp(o->target, "c") == 0),
         to_onnx = compile && o->emit &&
                   (strcmp(o->emit, "onnx") == 0 || strcmp(o->emit, "qdq") == 0 ||
                    strcmp(o->emit, "qop") == 0),
         reports = compile && (o->report || (o->emit && (strcmp(o->emit, "html") == 0 ||
                                                         strcmp(o->emit, "json") == 0)));
    const struct {
        const char *name;
        bool given, fits;
        const char *with;
    } options[] = {
        {"o", o->output, !list && !compare, "what writes a file: compare and list print"},
        {"testbench", o->testbench, to_c, "-emit=c"},
        {"name", o->name, to_c, "-emit=c"},
        {"integer-only", o->integer_only, for_c, "-emit=c (and -target=c, which shows decisions)"},
        {"input", o->input.n, run || compare || o->testbench || reports,
         "run, compare, -testbench and -report"},
        {"random", o->random >= 0, run || compare || o->testbench, "run, compare and -testbench"},
        {"all-values", o->all_values, run, "run"},
        {"ignore-quant", o->ignore_quant, run || compare, "run and compare"},
        {"min-sqnr", o->min_sqnr, compile || compare, "compiling and compare"},
        {"max-drop", o->max_drop, compile, "compiling, not with commands"},
        {"labels", o->labels, compile, "-max-drop"},
        {"external-data", o->external_data, to_onnx || reduce,
         "-emit=onnx, qdq and qop, and reduce"},
        {"test", o->test, reduce, "reduce"},
        {"timeout", o->timeout >= 0, reduce, "reduce"},
        {"set", o->set.n, compile || run || compare, "compiling, run and compare"},
        {"json", o->json, compare || (list && strcmp(listed, "ops") == 0), "list ops and compare"},
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && !options[i].fits)
            ok = diag_error(d, LOC_NONE, "-%s goes with %s", options[i].name, options[i].with);
    if (o->input.n && o->random >= 0)
        ok = diag_error(d, LOC_NONE, "-input and -random exclude each other");
    if (o->random == 0)
        ok = diag_error(d, LOC_NONE, "-random=N takes 1 sample or more, not 0");
    if (o->testbench && o->random > TESTBENCH_SAMPLES)
        diag_warning(d, LOC_NONE, "-testbench takes %d samples at most, not the %lld of -random",
                     TESTBENCH_SAMPLES, (long long)o->random);
    for (size_t i = 0; i < o->twice.n; i++)
        diag_warning(d, LOC_NONE, "-%s is given twice: the first has no effect", o->twice.items[i]);
    return ok;
}

/* The options that decide and were given, as a list; those `beside` have an effect on a model that
 * is quantized already. */
static Str given(const Job *j, Arena *a, bool beside, size_t *n) {
    const Options *o = j->o;
    const struct {
        const char *name;
        bool given, beside;
    } options[] = {
        {"calib", o->calib.n, false},
        {"calib-random", o->calib_random >= 0, false},
        {"calib-method", o->calib_method, false},
        {"scheme", o->scheme && (beside || j->file.n), false}, /* a recipe alone is obeyed */
        {"scales-from", o->scales_from, false},
        {"weights-from", o->weights_from, true},
        {"weights", o->weights, false},
        {"activations", o->activations, false},
        {"per-channel", o->per_channel, false},
        {"per-tensor", o->per_tensor, false},
        {"pow2", o->pow2, false},
        {"reduce-range", o->reduce_range, false},
        {"dynamic", o->dynamic, false},
        {"weight-only", o->weight_only, false},
        {"keep", o->keep.n, false},
        {"only", o->only.n, false},
        {"equalize", o->equalize, false},
        {"smooth-quant", o->smooth_quant, false},
        {"adaround", o->adaround, false},
        {"bias-correction", o->bias_correction, false},
        {"no-bias-correction", o->no_bias_correction, false},
        {"recipe", o->recipe, true},
        {"io", j->quant_io && o->io, true},
        {"requant", o->requant, true},
        {"integer-only", o->integer_only, true},
    };
    Buf names = buf_new(a);
    *n = 0;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && (beside || !options[i].beside))
            buf_fmt(&names, "%s-%s", (*n)++ ? ", " : "", options[i].name);
    return buf_as_str(&names);
}

bool warn_of_idle_options(const Job *j, Arena *a) {
    size_t n;
    Str names = given(j, a, false, &n);
    if (!n)
        return true;
    Severity how = options_have_data(j->o) && j->form <= FORM_FLOAT ? DIAG_ERROR : DIAG_WARNING;
    diag(j->d, how, LOC_NONE, "the model is quantized already: %.*s %s no effect", STR_ARG(names),
         n > 1 ? "have" : "has");
    return how == DIAG_WARNING;
}

void warn_of_nothing_decided(const Job *j, Arena *a) {
    size_t n;
    Str names = given(j, a, true, &n);
    if (n)
        diag_warning(j->d, LOC_NONE,
                     "nothing is decided, as nothing was given to decide from: %.*s %s no effect; "
                     "decisions take data (-calib=PATH) or statistics in the model (with "
                     "-form=fake), or else -dynamic or -weight-only",
                     STR_ARG(names), n > 1 ? "have" : "has");
}

void warn_of_idle_rules(const Job *j) {
    static const SchemeRole roles[] = {SCHEME_ACTIVATIONS, SCHEME_IN, SCHEME_OUT};
    const Scheme *s = &j->ctx.scheme;
    if (!j->o->dynamic && !j->o->weight_only)
        return;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < sizeof roles / sizeof *roles; k++) {
            const SchemeSetting *set = &s->rules[i].set[roles[k]];
            if (set->said && set->loc.source) /* -pow2 is about weights too */
                diag_warning(j->d, set->loc, "this has no effect with %s",
                             j->o->dynamic ? "-dynamic, where activations are uint8 as they come"
                                           : "-weight-only, where activations stay float");
        }
}
