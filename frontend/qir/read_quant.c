/* int8q<0.1, 3, axis=0>, acc<%x, %w>, and the lines that name them. */
#include "frontend/qir/reader.h"
#include "ir/minifloat.h"
#include "ir/verify_quant.h"
#include "parser.h"

#include <math.h>

static ElemType storage_elem(Str word) { /* int8q */
    word.n--;
    return elem_from_name(word);
}

static bool read_zp(Reader *r, Quant *q, const Val *v) {
    Number n;
    if (val_is_call(r, v, "data"))
        return await_zps(r, q, v);
    if (v->kind == VAL_UNKNOWN)
        return error_at(r, v->at, "a zero point is left open with its scale: %sq<?>",
                        elem_name(q->storage));
    if (val_number(r, v, &n) && n.kind != NUM_INT) {
        error_at(r, v->at, "a zero point is an integer");
        suggest_order(r, q, v->at);
        return false;
    }
    return val_ints(r, v, "a zero point", &q->zp, &q->n_zp);
}

static bool read_axis(Reader *r, Quant *q, const Val *v) {
    const int64_t *axes;
    size_t n;
    if (!val_ints(r, v, "an axis", &axes, &n))
        return false;
    if (n > MAX_RANK)
        return error_at(r, v->at, "at most %d axes", MAX_RANK);
    for (size_t i = 0; i < n; i++) {
        if (axes[i] < 0 || axes[i] > INT32_MAX) {
            error_at(r, v->at, "an axis is a number from 0 to 2147483647");
            suggest_point(r, q);
            return false;
        }
        q->axis[i] = (int)axes[i];
    }
    q->n_axes = (int)n;
    return true;
}

bool check_block_size(Reader *r, Range at, int64_t size) {
    if (verify_block_size(size, loc_of(r, at), r->diags))
        return true;
    r->reported_end = at.end;
    return false;
}

static bool read_block(Reader *r, const Val *v, const int64_t **blocks, size_t *n) {
    if (!val_ints(r, v, "a block size", blocks, n))
        return false;
    for (size_t i = 0; i < *n; i++)
        if (!check_block_size(r, v->at, (*blocks)[i]))
            return false;
    return true;
}

static bool read_elem_arg(Reader *r, const Val *v, ElemType *out) {
    if (v->kind != VAL_WORD)
        return error_at(r, v->at, "expected an element type");
    Elem e = elem_word(r, v->at);
    if (e.failed)
        return false;
    if (!elem_is_float(e.elem))
        return error_at(r, v->at, "expected a floating-point type, not %s", elem_name(e.elem));
    *out = e.elem;
    return true;
}

static bool check_scale(Reader *r, const Number *n, float scale) {
    return scale != 0 || !n->magnitude ||
           error_at(r, number_at(r, n),
                    "this is too small for a scale: the least is 1.17549435e-38, the smallest "
                    "normal float");
}

bool check_scales(Reader *r, const Val *v, const float *scale) {
    Number n;
    if (val_number(r, v, &n))
        return check_scale(r, &n, *scale);
    NumberList list = numbers_of(r, v);
    while (v->kind == VAL_NUMBERS && next_number(r, &list, &n))
        if (!check_scale(r, &n, *scale++))
            return false;
    return true;
}

static bool read_scales(Reader *r, Quant *q, const Val *v) {
    return val_floats(r, v, "a scale", &q->scale, &q->n_scale) && check_scales(r, v, q->scale);
}

typedef struct Blocks {
    const int64_t *size;
    size_t n;
    Range at;
} Blocks;

static bool read_scale(Reader *r, Quant *q, const Val *v) {
    if (v->kind == VAL_UNKNOWN)
        q->kind = QUANT_UNKNOWN;
    else if (v->kind == VAL_WORD && str_is(str_at(r, v->word), "dynamic"))
        q->kind = QUANT_DYNAMIC;
    else if (val_is_call(r, v, "data"))
        return await_scales(r, q, v);
    else if (v->kind == VAL_WORD)
        return error_at(r, v->at, "a scale is a number, a list of numbers, ? or dynamic");
    else
        return read_scales(r, q, v);
    return true;
}

/* Where the part is noted; NULL for a part whose place nobody asks for. */
static Loc *place_of(QuantLocs *at, Str key) {
    const struct {
        const char *key;
        Loc *at;
    } places[] = {{"scale", &at->scale},          {"zp", &at->zp},       {"axis", &at->axis},
                  {"block", &at->block},          {"range", &at->range}, {"expr", &at->expr},
                  {"scale_type", &at->scale_type}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (str_is(key, places[i].key))
            return places[i].at;
    return NULL;
}

static bool note_place(Reader *r, QuantLocs *all, Str key, const Field *f) {
    Loc *at = place_of(all, key);
    if (at && at->source)
        return error_at(r, f->at, "%s is stated twice", shown(r, key));
    if (at)
        *at = loc_of(r, f->val.at);
    return true;
}

/* One argument; `position` counts those without key: scale, zero point, axis. */
static bool read_arg(Reader *r, Quant *q, QuantLocs *at, const Field *f, int position,
                     Blocks *blocks) {
    static const char *const keys[] = {"scale", "zp",   "axis",      "block",
                                       "range", "expr", "scale_type"};
    Str key = f->key;
    if (!f->has_key)
        key = position < 3 ? str_from(keys[position]) : STR("");
    const Val *v = &f->val;
    if (!note_place(r, at, key, f))
        return false;
    if (str_is(key, "scale"))
        return read_scale(r, q, v);
    if (str_is(key, "zp"))
        return read_zp(r, q, v);
    if (str_is(key, "axis"))
        return read_axis(r, q, v);
    if (str_is(key, "block")) {
        blocks->at = v->at;
        return read_block(r, v, &blocks->size, &blocks->n);
    }
    if (str_is(key, "expr"))
        return read_elem_arg(r, v, &q->expressed);
    if (str_is(key, "scale_type"))
        return read_elem_arg(r, v, &q->scale_type);
    if (str_is(key, "range")) {
        if (!quant_is_integers(q))
            return error_at(r, f->at, "a range is one of integers; %s has its own numbers",
                            elem_name(q->storage));
        if (v->kind != VAL_RANGE)
            return error_at(r, v->at, "a range is written LOW:HIGH, as in range=-127:127");
        q->has_range = true;
        q->lo = v->u.range[0];
        q->hi = v->u.range[1];
        return true;
    }
    if (!f->has_key)
        return error_at(r, f->at, "too many parameters; those after the axis have names");
    error_at(r, f->at,
             "unknown parameter '%s'; there are scale, zp, axis, block, range, expr and scale_type",
             shown(r, f->key));
    suggest_parameter(r, f->at, f->key, keys, sizeof keys / sizeof *keys);
    return false;
}

static bool apply_blocks(Reader *r, Quant *q, Blocks b) {
    for (int i = 0; i < q->n_axes; i++)
        q->block[i] = 1;
    if (b.n == 0)
        return true;
    if ((int)b.n != q->n_axes)
        return error_at(r, b.at, "%zu block sizes for %d axes", b.n, q->n_axes);
    for (int i = 0; i < q->n_axes; i++)
        q->block[i] = b.size[i];
    return true;
}

/* The text may say 0.1 where the stored type has only neighbours of it. */
bool round_scales(Reader *r, const Quant *q, float *scale) {
    if (q->scale_type == ELEM_FLOAT || q->scale_type == ELEM_DOUBLE)
        return true;
    for (size_t i = 0; i < q->n_scale; i++) {
        float exact = scale[i];
        uint64_t bits = 0;
        float_encode(q->scale_type, (double)exact, &bits);
        scale[i] = (float)float_decode(q->scale_type, bits);
        if (isfinite(exact) && exact != 0 && (scale[i] == 0 || !isfinite(scale[i])))
            return diag_error(r->diags, q->at->scale, "%g is out of the range of %s", (double)exact,
                              elem_name(q->scale_type));
    }
    return true;
}

static bool round_own_scales(Reader *r, Quant *q) {
    float *scale = arena_copy(r->arena, q->scale, q->n_scale * sizeof *scale);
    bool ok = round_scales(r, q, scale);
    q->scale = scale;
    return ok;
}

Elem read_quant(Reader *r, Token storage, Span args, Range at) {
    QuantLocs *places = NEW(r->arena, QuantLocs);
    Quant *q = NEW(r->arena, Quant);
    *q = (Quant){
        .at = places, .expressed = ELEM_FLOAT, .scale_type = ELEM_FLOAT, .loc = loc_of(r, at)};
    quant_store(q, storage_elem(str_of(r, storage)));
    if (quant_is_integers(q))
        q->wide_zp = r->module->wide_zp;
    Elem e = {.elem = q->storage, .quant = q, .at = at};
    Field *f = take_fields(r, args);
    Blocks blocks = {0};
    int position = 0;
    bool ok = true;
    for (uint32_t i = 0; i < args.n; i++) {
        ok &= read_arg(r, q, places, &f[i], position, &blocks);
        position += !f[i].has_key;
    }
    ok = ok && apply_blocks(r, q, blocks) && (are_awaited(r, q) || round_own_scales(r, q));
    if (ok && !(ok = verify_quant(q, q->loc, r->diags)))
        suggest_point(r, q);
    e.failed = !ok;
    return e;
}

Elem elem_open(Reader *r, Range at) {
    Quant *q = quant_open(r->arena, ELEM_UNDEFINED);
    q->loc = loc_of(r, at);
    return (Elem){.quant = q, .at = at};
}

/* ---- accumulators ---- */

static const Quant *acc_operand(Reader *r, Token t, Quant *q, int i) {
    if (t.kind == T_ALIAS) {
        Elem e = elem_alias(r, t);
        q->acc_quant[i] = e.quant;
        return e.quant;
    }
    Str name = str_of(r, t);
    Value *v = r->frame ? find_value(r, name, range_of(t)) : NULL; /* no frame: reported */
    if (!v)
        return NULL;
    if (v->misread) { /* its quantization does not fit it, say */
        r->silent_flaws++;
        return NULL;
    }
    if (!v->type.quant) {
        if (!v->type.failed)
            error_at(r, range_of(t), "%%%s is not quantized: its type is %s", shown(r, name),
                     type_text(r->arena, v->type));
        return NULL;
    }
    q->acc_value[i] = v;
    return v->type.quant;
}

void multiply(Quant *q, const Quant *x, const Quant *w) {
    float *scale = (float *)q->scale; /* made for this one */
    for (size_t i = 0; i < q->n_scale; i++)
        scale[i] = quant_scale(x, i) * quant_scale(w, i);
}

/* The first operand of a bias as it was when the bias was written, where it is left open now. */
static const Quant *as_written(Reader *r, const Quant *x, const Val *of) {
    size_t n = 0;
    const float *scale;
    if (!of)
        return x;
    if (!val_floats(r, of, "a scale", &scale, &n) || !check_scales(r, of, scale))
        return NULL;
    if (n != 1) {
        error_at(r, of->at, "the scale of one operand is one number");
        return NULL;
    }
    return x->kind == QUANT_UNKNOWN ? quant_per_tensor(r->arena, ELEM_INT8, *scale, 0) : x;
}

/* The scales are float32 products, as ONNX and the integer operators define a bias's scale. */
Elem read_acc(Reader *r, Token first, Token second, const Val *sum, const Val *of, Range at) {
    Tensor said = {0};
    Quant *q = NEW(r->arena, Quant);
    *q = (Quant){
        .kind = QUANT_ACC, .expressed = ELEM_FLOAT, .scale_type = ELEM_FLOAT, .loc = loc_of(r, at)};
    quant_store(q, ELEM_INT32);
    Elem e = {.elem = ELEM_INT32, .quant = q, .at = at, .failed = true};
    if (!r->frame && (first.kind != T_ALIAS || second.kind != T_ALIAS))
        error_at(r, range_of(first.kind != T_ALIAS ? first : second),
                 "acc<...> can refer to values (%%name) within the braces of a graph; here only to "
                 "quant lines (!name)");
    const Quant *x = acc_operand(r, first, q, 0), *w = acc_operand(r, second, q, 1);
    x = x ? as_written(r, x, of) : NULL;
    if (!x || !w)
        return e;
    if (!quant_is_integers(x) || !quant_is_integers(w)) {
        error_at(r, at, "acc<...> is of products of integers, not of %s",
                 elem_name((quant_is_integers(x) ? w : x)->storage));
        return e;
    }
    if (x->n_scale == 0 || w->n_scale == 0) {
        error_at(r, at, "acc<...> needs operands whose scales are known");
        return e;
    }
    if (x->n_axes && w->n_axes) {
        error_at(r, at, "one operand of acc<...> is quantized per tensor");
        return e;
    }
    if (x->n_axes > 1 || w->n_axes > 1 || (x->n_axes && x->block[0] > 1) ||
        (w->n_axes && w->block[0] > 1)) {
        error_at(r, at, "blocks have no single accumulator scale");
        return e;
    }
    q->n_scale = x->n_scale > w->n_scale ? x->n_scale : w->n_scale;
    q->scale = NEW_ARRAY(r->arena, float, q->n_scale);
    multiply(q, x, w);
    follow_params(r, q, x, w);
    q->n_axes = x->n_axes || w->n_axes; /* along axis 0, the only one a bias has */
    q->block[0] = 1;
    if (sum && !read_checksum(r, sum, &said))
        return e;
    if (sum) {
        q->kind = QUANT_PARAMS;
        q->acc_value[0] = q->acc_value[1] = NULL;
        q->acc_quant[0] = q->acc_quant[1] = NULL;
        check_product(r, q, said.crc32, at);
    }
    e.failed = false;
    return e;
}

void define_alias(Reader *r, Token t, Elem e) {
    Str name = str_of(r, t);
    if (e.failed) {
        map_set(r->broken, with_sigil(r, '!', name), r);
        return;
    }
    const Quant *old = map_get(r->aliases, name);
    if (old) {
        error_at(r, range_of(t), "!%s is defined twice", shown(r, name));
        diag_note(r->diags, old->loc, "the first definition");
        return;
    }
    Quant *q = (Quant *)e.quant; /* made for this line alone */
    q->alias = name;
    map_set(r->aliases, name, q);
    name_params(r, q);
    module_add_quant(r->module, q);
}
