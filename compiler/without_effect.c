#include "compiler/without_effect.h"

bool warn_of_idle_options(const Job *j, Arena *a) {
    const Options *o = j->o;
    const struct {
        const char *name;
        bool given;
    } options[] = {
        {"calib", o->calib.n},
        {"calib-random", o->calib_random >= 0},
        {"calib-method", o->calib_method},
        {"scheme", o->scheme && j->file.n}, /* a recipe alone is obeyed */
        {"scales-from", o->scales_from},
        {"weights", o->weights},
        {"activations", o->activations},
        {"per-channel", o->per_channel},
        {"per-tensor", o->per_tensor},
        {"pow2", o->pow2},
        {"reduce-range", o->reduce_range},
        {"dynamic", o->dynamic},
        {"weight-only", o->weight_only},
        {"keep", o->keep.n},
        {"only", o->only.n},
        {"equalize", o->equalize},
        {"smooth-quant", o->smooth_quant},
        {"adaround", o->adaround},
        {"bias-correction", o->bias_correction},
        {"no-bias-correction", o->no_bias_correction},
    };
    size_t n = 0;
    Buf names = buf_new(a);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given)
            buf_fmt(&names, "%s-%s", n++ ? ", " : "", options[i].name);
    if (!n)
        return true;
    Severity how = options_have_data(o) && j->form <= FORM_FLOAT ? DIAG_ERROR : DIAG_WARNING;
    diag(j->d, how, LOC_NONE, "the model is quantized already: %.*s %s no effect",
         STR_ARG(buf_as_str(&names)), n > 1 ? "have" : "has");
    return how == DIAG_WARNING;
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
