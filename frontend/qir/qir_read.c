#define _GNU_SOURCE
#include "frontend/qir/qir_read.h"

#include "frontend/qir/reader.h"
#include "ir/onnx_names.h"
#include "ir/ops/op.h"
#include "parser.h"

Loc loc_of(const Reader *r, Range at) {
    return (Loc){r->source, at.begin, at.end, NULL};
}

Range range_of(Token t) {
    return (Range){t.begin, t.end};
}

Str str_at(const Reader *r, Range at) {
    return lexer_str(&r->lexer, at.begin, at.end);
}

Str str_of(const Reader *r, Token t) {
    return lexer_str(&r->lexer, t.begin, t.end);
}

bool int_of(const Reader *r, Token t, int64_t *out) {
    Number n;
    *out = 0;
    return number_scan(r->text.s + t.begin, &n) && number_i64(&n, out);
}

Range range_join(Range a, Range b) {
    return (Range){a.begin, b.end > a.end ? b.end : a.end};
}

bool error_at(Reader *r, Range at, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    diag_v(r->diags, DIAG_ERROR, loc_of(r, at), fmt, ap);
    va_end(ap);
    r->reported_end = at.end;
    return false;
}

void note_at(Reader *r, Range at, const char *what) {
    diag_note(r->diags, loc_of(r, at), "%s", what);
}

Str with_sigil(const Reader *r, char sigil, Str name) {
    Buf b = buf_new(r->arena);
    buf_byte(&b, sigil);
    buf_str(&b, name);
    return buf_as_str(&b);
}

const char *shown(Reader *r, Str name) {
    return diag_name(r->diags, name);
}

void suggest(Reader *r, Range at, Str word, const char *const *candidates, size_t n) {
    diag_did_you_mean(r->diags, loc_of(r, at), word, candidates, n);
}

void suggest_key(Reader *r, Range at, Str word, const Map *names) {
    diag_did_you_mean_key(r->diags, loc_of(r, at), word, names);
}

bool qir_begins(Str text, bool *comment) {
    static const char space[] = " \t\r\n";
    const char *p = text.s, *end = text.s + text.n;
    bool any = false;
    if (str_starts(text, "\xEF\xBB\xBF"))
        p += 3;
    for (; p < end; p++) {
        if (end - p >= 2 && memcmp(p, "//", 2) == 0) {
            any = true;
            while (p < end && *p != '\n')
                p++;
        }
        if (p == end || !memchr(space, *p, sizeof space - 1))
            break;
    }
    if (comment)
        *comment = any;
    return end - p >= 4 && memcmp(p, "qir", 3) == 0 && memchr(space, p[3], sizeof space - 1);
}

/* The first line is checked before the parser runs: what is no .qir at all gets one error. */
static bool check_header(Reader *r) {
    Lexer look = r->lexer;
    Token word = lex(&look);
    if (!word.kind)
        return error_at(r, range_of(word), "the file is empty; .qir begins with the line 'qir 1'");
    if (word.kind != T_QIR)
        return error_at(r, range_of(word), "a .qir file begins with the line 'qir 1'");
    Token version = lex(&look);
    if (version.kind != T_INT)
        return error_at(r, range_of(version), "expected the language version, as in 'qir 1'");
    int64_t number;
    if (!int_of(r, version, &number) || number != 1)
        return error_at(r, range_of(version), "this program reads version 1 of the language");
    return true;
}

/* The lexer and recovery take a NUL byte for the end of the text. A file with such bytes that does
 * not begin as text of ours gets no excerpt: a page of junk helps nobody. */
static bool check_bytes(Reader *r) {
    const char *nul = memchr(r->text.s, 0, r->text.n);
    uint32_t at = nul ? (uint32_t)(nul - r->text.s) : 0;
    if (!nul)
        return true;
    if (memmem(r->text.s, at, "qir 1", 5))
        return error_at(r, (Range){at, at + 1}, "a NUL byte in the text");
    bool utf16 = str_starts(r->text, "\xFF\xFE") || str_starts(r->text, "\xFE\xFF");
    return diag_error(r->diags, LOC_NONE, "%s: %s", diags_source_name(r->diags, r->source),
                      utf16 ? "this is UTF-16; .qir is UTF-8"
                            : "a binary file, not .qir text; an ONNX model is read with -x onnx");
}

/* Never NULL, so that empty lists need no care. Small, as many a text is one line of metadata. */
static void make_stacks(Reader *r) {
    r->cap_vals = r->cap_fields = r->cap_binds = r->cap_ins = r->cap_dims = r->cap_origins = 8;
    r->vals = NEW_ARRAY(r->arena, Val, r->cap_vals);
    r->fields = NEW_ARRAY(r->arena, Field, r->cap_fields);
    r->binds = NEW_ARRAY(r->arena, Bind, r->cap_binds);
    r->ins = NEW_ARRAY(r->arena, Value *, r->cap_ins);
    r->dims = NEW_ARRAY(r->arena, Dim, r->cap_dims);
    r->origins = NEW_ARRAY(r->arena, Origin, r->cap_origins);
}

static void parse(Reader *r) {
    Arena *room = arena_scratch(r->arena); /* metadata are many texts, each read by itself */
    parse_with(r, arena_alloc(room, qir_parser_size()));
    arena_free(room);
}

/* Memory may run out: the message says where. */
static void parse_noting(Reader *r) {
    OutOfMemory *oom = arena_handler(r->arena);
    if (oom) {
        oom->text = r->text.s;
        oom->at = &r->lexer.cursor;
    }
    parse(r);
    if (oom)
        oom->at = NULL;
}

static void check_imports(Reader *r, const Import *imports, size_t n) {
    if (!imports_check(r->arena, imports, n, r->diags))
        r->unsound = true;
}

/* In a body of a library a slip in a name would leave a node that nothing can run. */
static void look_for_unknown(Graph *g, void *ctx) {
    Reader *r = ctx;
    FOR_NODES(n, g) {
        if (!domain_is_onnx(n->domain) || onnx_has_operator(n->op))
            continue;
        diag_error(r->diags, n->loc, "ONNX has no operator %s", shown(r, n->op));
        onnx_did_you_mean(r->diags, n->loc, n->op);
    }
}

/* What a library has beside functions nobody would read. */
static void check_library(Reader *r, bool sound) {
    Module *m = r->module;
    for (size_t i = 0; i < m->n_quants; i++)
        diag_error(r->diags, m->quants[i]->loc,
                   "a library has functions alone, no quantized types");
    if (m->graph)
        diag_error(r->diags, m->graph->loc, "a library has functions alone, no graph");
    else if (!m->n_functions && sound)
        error_at(r, (Range){(uint32_t)r->text.n, (uint32_t)r->text.n}, "the file has no function");
    m->graph = m->graph ? m->graph : graph_new(m, STR(""));
    module_each_graph(m, look_for_unknown, r);
}

static void check_whole(Reader *r, int errors_before) {
    const Module *m = r->module;
    finish_frames(r);
    finish_params(r, errors_before);
    report_unfit(r);
    check_imports(r, m->imports, m->n_imports);
    for (size_t i = 0; i < m->n_functions; i++)
        check_imports(r, m->functions[i]->imports, m->functions[i]->n_imports);
    if (r->options.functions_alone) {
        check_library(r, diags_errors(r->diags) == errors_before);
        return;
    }
    if (!r->module->graph && diags_errors(r->diags) == errors_before)
        error_at(r, (Range){(uint32_t)r->text.n, (uint32_t)r->text.n}, "the file has no graph");
}

void reader_reset(Reader *r, Str text) {
    Arena *a = r->arena;
    Module *m = module_new(a, r->syntax);
    *r = (Reader){.arena = a,
                  .diags = r->syntax,
                  .syntax = r->syntax,
                  .options = r->options,
                  .in = r->in,
                  .source = r->source,
                  .text = text,
                  .module = m,
                  .externals = {.module = m, .in = r->in},
                  .aliases = map_new(a),
                  .shapes = map_new(a),
                  .fitting = map_new(a),
                  .misfits = map_new(a),
                  .blobs = map_new(a),
                  .due_by_name = map_new(a),
                  .broken = map_new(a),
                  .scratch = buf_new(a),
                  .furthest = text.s,
                  .vals = r->vals,
                  .cap_vals = r->cap_vals,
                  .fields = r->fields,
                  .cap_fields = r->cap_fields,
                  .binds = r->binds,
                  .cap_binds = r->cap_binds,
                  .ins = r->ins,
                  .cap_ins = r->cap_ins,
                  .dims = r->dims,
                  .cap_dims = r->cap_dims,
                  .origins = r->origins,
                  .cap_origins = r->cap_origins};
    r->last_product = &r->products;
    r->last_sum = &r->sums;
    m->wide_zp = r->options.wide_zp;
    lexer_init(&r->lexer, a, r->syntax, r->source, text);
}

Reader *reader_new(Arena *a, Diags *d, const char *name, Str text, const QirReadOptions *options) {
    if (text.n >= UINT32_MAX) {
        diag_error(d, LOC_NONE, "%s: texts of 4 GiB and more are not supported", name);
        return NULL;
    }
    Reader *r = NEW(a, Reader);
    r->arena = a;
    r->syntax = d;
    r->options = options ? *options : (QirReadOptions){0};
    int line = r->options.first_line;
    r->source = diags_source_part(d, name, text, line ? line : 1);
    r->in = r->options.in;
    r->in.dir = r->in.dir ? r->in.dir : path_dir(a, name);
    make_stacks(r);
    reader_reset(r, text);
    r->module->path = arena_str(a, str_from(name)).s;
    return r;
}

static Module *read_text(Arena *a, Diags *d, const char *name, Str text,
                         const QirReadOptions *options) {
    int errors_before = diags_errors(d);
    Reader *r = reader_new(a, d, name, text, options);
    if (r && check_bytes(r) && check_header(r)) {
        parse_noting(r);
        check_whole(r, errors_before);
        diag_reason(d, !r->lost.end, errors_before, loc_of(r, r->lost), "these data");
    }
    if (diags_errors(d) == errors_before)
        return r->module;
    bool sound = r && (!r->unsound || r->options.functions_alone); /* they hardly meet each other */
    if (sound && r->module->graph && !r->lexer.too_deep)
        module_check(r->module, VERIFY_ERRORS, d); /* one run tells all */
    if (r)
        module_unmap(r->module);
    return NULL;
}

bool qir_check_syntax(Arena *a, Diags *d, const char *name, Str text, int first_line) {
    int errors_before = diags_errors(d);
    Reader *r = reader_new(a, d, name, text, &(QirReadOptions){.first_line = first_line});
    if (!r || !check_bytes(r) || !check_header(r))
        return false;
    r->diags = diags_new(a, NULL, false);
    parse(r);
    module_unmap(r->module);
    if (diags_errors(d) == errors_before && r->lexer.too_deep)
        diag_error(d, LOC_NONE, "%s: nested too deeply", name);
    return diags_errors(d) == errors_before;
}

Module *qir_read_text(Arena *a, Diags *d, const char *name, Str text,
                      const QirReadOptions *options) {
    return read_text(a, d, name, arena_str(a, text), options);
}

bool qir_read_scheme_text(Arena *a, Diags *d, const char *name, Str text, Scheme *out) {
    int errors_before = diags_errors(d);
    text = arena_str(a, text);
    Reader *r = reader_new(a, d, name, text, NULL);
    if (!r || !check_bytes(r))
        return false;
    r->only_scheme = true;
    parse(r);
    finish_frames(r);
    module_unmap(r->module);
    if (diags_errors(d) == errors_before && !r->module->scheme.s)
        error_at(r, (Range){0, 0},
                 "the file has no rules: a scheme file is scheme { ... } around its rules");
    scheme_append(out, a, &r->module->rules);
    return diags_errors(d) == errors_before;
}

bool qir_read_scheme(Arena *a, Diags *d, const char *path, Scheme *out) {
    Str text;
    if (!file_text(a, path, LOC_NONE, d, &text))
        return false;
    return qir_read_scheme_text(a, d, path, text, out);
}

Module *qir_read(Arena *a, Diags *d, const char *path, const QirReadOptions *options) {
    Str text;
    if (!file_text(a, path, LOC_NONE, d, &text))
        return NULL;
    return read_text(a, d, path, text, options);
}
