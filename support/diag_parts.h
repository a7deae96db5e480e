/* Diagnostics inside: what diag.c counts and prints, and diag_place.c looks up in sources. */
#ifndef QXC_SUPPORT_DIAG_PARTS_H
#define QXC_SUPPORT_DIAG_PARTS_H

#include "support/buf.h"
#include "support/diag.h"
#include "support/diag_merge.h"

typedef struct Source {
    const char *name;
    Str text;
    int first_line;
    /* The last line looked up: asking in ascending order costs one pass over the text. */
    size_t seen_begin;
    int seen_line;
} Source;

struct Diags {
    Arena *arena;
    FILE *out;
    bool color, json, quiet, recording;
    bool suppressed; /* the last error was past the limit; so are its notes */
    int errors, warnings, limit, unexplained;
    Source *sources; /* number 1 is sources[0] */
    size_t n_sources, cap_sources;
    DiagRecord *records;
    size_t n_records, cap_records;
    Buf text, shown;    /* reused from message to message */
    DiagFindPart *find; /* NULL: none */
    DiagShow *show;     /* NULL: none */
    void *show_ctx;
    const char *show_words;
    Progress *progress; /* or NULL */
    Merger *merger;     /* NULL: every warning is printed */
    int merged;         /* warnings that it has counted */
    bool waits;         /* the last message did, for others of its format */
    Loc merged_at;      /* of the last warning, where it is one of many; else nowhere */
    Map *told;          /* by file and words: remarks that are told once; NULL: none was */
};

/* Is the error or warning of this number one too many? */
static inline bool diag_past_limit(const Diags *d, int number) {
    return !d->recording && number > d->limit;
}

/* A message without words, of what stands at `at`: its file, line and column. */
Message diag_message(Diags *d, Severity sev, Loc at);

#endif
