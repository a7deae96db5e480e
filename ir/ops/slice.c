/* Slice: every so many elements between bounds. From 10 starts, ends, axes and steps are operands.
 */
#include "ir/ops/told.h"
#include "ir/bound.h"

typedef struct SliceAttrs {
    Ints starts, ends, axes; /* before 10 */
} SliceAttrs;

static const AttrSpec slice_attrs[] = {
    A_INTS(SliceAttrs, starts),
    A_INTS(SliceAttrs, ends),
    A_INTS(SliceAttrs, axes),
    A_END,
};

enum { DATA, STARTS, ENDS, AXES, STEPS };

/* One axis of a slice, with numpy's rules for what lies outside applied. */
typedef struct Cut {
    int64_t start, step, count;
} Cut;

static int64_t clamp(int64_t v, int64_t lo, int64_t hi) {
    return v < lo ? lo : v > hi ? hi : v;
}

/* The kernel slice_box has the same rule: an axis without elements stays so, though a start is
 * clamped to 0, and an end before it would count one where steps are negative. */
static Cut cut_axis(int64_t dim, int64_t start, int64_t end, int64_t step) {
    start += start < 0 ? dim : 0;
    end += end < 0 ? dim : 0;
    start = clamp(start, 0, step > 0 ? dim : dim - 1);
    end = clamp(end, step > 0 ? 0 : -1, dim);
    int64_t span = step > 0 ? end - start : start - end, size = step > 0 ? step : -(step + 1) + 1;
    return (Cut){start, step, span > 0 && dim > 0 ? (span - 1) / size + 1 : 0};
}

/* Of each axis that is cut, as far as it is known before it runs. `axes` is NULL for the first
 * ones, `steps` where they are 1. */
typedef struct Bounds {
    SomeInts starts, ends, steps;
    Ints axes;
} Bounds;

/* False where not even the axes are known. */
static bool slice_bounds(const OpCtx *c, Bounds *s) {
    const SliceAttrs *a = c->attrs;
    *s = (Bounds){.axes = a->axes};
    if (a->starts.v && a->ends.v) {
        s->starts = op_known_ints(c, a->starts);
        s->ends = op_known_ints(c, a->ends);
        return true;
    }
    return op_some_ints(c, STARTS, &s->starts) && op_some_ints(c, ENDS, &s->ends) &&
           (!op_in(c, AXES) || op_ints(c, AXES, &s->axes)) &&
           (!op_in(c, STEPS) || op_some_ints(c, STEPS, &s->steps));
}

static bool slice_check(const OpCtx *c, Type x, const Bounds *s) {
    bool seen[MAX_RANK];
    if (s->starts.n != s->ends.n || (s->axes.v && s->axes.n != s->starts.n) ||
        (s->steps.v && s->steps.n != s->starts.n))
        return op_error(c, "starts, ends, axes and steps differ in length");
    if (!s->axes.v && s->starts.n > (size_t)x.rank)
        return op_error_param(c, "starts", STARTS, "%zu starts for rank %d", s->starts.n, x.rank);
    for (size_t i = 0; i < s->steps.n; i++)
        if (s->steps.known[i] &&
            (s->steps.v[i] == 0 || s->steps.v[i] < -INT32_MAX || s->steps.v[i] > INT32_MAX))
            return op_error_param(c, "steps", STEPS, "step %lld is out of range",
                                  (long long)s->steps.v[i]);
    return op_axes(c, s->axes, AXES, x.rank, seen);
}

/* Number i of the bounds, along an axis of this length; step 0 and count -1 where that is open. */
static Cut slice_cut(const Bounds *s, size_t i, int64_t dim) {
    if (dim < 0 || !s->starts.known[i] || !s->ends.known[i] || (s->steps.v && !s->steps.known[i]))
        return (Cut){0, 0, -1};
    return cut_axis(dim, s->starts.v[i], s->ends.v[i], s->steps.v ? s->steps.v[i] : 1);
}

/* The cut of each axis; `known` is false where not even the axes are. */
static bool slice_cuts(const OpCtx *c, Cut *cuts, bool *known) {
    Type x = op_type(c, DATA);
    Bounds s;
    *known = x.rank >= 0 && slice_bounds(c, &s);
    if (!*known)
        return true;
    if (!slice_check(c, x, &s))
        return false;
    for (int i = 0; i < x.rank; i++)
        cuts[i] = (Cut){0, 1, x.dims[i].value};
    for (size_t i = 0; i < s.starts.n; i++) {
        int64_t axis = s.axes.v ? s.axes.v[i] : (int64_t)i;
        axis += axis < 0 ? x.rank : 0;
        cuts[axis] = slice_cut(&s, i, x.dims[axis].value);
    }
    return true;
}

static bool slice_infer(OpCtx *c) {
    Type x = op_type(c, DATA);
    Cut cuts[MAX_RANK];
    bool known;
    if (!slice_cuts(c, cuts, &known))
        return false;
    if (x.rank < 0)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank + 1);
    for (int i = 0; i < x.rank; i++)
        dims[i] = !known || cuts[i].step == 0        ? dim_unknown()
                  : cuts[i].count == x.dims[i].value ? x.dims[i]
                                                     : dim_of(cuts[i].count);
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    return true;
}

/* An axis survives unless something is cut off it or its order changes. */
static int slice_move(const OpCtx *c, int axis) {
    Cut cuts[MAX_RANK];
    bool known;
    if (!slice_cuts(c, cuts, &known) || !known || axis >= op_type(c, DATA).rank)
        return -1;
    return cuts[axis].step == 1 && cuts[axis].count == op_type(c, DATA).dims[axis].value ? axis
                                                                                         : -1;
}

static bool slice_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)d;
    if (from >= 10 || to < 10)
        return true;
    upgrade_ints_attr(n, "starts", STARTS, names);
    upgrade_ints_attr(n, "ends", ENDS, names);
    upgrade_ints_attr(n, "axes", AXES, names);
    return true;
}

/* ---- bounds that only a run tells ---- */

/* No slice is longer than what it is cut from. */
static int64_t slice_longest(const OpCtx *c) {
    Type x = op_type(c, DATA);
    int axis = c->node->out[0] ? type_open_axis(c->node->out[0]->type) : -1;
    return axis >= 0 && axis < x.rank ? x.dims[axis].value : -1;
}

static bool bind_slice_box(Binder *b, const Node *n, int box) {
    Type x = n->in[DATA]->type, starts = n->in[STARTS]->type;
    ElemType e = starts.elem;
    size_t count;
    int args[5] = {-1, -1, -1, -1, box};
    if (!type_count(starts, &count) || count > (size_t)x.rank)
        return bind_unsupported(b, n, "it has not one start for each axis");
    qk_slice_box_params p = {.rank = x.rank, .n = (int32_t)count};
    bind_dims(x, p.from);
    for (size_t i = STARTS; i <= STEPS && i < n->n_in; i++) {
        if (n->in[i] && !bind_told_list(b, n, i, count))
            return false;
        args[i - STARTS] = bind_value(b, n->in[i]);
    }
    return bind_call(b, n, bind_kernel(b, "slice_box", 1, &e), &p, sizeof p, 5, args);
}

static bool slice_bind_length(Binder *b, const Node *n, const OpCtx *c, int length) {
    int box = bind_box(b, n);
    (void)c;
    return bind_slice_box(b, n, box) && bind_told_length(b, n, box, length);
}

static bool slice_bind_in_run(Binder *b, const Node *n) {
    int box = bind_box(b, n);
    return bind_slice_box(b, n, box) && bind_copy_box(b, n, box);
}

static bool slice_bind(Binder *b, const Node *n, const OpCtx *c) {
    Type x = n->in[DATA]->type;
    Cut cuts[MAX_RANK];
    bool known;
    if (!bind_equal_quant(n->in[DATA], n->out[0]))
        return bind_unsupported(b, n, "operand and result are quantized differently");
    if (node_shape_operand(n))
        return slice_bind_in_run(b, n);
    if (!slice_cuts(c, cuts, &known))
        return false;
    qk_copy_nd_params p = {.rank = x.rank};
    int64_t from = 1, to = 1;
    for (int i = x.rank - 1; i >= 0; i--) {
        p.dim[i] = (int32_t)cuts[i].count;
        p.ss[i] = cuts[i].count > 1 ? (int32_t)(from * cuts[i].step) : 0;
        p.ds[i] = (int32_t)to;
        p.src_offset += from * cuts[i].start;
        from *= x.dims[i].value;
        to *= cuts[i].count;
    }
    ElemType e = bind_elem(n->in[DATA]);
    return bind_first(b, n, bind_kernel(b, "copy_nd", 1, &e), &p, sizeof p);
}

const OpDef op_Slice = {
    .domain = "",
    .name = "Slice",
    .fixed = 0x1e,
    .attrs_size = sizeof(SliceAttrs),
    .attrs = slice_attrs,
    .infer = slice_infer,
    .quant = {.kind = QUANT_MOVE, .data = 1, .move.axis = slice_move},
    .upgrade = slice_upgrade,
    .longest = slice_longest,
    .bind_length = slice_bind_length,
    .bind = slice_bind,
};
