/* Any bytes as a data file: .npy, .npz, safetensors. Refused with a message, or every array can be
 * read to its end, and a safetensors file written from what was read says the same. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "support/npz.h"
#include "support/safetensors.h"
#include "test/fuzz/fuzz.h"

enum { CHUNK = 4096, MAX_CHUNKS = 64 };

/* Elements [0, count) in pieces: a small archive may say that it holds very many. */
static void read_array(Fuzz *f, Npz *z, size_t i) {
    const NpyArray *a = npz_at(z, i);
    NpyReader *r = npy_reader(z, i);
    if (!r)
        return;
    uint8_t *out = arena_array(fuzz_arena(f), CHUNK, a->elem_size);
    uint64_t left = a->count;
    for (int k = 0; k < MAX_CHUNKS && left; k++) {
        size_t n = left < CHUNK ? (size_t)left : CHUNK;
        if (!npy_read(r, out, n))
            break;
        left -= n;
    }
    npy_reader_close(r);
}

static void read_npz(Fuzz *f, Str bytes) {
    int fd = memfd_create("fuzz", 0);
    fuzz_promise(fd >= 0 && write(fd, bytes.s, bytes.n) == (ssize_t)bytes.n, "a file in memory",
                 STR_NONE, STR_NONE);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int errors = diags_errors(fuzz_diags(f));
    Npz *z = npz_open(fuzz_arena(f), path, LOC_NONE, fuzz_diags(f));
    close(fd);
    fuzz_promise(!z == (diags_errors(fuzz_diags(f)) > errors), "a refusal says why", STR_NONE,
                 STR_NONE);
    enum { MAX_ARRAYS = 8 };
    for (size_t i = 0; z && i < npz_size(z) && i < MAX_ARRAYS; i++)
        read_array(f, z, i);
    npz_close(z);
}

static SafeTensors *parse(Fuzz *f, Str bytes) {
    int errors = diags_errors(fuzz_diags(f));
    SafeTensors *s = st_parse(fuzz_arena(f), bytes, "fuzz.safetensors", LOC_NONE, fuzz_diags(f));
    fuzz_promise(!s == (diags_errors(fuzz_diags(f)) > errors), "a refusal says why", STR_NONE,
                 STR_NONE);
    return s;
}

static void read_safetensors(Fuzz *f, Str bytes) {
    SafeTensors *s = parse(f, bytes);
    if (!s)
        return;
    StWriter *w = st_writer(fuzz_arena(f));
    for (size_t i = 0; i < st_size(s); i++) {
        const StTensor *t = st_at(s, i);
        fuzz_promise(st_add(w, t->name, t->dtype, t->rank, t->dims, t->data),
                     "what was read can be written", t->name, STR_NONE);
    }
    st_write(w, fuzz_stream(f), NULL, NULL);
    Str written = fuzz_written(f);
    const SafeTensors *again = parse(f, written);
    fuzz_promise(again && st_size(again) == st_size(s), "what was written reads back", bytes,
                 written);
    for (size_t i = 0; i < st_size(s); i++) {
        const StTensor *x = st_at(s, i), *y = st_at(again, i);
        fuzz_promise(str_eq(x->name, y->name) && str_eq(x->data, y->data) && x->rank == y->rank,
                     "what was written reads back the same", x->name, y->name);
    }
}

static void run(Fuzz *f, Str bytes) {
    read_safetensors(f, bytes);
    read_npz(f, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_run(run, data, size);
}
