#include "frontend/qir/lexer.h"

#include "frontend/qir/number.h"
#include "parser.h"

void lexer_init(Lexer *x, Arena *a, Diags *d, uint32_t source, Str text) {
    *x = (Lexer){.arena = a, .diags = d, .source = source, .text = text.s, .end = text.s + text.n};
    x->cursor = x->text;
    x->last = T_NL;
    if (text.n >= 3 && memcmp(text.s, "\xEF\xBB\xBF", 3) == 0)
        x->cursor += 3; /* a byte order mark */
}

static uint32_t at(const Lexer *x, const char *p) {
    return (uint32_t)(p - x->text);
}

static Loc loc(const Lexer *x, const char *begin, const char *end) {
    return (Loc){x->source, at(x, begin), at(x, end), NULL};
}

/* ---- strings ---- */

/* Decodes the escape at p (a backslash); returns what follows it. Where it is none, *wrong says so
 * and there is nothing to append. */
static const char *unescape(const char *p, const char *end, char *out, const char **wrong) {
    char c = p + 1 < end ? p[1] : 0;
    *wrong = NULL;
    switch (c) {
    case 'n': *out = '\n'; return p + 2;
    case 't': *out = '\t'; return p + 2;
    case '"':
    case '\\': *out = c; return p + 2;
    case 'x':
        if (p + 3 < end && hex_digit(p[2]) >= 0 && hex_digit(p[3]) >= 0) {
            *out = (char)(hex_digit(p[2]) << 4 | hex_digit(p[3]));
            return p + 4;
        }
        *wrong = "\\x needs two hexadecimal digits";
        return p + 2;
    default: *wrong = "unknown escape; there are \\n \\t \\\" \\\\ and \\xHH"; return p + 2;
    }
}

static const char *next_escape(const char *p, const char *end) {
    return memchr(p, '\\', (size_t)(end - p));
}

static void check_escapes(const Lexer *x, const char *p, const char *end) {
    char byte;
    const char *wrong;
    while ((p = next_escape(p, end))) {
        const char *begin = p;
        p = unescape(p, end, &byte, &wrong);
        if (wrong)
            diag_error(x->diags, loc(x, begin, begin + 2), "%s", wrong);
    }
}

/* The content between the quotes. */
static Str string_content(const Lexer *x, const char *p, const char *end) {
    const char *back = next_escape(p, end), *wrong;
    if (!back)
        return (Str){p, (size_t)(end - p)};
    char *out = arena_alloc(x->arena, (size_t)(end - p) + 1), *to = out;
    for (; back; back = next_escape(p, end)) {
        memcpy(to, p, (size_t)(back - p));
        to += back - p;
        p = unescape(back, end, to, &wrong);
        to += !wrong;
    }
    memcpy(to, p, (size_t)(end - p));
    to[end - p] = 0;
    return (Str){out, (size_t)(to - out) + (size_t)(end - p)};
}

Str lexer_str(const Lexer *x, uint32_t begin, uint32_t end) {
    const char *p = x->text + begin, *stop = x->text + end;
    if (*p == '%' || *p == '!' || *p == '@' || *p == '$')
        p++;
    if (*p == '"')
        return string_content(x, p + 1, stop - 1);
    return (Str){p, (size_t)(stop - p)};
}

bool lexer_closed(const char *open, const char *end) {
    if (end - open < 2 || end[-1] != '"')
        return false;
    const char *back = end - 1; /* an even number of backslashes before it closes */
    while (back[-1] == '\\')
        back--;
    return (end - 1 - back) % 2 == 0;
}

static bool check_string(const Lexer *x, const char *open, const char *end) {
    if (lexer_closed(open, end)) {
        check_escapes(x, open + 1, end - 1);
        return true;
    }
    diag_error(x->diags, loc(x, open, open + 1), "the string is not closed on its line");
    return false;
}

/* ---- lists of numbers ---- */

const char *lexer_space(const char *p) {
    for (;;) {
        while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
            p++;
        if (p[0] != '/' || p[1] != '/')
            return p;
        while (*p && *p != '\n')
            p++;
    }
}

/* What numbers are written with; INTEGER is what integers can be written with. */
enum { INTEGER = 1, OTHER = 2 };
static const uint8_t number_chars[256] = {
    ['0' ... '9'] = INTEGER, ['a' ... 'd'] = INTEGER, ['A' ... 'D'] = INTEGER,
    ['f'] = INTEGER,         ['F'] = INTEGER,         ['-'] = INTEGER,
    ['x'] = INTEGER,         ['X'] = INTEGER,         ['e'] = OTHER,
    ['E'] = OTHER,           ['+'] = OTHER,           ['.'] = OTHER,
    ['p'] = OTHER,           ['P'] = OTHER,           ['^'] = OTHER,
    ['i'] = OTHER,           ['n'] = OTHER,           ['('] = OTHER,
    [')'] = OTHER,
};

static bool number_begins(const char *p) {
    if (*p == '-')
        p++;
    return (*p >= '0' && *p <= '9') || strncmp(p, "inf", 3) == 0 || strncmp(p, "nan", 3) == 0;
}

/* A list of numbers alone is one token, converted when its element type is known: large constants
 * would else cost a parser step for every number. Returns the end of the list that opens at p, or
 * NULL when it holds anything else; then it comes token by token, with the parser's messages. */
static const char *number_list(const char *p, Token *t) {
    uint8_t seen = 0, class;
    t->n = 0;
    for (p++;; p++) {
        p = lexer_space(p);
        if (!number_begins(p))
            return NULL;
        for (; (class = number_chars[(unsigned char)*p]); p++)
            seen |= class;
        t->n++;
        p = lexer_space(p);
        if (*p == ']')
            break;
        if (*p != ',')
            return NULL;
        if (*lexer_space(p + 1) == ']') {
            p = lexer_space(p + 1);
            break;
        }
    }
    t->mixed = seen & OTHER;
    return p + 1;
}

/* ---- brackets ---- */

static void open_bracket(Lexer *x, char c, Token *t) {
    if (x->depth < MAX_BRACKETS) {
        x->open[x->depth++] = c;
        return;
    }
    if (!x->too_deep)
        diag_error(x->diags, loc(x, x->cursor - 1, x->cursor), "brackets are nested more than %d deep", MAX_BRACKETS);
    x->too_deep = t->bad = true;
    t->kind = T_BAD;
}

/* A bracket that does not match closes nothing, except that } closes all up to its {. */
static void close_bracket(Lexer *x, char open) {
    if (open == '{') {
        int depth = x->depth;
        while (depth > 0 && x->open[depth - 1] != '{')
            depth--;
        if (depth > 0)
            x->depth = depth - 1;
    } else if (x->depth > 0 && x->open[x->depth - 1] == open) {
        x->depth--;
    }
}

static bool newline_counts(const Lexer *x) {
    return (x->depth == 0 || x->open[x->depth - 1] == '{') && x->last != T_NL;
}

/* What begins at p ends a line that a newline ended: the brace of a body may stand on its own. */
static bool line_goes_on(const Lexer *x, const char *p) {
    return x->depth == 0 && *lexer_space(p) == '{';
}

/* Lists may end in a comma. */
static bool comma_is_last(const Lexer *x, const char *p) {
    char next = *lexer_space(p), open = x->depth > 0 ? x->open[x->depth - 1] : 0;
    bool empty = x->last == T_LP || x->last == T_LB || x->last == T_LT || x->last == T_COMMA;
    return !empty && ((open == '(' && next == ')') || (open == '[' && next == ']') ||
                      (open == '<' && next == '>'));
}

/* ---- the scheme, which the formatter leaves as it is ---- */

static Token scheme_block(Lexer *x, Token t) {
    const char *p = lexer_space(x->cursor);
    int depth = 0;
    bool string = false;
    for (const char *begin = p + 1; *p == '{' || depth > 0; p++) {
        if (*p == 0) {
            diag_error(x->diags, (Loc){x->source, t.begin, t.end, NULL},
                       "the scheme is not closed with '}'");
            break;
        }
        if (*p == '\\' && string && p[1])
            p++;
        else if (*p == '"' || *p == '\n')
            string = *p == '"' && !string;
        else if (!string && p[0] == '/' && p[1] == '/')
            p = strchr(p, '\n') ? strchr(p, '\n') - 1 : x->end - 1;
        else if (!string && *p == '{')
            depth++;
        else if (!string && *p == '}' && --depth == 0) {
            t.n = at(x, begin) - t.begin;
            x->cursor = p + 1;
            t.end = at(x, x->cursor);
            return t;
        }
    }
    t.kind = T_BAD;
    t.bad = true;
    return t;
}

/* The word alone; but a scheme that is not closed is told here, as its rules would end anywhere. */
static Token scheme_word(Lexer *x, Token t) {
    const char *begin = x->cursor;
    Token whole = scheme_block(x, t);
    if (x->scheme_as_text || whole.kind != T_SCHEME)
        return whole;
    x->cursor = begin;
    return t;
}

/* ---- tokens ---- */

static Token bad(Lexer *x, Token t, const char *what) {
    diag_error(x->diags, (Loc){x->source, t.begin, t.end, NULL}, "%s", what);
    t.kind = T_BAD;
    t.bad = true;
    return t;
}

/*!re2c
    re2c:define:YYCTYPE = "unsigned char";
    re2c:define:YYCURSOR = "p";
    re2c:define:YYMARKER = marker;
    re2c:yyfill:enable = 0;
    re2c:flags:bit-vectors = 1;
    re2c:indent:string = "    ";

    digit    = [0-9];
    hexdigit = [0-9a-fA-F];
    letter   = [A-Za-z_];
    space    = [ \t\r];
    ident    = letter (letter | digit | ".")*;
    hyphened = ident ("-" ident)+;
    string   = ["] ([^"\\\n\x00] | "\\" [^\n\x00])* ["]?;
    namechar = [A-Za-z0-9_./$-];
    name     = namechar+ ("::" namechar+)*;
    int      = "-"? (digit+ | "0" [xX] hexdigit+);
    exponent = [+-]? digit+;
    decimal  = "-"? digit+ ("." digit* ([eE] exponent)? | [eE] exponent);
    binary   = "-"? ("0" [xX] hexdigit+ ("." hexdigit*)? [pP] exponent | "2^" exponent);
    special  = "-"? ("inf" | "nan") | "nan(0x" hexdigit+ ")";
    float8   = "float8e4m3fn" "uz"? | "float8e5m2" "fnuz"?;
    qtype    = ("u"? "int" ("1" | "2" | "4" | "8" | "16" | "32") | float8) "q";
*/

#define TOKEN(k)                                                                                   \
    do {                                                                                           \
        t.kind = (k);                                                                              \
        goto done;                                                                                 \
    } while (0)
#define QUOTED(k, sigil)                                                                           \
    do {                                                                                           \
        t.bad = !check_string(x, begin + (sigil), p);                                              \
        t.kind = t.bad ? T_BAD : (k);                                                              \
        goto done;                                                                                 \
    } while (0)

static Token scan(Lexer *x) {
    const char *p = x->cursor, *begin, *marker;
    Token t = {0};
again:
    begin = p;
    /*!re2c
        space+              { goto again; }
        "//" [^\n\x00]*     { goto again; }
        "\n"                { if (newline_counts(x) && !line_goes_on(x, p)) TOKEN(T_NL); goto again; }
        "\x00"              {
            p = begin; /* the end, again and again */
            TOKEN(0);
        }

        "qir"      { TOKEN(T_QIR); }
        "import"   { TOKEN(T_IMPORT); }
        "model"    { TOKEN(T_MODEL); }
        "meta"     { TOKEN(T_META); }
        "blob"     { TOKEN(T_BLOB); }
        "quant"    { TOKEN(T_QUANT); }
        "graph"    { TOKEN(T_GRAPH); }
        "func"     { TOKEN(T_FUNC); }
        "const"    { TOKEN(T_CONST); }
        "data"     { TOKEN(T_DATA); }
        "stat"     { TOKEN(T_STAT); }
        "onnx"     { TOKEN(T_ONNX); }
        "from"     { TOKEN(T_FROM); }
        "by"       { TOKEN(T_BY); }
        "in"       { TOKEN(T_IN); }
        "name"     { TOKEN(T_NAME); }
        "doc"      { TOKEN(T_DOC); }
        "extra"    { TOKEN(T_EXTRA); }
        "inferred" { TOKEN(T_INFERRED); }
        "stated"   { TOKEN(T_STATED); }
        "acc"      { TOKEN(T_ACC); }
        "seq"      { TOKEN(T_SEQ); }
        "optional" { TOKEN(T_OPTIONAL); }
        "sparse"   { TOKEN(T_SPARSE); }
        "map"      { TOKEN(T_MAP); }
        "tensor"   { TOKEN(T_TENSOR); }
        "type"     { TOKEN(T_TYPE); }
        "scheme"   { TOKEN(T_SCHEME); }
        "_"        { TOKEN(T_UNDER); }
        qtype      { TOKEN(T_QTYPE); }
        special    { TOKEN(T_FLOAT); }
        ident      { TOKEN(T_IDENT); }
        hyphened   { TOKEN(T_HYPHENED); }

        "%" name   { TOKEN(T_VALUE); }
        "!" name   { TOKEN(T_ALIAS); }
        "@" name   { TOKEN(T_SYM); }
        "$" name   { TOKEN(T_REF); }
        "%" string { QUOTED(T_VALUE, true); }
        "!" string { QUOTED(T_ALIAS, true); }
        "@" string { QUOTED(T_SYM, true); }
        "$" string { QUOTED(T_REF, true); }
        string     { QUOTED(T_STRING, false); }

        int        { TOKEN(T_INT); }
        decimal    { TOKEN(T_FLOAT); }
        binary     { TOKEN(T_FLOAT); }
        "-"? digit (letter | digit | ".")* { TOKEN(T_BAD); }
        int ".." "."? int { TOKEN(T_BAD); }
        "-"? digit+ "^" (letter | digit | [-+.])* { TOKEN(T_BAD); }

        "->" { TOKEN(T_ARROW); }
        "::" { TOKEN(T_DCOLON); }
        ":"  { TOKEN(T_COLON); }
        ","  { if (comma_is_last(x, p)) goto again; TOKEN(T_COMMA); }
        "="  { TOKEN(T_EQ); }
        "~"  { TOKEN(T_TILDE); }
        "*"  { TOKEN(T_STAR); }
        "?"  { TOKEN(T_QMARK); }
        "("  { TOKEN(T_LP); }
        ")"  { TOKEN(T_RP); }
        "["  {
            const char *end = number_list(begin, &t);
            if (!end)
                TOKEN(T_LB);
            p = end;
            TOKEN(T_NUMBERS);
        }
        "]"  { TOKEN(T_RB); }
        "<"  { TOKEN(T_LT); }
        ">"  { TOKEN(T_GT); }
        "{"  { TOKEN(T_LC); }
        "}"  { TOKEN(T_RC); }
        *    { TOKEN(T_BAD); }
    */
done:
    x->cursor = p;
    t.begin = at(x, begin);
    t.end = at(x, p);
    return t;
}

const char *lexer_bad_number(Str text) {
    if (memchr(text.s, '^', text.n))
        return "only powers of two are written with '^', and their exponents are whole: 2^-5";
    if (str_glob("*..*", text))
        return "a range is written LOW:HIGH, as in -127:127";
    if (str_glob("*x*", text) && !str_starts(text, "0x") && !str_starts(text, "-"))
        return "dimensions are parted by commas, as in float[2,4]";
    return str_ends(text, "f") ? "numbers have no suffix: 0.5" : "this is not a number";
}

static const char *what_is_bad(const Lexer *x, const char *p, size_t n) {
    static const char quotes[][4] = {"\u2018", "\u2019", "\u201c", "\u201d"};
    for (size_t i = 0; i < sizeof quotes / sizeof *quotes; i++)
        if (strncmp(p, quotes[i], 3) == 0)
            return "strings stand in straight double quotes: \"\"";
    bool begins_name = *p == '%' || *p == '!' || *p == '@' || *p == '$';
    if ((unsigned char)p[begins_name] >= 0x80)
        return "names with letters beyond ASCII stand in double quotes, as in %\"\xc3\xa9\"";
    if ((*p >= '0' && *p <= '9') || *p == '-')
        return lexer_bad_number((Str){p, n});
    if (begins_name)
        return "a name is missing here";
    switch (*p) {
    case '#': return "comments begin with //";
    case ';': return "no ';' stands in a text: statements end with their line, and ',' parts what stands "
                     "in brackets";
    case '+': return "numbers have no '+'";
    case '.': return "numbers begin with a digit, as in 0.5";
    case '/':
        if (p[1] == '*')
            return "comments begin with // and end with their line";
        if (p > x->text && p[-1] >= '0' && p[-1] <= '9')
            return "numbers are not divided; powers of two are written 2^-7";
        return "unexpected character; names and globs with / or * stand in double quotes";
    case '*': return "unexpected character; names and globs with / or * stand in double quotes";
    case '\'': return "strings stand in double quotes";
    default: return "unexpected character";
    }
}

Token lex(Lexer *x) {
    Token t = scan(x);
    switch (t.kind) {
    /* Statements end with a newline; before } and at the end of the text it goes without saying. */
    case 0:
    case T_RC:
        if (newline_counts(x) && x->last != T_LC) {
            x->cursor = x->text + t.begin;
            t = (Token){.kind = T_NL, .begin = t.begin, .end = t.begin};
        } else if (t.kind) {
            close_bracket(x, '{');
        }
        break;
    case T_LP: open_bracket(x, '(', &t); break;
    case T_LB: open_bracket(x, '[', &t); break;
    case T_LT: open_bracket(x, '<', &t); break;
    case T_LC: open_bracket(x, '{', &t); break;
    case T_RP: close_bracket(x, '('); break;
    case T_RB: close_bracket(x, '['); break;
    case T_GT: close_bracket(x, '<'); break;
    case T_SCHEME:
        if (x->last == T_NL && x->depth == 0 && *lexer_space(x->cursor) != '{')
            t = bad(x, t, "a scheme stands in braces: scheme { ... }");
        else if (x->last != T_NL || x->depth > 0)
            t.kind = T_IDENT;
        else
            t = scheme_word(x, t);
        break;
    case T_BAD:
        if (!t.bad)
            t = bad(x, t, what_is_bad(x, x->text + t.begin, t.end - t.begin));
        break;
    }
    x->last = t.kind;
    return t;
}
