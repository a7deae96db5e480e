#include "ir/type.h"

typedef struct ElemInfo {
    int number;
    const char *name;
    int bits;
    char kind;
} ElemInfo;

static const ElemInfo elems[] = {
#define ELEM(id, number, name, bits, kind) {number, name, bits, #kind[0]},
#include "ir/elem.def"
#undef ELEM
};
enum { N_ELEMS = sizeof elems / sizeof *elems };

/* ONNX's numbers are dense from 0, so most look-ups are direct; our own stand at the end. */
static const ElemInfo *elem_info(int number) {
    if (number >= 0 && number < N_ELEMS && elems[number].number == number)
        return &elems[number];
    for (size_t i = N_ELEMS; i-- && elems[i].number > N_ELEMS;)
        if (elems[i].number == number)
            return &elems[i];
    return NULL;
}

const char *elem_name(ElemType e) {
    const ElemInfo *info = elem_info((int)e);
    return info ? info->name : "?";
}

ElemType elem_from_name(Str name) {
    for (size_t i = 1; i < N_ELEMS; i++)
        if (str_is(name, elems[i].name))
            return (ElemType)elems[i].number;
    return ELEM_UNDEFINED;
}

const char *elem_dtype(ElemType e) {
    switch (e) {
#define DTYPE(word, id)                                                                            \
    case ELEM_##id: return word;
#include "ir/dtype.def"
    default: return NULL;
    }
}

ElemType elem_from_dtype(const char *dtype) {
#define DTYPE(word, id)                                                                            \
    if (strcmp(dtype, word) == 0)                                                                  \
        return ELEM_##id;
#include "ir/dtype.def"
    return ELEM_UNDEFINED;
}

bool elem_known(int number) {
    return number != ELEM_UNDEFINED && elem_info(number);
}

static char elem_kind(ElemType e) {
    const ElemInfo *info = elem_info((int)e);
    return info ? info->kind : '?';
}

int elem_bits(ElemType e) {
    const ElemInfo *info = elem_info((int)e);
    return info ? info->bits : 0;
}

bool elem_is_int(ElemType e) {
    return elem_kind(e) == 'S' || elem_kind(e) == 'U';
}
bool elem_is_signed(ElemType e) {
    return elem_kind(e) == 'S';
}
bool elem_is_float(ElemType e) {
    return elem_kind(e) == 'F';
}

int64_t elem_min(ElemType e) {
    return elem_is_signed(e) ? INT64_MIN >> (64 - elem_bits(e)) : 0;
}

int64_t elem_max(ElemType e) {
    int value_bits = elem_bits(e) - elem_is_signed(e);
    return value_bits >= 63 ? INT64_MAX : ((int64_t)1 << value_bits) - 1;
}

size_t elem_bytes(ElemType e, size_t count) {
    size_t bits = (size_t)elem_bits(e);
    return bits % 8 == 0 ? count * (bits / 8) : count / 8 * bits + (count % 8 * bits + 7) / 8;
}

/* ---- tensor types ---- */

size_t dims_step(int rank, const int64_t *dims, int axis) {
    size_t step = 1;
    for (int i = axis + 1; i < rank; i++)
        step *= (size_t)dims[i];
    return step;
}

Type type_tensor(ElemType elem, int rank, const Dim *dims) {
    return (Type){.kind = TYPE_TENSOR, .elem = elem, .rank = rank, .dims = dims};
}

Type type_fixed(Arena *a, ElemType elem, int rank, const int64_t *dims) {
    Dim *d = NEW_ARRAY(a, Dim, (size_t)rank);
    for (int i = 0; i < rank; i++)
        d[i].value = dims[i];
    return type_tensor(elem, rank, d);
}

int type_lengths(Type t, int64_t *dims) {
    for (int i = 0; i < t.rank; i++)
        dims[i] = t.dims[i].value;
    return t.rank;
}

Type type_quantized(Type t, const Quant *q) {
    t.elem = q->storage;
    t.quant = q;
    t.tilde = false;
    return t;
}

Type type_tilde(Type t, const Quant *q) {
    t.elem = type_real_elem(t);
    t.quant = q;
    t.tilde = true;
    return t;
}

bool type_is_quantized(Type t) {
    return t.quant && !t.tilde;
}

ElemType type_real_elem(Type t) {
    return type_is_quantized(t) ? t.quant->expressed : t.elem;
}

bool type_is_static(Type t) {
    if (t.kind != TYPE_TENSOR || t.rank < 0)
        return false;
    for (int i = 0; i < t.rank; i++)
        if (t.dims[i].value < 0)
            return false;
    return true;
}

bool dim_equal(Dim x, Dim y) {
    if (x.value >= 0 || y.value >= 0)
        return x.value == y.value;
    return x.param.n && str_eq(x.param, y.param);
}

bool dim_is_named(Dim d) {
    return d.value < 0 && d.param.n && !str_eq(d.param, STR("?"));
}

bool type_first_open(Type t) {
    return t.kind == TYPE_TENSOR && t.rank > 0 && t.dims[0].value < 0;
}

bool dim_is_negative(Dim d) {
    return d.value < 0 && !d.param.s && d.negative < 0;
}

bool type_same_shape(Type x, Type y) {
    if (x.kind != TYPE_TENSOR || y.kind != TYPE_TENSOR || x.rank < 0 || x.rank != y.rank)
        return false;
    for (int i = 0; i < x.rank; i++)
        if (!dim_equal(x.dims[i], y.dims[i]))
            return false;
    return true;
}

bool type_count(Type t, size_t *count) {
    if (!type_is_static(t))
        return false;
    size_t n = 1;
    bool overflow = false, zero = false;
    for (int i = 0; i < t.rank; i++) {
        zero |= t.dims[i].value == 0;
        overflow |= __builtin_mul_overflow(n, (size_t)t.dims[i].value, &n);
    }
    *count = zero ? 0 : n;
    return zero || !overflow;
}

/* ---- printing ---- */

static bool is_letter(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}
static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool name_is_bare(Str s) {
    for (size_t i = 0; i < s.n; i++) {
        char c = s.s[i];
        if (is_letter(c) || is_digit(c) || c == '.' || c == '/' || c == '$' || c == '-')
            continue;
        if (c == ':' && i > 0 && i + 2 < s.n && s.s[i + 1] == ':' && s.s[i + 2] != ':') {
            i++;
            continue;
        }
        return false;
    }
    return s.n > 0;
}

void name_print(Buf *b, char sigil, Str name) {
    buf_byte(b, sigil);
    if (name_is_bare(name))
        buf_str(b, name);
    else
        buf_quoted(b, name);
}

/* A dimension's name stands without a sigil, so bare ones look like identifiers only. */
static void dim_name_print(Buf *b, Str s) {
    bool bare = s.n > 0 && is_letter(s.s[0]) && !str_is(s, "inf") && !str_is(s, "nan");
    for (size_t i = 1; i < s.n; i++)
        bare = bare && (is_letter(s.s[i]) || is_digit(s.s[i]));
    if (bare)
        buf_str(b, s);
    else
        buf_quoted(b, s);
}

static void denotation_print(Buf *b, Str denotation) {
    if (denotation.s) {
        buf_byte(b, ' ');
        buf_quoted(b, denotation);
    }
}

static void dims_print(Buf *b, Type t) {
    buf_byte(b, '[');
    if (t.rank < 0)
        buf_byte(b, '*');
    for (int i = 0; i < t.rank; i++) {
        Dim d = t.dims[i];
        if (i)
            buf_byte(b, ',');
        if (d.value >= 0)
            buf_i64(b, d.value);
        else if (d.param.s)
            dim_name_print(b, d.param);
        else
            buf_byte(b, '?');
        if (dim_is_negative(d))
            buf_i64(b, d.negative);
        denotation_print(b, d.denotation);
    }
    buf_byte(b, ']');
}

static void quant_ref_print(Buf *b, const Quant *q) {
    if (q->alias.s)
        name_print(b, '!', q->alias);
    else
        quant_print(b, q);
}

static void tensor_type_print(Buf *b, Type t) {
    if (type_is_quantized(t))
        quant_ref_print(b, t.quant);
    else
        buf_text(b, elem_name(t.elem));
    dims_print(b, t);
    denotation_print(b, t.denotation);
    if (t.quant && t.tilde) {
        buf_text(b, " ~ ");
        quant_ref_print(b, t.quant);
    }
}

void type_print(Buf *b, Type t) {
    const char *open = NULL;
    switch (t.kind) {
    case TYPE_NONE: buf_byte(b, '?'); return;
    case TYPE_TENSOR: tensor_type_print(b, t); return;
    case TYPE_SEQ: open = "seq<"; break;
    case TYPE_OPTIONAL: open = "optional<"; break;
    case TYPE_SPARSE: open = "sparse<"; break;
    case TYPE_MAP: open = "map<"; break;
    }
    buf_text(b, open);
    if (t.kind == TYPE_MAP) {
        buf_text(b, elem_name(t.key));
        buf_text(b, ", ");
    }
    type_print(b, t.sub ? *t.sub : TYPE_UNKNOWN);
    buf_byte(b, '>');
    denotation_print(b, t.denotation);
}

const char *type_text(Arena *a, Type t) {
    Buf b = buf_new(a);
    type_print(&b, t);
    return buf_as_str(&b).s;
}
