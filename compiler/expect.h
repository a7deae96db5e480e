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

/* The end of the input that begins at `at`: the next line that holds `// -----` alone, or the end.
 */
size_t input_end(Str text, size_t at);
/* The input with only line ends before it, so that its lines keep their numbers. */
Str input_at(Arena *a, Str text, size_t begin, size_t end);

/* Runs `command` on each input of the text that the command line names. With -verify-diagnostics
 * the exit code says only whether what was reported is what was expected. */
ExitCode run_inputs(Session *s, ExitCode (*command)(Session *));

#endif
