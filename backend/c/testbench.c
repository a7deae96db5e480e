/* -testbench: a main() that runs embedded samples and compares. */
#include "backend/c/writer.h"
#include "ir/ops/op.h"

#include <math.h>

static bool is_real(const Buffer *b) {
    return elem_is_float(b->elem) && elem_bits(b->elem) >= 32;
}

static bool is_half(const Buffer *b) {
    return elem_is_float(b->elem) && elem_bits(b->elem) == 16;
}

static size_t extent(const Buffer *b) {
    return b->count ? b->count : 1;
}

static void put_array(CWriter *w, const Buffer *b, const char *name, size_t test, size_t port,
                      const void *data) {
    fprintf(w->f, "static const %s test%zu_%s%zu[%zu] = ", c_type(b->elem), test, name, port,
            extent(b));
    c_put_elements(w, w->f, b->elem, data, b->count);
    fputs(";\n", w->f);
}

/* The largest finite magnitude: a float output whose values are all small is held to small errors.
 */
static double largest(const Buffer *b, const void *data) {
    double most = 1e-30;
    for (size_t i = 0; i < b->count; i++) {
        double v =
            b->elem == ELEM_DOUBLE ? ((const double *)data)[i] : (double)((const float *)data)[i];
        if (isfinite(v) && fabs(v) > most)
            most = fabs(v);
    }
    return most;
}

/* The smallest step of the integers that a float output was made from, where all before is
 * integers: then nothing but a wrong integer makes a difference. 0 for other outputs. */
static double step_of(const Value *y) {
    const Node *n = y->def;
    if (!n || node_conversion(n) != CONVERT_DEQUANTIZE || !op_quant(n->in[0]) ||
        op_quant(n->in[0])->kind != QUANT_PARAMS)
        return 0;
    const Quant *q = op_quant(n->in[0]);
    double step = (double)quant_scale(q, 0);
    for (size_t i = 1; i < q->n_scale; i++)
        step = fmin(step, (double)quant_scale(q, i));
    return step;
}

/* Integers must be equal; floats made from integers within half a step, others within what another
 * order of rounding explains: of 16 bits, the neighbour. */
static void put_compare(CWriter *w, bool integer, size_t test, size_t port, const void *want) {
    const Program *p = w->program;
    const Buffer *b = &p->buffers[p->outputs[port]];
    fprintf(w->f, "    for (i = 0; i < %zu; i++)\n", b->count);
    if (is_half(b)) {
        fprintf(w->f, "        wrong += test_apart(out%zu[i], test%zu_out%zu[i]) > 1;\n", port,
                test, port);
    } else if (is_real(b)) {
        double step = integer ? step_of(p->yields[port]) : 0;
        fprintf(w->f,
                "        wrong += test_differs((double)out%zu[i], (double)test%zu_out%zu[i], %s, "
                "%.9g);\n",
                port, test, port, step > 0 ? "0.0" : "1e-4",
                step > 0 ? step / 2 : 1e-5 * largest(b, want));
    } else {
        fprintf(w->f, "        wrong += out%zu[i] != test%zu_out%zu[i];\n", port, test, port);
    }
}

static void put_outputs(CWriter *w) {
    const Program *p = w->program;
    for (size_t i = 0; i < p->n_outputs; i++) {
        const Buffer *b = &p->buffers[p->outputs[i]];
        if (p->ports_in_arena)
            fprintf(w->f, "    const %s *const out%zu = " STR_FMT "_AT(arena);\n", c_type(b->elem),
                    i, STR_ARG(w->output_macros[i]));
        else
            fprintf(w->f, "    static %s out%zu[%zu];\n", c_type(b->elem), i, extent(b));
    }
}

/* `integer`: nothing but conversions at the end computes with floats. */
static void put_test(CWriter *w, bool integer, size_t test) {
    const Program *p = w->program;
    const CTest *t = &w->options->tests[test];
    for (size_t i = 0; i < p->n_inputs; i++)
        put_array(w, &p->buffers[p->inputs[i]], "in", test, i, t->inputs[i]);
    for (size_t i = 0; i < p->n_outputs; i++)
        put_array(w, &p->buffers[p->outputs[i]], "out", test, i, t->outputs[i]);
    fprintf(w->f, "\nstatic int test%zu(void *arena) {\n", test);
    put_outputs(w);
    fputs("    int i, wrong = 0;\n", w->f);
    for (size_t i = 0; i < p->n_inputs && p->ports_in_arena; i++)
        fprintf(w->f, "    memcpy(" STR_FMT "_AT(arena), test%zu_in%zu, %zu);\n",
                STR_ARG(w->input_macros[i]), test, i, p->buffers[p->inputs[i]].bytes);
    fprintf(w->f, "    if (" STR_FMT "_run(arena", STR_ARG(w->prefix));
    for (size_t i = 0; i < c_ports(w); i++)
        if (i < p->n_inputs)
            fprintf(w->f, ", test%zu_in%zu", test, i);
        else
            fprintf(w->f, ", out%zu", i - p->n_inputs);
    fprintf(w->f, ") != " STR_FMT "_OK)\n        return 1;\n", STR_ARG(w->upper));
    for (size_t i = 0; i < p->n_outputs; i++)
        put_compare(w, integer, test, i, t->outputs[i]);
    fputs("    return wrong;\n}\n\n", w->f);
}

static bool any(const Program *p, bool (*is)(const Buffer *b)) {
    for (size_t i = 0; i < p->n_outputs; i++)
        if (is(&p->buffers[p->outputs[i]]))
            return true;
    return false;
}

void c_put_testbench(CWriter *w) {
    size_t n = w->options->n_tests;
    fputs("\n/* ---- test bench ---- */\n\n", w->f);
    if (w->offsets)
        fprintf(w->f, "#if " STR_FMT "_WEIGHTS_FROM != " STR_FMT "_WEIGHTS_POINTER\n\n",
                STR_ARG(w->upper), STR_ARG(w->upper));
    if (any(w->program, is_half))
        fputs("static int test_apart(int got, int want) {\n"
              "    return got > want ? got - want : want - got;\n}\n\n",
              w->f);
    if (any(w->program, is_real))
        fputs(
            "static int test_differs(double got, double want, double part, double all) {\n"
            "    double d = got > want ? got - want : want - got, size = want < 0 ? -want : want;\n"
            "    if (got == want || (got != got && want != want))\n"
            "        return 0;\n"
            "    return !(d <= part * size + all);\n}\n\n",
            w->f);
    bool integer = !c_floats(w->program).n;
    for (size_t i = 0; i < n; i++)
        put_test(w, integer, i);
    fprintf(w->f,
            "int main(void) {\n"
            "    static uint8_t memory[" STR_FMT "_ARENA_SIZE + " STR_FMT "_ARENA_ALIGN];\n"
            "    uintptr_t past = (uintptr_t)memory %% " STR_FMT "_ARENA_ALIGN;\n"
            "    void *arena = memory + (" STR_FMT "_ARENA_ALIGN - past) %% " STR_FMT
            "_ARENA_ALIGN;\n"
            "    int failed = 0;\n",
            STR_ARG(w->upper), STR_ARG(w->upper), STR_ARG(w->upper), STR_ARG(w->upper),
            STR_ARG(w->upper));
    for (size_t i = 0; i < n; i++)
        fprintf(w->f,
                "    if (test%zu(arena)) {\n"
                "        puts(\"sample %zu: wrong\");\n"
                "        failed++;\n"
                "    }\n",
                i, i);
    fprintf(w->f, "    printf(\"%%d of %zu samples right\\n\", %zu - failed);\n", n, n);
    c_put_foreign_verdict(w);
    fputs("    return failed != 0;\n}\n", w->f);
    if (w->offsets)
        fputs("#else\n#error \"the test bench has no weights where they come by a "
              "pointer\"\n#endif\n",
              w->f);
}
