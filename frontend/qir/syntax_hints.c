/* What may have been meant where the grammar wants another token. */
#include "frontend/qir/reader.h"
#include "parser.h"

static bool is_value(Token t) {
    return t.kind == T_INT || t.kind == T_FLOAT || t.kind == T_STRING || t.kind == T_NUMBERS ||
           t.kind == T_LB;
}

/* <axis 1>, <axis : 1> */
bool lacks_equals(const Reader *r, Token t, const bool *want) {
    return want[T_COMMA] && want[T_GT] && !want[T_QMARK] && r->prev_kind == T_IDENT &&
           (is_value(t) || t.kind == T_COLON);
}

static bool word_byte(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static Str word_before(const Reader *r) {
    uint32_t begin = r->prev_end;
    while (begin > 0 && word_byte(r->text.s[begin - 1]))
        begin--;
    return (Str){r->text.s + begin, r->prev_end - begin};
}

/* <min=0,5>: a comma between digits, without blanks. */
static const char *point_hint(const Reader *r, Token t) {
    const char *s = r->text.s;
    uint32_t comma = r->prev_end - 1, begin = comma;
    if (r->prev_kind != T_COMMA || (t.kind != T_INT && t.kind != T_FLOAT) ||
        t.begin != r->prev_end || s[t.begin] == '-')
        return NULL;
    while (begin > 0 && (s[begin - 1] == '-' || (s[begin - 1] >= '0' && s[begin - 1] <= '9')))
        begin--;
    Str whole = {s + begin, comma - begin}, part = {s + t.begin, t.end - t.begin};
    bool number = whole.n && begin > 0 && s[begin - 1] != '.' && !word_byte(s[begin - 1]);
    return number ? arena_strf(r->arena,
                               "numbers have a point, and lists stand in []: " STR_FMT "." STR_FMT
                               " or [" STR_FMT ", " STR_FMT "]",
                               STR_ARG(whole), STR_ARG(part), STR_ARG(whole), STR_ARG(part))
                        .s
                  : NULL;
}

/* Where the dimensions of a type should stand. */
static const char *dims_hint(const Reader *r, Token t) {
    if (t.kind == T_LT && elem_is_int(elem_from_name(word_before(r))))
        return "a quantized type has a q: int8q<0.1, 3>";
    if (t.kind == T_LT || t.kind == T_LP)
        return "dimensions stand in [], as in float[2,4]";
    return "the dimensions are missing: float[] is a scalar, float[*] of any rank";
}

/* In front of a quantization, or within its brackets. */
static const char *quant_hint(const Reader *r, Token t, const bool *want) {
    Str word = {r->text.s + t.begin, t.end - t.begin};
    if (t.kind == T_ALIAS && (r->prev_kind == T_RB || r->prev_kind == T_NUMBERS))
        return "between a type and a quantization stands ~, as in float[2,4] ~ !name";
    if (t.kind == T_TILDE && r->prev_kind == T_COLON)
        return "in front of ~ stands a type, as in float[2,4] ~ ?";
    if (t.kind == T_LT && r->prev_kind == T_TILDE)
        return "all is left open by ~ ?, the parameters of a type by ~ int8q<?>";
    if (t.kind == T_QMARK && want[T_QTYPE] && !want[T_IDENT])
        return "a quant line states a type, and may leave its parameters open: int8q<?>";
    if (t.kind == T_IDENT && want[T_QTYPE] && !want[T_IDENT] && elem_is_float(elem_from_name(word)))
        return "what stays float has no quant line, and no ~ behind its type";
    if (t.kind == T_VALUE && r->prev_kind == T_LT && want[T_QMARK])
        return "parameters are numbers; a bias takes its scale from two quantizations: acc<!x, !w>";
    if (t.kind == T_GT && r->prev_kind == T_LT && want[T_QMARK])
        return "int8q<?> leaves the parameters open";
    if (t.kind == T_INT && r->prev_kind == T_INT && t.begin == r->prev_end)
        return "a range is written LOW:HIGH, as in range=0:127";
    if (t.kind == T_STAR && r->prev_kind == T_INT)
        return "powers of two are written 2^-7";
    return NULL;
}

/* What a rule of a scheme does without. */
static const char *rule_hint(Token t) {
    if (t.kind == T_EQ || t.kind == T_COLON)
        return "between the words of a rule stand blanks alone: op Gemm weights int4q";
    return t.kind == T_VALUE ? "a rule has names in double quotes, without %: value \"logits\""
                             : NULL;
}

/* A word of other languages for one. */
static bool is_for_const(Str word) {
    static const char *const words[] = {"weight", "weights",   "bias", "initializer",
                                        "param",  "parameter", "let",  "var"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_is(word, words[i]))
            return true;
    return false;
}

/* Where a line of a body should begin. */
static const char *body_hint(const Reader *r, Token t, bool defines) {
    const char *p = r->text.s + t.end;
    Str word = {r->text.s + t.begin, t.end - t.begin};
    bool of_file =
        t.kind == T_QUANT || t.kind == T_BLOB || t.kind == T_MODEL || str_is(word, "scheme");
    if (of_file && !leaves_body(r, t))
        return "this line stands in front of the graph, not within its braces";
    if (is_for_const(word) && p[0] == ' ' && p[1] == '%')
        return "numbers of the model are a constant: const %name : type = ...";
    if (t.kind == T_IDENT && p[0] == ' ' && p[1] == '!')
        return "scales and zero points stand in a section of the graph: data { scale !w = [...] }";
    if (str_is(word, "return"))
        return "the results of a graph stand in its first line: graph @main (%x) -> (%y)";
    return defines ? "names of values begin with %" : NULL;
}

static const char *file_hint(Token t) {
    return t.kind == T_VALUE || t.kind == T_CONST || t.kind == T_DATA || t.kind == T_STAT
               ? "constants, nodes and statistics stand within the braces of a graph"
           : t.kind == T_RC    ? "no brace is open here"
           : t.kind == T_ALIAS ? "a line that names a quantization begins with 'quant'"
                               : NULL;
}

/* Where operands stand. */
static const char *operand_hint(Token t, bool assigns) {
    if (assigns)
        return "attributes stand in <> behind the operands, as in Softmax(%x) <axis=1>";
    if (t.kind == T_INT || t.kind == T_FLOAT || t.kind == T_NUMBERS)
        return "operands are values; a line 'const %name : type = ...' makes one of a number";
    return t.kind == T_IDENT ? "names of values begin with %" : NULL;
}

/* Where an operator stands. */
static const char *operator_hint(Token t) {
    if (t.kind == T_VALUE)
        return "behind = stands an operator, as in Identity(%x)";
    if (t.kind == T_EQ)
        return "a value and its operator are joined by one '='";
    return t.kind == T_INT || t.kind == T_FLOAT || t.kind == T_NUMBERS
               ? "a number is a constant: const %name : type = ..."
               : NULL;
}

const char *syntax_hint(const Reader *r, Token t, const bool *want, int n_wanted) {
    const char *p = r->text.s + t.end;
    while (*p == ' ')
        p++;
    bool assigns = t.kind == T_IDENT && p[0] == '=';
    bool defines = assigns || (t.kind == T_IDENT && p[0] == ':' && p[1] != ':');
    bool opens = t.kind == T_LC || t.kind == T_LB || t.kind == T_NUMBERS;
    if (want[T_IMPORT] && want[T_QUANT] && !want[T_STAT])
        return file_hint(t);
    if (n_wanted == 1 && want[T_NUMBERS] && !want[T_FLOAT])
        return dims_hint(r, t);
    if (want[T_STAT])
        return body_hint(r, t, defines);
    if (want[T_HYPHENED])
        return rule_hint(t);
    const char *quant = quant_hint(r, t, want);
    if (quant)
        return quant;
    if (t.kind == T_COLON && lacks_equals(r, t, want))
        return "a name and its value are joined by '=', as in axis=1";
    if (t.kind == T_LT && r->prev_kind == T_STRING && want[T_META])
        return "attributes stand right behind the operands: Softmax(%x) <axis=1> name \"n\"";
    if ((assigns || (opens && r->prev_kind == T_RP)) && want[T_META])
        return "attributes stand in <>, as in Softmax(%x) <axis=1>";
    if (want[T_UNDER] && want[T_VALUE])
        return operand_hint(t, assigns);
    const char *point = point_hint(r, t);
    if (point)
        return point;
    if (want[T_FLOAT] && want[T_LB] && (t.kind == T_LC || t.kind == T_LP))
        return "lists stand in [], as in [1, 2]";
    if (n_wanted == 1 && want[T_LT] && r->prev_kind == T_QTYPE)
        return "a quantized type has its parameters in <>: int8q<0.1, 3>; without q it is plain";
    if (n_wanted == 1 && want[T_LP] && r->prev_kind == T_ARROW)
        return "results stand in (), as in -> (%y)";
    if (n_wanted == 1 && want[T_LP] && (t.kind == T_VALUE || t.kind == T_NL))
        return "operands stand in (), as in Add(%x, %y); without any, ()";
    if (n_wanted == 1 && want[T_STRING] && t.kind == T_IDENT)
        return arena_strf(r->arena, "a string stands in double quotes: \"%.*s\"",
                          (int)(t.end - t.begin), r->text.s + t.begin)
            .s;
    if (n_wanted == 2 && want[T_VALUE] && want[T_RP] && t.kind == T_IDENT)
        return arena_strf(r->arena, "names of values begin with %%: %%%.*s", (int)(t.end - t.begin),
                          r->text.s + t.begin)
            .s;
    if (n_wanted == 1 && want[T_STRING] && t.kind == T_EQ)
        return "a clause has no '=': name \"n\"";
    if (n_wanted == 1 && want[T_DCOLON])
        return "behind a leading '::' stand a name and an overload, as in ::Relu::fast; without an "
               "overload the name stands alone";
    return want[T_DCOLON] && want[T_STRING] && !want[T_COMMA] ? operator_hint(t) : NULL;
}
