/* The data of tensors as literals. */
#include "backend/qir/print.h"

#include <stdlib.h>

#include "ir/minifloat.h"

enum { SPLAT_FROM = 4 };

static uint64_t bits_of(ElemType e, const uint8_t *data, size_t i) {
    int64_t v = elem_load_int(e, data, i);
    int bits = elem_bits(e);
    return bits == 64 ? (uint64_t)v : (uint64_t)v & ((1ull << bits) - 1);
}

/* The fewest digits that read back to the same bits; such decimals print as themselves. */
static void print_narrow_float(Printer *p, ElemType e, uint64_t bits) {
    double v = float_decode(e, bits);
    uint64_t back;
    if (float_is_nan(e, bits)) {
        float_encode(e, v, &back);
        if (back == bits)
            buf_text(&p->b, "nan");
        else
            buf_fmt(&p->b, "nan(0x%0*llx)", (elem_bits(e) + 3) / 4, (unsigned long long)bits);
        return;
    }
    for (int digits = 1; digits < 9 && v != 0; digits++) {
        char text[40];
        snprintf(text, sizeof text, "%.*e", digits - 1, v);
        double shorter = strtod(text, NULL);
        if (float_encode(e, shorter, &back) && back == bits) {
            buf_f64(&p->b, shorter);
            return;
        }
    }
    buf_f64(&p->b, v);
}

static void print_element(Printer *p, ElemType e, const uint8_t *data, size_t i) {
    if (e == ELEM_FLOAT) {
        float v;
        memcpy(&v, data + 4 * i, 4);
        buf_f32(&p->b, v);
    } else if (e == ELEM_DOUBLE) {
        double v;
        memcpy(&v, data + 8 * i, 8);
        buf_f64(&p->b, v);
    } else if (elem_is_float(e)) {
        print_narrow_float(p, e, bits_of(e, data, i));
    } else if (e == ELEM_UINT64) {
        buf_u64(&p->b, (uint64_t)elem_load_int(e, data, i));
    } else {
        buf_i64(&p->b, elem_load_int(e, data, i));
    }
}

/* Elements that fit a line, whichever they are: a changed number moves no other. */
static size_t most_in_row(ElemType e) {
    int bits = elem_bits(e);
    return e == ELEM_STRING ? 1 : bits <= 8 ? 16 : bits <= 16 ? 8 : bits <= 32 ? 6 : 4;
}

/* Elements per line: whole rows of the last dimensions, if short. */
static size_t row_length(const Tensor *t, ElemType e) {
    size_t row = 1, most = most_in_row(e);
    for (int i = t->rank - 1; i >= 0 && t->dims[i] > 0; i--) {
        if (row * (size_t)t->dims[i] > most)
            break;
        row *= (size_t)t->dims[i];
    }
    return row > 1 ? row : most;
}

/* The blanks that the current line begins with. */
static size_t line_indent(const Printer *p) {
    size_t begin = p->b.n - print_column(p), i = begin;
    while (i < p->b.n && p->b.p[i] == ' ')
        i++;
    return i - begin;
}

static void print_separator(Printer *p, size_t i, bool new_line, size_t indent) {
    if (i)
        buf_byte(&p->b, ',');
    if (new_line) {
        print_flush(p);
        buf_byte(&p->b, '\n');
        for (size_t k = 0; k < indent; k++)
            buf_byte(&p->b, ' ');
    } else if (i) {
        buf_byte(&p->b, ' ');
    }
}

/* `row` elements to a line; 0: all in one. */
static void print_rows(Printer *p, const Tensor *t, ElemType e, size_t n, size_t row) {
    size_t column = 0, indent = line_indent(p) + 6;
    buf_byte(&p->b, '[');
    for (size_t i = 0; i < n; i++) {
        print_separator(p, i, row && column == 0, indent);
        column = column + 1 == row ? 0 : column + 1;
        if (t->elem == ELEM_STRING)
            buf_quoted(&p->b, t->strings[i]);
        else
            print_element(p, e, t->data, i);
    }
    buf_byte(&p->b, ']');
}

/* In one line where it is short. */
static void print_list(Printer *p, const Tensor *t) {
    ElemType e = t->elem;
    size_t n = t->count, begin = p->b.n;
    if (e == ELEM_COMPLEX64 || e == ELEM_COMPLEX128) {
        e = e == ELEM_COMPLEX64 ? ELEM_FLOAT : ELEM_DOUBLE;
        n *= 2; /* real, imaginary */
    }
    if (n <= FEW) {
        print_rows(p, t, e, n, 0);
        if (n <= 1 || p->in_line || print_column(p) <= MOST_COLUMNS)
            return;
        p->b.n = begin;
    }
    print_rows(p, t, e, n, row_length(t, e));
}

static bool all_equal(const Tensor *t) {
    size_t size = (size_t)elem_bits(t->elem) / 8;
    if (t->count < SPLAT_FROM || t->elem == ELEM_STRING || t->elem == ELEM_COMPLEX64 ||
        t->elem == ELEM_COMPLEX128)
        return false;
    if (size)
        return memcmp(t->data, t->data + size, t->bytes - size) == 0;
    for (size_t i = 1; i < t->count; i++)
        if (elem_load_int(t->elem, t->data, i) != elem_load_int(t->elem, t->data, 0))
            return false;
    return true;
}

/* Bits behind the last element that are not 0: no list of elements says them. */
static bool has_padding(const Tensor *t) {
    unsigned bits = (unsigned)elem_bits(t->elem), used = (unsigned)(t->count % 8) * bits % 8;
    return t->data && t->bytes && bits < 8 && used && t->data[t->bytes - 1] >> used;
}

/* Prints as splat(0), wherever the numbers are. */
static bool is_splat(const Tensor *t) {
    return t->place != TENSOR_EXTERNAL && t->data && !has_padding(t) && all_equal(t);
}

/* All of it was looked at; small ones share their pages with others. */
static void let_go(const Module *m, const Tensor *t) {
    enum { LARGE = 1 << 16 };
    if (t->bytes >= LARGE)
        module_release(m, t);
}

bool print_is_short(const Value *v, size_t most) {
    if (v->sparse)
        return v->sparse->values->count <= most;
    bool is_short = v->data->count <= most || is_splat(v->data);
    let_go(v->graph->module, v->data);
    return is_short;
}

static void print_hex(Printer *p, const Tensor *t) {
    buf_text(&p->b, "hex(\"");
    for (size_t i = 0; i < t->bytes; i++)
        buf_fmt(&p->b, "%02x", t->data[i]);
    buf_text(&p->b, "\")");
}

/* ---- data elsewhere ---- */

static uint32_t checksum(const Tensor *t) {
    return t->has_crc32 ? t->crc32 : crc32_of(t->data, t->bytes);
}

static bool is_decimal(Str s) {
    if (s.n == 0 || s.n > 18 || (s.n > 1 && s.s[0] == '0'))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (s.s[i] < '0' || s.s[i] > '9')
            return false;
    return true;
}

/* As in metadata: `_` where there is no key, nothing where there is no value. */
static void print_external_entry(Printer *p, const StrPair *entry) {
    if (!entry->key.s)
        buf_byte(&p->b, '_');
    else if (entry->value.s)
        print_word(p, entry->key);
    else
        buf_quoted(&p->b, entry->key);
    if (!entry->value.s)
        return;
    buf_byte(&p->b, '=');
    buf_quoted(&p->b, entry->value);
}

/* external("w.bin", 0, 12), or with keys where the entries are others or in another order. */
static void print_external(Printer *p, const Tensor *t) {
    static const char *const keys[] = {"location", "offset", "length"};
    const StrPair *items = t->external.items;
    bool plain = t->external.n >= 1 && t->external.n <= 3;
    for (size_t i = 0; plain && i < t->external.n; i++)
        plain = str_is(items[i].key, keys[i]) && items[i].value.s &&
                (i == 0 || is_decimal(items[i].value));
    buf_text(&p->b, "external(");
    for (size_t i = 0; i < t->external.n; i++) {
        if (i)
            buf_text(&p->b, ", ");
        if (!plain)
            print_external_entry(p, &items[i]);
        else if (i)
            buf_str(&p->b, items[i].value);
        else
            buf_quoted(&p->b, items[i].value);
        print_extra_clause(p, items[i].extra);
    }
    buf_byte(&p->b, ')');
}

static void print_blob(Printer *p, Str blob, Str key, bool has_crc, uint32_t crc) {
    buf_text(&p->b, "blob(");
    name_print(&p->b, '@', (Str){blob.s + 1, blob.n - 1});
    buf_text(&p->b, ", ");
    buf_quoted(&p->b, key);
    if (has_crc)
        buf_fmt(&p->b, ", \"crc32:%08x\"", crc);
    buf_byte(&p->b, ')');
}

void print_blob_ref(Printer *p, const Tensor *t) {
    bool sum = t->has_crc32 || t->data;
    print_blob(p, t->blob, t->blob_key, sum, sum ? checksum(t) : 0);
}

static bool add_to_blob(Printer *p, const Tensor *t, Str key) {
    const char *dtype = elem_dtype(t->elem);
    int64_t bytes = (int64_t)t->bytes;
    Str data = {(const char *)t->data, t->bytes};
    return dtype ? st_add(p->blob, key, dtype, t->rank, t->dims, data)
                 : st_add(p->blob, key, "U8", 1, &bytes, data);
}

static bool print_as_blob(Printer *p, const Tensor *t, Str name) {
    if (!p->blob || t->count <= p->few)
        return false;
    Str key = names_make(p->keys, name.n ? name : STR("constant"));
    if (!add_to_blob(p, t, key)) { /* a name that JSON cannot hold */
        key = names_make(p->keys, STR("constant"));
        if (!add_to_blob(p, t, key))
            return false;
    }
    p->uses_blob = true;
    print_blob(p, STR("@w"), key, true, checksum(t));
    return true;
}

void print_tensor_data(Printer *p, const Tensor *t, Str name) {
    const QirWriteOptions *o = &p->options;
    bool at_hand = t->count == 0 || (t->elem == ELEM_STRING ? t->strings != NULL : t->data != NULL);
    if (t->place == TENSOR_EXTERNAL) {
        print_external(p, t);
    } else if (!at_hand) {
        buf_text(&p->b, "elided(");
        if (t->has_crc32)
            buf_fmt(&p->b, "\"crc32:%08x\"", t->crc32);
        buf_byte(&p->b, ')');
    } else if (t->elem == ELEM_STRING) {
        print_list(p, t);
    } else if (is_splat(t)) {
        buf_text(&p->b, "splat(");
        print_element(p, t->elem, t->data, 0);
        buf_byte(&p->b, ')');
    } else if (o->elide && t->bytes > o->elide_larger) {
        buf_fmt(&p->b, "elided(\"crc32:%08x\")", checksum(t));
    } else if (has_padding(t)) {
        if (!print_as_blob(p, t, name))
            print_hex(p, t);
    } else if (!print_as_blob(p, t, name)) {
        print_list(p, t);
    }
    let_go(p->module, t);
}

void print_tensor_clauses(Printer *p, const Tensor *t) {
    print_string_clause(p, "doc", t->doc);
    print_meta_clause(p, t->meta);
    print_extra_clause(p, t->extra);
}

/* ---- scales and zero points ---- */

static void print_param(Printer *p, const char *word, const Quant *q, ElemType e, size_t n,
                        const void *data) {
    int64_t dim = (int64_t)n;
    Tensor t = {.place = TENSOR_INLINE,
                .elem = e,
                .rank = 1,
                .dims = &dim,
                .count = n,
                .bytes = elem_bytes(e, n),
                .data = data};
    Str key = arena_strf(p->arena, STR_FMT ".%s", STR_ARG(q->alias), word);
    size_t begin = print_place(p);
    print_indent(p);
    buf_text(&p->b, word);
    buf_byte(&p->b, ' ');
    name_print(&p->b, '!', q->alias);
    buf_text(&p->b, " = ");
    print_tensor_data(p, &t, key);
    end_wrapped(p, begin);
}

static void print_params_of(Printer *p, const Quant *q) {
    if (q->n_scale > p->few)
        print_param(p, "scale", q, ELEM_FLOAT, q->n_scale, q->scale);
    if (q->n_zp > p->few)
        print_param(p, "zp", q, ELEM_INT64, q->n_zp, q->zp);
}

bool print_has_params(const Printer *p) {
    for (size_t i = 0; i < p->n_lines; i++) {
        const Quant *q = p->lines[i];
        if (q->kind == QUANT_PARAMS && (q->n_scale > p->few || q->n_zp > p->few))
            return true;
    }
    return false;
}

void print_params(Printer *p) {
    bool elide = p->options.elide; /* they are part of types */
    p->options.elide = false;
    for (size_t i = 0; i < p->n_lines; i++)
        if (p->lines[i]->kind == QUANT_PARAMS)
            print_params_of(p, p->lines[i]);
    p->options.elide = elide;
}

/* ---- sparse ---- */

static bool is_plain(const Tensor *t, Str implied_name) {
    bool named = t->name.s && !(implied_name.s && str_eq(t->name, implied_name));
    return !named && !t->doc.s && !t->meta.n && !t->extra.s && t->place == TENSOR_INLINE &&
           !has_padding(t);
}

/* Whether the lists alone tell the dims of the two tensors. */
static bool shape_is_implied(const SparseTensor *s) {
    const Tensor *v = s->values, *x = s->indices;
    if (!x)
        return v->rank == 1;
    if (v->rank != 1 || x->elem != ELEM_INT64)
        return false;
    if (x->rank == 1)
        return x->count == v->count || v->count == 0;
    return x->rank == 2 && s->rank > 1 && v->count > 0 && x->dims[0] == v->dims[0] &&
           x->dims[1] == s->rank;
}

static void print_part(Printer *p, const Tensor *t) {
    buf_text(&p->b, "tensor(");
    type_print(&p->b, tensor_type(p->arena, t));
    buf_text(&p->b, ", ");
    print_tensor_data(p, t, t->name);
    print_string_clause(p, "name", t->name);
    print_tensor_clauses(p, t);
    buf_byte(&p->b, ')');
}

void print_sparse_data(Printer *p, const SparseTensor *s, Str name) {
    bool plain = shape_is_implied(s) && is_plain(s->values, name) &&
                 (!s->indices || is_plain(s->indices, STR_NONE));
    buf_text(&p->b, "coo(");
    if (plain)
        print_list(p, s->values);
    else
        print_part(p, s->values);
    if (s->indices)
        buf_text(&p->b, ", ");
    if (s->indices && plain)
        print_list(p, s->indices);
    else if (s->indices)
        print_part(p, s->indices);
    buf_byte(&p->b, ')');
}
