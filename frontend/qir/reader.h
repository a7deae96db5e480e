/* The state of one reading, and what the parser's actions call. Private to frontend/qir.
 *
 * The IR is built while parsing. What a list rule collects stands on a stack of the reader until
 * the rule that owns the list takes it; a Span says where. Everything else is in the arena. */
#ifndef QXC_FRONTEND_QIR_READER_H
#define QXC_FRONTEND_QIR_READER_H

#include "frontend/qir/lexer.h"
#include "frontend/qir/number.h"
#include "frontend/qir/qir_read.h"
#include "ir/external.h"

enum { MAX_NESTING = 100 }; /* graphs in graphs, types in types, lists in lists */

typedef struct Range { /* bytes of the text */
    uint32_t begin, end;
} Range;

typedef struct Span { /* entries of one of the reader's stacks */
    uint32_t begin, n;
    Range at;
} Span;

/* ---- what rules yield ---- */

typedef enum ValKind {
    VAL_NUMBER, /* at its place in the text */
    VAL_RANGE,  /* -127:127 */
    VAL_STRING,
    VAL_SYM, /* @w */
    VAL_REF, /* $alpha, $alpha:float */
    VAL_WORD,
    VAL_UNKNOWN, /* ? */
    VAL_CALL,    /* blob(@w, "key"): word and arguments */
    VAL_NUMBERS, /* [1, 2]: a list of numbers only, at its place in the text */
    VAL_LIST,    /* any other list; [] and []:ints have no items */
    VAL_TENSOR,
    VAL_SPARSE,
    VAL_TYPE,
    VAL_GRAPH,
    VAL_QUANT, /* int8q<0.1, 3> or !name, in a rule of the scheme */
} ValKind;

typedef struct Val {
    ValKind kind : 8;
    bool mixed; /* a list of numbers that may not all be integers */
    uint32_t n; /* items of a list, arguments of a call */
    Range at;   /* all of it */
    Range word; /* a name, string or word of a call; the element kind of []:ints, $alpha:float */
    union {
        Range name; /* of a reference */
        const int64_t *range;
        struct Field *args; /* of a call */
        struct Val *items;
        Tensor *tensor;
        SparseTensor *sparse;
        Type *type;
        Graph *graph;
        const Quant *quant; /* NULL: reported */
    } u;
} Val;

typedef struct Clauses { /* NULL: none */
    Str name, doc, extra;
    Meta meta;
    Provenance from;
    bool inferred, stated;
    const Type *type; /* stated(TYPE); else NULL */
    Range name_at, doc_at, extra_at, meta_at, from_at, stated_at;
} Clauses;

typedef struct Field { /* key=value; also an argument, then mostly without key */
    Str key;
    Range at;
    bool has_key, has_val;
    Val val;
    Clauses *clauses;
} Field;

typedef struct Bind { /* %name : type */
    bool omitted;     /* _ */
    bool is_default;  /* = const, of a graph input */
    Range at;
    Str name;
    Type *type; /* NULL: none is stated */
    Clauses *clauses;
} Bind;

typedef struct OpName { /* op, domain::op, domain::op::overload, ::op::overload */
    int n;
    Range part[3];
    Range at;
} OpName;

typedef struct Shape {
    bool failed; /* reported */
    int rank;    /* -1: unranked */
    const Dim *dims;
} Shape;

typedef struct Elem {
    ElemType elem;
    const Quant *quant;
    Range at;
    bool failed; /* reported */
} Elem;

/* ---- scopes ---- */

struct Frame;

typedef struct Missing { /* a use of what is not defined (yet) */
    Str name;
    Range at;
    const struct Frame *frame; /* in which it is used */
    Value *stand_in;           /* for a constant that may still come; NULL where none may */
    Node *node;                /* that reads it, as this operand; NULL: no node does */
    size_t operand;
    bool own; /* of this graph: the graphs around it are not asked */
} Missing;

enum { NO_OPERAND = SIZE_MAX };

typedef struct Marks { /* heights of the stacks */
    uint32_t vals, fields, binds, ins, dims, origins;
} Marks;

typedef struct Frame {
    struct Frame *outer;
    Graph *graph;
    Function *func;
    Map *formals; /* names of its attributes; NULL where this is no function's body */
    Map *names;   /* to Value */
    Map *results; /* to Bind */
    Map *awaited; /* names of constants that may still come, to what stands for them */
    Map *due;     /* inputs whose default is still to come, to Value */
    size_t cap_imports;
    Bind *binds; /* the results, in order */
    size_t n_results;
    bool inferred; /* types of node outputs are not stated unless marked */
    bool broken;   /* its inputs could not be read: no complaints about names not defined */
    Missing *missing;
    size_t n_missing, cap_missing;
    size_t flaws; /* of the text, when the statement began (take_flaws) */
    Marks marks;
    int nesting;
} Frame;

typedef struct BlobFile BlobFile;

typedef struct Misfits Misfits;

typedef struct Misfit { /* a value whose quantization does not fit its shape */
    const Value *value;
    Misfits *why;
} Misfit;

typedef struct Reader {
    Arena *arena;
    Diags *diags;
    Diags *syntax; /* for errors of syntax; the same, unless only those matter */
    Module *module;
    QirReadOptions options;
    Folders in;
    uint32_t source;
    Str text;
    Lexer lexer;
    Frame *frame;
    Map *aliases; /* name to Quant */
    Map *fitting; /* names of aliases that fit a value along an axis */
    Map *misfits; /* to Misfits */
    Misfit *unfit;
    size_t n_unfit, cap_unfit;
    Diags *aside;    /* for messages that are told later, or NULL */
    Map *shapes;     /* text to Shape */
    bool dim_failed; /* one of the shape that is being read */
    Map *blobs;      /* "@w" to BlobFile */
    struct DueParams
        *due_params; /* of quantizations whose numbers stand in `data`, the last first */
    const struct DueParams **dues; /* room to turn them round */
    size_t n_dues, cap_dues;
    Map *due_by_name;
    struct Product *products, **last_product; /* that follow such numbers */
    struct ProductSum *sums, **last_sum;      /* that are checked at the end */
    ExternalFiles externals;
    Map *broken;            /* names in lines with syntax errors: no complaints about those */
    uint16_t nameless[128]; /* by sigil: such lines whose name is missing */
    uint32_t starts[MAX_BRACKETS + 1]; /* where the statement at each bracket depth began */
    uint32_t statement;                /* where the one that failed began, and its depth */
    int statement_depth;
    const char *furthest; /* where parsing went on after the last one */
    bool body_left;       /* recovery ended a body whose brace is missing */
    bool failed_here;     /* the parser refused the token it was just given */
    bool unsound;         /* after errors in imports or heads nobody looks at the operators */
    size_t silent_flaws;  /* uses of what is not there, said elsewhere */
    Range lost;           /* data without a tensor: only where there are errors */
    Range model_at, meta_at, extra_at; /* of these lines; 0 before they come */
    bool only_scheme;                  /* the line 'qir 1' may be left out */
    bool told_bare;                    /* that its rules stand without braces, once for all */
    bool second_scheme;                /* being read: an error, and its rules count for nothing */
    uint32_t reported_end;             /* of what the last error was about */
    uint32_t prev_end;                 /* of the token before */
    int prev_kind;
    Buf scratch;            /* for messages */
    Clauses *spare_clauses; /* no longer used; most of them live for one line only */
    Type *spare_type;
    Val *vals;
    size_t n_vals, cap_vals;
    Field *fields;
    size_t n_fields, cap_fields;
    Bind *binds;
    size_t n_binds, cap_binds;
    Value **ins;
    size_t n_ins, cap_ins;
    Dim *dims;
    size_t n_dims, cap_dims;
    Origin *origins;
    size_t n_origins, cap_origins;
} Reader;

Loc loc_of(const Reader *r, Range at);
Range range_of(Token t);
/* The name or string that stands there, unescaped. */
Str str_at(const Reader *r, Range at);
Str str_of(const Reader *r, Token t);
/* The value of an INT; false, and 0, where it does not fit. */
bool int_of(const Reader *r, Token t, int64_t *out);
Range range_join(Range a, Range b);
bool error_at(Reader *r, Range at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A note that points at the place another message is about. */
void note_at(Reader *r, Range at, const char *what);
void suggest(Reader *r, Range at, Str word, const char *const *candidates, size_t n);
void suggest_key(Reader *r, Range at, Str word, const Map *names);
const char *shown(Reader *r, Str name); /* a name for a message */
/* "@w": a key, whatever bytes the name has. */
Str with_sigil(const Reader *r, char sigil, Str name);

/* NULL after a diagnostic. `text` is borrowed, and with a NUL behind it. */
Reader *reader_new(Arena *a, Diags *d, const char *name, Str text, const QirReadOptions *options);
/* Makes it ready to read `text`, with a new module: only stacks, source and options stay. */
void reader_reset(Reader *r, Str text);
/* Reads all of r->text (parse.c). `parser` is memory of qir_parser_size(), for use again and again.
 */
void parse_with(Reader *r, void *parser);

/* Only the syntax: what the text means, and the files it names, are no matter. */
bool qir_check_syntax(Arena *a, Diags *d, const char *name, Str text, int first_line);

/* ---- errors of syntax (expected.c, recover.c) ---- */

/* `want` marks the terminals that could have come. */
void syntax_error(Reader *r, Token t, bool *want, int n);
/* What may have been meant by a word that is none of the language's (hints.c). */
void suggest_elem(Reader *r, Range at, Str word);
void suggest_order(Reader *r, const Quant *q, Range zp);
void suggest_point(Reader *r, const Quant *q);
void suggest_storage(Reader *r, Range at, Str word);
/* Says which widths there are; false where the word is no integer of another width. */
bool note_width(Reader *r, Range at, Str word);
void suggest_parameter(Reader *r, Range at, Str word, const char *const *keys, size_t n);
/* The same of a token that does not fit; NULL where nothing is known. */
const char *syntax_hint(const Reader *r, Token t, const bool *want, int n_wanted);
bool lacks_equals(const Reader *r, Token t, const bool *want);
/* Finds where to go on; true when the parser is still owed the end of the statement. */
bool recover(Reader *r, Token t);
/* A line of the file within a body: the body's brace is missing. */
bool leaves_body(const Reader *r, Token t);
void forget_statement(Reader *r);
/* The same after an error in the line of a graph or function; true when a body follows. */
bool recover_header(Reader *r, Token t);
/* Whether the name's definition may be what had a syntax error. */
bool is_broken(Reader *r, char sigil, Str name);

/* ---- values of attributes and lists (read_val.c) ---- */

void span_join(Span *s, Span next); /* which lies on the stack directly behind it */
Span span_of_val(Reader *r, const Val *v);
void span_add_val(Reader *r, Span *s, const Val *v);
Span span_of_field(Reader *r, const Field *f);
void span_add_field(Reader *r, Span *s, const Field *f);
Field *take_fields(Reader *r, Span s); /* valid until the next one is added */
Val val_token(Token t, ValKind kind);
Val val_ref(Token t, Token kind);
Val val_range(Reader *r, Token lo, Token hi);
Val val_call(Reader *r, Token word, const Span *fields);
Val val_list(Reader *r, Range at, const Span *vals, const Token *kind);
Val val_type(Type *t, Range at);
Val val_quant(Elem e);
Val val_domain(Token domain, Token op); /* the word domain::op */
Val val_graph(Graph *g);
Val val_tensor(Reader *r, Type *t, Val data, Clauses *c, Range at);

bool val_is_call(const Reader *r, const Val *v, const char *word);
bool val_int(Reader *r, const Val *v, const char *what, int64_t *out);
bool val_str(Reader *r, const Val *v, const char *what, Str *out);
/* `n` numbers of a number or a list, as the bits of `e` or as floats; false after an error. */
bool val_floats(Reader *r, const Val *v, const char *what, const float **out, size_t *n);
bool val_ints(Reader *r, const Val *v, const char *what, const int64_t **out, size_t *n);
bool val_number(Reader *r, const Val *v, Number *out);

typedef struct NumberList { /* a walk through VAL_NUMBERS */
    const char *at;
    size_t n; /* numbers seen */
    bool failed;
} NumberList;
NumberList numbers_of(const Reader *r, const Val *v);
/* False at the end of the list, or after an error (failed). */
bool next_number(Reader *r, NumberList *list, Number *out);
Range number_at(const Reader *r, const Number *n);

/* ---- clauses (read_clause.c) ---- */

Clauses *clauses_name(Reader *r, Clauses *c, Token t);
Clauses *clauses_doc(Reader *r, Clauses *c, Token t);
Clauses *clauses_meta(Reader *r, Clauses *c, Span fields);
/* What stands in from(...): an operator and a name, or one of them. */
Span span_of_origin(Reader *r, OpName op, const Token *name);
Clauses *clauses_from(Reader *r, Clauses *c, Span origins, const Token *by, const Token *in);
Clauses *clauses_extra(Reader *r, Clauses *c, Val v);
Clauses *clauses_stated(Reader *r, Clauses *c, Token t, bool stated);
Clauses *clauses_states(Reader *r, Clauses *c, Token t, Type *type);
/* Reports those that have no place here; `allowed` of "ndxmfs" (name doc extra meta from stated).
 */
void clauses_check(Reader *r, const Clauses *c, const char *allowed, const char *what);
bool read_metadata(Reader *r, Span fields, Meta *out);
bool read_hex(Reader *r, const Val *v, Str *out);
/* The same for `extra`: protobuf fields. */
bool read_extra(Reader *r, const Val *v, Str *out);

/* ---- types (read_type.c, read_quant.c) ---- */

Span span_of_dim(Reader *r, const Dim *d);
void span_add_dim(Reader *r, Span *s, const Dim *d);
Dim dim_int(Reader *r, Token t);
Dim dim_name(Reader *r, Token t);
Dim dim_negative(Reader *r, Token t);
/* Shapes of the same text share their dims. */
Shape shape_numbers(Reader *r, Token t);
Shape shape_list(Reader *r, Span dims, Range at);
Shape shape_scalar(void);
Shape shape_unranked(void);
Elem elem_word(Reader *r, Range at);
Elem elem_alias(Reader *r, Token t);
/* `~ ?`: to be quantized, nothing known yet. */
Elem elem_open(Reader *r, Range at);
Type *type_tensor_of(Reader *r, Elem e, Shape s);
Type *type_of(Reader *r, TypeKind kind, Type *sub, Range at);
Type *type_map(Reader *r, Token key, Type *value);
Type *type_unknown(Reader *r);
Type *type_failed(Reader *r); /* after an error */
Type *type_denote(Reader *r, Type *t, Token denotation);
Type *type_with_tilde(Reader *r, Type *t, Elem q);
Elem read_quant(Reader *r, Token storage, Span args, Range at);
/* False after the message about a block of so many elements. */
bool check_block_size(Reader *r, Range at, int64_t size);
/* With a checksum its scales are its own, and have to be the product; `of` is the scale that the
 * first had when that was written. NULL: none. */
Elem read_acc(Reader *r, Token first, Token second, const Val *sum, const Val *of, Range at);
void define_alias(Reader *r, Token name, Elem q);

/* What rounds to 0 is no scale, though it is no 0: false after an error at the number in `v`. */
bool check_scales(Reader *r, const Val *v, const float *scale);
bool round_scales(Reader *r, const Quant *q, float *scale); /* to their type */
void multiply(Quant *q, const Quant *x, const Quant *w);    /* the scales of acc<x, w> */

/* Numbers of quantizations that stand in `data` (read_params.c): data(N) in place of a list. */
bool await_scales(Reader *r, Quant *q, const Val *v);
bool await_zps(Reader *r, Quant *q, const Val *v);
bool are_awaited(Reader *r, const Quant *q); /* the scales of what is being read */
void name_params(Reader *r, Quant *q);       /* when its line ends */
void follow_params(Reader *r, Quant *q, const Quant *x, const Quant *w);
/* At the end, after an error where the checksum of the scales is another. */
void check_product(Reader *r, const Quant *q, uint32_t sum, Range at);
void read_params(Reader *r, Token word, Token name, const Val *v);
/* At the end of the text. Checksums are looked at where nothing else is wrong. */
void finish_params(Reader *r, int errors_before);

/* Whether the quantization of a value fits its shape (fit.c). What is wrong with those that have a
 * name is told at the end, by report_unfit. */
void check_fit(Reader *r, Value *v);
void report_unfit(Reader *r);

/* ---- the file (read_module.c) ---- */

void read_import(Reader *r, const Token *domain, Token version, const Clauses *c);
void read_model(Reader *r, Span fields);
void read_module_meta(Reader *r, Span fields);
void read_module_extra(Reader *r, Val v);
void read_blob(Reader *r, Token name, Token path, const Span *fields);
void read_top_graph(Reader *r, Graph *g);

/* ---- the scheme (read_scheme.c, read_setting.c) ---- */

void open_scheme(Reader *r, Token word);
void read_rule(Reader *r, Span words);
void close_scheme(Reader *r, Token open, Token close);

/* ---- graphs and nodes (read_graph.c, read_names.c, read_node.c) ---- */

Span span_of_bind(Reader *r, const Bind *b);
void span_add_bind(Reader *r, Span *s, const Bind *b);
/* Not known where none is stated. The binding is not asked again. */
Type bind_type(Reader *r, const Bind *b);
Bind bind_of(Reader *r, Token name, Type *t, Clauses *c);
Graph *open_graph(Reader *r, Str name, Span params, Span results, Clauses *c, Range at);
/* What a graph is called that the text gives no name: ONNX asks for one. */
Str usual_name(const Reader *r);
Graph *close_graph(Reader *r);
void open_broken(Reader *r, Range at); /* a body whose inputs and results could not be read */
void open_function(Reader *r, OpName name, const Span *formals, Span params, Span results,
                   Clauses *c);
void close_function(Reader *r);
Value *find_value(Reader *r, Str name, Range at); /* NULL after noting it as missing */
Value *find_value_quietly(const Reader *r, Str name);
/* The same where a constant may stand behind its use: a value without a graph, until its line
 * comes. `operand` of the node that is being read, or NO_OPERAND. */
Value *find_or_await(Reader *r, Str name, Range at, size_t operand);
/* The same for a line about a value, which stands in the value's own graph. */
Value *find_described(Reader *r, Str name, Range at);
/* The operands awaited behind `op` are this node's. */
void own_operands(Reader *r, Node *n, Range op);
/* What stands for the constant in this body; NULL where nobody waits for it. */
Value *awaited_value(const Frame *f, Str name);
void report_missing(Reader *r, Frame *f);
size_t flaws_so_far(const Reader *r);
/* Enters a new value under its name, with documentation and the like from where it stands. */
void define_value(Reader *r, Value *v, const Bind *b);
/* Whether the statement that ends here has errors, or uses what was not read for an error
 * elsewhere. */
bool take_flaws(Reader *r);
void finish_frames(Reader *r);

OpName op_name(Token t);
OpName no_domain(Token t);
OpName op_name_add(OpName n, Token t);
Span span_of_in(Reader *r, const Token *t);
void span_add_in(Reader *r, Span *s, const Token *t);
void op_name_parts(const Reader *r, OpName n, Str *domain, Str *op, Str *overload);
void read_node(Reader *r, Span outs, OpName op, const Span *ins, const Span *attrs, Clauses *c);
void read_const(Reader *r, const Bind *b, const Val *v, Clauses *c);
void read_stat(Reader *r, Token name, Span fields);
/* The same of a statistic that stands in front of its constant. */
void check_stat_of(Reader *r, const Value *v);
void read_from(Reader *r, Range word, Token name, Clauses *c);
/* Metadata in a line of its own: of a node by its result, of a constant or an input; of the graph.
 */
void read_meta_line(Reader *r, Range word, Token name, Span fields);
void read_graph_meta(Reader *r, Range word, Span fields);
void read_spelling(Reader *r, Token name, OpName op, const Span *attrs, Clauses *c);
void read_initializers(Reader *r, Span names, Range at);
bool read_attribute(Reader *r, const Field *f, Attr *out);
/* Reports keys that come again; `what` they are the names of. */
void check_unique(Reader *r, const Field *f, size_t n, const char *what);
size_t read_attrs(Reader *r, Span fields, Attr **out);
/* The same where graphs are an error: outside of nodes and functions nobody would visit them. */
size_t read_plain_attrs(Reader *r, Span fields, const char *what, Attr **out);

/* ---- data of constants (read_data.c, read_blob.c) ---- */

/* NULL after an error. */
Tensor *read_literal(Reader *r, const Type *t, const Val *v);
SparseTensor *read_sparse_literal(Reader *r, const Type *t, const Val *v);
bool blob_tensor(Reader *r, const Type *t, const Val *v, Tensor *x);
/* blob(...) where nothing else tells the type: the file does. Where it is not there, a
 * warning, and a reference alone: a tensor of no type. NULL after an error. */
Tensor *blob_of_any_type(Reader *r, const Val *v);
bool external_tensor(Reader *r, const Val *v, Tensor *x);
bool read_checksum(Reader *r, const Val *v, Tensor *x);

/* ---- the generated parser ---- */

size_t qir_parser_size(void);
/* After an error: was it in the line that begins a graph or function? */
bool qir_parser_in_header(const void *parser);
void QirParseInit(void *parser);
void QirParse(void *parser, int kind, Token t, Reader *r);

#endif
