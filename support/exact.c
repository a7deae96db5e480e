/* See support/exact.h. */
#include <math.h>
#include <string.h>

#include "support/exact.h"

enum {
    WORD = 32,
    DIGITS = WORD / 4, /* of a word */
    FRACTION_DIGITS = EXACT_FRACTION / 4,
    ALL_DIGITS = EXACT_WORDS * DIGITS,
    HALF = EXACT_FRACTION / 2 / WORD /* words of 0 below a multiple of 2^-160 */
};

/* ---- arithmetic ---- */

void exact_add(Exact *x, const Exact *y) {
    uint64_t carry = 0;
    for (int i = 0; i < EXACT_WORDS; i++) {
        carry += (uint64_t)x->w[i] + y->w[i];
        x->w[i] = (uint32_t)carry;
        carry >>= WORD;
    }
}

static Exact negated(const Exact *x) {
    Exact out;
    uint64_t carry = 1;
    for (int i = 0; i < EXACT_WORDS; i++) {
        carry += (uint32_t)~x->w[i];
        out.w[i] = (uint32_t)carry;
        carry >>= WORD;
    }
    return out;
}

void exact_sub(Exact *x, const Exact *y) {
    Exact minus = negated(y);
    exact_add(x, &minus);
}

bool exact_negative(const Exact *x) {
    return x->w[EXACT_WORDS - 1] >> (WORD - 1);
}

static Exact magnitude(const Exact *x) {
    return exact_negative(x) ? negated(x) : *x;
}

Exact exact_scaled(uint64_t v, int exponent) {
    Exact out = {{0}};
    int shift = exponent + EXACT_FRACTION, at = shift / WORD, by = shift % WORD;
    uint64_t low = (v & UINT32_MAX) << by, high = (v >> WORD) << by;
    uint32_t words[] = {(uint32_t)low, (uint32_t)(low >> WORD) | (uint32_t)high,
                        (uint32_t)(high >> WORD)};
    for (int i = 0; i < 3 && at + i < EXACT_WORDS; i++)
        out.w[at + i] = words[i];
    return out;
}

Exact exact_float(float x) {
    int exponent;
    double m = ldexp(frexp(fabs((double)x), &exponent), 24); /* a float has 24 bits */
    Exact out = exact_scaled((uint64_t)m, exponent - 24);
    return x < 0 ? negated(&out) : out;
}

/* to += x * m * 2^(32 at) */
static void add_product(Exact *to, const uint32_t *x, size_t n, uint32_t m, size_t at) {
    uint64_t carry = 0;
    for (size_t i = 0; at + i < EXACT_WORDS; i++) {
        carry += to->w[at + i] + (i < n ? (uint64_t)x[i] * m : 0);
        to->w[at + i] = (uint32_t)carry;
        carry >>= WORD;
    }
}

Exact exact_times(const Exact *x, uint64_t n) {
    Exact out = {{0}}, size = magnitude(x);
    add_product(&out, size.w, EXACT_WORDS, (uint32_t)n, 0);
    add_product(&out, size.w, EXACT_WORDS, (uint32_t)(n >> WORD), 1);
    return exact_negative(x) ? negated(&out) : out;
}

bool exact_has_square(const Exact *x) {
    uint32_t below = 0;
    for (size_t i = 0; i < HALF; i++)
        below |= x->w[i];
    return !below;
}

Exact exact_square(const Exact *x) {
    Exact out = {{0}}, size = magnitude(x);
    for (size_t i = HALF; i < EXACT_WORDS; i++)
        add_product(&out, size.w + HALF, EXACT_WORDS - HALF, size.w[i], i - HALF);
    return out;
}

double exact_double(const Exact *x) {
    Exact size = magnitude(x);
    int top = EXACT_WORDS - 1;
    while (top > 2 && !size.w[top])
        top--;
    /* Of 96 bits 65 or more count, so that one bit can stand for all below. */
    uint32_t high = size.w[top];
    uint64_t low = (uint64_t)size.w[top - 1] << WORD | size.w[top - 2], rest = 0;
    int exponent = (top - 2) * WORD - EXACT_FRACTION;
    for (int i = 0; i < top - 2; i++)
        rest |= size.w[i];
    for (; high; high >>= 1, exponent++) {
        rest |= low & 1;
        low = low >> 1 | (uint64_t)(high & 1) << 63;
    }
    double out = ldexp((double)(low | (rest != 0)), exponent);
    return exact_negative(x) ? -out : out;
}

/* ---- as text ---- */

static unsigned digit_of(const Exact *x, int i) {
    return x->w[i / DIGITS] >> 4 * (i % DIGITS) & 15;
}

void exact_print(Buf *b, const Exact *x) {
    Exact size = magnitude(x);
    int high = ALL_DIGITS - 1, low = 0;
    while (high > FRACTION_DIGITS && !digit_of(&size, high))
        high--;
    while (low < FRACTION_DIGITS && !digit_of(&size, low))
        low++;
    buf_text(b, exact_negative(x) ? "-0x" : "0x");
    for (int i = high; i >= low; i--) {
        if (i == FRACTION_DIGITS - 1)
            buf_byte(b, '.');
        buf_byte(b, "0123456789abcdef"[digit_of(&size, i)]);
    }
}

static bool read_digit(char c, int at, Exact *x) {
    const char *digits = "0123456789abcdef", *found = c ? strchr(digits, c) : NULL;
    /* The highest digit holds the sign. */
    if (!found || at < 0 || at >= ALL_DIGITS - 1)
        return false;
    x->w[at / DIGITS] |= (uint32_t)(found - digits) << 4 * (at % DIGITS);
    return true;
}

bool exact_read(Str text, Exact *x) {
    bool minus = text.n && *text.s == '-';
    text = (Str){text.s + minus, text.n - minus};
    *x = (Exact){{0}};
    if (!str_starts(text, "0x"))
        return false;
    text = (Str){text.s + 2, text.n - 2};
    const char *point = memchr(text.s, '.', text.n);
    size_t whole = point ? (size_t)(point - text.s) : text.n;
    if (!whole || whole >= ALL_DIGITS || (point && text.n - whole < 2) ||
        text.n - whole > FRACTION_DIGITS + 1)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        int at = FRACTION_DIGITS + (int)whole - (int)i;
        if (i != whole && !read_digit(text.s[i], i < whole ? at - 1 : at, x))
            return false;
    }
    if (minus)
        *x = negated(x);
    return true;
}
