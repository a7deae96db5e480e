/* The binder's buffers: of values, constants and scratch. See program/program.h. */
#include "program/binder.h"
#include "ir/minifloat.h"

Arena *binder_arena(Binder *b) {
    return b->arena;
}
Diags *binder_diags(Binder *b) {
    return b->diags;
}

bool bind_any_length(const Binder *b) {
    return b->options.any_length;
}

SumRounding bind_rounding(const Binder *b) {
    return b->options.rounding;
}

Binder *binder_new(Arena *a, Module *m, const ProgramOptions *o, Diags *d) {
    Binder *b = NEW(a, Binder);
    *b = (Binder){.arena = a,
                  .diags = d,
                  .rejected = map_new(a),
                  .dynamic = map_new(a),
                  .floats = map_new(a),
                  .uses = uses_new(m),
                  .program = NEW(a, Program)};
    if (o)
        b->options = *o;
    b->program->module = m;
    b->program->bounds = b->options.bounds;
    b->program->n_bounds = b->options.n_bounds;
    b->program->lengths = NEW_ARRAY(a, int, b->options.n_bounds + 1);
    b->n_slots = b->cap_slots = m->n_values;
    b->program->value_buffer = NEW_ARRAY(a, int, m->n_values);
    b->program->why_double = NEW_ARRAY(a, const char *, m->n_nodes);
    b->program->converted = NEW_ARRAY(a, int64_t, m->n_nodes);
    b->program->macs_of = NEW_ARRAY(a, int64_t, m->n_nodes);
    for (uint32_t i = 0; i < m->n_values; i++)
        b->program->value_buffer[i] = -1;
    for (size_t i = 0; i < b->options.n_bounds; i++)
        b->program->lengths[i] = -1;
    b->last = NEW_ARRAY(a, int, m->n_values);
    binder_reset_layout(b);
    return b;
}

void binder_reset(Binder *b) {
    Program *p = b->program;
    for (size_t i = 0; i < p->n_buffers; i++)
        if (p->buffers[i].value)
            p->value_buffer[p->buffers[i].value->id] = -1;
    p->n_buffers = p->n_calls = p->n_counted = 0;
    binder_reset_layout(b);
    b->rejected = map_new(b->arena);
    b->dynamic = map_new(b->arena);
    b->failed = false;
}

/* ---- buffers ---- */

bool elem_is_half(ElemType e) {
    return elem_is_float(e) && elem_bits(e) < 32;
}

ElemType bind_real(const Binder *b) {
    return b->in_double ? ELEM_DOUBLE : ELEM_FLOAT;
}

int binder_add_buffer(Binder *b, Buffer buffer) {
    Program *p = b->program;
    ARENA_PUSH(b->arena, p->buffers, p->n_buffers, p->cap_buffers, buffer);
    return (int)p->n_buffers - 1;
}

int binder_replace(Binder *b, const Value *v) {
    Buffer buffer = b->program->buffers[bind_value(b, v)];
    buffer.kind = BUF_ARENA;
    buffer.alias = buffer.port = -1;
    buffer.data = NULL;
    b->last[v->id] = -1;
    return b->program->value_buffer[v->id] = binder_add_buffer(b, buffer);
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

int bind_dynamic(const Binder *b, const Value *v) {
    return (int)(intptr_t)map_get(b->dynamic, binder_key(v)) - 1;
}

void bind_set_dynamic(Binder *b, const Value *v, int params) {
    map_set(b->dynamic, binder_key(v), (void *)(intptr_t)(params + 1));
}

int bind_made(Binder *b, ElemType e, size_t count, const void *data, const char *comment) {
    Buffer buffer = buffer_of(BUF_CONST, e, count);
    buffer.data = data;
    buffer.comment = comment;
    return binder_add_buffer(b, buffer);
}

int bind_const(Binder *b, ElemType e, size_t count, const void *data, const char *comment) {
    return bind_made(b, e, count, arena_copy(b->arena, data, elem_bytes(e, count)), comment);
}

const Buffer *bind_buffer(const Binder *b, int buffer) {
    return &b->program->buffers[buffer];
}

/* Mapped files align nothing. */
static const void *align_buffer(Arena *a, Buffer *f) {
    size_t align = (size_t)elem_bits(f->elem) / 8;
    if (f->kind != BUF_CONST)
        return NULL;
    if (align > 1 && (uintptr_t)f->data % align)
        f->data = arena_copy(a, f->data, f->bytes);
    return f->data;
}

const void *bind_data(Binder *b, int buffer) {
    return align_buffer(b->arena, &b->program->buffers[buffer]);
}

void program_align(Arena *a, Program *p) {
    for (size_t i = 0; i < p->n_calls; i++)
        for (int k = 0; k < p->calls[i].n_args; k++)
            if (p->calls[i].args[k] >= 0)
                align_buffer(a, &p->buffers[program_root(p, p->calls[i].args[k])]);
    for (size_t i = 0; i < p->n_outputs; i++)
        if (p->outputs[i] >= 0)
            align_buffer(a, &p->buffers[program_root(p, p->outputs[i])]);
}

void bind_holds(Binder *b, int buffer, const Value *v) {
    b->program->buffers[buffer].value = v;
}

void bind_is(Binder *b, int buffer, const Value *v) {
    bind_holds(b, buffer, v);
    b->program->value_buffer[v->id] = buffer;
}

int bind_temp(Binder *b, ElemType e, size_t count) {
    if (e == ELEM_FLOAT)
        e = bind_real(b);
    return binder_add_buffer(b, buffer_of(BUF_ARENA, elem_unpacked(e), count));
}

int bind_scratch(Binder *b, ElemType e, size_t count) {
    int i = bind_temp(b, e, count);
    b->program->buffers[i].scratch = true;
    return i;
}

int bind_counted(Binder *b, const Node *n, size_t i, ElemType e, Counted of) {
    Program *p = b->program;
    of.buffer = bind_temp(b, e, of.most);
    if (i < n->n_out && n->out[i]) {
        bind_is(b, of.buffer, n->out[i]);
        ARENA_PUSH(b->arena, p->counted, p->n_counted, p->cap_counted, of);
    }
    return of.buffer;
}

int64_t bind_bound(const Binder *b, const Node *n, int64_t most) {
    const LengthBound *bound = binder_bound(b, b->stands_for ? b->stands_for : n);
    if (!bound)
        return most;
    if (bound->stated)
        return bound->most;
    return bound->most < LENGTH_BUILT && most >= LENGTH_BUILT ? LENGTH_BUILT : bound->most;
}

const LengthBound *binder_bound(const Binder *b, const Node *n) {
    for (size_t i = 0; i < b->options.n_bounds; i++)
        if (b->options.bounds[i].node == n)
            return &b->options.bounds[i];
    return b->stated && b->stated->node == n ? b->stated : NULL;
}

void binder_check_length(Binder *b, const LengthBound *bound, int length) {
    Program *p = b->program;
    Call c = {.kind = CALL_CHECK, .node = bound->node, .n_args = 1, .bound = bound};
    c.args = arena_copy(b->arena, &length, sizeof length);
    if (!bound->stated)
        p->lengths[bound - p->bounds] = length;
    ARENA_PUSH(b->arena, p->calls, p->n_calls, p->cap_calls, c);
}

const Counted *program_counted(const Program *p, const Value *v) {
    int buffer = v->id < p->module->n_values ? p->value_buffer[v->id] : -1;
    for (size_t i = 0; buffer >= 0 && i < p->n_counted; i++)
        if (program_root(p, p->counted[i].buffer) == program_root(p, buffer))
            return &p->counted[i];
    return NULL;
}

static int failed_buffer(Binder *b) {
    b->failed = true;
    return binder_add_buffer(b, buffer_of(BUF_ARENA, ELEM_UINT8, 0)); /* lets binding go on */
}

int bind_value_error(Binder *b, const Value *v, const char *what) {
    diag_error(b->diags, v->loc, "value %s %s", diag_name(b->diags, v->name), what);
    return failed_buffer(b);
}

/* A float constant of type `float ~ q`, rounded to its grid as the fakequant kernel does it. */
static const void *round_const(Binder *b, const Type *type, const Tensor *t) {
    const Quant *q = type->quant;
    float *out = NEW_ARRAY(b->arena, float, t->count);
    uint64_t bits;
    for (size_t i = 0; i < t->count; i++) {
        size_t k = quant_index(q, t->rank, t->dims, i);
        int64_t steps = quant_of_real(q, k, (float)tensor_float(t, i)) - quant_zp(q, k);
        out[i] = (float)steps * quant_scale(q, k);
        if (elem_is_half(q->expressed) && float_encode(q->expressed, (double)out[i], &bits))
            out[i] = (float)float_decode(q->expressed, bits);
    }
    return out;
}

bool binder_rounds(const Binder *b, const Value *v) {
    return v->type.tilde && v->type.quant && v->type.quant->kind == QUANT_PARAMS &&
           (v->type.elem == ELEM_FLOAT || elem_is_half(v->type.elem)) && !b->options.ignore_quant;
}

int bind_tensor(Binder *b, const Tensor *t, const Value *v) {
    if (t->elem == ELEM_STRING)
        return bind_value_error(b, v, "holds strings, which cannot run");
    if (!tensor_required(t, v->name, v->loc, b->diags))
        return failed_buffer(b);
    Buffer buffer = buffer_of(BUF_CONST, elem_unpacked(t->elem), t->count);
    buffer.value = v;
    if (binder_rounds(b, v))
        buffer.data = round_const(b, &v->type, t);
    else if (buffer.elem != t->elem)
        buffer.data = tensor_unpacked(b->arena, t)->data;
    else
        buffer.data = t->data;
    return binder_add_buffer(b, buffer);
}

int binder_new_value(Binder *b, const Value *v) {
    size_t count;
    const Quant *q = v->type.quant;
    if (v->data)
        return bind_tensor(b, v->data, v);
    if (v->type.kind == TYPE_NONE)
        return bind_value_error(b, v, "has no known type");
    if (v->type.kind != TYPE_TENSOR)
        return bind_value_error(b, v, "is not a tensor; only tensors can run");
    if (type_is_quantized(v->type) && q->kind == QUANT_UNKNOWN)
        return bind_value_error(b, v, "has no quantization parameters yet");
    if (v->type.elem == ELEM_STRING)
        return bind_value_error(b, v, "holds strings, which cannot run");
    if (!type_count(v->type, &count) || count > INT32_MAX)
        return bind_value_error(b, v, "has no fixed shape of at most 2^31-1 elements");
    Buffer buffer = buffer_of(BUF_ARENA, elem_unpacked(v->type.elem), count);
    buffer.value = v;
    return binder_add_buffer(b, buffer);
}
