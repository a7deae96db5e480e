/* The setting of a role in a rule of a scheme: what its words say of a type. */
#include "frontend/qir/read_rule.h"

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
        if (!rule_word_is(t, v, modifiers[i].word))
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
    const Val *v = rule_peek(t);
    ElemType wide = v ? type_word(t, v) : ELEM_UNDEFINED;
    int64_t lo = least_of(s), hi = most_of(s);
    if (!wide)
        return error_at(t->r, v ? v->at : rule_behind(t),
                        "after 'in' stands the type that holds it");
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

bool read_setting(Rule *t, SchemeSetting *s) {
    uint32_t begin = t->i;
    const Val *range = NULL; /* of the type before it, or of the one that comes */
    bool ok = true, contradicts = false;
    s->said = true;
    while (ok && t->i < t->n && !rule_begins_role(t, rule_peek(t))) {
        const Val *v = &t->v[t->i++];
        SchemeSetting type = *s;
        bool typed = v->kind == VAL_WORD && scheme_integers(str_at(t->r, v->word), &type);
        if ((typed || v->kind == VAL_QUANT) && s->storage)
            return error_at(t->r, v->at, "a second type: the one before is %sq",
                            elem_name(s->storage));
        if (typed) {
            *s = type;
            ok = !range || take_range(t, s, range);
            if (ok && rule_take(t, "in"))
                ok = read_container(t, s, type_name(t, v));
        } else if (v->kind == VAL_QUANT) {
            ok = fixed_quant(t, s, v) && (!range || take_range(t, s, range));
        } else if (val_is_call(t->r, v, "range")) {
            range = v;
            ok = is_range(t, v) && (!s->storage || take_range(t, s, v));
        } else if (v->kind == VAL_CALL) {
            ok = read_call(t, s, v);
        } else if (rule_word_is(t, v, "float")) {
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
