/* Literals, constant arrays and params. */
#include <math.h>

#include "backend/c/writer.h"
#include "program/bands.h"

enum { LINE = 100, DENSE = 4096 };

const char *c_type(ElemType e) {
    switch (e) {
    case ELEM_INT8: return "int8_t";
    case ELEM_UINT8:
    case ELEM_BOOL: return "uint8_t";
    case ELEM_INT16: return "int16_t";
    case ELEM_UINT16: return "uint16_t";
    case ELEM_INT32: return "int32_t";
    case ELEM_UINT32: return "uint32_t";
    case ELEM_INT64: return "int64_t";
    case ELEM_UINT64: return "uint64_t";
    case ELEM_FLOAT: return "float";
    case ELEM_DOUBLE: return "double";
    case ELEM_FLOAT16:
    case ELEM_BFLOAT16: return "uint16_t"; /* their bits */
    default: return NULL;
    }
}

/* ---- literals ---- */

/* The smallest integers have no literal of their own. */
static void format_int(char out[40], ElemType e, int64_t v) {
    if (e == ELEM_INT64 && v == INT64_MIN)
        snprintf(out, 40, "(-INT64_C(9223372036854775807) - 1)");
    else if (e == ELEM_INT64 && (v > INT32_MAX || v <= INT32_MIN))
        snprintf(out, 40, "INT64_C(%lld)", (long long)v);
    else if (e == ELEM_INT32 && v == INT32_MIN)
        snprintf(out, 40, "(-2147483647 - 1)");
    else if (e == ELEM_UINT64)
        snprintf(out, 40, "UINT64_C(%llu)", (unsigned long long)v);
    else if (e == ELEM_UINT32)
        snprintf(out, 40, "%lluu", (unsigned long long)v);
    else
        snprintf(out, 40, "%lld", (long long)v);
}

static Str float_text(Arena *a, double v, bool is_double) {
    if (isnan(v))
        return STR("NAN");
    if (isinf(v))
        return v < 0 ? STR("-INFINITY") : STR("INFINITY");
    Buf b = buf_new(a);
    if (is_double)
        buf_f64(&b, v);
    else
        buf_f32(&b, (float)v);
    buf_text(&b, is_double ? "" : "f");
    return buf_as_str(&b);
}

void c_put_float(CWriter *w, FILE *f, double v, bool is_double) {
    fputs(float_text(w->arena, v, is_double).s, f);
}

/* ---- arrays ---- */

/* Collects a line; large models have tens of millions of elements, so each costs few calls. */
typedef struct Line {
    FILE *f;
    bool dense; /* no spaces: a quarter of a large file would be that */
    char text[LINE + 64];
    size_t n;
} Line;

static void line_end(Line *l) {
    if (l->n)
        fwrite(l->text, 1, l->n, l->f);
    l->n = 0;
}

static void line_put(Line *l, const char *text, size_t n) {
    if (l->n + n + 2 > LINE)
        line_end(l);
    if (l->n == 0) {
        memcpy(l->text, "\n   ", 4);
        l->n = 4;
    }
    if (!l->dense)
        l->text[l->n++] = ' ';
    memcpy(l->text + l->n, text, n);
    l->n += n;
    l->text[l->n++] = ',';
}

static void put_floats(CWriter *w, Line *l, ElemType e, const void *data, size_t count) {
    Arena *scratch = arena_scratch(w->arena); /* the text of all must not pile up */
    for (size_t i = 0; i < count; i++) {
        double v = elem_load_real(e, data, i);
        Str text = float_text(scratch, v, e == ELEM_DOUBLE);
        line_put(l, text.s, text.n);
        if (i % 4096 == 4095) {
            arena_free(scratch);
            scratch = arena_scratch(w->arena);
        }
    }
    arena_free(scratch);
}

static void put_bytes(Line *l, ElemType e, const uint8_t *data, size_t count) {
    char text[256][8];
    size_t length[256];
    for (int v = 0; v < 256; v++)
        length[v] = (size_t)snprintf(text[v], 8, "%d", e == ELEM_INT8 ? (int8_t)v : v);
    for (size_t i = 0; i < count; i++)
        line_put(l, text[data[i]], length[data[i]]);
}

void c_put_elements(CWriter *w, FILE *f, ElemType e, const void *data, size_t count) {
    Line l = {.f = f, .dense = count > DENSE};
    fputc('{', f);
    if (count == 0)
        fputs("0", f); /* an array has at least one element */
    if (e == ELEM_FLOAT || e == ELEM_DOUBLE) {
        put_floats(w, &l, e, data, count);
    } else if (elem_bits(e) == 8) {
        put_bytes(&l, e, data, count);
    } else {
        ElemType as = elem_is_float(e) ? ELEM_UINT16 : e;
        for (size_t i = 0; i < count; i++) {
            char text[40];
            format_int(text, as, elem_load_int(as, data, i));
            line_put(&l, text, strlen(text));
        }
    }
    line_end(&l);
    fputs(count ? "\n}" : "}", f);
}

/* Tables that several layers have in common (zero points, scales) are written once. */
void c_find_shared(CWriter *w) {
    const Program *p = w->program;
    w->shared = NEW_ARRAY(w->arena, int, p->n_buffers);
    Map *seen = map_new(w->arena);
    for (size_t i = 0; i < p->n_buffers; i++)
        w->shared[i] = -1;
    for (size_t c = 0; c < p->n_calls; c++)
        for (int i = 0; i < p->calls[c].n_args; i++) {
            int root = p->calls[c].args[i] < 0 ? -1 : program_root(p, p->calls[c].args[i]);
            if (root < 0 || p->buffers[root].kind != BUF_CONST || w->shared[root] >= 0)
                continue;
            const Buffer *b = &p->buffers[root];
            Str key = arena_strf(w->arena, "%d:%zu:%08x", (int)b->elem, b->count,
                                 (unsigned)crc32_of(b->data, b->bytes));
            int *first = map_get(seen, key);
            if (first && memcmp(p->buffers[*first].data, b->data, b->bytes) == 0) {
                w->shared[root] = *first;
                continue;
            }
            w->shared[root] = root;
            if (!first)
                map_set(seen, key, arena_copy(w->arena, &root, sizeof root));
        }
}

void c_put_const_origin(CWriter *w, const Call *call, int arg, int root) {
    const Buffer *b = &w->program->buffers[root];
    c_put_node(w->f, call->node);
    fprintf(w->f, ", %s", c_arg_name(call, arg));
    if (b->value) {
        fputs(": ", w->f);
        c_put_name(w->f, b->value->name);
        fputc(' ', w->f);
        c_put_type(w, w->f, b->value->type);
    } else if (b->comment) {
        fputs(": ", w->f);
        c_put_comment(w->f, b->comment);
    }
}

void c_put_alignment(CWriter *w, const Buffer *b) {
    if (b->elem == ELEM_INT8)
        fputs("#if defined(QK_MVE)\n__attribute__((aligned(4)))\n#endif\n", w->f);
}

static void put_const(CWriter *w, const Call *call, int arg, int root) {
    const Buffer *b = &w->program->buffers[root];
    fputs("/* ", w->f);
    c_put_const_origin(w, call, arg, root);
    fputs(" */\n", w->f);
    if (c_is_string(b)) {
        c_put_string_const(w, b, w->consts[root]);
        return;
    }
    c_put_alignment(w, b);
    fprintf(w->f, "static const %s " STR_FMT "[%zu] = ", c_type(b->elem), STR_ARG(w->consts[root]),
            b->count ? b->count : 1);
    c_put_elements(w, w->f, b->elem, b->data, b->count);
    fputs(";\n\n", w->f);
}

void c_each_const(CWriter *w, void (*put)(CWriter *w, const Call *call, int arg, int root)) {
    const Program *p = w->program;
    bool *done = NEW_ARRAY(w->arena, bool, p->n_buffers);
    for (size_t c = 0; c < p->n_calls; c++)
        for (int i = 0; i < p->calls[c].n_args; i++) {
            int root = p->calls[c].args[i] < 0 ? -1 : program_root(p, p->calls[c].args[i]);
            if (root < 0 || w->shared[root] != root || done[root])
                continue;
            done[root] = true;
            put(w, &p->calls[c], i, root);
        }
}

void c_put_consts(CWriter *w) {
    c_each_const(w, put_const);
}

/* ---- params ---- */

static Str field_text(Arena *a, const KernelField *f, const void *params, size_t i) {
    const uint8_t *at = (const uint8_t *)params + f->offset + i * (f->kind == KF_I64 ? 8 : 4);
    char text[40];
    int64_t wide;
    int32_t narrow;
    float real;
    switch (f->kind) {
    case KF_F32: memcpy(&real, at, sizeof real); return float_text(a, (double)real, false);
    case KF_I64:
        memcpy(&wide, at, sizeof wide);
        format_int(text, ELEM_INT64, wide);
        break;
    default:
        memcpy(&narrow, at, sizeof narrow);
        format_int(text, ELEM_INT32, narrow);
        break;
    }
    return arena_str(a, str_from(text));
}

/* In order of the fields, named in comments: designators are not C++17. */
static void put_field(CWriter *w, const KernelField *f, const void *params, size_t *column) {
    Buf b = buf_new(w->arena);
    buf_fmt(&b, " /* %s */ %s", f->name, f->count ? "{" : "");
    for (size_t i = 0; i < kernel_field_count(f); i++) {
        buf_text(&b, i ? ", " : "");
        buf_str(&b, field_text(w->arena, f, params, i));
    }
    buf_text(&b, f->count ? "}," : ",");
    Str text = buf_as_str(&b);
    if (*column + text.n > LINE) {
        fputs("\n   ", w->f);
        *column = 3;
    }
    fwrite(text.s, 1, text.n, w->f);
    *column += text.n;
}

static void put_fields(CWriter *w, const Call *call, const void *params) {
    size_t column = 3;
    for (size_t i = 0; i < call->kernel->n_fields; i++)
        put_field(w, &call->kernel->fields[i], params, &column);
}

/* Those of all parts; bands share them. */
static void put_all_params(CWriter *w, const Call *call) {
    size_t done = 0;
    fprintf(w->f, "[%zu] = {{\n   ", call_params_held(call));
    for (size_t i = 0; i < call->n_parts; i++) {
        if (call->bands && (!call->parts[i].params || bands_params_of(call, i) < done))
            continue;
        fputs(done++ ? "\n}, {\n   " : "", w->f);
        put_fields(w, call, call->parts[i].params);
    }
    fputs("\n}};\n", w->f);
}

void c_put_params(CWriter *w) {
    const Program *p = w->program;
    for (size_t c = 0; c < p->n_calls; c++) {
        const Call *call = &p->calls[c];
        if (call->kind != CALL_KERNEL)
            continue;
        fputs("/* ", w->f);
        c_put_node(w->f, call->node);
        fprintf(w->f, " */\nstatic const %s " STR_FMT, call->kernel->params_type,
                STR_ARG(w->params[c]));
        if (call->n_parts)
            put_all_params(w, call);
        else {
            fputs(" = {\n   ", w->f);
            put_fields(w, call, call->params);
            fputs("\n};\n", w->f);
        }
    }
    fputc('\n', w->f);
}

static bool special_field(const KernelField *f, const void *params) {
    for (size_t i = 0; f->kind == KF_F32 && i < kernel_field_count(f); i++) {
        float v;
        memcpy(&v, (const uint8_t *)params + f->offset + 4 * i, sizeof v);
        if (!isfinite(v))
            return true;
    }
    return false;
}

static bool special_elements(const Buffer *b, const void *data) {
    if (b->elem == ELEM_FLOAT)
        return !row_is_finite(data, b->count);
    for (size_t i = 0; b->elem == ELEM_DOUBLE && i < b->count; i++)
        if (!isfinite(elem_load_real(b->elem, data, i)))
            return true;
    return false;
}

/* The numbers that the test bench feeds and expects. */
static bool special_test(const Program *p, const CTest *t) {
    for (size_t i = 0; i < p->n_inputs; i++)
        if (special_elements(&p->buffers[p->inputs[i]], t->inputs[i]))
            return true;
    for (size_t i = 0; i < p->n_outputs; i++)
        if (special_elements(&p->buffers[p->outputs[i]], t->outputs[i]))
            return true;
    return false;
}

bool c_needs_math(const CWriter *w) {
    const Program *p = w->program;
    for (size_t c = 0; c < p->n_calls; c++) {
        const Call *call = &p->calls[c];
        if (call->kind != CALL_KERNEL)
            continue;
        if (call->kernel->needs_math)
            return true;
        for (size_t i = 0; i < call->kernel->n_fields; i++)
            if (special_field(&call->kernel->fields[i], call->params))
                return true;
    }
    for (size_t i = 0; i < p->n_buffers; i++)
        if (p->buffers[i].kind == BUF_CONST && special_elements(&p->buffers[i], p->buffers[i].data))
            return true;
    for (size_t i = 0; i < w->options->n_tests; i++)
        if (special_test(p, &w->options->tests[i]))
            return true;
    return false;
}
