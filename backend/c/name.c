/* Identifiers and comments from names that may hold any bytes. */
#include <ctype.h>

#include "backend/c/writer.h"
#include "program/bands.h"
#include "support/utf8.h"

enum { MAX_IDENTIFIER = 40, MAX_PREFIX = 120, MAX_COMMENT_NAME = 80 };

/* Words that a name of ours may not be: keywords of C and C++, names that headers of C, compilers
 * and Windows define as macros, and what the run function uses itself. */
static const char *const reserved[] = {
    "alignas",      "alignof",       "and",          "and_eq",    "arena",
    "asm",          "auto",          "bitand",       "bitor",     "bool",
    "break",        "case",          "catch",        "char",      "class",
    "compl",        "const",         "const_cast",   "constexpr", "continue",
    "decltype",     "default",       "delete",       "do",        "double",
    "dynamic_cast", "else",          "enum",         "errno",     "explicit",
    "export",       "extern",        "false",        "float",     "for",
    "friend",       "goto",          "if",           "inline",    "int",
    "linux",        "long",          "main",         "mem",       "mutable",
    "namespace",    "new",           "noexcept",     "not",       "not_eq",
    "nullptr",      "offsetof",      "operator",     "or",        "or_eq",
    "private",      "protected",     "public",       "register",  "reinterpret_cast",
    "restrict",     "return",        "short",        "signed",    "sizeof",
    "static",       "static_assert", "static_cast",  "struct",    "switch",
    "template",     "this",          "thread_local", "throw",     "true",
    "try",          "typedef",       "typeid",       "typename",  "typeof",
    "union",        "unix",          "unsigned",     "using",     "virtual",
    "void",         "volatile",      "wchar_t",      "while",     "xor",
    "xor_eq",       "stdin",         "stdout",       "stderr",    "assert",
    "concept",      "requires",      "complex",      "imaginary", "i386",
    "NULL",         "EOF",           "NAN",          "I",         "math_errhandling",
    "noreturn",     "typeof_unqual", "consteval",    "constinit", "co_await",
    "co_return",    "co_yield",      "near",         "far",       "cdecl",
    "pascal",       "interface",     "small",        "mips",      "sparc",
    "sun",          "AVR",           "P_tmpdir",
};

/* How other macros of <inttypes.h>, <math.h> and <stdio.h> begin that have small letters in them.
 */
static const char *const reserved_starts[] = {"qk_", "PRI", "SCN", "M_", "L_"};

/* Letters, digits and single underscores, a letter first: never a reserved identifier. `out` has
 * room for `most` characters and two more. */
static size_t spell(char *out, Str name, size_t most) {
    size_t n = 0;
    for (size_t i = 0; i < name.n && n < most; i++) {
        unsigned char c = (unsigned char)name.s[i];
        if (c < 128 && isalnum(c)) {
            if (n == 0 && isdigit(c))
                out[n++] = 'x';
            out[n++] = (char)c;
        } else if (n > 0 && out[n - 1] != '_') {
            out[n++] = '_';
        }
    }
    while (n > 0 && out[n - 1] == '_')
        n--;
    if (n == 0)
        out[n++] = 'x';
    out[n] = 0;
    return n;
}

/* All capitals is what macros of standard headers look like. */
bool c_is_of_library(Str s) {
    static const char *const functions[] = {
        /* <string.h> */
        "memchr", "memcmp", "memcpy", "memmove", "memset", "strcat", "strchr", "strcmp", "strcoll",
        "strcpy", "strcspn", "strerror", "strlen", "strncat", "strncmp", "strncpy", "strpbrk",
        "strrchr", "strspn", "strstr", "strtok", "strxfrm",
        /* <math.h>, without the endings f and l */
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign",
        "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "fdim", "floor", "fma",
        "fmax", "fmin", "fmod", "frexp", "hypot", "ilogb", "ldexp", "lgamma", "llrint", "llround",
        "log", "log10", "log1p", "log2", "logb", "lrint", "lround", "modf", "nan", "nearbyint",
        "nextafter", "nexttoward", "pow", "remainder", "remquo", "rint", "round", "scalbln",
        "scalbn", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc",
        /* of <stdio.h> and <stdlib.h>, which a test bench has, and what compilers know unasked */
        "abort", "abs", "atexit", "calloc", "exit", "fclose", "fflush", "fgets", "fopen", "fprintf",
        "fputs", "fread", "free", "fwrite", "getchar", "getenv", "labs", "llabs", "malloc",
        "perror", "printf", "putchar", "puts", "qsort", "rand", "realloc", "remove", "rename",
        "scanf", "snprintf", "sprintf", "srand", "sscanf", "strtod", "strtol", "strtoul", "system",
        "vfprintf", "vprintf", "vsnprintf", "vsprintf"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        Str f = str_from(functions[i]);
        bool ending = s.n == f.n + 1 && (s.s[f.n] == 'f' || s.s[f.n] == 'l');
        if (s.n >= f.n && memcmp(s.s, f.s, f.n) == 0 && (s.n == f.n || ending))
            return true;
    }
    return false;
}

bool c_is_reserved(Str s) {
    bool capitals = s.n > 3;
    for (size_t i = 0; i < s.n; i++)
        capitals = capitals && !islower((unsigned char)s.s[i]);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (str_is(s, reserved[i]))
            return true;
    for (size_t i = 0; i < sizeof reserved_starts / sizeof *reserved_starts; i++)
        if (str_starts(s, reserved_starts[i]))
            return true;
    return capitals || str_ends(s, "_t");
}

static Str unique(CWriter *w, Map *names, Str base) {
    Str s = base;
    for (int i = 2; map_get(names, s); i++)
        s = arena_strf(w->arena, STR_FMT "_%d", STR_ARG(base), i);
    map_set(names, s, w);
    return s;
}

Str c_identifier(CWriter *w, Str base) {
    char text[MAX_IDENTIFIER + 8];
    size_t n = spell(text, base, MAX_IDENTIFIER);
    Str s = arena_str(w->arena, (Str){text, n});
    return unique(w, w->names, c_is_reserved(s) ? arena_strf(w->arena, "%s_", text) : s);
}

/* Something is always appended to it, so it may be a keyword; but not look like a kernel. */
Str c_prefix(Arena *a, Str name) {
    char *text = NEW_ARRAY(a, char, name.n + 3);
    Str s = {text, name.s ? spell(text, name, name.n + 1) : 0};
    if (!s.n)
        return STR("model");
    return str_starts(s, "qk_") ? arena_strf(a, "m_%s", text) : s;
}

bool c_prefix_fits(Arena *a, Str name, Diags *d) {
    Str s = c_prefix(a, name);
    return s.n <= MAX_PREFIX ||
           diag_error(d, LOC_NONE,
                      "all names in C would begin with the %zu characters of '" STR_FMT
                      "'; at most %d do: choose fewer with -name=PREFIX",
                      s.n, STR_ARG(s), MAX_PREFIX);
}

static Str upper(Arena *a, Str s) {
    char *out = arena_copy(a, s.s, s.n + 1);
    for (size_t i = 0; i < s.n; i++)
        out[i] = (char)toupper((unsigned char)s.s[i]);
    return (Str){out, s.n};
}

static Str port_name(CWriter *w, Map *macros, Str onnx, Str *macro) {
    Str name = c_identifier(w, onnx), capitals = upper(w->arena, name);
    *macro = unique(
        w, macros, arena_strf(w->arena, STR_FMT "_" STR_FMT, STR_ARG(w->upper), STR_ARG(capitals)));
    return name;
}

/* Their names are what users type, so they choose first. */
static void name_ports(CWriter *w) {
    const Program *p = w->program;
    Map *macros = map_new(w->arena);
    w->inputs = NEW_ARRAY(w->arena, Str, p->n_inputs);
    w->outputs = NEW_ARRAY(w->arena, Str, p->n_outputs);
    w->input_macros = NEW_ARRAY(w->arena, Str, p->n_inputs);
    w->output_macros = NEW_ARRAY(w->arena, Str, p->n_outputs);
    for (size_t i = 0; i < p->n_inputs; i++)
        w->inputs[i] =
            port_name(w, macros, p->buffers[p->inputs[i]].value->name, &w->input_macros[i]);
    for (size_t i = 0; i < p->n_outputs; i++)
        w->outputs[i] = port_name(w, macros, p->yields[i]->name, &w->output_macros[i]);
}

const char *c_arg_name(const Call *call, int arg) {
    if (call->kind == CALL_KERNEL && (size_t)arg < call->kernel->n_args)
        return call->kernel->args[arg].name;
    if (call->kind == CALL_KERNEL || call->kind == CALL_CHECK)
        return "length";
    return call->kind == CALL_IF ? "condition" : "result";
}

static void name_const(CWriter *w, const Call *call, int arg, int root) {
    const Value *v = w->program->buffers[root].value;
    Str what = v ? v->name : str_from(c_arg_name(call, arg));
    w->consts[root] = c_identifier(w, arena_strf(w->arena, "k%d_" STR_FMT, root, STR_ARG(what)));
}

static void name_params(CWriter *w, size_t c) {
    const Node *n = w->program->calls[c].node;
    Str name = !n ? STR("input") : n->name.n || !n->n_out || !n->out[0] ? n->name : n->out[0]->name;
    w->params[c] = c_identifier(w, arena_strf(w->arena, "p%zu_" STR_FMT, c, STR_ARG(name)));
}

void c_choose_names(CWriter *w) {
    const Program *p = w->program;
    w->prefix = c_prefix(w->arena, w->options->prefix);
    w->upper = upper(w->arena, w->prefix);
    w->names = map_new(w->arena);
    map_set(w->names, arena_strf(w->arena, STR_FMT "_run", STR_ARG(w->prefix)), w);
    map_set(w->names, arena_strf(w->arena, STR_FMT "_arena_size", STR_ARG(w->prefix)), w);
    if (w->offsets) {
        static const char *const own[] = {"weights", "weights_start", "weights_check",
                                          "weights_end", "run_with"};
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            map_set(w->names, arena_strf(w->arena, STR_FMT "_%s", STR_ARG(w->prefix), own[i]), w);
        map_set(w->names, STR("weights"), w);
        map_set(w->names, STR("wmem"), w);
        map_set(w->names, STR("status"), w);
    }
    c_take_foreign_names(w);
    if (program_bands(p).calls)
        map_set(w->names, STR("band"), w);
    if (p->n_bounds)
        map_set(w->names, STR("params"), w);
    for (int i = 0; i < CALL_MAX_ARGS && p->n_bounds; i++)
        map_set(w->names, arena_strf(w->arena, "length%d", i), w);
    name_ports(w);
    w->consts = NEW_ARRAY(w->arena, Str, p->n_buffers);
    w->params = NEW_ARRAY(w->arena, Str, p->n_calls);
    for (size_t c = 0; c < p->n_calls; c++) {
        const Call *call = &p->calls[c];
        if (call->kind == CALL_KERNEL)
            name_params(w, c);
        for (int i = 0; i < call->n_args; i++) {
            int root = call->args[i] < 0 ? -1 : program_root(p, call->args[i]);
            if (root >= 0 && w->shared[root] == root && !w->consts[root].s)
                name_const(w, call, i, root);
        }
    }
}

/* ---- comments ---- */

/* Breaks up what would end or nest a comment, and trigraphs. */
static void put_char(FILE *f, const char *s, size_t n, char *last) {
    char c = n == 1 ? *s : 0;
    if ((*last == '*' && c == '/') || (*last == '/' && c == '*') || (*last == '?' && c == '?'))
        fputc(' ', f);
    if (c == '\\')
        fputc('\\', f);
    fwrite(s, 1, n, f);
    *last = c;
}

static void put_up_to(FILE *f, Str s, size_t most) {
    char last = 0;
    size_t i = 0;
    while (i < s.n && i < most) {
        uint32_t code;
        size_t n = utf8_decode(s.s + i, s.n - i, &code);
        if (n && utf8_printable(code))
            put_char(f, s.s + i, n, &last);
        else
            fprintf(f, "\\x%02X", (unsigned char)s.s[i]);
        i += n && utf8_printable(code) ? n : 1;
    }
    if (i < s.n)
        fputs("...", f);
}

static void put_text(FILE *f, Str s) {
    put_up_to(f, s, MAX_COMMENT_NAME);
}

void c_put_name(FILE *f, Str name) {
    fputc('"', f);
    put_text(f, name);
    fputc('"', f);
}

void c_put_comment(FILE *f, const char *text) {
    put_text(f, str_from(text));
}

void c_put_origin(const CWriter *w, FILE *f) {
    Str rest = w->options->origin.n ? w->options->origin : STR("Generated by qxc");
    for (const char *sign = "/* "; rest.n; sign = " * ") {
        const char *end = memchr(rest.s, '\n', rest.n);
        Str line = {rest.s, end ? (size_t)(end - rest.s) : rest.n};
        fputs(line.n ? sign : " *", f);
        put_up_to(f, line, SIZE_MAX);
        fputc('\n', f);
        rest = (Str){line.s + line.n + (end != NULL), rest.n - line.n - (end != NULL)};
    }
}

static void put_quant(CWriter *w, FILE *f, const Quant *q) {
    Buf b = buf_new(w->arena);
    buf_fmt(&b, "%sq<", elem_name(q->storage));
    if (q->kind == QUANT_DYNAMIC)
        buf_text(&b, "dynamic");
    if (q->n_scale == 1) {
        buf_f32(&b, quant_scale(q, 0));
        buf_fmt(&b, ", %lld", (long long)quant_zp(q, 0));
    } else if (q->n_scale) {
        buf_fmt(&b, "%zu scales%s", q->n_scale, quant_zp_all_zero(q) ? "" : " and zero points");
    }
    buf_text(&b, ">");
    fputs(buf_as_str(&b).s, f);
}

void c_put_type(CWriter *w, FILE *f, Type t) {
    if (type_is_quantized(t))
        put_quant(w, f, t.quant);
    else
        fputs(elem_name(t.elem), f);
    fputc('[', f);
    for (int i = 0; i < t.rank; i++) {
        fputs(i ? "," : "", f);
        if (t.dims[i].value < 0)
            fputc('?', f);
        else
            fprintf(f, "%lld", (long long)t.dims[i].value);
    }
    fputc(']', f);
    if (t.tilde && t.quant) {
        fputs(" ~ ", f);
        put_quant(w, f, t.quant);
    }
}

void c_put_node(FILE *f, const Node *n) {
    if (!n) {
        fputs("graph input or output", f);
        return;
    }
    put_text(f, n->op);
    fputc(' ', f);
    c_put_name(f, n->name.n || !n->n_out || !n->out[0] ? n->name : n->out[0]->name);
}
