#include "target/target.h"
#include "support/embedded.h"

size_t target_count(void) {
    return target_texts_n;
}

static Str stem(const Embedded *e) {
    return (Str){e->name, strlen(e->name) - strlen(".target")};
}

Str target_name(size_t i) {
    return stem(&target_texts[i]);
}

Str target_text(Str name) {
    for (size_t i = 0; i < target_texts_n; i++)
        if (str_eq(stem(&target_texts[i]), name))
            return (Str){target_texts[i].text, target_texts[i].size};
    return STR_NONE;
}

const TargetPage *target_find(Arena *a, const char *name, Diags *d) {
    Str text = target_text(str_from(name));
    return text.s ? target_read(a, d, arena_strf(a, "%s.target", name).s, text) : NULL;
}

bool target_names(const TargetNames *names, Str name) {
    for (size_t i = 0; i < names->n; i++)
        if (str_is(name, names->items[i]))
            return true;
    return false;
}

bool target_has_domain(const TargetPage *t, Str domain) {
    if (domain_is_onnx(domain) || str_is(domain, "ai.onnx.ml"))
        return true;
    if (target_names(&t->domains, domain))
        return true;
    return t->own_domains && !str_is(domain, "com.microsoft");
}

bool target_has_microsoft(const TargetPage *t) {
    return target_has_domain(t, STR("com.microsoft"));
}

const TargetFusion *target_fusion(const TargetPage *t, const Node *n) {
    for (size_t i = 0; i < t->n_fusions; i++)
        if (node_is(n, t->fusions[i].op))
            return &t->fusions[i];
    return NULL;
}

bool target_quantizes_before(const TargetPage *t, const Node *n) {
    return !t->before.n || (domain_is_onnx(n->domain) && target_names(&t->before, n->op));
}
