/* Types. Every rule gives a Type in the arena; after an error one that failed, so that nothing else
 * complains about it. `?` is a type that is not known, which is no error. */
#include "frontend/qir/reader.h"

Dim dim_int(Reader *r, Token t) {
    Dim d = {0};
    if (!int_of(r, t, &d.value) || d.value < 0) {
        error_at(r, range_of(t), "a dimension is 0 to 9223372036854775807");
        r->dim_failed = true;
    }
    return d;
}

Dim dim_name(Reader *r, Token t) {
    return (Dim){.value = -1, .param = str_of(r, t)};
}

Dim dim_negative(Reader *r, Token t) {
    Dim d = {.value = -1};
    if (!int_of(r, t, &d.negative) || d.negative >= 0) {
        error_at(r, range_of(t), "behind ? stands a number below 0, as an ONNX file states it");
        r->dim_failed = true;
    }
    return d;
}

/* ---- shapes ---- */

static Str text_of(const Reader *r, Range at) {
    return (Str){r->text.s + at.begin, at.end - at.begin};
}

/* Takes the dims of a new shape from their stack. */
Shape shape_list(Reader *r, Span dims, Range at) {
    Str text = text_of(r, at);
    Shape *s = map_get(r->shapes, text);
    r->n_dims = dims.begin;
    if (r->dim_failed) {
        r->dim_failed = false;
        return (Shape){.failed = true};
    }
    if (s)
        return *s;
    s = NEW(r->arena, Shape);
    *s = (Shape){.rank = (int)dims.n,
                 .dims = arena_copy(r->arena, r->dims + dims.begin, dims.n * sizeof *r->dims)};
    map_set(r->shapes, text, s);
    return *s;
}

Shape shape_numbers(Reader *r, Token t) {
    const Shape *known = map_get(r->shapes, text_of(r, range_of(t)));
    if (known)
        return *known;
    Span s = {.begin = (uint32_t)r->n_dims};
    Val v = val_token(t, VAL_NUMBERS);
    NumberList list = numbers_of(r, &v);
    Number n;
    while (next_number(r, &list, &n)) {
        Dim d = {0};
        if (!number_i64(&n, &d.value) || d.value < 0) {
            error_at(r, number_at(r, &n), "a dimension is 0 to 9223372036854775807, ? or a name");
            r->dim_failed = true;
        }
        span_add_dim(r, &s, &d);
    }
    return shape_list(r, s, range_of(t));
}

Shape shape_scalar(void) {
    return (Shape){0};
}

Shape shape_unranked(void) {
    return (Shape){.rank = -1};
}

/* ---- elements ---- */

Elem elem_word(Reader *r, Range at) {
    Str word = str_at(r, at);
    Elem e = {.elem = elem_from_name(word), .at = at};
    if (e.elem == ELEM_UNDEFINED && !str_is(word, "undefined")) {
        error_at(r, e.at, "unknown element type '%s'", shown(r, word));
        suggest_elem(r, e.at, word);
        e.failed = true;
    }
    return e;
}

Elem elem_alias(Reader *r, Token t) {
    Str name = str_of(r, t);
    const Quant *q = map_get(r->aliases, name);
    Elem e = {.quant = q, .at = range_of(t)};
    if (q) {
        e.elem = q->storage;
        return e;
    }
    e.failed = true;
    r->silent_flaws++;
    if (!is_broken(r, '!', name)) {
        error_at(r, e.at, "no quantization is called !%s", shown(r, name));
        suggest_key(r, e.at, name, r->aliases);
        map_set(r->broken, with_sigil(r, '!', name), r); /* said once */
    }
    return e;
}

/* ---- types ---- */

Type *type_unknown(Reader *r) {
    Type *t = r->spare_type;
    r->spare_type = NULL;
    if (!t)
        t = NEW(r->arena, Type);
    *t = TYPE_UNKNOWN;
    return t;
}

Type *type_failed(Reader *r) {
    Type *t = type_unknown(r);
    t->failed = true;
    return t;
}

Type *type_tensor_of(Reader *r, Elem e, Shape s) {
    if (e.failed || s.failed)
        return type_failed(r);
    Type *t = type_unknown(r);
    t->rank = s.rank;
    t->dims = s.dims;
    t->kind = TYPE_TENSOR;
    t->elem = e.elem;
    t->quant = e.quant;
    return t;
}

/* Types in types nest as deep as brackets may; recursion over them must stay within bounds. */
static int type_depth(const Type *t) {
    int n = 0;
    for (; t; t = t->sub)
        n++;
    return n;
}

Type *type_of(Reader *r, TypeKind kind, Type *sub, Range at) {
    Type *t = type_unknown(r);
    t->kind = kind;
    t->sub = sub;
    if (type_depth(t) > MAX_NESTING) {
        error_at(r, at, "types are nested more than %d deep", MAX_NESTING);
        t->sub = type_failed(r);
    } else if (kind == TYPE_SPARSE && sub->kind != TYPE_TENSOR && sub->kind != TYPE_NONE) {
        error_at(r, at, "sparse<...> is of a tensor, as in sparse<float[10]>");
        t->sub = type_failed(r);
    }
    return t;
}

Type *type_map(Reader *r, Token key, Type *value) {
    Elem e = elem_word(r, range_of(key));
    Type *t = type_of(r, TYPE_MAP, value, range_of(key));
    t->key = e.elem;
    return t;
}

Type *type_denote(Reader *r, Type *t, Token denotation) {
    if (t->denotation.s)
        error_at(r, range_of(denotation), "a second denotation");
    t->denotation = str_of(r, denotation);
    return t;
}

Type *type_with_tilde(Reader *r, Type *t, Elem q) {
    if (q.failed || t->kind == TYPE_NONE)
        return t;
    if (!q.quant) {
        error_at(r, q.at, "after ~ stands a quantization, as in float[4] ~ int8q<0.1, 3>");
        return t;
    }
    if (t->kind != TYPE_TENSOR || t->quant) {
        error_at(r, q.at, "~ says what a plain tensor stands for; this is %s",
                 t->quant ? "quantized already" : "no tensor");
        return t;
    }
    if (!quant_is_integers(q.quant)) {
        error_at(r, q.at,
                 "~ takes integers; %sq stands between QuantizeLinear and DequantizeLinear",
                 elem_name(q.quant->storage));
        return t;
    }
    if (elem_is_float(t->elem) && q.quant->kind == QUANT_PARAMS && t->elem != q.quant->expressed)
        error_at(r, q.at, "~ on %s needs a quantization that stands for %s, as expr=%s, not %s",
                 elem_name(t->elem), elem_name(t->elem), elem_name(t->elem),
                 elem_name(q.quant->expressed));
    if (!elem_is_float(t->elem) && q.quant->storage == ELEM_UNDEFINED) {
        error_at(r, q.at, "~ ? leaves open how a float is quantized; this is %s",
                 elem_name(t->elem));
        return t;
    }
    if (!elem_is_float(t->elem) && t->elem != q.quant->storage)
        error_at(r, q.at, "~ on %s needs a quantization stored as %s, not %s", elem_name(t->elem),
                 elem_name(t->elem), elem_name(q.quant->storage));
    *t = type_tilde(*t, q.quant);
    return t;
}
