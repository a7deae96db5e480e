/* Which calls could take turns. See program/bands.h. */
#include "program/bands.h"

bool bands_windows(const Call *c) {
    return c->kernel->split == SPLIT_ROWS;
}

/* Elements of one tensor, as many as `n` says. */
static bool maps_each(const Call *c) {
    const KernelField *f = kernel_field(c->kernel, "n");
    return c->kernel->n_each == 1 && f && f->kind == KF_I64 && !f->count;
}

int bands_operand(const Program *p, const Call *c) {
    return c->args[0] < 0 ? -1 : program_root(p, c->args[0]);
}

int bands_result(const Program *p, const Call *c) {
    int out = call_output(p, c);
    return out < 0 ? -1 : program_root(p, c->args[out]);
}

bool bands_weighs(const Call *c) {
    for (size_t i = 1; i < c->kernel->n_args; i++)
        if (c->kernel->args[i].is_const)
            return true;
    return false;
}

/* Nothing but the operand, constants, the result and scratch is read or written. */
static bool has_rows(const Program *p, const Call *c) {
    if (c->kind != CALL_KERNEL || c->patches || c->foreign || c->n_parts ||
        !(bands_windows(c) || maps_each(c)))
        return false;
    int out = call_output(p, c);
    for (int i = 1; i < c->n_args; i++) {
        const Buffer *b = c->args[i] < 0 ? NULL : &p->buffers[program_root(p, c->args[i])];
        if (b && i != out && !b->scratch && b->kind != BUF_CONST)
            return false;
    }
    return out > 0 && bands_operand(p, c) >= 0;
}

/* By buffer root: how many arguments and ports it is. */
static int *count_uses(Arena *a, const Program *p) {
    int *uses = NEW_ARRAY(a, int, p->n_buffers);
    const Graph *g = p->module->graph;
    for (size_t c = 0; c < p->n_calls; c++)
        for (int i = 0; i < p->calls[c].n_args; i++)
            if (p->calls[c].args[i] >= 0)
                uses[program_root(p, p->calls[c].args[i])]++;
    for (size_t i = 0; i < p->n_inputs; i++)
        uses[program_root(p, p->inputs[i])]++;
    for (size_t i = 0; i < p->n_outputs; i++)
        if (p->outputs[i] >= 0)
            uses[program_root(p, p->outputs[i])]++;
    for (size_t i = 0; i < g->n_out; i++)
        if (p->value_buffer[g->out[i]->id] >= 0)
            uses[program_root(p, p->value_buffer[g->out[i]->id])]++;
    return uses;
}

static bool hands_on(const Program *p, const Call *c, const int *uses) {
    const Call *next = c + 1;
    if (!has_rows(p, c) || !has_rows(p, next))
        return false;
    int m = bands_result(p, c);
    return m == bands_operand(p, next) && uses[m] == 2 && p->buffers[m].kind == BUF_ARENA &&
           p->buffers[m].bytes;
}

bool *bands_joins(Arena *a, const Program *p) {
    bool *joins = NEW_ARRAY(a, bool, p->n_calls);
    int *uses = count_uses(a, p);
    for (size_t c = 0; c + 1 < p->n_calls; c++)
        joins[c] = hands_on(p, &p->calls[c], uses);
    return joins;
}
