/* What upgrades do to a node: attributes that became operands. */
#include "ir/ops/op.h"

#include <math.h>

#include "ir/minifloat.h"
#include "ir/provenance.h"

static void set_input(Node *n, size_t index, Value *v) {
    while (n->n_in <= index)
        node_add_input(n, NULL);
    n->in[index] = v;
}

static Value *new_const(Node *n, const char *suffix, Type t, Tensor *data, UniqueNames *names) {
    Arena *a = n->graph->module->arena;
    Str base = n->name.n || !n->n_out || !n->out[0] ? n->name : n->out[0]->name;
    Str name = arena_strf(a, STR_FMT "_%s", STR_ARG(base), suffix);
    Value *v = graph_add_const(n->graph, unique_name(names, name), t, data);
    v->loc = n->loc;
    value_from_node(v, n, "upgrade");
    return v;
}

Value *upgrade_ints(Node *n, const char *suffix, Ints list, UniqueNames *names) {
    Arena *a = n->graph->module->arena;
    int64_t dims[] = {(int64_t)list.n};
    return new_const(
        n, suffix, type_fixed(a, ELEM_INT64, 1, dims),
        tensor_of(a, ELEM_INT64, 1, dims, arena_copy(a, list.v, list.n * sizeof *list.v)), names);
}

Value *upgrade_floats(Node *n, const char *suffix, Floats list, UniqueNames *names) {
    Arena *a = n->graph->module->arena;
    int64_t dims[] = {(int64_t)list.n};
    return new_const(
        n, suffix, type_fixed(a, ELEM_FLOAT, 1, dims),
        tensor_of(a, ELEM_FLOAT, 1, dims, arena_copy(a, list.v, list.n * sizeof *list.v)), names);
}

void upgrade_ints_attr(Node *n, const char *attr, size_t index, UniqueNames *names) {
    const Attr *a = node_attr(n, attr);
    if (!a)
        return;
    set_input(n, index, upgrade_ints(n, attr, (Ints){a->v.i, a->n}, names));
    node_drop_attr(n, attr);
}

static void upgrade_scalar(Node *n, const char *attr, size_t index, ElemType e, const void *number,
                           UniqueNames *names) {
    Arena *a = n->graph->module->arena;
    Tensor *t = tensor_of(a, e, 0, NULL, number);
    set_input(n, index, new_const(n, attr, type_fixed(a, e, 0, NULL), t, names));
    node_drop_attr(n, attr);
}

void upgrade_int_attr(Node *n, const char *attr, size_t index, UniqueNames *names) {
    const Attr *at = node_attr(n, attr);
    if (at)
        upgrade_scalar(n, attr, index, ELEM_INT64,
                       arena_copy(n->graph->module->arena, at->v.i, sizeof(int64_t)), names);
}

/* Of the type of the data, as an operand is, where an attribute is always a float; a number beyond
 * that type is infinite. */
void upgrade_float_attr(Node *n, const char *attr, size_t index, UniqueNames *names) {
    const Attr *at = node_attr(n, attr);
    if (!at)
        return;
    uint64_t bits;
    ElemType e = type_real_elem(n->in[0]->type);
    if (!elem_is_float(e))
        e = ELEM_FLOAT;
    if (!float_encode(e, (double)at->v.f[0], &bits))
        float_encode(e, (double)copysignf(INFINITY, at->v.f[0]), &bits);
    upgrade_scalar(n, attr, index, e, arena_copy(n->graph->module->arena, &bits, sizeof bits),
                   names);
}
