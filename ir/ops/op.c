/* The registry: every row of ops.def, found by binary search over the rows sorted by name. */
#include "ir/ops/op.h"

#define OP(id) extern const OpDef op_##id;
#include "ir/ops/ops.def"
#undef OP

static const OpDef *const table[] = {
#define OP(id) &op_##id,
#include "ir/ops/ops.def"
#undef OP
};

enum { COUNT = sizeof table / sizeof *table };

size_t op_count(void) {
    return COUNT;
}

const OpDef *op_at(size_t i) {
    return i < COUNT ? table[i] : NULL;
}

const OpDef *op_find(Str domain, Str op) {
    size_t lo = 0, hi = COUNT;
    while (lo < hi) { /* the first row whose name is not before `op` */
        size_t mid = (lo + hi) / 2;
        if (str_cmp(str_from(table[mid]->name), op) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < COUNT && str_is(op, table[lo]->name); lo++)
        if (domain_equal(str_from(table[lo]->domain), domain))
            return table[lo];
    return NULL;
}

const AttrSpec *op_attr(const OpDef *op, Str name) {
    for (const AttrSpec *a = op->attrs; a && a->name; a++)
        if (str_is(name, a->name))
            return a;
    return NULL;
}

static bool fits(Value *const *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (values[i] && values[i]->type.rank > MAX_RANK)
            return false;
    return true;
}

bool graph_never_runs(const Graph *g) {
    for (; g->owner; g = g->owner->graph)
        if (g->owner->def && g->owner->def->skips && g->owner->def->skips(g->owner, g))
            return true;
    return false;
}

bool node_reads_faulty(const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] &&
            (n->in[i]->misread || (n->in[i]->kind == VALUE_NODE && n->in[i]->def->faulty)))
            return true;
    return false;
}

bool node_rank_fits(const Node *n) {
    return fits(n->in, n->n_in) && fits(n->out, n->n_out);
}

Conversion node_conversion(const Node *n) {
    if (!n->def && !node_rank_fits(n))
        return CONVERT_NONE;
    bool microsoft = str_is(n->domain, "com.microsoft"); /* the same operators with more types */
    const OpDef *op = n->def ? n->def : op_find(microsoft ? STR("") : n->domain, n->op);
    return op ? op->conversion : CONVERT_NONE;
}

ElemType node_cast(const Node *n) {
    return node_is(n, "Cast") ? (ElemType)node_int(n, "to", ELEM_UNDEFINED) : ELEM_UNDEFINED;
}

bool value_is_counted(const Value *v) {
    const Node *n = v && v->kind == VALUE_NODE ? v->def : NULL;
    if (!n || !n->def || !n->def->counts)
        return false;
    if (!n->def->enter || n->faulty) /* all others leave theirs open */
        return true;
    OpCtx c = op_ctx(n, n->graph->module->mute);
    return !n->def->infer(&c) || !type_is_static(c.out[v->index]);
}

const Value *node_shape_operand(const Node *n) {
    for (size_t i = 0; n->def && !has_bodies(n) && i < n->n_in && i < 32; i++)
        if (n->def->fixed >> i & 1 && n->in[i] && !value_data(n->in[i]))
            return n->in[i];
    return NULL;
}

bool node_is_constant(const Node *n) {
    return n->def && n->def->constant;
}

static bool is_onnx(const Node *n, Conversion which) {
    return n->n_in >= 2 && n->in[0] && n->in[1] && n->n_out == 1 && n->out[0] &&
           node_conversion(n) == which;
}

bool is_onnx_quantize(const Node *n) {
    return is_onnx(n, CONVERT_QUANTIZE);
}

bool is_onnx_dequantize(const Node *n) {
    return is_onnx(n, CONVERT_DEQUANTIZE);
}

const Node *onnx_dequantize_of(const Value *v) {
    const Node *n = v && v->def && is_onnx_dequantize(v->def) ? v->def : NULL;
    return n && !elem_is_float(n->in[0]->type.elem) ? n : NULL;
}

/* About ten rows have a QOperator form: asked only for names that are no row themselves. */
const OpDef *qop_find(Str domain, Str op) {
    for (size_t i = 0; i < COUNT; i++)
        if (table[i]->qop.op && str_is(op, table[i]->qop.op) &&
            domain_equal(str_from(table[i]->qop.domain), domain))
            return table[i];
    return NULL;
}

bool node_in_function(const Node *n) {
    return graph_function(n->graph) != NULL;
}

/* Domains that models use without importing them, and who reads such models. Version 0 stands for
 * the newest one that there is a schema of. */
typedef struct KnownDomain {
    const char *name;
    int version;
    const char *reader;
    bool rounds; /* QONNX's operators that round are here */
} KnownDomain;

static const KnownDomain *well_known(Str domain) {
    static const KnownDomain known[] = {
        {"com.microsoft", 0, "onnxruntime", false},
        {"ai.onnx.ml", 0, "onnxruntime", false},
        {"qonnx.custom_op.general", 1, "qonnx", true},
        {"finn.custom_op.general", 1, "qonnx", true},
        {"onnx.brevitas", 1, "qonnx", true},
        {"qonnx.custom_op.channels_last", 1, "qonnx", false},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (str_is(domain, known[i].name))
            return &known[i];
    return NULL;
}

bool node_is_qonnx(const Node *n) {
    static const char *const ops[] = {"Quant", "IntQuant", "BipolarQuant", "Trunc",
                                      "MultiThreshold"};
    const KnownDomain *known = well_known(n->domain);
    for (size_t i = 0; known && known->rounds && i < sizeof ops / sizeof *ops; i++)
        if (str_is(n->op, ops[i]))
            return true;
    return false;
}

/* The version that a node's operator is of, or -1 where nothing imports its domain. A function
 * without imports has the model's. */
static int64_t imported_version(const Node *n) {
    const Function *f = graph_function(n->graph);
    const Module *m = n->graph->module;
    bool own = f && f->n_imports;
    const Import *import = import_find(m, own ? f : NULL, n->domain);
    if (import)
        return import->version;
    const KnownDomain *known = well_known(n->domain);
    int64_t implied = own                       ? 0
                      : known && known->version ? known->version
                      : known                   ? onnx_schema_newest(n->domain)
                      : m->n_imports            ? 0
                                                : module_opset(m, n->domain);
    return implied ? implied : -1;
}

const char *node_import_implied(const Node *n) {
    const Function *f = graph_function(n->graph);
    const KnownDomain *known = well_known(n->domain);
    bool implied = known && node_imported(n) && !import_find(n->graph->module, NULL, n->domain) &&
                   !(f && f->n_imports);
    return implied ? known->reader : NULL;
}

bool node_imported(const Node *n) {
    return imported_version(n) >= 0;
}

int64_t node_opset(const Node *n) {
    int64_t version = imported_version(n);
    return version < 0 ? 0 : version;
}

const OnnxSchema *node_schema(const Node *n) {
    int64_t opset = node_opset(n);
    const OnnxSchema *s =
        onnx_schema_find(n->domain, n->op, opset > INT_MAX ? INT_MAX : (int)opset);
    const OpDef *op = s ? NULL : op_find(n->domain, n->op);
    int since = op && op->composite ? ONNX_MAX_OPSET : op ? op->since_in_onnx : 0;
    return since ? onnx_schema_find(n->domain, n->op, since) : s;
}

OpCtx op_ctx_few(const Node *n, Type few[OP_FEW], Diags *d) {
    Arena *a = n->graph->module->arena;
    OpCtx c = {.node = n,
               .attrs = n->typed,
               .opset = node_opset(n),
               .n_in = n->n_in,
               .in = n->in,
               .n_out = n->n_out,
               .out = few && n->n_out <= OP_FEW ? few : NEW_ARRAY(a, Type, n->n_out ? n->n_out : 1),
               .arena = a,
               .d = d ? d : n->graph->module->mute};
    for (size_t i = 0; i < n->n_out; i++)
        c.out[i] = TYPE_UNKNOWN;
    return c;
}

OpCtx op_ctx(const Node *n, Diags *d) {
    return op_ctx_few(n, NULL, d);
}
