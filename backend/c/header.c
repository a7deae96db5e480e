/* model.h: sizes, what inputs and outputs are, helper macros, the prototype. */
#include "backend/c/writer.h"

#include <math.h>

#define UPPER STR_ARG(w->upper)

static Type port_type(const CWriter *w, bool out, size_t i) {
    const Program *p = w->program;
    return out ? p->yields[i]->type : p->buffers[p->inputs[i]].value->type;
}

static Str port_name(const CWriter *w, bool out, size_t i) {
    const Program *p = w->program;
    return out ? p->yields[i]->name : p->buffers[p->inputs[i]].value->name;
}

static const Buffer *port_buffer(const CWriter *w, bool out, size_t i) {
    return &w->program->buffers[out ? w->program->outputs[i] : w->program->inputs[i]];
}

Str c_port_name(const CWriter *w, size_t i) {
    size_t n = w->program->n_inputs;
    return i < n ? w->inputs[i] : w->outputs[i - n];
}

static void put_port(CWriter *w, FILE *f, bool out, size_t i) {
    const Buffer *b = port_buffer(w, out, i);
    Str name = out ? w->outputs[i] : w->inputs[i];
    fprintf(f, "%s%s " STR_FMT "[%zu]", out ? "" : "const ", c_type(b->elem), STR_ARG(name),
            b->count ? b->count : 1);
}

size_t c_ports(const CWriter *w) {
    return w->program->ports_in_arena ? 0 : w->program->n_inputs + w->program->n_outputs;
}

void c_put_prototype(CWriter *w, FILE *f, bool with_weights) {
    const Program *p = w->program;
    fprintf(f, "int " STR_FMT "_run%s(%svoid *arena", STR_ARG(w->prefix),
            with_weights ? "_with" : "", with_weights ? "const void *weights, " : "");
    for (size_t i = 0; i < c_ports(w); i++) {
        bool out = i >= p->n_inputs;
        fputs(", ", f);
        put_port(w, f, out, out ? i - p->n_inputs : i);
    }
    fputc(')', f);
}

/* ---- macros of a quantized port ---- */

/* Quantization as QuantizeLinear does it: divide, round half to even, then the zero point. What is
 * rounded is within the range of the type; the whole number before it and what is left are exact,
 * and compilers that reorder sums of floats (-ffast-math) have nothing to take apart. */
static void put_float_macros(CWriter *w, FILE *f, Str id, const Quant *q, const char *ctype) {
    int64_t zp = quant_zp(q, 0), lo = quant_lo(q), hi = quant_hi(q);
    fprintf(f, "#define " STR_FMT "_SCALE ", STR_ARG(id));
    c_put_float(w, f, (double)quant_scale(q, 0), false);
    fprintf(f, "\n#define " STR_FMT "_ZERO_POINT (%lld)\n", STR_ARG(id), (long long)zp);
    fprintf(f, "#define " STR_FMT "_DEQUANTIZE(q) ((float)((q) - %lld) * " STR_FMT "_SCALE)\n",
            STR_ARG(id), (long long)zp, STR_ARG(id));
    if (elem_bits(q->storage) > 16)
        return;
    fprintf(f, "#define " STR_FMT "_STEPS(x) ((float)((float)(x) / " STR_FMT "_SCALE))\n",
            STR_ARG(id), STR_ARG(id));
    fprintf(f, "#define " STR_FMT "_WHOLE(x) ((int)" STR_FMT "_STEPS(x))\n", STR_ARG(id),
            STR_ARG(id));
    fprintf(f, "#define " STR_FMT "_REST(x) (" STR_FMT "_STEPS(x) - (float)" STR_FMT "_WHOLE(x))\n",
            STR_ARG(id), STR_ARG(id), STR_ARG(id));
    fprintf(f, "#define " STR_FMT "_UP(r, odd) ((r) > 0.5f || ((r) >= 0.5f && (odd)) ? 1 : 0)\n",
            STR_ARG(id));
    fprintf(f,
            "#define " STR_FMT "_QUANTIZE(x) /* evaluates x several times */ \\\n"
            "    ((%s)(!(" STR_FMT "_STEPS(x) > %lld.0f)  ? %lld \\\n"
            "    : !(" STR_FMT "_STEPS(x) < %lld.0f) ? %lld \\\n"
            "    : " STR_FMT "_WHOLE(x) + (%lld) + " STR_FMT "_UP(" STR_FMT "_REST(x), " STR_FMT
            "_WHOLE(x) & 1) \\\n"
            "        - " STR_FMT "_UP(-" STR_FMT "_REST(x), " STR_FMT "_WHOLE(x) & 1)))\n",
            STR_ARG(id), ctype, STR_ARG(id), (long long)(lo - zp), (long long)lo, STR_ARG(id),
            (long long)(hi - zp), (long long)hi, STR_ARG(id), (long long)zp, STR_ARG(id),
            STR_ARG(id), STR_ARG(id), STR_ARG(id), STR_ARG(id), STR_ARG(id));
}

/* Without floating point the scale is stated exactly as an integer times a power of two. */
static void put_integer_macros(FILE *f, Str id, const Quant *q) {
    int exponent;
    double fraction = frexp((double)quant_scale(q, 0), &exponent);
    fprintf(f,
            "/* scale = MANTISSA * 2^EXPONENT */\n"
            "#define " STR_FMT "_SCALE_MANTISSA %ld\n"
            "#define " STR_FMT "_SCALE_EXPONENT (%d)\n"
            "#define " STR_FMT "_ZERO_POINT (%lld)\n",
            STR_ARG(id), (long)ldexp(fraction, 24), STR_ARG(id), exponent - 24, STR_ARG(id),
            (long long)quant_zp(q, 0));
}

/* ---- the same where there are several: lists, to initialise arrays with ---- */

typedef void PutNumber(CWriter *w, FILE *f, const Quant *q, size_t i);

static void put_scale(CWriter *w, FILE *f, const Quant *q, size_t i) {
    c_put_float(w, f, (double)quant_scale(q, i), false);
}

static void put_mantissa(CWriter *w, FILE *f, const Quant *q, size_t i) {
    (void)w;
    int exponent;
    fprintf(f, "%ld", (long)ldexp(frexp((double)quant_scale(q, i), &exponent), 24));
}

static void put_exponent(CWriter *w, FILE *f, const Quant *q, size_t i) {
    (void)w;
    int exponent;
    (void)frexp((double)quant_scale(q, i), &exponent);
    fprintf(f, "%d", exponent - 24);
}

static void put_zero_point(CWriter *w, FILE *f, const Quant *q, size_t i) {
    (void)w;
    fprintf(f, "%lld", (long long)quant_zp(q, i));
}

static void put_list(CWriter *w, FILE *f, Str id, const char *name, const Quant *q,
                     PutNumber *put) {
    enum { PER_LINE = 6 };
    fprintf(f, "#define " STR_FMT "_%s {", STR_ARG(id), name);
    for (size_t i = 0; i < q->n_scale; i++) {
        fputs(i % PER_LINE ? ", " : i ? ", \\\n    " : q->n_scale > PER_LINE ? " \\\n    " : "", f);
        put(w, f, q, i);
    }
    fputs("}\n", f);
}

/* Real value = (q - zero point) * scale, with those of the element's place along the axis. */
static void put_list_macros(CWriter *w, FILE *f, Str id, const Quant *q) {
    fprintf(f, "/* one scale and zero point for each ");
    for (int i = 0; i < q->n_axes; i++) {
        fputs(i ? " and each " : "", f);
        if (q->block[i] > 1)
            fprintf(f, "%lld indices", (long long)q->block[i]);
        else
            fputs("index", f);
        fprintf(f, " of axis %d", q->axis[i]);
    }
    fprintf(f, " */\n#define " STR_FMT "_SCALE_COUNT %zu\n", STR_ARG(id), q->n_scale);
    if (w->options->integer_only) {
        fputs("/* scale = MANTISSA * 2^EXPONENT */\n", f);
        put_list(w, f, id, "SCALE_MANTISSAS", q, put_mantissa);
        put_list(w, f, id, "SCALE_EXPONENTS", q, put_exponent);
    } else {
        put_list(w, f, id, "SCALES", q, put_scale);
    }
    put_list(w, f, id, "ZERO_POINTS", q, put_zero_point);
}

/* How much of it there is only a run tells. */
static void put_counted(CWriter *w, FILE *f, size_t i) {
    const Program *p = w->program;
    int count = i < p->module->graph->n_out ? p->count_of[i] : -1;
    if (count >= 0)
        fprintf(f,
                "; there is room for the most: " STR_FMT
                "[0] says\n * how long its open dimension is, and the rest is 0",
                STR_ARG(w->outputs[count]));
}

/* Where it lies in the arena, and a pointer to it. */
static void put_place(FILE *f, Str id, const Buffer *b) {
    fprintf(f,
            "#define " STR_FMT "_OFFSET %zu\n"
            "#define " STR_FMT "_AT(arena) ((%s *)(void *)((uint8_t *)(arena) + " STR_FMT
            "_OFFSET))\n",
            STR_ARG(id), b->offset, STR_ARG(id), c_type(b->elem), STR_ARG(id));
}

static void put_port_macros(CWriter *w, FILE *f, bool out, size_t i) {
    const Buffer *b = port_buffer(w, out, i);
    Type t = port_type(w, out, i);
    Str id = out ? w->output_macros[i] : w->input_macros[i];
    fprintf(f, "\n/* %s %zu: ", out ? "output" : "input", i);
    c_put_name(f, port_name(w, out, i));
    fputc(' ', f);
    c_put_type(w, f, t);
    int bits = elem_bits(t.elem);
    if (bits < 8)
        fprintf(f, ", %d to a byte, the first in the low bits", 8 / bits);
    if (out)
        put_counted(w, f, i);
    fprintf(f, " */\n#define " STR_FMT "_COUNT %zu\n", STR_ARG(id), b->count);
    if (w->program->ports_in_arena)
        put_place(f, id, b);
    const Quant *q = t.quant;
    if (!type_is_quantized(t) || !q->n_scale)
        return;
    if (q->n_axes)
        put_list_macros(w, f, id, q);
    else if (w->options->integer_only)
        put_integer_macros(f, id, q);
    else
        put_float_macros(
            w, f, id, q,
            c_type(elem_is_signed(q->storage) && elem_bits(q->storage) < 8 ? ELEM_INT8 : b->elem));
}

/* ---- the whole ---- */

static void put_intro(CWriter *w, FILE *f) {
    const Program *p = w->program;
    CSizes s = c_sizes(p);
    bool inside = p->ports_in_arena;
    c_put_origin(w, f);
    fprintf(
        f,
        " *\n"
        " * int " STR_FMT "_run(arena%s) runs the model once. Arrays are flat,\n"
        " * row-major, in the order of the graph. The arena belongs to the caller: " STR_FMT
        "_ARENA_SIZE\n"
        " * bytes, aligned to " STR_FMT
        "_ARENA_ALIGN; its contents need not be kept between runs.\n"
        " * %s. Nothing is allocated and nothing static is\n"
        " * written, so calls with different arenas may run at the same time.\n *\n",
        STR_ARG(w->prefix), inside ? "" : ", inputs..., outputs...", UPPER, UPPER,
        inside ? "Inputs and outputs lie in it: ..._AT(arena) points to each. A run writes over\n"
                 " * inputs, which are filled anew before the next, and outputs stay until\n * then"
               : "Outputs may not overlap inputs or the arena");
    c_put_parts_about(w, f);
    c_put_bands_about(w, f);
    fprintf(f,
            " * arena %zu bytes, tensors alive at one time have %zu;\n"
            " * flash %zu bytes of weights and tables, %zu of parameters;\n"
            " * %lld multiply-accumulates a run */\n",
            s.arena, s.alive, s.weights, s.params, (long long)s.macs);
}

static bool has_call(const Program *p, CallKind kind) {
    for (size_t i = 0; i < p->n_calls; i++)
        if (p->calls[i].kind == kind)
            return true;
    return false;
}

static void put_constants(CWriter *w, FILE *f) {
    fprintf(f,
            "\n#define " STR_FMT "_ARENA_SIZE %zu\n"
            "#define " STR_FMT "_ARENA_ALIGN %d\n\n"
            "#define " STR_FMT "_OK 0\n"
            "#define " STR_FMT "_ERROR_NULL 1      /* a pointer is NULL */\n"
            "#define " STR_FMT "_ERROR_ALIGNMENT 2 /* the %s not aligned */\n",
            UPPER, w->program->arena_bytes, UPPER, BUFFER_ALIGN, UPPER, UPPER, UPPER,
            w->offsets ? "arena or the weights are" : "arena is");
    if (w->offsets)
        fprintf(f, "#define " STR_FMT "_ERROR_WEIGHTS 3   /* these are other weights */\n", UPPER);
    if (has_call(w->program, CALL_LOOP))
        fprintf(f, "#define " STR_FMT "_ERROR_LOOP 4      /* %d iterations, and no end */\n", UPPER,
                LOOP_MOST);
    if (c_calls_foreign(w))
        fprintf(f, "#define " STR_FMT "_ERROR_KERNEL 6    /* a function that it calls failed */\n",
                UPPER);
    if (has_call(w->program, CALL_CHECK))
        fprintf(f,
                "#define " STR_FMT "_ERROR_LENGTH 5    /* a length that there is no room for */\n",
                UPPER);
}

static void put_prototypes(CWriter *w, FILE *f) {
    if (w->offsets) {
        c_put_weights_prototypes(w, f);
        fprintf(f,
                "#if !defined(" STR_FMT "_WEIGHTS_FROM) || " STR_FMT "_WEIGHTS_FROM != " STR_FMT
                "_WEIGHTS_POINTER\n"
                "extern const uint8_t " STR_FMT "_weights[];\n",
                UPPER, UPPER, UPPER, STR_ARG(w->prefix));
    }
    c_put_prototype(w, f, false);
    fputs(w->offsets ? ";\n#endif\n" : ";\n", f);
}

void c_put_header(CWriter *w, FILE *f, bool own_file) {
    const Program *p = w->program;
    put_intro(w, f);
    if (own_file)
        fprintf(f, "#ifndef QXC_" STR_FMT "_H\n#define QXC_" STR_FMT "_H\n\n", UPPER, UPPER);
    fputs("#include <stddef.h>\n#include <stdint.h>\n", f);
    put_constants(w, f);
    if (w->offsets)
        c_put_weights_macros(w, f);
    for (size_t i = 0; i < p->n_inputs; i++)
        put_port_macros(w, f, false, i);
    for (size_t i = 0; i < p->n_outputs; i++)
        put_port_macros(w, f, true, i);
    c_put_foreign_params(w, f);
    fputs("\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n", f);
    fprintf(f, "extern const size_t " STR_FMT "_arena_size;\n", STR_ARG(w->prefix));
    put_prototypes(w, f);
    c_put_foreign_prototypes(w, f);
    fputs("\n#ifdef __cplusplus\n}\n#endif\n", f);
    fputs(own_file ? "\n#endif\n" : "\n", f);
}
