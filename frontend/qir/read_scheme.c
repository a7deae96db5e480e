/* scheme { ... }: a rule is a line of words, told apart here.
 *
 *     rule    = [op NAME | node GLOB | value GLOB] (role setting | "keep float" | "quantize")...
 *             | "calibrate" METHOD | "placement" WHERE | "recipe" NAME
 *     role    = "weights" | "activations" | "bias" | "in" | "out"; none of a value
 *     setting = [INTEGERS ["in" TYPE]] and words such as sym, per-channel, block(32); or "float" */
#include "frontend/qir/reader.h"
#include "ir/scheme.h"
#include "parser.h"

typedef struct Rule { /* a line while it is read */
    Reader *r;
    const Val *v;
    uint32_t n, i;
    SchemeRule rule;
} Rule;

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

static const Val *peek(const Rule *t) {
    return t->i < t->n ? &t->v[t->i] : NULL;
}

static bool word_is(const Rule *t, const Val *v, const char *word) {
    return v && v->kind == VAL_WORD && str_is(str_at(t->r, v->word), word);
}

static bool take_word(Rule *t, const char *word) {
    if (!word_is(t, peek(t), word))
        return false;
    t->i++;
    return true;
}

/* Where something is missing: behind the last word. */
static Range behind(const Rule *t) {
    uint32_t end = t->v[t->n - 1].at.end;
    return (Range){end, end};
}

static ElemType type_word(const Rule *t, const Val *v) {
    Str s = str_at(t->r, v->word);
    if (v->kind != VAL_WORD)
        return ELEM_UNDEFINED;
    if (s.n > 1 && s.s[s.n - 1] == 'q')
        s.n--;
    ElemType e = elem_from_name(s);
    return elem_is_int(e) && elem_bits(e) <= 32 ? e : ELEM_UNDEFINED;
}

/* "int8" of int8q */
static const char *type_name(const Rule *t, const Val *v) {
    Str s = str_at(t->r, v->word);
    s.n -= s.s[s.n - 1] == 'q';
    return arena_strf(t->r->arena, "%.*s", STR_ARG(s)).s;
}

/* ---- settings ---- */

static const struct {
    const char *word;
    int sym, pow2, reduce_range, channel; /* 1 + the value; 0 where it says nothing of that */
} modifiers[] = {
#define PROPERTY(member, value, text) {.word = text, .member = 1 + value},
#define SCHEMA(text, sym_, pow2_)     {.word = text, .sym = 1 + sym_, .pow2 = 1 + pow2_},
#include "ir/scheme_words.def"
};
enum { N_MODIFIERS = sizeof modifiers / sizeof *modifiers };

static bool differs(int said, int now) {
    return said >= 0 && now >= 0 && said != now;
}

/* Takes a word over; false where it is none. */
static bool modify(const Rule *t, SchemeSetting *s, const Val *v, bool *contradicts) {
    for (size_t i = 0; i < N_MODIFIERS; i++) {
        if (!word_is(t, v, modifiers[i].word))
            continue;
        int grain = modifiers[i].channel - 1;
        if (differs(s->sym, modifiers[i].sym - 1) || differs(s->pow2, modifiers[i].pow2 - 1) ||
            differs(s->reduce_range, modifiers[i].reduce_range - 1) ||
            (grain == 0 && (s->channel || s->block)) || (grain == 1 && s->per_tensor))
            *contradicts = true;
        if (modifiers[i].sym)
            s->sym = modifiers[i].sym - 1;
        if (modifiers[i].pow2)
            s->pow2 = modifiers[i].pow2 - 1;
        if (modifiers[i].reduce_range)
            s->reduce_range = modifiers[i].reduce_range - 1;
        if (grain >= 0) {
            s->has_grain = true;
            s->channel = grain;
            s->per_tensor = !s->channel;
        }
        return true;
    }
    return false;
}

/* Those that the type of a setting has. */
static int64_t least_of(const SchemeSetting *s) {
    return s->has_range ? s->lo : elem_min(s->storage);
}
static int64_t most_of(const SchemeSetting *s) {
    return s->has_range ? s->hi : elem_max(s->storage);
}

/* The integers of a narrower type among those of the wider: as they are, or from 0 on. */
static bool read_container(Rule *t, SchemeSetting *s, const char *type) {
    const Val *v = peek(t);
    ElemType wide = v ? type_word(t, v) : ELEM_UNDEFINED;
    int64_t lo = least_of(s), hi = most_of(s);
    if (!wide)
        return error_at(t->r, v ? v->at : behind(t), "after 'in' stands the type that holds it");
    if (elem_max(wide) - elem_min(wide) <= hi - lo)
        return error_at(t->r, v->at,
                        "%s is not wider than %s; what a node reads is said as 'in %sq' before "
                        "the other words, or with a type of its own",
                        elem_name(wide), type, elem_name(wide));
    bool shift = lo < elem_min(wide);
    s->storage = wide;
    s->has_range = true;
    s->lo = shift ? 0 : lo;
    s->hi = shift ? hi - lo : hi;
    t->i++;
    return true;
}

/* The integers that `range`, range(LO:HI), leaves of those that the type has. */
static bool take_range(Rule *t, SchemeSetting *s, const Val *range) {
    const Val *arg = &range->u.args[0].val;
    int64_t lo = arg->u.range[0], hi = arg->u.range[1];
    if (s->fixed)
        return error_at(t->r, range->at, "the parameters say which integers there are");
    if (lo < least_of(s) || hi > most_of(s))
        return error_at(t->r, arg->at,
                        "the range needs a type that holds it: this one holds %lld to %lld",
                        (long long)least_of(s), (long long)most_of(s));
    s->has_range = s->exact_range = true;
    s->lo = lo;
    s->hi = hi;
    return true;
}

/* A call that is a range; otherwise reported. */
static bool is_range(const Rule *t, const Val *v) {
    const Val *arg = v->n == 1 && !v->u.args[0].has_key ? &v->u.args[0].val : NULL;
    if (!arg || arg->kind != VAL_RANGE)
        return error_at(t->r, v->at, "a range is written range(-7:7)");
    return arg->u.range[0] < arg->u.range[1] || error_at(t->r, arg->at, "an empty range");
}

/* block(32) */
static bool read_call(Rule *t, SchemeSetting *s, const Val *v) {
    const Val *arg = v->n == 1 && !v->u.args[0].has_key ? &v->u.args[0].val : NULL;
    if (val_is_call(t->r, v, "block")) {
        if (s->block || s->per_tensor)
            return error_at(t->r, v->at, "block(N) contradicts what is said before it");
        if (!arg || !val_int(t->r, arg, "a block size", &s->block))
            return arg || error_at(t->r, v->at, "a block is written block(32)");
        s->has_grain = true;
        return check_block_size(t->r, arg->at, s->block);
    }
    return error_at(t->r, v->at, "a rule has no '%s(...)'; there are block(N) and range(LO:HI)",
                    shown(t->r, str_at(t->r, v->word)));
}

static bool unknown_word(Rule *t, const Val *v) {
    const char *words[N_MODIFIERS + 24];
    size_t n = 0;
    for (size_t i = 0; i < N_MODIFIERS; i++)
        words[n++] = modifiers[i].word;
    static const char *const others[] = {
#define ROLE(id, word, begins) word,
#define CHOICE(word, value)    word,
#include "ir/scheme_words.def"
        "float",  "block",  "range",  "int2q",  "int4q",  "int8q",
        "int16q", "int32q", "uint2q", "uint4q", "uint8q", "uint16q"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        words[n++] = others[i];
    if (v->kind == VAL_STRING)
        return error_at(t->r, v->at, "a string has no meaning here");
    Str word = str_at(t->r, v->word);
    bool typed = str_starts(word, "int") || str_starts(word, "uint");
    error_at(t->r, v->at, "'%s' is no word of a rule%s", shown(t->r, word),
             typed ? ", nor an integer type: these have 1 to 32 bits" : "");
    static const char *const subjects[] = {
#define SUBJECT(id, word) word,
#include "ir/scheme_words.def"
    };
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        if (str_is(word, subjects[i]))
            note_at(t->r, v->at, "each rule has a line of its own");
    suggest(t->r, v->at, word, words, n);
    return false;
}

static bool fixed_quant(Rule *t, SchemeSetting *s, const Val *v) {
    const Quant *q = v->u.quant;
    if (!q)
        return false; /* reported */
    if (q->kind == QUANT_DYNAMIC || q->kind == QUANT_ACC)
        return error_at(t->r, v->at, "a rule has no parameters computed at run time");
    if (!quant_is_integers(q))
        return error_at(t->r, v->at, "no rule quantizes to %s", elem_name(q->storage));
    s->line = q;
    s->storage = q->storage;
    s->has_range = q->has_range;
    s->lo = q->lo;
    s->hi = q->hi;
    if (q->kind == QUANT_PARAMS)
        s->fixed = q;
    return true;
}

static bool is_role(const Rule *t, const Val *v) {
    static const char *const words[] = {
#define ROLE(id, word, begins) word,
#define CHOICE(word, value)    word,
#include "ir/scheme_words.def"
    };
    for (size_t i = 0; v->kind == VAL_WORD && i < sizeof words / sizeof *words; i++)
        if (word_is(t, v, words[i]))
            return true;
    return false;
}

/* One schema demanded and another one stated in numbers. */
static bool check_fixed(Rule *t, const SchemeSetting *s) {
    if (!s->fixed)
        return true;
    const char *schema = quant_schema(s->fixed);
    bool sym = str_starts(str_from(schema), "Sym"), pow2 = quant_is_pow2(s->fixed);
    bool fits = (s->sym == SCHEME_UNSAID || s->sym == sym) &&
                (s->pow2 == SCHEME_UNSAID || s->pow2 == pow2 || !s->pow2);
    return (fits && !s->has_grain) ||
           diag_error(t->r->diags, s->loc,
                      fits ? "the granularity follows from the parameters, which are %s"
                           : "the parameters are %s, which is not what the other words say",
                      schema);
}

/* What reduce-range would take a bit from. */
static bool check_reduced(Rule *t, const SchemeSetting *s) {
    if (s->reduce_range != 1 || !s->storage)
        return true;
    if (s->fixed || s->exact_range)
        return diag_error(t->r->diags, s->loc, "'%s' has no effect where the range is stated",
                          SCHEME_WORD(reduce_range, 1));
    return most_of(s) - least_of(s) > 1 ||
           diag_error(t->r->diags, s->loc, "'%s' would take the one bit that the type has",
                      SCHEME_WORD(reduce_range, 1));
}

static bool read_setting(Rule *t, SchemeSetting *s) {
    uint32_t begin = t->i;
    const Val *range = NULL; /* of the type before it, or of the one that comes */
    bool ok = true, contradicts = false;
    s->said = true;
    while (ok && t->i < t->n && !is_role(t, peek(t))) {
        const Val *v = &t->v[t->i++];
        SchemeSetting type = *s;
        bool typed = v->kind == VAL_WORD && scheme_integers(str_at(t->r, v->word), &type);
        if ((typed || v->kind == VAL_QUANT) && s->storage)
            return error_at(t->r, v->at, "a second type: the one before is %sq",
                            elem_name(s->storage));
        if (typed) {
            *s = type;
            ok = !range || take_range(t, s, range);
            if (ok && take_word(t, "in"))
                ok = read_container(t, s, type_name(t, v));
        } else if (v->kind == VAL_QUANT) {
            ok = fixed_quant(t, s, v) && (!range || take_range(t, s, range));
        } else if (val_is_call(t->r, v, "range")) {
            range = v;
            ok = is_range(t, v) && (!s->storage || take_range(t, s, v));
        } else if (v->kind == VAL_CALL) {
            ok = read_call(t, s, v);
        } else if (word_is(t, v, "float")) {
            s->is_float = true;
        } else if (!modify(t, s, v, &contradicts)) {
            ok = unknown_word(t, v);
        }
        if (contradicts)
            return error_at(t->r, v->at, "'%s' contradicts a word before it",
                            shown(t->r, str_at(t->r, v->word)));
    }
    if (!ok)
        return false;
    if (t->i == begin)
        return error_at(t->r, begin ? t->v[begin - 1].at : t->v[0].at,
                        "a type or another property is missing here");
    s->loc = loc_of(t->r, range_join(t->v[begin].at, t->v[t->i - 1].at));
    if (s->is_float && (s->storage || t->i - begin > 1))
        return diag_error(t->r->diags, s->loc, "what is float has no other property");
    if (range && !s->storage)
        return diag_error(t->r->diags, s->loc, "the range needs a type that holds it");
    return check_reduced(t, s) && check_fixed(t, s);
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

static int role_of(const Rule *t, const Val *v) {
    for (int i = 0; i < SCHEME_ITSELF; i++)
        if (word_is(t, v, scheme_role_name((SchemeRole)i)))
            return i;
    return -1;
}

/* 1: keep float, 0: quantize; -1: v says neither. */
static int choice_of(const Rule *t, const Val *v) {
#define CHOICE(word, value)                                                                        \
    if (word_is(t, v, word))                                                                       \
        return value;
#include "ir/scheme_words.def"
    return -1;
}

static bool read_keep(Rule *t, const Val *v) {
    if (t->rule.of == SCHEME_VALUE)
        return error_at(t->r, v->at,
                        choice_of(t, v)
                            ? "nodes are kept: a value stays float with 'value NAME float'"
                            : "nodes are quantized: of a value its type is said, as in "
                              "'value NAME int8q'");
    t->rule.keep = choice_of(t, v);
    return !t->rule.keep || take_word(t, "float") ||
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
        if (!*word || !take_word(t, word))
            continue;
        const Val *v = peek(t);
        if (!v || (v->kind != VAL_WORD && v->kind != VAL_STRING))
            return error_at(t->r, v ? v->at : behind(t), "after '%s' stands a name or \"glob\"",
                            word);
        t->i++;
        t->rule = scheme_rule(of, pattern_text(t, v), loc_of(t->r, v->at));
        return t->i < t->n || error_at(t->r, behind(t), "the rule says nothing");
    }
    const Val *v = &t->v[0];
    if (is_role(t, v))
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
        if (word_is(t, v, scheme_whole_name((SchemeWhole)i)))
            return i;
    return -1;
}

/* calibrate METHOD, recipe NAME: one word, checked by who carries it out. */
static bool read_word_rule(Rule *t, SchemeWord *to) {
    Str what = str_at(t->r, t->v[0].word);
    if (t->n != 2 || (t->v[1].kind != VAL_WORD && t->v[1].kind != VAL_CALL))
        return error_at(t->r, t->n > 1 ? t->v[t->n - 1].at : behind(t),
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
