#include "compiler/preset.h"

#include "compiler/without_effect.h"
#include "frontend/qir/qir_read.h"
#include "passes/quantize/rules.h"

typedef struct Preset {
    const char *options, *rules;
    NetworkPart part;
    const char *rule; /* of each node of the part */
} Preset;

static const Preset presets[N_NETWORKS] = {
#define PRESET(id, options, rules, part, rule) [NETWORK_##id] = {options, rules, PART_##part, rule},
#include "compiler/preset.def"
};

static const char *const part_words[] = {
    [PART_NONE] = "",
    [PART_LAST] = "the last layers",
    [PART_TAIL] = "what stands behind the last layers",
};

/* ---- which one ---- */

static const char *const automatic = "auto";

static bool find(Session *s, NetworkKind *k) {
    const char *names[N_NETWORKS + 1] = {automatic}, *asked = s->o.preset;
    for (size_t i = 0; i < N_NETWORKS; i++)
        names[i + 1] = network_name((NetworkKind)i);
    *k = network_find(asked);
    if (*k < N_NETWORKS || strcmp(asked, automatic) == 0)
        return true;
    diag_error(s->d, LOC_NONE, "there is no preset '%s'; `qxc list presets` shows them",
               diag_name(s->d, str_from(asked)));
    diag_did_you_mean(s->d, LOC_NONE, str_from(asked), names, N_NETWORKS + 1);
    return false;
}

/* ---- options ---- */

/* Whether activations are spoken of: they are not to stay float then. */
static bool wants_integers(const Options *o) {
    bool spoken_of = o->integer_only || (o->io && strcmp(o->io, "quant") == 0);
    for (size_t i = 0; i < option_count(); i++) {
        const OptionDef *def = option_at(i);
        spoken_of = spoken_of || (def->of == OF_STATIC && option_given(o, def));
    }
    return spoken_of;
}

/* Data are what mends and moves. */
static bool is_for(const Options *o, const OptionDef *def) {
    bool wants_data = def->of != OF_ANY;
    bool fits = option_is_open(o, def) && (!wants_data || options_have_data(o));
    return fits && (strcmp(def->name, "weight-only") != 0 || !wants_integers(o));
}

static bool add_options(Session *s, const char *words, Buf *told) {
    const OptionDef *def;
    for (Str word; options_next(&words, &word, &def);) {
        word = arena_str(s->arena, word);
        if (!def || !is_for(&s->o, def))
            continue;
        if (!options_take(&s->o, word.s, s->arena, s->d))
            return false;
        buf_fmt(told, "%s" STR_FMT, told->n ? " " : "", STR_ARG(word));
    }
    return true;
}

/* ---- rules ---- */

/* Of the command line's rank; those that keep something float say nothing where no floats are
 * allowed. */
static bool read_rules(Session *s, const char *flag, const char *text, Scheme *to) {
    Scheme all = {0};
    Str line = arena_strf(s->arena, "scheme { %s }", text);
    if (!qir_read_scheme_text(s->arena, s->d, flag, line, &all))
        return false;
    for (size_t i = 0; i < all.n; i++) {
        SchemeRule r = all.rules[i];
        r.flag = flag;
        r.may_miss = true;
        if (r.keep != 1 || !s->o.integer_only)
            scheme_add(to, s->arena, r);
    }
    return true;
}

static bool add_part(Session *s, const char *flag, const Preset *p, Module *m, Scheme *to) {
    Scheme one = {0};
    const bool *in = network_part(m, p->part);
    if (!read_rules(s, flag, arena_strf(s->arena, "node \"*\" %s", p->rule).s, &one))
        return false;
    FOR_NODES(n, m->graph) {
        Str name = rule_name(n);
        if (!in[n->id] || !name.n || !one.n)
            continue;
        SchemeRule r = one.rules[0];
        r.pattern = scheme_glob_of(s->arena, arena_str(s->arena, name)).s;
        scheme_add(to, s->arena, r);
    }
    return true;
}

static void put_rules(Buf *b, const char *lines) {
    const char *between = b->n ? "; " : "";
    for (const char *at = lines; *at; between = ", ") {
        size_t n = strcspn(at, "\n");
        buf_fmt(b, "%s%.*s", between, (int)n, at);
        at += n + (at[n] == '\n');
    }
}

static void put_part(Buf *b, const Preset *p) {
    buf_fmt(b, "%s%s: %s", b->n ? "; " : "", part_words[p->part], p->rule);
}

static bool add_rules(Session *s, NetworkKind k, Module *m, Buf *told) {
    const Preset *p = &presets[k];
    const char *flag = arena_strf(s->arena, "-preset=%s", network_name(k)).s;
    Scheme *rules = NEW(s->arena, Scheme);
    if (!read_rules(s, flag, p->rules, rules))
        return false;
    size_t general = rules->n;
    if (general)
        put_rules(told, p->rules);
    if (p->part && !add_part(s, flag, p, m, rules))
        return false;
    if (rules->n > general)
        put_part(told, p);
    s->o.preset_rules = rules;
    return true;
}

/* ---- all of it ---- */

static void tell(Session *s, NetworkKind k, Buf *told, Str reasons) {
    if (s->o.quiet)
        return;
    diags_flush(s->d);
    fprintf(stderr, "preset %s (%s%s" STR_FMT "): " STR_FMT "\n", network_name(k), network_words(k),
            reasons.n ? ": " : "", STR_ARG(reasons),
            STR_ARG(told->n ? buf_as_str(told) : STR("nothing of it has an effect here")));
}

/* What weights alone get is not for what multiplies integers. */
static bool rules_apply(const Session *s, NetworkKind k) {
    return strcmp(presets[k].options, "-weight-only") != 0 || s->o.weight_only;
}

static ExitCode apply(Session *s, NetworkKind k, Module *m, Str reasons) {
    Buf told = buf_new(s->arena);
    if (!add_options(s, presets[k].options, &told) ||
        (rules_apply(s, k) && !add_rules(s, k, m, &told)))
        return EXIT_WRONG;
    tell(s, k, &told, reasons);
    return EXIT_DONE;
}

/* The model is looked at, and read anew when it is compiled. */
static ExitCode look_and_apply(Session *s, NetworkKind k) {
    ExitCode code;
    NetworkSigns signs;
    if (!session_reads_again(s, arena_strf(s->arena, "-preset=%s reads", s->o.preset).s))
        return EXIT_USAGE;
    Module *m = session_look(s, &code);
    if (!m)
        return code;
    bool seeks = k == N_NETWORKS;
    NetworkKind is = network_kind(m, &signs);
    Str reasons = seeks ? network_reasons(s->arena, &signs) : STR("");
    if (seeks && is == N_NETWORKS)
        diag_warning(s->d, LOC_NONE,
                     "-preset=auto has no effect: the model is of no kind that is known");
    else
        code = apply(s, seeks ? is : k, m, reasons);
    session_free_modules(s, 0);
    return code;
}

ExitCode preset_apply(Session *s) {
    NetworkKind k;
    if (!s->o.preset)
        return EXIT_DONE;
    if (!find(s, &k))
        return EXIT_USAGE;
    return k == N_NETWORKS || presets[k].part ? look_and_apply(s, k) : apply(s, k, NULL, STR(""));
}

/* ---- what there is ---- */

Str preset_text(Arena *a, NetworkKind k) {
    const Preset *p = &presets[k];
    Buf b = buf_new(a);
    buf_text(&b, p->options);
    put_rules(&b, p->rules);
    if (p->part)
        put_part(&b, p);
    return buf_as_str(&b);
}

ExitCode preset_list(Session *s) {
    for (size_t k = 0; k < N_NETWORKS; k++)
        printf("%-9s  %-23s  " STR_FMT "\n", network_name((NetworkKind)k),
               network_words((NetworkKind)k), STR_ARG(preset_text(s->arena, (NetworkKind)k)));
    return EXIT_DONE;
}
