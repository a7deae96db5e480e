/* What the items of a page say together. */
#include "target/read_words.h"

/* Where the item stands, or the one that it does not agree with where it is not on the page. */
static Loc place(const PageReader *r, const char *item, const char *other) {
    const Loc *at = map_get(r->said, str_from(item));
    at = at ? at : map_get(r->said, str_from(other));
    return at ? *at : LOC_NONE;
}

/* What an item is by itself surprises where it is not on the page. */
static const char *unsaid(const PageReader *r, const char *item) {
    return map_get(r->said, str_from(item)) ? "" : " where the page does not say otherwise";
}

static bool check_stored(PageReader *r, const char *item, const char *what, const TargetType *t) {
    const TargetPage *p = r->page;
    bool ok = target_stores(p, t->storage);
    if (!ok)
        diag_error(r->x.d, place(r, item, "types"),
                   "%s are %s%s, which is none of the types of the page", what,
                   elem_name(t->storage), unsaid(r, item));
    if (p->zeros == TARGET_ZEROS_NONE && !(t->sym && elem_is_signed(t->storage)))
        ok = diag_error(r->x.d, place(r, item, "zero"),
                        "%s are %s %s%s, of which zero points are not 0, and the page says 'zero "
                        "points none'",
                        what, elem_name(t->storage), t->sym ? "sym" : "asym", unsaid(r, item));
    return ok;
}

static bool check_activations(PageReader *r) {
    const TargetPage *p = r->page;
    bool ok = check_stored(r, "activations", "activations", &p->activations);
    if (p->has_second && !check_stored(r, "product", "activations that are multiplied", &p->second))
        ok = false;
    if (!p->float_biases && !target_stores(p, ELEM_INT32))
        ok = diag_error(r->x.d, place(r, "types", "types"),
                        "biases are int32, which is none of these types: add it, or say 'biases "
                        "float'");
    return ok;
}

bool page_agrees(PageReader *r) {
    const TargetPage *p = r->page;
    bool ok = check_activations(r);
    if (!check_stored(r, "weights", "weights", &p->weights))
        ok = false;
    if (p->scales == TARGET_SCALES_TENSOR && p->weights.channel)
        ok = diag_error(r->x.d, place(r, "weights", "scales"),
                        "weights have a scale for each channel%s, and the page says 'scales per "
                        "tensor': say 'per tensor' of weights, too",
                        unsaid(r, "weights"));
    for (size_t i = 0; i < N_TARGET_FORMS; i++)
        if (p->forms[i] && p->no_form[i])
            ok = diag_error(r->x.d, r->no_form_at[i], "this form is among the forms of the page");
    return ok;
}
