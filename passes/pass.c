#include "passes/pass.h"
#include "ir/later.h"
#include "support/store.h"

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

const Pass *pass_of(PassId id) {
    return &passes[id - 1];
}

PassId pass_find(const char *name) {
    for (size_t i = 0; i < pass_count(); i++)
        if (strcmp(passes[i].name, name) == 0)
            return (PassId)(i + 1);
    return PASS_NONE;
}

bool pass_made(const Provenance *p, PassId id) {
    return str_is(p->by, pass_of(id)->name);
}

bool pass_unknown(const char *name, const char *where, Diags *d) {
    const char *names[sizeof passes / sizeof passes[0]];
    for (size_t i = 0; i < pass_count(); i++)
        names[i] = pass_at(i)->name;
    diag_error(d, LOC_NONE, "%sthere is no pass '%s'", where, name);
    diag_did_you_mean(d, LOC_NONE, str_from(name), names, pass_count());
    return false;
}

/* ---- the forms that a pass takes and leaves ---- */

enum { HAS_FAKE = 1, HAS_TYPES = 2, HAS_ANY = HAS_FAKE | HAS_TYPES };

/* What values of a form may be besides float. */
static unsigned form_holds(const char *form) {
    static const struct {
        const char *name;
        unsigned holds;
    } forms[] = {
        {"float", 0}, {"fake", HAS_ANY}, {"true", HAS_TYPES}, {"qop", HAS_TYPES}, {"any", HAS_ANY},
    };
    size_t i = 0;
    while (strcmp(forms[i].name, form) != 0)
        i++;
    return forms[i].holds;
}

typedef struct Forms {
    unsigned allowed, found;
    const Value *odd; /* the first that is not allowed */
} Forms;

static unsigned kind_of(const Value *v) {
    bool fake = v->type.tilde && elem_is_float(type_real_elem(v->type));
    return !v->type.quant ? 0 : fake ? HAS_FAKE : HAS_TYPES;
}

static void look_at_value(Value *v, void *ctx) {
    Forms *f = ctx;
    unsigned kind = kind_of(v);
    f->found |= kind;
    if (kind & ~f->allowed && !f->odd)
        f->odd = v;
}

static Forms forms_of(Module *m, unsigned allowed) {
    Forms f = {allowed, 0, NULL};
    module_each_value(m, look_at_value, &f);
    return f;
}

static bool form_fits(const Pass *p, const Forms *f, const char *takes, const char *form,
                      Diags *d) {
    return !f->odd ||
           diag_error(d, f->odd->loc, "pass %s %s the %s form; '%s' is %s", p->name, takes, form,
                      diag_name(d, f->odd->name),
                      kind_of(f->odd) == HAS_FAKE ? "fake-quant already" : "quantized already");
}

/* Passes behind true-quant that read no elements of large constants, or have those made. */
static bool leaves_elements(const Pass *p) {
    static const PassId ids[] = {PASS_upgrade, PASS_lower_nbits, PASS_lower_tables, PASS_lower_qdq,
                                 PASS_lower_qop};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (p == pass_of(ids[i]))
            return true;
    return false;
}

bool pass_run(const Pass *p, Module *m, PassContext *c) {
    int before = diags_errors(c->d);
    if (!leaves_elements(p))
        later_make_all(m);
    OutOfMemory *oom = arena_handler(m->arena);
    if (oom)
        oom->pass = p->name;
    Arena *outer = scratch_begin(m);
    Forms came = forms_of(m, form_holds(p->before)), left;
    bool ok = form_fits(p, &came, "takes", p->before, c->d) &&
              (strcmp(p->before, "any") == 0 || module_data_required(m, c->d)) && p->run(m, c);
    scratch_end(m, outer);
    if (ok) {
        bool same = strcmp(p->after, "same") == 0;
        left = forms_of(m, same ? came.found : form_holds(p->after));
        ok = form_fits(p, &left, "is to leave", same ? p->before : p->after, c->d);
    }
    ok = diag_reason(c->d, ok, before, LOC_NONE, p->name) && diags_errors(c->d) == before;
    /* What is legal and dubious about quantization is told once: where it becomes types. */
    unsigned flags = strcmp(p->after, "true") == 0 ? VERIFY_WARN : VERIFY_ERRORS;
    ok = ok && module_check(m, flags, c->d);
    store_release_all(m->arena);
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

void pass_remark_why(PassContext *c, const Node *n, const char *why, bool preferred) {
    Arena *a = n->graph->module->arena;
    if (!first_remark(c, n))
        return;
    Str result = !n->name.n && n->n_out && n->out[0] ? n->out[0]->name : STR_NONE;
    Remark r = {n, n->op, n->name, result, arena_strf(a, "%s", why).s, preferred};
    ARENA_PUSH(a, c->remarks, c->n_remarks, c->cap_remarks, r);
}

void pass_inexact(PassContext *c, const Node *n, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    diag_note(c->d, n->loc, "%s: %s", node_text(n), text);
    if (c->n_inexact++ == 0)
        c->first_inexact = arena_strf(n->graph->module->arena, "%s", node_text(n));
}

void pass_remark(PassContext *c, const Node *n, const char *fmt, ...) {
    char why[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    pass_remark_why(c, n, why, false);
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
