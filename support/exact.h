/* Exact numbers of fixed point, wide enough for the sum of 2^63 squares of floats: such sums do not
 * depend on the order of their terms. Nothing allocates, nothing can fail but reading. */
#ifndef QXC_SUPPORT_EXACT_H
#define QXC_SUPPORT_EXACT_H

#include "support/buf.h"

/* Squares of floats are multiples of 2^-298 and below 2^256. 2^63 of them, times 2^63 as for a
 * variance, stay below 2^382. */
enum { EXACT_FRACTION = 320, EXACT_WORDS = 22 };

typedef struct Exact { /* an integer of two's complement, times 2^-EXACT_FRACTION */
    uint32_t w[EXACT_WORDS];
} Exact;

/* x += y, x -= y: what leaves the range wraps around. */
void exact_add(Exact *x, const Exact *y);
void exact_sub(Exact *x, const Exact *y);
/* v * 2^exponent: a multiple of 2^-EXACT_FRACTION that fits. */
Exact exact_scaled(uint64_t v, int exponent);
Exact exact_float(float x); /* finite */
/* x * n, where that fits. */
Exact exact_times(const Exact *x, uint64_t n);
/* Whether it is a multiple of 2^-160. */
bool exact_has_square(const Exact *x);
/* x * x of such a multiple, where that fits. */
Exact exact_square(const Exact *x);
bool exact_negative(const Exact *x);
/* The nearest double, ties to even. */
double exact_double(const Exact *x);

/* "-0x1f.8": hexadecimal, with as many digits as there are. Reading takes what fits. */
void exact_print(Buf *b, const Exact *x);
bool exact_read(Str text, Exact *x);

#endif
