/* See exec/moments.h. */
#include <math.h>
#include <string.h>

#include "exec/moments.h"

/* ---- counting ---- */

enum {
    MANTISSA_BITS = 23,
    EXPONENTS = 255,       /* of finite floats */
    MOST_WAITING = 1 << 16 /* squares of mantissas are below 2^48 */
};

/* Adds the bins up and empties them. */
static void take_bins(MomentsCounter *c) {
    for (int e = 0; e < EXPONENTS; e++) {
        const MomentsBin *b = &c->at[e];
        if (!b->squares)
            continue;
        int exponent = (e ? e : 1) - 127 - MANTISSA_BITS;
        bool minus = b->sum < 0;
        Exact sum = exact_scaled(minus ? -(uint64_t)b->sum : (uint64_t)b->sum, exponent);
        Exact squares = exact_scaled(b->squares, 2 * exponent);
        (minus ? exact_sub : exact_add)(&c->m.sum, &sum);
        exact_add(&c->m.squares, &squares);
    }
    memset(c->at, 0, sizeof c->at);
    c->waiting = 0;
}

static void fill_bins(MomentsBin *at, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        uint32_t e = bits >> MANTISSA_BITS & 255, sign = bits >> 31;
        int64_t m = (int64_t)((bits & 0x7fffff) | (uint32_t)(e != 0) << MANTISSA_BITS);
        at[e].sum += sign ? -m : m;
        at[e].squares += (uint64_t)(m * m);
    }
}

void moments_count(MomentsCounter *c, const float *x, size_t n, size_t finite) {
    c->m.count += (int64_t)finite;
    while (n) {
        size_t room = MOST_WAITING - c->waiting, k = n < room ? n : room;
        fill_bins(c->at, x, k);
        c->waiting += (uint32_t)k;
        if (c->waiting == MOST_WAITING)
            take_bins(c);
        x += k;
        n -= k;
    }
}

const Moments *moments_counted(MomentsCounter *c) {
    take_bins(c);
    return &c->m;
}

/* ---- what follows ---- */

/* count * squares - sum^2: the square of count times the deviation. */
static Exact spread(const Moments *m) {
    Exact out = exact_times(&m->squares, (uint64_t)m->count), square = exact_square(&m->sum);
    exact_sub(&out, &square);
    return out;
}

bool moments_are_possible(const Moments *m) {
    if (m->count <= 0 || exact_negative(&m->squares) || !exact_has_square(&m->sum))
        return false;
    Exact room = exact_scaled((uint64_t)m->count, 256); /* squares of floats are below 2^256 */
    exact_sub(&room, &m->squares);
    if (exact_negative(&room))
        return false;
    /* So the sum is below count * 2^128, else its square would leave the range. */
    room = exact_scaled((uint64_t)m->count, 128);
    Exact minus = room;
    exact_add(&minus, &m->sum);
    exact_sub(&room, &m->sum);
    if (exact_negative(&room) || exact_negative(&minus))
        return false;
    room = spread(m);
    return !exact_negative(&room);
}

bool moments_join(Moments *to, const Moments *m) {
    if (m->count > INT64_MAX - to->count)
        return false;
    to->count += m->count;
    exact_add(&to->sum, &m->sum);
    exact_add(&to->squares, &m->squares);
    return true;
}

double moments_mean(const Moments *m) {
    return exact_double(&m->sum) / (double)m->count;
}

double moments_deviation(const Moments *m) {
    Exact v = spread(m);
    return sqrt(exact_double(&v)) / (double)m->count;
}
