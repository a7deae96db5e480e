/* The data of constants. */
#include "frontend/qir/reader.h"

static ElemType component(ElemType e) {
    return e == ELEM_COMPLEX64 ? ELEM_FLOAT : e == ELEM_COMPLEX128 ? ELEM_DOUBLE : e;
}

/* A tensor of the type's dims, without data; how many elements it has is not counted. */
static Tensor *fixed_dims(Reader *r, const Type *t, Range at) {
    Tensor *x = NEW(r->arena, Tensor);
    if (t->failed)
        return NULL;
    if (t->kind != TYPE_TENSOR) {
        error_at(r, at,
                 t->kind == TYPE_NONE ? "data need a type, as in float[4]; this is %s"
                                      : "a constant is a tensor, not %s",
                 type_text(r->arena, *t));
        return NULL;
    }
    x->elem = t->elem;
    x->rank = t->rank;
    x->loc = loc_of(r, at);
    bool fixed = t->rank >= 0;
    int64_t *dims = NEW_ARRAY(r->arena, int64_t, fixed ? (size_t)t->rank : 0);
    x->dims = dims;
    for (int i = 0; i < t->rank; i++) {
        dims[i] = t->dims[i].value;
        fixed &= dims[i] >= 0;
    }
    if (!fixed || t->elem == ELEM_UNDEFINED) {
        error_at(r, at, "the type of a constant has fixed dimensions; this is %s",
                 type_text(r->arena, *t));
        return NULL;
    }
    return x;
}

static Tensor *tensor_head(Reader *r, const Type *t, Range at) {
    Tensor *x = fixed_dims(r, t, at);
    if (x && !tensor_count(x->rank, x->dims, &x->count)) {
        error_at(r, at, "a constant has at most 2147483647 elements; this is %s",
                 type_text(r->arena, *t));
        return NULL;
    }
    if (x)
        x->bytes = elem_bytes(x->elem, x->count);
    return x;
}

static bool store_number(Reader *r, const Type *t, Number *n, uint8_t *data, size_t i) {
    ElemType e = component(t->elem);
    uint64_t bits;
    const char *wrong = number_bits(r->arena, n, e, &bits);
    if (wrong)
        return error_at(r, number_at(r, n), "this %s", wrong);
    const Quant *q = t->quant;
    if (q && elem_is_int(e) && ((int64_t)bits < q->lo || (int64_t)bits > q->hi))
        return error_at(r, number_at(r, n), "this is outside the range %lld:%lld of its type",
                        (long long)q->lo, (long long)q->hi);
    elem_store_int(e, data, i, (int64_t)bits);
    return true;
}

static bool wrong_count(Reader *r, const Val *v, const Type *t, size_t want, size_t got) {
    return error_at(r, v->at, "%s has %zu element%s, the list holds %zu", type_text(r->arena, *t),
                    want, plural(want), got);
}

static bool fill_list(Reader *r, const Type *t, const Val *v, Tensor *x) {
    size_t want = x->count * (component(x->elem) == x->elem ? 1 : 2);
    bool may_fit = want == v->n;
    if (x->elem == ELEM_STRING)
        return error_at(r, v->at, "a string tensor is a list of strings in quotes");
    uint8_t *data = arena_alloc(r->arena, may_fit ? x->bytes : 0);
    x->data = data;
    NumberList list = numbers_of(r, v);
    Number n;
    bool ok = true;
    while (next_number(r, &list, &n))
        if (may_fit && list.n <= want && ok)
            ok = store_number(r, t, &n, data, list.n - 1);
    if (list.failed || !ok)
        return false;
    return list.n == want || wrong_count(r, v, t, want, list.n);
}

/* What a list for numbers holds instead, and how it is written. */
static bool not_a_number(Reader *r, const Type *t, const Val *v) {
    const Val *item = v->u.items;
    while (item->kind == VAL_NUMBER && item < v->u.items + v->n - 1)
        item++;
    Str word = item->kind == VAL_WORD ? str_at(r, item->word) : STR("");
    error_at(r, item->at, "%s is a list of numbers", type_text(r->arena, *t));
    if (item->kind == VAL_NUMBERS || item->kind == VAL_LIST)
        note_at(r, item->at,
                "the list is flat, whatever the dimensions: the elements in row-major "
                "order, [1, 2, 3, 4]");
    else if (str_is(word, "true") || str_is(word, "false"))
        note_at(r, item->at, "bools are 0 and 1");
    return false;
}

static bool fill_strings(Reader *r, const Type *t, const Val *v, Tensor *x) {
    if (x->elem != ELEM_STRING && v->n)
        return not_a_number(r, t, v);
    if (v->n != x->count)
        return wrong_count(r, v, t, x->count, v->n);
    Str *strings = NEW_ARRAY(r->arena, Str, v->n);
    for (uint32_t i = 0; i < v->n; i++)
        if (!val_str(r, &v->u.items[i], "an element of a string tensor", &strings[i]))
            return false;
    if (x->elem == ELEM_STRING)
        x->strings = strings;
    else
        x->data = arena_alloc(r->arena, 1);
    return true;
}

/* splat(0): all elements are the same. */
static bool fill_splat(Reader *r, const Type *t, const Val *v, Tensor *x) {
    Number n;
    uint8_t one[16] = {0};
    if (v->n != 1 || component(x->elem) != x->elem || !val_number(r, &v->u.args[0].val, &n))
        return error_at(r, v->at, "splat(...) holds one number");
    if (!store_number(r, t, &n, one, 0))
        return false;
    uint8_t *data = arena_alloc(r->arena, x->bytes);
    x->data = data;
    size_t size = (size_t)elem_bits(x->elem) / 8;
    int64_t bits = elem_load_int(x->elem, one, 0);
    if (size == 1)
        memset(data, one[0], x->bytes);
    for (size_t i = 0; size != 1 && i < x->count; i++)
        elem_store_int(x->elem, data, i, bits);
    return true;
}

static bool fill_elided(Reader *r, const Val *v, Tensor *x) {
    x->place = TENSOR_ELIDED;
    if (v->n > 1)
        return error_at(r, v->at, "elided(...) holds a checksum");
    return v->n == 0 || read_checksum(r, &v->u.args[0].val, x);
}

/* hex("..."): the packed bytes. */
static bool fill_hex(Reader *r, const Type *t, const Val *v, Tensor *x) {
    Str bytes;
    if (x->elem == ELEM_STRING)
        return error_at(r, v->at, "a string tensor is a list of strings in quotes");
    if (!read_hex(r, v, &bytes))
        return false;
    if (bytes.n != x->bytes)
        return error_at(r, v->at, "%s takes %zu bytes, not %zu", type_text(r->arena, *t), x->bytes,
                        bytes.n);
    x->data = (const uint8_t *)bytes.s;
    return true;
}

static bool fill_call(Reader *r, const Type *t, const Val *v, Tensor *x) {
    static const char *const words[] = {"splat", "blob", "external", "elided", "hex"};
    Str word = str_at(r, v->word);
    if (str_is(word, "splat"))
        return fill_splat(r, t, v, x);
    if (str_is(word, "blob"))
        return blob_tensor(r, t, v, x);
    if (str_is(word, "external"))
        return external_tensor(r, v, x);
    if (str_is(word, "elided"))
        return fill_elided(r, v, x);
    if (str_is(word, "hex"))
        return fill_hex(r, t, v, x);
    error_at(r, v->at, "unknown way to give data '%s'", shown(r, word));
    suggest(r, v->at, word, words, sizeof words / sizeof *words);
    return false;
}

/* Data that could not be read: by the end of the text an error has said so. */
static void *lost(Reader *r, const Val *v) {
    r->lost = v->at;
    return NULL;
}

Tensor *read_literal(Reader *r, const Type *t, const Val *v) {
    Tensor *x = tensor_head(r, t, v->at);
    bool ok;
    if (!x)
        return lost(r, v);
    switch (v->kind) {
    case VAL_NUMBERS: ok = fill_list(r, t, v, x); break;
    case VAL_LIST: ok = fill_strings(r, t, v, x); break;
    case VAL_CALL: ok = fill_call(r, t, v, x); break;
    default:
        ok = error_at(r, v->at,
                      "the data are a list, splat(...), blob(...), external(...) or "
                      "elided(...)");
    }
    return ok ? x : lost(r, v);
}

/* ---- sparse ---- */

/* One half of coo(values, indices): a plain list of the given element type, or tensor(...). */
static Tensor *sparse_part(Reader *r, const Val *v, ElemType e, int rank, const int64_t *dims) {
    if (v->kind == VAL_TENSOR) {
        if (v->u.tensor && v->u.tensor->elem != e)
            error_at(r, v->at, "expected elements of type %s", elem_name(e));
        return v->u.tensor;
    }
    Type t = type_fixed(r->arena, e, rank, dims);
    return read_literal(r, &t, v);
}

static size_t list_length(const Val *v) {
    if (v->kind == VAL_TENSOR)
        return v->u.tensor ? v->u.tensor->count : 0;
    return v->kind == VAL_LIST || v->kind == VAL_NUMBERS ? v->n : 0;
}

static SparseTensor *read_coo(Reader *r, const Type *t, const Val *v) {
    if (!val_is_call(r, v, "coo") || v->n < 1 || v->n > 2) {
        error_at(r, v->at, "sparse data are coo(values, indices)");
        return NULL;
    }
    Tensor *whole = fixed_dims(r, t->sub, v->at);
    if (!whole)
        return NULL;
    SparseTensor *s = NEW(r->arena, SparseTensor);
    s->loc = loc_of(r, v->at);
    s->rank = whole->rank;
    s->dims = whole->dims;
    const Val *values = &v->u.args[0].val, *indices = &v->u.args[1].val;
    int64_t count = (int64_t)list_length(values);
    s->values = sparse_part(r, values, t->sub->elem, 1, &count);
    if (v->n == 1)
        return s->values ? s : NULL;
    /* Indices are linear, or one coordinate per dimension, row by row. */
    int64_t n_indices = (int64_t)list_length(indices);
    bool linear = n_indices == count;
    int64_t dims[] = {linear ? n_indices : count, whole->rank};
    s->indices = sparse_part(r, indices, ELEM_INT64, linear ? 1 : 2, dims);
    return s->values && s->indices ? s : NULL;
}

SparseTensor *read_sparse_literal(Reader *r, const Type *t, const Val *v) {
    SparseTensor *s = read_coo(r, t, v);
    return s ? s : lost(r, v);
}
