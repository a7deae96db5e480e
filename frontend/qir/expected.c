/* Messages for syntax errors: what came, what could have come, what may have been meant. */
#include "frontend/qir/reader.h"
#include "parser.h"

static const char *const token_names[] = {
    [T_IDENT] = "a name",
    [T_HYPHENED] = "a name",
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
#define KEYWORD(token, word, begins) {T_##token, word},
#include "frontend/qir/keywords.def"
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
    if (t.kind == T_NL || t.kind == T_STRING)
        return token_names[t.kind];
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
        suggest(r, range_of(t), str_of(r, t), words, n);
}

/* True when a line ended between the token and the one before: an open bracket hid it. */
static bool on_new_line(const Reader *r, Token t) {
    return t.begin > r->prev_end && r->prev_kind != T_NL && r->prev_kind != T_LC &&
           memchr(r->text.s + r->prev_end, '\n', t.begin - r->prev_end) != NULL;
}

static bool is_rule_word(Str word) {
    static const char *const words[] = {
#define SUBJECT(id, word)      word,
#define ROLE(id, word, begins) word,
#define WHOLE(id, word)        word,
#define CHOICE(word, value)    word,
#include "ir/scheme_words.def"
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_is(word, words[i]))
            return true;
    return false;
}

/* A rule that stands outside of the braces of a scheme file, or one brace that opens none. */
static bool is_bare(const Reader *r, Token t) {
    bool brace = t.kind == T_LC && r->lexer.depth == 1;
    return r->only_scheme && t.kind && !r->frame && (!r->lexer.depth || brace);
}

/* Whether the word before was no word of the language, or the same was said already. */
static bool is_told(const Reader *r, Token t) {
    return t.bad || (r->reported_end && r->reported_end == t.begin && r->diags == r->syntax) ||
           (r->told_bare && is_bare(r, t));
}

/* What could have come, and came; returns how many things could have. */
static int put_expected(Reader *r, Buf *b, Token t, const bool *want, int n_tokens, bool late) {
    const char *list[MOST_EXPECTED];
    int n = list_expected(want, n_tokens, list);
    if (n == 0 || n > MOST_EXPECTED) {
        buf_fmt(b, "unexpected %s", what_came(r, t));
        return n;
    }
    for (int i = 0; i < n; i++) {
        buf_text(b, i == 0 ? "expected " : i == n - 1 ? " or " : ", ");
        buf_text(b, list[i]);
    }
    if (late)
        buf_text(b, " before the end of the line");
    else
        buf_fmt(b, ", not %s", what_came(r, t));
    return n;
}

/* What may have been meant. */
static void add_notes(Reader *r, Token t, const bool *want, int n, Range at, bool late) {
    bool outside = !r->frame && !r->lexer.depth && !r->only_scheme;
    if (r->frame && (t.kind == 0 || leaves_body(r, t)))
        diag_note(r->diags, r->frame->graph->loc, "the body that is not closed begins here");
    if (outside && is_rule_word(str_of(r, t)))
        note_at(r, at, "rules stand in scheme { ... }");
    const char *note = late ? NULL : syntax_hint(r, t, want, n);
    if (note)
        note_at(r, at, note);
    else if (t.kind == T_IDENT && want[T_QTYPE] && !want[T_IDENT])
        suggest_storage(r, range_of(t), str_of(r, t));
    else if (t.kind == T_IDENT)
        suggest_keyword(r, t, want);
}

void syntax_error(Reader *r, Token t, bool *want, int n_tokens) {
    r->failed_here = true;
    if (is_told(r, t))
        return;
    /* The parser took a value for one without a type before it saw that a type comes. */
    bool type = t.kind == T_IDENT || t.kind == T_QTYPE || t.kind == T_ALIAS;
    if (type && r->prev_kind == T_VALUE && (want[T_EQ] || (!r->frame && want[T_RP])))
        want[T_COLON] = true;
    Diags *all = r->diags;
    r->diags = r->syntax;
    want[T_EQ] = want[T_EQ] || lacks_equals(r, t, want);
    Buf *b = &r->scratch;
    b->n = 0;
    bool bare = is_bare(r, t) && want[T_SCHEME], late = !bare && on_new_line(r, t);
    int n = 0;
    if (bare)
        buf_fmt(b, "a scheme file is scheme { ... } around its rules; %s stands outside",
                what_came(r, t));
    else
        n = put_expected(r, b, t, want, n_tokens, late);
    r->told_bare = r->told_bare || bare;
    Range at = late ? (Range){r->prev_end, r->prev_end} : range_of(t);
    error_at(r, at, "%s", buf_as_str(b).s);
    add_notes(r, t, want, n, at, late);
    r->diags = all;
}
