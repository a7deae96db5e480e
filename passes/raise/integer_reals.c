/* See passes/raise/integer_reals.h. */
#include "passes/raise/integer_reals.h"
#include "passes/target/legal.h"

#include <math.h>

bool is_int(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR && !v->type.quant && elem_is_int(v->type.elem);
}

Value *twin(const Reals *r, const Value *v) {
    return v ? map_get(r->twins, value_key(v)) : NULL;
}

Type real_of_type(Type t) {
    return type_tensor(ELEM_FLOAT, t.rank, t.dims);
}

Node *node_of(Reals *r, const Node *n, const char *op, Value *x, Value *y) {
    Str name = n->name.n ? arena_strf(r->b.a, STR_FMT "_%s", STR_ARG(n->name), op) : STR_NONE;
    return build_node(&r->b, n, op, name, OPERANDS(x, y));
}

Value *before(Reals *r, Node *n, const char *op, Value *x, Value *y) {
    return build_before(&r->b, n, node_of(r, n, op, x, y), n->out[0]->name,
                        arena_strf(r->b.a, "_%s", op).s, real_of_type(x->type));
}

Value *behind(Reals *r, Node *user, Node *n, const char *suffix) {
    Value *x = n->in[0];
    Value *y = node_add_output(n, 0, derived_name(&r->b, x->name, suffix), real_of_type(x->type));
    place_behind(x, n, user);
    op_resolve(n, r->b.d);
    return y;
}

void make_real(Reals *r, Node *n, size_t i) {
    Value *y = n->out[i];
    Node *cast = node_of(r, n, "Cast", y, NULL);
    n->out[i] = NULL;
    Value *real =
        node_add_output(n, i, derived_name(&r->b, y->name, "_real"), real_of_type(y->type));
    if (!uses_is_output(r->uses, y)) {
        Str name = y->name;
        y->name = real->name;
        real->name = name;
    }
    cast->in[0] = real;
    node_take_result(cast, 0, y);
    y->stated = NULL;
    node_set_int(cast, "to", y->type.elem);
    node_insert_after(n, cast);
    op_resolve(cast, r->b.d);
    ARENA_PUSH(r->b.a, r->casts, r->n_casts, r->cap_casts, cast);
    map_set(r->twins, value_key(y), real);
}

void becomes(Reals *r, Node *n, const char *op, Value *x, Value *y) {
    node_becomes(n, r->b.pass);
    n->op = str_from(op);
    n->in[0] = x;
    n->n_in = 1;
    n->attrs = NULL;
    n->n_attrs = 0;
    if (y)
        node_add_input(n, y);
}

void becomes_cast(Reals *r, Node *n, Value *x, ElemType to) {
    becomes(r, n, "Cast", x, NULL);
    node_set_int(n, "to", to);
    op_resolve(n, r->b.d);
    ARENA_PUSH(r->b.a, r->casts, r->n_casts, r->cap_casts, n);
}

/* ---- what conversions compute with ---- */

/* Where a Q or DQ has several scales they vary over its operand's axis; the shape that broadcasts.
 */
static const char *shape_of_params(const Node *n, const Tensor *t, int *rank, int64_t *dims) {
    Type x = n->in[0]->type;
    int64_t axis = node_int(n, "axis", 1);
    *rank = 0;
    if (node_int(n, "block_size", 0))
        return "its scales are of blocks";
    if (t->count == 1)
        return NULL;
    axis += axis < 0 ? x.rank : 0;
    if (x.rank < 0 || axis < 0 || axis >= x.rank)
        return "the axis of its scales is not known";
    *rank = x.rank - (int)axis;
    for (int i = 0; i < *rank; i++)
        dims[i] = i ? 1 : (int64_t)t->count;
    return NULL;
}

static const Tensor *param(const Node *n, size_t i) {
    const Tensor *t = n->n_in > i && n->in[i] ? value_data(n->in[i]) : NULL;
    return t && t->data && t->count ? t : NULL;
}

const char *real_params(Reals *r, const Node *n, bool reciprocal, RealParams *p) {
    const Tensor *s = param(n, 1), *z = param(n, 2);
    int64_t dims[MAX_RANK];
    int rank;
    if (!s)
        return "its scale is no constant";
    if (n->n_in > 2 && n->in[2] && !z)
        return "its zero point is no constant";
    const char *why = shape_of_params(n, s, &rank, dims);
    if (why)
        return why;
    if (z && z->count != s->count)
        return "it has not as many zero points as scales";
    float *scales = NEW_ARRAY(r->b.a, float, s->count), *zps = NEW_ARRAY(r->b.a, float, s->count);
    bool shifted = false;
    for (size_t i = 0; i < s->count; i++) {
        double v = tensor_float(s, i);
        scales[i] = (float)(reciprocal ? 1 / v : v);
        zps[i] = z ? (float)tensor_float(z, i) : 0;
        shifted |= zps[i] != 0;
        if (!isnormal(scales[i]) || scales[i] < 0)
            return reciprocal && isnormal((float)v) && v > 0
                       ? "the reciprocal of its scale is no normal number of 32 bits"
                       : "its scale is no positive, normal number of 32 bits";
        if (zps[i] != rintf(zps[i]))
            return "its zero point is no integer";
    }
    p->scale = build_floats(&r->b, n->in[1]->name, reciprocal ? "_factor" : "_real", ELEM_FLOAT,
                            rank, dims, scales);
    p->zp =
        shifted ? build_floats(&r->b, n->in[2]->name, "_real", ELEM_FLOAT, rank, dims, zps) : NULL;
    return NULL;
}

/* ---- integers as floats ---- */

Value *real_const(Reals *r, Value *v) {
    const Tensor *t = value_data(v);
    float *data;
    Graph *g = v->kind == VALUE_CONST ? v->graph : r->m->graph;
    Value *real = edit_new_floats(g, r->b.names, v->name, t->rank, t->dims, &data);
    for (size_t i = 0; i < t->count; i++)
        data[i] = (float)tensor_float(t, i);
    const Use *uses;
    if (v->kind == VALUE_CONST && uses_of(r->uses, v, &uses) == 1) {
        Str name = v->name;
        v->name = real->name;
        real->name = name;
        real->loc = v->loc;
    } else {
        value_from(real, v, r->b.pass);
    }
    return real;
}

/* What it puts among its operand's elements, if anything, is an integer of e, too. */
static bool fills_within(const Node *n, ElemType e) {
    size_t i = fill_operand(n);
    const Value *v = i ? node_input(n, i) : NULL;
    const Tensor *t = v ? value_data(v) : NULL;
    if (!v || !t || !t->data || t->count != 1)
        return !v;
    double fill = tensor_float(t, 0);
    return fill == rint(fill) && fill >= (double)elem_min(e) && fill <= (double)elem_max(e);
}

float largest_float(ElemType e) {
    float most = (float)elem_max(e);
    int bits = elem_bits(e) - elem_is_signed(e);
    return most == ldexpf(1, bits) ? nextafterf(most, 0) : most;
}

bool floats_within(const Value *v, ElemType e, bool rounded) {
    bool bounded = false;
    for (const Node *n = v->def; n && n->n_in && n->in[0]; n = n->in[0]->def) {
        float lo, hi;
        bool clamps = n->def && n->def->quant.kind == QUANT_CLAMP;
        if (clamps && clamp_bounds(n, &lo, &hi)) {
            if (!rounded && (lo != rintf(lo) || hi != rintf(hi)))
                break;
            bounded |= lo >= (float)elem_min(e) && hi <= largest_float(e);
        } else if (node_is(n, "Round") || node_is(n, "Floor"))
            rounded = true;
        else if (!node_moves(n) || !keeps_integers(n) || node_interpolates(n) ||
                 !fills_within(n, e))
            break;
        if (rounded && bounded)
            return true;
    }
    return false;
}

/* An input of the model that one node reads: its integers are those of a type. */
static bool takes_type(const Reals *r, const Value *v) {
    const Use *uses;
    return v->kind == VALUE_INPUT && v->graph == r->m->graph && !v->data &&
           elem_bits(v->type.elem) <= 16 && uses_of(r->uses, v, &uses) == 1;
}

Value *real_of(Reals *r, Value *v, Node *user) {
    Value *real = twin(r, v);
    if (real)
        return real;
    const Tensor *t = value_data(v);
    Node *def = v->def;
    if (t && t->data) {
        real = real_const(r, v);
    } else if (def && node_cast(def) && def->in[0]->type.kind == TYPE_TENSOR &&
               def->in[0]->type.elem == ELEM_FLOAT &&
               floats_within(def->in[0], v->type.elem, false)) {
        real = def->in[0];
    } else if (def &&
               (is_onnx_quantize(def) || node_moves(def) ||
                (def->def && def->def->quant.kind == QUANT_CLAMP)) &&
               convert_to_reals(r, def)) {
        return twin(r, v);
    } else if (takes_type(r, v)) {
        const Quant *q = quant_per_tensor(r->b.a, v->type.elem, 1, 0);
        v->type = type_quantized(real_of_type(v->type), q);
        real = before(r, user, "DequantizeLinear", v, NULL);
    } else {
        Node *cast = node_of(r, user, "Cast", v, NULL);
        node_set_int(cast, "to", ELEM_FLOAT);
        real = behind(r, user, cast, "_real");
    }
    map_set(r->twins, value_key(v), real);
    return real;
}
