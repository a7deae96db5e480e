/* Slice, Split and Gather: parts of a tensor. Slice: from 10 starts, ends, axes and steps are
 * operands. Split: from 13 the lengths are an operand, 18 added num_outputs (which an equal split
 * then has to state). Gather: 11 allowed negative indices. */
#include "ir/ops/told.h"
#include "ir/bound.h"

/* ---- Slice ---- */

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
    return bind_call(b, n, bind_kernel(b, "copy_nd", 1, &e), &p, sizeof p, 2,
                     (int[]){bind_value(b, n->in[DATA]), bind_value(b, n->out[0])});
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

/* ---- Split ---- */

typedef struct SplitAttrs {
    int64_t axis, num_outputs;
    Ints split; /* before 13 */
} SplitAttrs;

static const AttrSpec split_attrs[] = {
    A_INT(SplitAttrs, axis, 0),
    A_INT(SplitAttrs, num_outputs, 0),
    A_INTS(SplitAttrs, split),
    A_END,
};

/* The length of each part; without stated ones equal, the last smaller. */
static bool split_lengths(const OpCtx *c, Dim dim, int64_t *lengths, bool *known) {
    const SplitAttrs *a = c->attrs;
    Ints stated = a->split;
    int64_t n = (int64_t)c->n_out, part = dim.value < 0 ? -1 : dim_parts(dim.value, n), sum = 0;
    bool equal = !stated.v && !op_in(c, 1) && !a->num_outputs;
    if (equal && dim.value >= 0 && dim.value % n)
        return op_error_in(c, 0, "the axis has %lld, which %zu equal results do not share",
                           (long long)dim.value, c->n_out);
    *known = stated.v || !op_in(c, 1) || op_ints(c, 1, &stated);
    if (stated.v && stated.n != c->n_out)
        return op_error_param(c, "split", 1, "%zu lengths for %zu results", stated.n, c->n_out);
    for (int64_t i = 0; *known && i < n; i++) {
        int64_t rest = dim.value - i * part;
        lengths[i] = stated.v ? stated.v[i] : part < 0 ? -1 : part < rest ? part : rest;
        if (stated.v && lengths[i] < 0)
            return op_error_param(c, "split", 1, "a length is %lld", (long long)lengths[i]);
        lengths[i] = lengths[i] < 0 && part >= 0 ? 0 : lengths[i];
        sum = dim_add(sum, lengths[i]);
    }
    if (*known && stated.v && dim.value >= 0 && sum != dim.value)
        return op_error_param(c, "split", 1, "the lengths add up to %lld, the axis has %lld",
                              (long long)sum, (long long)dim.value);
    return true;
}

static bool split_infer(OpCtx *c) {
    const SplitAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    int axis;
    bool known;
    if (x.rank < 0 || c->n_out == 0)
        return true;
    if (a->num_outputs && a->num_outputs != (int64_t)c->n_out)
        return op_error_attr(c, "num_outputs", "num_outputs is %lld, there are %zu results",
                             (long long)a->num_outputs, c->n_out);
    int64_t *lengths = NEW_ARRAY(c->arena, int64_t, c->n_out);
    if (!op_axis(c, a->axis, x.rank, &axis) || !split_lengths(c, x.dims[axis], lengths, &known))
        return false;
    for (size_t i = 0; i < c->n_out; i++) {
        Dim *dims = arena_copy(c->arena, x.dims, (size_t)x.rank * sizeof *dims);
        dims[axis] = known && lengths[i] >= 0 ? dim_of(lengths[i]) : dim_unknown();
        c->out[i] = type_tensor(type_real_elem(x), x.rank, dims);
    }
    return true;
}

static int split_move(const OpCtx *c, int axis) {
    const SplitAttrs *a = c->attrs;
    int rank = op_type(c, 0).rank;
    return (a->axis < 0 ? a->axis + rank : a->axis) == axis ? -1 : axis;
}

static bool split_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)d;
    if (from < 13 && to >= 13)
        upgrade_ints_attr(n, "split", 1, names);
    if (from < 18 && to >= 18 && (n->n_in < 2 || !n->in[1]))
        node_set_int(n, "num_outputs", (int64_t)n->n_out);
    return true;
}

static bool split_bind(Binder *b, const Node *n, const OpCtx *c) {
    const SplitAttrs *a = c->attrs;
    Type x = n->in[0]->type;
    int axis;
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    int32_t outer = bind_extent(x, 0, axis), whole = bind_extent(x, axis, x.rank);
    int64_t offset = 0;
    ElemType e = bind_elem(n->in[0]);
    if (node_shape_operand(n) && !bind_check_parts(b, n, 1, axis))
        return false;
    for (size_t i = 0; i < n->n_out; i++) {
        if (!n->out[i]) /* its length is what the others leave over, and they are fixed */
            return bind_unsupported(b, n, "one of its results has no name");
        if (!bind_equal_quant(n->in[0], n->out[i]))
            return bind_unsupported(b, n, "operand and result are quantized differently");
        int32_t part = bind_extent(n->out[i]->type, axis, x.rank);
        if (part > whole - offset) /* with lengths that are not constant only the types tell */
            return bind_unsupported(b, n, "its results are larger than its operand");
        qk_copy_nd_params p = {.rank = 2,
                               .dim = {outer, part},
                               .ss = {whole, 1},
                               .ds = {part, 1},
                               .src_offset = offset};
        if (!bind_call(b, n, bind_kernel(b, "copy_nd", 1, &e), &p, sizeof p, 2,
                       (int[]){bind_value(b, n->in[0]), bind_value(b, n->out[i])}))
            return false;
        offset += part;
    }
    return true;
}

const OpDef op_Split = {
    .domain = "",
    .name = "Split",
    .fixed = 1u << 1,
    .attrs_size = sizeof(SplitAttrs),
    .attrs = split_attrs,
    .infer = split_infer,
    .quant = {.kind = QUANT_MOVE, .data = 1, .move.axis = split_move},
    .upgrade = split_upgrade,
    .bind = split_bind,
};

/* ---- Gather ---- */

typedef struct GatherAttrs {
    int64_t axis;
} GatherAttrs;

static const AttrSpec gather_attrs[] = {
    A_INT(GatherAttrs, axis, 0),
    A_END,
};

enum { INDICES = 1, MAX_COPIES = 64 };

static bool gather_infer(OpCtx *c) {
    const GatherAttrs *a = c->attrs;
    Type x = op_type(c, 0), i = op_type(c, INDICES);
    int axis;
    if (x.rank < 0 || i.rank < 0)
        return true;
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    int rank = x.rank - 1 + i.rank;
    if (rank > MAX_RANK)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)rank + 1);
    for (int k = 0; k < rank; k++)
        dims[k] = k < axis            ? x.dims[k]
                  : k < axis + i.rank ? i.dims[k - axis]
                                      : x.dims[k - i.rank + 1];
    c->out[0] = type_tensor(type_real_elem(x), rank, dims);
    return true;
}

static int gather_move(const OpCtx *c, int axis) {
    const GatherAttrs *a = c->attrs;
    Type x = op_type(c, 0), i = op_type(c, INDICES);
    int64_t at = a->axis < 0 ? a->axis + x.rank : a->axis;
    if (axis == at || i.rank < 0)
        return -1;
    return axis < at ? axis : axis - 1 + i.rank;
}

static int gather_slices(const OpCtx *c, size_t i, int axis, size_t result) {
    const GatherAttrs *a = c->attrs;
    (void)result;
    if (i != INDICES)
        return gather_move(c, axis);
    return axis + (int)(a->axis < 0 ? a->axis + op_type(c, 0).rank : a->axis);
}

/* A copy for each of a few constant indices: what shapes and channel orders need. */
static bool gather_bind(Binder *b, const Node *n, const OpCtx *c) {
    const GatherAttrs *a = c->attrs;
    const Tensor *t = op_const(c, INDICES);
    Type x = n->in[0]->type;
    int axis;
    const Quant *q = op_quant(n->in[0]), *moved = q ? op_moved_quant(c, n->def, q) : NULL;
    if (q ? !moved || !op_quant(n->out[0]) || !quant_equal(moved, op_quant(n->out[0]))
          : op_quant(n->out[0]) != NULL)
        return bind_unsupported(b, n, "operand and result are quantized differently");
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    int32_t length = (int32_t)x.dims[axis].value;
    if (!op_indices_fit(c, INDICES, &length, 1))
        return false;
    if (!t || !t->data || t->count > MAX_COPIES)
        return bind_gather(b, n, axis, true);
    int32_t outer = bind_extent(x, 0, axis), inner = bind_extent(x, axis + 1, x.rank);
    ElemType e = bind_elem(n->in[0]);
    for (size_t k = 0; k < t->count; k++) {
        int64_t at = tensor_int(t, k);
        at += at < 0 ? length : 0;
        qk_copy_nd_params p = {.rank = 2,
                               .dim = {outer, inner},
                               .ss = {length * inner, 1},
                               .ds = {(int32_t)t->count * inner, 1},
                               .src_offset = at * inner,
                               .dst_offset = (int64_t)k * inner};
        if (!bind_call(b, n, bind_kernel(b, "copy_nd", 1, &e), &p, sizeof p, 2,
                       (int[]){bind_value(b, n->in[0]), bind_value(b, n->out[0])}))
            return false;
    }
    return true;
}

const OpDef op_Gather = {
    .domain = "",
    .name = "Gather",
    .attrs_size = sizeof(GatherAttrs),
    .attrs = gather_attrs,
    .infer = gather_infer,
    .slices = gather_slices,
    .quant = {.kind = QUANT_MOVE, .data = 1, .move.axis = gather_move, .move.looks_up = true},
    .bind = gather_bind,
};
