/* See fold.h. */
#include "tools/kernelgen/fold.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NAMES = 64 };

typedef struct {
    const Instance *in;
    struct {
        char *from, *to; /* NAME_something, and what it is called in the compiled text */
    } names[MAX_NAMES];
    int n;
} Names;

/* The number of a private name; a new one is called what it is. */
static int find_name(Names *names, const char *s, size_t n) {
    char *word = copy(s, n);
    for (int i = 0; i < names->n; i++)
        if (!strcmp(names->names[i].from, word))
            return i;
    if (names->n == MAX_NAMES)
        fail(names->in->t->path, 1, "too many helpers");
    names->names[names->n].from = names->names[names->n].to = word;
    return names->n++;
}

/* The length of what stands together at s: a function, a struct or a table, with what is before it,
 * or all from #if to #endif. */
static size_t item_length(const char *s) {
    const char *at = s;
    bool inside = false;
    int ifs = 0;
    while (*at) {
        size_t n = strcspn(at, "\n");
        bool ended = *at == '}';
        if (starts(at, "#if")) {
            ifs++;
        } else if (starts(at, "#endif")) {
            ifs--;
            ended = !inside;
        }
        inside = (inside || (n && at[n - 1] == '{')) && *at != '}';
        at += n + (at[n] == '\n');
        if (ended && !ifs)
            break;
    }
    return (size_t)(at - s);
}

/* The item of n bytes at s with its names replaced: those from `first` on, which it brings, by
 * @something in `key`. False if it holds the name of the instance itself: then it is no helper. */
static bool rename_item(Names *names, int first, const char *s, size_t n, Text *key, Text *code) {
    const char *own = names->in->name, *end = s + n;
    size_t own_length = strlen(own);
    bool helper = true;
    while (s < end) {
        size_t m = word_length(s);
        bool known = m > own_length && starts(s, own) && s[own_length] == '_';
        helper &= m != own_length || !starts(s, own);
        if (known) {
            int i = find_name(names, s, m);
            puts_to(code, names->names[i].to);
            puts_to(key, i < first ? names->names[i].to : "@");
            puts_to(key, i < first ? "" : names->names[i].from + own_length);
        } else {
            m = m ? m : 1;
            put(code, s, m);
            put(key, s, m);
        }
        s += m;
    }
    return helper;
}

static const Helper *find_helper(const Helpers *seen, const char *key) {
    for (int i = 0; i < seen->n; i++)
        if (!strcmp(seen->list[i].key, key))
            return &seen->list[i];
    return NULL;
}

char *fold(Helpers *seen, const Instance *in) {
    Names names = {.in = in};
    Text out = {0};
    size_t n;
    for (const char *s = in->text.p; (n = item_length(s)); s += n) {
        Text key = {0}, code = {0};
        int first = names.n;
        bool helper = rename_item(&names, first, s, n, &key, &code);
        const Helper *same = helper ? find_helper(seen, key.p) : NULL;
        for (int i = first; same && i < names.n; i++) {
            Text to = {0};
            print(&to, "%s%s", same->owner, names.names[i].from + strlen(in->name));
            names.names[i].to = to.p;
        }
        if (!same)
            puts_to(&out, code.p);
        if (helper && !same) {
            seen->list = check(realloc(seen->list, (size_t)(seen->n + 1) * sizeof *seen->list));
            seen->list[seen->n++] = (Helper){key.p, in->name};
        }
    }
    puts_to(&out, "");
    return out.p;
}
