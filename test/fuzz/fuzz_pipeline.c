/* .qir text, then one byte that chooses a command line. A valid model, given made-up statistics,
 * compiles or is refused with a message. The result verifies, prints and parses; ONNX reads back; C
 * is written, and the program it comes from runs. */
#include "backend/c/c.h"
#include "compiler/pipeline.h"
#include "exec/calibrate.h"
#include "exec/samples.h"
#include "exec/specialise.h"
#include "test/fuzz/fuzz.h"

enum { MAX_WORDS = 8, MAX_RUN_BYTES = 1 << 20, MAX_RUN_MACS = 1 << 20 };

static const char *const command_lines[][MAX_WORDS] = {
    {"-emit=qdq"},
    {"-emit=qop"},
    {"-emit=c"},
    {"-emit=c", "-integer-only"},
    {"-emit=qdq", "-io=quant", "-pow2"},
    {"-emit=qop", "-per-tensor", "-weights=int8 asym"},
    {"-emit=qdq", "-weights=int4", "-activations=int16", "-target=onnx"},
    {"-emit=qir", "-form=fake"},
    {"-emit=qir", "-form=true"},
    {"-emit=qdq", "-target-opset=25", "-reduce-range"},
    {"-emit=qdq", "-keep=Conv", "-activations=int8 sym"},
    {"-passes=upgrade", "-target-opset=21"},
    {"-passes=raise-quant"},
    {"-passes=freeze,fold-const,fold-affine,decide"},
    {"-passes=true-quant,quant-io"},
    {"-passes=lower-qdq"},
    {"-passes=lower-qop"},
};
enum { N_COMMAND_LINES = sizeof command_lines / sizeof *command_lines };

static bool parse_options(Fuzz *f, Arena *a, unsigned char choice, Options *o) {
    const char *const *words = command_lines[choice % N_COMMAND_LINES];
    char *argv[MAX_WORDS + 2] = {"qxc", "fuzz.qir"};
    int argc = 2;
    for (int i = 0; i < MAX_WORDS && words[i]; i++)
        argv[argc++] = (char *)arena_str(a, str_from(words[i])).s;
    return options_parse(o, a, argc, argv, fuzz_diags(f));
}

static void make_up_stat(Value *v, void *ctx) {
    Module *m = ctx;
    if (v->type.kind == TYPE_TENSOR && v->type.elem == ELEM_FLOAT && !v->stat &&
        v->kind != VALUE_CONST)
        v->stat = calib_stat(m->arena, -1.0 - v->id % 3, 0.5 * (v->id % 5), 0.1, 0.5, 10);
}

/* How long such a program runs depends on the numbers. */
static bool loops(const Program *p) {
    for (size_t i = 0; i < p->n_calls; i++)
        if (p->calls[i].kind == CALL_LOOP)
            return true;
    return false;
}

static void run_once(Module *m, const Program *p) {
    CSizes sizes = c_sizes(p);
    if (sizes.arena + sizes.weights > MAX_RUN_BYTES || sizes.macs > MAX_RUN_MACS || loops(p))
        return;
    Samples *s = samples_random(m->arena, m, 1);
    Runner *r = runner_new(m->arena, p);
    if (samples_load(s, r))
        runner_run(r, m->diags);
    samples_close(s);
}

static void check_program(Fuzz *f, Module *m) {
    Diags *d = fuzz_diags(f);
    int64_t *ones = NEW_ARRAY(m->arena, int64_t, m->graph->n_in + 1);
    for (size_t i = 0; i < m->graph->n_in; i++)
        ones[i] = 1;
    if (!module_bind_first(m, ones, d) || !module_check_static(m, d))
        return;
    Program *p = program_build(m, NULL, d);
    if (!p)
        return;
    CWriteOptions options = {.prefix = STR("model")};
    c_write(p, &options, (CStreams){.source = fuzz_stream(f)}, d);
    run_once(m, p);
}

static void check_onnx(Fuzz *f, Module *m) {
    Str bytes = fuzz_write_onnx(f, m);
    if (!bytes.s)
        return;
    Module *again = fuzz_read_onnx(f, bytes);
    fuzz_promise(again && fuzz_valid(f, again, VERIFY_ONNX), "written ONNX reads back",
                 fuzz_print(m), bytes);
}

static void run(Fuzz *f, Str input) {
    if (input.n == 0)
        return;
    Options options;
    if (!parse_options(f, fuzz_arena(f), (unsigned char)input.s[--input.n], &options))
        return;
    Module *m = fuzz_read_qir(f, input);
    if (!m || !fuzz_valid(f, m, VERIFY_ERRORS))
        return;
    module_each_value(m, make_up_stat, m);
    Job j;
    int errors = diags_errors(fuzz_diags(f));
    fuzz_promise(job_init(&j, &options, fuzz_arena(f), fuzz_diags(f)), "the command line is right",
                 STR_NONE, STR_NONE);
    bool ok = job_compile(&j, m);
    fuzz_promise(ok == (diags_errors(fuzz_diags(f)) == errors), "a refusal says why", input,
                 STR_NONE);
    if (!ok)
        return;
    fuzz_reread(f, fuzz_print(m));
    check_onnx(f, m);
    check_program(f, m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_run(run, data, size);
}
