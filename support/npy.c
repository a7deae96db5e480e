#include "support/npy.h"

#include <assert.h>

static const struct {
    int elem;
    char dtype[4];
} types[] = {
    {1, "<f4"}, {2, "|u1"}, {3, "|i1"},  {4, "<u2"},  {5, "<i2"},  {6, "<i4"},
    {7, "<i8"}, {9, "|b1"}, {10, "<f2"}, {11, "<f8"}, {12, "<u4"}, {13, "<u8"},
};

static const bool big_endian_host = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

const char *npy_dtype(int elem) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].elem == elem)
            return types[i].dtype;
    return NULL;
}

size_t npy_elem_size(int elem) {
    const char *dtype = npy_dtype(elem);
    return dtype ? (size_t)(dtype[2] - '0') : 0;
}

size_t npy_header_size(const char prefix[NPY_PREFIX], const char **why) {
    const unsigned char *p = (const unsigned char *)prefix;
    size_t size = 0;
    if (memcmp(p, "\x93NUMPY", 6) != 0)
        *why = "it is not a .npy array";
    else if (p[6] == 1)
        size = 10 + (size_t)(p[8] | p[9] << 8);
    else if (p[6] == 2 || p[6] == 3)
        size = 12 + (p[8] | (size_t)p[9] << 8 | (size_t)p[10] << 16 | (size_t)p[11] << 24);
    else
        *why = "its .npy version is unknown";
    if (size > NPY_MAX_HEADER) {
        *why = "its header is too long";
        size = 0;
    }
    /* The shortest useful header is far longer than the prefix. */
    if (size && size < NPY_PREFIX) {
        *why = "its header is too short";
        size = 0;
    }
    return size;
}

/* The header's text is a literal of a Python dict, of which NumPy writes a small part. */
typedef struct Scanner {
    const char *p, *end;
} Scanner;

static void skip_space(Scanner *s) {
    while (s->p < s->end && strchr(" \t\n\r", *s->p) && *s->p)
        s->p++;
}

static bool take(Scanner *s, char c) {
    skip_space(s);
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

static bool take_word(Scanner *s, const char *word) {
    skip_space(s);
    if (!str_starts((Str){s->p, (size_t)(s->end - s->p)}, word))
        return false;
    s->p += strlen(word);
    return true;
}

/* A quoted string without escapes. */
static bool take_string(Scanner *s, Str *out) {
    skip_space(s);
    if (s->p == s->end || (*s->p != '\'' && *s->p != '"'))
        return false;
    char quote = *s->p++;
    const char *close = memchr(s->p, quote, (size_t)(s->end - s->p));
    if (!close)
        return false;
    *out = (Str){s->p, (size_t)(close - s->p)};
    s->p = close + 1;
    return !memchr(out->s, '\\', out->n) && !memchr(out->s, '\n', out->n);
}

static bool take_dim(Scanner *s, int64_t *out) {
    skip_space(s);
    const char *start = s->p;
    int64_t v = 0;
    for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *s->p - '0', &v))
            return false;
    *out = v;
    bool digits = s->p > start;
    if (digits && s->p < s->end && *s->p == 'L') /* Python 2 */
        s->p++;
    return digits;
}

static const char *take_shape(Scanner *s, NpyArray *out) {
    static const char bad[] = "its shape is not a tuple of numbers";
    if (!take(s, '('))
        return bad;
    while (!take(s, ')')) {
        if (out->rank == NPY_MAX_RANK)
            return "it has more than 32 dimensions";
        if (!take_dim(s, &out->dims[out->rank++]))
            return bad;
        if (!take(s, ',')) {
            /* Python's one-tuple needs the comma: (3) is a number. */
            if (!take(s, ')') || out->rank == 1)
                return bad;
            break;
        }
    }
    return NULL;
}

static void set_type(Arena *a, Str dtype, NpyArray *out) {
    out->dtype = arena_str(a, dtype).s;
    if (dtype.n != 3)
        return;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (memcmp(dtype.s + 1, types[i].dtype + 1, 2) == 0 && strchr("<>|=", dtype.s[0]) &&
            dtype.s[0]) {
            out->elem = types[i].elem;
            out->elem_size = (size_t)(dtype.s[2] - '0');
            bool other = big_endian_host ? dtype.s[0] == '<' : dtype.s[0] == '>';
            out->swapped = other && out->elem_size > 1;
        }
}

static const char *take_entry(Arena *a, Scanner *s, NpyArray *out, unsigned *seen) {
    static const char bad[] = "its header is not the dictionary that NumPy writes";
    Str key, value;
    if (!take_string(s, &key) || !take(s, ':'))
        return bad;
    unsigned which = str_is(key, "descr") ? 1 : str_is(key, "fortran_order") ? 2 : 4;
    if ((which == 4 && !str_is(key, "shape")) || (*seen & which))
        return bad;
    *seen |= which;
    if (which == 4)
        return take_shape(s, out);
    if (which == 2) {
        out->fortran = take_word(s, "True");
        return out->fortran || take_word(s, "False") ? NULL : bad;
    }
    if (!take_string(s, &value))
        return "its elements are records, which are not supported";
    set_type(a, value, out);
    return NULL;
}

/* Sets the number of elements; false when they or their bytes would not fit an int64_t. A zero
 * among the dimensions does not make huge ones harmless: strides are products too. */
static bool count_elements(NpyArray *out) {
    int64_t n = 1, bytes;
    bool empty = false;
    int large = 0;
    for (int i = 0; i < out->rank; i++) {
        empty |= out->dims[i] == 0;
        large += out->dims[i] > 1;
        if (out->dims[i] && __builtin_mul_overflow(n, out->dims[i], &n))
            return false;
    }
    if (__builtin_mul_overflow(n, (int64_t)(out->elem_size ? out->elem_size : 1), &bytes))
        return false;
    out->count = empty ? 0 : (uint64_t)n;
    out->fortran &= large > 1;
    return true;
}

const char *npy_parse(Arena *a, Str header, NpyArray *out) {
    size_t prefix = header.s[6] == 1 ? 10 : 12;
    Scanner s = {header.s + prefix, header.s + header.n};
    *out = (NpyArray){.header = header.n, .dtype = ""};
    unsigned seen = 0;
    if (!take(&s, '{'))
        return "its header is not a dictionary";
    while (!take(&s, '}')) {
        const char *why = take_entry(a, &s, out, &seen);
        if (why)
            return why;
        if (!take(&s, ',')) {
            if (!take(&s, '}'))
                return "its header is not a dictionary";
            break;
        }
    }
    skip_space(&s);
    if (s.p != s.end)
        return "its header goes on after the dictionary";
    if (seen != 7)
        return "its header lacks descr, fortran_order or shape";
    return count_elements(out) ? NULL : "its shape is too large";
}

void npy_put_header(Buf *b, int elem, int rank, const int64_t *dims) {
    const char *dtype = npy_dtype(elem);
    assert(dtype && rank <= NPY_MAX_RANK);
    size_t start = b->n;
    buf_put(b, "\x93NUMPY\x01\0\0\0", 10);
    buf_fmt(b, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype);
    for (int i = 0; i < rank; i++) {
        buf_i64(b, dims[i]);
        buf_text(b, rank == 1 ? "," : i + 1 < rank ? ", " : "");
    }
    buf_text(b, "), }");
    while ((b->n - start + 1) % 64 != 0) /* the data start at a multiple of 64 */
        buf_byte(b, ' ');
    buf_byte(b, '\n');
    size_t size = b->n - start - 10;
    b->p[start + 8] = (char)(size & 0xFF);
    b->p[start + 9] = (char)(size >> 8);
}
