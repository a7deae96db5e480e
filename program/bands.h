/* Calls in bands of rows: a Conv and the pool behind it, or a longer chain, take turns, and each
 * makes only the rows that the next needs for some rows of the last result. What lies between them
 * is then a band and not a whole tensor. Rows that two bands share are moved to the front of their
 * buffer, so that none is computed twice. The bits are those of the whole calls (program/split.h).
 * Which calls this is done to, exec/bands.h decides. Never fails. */
#ifndef QXC_PROGRAM_BANDS_H
#define QXC_PROGRAM_BANDS_H

#include "program/program.h"

/* Calls that could take turns, one behind the other. */
typedef struct Banding {
    size_t first, n;
    int32_t rows; /* of the last result in a band; the last band may have fewer */
} Banding;

typedef struct BandSizes {
    size_t n_bands;
    size_t between; /* as in Bands, each tensor aligned */
    int64_t lead;   /* the last result may lie over the first operand, that much before it */
} BandSizes;

/* By call: whether nothing but the next call reads its result, by rows as it is made. */
bool *bands_joins(Arena *a, const Program *p);
/* Whether the call slides windows over rows, or maps elements alone. */
bool bands_windows(const Call *c);
/* Whether it reads constants or other tensors beside its operand. */
bool bands_weighs(const Call *c);
/* The rows of the call's result, of one image. */
int32_t bands_height(const Program *p, const Banding *b);
/* The buffer that the call reads first, and the one that it makes, as roots. */
int bands_operand(const Program *p, const Call *c);
int bands_result(const Program *p, const Call *c);

/* False where bands of so many rows cannot be: windows lie in the padding alone. */
bool bands_measure(const Program *p, const Banding *b, BandSizes *sizes);
/* Makes them, which can be measured, in order of their first calls. What lies between is no value
 * any more that could be looked at. Before the memory is planned. */
void bands_make(Arena *a, Program *p, const Banding *all, size_t n);

/* Of all calls of a program that are in bands. */
typedef struct BandsTotal {
    size_t calls; /* 0: none are. What moves rows is none */
    size_t between, whole, moved;
} BandsTotal;
BandsTotal program_bands(const Program *p);

/* A call in bands has the same params in most of them: whether two parts have, or both do nothing;
 */
bool bands_same_params(const Call *c, size_t x, size_t y);
/* how many are different, and which of these, in order of the bands, a part has. */
size_t bands_params(const Call *c);
size_t bands_params_of(const Call *c, size_t part);
/* How many params emitted C holds for the call. */
size_t call_params_held(const Call *c);

#endif
