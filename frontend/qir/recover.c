/* Where parsing goes on after a syntax error.
 *
 * A broken statement ends with its line, or earlier: when a bracket was left open, the parser only
 * notices on a later line, and if that line looks like a statement of its own, parsing goes on
 * there. Braces opened in the skipped text are skipped up to their match. A broken line that should
 * begin a graph or function begins one all the same, so that its body is read. */
#include "frontend/qir/reader.h"
#include "parser.h"

static bool name_byte(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (c && strchr("_./$-", c));
}

static const char *skip_blanks(const char *p) {
    while (*p == ' ' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

static const char *skip_string(const char *p) {
    for (p++; *p && *p != '\n' && *p != '"'; p++)
        if (*p == '\\' && p[1] && p[1] != '\n')
            p++;
    return *p == '"' ? p + 1 : p;
}

/* The end of the name whose sigil is at p. */
static const char *skip_name(const char *p) {
    const char *end = p + 1;
    if (*end == '"')
        return skip_string(end);
    while (name_byte(*end) || (end[0] == ':' && end[1] == ':' && name_byte(end[2])))
        end += *end == ':' ? 2 : 1;
    return end;
}

/* The name between, which may lack its second quote. */
static Str name_between(const Reader *r, const char *p, const char *end) {
    bool open = p[1] == '"' && !lexer_closed(p + 1, end);
    return open ? STR_NONE
                : lexer_str(&r->lexer, (uint32_t)(p - r->text.s), (uint32_t)(end - r->text.s));
}

static bool word_at(const char *p, const char *word) {
    size_t n = strlen(word);
    return strncmp(p, word, n) == 0 && !name_byte(p[n]);
}

enum { NO_LINE, FILE_LINE, BODY_LINE };

/* How far the line that holds p is indented. */
static size_t indent(const Reader *r, const char *p) {
    while (p > r->text.s && p[-1] != '\n')
        p--;
    return strspn(p, " \t");
}

static bool is_first_in_line(const Reader *r, const char *p) {
    while (p > r->text.s && (p[-1] == ' ' || p[-1] == '\t'))
        p--;
    return p == r->text.s || p[-1] == '\n';
}

/* The statement that failed. Lines of a body are indented alike, its brace less than they are: what
 * stands further to the right may belong to a graph in an attribute of the statement. */
typedef struct Failed {
    const Reader *r;
    size_t indent;  /* 0: tells nothing */
    bool graph;     /* an attribute was about to be a graph */
    const char *at; /* where the text was last looked at, and how its line is indented */
    size_t at_indent;
} Failed;

/* As indent(), for places from front to back: a long line is walked once. */
static size_t next_indent(Failed *f, const char *p) {
    if (!f->at || p < f->at || memchr(f->at, '\n', (size_t)(p - f->at)))
        f->at_indent = indent(f->r, p);
    f->at = p;
    return f->at_indent;
}

static Failed failed_statement(const Reader *r, const char *end) {
    const char *begin = r->text.s + r->statement;
    Failed f = {.r = r, .indent = is_first_in_line(r, begin) ? indent(r, begin) : 0};
    for (const char *p = begin; p < end && f.indent && !f.graph; p++)
        f.graph = p[0] == '=' && word_at(skip_blanks(p + 1), "graph");
    return f;
}

/* A brace that closes no body around the statement. */
static bool is_inner_brace(Failed *f, const char *p) {
    return *p == '}' && f->indent > 0 && next_indent(f, p) >= f->indent;
}

/* A line, from p on, of a graph within the statement. */
static bool is_inner_line(Failed *f, const char *p) {
    return f->graph && (next_indent(f, p) > f->indent || is_inner_brace(f, p));
}

/* Is there a word that begins such a line? */
static bool line_word_at(const char *p, int line) {
#define KEYWORD(token, word, begins)                                                               \
    if (line == begins && word_at(p, word))                                                        \
        return true;
#include "frontend/qir/keywords.def"
    return false;
}

static bool begins_rule(const char *p) {
#define WHOLE(id, word)                                                                            \
    if (word_at(p, word))                                                                          \
        return true;
#define SUBJECT(id, word)   WHOLE(id, word)
#define CHOICE(word, value) WHOLE(0, word)
#define ROLE(id, word, starts)                                                                     \
    if (starts && word_at(p, word))                                                                \
        return true;
#include "ir/scheme_words.def"
    return false;
}

/* Could a statement begin at p, the first token of a line? */
static bool begins_statement(Failed *f, const char *p, int depth) {
    if (depth == 0)
        return line_word_at(p, FILE_LINE);
    if (is_inner_brace(f, p) || is_inner_line(f, p))
        return false;
    if (*p == '}' || line_word_at(p, BODY_LINE) || begins_rule(p))
        return true;
    if (*p != '%')
        return false;
    p = skip_blanks(skip_name(p));
    return *p == '=' || (*p == ':' && p[1] != ':');
}

/* The first token of the line that holds `at`. */
static const char *line_start(const Reader *r, uint32_t at) {
    const char *p = r->text.s + at;
    while (p > r->text.s + r->statement && p[-1] != '\n')
        p--;
    return skip_blanks(p);
}

/* From `p` to the end of a statement within `depth` braces: the end of a line outside of braces
 * whose last token does not ask for more, or the brace that closes the body. */
static const char *skip_statement(Failed *f, int depth, const char *p) {
    int braces = 0;
    char last = 0;
    for (; *p; p++) {
        if (*p == '"') {
            p = skip_string(p) - 1;
            last = '"';
        } else if (p[0] == '/' && p[1] == '/') {
            p += strcspn(p, "\n") - 1;
        } else if (*p == '\n') {
            const char *next = skip_blanks(p + 1);
            bool more = is_inner_line(f, next) ||
                        (last && strchr(",([<=", last) && !begins_statement(f, next, depth));
            if (braces == 0 && !more)
                return p;
        } else if (*p == '{') {
            braces++;
            last = 0;
        } else if (*p == '}') {
            if (braces == 0 && depth > 0 && !is_inner_brace(f, p))
                return p;
            braces -= braces > 0;
            last = *p;
        } else if (*p != ' ' && *p != '\t' && *p != '\r') {
            last = *p;
        }
    }
    return p;
}

static void mark_name(Reader *r, char sigil, Str name) {
    map_set(r->broken, with_sigil(r, sigil, name), r);
}

/* What the skipped text was about to define where no sigil says so: const w : float[] = [1.0]. A
 * name that is not there at all is one that will be missed. */
static void mark_bare(Reader *r, const char *p, const char *end) {
    static const struct {
        const char *word;
        char sigil;
    } lines[] = {{"quant", '!'}, {"blob", '@'}, {"const", '%'}};
    char sigil = r->statement_depth > 0 ? '%' : 0;
    p = skip_blanks(p);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (word_at(p, lines[i].word)) {
            sigil = lines[i].sigil;
            p = skip_blanks(p + strlen(lines[i].word));
            break;
        }
    if (!sigil || p >= end)
        return;
    const char *stop = p;
    while (stop < end && name_byte(*stop))
        stop++;
    if (stop > p)
        mark_name(r, sigil, (Str){p, (size_t)(stop - p)});
    else if (*p == ':' || *p == '=' || *p == '"')
        r->nameless[(uint8_t)sigil]++;
}

/* Names that the skipped text may have been about to define: in each line those before its '=',
 * but for those within a type. */
static void mark_broken(Reader *r, const char *p, const char *end) {
    int brackets = 0;
    bool defines = true;
    mark_bare(r, p, end);
    while (p < end) {
        if (*p == '"') {
            p = skip_string(p);
        } else if (*p == '%' || *p == '!' || *p == '@') {
            const char *stop = skip_name(p);
            if (defines && brackets <= 0)
                mark_name(r, *p, name_between(r, p, stop));
            p = stop;
        } else {
            brackets += (*p == '<' || *p == '[') - (*p == '>' || *p == ']');
            defines = *p == '\n' || (defines && (*p != '=' || brackets > 0));
            brackets = *p == '\n' ? 0 : brackets;
            p++;
        }
    }
}

bool is_broken(Reader *r, char sigil, Str name) {
    if (map_size(r->broken) && map_get(r->broken, with_sigil(r, sigil, name)))
        return true;
    if (r->nameless[(uint8_t)sigil] == 0)
        return false;
    r->nameless[(uint8_t)sigil]--;
    mark_name(r, sigil, name);
    return true;
}

/* Whether t is a brace within a statement that has lines of its own: another bracket, mistyped; or
 * one brace too many. */
static bool is_mistyped(const Reader *r, Token t) {
    if (t.kind == T_LC && r->prev_kind == T_LC)
        return true;
    const char *begin = r->text.s + r->statement, *token = r->text.s + t.begin;
    while (begin > r->text.s && (begin[-1] == ' ' || begin[-1] == '\t'))
        begin--;
    return t.kind == T_RC && (begin == r->text.s || begin[-1] == '\n') &&
           line_start(r, t.begin) < token && skip_blanks(r->text.s + r->statement) < token;
}

/* Whether the text from p on, where a line of the file begins, goes on with lines of a body: then
 * the body was not left, and such lines stand within its braces by mistake. */
static bool returns_to_body(const Reader *r, const char *p) {
    enum { ENOUGH = 64 }; /* each line that stands wrong asks this again */
    Failed none = {.r = r};
    for (int i = 0; i < ENOUGH && line_word_at(p, FILE_LINE); i++) {
        if (word_at(p, "graph") || word_at(p, "func"))
            break;
        p = lexer_space(skip_statement(&none, 1, p));
    }
    return *p == '}' || begins_statement(&none, p, 1);
}

bool leaves_body(const Reader *r, Token t) {
    const char *p = r->text.s + t.begin;
    return r->lexer.depth == 1 && t.begin == r->starts[1] && indent(r, p) == 0 &&
           is_first_in_line(r, p) && line_word_at(p, FILE_LINE) && !word_at(p, "import") &&
           !returns_to_body(r, p);
}

/* What stands in the text besides values: imports, functions, lines that nobody can tell. */
static bool bears_all(const Reader *r, const char *p) {
    if (r->statement_depth > 0)
        return word_at(p, "import");
    return !word_at(p, "quant") && !word_at(p, "blob") && !word_at(p, "meta");
}

bool recover(Reader *r, Token t) {
    const char *begin = r->text.s + r->statement, *go_on;
    r->unsound |= bears_all(r, begin);
    r->body_left = leaves_body(r, t);
    r->lexer.depth = r->statement_depth;
    if (r->body_left) {
        r->lexer.cursor = begin;
        r->lexer.depth = 0;
        return true;
    }
    if (t.kind == T_NL) {
        mark_broken(r, begin, r->text.s + t.begin);
        return false; /* the parser has it already */
    }
    const char *line = line_start(r, t.begin);
    Failed f = failed_statement(r, r->text.s + t.begin);
    if (line > begin && begins_statement(&f, line, r->statement_depth))
        go_on = line;
    else
        go_on = skip_statement(&f, r->statement_depth,
                               r->text.s + (is_mistyped(r, t) ? t.end : t.begin));
    mark_broken(r, begin, go_on);
    r->lexer.cursor = go_on;
    return true;
}

/* ---- lines that should begin a graph or function ---- */

/* Where the body begins: after the next brace, or where a brace was forgotten. NULL when no body
 * comes; then *end is where to go on. */
static const char *find_body(const Reader *r, Token t, const char **end) {
    const char *text = r->text.s, *p = text + t.begin;
    Failed none = {.r = r};
    bool func = word_at(text + r->statement, "func");
    int round = 0; /* lines within () are no statements of a body */
    for (const char *q = text + r->statement; q < p; q++)
        round += (*q == '(') - (*q == ')');
    for (; *p; p++) {
        if (*p == '"') {
            p = skip_string(p) - 1;
        } else if (p[0] == '/' && p[1] == '/') {
            p += strcspn(p, "\n") - 1;
        } else if (*p == '{') {
            return p + 1;
        } else if (*p == '}') { /* its brace is missing in this line, or before */
            return text + t.begin + strcspn(text + t.begin, "\n");
        } else if (*p == '\n') {
            const char *next = skip_blanks(p + 1);
            bool own_import = func && word_at(next, "import") && indent(r, next) > 0;
            if (line_word_at(next, FILE_LINE) && !own_import)
                break;
            if (round <= 0 && (own_import || begins_statement(&none, next, 1)) && *next != '}')
                return p;
        } else {
            round += (*p == '(') - (*p == ')');
        }
    }
    *end = p;
    return NULL;
}

bool recover_header(Reader *r, Token t) {
    r->unsound = true;
    const char *end = NULL;
    const char *body = t.kind == T_LC ? r->text.s + t.end : find_body(r, t, &end);
    mark_broken(r, r->text.s + r->statement, body ? body : end);
    r->lexer.cursor = body ? body : end;
    r->lexer.depth = body ? 1 : 0;
    r->lexer.open[0] = '{';
    return body != NULL;
}

/* What the abandoned statement left on the stacks. */
void forget_statement(Reader *r) {
    Marks m = r->frame ? r->frame->marks : (Marks){0};
    r->dim_failed = false;
    if (r->frame)
        take_flaws(r); /* they are none of the next statement's */
    r->n_vals = m.vals;
    r->n_fields = m.fields;
    r->n_binds = m.binds;
    r->n_ins = m.ins;
    r->n_dims = m.dims;
    r->n_origins = m.origins;
}
