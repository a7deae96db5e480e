/* Writes .npz: a zip archive without compression. Sizes and offsets that do not fit 32 bits, and
 * more than 65535 entries, take the zip64 fields. */
#include "support/file.h"
#include "support/npz.h"
#include "support/utf8.h"

typedef struct Entry {
    Str name; /* with .npy */
    uint64_t offset, size;
    uint32_t crc;
    bool utf8; /* the name is; else nobody knows how to read it, and it goes out unmarked */
} Entry;

struct NpzWriter {
    Arena *arena;
    FILE *f;
    Buf buf;
    uint64_t offset; /* bytes written so far */
    Entry *entries;
    size_t n, cap;
};

enum {
    STORED_VERSION = 20, /* of the zip format, needed to extract */
    ZIP64_VERSION = 45,
    UTF8_NAME = 0x0800,
    DATE = 1 << 5 | 1 /* 1980-01-01, the first that zip knows */
};

NpzWriter *npz_writer(Arena *a, FILE *f) {
    NpzWriter *w = NEW(a, NpzWriter);
    *w = (NpzWriter){.arena = a, .f = f, .buf = buf_new(a)};
    return w;
}

static void put(Buf *b, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++)
        buf_byte(b, (char)(v >> (8 * i) & 0xFF));
}

static uint64_t clip(uint64_t v, int bytes) {
    uint64_t most = ((uint64_t)1 << (8 * bytes)) - 1;
    return v < most ? v : most;
}

static bool is_large(uint64_t v) {
    return v >= 0xFFFFFFFF;
}

/* The part that the header before an entry and the central directory share. */
static void put_common(Buf *b, const Entry *e, bool large, int extra) {
    put(b, large ? ZIP64_VERSION : STORED_VERSION, 2);
    put(b, e->utf8 ? UTF8_NAME : 0, 2);
    put(b, 0, 2); /* stored */
    put(b, 0, 2); /* time */
    put(b, DATE, 2);
    put(b, e->crc, 4);
    put(b, clip(e->size, 4), 4);
    put(b, clip(e->size, 4), 4);
    put(b, e->name.n, 2);
    put(b, (uint64_t)extra, 2);
}

static void put_local(Buf *b, const Entry *e) {
    bool large = is_large(e->size);
    put(b, 0x04034B50, 4);
    put_common(b, e, large, large ? 20 : 0);
    buf_str(b, e->name);
    if (large) {
        put(b, 1, 2);
        put(b, 16, 2);
        put(b, e->size, 8);
        put(b, e->size, 8);
    }
}

static void put_central(Buf *b, const Entry *e) {
    int fields = (is_large(e->size) ? 16 : 0) + (is_large(e->offset) ? 8 : 0);
    put(b, 0x02014B50, 4);
    put(b, ZIP64_VERSION, 2);
    put_common(b, e, fields > 0, fields ? fields + 4 : 0);
    put(b, 0, 2); /* comment */
    put(b, 0, 2); /* disk */
    put(b, 0, 2);
    put(b, 0, 4); /* attributes */
    put(b, clip(e->offset, 4), 4);
    buf_str(b, e->name);
    if (!fields)
        return;
    put(b, 1, 2);
    put(b, (uint64_t)fields, 2);
    if (is_large(e->size)) {
        put(b, e->size, 8);
        put(b, e->size, 8);
    }
    if (is_large(e->offset))
        put(b, e->offset, 8);
}

static void put_end(Buf *b, uint64_t n, uint64_t start, uint64_t size) {
    if (n >= 0xFFFF || is_large(start) || is_large(size)) {
        put(b, 0x06064B50, 4);
        put(b, 44, 8);
        put(b, ZIP64_VERSION, 2);
        put(b, ZIP64_VERSION, 2);
        put(b, 0, 8); /* disks */
        put(b, n, 8);
        put(b, n, 8);
        put(b, size, 8);
        put(b, start, 8);
        put(b, 0x07064B50, 4);
        put(b, 0, 4);
        put(b, start + size, 8);
        put(b, 1, 4);
    }
    put(b, 0x06054B50, 4);
    put(b, 0, 4); /* disks */
    put(b, clip(n, 2), 2);
    put(b, clip(n, 2), 2);
    put(b, clip(size, 4), 4);
    put(b, clip(start, 4), 4);
    put(b, 0, 2); /* comment */
}

static void flush(NpzWriter *w) {
    fwrite(w->buf.p, 1, w->buf.n, w->f);
    w->offset += w->buf.n;
    w->buf.n = 0;
}

/* Elements go out as they lie in memory, which .npy allows on little-endian machines only. */
static size_t data_size(int elem, int rank, const int64_t *dims) {
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "swap elements here");
    size_t n = npy_elem_size(elem);
    for (int i = 0; i < rank; i++)
        n *= (size_t)dims[i];
    return n;
}

static bool is_utf8(Str s) {
    uint32_t c;
    for (size_t i = 0, len; i < s.n; i += len)
        if (!(len = utf8_decode(s.s + i, s.n - i, &c)))
            return false;
    return true;
}

bool npz_add(NpzWriter *w, Str name, int elem, int rank, const int64_t *dims, const void *data) {
    Buf header = buf_new(w->arena), full = buf_new(w->arena);
    npy_put_header(&header, elem, rank, dims);
    size_t bytes = data_size(elem, rank, dims);
    buf_str(&full, name);
    buf_text(&full, ".npy");
    if (full.n > 0xFFFF)
        return false;
    uint32_t crc = crc32_more(crc32_of(header.p, header.n), data, bytes);
    Entry e = {buf_as_str(&full), w->offset, header.n + bytes, crc, is_utf8(name)};
    put_local(&w->buf, &e);
    buf_put(&w->buf, header.p, header.n);
    flush(w);
    if (bytes)
        fwrite(data, 1, bytes, w->f);
    w->offset += bytes;
    ARENA_PUSH(w->arena, w->entries, w->n, w->cap, e);
    return true;
}

void npz_finish(NpzWriter *w) {
    uint64_t start = w->offset;
    for (size_t i = 0; i < w->n; i++) {
        put_central(&w->buf, &w->entries[i]);
        flush(w);
    }
    put_end(&w->buf, w->n, start, w->offset - start);
    flush(w);
}

void npy_write(Arena *a, FILE *f, int elem, int rank, const int64_t *dims, const void *data) {
    Buf header = buf_new(a);
    npy_put_header(&header, elem, rank, dims);
    fwrite(header.p, 1, header.n, f);
    size_t bytes = data_size(elem, rank, dims);
    if (bytes)
        fwrite(data, 1, bytes, f);
}
