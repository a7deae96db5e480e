/* Runs a fuzz target over files, once each, in place of libFuzzer: fuzz_NAME FILE... */
#define _GNU_SOURCE
#include <stdlib.h>

#include "test/fuzz/fuzz.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) {
    (void)data, (void)max_size;
    return size; /* nothing mutates here */
}

/* The bytes in memory of exactly their size, so that reading past their end is noticed. */
static bool run_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        perror(path);
        return false;
    }
    long size = ftell(f);
    rewind(f);
    uint8_t *data = malloc(size ? (size_t)size : 1);
    bool ok = fread(data, 1, (size_t)size, f) == (size_t)size;
    fclose(f);
    if (ok)
        LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return ok;
}

int main(int argc, char **argv) {
    bool ok = true;
    for (int i = 1; i < argc; i++)
        ok = run_file(argv[i]) && ok;
    return ok ? 0 : 1;
}
