/* Reads the kernel templates (format: kernels/kernel.h) and prints a C file with every instance,
 * compiled and as text, and the table behind kernel_find; with -header as first argument, a C
 * header with the params structs, for those who fill them in. Files whose first line starts with
 * the comment opener of C are ordinary headers and are passed over. A malformed template is
 * reported as FILE:LINE: message, exit status 1. Memory is left to the system: this is a
 * short-lived tool. */
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LETTERS = 8, MAX_TYPES = 16, MAX_WORDS = 32, MAX_FILES = 256, MAX_FIELDS = 64 };

typedef struct {
    char *p;
    size_t n, cap;
} Text;

typedef struct {
    const char *id, *ctype, *min, *max;
    int bits;
} Type;

static const Type types[] = {
    {"s8", "int8_t", "INT8_MIN", "INT8_MAX", 8},
    {"u8", "uint8_t", "0", "UINT8_MAX", 8},
    {"s16", "int16_t", "INT16_MIN", "INT16_MAX", 16},
    {"u16", "uint16_t", "0", "UINT16_MAX", 16},
    {"s32", "int32_t", "INT32_MIN", "INT32_MAX", 32},
    {"u32", "uint32_t", "0", "UINT32_MAX", 32},
    {"s64", "int64_t", "INT64_MIN", "INT64_MAX", 64},
    {"f32", "float", NULL, NULL, 32},
    {"p8", "uint8_t", NULL, NULL, 8}, /* 1, 2 or 4 bits each, packed as in ONNX */
    {"x8", "uint8_t", NULL, NULL, 8},
    {"x16", "uint16_t", NULL, NULL, 16},
    {"x32", "uint32_t", NULL, NULL, 32},
    {"x64", "uint64_t", NULL, NULL, 64},
    /* How sums are rounded, which is no type: the second is what an instance's name ends in. */
    {"exact", "", NULL, NULL, 0},
    {"single", "_single", NULL, NULL, 0},
    {"double", "_double", NULL, NULL, 0},
    {"shift", "_shift", NULL, NULL, 0},
};

typedef struct { /* one template letter: listed types, or derived from other letters */
    char letter;
    const Type *list[MAX_TYPES];
    int n;
    char derived; /* 'a'cc, 'e'xpand, 'w'iden, 0 = listed */
    char from[MAX_LETTERS + 1];
} Letter;

typedef struct {
    int line;
    char *text;
} Line;

typedef struct {
    const char *path;
    char name[64];
    bool chunk, math;
    bool twin; /* once more in double: `also f64` */
    Letter letters[MAX_LETTERS];
    int n_letters;
    Line skips[MAX_WORDS], uses[MAX_WORDS];
    char *use_if[MAX_WORDS]; /* condition of each use, or NULL */
    int n_skips, n_uses;
    Text params; /* comment and struct */
    int params_line;
    Line *body;
    int n_body;
} Template;

typedef struct {
    const Template *t;
    const Type *bind[256]; /* letter -> type */
    char name[96];
    Text text;
    char *uses[MAX_WORDS]; /* names of chunks, direct */
    int n_uses;
    bool emitted;
} Instance;

static Template *templates[MAX_FILES];
static int n_templates;
static Instance *instances;
static int n_instances;

static _Noreturn void fail(const char *path, int line, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%s:%d: error: ", path, line);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

static void *check(void *p) {
    if (!p) {
        fputs("kernelgen: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

static void put(Text *t, const char *s, size_t n) {
    if (t->n + n + 1 > t->cap) {
        t->cap = 2 * (t->n + n + 1);
        t->p = check(realloc(t->p, t->cap));
    }
    memcpy(t->p + t->n, s, n);
    t->n += n;
    t->p[t->n] = 0;
}

static void puts_to(Text *t, const char *s) {
    put(t, s, strlen(s));
}

static char *copy(const char *s, size_t n) {
    char *p = check(calloc(n + 1, 1));
    return memcpy(p, s, n);
}

static const Type *find_type(const char *id) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].id, id))
            return &types[i];
    return NULL;
}

/* ---- reading a template ---- */

static const Letter *find_letter(const Template *t, char c) {
    for (int i = 0; i < t->n_letters; i++)
        if (t->letters[i].letter == c)
            return &t->letters[i];
    return NULL;
}

static Letter *new_letter(Template *t, int line, char c) {
    if (!isupper((unsigned char)c) || find_letter(t, c) || t->n_letters == MAX_LETTERS)
        fail(t->path, line, "'%c' is not a new upper-case template letter", c);
    Letter *l = &t->letters[t->n_letters++];
    l->letter = c;
    return l;
}

/* `X=s8,u8` */
static void read_listed(Template *t, int line, char *word) {
    if (!word[0] || word[1] != '=')
        fail(t->path, line, "expected LETTER=TYPE,... but found '%s'", word);
    Letter *l = new_letter(t, line, word[0]);
    for (char *save, *s = strtok_r(word + 2, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
        const Type *ty = find_type(s);
        if (!ty || l->n == MAX_TYPES)
            fail(t->path, line, "unknown type '%s'", s);
        l->list[l->n++] = ty;
    }
}

/* `A = X W` */
static void read_derived(Template *t, int line, char **w, int n, char how) {
    if (n < 3 || strlen(w[0]) != 1 || strcmp(w[1], "="))
        fail(t->path, line, "expected LETTER = LETTER...");
    Letter *l = new_letter(t, line, w[0][0]);
    l->derived = how;
    for (int i = 2; i < n; i++) {
        if (strlen(w[i]) != 1 || !find_letter(t, w[i][0]))
            fail(t->path, line, "unknown template letter '%s'", w[i]);
        l->from[i - 2] = w[i][0];
    }
}

static void read_directive(Template *t, int line, const char *text) {
    char *buf = copy(text, strlen(text)), *w[MAX_WORDS];
    int n = 0;
    for (char *save, *s = strtok_r(buf, " \t", &save); s; s = strtok_r(NULL, " \t", &save)) {
        if (n == MAX_WORDS)
            fail(t->path, line, "too many words");
        w[n++] = s;
    }
    if (!n)
        fail(t->path, line, "empty directive");
    if (!strcmp(w[0], "template")) {
        for (int i = 1; i < n; i++)
            read_listed(t, line, w[i]);
    } else if (!strcmp(w[0], "acc") || !strcmp(w[0], "expand") || !strcmp(w[0], "widen")) {
        read_derived(t, line, w + 1, n - 1, w[0][0]);
    } else if (!strcmp(w[0], "skip") && t->n_skips < MAX_WORDS) {
        t->skips[t->n_skips++] = (Line){line, strstr(copy(text, strlen(text)), "skip") + 4};
    } else if (!strcmp(w[0], "uses")) {
        char *cond = strstr(copy(text, strlen(text)), " if ");
        for (int i = 1; i < n && strcmp(w[i], "if") && t->n_uses < MAX_WORDS; i++) {
            t->use_if[t->n_uses] = cond ? cond + 4 : NULL;
            t->uses[t->n_uses++] = (Line){line, w[i]};
        }
    } else if (!strcmp(w[0], "math") && n == 1) {
        t->math = true;
    } else if (!strcmp(w[0], "also") && n == 2 && !strcmp(w[1], "f64")) {
        t->twin = true;
    } else {
        fail(t->path, line, "unknown directive '%s'", w[0]);
    }
}

static bool starts(const char *s, const char *prefix) {
    return !strncmp(s, prefix, strlen(prefix));
}

/* The first line: `//! kernel NAME` or `//! chunk NAME`, NAME being the file's. */
static void read_heading(Template *t, const char *s) {
    char kind[16];
    if (sscanf(s, "//! %15s %63s", kind, t->name) != 2 ||
        (strcmp(kind, "kernel") && strcmp(kind, "chunk")))
        fail(t->path, 1, "expected '//! kernel NAME' or '//! chunk NAME'");
    t->chunk = !strcmp(kind, "chunk");
    const char *base = strrchr(t->path, '/') ? strrchr(t->path, '/') + 1 : t->path;
    if (strncmp(base, t->name, strlen(t->name)) || strcmp(base + strlen(t->name), ".h"))
        fail(t->path, 1, "'%s' does not match the file name", t->name);
}

static char **read_lines(const char *path, int *n) {
    FILE *f = fopen(path, "r");
    if (!f)
        fail(path, 1, "cannot read");
    char **lines = NULL, *line = NULL;
    size_t cap = 0;
    *n = 0;
    for (ssize_t len; (len = getline(&line, &cap, f)) >= 0;) {
        while (len > 0 && strchr("\r\n", line[len - 1]))
            len--;
        lines = check(realloc(lines, (size_t)(*n + 1) * sizeof *lines));
        lines[(*n)++] = copy(line, (size_t)len);
    }
    fclose(f);
    return lines;
}

/* Heading, directives, comment and struct (kernels), then the body. */
static void read_template(const char *path) {
    int n, i = 1;
    char **lines = read_lines(path, &n);
    if (n && starts(lines[0], "/*"))
        return;
    Template *t = check(calloc(1, sizeof *t));
    t->path = path;
    read_heading(t, n ? lines[0] : "");
    for (; i < n && starts(lines[i], "//! "); i++)
        read_directive(t, i + 1, lines[i] + 4);
    if (!t->chunk) {
        for (; i < n && !starts(lines[i], "}"); i++) {
            if (starts(lines[i], "//!"))
                fail(path, i + 1, "a directive here would be ignored");
            if (starts(lines[i], "typedef struct {"))
                t->params_line = i + 1;
            puts_to(&t->params, lines[i]);
            puts_to(&t->params, "\n");
        }
        char end[80];
        snprintf(end, sizeof end, "} qk_%s_params;", t->name);
        if (i == n || !t->params_line || strcmp(lines[i], end))
            fail(path, i + 1, "expected 'typedef struct {' ... '%s'", end);
        puts_to(&t->params, end);
        puts_to(&t->params, "\n");
        i++;
    }
    t->body = check(calloc((size_t)(n - i + 1), sizeof *t->body));
    while (i < n && !lines[i][0])
        i++;
    for (; i < n; i++)
        t->body[t->n_body++] = (Line){i + 1, lines[i]};
    if (n_templates == MAX_FILES)
        fail(path, 1, "too many files");
    templates[n_templates++] = t;
}

/* ---- instances ---- */

/* True when every `X=s8,u8` or `X!=s8` in `text` holds. */
static bool holds(const Instance *in, int line, const char *text) {
    const char *path = in->t->path;
    char *buf = copy(text, strlen(text));
    bool all = true;
    int terms = 0;
    for (char *save, *s = strtok_r(buf, " ", &save); s; s = strtok_r(NULL, " ", &save), terms++) {
        const Type *bound = in->bind[(unsigned char)s[0]];
        bool negated = s[1] == '!';
        if (!bound || s[1 + negated] != '=')
            fail(path, line, "expected LETTER=TYPE,... or LETTER!=TYPE,... but found '%s'", s);
        bool found = false;
        char *save2;
        for (char *v = strtok_r(s + 2 + negated, ",", &save2); v; v = strtok_r(NULL, ",", &save2)) {
            if (!find_type(v))
                fail(path, line, "unknown type '%s'", v);
            found |= find_type(v) == bound;
        }
        all &= found != negated;
    }
    if (!terms)
        fail(path, line, "a condition is missing");
    return all;
}

static void substitute(const Instance *in, int line, const char *s, Text *out) {
    while (*s) {
        const char *d = strchr(s, '$');
        if (!d) {
            puts_to(out, s);
            return;
        }
        put(out, s, (size_t)(d - s));
        s = d + 1;
        size_t n = 0;
        while (isalpha((unsigned char)s[n]))
            n++;
        const Type *up = in->bind[(unsigned char)s[0]];
        const Type *low = in->bind[toupper((unsigned char)s[0])];
        if (n == 4 && starts(s, "NAME"))
            puts_to(out, in->name);
        else if (n == 1 && up)
            puts_to(out, up->ctype);
        else if (n == 1 && low)
            puts_to(out, low->bits ? low->id : low->ctype);
        else if (n == 4 && up && up->min && starts(s + 1, "MIN"))
            puts_to(out, up->min);
        else if (n == 4 && up && up->min && starts(s + 1, "MAX"))
            puts_to(out, up->max);
        else
            fail(in->t->path, line, "nothing to substitute for '$%.*s'", (int)n, s);
        s += n;
    }
}

static void expand_body(Instance *in) {
    const Template *t = in->t;
    struct {
        int line;
        bool on, outer;
    } stack[8];
    int depth = 0;
    bool on = true;
    for (int i = 0; i < t->n_body; i++) {
        int line = t->body[i].line;
        const char *s = t->body[i].text, *d = s + strspn(s, " ");
        if (starts(d, "//! if ")) {
            if (depth == 8)
                fail(t->path, line, "nested too deeply");
            stack[depth].line = line;
            stack[depth].outer = on;
            stack[depth++].on = on = on && holds(in, line, d + 7);
        } else if (!strcmp(d, "//! else") && depth) {
            on = stack[depth - 1].outer && !stack[depth - 1].on;
        } else if (!strcmp(d, "//! end") && depth) {
            on = stack[--depth].outer;
        } else if (starts(d, "//!")) {
            fail(t->path, line, "unexpected directive '%s'", d);
        } else if (on) {
            substitute(in, line, s, &in->text);
            puts_to(&in->text, "\n");
        }
    }
    if (depth)
        fail(t->path, stack[depth - 1].line, "'if' without 'end'");
}

/* ---- `also f64`: the same text once more, on double ---- */

static bool ends(const char *s, size_t n, const char *tail) {
    size_t m = strlen(tail);
    return n >= m && !strncmp(s + n - m, tail, m);
}

/* One word of C: float, NAME_f32, 0.5f, and the functions of <math.h>. */
static void widen_word(const char *s, size_t n, Text *out) {
    static const char *const math[] = {"expf",  "tanhf",  "sqrtf",  "powf",     "logf",
                                       "fabsf", "erff",   "sinf",   "cosf",     "floorf",
                                       "ceilf", "log1pf", "expm1f", "copysignf"};
    bool suffixed = isdigit((unsigned char)*s) && s[n - 1] == 'f' && !(n > 1 && s[1] == 'x');
    for (size_t i = 0; i < sizeof math / sizeof *math; i++)
        suffixed |= n == strlen(math[i]) && !strncmp(s, math[i], n);
    if (n == 5 && !strncmp(s, "float", n)) {
        puts_to(out, "double");
    } else if (ends(s, n, "_f32")) {
        put(out, s, n - 4);
        puts_to(out, "_f64");
    } else {
        put(out, s, suffixed ? n - 1 : n);
    }
}

static char *widened(const char *s) {
    Text out = {0};
    while (*s) {
        size_t n = 0;
        while (isalnum((unsigned char)s[n]) || s[n] == '_' ||
               (s[n] == '.' && isdigit((unsigned char)*s)))
            n++;
        if (n)
            widen_word(s, n, &out);
        else
            put(&out, s, n = 1);
        s += n;
    }
    return out.p;
}

static void add_twin(const Instance *of) {
    Instance in = *of;
    size_t n = strlen(in.name);
    if (!ends(in.name, n, "_f32"))
        fail(in.t->path, 1, "only what is called NAME_f32 has a form in double");
    memcpy(in.name + n - 2, "64", 2);
    for (int i = 0; i < in.n_uses; i++)
        in.uses[i] = widened(in.uses[i]);
    in.text = (Text){0};
    expand_body(&in);
    puts_to(&in.text, ""); /* a body without a line */
    in.text.p = widened(in.text.p);
    instances = check(realloc(instances, (size_t)(n_instances + 1) * sizeof *instances));
    instances[n_instances++] = in;
}

/* The signed type derived from types of at most `bits`. */
static const Type *derive(char how, int bits) {
    if (how == 'w')
        return find_type(bits == 8 ? "s16" : bits == 16 ? "s32" : "s64");
    if (how == 'a')
        return find_type(bits == 8 ? "s32" : "s64");
    return find_type(bits == 8 ? "s16" : "s32");
}

static void finish_instance(const Template *t, const Type *const *bind) {
    Instance in = {.t = t};
    memcpy(in.bind, bind, sizeof in.bind);
    int at = snprintf(in.name, sizeof in.name, "%s%s", t->chunk ? "" : "qk_", t->name);
    for (int i = 0; i < t->n_letters; i++) {
        const Letter *l = &t->letters[i];
        if (!l->derived) {
            const Type *ty = bind[(unsigned char)l->letter];
            at += snprintf(in.name + at, sizeof in.name - (size_t)at, "%s%s", ty->bits ? "_" : "",
                           ty->bits ? ty->id : ty->ctype);
            continue;
        }
        int bits = 0;
        for (const char *c = l->from; *c; c++)
            if (in.bind[(unsigned char)*c]->bits > bits)
                bits = in.bind[(unsigned char)*c]->bits;
        in.bind[(unsigned char)l->letter] = derive(l->derived, bits);
    }
    for (int i = 0; i < t->n_skips; i++)
        if (holds(&in, t->skips[i].line, t->skips[i].text))
            return;
    for (int i = 0; i < t->n_uses; i++) {
        Text s = {0};
        if (t->use_if[i] && !holds(&in, t->uses[i].line, t->use_if[i]))
            continue;
        substitute(&in, t->uses[i].line, t->uses[i].text, &s);
        in.uses[in.n_uses++] = s.p;
    }
    expand_body(&in);
    instances = check(realloc(instances, (size_t)(n_instances + 1) * sizeof *instances));
    instances[n_instances++] = in;
    size_t n = strlen(in.name);
    if (t->twin && (t->n_letters == 0 || ends(in.name, n, "_f32")))
        add_twin(&in);
}

static void instantiate(const Template *t, int letter, const Type **bind) {
    if (letter == t->n_letters) {
        finish_instance(t, bind);
        return;
    }
    const Letter *l = &t->letters[letter];
    if (l->derived) {
        instantiate(t, letter + 1, bind);
        return;
    }
    for (int i = 0; i < l->n; i++) {
        bind[(unsigned char)l->letter] = l->list[i];
        instantiate(t, letter + 1, bind);
    }
}

static Instance *find_chunk(const Instance *user, const char *name) {
    for (int i = 0; i < n_instances; i++)
        if (instances[i].t->chunk && !strcmp(instances[i].name, name))
            return &instances[i];
    fail(user->t->path, user->t->uses[0].line, "%s uses chunk '%s', which does not exist",
         user->name, name);
}

/* All chunks `in` needs, each after those it needs itself. */
static void closure(const Instance *in, Instance **list, int *n) {
    for (int i = 0; i < in->n_uses; i++) {
        Instance *c = find_chunk(in, in->uses[i]);
        closure(c, list, n);
        bool seen = false;
        for (int j = 0; j < *n; j++)
            seen |= list[j] == c;
        if (!seen && *n == MAX_WORDS)
            fail(in->t->path, 1, "too many chunks");
        if (!seen)
            list[(*n)++] = c;
    }
}

/* ---- printing ---- */

static void print_string(const char *s) {
    fputs("    \"", stdout);
    for (; *s; s++) {
        if (*s == '\n')
            fputs(s[1] ? "\\n\"\n    \"" : "\\n", stdout);
        else if (*s == '"' || *s == '\\')
            printf("\\%c", *s);
        else
            putchar(*s);
    }
    putchar('"');
}

static void print_field(const Template *t, int line, const char *kind, char *declarator) {
    declarator += strspn(declarator, " ");
    char *bracket = strchr(declarator, '[');
    long count = bracket ? strtol(bracket + 1, NULL, 10) : 0;
    if (bracket && (count < 1 || count > 8))
        fail(t->path, line, "array length must be 1..8");
    if (bracket)
        *bracket = 0;
    printf("    {\"%s\", %s, offsetof(qk_%s_params, %s), %ld},\n", declarator, kind, t->name,
           declarator, count);
}

/* Fields are one declaration per line: `int32_t a, b[8]; // comment` */
static void print_fields(const Template *t) {
    printf("static const KernelField fields_%s[] = {\n", t->name);
    char *buf = copy(t->params.p, t->params.n), *save;
    char *s = strstr(buf, "typedef struct {");
    int line = t->params_line;
    bool in_comment = false;
    for (s = strtok_r(s, "\n", &save); (s = strtok_r(NULL, "\n", &save)) && *s != '}';) {
        line++;
        s += strspn(s, " ");
        if (in_comment || starts(s, "/*")) {
            in_comment = !strstr(s, "*/");
            continue;
        }
        const char *kind = starts(s, "int32_t ")   ? "KF_I32"
                           : starts(s, "int64_t ") ? "KF_I64"
                           : starts(s, "float ")   ? "KF_F32"
                                                   : NULL;
        char *semi = strchr(s, ';');
        if (!kind || !semi)
            fail(t->path, line, "expected 'int32_t|int64_t|float name, name[N];'");
        in_comment = strstr(semi, "/*") && !strstr(semi, "*/");
        *semi = 0;
        s = strchr(s, ' ');
        for (char *save2, *d = strtok_r(s, ",", &save2); d; d = strtok_r(NULL, ",", &save2))
            print_field(t, line, kind, d);
    }
    puts("};\n");
}

/* Arguments after the params: `const T *name` or `T *name`. Returns how many. */
static int print_args(const Instance *in) {
    const Template *t = in->t;
    char head[256];
    snprintf(head, sizeof head, "static void %s(const qk_%s_params *p,", in->name, t->name);
    char *sig = strstr(in->text.p ? in->text.p : "", head);
    if (!sig)
        fail(t->path, t->params_line, "no 'static void $NAME(const qk_%s_params *p, ...'", t->name);
    sig += strlen(head);
    char *end = strchr(sig, ')'), *buf = copy(sig, (size_t)(end - sig)), *save;
    printf("static const KernelArg args_%s[] = {\n", in->name);
    int n = 0;
    for (char *s = strtok_r(buf, ",", &save); s; s = strtok_r(NULL, ",", &save), n++) {
        char ctype[32], name[32];
        s += strspn(s, " \n");
        bool is_const = starts(s, "const ");
        if (sscanf(s + (is_const ? 6 : 0), "%31s *%31[a-zA-Z0-9_]", ctype, name) != 2)
            fail(t->path, t->params_line, "cannot read argument '%s' of %s", s, in->name);
        printf("    {\"%s\", \"%s\", %s},\n", name, ctype, is_const ? "true" : "false");
    }
    puts("};");
    return n;
}

static int *n_args_of;
static bool *math_of;

static void print_kernel(int i) {
    Instance *in = &instances[i], *list[MAX_WORDS];
    int n = 0;
    closure(in, list, &n);
    math_of[i] = in->t->math;
    fputs(in->text.p, stdout);
    n_args_of[i] = print_args(in);
    printf("static const char *const uses_%s[] = {", in->name);
    for (int j = 0; j < n; j++) {
        printf("\"%s\", ", list[j]->name);
        math_of[i] |= list[j]->t->math;
    }
    puts("NULL};");
    printf("static void call_%s(const void *params, void *const *args) {\n    %s(params", in->name,
           in->name);
    for (int j = 0; j < n_args_of[i]; j++)
        printf(", args[%d]", j);
    puts(");\n}\n");
}

static void print_table(void) {
    puts("static const KernelDef kernels[] = {");
    int n = 0;
    for (int i = 0; i < n_instances; i++) {
        const char *k = instances[i].name, *t = instances[i].t->name;
        if (instances[i].t->chunk)
            continue;
        n++;
        printf("    {\"%s\", \"qk_%s_params\", sizeof(qk_%s_params), fields_%s, sizeof fields_%s / "
               "sizeof *fields_%s, args_%s, %d, params_%s,\n",
               k, t, t, t, t, t, k, n_args_of[i], t);
        print_string(instances[i].text.p);
        printf(",\n     uses_%s, %s, call_%s},\n", k, math_of[i] ? "true" : "false", k);
    }
    puts("};\n");
    puts("static const char *const chunks[][2] = {");
    for (int i = 0; i < n_instances; i++)
        if (instances[i].t->chunk) {
            printf("    {\"%s\",\n", instances[i].name);
            print_string(instances[i].text.p);
            puts("},");
        }
    puts("};\n");
    printf("size_t kernel_count(void) { return %d; }\n", n);
    puts("const KernelDef *kernel_at(size_t i) { return &kernels[i]; }\n\n"
         "const KernelDef *kernel_find(const char *name) {\n"
         "    for (size_t i = 0; i < kernel_count(); i++)\n"
         "        if (!strcmp(kernels[i].name, name))\n"
         "            return &kernels[i];\n"
         "    return NULL;\n}\n\n"
         "const char *kernel_chunk(const char *name) {\n"
         "    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)\n"
         "        if (!strcmp(chunks[i][0], name))\n"
         "            return chunks[i][1];\n"
         "    return NULL;\n}");
}

static void print_header(void) {
    puts("/* Generated by tools/kernelgen.c from kernels/; do not edit. */\n"
         "#ifndef QXC_KERNELS_GEN_H\n#define QXC_KERNELS_GEN_H\n\n#include <stdint.h>\n");
    for (int i = 0; i < n_templates; i++)
        if (!templates[i]->chunk)
            puts(templates[i]->params.p);
    puts("#endif");
}

int main(int argc, char **argv) {
    bool header = argc > 1 && !strcmp(argv[1], "-header");
    for (int i = header ? 2 : 1; i < argc; i++)
        read_template(argv[i]);
    if (header) {
        print_header();
        return fflush(stdout) || ferror(stdout);
    }
    for (int i = 0; i < n_templates; i++) {
        const Type *bind[256] = {0};
        instantiate(templates[i], 0, bind);
    }
    n_args_of = check(calloc((size_t)n_instances + 1, sizeof *n_args_of));
    math_of = check(calloc((size_t)n_instances + 1, sizeof *math_of));
    puts("/* Generated by tools/kernelgen.c from kernels/; do not edit. */\n"
         "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n"
         "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n"
         "#include \"kernels/kernel.h\"\n");
    for (int i = 0; i < n_templates; i++)
        if (!templates[i]->chunk) {
            fputs(templates[i]->params.p, stdout);
            print_fields(templates[i]);
            printf("static const char params_%s[] =\n", templates[i]->name);
            print_string(templates[i]->params.p);
            puts(";\n");
        }
    for (int i = 0; i < n_instances; i++) {
        Instance *list[MAX_WORDS];
        int n = 0;
        closure(&instances[i], list, &n);
        if (instances[i].t->chunk && n < MAX_WORDS)
            list[n++] = &instances[i];
        for (int j = 0; j < n; j++)
            if (!list[j]->emitted) {
                list[j]->emitted = true;
                fputs(list[j]->text.p, stdout);
                putchar('\n');
            }
    }
    for (int i = 0; i < n_instances; i++)
        if (!instances[i].t->chunk)
            print_kernel(i);
    print_table();
    return fflush(stdout) || ferror(stdout);
}
