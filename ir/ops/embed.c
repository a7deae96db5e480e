/* com.microsoft EmbedLayerNormalization: word, position and segment rows are looked up, added and
 * normalized. With QEmbedLayerNormalization all tables are 8-bit integers. */
#include "ir/ops/bind.h"

enum { IDS, SEGMENT_IDS, WORD, POSITION, SEGMENT, GAMMA, BETA, MASK, POSITION_IDS };
enum { RESULT, MASK_INDEX, SUM };

typedef struct EmbedAttrs {
    float epsilon;
    int64_t mask_index_type;
} EmbedAttrs;

static const AttrSpec attrs[] = {
    A_FLOAT(EmbedAttrs, epsilon, 1e-12f),
    A_INT(EmbedAttrs, mask_index_type, 0),
    A_END,
};

static bool check_table(const OpCtx *c, size_t i, int rank, int64_t width) {
    static const char *const names[] = {[WORD] = "word_embedding",
                                        [POSITION] = "position_embedding",
                                        [SEGMENT] = "segment_embedding",
                                        [GAMMA] = "gamma",
                                        [BETA] = "beta"};
    Type t = op_type(c, i);
    if (t.rank >= 0 && t.rank != rank)
        return op_error_in(c, i, "%s must have rank %d, not %d", names[i], rank, t.rank);
    if (t.rank == rank && width >= 0 && t.dims[rank - 1].value >= 0 &&
        t.dims[rank - 1].value != width)
        return op_error_in(c, i, "%s has rows of %lld, word_embedding of %lld", names[i],
                           (long long)t.dims[rank - 1].value, (long long)width);
    return true;
}

/* Indices that are given for each step, or for each step of one row (position_ids). */
static bool check_indices(const OpCtx *c, size_t i, bool one_row) {
    Type ids = op_type(c, IDS), t = op_type(c, i);
    if (t.rank < 0 || ids.rank != 2)
        return true;
    bool fits = t.rank == 2;
    for (int k = 0; k < 2 && fits; k++)
        fits = t.dims[k].value < 0 || ids.dims[k].value < 0 ||
               t.dims[k].value == ids.dims[k].value || (k == 0 && one_row && t.dims[0].value == 1);
    return fits || op_error_in(c, i, "operand %zu is %s, input_ids %s", i, type_text(c->arena, t),
                               type_text(c->arena, ids));
}

static bool verify(const OpCtx *c) {
    Type ids = op_type(c, IDS), word = op_type(c, WORD);
    int64_t width = word.rank == 2 ? word.dims[1].value : -1;
    if (ids.rank >= 0 && ids.rank != 2)
        return op_error_in(c, IDS, "input_ids must have rank 2, not %d", ids.rank);
    if ((op_in(c, SEGMENT_IDS) == NULL) != (op_in(c, SEGMENT) == NULL))
        return op_error_in(c, op_in(c, SEGMENT) ? SEGMENT : SEGMENT_IDS,
                           "segment_ids and segment_embedding go together");
    return check_table(c, WORD, 2, width) && check_table(c, POSITION, 2, width) &&
           check_table(c, SEGMENT, 2, width) && check_table(c, GAMMA, 1, width) &&
           check_table(c, BETA, 1, width) && check_indices(c, SEGMENT_IDS, false) &&
           check_indices(c, MASK, false) && check_indices(c, POSITION_IDS, true);
}

static bool infer(OpCtx *c) {
    Type ids = op_type(c, IDS), word = op_type(c, WORD);
    if (ids.rank != 2)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, 3);
    memcpy(dims, ids.dims, 2 * sizeof *dims);
    dims[2] = word.rank == 2 ? word.dims[1] : dim_unknown();
    for (size_t i = 0; i < c->n_out; i++)
        c->out[i] = i == MASK_INDEX ? type_tensor(ELEM_INT32, 1, ids.dims)
                                    : type_tensor(type_real_elem(word), 3, dims);
    return true;
}

/* ---- binding ---- */

/* All tables float, or all of one 8-bit type with parameters for the whole of each. */
static bool tables_fit(Binder *b, const Node *n, const OpCtx *c) {
    const Quant *q = op_quant(n->in[WORD]);
    ElemType e = bind_elem(n->in[WORD]);
    for (size_t i = WORD; i <= BETA; i++) {
        const Value *v = op_in(c, i);
        bool plain = v && (op_quant(v) ? quant_plain(op_quant(v)) && elem_bits(v->type.elem) == 8
                                       : v->type.elem == ELEM_FLOAT);
        if (v && (!plain || (i <= SEGMENT && (bind_elem(v) != e || !op_quant(v) != !q))))
            return bind_unsupported(b, n,
                                    "its tables are neither all float nor all of one 8-bit type "
                                    "with parameters per tensor");
    }
    return true;
}

static bool bind_sum(Binder *b, const Node *n, const OpCtx *c, int to) {
    Type ids = n->in[IDS]->type;
    const Value *positions = op_in(c, POSITION_IDS), *segment = op_in(c, SEGMENT);
    ElemType e = bind_elem(n->in[WORD]);
    qk_embed_params p = {.rows = bind_extent(ids, 0, 2),
                         .steps = (int32_t)ids.dims[1].value,
                         .width = (int32_t)n->in[WORD]->type.dims[1].value,
                         .words = (int32_t)n->in[WORD]->type.dims[0].value,
                         .places = (int32_t)n->in[POSITION]->type.dims[0].value,
                         .kinds = segment ? (int32_t)segment->type.dims[0].value : 0,
                         .shared = positions && positions->type.dims[0].value == 1};
    if (p.words < 1 || p.places < 1 || (segment && p.kinds < 1))
        return bind_unsupported(b, n, "a table has no rows");
    for (size_t i = WORD; i <= SEGMENT; i++) {
        const Quant *q = op_quant(op_in(c, i));
        if (!q)
            continue;
        p.scale[i - WORD] = quant_scale(q, 0);
        p.zp[i - WORD] = quant_zero(q);
    }
    int args[] = {bind_value(b, n->in[IDS]),
                  bind_value(b, op_in(c, SEGMENT_IDS)),
                  bind_value(b, positions),
                  bind_value(b, n->in[WORD]),
                  bind_value(b, n->in[POSITION]),
                  bind_value(b, segment),
                  to};
    if (!bind_call(b, n, bind_kernel(b, "embed", 1, &e), &p, sizeof p, 7, args))
        return false;
    bind_within(b, n->in[IDS], false, &p.words, 1);
    bind_within(b, op_in(c, SEGMENT_IDS), false, &p.kinds, 1);
    bind_within(b, positions, false, &p.places, 1);
    return true;
}

static bool bind_mask_index(Binder *b, const Node *n, const OpCtx *c) {
    Type ids = n->in[IDS]->type;
    int to = bind_value(b, n->out[MASK_INDEX]);
    ElemType e = ELEM_INT32;
    qk_count_ones_params p = {(int32_t)ids.dims[0].value, (int32_t)ids.dims[1].value};
    if (op_in(c, MASK))
        return bind_call(b, n, "qk_count_ones", &p, sizeof p, 2,
                         (int[]){bind_value(b, op_in(c, MASK)), to});
    qk_fill_params zero = {.n = p.rows};
    return bind_call(b, n, bind_kernel(b, "fill", 1, &e), &zero, sizeof zero, 1, &to);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const EmbedAttrs *a = c->attrs;
    Type y = n->out[RESULT]->type;
    bool sum_out = n->n_out > SUM && n->out[SUM];
    if (!tables_fit(b, n, c))
        return false;
    if (n->n_out > MASK_INDEX && n->out[MASK_INDEX] && !bind_mask_index(b, n, c))
        return false;
    int sum = sum_out ? bind_value(b, n->out[SUM])
                      : bind_temp(b, ELEM_FLOAT, (size_t)bind_count(n->out[RESULT]));
    int gamma = bind_dequantized(b, n, n->in[GAMMA]), beta = bind_dequantized(b, n, n->in[BETA]);
    return gamma >= 0 && beta >= 0 && bind_sum(b, n, c, sum) &&
           bind_layer_rows(b, n, bind_extent(y, 0, 2), (int32_t)y.dims[2].value, a->epsilon, sum,
                           gamma, beta, bind_value(b, n->out[RESULT]));
}

static bool has_form(const OpCtx *c, const char **why) {
    const EmbedAttrs *a = c->attrs;
    *why = "QEmbedLayerNormalization has no position_ids, mask_index_type and sum of embeddings";
    return !op_in(c, POSITION_IDS) && !a->mask_index_type &&
           (c->node->n_out <= SUM || !c->node->out[SUM]);
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    (void)c;
    (void)result;
    bool rows = i == IDS || i == SEGMENT_IDS || i == MASK || i == POSITION_IDS;
    return rows && axis == 0 ? 0 : -1;
}

const OpDef op_EmbedLayerNormalization = {
    .domain = "com.microsoft",
    .name = "EmbedLayerNormalization",
    .attrs_size = sizeof(EmbedAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .slices = slices,
    .dynamic = {.op = "QEmbedLayerNormalization",
                .operands = "0 1 2 3 4 5 6 7 2s 3s 4s 5s 6s 2z 3z 4z 5z 6z",
                .weights = 1u << WORD | 1u << POSITION | 1u << SEGMENT | 1u << GAMMA | 1u << BETA,
                .data = -1,
                .axis = -1,
                .results = 2,
                .applies = has_form},
    .bind = bind,
};
