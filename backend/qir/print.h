/* The printer's state and parts. Private to backend/qir. Scratch memory is the module's arena. */
#ifndef QXC_BACKEND_QIR_PRINT_H
#define QXC_BACKEND_QIR_PRINT_H

#include "backend/qir/qir_write.h"
#include "support/names.h"
#include "support/safetensors.h"

typedef struct Printer {
    Arena *arena;
    Buf b;
    FILE *file;     /* where full buffers go; NULL: kept */
    size_t flushed; /* bytes that went there */
    const Module *module;
    QirWriteOptions options;
    int indent;
    size_t few;       /* elements that do not stand in the way */
    bool in_line;     /* within a node's line */
    Map *quants;      /* by address: the Quant as it is to be printed, its name in `alias` */
    Map *names_in;    /* by address of a graph around others: the names of its values */
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

/* Collects quantizations and gives names to those that need one (aliases.c). */
void name_quants(Printer *p);
/* The quantization as it is to be printed. */
const Quant *printed_quant(const Printer *p, const Quant *q);
void print_type_named(Printer *p, Type t);

void print_module(Printer *p);
/* Writes what is in p->blob to its file. NULL after a diagnostic. */
const SideFile *print_blob_file(Printer *p);
void print_graph(Printer *p, const Graph *g);
/* Statistics, origins, spellings, and metadata that are too long for lines of the values or, `own`,
 * of the graph. */
void print_notes(Printer *p, const Graph *g, Meta own);
void print_node_meta(Printer *p, const Node *n);
void print_short_meta(Printer *p, Meta meta); /* of what print_notes tells where they are long */
void print_stat_fields(Printer *p, const Stat *s); /* what stands between < and > */
void print_function(Printer *p, const Function *f);
void print_attr(Printer *p, const Attr *a);
void print_attrs(Printer *p, const Attr *attrs, size_t n);
/* A constant, or an input with a default: its data are at most so many elements, or all the same.
 */
bool print_is_short(const Value *v, size_t most);
/* The lines of numbers that quant lines leave out. */
bool print_has_params(const Printer *p);
void print_params(Printer *p);
/* A literal with the data; `name` is the key in a blob. */
void print_tensor_data(Printer *p, const Tensor *t, Str name);
void print_sparse_data(Printer *p, const SparseTensor *s, Str name);
void print_blob_ref(Printer *p, const Tensor *t); /* to where it came from */
void print_tensor_clauses(Printer *p, const Tensor *t);

enum {
    FEW = 16,  /* elements that do not stand in the way */
    FEWER = 6, /* that stand in one line with what follows */
    MOST_COLUMNS = 100,
    LONG_FROM = 80,  /* bytes of a clause that do not stand in a node's line, */
    LONG_META = 240, /* of metadata */
};

/* Where the text ends, in bytes from its begin. */
size_t print_place(const Printer *p);
/* Ends the statement that begins at `place`: where it is longer than MOST_COLUMNS it goes on in
 * further lines, behind commas within brackets, as far as these allow. */
void end_wrapped(Printer *p, size_t place);
/* The column at which the buffer ends, from 0. */
size_t print_column(const Printer *p);

/* A word that may stand bare where the grammar has a name without sigil, else quoted. */
void print_word(Printer *p, Str s);
void print_op(Printer *p, Str domain, Str op, Str overload);      /* domain::op::overload */
void print_string_clause(Printer *p, const char *keyword, Str s); /* nothing when absent */
void print_meta_fields(Printer *p, Meta meta);
void print_meta_clause(Printer *p, Meta meta);
void print_extra_clause(Printer *p, Str extra);
void print_from(Printer *p, Provenance from);    /* without the blank before */
void print_origins(Printer *p, Provenance from); /* without the word either */
void print_from_clause(Printer *p, Provenance from);
/* The result by which a line about the node names it; NULL: it has none. */
const Value *node_key(const Node *n);
/* The `from` clause of a node or constant, unless it stands in a line of its own. */
void print_node_from(Printer *p, const Node *n);
void print_const_from(Printer *p, const Value *v);
void print_import(Printer *p, Import import);
void print_indent(Printer *p);
void print_flush(Printer *p); /* after a line */

#endif
