/* See template.h. */
#include "tools/kernelgen/template.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const Type types[] = {
    {"s8", "int8_t", "INT8_MIN", "INT8_MAX", 8},
    {"u8", "uint8_t", "0", "UINT8_MAX", 8},
    {"s16", "int16_t", "INT16_MIN", "INT16_MAX", 16},
    {"u16", "uint16_t", "0", "UINT16_MAX", 16},
    {"s32", "int32_t", "INT32_MIN", "INT32_MAX", 32},
    {"u32", "uint32_t", "0", "UINT32_MAX", 32},
    {"s64", "int64_t", "INT64_MIN", "INT64_MAX", 64},
    {"u64", "uint64_t", "0", "UINT64_MAX", 64},
    {"f32", "float", NULL, NULL, 32},
    {"f64", "double", NULL, NULL, 64},
    {"p8", "uint8_t", NULL, NULL, 8}, /* 1, 2 or 4 bits each, packed as in ONNX */
    {"x8", "uint8_t", NULL, NULL, 8},
    {"x16", "uint16_t", NULL, NULL, 16},
    {"x32", "uint32_t", NULL, NULL, 32},
    {"x64", "uint64_t", NULL, NULL, 64},
};

const Type *find_type(const char *id) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].id, id))
            return &types[i];
    return NULL;
}

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

/* A word that is no type, an operation perhaps: it stands for what an instance's name ends in. */
static const Type *new_word(const char *id) {
    Type *t = check(calloc(1, sizeof *t));
    Text suffix = {0};
    puts_to(&suffix, strcmp(id, "exact") ? "_" : ""); /* how sums are rounded by default */
    puts_to(&suffix, strcmp(id, "exact") ? id : "");
    t->id = copy(id, strlen(id));
    t->ctype = suffix.p;
    return t;
}

/* `X=s8,u8` */
static void read_listed(Template *t, int line, char *word) {
    if (!word[0] || word[1] != '=')
        fail(t->path, line, "expected LETTER=TYPE,... but found '%s'", word);
    Letter *l = new_letter(t, line, word[0]);
    for (char *save, *s = strtok_r(word + 2, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
        const Type *ty = find_type(s);
        if (l->n == MAX_TYPES)
            fail(t->path, line, "too many words");
        l->list[l->n++] = ty ? ty : new_word(s);
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

/* What `//! split WORD` is called in kernels/kernel.h, or NULL. */
static const char *find_split(const char *word) {
    static const char *const splits[][2] = {{"rows", "SPLIT_ROWS"}, {"product", "SPLIT_PRODUCT"}};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
        if (!strcmp(splits[i][0], word))
            return splits[i][1];
    return NULL;
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
    } else if (!strcmp(w[0], "math") && (n == 1 || !strcmp(w[1], "if"))) {
        t->math = true;
        t->math_if = (Line){line, n > 1 ? strstr(copy(text, strlen(text)), " if ") + 4 : NULL};
    } else if (!strcmp(w[0], "also") && n == 2 && !strcmp(w[1], "f64")) {
        t->twin = true;
    } else if (!strcmp(w[0], "wide") && n == 1) {
        t->wide = true;
    } else if (!strcmp(w[0], "split") && n == 2 && find_split(w[1])) {
        t->split = find_split(w[1]);
    } else if (!strcmp(w[0], "each") && n > 1) {
        t->each = (Line){line, strstr(copy(text, strlen(text)), "each") + 4};
    } else {
        fail(t->path, line, "unknown directive '%s'", w[0]);
    }
}

/* The first line: `//! kernel NAME` or `//! chunk NAME`, NAME being the file's. */
static void read_heading(Template *t, const char *s) {
    char kind[16];
    if (sscanf(s, "//! %15s %63s", kind, t->name) != 2 ||
        (strcmp(kind, "kernel") && strcmp(kind, "chunk")))
        fail(t->path, 1, "expected '//! kernel NAME' or '//! chunk NAME'");
    t->chunk = !strcmp(kind, "chunk");
    const char *base = strrchr(t->path, '/') ? strrchr(t->path, '/') + 1 : t->path;
    if (strncmp(base, t->name, strlen(t->name)) || strcmp(base + strlen(t->name), ".qk"))
        fail(t->path, 1, "'%s' does not match the file name", t->name);
}

/* Heading, directives, comment and struct (kernels), then the body. */
const Template *read_template(const char *path) {
    int n, i = 1;
    char **lines = read_lines(path, &n);
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
    return t;
}
