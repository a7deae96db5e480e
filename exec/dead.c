/* See exec/dead.h. */
#include "exec/dead.h"
#include "exec/exec.h"

typedef struct Needs {
    const Program *p;
    bool *needed; /* by root buffer */
} Needs;

static bool is_result(const Call *c, int arg) {
    return c->kind == CALL_KERNEL && call_writes(c, arg);
}

/* Of what it writes, too: kernels may go on with what stands there (the gates of an LSTM), or write
 * a part of it. */
static void need_arguments(Needs *n, const Call *c) {
    for (int i = 0; i < c->n_args; i++)
        if (c->args[i] >= 0)
            n->needed[program_root(n->p, c->args[i])] = true;
}

static bool is_dead(const Needs *n, const Call *c) {
    for (int i = 0; i < c->n_args; i++)
        if (is_result(c, i) && c->args[i] >= 0 && n->needed[program_root(n->p, c->args[i])])
            return false;
    return c->kind == CALL_KERNEL;
}

/* Within a loop, what a call reads may be written behind it. */
static bool has_loop(const Program *p) {
    for (size_t i = 0; i < p->n_calls; i++)
        if (p->calls[i].kind == CALL_LOOP)
            return true;
    return false;
}

void program_drop_dead(Arena *a, Program *p) {
    Needs n = {p, NEW_ARRAY(a, bool, p->n_buffers)};
    size_t kept = p->n_calls;
    for (size_t i = 0; i < p->n_outputs; i++)
        if (p->outputs[i] >= 0)
            n.needed[program_root(p, p->outputs[i])] = true;
    for (size_t i = 0; has_loop(p) && i < p->n_calls; i++)
        need_arguments(&n, &p->calls[i]);
    for (size_t i = p->n_calls; i-- > 0;)
        if (!is_dead(&n, &p->calls[i])) {
            need_arguments(&n, &p->calls[i]);
            p->calls[--kept] = p->calls[i];
        }
    p->n_calls -= kept;
    if (p->n_calls)
        memmove(p->calls, p->calls + kept, p->n_calls * sizeof *p->calls);
}
