/* did you mean ...? */
#include "support/diag.h"

static bool parts_at(Str name, size_t i) {
    return i >= name.n || (name.s[i] && strchr("/.:", name.s[i]));
}

/* "conv_2" is a part of "/conv_2/Conv", as exporters name nodes by their place in a program. */
static bool is_part_of(Str word, Str name) {
    for (size_t i = 0; i + word.n <= name.n; i++)
        if ((!i || parts_at(name, i - 1)) && parts_at(name, i + word.n) &&
            memcmp(name.s + i, word.s, word.n) == 0)
            return true;
    return false;
}

/* The sign in front of a value or a quantization, where names are meant without. */
static Str without_sign(Str word, Str *sign) {
    bool has = word.n > 1 && (word.s[0] == '%' || word.s[0] == '!');
    *sign = (Str){word.s, has};
    return (Str){word.s + has, word.n - has};
}

/* A word behind a sign may be right but for that: then `*has_sign` becomes false. */
static Str nearest(Str word, bool *has_sign, DiagNext *next, void *ctx) {
    Str best = STR_NONE, part = STR_NONE, other;
    int allowed = word.n < 3 ? 1 : word.n > 30 ? 10 : (int)word.n / 3;
    while (next(ctx, &other)) {
        int distance = str_same_letters(word, other) ? 0 : str_distance(word, other, allowed);
        if (str_eq(word, other) && *has_sign) { /* the sign is all that is wrong */
            *has_sign = false;
            return other;
        }
        if (str_eq(word, other)) /* right, but not where it stands */
            continue;
        if (distance <= allowed && (size_t)distance < word.n) {
            best = other;
            allowed = distance - 1; /* of equals the first wins */
        }
        if (!part.s && word.n && is_part_of(word, other))
            part = other;
    }
    return best.s ? best : part;
}

Str diag_nearest(Str word, DiagNext *next, void *ctx) {
    return nearest(word, &(bool){false}, next, ctx);
}

bool diag_did_you_mean_next(Diags *d, Loc at, Str said, DiagNext *next, void *ctx) {
    Str sign, word = without_sign(said, &sign);
    bool has_sign = sign.n > 0;
    if (!diags_shows_notes(d))
        return false;
    Str best = nearest(word, &has_sign, next, ctx);
    sign.n = has_sign;
    if (best.s)
        diag_note(d, at, "did you mean '" STR_FMT "%s'?", STR_ARG(sign), diag_name(d, best));
    return best.s != NULL;
}

typedef struct Words {
    const char *const *words;
    size_t i, n;
} Words;

static bool next_word(void *ctx, Str *candidate) {
    Words *words = ctx;
    if (words->i == words->n)
        return false;
    *candidate = str_from(words->words[words->i++]);
    return true;
}

void diag_did_you_mean(Diags *d, Loc at, Str word, const char *const *candidates, size_t n) {
    diag_did_you_mean_next(d, at, word, next_word, &(Words){candidates, 0, n});
}

typedef struct Keys {
    const Map *map;
    size_t i;
} Keys;

static bool next_key(void *ctx, Str *candidate) {
    Keys *keys = ctx;
    if (keys->i == map_size(keys->map))
        return false;
    *candidate = map_key(keys->map, keys->i++);
    return true;
}

void diag_did_you_mean_key(Diags *d, Loc at, Str word, const Map *names) {
    diag_did_you_mean_next(d, at, word, next_key, &(Keys){names, 0});
}
