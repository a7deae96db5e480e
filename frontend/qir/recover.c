/* Messages for syntax errors, and where parsing goes on after one.
 *
 * A broken statement ends with its line, or earlier: when a bracket was left open, the parser only
 * notices on a later line, and if that line looks like a statement of its own, parsing goes on
 * there. Braces opened in the skipped text are skipped up to their match. A broken line that should
 * begin a graph or function begins one all the same, so that its body is read. */
#include "frontend/qir/reader.h"
#include "parser.h"

/* ---- the message ---- */

static const char *const token_names[] = {
    [T_IDENT] = "a name",
    [T_STRING] = "a string",
    [T_INT] = "an integer",
    [T_FLOAT] = "a number",
    [T_VALUE] = "%name",
    [T_ALIAS] = "!name",
    [T_SYM] = "@name",
    [T_REF] = "$name",
    [T_NUMBERS] = "'['",
    [T_QTYPE] = "a quantized type",
    [T_NL] = "the end of the line",
    [T_ARROW] = "'->'",
    [T_DCOLON] = "'::'",
    [T_COLON] = "':'",
    [T_COMMA] = "','",
    [T_EQ] = "'='",
    [T_TILDE] = "'~'",
    [T_STAR] = "'*'",
    [T_QMARK] = "'?'",
    [T_LP] = "'('",
    [T_RP] = "')'",
    [T_LB] = "'['",
    [T_RB] = "']'",
    [T_LT] = "'<'",
    [T_GT] = "'>'",
    [T_LC] = "'{'",
    [T_RC] = "'}'",
    [T_UNDER] = "'_'",
};

static const struct {
    int token;
    const char *word;
} keywords[] = {
    {T_QIR, "qir"},       {T_IMPORT, "import"},     {T_MODEL, "model"},
    {T_META, "meta"},     {T_BLOB, "blob"},         {T_QUANT, "quant"},
    {T_GRAPH, "graph"},   {T_FUNC, "func"},         {T_CONST, "const"},
    {T_STAT, "stat"},     {T_FROM, "from"},         {T_BY, "by"},
    {T_IN, "in"},         {T_NAME, "name"},         {T_DOC, "doc"},
    {T_EXTRA, "extra"},   {T_INFERRED, "inferred"}, {T_STATED, "stated"},
    {T_ACC, "acc"},       {T_SEQ, "seq"},           {T_OPTIONAL, "optional"},
    {T_SPARSE, "sparse"}, {T_MAP, "map"},           {T_TENSOR, "tensor"},
    {T_TYPE, "type"},     {T_SCHEME, "scheme"},     {T_ONNX, "onnx"},
};
enum { N_KEYWORDS = sizeof keywords / sizeof *keywords };

static const char *keyword(int token) {
    for (int i = 0; i < N_KEYWORDS; i++)
        if (keywords[i].token == token)
            return keywords[i].word;
    return NULL;
}

enum { MOST_EXPECTED = 6 };

static int add_unique(const char **list, int n, const char *word) {
    for (int i = 0; i < n && i < MOST_EXPECTED; i++)
        if (strcmp(list[i], word) == 0)
            return n;
    if (n < MOST_EXPECTED)
        list[n] = word;
    return n + 1;
}

/* The wanted terminals in few words. Keywords are named only where nothing else could stand. */
static int list_expected(const bool *want, int n_tokens, const char **list) {
    bool value = want[T_FLOAT] && want[T_LB], type = want[T_QTYPE] && want[T_ALIAS];
    bool statement = want[T_STAT] && want[T_VALUE];
    int n = 0;
    if (value)
        n = add_unique(list, n, "a value");
    else if (type)
        n = add_unique(list, n, "a type");
    else if (statement)
        n = add_unique(list, n, "a statement");
    for (int i = 1; i < n_tokens; i++) {
        bool covered =
            value ? i == T_INT || i == T_FLOAT || i == T_STRING || i == T_SYM || i == T_REF ||
                        i == T_IDENT || i == T_LB || i == T_NUMBERS || i == T_QTYPE
            : statement ? i == T_UNDER || i == T_LP || i == T_VALUE
                        : type && (i == T_ALIAS || i == T_QTYPE || i == T_IDENT || i == T_QMARK);
        if (want[i] && !covered && !keyword(i) && token_names[i] && i != T_NL)
            n = add_unique(list, n, token_names[i]);
    }
    bool keywords_only = n == 0;
    for (int i = 1; keywords_only && i < N_KEYWORDS; i++)
        if (want[keywords[i].token])
            n = add_unique(list, n, keywords[i].word);
    if (want[T_NL] && n <= 1)
        n = add_unique(list, n, token_names[T_NL]);
    return n;
}

static const char *what_came(Reader *r, Token t) {
    if (t.kind == 0)
        return "the end of the file";
    if (t.kind == T_NL)
        return "the end of the line";
    Str text = {r->text.s + t.begin, t.end - t.begin};
    if (text.n > 40)
        text.n = 40;
    return arena_strf(r->arena, "'%s'", shown(r, text)).s;
}

static void suggest_keyword(Reader *r, Token t, const bool *want) {
    const char *words[N_KEYWORDS];
    size_t n = 0;
    for (int i = 0; i < N_KEYWORDS; i++)
        if (want[keywords[i].token])
            words[n++] = keywords[i].word;
    if (t.kind == T_IDENT && n)
        suggest(r, range_of(t), t.str, words, n);
}

/* True when a line ended between the token and the one before: an open bracket hid it. */
static bool on_new_line(const Reader *r, Token t) {
    return t.begin > r->prev_end && r->prev_kind != T_NL && r->prev_kind != T_LC &&
           memchr(r->text.s + r->prev_end, '\n', t.begin - r->prev_end) != NULL;
}

void syntax_error(Reader *r, Token t, const bool *want, int n_tokens) {
    r->failed_here = true;
    if (t.bad)
        return;
    Diags *all = r->diags;
    r->diags = r->syntax;
    const char *list[MOST_EXPECTED];
    int n = list_expected(want, n_tokens, list);
    Buf *b = &r->scratch;
    b->n = 0;
    bool late = on_new_line(r, t);
    if (n > 0 && n <= MOST_EXPECTED) {
        for (int i = 0; i < n; i++) {
            buf_text(b, i == 0 ? "expected " : i == n - 1 ? " or " : ", ");
            buf_text(b, list[i]);
        }
        if (late)
            buf_text(b, " before the end of the line");
        else
            buf_fmt(b, ", not %s", what_came(r, t));
    } else {
        buf_fmt(b, "unexpected %s", what_came(r, t));
    }
    Range at = late ? (Range){r->prev_end, r->prev_end} : range_of(t);
    error_at(r, at, "%s", buf_as_str(b).s);
    if (t.kind == 0 && r->frame)
        diag_note(r->diags, r->frame->graph->loc, "the body that is not closed begins here");
    if (t.kind == T_IDENT)
        suggest_keyword(r, t, want);
    r->diags = all;
}

/* ---- where to go on ---- */

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

/* The end of the name whose sigil is at p; sets the name unless it has escapes. */
static const char *skip_name(const char *p, Str *name) {
    const char *begin = p + 1, *end;
    if (*begin == '"') {
        end = skip_string(begin);
        *name = (Str){begin + 1, (size_t)(end - begin) - (end - begin >= 2 ? 2 : 1)};
        return end;
    }
    for (end = begin; name_byte(*end) || (end[0] == ':' && end[1] == ':' && name_byte(end[2]));)
        end += *end == ':' ? 2 : 1;
    *name = (Str){begin, (size_t)(end - begin)};
    return end;
}

static bool word_at(const char *p, const char *word) {
    size_t n = strlen(word);
    return strncmp(p, word, n) == 0 && !name_byte(p[n]);
}

static bool begins_item(const char *p) {
    static const char *const words[] = {"quant", "import", "model", "meta",
                                        "blob",  "func",   "graph"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (word_at(p, words[i]))
            return true;
    return false;
}

/* Could a statement begin at p, the first token of a line? */
static bool begins_statement(const char *p, int depth) {
    if (depth == 0)
        return begins_item(p);
    if (*p == '}' || word_at(p, "const") || word_at(p, "stat") || word_at(p, "onnx"))
        return true;
    if (*p != '%')
        return false;
    Str name;
    p = skip_blanks(skip_name(p, &name));
    return *p == '=' || (*p == ':' && p[1] != ':');
}

/* The first token of the line that holds `at`. */
static const char *line_start(const Reader *r, uint32_t at) {
    const char *p = r->text.s + at;
    while (p > r->text.s + r->statement && p[-1] != '\n')
        p--;
    return skip_blanks(p);
}

/* From `p` to the end of the statement: the end of a line outside of braces whose last token does
 * not ask for more, or the brace that closes the body. */
static const char *skip_statement(const Reader *r, const char *p) {
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
            bool more =
                last && strchr(",([<=", last) && !begins_statement(next, r->statement_depth);
            if (braces == 0 && !more)
                return p;
        } else if (*p == '{') {
            braces++;
            last = 0;
        } else if (*p == '}') {
            if (braces == 0 && r->statement_depth > 0)
                return p;
            braces -= braces > 0;
            last = *p;
        } else if (*p != ' ' && *p != '\t' && *p != '\r') {
            last = *p;
        }
    }
    return p;
}

/* Names that the skipped text may have been about to define. */
static void mark_broken(Reader *r, const char *p, const char *end) {
    while (p < end) {
        Str name;
        if (*p == '"') {
            p = skip_string(p);
        } else if (*p == '%' || *p == '!' || *p == '@') {
            char sigil = *p;
            p = skip_name(p, &name);
            Str key = arena_strf(r->arena, "%c%.*s", sigil, STR_ARG(name));
            map_set(r->broken, key, r);
        } else {
            p++;
        }
    }
}

bool is_broken(const Reader *r, char sigil, Str name) {
    if (map_size(r->broken) == 0)
        return false;
    Str key = arena_strf(r->arena, "%c%.*s", sigil, STR_ARG(name));
    return map_get(r->broken, key) != NULL;
}

bool recover(Reader *r, Token t) {
    const char *begin = r->text.s + r->statement, *go_on;
    r->lexer.depth = r->statement_depth;
    if (t.kind == T_NL) {
        mark_broken(r, begin, r->text.s + t.begin);
        return false; /* the parser has it already */
    }
    const char *line = line_start(r, t.begin);
    if (line > begin && begins_statement(line, r->statement_depth))
        go_on = line;
    else
        go_on = skip_statement(r, r->text.s + t.begin);
    mark_broken(r, begin, go_on);
    r->lexer.cursor = go_on;
    return true;
}

/* ---- lines that should begin a graph or function ---- */

/* Where the body begins: after the next brace, or where a brace was forgotten. NULL when no body
 * comes; then *end is where to go on. */
static const char *find_body(const Reader *r, Token t, const char **end) {
    const char *text = r->text.s, *p = text + t.begin;
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
            if (begins_item(next))
                break;
            if (round <= 0 && begins_statement(next, 1) && *next != '}')
                return p;
        } else {
            round += (*p == '(') - (*p == ')');
        }
    }
    *end = p;
    return NULL;
}

bool recover_header(Reader *r, Token t) {
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
    r->n_vals = m.vals;
    r->n_fields = m.fields;
    r->n_binds = m.binds;
    r->n_ins = m.ins;
    r->n_dims = m.dims;
}
