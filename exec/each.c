/* See exec/each.h. Kernels say how many elements they map in one of three ways: `n`; `dim` of
 * `rank` with strides of each argument; `outer`, `axis` and `inner` with steps of the tables. */
#include "exec/each.h"

static const Buffer *root_of(const Program *p, int buffer) {
    return &p->buffers[program_root(p, buffer)];
}

static bool is_const(const Program *p, const Call *c, int i) {
    return root_of(p, c->args[i])->kind == BUF_CONST;
}

static int32_t number(const Call *c, const char *name) {
    const int32_t *v = kernel_param(c->kernel, c->params, name);
    return v ? *v : 0;
}

static int64_t mapped_by_tables(const Call *c) {
    bool one = !number(c, "s_outer") && !number(c, "s_axis") && !number(c, "s_inner");
    return one ? (int64_t)number(c, "outer") * number(c, "axis") * number(c, "inner") : 0;
}

static int64_t mapped_by_strides(const Program *p, const Call *c) {
    const int32_t *dim = kernel_param(c->kernel, c->params, "dim");
    if (number(c, "rank") != 1)
        return 0;
    for (int i = 0; i < c->kernel->n_each; i++)
        if (*kernel_strides(c->kernel, c->params, i) != !is_const(p, c, i))
            return 0;
    return dim[0];
}

static int64_t mapped(const Program *p, const Call *c) {
    const int64_t *n = kernel_param(c->kernel, c->params, "n");
    if (kernel_param(c->kernel, c->params, "dim"))
        return mapped_by_strides(p, c);
    if (is_const(p, c, 0))
        return 0;
    return n ? *n : kernel_param(c->kernel, c->params, "axis") ? mapped_by_tables(c) : 0;
}

int64_t call_each(const Program *p, const Call *c) {
    int last = c->n_args - 1;
    if (c->kind != CALL_KERNEL || c->patches || !c->kernel->n_each ||
        c->kernel->args[last].is_const)
        return 0;
    for (int i = 0; i <= last; i++)
        if (c->args[i] < 0 || (i < last && !c->kernel->args[i].is_const) ||
            (i >= c->kernel->n_each && i < last && !is_const(p, c, i)))
            return 0;
    int64_t n = mapped(p, c);
    for (int i = 0; i <= last; i++)
        if ((i < c->kernel->n_each || i == last) && !is_const(p, c, i) &&
            (int64_t)p->buffers[c->args[i]].count != n)
            return 0;
    return n;
}

void call_each_on(Arena *a, const Program *p, const Call *c, int32_t n, void *const *args,
                  void *y) {
    void *params = arena_copy(a, c->params, c->kernel->params_size), *at[CALL_MAX_ARGS];
    int64_t *count = kernel_param(c->kernel, params, "n");
    int32_t *dim = kernel_param(c->kernel, params, "dim"),
            *axis = kernel_param(c->kernel, params, "axis");
    if (dim) {
        dim[0] = n;
    } else if (count) {
        *count = n;
    } else {
        *axis = n;
        *(int32_t *)kernel_param(c->kernel, params, "outer") =
            *(int32_t *)kernel_param(c->kernel, params, "inner") = 1;
    }
    for (int i = 0; i + 1 < c->n_args; i++)
        at[i] = args[i] ? args[i] : (void *)(uintptr_t)root_of(p, c->args[i])->data;
    at[c->n_args - 1] = y;
    kernel_invoke(c->kernel, params, at);
}
