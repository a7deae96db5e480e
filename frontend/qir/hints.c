/* What people write who know other languages, and what they meant. */
#include "frontend/qir/reader.h"
#include "parser.h"

#include <math.h>

typedef struct Foreign {
    const char *word, *meant;
} Foreign;

static const char *find_foreign(const Foreign *list, size_t n, Str word) {
    for (size_t i = 0; i < n; i++)
        if (str_same_letters(word, str_from(list[i].word)))
            return list[i].meant;
    return NULL;
}

/* Element types of C, NumPy, PyTorch, LLVM and MLIR. */
static const char *known_elem(Str word) {
    static const Foreign list[] = {
        {"f32", "float"},
        {"float32", "float"},
        {"float32_t", "float"},
        {"fp32", "float"},
        {"single", "float"},
        {"real", "float"},
        {"f64", "double"},
        {"float64", "double"},
        {"fp64", "double"},
        {"f16", "float16"},
        {"fp16", "float16"},
        {"half", "float16"},
        {"float16_t", "float16"},
        {"bf16", "bfloat16"},
        {"e4m3", "float8e4m3fn"},
        {"fp8", "float8e4m3fn"},
        {"f8e4m3fn", "float8e4m3fn"},
        {"e5m2", "float8e5m2"},
        {"f8e5m2", "float8e5m2"},
        {"fp4", "float4e2m1"},
        {"i2", "int2"},
        {"i4", "int4"},
        {"s4", "int4"},
        {"si4", "int4"},
        {"u2", "uint2"},
        {"u4", "uint4"},
        {"ui4", "uint4"},
        {"i8", "int8"},
        {"s8", "int8"},
        {"si8", "int8"},
        {"int8_t", "int8"},
        {"char", "int8"},
        {"u8", "uint8"},
        {"ui8", "uint8"},
        {"uint8_t", "uint8"},
        {"byte", "uint8"},
        {"i16", "int16"},
        {"s16", "int16"},
        {"int16_t", "int16"},
        {"short", "int16"},
        {"u16", "uint16"},
        {"ui16", "uint16"},
        {"uint16_t", "uint16"},
        {"i32", "int32"},
        {"s32", "int32"},
        {"int32_t", "int32"},
        {"int", "int32"},
        {"u32", "uint32"},
        {"ui32", "uint32"},
        {"uint32_t", "uint32"},
        {"uint", "uint32"},
        {"i64", "int64"},
        {"s64", "int64"},
        {"int64_t", "int64"},
        {"long", "int64"},
        {"u64", "uint64"},
        {"ui64", "uint64"},
        {"uint64_t", "uint64"},
        {"i1", "bool"},
        {"boolean", "bool"},
        {"bool_", "bool"},
        {"str", "string"},
        {"qint8", "int8q"},
        {"quint8", "uint8q"},
        {"qint32", "int32q"},
        {"q8", "int8q"},
        {"i8q", "int8q"},
        {"u8q", "uint8q"},
        {"i4q", "int4q"},
        {"i16q", "int16q"},
        {"i32q", "int32q"},
    };
    return find_foreign(list, sizeof list / sizeof *list, word);
}

static bool meant(Reader *r, Range at, const char *word) {
    if (word)
        diag_note(r->diags, loc_of(r, at), "did you mean '%s'?", word);
    return word != NULL;
}

bool note_width(Reader *r, Range at, Str word) {
    size_t n = word.n, skip = str_starts(word, "uint") ? 4 : str_starts(word, "int") ? 3 : 0;
    n -= n > skip && word.s[n - 1] == 'q';
    bool digits = skip && n > skip;
    for (size_t i = skip; digits && i < n; i++)
        digits = word.s[i] >= '0' && word.s[i] <= '9';
    if (!digits || elem_is_int(elem_from_name((Str){word.s, n})))
        return false;
    note_at(r, at,
            "integers have 1, 2, 4, 8, 16 or 32 bits; range=LOW:HIGH uses a part of them, as in "
            "int16q<0.1, 0, range=-2048:2047>");
    return true;
}

/* The storage of quantized types is a word of its own. */
void suggest_storage(Reader *r, Range at, Str word) {
    static const char *const words[] = {"int1q",  "int2q",  "int4q",   "int8q",
                                        "int16q", "int32q", "uint1q",  "uint2q",
                                        "uint4q", "uint8q", "uint16q", "uint32q"};
    const char *known = known_elem(word);
    size_t n = known ? strlen(known) : 0;
    if (n && known[n - 1] != 'q' && elem_is_int(elem_from_name(str_from(known))))
        known = arena_strf(r->arena, "%sq", known).s;
    if (!note_width(r, at, word) && !meant(r, at, known))
        suggest(r, at, word, words, sizeof words / sizeof *words);
}

void suggest_elem(Reader *r, Range at, Str word) {
    static const char *const names[] = {
#define ELEM(id, number, name, bits, kind) name,
#include "ir/elem.def"
#undef ELEM
    };
    if (str_is(word, "tensor") || str_is(word, "vector") || str_is(word, "memref"))
        note_at(r, at, "the type of a tensor is written float[2,4]: elements, dimensions");
    else if (map_get(r->aliases, word))
        meant(r, at, with_sigil(r, '!', word).s);
    else if (at.end < r->text.n && r->text.s[at.end] == '<')
        suggest_storage(r, at, word);
    else if (!meant(r, at, known_elem(word)))
        suggest(r, at, word, names, sizeof names / sizeof *names);
}

void suggest_parameter(Reader *r, Range at, Str word, const char *const *keys, size_t n) {
    static const Foreign list[] = {
        {"zero_point", "zp"},    {"zeropoint", "zp"},
        {"zero", "zp"},          {"z", "zp"},
        {"offset", "zp"},        {"bias", "zp"},
        {"s", "scale"},          {"step", "scale"},
        {"dim", "axis"},         {"channel", "axis"},
        {"ch_axis", "axis"},     {"axes", "axis"},
        {"group", "block"},      {"group_size", "block"},
        {"block_size", "block"}, {"limits", "range"},
        {"min", "range"},        {"max", "range"},
        {"quant_min", "range"},  {"quant_max", "range"},
        {"dtype", "expr"},       {"real", "expr"},
    };
    if (!meant(r, at, find_foreign(list, sizeof list / sizeof *list, word)))
        suggest(r, at, word, keys, n);
}

/* int8q<128, 0.0285>. What is proposed has to be taken: 128 is a zero point of uint8. */
void suggest_order(Reader *r, const Quant *q, Range zp) {
    static const ElemType unsigned_of[][2] = {{ELEM_INT2, ELEM_UINT2},
                                              {ELEM_INT4, ELEM_UINT4},
                                              {ELEM_INT8, ELEM_UINT8},
                                              {ELEM_INT16, ELEM_UINT16}};
    double n = q->n_scale == 1 ? (double)q->scale[0] : 0.5;
    ElemType storage = q->storage;
    if (n != trunc(n))
        return;
    for (size_t i = 0; i < sizeof unsigned_of / sizeof *unsigned_of; i++)
        if (storage == unsigned_of[i][0] && n > (double)elem_max(storage))
            storage = unsigned_of[i][1];
    const char *scale = arena_str(r->arena, (Str){r->text.s + zp.begin, zp.end - zp.begin}).s;
    if (n >= (double)elem_min(storage) && n <= (double)elem_max(storage))
        diag_note(r->diags, loc_of(r, zp), "the scale comes first: %sq<%s, %.0f>",
                  elem_name(storage), scale, n);
    else
        diag_note(r->diags, loc_of(r, zp), "the scale comes first: %sq<%s, ZERO POINT>",
                  elem_name(q->storage), scale);
}

/* int8q<0,0285, 0>, int8q<0,0285, -3>: the scale is 0 then, and digits follow its comma at once. */
void suggest_point(Reader *r, const Quant *q) {
    const char *p = r->text.s + q->at->scale.end;
    size_t digits = strspn(p + 1, "0123456789");
    if (q->at->scale.source && q->n_scale == 1 && q->scale[0] == 0 && *p == ',' && digits)
        diag_note(r->diags, q->at->scale, "numbers have a point, not a comma: 0.%.*s", (int)digits,
                  p + 1);
}
