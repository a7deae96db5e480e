/* Calls in parts (program/split.h): a function for each such call, which makes the part it is asked
 * for, and the hook PREFIX_PARALLEL that runs them, side by side or one after the other. */
#include "backend/c/writer.h"
#include "program/split.h"

#define UPPER STR_ARG(w->upper)

/* ---- what parts see of the run function ---- */

static void put_port_type(CWriter *w, bool out, size_t i) {
    const Program *p = w->program;
    const Buffer *b = &p->buffers[out ? p->outputs[i] : p->inputs[i]];
    fprintf(w->f, "%s%s *", out ? "" : "const ", c_type(b->elem));
}

static void put_port(CWriter *w, bool out, size_t i) {
    fputs("    ", w->f);
    put_port_type(w, out, i);
    fprintf(w->f, STR_FMT ";\n", STR_ARG(out ? w->outputs[i] : w->inputs[i]));
}

static void put_context_type(CWriter *w) {
    fputs("typedef struct {\n    uint8_t *mem;\n", w->f);
    if (w->offsets)
        fputs("    const uint8_t *wmem;\n", w->f);
    for (size_t i = 0; i < c_ports(w); i++) {
        bool out = i >= w->program->n_inputs;
        put_port(w, out, out ? i - w->program->n_inputs : i);
    }
    fputs("} qk_context;\n\n", w->f);
}

void c_put_parts_context(CWriter *w) {
    if (!program_is_split(w->program))
        return;
    fprintf(w->f, "    const qk_context qk_all = {%s%s", w->program->arena_bytes ? "mem" : "NULL",
            w->offsets ? ", wmem" : "");
    for (size_t i = 0; i < c_ports(w); i++)
        fprintf(w->f, ", " STR_FMT, STR_ARG(c_port_name(w, i)));
    fputs("};\n", w->f);
}

/* The names that the pointers of a call are spelled with, under the names they have in the run
 * function; each once. */
static void put_names(CWriter *w, const Call *call) {
    const Program *p = w->program;
    bool *done = NEW_ARRAY(w->arena, bool, 2 + p->n_inputs + p->n_outputs);
    for (int i = 0; i < call->n_args; i++) {
        const Buffer *b = call->args[i] < 0 ? NULL : &p->buffers[program_root(p, call->args[i])];
        bool weights = b && b->kind == BUF_CONST;
        if (!b || (weights && !w->offsets) || (b->kind == BUF_ARENA && !p->arena_bytes))
            continue;
        size_t port = (size_t)b->port;
        bool *seen = &done[b->kind == BUF_ARENA   ? 0
                           : weights              ? 1
                           : b->kind == BUF_INPUT ? 2 + port
                                                  : 2 + p->n_inputs + port];
        if (*seen)
            continue;
        *seen = true;
        Str name = b->kind == BUF_ARENA   ? STR("mem")
                   : weights              ? STR("wmem")
                   : b->kind == BUF_INPUT ? w->inputs[port]
                                          : w->outputs[port];
        fputs("    ", w->f);
        if (b->kind == BUF_ARENA)
            fputs("uint8_t *", w->f);
        else if (weights)
            fputs("const uint8_t *", w->f);
        else
            put_port_type(w, b->kind == BUF_OUTPUT, port);
        fprintf(w->f, "const " STR_FMT " = qk_all->" STR_FMT ";\n", STR_ARG(name), STR_ARG(name));
    }
}

/* ---- the functions ---- */

static void put_function(CWriter *w, size_t c) {
    const Call *call = &w->program->calls[c];
    fputs("/* ", w->f);
    c_put_node(w->f, call->node);
    fprintf(w->f,
            " */\nstatic void qk_part_%zu(const void *qk_in, int32_t qk_part) {\n"
            "    const qk_context *const qk_all = (const qk_context *)qk_in;\n",
            c);
    put_names(w, call);
    fputs("    switch (qk_part) {\n", w->f);
    for (size_t i = 0; i < call->n_parts; i++) {
        bool last = i + 1 == call->n_parts;
        fprintf(w->f, last ? "    default:\n" : "    case %zu:\n", i);
        fprintf(w->f, "        %s(&" STR_FMT "[%zu]", call->kernel->name, STR_ARG(w->params[c]), i);
        for (int k = 0; k < call->n_args; k++) {
            fputs(",\n            ", w->f);
            c_put_pointer(w, call->args[k], call->parts[i].at[k], call->kernel->args[k].ctype,
                          call->kernel->args[k].is_const);
        }
        fputs(");\n        break;\n", w->f);
    }
    fputs("    }\n}\n\n", w->f);
}

static void put_hook(CWriter *w) {
    fprintf(w->f,
            "/* Calls fn(context, part) for each part below `parts`, in any order or side by side, "
            "and\n * returns when all have returned. */\n"
            "#if !defined(" STR_FMT "_PARALLEL)\n"
            "static void qk_parallel(void (*fn)(const void *, int32_t), const void *context, "
            "int32_t parts) {\n"
            "    int32_t part;\n"
            "#if defined(_OPENMP)\n"
            "#pragma omp parallel for schedule(static, 1) num_threads(parts)\n"
            "#endif\n"
            "    for (part = 0; part < parts; part++)\n"
            "        fn(context, part);\n"
            "}\n"
            "#define " STR_FMT "_PARALLEL(fn, context, parts) qk_parallel(fn, context, parts)\n"
            "#endif\n\n",
            UPPER, UPPER);
}

void c_put_parts(CWriter *w) {
    if (!program_is_split(w->program))
        return;
    put_hook(w);
    put_context_type(w);
    for (size_t c = 0; c < w->program->n_calls; c++)
        if (call_for_threads(&w->program->calls[c]))
            put_function(w, c);
}

void c_put_parts_call(CWriter *w, size_t call, int indent) {
    fprintf(w->f, "%*s" STR_FMT "_PARALLEL(qk_part_%zu, &qk_all, %zu);\n%*s" STR_FMT "_STEP();\n",
            indent, "", UPPER, call, w->program->calls[call].n_parts, indent, "", UPPER);
}

void c_put_parts_about(const CWriter *w, FILE *f) {
    size_t n = 0, most = 0;
    for (size_t c = 0; c < w->program->n_calls; c++) {
        const Call *call = &w->program->calls[c];
        size_t parts = call_for_threads(call) ? call->n_parts : 0;
        n += parts > 0;
        most = parts > most ? parts : most;
    }
    if (n)
        fprintf(f,
                " * %zu of its steps fall into parts, at most %zu, which run side by side where "
                "this is built\n"
                " * with -fopenmp, or as " STR_FMT
                "_PARALLEL(fn, context, parts) does it, where the build defines\n"
                " * it: it calls fn(context, part) for each part below `parts` and waits for all. "
                "The bits\n"
                " * are the same.\n *\n",
                n, most, UPPER);
}
