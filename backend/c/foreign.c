/* Functions of others that steps call in place of our kernels (program/foreign.h): what the header
 * declares, the calls, and in a test bench the comparison with our kernel, which runs on the same
 * operands into memory of its own. */
#include "backend/c/writer.h"
#include "program/foreign.h"
#include "support/file.h"

#include <ctype.h>

#define UPPER  STR_ARG(w->upper)
#define PREFIX STR_ARG(w->prefix)

static const Call *call_at(const CWriter *w, size_t c) {
    return &w->program->calls[c];
}

bool c_calls_foreign(const CWriter *w) {
    for (size_t c = 0; c < w->n_steps; c++)
        if (call_at(w, c)->foreign)
            return true;
    return false;
}

/* Calls `fn` for each function once, with the first call of it. */
static void each_function(const CWriter *w, FILE *f,
                          void (*fn)(const CWriter *w, FILE *f, const Call *c)) {
    Map *done = map_new(w->arena);
    for (size_t c = 0; c < w->n_steps; c++)
        if (call_at(w, c)->foreign && map_set(done, str_from(call_at(w, c)->kernel->name), done))
            fn(w, f, call_at(w, c));
}

/* ---- checks ---- */

static bool same_interface(const KernelDef *a, const KernelDef *b) {
    bool same = strcmp(a->params_type, b->params_type) == 0 && a->n_args == b->n_args;
    for (size_t i = 0; same && i < a->n_args; i++)
        same = strcmp(a->args[i].ctype, b->args[i].ctype) == 0 &&
               a->args[i].is_const == b->args[i].is_const;
    return same;
}

static bool check_name(const CWriter *w, const ForeignEntry *e) {
    Str name = str_from(e->function), prefix = c_prefix(w->arena, w->options->prefix);
    if (c_is_reserved(name) || c_is_of_library(name) || str_starts(name, "qxc_"))
        return diag_error(w->diags, e->function_loc,
                          "C or the emitted file has a name '%s' already", e->function);
    if (name.n > prefix.n && str_starts(name, prefix.s) && name.s[prefix.n] == '_')
        return diag_error(w->diags, e->function_loc,
                          "names of this model's own functions begin with '" STR_FMT
                          "_': choose another -name, or another name of the function",
                          STR_ARG(prefix));
    return true;
}

/* One function has one interface, or the compiler would refuse the header. */
static bool check_interface(const CWriter *w, const Call *c, const Call *before) {
    const ForeignEntry *e = c->foreign->entry;
    if (same_interface(c->kernel, before->kernel) && c->foreign->view == before->foreign->view)
        return true;
    diag_error(w->diags, e->function_loc,
               "%s is called in place of %s and of %s, which have other arguments", e->function,
               before->foreign->ours->kernel->name, c->foreign->ours->kernel->name);
    diag_note(w->diags, e->function_loc,
              "a function for each: conditions on the types of x and y tell them apart");
    return false;
}

static bool check_scratch(const CWriter *w, const Call *c) {
    int64_t bytes = c->foreign->scratch_bytes;
    const char *layer = c->node ? node_text(c->node) : "the input";
    if (bytes > INT32_MAX)
        return diag_error(w->diags, c->foreign->entry->loc, "scratch for %s is 2 GiB or more",
                          layer);
    return bytes >= 0 || diag_error(w->diags, c->foreign->entry->loc,
                                    "scratch for %s is %lld bytes: a number that it is made of is "
                                    "below 0",
                                    layer, (long long)bytes);
}

bool c_check_foreign(const CWriter *w) {
    Map *functions = map_new(w->arena);
    bool ok = true;
    for (size_t c = 0; c < w->n_steps && ok; c++) {
        const Call *call = call_at(w, c);
        if (!call->foreign)
            continue;
        Str name = str_from(call->kernel->name);
        const Call *before = map_get(functions, name);
        ok = check_scratch(w, call) &&
             (before ? check_interface(w, call, before) : check_name(w, call->foreign->entry));
        if (!before)
            map_set(functions, name, (void *)(uintptr_t)call);
    }
    return ok;
}

void c_take_foreign_names(CWriter *w) {
    for (size_t c = 0; c < w->n_steps; c++)
        if (call_at(w, c)->foreign)
            map_set(w->names, str_from(call_at(w, c)->kernel->name), w);
}

void c_add_ours(CWriter *w) {
    Program *with = arena_copy(w->arena, w->program, sizeof *with);
    with->calls = arena_copy(w->arena, with->calls, with->n_calls * sizeof *with->calls);
    with->cap_calls = with->n_calls;
    for (size_t c = 0; c < w->n_steps; c++)
        if (with->calls[c].foreign)
            ARENA_PUSH(w->arena, with->calls, with->n_calls, with->cap_calls,
                       *with->calls[c].foreign->ours);
    w->program = with;
}

/* Where our call for the same step stands. */
static size_t ours_of(const CWriter *w, size_t call) {
    size_t at = w->n_steps;
    for (size_t c = 0; c < call; c++)
        at += call_at(w, c)->foreign != NULL;
    return at;
}

/* ---- header ---- */

void c_take_foreign_params(const CWriter *w, Map *done) {
    for (size_t c = 0; c < w->n_steps; c++)
        if (call_at(w, c)->foreign)
            map_set(done, str_from(call_at(w, c)->kernel->params_type), done);
}

/* Headers of several models have the same struct: a number made from its text says so. */
static void put_params(const CWriter *w, FILE *f, const KernelDef *k) {
    Buf name = buf_new(w->arena);
    for (const char *s = k->params_type; *s; s++)
        buf_byte(&name, (char)toupper((unsigned char)*s));
    const char *guard = buf_as_str(&name).s;
    unsigned long text = crc32_of(k->params_source, strlen(k->params_source));
    fprintf(f,
            "\n#if !defined(%s)\n#define %s 0x%08lx\n%s#elif %s != 0x%08lx\n"
            "#error \"headers by qxc of different versions: write their models anew\"\n#endif\n",
            guard, guard, text, k->params_source, guard, text);
}

void c_put_foreign_params(const CWriter *w, FILE *f) {
    Map *done = map_new(w->arena);
    for (size_t c = 0; c < w->n_steps; c++) {
        const Call *call = call_at(w, c);
        if (call->foreign && map_set(done, str_from(call->kernel->params_type), done))
            put_params(w, f, call->kernel);
    }
}

static void put_prototype(const CWriter *w, FILE *f, const Call *c) {
    const KernelDef *k = c->kernel;
    (void)w;
    fputs("/* ", f);
    c_put_comment(f, c->foreign->library);
    fprintf(f, ", in place of %s: returns 0 where all went well.\n",
            c->foreign->ours->kernel->name);
    if (c->foreign->view)
        fprintf(f,
                " * w are %s of zero point 0. One of y is the sum of (x - xz) * w, and\n"
                " * bias, times mul / 2^31 * 2^shift of its channel, rounded, and yz, clamped.\n",
                c->foreign->view->weights);
    fprintf(f, " * Scratch is aligned to %d bytes. */\nint %s(const %s *p", BUFFER_ALIGN, k->name,
            k->params_type);
    for (size_t i = 0; i < k->n_args; i++)
        fprintf(f, ",\n    %s%s *%s", k->args[i].is_const ? "const " : "", k->args[i].ctype,
                k->args[i].name);
    fputs(",\n    int32_t scratch_bytes);\n", f);
}

void c_put_foreign_prototypes(const CWriter *w, FILE *f) {
    each_function(w, f, put_prototype);
}

/* ---- calls ---- */

static void put_arguments(CWriter *w, const Call *call, int indent) {
    for (size_t i = 0; i < call->kernel->n_args; i++) {
        fprintf(w->f, ",\n%*s", indent, "");
        c_put_pointer(w, call->args[i], 0, call->kernel->args[i].ctype,
                      call->kernel->args[i].is_const);
    }
}

static void put_status(CWriter *w, size_t c, int indent) {
    const Call *call = call_at(w, c);
    fprintf(w->f, "%s(&" STR_FMT, call->kernel->name, STR_ARG(w->params[c]));
    put_arguments(w, call, indent + 4);
    fprintf(w->f, ",\n%*s%ld) != 0", indent + 4, "", (long)call->foreign->scratch_bytes);
}

static void put_plain(CWriter *w, size_t c, int indent) {
    fprintf(w->f, "%*sif (", indent, "");
    put_status(w, c, indent);
    fprintf(w->f, ")\n%*sreturn " STR_FMT "_ERROR_KERNEL;\n%*s" STR_FMT "_STEP();\n", indent + 4,
            "", UPPER, indent, "", UPPER);
}

/* ---- test bench ---- */

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

static void put_compared(CWriter *w, size_t c, int indent) {
    size_t at = ours_of(w, c);
    const Call *call = call_at(w, c), *ours = call_at(w, at);
    fprintf(w->f, "%*s{\n", indent, "");
    indent += 4;
    put_own(w, ours, indent);
    fprintf(w->f, "%*sif (", indent, "");
    put_status(w, c, indent);
    fprintf(w->f, ") {\n%*sprintf(\"%%s: %s failed\\n\", ", indent + 4, "", call->kernel->name);
    put_layer_string(w, call);
    fprintf(w->f, ");\n%*sreturn " STR_FMT "_ERROR_KERNEL;\n%*s}\n%*s" STR_FMT "_STEP();\n",
            indent + 4, "", UPPER, indent, "", indent, "", UPPER);
    put_ours(w, at, indent);
    put_compares(w, call, ours, indent);
    fprintf(w->f, "%*s}\n", indent - 4, "");
}

void c_put_foreign_call(CWriter *w, size_t c, int indent) {
    if (w->options->n_tests)
        put_compared(w, c, indent);
    else
        put_plain(w, c, indent);
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
