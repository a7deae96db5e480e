/* A whole command line over files of all kinds. The input is text up to the files' bytes: a word of
 * the command line on each line, then each file behind a line with its name.
 *
 *   m.qir
 *   -emit=qdq
 *   -o=m.onnx
 *   -- m.qir --
 *   graph @main(...
 *
 * The command is done, and what it should write is there; or it is refused with an error, and no
 * file came or changed. No temporary file stays. `reduce` is left out: it runs what -test says. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/session.h"
#include "test/fuzz/fuzz.h"

enum { MAX_WORDS = 24, MAX_FILES = 8, MAX_NAME = 40 };

typedef struct File {
    Str name, bytes;
} File;

typedef struct CommandLine {
    char *argv[MAX_WORDS + 4];
    int argc;
    File files[MAX_FILES];
    size_t n_files;
} CommandLine;

/* ---- the input ---- */

/* What leads out of the scratch folder, or to standard input, is no word here. */
static bool is_word(Str w) {
    return w.n && !memchr(w.s, '/', w.n) && !memchr(w.s, 0, w.n) && !str_is(w, "-");
}

static bool is_name(Str s) {
    return is_word(s) && s.n <= MAX_NAME && s.s[0] != '.' && s.s[0] != '-';
}

/* The name in a line `-- NAME --`; STR_NONE for other lines. */
static Str file_line(Str line) {
    if (line.n <= 6 || !str_starts(line, "-- ") || !str_ends(line, " --"))
        return STR_NONE;
    Str name = {line.s + 3, line.n - 6};
    return is_name(name) ? name : STR_NONE;
}

static Str next_line(Str *rest) {
    const char *end = memchr(rest->s, '\n', rest->n);
    Str line = {rest->s, end ? (size_t)(end - rest->s) : rest->n};
    size_t taken = line.n + (end != NULL);
    *rest = (Str){rest->s + taken, rest->n - taken};
    return line;
}

/* Where the files begin. */
static size_t words_end(Str input) {
    Str rest = input;
    while (rest.n) {
        size_t at = input.n - rest.n;
        if (file_line(next_line(&rest)).s)
            return at;
    }
    return input.n;
}

static void add_word(CommandLine *c, Arena *a, Str word) {
    c->argv[c->argc++] = (char *)arena_str(a, word).s;
}

static void read_words(CommandLine *c, Arena *a, Str rest) {
    add_word(c, a, STR("qxc"));
    while (rest.n && c->argc < MAX_WORDS) {
        Str word = next_line(&rest);
        if (is_word(word))
            add_word(c, a, word);
    }
    add_word(c, a, STR("-no-sync"));
    add_word(c, a, STR("-max-memory=64"));
}

/* The line break before a file's line belongs to that line. */
static void read_files(CommandLine *c, Str rest) {
    File *file = NULL;
    while (rest.n) {
        Str line = next_line(&rest), name = file_line(line);
        if (name.s && c->n_files < MAX_FILES) {
            file = &c->files[c->n_files++];
            *file = (File){name, {rest.s, 0}};
        } else if (file) {
            file->bytes.n = (size_t)(line.s + line.n - file->bytes.s);
        }
    }
}

static CommandLine read_command(Arena *a, Str input) {
    CommandLine c = {.argc = 0};
    size_t n = words_end(input);
    read_words(&c, a, (Str){input.s, n});
    read_files(&c, (Str){input.s + n, input.n - n});
    return c;
}

/* ---- the scratch folder ---- */

static char scratch[300];
static int scratch_fd = -1, home_fd = -1;

static void remove_scratch(void) {
    rmdir(scratch);
}

static void enter_scratch(void) {
    if (scratch_fd < 0) {
        const char *tmp = getenv("TMPDIR");
        snprintf(scratch, sizeof scratch, "%.200s/qxc-fuzz-XXXXXX", tmp ? tmp : "/tmp");
        home_fd = open(".", O_RDONLY | O_DIRECTORY);
        scratch_fd = mkdtemp(scratch) ? open(scratch, O_RDONLY | O_DIRECTORY) : -1;
        atexit(remove_scratch);
    }
    fuzz_promise(home_fd >= 0 && scratch_fd >= 0 && fchdir(scratch_fd) == 0, "a scratch folder",
                 STR_NONE, STR_NONE);
}

static const File *file_of(const CommandLine *c, const char *name) {
    const File *found = NULL;
    for (size_t i = 0; i < c->n_files; i++)
        if (str_is(c->files[i].name, name))
            found = &c->files[i]; /* the last of a name was written over the others */
    return found;
}

static void write_files(const CommandLine *c, Arena *a) {
    for (size_t i = 0; i < c->n_files; i++) {
        FILE *f = fopen(arena_str(a, c->files[i].name).s, "wb");
        fuzz_promise(f != NULL, "a file in the scratch folder", c->files[i].name, STR_NONE);
        fwrite(c->files[i].bytes.s, 1, c->files[i].bytes.n, f);
        fclose(f);
    }
}

static Str read_back(const char *name, Arena *a) {
    FILE *f = fopen(name, "rb");
    struct stat st;
    fuzz_promise(f && fstat(fileno(f), &st) == 0, "a file stays", str_from(name), STR_NONE);
    char *bytes = arena_array(a, (size_t)st.st_size + 1, 1);
    size_t n = fread(bytes, 1, (size_t)st.st_size, f);
    fclose(f);
    return (Str){bytes, n};
}

/* Each file of the folder is one that was there, as it was, or, where new ones may come, no
 * temporary one. All go. */
static void clear_scratch(const CommandLine *c, Arena *a, bool may_write) {
    DIR *dir = opendir(".");
    size_t seen = 0;
    for (const struct dirent *e; (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        const File *file = file_of(c, e->d_name);
        seen += file != NULL;
        bool temporary = e->d_name[0] == '.' && str_ends(str_from(e->d_name), ".qxc-tmp");
        fuzz_promise(!temporary, "no temporary file stays", str_from(e->d_name), STR_NONE);
        fuzz_promise(may_write || file, "what is refused writes no file", str_from(e->d_name),
                     STR_NONE);
        if (file && !may_write) {
            Str now = read_back(e->d_name, a);
            fuzz_promise(str_eq(now, file->bytes), "what is refused leaves files as they were",
                         file->bytes, now);
        }
        unlink(e->d_name);
    }
    closedir(dir);
    for (size_t i = 0; i < c->n_files; i++)
        seen -= file_of(c, arena_str(a, c->files[i].name).s) == &c->files[i];
    fuzz_promise(seen == 0, "files that were there stay", STR_NONE, STR_NONE);
}

/* ---- the command ---- */

/* Its messages; results on standard output go nowhere. */
static ExitCode run_quietly(Fuzz *f, CommandLine *c, Str *messages) {
    FILE *out = stdout, *err = stderr;
    stdout = fopen("/dev/null", "w");
    stderr = fuzz_stream(f);
    ExitCode code = session_run(c->argc, c->argv);
    fclose(stdout);
    stdout = out;
    stderr = err;
    *messages = fuzz_written(f);
    return code;
}

static bool only_tells(const Options *o) {
    return o->help || o->version || o->verify_diagnostics || o->command->id == COMMAND_list ||
           o->command->id == COMMAND_fmt || o->command->id == COMMAND_compare;
}

static void run(Fuzz *f, Str input) {
    Arena *a = fuzz_arena(f);
    CommandLine c = read_command(a, input);
    Options o;
    bool understood = options_parse(&o, a, c.argc, c.argv, fuzz_diags(f));
    /* How long a loop runs depends on the numbers. */
    if (o.command->id == COMMAND_reduce || memmem(input.s, input.n, "Loop", 4))
        return;
    enter_scratch();
    write_files(&c, a);
    Str messages;
    ExitCode code = run_quietly(f, &c, &messages);
    bool done = code == EXIT_DONE || code == EXIT_MISSED;
    fuzz_promise(done || memmem(messages.s, messages.n, "error", 5), "a refusal says why", input,
                 messages);
    fuzz_promise(understood || !done || o.help, "mistakes in a command line are refused", input,
                 messages);
    if (code == EXIT_DONE && o.output && strcmp(o.output, "-") != 0 && !only_tells(&o))
        fuzz_promise(access(o.output, F_OK) == 0, "what is done writes -o", input, messages);
    /* What is expected of the messages says nothing of the command. */
    clear_scratch(&c, a, done || o.verify_diagnostics || o.command->id == COMMAND_fmt);
    fuzz_promise(fchdir(home_fd) == 0, "the folder it began in", STR_NONE, STR_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_run(run, data, size);
}

/* ---- mutations ---- */

static const char *const options[] = {
#define OPT(f, name, ...) name,
#include "compiler/options.def"
#undef OPT
};

static const char *const values[] = {"",      "=",         "=0",          "=1",   "=2",      "=16",
                                     "=21",   "=c",        "=qdq",        "=qop", "=onnx",   "=qir",
                                     "=fake", "=int8 sym", "=uint4 asym", "=*",   "=out.npz"};

/* One more word of the table of options, in place of the line at a random place or before it. */
static size_t mutate_word(uint8_t *data, size_t n, size_t max, unsigned seed) {
    char word[64];
    size_t at = n ? seed / 7 % n : 0, end;
    while (at && data[at - 1] != '\n')
        at--;
    for (end = at; seed % 3 && end < n && data[end++] != '\n';)
        ;
    size_t len = (size_t)snprintf(word, sizeof word, "-%s%s\n",
                                  options[seed / 11 % (sizeof options / sizeof *options)],
                                  values[seed / 1013 % (sizeof values / sizeof *values)]);
    if (n - (end - at) + len > max)
        return n;
    memmove(data + at + len, data + end, n - end);
    memcpy(data + at, word, len);
    return n - (end - at) + len;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
/* The words and the files are mutated apart from each other. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    size_t n = words_end((Str){(const char *)data, size}), rest = size - n;
    if (seed % 4 < 2)
        return n + LLVMFuzzerMutate(data + n, rest, max_size - n);
    uint8_t *words = malloc(max_size);
    memcpy(words, data, n);
    size_t now = seed % 4 == 2 ? LLVMFuzzerMutate(words, n, max_size - rest)
                               : mutate_word(words, n, max_size - rest, seed / 4);
    if (now && words[now - 1] != '\n')
        words[now - 1] = '\n'; /* so that the files stay files */
    memmove(data + now, data + n, rest);
    memcpy(data, words, now);
    free(words);
    return now + rest;
}
