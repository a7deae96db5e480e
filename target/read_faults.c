/* What a page says that a runtime fuses, and gets wrong. */
#include "target/read_words.h"

/* ---- fusions ---- */

/* QLinear* of Add is QLinearAdd. */
static const char *starred(PageReader *r, Str as, const char *op) {
    if (!as.n || as.s[as.n - 1] != '*')
        return as.s;
    return arena_strf(r->a, "%.*s%s", (int)as.n - 1, as.s, op).s;
}

static bool read_fused_name(PageReader *r, Str *out) {
    if (r->x.kind != PAGE_NAME)
        return page_wrong(r, "the operator that it becomes is missing here");
    *out = arena_str(r->a, r->x.word);
    page_next(&r->x);
    return true;
}

static bool is_known(const TargetPage *p, const char *op) {
    for (size_t i = 0; i < p->n_fusions; i++)
        if (strcmp(p->fusions[i].op, op) == 0)
            return true;
    return false;
}

/* fuses Gemm product as QGemm float QGemm */
bool read_fuses(PageReader *r) {
    static const char *const rules[] = {"product", "all", "move", "order", "nearest"};
    TargetPage *p = r->page;
    TargetNames ops = {0};
    Loc at = r->x.loc;
    Str as = STR_NONE, real = STR_NONE;
    size_t rule;
    if (!page_operators(r, &ops) || !page_one_of(r, "rule", rules, 5, &rule) ||
        (page_accept(r, "as") && !read_fused_name(r, &as)) ||
        (page_accept(r, "float") && !read_fused_name(r, &real)))
        return false;
    for (size_t i = 0; i < ops.n; i++) {
        if (is_known(p, ops.items[i]))
            return diag_error(r->x.d, at, "the page says twice what %s fuses to", ops.items[i]);
        TargetFusion f = {ops.items[i], (TargetRule)rule, starred(r, as, ops.items[i]), real.s};
        ARENA_PUSH(r->a, p->fusions, p->n_fusions, p->cap_fusions, f);
    }
    return true;
}

/* ---- faults ---- */

static bool read_predicate(PageReader *r, TargetFault *f) {
    enum { MOST = sizeof f->when / sizeof *f->when };
    if (f->n_when == MOST)
        return page_wrong(r, "a fault has at most %d predicates", (int)MOST);
    bool negated = page_accept(r, "not");
    const Predicate *found = r->x.kind == PAGE_NAME ? predicate_find(r->x.word) : NULL;
    if (r->x.kind != PAGE_NAME)
        return page_wrong(r, "a predicate is missing here");
    if (!found) {
        const char **names = NEW_ARRAY(r->a, const char *, predicate_count());
        for (size_t i = 0; i < predicate_count(); i++)
            names[i] = predicate_at(i)->name;
        page_wrong(r, "there is no predicate '%s'", diag_name(r->x.d, r->x.word));
        diag_did_you_mean(r->x.d, r->x.loc, r->x.word, names, predicate_count());
        return false;
    }
    if (f->n_when && found->at != f->at)
        return page_wrong(r, "'%s' is about another place than the predicate before", found->name);
    for (size_t i = 0; i < f->n_when; i++)
        if (f->when[i] == found && f->negated[i] != negated)
            return page_wrong(r, "'%s' and 'not %s' never hold at once", found->name, found->name);
        else if (f->when[i] == found)
            return page_again(r, r->x.loc, found->name);
    f->at = found->at;
    f->negated[f->n_when] = negated;
    f->when[f->n_when++] = found;
    page_next(&r->x);
    return true;
}

static bool read_remedy(PageReader *r, unsigned *then) {
    static const char *const nos[] = {"qop", "integers"};
    size_t i;
    if (page_accept(r, "guard")) {
        *then |= FAULT_GUARD;
    } else if (page_accept(r, "float")) {
        *then |= FAULT_FLOAT;
    } else if (page_accept(r, "refuse")) {
        *then |= FAULT_REFUSE;
    } else if (page_accept(r, "no")) {
        if (!page_one_of(r, "remedy", nos, 2, &i))
            return false;
        *then |= i ? FAULT_NO_INTEGERS : FAULT_NO_QOP;
    } else {
        return page_wrong(r, "a remedy is guard, float, refuse, no qop or no integers");
    }
    return true;
}

/* Whether an earlier item has said that already. */
static bool is_said(const TargetPage *p, const TargetFault *f) {
    for (size_t k = 0; k < p->n_faults; k++) {
        const TargetFault *g = &p->faults[k];
        bool same = str_eq(g->op, f->op) && domain_equal(g->domain, f->domain) &&
                    g->n_when == f->n_when && (g->then & f->then) == f->then;
        for (size_t i = 0; same && i < f->n_when; i++)
            same = g->when[i] == f->when[i] && g->negated[i] == f->negated[i];
        if (same)
            return true;
    }
    return false;
}

/* wrong Softmax when along_one and not dilated then guard, no qop says "..." */
bool read_wrong(PageReader *r) {
    TargetPage *p = r->page;
    struct {
        Str domain, op;
        Loc loc;
    } ops[16];
    enum { MOST = sizeof ops / sizeof *ops };
    size_t n = 0;
    TargetFault f = {.at = FAULT_NODE};
    ops[0].loc = r->x.loc;
    if (page_accept(r, "*")) {
        ops[n].domain = STR("");
        ops[n++].op = STR_NONE;
    } else
        do {
            if (n == MOST)
                return page_wrong(r, "a fault has at most %d operators", (int)MOST);
            ops[n].loc = r->x.loc;
            if (!page_operator(r, &ops[n].domain, &ops[n].op))
                return false;
        } while (++n, page_more(r));
    if (page_accept(r, "when"))
        do {
            if (!read_predicate(r, &f))
                return false;
        } while (page_accept(r, "and"));
    if (!page_accept(r, "then"))
        return page_wrong(r, "then is missing here");
    do {
        if (!read_remedy(r, &f.then))
            return false;
    } while (page_more(r));
    if (f.at != FAULT_NODE && f.then != FAULT_GUARD)
        return page_wrong(r, "this predicate is about what a guard alone helps");
    if (!page_says(r, &f.says))
        return false;
    for (size_t i = 0; i < n; i++) {
        f.domain = ops[i].domain;
        f.op = ops[i].op;
        if (is_said(p, &f))
            return diag_error(r->x.d, ops[i].loc, "the page has said this of %s before",
                              f.op.s ? diag_name(r->x.d, f.op) : "all operators");
        ARENA_PUSH(r->a, p->faults, p->n_faults, p->cap_faults, f);
    }
    return true;
}
