/* Writing safetensors; safetensors.c reads them. */
#include <assert.h>

#include "support/buf.h"
#include "support/map.h"
#include "support/safetensors.h"
#include "support/utf8.h"

struct StWriter {
    Arena *arena;
    Map *names;
    Buf metadata, tensors; /* members of the two JSON objects, as text */
    uint64_t offset;       /* bytes of data so far */
    Str *data;
    size_t n, cap;
};

StWriter *st_writer(Arena *a) {
    StWriter *w = NEW(a, StWriter);
    *w = (StWriter){.arena = a, .names = map_new(a)};
    w->metadata = w->tensors = buf_new(a);
    return w;
}

/* Appends a JSON string; false, and nothing appended, when the text is not UTF-8. */
static bool put_json(Buf *b, Str s) {
    size_t start = b->n;
    buf_byte(b, '"');
    for (size_t i = 0, len; i < s.n; i += len) {
        uint32_t c;
        len = utf8_decode(s.s + i, s.n - i, &c);
        if (!len) {
            b->n = start;
            return false;
        }
        if (c < 0x20)
            buf_fmt(b, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            buf_fmt(b, "\\%c", (char)c);
        else
            buf_put(b, s.s + i, len);
    }
    buf_byte(b, '"');
    return true;
}

bool st_add_metadata(StWriter *w, Str key, Str text) {
    Buf *b = &w->metadata;
    size_t start = b->n;
    if (b->n)
        buf_byte(b, ',');
    bool good = put_json(b, key);
    buf_byte(b, ':');
    if (good && put_json(b, text))
        return true;
    b->n = start;
    return false;
}

static bool fits(const char *dtype, int rank, const int64_t *dims, size_t bytes) {
    size_t bits = (size_t)st_dtype_bits(dtype);
    for (int i = 0; i < rank; i++)
        bits *= (size_t)dims[i];
    return st_dtype_bits(dtype) && bits == 8 * bytes;
}

bool st_add(StWriter *w, Str name, const char *dtype, int rank, const int64_t *dims, Str data) {
    assert(fits(dtype, rank, dims, data.n));
    Buf *b = &w->tensors;
    size_t start = b->n;
    if (b->n)
        buf_byte(b, ',');
    /* Readers that keep C strings cannot hold a NUL either. */
    bool bad = memchr(name.s, 0, name.n) || str_is(name, "__metadata__");
    if (bad || !put_json(b, name) || !map_set(w->names, arena_str(w->arena, name), w)) {
        b->n = start;
        return false;
    }
    buf_fmt(b, ":{\"dtype\":\"%s\",\"shape\":[", dtype);
    for (int i = 0; i < rank; i++) {
        buf_text(b, i ? "," : "");
        buf_i64(b, dims[i]);
    }
    buf_text(b, "],\"data_offsets\":[");
    buf_u64(b, w->offset);
    buf_byte(b, ',');
    buf_u64(b, w->offset += data.n);
    buf_text(b, "]}");
    ARENA_PUSH(w->arena, w->data, w->n, w->cap, data);
    return true;
}

static void write_data(Str data, FILE *f, StWrote *wrote, void *ctx) {
    enum { PART = 1 << 22 };
    while (data.n && !ferror(f)) {
        Str part = {data.s, data.n < PART ? data.n : PART};
        fwrite(part.s, 1, part.n, f);
        if (wrote)
            wrote(part, ctx);
        data = (Str){data.s + part.n, data.n - part.n};
    }
}

void st_write(StWriter *w, FILE *f, StWrote *wrote, void *ctx) {
    Buf header = buf_new(w->arena);
    buf_byte(&header, '{');
    if (w->metadata.n) {
        buf_text(&header, "\"__metadata__\":{");
        buf_str(&header, buf_as_str(&w->metadata));
        buf_text(&header, w->n ? "}," : "}");
    }
    buf_str(&header, buf_as_str(&w->tensors));
    buf_byte(&header, '}');
    while (header.n % 8 != 0)
        buf_byte(&header, ' ');
    unsigned char size[8];
    for (int i = 0; i < 8; i++)
        size[i] = (unsigned char)((uint64_t)header.n >> (8 * i));
    fwrite(size, 1, sizeof size, f);
    fwrite(header.p, 1, header.n, f);
    for (size_t i = 0; i < w->n; i++)
        write_data(w->data[i], f, wrote, ctx);
}
