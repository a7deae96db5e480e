/* See exec/batch.h. */
#include "exec/batch.h"
#include "exec/batch_trace.h"
#include "exec/fixed_shapes.h"
#include "exec/specialise.h"
#include "ir/ops/op.h"

/* The module at one size; it is as before afterwards. */
static Probe probe_alone(Module *m, const int64_t *sizes, int64_t size, Diags *quiet) {
    FixedShapes *saved = shapes_save(m);
    Probe p = batch_probe(m, sizes, size, quiet);
    shapes_undo(m, saved);
    return p;
}

bool batch_fits(Module *m, const int64_t *sizes) {
    Diags *quiet = diags_new(m->arena, NULL, false);
    return probe_alone(m, sizes, FEW, quiet).fits && module_refine_early(m, quiet);
}

/* What so many samples say beside `few`; `room`: probe_room. */
static void find_with(Module *m, const int64_t *sizes, int64_t size, const Probe *few, Batch *b,
                      int64_t *room) {
    Diags *quiet = diags_new(m->arena, NULL, false);
    FixedShapes *saved = shapes_save(m);
    Probe many = batch_probe(m, sizes, size, quiet);
    *room = 0;
    *b = (Batch){.kind = BATCH_MIXED};
    if (few->fits && many.fits) {
        batch_trace(m, few, &many, quiet, b);
        *room = probe_room(few, &many);
    } else {
        b->kind = few->fits ? BATCH_ONE : BATCH_MIXED;
        b->why = few->fits ? "the model fits together at some sizes only"
                           : "the model does not fit together at size 1";
    }
    shapes_undo(m, saved);
    module_refine_early(m, quiet);
}

/* A table of positions is shorter than the first size that is tried in some models: smaller ones
 * fit, and say what the dimension is.
 * What constants are for a few samples they may not be for more (Min(Range(N), 12)); a size that
 * the model does not take says nothing of the others. */
Batch *batch_find(Module *m, const int64_t *sizes, int64_t most) {
    static const int64_t smaller[] = {7, 5, 3, 2};
    Batch *b = NEW(m->arena, Batch), more;
    Probe few = probe_alone(m, sizes, FEW, diags_new(m->arena, NULL, false));
    int64_t room, size;
    find_with(m, sizes, MANY, &few, b, &room);
    for (size_t i = 0; b->kind == BATCH_ONE && i < sizeof smaller / sizeof *smaller; i++)
        find_with(m, sizes, smaller[i], &few, b, &room);
    size = most < room ? most : room;
    if ((b->kind != BATCH_APART && b->kind != BATCH_SCALE) || size <= MANY)
        return b;
    find_with(m, sizes, probe_size(size), &few, &more, &room);
    if (more.kind != BATCH_ONE)
        *b = more;
    return b;
}
