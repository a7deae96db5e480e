/* Scales and zero points that stand with the numbers: quant !w = int8q<data(64), 0, axis=0>, and in
 * `data` scale !w = [...]. Until they come, scales are 1 and zero points the lowest there is. */
#include "frontend/qir/reader.h"
#include "ir/verify_quant.h"

struct DueParams { /* of one quantization */
    Quant *quant;
    float *scale; /* to be filled; NULL: stated in its line */
    int64_t *zp;
    bool has_scale, has_zp;
    struct DueParams *next;
};

struct Product { /* whose operands wait for numbers */
    Quant *quant;
    const Quant *x, *w;
    struct Product *next;
};

typedef struct Product Product;

struct ProductSum {
    const Quant *quant;
    uint32_t sum;
    Range at;
    struct ProductSum *next;
};

enum { MOST_PARAMS = 1 << 26 };

static bool count_of(Reader *r, const Val *v, size_t *n) {
    int64_t count = 0;
    if (v->n != 1 || v->u.args[0].has_key || v->u.args[0].val.kind != VAL_NUMBER)
        return error_at(r, v->at, "data(N) says how many numbers a line in data { } has");
    if (!val_int(r, &v->u.args[0].val, "how many numbers there are", &count))
        return false;
    if (count < 1 || count > MOST_PARAMS)
        return error_at(r, v->at, "data(N) is of 1 to %d numbers", MOST_PARAMS);
    *n = (size_t)count;
    return true;
}

/* Numbers that nobody complains about. */
static void fill_placeholders(const struct DueParams *d, bool scales) {
    for (size_t i = 0; scales && i < d->quant->n_scale; i++)
        d->scale[i] = 1;
    for (size_t i = 0; !scales && i < d->quant->n_zp; i++)
        d->zp[i] = quant_is_integers(d->quant) ? d->quant->lo : 0;
}

static struct DueParams *due_of(Reader *r, Quant *q) {
    if (r->due_params && r->due_params->quant == q)
        return r->due_params;
    struct DueParams *d = NEW(r->arena, struct DueParams);
    *d = (struct DueParams){.quant = q, .next = r->due_params};
    r->due_params = d;
    return d;
}

bool await_scales(Reader *r, Quant *q, const Val *v) {
    if (!count_of(r, v, &q->n_scale))
        return false;
    struct DueParams *d = due_of(r, q);
    d->scale = NEW_ARRAY(r->arena, float, q->n_scale);
    q->scale = d->scale;
    fill_placeholders(d, true);
    return true;
}

bool await_zps(Reader *r, Quant *q, const Val *v) {
    if (!count_of(r, v, &q->n_zp))
        return false;
    int64_t *zp = NEW_ARRAY(r->arena, int64_t, q->n_zp);
    due_of(r, q)->zp = zp;
    q->zp = zp;
    return true;
}

bool are_awaited(Reader *r, const Quant *q) {
    const struct DueParams *d = r->due_params;
    if (!d || d->quant != q)
        return false;
    if (d->zp)
        fill_placeholders(d, false); /* the range may not have 0 */
    return d->scale != NULL;
}

void name_params(Reader *r, Quant *q) {
    if (r->due_params && r->due_params->quant == q)
        map_set(r->due_by_name, q->alias, r->due_params);
}

void follow_params(Reader *r, Quant *q, const Quant *x, const Quant *w) {
    if (!r->due_params)
        return;
    Product *p = NEW(r->arena, Product);
    *p = (Product){.quant = q, .x = x, .w = w};
    *r->last_product = p;
    r->last_product = &p->next;
}

void check_product(Reader *r, const Quant *q, uint32_t sum, Range at) {
    struct ProductSum *s = NEW(r->arena, struct ProductSum);
    *s = (struct ProductSum){.quant = q, .sum = sum, .at = at};
    *r->last_sum = s;
    r->last_sum = &s->next;
}

static void compare_sum(Reader *r, const struct ProductSum *s) {
    uint32_t got = crc32_of(s->quant->scale, s->quant->n_scale * sizeof *s->quant->scale);
    if (got == s->sum)
        return;
    error_at(r, s->at,
             "its integers were written for other scales than these of its operands (crc32:%08x)",
             got);
    diag_note(r->diags, loc_of(r, s->at),
              "scales are changed where biases follow them, in decisions (-form=fake); or write "
              "the integers for these scales, and this checksum or none");
}

/* ---- the lines ---- */

static void fill(Reader *r, const struct DueParams *d, bool scales, const Val *v, const Tensor *t) {
    if (!t->data)
        return;
    memcpy(scales ? (void *)d->scale : (void *)d->zp, t->data, t->bytes);
    if ((scales && !(check_scales(r, v, d->scale) && round_scales(r, d->quant, d->scale))) ||
        !verify_quant(d->quant, d->quant->loc, r->diags))
        fill_placeholders(d, scales);
}

static bool second(Reader *r, Token word, bool *has) {
    if (*has)
        return !error_at(r, range_of(word), "this is stated twice");
    *has = true;
    return false;
}

void read_params(Reader *r, Token word, Token name, const Val *v) {
    static const char *const words[] = {"scale", "zp"};
    Str which = str_of(r, word);
    bool scale = str_is(which, words[0]);
    if (!scale && !str_is(which, words[1])) {
        error_at(r, range_of(word), "a line of data is const, scale or zp, not '%s'",
                 shown(r, which));
        suggest(r, range_of(word), which, words, 2);
        return;
    }
    Elem e = elem_alias(r, name);
    struct DueParams *d = e.failed ? NULL : map_get(r->due_by_name, str_of(r, name));
    if (e.failed)
        return;
    if (e.quant->kind == QUANT_UNKNOWN) {
        diag(r->diags, DIAG_REMARK, loc_of(r, range_of(name)),
             "!%s is left open: these numbers are not read", shown(r, str_of(r, name)));
        return;
    }
    if (!d || !(scale ? d->scale != NULL : d->zp != NULL)) {
        error_at(r, range_of(name),
                 "the line of !%s states its own; data(N) there says that they stand here",
                 shown(r, str_of(r, name)));
        diag_note(r->diags, e.quant->loc, "the line");
        return;
    }
    if (second(r, word, scale ? &d->has_scale : &d->has_zp))
        return;
    QuantLocs *at = (QuantLocs *)d->quant->at; /* made for this one */
    *(scale ? &at->scale : &at->zp) = loc_of(r, v->at);
    int64_t n = (int64_t)(scale ? d->quant->n_scale : d->quant->n_zp);
    Type t = type_fixed(r->arena, scale ? ELEM_FLOAT : ELEM_INT64, 1, &n);
    const Tensor *numbers = read_literal(r, &t, v);
    if (numbers && numbers->place != TENSOR_ELIDED && !numbers->data &&
        !r->externals.references_only)
        error_at(r, v->at, "scales and zero points are part of types: these are not there");
    else if (numbers && numbers->place == TENSOR_ELIDED)
        error_at(r, v->at, "scales and zero points are part of types: they cannot be left out");
    else if (numbers)
        fill(r, d, scale, v, numbers);
    take_flaws(r);
}

static void report_due(Reader *r, const struct DueParams *d) {
    const Quant *q = d->quant;
    const char *word = d->scale && !d->has_scale ? "scale" : d->zp && !d->has_zp ? "zp" : NULL;
    if (!q->alias.s)
        diag_error(r->diags, q->loc,
                   "data(N) stands in 'quant' lines, whose name the line in data { } says");
    else if (word && !is_broken(r, '!', q->alias))
        diag_error(r->diags, q->loc,
                   "the numbers of !%s are missing: a line '%s !%s = [...]' in data { }",
                   shown(r, q->alias), word, shown(r, q->alias));
}

static void report_in_order(Reader *r, const struct DueParams *d) {
    for (; d; d = d->next) /* the last stands first */
        ARENA_PUSH(r->arena, r->dues, r->n_dues, r->cap_dues, d);
    while (r->n_dues)
        report_due(r, r->dues[--r->n_dues]);
}

void finish_params(Reader *r, int errors_before) {
    report_in_order(r, r->due_params);
    for (Product *p = r->products; p; p = p->next)
        multiply(p->quant, p->x, p->w);
    bool sound = diags_errors(r->diags) == errors_before;
    for (const struct ProductSum *s = r->sums; s && sound; s = s->next)
        compare_sum(r, s);
}
