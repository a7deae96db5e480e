/* Inferred types against stated ones. See infer.h. */
#include "ir/ops/infer.h"

/* Of the stated type. */
static Loc type_loc(const Infer *s, const Node *n, const Value *v) {
    if (!v->loc.source)
        return n->loc;
    return diag_part(s->d, v->loc, (DiagPart){PART_TYPE, 0, v->name});
}

/* The elements are what runtimes insist on; of shapes they go by what they compute. */
static bool same_elements(Type x, Type y) {
    return x.kind == y.kind && (x.kind != TYPE_TENSOR || x.elem == y.elem);
}

static bool same_text(Str x, Str y) {
    return str_eq(x, y) && !x.s == !y.s;
}

static bool dims_identical(const Dim *x, const Dim *y, int rank) {
    for (int i = 0; i < rank; i++)
        if (x[i].value != y[i].value || x[i].negative != y[i].negative ||
            !same_text(x[i].param, y[i].param) || !same_text(x[i].denotation, y[i].denotation))
            return false;
    return true;
}

/* Dimensions that stay: those of an operand, where they are the same, else a copy. */
static const Dim *kept_dims(const OpCtx *c, const Dim *dims, int rank) {
    for (size_t i = 0; i < c->n_in; i++) {
        Type x = op_type(c, i);
        if (x.kind == TYPE_TENSOR && x.rank == rank &&
            (x.dims == dims || dims_identical(x.dims, dims, rank)))
            return x.dims;
    }
    return rank > 0 ? arena_copy(c->node->graph->module->arena, dims, (size_t)rank * sizeof *dims)
                    : NULL;
}

/* What was inferred as a type that stays. */
static Type kept_type(const OpCtx *c, Type t) {
    t.dims = t.kind == TYPE_TENSOR ? kept_dims(c, t.dims, t.rank) : t.dims;
    if (t.sub) {
        Type sub = kept_type(c, *t.sub);
        t.sub = arena_copy(c->node->graph->module->arena, &sub, sizeof sub);
    }
    return t;
}

/* Exporters get value_info wrong, and nothing reads it but people: the type is the inferred one
 * from here on, what the file said is kept for writing it again. */
static bool set_aside(const Infer *s, const Node *n, Value *v, Type inferred, const char *does) {
    Arena *a = n->graph->module->arena;
    Type stated = v->type;
    if (inferred.kind == TYPE_TENSOR && stated.kind == TYPE_TENSOR && !inferred.elem)
        inferred.elem = stated.elem;
    if (inferred.kind == TYPE_NONE)
        diag_warning(s->d, type_loc(s, n, v),
                     "the model states '%s' as %s, which does not go with %s: taken as not known",
                     diag_name(s->d, v->name), type_text(a, stated), diag_name(s->d, n->op));
    else if (same_elements(stated, inferred))
        diag_warning(s->d, type_loc(s, n, v),
                     "the model states '%s' as %s, but %s %s %s: that is taken",
                     diag_name(s->d, v->name), type_text(a, stated), diag_name(s->d, n->op), does,
                     type_text(a, inferred));
    else
        diag_warning(s->d, type_loc(s, n, v),
                     "the model states '%s' as %s, but %s %s %s: that is taken; onnxruntime "
                     "refuses such a model",
                     diag_name(s->d, v->name), type_text(a, stated), diag_name(s->d, n->op), does,
                     type_text(a, inferred));
    v->stated = arena_copy(a, &stated, sizeof stated);
    v->type = inferred;
    return true;
}

static bool disagree(const Infer *s, const Node *n, Value *v, Type inferred, const char *does) {
    Arena *a = n->graph->module->arena;
    if (s->keep && v->declared && !v->stated)
        return set_aside(s, n, v, inferred, does);
    return diag_error(s->d, type_loc(s, n, v), "'%s' is stated as %s, but %s %s %s",
                      diag_name(s->d, v->name), type_text(a, v->type), diag_name(s->d, n->op), does,
                      type_text(a, inferred));
}

/* The better known of two dimensions that do not contradict; a number beats a symbol. */
static bool join_dim(Dim stated, Dim inferred, Dim *out) {
    *out = stated;
    if (stated.value >= 0 && inferred.value >= 0)
        return stated.value == inferred.value;
    if (inferred.value >= 0 || (stated.value < 0 && !stated.param.s))
        *out = (Dim){inferred.value, inferred.param, stated.denotation};
    return true;
}

static bool is_known(Dim x) {
    return x.value >= 0 || x.param.s;
}

/* [10,N] where [N,10] is computed: each dimension could be the other, but not for every N. */
static bool crossed(Type stated, Type inferred) {
    for (int i = 0; stated.rank <= MAX_RANK && i < stated.rank; i++)
        for (int k = 0; k < stated.rank; k++) {
            Dim from = inferred.dims[i], to = stated.dims[k];
            if (!from.param.s || !to.param.s || !str_eq(from.param, to.param) ||
                !is_known(stated.dims[i]) || !is_known(inferred.dims[k]))
                continue;
            bool number = stated.dims[i].value >= 0 || inferred.dims[k].value >= 0;
            if (number && !str_eq(stated.dims[i].param, from.param) &&
                !str_eq(inferred.dims[k].param, to.param))
                return true;
        }
    return false;
}

static bool dims_same(Dim x, Dim y) {
    return x.value == y.value && str_eq(x.param, y.param);
}

/* A symbol that has become a number says of a result what whoever exported the model took for
 * granted: that it is as long as something else of that name. The number is the inferred one. */
static bool was_symbol(Dim stated, Dim inferred) {
    return stated.bound && stated.value >= 0 && inferred.value >= 0;
}

static void tell_freed(const Infer *s, const Node *n, const Value *v, Type stated, Type inferred) {
    Arena *a = n->graph->module->arena;
    diag_warning(s->d, type_loc(s, n, v),
                 "'%s' is stated as %s by its symbols, but %s yields %s: that is taken",
                 diag_name(s->d, v->name), type_text(a, stated), diag_name(s->d, n->op),
                 type_text(a, inferred));
}

static bool any_was_symbol(Type stated) {
    for (int i = 0; i < stated.rank; i++)
        if (stated.dims[i].bound)
            return true;
    return false;
}

/* [N,M] where [M,N] is computed is seen once a symbol has its number, and is as wrong as one. */
static bool join_crossed(const Infer *s, const OpCtx *c, Value *v, Type inferred) {
    Type stated = v->type;
    Dim *dims = NEW_ARRAY(c->node->graph->module->arena, Dim, (size_t)stated.rank);
    bool fits = any_was_symbol(stated);
    for (int i = 0; fits && i < stated.rank; i++) {
        bool symbol = stated.dims[i].value < 0 || stated.dims[i].bound;
        fits = join_dim(stated.dims[i], inferred.dims[i], &dims[i]) || symbol;
        if (symbol && is_known(inferred.dims[i]))
            dims[i] = inferred.dims[i];
    }
    if (!fits)
        return disagree(s, c->node, v, kept_type(c, inferred), "yields");
    v->type.dims = dims;
    if (v->declared)
        tell_freed(s, c->node, v, stated, v->type);
    return true;
}

/* Of types with as many. */
static bool join_dims(const Infer *s, const OpCtx *c, Value *v, Type inferred) {
    const Node *n = c->node;
    Type stated = v->type;
    Dim *dims = NULL; /* copied on the first change: types share their dims */
    bool freed = false;
    for (int i = 0; i < stated.rank; i++) {
        Dim dim;
        bool free = false;
        if (!join_dim(stated.dims[i], inferred.dims[i], &dim)) {
            if (!was_symbol(stated.dims[i], inferred.dims[i]))
                return disagree(s, n, v, kept_type(c, inferred), "yields");
            dim = inferred.dims[i];
            freed = free = true;
        }
        if (dims_same(dim, stated.dims[i]) || (v->declared && !s->refine && !free))
            continue;
        if (!dims)
            v->type.dims = dims = arena_copy(n->graph->module->arena, stated.dims,
                                             (size_t)stated.rank * sizeof *dims);
        dims[i] = dim;
    }
    if (freed && v->declared)
        tell_freed(s, n, v, stated, v->type);
    return true;
}

static bool join_shape(const Infer *s, const OpCtx *c, Value *v, Type inferred) {
    const Node *n = c->node;
    Type stated = v->type;
    if (inferred.rank < 0)
        return true;
    if (stated.rank < 0) {
        if (s->keep && v->declared && !v->stated) /* an output of a file may state no shape */
            v->stated = arena_copy(n->graph->module->arena, &stated, sizeof stated);
        if (s->refine || !v->declared || v->stated) {
            v->type.rank = inferred.rank;
            v->type.dims = kept_dims(c, inferred.dims, inferred.rank);
        }
        return true;
    }
    if (stated.rank != inferred.rank)
        return disagree(s, n, v, kept_type(c, inferred), "yields");
    if (crossed(stated, inferred))
        return join_crossed(s, c, v, inferred);
    return join_dims(s, c, v, inferred);
}

/* Without a stated type a mover's results have the quantization of its input. */
static Type quantize_moved(const OpCtx *c, const OpDef *op, Type out) {
    if (!op || (op->quant.kind != QUANT_MOVE && op->quant.kind != QUANT_ORDER))
        return out;
    OpCtx stays = *c;
    stays.arena = c->node->graph->module->arena;
    Type x = op_type(c, 0);
    const Quant *q = x.kind == TYPE_TENSOR && x.quant ? op_moved_quant(&stays, op, x.quant) : NULL;
    if (!q || type_real_elem(x) != out.elem) /* MaxPool's indices, Dropout's mask */
        return out;
    return x.tilde ? type_tilde(out, q) : type_quantized(out, q);
}

/* How a file states a dimension that is not known (float[?-1]) is no property of what is computed.
 */
static Type without_negatives(Arena *a, Type t) {
    Dim *dims = NULL;
    for (int i = 0; t.kind == TYPE_TENSOR && i < t.rank; i++) {
        if (!dim_is_negative(t.dims[i]))
            continue;
        if (!dims)
            t.dims = dims = arena_copy(a, t.dims, (size_t)t.rank * sizeof *dims);
        dims[i].negative = 0;
    }
    return t;
}

static const OnnxSchema *schema_of(const Node *n) {
    return node_in_function(n) ? NULL : node_schema(n);
}

/* Could the result be a tensor of the elements that are stated? */
static bool schema_allows(const Node *n, size_t at) {
    const OnnxSchema *s = schema_of(n);
    ElemType stated = n->out[at]->type.elem;
    return !s || !stated || at >= (size_t)onnx_schema_max(s, true) ||
           onnx_schema_allows(s, true, (int)at, (int)stated);
}

/* The elements of a result by ONNX's schema: the only ones there are, or those of an operand of the
 * same type variable. TYPE_NONE where there is none. */
static Type schema_elem(const Node *n, size_t at) {
    const OnnxSchema *s = schema_of(n);
    const SchemaParam *p = s ? onnx_schema_param(s, true, (int)at) : NULL;
    if (!p || (p->option == SCHEMA_VARIADIC && !p->homogeneous) || p->types->sequence ||
        p->types->optional)
        return TYPE_UNKNOWN;
    uint32_t set = p->types->tensor;
    if (set && !(set & (set - 1)))
        return type_tensor((ElemType)__builtin_ctz(set), -1, NULL);
    for (size_t i = 0; *p->type_var && i < n->n_in; i++) {
        const SchemaParam *in = onnx_schema_param(s, false, (int)i);
        const Value *v = n->in[i];
        if (v && in && !strcmp(in->type_var, p->type_var) && v->type.kind == TYPE_TENSOR)
            return type_tensor(type_real_elem(v->type), -1, NULL);
    }
    return TYPE_UNKNOWN;
}

bool infer_join(const Infer *s, const OpCtx *c, const OpDef *op, size_t i) {
    Value *v = c->node->out[i];
    Type inferred = without_negatives(c->arena, c->out[i]);
    if (!v)
        return true;
    bool stated = s->keep && v->declared && v->type.kind == TYPE_TENSOR;
    bool open = v->type.kind == TYPE_NONE && op && !c->node->faulty;
    if (inferred.kind == TYPE_NONE && (stated || open)) {
        inferred = schema_elem(c->node, i);
        if (open && i == 0 && inferred.kind == TYPE_TENSOR && node_on_integers(c->node))
            inferred.elem = node_integer_elem(c->node, inferred.elem);
    }
    if (inferred.kind == TYPE_NONE && stated && !schema_allows(c->node, i))
        return disagree(s, c->node, v, TYPE_UNKNOWN, "yields");
    if (inferred.kind == TYPE_NONE)
        return true;
    if (v->type.kind == TYPE_NONE) {
        if (inferred.kind != TYPE_TENSOR || inferred.elem != ELEM_UNDEFINED)
            v->type = quantize_moved(c, op, kept_type(c, inferred));
        return true;
    }
    if (inferred.kind == TYPE_SPARSE && v->type.kind == TYPE_TENSOR)
        inferred = *inferred.sub; /* runtimes compute with the elements of a sparse constant */
    if (v->type.kind != inferred.kind)
        return disagree(s, c->node, v, kept_type(c, inferred), "yields");
    if (inferred.kind != TYPE_TENSOR)
        return true;
    if (inferred.elem != ELEM_UNDEFINED && type_real_elem(v->type) != type_real_elem(inferred)) {
        if (inferred.rank < 0)
            inferred.rank = v->type.rank, inferred.dims = v->type.dims;
        return disagree(s, c->node, v, kept_type(c, inferred), "yields");
    }
    return join_shape(s, c, v, inferred);
}

static void doubt(const Infer *s, const Node *n, Value *v) {
    if (v && v->declared && !v->stated && v->type.kind == TYPE_TENSOR)
        set_aside(s, n, v, TYPE_UNKNOWN, "");
}

void infer_doubt(const Infer *s, Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        doubt(s, n, n->in[i]);
    for (size_t i = 0; i < n->n_out; i++)
        doubt(s, n, n->out[i]);
}

/* ---- inputs of bodies ---- */

static bool contradict(Type x, Type y) {
    if (x.kind != y.kind)
        return true;
    if (x.elem && y.elem && type_real_elem(x) != type_real_elem(y))
        return true;
    if (x.rank < 0 || y.rank < 0)
        return false;
    Dim dim;
    for (int i = 0; x.rank == y.rank && i < x.rank; i++)
        if (!join_dim(x.dims[i], y.dims[i], &dim))
            return true;
    return x.rank != y.rank;
}

/* `given`, but only what `stated` does not contradict of its shape. */
static Type common_shape(Arena *a, Type given, Type stated) {
    if (stated.kind != TYPE_TENSOR || stated.rank < 0 || given.rank < 0)
        return given;
    if (stated.rank != given.rank) {
        given.rank = -1;
        return given;
    }
    Dim *dims = arena_copy(a, given.dims, (size_t)given.rank * sizeof *dims), dim;
    for (int i = 0; i < given.rank; i++)
        if (!join_dim(stated.dims[i], given.dims[i], &dim))
            dims[i] = (Dim){.value = -1};
    given.dims = dims;
    return given;
}

bool infer_give(const Infer *s, const Node *n, Value *v, Type given) {
    if (given.kind != TYPE_TENSOR)
        return true;
    if (v->type.kind == TYPE_NONE) {
        v->type = given;
        return true;
    }
    if (!contradict(v->type, given))
        return true;
    bool open = s->keep && n->def->reshapes;
    Type type = open ? common_shape(n->graph->module->arena, given, v->type) : given;
    return disagree(s, n, v, type, "gives it");
}

void infer_guess(Arena *a, Value *v, Type given) {
    Type *t = &v->type;
    if (given.kind != TYPE_TENSOR)
        return;
    if (t->kind == TYPE_NONE)
        *t = given;
    if (t->kind != TYPE_TENSOR || given.rank < 0)
        return;
    if (t->rank < 0) {
        t->rank = given.rank;
        t->dims = given.dims;
    }
    if (t->rank != given.rank)
        return;
    Dim *dims = arena_copy(a, t->dims, (size_t)t->rank * sizeof *dims);
    for (int i = 0; i < t->rank; i++)
        if (dims[i].value < 0)
            dims[i] = given.dims[i];
    t->dims = dims;
}
