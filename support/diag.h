/* Diagnostics: the one way to report what is wrong with a user's input.
 *
 * A location is a range in a registered source (a .qir text, the command line) or a node or value
 * of a binary model, described in words. Messages go to a stream (stderr) in clang's form, with a
 * caret where the source is text. Errors are counted, never thrown: a function reports, returns
 * false, and its caller goes on with the next item, so that one run shows all problems. */
#ifndef QXC_SUPPORT_DIAG_H
#define QXC_SUPPORT_DIAG_H

#include <stdarg.h>
#include <stdio.h>

#include "support/arena.h"
#include "support/map.h"
#include "support/progress.h"

typedef enum { DIAG_NOTE, DIAG_REMARK, DIAG_WARNING, DIAG_ERROR } Severity;

/* A part of a binary model in words, and the part around it: node "conv1" (Conv, #12), in
 * graph "main". */
typedef struct Place {
    const char *words;
    const struct Place *in;      /* NULL: the model itself */
    const struct DiagPart *part; /* what a message is about; NULL: all of it */
} Place;

/* Where something stands. `source` 0 means nowhere. In text: the byte range [begin, end).
 * In a binary model `what` names the part and `begin` is its number, for DiagShow; end = 0. */
typedef struct Loc {
    uint32_t source;
    uint32_t begin, end;
    const Place *what; /* arena-owned, or NULL */
} Loc;

#define LOC_NONE ((Loc){0, 0, 0, NULL})

typedef struct Diags Diags;

/* `out` may be NULL (nothing printed, only counted). `color` uses ANSI colours. */
Diags *diags_new(Arena *a, FILE *out, bool color);
/* Registers a source; `text` is borrowed (STR_NONE for binary files). Returns its number. */
uint32_t diags_source(Diags *d, const char *name, Str text);
/* The same of a part of a file, whose lines count from `first_line`. */
uint32_t diags_source_part(Diags *d, const char *name, Str text, int first_line);
const char *diags_source_name(const Diags *d, uint32_t source);

/* Line of a place in its file, from 1; 0 where it is none. */
int diags_line(Diags *d, Loc at);

void diag(Diags *d, Severity sev, Loc at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void diag_v(Diags *d, Severity sev, Loc at, const char *fmt, va_list ap);
/* The usual one: an error; always returns false so that `return diag_error(...)` reads well. */
bool diag_error(Diags *d, Loc at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void diag_warning(Diags *d, Loc at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void diag_note(Diags *d, Loc at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A remark about a model, in whatever step it comes up again: told once in the same words of the
 * same file. */
void diag_remark_once(Diags *d, Loc at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A note "did you mean 'x'?" to the message before, when one of the candidates is close to `word`,
 * or has it as a part: "conv_2" of "/conv_2/Conv". A word with the sign of a value or quantization
 * is meant without, and told with it. None is looked at when that message was not shown. */
void diag_did_you_mean(Diags *d, Loc at, Str word, const char *const *candidates, size_t n);
void diag_did_you_mean_key(Diags *d, Loc at, Str word, const Map *names); /* keys of a map */
/* The next candidate; false where there is none. */
typedef bool DiagNext(void *ctx, Str *candidate);
bool diag_did_you_mean_next(Diags *d, Loc at, Str word, DiagNext *next, void *ctx);
/* The candidate that such a note names; STR_NONE: none is close. */
Str diag_nearest(Str word, DiagNext *next, void *ctx);

/* Says where a text shows what stands at `at` in a binary model: a range of a source with text, or
 * LOC_NONE. Messages then quote that line, called a line of `words`. Must report nothing. */
typedef Loc DiagShow(void *ctx, Loc at);
void diags_show(Diags *d, DiagShow *show, void *ctx, const char *words);

/* One part of what stands at a place, which a message is about: the operand, the result or the
 * value of an attribute of a node; the value of an attribute itself; the type of a value. Nodes
 * keep no such places: they are looked for when there is something to say. */
typedef enum { PART_OPERAND, PART_RESULT, PART_ATTRIBUTE, PART_VALUE, PART_TYPE } PartKind;
typedef struct DiagPart {
    PartKind kind;
    size_t index; /* of the operand */
    Str name;     /* of the value or attribute */
} DiagPart;
/* Narrows the range of `at` in its text to that of the part; false (and no change) where the part
 * does not stand there. Must report nothing. */
typedef bool DiagFindPart(Arena *scratch, Str text, const DiagPart *part, Loc *at);
void diags_find_parts(Diags *d, DiagFindPart *find);
/* The place of the part, or `at` itself where it is not found. For one message. */
Loc diag_part(Diags *d, Loc at, DiagPart part);

int diags_errors(const Diags *d); /* how many errors so far */
/* A refusal has a reason: where a step was not `ok` and told no error since there were `before`,
 * says so at `at`, as a fault of ours in `who`. Returns `ok`. */
bool diag_reason(Diags *d, bool ok, int before, Loc at, const char *who);
int diags_unexplained(const Diags *d); /* how often it had to */
int diags_warnings(const Diags *d);
void diags_json(Diags *d, bool json);   /* messages are lines of JSON (docs/ir.md), not text */
void diags_quiet(Diags *d, bool quiet); /* drops notes, remarks and warnings */
/* Errors past this many are counted but not printed (default 50); the same of warnings. */
void diags_limit(Diags *d, int most);
/* The line that says how far a run is: taken away where a message is printed. NULL: there is none.
 */
void diags_set_progress(Diags *d, Progress *p);
Progress *diags_progress(const Diags *d); /* `d` may be NULL */
/* Of many warnings or remarks about places that are made from one format, the first is printed, and
 * a note says how many there are (support/diag_merge.h). All warnings are counted. */
void diags_merge(Diags *d, bool merge);
/* Prints what waits for more of its kind: before something is printed that is no message. */
void diags_flush(Diags *d);
/* Whether somebody gets to see a note to the message before. */
bool diags_shows_notes(const Diags *d);
void diags_finish(Diags *d); /* says how many were not printed, if any */

/* Keeps messages instead of printing them: for -verify-diagnostics, and where an error may be no
 * fault of the model. */
typedef struct DiagRecord {
    Severity severity;
    Loc at;
    int line, column; /* 1-based; 0 where the source is not text */
    const char *text;
} DiagRecord;
void diags_record(Diags *d, bool on);
size_t diags_records(const Diags *d, const DiagRecord **out);
const char *diags_first_error(const Diags *d); /* of those kept; NULL where there is none */

/* Text for a name in a message: quoted-safe, control characters escaped, cut at 100 bytes. */
const char *diag_name(Diags *d, Str name);
/* "FILE: " in front of a message that has no place in a text; "" where `file` is NULL. */
const char *diag_before(Diags *d, const char *file);

#endif
