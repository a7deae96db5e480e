/* In a test bench: functions of others beside our kernels, which run on the same operands into
 * memory of their own. */
#include "backend/c/writer.h"
#include "program/foreign.h"

#define UPPER STR_ARG(w->upper)

static const Call *call_at(const CWriter *w, size_t c) {
    return &w->program->calls[c];
}

/* Where our call for the same step stands. */
static size_t ours_of(const CWriter *w, size_t call) {
    size_t at = w->n_steps;
    for (size_t c = 0; c < call; c++)
        at += call_at(w, c)->foreign != NULL;
    return at;
}

static size_t bytes_of(const CWriter *w, const Call *c, size_t arg) {
    return c->args[arg] < 0 ? 0 : w->program->buffers[c->args[arg]].bytes;
}

/* What our kernel writes goes to memory of its own, which begins as the result does. */
static void put_own(CWriter *w, const Call *ours, int indent) {
    for (size_t i = 0; i < ours->kernel->n_args; i++) {
        size_t bytes = bytes_of(w, ours, i);
        if (ours->kernel->args[i].is_const || !bytes)
            continue;
        fprintf(w->f, "%*sstatic int64_t own%zu[%zu];\n", indent, "", i, (bytes + 7) / 8);
    }
    for (size_t i = 0; i < ours->kernel->n_args; i++) {
        if (ours->kernel->args[i].is_const || !bytes_of(w, ours, i) ||
            w->program->buffers[ours->args[i]].scratch)
            continue;
        fprintf(w->f, "%*smemcpy(own%zu, ", indent, "", i);
        c_put_pointer(w, ours->args[i], 0, ours->kernel->args[i].ctype, true);
        fprintf(w->f, ", %zu);\n", bytes_of(w, ours, i));
    }
}

static void put_ours(CWriter *w, size_t at, int indent) {
    const Call *ours = call_at(w, at);
    fprintf(w->f, "%*s%s(&" STR_FMT, indent, "", ours->kernel->name, STR_ARG(w->params[at]));
    for (size_t i = 0; i < ours->kernel->n_args; i++) {
        const KernelArg *arg = &ours->kernel->args[i];
        fprintf(w->f, ",\n%*s", indent + 4, "");
        if (!arg->is_const && bytes_of(w, ours, i))
            fprintf(w->f, "(%s *)(void *)own%zu", arg->ctype, i);
        else
            c_put_pointer(w, ours->args[i], 0, arg->ctype, arg->is_const);
    }
    fprintf(w->f, ");\n%*s" STR_FMT "_STEP();\n", indent, "", UPPER);
}

/* A string in C that is the name of the layer. */
static void put_layer_string(CWriter *w, const Call *c) {
    const Node *n = c->node;
    Str name = !n ? STR("input") : n->name.n || !n->n_out || !n->out[0] ? n->name : n->out[0]->name;
    fputc('"', w->f);
    for (size_t i = 0; i < name.n; i++) {
        unsigned char v = (unsigned char)name.s[i];
        bool plain = v >= ' ' && v < 127 && v != '"' && v != '\\' && v != '?';
        fprintf(w->f, plain ? "%c" : "\\%03o", v);
    }
    fputc('"', w->f);
}

static void put_compares(CWriter *w, const Call *call, const Call *ours, int indent) {
    for (size_t i = 0; i < ours->kernel->n_args; i++) {
        const KernelArg *arg = &ours->kernel->args[i];
        if (arg->is_const || !bytes_of(w, ours, i) || w->program->buffers[ours->args[i]].scratch)
            continue;
        fprintf(w->f, "%*sqk_compare_%s(", indent, "", arg->ctype);
        put_layer_string(w, call);
        fprintf(w->f, ", \"%s\", ", call->kernel->name);
        c_put_pointer(w, ours->args[i], 0, arg->ctype, false);
        fprintf(w->f, ", (const %s *)(const void *)own%zu, %zu);\n", arg->ctype, i,
                bytes_of(w, ours, i) / arg->size);
    }
}

void c_put_compared(CWriter *w, size_t c, int indent) {
    size_t at = ours_of(w, c);
    const Call *call = call_at(w, c), *ours = call_at(w, at);
    fprintf(w->f, "%*s{\n", indent, "");
    indent += 4;
    put_own(w, ours, indent);
    fprintf(w->f, "%*sif (", indent, "");
    c_put_foreign_status(w, c, indent);
    fprintf(w->f, ") {\n%*sprintf(\"%%s: %s failed\\n\", ", indent + 4, "", call->kernel->name);
    put_layer_string(w, call);
    fprintf(w->f, ");\n%*sreturn " STR_FMT "_ERROR_KERNEL;\n%*s}\n%*s" STR_FMT "_STEP();\n",
            indent + 4, "", UPPER, indent, "", indent, "", UPPER);
    put_ours(w, at, indent);
    put_compares(w, call, ours, indent);
    fprintf(w->f, "%*s}\n", indent - 4, "");
}

/* Bits are compared, as NaN is no equal of itself. Later layers go on with what ours gave. */
static void put_compare_function(CWriter *w, const char *ctype) {
    fprintf(w->f,
            "static void qk_compare_%s(const char *layer, const char *function, %s *got,\n"
            "                          const %s *want, size_t n) {\n"
            "    size_t i, first = n, differ = 0;\n"
            "    for (i = 0; i < n; i++)\n"
            "        if (memcmp(&got[i], &want[i], sizeof *got) != 0) {\n"
            "            first = first < n ? first : i;\n"
            "            differ++;\n"
            "        }\n"
            "    qk_compared++;\n"
            "    if (differ == 0)\n"
            "        return;\n"
            "    qk_different++;\n"
            "    printf(\"%%s: %%lu of %%lu differ, the first at index %%lu: %%s gives %%.9g, not "
            "%%.9g\\n\", layer,\n"
            "           (unsigned long)differ, (unsigned long)n, (unsigned long)first, function,\n"
            "           (double)got[first], (double)want[first]);\n"
            "    memcpy(got, want, n * sizeof *got);\n"
            "}\n\n",
            ctype, ctype, ctype);
}

void c_put_foreign_checks(CWriter *w) {
    if (!w->options->n_tests || !c_calls_foreign(w))
        return;
    fputs("/* ---- comparison of layers, for the test bench ---- */\n\n"
          "static int qk_compared, qk_different;\n\n",
          w->f);
    Map *done = map_new(w->arena);
    for (size_t c = w->n_steps; c < w->program->n_calls; c++) {
        const Call *ours = call_at(w, c);
        for (size_t i = 0; i < ours->kernel->n_args; i++)
            if (!ours->kernel->args[i].is_const && bytes_of(w, ours, i) &&
                !w->program->buffers[ours->args[i]].scratch &&
                map_set(done, str_from(ours->kernel->args[i].ctype), w))
                put_compare_function(w, ours->kernel->args[i].ctype);
    }
}

void c_put_foreign_verdict(CWriter *w) {
    if (c_calls_foreign(w))
        fputs("    printf(\"%d of %d results of layers as our kernels give them\\n\",\n"
              "           qk_compared - qk_different, qk_compared);\n"
              "    failed += qk_different;\n",
              w->f);
}
