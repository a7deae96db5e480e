/* Numbers as .qir writes them, converted to the bits of an element type.
 *
 * Decimals are rounded once, to the type itself; nothing depends on the locale, as qxc never sets
 * one. Failures are words for a message; the caller knows where the number stands. */
#ifndef QXC_FRONTEND_QIR_NUMBER_H
#define QXC_FRONTEND_QIR_NUMBER_H

#include "ir/type.h"

typedef enum NumberKind {
    NUM_INT,
    NUM_DECIMAL,  /* 0.1, 1e-05: magnitude * 10^exponent */
    NUM_BINARY,   /* 0x1.8p-7, 2^-7 */
    NUM_INF,      /* inf */
    NUM_NAN,      /* nan */
    NUM_NAN_BITS, /* nan(0x7fc01234): the bits are the magnitude */
} NumberKind;

typedef struct Number {
    NumberKind kind;
    bool negative;
    bool inexact; /* more digits than the magnitude holds */
    uint64_t magnitude;
    int exponent;
    const char *begin, *end;
} Number;

/* 0 to 15, or -1. */
int hex_digit(char c);
/* Reads the number that begins at `p`; NULL when there is none. The text is NUL-terminated. */
const char *number_scan(const char *p, Number *out);

/* The bits of the number as an element of type `e`, in the low end of `bits`. NULL, or what is
 * wrong ("does not fit int8, which holds -128 to 127"), from the arena. */
const char *number_bits(Arena *a, const Number *n, ElemType e, uint64_t *bits);
bool number_i64(const Number *n, int64_t *out);
float number_f32(const Number *n);
double number_f64(const Number *n);

#endif
