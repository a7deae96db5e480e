/* The grammar of .qir. Every action is one call; what it means stands in the read_*.c files. */
%name QirParse
%token_prefix T_
%token_type {Token}
%extra_argument {Reader *r}
%token BAD. // what the lexer already reported
%stack_size 4000

%include {
/* Without the generated parser's own checks and traces, which take a quarter of its time; only
 * tools/grammar_trace.c wants them. */
#ifndef QIR_TRACE
#define NDEBUG
#endif
#include <assert.h>
#include "frontend/qir/reader.h"
#include "parser.h"

static Range over(Token a, Token b) {
    return (Range){a.begin, b.end};
}

struct yyParser;
static void expected(const struct yyParser *p, bool *want);

#define RECOVERED (yypParser->yyerrcnt = -1)
}

%syntax_error {
    bool want[YYNTOKEN];
    expected(yypParser, want);
    syntax_error(r, TOKEN, want, YYNTOKEN);
    (void)yymajor;
}
%stack_overflow {
    error_at(r, (Range){r->prev_end, r->prev_end}, "nested too deeply");
    r->lexer.too_deep = true;
}

%fallback IDENT QIR IMPORT MODEL META BLOB QUANT GRAPH FUNC CONST DATA STAT ONNX FROM BY IN NAME DOC EXTRA
    INFERRED STATED ACC SEQ OPTIONAL SPARSE MAP TENSOR TYPE UNDER.

%type vals {Span}
%type words {Span}
%type word {Val}
%type fields {Span}
%type attrs {Span}
%type qargs {Span}
%type params {Span}
%type plist {Span}
%type results {Span}
%type rlist {Span}
%type outs {Span}
%type outlist {Span}
%type ins {Span}
%type dims {Shape}
%type dlist {Span}
%type val {Val}
%type field {Field}
%type qarg {Field}
%type arg {Field}
%type args {Span}
%type dim {Dim}
%type dimension {Dim}
%type type {Type *}
%type tensor {Type *}
%type elem {Elem}
%type qelem {Elem}
%type bind {Bind}
%type param {Bind}
%type out {Bind}
%type opname {OpName}
%type clauses {Clauses *}
%type origins {Span}
%type origin {Span}
%type graph {Graph *}
%type ghead {Graph *}

/* ---- the file ---- */

file ::= QIR INT NL items.
items ::= .
items ::= items item.
item ::= import NL.
item ::= MODEL attrs(A) NL.                     { read_model(r, A); }
item ::= META attrs(A) NL.                      { read_module_meta(r, A); }
item ::= EXTRA val(V) NL.                       { read_module_extra(r, V); }
item ::= sopen(A) rules RC(B) NL.                { close_scheme(r, A, B); }
item ::= BLOB SYM(N) STRING(P) NL.              { read_blob(r, N, P, NULL); }
item ::= BLOB SYM(N) STRING(P) attrs(A) NL.     { read_blob(r, N, P, &A); }
item ::= QUANT ALIAS(N) EQ qelem(Q) NL.         { define_alias(r, N, Q); }
item ::= graph(G) NL.                           { read_top_graph(r, G); }
item ::= fhead stmts RC NL.                     { close_function(r); }
item ::= broken stmts RC NL.                    { close_graph(r); }
item ::= error NL.                              { forget_statement(r); RECOVERED; }

import ::= IMPORT STRING(D) INT(V) clauses(C).  { read_import(r, &D, V, C); }
import ::= IMPORT INT(V) clauses(C).            { read_import(r, NULL, V, C); }

/* ---- graphs ---- */

graph(G) ::= ghead stmts RC.                    { G = close_graph(r); }
ghead(G) ::= GRAPH(T) params(P) ARROW results(R) clauses(C) LC.
                                                { G = open_graph(r, usual_name(r), P, R, C, range_of(T)); }
ghead(G) ::= GRAPH SYM(N) params(P) ARROW results(R) clauses(C) LC.
                                                { G = open_graph(r, str_of(r, N), P, R, C, range_of(N)); }
ghead(G) ::= GRAPH UNDER(N) params(P) ARROW results(R) clauses(C) LC.
                                                { G = open_graph(r, STR_NONE, P, R, C, range_of(N)); }
/* A line that should have begun a graph or function: what follows is read as its body. */
broken ::= GRAPH(T) error LC.                   { open_broken(r, range_of(T)); RECOVERED; }
broken ::= FUNC(T) error LC.                    { open_broken(r, range_of(T)); RECOVERED; }
fhead ::= FUNC opname(N) params(P) ARROW results(R) clauses(C) LC.
                                                { open_function(r, N, NULL, P, R, C); }
fhead ::= FUNC opname(N) attrs(A) params(P) ARROW results(R) clauses(C) LC.
                                                { open_function(r, N, &A, P, R, C); }

params(P) ::= LP(A) RP(B).                      { P = (Span){.at = over(A, B)}; }
params(P) ::= LP plist(L) RP.           { P = L; }
plist(L) ::= param(B).                          { L = span_of_bind(r, &B); }
plist(L) ::= plist(L) COMMA param(B).           { span_add_bind(r, &L, &B); }
param(P) ::= bind(B).                           { P = B; }
param(P) ::= bind(B) EQ CONST.                  { P = B; P.is_default = true; }
results(P) ::= LP(A) RP(B).                     { P = (Span){.at = over(A, B)}; }
results(P) ::= LP rlist(L) RP.                  { P = L; }
rlist(L) ::= bind(B).                           { L = span_of_bind(r, &B); }
rlist(L) ::= rlist(L) COMMA bind(B).            { span_add_bind(r, &L, &B); }

bind(B) ::= VALUE(N) clauses(C).                { B = bind_of(r, N, NULL, C); }
bind(B) ::= VALUE(N) COLON type(T) clauses(C).  { B = bind_of(r, N, T, C); }
bind(B) ::= VALUE(N) COLON type(T) TILDE elem(Q) clauses(C).
                        { B = bind_of(r, N, type_with_tilde(r, T, Q), C); }
bind(B) ::= VALUE(N) COLON type(T) TILDE QMARK(Q) clauses(C).
                        { B = bind_of(r, N, type_with_tilde(r, T, elem_open(r, range_of(Q))), C); }
out(O) ::= bind(B).                             { O = B; }
out(O) ::= UNDER(T).                            { O = (Bind){.omitted = true, .at = range_of(T)}; }

stmts ::= .
stmts ::= stmts stmt.
stmt ::= NL.
stmt ::= CONST bind(B) EQ val(V) clauses(C) NL. { read_const(r, &B, &V, C); }
stmt ::= DATA LC numbers RC NL.
stmt ::= outs(O) EQ opname(N) LP RP clauses(C) NL.
                        { read_node(r, O, N, NULL, NULL, C); }
stmt ::= outs(O) EQ opname(N) LP RP attrs(A) clauses(C) NL.
                        { read_node(r, O, N, NULL, &A, C); }
stmt ::= outs(O) EQ opname(N) LP ins(I) RP clauses(C) NL.
                        { read_node(r, O, N, &I, NULL, C); }
stmt ::= outs(O) EQ opname(N) LP ins(I) RP attrs(A) clauses(C) NL.
                        { read_node(r, O, N, &I, &A, C); }
stmt ::= STAT VALUE(N) attrs(A) NL.             { read_stat(r, N, A); }
stmt ::= ONNX VALUE(N) EQ opname(O) clauses(C) NL.
                        { read_spelling(r, N, O, NULL, C); }
stmt ::= ONNX VALUE(N) EQ opname(O) attrs(A) clauses(C) NL.
                        { read_spelling(r, N, O, &A, C); }
stmt ::= ONNX CONST(T) LP vals(L) RP NL.        { read_initializers(r, L, range_of(T)); }
stmt ::= FROM(T) VALUE(N) LP origins(L) RP by(B) in(G) NL.
                        { read_from(r, range_of(T), N, clauses_from(r, NULL, L, &B, &G)); }
stmt ::= META(T) VALUE(N) attrs(A) NL.          { read_meta_line(r, range_of(T), N, A); }
stmt ::= META(T) attrs(A) NL.                   { read_graph_meta(r, range_of(T), A); }
stmt ::= import NL.
stmt ::= error NL.                              { forget_statement(r); RECOVERED; }

numbers ::= .
numbers ::= numbers number.
number ::= NL.
number ::= CONST bind(B) EQ val(V) clauses(C) NL. { read_const(r, &B, &V, C); }
number ::= IDENT(W) ALIAS(N) EQ val(V) NL.      { read_params(r, W, N, &V); }
number ::= error NL.                            { forget_statement(r); RECOVERED; }

outs(O) ::= outlist(L).                         { O = L; }
outs(O) ::= LP(A) RP(B).                        { O = (Span){.at = over(A, B)}; }
outlist(L) ::= out(B).                          { L = span_of_bind(r, &B); }
outlist(L) ::= outlist(L) COMMA out(B).         { span_add_bind(r, &L, &B); }
ins(I) ::= VALUE(T).                            { I = span_of_in(r, &T); }
ins(I) ::= UNDER.                               { I = span_of_in(r, NULL); }
ins(I) ::= ins(I) COMMA VALUE(T).               { span_add_in(r, &I, &T); }
ins(I) ::= ins(I) COMMA UNDER.                  { span_add_in(r, &I, NULL); }

opname(N) ::= nm(T).                            { N = op_name(T); }
opname(N) ::= nm(A) DCOLON nm(B).               { N = op_name_add(op_name(A), B); }
opname(N) ::= nm(A) DCOLON nm(B) DCOLON nm(C).
                        { N = op_name_add(op_name_add(op_name(A), B), C); }
opname(N) ::= DCOLON(A) nm(B) DCOLON nm(C).
                        { N = op_name_add(op_name_add(no_domain(A), B), C); }
nm(N) ::= IDENT(T).                             { N = T; }
nm(N) ::= STRING(T).                            { N = T; }

/* ---- types ---- */

type(T) ::= tensor(A).                          { T = A; }
type(T) ::= SEQ(A) LT type(S) GT(B).            { T = type_of(r, TYPE_SEQ, S, over(A, B)); }
type(T) ::= OPTIONAL(A) LT type(S) GT(B).       { T = type_of(r, TYPE_OPTIONAL, S, over(A, B)); }
type(T) ::= SPARSE(A) LT type(S) GT(B).         { T = type_of(r, TYPE_SPARSE, S, over(A, B)); }
type(T) ::= MAP LT IDENT(K) COMMA type(V) GT.   { T = type_map(r, K, V); }
type(T) ::= QMARK.                              { T = type_unknown(r); }
type(T) ::= type(S) STRING(D).                  { T = type_denote(r, S, D); }
tensor(T) ::= elem(E) dims(D).                  { T = type_tensor_of(r, E, D); }
elem(E) ::= IDENT(T).                           { E = elem_word(r, range_of(T)); }
elem(E) ::= ALIAS(T).                           { E = elem_alias(r, T); }
elem(E) ::= qelem(Q).                           { E = Q; }
qelem(E) ::= QTYPE(S) LT qargs(A) GT(T).        { E = read_quant(r, S, A, over(S, T)); }
qelem(E) ::= ACC(S) LT aref(A) COMMA aref(B) GT(T). {
    E = read_acc(r, A, B, NULL, NULL, over(S, T)); }
qelem(E) ::= ACC(S) LT aref(A) COMMA aref(B) COMMA val(V) COMMA val(X) GT(T). {
    E = read_acc(r, A, B, &V, &X, over(S, T)); }
aref(A) ::= ALIAS(T).                           { A = T; }
aref(A) ::= VALUE(T).                           { A = T; }
qargs(L) ::= qarg(F).                           { L = span_of_field(r, &F); }
qargs(L) ::= qargs(L) COMMA qarg(F).            { span_add_field(r, &L, &F); }
qarg(F) ::= val(V).         { F = (Field){.at = V.at, .has_val = true, .val = V}; }
qarg(F) ::= QMARK(T).       { F = (Field){.at = range_of(T), .has_val = true,
                                          .val = val_token(T, VAL_UNKNOWN)}; }
qarg(F) ::= IDENT(K) EQ val(V). { F = (Field){.key = str_of(r, K), .at = range_of(K), .has_key = true,
                                              .has_val = true, .val = V}; }

dims(D) ::= LB RB.                              { D = shape_scalar(); }
dims(D) ::= LB STAR RB.                         { D = shape_unranked(); }
dims(D) ::= NUMBERS(T).                         { D = shape_numbers(r, T); }
dims(D) ::= LB(A) dlist(L) RB(B).               { D = shape_list(r, L, over(A, B)); }
dlist(L) ::= dimension(D).                      { L = span_of_dim(r, &D); }
dlist(L) ::= dlist(L) COMMA dimension(D).       { span_add_dim(r, &L, &D); }
dimension(D) ::= dim(S).                        { D = S; }
dimension(D) ::= dim(S) STRING(T).              { D = S; D.denotation = str_of(r, T); }
dim(D) ::= INT(T).                              { D = dim_int(r, T); }
dim(D) ::= IDENT(T).                            { D = dim_name(r, T); }
dim(D) ::= QTYPE(T).                            { D = dim_name(r, T); }
dim(D) ::= STRING(T).                           { D = dim_name(r, T); }
dim(D) ::= QMARK.                               { D = (Dim){.value = -1}; }
dim(D) ::= QMARK INT(T).                        { D = dim_negative(r, T); }

/* ---- values of attributes ---- */

val(V) ::= INT(T).                              { V = val_token(T, VAL_NUMBER); }
val(V) ::= FLOAT(T).                            { V = val_token(T, VAL_NUMBER); }
val(V) ::= STRING(T).                           { V = val_token(T, VAL_STRING); }
val(V) ::= SYM(T).                              { V = val_token(T, VAL_SYM); }
val(V) ::= IDENT(T).                            { V = val_token(T, VAL_WORD); }
val(V) ::= QTYPE(T).                            { V = val_token(T, VAL_WORD); }
val(V) ::= REF(T).                              { V = val_token(T, VAL_REF); }
val(V) ::= REF(T) COLON IDENT(K).               { V = val_ref(T, K); }
val(V) ::= INT(A) COLON INT(B).                 { V = val_range(r, A, B); }
val(V) ::= IDENT(W) LP RP.                      { V = val_call(r, W, NULL); }
val(V) ::= IDENT(W) LP args(L) RP.              { V = val_call(r, W, &L); }
val(V) ::= TENSOR(A) LP type(T) COMMA val(D) clauses(C) RP(B).
                        { V = val_tensor(r, T, D, C, over(A, B)); }
val(V) ::= TYPE(A) LP type(T) RP(B).            { V = val_type(T, over(A, B)); }
val(V) ::= graph(G).                            { V = val_graph(G); }
val(V) ::= NUMBERS(T).                          { V = val_token(T, VAL_NUMBERS); }
val(V) ::= LB(A) RB(B).                         { V = val_list(r, over(A, B), NULL, NULL); }
val(V) ::= LB(A) RB COLON IDENT(K).             { V = val_list(r, over(A, K), NULL, &K); }
val(V) ::= LB(A) vals(L) RB(B).                 { V = val_list(r, over(A, B), &L, NULL); }
vals(L) ::= val(V).                             { L = span_of_val(r, &V); }
vals(L) ::= vals(L) COMMA val(V).               { span_add_val(r, &L, &V); }
args(L) ::= arg(F).                             { L = span_of_field(r, &F); }
args(L) ::= args(L) COMMA arg(F).               { span_add_field(r, &L, &F); }
arg(F) ::= val(V) clauses(C).
            { F = (Field){.at = V.at, .has_val = true, .val = V, .clauses = C}; }
arg(F) ::= nm(K) EQ val(V) clauses(C).
            { F = (Field){.key = str_of(r, K), .at = range_of(K), .has_key = true, .has_val = true,
                          .val = V, .clauses = C}; }

attrs(A) ::= LT(B) fields(L) GT(E).             { A = L; A.at = over(B, E); }
fields(L) ::= field(F).                         { L = span_of_field(r, &F); }
fields(L) ::= fields(L) COMMA field(F).         { span_add_field(r, &L, &F); }
field(F) ::= nm(K) clauses(C).
            { F = (Field){.key = str_of(r, K), .at = range_of(K), .has_key = true, .clauses = C}; }
field(F) ::= nm(K) EQ val(V) clauses(C).
            { F = (Field){.key = str_of(r, K), .at = range_of(K), .has_key = true, .has_val = true,
                          .val = V, .clauses = C}; }

clauses(C) ::= .                                { C = NULL; }
clauses(C) ::= clauses(C) NAME STRING(T).       { C = clauses_name(r, C, T); }
clauses(C) ::= clauses(C) DOC STRING(T).        { C = clauses_doc(r, C, T); }
clauses(C) ::= clauses(C) META attrs(A).        { C = clauses_meta(r, C, A); }
clauses(C) ::= clauses(C) EXTRA val(V).         { C = clauses_extra(r, C, V); }
clauses(C) ::= clauses(C) INFERRED(T).          { C = clauses_stated(r, C, T, false); }
clauses(C) ::= clauses(C) STATED(T).            { C = clauses_stated(r, C, T, true); }
clauses(C) ::= clauses(C) STATED(T) LP type(S) RP. { C = clauses_states(r, C, T, S); }
clauses(C) ::= clauses(C) FROM LP origins(L) RP by(B) in(G).
                                                { C = clauses_from(r, C, L, &B, &G); }
origins(L) ::= origin(O).                       { L = O; }
origins(L) ::= origins(L) COMMA origin(O).      { span_join(&L, O); }
origin(O) ::= opname(N).                        { O = span_of_origin(r, N, NULL); }
origin(O) ::= opname(N) STRING(T).              { O = span_of_origin(r, N, &T); }
by(T) ::= .                                     { T = (Token){0}; }
by(T) ::= BY STRING(S).                         { T = S; }
in(T) ::= .                                     { T = (Token){0}; }
in(T) ::= IN STRING(S).                         { T = S; }

/* ---- the scheme: what the words of a rule mean is told where they are read ---- */

sopen(A) ::= SCHEME(S) LC(T).                   { A = T; open_scheme(r, S); }
rules ::= .
rules ::= rules rule.
rule ::= NL.
rule ::= words(L) NL.                           { read_rule(r, L); }
rule ::= error NL.                              { forget_statement(r); RECOVERED; }
words(L) ::= word(V).                           { L = span_of_val(r, &V); }
words(L) ::= words(L) word(V).                  { span_add_val(r, &L, &V); }
word(V) ::= IDENT(T).                           { V = val_token(T, VAL_WORD); }
word(V) ::= HYPHENED(T).                        { V = val_token(T, VAL_WORD); }
word(V) ::= QTYPE(T).                           { V = val_token(T, VAL_WORD); }
word(V) ::= STRING(T).                          { V = val_token(T, VAL_STRING); }
word(V) ::= IDENT(W) LP args(L) RP(E).          { V = val_call(r, W, &L); V.at.end = E.end; }
word(V) ::= IDENT(A) DCOLON IDENT(B).           { V = val_domain(A, B); }
word(V) ::= qelem(Q).                           { V = val_quant(Q); }
word(V) ::= ALIAS(T).                           { V = val_quant(elem_alias(r, T)); }

/* ---- what could have come ---- */

%code {
size_t qir_parser_size(void) {
    return sizeof(yyParser);
}

/* The stack ends in GRAPH error, or GRAPH error LC where the brace was what did not fit. */
bool qir_parser_in_header(const void *parser) {
    const yyParser *p = parser;
    const yyStackEntry *top = p->yytos - (p->yytos->major == T_LC);
    return top - p->yystack >= 2 && top->major == YYERRORSYMBOL &&
           (top[-1].major == T_GRAPH || top[-1].major == T_FUNC);
}

/* The action for a terminal without its fallback: a keyword that would be taken for a name is not
 * worth listing. */
static YYACTIONTYPE own_action(YYACTIONTYPE state, int token) {
    int i = yy_shift_ofst[state] + token;
    return yy_lookahead[i] == token ? yy_action[i] : yy_default[state];
}

/* Would the parser shift this terminal, after whatever reductions it calls for? They are played on
 * a copy of the stack's states. */
static bool acceptable(const yyParser *p, int token, YYACTIONTYPE *states) {
    int top = (int)(p->yytos - p->yystack);
    for (int i = 0; i <= top; i++)
        states[i] = p->yystack[i].stateno;
    YYACTIONTYPE state = states[top];
    for (;;) {
        YYACTIONTYPE action = state > YY_MAX_SHIFT ? state : own_action(state, token);
        if (action <= YY_MAX_SHIFTREDUCE || action == YY_ACCEPT_ACTION)
            return true;
        if (action < YY_MIN_REDUCE || action == YY_ERROR_ACTION)
            return false;
        int rule = action - YY_MIN_REDUCE;
        top += yyRuleInfoNRhs[rule] + 1;
        if (top >= YYSTACKDEPTH)
            return false;
        state = yy_find_reduce_action(states[top - 1], yyRuleInfoLhs[rule]);
        states[top] = state;
    }
}

static void expected(const yyParser *p, bool *want) {
    YYACTIONTYPE states[YYSTACKDEPTH + 1];
    want[0] = false;
    for (int token = 1; token < YYNTOKEN; token++)
        want[token] = acceptable(p, token, states);
}
}
