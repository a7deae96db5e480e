/* The report on a compiled module (docs/report.md): sizes, memory and work, and for each layer
 * whether it is integer or float, why, what onnxruntime will fuse it into, and how much it lost on
 * the data there is. As JSON (docs/report.schema.json), as an HTML page that holds this JSON and
 * loads nothing else, or as Graphviz text. */
#ifndef QXC_COMPILER_REPORT_H
#define QXC_COMPILER_REPORT_H

#include "compiler/session.h"

/* The text, in the arena of the module. Losses are measured on -input, else on the calibration
 * data: that brings `m` into the form that runs, so nothing else can be written of it afterwards.
 * Without text after diagnostics. */
Str report_text(Session *s, const Job *j, Module *m, bool html);
/* The same as -report=FILE asks for it. */
bool report_write(Session *s, const Job *j, Module *m, FILE *to);
/* Nodes coloured by what they compute on, edges with their types; `m` stays as it is. */
Str dot_text(const Job *j, Module *m);

/* What both say of a node. */
typedef struct NodeReport {
    const Node *node;
    const char *kind; /* "integer", "float", "conversion" */
    const char *runs; /* the operator onnxruntime makes of it; NULL: not known for this target */
    const char *why;  /* why it is float, or not fused; NULL */
} NodeReport;
NodeReport report_node(const Job *j, const Node *n, const Uses *u);
/* Products with weights alone as integers, in whose place onnxruntime puts MatMulNBits. */
size_t report_rounded(const Job *j, Module *m);

#endif
