/* See exec/const_calls.h. */
#include "exec/const_calls.h"
#include "exec/exec.h"
#include "exec/within.h"

typedef struct ConstCalls {
    Arena *a;
    Program *p;
    int *writers; /* by root buffer: calls that write it, or what control flow hands out */
} ConstCalls;

static bool writes(const Call *c, int arg) {
    return c->kind != CALL_KERNEL || call_writes(c, arg);
}

static void count_writers(ConstCalls *k) {
    for (size_t i = 0; i < k->p->n_calls; i++) {
        const Call *c = &k->p->calls[i];
        for (int j = 0; j < c->n_args; j++)
            if (c->args[j] >= 0 && writes(c, j))
                k->writers[program_root(k->p, c->args[j])]++;
    }
}

/* The buffer that the call fills from constants no smaller than that, -1 where it is none of these.
 */
static int filled(const ConstCalls *k, const Call *c) {
    size_t read = 0;
    int to = -1;
    for (int i = 0; c->kind == CALL_KERNEL && !c->patches && i < c->n_args; i++) {
        if (c->args[i] < 0)
            continue;
        int root = program_root(k->p, c->args[i]);
        const Buffer *b = &k->p->buffers[root];
        if (!writes(c, i)) {
            if (b->kind != BUF_CONST)
                return -1;
            read += b->bytes;
        } else if (to >= 0 || b->scratch || b->kind != BUF_ARENA || k->writers[root] != 1 ||
                   root != c->args[i]) {
            return -1;
        } else {
            to = root;
        }
    }
    return to >= 0 && k->p->buffers[to].bytes <= read ? to : -1;
}

/* False with nothing done: an index is out of range, which is said where the call runs. */
static bool run(ConstCalls *k, const Call *c, int to) {
    Buffer *b = &k->p->buffers[to];
    void *args[CALL_MAX_ARGS] = {NULL};
    void *data = arena_alloc(k->a, b->bytes + 1);
    memset(data, 0, b->bytes);
    for (int i = 0; i < c->n_args; i++)
        if (c->args[i] >= 0)
            args[i] = writes(c, i)
                          ? data
                          : (void *)(uintptr_t)k->p->buffers[program_root(k->p, c->args[i])].data;
    Outside outside;
    if (!call_within(k->p, c, args, &outside))
        return false;
    kernel_invoke(c->kernel, c->params, args);
    b->kind = BUF_CONST;
    b->data = data;
    b->comment = b->comment ? b->comment : "computed ahead";
    return true;
}

void program_run_consts(Arena *a, Program *p) {
    ConstCalls k = {a, p, NEW_ARRAY(a, int, p->n_buffers)};
    size_t kept = 0;
    for (size_t i = 0; i < p->n_outputs; i++)
        if (p->outputs[i] >= 0)
            k.writers[program_root(p, p->outputs[i])]++;
    count_writers(&k);
    for (size_t i = 0; i < p->n_calls; i++) {
        int to = filled(&k, &p->calls[i]);
        if (to < 0 || !run(&k, &p->calls[i], to))
            p->calls[kept++] = p->calls[i];
    }
    p->n_calls = kept;
}
