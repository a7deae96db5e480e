/* Makes a Runner: memory for the buffers of a program, where its calls jump, and after which of
 * them each value is complete. */
#include "exec/runner.h"

#include <assert.h>

/* ---- memory ---- */

/* The node whose call uses the buffer first. */
static const Node *user_of(const Program *p, size_t buffer) {
    for (size_t c = 0; c < p->n_calls; c++)
        for (int i = 0; i < p->calls[c].n_args; i++)
            if (p->calls[c].args[i] >= 0 && program_root(p, p->calls[c].args[i]) == (int)buffer)
                return p->calls[c].node;
    return NULL;
}

/* What takes the most of a program's memory, for whoever has to say that there is not enough. */
static const char *largest(Arena *a, const Program *p) {
    const Buffer *most = NULL;
    for (size_t i = 0; i < p->n_buffers; i++) {
        const Buffer *b = &p->buffers[i];
        bool used = b->alias < 0 && b->kind != BUF_CONST && (b->kind != BUF_ARENA || b->first >= 0);
        most = used && (!most || b->bytes > most->bytes) ? b : most;
    }
    if (!most)
        return NULL;
    const Value *v = most->value;
    const Node *n = v && v->def ? v->def : user_of(p, (size_t)(most - p->buffers));
    Buf text = buf_new(a);
    if (v && !most->scratch)
        buf_fmt(&text, "'%s', %s", diag_name(p->module->diags, v->name), type_text(a, v->type));
    else
        buf_fmt(&text, "scratch of %zu bytes", most->bytes);
    if (n && (!v || v->kind != VALUE_INPUT))
        buf_fmt(&text, ", of %s", node_text(n));
    return buf_as_str(&text).s;
}

/* Less is no reason to run out of it. */
enum { WORTH_NAMING = 1 << 20 };

static void give_memory(Runner *r, Arena *a) {
    const Program *p = r->program;
    uint8_t *arena = arena_alloc(a, p->arena_bytes + BUFFER_ALIGN);
    arena += (BUFFER_ALIGN - (uintptr_t)arena % BUFFER_ALIGN) % BUFFER_ALIGN;
    for (size_t i = 0; i < p->n_buffers; i++) {
        const Buffer *b = &p->buffers[i];
        if (b->alias >= 0)
            continue;
        if (b->kind == BUF_CONST)
            r->memory[i] = (uint8_t *)(uintptr_t)b->data; /* kernels take it as const */
        else if (b->kind != BUF_ARENA)
            r->memory[i] = arena_alloc(a, b->bytes ? b->bytes : 1);
        else if (b->first >= 0)
            r->memory[i] = arena + b->offset;
    }
    for (size_t i = 0; i < p->n_buffers; i++)
        r->memory[i] = r->memory[program_root(p, (int)i)];
}

/* ---- jumps ---- */

/* IF goes past its ELSE (or END) when false, ELSE past its END; LOOP past its NEXT in the end, NEXT
 * back to it. */
static void find_jumps(Runner *r, Arena *a) {
    const Program *p = r->program;
    int *stack = NEW_ARRAY(a, int, p->n_calls + 1), depth = 0;
    for (size_t i = 0; i < p->n_calls; i++) {
        CallKind kind = p->calls[i].kind;
        if (kind == CALL_KERNEL)
            continue;
        if (kind == CALL_NEXT) {
            assert(depth > 0);
            r->jump[i] = stack[depth - 1];
            r->jump[stack[depth - 1]] = (int)i + 1;
        } else if (kind == CALL_ELSE || kind == CALL_END) {
            assert(depth > 0);
            depth--;
            if (p->calls[stack[depth]].kind != CALL_LOOP)
                r->jump[stack[depth]] = kind == CALL_ELSE ? (int)i + 1 : (int)i;
        }
        if (kind == CALL_IF || kind == CALL_ELSE || kind == CALL_LOOP)
            stack[depth++] = (int)i;
    }
    assert(depth == 0);
}

/* ---- completion ---- */

/* What is carried through a loop is there as each iteration begins: it was given a value before the
 * loop (`first` is by buffer root). What is scanned is not: each iteration takes its part. */
static void complete_carried(Runner *r, int loop, const int *first) {
    const Program *p = r->program;
    const Node *n = p->calls[loop].node;
    for (size_t i = 0; i < n->n_attrs; i++) {
        const Graph *g = n->attrs[i].kind == ATTR_GRAPH ? n->attrs[i].v.g[0] : NULL;
        for (size_t k = 0; g && k < g->n_in; k++) {
            int at = p->value_buffer[g->in[k]->id];
            int root = at < 0 ? -1 : program_root(p, at);
            if (root >= 0 && first[root] < loop && r->completes[root] > loop)
                r->completes[root] = loop;
        }
    }
}

static void find_completion(Runner *r, Arena *a) {
    const Program *p = r->program;
    int *first = NEW_ARRAY(a, int, p->n_buffers);
    for (size_t i = 0; i < p->n_buffers; i++)
        r->completes[i] = first[i] = -1;
    for (size_t c = 0; c < p->n_calls; c++) {
        const Call *call = &p->calls[c];
        for (int i = 0; i < call->n_args; i++) {
            if (!call_writes(call, i) || call->args[i] < 0)
                continue;
            int root = program_root(p, call->args[i]);
            first[root] = first[root] < 0 ? (int)c : first[root];
            r->completes[root] = (int)c;
        }
    }
    for (size_t c = 0; c < p->n_calls; c++)
        if (p->calls[c].kind == CALL_LOOP)
            complete_carried(r, (int)c, first);
}

static bool observable(const Program *p, size_t i) {
    const Value *v = p->buffers[i].value;
    return v && v->kind != VALUE_CONST && p->value_buffer[v->id] == (int)i &&
           !(v->kind == VALUE_INPUT && v->data);
}

/* A stable sort by completing call (counting sort: programs may be long). */
static void order_values(Runner *r, Arena *a) {
    const Program *p = r->program;
    size_t *start = NEW_ARRAY(a, size_t, p->n_calls + 3);
    for (size_t i = 0; i < p->n_buffers; i++)
        if (observable(p, i)) {
            start[runner_completes(r, (uint32_t)i) + 2]++;
            r->n_order++;
        }
    for (size_t i = 1; i < p->n_calls + 2; i++)
        start[i] += start[i - 1];
    r->order = NEW_ARRAY(a, uint32_t, r->n_order);
    for (size_t i = 0; i < p->n_buffers; i++)
        if (observable(p, i))
            r->order[start[runner_completes(r, (uint32_t)i) + 1]++] = (uint32_t)i;
}

static size_t most_params(const Program *p) {
    size_t most = 1;
    for (size_t c = 0; c < p->n_calls; c++)
        if (p->calls[c].patches && p->calls[c].kernel->params_size > most)
            most = p->calls[c].kernel->params_size;
    return most;
}

Runner *runner_new(Arena *a, const Program *p) {
    Runner *r = NEW(a, Runner);
    *r = (Runner){.program = p, .params = arena_alloc(a, most_params(p))};
    r->memory = NEW_ARRAY(a, uint8_t *, p->n_buffers);
    r->args = NEW_ARRAY(a, void *, p->n_calls *CALL_MAX_ARGS);
    r->jump = NEW_ARRAY(a, int, p->n_calls);
    r->ran = NEW_ARRAY(a, bool, p->n_calls);
    r->completes = NEW_ARRAY(a, int, p->n_buffers);
    OutOfMemory *oom = arena_handler(a);
    if (oom && p->arena_bytes >= WORTH_NAMING)
        oom->largest = largest(a, p);
    give_memory(r, a);
    if (oom)
        oom->largest = NULL;
    for (size_t c = 0; c < p->n_calls; c++)
        for (int i = 0; i < p->calls[c].n_args && p->calls[c].kind != CALL_END; i++)
            if (p->calls[c].args[i] >= 0)
                r->args[c * CALL_MAX_ARGS + (size_t)i] = r->memory[p->calls[c].args[i]];
    find_jumps(r, a);
    find_completion(r, a);
    order_values(r, a);
    return r;
}
