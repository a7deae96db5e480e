/* Any bytes as an ONNX model: they are refused with a message, or
 *   ONNX -> ONNX -> ONNX gives the same bytes, and
 *   ONNX -> .qir -> ONNX gives those too, but for numbers that stood in a typed field. */
#include <stdlib.h>

#include "ir/extra.h"
#include "test/fuzz/fuzz.h"

/* ---- text does not tell raw_data from float_data and the like ---- */

static void untype_tensor(Tensor *t) {
    if (!t)
        return;
    t->typed = false;
}

static void untype_sparse(SparseTensor *s) {
    if (s) {
        untype_tensor(s->values);
        untype_tensor(s->indices);
    }
}

static void untype_attr(const Attr *a) {
    for (size_t i = 0; i < a->n && !attr_is_ref(a); i++) {
        if (a->kind == ATTR_TENSOR || a->kind == ATTR_TENSORS)
            untype_tensor(a->v.t[i]);
        else if (a->kind == ATTR_SPARSE || a->kind == ATTR_SPARSES)
            untype_sparse(a->v.sp[i]);
    }
}

static void untype_graph(Graph *g, void *ctx) {
    (void)ctx;
    for (size_t i = 0; i < g->n_in; i++) {
        untype_tensor(g->in[i]->data);
        untype_sparse(g->in[i]->sparse);
    }
    for (size_t i = 0; i < g->n_consts; i++) {
        untype_tensor(g->consts[i]->data);
        untype_sparse(g->consts[i]->sparse);
    }
    FOR_NODES(n, g) {
        for (size_t i = 0; i < n->n_attrs; i++)
            untype_attr(&n->attrs[i]);
    }
}

static void untype(Module *m) {
    module_each_graph(m, untype_graph, NULL);
    for (size_t i = 0; i < m->n_functions; i++) {
        for (size_t k = 0; k < m->functions[i]->n_defaults; k++)
            untype_attr(&m->functions[i]->defaults[k]);
    }
}

/* ---- the promises ---- */

static Str write_valid(Fuzz *f, Module *m) {
    Str bytes = fuzz_write_onnx(f, m);
    fuzz_promise(bytes.s != NULL, "what was read from ONNX can be written", fuzz_print(m),
                 STR_NONE);
    return bytes;
}

static void run(Fuzz *f, Str input) {
    Module *m = fuzz_read_onnx(f, input);
    if (!m || !fuzz_valid(f, m, VERIFY_ONNX))
        return;
    Str written = write_valid(f, m);
    Module *again = fuzz_read_onnx(f, written);
    fuzz_promise(again && fuzz_valid(f, again, VERIFY_ONNX), "written ONNX reads back", input,
                 written);
    Str twice = write_valid(f, again);
    fuzz_promise(str_eq(written, twice), "ONNX -> ONNX keeps every byte", written, twice);

    Module *text = fuzz_reread(f, fuzz_print(m));
    untype(m);
    untype(text);
    Str direct = write_valid(f, m), by_text = write_valid(f, text);
    fuzz_promise(str_eq(direct, by_text), "ONNX -> .qir -> ONNX keeps every byte", direct, by_text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_run(run, data, size);
}

/* ---- mutating fields, with the lengths around them kept right ---- */

typedef struct Mutator {
    unsigned seed;
    Arena *arena;
    size_t max_size;
} Mutator;

static unsigned pick(Mutator *x, size_t n) {
    return (unsigned)((size_t)rand_r(&x->seed) % n);
}

static Str mutated(Mutator *x, Str old) {
    size_t room = old.n + 64;
    char *p = arena_alloc(x->arena, room);
    if (old.n)
        memcpy(p, old.s, old.n);
    return (Str){p, LLVMFuzzerMutate((uint8_t *)p, old.n, room)};
}

static void mutate_message(Mutator *x, Buf *out, Str message, int depth);

static void mutate_field(Mutator *x, Buf *out, const WireField *f, int depth) {
    static const uint64_t numbers[] = {
        0, 1, 2, 3, 7, 8, 13, 16, 18, 21, 127, (uint64_t)1 << 31, (uint64_t)1 << 63, UINT64_MAX};
    if (f->type == WIRE_VARINT) {
        uint64_t v = pick(x, 2) ? numbers[pick(x, sizeof numbers / sizeof *numbers)]
                                : f->value + pick(x, 3) - 1;
        wire_put_number(out, f->number, v);
    } else if (f->type == WIRE_LEN) {
        Buf inner = buf_new(x->arena);
        if (f->payload.n && depth < 12 && wire_valid(f->payload) && pick(x, 8))
            mutate_message(x, &inner, f->payload, depth + 1);
        else
            buf_str(&inner, mutated(x, f->payload));
        wire_put_bytes(out, f->number, buf_as_str(&inner));
    } else {
        buf_str(out, mutated(x, f->whole));
    }
}

/* One field changes: goes, comes twice, becomes another field, or changes inside. */
static void mutate_message(Mutator *x, Buf *out, Str message, int depth) {
    WireField f;
    size_t n = 0, i = 0;
    for (Str rest = message; rest.n && !wire_next(&rest, &f);)
        n++;
    size_t chosen = n ? pick(x, n) : 0;
    while (message.n && !wire_next(&message, &f)) {
        unsigned what = i++ == chosen ? pick(x, 16) : 16;
        if (what == 0)
            continue;
        if (what == 1 && f.type == WIRE_LEN)
            wire_put_bytes(out, 1 + pick(x, 32), f.payload);
        else if (what == 2 && f.type == WIRE_VARINT)
            wire_put_number(out, 1 + pick(x, 32), f.value);
        else if (what > 3 && what < 16)
            mutate_field(x, out, &f, depth);
        else
            buf_str(out, f.whole);
        if (what == 3)
            buf_str(out, f.whole);
    }
    if (pick(x, 20) == 0)
        wire_put_number(out, 1 + pick(x, 32), pick(x, 30));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    Str message = {(const char *)data, size};
    Mutator x = {seed, NULL, max_size};
    if (pick(&x, 4) == 0 || !wire_valid(message))
        return LLVMFuzzerMutate(data, size, max_size);
    x.arena = arena_new(0, NULL);
    Buf out = buf_new(x.arena);
    for (unsigned i = 0, times = 1 + pick(&x, 3); i < times; i++) {
        out = buf_new(x.arena);
        mutate_message(&x, &out, message, 0);
        message = buf_as_str(&out);
    }
    size_t n = out.n <= max_size ? out.n : 0;
    if (n)
        memcpy(data, out.p, n);
    arena_free(x.arena);
    return n ? n : LLVMFuzzerMutate(data, size, max_size);
}
