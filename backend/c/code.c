/* The code: kernels in use, and the run function that calls them. */
#include "backend/c/writer.h"

/* ---- includes ---- */

static bool any_needs_string(const Map *kernels) {
    for (size_t i = 0; i < map_size(kernels); i++)
        if (((const KernelDef *)map_value(kernels, i))->needs_string)
            return true;
    return false;
}

void c_put_includes(CWriter *w) {
    if (w->options->n_tests) {
        fputs("#include <stdio.h>\n#include <string.h>\n", w->f);
    } else if (w->offsets || any_needs_string(w->kernels)) {
        fputs("#include <string.h>\n", w->f);
    }
    if (w->math)
        fputs("#include <math.h>\n", w->f);
}

/* ---- kernels ---- */

Map *c_kernels(const Program *p) {
    Map *kernels = map_new(p->module->arena);
    for (size_t c = 0; c < p->n_calls; c++)
        if (p->calls[c].kind == CALL_KERNEL)
            map_set(kernels, str_from(p->calls[c].kernel->name), (void *)p->calls[c].kernel);
    return kernels;
}

/* Comments of kernels are // lines, which C99 and C++ have. */
static void put_once(CWriter *w, Map *done, const char *name, const char *text) {
    if (map_set(done, str_from(name), w))
        fprintf(w->f, "%s\n", text);
}

static const char *chunk_source(const CWriter *w, const KernelChunk *c) {
    return w->options->integer_only && c->integer_source ? c->integer_source : c->source;
}

void c_put_kernels(CWriter *w) {
    Map *done = map_new(w->arena);
    c_take_foreign_params(w, done);
    for (size_t i = 0; i < map_size(w->kernels); i++) {
        const KernelDef *k = map_value(w->kernels, i);
        put_once(w, done, k->params_type, k->params_source);
    }
    for (size_t i = 0; i < map_size(w->kernels); i++)
        for (const KernelChunk *const *u = ((const KernelDef *)map_value(w->kernels, i))->uses;
             u && *u; u++)
            put_once(w, done, (*u)->name, chunk_source(w, *u));
    for (size_t i = 0; i < map_size(w->kernels); i++) {
        const KernelDef *k = map_value(w->kernels, i);
        if (k->source)
            put_once(w, done, k->name, k->source);
    }
}

/* ---- the run function ---- */

/* The type of the elements in the C of an input, an output or a constant. */
static ElemType as_declared(const Program *p, const Buffer *b) {
    if (b->kind == BUF_CONST)
        return b->elem;
    return p->buffers[b->kind == BUF_INPUT ? p->inputs[b->port] : p->outputs[b->port]].elem;
}

/* "4 + band * 8"; nothing where it is 0. */
static void put_place(FILE *f, size_t first, size_t step, bool always) {
    if (first || always)
        fprintf(f, " + %zu", first);
    if (step)
        fprintf(f, " + band * %zu", step);
}

void c_put_band(CWriter *w, int buffer, size_t at, size_t step, const char *ctype, bool is_const) {
    if (buffer < 0) {
        fputs("NULL", w->f);
        return;
    }
    const Program *p = w->program;
    int root = program_root(p, buffer);
    const Buffer *b = &p->buffers[root];
    bool bytes = strcmp(ctype, "uint8_t") == 0 || strcmp(ctype, "int8_t") == 0;
    const char *constant = is_const ? "const " : "";
    const char *through = bytes ? "" : is_const ? "(const void *)" : "(void *)"; /* -Wcast-align */
    if (b->kind == BUF_ARENA && p->arena_bytes == 0) { /* scratch of no bytes, all that there is */
        fputs("NULL", w->f);
        return;
    }
    if (b->kind == BUF_ARENA) {
        fprintf(w->f, "(%s%s *)%s(mem", constant, ctype, through);
        put_place(w->f, b->offset + at, step, true);
        fputc(')', w->f);
        return;
    }
    if (b->kind == BUF_CONST && w->offsets) {
        fprintf(w->f, "(%s%s *)%s(wmem + " STR_FMT, constant, ctype, through,
                STR_ARG(w->consts[w->shared[root]]));
        put_place(w->f, at, step, false);
        fputc(')', w->f);
        return;
    }
    ElemType elem = as_declared(p, b);
    const char *own = c_type(elem);
    Str name = b->kind == BUF_CONST   ? w->consts[w->shared[root]]
               : b->kind == BUF_INPUT ? w->inputs[b->port]
                                      : w->outputs[b->port];
    size_t each = elem_bytes(elem, 1);
    bool moved = at || step;
    if (!own || strcmp(own, ctype))
        fprintf(w->f, "(%s%s *)%s", constant, ctype, through);
    fprintf(w->f, moved ? "(" STR_FMT : STR_FMT, STR_ARG(name));
    put_place(w->f, at / each, step / each, false);
    fputs(moved ? ")" : "", w->f);
}

void c_put_pointer(CWriter *w, int buffer, size_t at, const char *ctype, bool is_const) {
    c_put_band(w, buffer, at, 0, ctype, is_const);
}

static void put_pointer(CWriter *w, int buffer, const char *ctype, bool is_const) {
    c_put_pointer(w, buffer, 0, ctype, is_const);
}

/* ---- lengths that a run tells ---- */

/* "length0 * 4 + 2" */
static void put_affine(CWriter *w, LengthFn f, int n) {
    bool any = false;
    for (int i = 0; i < n; i++) {
        if (!f.per[i])
            continue;
        fprintf(w->f, f.per[i] == 1 ? "%slength%d" : "%slength%d * %lld", any ? " + " : "", i,
                (long long)f.per[i]);
        any = true;
    }
    if (f.base || !any)
        fprintf(w->f, "%s%lld", any ? " + " : "", (long long)f.base);
}

/* Opens a block in which `params` are those for the lengths of this run. */
static void put_patches(CWriter *w, const Call *call, size_t c, int indent) {
    const Patches *patches = call->patches;
    fprintf(w->f, "%*s{\n%*s%s params = " STR_FMT ";\n", indent, "", indent + 4, "",
            call->kernel->params_type, STR_ARG(w->params[c]));
    for (int i = 0; i < patches->n_lengths; i++) {
        fprintf(w->f, "%*sconst int64_t length%d = *", indent + 4, "", i);
        put_pointer(w, call->args[call->kernel->n_args + (size_t)i], "int64_t", true);
        fputs(";\n", w->f);
    }
    for (size_t i = 0; i < patches->n; i++) {
        const Patch *p = &patches->items[i];
        fprintf(w->f, "%*sparams.%s", indent + 4, "", p->field->name);
        if (p->field->count)
            fprintf(w->f, "[%zu]", p->at);
        bool real = p->field->kind == KF_F32;
        fprintf(w->f, " = %s", p->field->kind == KF_I64 ? "(" : real ? "(float)(" : "(int32_t)(");
        put_affine(w, p->to, patches->n_lengths);
        fputs(");\n", w->f);
    }
    if (!patches->skips)
        return;
    fprintf(w->f, "%*sif (", indent + 4, "");
    put_affine(w, patches->result, patches->n_lengths);
    fputs(" != 0)\n", w->f);
}

static void put_length_check(CWriter *w, const Call *call, int indent) {
    const LengthBound *b = call->bound;
    fprintf(w->f, "%*s/* ", indent, "");
    c_put_name(w->f, b->value->name);
    if (b->value->type.rank == 0)
        fputs(" is one number", w->f);
    else
        fprintf(w->f, " has %s%lld along axis %d", b->stated ? "" : "room for ", (long long)b->most,
                b->axis);
    fprintf(w->f, " */\n%*sif (*", indent, "");
    put_pointer(w, call->args[0], "int64_t", true);
    fprintf(w->f, " < %lld || *", (long long)b->least);
    put_pointer(w, call->args[0], "int64_t", true);
    fprintf(w->f, " > %lld)\n%*sreturn " STR_FMT "_ERROR_LENGTH;\n", (long long)b->most, indent + 4,
            "", STR_ARG(w->upper));
}

static void put_call(CWriter *w, size_t c, int indent) {
    const Call *call = &w->program->calls[c];
    int inner = indent;
    fprintf(w->f, "%*s", indent, "");
    c_put_layer(w, call, indent);
    if (call->n_parts) {
        c_put_parts_call(w, c, indent);
        return;
    }
    if (call->foreign) {
        c_put_foreign_call(w, c, indent);
        return;
    }
    if (call->patches) {
        put_patches(w, call, c, indent);
        inner += call->patches->skips ? 8 : 4;
        fprintf(w->f, "%*s%s(&params", inner, "", call->kernel->name);
    } else {
        fprintf(w->f, "%*s%s(&" STR_FMT, indent, "", call->kernel->name, STR_ARG(w->params[c]));
    }
    for (size_t i = 0; i < call->kernel->n_args; i++) {
        fprintf(w->f, ",\n%*s", inner + 4, "");
        put_pointer(w, call->args[i], call->kernel->args[i].ctype, call->kernel->args[i].is_const);
    }
    fputs(");\n", w->f);
    if (call->patches)
        fprintf(w->f, "%*s}\n", indent, "");
    fprintf(w->f, "%*s" STR_FMT "_STEP();\n", indent, "", STR_ARG(w->upper));
}

/* Whether other loops run in this one. */
static bool holds_loops(const Call *call) {
    for (call++; call->kind != CALL_NEXT; call++)
        if (call->kind == CALL_LOOP)
            return true;
    return false;
}

/* Loops are bounded also where their end is a condition: iterations are counted, those of nested
 * loops (`depth` is how many are around this one) together. */
static void put_loop(CWriter *w, const Call *call, int indent, int depth) {
    bool nested = depth || holds_loops(call);
    fprintf(w->f, nested && !depth ? "%*sfor (int32_t rounds = 0; *" : "%*swhile (*", indent, "");
    put_pointer(w, call->args[0], "uint8_t", true);
    fputs(" && *", w->f);
    put_pointer(w, call->args[1], "int64_t", true);
    fputs(" < *", w->f);
    put_pointer(w, call->args[2], "int64_t", true);
    fprintf(w->f, "%s) {\n%*sif (%s", nested && !depth ? ";" : "", indent + 4, "",
            nested ? "rounds++" : "*");
    if (!nested)
        put_pointer(w, call->args[1], "int64_t", true);
    fprintf(w->f, " == %d)\n%*sreturn " STR_FMT "_ERROR_LOOP;\n", LOOP_MOST, indent + 8, "",
            STR_ARG(w->upper));
}

static void put_calls(CWriter *w) {
    int indent = 4, loops = 0;
    for (size_t c = 0; c < w->n_steps; c++) {
        const Call *call = &w->program->calls[c];
        switch (call->kind) {
        case CALL_KERNEL:
            if (call->bands)
                c += c_put_bands(w, c, indent) - 1;
            else
                put_call(w, c, indent);
            break;
        case CALL_CHECK: put_length_check(w, call, indent); break;
        case CALL_IF:
            fprintf(w->f, "%*sif (*", indent, "");
            put_pointer(w, call->args[0], "uint8_t", true);
            fputs(") {\n", w->f);
            indent += 4;
            break;
        case CALL_ELSE: fprintf(w->f, "%*s} else {\n", indent - 4, ""); break;
        case CALL_END:
            if (call[-1].kind == CALL_NEXT)
                break;
            indent -= 4;
            fprintf(w->f, "%*s}\n", indent, "");
            break;
        case CALL_LOOP:
            put_loop(w, call, indent, loops++);
            indent += 4;
            break;
        case CALL_NEXT:
            loops--;
            indent -= 4;
            fprintf(w->f, "%*s}\n", indent, "");
            break;
        }
    }
}

/* The arena's memory holds elements of one type after the other. Compilers may reorder accesses of
 * different types; between two calls they must not. */
static void put_step(CWriter *w) {
    fprintf(w->f,
            "/* Memory is reused by elements of other types: no access may move past the end of a\n"
            " * step. Compilers that GNU's assembly is foreign to need their own barrier here. */\n"
            "#if !defined(" STR_FMT "_STEP)\n"
            "#if defined(__GNUC__)\n"
            "#define " STR_FMT "_STEP() __asm__ volatile(\"\" : : : \"memory\")\n"
            "#else\n"
            "#define " STR_FMT "_STEP() ((void)0)\n"
            "#endif\n"
            "#endif\n\n",
            STR_ARG(w->upper), STR_ARG(w->upper), STR_ARG(w->upper));
}

/* By buffer: whether the code names it. */
static bool *used_buffers(const CWriter *w) {
    const Program *p = w->program;
    bool *used = NEW_ARRAY(w->arena, bool, p->n_buffers);
    for (size_t c = 0; c < p->n_calls; c++)
        for (int i = 0; i < p->calls[c].n_args; i++)
            if (p->calls[c].kind != CALL_END && p->calls[c].args[i] >= 0)
                used[program_root(p, p->calls[c].args[i])] = true;
    return used;
}

static void put_weights_check(CWriter *w) {
    fprintf(w->f,
            "    const int status = " STR_FMT "_weights_start(weights);\n"
            "    if (status != " STR_FMT "_OK)\n"
            "        return status;\n"
            "    (void)wmem;\n",
            STR_ARG(w->prefix), STR_ARG(w->upper));
}

static void put_checks(CWriter *w) {
    const Program *p = w->program;
    Buf b = buf_new(w->arena);
    if (w->offsets)
        put_weights_check(w);
    if (p->arena_bytes)
        buf_text(&b, "arena == NULL");
    for (size_t i = 0; i < c_ports(w); i++) {
        Str name = c_port_name(w, i);
        buf_fmt(&b, "%s" STR_FMT " == NULL", b.n ? " || " : "", STR_ARG(name));
    }
    if (b.n)
        fprintf(w->f, "    if (%s)\n        return " STR_FMT "_ERROR_NULL;\n", buf_as_str(&b).s,
                STR_ARG(w->upper));
    if (p->arena_bytes)
        fprintf(w->f,
                "    if ((uintptr_t)arena %% " STR_FMT "_ARENA_ALIGN != 0)\n"
                "        return " STR_FMT "_ERROR_ALIGNMENT;\n",
                STR_ARG(w->upper), STR_ARG(w->upper));
    else
        fputs("    (void)arena;\n", w->f);
    const bool *used = used_buffers(w);
    for (size_t i = 0; i < p->n_inputs && !p->ports_in_arena; i++)
        if (!used[program_root(p, p->inputs[i])])
            fprintf(w->f, "    (void)" STR_FMT ";\n", STR_ARG(w->inputs[i]));
}

void c_put_run(CWriter *w) {
    put_step(w);
    c_put_parts(w);
    fprintf(w->f, "const size_t " STR_FMT "_arena_size = " STR_FMT "_ARENA_SIZE;\n\n",
            STR_ARG(w->prefix), STR_ARG(w->upper));
    c_put_prototype(w, w->f, w->offsets != NULL);
    fputs(" {\n", w->f);
    if (w->offsets)
        fputs("    const uint8_t *const wmem = (const uint8_t *)weights;\n", w->f);
    if (w->program->arena_bytes)
        fputs("    uint8_t *const mem = (uint8_t *)arena;\n", w->f);
    put_checks(w);
    c_put_parts_context(w);
    put_calls(w);
    fprintf(w->f, "    return " STR_FMT "_OK;\n}\n", STR_ARG(w->upper));
}
