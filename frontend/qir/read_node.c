/* Nodes and constants. */
#include "frontend/qir/reader.h"
#include "ir/verify_quant.h"

OpName op_name(Token t) {
    return (OpName){.n = 1, .part = {range_of(t)}, .at = range_of(t)};
}

/* ::op::overload */
OpName no_domain(Token t) {
    return (OpName){.n = 1, .at = range_of(t)};
}

OpName op_name_add(OpName n, Token t) {
    n.part[n.n++] = range_of(t);
    n.at = range_join(n.at, range_of(t));
    return n;
}

void op_name_parts(const Reader *r, OpName n, Str *domain, Str *op, Str *overload) {
    *domain = n.n > 1 && n.part[0].end ? str_at(r, n.part[0]) : STR_NONE;
    *op = str_at(r, n.part[n.n > 1]);
    *overload = n.n > 2 ? str_at(r, n.part[2]) : STR_NONE;
}

Span span_of_in(Reader *r, const Token *t) {
    Span s = {.begin = (uint32_t)r->n_ins};
    span_add_in(r, &s, t);
    return s;
}

void span_add_in(Reader *r, Span *s, const Token *t) {
    size_t operand = r->n_ins - s->begin;
    Value *v = t ? find_or_await(r, str_of(r, *t), range_of(*t), operand) : NULL;
    ARENA_PUSH(r->arena, r->ins, r->n_ins, r->cap_ins, v);
    s->n = (uint32_t)r->n_ins - s->begin;
}

static void define_outputs(Reader *r, Node *n, Span outs) {
    for (uint32_t i = 0; i < outs.n; i++) {
        const Bind *b = &r->binds[outs.begin + i];
        if (!b->omitted)
            define_value(r, node_add_output(n, i, b->name, bind_type(r, b)), b);
    }
    if (outs.n)
        r->n_binds = outs.begin;
}

static void adopt_graphs(Node *n) {
    for (size_t i = 0; i < n->n_attrs; i++) {
        const Attr *a = &n->attrs[i];
        for (size_t k = 0; k < attr_graphs(a); k++)
            a->v.g[k]->owner = n;
    }
}

void read_node(Reader *r, Span outs, OpName op, const Span *ins, const Span *attrs, Clauses *c) {
    Graph *g = r->frame->graph;
    Node *n = node_new(g, STR_NONE, STR_NONE, ins ? ins->n : 0, outs.n);
    op_name_parts(r, op, &n->domain, &n->op, &n->overload);
    n->loc = loc_of(r, op.at);
    if (ins) {
        memcpy(n->in, r->ins + ins->begin, ins->n * sizeof *n->in);
        r->n_ins = ins->begin;
        own_operands(r, n, op.at);
    }
    if (attrs)
        n->n_attrs = read_attrs(r, *attrs, &n->attrs);
    adopt_graphs(n);
    clauses_check(r, c, "ndxmf", "a node");
    if (c) {
        n->name = c->name;
        n->doc = c->doc;
        n->meta = c->meta;
        n->extra = c->extra;
        n->from = c->from;
        r->spare_clauses = c;
    }
    graph_append(g, n);
    define_outputs(r, n, outs);
    n->misread = take_flaws(r);
}

/* ---- constants ---- */

/* The value a const line gives data to: an input with a default, or a new constant. */
static Value *const_value(Reader *r, const Bind *b) {
    Frame *f = r->frame;
    Value *v = map_get(f->due, b->name);
    if (!v) {
        Type t = bind_type(r, b);
        if (!b->type && !is_broken(r, '%', b->name))
            error_at(r, b->at, "a constant has a type, as in 'const %%%s : float[4] = ...'",
                     shown(r, b->name));
        t.failed |= !b->type;
        v = awaited_value(f, b->name);
        v = v ? graph_take_const(f->graph, v, t) : graph_add_const(f->graph, b->name, t, NULL);
        define_value(r, v, b);
        return v;
    }
    if (b->type && v->type.quant)
        error_at(r, b->at, "the type of %%%s stands where it is an input", shown(r, b->name));
    if (v->data || v->sparse)
        error_at(r, b->at, "a second default of %%%s", shown(r, b->name));
    return v;
}

static void wrong_default(Reader *r, const Value *v, const Val *data, Type type) {
    error_at(r, data->at, "the input has type %s, this is %s", type_text(r->arena, v->type),
             type_text(r->arena, type));
}

/* `type` is the value's, or what the line says where an input leaves its shape open. */
static void give_sparse(Reader *r, Value *v, const Type *type, const Val *data, const Clauses *c) {
    Type whole = *type;
    if (whole.kind != TYPE_SPARSE) /* what is no tensor either is said where it is read */
        whole = (Type){.kind = TYPE_SPARSE, .rank = -1, .sub = type};
    SparseTensor *s = read_sparse_literal(r, &whole, data);
    if (!s)
        return;
    if (!sparse_fits(s, v->type))
        wrong_default(r, v, data, sparse_type(r->arena, s));
    if (!s->values->name.s)
        s->values->name = v->name;
    if (c)
        s->extra = c->extra;
    v->sparse = s;
}

static void give_tensor(Reader *r, Value *v, const Type *type, const Val *data, const Clauses *c) {
    v->data = read_literal(r, type, data);
    if (!v->data)
        return;
    if (!tensor_fits(v->data, v->type))
        wrong_default(r, v, data, tensor_type(r->arena, v->data));
    v->data->name = v->name;
    if (c) {
        v->data->doc = c->doc;
        v->data->meta = c->meta;
        v->data->extra = c->extra;
    }
    if (v->data->place == TENSOR_BLOB) /* elements of a list were checked where they stand */
        verify_quant_const(v->type, v->data, loc_of(r, data->at), r->diags);
}

void read_const(Reader *r, const Bind *b, const Val *data, Clauses *c) {
    if (r->frame->func)
        error_at(r, b->at, "functions hold no constants; a node Constant makes one");
    Value *v = const_value(r, b);
    clauses_check(r, c, "dxmf", "a constant");
    if (c && c->from.n)
        v->from = c->from;
    Type type = b->type ? *b->type : v->type;
    type.failed |= v->misread; /* its quantization does not fit it, say */
    if (val_is_call(r, data, "coo") || type.kind == TYPE_SPARSE)
        give_sparse(r, v, &type, data, c);
    else
        give_tensor(r, v, &type, data, c);
    check_stat_of(r, v);
    bool flawed = take_flaws(r) || !(v->data || v->sparse);
    v->misread = v->misread || flawed;
}
