#include "compiler/scheme_flags.h"
#include "frontend/qir/qir_read.h"

/* -weights="int4 block(32)" is the line `weights int4 block(32)`. */
static bool read_line(Scheme *s, const char *flag, SchemeRole role, const char *text, Arena *a,
                      Diags *d) {
    Scheme line = {0};
    if (!text)
        return true;
    const char *brace = strpbrk(text, "{}\n");
    if (brace) /* it would end the line, or the scheme around it */
        return diag_error(
            d, LOC_NONE, "%s is a type and its properties, which have no %s: not '%s'", flag,
            *brace == '\n' ? "end of a line" : "braces", diag_name(d, str_from(text)));
    if (!qir_read_scheme_text(
            a, d, flag, arena_strf(a, "scheme { %s %s\n}", scheme_role_name(role), text), &line))
        return false;
    if (!scheme_is_of_role(&line, role))
        return diag_error(d, LOC_NONE,
                          "%s is a type and its properties, and no other rule: not '%s'", flag,
                          diag_name(d, str_from(text)));
    line.rules[0].flag = flag;
    scheme_append(s, a, &line);
    return true;
}

static SchemeSetting *add_rule(Scheme *s, Arena *a, const char *flag, SchemeRole role) {
    SchemeRule r = scheme_rule(SCHEME_ALL, NULL, LOC_NONE);
    r.flag = flag;
    scheme_add(s, a, r);
    SchemeSetting *set = &s->rules[s->n - 1].set[role];
    set->said = true;
    return set;
}

static void add_granularity(Scheme *s, Arena *a, const char *flag, bool channel) {
    SchemeSetting *set = add_rule(s, a, flag, SCHEME_WEIGHTS);
    for (size_t i = 0; i + 1 < s->n; i++) /* the blocks of -weights="... block(32)" stay */
        if (s->rules[i].set[SCHEME_WEIGHTS].has_grain)
            set->block = s->rules[i].set[SCHEME_WEIGHTS].block;
    set->has_grain = true;
    set->channel = channel;
    set->per_tensor = !channel;
}

/* Each may be a list, "Conv,Gemm". */
static void add_globs(Scheme *s, Arena *a, const char *flag, const TextList *globs, int keep) {
    Str glob;
    for (size_t i = 0; i < globs->n; i++)
        for (const char *at = globs->items[i]; str_next_item(&at, &glob);) {
            SchemeRule r = scheme_rule(SCHEME_OP_OR_NODE, arena_str(a, glob).s, LOC_NONE);
            r.flag = flag;
            r.keep = keep;
            scheme_add(s, a, r);
        }
}

static void keep_all_but(Scheme *s, Arena *a, const TextList *only) {
    if (!only->n)
        return;
    SchemeRule r = scheme_rule(SCHEME_ALL, NULL, LOC_NONE);
    r.flag = "-only";
    r.keep = 1;
    scheme_add(s, a, r);
    add_globs(s, a, "-only", only, 0);
}

/* percentile=99.99 is percentile(99.99) in the language. */
static Str method_text(const char *method, Arena *a) {
    const char *eq = strchr(method, '=');
    if (!eq)
        return arena_str(a, str_from(method));
    return arena_strf(a, "%.*s(%s)", (int)(eq - method), method, eq + 1);
}

bool scheme_of_flags(Scheme *s, const Options *o, Arena *a, Diags *d) {
    if (o->preset_rules)
        scheme_append(s, a, o->preset_rules);
    bool ok = read_line(s, "-weights", SCHEME_WEIGHTS, o->weights, a, d);
    ok = read_line(s, "-activations", SCHEME_ACTIVATIONS, o->activations, a, d) && ok;
    if (o->per_channel)
        add_granularity(s, a, "-per-channel", true);
    if (o->per_tensor)
        add_granularity(s, a, "-per-tensor", false);
    if (o->pow2) {
        add_rule(s, a, "-pow2", SCHEME_WEIGHTS)->pow2 = 1;
        SchemeSetting *set = s->rules[s->n - 1].set;
        set[SCHEME_ACTIVATIONS] = set[SCHEME_WEIGHTS];
    }
    if (o->reduce_range)
        add_rule(s, a, "-reduce-range", SCHEME_WEIGHTS)->reduce_range = 1;
    keep_all_but(s, a, &o->only);
    add_globs(s, a, "-keep", &o->keep, 1);
    if (o->calib_method)
        s->whole[SCHEME_CALIBRATE].text = method_text(o->calib_method, a);
    if (o->recipe)
        s->whole[SCHEME_RECIPE].text = str_from(o->recipe);
    if (o->placement)
        s->whole[SCHEME_PLACEMENT].text = str_from(o->placement);
    return ok;
}
