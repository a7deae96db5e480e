/* -split-input-file and -verify-diagnostics, for tests of messages: one .qir text holds several
 * inputs, and comments in it say what the compiler reports where.
 *
 *     // expected-error@+1 {{no such operator}}
 *     // expected-note@-3 {{the first definition}}
 *     // -----                                       the next input
 *
 * The kinds are error, warning, note and remark; the place is the comment's own line, @+N, @-N,
 * @above, @below, or @unknown for messages without a place in the text. The text between the braces
 * is a part of the message. */
#ifndef QXC_COMPILER_EXPECT_H
#define QXC_COMPILER_EXPECT_H

#include "compiler/session.h"

typedef struct Input { /* one of those in a text; the first follows on {0} */
    Str text;
    size_t end; /* where it ends in the whole text */
    int line;   /* the number of its first line there */
} Input;

/* The next input: up to the next line that holds `// -----` alone, which begins another, or to the
 * end. False where there is none; an empty text is one. */
bool input_next(Str whole, Input *in);

/* Runs `command` on each input of the text that the command line names. With -verify-diagnostics
 * the exit code says only whether what was reported is what was expected. */
ExitCode run_inputs(Session *s, ExitCode (*command)(Session *));

#endif
