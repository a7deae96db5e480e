#include "compiler/emit_scheme.h"

/* What no rule said. */
static void add_defaults(const Job *j, Scheme *s, Arena *a) {
    SchemeRule r = scheme_rule(SCHEME_ALL, NULL, LOC_NONE);
    SchemeSetting *w = &r.set[SCHEME_WEIGHTS];
    w->said = w->has_grain = w->channel = true;
    w->storage = ELEM_INT8;
    w->sym = 1;
    scheme_add(s, a, r);
    r = scheme_rule(SCHEME_ALL, NULL, LOC_NONE);
    SchemeSetting *x = &r.set[SCHEME_ACTIVATIONS];
    x->said = true;
    x->storage = j->ctx.target == TARGET_C ? ELEM_INT8 : ELEM_UINT8;
    x->sym = 0;
    scheme_add(s, a, r);
}

typedef struct Decisions {
    Scheme *s;
    Arena *a;
} Decisions;

/* Names are globs: one that holds a star or question mark stands for itself among others. */
static void add_value(Value *v, void *ctx) {
    Decisions *d = ctx;
    const Quant *q = v->type.quant;
    if (!q || q->kind != QUANT_PARAMS || (q->storage == ELEM_INT32 && v->kind == VALUE_CONST))
        return;
    SchemeRule r = scheme_rule(SCHEME_VALUE, arena_str(d->a, v->name).s, LOC_NONE);
    r.set[SCHEME_ITSELF].said = true;
    r.set[SCHEME_ITSELF].storage = q->storage;
    r.set[SCHEME_ITSELF].fixed = q;
    scheme_add(d->s, d->a, r);
}

Str scheme_text(const Job *j, Module *m) {
    Scheme s = {0};
    Decisions d = {&s, m->arena};
    add_defaults(j, &s, m->arena);
    scheme_append(&s, m->arena, &j->ctx.scheme);
    for (size_t i = 0; i < s.n; i++) /* -keep=conv1: rules say which of the two it is */
        if (s.rules[i].of == SCHEME_OP_OR_NODE && !strpbrk(s.rules[i].pattern, "*?:") &&
            !onnx_schema_find(STR(""), str_from(s.rules[i].pattern), ONNX_MAX_OPSET))
            s.rules[i].of = SCHEME_NODE;
    module_each_value(m, add_value, &d);
    Buf b = buf_new(m->arena);
    scheme_print(&b, &s);
    return buf_as_str(&b);
}
