/* What the files share that make a report: report.c calls them in this order. The numbers of
 * layers and values are their places in the JSON, which docs/report.schema.json describes. */
#ifndef QXC_COMPILER_REPORT_PARTS_H
#define QXC_COMPILER_REPORT_PARTS_H

#include "compiler/json_print.h"
#include "compiler/report.h"

/* A value with all that conversions make of it: they hold the same numbers. */
typedef struct ReportValue {
    const Value *root; /* before any conversion */
    Str *names;        /* of the root and of what conversions made; all lists as in JSON */
    size_t n_names, cap_names;
    size_t own_name;    /* of these: an output's where it is one, else the root's */
    const Quant *quant; /* the first that one of them has, or NULL */
    int maker;          /* the layer, or -1: an input, a constant */
    int *readers;       /* layers */
    size_t n_readers, cap_readers;
    bool is_output, is_input, is_const;
    int number;   /* in the JSON, or -1: it stays within its layer */
    json_t *json; /* NULL where nobody is shown it */
    double sqnr;  /* NAN: not measured, or cut off on purpose */
} ReportValue;

/* A node of the model with what spells it: conversions belong to values, and the nodes that a pass
 * made of one node belong together. */
typedef struct ReportLayer {
    const Node *head; /* what the others are about */
    const Node **nodes;
    size_t n, cap;
    size_t conversions;
    int64_t macs;
    json_t *json;
} ReportLayer;

typedef struct Report {
    Session *s;
    const Job *j;
    Module *m;
    Arena *a;
    Uses *uses;
    json_t *root;
    ReportLayer **layers;
    size_t n_layers, cap_layers;
    int *layer_of; /* by Node.id: -1 for conversions */
    ReportValue **values;
    size_t n_values, cap_values;
    ReportValue **value_of; /* by Value.id */
    uint32_t n_ids;         /* of values, when these lists were made */
    Map *by_name;           /* any name of a value -> it */
    Map *by_node;           /* the name of a node, or of one that it came from -> its layer */
    Module *from;           /* the model as it was read, ready to run; NULL: nothing was measured */
} Report;

json_t *report_text_of(const Report *r, Str s);
json_t *report_count(size_t n);
/* A number, or nothing where it is none. */
void report_real(json_t *to, const char *key, double x);
json_t *report_quant(const Report *r, const Quant *q);

/* Values and layers, of the module as it was written. */
void report_find_layers(Report *r);
void report_put_layers(Report *r);
/* The same module, raised: quantizations that nodes said are parts of types now. */
void report_put_quantizations(Report *r);
/* The layer whose work the node does, of the same model in a form that runs, or -1. */
int report_layer_of(const Report *r, const Node *n);

/* Brings the module and the model that it was made of into a form that runs, and compares them.
 * False after diagnostics. */
bool report_losses(Report *r);
/* What the values of the model that was read are, on some of the samples. */
void report_seen(Report *r);
/* How much the outputs lose where one value alone is rounded. */
void report_sensitivity(Report *r);
/* What is where in the arena at which step, and the work of each layer. */
void report_memory(Report *r);
/* Commands that may help. */
void report_next(Report *r);

/* The page that shows the JSON. */
Str report_page(Arena *a, const json_t *root);

#endif
