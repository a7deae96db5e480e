/* Whether quantizations with a line of their own fit the shapes of their values. Where none of
 * several values agrees with the line, the mistake is there, and is told once. */
#include "frontend/qir/reader.h"
#include "ir/verify_quant.h"

/* Values that one quantization does not fit, all for one reason. */
struct Misfits {
    const Quant *quant;
    const char *why;
    size_t n;
    bool told;
};

enum { SHOWN = 3 };

/* What verify_quant_type says of it; NULL where it fits. */
static const char *why_unfit(Reader *r, const Value *v) {
    const DiagRecord *records;
    if (!r->aside) {
        r->aside = diags_new(r->arena, NULL, false);
        diags_record(r->aside, true);
    }
    if (verify_quant_type(v->type, v->loc, r->aside))
        return NULL;
    size_t n = diags_records(r->aside, &records);
    return records[n - 1].text;
}

void check_fit(Reader *r, Value *v) {
    const Quant *q = v->type.kind == TYPE_TENSOR ? v->type.quant : NULL;
    if (!q || !q->alias.s) {
        verify_quant_type(v->type, v->loc, r->diags);
        return;
    }
    const char *why = why_unfit(r, v);
    if (!why) {
        if (q->n_axes)
            map_set(r->fitting, q->alias, r);
        return;
    }
    Str key = arena_strf(r->arena, STR_FMT " %s", STR_ARG(q->alias), why);
    Misfits *m = map_get(r->misfits, key);
    if (!m) {
        m = NEW(r->arena, Misfits);
        *m = (Misfits){.quant = q, .why = why};
        map_set(r->misfits, key, m);
    }
    m->n++;
    Misfit one = {v, m};
    ARENA_PUSH(r->arena, r->unfit, r->n_unfit, r->cap_unfit, one);
    r->silent_flaws++;
}

/* The line is wrong: the error stands there, and notes at the values, the first being `i`. */
static void blame_line(Reader *r, size_t i) {
    Misfits *m = r->unfit[i].why;
    const Quant *q = m->quant;
    size_t n = 0;
    m->told = true;
    diag_error(r->diags, q->at && q->at->scale.source ? q->at->scale : q->loc,
               "!%s fits none of its %zu values: %s", shown(r, q->alias), m->n, m->why);
    for (; i < r->n_unfit && n < SHOWN; i++)
        if (r->unfit[i].why == m && ++n)
            diag_note(r->diags, r->unfit[i].value->loc, "%%%s is %s%s",
                      shown(r, r->unfit[i].value->name),
                      type_text(r->arena, r->unfit[i].value->type),
                      n == SHOWN && m->n > SHOWN ? "; others are alike" : "");
}

void report_unfit(Reader *r) {
    for (size_t i = 0; i < r->n_unfit; i++) {
        Misfits *m = r->unfit[i].why;
        bool line = m->n > 1 && !map_get(r->fitting, m->quant->alias);
        if (line && !m->told) {
            blame_line(r, i);
        } else if (!line) {
            diag_error(r->diags, r->unfit[i].value->loc, "%s", m->why);
            diag_note(r->diags, m->quant->loc, "!%s is this", shown(r, m->quant->alias));
        }
    }
}
