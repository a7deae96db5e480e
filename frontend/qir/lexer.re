#include "frontend/qir/lexer.h"

#include "frontend/qir/number.h"
#include "parser.h"

void lexer_init(Lexer *x, Arena *a, Diags *d, uint32_t source, Str text) {
    *x = (Lexer){.arena = a, .diags = d, .source = source, .text = text.s, .end = text.s + text.n};
    x->cursor = x->text;
    x->last = T_NL;
    x->scratch = buf_new(a);
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

static int hex(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decodes the escape at p (a backslash); returns what follows it. */
static const char *unescape(Lexer *x, const char *p, const char *end) {
    char c = p + 1 < end ? p[1] : 0;
    switch (c) {
    case 'n': buf_byte(&x->scratch, '\n'); return p + 2;
    case 't': buf_byte(&x->scratch, '\t'); return p + 2;
    case '"':
    case '\\': buf_byte(&x->scratch, c); return p + 2;
    case 'x':
        if (p + 3 < end && hex(p[2]) >= 0 && hex(p[3]) >= 0) {
            buf_byte(&x->scratch, (char)(hex(p[2]) << 4 | hex(p[3])));
            return p + 4;
        }
        diag_error(x->diags, loc(x, p, p + 2), "\\x needs two hexadecimal digits");
        return p + 2;
    default:
        diag_error(x->diags, loc(x, p, p + 2),
                   "unknown escape; there are \\n \\t \\\" \\\\ and \\xHH");
        return p + 2;
    }
}

/* The content between the quotes. */
static Str string_content(Lexer *x, const char *p, const char *end) {
    size_t n = (size_t)(end - p);
    if (n == 0)
        return STR("");
    if (!memchr(p, '\\', n))
        return (Str){p, n};
    x->scratch.n = 0;
    while (p < end) {
        const char *back = memchr(p, '\\', (size_t)(end - p));
        buf_put(&x->scratch, p, (size_t)((back ? back : end) - p));
        p = back ? unescape(x, back, end) : end;
    }
    return arena_str(x->arena, buf_as_str(&x->scratch));
}

/* `begin` is at an optional sigil; the token ends with its quote, or, *bad, with the line. */
static Str quoted(Lexer *x, const char *begin, bool sigil, bool *bad) {
    const char *open = begin + sigil, *end = x->cursor;
    if (end - open >= 2 && end[-1] == '"') {
        const char *back = end - 1; /* an even number of backslashes before it closes */
        while (back[-1] == '\\')
            back--;
        if ((end - 1 - back) % 2 == 0)
            return string_content(x, open + 1, end - 1);
    }
    *bad = true;
    diag_error(x->diags, loc(x, open, open + 1), "the string is not closed on its line");
    return STR("");
}

/* ---- lists of numbers ---- */

static const char *skip_space(const char *p) {
    for (;;) {
        while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
            p++;
        if (p[0] != '/' || p[1] != '/')
            return p;
        while (*p && *p != '\n')
            p++;
    }
}

static bool number_char(char c) {
    static const bool table[256] = {
        ['0' ... '9'] = true, ['a' ... 'f'] = true, ['A' ... 'F'] = true, ['-'] = true,
        ['+'] = true,         ['.'] = true,         ['x'] = true,         ['p'] = true,
        ['^'] = true,         ['i'] = true,         ['n'] = true,         ['('] = true,
        [')'] = true,         ['X'] = true,         ['P'] = true,
    };
    return table[(unsigned char)c];
}

static bool number_begins(const char *p) {
    if (*p == '-')
        p++;
    return (*p >= '0' && *p <= '9') || strncmp(p, "inf", 3) == 0 || strncmp(p, "nan", 3) == 0;
}

/* A list of numbers alone is one token, converted when its element type is known: large constants
 * would else cost a parser step for every number. Returns the end of the list that opens at p, or
 * NULL when it holds anything else; then it comes token by token, with the parser's messages. */
static const char *number_list(const char *p) {
    for (p++;; p++) {
        p = skip_space(p);
        if (!number_begins(p))
            return NULL;
        while (number_char(*p))
            p++;
        p = skip_space(p);
        if (*p == ']')
            return p + 1;
        if (*p != ',')
            return NULL;
    }
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

/* ---- the scheme, which is passed on as text ---- */

static Token scheme_block(Lexer *x, Token t) {
    const char *p = skip_space(x->cursor);
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
            t.str = (Str){begin, (size_t)(p - begin)};
            x->cursor = p + 1;
            t.end = at(x, x->cursor);
            return t;
        }
    }
    t.kind = T_BAD;
    t.bad = true;
    return t;
}

/* ---- tokens ---- */

static Token int_token(Lexer *x, Token t, const char *begin) {
    Number n;
    number_scan(begin, &n);
    t.kind = T_INT;
    t.big = !number_i64(&n, &t.num);
    (void)x;
    return t;
}

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
    string   = ["] ([^"\\\n\x00] | "\\" [^\n\x00])* ["]?;
    namechar = [A-Za-z0-9_./$-];
    name     = namechar+ ("::" namechar+)*;
    int      = "-"? (digit+ | "0" [xX] hexdigit+);
    exponent = [+-]? digit+;
    decimal  = "-"? digit+ ("." digit* ([eE] exponent)? | [eE] exponent);
    binary   = "-"? ("0" [xX] hexdigit+ ("." hexdigit*)? [pP] exponent | "2^" exponent);
    special  = "-"? ("inf" | "nan") | "nan(0x" hexdigit+ ")";
    qtype    = "u"? "int" ("1" | "2" | "4" | "8" | "16" | "32") "q";
*/

#define TOKEN(k)                                                                                   \
    do {                                                                                           \
        t.kind = (k);                                                                              \
        goto done;                                                                                 \
    } while (0)
#define NAMED(k, skip)                                                                             \
    do {                                                                                           \
        t.kind = (k);                                                                              \
        t.str = (Str){begin + (skip), (size_t)(p - begin) - (skip)};                               \
        goto done;                                                                                 \
    } while (0)
#define QUOTED(k, sigil)                                                                           \
    do {                                                                                           \
        t.kind = (k);                                                                              \
        x->cursor = p;                                                                             \
        t.str = quoted(x, begin, sigil, &t.bad);                                                   \
        if (t.bad)                                                                                 \
            t.kind = T_BAD;                                                                        \
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
        "\n"                { if (newline_counts(x)) TOKEN(T_NL); goto again; }
        "\x00"              {
            p = begin; /* the end, again and again */
            TOKEN(0);
        }

        "qir"      { NAMED(T_QIR, 0); }
        "import"   { NAMED(T_IMPORT, 0); }
        "model"    { NAMED(T_MODEL, 0); }
        "meta"     { NAMED(T_META, 0); }
        "blob"     { NAMED(T_BLOB, 0); }
        "quant"    { NAMED(T_QUANT, 0); }
        "graph"    { NAMED(T_GRAPH, 0); }
        "func"     { NAMED(T_FUNC, 0); }
        "const"    { NAMED(T_CONST, 0); }
        "stat"     { NAMED(T_STAT, 0); }
        "onnx"     { NAMED(T_ONNX, 0); }
        "from"     { NAMED(T_FROM, 0); }
        "by"       { NAMED(T_BY, 0); }
        "in"       { NAMED(T_IN, 0); }
        "name"     { NAMED(T_NAME, 0); }
        "doc"      { NAMED(T_DOC, 0); }
        "extra"    { NAMED(T_EXTRA, 0); }
        "inferred" { NAMED(T_INFERRED, 0); }
        "stated"   { NAMED(T_STATED, 0); }
        "acc"      { NAMED(T_ACC, 0); }
        "seq"      { NAMED(T_SEQ, 0); }
        "optional" { NAMED(T_OPTIONAL, 0); }
        "sparse"   { NAMED(T_SPARSE, 0); }
        "map"      { NAMED(T_MAP, 0); }
        "tensor"   { NAMED(T_TENSOR, 0); }
        "type"     { NAMED(T_TYPE, 0); }
        "scheme"   { NAMED(T_SCHEME, 0); }
        "_"        { NAMED(T_UNDER, 0); }
        qtype      { NAMED(T_QTYPE, 0); }
        special    { TOKEN(T_FLOAT); }
        ident      { NAMED(T_IDENT, 0); }

        "%" name   { NAMED(T_VALUE, 1); }
        "!" name   { NAMED(T_ALIAS, 1); }
        "@" name   { NAMED(T_SYM, 1); }
        "$" name   { NAMED(T_REF, 1); }
        "%" string { QUOTED(T_VALUE, true); }
        "!" string { QUOTED(T_ALIAS, true); }
        "@" string { QUOTED(T_SYM, true); }
        "$" string { QUOTED(T_REF, true); }
        string     { QUOTED(T_STRING, false); }

        int        { t.kind = T_INT; goto done; }
        decimal    { TOKEN(T_FLOAT); }
        binary     { TOKEN(T_FLOAT); }
        "-"? digit (letter | digit | ".")* { t.kind = T_BAD; goto done; }

        "->" { TOKEN(T_ARROW); }
        "::" { TOKEN(T_DCOLON); }
        ":"  { TOKEN(T_COLON); }
        ","  { TOKEN(T_COMMA); }
        "="  { TOKEN(T_EQ); }
        "~"  { TOKEN(T_TILDE); }
        "*"  { TOKEN(T_STAR); }
        "?"  { TOKEN(T_QMARK); }
        "("  { TOKEN(T_LP); }
        ")"  { TOKEN(T_RP); }
        "["  {
            const char *end = number_list(begin);
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

static const char *what_is_bad(const char *p) {
    if ((*p >= '0' && *p <= '9') || *p == '-')
        return "this is not a number";
    if (*p == '%' || *p == '!' || *p == '@' || *p == '$')
        return "a name is missing here";
    switch (*p) {
    case '#': return "comments begin with //";
    case ';': return "statements end with their line, without ';'";
    case '+': return "numbers have no '+'";
    case '.': return "numbers begin with a digit, as in 0.5";
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
    case T_INT: t = int_token(x, t, x->text + t.begin); break;
    case T_SCHEME:
        if (x->last == T_NL && x->depth == 0 && *skip_space(x->cursor) == '{')
            t = scheme_block(x, t);
        else if (x->last == T_NL && x->depth == 0)
            t = bad(x, t, "a scheme stands in braces: scheme { ... }");
        else
            t.kind = T_IDENT;
        break;
    case T_BAD:
        if (!t.bad)
            t = bad(x, t, what_is_bad(x->text + t.begin));
        break;
    }
    x->last = t.kind;
    return t;
}
