#include "passes/pass.h"

#include <stdarg.h>

static const Pass passes[] = {
#define PASS(id, name, summary, before, after) {name, summary, before, after, pass_##id},
#include "passes/passes.def"
#undef PASS
};

size_t pass_count(void) {
    return sizeof passes / sizeof passes[0];
}

const Pass *pass_at(size_t i) {
    return &passes[i];
}

const Pass *pass_find(const char *name) {
    for (size_t i = 0; i < pass_count(); i++)
        if (strcmp(passes[i].name, name) == 0)
            return &passes[i];
    return NULL;
}

bool pass_run(const Pass *p, Module *m, PassContext *c) {
    int before = diags_errors(c->d);
    bool ok = p->run(m, c) && diags_errors(c->d) == before;
    /* What is legal and dubious about quantization is told once: where it becomes types. */
    unsigned flags = strcmp(p->after, "true") == 0 ? VERIFY_WARN : VERIFY_ERRORS;
    return ok && module_resolve(m, c->d) && module_infer(m, c->d) &&
           module_verify_with(m, flags, c->d);
}

void pass_remark(PassContext *c, const Node *n, const char *fmt, ...) {
    Arena *a = n->graph->module->arena;
    if (!c->remarked)
        c->remarked = map_new(a);
    Str key = {arena_copy(a, &n->id, sizeof n->id), sizeof n->id};
    if (!map_set(c->remarked, key, c))
        return;
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    Remark r = {n, n->op, n->name, arena_strf(a, "%s", text).s};
    ARENA_PUSH(a, c->remarks, c->n_remarks, c->cap_remarks, r);
}
