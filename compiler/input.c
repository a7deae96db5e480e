/* Input files: which of the languages a file is in, and the module it holds. */
#include "compiler/cut.h"
#include "compiler/metadata.h"
#include "compiler/session.h"
#include "compiler/set_inputs.h"
#include "compiler/unknown.h"
#include "compiler/trace.h"
#include "frontend/onnx/onnx.h"
#include "frontend/qir/qir_read.h"
#include "frontend/scales/scales_read.h"
#include "ir/verify_extra.h"
#include "ir/verify_stat.h"
#include "support/store.h"
#include "support/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Standard input as a file in memory, so that it can be looked at before it is read. */
static bool buffer_stdin(void) {
    int fd = file_in_memory("stdin");
    char chunk[1 << 16];
    ssize_t n = 0;
    while (fd >= 0 && (n = read(STDIN_FILENO, chunk, sizeof chunk)) > 0)
        if (write(fd, chunk, (size_t)n) != n)
            return false;
    return fd >= 0 && n == 0 && lseek(fd, 0, SEEK_SET) == 0 && dup2(fd, STDIN_FILENO) >= 0;
}

/* A serialized model never begins with the word qir or a comment. */
static bool looks_like_qir(Str head) {
    bool comment;
    return qir_begins(head, &comment) || comment;
}

/* A serialized model has bytes that no text has: the first of its fields is a small number. */
static bool looks_like_text(Str head) {
    for (size_t i = 0; i < head.n; i++) {
        unsigned char c = (unsigned char)head.s[i];
        if ((c < ' ' && !memchr("\t\r\n", c, 3)) || c == 0x7f)
            return false;
    }
    return head.n > 0;
}

typedef enum Kind { KIND_ONNX, KIND_QIR, KIND_ZIP, KIND_ARRAY, KIND_TEXT, KIND_UNREADABLE } Kind;

/* By its first bytes; none but the first begins as a serialized model can. */
static Kind kind_of(const char *path, Str head) {
    if (str_ends(str_from(path), ".qir") || looks_like_qir(head))
        return KIND_QIR;
    return str_starts(head, "PK\3\4")      ? KIND_ZIP
           : str_starts(head, "\x93NUMPY") ? KIND_ARRAY
           : looks_like_text(head)         ? KIND_TEXT
                                           : KIND_ONNX;
}

static Kind sniff(const char *path, size_t *size, Diags *d) {
    bool std = strcmp(path, "-") == 0;
    if (std && !buffer_stdin()) {
        diag_error(d, LOC_NONE, "cannot read standard input: %s",
                   errno == EBADF ? "it is closed" : strerror(errno));
        return KIND_UNREADABLE;
    }
    int fd = std ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    char head[4096];
    ssize_t n = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
                    ? pread(fd, head, sizeof head, 0)
                    : -1;
    if (n < 0)
        diag_error(d, LOC_NONE, "cannot read %s: %s", diag_name(d, str_from(path)),
                   fd < 0                 ? strerror(errno)
                   : S_ISDIR(st.st_mode)  ? "it is a folder"
                   : !S_ISREG(st.st_mode) ? "not a regular file"
                                          : strerror(errno));
    else
        *size = (size_t)st.st_size;
    if (fd >= 0 && !std)
        close(fd);
    if (n < 0)
        return KIND_UNREADABLE;
    return kind_of(path, (Str){head, (size_t)n});
}

static Kind forced_kind(const Options *o, Kind found) {
    if (!o->kind)
        return found;
    return strcmp(o->kind, "qir") == 0 ? KIND_QIR : KIND_ONNX;
}

enum { MIB = 1 << 20, DEFAULT_MEMORY_MIB = 1024, DEFAULT_WEIGHTS_MIB = 64 };

bool session_input_is_text(Session *s) {
    size_t size;
    return forced_kind(&s->o, sniff(s->o.inputs.items[0], &size, s->d)) == KIND_QIR;
}

size_t session_memory(const Session *s) {
    return (s->o.max_memory >= 0 ? (size_t)s->o.max_memory : DEFAULT_MEMORY_MIB) * MIB;
}

Arena *session_arena(Session *s, size_t size) {
    Arena *a = arena_new(session_memory(s) + size * 2, &s->oom);
    const char *out = s->o.output;
    size_t budget = s->o.weights_memory >= 0 ? (size_t)s->o.weights_memory : DEFAULT_WEIGHTS_MIB;
    store_open(a, out && !out_is_device(out) ? path_dir(a, out) : temp_folder(),
               budget < SIZE_MAX / MIB ? budget * MIB : SIZE_MAX);
    return a;
}

/* `text` is what the file holds, or NULL. */
static Module *parse(Session *s, const char *path, const Str *text, bool input, bool *is_text,
                     ExitCode *code) {
    size_t size = text ? text->n : 0;
    Kind kind = text ? KIND_QIR : sniff(path, &size, s->d);
    *code = EXIT_IO;
    if (kind == KIND_UNREADABLE)
        return NULL;
    if (input)
        kind = forced_kind(&s->o, kind);
    *code = EXIT_WRONG;
    if (kind == KIND_ZIP || kind == KIND_ARRAY) {
        diag_error(s->d, LOC_NONE, "%s is %s, no model; data go with -calib=PATH or -input=PATH",
                   diag_name(s->d, str_from(path)),
                   kind == KIND_ZIP ? "a zip archive (as .npz and .pt are)" : "a NumPy array");
        return NULL;
    }
    if (kind == KIND_TEXT) {
        diag_error(s->d, LOC_NONE,
                   "%s is a text that is no .qir, which begins with the line 'qir 1', nor is it an "
                   "ONNX model",
                   diag_name(s->d, str_from(path)));
        return NULL;
    }
    *is_text = kind == KIND_QIR;
    Arena *a = session_arena(s, size);
    s->oom.input = path;
    OnnxReadOptions onnx = {.in.other = s->o.external_data_dir};
    QirReadOptions qir = {.in.other = s->o.external_data_dir,
                          .first_line = text ? s->first_line : 0,
                          .wide_zp = s->o.wide_zp};
    Module *m = text               ? qir_read_text(a, s->d, path, *text, &qir)
                : kind == KIND_QIR ? qir_read(a, s->d, path, &qir)
                                   : onnx_read(a, s->d, path, &onnx);
    if (m) {
        s->modules[s->n_modules++] = m;
        m->wide_zp = s->o.wide_zp;
    } else {
        arena_free(a);
    }
    if (m && kind == KIND_ONNX)
        metadata_take(m);
    return m;
}

/* What emitted C says it came from. Standard input is a file in memory by now. */
static bool hash_input(Session *s) {
    const char *path = s->o.inputs.items[0];
    if (!s->o.emit || strcmp(s->o.emit, "c") != 0)
        return true;
    if (s->has_text) {
        sha256_hex(s->text, s->input_sha256);
        return true;
    }
    FileMap *f = file_map(strcmp(path, "-") == 0 ? "/dev/stdin" : path, LOC_NONE, s->d);
    if (f)
        file_sha256(f, s->input_sha256);
    file_unmap(f);
    return f != NULL;
}

Module *session_parse(Session *s, size_t i, ExitCode *code) {
    Module *m =
        parse(s, s->o.inputs.items[i], s->has_text ? &s->text : NULL, true, &s->is_text, code);
    if (i > 0 || !m || hash_input(s))
        return m;
    *code = EXIT_IO;
    return NULL;
}

unsigned verify_read_flags(bool is_text) {
    return is_text ? VERIFY_ERRORS : VERIFY_ONNX;
}

static Module *check(Session *s, Module *m, bool is_text) {
    if (!m)
        return NULL;
    warn_of_strange_nodes(m, s->refuses_unknown, s->d);
    if (!module_check(m, VERIFY_WARN | verify_read_flags(is_text), s->d))
        return NULL;
    verify_stats(m, s->d);
    verify_extra(m, s->d);
    return metadata_check(m, is_text, s->d) ? m : NULL;
}

static Module *read_model(Session *s, size_t i, ExitCode *code) {
    Module *m = session_parse(s, i, code);
    m = check(s, m, s->is_text);
    if (m && !cut_module(s, m, verify_read_flags(s->is_text), code))
        return NULL;
    return m && set_inputs(s, m, i == 0, code) ? m : NULL; /* what is compared may have none */
}

Module *session_read(Session *s, size_t i, ExitCode *code) {
    trace_begin(s->o.trace);
    Module *m = read_model(s, i, code);
    trace_end(s->o.trace, "reading");
    return m;
}

Module *session_look(Session *s, ExitCode *code) {
    diags_quiet(s->d, true);
    Module *m = session_read(s, 0, code);
    diags_quiet(s->d, s->o.quiet);
    if (m)
        *code = EXIT_DONE;
    return m;
}

bool session_reads_again(const Session *s, const char *what) {
    return (strcmp(s->o.inputs.items[0], "-") != 0 && !s->has_text) ||
           diag_error(s->d, LOC_NONE, "%s the model more than once: give a file", what);
}

bool session_lacks_data(const Session *s, const Module *m) {
    for (size_t i = 0; i < m->graph->n_in; i++)
        if (!m->graph->in[i]->data)
            return !s->o.input.n && s->o.random <= 0;
    return false;
}

static bool read_donor(Session *s, const char *path, Module **out, ExitCode *code) {
    if (!path)
        return true;
    bool is_text = false;
    Module *m = parse(s, path, NULL, false, &is_text, code);
    return (*out = check(s, m, is_text)) != NULL;
}

bool session_read_donors(Session *s, Job *j, ExitCode *code) {
    const char *scales = s->o.scales_from;
    if (scales && scales_are_json(scales))
        scales = NULL; /* read with the other rules */
    return read_donor(s, s->o.weights_from, &j->weights_from, code) &&
           read_donor(s, scales, &j->scales_from, code);
}
