/* The command line as a struct. Texts are borrowed from argv; lists live in the arena. Mistakes are
 * diagnostics (unknown option with "did you mean", missing or malformed value), all of them. */
#ifndef QXC_COMPILER_OPTIONS_H
#define QXC_COMPILER_OPTIONS_H

#include "support/buf.h"
#include "support/diag.h"

typedef struct TextList {
    const char **items;
    size_t n, cap;
} TextList;

enum { TESTBENCH_SAMPLES = 16 }; /* at most: they become part of the C */

typedef enum CommandId {
#define COMMAND(id, ...) COMMAND_##id,
#include "compiler/commands.def"
    N_COMMANDS
} CommandId;

/* A row of commands.def, which says what the columns mean. */
typedef struct Command {
    CommandId id;
    const char *name;
    int models;
    bool data;
    const char *usage, *about, *groups;
} Command;

/* A command of the Python package. */
typedef struct Packaged {
    const char *name, *usage, *about;
} Packaged;

typedef struct Options {
    const Command *command;
    TextList inputs; /* for help: topics, which may be options */
    bool only_files; /* the first of them stood behind --, so that it is no command */
    TextList twice;  /* names of options that were given two values: the last stands */
    const struct Scheme *preset_rules; /* what -preset says, before all other rules; or NULL */
    struct Trace *trace; /* what is kept for -time (compiler/trace.h); NULL: nothing is */
#define OPT_FLAG(f)             bool f;
#define OPT_TEXT(f)             const char *f;
#define OPT_INT(f)              int64_t f; /* -1 when not given */
#define OPT_MAYBE(f)            int64_t f; /* -1 when not given, 0 without a value */
#define OPT_ONE_OF(f)           const char *f;
#define OPT_MAYBE_TEXT(f)       const char *f; /* "" without a value */
#define OPT_LIST(f)             TextList f;
#define OPT(f, name, kind, ...) OPT_##kind(f)
#include "compiler/options.def"
#undef OPT_FLAG
#undef OPT_TEXT
#undef OPT_INT
#undef OPT_MAYBE
#undef OPT_ONE_OF
#undef OPT_MAYBE_TEXT
#undef OPT_LIST
} Options;

typedef enum OptionKind {
    OPTION_FLAG,
    OPTION_TEXT,
    OPTION_INT,
    OPTION_MAYBE,
    OPTION_ONE_OF,
    OPTION_MAYBE_TEXT,
    OPTION_LIST
} OptionKind;
typedef enum OptionOrigin { ORIGIN_NONE, ORIGIN_WORD, ORIGIN_FILE } OptionOrigin;
typedef enum OptionDecides { DECIDES_NONE, DECIDES_FLOAT, DECIDES_ALL } OptionDecides;
typedef enum OptionOf { OF_ANY, OF_STATIC, OF_MENDING, OF_CHANNELS } OptionOf;
typedef enum OptionUse {
#define USE(id, words, condition) USE_##id,
#include "compiler/options.def"
} OptionUse;

/* A row of options.def, which says what the columns mean. */
typedef struct OptionDef {
    const char *name;
    OptionKind kind;
    OptionOrigin origin;
    OptionDecides decides;
    OptionOf of;
    OptionUse use;
    const char *excludes; /* another's name, or "" */
    size_t offset;        /* of the field */
    const char *arg, *help;
} OptionDef;

const Command *command_at(size_t i);
const Command *command_find(const char *name); /* or NULL */
size_t packaged_count(void);
const Packaged *packaged_at(size_t i);
const Packaged *packaged_find(const char *name); /* or NULL */

size_t option_count(void);
const OptionDef *option_at(size_t i);
const OptionDef *option_find(Str name); /* or NULL */
/* Whether it can stand alone and can take a value. */
bool option_may_take(const OptionDef *def);
/* `-calib=PATH`, `-smooth-quant[=ALPHA]`, `-o FILE`, as help shows it; the arena's. */
const char *option_title(Arena *a, const OptionDef *def);
bool option_given(const Options *o, const OptionDef *def);

/* Whether there is data to calibrate on, given or made up. */
bool options_have_data(const Options *o);

/* Whether the first word that is no option can be what compiling reads: a word that is no file may
 * be meant for a command, which says what all else goes with. An error where not. */
bool options_command_is_known(const Options *o, Diags *d);
/* Whether so many files are given as a command takes; an error where not. */
bool options_inputs(const Options *o, size_t want, Diags *d);

/* One word more, an option with its value, as the command line has it. False after an error. */
bool options_take(Options *o, const char *word, Arena *a, Diags *d);
/* Of options as tables of rows have them, parted by blanks: the next one, and the option that it
 * gives. False behind the last. */
bool options_next(const char **words, Str *word, const OptionDef **def);
/* A command is the first word that is no option. */
bool options_parse(Options *o, Arena *a, int argc, char **argv, Diags *d);
/* ` -emit=c -calib=data.npz`: those that were given and have a part in the result, in the order of
 * the table, over several lines where they are many. Of paths only the last part is told. */
void options_origin(const Options *o, Buf *out);
/* The same for a shell, in one line with whole paths, of those that are wanted. */
typedef bool OptionWanted(const OptionDef *def, const void *ctx);
void options_repeat(const Options *o, OptionWanted *wanted, const void *ctx, Buf *out);

#endif
