#include "compiler/without_effect.h"

#include "compiler/steps.h"

#include <assert.h>

/* ---- what options.def says that they go with ---- */

typedef struct OptionUser {
    const Options *o;
#define COMMAND(word, ...) bool word; /* whether it is that command */
#include "compiler/commands.def"
} OptionUser;

static bool is(const char *text, const char *word) {
    return text && strcmp(text, word) == 0;
}

static bool use_emits(const OptionUser *u, const char *kind) {
    return u->compile && is(u->o->emit, kind);
}

static bool use_targets(const OptionUser *u, const char *target) {
    return u->compile && is(u->o->target, target);
}

static bool use_emits_onnx(const OptionUser *u) {
    return use_emits(u, "onnx") || use_emits(u, "qdq") || use_emits(u, "qop");
}

static bool use_reports(const OptionUser *u) {
    return u->compile && (u->o->report || use_emits(u, "html") || use_emits(u, "json"));
}

static bool use_lists(const OptionUser *u, const char *what) {
    return u->list && u->o->inputs.n && is(u->o->inputs.items[0], what);
}

static bool use_holds(OptionUse use, const OptionUser *u) {
    switch (use) {
#define USE(id, words, condition)                                                                  \
    case USE_##id: return condition;
#include "compiler/options.def"
    }
    return true;
}

static OptionUser user_of(const Options *o) {
    return (OptionUser){
        .o = o,
#define COMMAND(word, ...) .word = o->command->id == COMMAND_##word,
#include "compiler/commands.def"
    };
}

bool option_goes_with(const OptionDef *def, const Options *o) {
    OptionUser u = user_of(o);
    return use_holds(def->use, &u);
}

static bool check_use(const Options *o, const OptionDef *def, Diags *d) {
    static const char *const words[] = {
#define USE(id, words, condition) words,
#include "compiler/options.def"
    };
    return option_goes_with(def, o) ||
           diag_error(d, LOC_NONE, "-%s goes with %s", def->name, words[def->use]);
}

static bool check_excluded(const Options *o, const OptionDef *def, Diags *d) {
    const OptionDef *other = option_find(str_from(def->excludes));
    assert(other || !*def->excludes);
    return !other || !option_given(o, other) ||
           diag_error(d, LOC_NONE, "-%s and -%s exclude each other", def->name, other->name);
}

/* What kind of quantization it is about; NULL: it may be that which is asked for. */
static const char *wrong_kind(const Options *o, const OptionDef *def) {
    static const char *const words[] = {[OF_STATIC] = "static quantization",
                                        [OF_MENDING] = "what is decided before the model runs"};
    bool not_dynamic = def->of == OF_STATIC || def->of == OF_MENDING;
    bool wrong = (o->dynamic && not_dynamic) || (o->weight_only && def->of == OF_STATIC);
    return wrong ? words[def->of] : NULL;
}

static bool check_kind(const Options *o, const OptionDef *def, Diags *d) {
    const char *wrong = wrong_kind(o, def);
    if ((def->of == OF_MENDING || def->of == OF_CHANNELS) && o->weight_only &&
        !options_have_data(o))
        return diag_error(d, LOC_NONE, "-%s with -weight-only takes data: -calib=PATH", def->name);
    return !wrong || diag_error(d, LOC_NONE, "-%s is about %s: it does not go with -%s", def->name,
                                wrong, o->weight_only ? "weight-only" : "dynamic");
}

bool option_is_open(const Options *o, const OptionDef *def) {
    bool open = !option_given(o, def) && !wrong_kind(o, def);
    for (size_t i = 0; i < option_count(); i++) {
        const OptionDef *other = option_at(i);
        bool against =
            strcmp(def->excludes, other->name) == 0 || strcmp(other->excludes, def->name) == 0;
        open = open && !(against && option_given(o, other));
    }
    return open;
}

bool options_fit(const Options *o, Diags *d) {
    bool ok = true;
    for (size_t i = 0; i < option_count(); i++) {
        const OptionDef *def = option_at(i);
        if (!option_given(o, def))
            continue;
        ok = check_use(o, def, d) && ok;
        ok = check_excluded(o, def, d) && ok;
        ok = check_kind(o, def, d) && ok;
    }
    if (is(o->io, "float") && o->integer_only)
        ok = diag_error(d, LOC_NONE, "-io=float and -integer-only exclude each other");
    if (o->metric && !*o->metric)
        ok = diag_error(d, LOC_NONE, "-metric wants a value: -metric=CMD");
    if (o->testbench && o->random > TESTBENCH_SAMPLES)
        diag_warning(d, LOC_NONE, "-testbench takes %d samples at most, not the %lld of -random",
                     TESTBENCH_SAMPLES, (long long)o->random);
    for (size_t i = 0; i < o->twice.n; i++)
        diag_warning(d, LOC_NONE, "-%s is given twice: the first has no effect", o->twice.items[i]);
    return ok;
}

/* ---- those that decide, of a model that leaves them nothing to decide ---- */

/* Calls of functions are replaced, but where a model goes out as it came. */
static bool replaces_calls(const Job *j) {
    return j->form != FORM_AS_IS || (j->emit == EMIT_ONNX && job_wants_onnx_alone(j));
}

/* What is more than a recipe. */
static bool file_decides(const Job *j) {
    const SchemeWord *whole = j->file.whole;
    return j->file.n || whole[SCHEME_CALIBRATE].text.s || whole[SCHEME_PLACEMENT].text.s;
}

/* A recipe alone is obeyed by quantized models, and -io=float is what they get anyway. */
static bool decides(const Job *j, const OptionDef *def, bool beside) {
    const Options *o = j->o;
    if (!option_given(o, def) || def->decides == DECIDES_NONE ||
        (def->decides == DECIDES_ALL && !beside))
        return false;
    if (is(def->name, "define"))
        return !replaces_calls(j);
    if (is(def->name, "keep") && j->keeps_unknown)
        return false;
    return is(def->name, "scheme") ? beside || file_decides(j)
                                   : !is(def->name, "io") || j->quant_io;
}

/* The options that decide and were given, as a list; those of ALL models where it is `beside`. */
static Str given(const Job *j, Arena *a, bool beside, size_t *n) {
    Buf names = buf_new(a);
    *n = 0;
    for (size_t i = 0; i < option_count(); i++)
        if (decides(j, option_at(i), beside))
            buf_fmt(&names, "%s-%s", (*n)++ ? ", " : "", option_at(i)->name);
    return buf_as_str(&names);
}

bool warn_of_idle_options(const Job *j, Arena *a) {
    size_t n;
    Str names = given(j, a, false, &n);
    if (!n)
        return true;
    Severity how = options_have_data(j->o) && j->form <= FORM_FLOAT ? DIAG_ERROR : DIAG_WARNING;
    diag(j->d, how, LOC_NONE, "the model is quantized already: %.*s %s nothing%s", STR_ARG(names),
         n > 1 ? "decide" : "decides",
         !options_have_data(j->o) ? ""
         : j->only_floats         ? "; " WRITTEN_IN_FLOATS
         : j->anew ? "; -redecide='*' decides anew, and what -emit=float gives can be quantized"
                   : "; what -emit=float gives can be quantized");
    return how == DIAG_WARNING;
}

void warn_of_nothing_decided(const Job *j, Arena *a) {
    size_t n;
    Str names = given(j, a, true, &n);
    if (n && (j->o->weights_from || j->o->scales_from))
        diag_warning(j->d, LOC_NONE,
                     "-emit=onnx writes the model as it came: %.*s %s no effect; -emit=float takes "
                     "weights, and -emit=qdq, qop, c or qir all that is given",
                     STR_ARG(names), n > 1 ? "have" : "has");
    else if (n)
        diag_warning(j->d, LOC_NONE,
                     "nothing is decided, as nothing was given to decide from: %.*s %s no effect; "
                     "decisions take data (-calib=PATH) or statistics in the model (with "
                     "-form=fake), or else -dynamic or -weight-only",
                     STR_ARG(names), n > 1 ? "have" : "has");
}

void warn_of_idle_rules(const Job *j) {
    static const SchemeRole roles[] = {SCHEME_ACTIVATIONS, SCHEME_IN, SCHEME_OUT, SCHEME_BIAS};
    const Scheme *s = &j->ctx.scheme;
    const char *kind = j->o->dynamic ? "-dynamic" : "-weight-only";
    const char *activations =
        j->o->dynamic ? "activations are uint8 as they come" : "activations stay float";
    if (!j->o->dynamic && !j->o->weight_only)
        return;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < sizeof roles / sizeof *roles; k++) {
            const SchemeSetting *set = &s->rules[i].set[roles[k]];
            if (set->said && set->loc.source) /* -pow2 is about weights too */
                diag_warning(j->d, set->loc, "this has no effect with %s, where %s", kind,
                             roles[k] == SCHEME_BIAS ? "biases stay float" : activations);
        }
    const SchemeWord *calibrate = &s->whole[SCHEME_CALIBRATE];
    if (calibrate->text.s && calibrate->loc.source)
        diag_warning(j->d, calibrate->loc, "this has no effect with %s, where %s", kind,
                     activations);
}
