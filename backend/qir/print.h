/* The printer's state and parts. Private to backend/qir. Scratch memory is the module's arena. */
#ifndef QXC_BACKEND_QIR_PRINT_H
#define QXC_BACKEND_QIR_PRINT_H

#include "backend/qir/qir_write.h"
#include "support/names.h"
#include "support/safetensors.h"

typedef struct Printer {
    Arena *arena;
    Buf b;
    FILE *file; /* where full buffers go; NULL: kept */
    const Module *module;
    QirWriteOptions options;
    int indent;
    Map *quants;      /* by address: the Quant as it is to be printed, its name in `alias` */
    Map *named;       /* by name: the Quant of the line */
    Names *names;     /* of those lines */
    bool *results;    /* by value id: a result of the graph that defines it */
    StWriter *blob;   /* NULL: constants stay in the text */
    OutFiles *out;    /* where its file is opened */
    const char *path; /* of the text */
    bool failed;      /* to write it */
    Names *keys;      /* of the blob */
    bool uses_blob;   /* something stands in it */
    Quant **lines;    /* the quant lines, in order */
    size_t n_lines, cap_lines;
} Printer;

/* A key of maps by address, in the arena. */
Str address_key(Printer *p, const void *address);
/* Collects quantizations and gives names to those that need one (aliases.c). */
void name_quants(Printer *p);
/* The quantization as it is to be printed. */
const Quant *printed_quant(const Printer *p, const Quant *q);
void print_type_named(Printer *p, Type t);

void print_module(Printer *p);
/* Writes what is in p->blob to its file. NULL after a diagnostic. */
const SideFile *print_blob_file(Printer *p);
void print_graph(Printer *p, const Graph *g);
void print_stat_fields(Printer *p, const Stat *s); /* what stands between < and > */
void print_function(Printer *p, const Function *f);
void print_attr(Printer *p, const Attr *a);
void print_attrs(Printer *p, const Attr *attrs, size_t n);
/* A literal with the data; `name` is the key in a blob. */
void print_tensor_data(Printer *p, const Tensor *t, Str name);
void print_sparse_data(Printer *p, const SparseTensor *s, Str name);
void print_blob_ref(Printer *p, const Tensor *t); /* to where it came from */
void print_tensor_clauses(Printer *p, const Tensor *t);

/* A word that may stand bare where the grammar has a name without sigil, else quoted. */
void print_word(Printer *p, Str s);
void print_op(Printer *p, Str domain, Str op, Str overload);      /* domain::op::overload */
void print_string_clause(Printer *p, const char *keyword, Str s); /* nothing when absent */
void print_meta_fields(Printer *p, Meta meta);
void print_meta_clause(Printer *p, Meta meta);
void print_extra_clause(Printer *p, Str extra);
void print_from(Printer *p, Provenance from); /* without the blank before */
void print_from_clause(Printer *p, Provenance from);
void print_import(Printer *p, Import import);
void print_indent(Printer *p);
void print_flush(Printer *p); /* after a line */

#endif
