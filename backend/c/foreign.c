/* Functions of others that steps call in place of our kernels (program/foreign.h): what the header
 * declares, and the calls. */
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

void c_put_foreign_status(CWriter *w, size_t c, int indent) {
    const Call *call = call_at(w, c);
    fprintf(w->f, "%s(&" STR_FMT, call->kernel->name, STR_ARG(w->params[c]));
    put_arguments(w, call, indent + 4);
    fprintf(w->f, ",\n%*s%ld) != 0", indent + 4, "", (long)call->foreign->scratch_bytes);
}

static void put_plain(CWriter *w, size_t c, int indent) {
    fprintf(w->f, "%*sif (", indent, "");
    c_put_foreign_status(w, c, indent);
    fprintf(w->f, ")\n%*sreturn " STR_FMT "_ERROR_KERNEL;\n%*s" STR_FMT "_STEP();\n", indent + 4,
            "", UPPER, indent, "", UPPER);
}

void c_put_foreign_call(CWriter *w, size_t c, int indent) {
    if (w->options->n_tests)
        c_put_compared(w, c, indent);
    else
        put_plain(w, c, indent);
}
