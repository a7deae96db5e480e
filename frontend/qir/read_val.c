/* Lists while they are read, and literals turned into what their place needs. */
#include "frontend/qir/reader.h"
#include "parser.h"

#define SPAN_FUNCTIONS(NAME, TYPE, STACK)                                                          \
    Span span_of_##NAME(Reader *r, const TYPE *v) {                                                \
        Span s = {.begin = (uint32_t)r->n_##STACK};                                                \
        span_add_##NAME(r, &s, v);                                                                 \
        return s;                                                                                  \
    }                                                                                              \
    void span_add_##NAME(Reader *r, Span *s, const TYPE *v) {                                      \
        ARENA_PUSH(r->arena, r->STACK, r->n_##STACK, r->cap_##STACK, *v);                          \
        s->n = (uint32_t)r->n_##STACK - s->begin;                                                  \
    }

SPAN_FUNCTIONS(val, Val, vals)
SPAN_FUNCTIONS(field, Field, fields)
SPAN_FUNCTIONS(bind, Bind, binds)
SPAN_FUNCTIONS(dim, Dim, dims)

void span_join(Span *s, Span next) {
    s->n += next.n;
    s->at = range_join(s->at, next.at);
}

Field *take_fields(Reader *r, Span s) {
    r->n_fields = s.begin;
    return r->fields + s.begin;
}

/* ---- making ---- */

Val val_token(Token t, ValKind kind) {
    Range at = range_of(t);
    Val v = {.kind = kind, .mixed = t.mixed, .n = t.n, .at = at, .word = at};
    if (kind == VAL_REF) {
        v.u.name = at;
        v.word = (Range){0};
    }
    return v;
}

Val val_ref(Token t, Token kind) {
    Range at = range_of(t), word = range_of(kind);
    return (Val){.kind = VAL_REF, .at = range_join(at, word), .word = word, .u.name = at};
}

Val val_range(Reader *r, Token lo, Token hi) {
    Val v = {.kind = VAL_RANGE, .at = range_join(range_of(lo), range_of(hi))};
    int64_t *range = NEW_ARRAY(r->arena, int64_t, 2);
    bool fits = int_of(r, lo, &range[0]);
    fits &= int_of(r, hi, &range[1]);
    if (!fits) {
        error_at(r, v.at, "this range does not fit int64");
        range[0] = 0; /* one that every type holds */
        range[1] = 1;
    }
    v.u.range = range;
    return v;
}

Val val_call(Reader *r, Token word, const Span *fields) {
    Val v = {.kind = VAL_CALL, .at = range_of(word), .word = range_of(word)};
    if (fields) {
        v.n = fields->n;
        v.u.args = arena_copy(r->arena, take_fields(r, *fields), fields->n * sizeof *r->fields);
    }
    v.at.end = (uint32_t)(r->lexer.cursor - r->lexer.text);
    bool external = str_is(str_at(r, v.word), "external");
    for (uint32_t i = 0; i < v.n; i++)
        clauses_check(r, v.u.args[i].clauses, external ? "x" : "", "an argument");
    return v;
}

Val val_list(Reader *r, Range at, const Span *vals, const Token *kind) {
    Val v = {.kind = VAL_LIST, .at = at};
    if (kind)
        v.word = range_of(*kind);
    if (vals) {
        v.n = vals->n;
        v.u.items = arena_copy(r->arena, r->vals + vals->begin, vals->n * sizeof *r->vals);
        r->n_vals = vals->begin;
    }
    return v;
}

Val val_type(Type *t, Range at) {
    return (Val){.kind = VAL_TYPE, .at = at, .u.type = t};
}

Val val_quant(Elem e) {
    return (Val){.kind = VAL_QUANT, .at = e.at, .u.quant = e.failed ? NULL : e.quant};
}

Val val_domain(Token domain, Token op) {
    Range at = range_join(range_of(domain), range_of(op));
    return (Val){.kind = VAL_WORD, .at = at, .word = at};
}

Val val_graph(Graph *g) {
    return (Val){.kind = VAL_GRAPH, .at = {g->loc.begin, g->loc.end}, .u.graph = g};
}

Val val_tensor(Reader *r, Type *t, Val data, Clauses *c, Range at) {
    Val v = {.kind = t->kind == TYPE_SPARSE ? VAL_SPARSE : VAL_TENSOR, .at = at};
    if (v.kind == VAL_SPARSE) {
        clauses_check(r, c, "x", "a sparse tensor");
        v.u.sparse = read_sparse_literal(r, t, &data);
        if (v.u.sparse && c)
            v.u.sparse->extra = c->extra;
        return v;
    }
    clauses_check(r, c, "ndxm", "a tensor");
    v.u.tensor = read_literal(r, t, &data);
    if (v.u.tensor && c) {
        v.u.tensor->name = c->name;
        v.u.tensor->doc = c->doc;
        v.u.tensor->meta = c->meta;
        v.u.tensor->extra = c->extra;
    }
    return v;
}

/* ---- using ---- */

bool val_number(Reader *r, const Val *v, Number *out) {
    return v->kind == VAL_NUMBER && number_scan(r->text.s + v->at.begin, out);
}

bool val_is_call(const Reader *r, const Val *v, const char *word) {
    return v->kind == VAL_CALL && str_is(str_at(r, v->word), word);
}

bool val_int(Reader *r, const Val *v, const char *what, int64_t *out) {
    Number n;
    if (!val_number(r, v, &n) || n.kind != NUM_INT)
        return error_at(r, v->at, "%s is an integer", what);
    return number_i64(&n, out) || error_at(r, v->at, "this number does not fit int64");
}

bool val_str(Reader *r, const Val *v, const char *what, Str *out) {
    if (v->kind != VAL_STRING)
        return error_at(r, v->at, "%s is a string in quotes", what);
    *out = str_at(r, v->word);
    return true;
}

bool next_number(Reader *r, NumberList *list, Number *out) {
    const char *p = lexer_space(list->at);
    if (*p == ']')
        return false;
    if (!number_scan(p, out)) {
        uint32_t begin = (uint32_t)(p - r->text.s);
        uint32_t n = (uint32_t)strcspn(p, ",] \t\r\n");
        error_at(r, (Range){begin, begin + n}, "%s", lexer_bad_number((Str){p, n}));
        list->failed = true;
        return false;
    }
    p = lexer_space(out->end);
    if (*p != ',' && *p != ']') { /* 1.e5 and the like, which the lexer's quick look lets pass */
        uint32_t begin = (uint32_t)(out->begin - r->text.s);
        uint32_t n = (uint32_t)strcspn(out->begin, ",] \t\r\n");
        error_at(r, (Range){begin, begin + n}, "%s", lexer_bad_number((Str){out->begin, n}));
        list->failed = true;
        return false;
    }
    list->at = *p == ',' ? p + 1 : p;
    list->n++;
    return true;
}

NumberList numbers_of(const Reader *r, const Val *v) {
    return (NumberList){.at = r->text.s + v->at.begin + 1};
}

Range number_at(const Reader *r, const Number *n) {
    return (Range){(uint32_t)(n->begin - r->text.s), (uint32_t)(n->end - r->text.s)};
}

/* `e` is FLOAT or INT64; calls for a number or a list of numbers. */
static bool val_array(Reader *r, const Val *v, ElemType e, const char *what, void *items, size_t *n,
                      size_t size) {
    Number num;
    uint64_t bits;
    const char *wrong;
    *n = 0;
    if (v->kind == VAL_NUMBER && val_number(r, v, &num)) {
        wrong = number_bits(r->arena, &num, e, &bits);
        if (wrong)
            return error_at(r, v->at, "this %s", wrong);
        memcpy(items, &bits, size);
        *n = 1;
        return true;
    }
    if (v->kind != VAL_NUMBERS)
        return (v->kind == VAL_LIST && v->n == 0) ||
               error_at(r, v->at, "%s is a number or a list of numbers", what);
    NumberList list = numbers_of(r, v);
    while (next_number(r, &list, &num)) {
        wrong = number_bits(r->arena, &num, e, &bits);
        if (wrong)
            return error_at(r, number_at(r, &num), "this %s", wrong);
        memcpy((char *)items + (*n)++ * size, &bits, size);
    }
    return !list.failed;
}

bool val_floats(Reader *r, const Val *v, const char *what, const float **out, size_t *n) {
    float *items = NEW_ARRAY(r->arena, float, v->kind == VAL_NUMBERS ? v->n : 1);
    *out = items;
    return val_array(r, v, ELEM_FLOAT, what, items, n, sizeof *items);
}

bool val_ints(Reader *r, const Val *v, const char *what, const int64_t **out, size_t *n) {
    int64_t *items = NEW_ARRAY(r->arena, int64_t, v->kind == VAL_NUMBERS ? v->n : 1);
    *out = items;
    return val_array(r, v, ELEM_INT64, what, items, n, sizeof *items);
}
