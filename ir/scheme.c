#include "ir/scheme_index.h"

const SchemeSetting scheme_setting_none = {
    .sym = SCHEME_UNSAID, .pow2 = SCHEME_UNSAID, .reduce_range = SCHEME_UNSAID};

SchemeRule scheme_rule(SchemeSubject of, const char *pattern, Loc loc) {
    SchemeRule r = {.of = of, .pattern = pattern, .loc = loc, .keep = SCHEME_UNSAID};
    for (int i = 0; i < SCHEME_ROLES; i++)
        r.set[i] = scheme_setting_none;
    return r;
}

Str scheme_glob_of(Arena *a, Str name) {
    Buf b = buf_new(a);
    for (size_t i = 0; i < name.n; i++) {
        if (name.s[i] && strchr("*?,\\", name.s[i]))
            buf_byte(&b, '\\');
        buf_byte(&b, name.s[i]);
    }
    return buf_as_str(&b);
}

bool scheme_name_of(Arena *a, const char *glob, Str *name) {
    size_t n;
    if (!strpbrk(glob, "*?\\")) {
        *name = str_from(glob);
        return true;
    }
    char *text = arena_alloc(a, strlen(glob) + 1);
    bool is_name = str_glob_is_text(glob, text, &n);
    *name = (Str){text, n};
    return is_name;
}

void scheme_add(Scheme *s, Arena *a, SchemeRule r) {
    ARENA_PUSH(a, s->rules, s->n, s->cap, r);
    scheme_index_last(s, a);
}

void scheme_append(Scheme *s, Arena *a, const Scheme *from) {
    if (!s->cap && from->n) { /* no room to spare: metadata are many schemes of one rule */
        s->rules = NEW_ARRAY(a, SchemeRule, from->n);
        s->cap = from->n;
    }
    for (size_t i = 0; i < from->n; i++)
        scheme_add(s, a, from->rules[i]);
    for (int i = 0; i < SCHEME_WHOLES; i++)
        if (from->whole[i].text.s)
            s->whole[i] = from->whole[i];
}

bool scheme_has_parameters(const Scheme *s) {
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < SCHEME_ROLES; k++)
            if (s->rules[i].set[k].fixed)
                return true;
    return false;
}

/* ---- words ---- */

#define PROPERTY(member, value, word) const char scheme_word_##member##_##value[] = word;
#include "ir/scheme_words.def"

bool scheme_is_of_role(const Scheme *s, SchemeRole role) {
    for (int i = 0; i < SCHEME_WHOLES; i++)
        if (s->whole[i].text.s)
            return false;
    if (s->n != 1 || s->rules[0].keep != SCHEME_UNSAID)
        return false;
    for (int i = 0; i < SCHEME_ROLES; i++)
        if (s->rules[0].set[i].said != (i == (int)role))
            return false;
    return true;
}

const char *scheme_role_name(SchemeRole r) {
    static const char *const names[SCHEME_ROLES] = {
#define ROLE(id, word, begins) [id] = word,
#include "ir/scheme_words.def"
        [SCHEME_ITSELF] = "",
    };
    return names[r];
}

const char *scheme_subject_name(SchemeSubject of) {
    switch (of) {
#define SUBJECT(id, word)                                                                          \
    case id: return word;
#include "ir/scheme_words.def"
    default: return "";
    }
}

const char *scheme_whole_name(SchemeWhole w) {
    static const char *const names[SCHEME_WHOLES] = {
#define WHOLE(id, word) [id] = word,
#include "ir/scheme_words.def"
    };
    return names[w];
}

/* ---- printing ---- */

static int64_t least_of(bool is_signed, int bits) {
    return is_signed ? -((int64_t)1 << (bits - 1)) : 0;
}

bool scheme_integers(Str word, SchemeSetting *s) {
    static const ElemType types[] = {ELEM_INT1,  ELEM_UINT1,  ELEM_INT2,  ELEM_UINT2,
                                     ELEM_INT4,  ELEM_UINT4,  ELEM_INT8,  ELEM_UINT8,
                                     ELEM_INT16, ELEM_UINT16, ELEM_INT32, ELEM_UINT32};
    bool is_signed = !str_starts(word, "uint");
    int bits = 0;
    word.n -= word.n && word.s[word.n - 1] == 'q';
    size_t at = is_signed ? 3 : 4;
    if (!(str_starts(word, "int") || !is_signed) || word.n == at || word.s[at] == '0')
        return false;
    for (; at < word.n; at++) {
        if (word.s[at] < '0' || word.s[at] > '9' || (bits = bits * 10 + word.s[at] - '0') > 32)
            return false;
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (elem_bits(types[i]) < bits || (i % 2 == 0) != is_signed)
            continue;
        s->storage = types[i];
        s->has_range = elem_bits(types[i]) > bits;
        s->lo = s->has_range ? least_of(is_signed, bits) : 0;
        s->hi = s->has_range ? least_of(is_signed, bits) + ((int64_t)1 << bits) - 1 : 0;
        break;
    }
    return true;
}

const char *scheme_integers_name(Arena *a, int64_t lo, int64_t hi) {
    for (int bits = 2; bits < 32; bits++)
        if ((lo == 0 || lo == least_of(true, bits)) && hi - lo == ((int64_t)1 << bits) - 1)
            return arena_strf(a, "%sint%dq", lo ? "" : "u", bits).s;
    return NULL;
}

/* "int3q" where the range is that of so many bits, "int4q in uint8q" where others would be
 * narrower, else the storage and range(). */
static void print_storage(Buf *b, const SchemeSetting *s) {
    if (s->storage == ELEM_UNDEFINED)
        return;
    const char *name =
        s->has_range && !s->exact_range ? scheme_integers_name(b->arena, s->lo, s->hi) : NULL;
    SchemeSetting usual;
    if (name && scheme_integers(str_from(name), &usual)) {
        buf_fmt(b, " %s", name);
        if (usual.storage != s->storage)
            buf_fmt(b, " in %sq", elem_name(s->storage));
        return;
    }
    buf_fmt(b, " %sq", elem_name(s->storage));
    if (s->has_range)
        buf_fmt(b, " range(%lld:%lld)", (long long)s->lo, (long long)s->hi);
}

void scheme_setting_print(Buf *b, const SchemeSetting *s) {
    if (s->is_float)
        buf_text(b, " float");
    if (s->fixed) {
        buf_byte(b, ' ');
        quant_print(b, s->fixed);
        return;
    }
    print_storage(b, s);
    if (s->sym != SCHEME_UNSAID)
        buf_fmt(b, " %s", SCHEME_WORD(sym, s->sym));
    if (s->pow2 != SCHEME_UNSAID)
        buf_fmt(b, " %s", SCHEME_WORD(pow2, s->pow2));
    if (s->reduce_range != SCHEME_UNSAID)
        buf_fmt(b, " %s", SCHEME_WORD(reduce_range, s->reduce_range));
    if (s->has_grain && (s->channel || s->per_tensor))
        buf_fmt(b, " %s", SCHEME_WORD(channel, s->channel));
    if (s->has_grain && s->block)
        buf_fmt(b, " block(%lld)", (long long)s->block);
}

static void print_subject(Buf *b, SchemeSubject of, const char *pattern) {
    if (of == SCHEME_ALL)
        return;
    buf_fmt(b, "%s ", scheme_subject_name(of));
    buf_quoted(b, str_from(pattern));
    buf_byte(b, ' ');
}

static void print_of(Buf *b, const SchemeRule *r, SchemeSubject of) {
    print_subject(b, of, r->pattern);
    size_t begin = b->n;
    for (int i = 0; i < SCHEME_ROLES; i++) {
        if (!r->set[i].said)
            continue;
        if (b->n > begin)
            buf_byte(b, ' ');
        buf_text(b, scheme_role_name((SchemeRole)i));
        size_t at = b->n;
        scheme_setting_print(b, &r->set[i]);
        if (i == SCHEME_ITSELF && b->n > at) /* no word before it: one space is enough */
            memmove(b->p + at, b->p + at + 1, --b->n - at);
    }
    if (r->keep != SCHEME_UNSAID)
        buf_fmt(b, "%s%s", b->n > begin ? " " : "", r->keep ? "keep float" : "quantize");
}

void scheme_rule_print(Buf *b, const SchemeRule *r) {
    if (r->of != SCHEME_OP_OR_NODE) {
        print_of(b, r, r->of);
        return;
    }
    print_of(b, r, SCHEME_OP);
    buf_text(b, "\n  ");
    print_of(b, r, SCHEME_NODE);
}

/* The last of equal rules wins for all that they say: the others go. */
static void print_rules(Buf *b, const Scheme *s) {
    Str *lines = NEW_ARRAY(b->arena, Str, s->n + 1);
    Map *last = map_new(b->arena);
    for (size_t i = 0; i < s->n; i++) {
        Buf line = buf_new(b->arena);
        scheme_rule_print(&line, &s->rules[i]);
        lines[i] = buf_as_str(&line);
        map_set(last, lines[i], &lines[i]);
    }
    for (size_t i = 0; i < s->n; i++)
        if (map_get(last, lines[i]) == &lines[i])
            buf_fmt(b, "  " STR_FMT "\n", STR_ARG(lines[i]));
}

void scheme_print(Buf *b, const Scheme *s) {
    buf_text(b, "scheme {\n");
    print_rules(b, s);
    for (int i = 0; i < SCHEME_WHOLES; i++)
        if (s->whole[i].text.s)
            buf_fmt(b, "  %s " STR_FMT "\n", scheme_whole_name((SchemeWhole)i),
                    STR_ARG(s->whole[i].text));
    buf_text(b, "}\n");
}
