#include "compiler/emit_scales.h"
#include "compiler/emit_scheme.h"

#include "support/utf8.h"

#include <jansson.h>
#include <stdlib.h>

typedef struct Scales {
    const Job *j;
    Diags *d;
    json_t *overrides, *activations, *params;
    bool aimet;
    bool told;   /* that the lowest integer of few bits is lost on the way */
    size_t seen; /* values with a quantization, also those that the format has no words for */
} Scales;

/* AIMET counts from 0 on: x = scale * (q + offset). */
static json_t *encoding(Str name, const Quant *q) {
    bool sym = elem_is_signed(q->storage) && quant_zp_all_zero(q);
    json_t *o = json_object(), *scale = json_array(), *offset = json_array();
    for (size_t i = 0; i < q->n_scale; i++) {
        json_array_append_new(scale, json_real((double)quant_scale(q, i)));
        json_array_append_new(offset, json_integer(elem_min(q->storage) - quant_zp(q, i)));
    }
    json_object_set_new(o, "bw", json_integer(elem_bits(q->storage)));
    json_object_set_new(o, "dtype", json_string("INT"));
    json_object_set_new(o, "enc_type", json_string(q->n_axes ? "PER_CHANNEL" : "PER_TENSOR"));
    json_object_set_new(o, "is_sym", json_boolean(sym));
    json_object_set_new(o, "name", json_stringn(name.s, name.n));
    json_object_set_new(o, "offset", offset);
    json_object_set_new(o, "scale", scale);
    return o;
}

static const char *type_name(ElemType e) {
    switch (e) {
    case ELEM_INT8: return "QInt8";
    case ELEM_UINT8: return "QUInt8";
    case ELEM_INT16: return "QInt16";
    case ELEM_UINT16: return "QUInt16";
    case ELEM_INT4: return "QInt4";
    case ELEM_UINT4: return "QUInt4";
    default: return NULL;
    }
}

static json_t * override(const Quant *q) {
    json_t *list = json_array();
    for (size_t i = 0; i < q->n_scale; i++) {
        json_t *o = json_object();
        json_object_set_new(o, "quant_type", json_string(type_name(q->storage)));
        if (q->n_axes)
            json_object_set_new(o, "axis", json_integer(q->axis[0]));
        json_object_set_new(o, "scale", json_real((double)quant_scale(q, i)));
        json_object_set_new(o, "zero_point", json_integer(quant_zp(q, i)));
        json_array_append_new(list, o);
    }
    return list;
}

/* JSON is UTF-8, and a NUL in it is refused by readers, our own too. */
static bool is_json_text(Str s) {
    uint32_t c;
    for (size_t i = 0, n; i < s.n; i += n)
        if (!(n = utf8_decode(s.s + i, s.n - i, &c)) || !c)
            return false;
    return true;
}

static const char *why_not(const Scales *s, Str name, const Quant *q) {
    if (!is_json_text(name))
        return "its name";
    if (!type_name(q->storage))
        return "its type";
    if (quant_is_blocked(q))
        return "blocks";
    bool narrow = quant_is_integers(q) && q->has_range && quant_hi(q) != elem_max(q->storage);
    if (narrow)
        return "a part of the range";
    return s->aimet && q->n_axes && q->axis[0] != 0 ? "another axis than 0" : NULL;
}

static void add(Value *v, void *ctx) {
    Scales *s = ctx;
    const Quant *q = v->type.quant;
    if (!q || q->kind != QUANT_PARAMS || (q->storage == ELEM_INT32 && v->kind == VALUE_CONST))
        return;
    Str name = decision_name(s->j, v);
    s->seen++;
    const char *why = why_not(s, name, q);
    if (why)
        diag_warning(s->d, v->loc, "'%s' is left out: the format has no words for %s",
                     diag_name(s->d, name), why);
    if (!why && !s->told && v->kind == VALUE_CONST && elem_bits(q->storage) <= 4 && q->has_range &&
        q->lo > elem_min(q->storage)) {
        s->told = true;
        diag_warning(
            s->d, v->loc,
            "'%s' has integers from %lld on, which the format has no words for: given back, it "
            "may be rounded to %lld, too; -emit=scheme keeps that",
            diag_name(s->d, name), (long long)quant_lo(q), (long long)elem_min(q->storage));
    }
    if (why)
        return;
    if (!s->aimet)
        json_object_setn_new(s->overrides, name.s, name.n, override(q));
    else
        json_array_append_new(v->kind == VALUE_CONST ? s->params : s->activations,
                              encoding(name, q));
}

Str scales_text(const Job *j, Module *m, bool aimet) {
    json_t *root = json_object();
    Scales s = {j, j->d, root, json_array(), json_array(), aimet};
    module_each_value(m, add, &s);
    if (aimet) {
        json_object_set(root, "activation_encodings", s.activations);
        json_object_set(root, "param_encodings", s.params);
        json_object_set_new(root, "version", json_string("1.0.0"));
    }
    char *text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    Str out = STR_NONE;
    if (text && !s.seen && j->form == FORM_AS_IS)
        diag_error(j->d, LOC_NONE,
                   "this is a float model, so there is nothing to write: give -calib=PATH, "
                   "-dynamic or -weight-only");
    else if (text)
        out = arena_strf(m->arena, "%s\n", text);
    else
        diag_error(j->d, LOC_NONE, "out of memory");
    free(text);
    json_decref(s.activations);
    json_decref(s.params);
    json_decref(root);
    return out;
}
