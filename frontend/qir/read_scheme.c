/* scheme { ... }: a rule is a line of words, told apart here.
 *
 *     rule    = [op NAME | node GLOB | value GLOB] (role setting | "keep float" | "quantize")...
 *             | "calibrate" METHOD | "placement" WHERE | "recipe" NAME
 *     role    = "weights" | "activations" | "bias" | "in" | "out"; none of a value
 *     setting = [INTEGERS ["in" TYPE]] and words such as sym, per-channel, block(32); or "float" */
#include "frontend/qir/read_rule.h"

void open_scheme(Reader *r, Token word) {
    r->second_scheme = r->module->scheme.s != NULL;
    if (!r->second_scheme)
        return;
    error_at(r, range_of(word), "a second 'scheme'");
    diag_note(r->diags, r->module->scheme_loc, "the first one");
}

void close_scheme(Reader *r, Token open, Token close) {
    if (r->second_scheme)
        return;
    Module *m = r->module;
    m->scheme = (Str){r->text.s + open.end, close.begin - open.end};
    m->scheme_loc = loc_of(r, (Range){open.end, close.begin});
}

/* ---- words ---- */

const Val *rule_peek(const Rule *t) {
    return t->i < t->n ? &t->v[t->i] : NULL;
}

bool rule_word_is(const Rule *t, const Val *v, const char *word) {
    return v && v->kind == VAL_WORD && str_is(str_at(t->r, v->word), word);
}

bool rule_take(Rule *t, const char *word) {
    if (!rule_word_is(t, rule_peek(t), word))
        return false;
    t->i++;
    return true;
}

Range rule_behind(const Rule *t) {
    uint32_t end = t->v[t->n - 1].at.end;
    return (Range){end, end};
}

static int role_of(const Rule *t, const Val *v) {
    for (int i = 0; i < SCHEME_ITSELF; i++)
        if (rule_word_is(t, v, scheme_role_name((SchemeRole)i)))
            return i;
    return -1;
}

/* 1: keep float, 0: quantize; -1: v says neither. */
static int choice_of(const Rule *t, const Val *v) {
#define CHOICE(word, value)                                                                        \
    if (rule_word_is(t, v, word))                                                                  \
        return value;
#include "ir/scheme_words.def"
    return -1;
}

bool rule_begins_role(const Rule *t, const Val *v) {
    return role_of(t, v) >= 0 || choice_of(t, v) >= 0;
}

/* ---- what a role can have ---- */

static bool check_roles(Rule *t) {
    const SchemeSetting *made = &t->rule.set[SCHEME_ACTIVATIONS], *out = &t->rule.set[SCHEME_OUT];
    if (made->said && out->said && t->rule.of != SCHEME_ALL)
        return diag_error(t->r->diags, out->loc,
                          "'activations' and 'out' both are the values that a node produces: say "
                          "one of them");
    for (int i = 0; i < SCHEME_ROLES; i++) {
        const SchemeSetting *s = &t->rule.set[i];
        if (!s->said || i == SCHEME_WEIGHTS || i == SCHEME_ITSELF)
            continue;
        const char *role = scheme_role_name((SchemeRole)i);
        Diags *d = t->r->diags;
        if (s->has_grain && (s->channel || s->block))
            return diag_error(d, s->loc,
                              "%s have one scale for each tensor: an accumulator cannot sum over "
                              "several",
                              role);
        if (i == SCHEME_BIAS && s->storage && s->storage != ELEM_INT32)
            return diag_error(d, s->loc,
                              "a bias is int32q at the scale of the accumulator, or float");
        if (i == SCHEME_BIAS && (s->sym >= 0 || s->pow2 >= 0 || s->reduce_range >= 0 || s->fixed))
            return diag_error(d, s->loc, "the scale of a bias follows from its input and weights");
    }
    return true;
}

/* ---- rules ---- */

static bool read_keep(Rule *t, const Val *v) {
    if (t->rule.of == SCHEME_VALUE)
        return error_at(t->r, v->at,
                        choice_of(t, v)
                            ? "nodes are kept: a value stays float with 'value NAME float'"
                            : "nodes are quantized: of a value its type is said, as in "
                              "'value NAME int8q'");
    if (t->rule.keep != SCHEME_UNSAID)
        return error_at(t->r, v->at, "whether a node stays float is said twice");
    t->rule.keep = choice_of(t, v);
    return !t->rule.keep || rule_take(t, "float") ||
           error_at(t->r, v->at, "a node is kept as in 'keep float'");
}

static bool not_a_role(Rule *t, const Val *v) {
    static const char *const words[] = {
#define ROLE(id, word, begins) word,
#define CHOICE(word, value)    word,
#include "ir/scheme_words.def"
    };
    error_at(t->r, v->at, "expected weights, activations, bias, in, out, keep float or quantize");
    if (v->kind == VAL_WORD)
        suggest(t->r, v->at, str_at(t->r, v->word), words, sizeof words / sizeof *words);
    return false;
}

static bool read_roles(Rule *t) {
    while (t->i < t->n) {
        const Val *v = &t->v[t->i];
        int role = role_of(t, v);
        if (role < 0 && choice_of(t, v) < 0) {
            if (t->rule.of != SCHEME_VALUE)
                return not_a_role(t, v);
            role = SCHEME_ITSELF;
        } else {
            t->i++;
        }
        if (role < 0) {
            if (!read_keep(t, v))
                return false;
            continue;
        }
        if (t->rule.of == SCHEME_VALUE && role != SCHEME_ITSELF)
            return error_at(t->r, v->at, "a value has no '%s': its type stands right behind it",
                            scheme_role_name((SchemeRole)role));
        if (t->rule.of == SCHEME_ALL && (role == SCHEME_IN || role == SCHEME_OUT))
            return error_at(t->r, v->at, "'%s' is said of an op or a node",
                            scheme_role_name((SchemeRole)role));
        if (t->rule.set[role].said)
            return error_at(t->r, v->at, "'%s' is said twice", scheme_role_name((SchemeRole)role));
        if (!read_setting(t, &t->rule.set[role]))
            return false;
    }
    return check_roles(t);
}

static const char *pattern_text(const Rule *t, const Val *v) {
    return arena_str(t->r->arena, str_at(t->r, v->word)).s;
}

/* op NAME, node GLOB, value GLOB */
static bool read_subject(Rule *t) {
    t->rule =
        scheme_rule(SCHEME_ALL, NULL, loc_of(t->r, range_join(t->v[0].at, t->v[t->n - 1].at)));
    for (SchemeSubject of = SCHEME_OP; of <= SCHEME_VALUE; of++) {
        const char *word = scheme_subject_name(of);
        if (!*word || !rule_take(t, word))
            continue;
        const Val *v = rule_peek(t);
        if (!v || (v->kind != VAL_WORD && v->kind != VAL_STRING))
            return error_at(t->r, v ? v->at : rule_behind(t),
                            "after '%s' stands a name or \"glob\"", word);
        t->i++;
        t->rule = scheme_rule(of, pattern_text(t, v), loc_of(t->r, v->at));
        return t->i < t->n || error_at(t->r, rule_behind(t), "the rule says nothing");
    }
    const Val *v = &t->v[0];
    if (rule_begins_role(t, v))
        return true;
    static const char *const firsts[] = {
#define SUBJECT(id, word)      word,
#define ROLE(id, word, begins) word,
#define WHOLE(id, word)        word,
#define CHOICE(word, value)    word,
#include "ir/scheme_words.def"
    };
    error_at(t->r, v->at,
             "a rule begins with op, node, value, weights, activations, bias, keep, "
             "calibrate, placement or recipe");
    if (v->kind == VAL_WORD)
        suggest(t->r, v->at, str_at(t->r, v->word), firsts, sizeof firsts / sizeof *firsts);
    return false;
}

static int whole_of(const Rule *t, const Val *v) {
    for (int i = 0; i < SCHEME_WHOLES; i++)
        if (rule_word_is(t, v, scheme_whole_name((SchemeWhole)i)))
            return i;
    return -1;
}

/* calibrate METHOD, recipe NAME: one word, checked by who carries it out. */
static bool read_word_rule(Rule *t, SchemeWord *to) {
    Str what = str_at(t->r, t->v[0].word);
    if (t->n != 2 || (t->v[1].kind != VAL_WORD && t->v[1].kind != VAL_CALL))
        return error_at(t->r, t->n > 1 ? t->v[t->n - 1].at : rule_behind(t),
                        "expected one word after "
                        "'%.*s'",
                        STR_ARG(what));
    Range at = t->v[1].at;
    to->text = arena_str(t->r->arena, (Str){t->r->text.s + at.begin, at.end - at.begin});
    to->loc = loc_of(t->r, at);
    return true;
}

void read_rule(Reader *r, Span words) {
    Rule t = {.r = r, .v = r->vals + words.begin, .n = words.n};
    Scheme *s = &r->module->rules, ignored = {0};
    if (r->second_scheme)
        s = &ignored;
    int whole = whole_of(&t, &t.v[0]);
    if (whole >= 0)
        read_word_rule(&t, &s->whole[whole]);
    else if (read_subject(&t) && read_roles(&t))
        scheme_add(s, r->arena, t.rule);
    r->n_vals = words.begin;
}
