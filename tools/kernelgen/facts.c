/* See facts.h. */
#include "tools/kernelgen/facts.h"

#include <string.h>

/* Whether one of `words`, of which the last is NULL, stands in `code` outside comments. */
static bool has_word(const char *code, const char *const *words) {
    for (size_t n; *code; code += n) {
        const char *end = starts(code, "/*") ? strstr(code, "*/") : NULL;
        n = word_length(code);
        if (end)
            n = (size_t)(end + 2 - code);
        else if (starts(code, "//"))
            n = strcspn(code, "\n");
        for (const char *const *w = words; n && *w; w++)
            if (n == strlen(*w) && starts(code, *w))
                return true;
        n = n ? n : 1;
    }
    return false;
}

const char *integer_part(const char *text) {
    static const char guard[] = "!defined(QXC_INTEGER_ONLY)";
    enum { OUTSIDE, FLOAT, ELSE } at = OUTSIDE;
    Text out = {0};
    if (!strstr(text, guard))
        return NULL;
    for (size_t n; *text; text += n) {
        size_t line = strcspn(text, "\n");
        n = line + (text[line] == '\n');
        if (at == OUTSIDE && starts(text, "#if") && ends(text, line, guard))
            at = FLOAT;
        else if (at == FLOAT && starts(text, "#else"))
            at = ELSE;
        else if (at != OUTSIDE && starts(text, "#endif"))
            at = OUTSIDE;
        else if (at != FLOAT)
            put(&out, text, n);
    }
    puts_to(&out, "");
    return out.p;
}

static void add_facts(Facts *f, const Instance *in) {
    static const char *const floats[] = {"float", "double", NULL};
    static const char *const strings[] = {"memcpy", "memset", "memmove", NULL};
    const Template *t = in->t;
    const char *integers = integer_part(in->text.p);
    f->math |= t->math && (!t->math_if.text || holds(in, t->math_if.line, t->math_if.text));
    f->string |= has_word(in->text.p, strings);
    f->is_float |= f->math || has_word(integers ? integers : in->text.p, floats) ||
                   (t->params.p && has_word(t->params.p, floats));
}

Facts find_facts(const Instances *all, const Instance *in) {
    const Instance *list[MAX_WORDS];
    Facts f = {0};
    int n = 0;
    closure(all, in, list, &n);
    add_facts(&f, in);
    for (int i = 0; i < n; i++)
        add_facts(&f, list[i]);
    return f;
}
