/* What every subcommand gets: the command line, where to complain, and memory. */
#ifndef QXC_COMPILER_SESSION_H
#define QXC_COMPILER_SESSION_H

#include "compiler/pipeline.h"
#include "support/sha256.h"

typedef enum ExitCode { /* README.md lists them */
                        EXIT_DONE = 0,
                        EXIT_WRONG =
                            1, /* the model or the source is wrong, or cannot do what was asked */
                        EXIT_USAGE = 2,
                        EXIT_IO = 3,
                        EXIT_MISSED = 4, /* an asked-for accuracy was missed */
} ExitCode;

typedef struct Session {
    Options o;
    Diags *d;
    Arena *arena;
    OutOfMemory oom;
    bool has_text; /* the input is this .qir text, whatever the file holds (expect.h) */
    Str text;
    int first_line;                    /* of the text in its file */
    bool is_text;                      /* the input read last was .qir */
    bool refuses_unknown;              /* operators that ONNX lacks will be an error */
    char input_sha256[SHA256_HEX + 1]; /* of the first input's bytes; "" where nobody asks */
    Module *modules[6];                /* read so far; freed by session_run */
    size_t n_modules;
    bool inputs_changed; /* while they were read, which has been said */
    OutFiles *out;       /* being written; given up when memory runs out */
} Session;

/* Does what a command line asks for, as the program does. Results go to files and stdout, which is
 * not flushed; the rest goes to stderr. `argv` as main gets it. */
ExitCode session_run(int argc, char **argv);

/* The bytes of -max-memory, or of its default. */
size_t session_memory(const Session *s);
/* Whether the model that is read is a text, as its first bytes say or -format. */
bool session_input_is_text(Session *s);
/* Memory for an input of `size` bytes, within -max-memory; the caller's to free. */
Arena *session_arena(Session *s, size_t size);
/* What job_init's failing means: wrong options, or a file of theirs that cannot be read. */
ExitCode job_init_failure(const Job *j);
/* The same of what comes after it: an option that only the model showed to be wrong, or the model.
 */
ExitCode job_failure(const Job *j);

/* Reads INPUT number `i` of the command line: ONNX or .qir, told by content. NULL after
 * diagnostics, with the exit code in `*code`. The module is resolved, inferred and verified. */
Module *session_read(Session *s, size_t i, ExitCode *code);
/* The first input, of which nothing is said but errors: it is read again. *code is EXIT_DONE with a
 * module. */
Module *session_look(Session *s, ExitCode *code);
/* Whether the first input can be read more than once, as `what` ("-search reads") does; an error
 * where not. */
bool session_reads_again(const Session *s, const char *what);
/* Whether the module has an input without a default, and the command line gives no data to run on.
 */
bool session_lacks_data(const Session *s, const Module *m);

/* The same before anything is resolved or checked: what parses, and no more. */
Module *session_parse(Session *s, size_t i, ExitCode *code);
/* How module_check judges what was just read: an ONNX file is allowed more. */
unsigned verify_read_flags(bool is_text);
/* The models of -weights-from and -scales-from go to the job. False with *code after diagnostics.
 */
bool session_read_donors(Session *s, Job *j, ExitCode *code);

/* A group of output files that replace nothing this run has read. */
OutFiles *session_outputs(Session *s);
/* Whether -o and -report name nothing that is read: a slip would cost the model. False after an
 * error. */
bool session_inputs_are_kept(Session *s);

/* Writes the module to -o (or stdout) as what -emit says. */
ExitCode session_write(Session *s, Job *j, Module *m);

/* Whether nobody has written to the inputs since they were mapped. What came of them is nothing to
 * keep otherwise: asked before files get their names, and by main. False after a diagnostic. */
bool session_inputs_are_whole(Session *s);
/* The same of those modules that it frees: all from number `from` on. */
void session_free_modules(Session *s, size_t from);

ExitCode cmd_compile(Session *s);
ExitCode cmd_run(Session *s);
ExitCode cmd_compare(Session *s);
ExitCode cmd_list(Session *s);
ExitCode cmd_list_quant(Session *s);
ExitCode cmd_info(Session *s);
ExitCode cmd_help(Session *s);
ExitCode cmd_fmt(Session *s);
ExitCode cmd_show(Session *s);
ExitCode cmd_stats(Session *s);
ExitCode cmd_reduce(Session *s);

/* -verify-roundtrip: print, parse, print gives the same bytes. */
bool roundtrip_check(Module *m, const Options *o, Diags *d);

/* Of the weights that the module has, the bytes that are external data; with `blobs` also those in
 * the safetensors files of a text that was read. */
long long external_bytes(Module *m, bool blobs);
/* The bytes of the files that were written beside others. */
long long side_bytes(const OutFiles *files);
/* The closing lines of a compilation, on stderr. `out_path` may be NULL. */
void summary_print(const Job *j, Module *m, const OutFiles *files, const char *in_path,
                   const char *out_path);

#endif
