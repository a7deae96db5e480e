/* See operator_names.h. */
#include "passes/operator_names.h"

#include "ir/onnx_names.h"
#include "ir/onnx_schema.h"
#include "support/embedded.h"

/* ---- which there are ---- */

static bool next_schema(OperatorNames *at, Str *name) {
    if (at->schema == onnx_schema_count())
        return false;
    const OnnxSchema *s = onnx_schema_at(at->schema++);
    at->domain = str_from(s->domain);
    *name = str_from(s->name);
    return true;
}

/* `func DOMAIN::NAME::OVERLOAD <...>` or `func NAME (...)`, each at the beginning of a line. */
static bool next_in_texts(OperatorNames *at, Str *name) {
    for (; at->text < lib_texts_n; at->text++, at->line = NULL) {
        const char *from = at->line ? at->line : lib_texts[at->text].text;
        at->line = strstr(from, "\nfunc ");
        if (!at->line)
            continue;
        const char *word = at->line += strlen("\nfunc ");
        size_t n = strcspn(word, ": ");
        bool has_domain = word[n] == ':';
        at->domain = (Str){word, has_domain ? n : 0};
        word += has_domain ? n + 2 : 0;
        *name = (Str){word, strcspn(word, ": ")};
        return true;
    }
    return false;
}

static bool next_read(OperatorNames *at, Str *name) {
    if (!at->library || at->own == map_size(at->library->by_name))
        return false;
    const Overloads *of = map_value(at->library->by_name, at->own++);
    at->domain = of->items[0]->domain;
    *name = of->items[0]->name;
    return true;
}

bool operator_names_next(void *names, Str *name) {
    OperatorNames *at = names;
    while (next_schema(at, name) || next_in_texts(at, name) || next_read(at, name))
        if (!str_is(at->domain, "qxc")) /* those only help others */
            return true;
    return false;
}

bool operator_is_named(const Library *l, Str op, Str domain, Str *has) {
    OperatorNames at = {.library = l};
    bool any = false;
    for (Str name; operator_names_next(&at, &name);) {
        if (!str_eq(name, op) || (any && !domain_equal(at.domain, domain)))
            continue;
        *has = at.domain;
        any = true;
    }
    return any;
}

/* ---- which was meant ---- */

bool operator_did_you_mean(const Library *l, Diags *d, Loc at, Str op) {
    return onnx_foreign_name(d, at, op) ||
           diag_did_you_mean_next(d, at, op, operator_names_next, &(OperatorNames){.library = l});
}

bool node_did_you_mean(const Library *l, Diags *d, const Node *n) {
    Str domain, meant = n->op;
    if (domain_is_onnx(n->domain) && onnx_foreign_name(d, n->loc, n->op))
        return true;
    if (!operator_is_named(l, meant, n->domain, &domain))
        meant = diag_nearest(n->op, operator_names_next, &(OperatorNames){.library = l});
    if (!operator_is_named(l, meant, n->domain, &domain))
        return false;
    bool other = !domain_equal(domain, n->domain);
    diag_note(d, n->loc, "did you mean '" STR_FMT "%s" STR_FMT "'?",
              STR_ARG(other ? domain : STR("")), other && domain.n ? "::" : "", STR_ARG(meant));
    return true;
}
