/* Prints the rules of frontend/qir/parser.y that reading the given files reduces, once each, as
 * Lemon names them: `item ::= QUANT ALIAS EQ qelem NL`. The parser is compiled with its traces for
 * this. Mistakes in the files do not matter; exits 1 where one cannot be opened.
 *
 * Usage: grammar_trace FILE... */
#include <stdio.h>
#include <stdlib.h>

#include "frontend/qir/qir_read.h"
#include "support/map.h"

void QirParseTrace(FILE *to, char *prompt);

/* Lines are "Reduce 17 [rule]..."; a rule holds no bracket. */
static void note_rules(Arena *a, Map *seen, const char *trace) {
    for (const char *p = trace; (p = strstr(p, "Reduce "));) {
        p = strchr(p, '[') + 1;
        Str rule = {p, strcspn(p, "]")};
        if (!map_get(seen, rule))
            map_set(seen, arena_str(a, rule), seen);
    }
}

static bool trace_file(Arena *rules, Map *seen, const char *path) {
    char *text = NULL;
    size_t n = 0;
    FILE *file = fopen(path, "r"), *to = open_memstream(&text, &n);
    bool ok = file && to;
    if (ok) {
        Arena *a = arena_new(0, NULL);
        QirParseTrace(to, "");
        qir_read(a, diags_new(a, NULL, false), path, NULL);
        QirParseTrace(NULL, NULL);
        arena_free(a);
    } else {
        fprintf(stderr, "grammar_trace: cannot read %s\n", path);
    }
    if (file)
        fclose(file);
    if (to)
        fclose(to);
    if (ok)
        note_rules(rules, seen, text);
    free(text);
    return ok;
}

int main(int argc, char **argv) {
    Arena *a = arena_new(0, NULL);
    Map *seen = map_new(a);
    bool ok = true;
    for (int i = 1; i < argc; i++)
        ok &= trace_file(a, seen, argv[i]);
    for (size_t i = 0; i < map_size(seen); i++)
        printf("%.*s\n", STR_ARG(map_key(seen, i)));
    arena_free(a);
    return ok ? 0 : 1;
}
