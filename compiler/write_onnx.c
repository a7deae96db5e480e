#include "compiler/write_onnx.h"

#include <stdlib.h>

#include "frontend/onnx/onnx.h"

static bool reads_back(Arena *of, Str bytes, Diags *d) {
    Arena *a = arena_scratch(of);
    OnnxReadOptions o = {.references_only = true};
    Module *again = onnx_read_bytes(a, d, "the written model", bytes, &o);
    if (again)
        module_free(again);
    else
        arena_free(a);
    return again ||
           diag_error(d, LOC_NONE, "fields that the text gives as 'extra' do not fit the model");
}

bool write_onnx_checked(Module *m, FILE *out, const OnnxWriteOptions *o, Diags *d) {
    if (!m->raw_fields)
        return onnx_write(m, out, o);
    char *bytes = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&bytes, &n);
    bool ok = memory || diag_error(d, LOC_NONE, "out of memory");
    ok = ok && onnx_write(m, memory, o);
    if (memory && fclose(memory) != 0)
        ok = diag_error(d, LOC_NONE, "out of memory");
    ok = ok && reads_back(m->arena, (Str){bytes, n}, d);
    if (ok)
        fwrite(bytes, 1, n, out);
    free(bytes);
    return ok;
}
