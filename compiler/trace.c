#include "compiler/trace.h"

#include "support/platform.h"

enum { DEEPEST = 16 };

typedef struct Row {
    const char *name;
    size_t runs, peak;
    double seconds;
} Row;

struct Trace {
    Arena *arena;
    double start;
    Row *rows;
    size_t n, cap;
    double began[DEEPEST], within[DEEPEST]; /* of open parts; seconds that others took within */
    size_t depth;                           /* counts on beyond DEEPEST, where nothing is kept */
};

Trace *trace_new(Arena *a) {
    Trace *t = NEW(a, Trace);
    *t = (Trace){.arena = a, .start = clock_seconds()};
    return t;
}

void trace_begin(Trace *t) {
    if (!t)
        return;
    if (t->depth < DEEPEST) {
        t->began[t->depth] = clock_seconds();
        t->within[t->depth] = 0;
    }
    t->depth++;
}

static Row *row_of(Trace *t, const char *name) {
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->rows[i].name, name) == 0)
            return &t->rows[i];
    Row row = {.name = arena_str(t->arena, str_from(name)).s};
    ARENA_PUSH(t->arena, t->rows, t->n, t->cap, row);
    return &t->rows[t->n - 1];
}

void trace_end(Trace *t, const char *name) {
    if (!t || --t->depth >= DEEPEST)
        return;
    double all = clock_seconds() - t->began[t->depth];
    Row *row = row_of(t, name);
    row->runs++;
    row->seconds += all - t->within[t->depth];
    row->peak = memory_peak();
    if (t->depth)
        t->within[t->depth - 1] += all;
}

static void print_row(const Row *r, FILE *out) {
    fprintf(out, "%-32s  %5zu  %9.3f  %8zu\n", r->name, r->runs, r->seconds, r->peak >> 20);
}

void trace_print(Trace *t, FILE *out) {
    if (!t)
        return;
    double total = clock_seconds() - t->start;
    Row rest = {"the rest", 1, memory_peak(), total}, all = {"total", 1, rest.peak, total};
    fprintf(out, "%-32s  %5s  %9s  %8s\n", "part", "runs", "seconds", "peak MiB");
    for (size_t i = 0; i < t->n; i++) {
        print_row(&t->rows[i], out);
        rest.seconds -= t->rows[i].seconds;
    }
    print_row(&rest, out);
    print_row(&all, out);
}
