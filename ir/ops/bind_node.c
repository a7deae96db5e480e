/* Binding nodes, rounding to grids (`float ~ q`), graph inputs and outputs. */
#include <assert.h>

#include "ir/bound.h"
#include "ir/ops/bind_node.h"
#include "ir/ops/mac.h"

/* To the grid of its type, as floats: from now on another buffer is v. */
static bool round_to_grid(Binder *b, const Node *n, const Value *v) {
    const Quant *q = v->type.quant;
    if (elem_bits(q->storage) > 16)
        return bind_rounded_wide(b, n, v);
    int scale, zero;
    Grid g = bind_grid(b, q, v->type, false, &scale, &zero);
    qk_fakequant_f32_params p = {.outer = g.outer,
                                 .axis = g.axis,
                                 .inner = g.inner,
                                 .block = g.block,
                                 .s_outer = g.s_outer,
                                 .s_axis = g.s_axis,
                                 .s_inner = g.s_inner,
                                 .lo = (int32_t)quant_lo(q),
                                 .hi = (int32_t)quant_hi(q),
                                 .nan = (int32_t)elem_min(q->storage)};
    int from = bind_value(b, v), to = binder_replace(b, v);
    if (!bind_call(b, n, "qk_fakequant_f32", &p, sizeof p, 4, (int[]){from, scale, zero, to}))
        return false;
    bind_in_place(b, 0);
    return true;
}

/* A point of the grid may be no number of float16. */
static bool round_value(Binder *b, const Node *n, const Value *v) {
    return round_to_grid(b, n, v) && (!elem_is_half(v->type.elem) || bind_half_round(b, n, v));
}

/* Dimensions beside one of 0 as well: their products are strides and numbers of rounds. */
static bool extents_fit(Type t) {
    int64_t n = 1;
    for (int i = 0; i < t.rank && n <= INT32_MAX; i++)
        n = dim_mul(n, t.dims[i].value ? t.dims[i].value : 1);
    return n <= INT32_MAX;
}

/* What every bind function relies on: tensors whose number of elements is known and fits int32. */
static bool shape_known(Binder *b, const Node *n, const Value *v) {
    size_t count;
    if (!v)
        return true;
    if (v->type.kind != TYPE_TENSOR)
        return bind_unsupported(b, n, "'%s' is not known to be a tensor",
                                diag_name(b->diags, v->name));
    if (v->type.elem == ELEM_STRING)
        return bind_unsupported(b, n, "'%s' holds strings", diag_name(b->diags, v->name));
    if (!type_count(v->type, &count) || !extents_fit(v->type))
        return bind_unsupported(b, n, "'%s' is %s: not of fixed shape and below 2^31 elements",
                                diag_name(b->diags, v->name), type_text(b->arena, v->type));
    return true;
}

/* Its program has room for more elements than there may be, but where a bound or the type says how
 * many are looked at. A Loop has done so. */
static bool length_known(Binder *b, const Node *n, const Value *v) {
    return !value_is_counted(v) || v->def->def->enter || binder_bound(b, v->def) ||
           type_is_static(v->type) ||
           bind_unsupported(b, n, "how many elements '%s' has is not known before it runs",
                            diag_name(b->diags, v->name));
}

static bool shapes_known(Binder *b, const Node *n) {
    bool ok = true, elsewhere = n->def->enter || n->def->counts; /* these see to it */
    bool counts = n->def->counts && !n->def->enter;
    if (counts && bind_any_quant(n))
        return bind_unsupported(b, n,
                                "its operands are quantized; a DequantizeLinear before it "
                                "gives it real numbers");
    if (counts && b->options.partial)
        return bind_unsupported(b, n, "how many elements it yields is known only as it runs");
    for (size_t i = 0; ok && i < n->n_in; i++)
        ok = length_known(b, n, n->in[i]) && shape_known(b, n, n->in[i]);
    for (size_t i = 0; ok && i < n->n_out && !elsewhere; i++)
        ok = shape_known(b, n, n->out[i]);
    return ok;
}

/* Plain doubles: the same bind function calls the kernels in double. Of Cast, one side is not. */
static bool all_reals_double(const Node *n) {
    bool any = false;
    for (size_t i = 0; i < n->n_in + n->n_out; i++) {
        const Value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        if (!v || (!op_quant(v) && !elem_is_float(v->type.elem)))
            continue;
        if (op_quant(v) || v->type.elem != ELEM_DOUBLE)
            return false;
        any = true;
    }
    return any && !has_bodies(n);
}

/* A node whose float bias needs a finer unit of its sums, on weights that give it that. */
static bool bind_finer(Binder *b, const Node *n, int bits) {
    size_t weight = (size_t)n->def->quant.mac.weight, first = b->program->n_buffers;
    const Node *outer = b->stands_for;
    Node *s = arena_copy(b->arena, n, sizeof *n);
    s->in = arena_copy(b->arena, n->in, n->n_in * sizeof *n->in);
    s->in[weight] = mac_finer_weights(b->arena, n->in[weight], bits);
    s->in[weight]->id = binder_new_slot(b);
    OpCtx c = op_ctx(s, b->diags);
    b->stands_for = outer ? outer : n;
    bool ok = n->def->bind(b, s, &c);
    b->stands_for = outer;
    binder_forget_stand_ins(b, first);
    return ok;
}

static bool bind_definition(Binder *b, const Node *n) {
    OpCtx c = op_ctx(n, b->diags);
    BiasUnits units;
    if (!b->stands_for && node_on_integers(n) && !node_is(n, "BitShift"))
        return bind_unsupported(b, n, "it computes on plain integers, and could not be raised");
    if (binder_needs_double(n))
        return bind_in_double(b, n);
    if (n->def->quant.kind == QUANT_MAC && mac_bias_units(n, &units)) {
        int bits = mac_bias_bits(&units, n->in[n->def->quant.mac.weight]);
        if (bits)
            return bind_finer(b, n, bits);
    }
    if (storage_differs(n))
        return bind_in_one_storage(b, n);
    const Node *outer = b->in_double;
    b->in_double = all_reals_double(n) ? n : NULL;
    bool ok = n->def->bind(b, n, &c);
    b->in_double = outer;
    return ok;
}

/* float16 and the like are computed with as floats, and rounded. */
static bool bind_float_form(Binder *b, const Node *n) {
    const Node *form = bind_half_stand_in(b, n);
    size_t first = b->program->n_buffers;
    bool ok = bind_definition(b, form);
    bind_half_done(b, n, form, first);
    return ok;
}

static bool bind_operator(Binder *b, const Node *n) {
    if (!n->def && qop_find(n->domain, n->op))
        return binder_reject(b, n,
                             "it is in QOperator form, and runs once raised to types, which takes "
                             "scales and zero points that are constant");
    if (!n->def && !node_rank_fits(n))
        return bind_unsupported(b, n, "tensors of more than %d dimensions", MAX_RANK);
    if (!n->def)
        return binder_reject(b, n,
                             str_is(n->domain, "com.microsoft.nchwc")
                                 ? "onnxruntime laid it out for one processor; let it save the "
                                   "model with ORT_ENABLE_EXTENDED at most"
                                 : "it is not known");
    if (!n->def->bind)
        return binder_reject(b, n, "it has no kernel");
    assert(!n->faulty); /* the verifier saw the shapes as they are now */
    if (!shapes_known(b, n))
        return false;
    int errors = diags_errors(b->diags);
    bool failed = b->failed;
    b->failed = false;
    bool ok = bind_float_form(b, n);
    if (!ok && !b->failed && diags_errors(b->diags) == errors)
        binder_reject(b, n, "not in this form");
    b->failed |= failed || !ok;
    return ok;
}

/* The first dimension that inference leaves open, or the first of all. */
static int told_axis(Type inferred) {
    for (int i = 0; i < inferred.rank; i++)
        if (inferred.dims[i].value < 0)
            return i;
    return 0;
}

/* The length that the model states of a result where operands or a kernel decide it: other numbers
 * are no run of this model. NULL: it is not so. All that is stated is held against it
 * (lengths_agree). */
static const LengthBound *stated_length(Binder *b, const Node *n) {
    OpCtx c = op_ctx(n, n->graph->module->mute);
    bool counts = n->def && n->def->counts;
    bool told = n->def && n->def->bind_length && node_shape_operand(n);
    if ((!counts && !told) || !n->def->infer(&c))
        return NULL;
    for (size_t i = 0; i < n->n_out; i++) {
        const Value *v = n->out[i];
        if (!v || !type_is_static(v->type) || v->type.rank < 1 ||
            (counts && type_is_static(c.out[i])))
            continue;
        int axis = told_axis(c.out[i]);
        int64_t length = v->type.dims[axis].value;
        LengthBound *s = NEW(b->arena, LengthBound);
        *s = (LengthBound){n, v, axis, length, length, length, .stated = true};
        return s;
    }
    return NULL;
}

/* A node that counts finds one length. What the model states of the results that have it agrees. */
static bool lengths_agree(Binder *b, const Node *n, const LengthBound *bound) {
    OpCtx c = op_ctx(n, n->graph->module->mute);
    if (!bound || !bound->stated || n->def->enter || !n->def->counts || !n->def->infer(&c))
        return true;
    for (size_t i = 0; i < n->n_out; i++) {
        const Value *v = n->out[i];
        int axis = v ? told_axis(c.out[i]) : 0;
        if (!v || !type_is_static(v->type) || type_is_static(c.out[i]) ||
            v->type.dims[axis].value == bound->length)
            continue;
        const Value *first = bound->value;
        bind_error(b, n,
                   "'%s' is stated as %s, whose axis %d has length %lld, and '%s' as %s, whose "
                   "axis %d has length %lld: the two lengths have to be the same",
                   diag_name(b->diags, first->name), type_text(b->arena, first->type), bound->axis,
                   (long long)bound->length, diag_name(b->diags, v->name),
                   type_text(b->arena, v->type), axis, (long long)v->type.dims[axis].value);
        return false;
    }
    return true;
}

/* Of lengths below the largest operands may have too few elements: no run is right then. */
static bool can_be_stated(Binder *b, const Node *n, const LengthBound *bound) {
    OpCtx c = op_ctx(n, b->diags);
    bool counts = bound && bound->stated && n->def->counts && !n->def->enter && n->def->longest;
    int64_t most = counts && !b->options.shorter ? n->def->longest(&c) : -1;
    if (most < 0 || bound->length <= most)
        return true;
    const Value *v = bound->value;
    bind_error(b, n, "'%s' is stated as %s, of more elements than there can be",
               diag_name(b->diags, v->name), type_text(b->arena, v->type));
    return false;
}

static bool bind_length(Binder *b, const Node *n, const LengthBound *bound) {
    int length = bind_temp(b, ELEM_INT64, 1);
    OpCtx c = op_ctx(n, b->diags);
    if (!shapes_known(b, n) || !n->def->bind_length(b, n, &c, length))
        return false;
    binder_check_length(b, bound, length);
    return true;
}

/* Results of a length that operands decide are of that length once it was looked at; of one that
 * the node itself tells, when it has run. A Loop looks at it by itself. */
static bool bind_bounded(Binder *b, const Node *n) {
    const LengthBound *bound = binder_bound(b, n), *outer = b->stated;
    bound = bound ? bound : stated_length(b, n);
    bool told = bound && n->def && n->def->bind_length;
    b->stated = bound && bound->stated ? bound : NULL;
    bool ok = lengths_agree(b, n, bound) && can_be_stated(b, n, bound) &&
              (!told || bind_length(b, n, bound)) && bind_operator(b, n);
    b->stated = outer;
    const Counted *counted = bound && !told ? program_counted(b->program, bound->value) : NULL;
    if (ok && counted)
        binder_check_length(b, bound, counted->count);
    return ok;
}

bool bind_node(Binder *b, const Node *n) {
    int64_t before = b->program->macs;
    if (!bind_bounded(b, n))
        return false;
    b->program->macs_of[n->id] = b->program->macs - before;
    for (size_t i = 0; i < n->n_out; i++) {
        const Value *y = n->out[i];
        if (y && n->def->counts && !n->def->enter && binder_rounds(b, y))
            return bind_unsupported(b, n, "'%s' has a grid", diag_name(b->diags, y->name));
        if (y && elem_is_half(y->type.elem) && !bind_half_moves(n) && !bind_half_round(b, n, y))
            return false;
        if (y && binder_rounds(b, y) && !round_value(b, n, y))
            return false;
        if (y && (b->options.observed || b->options.keep_all))
            bind_value(b, y);
    }
    return true;
}

bool bind_graph(Binder *b, const Graph *g) {
    bool ok = true;
    FOR_NODES(n, g)
    ok &= bind_node(b, n);
    return ok;
}

/* ---- graph inputs and outputs ---- */

static bool is_narrow(const Value *v) {
    return elem_unpacked(v->type.elem) != v->type.elem;
}

/* A buffer of the caller's with the elements of v as ONNX has them. */
static int packed_buffer(Binder *b, BufferKind kind, const Value *v, int port) {
    size_t count = b->program->buffers[bind_value(b, v)].count;
    size_t bytes = elem_bytes(v->type.elem, count);
    bool half = elem_is_half(v->type.elem);
    return binder_add_buffer(b, (Buffer){.kind = kind,
                                         .elem = half ? v->type.elem : ELEM_UINT8,
                                         .count = half ? count : bytes,
                                         .bytes = bytes,
                                         .alias = -1,
                                         .port = port,
                                         .value = v});
}

static void repack(Binder *b, bool unpack, const Value *v, int from, int to) {
    if (elem_is_half(v->type.elem)) {
        (unpack ? bind_half_load : bind_half_store)(b, v, from, to);
        return;
    }
    ElemType elem = elem_unpacked(v->type.elem);
    qk_pack_params p = {.bits = elem_bits(v->type.elem)}; /* unpack has the same */
    p.n = (int64_t)b->program->buffers[bind_value(b, v)].count;
    bind_call(b, v->def, bind_kernel(b, unpack ? "unpack" : "pack", 1, &elem), &p, sizeof p, 2,
              (int[]){from, to});
}

void bind_input(Binder *b, const Value *v, int port) {
    int i = bind_value(b, v);
    b->program->inputs[port] = i;
    if (b->failed)
        return; /* the buffer is no value's */
    if (is_narrow(v)) {
        int packed = packed_buffer(b, BUF_INPUT, v, port);
        b->program->inputs[port] = packed;
        repack(b, true, v, packed, i);
    } else {
        b->program->buffers[i].kind = BUF_INPUT;
        b->program->buffers[i].port = port;
    }
    if (binder_rounds(b, v))
        round_value(b, NULL, v);
}

void bind_body_input(Binder *b, const Node *n, const Value *v) {
    if (binder_rounds(b, v))
        round_value(b, n, v);
}

void bind_output(Binder *b, const Value *v, int port) {
    int i = bind_value(b, v), root = program_root(b->program, i);
    if (is_narrow(v)) {
        int packed = packed_buffer(b, BUF_OUTPUT, v, port);
        b->program->outputs[port] = packed;
        repack(b, false, v, i, packed);
        return;
    }
    if (b->program->buffers[root].kind == BUF_ARENA) {
        b->program->buffers[root].kind = BUF_OUTPUT;
        b->program->buffers[root].port = port;
        b->program->outputs[port] = i;
        return;
    }
    Buffer copy = b->program->buffers[i];
    copy.kind = BUF_OUTPUT;
    copy.alias = -1;
    copy.port = port;
    copy.data = NULL;
    int to = binder_add_buffer(b, copy);
    b->program->outputs[port] = to;
    bind_copy(b, v->def, i, to);
}
