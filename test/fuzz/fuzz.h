/* What the fuzz targets share.
 *
 * A target is one file, fuzz_NAME.c, with LLVMFuzzerTestOneInput. `make fuzz` links it with
 * libFuzzer (clang, ASan, UBSan), `make test` with replay.c, which runs it over
 * test/fuzz/regress/NAME. Everything goes through the library, and names in an input lead to an
 * empty folder, in fuzz_command to one with the files of its input. A broken promise (what was
 * printed does not parse) aborts, as a crash would. */
#ifndef QXC_TEST_FUZZ_FUZZ_H
#define QXC_TEST_FUZZ_FUZZ_H

#include <stdio.h>

#include "ir/ops/op.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

typedef struct Fuzz Fuzz;

/* Runs `body`, then frees what it asked for. Running out of the arenas' 64 MiB ends it early: that
 * is a refusal, not a fault. Always 0. */
int fuzz_run(void (*body)(Fuzz *f, Str input), const uint8_t *data, size_t size);

Arena *fuzz_arena(Fuzz *f);
Diags *fuzz_diags(Fuzz *f);    /* messages are formatted and thrown away */
const char *fuzz_dir(Fuzz *f); /* the empty folder */

/* A stream into memory, and what was written to it since. One at a time. */
FILE *fuzz_stream(Fuzz *f);
Str fuzz_written(Fuzz *f); /* a copy; closes the stream */

/* module_check with these flags: resolved, inferred, verified; a false without an error is a broken
 * promise. */
bool fuzz_valid(Fuzz *f, Module *m, unsigned flags);

/* NULL: refused. */
Module *fuzz_read_qir(Fuzz *f, Str text);
Module *fuzz_read_onnx(Fuzz *f, Str bytes); /* `bytes` have to stay */
Str fuzz_print(Module *m);
/* STR_NONE: refused. */
Str fuzz_write_onnx(Fuzz *f, Module *m);

/* `text` was printed: it parses, verifies and prints the same. The module that came of it. */
Module *fuzz_reread(Fuzz *f, Str text);

/* A promise: says what it is, shows the two texts (or STR_NONE), and aborts when `ok` is false. */
void fuzz_promise(bool ok, const char *what, Str one, Str other);

#endif
