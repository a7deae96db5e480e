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

bool pass_unknown(const char *name, const char *where, Diags *d) {
    const char *names[sizeof passes / sizeof passes[0]];
    for (size_t i = 0; i < pass_count(); i++)
        names[i] = pass_at(i)->name;
    diag_error(d, LOC_NONE, "%sthere is no pass '%s'", where, name);
    diag_did_you_mean(d, LOC_NONE, str_from(name), names, pass_count());
    return false;
}

/* ---- the form that a pass takes ---- */

typedef struct FormCheck {
    const Pass *pass;
    Diags *d;
    bool ok;
} FormCheck;

static void check_value(Value *v, void *ctx) {
    FormCheck *f = ctx;
    if (!f->ok || !v->type.quant)
        return;
    bool fake = v->type.tilde && type_real_elem(v->type) == ELEM_FLOAT;
    if (strcmp(f->pass->before, "float") == 0 || fake)
        f->ok = diag_error(f->d, v->loc, "pass %s takes the %s form; '%s' is %s", f->pass->name,
                           f->pass->before, diag_name(f->d, v->name),
                           fake ? "fake-quant already" : "quantized already");
}

/* "float" has no quantization at all, "true" none that is only meant. A pass over one form computes
 * with its constants. */
static bool form_fits(const Pass *p, Module *m, Diags *d) {
    FormCheck f = {p, d, true};
    if (strcmp(p->before, "float") == 0 || strcmp(p->before, "true") == 0)
        module_each_value(m, check_value, &f);
    return f.ok && (strcmp(p->before, "any") == 0 || module_data_required(m, d));
}

bool pass_run(const Pass *p, Module *m, PassContext *c) {
    int before = diags_errors(c->d);
    OutOfMemory *oom = arena_handler(m->arena);
    if (oom)
        oom->pass = p->name;
    Arena *outer = scratch_begin(m);
    bool ok = form_fits(p, m, c->d) && p->run(m, c);
    scratch_end(m, outer);
    ok = diag_reason(c->d, ok, before, LOC_NONE, p->name) && diags_errors(c->d) == before;
    /* What is legal and dubious about quantization is told once: where it becomes types. */
    unsigned flags = strcmp(p->after, "true") == 0 ? VERIFY_WARN : VERIFY_ERRORS;
    ok = ok && module_check(m, flags, c->d);
    if (oom)
        oom->pass = NULL;
    return ok;
}

static bool first_remark(PassContext *c, const Node *n) {
    Arena *a = n->graph->module->arena;
    if (!c->remarked)
        c->remarked = map_new(a);
    Str key = {arena_copy(a, &n->id, sizeof n->id), sizeof n->id};
    return map_set(c->remarked, key, c);
}

void pass_forget_remarks(PassContext *c, const bool *of) {
    size_t kept = 0;
    c->remarked = NULL;
    for (size_t i = 0; i < c->n_remarks; i++)
        if (!of[c->remarks[i].node->id] && first_remark(c, c->remarks[i].node))
            c->remarks[kept++] = c->remarks[i];
    c->n_remarks = kept;
}

void pass_remark(PassContext *c, const Node *n, const char *fmt, ...) {
    Arena *a = n->graph->module->arena;
    if (!first_remark(c, n))
        return;
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    Remark r = {n, n->op, n->name, arena_strf(a, "%s", text).s};
    ARENA_PUSH(a, c->remarks, c->n_remarks, c->cap_remarks, r);
}

DataPaths pass_data(PassContext *c) {
    return (DataPaths){.paths = c->data, .n = c->n_data, .batch = c->batch, .told = &c->told_batch};
}

Samples *pass_samples(Module *m, PassContext *c) {
    if (c->n_data) {
        Samples *s = samples_open(m->arena, m, c->data, c->n_data, c->d);
        if (!s || samples_take(s, c->part))
            return s;
        samples_close(s);
        return NULL;
    }
    if (c->random)
        return samples_random(m->arena, m, c->random);
    diag_error(c->d, LOC_NONE, "this needs calibration data: give some with -calib=PATH");
    return NULL;
}
