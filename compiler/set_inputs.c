#include "compiler/set_inputs.h"

#include "exec/sample_files.h"
#include "exec/specialise.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_NUMBERS = 4096 };

/* One -set. */
typedef struct Setting {
    Module *m;
    Diags *d;
    Value *v;
    size_t n;
    ElemType elem; /* of `numbers` */
    union {
        int64_t i;
        uint64_t u;
        double f;
    } numbers[MOST_NUMBERS];
} Setting;

/* ---- numbers ---- */

static bool wrong(const Setting *t, const char *text, size_t n, const char *what) {
    return diag_error(t->d, LOC_NONE, "-set: input %s is %s, '%s' is %s",
                      diag_name(t->d, t->v->name), type_text(t->m->arena, t->v->type),
                      diag_name(t->d, (Str){text, n}), what);
}

static bool read_bool(Setting *t, const char *text, size_t n) {
    Str s = {text, n};
    bool yes = str_eq(s, STR("1")) || str_eq(s, STR("true"));
    if (!yes && !str_eq(s, STR("0")) && !str_eq(s, STR("false")))
        return wrong(t, text, n, "no bool (true, false, 1, 0)");
    t->numbers[t->n++].i = yes;
    return true;
}

static bool read_int(Setting *t, const char *text, size_t n) {
    char *end;
    errno = 0;
    if (t->elem == ELEM_UINT64)
        t->numbers[t->n].u = strtoull(text, &end, 10);
    else
        t->numbers[t->n].i = strtoll(text, &end, 10);
    if (!n || end != text + n)
        return wrong(t, text, n, "no integer");
    if (errno == ERANGE || (t->elem == ELEM_UINT64 && *text == '-'))
        return wrong(t, text, n, "out of its range");
    t->n++;
    return true;
}

static bool read_float(Setting *t, const char *text, size_t n) {
    char *end;
    double x = strtod(text, &end);
    if (!n || end != text + n)
        return wrong(t, text, n, "no number");
    bool named = strcspn(text, "0123456789") >= n; /* inf */
    if (!named && (isinf(x) || (t->v->type.elem == ELEM_FLOAT && isinf((float)x))))
        return wrong(t, text, n, "out of its range");
    t->numbers[t->n++].f = x;
    return true;
}

static bool read_numbers(Setting *t, const char *text) {
    ElemType e = t->v->type.elem;
    t->elem = elem_is_float(e) ? ELEM_DOUBLE : e == ELEM_UINT64 ? ELEM_UINT64 : ELEM_INT64;
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, ",");
        if (t->n == MOST_NUMBERS)
            return wrong(t, text, strlen(text), "too long a list");
        if (!(e == ELEM_BOOL     ? read_bool(t, p, n)
              : elem_is_float(e) ? read_float(t, p, n)
                                 : read_int(t, p, n)))
            return false;
        p += n;
        if (!*p)
            return true;
    }
}

/* ---- the input ---- */

/* The shape that so many numbers have as this input: one dimension may be open. */
static bool shape_of(const Setting *t, int *rank, int64_t *dims) {
    Type type = t->v->type;
    size_t known = 1;
    int open = -1, n_open = 0;
    *rank = type.rank >= 0 ? type.rank : t->n > 1;
    for (int i = 0; i < *rank && i < MAX_RANK; i++) {
        dims[i] = type.rank >= 0 ? type.dims[i].value : -1;
        if (dims[i] < 0)
            n_open++, open = i;
        else if (dims[i] <= MOST_NUMBERS && known <= MOST_NUMBERS)
            known *= (size_t)dims[i];
        else
            known = MOST_NUMBERS + 1;
    }
    if (n_open == 1 && known && t->n % known == 0)
        dims[open] = (int64_t)(t->n / known);
    return *rank <= MAX_RANK &&
           (n_open == 1 ? known && t->n % known == 0 : !n_open && known == t->n);
}

static bool become_const(Setting *t) {
    Value *v = t->v;
    Graph *g = t->m->graph;
    int64_t dims[MAX_RANK];
    uint8_t *bytes, *from = arena_alloc(t->m->arena, t->n * 8 + 1);
    int rank;
    if (!shape_of(t, &rank, dims))
        return diag_error(t->d, v->loc, "-set: input %s is %s, which %zu number%s cannot be",
                          diag_name(t->d, v->name), type_text(t->m->arena, v->type), t->n,
                          plural(t->n));
    for (size_t i = 0; i < t->n; i++)
        memcpy(from + 8 * i, &t->numbers[i], 8);
    Tensor *data = tensor_new(t->m->arena, v->type.elem, rank, dims, &bytes);
    if (!sample_convert(v, t->elem, from, bytes, t->n, t->d))
        return false;
    v->data = data;
    v->type = tensor_type(t->m->arena, data);
    v->kind = VALUE_CONST;
    v->declared = false;
    v->stat = NULL;
    ARENA_PUSH(t->m->arena, g->consts, g->n_consts, g->cap_consts, v);
    size_t kept = 0;
    for (size_t i = 0; i < g->n_in; i++)
        if (g->in[i] != v)
            g->in[kept++] = g->in[i];
    g->n_in = kept;
    return true;
}

static bool unknown_input(const Module *m, Str name, Diags *d) {
    const Graph *g = m->graph;
    for (size_t i = 0; i < g->n_consts; i++)
        if (str_eq(g->consts[i]->name, name))
            return diag_error(d, LOC_NONE, "-set: '%s' is no input but a constant",
                              diag_name(d, name));
    const char **names = NEW_ARRAY(m->arena, const char *, g->n_in + 1);
    for (size_t i = 0; i < g->n_in; i++)
        names[i] = arena_str(m->arena, g->in[i]->name).s;
    diag_error(d, LOC_NONE, "-set: no graph input is called '%s'", diag_name(d, name));
    diag_did_you_mean(d, LOC_NONE, name, names, g->n_in);
    return false;
}

/* `known`: there is such an input; else it may be another model's. */
static bool set_input(Module *m, const char *text, bool known, Diags *d) {
    const char *eq = strrchr(text, '=');
    Str name = {text, eq ? (size_t)(eq - text) : 0};
    if (!name.n || !eq[1])
        return diag_error(d, LOC_NONE, "-set wants INPUT=1,2,3, not '%s'",
                          diag_name(d, str_from(text)));
    Setting *t = arena_alloc(m->arena, sizeof *t);
    *t = (Setting){.m = m, .d = d};
    for (size_t i = 0; i < m->graph->n_in; i++)
        if (str_eq(m->graph->in[i]->name, name))
            t->v = m->graph->in[i];
    if (!t->v)
        return !known || unknown_input(m, name, d);
    Type type = t->v->type;
    if (type.kind != TYPE_TENSOR || type.quant || elem_bits(type.elem) < 8 || t->v->sparse)
        return diag_error(d, t->v->loc, "-set: input %s is %s, which no numbers here can be",
                          diag_name(d, name), type_text(m->arena, type));
    return read_numbers(t, eq + 1) && become_const(t);
}

bool set_inputs(Session *s, Module *m, bool known, ExitCode *code) {
    const TextList *set = &s->o.set;
    for (size_t i = 0; i < set->n; i++)
        if (!set_input(m, set->items[i], known, s->d)) {
            *code = EXIT_USAGE;
            return false;
        }
    if (!set->n)
        return true;
    module_forget_file(m);
    if (module_check_fixed(m, s->d))
        return true;
    *code = EXIT_WRONG;
    return false;
}
