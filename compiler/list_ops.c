/* See compiler/list_ops.h. */
#include "compiler/list_ops.h"
#include "compiler/library.h"
#include "passes/dynamic_form.h"
#include "passes/prepare/unfuse.h"
#include "passes/quant_build.h"

#include <stdlib.h>

typedef struct OpRow {
    const char *domain, *name;
    int since; /* as it is today; 0: ONNX has no such operator */
} OpRow;

typedef struct OpRows {
    OpRow *items;
    size_t n, cap;
} OpRows;

static const char *class_name(QuantClass k) {
    switch (k) {
    case QUANT_MOVE: return "moves data";
    case QUANT_ORDER: return "keeps order";
    case QUANT_MAC: return "accumulates";
    case QUANT_COMPUTE: return "computes";
    case QUANT_JOIN: return "joins";
    case QUANT_CLAMP: return "clamps";
    default: return "float only";
    }
}

/* ---- all operators ---- */

static bool is_of(const OpRow *row, const char *domain, const char *name) {
    return strcmp(row->name, name) == 0 && strcmp(row->domain, domain) == 0;
}

static bool is_listed(const OpRows *rows, const char *domain, const char *name) {
    for (size_t i = 0; i < rows->n; i++)
        if (is_of(&rows->items[i], domain, name))
            return true;
    return false;
}

/* By domain, then by name. */
static int compare(const void *x, const void *y) {
    const OpRow *a = x, *b = y;
    int by_domain = strcmp(a->domain, b->domain);
    return by_domain ? by_domain : strcmp(a->name, b->name);
}

static void add_row(Arena *a, OpRows *rows, const char *domain, const char *name) {
    OpRow row = {domain, name, 0};
    if (!is_listed(rows, domain, name))
        ARENA_PUSH(a, rows->items, rows->n, rows->cap, row);
}

static void add_schemas(Arena *a, OpRows *rows) {
    for (size_t i = 0; i < onnx_schema_count(); i++) {
        const OnnxSchema *s = onnx_schema_at(i);
        const OnnxSchema *newest =
            onnx_schema_find(str_from(s->domain), str_from(s->name), INT32_MAX);
        if (s != newest || s->flags & SCHEMA_DEPRECATED)
            continue;
        OpRow row = {s->domain, s->name, s->since};
        ARENA_PUSH(a, rows->items, rows->n, rows->cap, row);
    }
}

/* What has no schema here, either. What helps other functions alone is no operator. */
static void add_functions(Arena *a, OpRows *rows, Library *l) {
    const Map *all = library_functions(l, LIBRARY_ALL);
    for (size_t i = 0; i < map_size(all); i++) {
        const Function *f = ((const Overloads *)map_value(all, i))->items[0];
        if (!str_is(f->domain, "qxc"))
            add_row(a, rows, domain_is_onnx(f->domain) ? "" : arena_str(a, f->domain).s,
                    arena_str(a, f->name).s);
    }
}

/* Those of the schemas that newest versions still have, our rows and our functions. */
static OpRows all_rows(Arena *a, Library *l) {
    OpRows rows = {0};
    add_schemas(a, &rows);
    for (size_t i = 0; i < op_count(); i++)
        if (!op_at(i)->inner)
            add_row(a, &rows, op_at(i)->domain, op_at(i)->name);
    add_functions(a, &rows, l);
    qsort(rows.items, rows.n, sizeof *rows.items, compare);
    return rows;
}

/* ---- one ---- */

/* Of an operator of another name, or NULL: what such a node is read as. */
static const OpDef *raised_to(Str domain, Str name) {
    const OpDef *of = qop_find(domain, name);
    of = of ? of : form_find(&(Node){.domain = domain, .op = name});
    const OpDef *plain = op_find(STR(""), name);
    bool converts = plain && plain->conversion != CONVERT_NONE && str_is(domain, "com.microsoft");
    return of ? of : converts ? plain : NULL;
}

static const char *how(Library *l, Str domain, Str name) {
    const OpDef *op = op_find(domain, name);
    if (op && op->bind)
        return "kernel";
    if (raised_to(domain, name) || is_integer_product(&(Node){.domain = domain, .op = name}))
        return "types";
    return fused_product(domain, name)     ? "parts"
           : library_find(l, domain, name) ? "function"
                                           : NULL;
}

OpFacts op_facts(Library *l, Str domain, Str name) {
    const OpDef *op = op_find(domain, name), *of = raised_to(domain, name);
    const OpDef *known = of ? of : op;
    const char *product = fused_product(domain, name);
    return (OpFacts){.runs = how(l, domain, name),
                     .integers = known ? class_name(known->quant.kind) : "",
                     .qoperator = product            ? product
                                  : of               ? of->name
                                  : op && op->qop.op ? op->qop.op
                                                     : ""};
}

static void print_json(const OpRow *row, OpFacts is, bool last) {
    printf("  {\"op\": \"%s%s%s\", \"since\": %d, \"runs\": %s%s%s, \"integers\": \"%s\", "
           "\"qoperator\": \"%s\"}%s\n",
           row->domain, *row->domain ? "::" : "", row->name, row->since, is.runs ? "\"" : "",
           is.runs ? is.runs : "null", is.runs ? "\"" : "", is.integers, is.qoperator,
           last ? "" : ",");
}

static void print_row(const OpRow *row, OpFacts is) {
    char name[96];
    snprintf(name, sizeof name, "%s%s%s", row->domain, *row->domain ? "::" : "", row->name);
    if (is.runs)
        printf("%-42s  %-8s  %-12s  %s\n", name, is.runs, is.integers, is.qoperator);
    else
        printf("%-42s  -\n", name);
}

ExitCode list_ops(Session *s) {
    Library *l =
        library_open(s->arena, (const char *const *)s->o.define.items, s->o.define.n, s->d);
    if (!l)
        return EXIT_USAGE;
    OpRows rows = all_rows(s->arena, l);
    size_t run = 0;
    puts(s->o.json ? "["
                   : "operator                                    runs      integers      float "
                     "or QOperator form");
    for (size_t i = 0; i < rows.n; i++) {
        const OpRow *row = &rows.items[i];
        OpFacts is = op_facts(l, str_from(row->domain), str_from(row->name));
        run += is.runs != NULL;
        if (s->o.json)
            print_json(row, is, i + 1 == rows.n);
        else
            print_row(row, is);
    }
    if (s->o.json)
        puts("]");
    else
        printf("%zu of %zu operators run; the others are read, printed and written\n", run, rows.n);
    return EXIT_DONE;
}
