/* The options that concern the pipeline, checked once. */
#include <stdlib.h>

#include "compiler/pipeline.h"

/* One word of the rest: sym, asym, or where `block` is given block(N). */
static bool parse_word(const char *word, size_t n, bool *symmetric, int64_t *block) {
    Str s = {word, n};
    if (str_eq(s, STR("sym")) || str_eq(s, STR("asym"))) {
        *symmetric = n == 3;
        return true;
    }
    char *end;
    if (!block || n < 8 || strncmp(word, "block(", 6) || word[n - 1] != ')')
        return false;
    *block = strtoll(word + 6, &end, 10);
    return end == word + n - 1 && *block > 0 && *block <= INT32_MAX;
}

/* "int8 sym", "uint8", "int4q asym block(32)". */
static bool parse_storage(const char *option, const char *text, ElemType *e, bool *symmetric,
                          int64_t *block, Diags *d) {
    size_t n = strcspn(text, " ");
    Str name = {text, n};
    if (n > 1 && text[n - 1] == 'q')
        name.n--;
    const char *rest = text + n + strspn(text + n, " ");
    ElemType t = elem_from_name(name);
    if (!elem_is_int(t) || elem_bits(t) > 32)
        return diag_error(d, LOC_NONE, "-%s wants an integer type of at most 32 bits, not '%s'",
                          option, text);
    *e = t;
    for (; *rest; rest += n + strspn(rest + n, " ")) {
        n = strcspn(rest, " ");
        if (!parse_word(rest, n, symmetric, block))
            return diag_error(d, LOC_NONE, "-%s: '%.*s' is neither sym nor asym%s", option, (int)n,
                              rest, block ? " nor block(N)" : "");
    }
    return true;
}

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

static bool init_form(Job *j) {
    static const char *const emits[] = {"qir", "onnx", "qdq", "qop", "c"};
    static const Form of_emit[] = {FORM_AS_IS, FORM_AS_IS, FORM_QDQ, FORM_QOP, FORM_TRUE};
    static const char *const forms[] = {"float", "fake", "true", "qop"};
    static const Form of_form[] = {FORM_FLOAT, FORM_FAKE, FORM_TRUE, FORM_QOP};
    bool data = j->o->calib.n || j->o->calib_random >= 0;
    size_t i = 0;
    if (j->o->emit && !choose("emit", j->o->emit, emits, 5, &i, j->d))
        return false;
    j->form = of_emit[i];
    j->wants_onnx = i == 1;
    if (i == 4)
        j->ctx.target = TARGET_C;
    if ((data || j->o->weight_only) && j->form == FORM_AS_IS)
        /* ONNX has no words for decisions but annotations */
        j->form = j->wants_onnx && !j->o->weight_only && !j->o->annotate ? FORM_FLOAT : FORM_FAKE;
    if (j->o->annotate && (i < 1 || i > 3))
        return diag_error(j->d, LOC_NONE, "-annotate goes with -emit=onnx, qdq or qop");
    if (j->o->form) {
        if (i != 0)
            return diag_error(j->d, LOC_NONE, "-form goes with -emit=qir");
        if (!choose("form", j->o->form, forms, 4, &i, j->d))
            return false;
        j->form = of_form[i];
    }
    return true;
}

bool job_init(Job *j, const Options *o, Diags *d) {
    static const char *const targets[] = {"ort-cpu", "onnx"}, *const kinds[] = {"float", "quant"};
    size_t target = 0, io = 0;
    *j = (Job){.o = o, .d = d, .ctx = {.d = d}};
    bool ok = init_form(j);
    if (o->target)
        ok = choose("target", o->target, targets, 2, &target, d) && ok;
    if (o->io)
        ok = choose("io", o->io, kinds, 2, &io, d) && ok;
    if (j->ctx.target != TARGET_C)
        j->ctx.target = target ? TARGET_ONNX : TARGET_ORT_CPU;
    j->quant_io = io == 1 || o->integer_only;
    QuantOptions *q = &j->ctx.quant;
    *q = (QuantOptions){.activations = j->ctx.target == TARGET_C ? ELEM_INT8 : ELEM_UINT8,
                        .weights = ELEM_INT8,
                        .weight_symmetric = true,
                        .per_channel = !o->per_tensor,
                        .pow2 = o->pow2,
                        .reduce_range = o->reduce_range,
                        .no_floats = o->integer_only,
                        .keep = o->keep.items,
                        .n_keep = o->keep.n,
                        .only = o->only.items,
                        .n_only = o->only.n};
    if (o->activations)
        ok = parse_storage("activations", o->activations, &q->activations, &q->act_symmetric, NULL,
                           d) &&
             ok;
    if (o->weights)
        ok =
            parse_storage("weights", o->weights, &q->weights, &q->weight_symmetric, &q->block, d) &&
            ok;
    if (o->calib_method && !calib_parse(str_from(o->calib_method), &j->calib))
        ok = diag_error(d, LOC_NONE,
                        "-calib-method is minmax, moving-average, moving-average=K with K above 0 "
                        "and up to 1, percentile=P with P above 50 and up to 100, entropy or mse, "
                        "not '%s'",
                        o->calib_method);
    j->calib.symmetric = q->act_symmetric;
    j->calib.levels = (int64_t)1 << elem_bits(q->activations);
    j->calib.keep = j->form <= FORM_FLOAT;
    if (o->target_opset > 28)
        ok = diag_error(d, LOC_NONE, "-target-opset=%lld: the newest opset qxc knows is 28",
                        (long long)o->target_opset);
    return ok;
}
