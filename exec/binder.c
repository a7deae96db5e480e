/* The binder: turns operators into kernel calls. See exec/program.h.
 *
 * Operators that cannot run are collected by type, so that one build names them all. */
#include <assert.h>

#include "exec/binder.h"
#include "ir/ops/op.h"
#include "kernels_gen.h"

typedef struct Rejection { /* of one operator type */
    Str op;
    const char *why; /* of the first node */
    bool other_reasons;
    size_t count;
    const Node *first[3];
} Rejection;

struct Binder {
    Program *program;
    Arena *arena;
    Diags *diags;
    ProgramOptions options;
    Map *rejected; /* by operator type, of Rejection */
    bool failed;
};

Program *binder_program(Binder *b) {
    return b->program;
}
Arena *binder_arena(Binder *b) {
    return b->arena;
}
Diags *binder_diags(Binder *b) {
    return b->diags;
}

Binder *binder_new(Arena *a, Module *m, const ProgramOptions *o, Diags *d) {
    Binder *b = NEW(a, Binder);
    *b = (Binder){.arena = a, .diags = d, .rejected = map_new(a), .program = NEW(a, Program)};
    if (o)
        b->options = *o;
    b->program->module = m;
    b->program->value_buffer = NEW_ARRAY(a, int, m->n_values);
    for (uint32_t i = 0; i < m->n_values; i++)
        b->program->value_buffer[i] = -1;
    return b;
}

/* ---- buffers ---- */

ElemType elem_unpacked(ElemType e) {
    int bits = elem_bits(e);
    if (bits == 0 || bits >= 8 || !elem_is_int(e))
        return e;
    return elem_is_signed(e) ? ELEM_INT8 : ELEM_UINT8;
}

int binder_add_buffer(Binder *b, Buffer buffer) {
    Program *p = b->program;
    ARENA_PUSH(b->arena, p->buffers, p->n_buffers, p->cap_buffers, buffer);
    return (int)p->n_buffers - 1;
}

int program_root(const Program *p, int buffer) {
    while (p->buffers[buffer].alias >= 0)
        buffer = p->buffers[buffer].alias;
    return buffer;
}

static Buffer buffer_of(BufferKind kind, ElemType e, size_t count) {
    return (Buffer){.kind = kind,
                    .elem = e,
                    .count = count,
                    .bytes = elem_bytes(e, count),
                    .alias = -1,
                    .port = -1};
}

int bind_const(Binder *b, ElemType e, size_t count, const void *data, const char *comment) {
    Buffer buffer = buffer_of(BUF_CONST, e, count);
    buffer.data = arena_copy(b->arena, data, buffer.bytes);
    buffer.comment = comment;
    return binder_add_buffer(b, buffer);
}

int bind_temp(Binder *b, ElemType e, size_t count) {
    return binder_add_buffer(b, buffer_of(BUF_ARENA, elem_unpacked(e), count));
}

int bind_scratch(Binder *b, ElemType e, size_t count) {
    int i = bind_temp(b, e, count);
    b->program->buffers[i].scratch = true;
    return i;
}

static int value_error(Binder *b, const Value *v, const char *what) {
    b->failed = true;
    diag_error(b->diags, v->loc, "value %s %s", diag_name(b->diags, v->name), what);
    return binder_add_buffer(b, buffer_of(BUF_ARENA, ELEM_UINT8, 0)); /* lets binding go on */
}

/* One element a byte, where the tensor packs several. */
static const void *unpack(Binder *b, const Tensor *t) {
    uint8_t *out = arena_alloc(b->arena, t->count);
    for (size_t i = 0; i < t->count; i++)
        out[i] = (uint8_t)elem_load_int(t->elem, t->data, i);
    return out;
}

/* A float constant of type `float ~ q`, rounded to its grid as the fakequant kernel does it. */
static const void *round_const(Binder *b, const Type *type, const Tensor *t) {
    const Quant *q = type->quant;
    int64_t lo = q->has_range ? q->lo : elem_min(q->storage);
    int64_t hi = q->has_range ? q->hi : elem_max(q->storage);
    float *out = NEW_ARRAY(b->arena, float, t->count);
    for (size_t i = 0; i < t->count; i++) {
        size_t k = quant_index(q, t->rank, t->dims, i);
        int64_t zp = quant_zp(q, k);
        double v = __builtin_rint((double)((float)tensor_float(t, i) / quant_scale(q, k)));
        v = v<(double)(lo - zp) ? (double)(lo - zp) : v>(double)(hi - zp) ? (double)(hi - zp) : v;
        v = v != v ? (double)(elem_min(q->storage) - zp) : v; /* what NaN quantizes to */
        out[i] = (float)v * quant_scale(q, k);
    }
    return out;
}

static bool rounds(const Binder *b, const Value *v) {
    return v->type.tilde && v->type.quant && v->type.quant->kind == QUANT_PARAMS &&
           v->type.elem == ELEM_FLOAT && !b->options.ignore_quant;
}

static int const_buffer(Binder *b, const Value *v) {
    const Tensor *t = v->data;
    if (t->elem == ELEM_STRING)
        return value_error(b, v, "holds strings, which cannot run");
    if (t->place == TENSOR_ELIDED)
        return value_error(b, v, "is elided: its elements are needed here");
    if (!t->data && t->count)
        return value_error(b, v, "has external data that was not loaded");
    Buffer buffer = buffer_of(BUF_CONST, elem_unpacked(t->elem), t->count);
    buffer.value = v;
    size_t align = (size_t)elem_bits(buffer.elem) / 8;
    if (buffer.elem != t->elem)
        buffer.data = unpack(b, t);
    else if (rounds(b, v))
        buffer.data = round_const(b, &v->type, t);
    else if (align > 1 && (uintptr_t)t->data % align)
        buffer.data = arena_copy(b->arena, t->data, t->bytes); /* mapped files align nothing */
    else
        buffer.data = t->data;
    return binder_add_buffer(b, buffer);
}

static int new_value_buffer(Binder *b, const Value *v) {
    size_t count;
    const Quant *q = v->type.quant;
    if (v->data)
        return const_buffer(b, v);
    if (v->type.kind == TYPE_NONE)
        return value_error(b, v, "has no known type");
    if (v->type.kind != TYPE_TENSOR)
        return value_error(b, v, "is not a tensor; only tensors can run");
    if (type_is_quantized(v->type) && q->kind != QUANT_PARAMS && q->kind != QUANT_ACC)
        return value_error(b, v, "has no quantization parameters yet");
    if (v->type.elem == ELEM_STRING)
        return value_error(b, v, "holds strings, which cannot run");
    if (!type_count(v->type, &count) || count > INT32_MAX)
        return value_error(b, v, "has no fixed shape of at most 2^31-1 elements");
    Buffer buffer = buffer_of(BUF_ARENA, elem_unpacked(v->type.elem), count);
    buffer.value = v;
    return binder_add_buffer(b, buffer);
}

int bind_value(Binder *b, const Value *v) {
    if (!v)
        return -1;
    int *slot = &b->program->value_buffer[v->id];
    if (*slot < 0)
        *slot = new_value_buffer(b, v);
    return *slot;
}

/* ---- rejections ---- */

static Str op_full_name(Binder *b, const Node *n) {
    if (domain_is_onnx(n->domain))
        return n->op;
    return arena_strf(b->arena, STR_FMT "::" STR_FMT, STR_ARG(n->domain), STR_ARG(n->op));
}

static bool reject(Binder *b, const Node *n, const char *why) {
    Str op = op_full_name(b, n);
    Rejection *r = map_get(b->rejected, op);
    if (!r) {
        r = NEW(b->arena, Rejection);
        *r = (Rejection){.op = op, .why = why};
        map_set(b->rejected, op, r);
    }
    if (r->count > 0 && r->first[r->count < 3 ? r->count - 1 : 2] == n)
        return false; /* reported already, with a better reason */
    if (strcmp(r->why, why))
        r->other_reasons = true;
    if (r->count < 3)
        r->first[r->count] = n;
    r->count++;
    b->failed = true;
    return false;
}

bool bind_unsupported(Binder *b, const Node *n, const char *fmt, ...) {
    Buf text = buf_new(b->arena);
    va_list ap;
    va_start(ap, fmt);
    buf_fmt_v(&text, fmt, ap);
    va_end(ap);
    return reject(b, n, buf_as_str(&text).s);
}

static void report(Binder *b, const Rejection *r) {
    Buf text = buf_new(b->arena);
    buf_fmt(&text, "operator %s cannot run: %s (%zu node%s: ", diag_name(b->diags, r->op), r->why,
            r->count, r->count == 1 ? "" : "s");
    for (size_t i = 0; i < 3 && i < r->count; i++) {
        const Node *n = r->first[i];
        Str name = n->name.n || n->n_out == 0 || !n->out[0] ? n->name : n->out[0]->name;
        buf_fmt(&text, "%s%s", i ? ", " : "", diag_name(b->diags, name));
    }
    buf_text(&text, r->count > 3 ? ", ...)" : ")");
    if (r->other_reasons)
        buf_text(&text, "; of some the reason is another");
    diag_error(b->diags, r->first[0]->loc, "%s", buf_as_str(&text).s);
}

bool binder_finish(Binder *b) {
    for (size_t i = 0; i < map_size(b->rejected); i++)
        report(b, map_value(b->rejected, i));
    return !b->failed;
}

/* ---- calls ---- */

static Call *add_call(Binder *b, Call c) {
    Program *p = b->program;
    ARENA_PUSH(b->arena, p->calls, p->n_calls, p->cap_calls, c);
    return &p->calls[p->n_calls - 1];
}

static const char *short_name(ElemType e, bool width_only) {
    static const char *const widths[] = {"x8", "x16", "x32", "x64"};
    int bits = elem_bits(elem_unpacked(e));
    if (width_only)
        return bits <= 8 ? widths[0] : bits == 16 ? widths[1] : bits == 32 ? widths[2] : widths[3];
    switch (elem_unpacked(e)) {
    case ELEM_INT8: return "s8";
    case ELEM_UINT8:
    case ELEM_BOOL: return "u8";
    case ELEM_INT16: return "s16";
    case ELEM_UINT16: return "u16";
    case ELEM_INT32: return "s32";
    case ELEM_UINT32: return "u32";
    case ELEM_INT64: return "s64";
    case ELEM_UINT64: return "u64";
    case ELEM_FLOAT: return "f32";
    case ELEM_DOUBLE: return "f64";
    case ELEM_FLOAT16: return "f16";
    default: return elem_name(e);
    }
}

const char *bind_kernel(Binder *b, const char *name, int n, const ElemType *types) {
    const char *exact = NULL;
    for (unsigned widths = 0; widths < 1u << n; widths++) { /* bit i: type i by its width */
        Buf text = buf_new(b->arena);
        buf_fmt(&text, "qk_%s", name);
        for (int i = 0; i < n; i++)
            buf_fmt(&text, "_%s", short_name(types[i], widths >> i & 1));
        const char *full = buf_as_str(&text).s;
        if (kernel_find(full))
            return full;
        exact = exact ? exact : full;
    }
    return exact;
}

static bool no_kernel(Binder *b, const Node *n) {
    Buf text = buf_new(b->arena);
    buf_text(&text, "no kernel for (");
    for (size_t i = 0; i < n->n_in; i++)
        buf_fmt(&text, "%s%s", i ? ", " : "", n->in[i] ? elem_name(n->in[i]->type.elem) : "-");
    buf_text(&text, ") -> ");
    for (size_t i = 0; i < n->n_out; i++)
        buf_fmt(&text, "%s%s", i ? ", " : "", n->out[i] ? elem_name(n->out[i]->type.elem) : "-");
    return reject(b, n, buf_as_str(&text).s);
}

bool bind_call(Binder *b, const Node *n, const char *kernel, const void *params, size_t params_size,
               int n_args, const int *args) {
    const KernelDef *k = kernel_find(kernel);
    if (!k)
        return no_kernel(b, n);
    assert(params_size == k->params_size && (size_t)n_args == k->n_args);
    assert(n_args <= CALL_MAX_ARGS);
    Call c = {.kind = CALL_KERNEL, .kernel = k, .n_args = n_args, .in_place = -1, .node = n};
    c.params = arena_copy(b->arena, params, params_size);
    for (int i = 0; i < n_args; i++) {
        c.args[i] = args[i];
        assert(args[i] < 0 || k->args[i].is_const ||
               b->program->buffers[program_root(b->program, args[i])].kind >= BUF_ARENA ||
               b->program->buffers[program_root(b->program, args[i])].kind == BUF_OUTPUT);
    }
    add_call(b, c);
    return true;
}

int call_output(const Program *p, const Call *c) {
    for (int i = 0; c->kind == CALL_KERNEL && i < c->n_args; i++)
        if (!c->kernel->args[i].is_const && c->args[i] >= 0 && !p->buffers[c->args[i]].scratch)
            return i;
    return -1;
}

void bind_in_place(Binder *b, int arg) {
    b->program->calls[b->program->n_calls - 1].in_place = arg;
}

void bind_macs(Binder *b, int64_t macs) {
    b->program->macs += macs;
}

void bind_control(Binder *b, const Node *n, CallKind kind, int condition) {
    Call c = {.kind = kind, .in_place = -1, .node = n};
    if (kind == CALL_IF)
        c.args[c.n_args++] = condition;
    for (size_t i = 0; kind == CALL_END && i < n->n_out && c.n_args < CALL_MAX_ARGS; i++)
        if (n->out[i] && b->program->value_buffer[n->out[i]->id] >= 0)
            c.args[c.n_args++] = b->program->value_buffer[n->out[i]->id];
    add_call(b, c);
}

void bind_copy(Binder *b, const Node *n, int from, int to) {
    const Buffer *buffer = &b->program->buffers[to];
    ElemType elem = buffer->elem;
    qk_copy_nd_params p = {.rank = 1, .dim = {(int32_t)buffer->count}, .ss = {1}, .ds = {1}};
    assert(b->program->buffers[from].bytes == buffer->bytes);
    bind_call(b, n, bind_kernel(b, "copy_nd", 1, &elem), &p, sizeof p, 2, (int[]){from, to});
}

/* A copy where `out` is bound already (the other branch of an If did) or belongs to another body
 * than `in`: sharing there would let one branch write over what the other, or the outside, reads.
 */
bool bind_alias(Binder *b, const Node *n, const Value *out, const Value *in) {
    int from = bind_value(b, in);
    int *slot = &b->program->value_buffer[out->id];
    if (*slot >= 0 || out->graph != in->graph) {
        int to = bind_value(b, out);
        bind_copy(b, n, from, to);
        return true;
    }
    Buffer buffer = b->program->buffers[from];
    buffer.alias = from;
    buffer.value = out;
    buffer.comment = NULL;
    if (elem_bits(out->type.elem) == elem_bits(buffer.elem))
        buffer.elem = out->type.elem;
    *slot = binder_add_buffer(b, buffer);
    return true;
}

/* ---- nodes ---- */

/* Rounds v to the grid of its type: from now on another buffer is v. */
static void round_value(Binder *b, const Node *n, const Value *v) {
    const Quant *q = v->type.quant;
    int from = bind_value(b, v), rank = v->type.rank;
    size_t count = b->program->buffers[from].count;
    if (q->n_axes > 1 || (q->n_axes == 1 && q->n_zp > 1 && q->n_zp != q->n_scale)) {
        bind_unsupported(b, n, "its result is rounded along several axes");
        return;
    }
    qk_fakequant_f32_params p = {.outer = 1, .axis = 1, .inner = (int32_t)count, .block = 1};
    if (q->n_axes == 1) {
        int axis = q->axis[0];
        p.inner = 1;
        for (int i = 0; i < rank; i++) {
            int32_t dim = (int32_t)v->type.dims[i].value;
            *(i < axis ? &p.outer : i == axis ? &p.axis : &p.inner) *= dim;
        }
        p.block = q->block[0] > 1 ? (int32_t)q->block[0] : 1;
        p.s_axis = 1;
        if (q->n_scale != (size_t)((p.axis + p.block - 1) / p.block)) { /* a grid of blocks */
            p.s_inner = 1;
            p.s_axis = p.inner;
            p.s_outer = (p.axis + p.block - 1) / p.block * p.inner;
        }
    }
    p.lo = (int32_t)(q->has_range ? q->lo : elem_min(q->storage));
    p.hi = (int32_t)(q->has_range ? q->hi : elem_max(q->storage));
    p.nan = (int32_t)elem_min(q->storage);
    int32_t *zp = NEW_ARRAY(b->arena, int32_t, q->n_scale);
    for (size_t i = 0; i < q->n_scale; i++)
        zp[i] = (int32_t)quant_zp(q, i);
    int scale = bind_const(b, ELEM_FLOAT, q->n_scale, q->scale, "grid: scale");
    int zero = bind_const(b, ELEM_INT32, q->n_scale, zp, "grid: zero point");
    Buffer rounded = b->program->buffers[from];
    rounded.kind = BUF_ARENA;
    rounded.alias = rounded.port = -1;
    int to = binder_add_buffer(b, rounded);
    b->program->value_buffer[v->id] = to;
    if (bind_call(b, n, "qk_fakequant_f32", &p, sizeof p, 4, (int[]){from, scale, zero, to}))
        bind_in_place(b, 0);
}

static bool bind_operator(Binder *b, const Node *n) {
    if (!n->def && qop_find(n->domain, n->op))
        return reject(b, n, "it is in QOperator form, which has to be raised to types first");
    if (!n->def)
        return reject(b, n, "it is not known");
    if (!n->def->bind)
        return reject(b, n, "it has no kernel");
    int errors = diags_errors(b->diags);
    bool failed = b->failed;
    b->failed = false;
    OpCtx c = op_ctx(n, b->diags);
    bool ok = n->def->bind(b, n, &c);
    if (!ok && !b->failed && diags_errors(b->diags) == errors)
        reject(b, n, "not in this form");
    b->failed |= failed || !ok;
    return ok;
}

bool bind_node(Binder *b, const Node *n) {
    if (!bind_operator(b, n))
        return false;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && rounds(b, n->out[i]))
            round_value(b, n, n->out[i]);
    return true;
}

bool bind_graph(Binder *b, const Graph *g) {
    bool ok = true;
    FOR_NODES(n, g)
    ok &= bind_node(b, n);
    return ok;
}

/* ---- graph inputs and outputs ---- */

void bind_input(Binder *b, const Value *v, int port) {
    int i = bind_value(b, v);
    b->program->buffers[i].kind = BUF_INPUT;
    b->program->buffers[i].port = port;
    b->program->inputs[port] = i;
    if (elem_unpacked(v->type.elem) != v->type.elem)
        value_error(b, v, "is a graph input narrower than 8 bits, which cannot run yet");
    if (rounds(b, v))
        round_value(b, NULL, v);
}

void bind_output(Binder *b, const Value *v, int port) {
    int i = bind_value(b, v), root = program_root(b->program, i);
    if (elem_unpacked(v->type.elem) != v->type.elem)
        value_error(b, v, "is a graph output narrower than 8 bits, which cannot run yet");
    if (b->program->buffers[root].kind == BUF_ARENA) {
        for (size_t k = 0; k < b->program->n_buffers; k++)
            if (program_root(b->program, (int)k) == root) {
                b->program->buffers[k].kind = BUF_OUTPUT;
                b->program->buffers[k].port = port;
            }
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
