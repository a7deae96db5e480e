/* See ir/ops/told.h. */
#include "ir/ops/told.h"
#include "program/binder.h"

void bind_dims(Type x, int32_t *dims) {
    for (int i = 0; i < x.rank; i++)
        dims[i] = (int32_t)x.dims[i].value;
}

bool bind_told_list(Binder *b, const Node *n, size_t i, size_t count) {
    const Value *v = n->in[i];
    size_t have;
    return (v->type.kind == TYPE_TENSOR && v->type.rank == 1 && type_count(v->type, &have) &&
            have == count) ||
           bind_unsupported(b, n, "'%s' is not a list of %zu numbers",
                            diag_name(binder_diags(b), v->name), count);
}

/* The open one is asked for. It is no number here, as it would follow from itself. */
bool bind_told_length(Binder *b, const Node *n, int dims, int length) {
    Type y = n->out[0]->type;
    qk_shape_length_params p = {.rank = y.rank};
    bind_dims(y, p.dim);
    p.dim[binder_bound(b, n)->axis] = -1;
    return bind_call(b, n, "qk_shape_length", &p, sizeof p, 2, (int[]){dims, length});
}

bool bind_expanded_length(Binder *b, const Node *n, Type x, const Value *shape, int length) {
    int rank = n->out[0]->type.rank;
    int32_t own[MAX_RANK];
    qk_expand_dims_params p = {.rank = rank};
    size_t count;
    if (shape->type.rank != 1 || !type_count(shape->type, &count) || (int)count > rank)
        return bind_unsupported(b, n, "'%s' is not a list of at most %d numbers",
                                diag_name(binder_diags(b), shape->name), rank);
    p.n = (int32_t)count;
    bind_dims(x, own);
    for (int i = 0; i < rank; i++)
        p.from[i] = i < rank - x.rank ? 1 : own[i - (rank - x.rank)];
    int dims = bind_temp(b, ELEM_INT64, (size_t)rank);
    return bind_call(b, n, "qk_expand_dims", &p, sizeof p, 2,
                     (int[]){bind_value(b, shape), dims}) &&
           bind_told_length(b, n, dims, length);
}

/* The model states result 0, and its length along the axis is at `length` in a run. */
static void check_stated(Binder *b, const Node *n, int axis, int64_t stated, int length) {
    LengthBound *s = NEW(binder_arena(b), LengthBound);
    *s = (LengthBound){n, n->out[0], axis, stated, stated, stated, .stated = true};
    binder_check_length(b, s, length);
}

/* The first of p's numbers is asked for, all others have to be those in the buffer `told`. */
static bool check_first(Binder *b, const Node *n, int axis, qk_shape_length_params *p, int told) {
    int64_t first = p->dim[0];
    int length = bind_temp(b, ELEM_INT64, 1);
    p->dim[0] = -1;
    if (!bind_call(b, n, "qk_shape_length", p, sizeof *p, 2, (int[]){told, length}))
        return false;
    check_stated(b, n, axis, first, length);
    return true;
}

bool bind_check_parts(Binder *b, const Node *n, size_t i, int axis) {
    qk_shape_length_params p = {.rank = (int32_t)n->n_out};
    if (n->n_out > MAX_RANK)
        return bind_unsupported(b, n, "its lengths are not constant, of more than %d results",
                                MAX_RANK);
    if (!bind_told_list(b, n, i, n->n_out))
        return false;
    for (size_t k = 0; k < n->n_out && n->out[k]; k++)
        p.dim[k] = (int32_t)n->out[k]->type.dims[axis].value;
    return check_first(b, n, axis, &p, bind_value(b, n->in[i]));
}

bool bind_check_shape(Binder *b, const Node *n, size_t i) {
    Type y = n->out[0]->type;
    qk_shape_length_params p = {.rank = y.rank};
    bind_dims(y, p.dim);
    return bind_told_list(b, n, i, (size_t)y.rank) &&
           check_first(b, n, 0, &p, bind_value(b, n->in[i]));
}

bool bind_check_axes(Binder *b, const Node *n, size_t i, Type with, Type without) {
    Type y = n->out[0]->type;
    qk_axes_length_params p = {.rank = with.rank,
                               .n = with.rank - without.rank,
                               .length = y.rank ? (int32_t)y.dims[0].value : 1};
    int length = bind_temp(b, ELEM_INT64, 1);
    if (p.n < 0)
        return bind_unsupported(b, n, "its result has rank %d, its operand %d", y.rank,
                                n->in[0]->type.rank);
    bind_dims(with, p.from);
    bind_dims(without, p.to);
    if (!bind_told_list(b, n, i, (size_t)p.n) ||
        !bind_call(b, n, "qk_axes_length", &p, sizeof p, 2,
                   (int[]){bind_value(b, n->in[i]), length}))
        return false;
    check_stated(b, n, 0, p.length, length);
    return true;
}

/* ---- boxes ---- */

int bind_box(Binder *b, const Node *n) {
    return bind_temp(b, ELEM_INT64, 3 * (size_t)n->in[0]->type.rank);
}

bool bind_copy_box(Binder *b, const Node *n, int box) {
    Type x = n->in[0]->type;
    qk_copy_box_params p = {.rank = x.rank};
    ElemType e = bind_elem(n->in[0]);
    bind_dims(x, p.from);
    bind_dims(n->out[0]->type, p.dim);
    return bind_call(b, n, bind_kernel(b, "copy_box", 1, &e), &p, sizeof p, 3,
                     (int[]){bind_value(b, n->in[0]), box, bind_value(b, n->out[0])});
}

bool bind_take_in_run(Binder *b, const Node *n, Str mode, int box) {
    Type x = n->in[0]->type, y = n->out[0]->type;
    qk_box_places_params p = {.rank = x.rank,
                              .mode = str_is(mode, "edge")      ? 0
                                      : str_is(mode, "reflect") ? 1
                                                                : 2};
    qk_take_nd_params take = {.rank = x.rank};
    ElemType e = bind_elem(n->in[0]);
    size_t count = 0;
    bind_dims(x, p.from);
    bind_dims(y, p.dim);
    bind_dims(y, take.dim);
    for (int i = 0; i < y.rank; i++)
        count += (size_t)p.dim[i];
    int places = bind_temp(b, ELEM_INT32, count);
    return bind_call(b, n, "qk_box_places", &p, sizeof p, 2, (int[]){box, places}) &&
           bind_call(b, n, bind_kernel(b, "take_nd", 1, &e), &take, sizeof take, 3,
                     (int[]){bind_value(b, n->in[0]), places, bind_value(b, n->out[0])});
}
