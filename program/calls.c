/* The binder's calls. See program/program.h. */
#include <assert.h>

#include "program/binder.h"
#include "kernels_gen.h"

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
    default: return elem_name(e);
    }
}

/* The instance that reads packed elements as they are, if any of the types is packed. */
static const char *packed_kernel(Arena *a, const char *name, int n, const ElemType *types) {
    bool packed = false;
    Buf text = buf_new(a);
    buf_fmt(&text, "qk_%s", name);
    for (int i = 0; i < n; i++) {
        bool narrow = elem_unpacked(types[i]) != types[i];
        buf_fmt(&text, "_%s", narrow ? "p8" : short_name(types[i], false));
        packed |= narrow;
    }
    const char *full = buf_as_str(&text).s;
    return packed && kernel_find(full) ? full : NULL;
}

const char *instance_name(Arena *a, const char *name, int n, const ElemType *types) {
    const char *exact = packed_kernel(a, name, n, types);
    if (exact)
        return exact;
    for (unsigned widths = 0; widths < 1u << n; widths++) { /* bit i: type i by its width */
        Buf text = buf_new(a);
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

const char *bind_kernel(Binder *b, const char *name, int n, const ElemType *types) {
    return instance_name(b->arena, name, n, types);
}

static bool no_kernel(Binder *b, const Node *n) {
    Buf text = buf_new(b->arena);
    buf_text(&text, "no kernel for (");
    for (size_t i = 0; i < n->n_in; i++)
        buf_fmt(&text, "%s%s", i ? ", " : "", n->in[i] ? elem_name(n->in[i]->type.elem) : "-");
    buf_text(&text, ") -> ");
    for (size_t i = 0; i < n->n_out; i++)
        buf_fmt(&text, "%s%s", i ? ", " : "", n->out[i] ? elem_name(n->out[i]->type.elem) : "-");
    return binder_reject(b, n, buf_as_str(&text).s);
}

static bool has_twin(const char *name) {
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, "_f32") == 0;
}

const KernelDef *bind_twin(Binder *b, const char *name) {
    size_t n = strlen(name);
    char *twin = arena_copy(b->arena, name, n + 1);
    memcpy(twin + n - 2, "64", 2);
    return kernel_find(twin);
}

/* The kernel of this name; while a node is bound in double, the twin of one on floats. */
static const KernelDef *find(Binder *b, const char *name) {
    return b->in_double && has_twin(name) ? bind_twin(b, name) : kernel_find(name);
}

/* Elements of the width that the kernel reads, and no input or constant where it writes. */
static bool fits_argument(const Program *p, int buffer, const KernelArg *a) {
    BufferKind root = p->buffers[program_root(p, buffer)].kind;
    return elem_bytes(p->buffers[buffer].elem, 1) == a->size &&
           (a->is_const || (root != BUF_INPUT && root != BUF_CONST));
}

bool bind_call(Binder *b, const Node *n, const char *kernel, const void *params, size_t params_size,
               int n_args, const int *args) {
    const KernelDef *k = find(b, kernel);
    if (!k)
        return no_kernel(b, n);
    assert(params_size == k->params_size && (size_t)n_args == k->n_args);
    assert(n_args <= CALL_MAX_ARGS);
    Call c = {.kind = CALL_KERNEL,
              .kernel = k,
              .n_args = n_args,
              .node = b->stands_for  ? b->stands_for
                      : b->in_double ? b->in_double
                                     : n};
    c.params = arena_copy(b->arena, params, params_size);
    c.args = arena_copy(b->arena, args, (size_t)n_args * sizeof *args);
    for (int i = 0; i < n_args; i++)
        assert(args[i] < 0 || fits_argument(b->program, args[i], &k->args[i]));
    add_call(b, c);
    return true;
}

int call_output(const Program *p, const Call *c) {
    for (int i = 0; c->kind == CALL_KERNEL && i < c->n_args; i++)
        if (call_writes(c, i) && c->args[i] >= 0 && !p->buffers[c->args[i]].scratch)
            return i;
    return -1;
}

void bind_unpacked(Binder *b, const Plain *plain) {
    Call *c = &b->program->calls[b->program->n_calls - 1];
    c->plain = arena_copy(b->arena, plain, sizeof *plain);
}

static void add_overlay(Binder *b, Overlay o) {
    Call *c = &b->program->calls[b->program->n_calls - 1];
    assert(c->n_overlays < CALL_MAX_OVERLAYS);
    c->overlays[c->n_overlays++] = o;
}

void bind_in_place(Binder *b, int arg) {
    add_overlay(b, (Overlay){.arg = arg, .exact = true});
}

void bind_over(Binder *b, int arg, int64_t lead) {
    add_overlay(b, (Overlay){.arg = arg, .lead = lead});
}

void bind_grow(Binder *b, int scratch, size_t field, size_t least, size_t step, size_t most) {
    Call *c = &b->program->calls[b->program->n_calls - 1];
    char *params = (char *)(uintptr_t)c->params; /* our own copy */
    c->growth = (Growth){scratch, least, least, step, most, (int32_t *)(void *)(params + field)};
}

void bind_keep(Binder *b, size_t bytes) {
    Growth *g = &b->program->calls[b->program->n_calls - 1].growth;
    g->kept = bytes < g->least ? g->least : bytes;
}

void bind_within(Binder *b, const Value *v, bool from_end, const int32_t *lengths, int n) {
    Call *c = &b->program->calls[b->program->n_calls - 1];
    int buffer = v ? b->program->value_buffer[v->id] : -1, arg = 0;
    if (buffer < 0)
        return;
    while (arg < c->n_args && c->args[arg] != buffer)
        arg++;
    assert(arg < c->n_args && n <= 8);
    Within *w = NEW(b->arena, Within);
    *w = (Within){.arg = arg, .from_end = from_end, .n = n, .of = v, .next = c->within};
    memcpy(w->lengths, lengths, (size_t)n * sizeof *lengths);
    c->within = w;
}

void bind_macs(Binder *b, int64_t macs) {
    b->program->macs += macs;
}

void bind_loop(Binder *b, const Node *n, int condition, int done, int most) {
    int args[] = {condition, done, most};
    Call c = {.kind = CALL_LOOP, .node = n, .n_args = 3};
    c.args = arena_copy(b->arena, args, sizeof args);
    binder_enter(b);
    add_call(b, c);
}

bool bind_same_bytes(const Binder *b, int x, int y) {
    return program_root(b->program, x) == program_root(b->program, y);
}

void bind_control(Binder *b, const Node *n, CallKind kind, int condition) {
    int *args = NEW_ARRAY(b->arena, int, n->n_out + 1);
    Call c = {.kind = kind, .node = n, .args = args};
    bool loop_end = kind == CALL_END && b->program->n_calls &&
                    b->program->calls[b->program->n_calls - 1].kind == CALL_NEXT;
    if (kind != CALL_IF && !loop_end)
        binder_leave(b);
    if (kind == CALL_IF || kind == CALL_ELSE)
        binder_enter(b);
    if (kind == CALL_IF)
        args[c.n_args++] = condition;
    for (size_t i = 0; kind == CALL_END && i < n->n_out; i++)
        if (n->out[i] && b->program->value_buffer[n->out[i]->id] >= 0)
            args[c.n_args++] = b->program->value_buffer[n->out[i]->id];
    add_call(b, c);
}

void bind_copy(Binder *b, const Node *n, int from, int to) {
    const Buffer *buffer = &b->program->buffers[to];
    ElemType elem = buffer->elem;
    qk_copy_nd_params p = {.rank = 1, .dim = {(int32_t)buffer->count}, .ss = {1}, .ds = {1}};
    assert(b->program->buffers[from].bytes == buffer->bytes);
    bind_call(b, n, bind_kernel(b, "copy_nd", 1, &elem), &p, sizeof p, 2, (int[]){from, to});
}

/* Makes `out`, in the order that `slot` is for, the bytes of buffer `from`. */
static void share(Binder *b, int *slot, const Value *out, int from) {
    Buffer buffer = b->program->buffers[from];
    buffer.alias = program_root(b->program, from); /* long chains stay linear */
    buffer.value = out;
    buffer.comment = NULL;
    if (elem_bits(out->type.elem) == elem_bits(buffer.elem))
        buffer.elem = out->type.elem;
    *slot = binder_add_buffer(b, buffer);
}

/* A copy where `out` is bound already (the other branch of an If did) or belongs to another body
 * than `in`: sharing there would let one branch write over what the other, or the outside, reads.
 */
bool bind_alias(Binder *b, const Node *n, const Value *out, const Value *in) {
    size_t n_out, n_in;
    if (type_count(out->type, &n_out) && type_count(in->type, &n_in) && n_out != n_in)
        return bind_unsupported(b, n, "it makes %zu elements out of %zu", n_out, n_in);
    bool last = bind_is_last(b, in) && type_same_shape(in->type, out->type) &&
                b->program->value_buffer[out->id] < 0 && out->graph == in->graph;
    int from = last ? bind_last(b, n, in) : bind_value(b, in);
    int *slot = last ? &b->last[out->id] : &b->program->value_buffer[out->id];
    if (*slot >= 0 || out->graph != in->graph) {
        int to = bind_value(b, out);
        bind_copy(b, n, from, to);
        return true;
    }
    share(b, slot, out, from);
    return true;
}

/* The call that has just written `v`, which nothing but one node reads; NULL: it is another. */
static const Call *made_now(const Binder *b, const Value *v) {
    const Program *p = b->program;
    const Call *c = p->n_calls ? &p->calls[p->n_calls - 1] : NULL;
    int at = c ? call_output(p, c) : -1, plain = p->value_buffer[v->id], last = b->last[v->id];
    if (at < 0 || b->options.keep_all || b->options.observed || !uses_only_here(b->uses, v))
        return NULL;
    return c->args[at] == (plain < 0 ? last : last < 0 ? plain : -1) ? c : NULL;
}

bool bind_clamped(Binder *b, const Node *n, const Value *out, const Value *in, float lo, float hi) {
    const Call *c = made_now(b, in);
    int32_t *clamped = c ? kernel_param(c->kernel, c->params, "clamped") : NULL;
    if (!clamped || *clamped || out->graph != in->graph)
        return false;
    *clamped = 1;
    *(float *)kernel_param(c->kernel, c->params, "lo") = lo;
    *(float *)kernel_param(c->kernel, c->params, "hi") = hi;
    return bind_alias(b, n, out, in);
}

bool bind_moved(Binder *b, const Value *out, const Value *in, bool to_front) {
    int from = to_front ? b->program->value_buffer[in->id] : b->last[in->id];
    if (to_front && from < 0 && b->last[in->id] < 0)
        from = bind_value(b, in); /* a constant */
    if (from < 0 || out->graph != in->graph || b->program->value_buffer[out->id] >= 0 ||
        b->last[out->id] >= 0)
        return false;
    share(b, to_front ? &b->last[out->id] : &b->program->value_buffer[out->id], out, from);
    return true;
}
