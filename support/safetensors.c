#include "support/safetensors.h"

#include <jansson.h>

#include "support/map.h"

enum { MAX_RANK = 64, MAX_HEADER = 100 * 1000 * 1000 };

struct SafeTensors {
    StTensor *tensors;
    size_t n, cap;
    Map *by_name, *metadata; /* to StTensor, to Str */
};

/* What the steps of reading share. */
typedef struct Reader {
    Arena *arena;
    SafeTensors *st;
    Str data; /* all tensors' bytes */
    const char *file;
    Loc at;
    Diags *diags;
} Reader;

static const struct {
    const char *name;
    int bits;
} dtypes[] = {
    {"BOOL", 8},    {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},
    {"F8_E8M0", 8}, {"I16", 16}, {"U16", 16}, {"F16", 16},    {"BF16", 16},
    {"I32", 32},    {"U32", 32}, {"F32", 32}, {"I64", 64},    {"U64", 64},
    {"F64", 64},    {"C64", 64}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6},
};

static const char *find_dtype(const char *dtype, int *bits) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].name, dtype) == 0) {
            *bits = dtypes[i].bits;
            return dtypes[i].name;
        }
    return NULL;
}

int st_dtype_bits(const char *dtype) {
    int bits = 0;
    find_dtype(dtype, &bits);
    return bits;
}

static bool fail(const Reader *r, const char *why) {
    return diag_error(r->diags, r->at, "cannot read '%s': %s", r->file, why);
}

static bool fail_tensor(const Reader *r, Str name, const char *why) {
    return diag_error(r->diags, r->at, "cannot read '%s', tensor \"%s\": %s", r->file,
                      diag_name(r->diags, name), why);
}

/* The list of non-negative integers under `key`; -1 when it is anything else. */
static int take_numbers(json_t *object, const char *key, int64_t *out, int most) {
    json_t *list = json_object_get(object, key);
    size_t n = json_array_size(list); /* 0 when it is no list */
    if (!json_is_array(list) || n > (size_t)most)
        return -1;
    for (size_t i = 0; i < n; i++) {
        json_t *v = json_array_get(list, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return -1;
        out[i] = json_integer_value(v);
    }
    return (int)n;
}

/* Bytes of a tensor, false when there is no such number. */
static bool byte_size(int bits, int rank, const int64_t *dims, int64_t *bytes) {
    int64_t n = bits;
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(n, dims[i], &n))
            return false;
    *bytes = n / 8;
    return n % 8 == 0;
}

static bool take_tensor(const Reader *r, Str name, json_t *entry) {
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    StTensor t = {.name = arena_str(r->arena, name)};
    int bits = 0;
    t.dtype = dtype ? find_dtype(dtype, &bits) : NULL;
    if (!t.dtype)
        return fail_tensor(r, name, "it has no dtype that we know");

    int64_t dims[MAX_RANK], offsets[2], bytes;
    t.rank = take_numbers(entry, "shape", dims, MAX_RANK);
    if (t.rank < 0)
        return fail_tensor(r, name, "its shape is not a list of dimensions");
    if (take_numbers(entry, "data_offsets", offsets, 2) != 2)
        return fail_tensor(r, name, "its data_offsets are not two numbers");
    if (offsets[0] > offsets[1] || (uint64_t)offsets[1] > r->data.n)
        return fail_tensor(r, name, "its data_offsets are outside the file");
    if (!byte_size(bits, t.rank, dims, &bytes) || bytes != offsets[1] - offsets[0])
        return fail_tensor(r, name, "its data_offsets do not fit its shape");

    t.dims = arena_copy(r->arena, dims, (size_t)t.rank * sizeof *dims);
    t.data = (Str){r->data.s + offsets[0], (size_t)bytes};
    ARENA_PUSH(r->arena, r->st->tensors, r->st->n, r->st->cap, t);
    return true;
}

static bool take_metadata(const Reader *r, json_t *object) {
    const char *key;
    json_t *v;
    if (!json_is_object(object))
        return fail(r, "its __metadata__ is not an object");
    json_object_foreach(object, key, v) {
        if (!json_is_string(v))
            return fail(r, "its __metadata__ holds something that is not text");
        Str text = {json_string_value(v), json_string_length(v)}, *copy = NEW(r->arena, Str);
        *copy = arena_str(r->arena, text);
        map_set(r->st->metadata, arena_str(r->arena, str_from(key)), copy);
    }
    return true;
}

static bool take_header(const Reader *r, json_t *root) {
    const char *key;
    json_t *entry;
    if (!json_is_object(root))
        return fail(r, "its header is not an object");
    bool good = true;
    json_object_foreach(root, key, entry) {
        if (strcmp(key, "__metadata__") == 0)
            good &= take_metadata(r, entry);
        else
            good &= take_tensor(r, str_from(key), entry);
    }
    for (size_t i = 0; i < r->st->n; i++) /* now that the array no longer moves */
        map_set(r->st->by_name, r->st->tensors[i].name, &r->st->tensors[i]);
    return good;
}

/* The header's text, and in r->data what follows it. */
static bool split(Reader *r, Str bytes, Str *header) {
    uint64_t n = 0;
    if (bytes.n < 8)
        return fail(r, "it is too short for a safetensors file");
    for (int i = 7; i >= 0; i--)
        n = n << 8 | (unsigned char)bytes.s[i];
    if (n > bytes.n - 8 || n > MAX_HEADER)
        return fail(r, "its header is longer than the file or than 100 MB");
    *header = (Str){bytes.s + 8, (size_t)n};
    r->data = (Str){bytes.s + 8 + n, bytes.n - 8 - (size_t)n};
    return true;
}

SafeTensors *st_parse(Arena *a, Str bytes, const char *file, Loc at, Diags *d) {
    SafeTensors *st = NEW(a, SafeTensors);
    st->by_name = map_new(a);
    st->metadata = map_new(a);
    Reader r = {.arena = a, .st = st, .file = file, .at = at, .diags = d};
    Str header;
    if (!split(&r, bytes, &header))
        return NULL;
    json_error_t error;
    json_t *root = json_loadb(header.s, header.n, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        fail(&r, arena_strf(a, "its header is not JSON: %s", error.text).s);
        return NULL;
    }
    bool good = take_header(&r, root);
    json_decref(root);
    return good ? st : NULL;
}

size_t st_size(const SafeTensors *s) {
    return s->n;
}
const StTensor *st_at(const SafeTensors *s, size_t i) {
    return &s->tensors[i];
}
const StTensor *st_find(const SafeTensors *s, Str name) {
    return map_get(s->by_name, name);
}

Str st_metadata(const SafeTensors *s, Str key) {
    const Str *text = map_get(s->metadata, key);
    return text ? *text : STR_NONE;
}
