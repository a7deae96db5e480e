/* Data that stand in other files: safetensors blobs and ONNX's external data. Files are mapped
 * when their first tensor is read and stay mapped with the module. */
#include "frontend/qir/reader.h"
#include "support/safetensors.h"
#include "support/sha256.h"

struct BlobFile {
    Blob *blob;
    SafeTensors *tensors; /* NULL: not opened, or failed */
    bool failed;
};

static void check_declared_size(Reader *r, const Blob *b, const Attr *a, size_t size) {
    if (a->kind != ATTR_INT)
        diag_error(r->diags, a->loc, "bytes is the size of the file");
    else if (a->v.i[0] != (int64_t)size)
        diag_error(r->diags, b->loc, "%s has %zu bytes, not %lld as stated", shown(r, b->path),
                   size, (long long)a->v.i[0]);
}

static void check_declared_sum(Reader *r, const Blob *b, const Attr *a, const FileMap *map) {
    Str want = a->kind == ATTR_STRING ? a->v.s[0] : STR_NONE;
    bool ok = want.n == SHA256_HEX;
    for (size_t i = 0; ok && i < want.n; i++)
        ok = (want.s[i] >= '0' && want.s[i] <= '9') || (want.s[i] >= 'a' && want.s[i] <= 'f');
    if (!ok) {
        diag_error(r->diags, a->loc, "sha256 is a string of 64 digits 0-9 a-f");
        return;
    }
    char got[SHA256_HEX + 1];
    if (r->options.skip_checksums)
        return;
    file_sha256(map, got);
    if (memcmp(got, want.s, SHA256_HEX) == 0)
        return;
    diag_error(r->diags, b->loc, "%s has sha256 %s, not %.*s as stated", shown(r, b->path), got,
               STR_ARG(want));
    diag_note(r->diags, b->loc,
              "it was changed, or is the file of another text; where the change is meant, take "
              "sha256 and the checksums of what has changed out of the text");
}

/* What the blob line says of the file. */
static void check_declared(Reader *r, const Blob *b, const FileMap *map) {
    for (size_t i = 0; i < b->n_attrs; i++) {
        if (str_is(b->attrs[i].name, "bytes"))
            check_declared_size(r, b, &b->attrs[i], file_bytes(map).n);
        else if (str_is(b->attrs[i].name, "sha256"))
            check_declared_sum(r, b, &b->attrs[i], map);
    }
}

static SafeTensors *open_blob(Reader *r, BlobFile *f) {
    if (f->tensors || f->failed)
        return f->tensors;
    FileMap *map = file_map_beside(r->in, f->blob->path, NULL, f->blob->loc, r->diags);
    f->failed = true;
    if (!map)
        return NULL;
    module_keep_map(r->module, map);
    check_declared(r, f->blob, map);
    f->tensors =
        st_parse(r->arena, file_bytes(map), shown(r, f->blob->path), f->blob->loc, r->diags);
    return f->tensors;
}

/* What a newer qxc may state is kept; most likely it is a slip. */
static void warn_unknown(Reader *r, const Blob *b) {
    static const char *const known[] = {"bytes", "sha256"};
    for (size_t i = 0; i < b->n_attrs; i++) {
        const Attr *a = &b->attrs[i];
        if (str_is(a->name, known[0]) || str_is(a->name, known[1]))
            continue;
        diag_warning(r->diags, a->loc, "a blob line says bytes and sha256; '%s' is not checked",
                     shown(r, a->name));
        diag_did_you_mean(r->diags, a->loc, a->name, known, 2);
    }
}

void read_blob(Reader *r, Token name, Token path, const Span *fields) {
    Module *m = r->module;
    Blob b = {.name = with_sigil(r, '@', str_of(r, name)),
              .path = str_of(r, path),
              .loc = loc_of(r, range_of(path))};
    if (fields)
        b.n_attrs = read_plain_attrs(r, *fields, "a blob line", &b.attrs);
    warn_unknown(r, &b);
    if (map_get(r->blobs, b.name)) {
        error_at(r, range_of(name), "%s is defined twice", shown(r, b.name));
        return;
    }
    ARENA_PUSH(r->arena, m->blobs, m->n_blobs, m->cap_blobs, b);
    BlobFile *f = NEW(r->arena, BlobFile);
    f->blob = arena_copy(r->arena, &b, sizeof b);
    map_set(r->blobs, b.name, f);
}

/* "crc32:5d349e46" */
bool read_checksum(Reader *r, const Val *v, Tensor *x) {
    Str text;
    if (!val_str(r, v, "a checksum", &text))
        return false;
    bool ok = text.n == 14 && str_starts(text, "crc32:");
    for (size_t i = 6; ok && i < text.n; i++) {
        ok = hex_digit(text.s[i]) >= 0;
        x->crc32 = x->crc32 << 4 | ((uint32_t)hex_digit(text.s[i]) & 0xF);
    }
    x->has_crc32 = ok;
    return ok || error_at(r, v->at, "a checksum is \"crc32:\" and eight digits 0-9 a-f");
}

static BlobFile *find_blob(Reader *r, const Val *v) {
    if (v->kind != VAL_SYM) {
        error_at(r, v->at,
                 "blob(...) begins with the name of a blob line, as in blob(@w, \"key\")");
        return NULL;
    }
    Str word = str_at(r, v->word), name = with_sigil(r, '@', word);
    BlobFile *f = map_get(r->blobs, name);
    if (!f && !is_broken(r, '@', word)) {
        error_at(r, v->at, "no blob is called %s", shown(r, name));
        suggest_key(r, v->at, name, r->blobs);
        if (map_size(r->blobs) == 0)
            note_at(r, v->at,
                    "a line in front of the graph names the file: blob @w \"file.safetensors\"");
        map_set(r->broken, name, r); /* said once */
    }
    return f;
}

typedef struct Keys {
    const SafeTensors *st;
    size_t i;
} Keys;

static bool next_key(void *ctx, Str *key) {
    Keys *keys = ctx;
    if (keys->i == st_size(keys->st))
        return false;
    *key = st_at(keys->st, keys->i++)->name;
    return true;
}

static bool check_crc(Reader *r, const Val *v, const Tensor *x) {
    if (!x->has_crc32 || r->options.skip_checksums)
        return true;
    uint32_t got = crc32_of(x->data, x->bytes);
    return got == x->crc32 ||
           error_at(r, v->at, "checksum mismatch: the file's data have crc32:%08x", got);
}

static const char *st_type_text(Arena *a, const StTensor *t) {
    Buf b = buf_new(a);
    buf_text(&b, t->dtype);
    for (int i = 0; i < t->rank; i++)
        buf_fmt(&b, "%s%lld", i ? "," : "[", (long long)t->dims[i]);
    buf_text(&b, t->rank ? "]" : "[]");
    return buf_as_str(&b).s;
}

/* Elements that the format has no name for stand there as bytes; those of float8 did. */
static bool may_be_bytes(ElemType e) {
    return elem_bits(e) && (elem_bits(e) < 8 || (elem_is_float(e) && elem_bits(e) == 8));
}

static bool is_of_type(const StTensor *in, const Tensor *x) {
    const char *dtype = elem_dtype(x->elem);
    if (may_be_bytes(x->elem) && strcmp(in->dtype, "U8") == 0 && in->rank == 1)
        return in->data.n == x->bytes;
    return dtype && strcmp(in->dtype, dtype) == 0 && in->rank == x->rank &&
           (x->rank == 0 || memcmp(in->dims, x->dims, (size_t)x->rank * sizeof *x->dims) == 0);
}

bool blob_tensor(Reader *r, const Type *t, const Val *v, Tensor *x) {
    const Field *arg = v->u.args;
    if (v->n < 2 || v->n > 3)
        return error_at(r, v->at, "expected blob(@name, \"key\", \"crc32:...\")");
    BlobFile *f = find_blob(r, &arg[0].val);
    Str key;
    if (!f || !val_str(r, &arg[1].val, "the key of a blob", &key) ||
        (v->n == 3 && !read_checksum(r, &arg[2].val, x)))
        return false;
    SafeTensors *st = open_blob(r, f);
    if (!st)
        return false; /* reported at the blob line */
    const StTensor *in = st_find(st, key);
    if (!in) {
        error_at(r, arg[1].at, "%s holds no tensor \"%s\"", shown(r, f->blob->path), shown(r, key));
        diag_did_you_mean_next(r->diags, loc_of(r, arg[1].at), key, next_key, &(Keys){st, 0});
        return false;
    }
    if (!is_of_type(in, x))
        return error_at(r, v->at, "\"%s\" is %s in %s, not %s", shown(r, key),
                        st_type_text(r->arena, in), shown(r, f->blob->path),
                        type_text(r->arena, *t));
    x->place = TENSOR_BLOB;
    x->data = (const uint8_t *)in->data.s;
    x->blob = f->blob->name;
    x->blob_key = key;
    return check_crc(r, v, x);
}

static Tensor *blob_reference(Reader *r, const Val *v) {
    Tensor *x = NEW(r->arena, Tensor);
    x->place = TENSOR_BLOB;
    x->loc = loc_of(r, v->at);
    x->blob = with_sigil(r, '@', str_at(r, v->u.args[0].val.word));
    if (!val_str(r, &v->u.args[1].val, "the key of a blob", &x->blob_key) ||
        (v->n == 3 && !read_checksum(r, &v->u.args[2].val, x)))
        return NULL;
    return x;
}

Tensor *blob_of_any_type(Reader *r, const Val *v) {
    if (v->n < 2 || v->n > 3 || v->u.args[0].val.kind != VAL_SYM) {
        error_at(r, v->at, "expected blob(@name, \"key\", \"crc32:...\")");
        return NULL;
    }
    Tensor *x = blob_reference(r, v);
    BlobFile *f = x ? map_get(r->blobs, x->blob) : NULL;
    SafeTensors *st = f ? open_blob(r, f) : NULL;
    if (!x || (f && !st))
        return NULL;
    const StTensor *in = st ? st_find(st, x->blob_key) : NULL;
    if (!in) {
        diag_warning(r->diags, loc_of(r, v->at), "%s %s: only the reference is kept",
                     st ? "there is no such tensor in" : "no blob is called", shown(r, x->blob));
        return x;
    }
    ElemType e = elem_from_dtype(in->dtype);
    int64_t bytes = (int64_t)in->data.n;
    bool raw = e == ELEM_UNDEFINED;
    Type t = raw ? type_fixed(r->arena, ELEM_UINT8, 1, &bytes)
                 : type_fixed(r->arena, e, in->rank, in->dims);
    return read_literal(r, &t, v);
}

/* ---- external data ---- */

static bool has_keys(const Val *v) {
    for (uint32_t i = 0; i < v->n; i++)
        if (v->u.args[i].has_key)
            return true;
    return false;
}

/* key="value", or "key" alone; `_` stands for a key that is not there, as in metadata. */
static bool external_with_key(Reader *r, const Field *f, StrPair *item) {
    bool no_key = r->text.s[f->at.begin] == '_' && f->at.end == f->at.begin + 1;
    if (f->has_key) {
        item->key = no_key ? STR_NONE : f->key;
        return val_str(r, &f->val, "an entry of external(...)", &item->value);
    }
    return no_key || val_str(r, &f->val, "a key of external(...)", &item->key);
}

static bool external_by_place(Reader *r, const Field *f, uint32_t i, StrPair *item) {
    static const char *const keys[] = {"location", "offset", "length"};
    if (i >= 3)
        return error_at(r, f->at, "expected external(\"file\", offset, length)");
    item->key = str_from(keys[i]);
    if (i == 0)
        return val_str(r, &f->val, "the file of external(...)", &item->value);
    int64_t n;
    if (!val_int(r, &f->val, keys[i], &n))
        return false;
    item->value = arena_strf(r->arena, "%lld", (long long)n);
    return true;
}

/* external("w.bin", 0, 12), or with the keys that ONNX gives. */
static bool read_external_args(Reader *r, const Val *v, Tensor *x) {
    StrPair *items = NEW_ARRAY(r->arena, StrPair, v->n);
    bool keys = has_keys(v);
    for (uint32_t i = 0; i < v->n; i++) {
        const Field *f = &v->u.args[i];
        if (!(keys ? external_with_key(r, f, &items[i]) : external_by_place(r, f, i, &items[i])))
            return false;
        if (f->clauses)
            items[i].extra = f->clauses->extra;
    }
    x->external = (Meta){items, v->n};
    return true;
}

bool external_tensor(Reader *r, const Val *v, Tensor *x) {
    x->place = TENSOR_EXTERNAL;
    return read_external_args(r, v, x) &&
           external_read(&r->externals, x, loc_of(r, v->at), r->diags);
}
