/* What statistics state beside their numbers so that those of several calibrations, of a shard of
 * the data each, can be joined into those of one: exact sums, and what the method needs.
 *
 * It stands in entries of a stat: `elements` and `sums`; where the method is not minmax, `method`,
 * `seen`, and `ends` or `hist` (docs/ir.md). */
#ifndef QXC_EXEC_SHARD_H
#define QXC_EXEC_SHARD_H

#include "exec/calibrate.h"
#include "exec/moments.h"

typedef struct Shard {
    bool has_moments, has_ends; /* files of older versions have neither */
    Moments moments;
    Exact ends[2];        /* moving average, all samples alike: sums of each one's min and max */
    Str method;           /* as it is stated; "minmax" where none is */
    CalibOptions options; /* the same with its parameters; minmax where it lacks what it needs */
    Range seen;           /* true extremes; not of minmax, whose range they are */
    Histogram *histogram; /* NULL: the method needs none */
} Shard;

/* False where `elements` and `sums`, or `ends`, are not what shard_write writes. Other entries that
 * are not are somebody else's. A histogram comes from the arena, and nothing of `s` is kept. */
bool shard_read(Arena *a, const Stat *s, Shard *out);
/* These entries, and no other. */
void shard_write(Arena *a, const Shard *x, Stat *s);
/* Drops them, once a quantization has been chosen from the range. */
void shard_forget(Arena *a, Stat *s);

bool shard_says_anything(const Shard *x);

/* `x` becomes what both state. It has no sums where one of both has none, and no method where they
 * differ; neither where counts exceed 64 bits. */
void shard_join(Arena *a, Shard *x, const Shard *y);
/* The range of `count` samples that a method begins with: extremes, or averages of them. */
Range shard_ends(const Shard *x, int64_t count);
/* What a method makes of its histogram where elements below `from` count for nothing. */
Range shard_range(Arena *a, const Shard *x, double from);

#endif
