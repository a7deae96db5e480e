/* From a template and its types to text. See instance.h. */
#include "tools/kernelgen/instance.h"

#include <ctype.h>
#include <string.h>

static bool may_be(const Template *t, char letter, const char *word) {
    for (int i = 0; i < t->n_letters; i++) {
        const Letter *l = &t->letters[i];
        if (l->letter != letter)
            continue;
        if (l->derived)
            return find_type(word);
        for (int k = 0; k < l->n; k++)
            if (!strcmp(l->list[k]->id, word))
                return true;
    }
    return false;
}

bool holds(const Instance *in, int line, const char *text) {
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
            if (!may_be(in->t, s[0], v))
                fail(path, line, "%c is never '%s'", s[0], v);
            found |= !strcmp(bound->id, v);
        }
        all &= found != negated;
    }
    if (!terms)
        fail(path, line, "a condition is missing");
    return all;
}

void substitute(const Instance *in, int line, const char *s, Text *out) {
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

void expand_body(Instance *in) {
    const Template *t = in->t;
    struct {
        int line;
        bool on, outer;
    } stack[8];
    int depth = 0;
    bool on = true;
    puts_to(&in->text, ""); /* perhaps no line is for this instance */
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

/* One word of C: float, NAME_f32, 0.5f, and the functions of <math.h>. */
static void widen_word(const char *s, size_t n, Text *out) {
    static const char *const math[] = {
        "expf",  "tanhf",  "sqrtf", "powf",   "logf",   "fabsf",     "erff",   "sinf",
        "cosf",  "floorf", "ceilf", "log1pf", "expm1f", "copysignf", "fmodf",  "tanf",
        "asinf", "acosf",  "atanf", "sinhf",  "coshf",  "asinhf",    "acoshf", "atanhf"};
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

char *widened(const char *s) {
    Text out = {0};
    while (*s) {
        size_t n = word_length(s);
        if (n)
            widen_word(s, n, &out);
        else
            put(&out, s, n = 1);
        s += n;
    }
    return out.p;
}
