/* The items of a page, each behind its first word. */
#include "target/read_words.h"

#include <stdlib.h>

/* ---- names ---- */

static void add_name(PageReader *r, TargetNames *names, const char *name) {
    ARENA_PUSH(r->a, names->items, names->n, names->cap, name);
}

bool page_again(PageReader *r, Loc at, const char *word) {
    return diag_error(r->x.d, at, "'%s' stands here twice", diag_name(r->x.d, str_from(word)));
}

static bool known_operator(PageReader *r, Str domain, Str op) {
    if (!domain_is_onnx(domain) && !str_is(domain, "com.microsoft"))
        return true;
    int newest = onnx_schema_newest(domain);
    if (onnx_schema_find(domain, op, newest))
        return true;
    size_t at = 0;
    page_wrong(r, "%s has no operator '%s'", domain_is_onnx(domain) ? "ONNX" : "com.microsoft",
               diag_name(r->x.d, op));
    if (domain_is_onnx(domain))
        diag_did_you_mean_next(r->x.d, r->x.loc, op, onnx_schema_next_name, &at);
    return false;
}

bool page_operator(PageReader *r, Str *domain, Str *op) {
    if (r->x.kind != PAGE_NAME)
        return page_wrong(r, "an operator is missing here");
    *domain = STR("");
    *op = arena_str(r->a, r->x.word);
    for (size_t i = 0; i + 1 < op->n; i++)
        if (op->s[i] == ':' && op->s[i + 1] == ':') {
            *domain = (Str){op->s, i};
            *op = (Str){op->s + i + 2, op->n - i - 2};
            break;
        }
    if (!known_operator(r, *domain, *op))
        return false;
    page_next(&r->x);
    return true;
}

bool page_operators(PageReader *r, TargetNames *names) {
    do {
        Loc at = r->x.loc;
        Str domain, op;
        if (!page_operator(r, &domain, &op))
            return false;
        if (target_names(names, op))
            return page_again(r, at, op.s);
        add_name(r, names, op.s);
    } while (page_more(r));
    return true;
}

bool read_operators(PageReader *r) {
    return page_operators(r, &r->page->operators) && page_says(r, &r->page->no_operator);
}

bool read_lacks(PageReader *r) {
    do {
        Loc at = r->x.loc;
        Str domain, op;
        if (!page_operator(r, &domain, &op))
            return false;
        const OpDef *def = op_find(domain, op);
        if (!def || !def->composite)
            return diag_error(r->x.d, at,
                              "qxc spells no %s out with other operators: `operators` lists what "
                              "the target has, `wrong ... then refuse` what it has not",
                              diag_name(r->x.d, op));
        add_name(r, &r->page->lacks, op.s);
    } while (page_more(r));
    return true;
}

bool read_about(PageReader *r) {
    return page_string(r, "what the target is", &r->page->about);
}

/* A domain may be anybody's own, so one that is nearly com.microsoft's is no error. */
static void warn_of_typo(PageReader *r) {
    static const char *const known[] = {"com.microsoft"};
    enum { NEAR = 2 };
    int distance = str_distance(r->x.word, str_from(known[0]), NEAR);
    if (distance == 0 || distance > NEAR)
        return;
    diag_warning(r->x.d, r->x.loc, "qxc has no operators of domain '%s'",
                 diag_name(r->x.d, r->x.word));
    diag_did_you_mean(r->x.d, r->x.loc, r->x.word, known, 1);
}

bool read_domains(PageReader *r) {
    do {
        if (r->x.kind != PAGE_NAME)
            return page_wrong(r, "a domain is missing here");
        warn_of_typo(r);
        if (str_is(r->x.word, "own"))
            r->page->own_domains = true;
        else
            add_name(r, &r->page->domains, arena_str(r->a, r->x.word).s);
        page_next(&r->x);
    } while (page_more(r));
    return true;
}

/* ---- numbers ---- */

static bool read_number(PageReader *r, int64_t *out) {
    if (r->x.kind != PAGE_NUMBER)
        return page_wrong(r, "a number is missing here");
    if (r->x.word.n > 3 || r->x.word.s[0] == '-')
        return page_wrong(r, "opsets are numbers up to 999");
    *out = strtoll(arena_str(r->a, r->x.word).s, NULL, 10);
    return true;
}

/* 10..23 */
bool read_opset(PageReader *r) {
    TargetPage *p = r->page;
    int newest = onnx_schema_newest(STR(""));
    if (!read_number(r, &p->first_opset))
        return false;
    if (p->first_opset < 1 || p->first_opset > newest)
        return page_wrong(r, "qxc knows the opsets from 1 to %d", newest);
    page_next(&r->x);
    if (r->x.kind != PAGE_RANGE)
        return page_wrong(r, "a range of opsets is FIRST..LAST");
    page_next(&r->x);
    if (!read_number(r, &p->last_opset))
        return false;
    if (p->last_opset < p->first_opset)
        return page_wrong(r, "the range ends before it begins");
    page_next(&r->x);
    return true;
}

/* ---- forms ---- */

static const char *const forms[N_TARGET_FORMS] = {"qdq", "qop", "dynamic", "weight_only", "c"};

bool read_forms(PageReader *r) {
    size_t i;
    memset(r->page->forms, 0, sizeof r->page->forms);
    do {
        Loc at = r->x.loc;
        if (!page_one_of(r, "form", forms, N_TARGET_FORMS, &i))
            return false;
        if (r->page->forms[i])
            return page_again(r, at, forms[i]);
        r->page->forms[i] = true;
    } while (page_more(r));
    return true;
}

/* no dynamic says "..." */
bool read_no(PageReader *r) {
    size_t i;
    Loc at = r->x.loc;
    if (!page_one_of(r, "form", forms, N_TARGET_FORMS, &i))
        return false;
    if (r->page->no_form[i])
        return diag_error(r->x.d, at, "the page says '%s' twice", forms[i]);
    r->no_form_at[i] = at;
    return page_accept(r, "says") ? page_string(r, "the reason", &r->page->no_form[i])
                                  : page_wrong(r, "says \"...\" is missing here");
}

/* ---- types ---- */

static bool read_type(PageReader *r, ElemType *e) {
    if (r->x.kind != PAGE_NAME)
        return page_wrong(r, "a type is missing here");
    *e = elem_from_name(r->x.word);
    if (!elem_is_int(*e))
        return page_wrong(r, "'%s' is no type of integers", diag_name(r->x.d, r->x.word));
    page_next(&r->x);
    return true;
}

static bool read_stored(PageReader *r, TargetType *t) {
    static const char *const kinds[] = {"asym", "sym"};
    size_t sym;
    if (!read_type(r, &t->storage))
        return false;
    if (!page_one_of(r, "kind", kinds, 2, &sym))
        return false;
    t->sym = sym;
    return true;
}

/* Behind "per". */
static bool read_reach(PageReader *r, bool *channel) {
    static const char *const reaches[] = {"tensor", "channel"};
    size_t i;
    if (!page_one_of(r, "reach", reaches, 2, &i))
        return false;
    *channel = i;
    return true;
}

bool read_activations(PageReader *r) {
    return read_stored(r, &r->page->activations);
}

bool read_weights(PageReader *r) {
    TargetType *t = &r->page->weights;
    return read_stored(r, t) && (!page_accept(r, "per") || read_reach(r, &t->channel));
}

/* types int8, uint8 of float says "..." */
bool read_types(PageReader *r) {
    TargetPage *p = r->page;
    do {
        Loc at = r->x.loc;
        ElemType e;
        if (!read_type(r, &e))
            return false;
        if (p->n_types && target_stores(p, e))
            return page_again(r, at, elem_name(e));
        ARENA_PUSH(r->a, p->types, p->n_types, p->cap_types, e);
    } while (page_more(r));
    bool real = page_accept(r, "of");
    if (real && !page_accept(r, "float"))
        return page_wrong(r, "types are of float");
    p->no_type = arena_strf(r->a, "%s has no such integers", p->runtime).s;
    if (!page_says(r, &p->no_type))
        return false;
    p->no_real = real ? p->no_type : NULL;
    return true;
}

bool read_zero(PageReader *r) {
    TargetPage *p = r->page;
    bool channel;
    if (!page_accept(r, "points"))
        return page_wrong(r, "points is missing here");
    if (page_accept(r, "per")) {
        if (!read_reach(r, &channel))
            return false;
        p->zeros = channel ? TARGET_ZEROS_CHANNEL : TARGET_ZEROS_TENSOR;
        return true;
    }
    if (!page_accept(r, "none"))
        return page_wrong(r, "zero points are none, per tensor or per channel");
    p->zeros = TARGET_ZEROS_NONE;
    p->no_zero = arena_strf(r->a, "%s has no zero points but 0", p->runtime).s;
    return page_says(r, &p->no_zero);
}

bool read_scales(PageReader *r) {
    TargetPage *p = r->page;
    bool channel;
    if (!page_accept(r, "per"))
        return page_wrong(r, "scales are per tensor or per channel");
    if (!read_reach(r, &channel))
        return false;
    p->scales = channel ? TARGET_SCALES_CHANNEL : TARGET_SCALES_TENSOR;
    p->no_scales = arena_strf(r->a, "%s has one scale for it", p->runtime).s;
    return page_says(r, &p->no_scales);
}

bool read_blocks(PageReader *r) {
    static const char *const kinds[] = {"none", "divide"};
    TargetPage *p = r->page;
    size_t i;
    if (!page_one_of(r, "word of blocks", kinds, 2, &i))
        return false;
    p->blocks_divide = i;
    p->no_blocks = arena_strf(r->a, "%s has no scales in %s", p->runtime,
                              i ? "blocks that do not divide the axis" : "blocks")
                       .s;
    return page_says(r, &p->no_blocks);
}

/* ---- placement ---- */

/* quantizers before Conv, MatMul */
bool read_quantizers(PageReader *r) {
    return page_accept(r, "before") ? page_operators(r, &r->page->before)
                                    : page_wrong(r, "quantizers stand before operators");
}

/* product of activations int8 sym: its second operand */
bool read_product(PageReader *r) {
    r->page->has_second = true;
    return page_accept(r, "of") && page_accept(r, "activations")
               ? read_stored(r, &r->page->second)
               : page_wrong(r, "a rule for products is product of activations TYPE sym");
}
