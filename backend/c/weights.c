/* -weights-file: constants in a file of their own, and how C gets at it.
 *
 * The file: four words (magic, layout, bytes of the whole, CRC-32 of what follows), then the
 * constants, each at a multiple of BUFFER_ALIGN, all numbers little-endian; zeros between. */
#include "backend/c/writer.h"

#define UPPER  STR_ARG(w->upper)
#define PREFIX STR_ARG(w->prefix)

enum { HEAD = 16, LAYOUT = 1 };
#define MAGIC 0x57435851u /* "QXCW" */

static size_t round_up(size_t n) {
    return (n + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
}

/* What stands between buffers: less than BUFFER_ALIGN zeros. */
static const uint8_t zeros[BUFFER_ALIGN];

bool c_place_weights(CWriter *w) {
    const Program *p = w->program;
    w->offsets = NEW_ARRAY(w->arena, size_t, p->n_buffers);
    size_t at = HEAD;
    uint32_t crc = crc32_of("", 0);
    for (size_t i = 0; i < p->n_buffers; i++) {
        const Buffer *b = &p->buffers[i];
        if (w->shared[i] != (int)i)
            continue;
        if (b->bytes > INT32_MAX || at + round_up(b->bytes) > INT32_MAX) /* offsets: enumerators */
            return diag_error(w->diags, LOC_NONE,
                              "-weights-file: more than 2 GiB of weights and tables");
        w->offsets[i] = at;
        crc = crc32_more(crc, b->data, b->bytes);
        crc = crc32_more(crc, zeros, round_up(b->bytes) - b->bytes);
        at += round_up(b->bytes);
    }
    w->weights_size = at;
    w->weights_crc = crc;
    return true;
}

static void put_word(FILE *f, uint32_t v) {
    for (int i = 0; i < 4; i++)
        fputc((int)(v >> 8 * i & 255), f);
}

void c_put_weights_file(CWriter *w, FILE *f) {
    const Program *p = w->program;
    put_word(f, MAGIC);
    put_word(f, LAYOUT);
    put_word(f, (uint32_t)w->weights_size);
    put_word(f, w->weights_crc);
    for (size_t i = 0; i < p->n_buffers; i++) {
        if (w->shared[i] != (int)i)
            continue;
        fwrite(p->buffers[i].data, 1, p->buffers[i].bytes, f);
        fwrite(zeros, 1, round_up(p->buffers[i].bytes) - p->buffers[i].bytes, f);
    }
}

/* ---- header ---- */

void c_put_weights_macros(CWriter *w, FILE *f) {
    fprintf(f,
            "\n/* Weights and tables are in %s: %zu bytes, little-endian, aligned to\n"
            " * " STR_FMT "_WEIGHTS_ALIGN in memory. " STR_FMT
            "_WEIGHTS_FROM says how the code gets them:\n"
            " * _EMBED: #embed takes them in (the default where the compiler has that);\n"
            " * _OBJECT: an object file defines " STR_FMT "_weights (the default elsewhere);\n"
            " * _POINTER: the caller passes them to " STR_FMT "_run_with, there is no " STR_FMT
            "_run. */\n",
            w->options->weights_name, w->weights_size, UPPER, UPPER, PREFIX, PREFIX, PREFIX);
    fprintf(f,
            "#define " STR_FMT "_WEIGHTS_EMBED 1\n#define " STR_FMT
            "_WEIGHTS_OBJECT 2\n#define " STR_FMT "_WEIGHTS_POINTER 3\n",
            UPPER, UPPER, UPPER);
    fprintf(f,
            "#define " STR_FMT "_WEIGHTS_SIZE %zu\n#define " STR_FMT
            "_WEIGHTS_ALIGN %d\n#define " STR_FMT "_WEIGHTS_CRC32 0x%08lxu\n",
            UPPER, w->weights_size, UPPER, BUFFER_ALIGN, UPPER, (unsigned long)w->weights_crc);
}

void c_put_weights_prototypes(CWriter *w, FILE *f) {
    fputs("/* The same with weights given by the caller. */\n", f);
    c_put_prototype(w, f, true);
    fprintf(f,
            ";\n/* Reads all of the weights: " STR_FMT "_OK where their checksum is right. */\n"
            "int " STR_FMT "_weights_check(const void *weights);\n",
            UPPER, PREFIX);
}

/* ---- source ---- */

static void put_offset(CWriter *w, const Call *call, int arg, int root) {
    const Buffer *b = &w->program->buffers[root];
    fprintf(w->f, "    " STR_FMT " = %zu, /* %s[%zu] of ", STR_ARG(w->consts[root]),
            w->offsets[root], c_type(b->elem), b->count);
    c_put_const_origin(w, call, arg, root);
    fputs(" */\n", w->f);
}

/* Where constants start in the file, as enumerators. */
static void put_offsets(CWriter *w) {
    fprintf(w->f, "/* Offsets in %s. */\nenum {\n", w->options->weights_name);
    c_each_const(w, put_offset);
    fprintf(w->f, "    " STR_FMT "_weights_end = " STR_FMT "_WEIGHTS_SIZE\n};\n\n", PREFIX, UPPER);
}

static void put_embed(CWriter *w) {
    const char *file = w->options->weights_name;
    fprintf(w->f,
            "#ifndef " STR_FMT "_WEIGHTS_FROM\n"
            "#if defined(__has_embed)\n"
            "#if __has_embed(\"%s\")\n"
            "#define " STR_FMT "_WEIGHTS_FROM " STR_FMT "_WEIGHTS_EMBED\n"
            "#endif\n#endif\n"
            "#ifndef " STR_FMT "_WEIGHTS_FROM\n"
            "#define " STR_FMT "_WEIGHTS_FROM " STR_FMT "_WEIGHTS_OBJECT\n"
            "#endif\n#endif\n\n",
            UPPER, file, UPPER, UPPER, UPPER, UPPER, UPPER);
    fprintf(w->f,
            "#if " STR_FMT "_WEIGHTS_FROM == " STR_FMT "_WEIGHTS_EMBED\n"
            "#if defined(__clang__)\n#pragma clang diagnostic push\n"
            "#pragma clang diagnostic ignored \"-Wc23-extensions\"\n"
            "#elif defined(__GNUC__)\n#pragma GCC diagnostic push\n"
            "#pragma GCC diagnostic ignored \"-Wpedantic\"\n#endif\n"
            "#if defined(__GNUC__)\n__attribute__((aligned(" STR_FMT "_WEIGHTS_ALIGN)))\n#endif\n"
            "const uint8_t " STR_FMT "_weights[] = {\n#embed \"%s\"\n};\n"
            "typedef char " STR_FMT "_weights_have_their_size[sizeof " STR_FMT
            "_weights == " STR_FMT "_WEIGHTS_SIZE ? 1 : -1];\n"
            "#if defined(__clang__)\n#pragma clang diagnostic pop\n"
            "#elif defined(__GNUC__)\n#pragma GCC diagnostic pop\n#endif\n#endif\n\n",
            UPPER, UPPER, UPPER, PREFIX, file, PREFIX, PREFIX, UPPER);
}

/* The words at the start are compared as the processor reads them, which also finds a big-endian
 * one that no macro told about. */
static void put_check(CWriter *w) {
    fprintf(w->f,
            "#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)\n"
            "#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__\n"
            "#error \"%s holds little-endian numbers: write this model without -weights-file\"\n"
            "#endif\n#endif\n\n",
            w->options->weights_name);
    fprintf(w->f,
            "/* The right file, by what its start says. */\n"
            "static int " STR_FMT "_weights_start(const void *weights) {\n"
            "    static const uint32_t start[4] = {0x%08lxu, %du, " STR_FMT
            "_WEIGHTS_SIZE, " STR_FMT "_WEIGHTS_CRC32};\n"
            "    if (weights == NULL)\n        return " STR_FMT "_ERROR_NULL;\n"
            "    if ((uintptr_t)weights %% " STR_FMT "_WEIGHTS_ALIGN != 0)\n"
            "        return " STR_FMT "_ERROR_ALIGNMENT;\n"
            "    return memcmp(weights, start, sizeof start) == 0 ? " STR_FMT "_OK : " STR_FMT
            "_ERROR_WEIGHTS;\n}\n\n",
            PREFIX, (unsigned long)MAGIC, LAYOUT, UPPER, UPPER, UPPER, UPPER, UPPER, UPPER, UPPER);
    fprintf(w->f,
            "int " STR_FMT "_weights_check(const void *weights) {\n"
            "    const uint8_t *const bytes = (const uint8_t *)weights;\n"
            "    uint32_t crc = 0xffffffffu;\n"
            "    size_t i;\n"
            "    int bit;\n"
            "    const int status = " STR_FMT "_weights_start(weights);\n"
            "    if (status != " STR_FMT "_OK)\n        return status;\n"
            "    for (i = %d; i < " STR_FMT "_WEIGHTS_SIZE; i++) {\n"
            "        crc ^= bytes[i];\n"
            "        for (bit = 0; bit < 8; bit++)\n"
            "            crc = crc >> 1 ^ ((crc & 1u) != 0u ? 0xedb88320u : 0u);\n"
            "    }\n"
            "    return (crc ^ 0xffffffffu) == " STR_FMT "_WEIGHTS_CRC32 ? " STR_FMT
            "_OK : " STR_FMT "_ERROR_WEIGHTS;\n}\n\n",
            PREFIX, PREFIX, UPPER, HEAD, UPPER, UPPER, UPPER, UPPER);
}

void c_put_weights(CWriter *w) {
    put_offsets(w);
    put_embed(w);
    put_check(w);
}

void c_put_run_with_own_weights(CWriter *w) {
    fprintf(w->f, "\n#if " STR_FMT "_WEIGHTS_FROM != " STR_FMT "_WEIGHTS_POINTER\n", UPPER, UPPER);
    c_put_prototype(w, w->f, false);
    fprintf(w->f, " {\n    return " STR_FMT "_run_with(" STR_FMT "_weights, arena", PREFIX, PREFIX);
    for (size_t i = 0; i < c_ports(w); i++)
        fprintf(w->f, ", " STR_FMT, STR_ARG(c_port_name(w, i)));
    fputs(");\n}\n#endif\n", w->f);
}
