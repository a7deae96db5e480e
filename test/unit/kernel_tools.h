/* For the tests of kernels: random data of any type, and calling an instance by name. */
#ifndef QXC_TEST_KERNEL_TOOLS_H
#define QXC_TEST_KERNEL_TOOLS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel.h"
#include "kernels/requant_host.h"
#include "kernels_gen.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static uint64_t random_state = 1;
static inline uint32_t random_bits(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}
static inline int64_t between(int64_t lo, int64_t hi) {
    uint64_t wide = (uint64_t)random_bits() << 32 | random_bits();
    return lo + (int64_t)(wide % (uint64_t)(hi - lo + 1));
}
static inline double uniform(double lo, double hi) {
    return lo + (hi - lo) * random_bits() / 4294967295.0;
}

typedef struct {
    const char *id;
    int bytes;
    int64_t lo, hi;
} IntType;
static const IntType int_types[] = {{"s8", 1, -128, 127},
                                    {"u8", 1, 0, 255},
                                    {"s16", 2, -32768, 32767},
                                    {"u16", 2, 0, 65535},
                                    {"s32", 4, INT32_MIN, INT32_MAX}};

static inline int64_t get(const IntType *t, const void *data, size_t i) {
    switch (t->bytes) {
    case 1: return t->lo ? ((const int8_t *)data)[i] : ((const uint8_t *)data)[i];
    case 2: return t->lo ? ((const int16_t *)data)[i] : ((const uint16_t *)data)[i];
    default: return ((const int32_t *)data)[i];
    }
}
static inline void set(const IntType *t, void *data, size_t i, int64_t v) {
    switch (t->bytes) {
    case 1: ((uint8_t *)data)[i] = (uint8_t)v; break;
    case 2: ((uint16_t *)data)[i] = (uint16_t)v; break;
    default: ((int32_t *)data)[i] = (int32_t)v; break;
    }
}
/* n values of the whole range, both ends more often; freed by the caller. */
static inline void *random_ints(const IntType *t, size_t n) {
    void *p = calloc(n + 1, 4);
    for (size_t i = 0; i < n; i++) {
        uint32_t end = random_bits() % 8;
        set(t, p, i, end == 0 ? t->lo : end == 1 ? t->hi : between(t->lo, t->hi));
    }
    return p;
}
static inline int64_t random_zp(const IntType *t) {
    int64_t z[3] = {t->lo, t->hi, between(t->lo, t->hi)};
    return z[random_bits() % 3];
}

static KernelVectors vectors; /* that kernels are compiled for */

static inline void run(const char *name, const void *params, void *const *args) {
    const KernelDef *k = kernel_find(name);
    if (!k)
        fail_msg("no kernel %s", name);
    if (k->invoke[vectors])
        k->invoke[vectors](params, args);
    else
        k->invoke[KERNEL_ANY](params, args);
}
#define RUN(name, params, ...) run(name, params, (void *[]){__VA_ARGS__})

static inline int64_t saturate(double v, int64_t lo, int64_t hi) {
    return v<(double)lo ? lo : v>(double) hi ? hi : (int64_t)v;
}
static inline int64_t ort_requant(int64_t acc, float m, int64_t zp, const IntType *t) {
    return saturate((double)rintf((float)acc * m) + (double)zp, t->lo, t->hi);
}

#endif
