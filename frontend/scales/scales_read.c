#include "frontend/scales/scales_read.h"
#include "ir/verify_quant.h"
#include "support/file.h"

#include <jansson.h>
#include <math.h>

typedef struct Scales {
    Arena *arena;
    Diags *d;
    const char *path;
    Scheme *out;
} Scales;

static bool wrong(const Scales *s, const char *tensor, const char *why) {
    return diag_error(s->d, LOC_NONE, "%s: '%s': %s", s->path, diag_name(s->d, str_from(tensor)),
                      why);
}

static void add_rule(const Scales *s, const char *tensor, SchemeSetting set) {
    SchemeRule r =
        scheme_rule(SCHEME_VALUE, scheme_glob_of(s->arena, str_from(tensor)).s, LOC_NONE);
    set.said = true;
    r.set[SCHEME_ITSELF] = set;
    r.flag = s->path;
    scheme_add(s->out, s->arena, r);
}

/* `n` scales and zero points, one for each index of `axis` where there are several. */
static bool add_fixed(const Scales *s, const char *tensor, ElemType e, int axis, size_t n,
                      const double *scale, const int64_t *zp) {
    float *floats = NEW_ARRAY(s->arena, float, n);
    for (size_t i = 0; i < n; i++)
        floats[i] = (float)scale[i];
    Quant *q = n == 1 && axis < 0 ? quant_per_tensor(s->arena, e, floats[0], zp[0])
                                  : quant_per_axis(s->arena, e, axis < 0 ? 0 : axis, n, floats, zp);
    if (!verify_quant(q, LOC_NONE, s->d))
        return wrong(s, tensor, "these parameters do not hold");
    SchemeSetting set = scheme_setting_none;
    set.storage = e;
    set.fixed = q;
    add_rule(s, tensor, set);
    return true;
}

/* A number, or the only one of a list. */
static json_t *scalar(json_t *v) {
    return json_is_array(v) && json_array_size(v) == 1 ? json_array_get(v, 0) : v;
}

/* ---- onnxruntime's TensorQuantOverrides ---- */

static ElemType ort_type(json_t *v) {
    static const struct {
        const char *name;
        int number;
        ElemType e;
    } types[] = {{"QInt8", 0, ELEM_INT8},     {"QUInt8", 1, ELEM_UINT8}, {"QInt16", 3, ELEM_INT16},
                 {"QUInt16", 4, ELEM_UINT16}, {"QInt4", 5, ELEM_INT4},   {"QUInt4", 6, ELEM_UINT4}};
    const char *text = json_string_value(v);
    if (text && strncmp(text, "QuantType.", 10) == 0)
        text += 10;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (text ? strcmp(text, types[i].name) == 0
                 : json_is_integer(v) && json_integer_value(v) == types[i].number)
            return types[i].e;
    return ELEM_UNDEFINED;
}

/* Keys that are not read: the first of these are onnxruntime's, others nobody's. */
static void warn_of_rest(const Scales *s, const char *tensor, json_t *o) {
    static const char *const keys[] = {"rmin", "rmax",       "convert",   "quant_type",  "scale",
                                       "axis", "zero_point", "symmetric", "reduce_range"};
    enum { N_KEYS = sizeof keys / sizeof *keys, N_KNOWN_ONLY = 3 };
    const char *key;
    json_t *value;
    json_object_foreach(o, key, value) {
        size_t i = 0;
        while (i < N_KEYS && strcmp(key, keys[i]) != 0)
            i++;
        if (i >= N_KNOWN_ONLY && i < N_KEYS)
            continue;
        Str name = str_from(key);
        diag_warning(s->d, LOC_NONE,
                     i < N_KEYS ? "%s: '%s': %s is not taken over"
                                : "%s: '%s': an override has no key '%s'",
                     s->path, diag_name(s->d, str_from(tensor)), diag_name(s->d, name));
        if (i == N_KEYS)
            diag_did_you_mean(s->d, LOC_NONE, name, keys, N_KEYS);
    }
}

/* The parameters that one object of an override states: none, or a scale, with a zero point. */
static bool read_params(const Scales *s, const char *tensor, json_t *o, bool *stated, double *scale,
                        int64_t *zp) {
    json_t *x = scalar(json_object_get(o, "scale")), *z = scalar(json_object_get(o, "zero_point"));
    *stated = x != NULL;
    if (z && !x)
        return wrong(s, tensor, "a zero point needs a scale");
    if ((x && !json_is_number(x)) || (z && !json_is_integer(z)))
        return wrong(s, tensor,
                     "scale and zero_point are one number; channels have an object each");
    *scale = json_number_value(x);
    *zp = json_integer_value(z);
    return true;
}

/* Stated beside parameters, it says what they are. */
static bool check_symmetry(const Scales *s, const char *tensor, json_t *sym, ElemType e, size_t n,
                           const int64_t *zp) {
    int64_t middle = elem_min(e) < 0 ? 0 : elem_max(e) / 2 + 1;
    for (size_t i = 0; json_is_true(sym) && i < n; i++)
        if (zp[i] != middle)
            return diag_error(s->d, LOC_NONE,
                              "%s: '%s': zero point %lld is not symmetric: that of %s is %lld",
                              s->path, diag_name(s->d, str_from(tensor)), (long long)zp[i],
                              elem_name(e), (long long)middle);
    return true;
}

static bool read_override(const Scales *s, const char *tensor, json_t *list) {
    size_t n = json_array_size(list);
    json_t *first = json_array_get(list, 0), *axis = json_object_get(first, "axis");
    if (!json_is_object(first))
        return wrong(s, tensor, "an override is a list of objects");
    json_t *type = json_object_get(first, "quant_type");
    ElemType e = ort_type(type);
    if (type && !e)
        return wrong(s, tensor, "this quant_type is not supported");
    double *scale = NEW_ARRAY(s->arena, double, n);
    int64_t *zp = NEW_ARRAY(s->arena, int64_t, n);
    size_t stated = 0;
    for (size_t i = 0; i < n; i++) {
        json_t *o = json_array_get(list, i), *own = json_object_get(o, "quant_type");
        bool has;
        warn_of_rest(s, tensor, o);
        if (own && ort_type(own) != e)
            return wrong(s, tensor, "all channels have the quant_type of the first");
        if (!read_params(s, tensor, o, &has, &scale[stated], &zp[stated]))
            return false;
        stated += has;
    }
    if (stated && (stated != n || !e))
        return wrong(s, tensor,
                     e ? "a scale for each channel, or none" : "a scale needs quant_type");
    json_t *sym = json_object_get(first, "symmetric"),
           *less = json_object_get(first, "reduce_range");
    if (stated)
        return check_symmetry(s, tensor, sym, e, n, zp) &&
               add_fixed(s, tensor, e, axis ? (int)json_integer_value(axis) : -1, n, scale, zp);
    SchemeSetting set = scheme_setting_none;
    set.storage = e;
    set.sym = sym ? json_is_true(sym) : SCHEME_UNSAID;
    set.reduce_range = less ? json_is_true(less) : SCHEME_UNSAID;
    set.has_grain = set.channel = set.has_axis = axis != NULL;
    set.axis = (int)json_integer_value(axis);
    if (e || sym || less || axis) /* a rule says something */
        add_rule(s, tensor, set);
    return true;
}

static bool read_overrides(const Scales *s, json_t *root) {
    const char *tensor;
    json_t *list;
    bool ok = true;
    json_object_foreach(root, tensor, list) ok =
        (json_array_size(list) ? read_override(s, tensor, list)
                               : wrong(s, tensor, "an override is a list of objects")) &&
        ok;
    return ok;
}

/* ---- AIMET's encodings: x = scale * (q + offset), q from 0 on ---- */

static bool is_true(json_t *v) {
    const char *text = json_string_value(v);
    return json_is_true(v) || (text && strcmp(text, "True") == 0);
}

/* Symmetric ones are stored signed, as q + offset, unless they have no negative side. Biases, of 32
 * bits, follow by themselves. */
static bool add_encoding(const Scales *s, const char *tensor, int64_t bits, bool sym, size_t n,
                         const double *scale, int64_t *offset) {
    static const ElemType types[][2] = {{ELEM_UINT2, ELEM_INT2},
                                        {ELEM_UINT4, ELEM_INT4},
                                        {ELEM_UINT8, ELEM_INT8},
                                        {ELEM_UINT16, ELEM_INT16}};
    if (bits == 32)
        return true;
    for (size_t i = 0; i < 4; i++) {
        if (bits != elem_bits(types[i][0]))
            continue;
        bool is_signed = sym && n && offset[0] != 0;
        for (size_t k = 0; k < n; k++)
            offset[k] = is_signed ? 0 : -offset[k];
        return add_fixed(s, tensor, types[i][is_signed], n > 1 ? 0 : -1, n, scale, offset);
    }
    return wrong(s, tensor, "this bit width is not supported");
}

static bool is_float(const Scales *s, const char *tensor, json_t *entry) {
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!dtype || (dtype[0] != 'f' && dtype[0] != 'F'))
        return false;
    SchemeSetting set = scheme_setting_none;
    set.is_float = true;
    add_rule(s, tensor, set);
    return true;
}

/* {"x": [{"bitwidth": 8, "is_symmetric": "False", "scale": 0.1, "offset": -3}]} */
static bool read_old(const Scales *s, json_t *encodings) {
    const char *tensor;
    json_t *list;
    bool ok = true;
    json_object_foreach(encodings, tensor, list) {
        size_t n = json_array_size(list);
        json_t *first = json_array_get(list, 0);
        if (!json_is_object(first)) {
            ok = wrong(s, tensor, "an encoding is a list of objects");
            continue;
        }
        if (is_float(s, tensor, first))
            continue;
        double *scale = NEW_ARRAY(s->arena, double, n);
        int64_t *offset = NEW_ARRAY(s->arena, int64_t, n);
        size_t stated = 0;
        for (size_t i = 0; i < n; i++) {
            json_t *o = json_array_get(list, i);
            stated += json_is_number(json_object_get(o, "scale")) &&
                      json_is_number(json_object_get(o, "offset"));
            scale[i] = json_number_value(json_object_get(o, "scale"));
            offset[i] = (int64_t)json_number_value(json_object_get(o, "offset"));
        }
        if (stated < n) {
            ok = wrong(s, tensor, "an encoding states scale and offset (min and max are not read)");
            continue;
        }
        ok = add_encoding(s, tensor, json_integer_value(json_object_get(first, "bitwidth")),
                          is_true(json_object_get(first, "is_symmetric")), n, scale, offset) &&
             ok;
    }
    return ok;
}

/* [{"name": "x", "bw": 8, "is_sym": false, "scale": [0.1], "offset": [-3]}] */
static bool read_new(const Scales *s, json_t *encodings) {
    size_t i;
    json_t *o;
    bool ok = true;
    json_array_foreach(encodings, i, o) {
        const char *tensor = json_string_value(json_object_get(o, "name"));
        json_t *scales = json_object_get(o, "scale"), *offsets = json_object_get(o, "offset");
        const char *kind = json_string_value(json_object_get(o, "enc_type"));
        size_t n = json_array_size(scales);
        if (!tensor)
            return wrong(s, "?", "an encoding without a name");
        if (is_float(s, tensor, o))
            continue;
        if (!n || json_array_size(offsets) != n ||
            (kind && strcmp(kind, "PER_TENSOR") != 0 && strcmp(kind, "PER_CHANNEL") != 0)) {
            ok =
                wrong(s, tensor, "scale and offset are lists of one length, per tensor or channel");
            continue;
        }
        double *scale = NEW_ARRAY(s->arena, double, n);
        int64_t *offset = NEW_ARRAY(s->arena, int64_t, n);
        for (size_t k = 0; k < n; k++) {
            scale[k] = json_number_value(json_array_get(scales, k));
            offset[k] = json_integer_value(json_array_get(offsets, k));
        }
        ok = add_encoding(s, tensor, json_integer_value(json_object_get(o, "bw")),
                          is_true(json_object_get(o, "is_sym")), n, scale, offset) &&
             ok;
    }
    return ok;
}

static bool read_root(const Scales *s, json_t *root) {
    static const char *const parts[] = {"activation_encodings", "param_encodings"};
    bool ok = true, aimet = false;
    if (!json_is_object(root))
        return diag_error(s->d, LOC_NONE, "%s is neither overrides nor encodings", s->path);
    for (size_t i = 0; i < 2; i++) {
        json_t *part = json_object_get(root, parts[i]);
        aimet = aimet || part;
        ok = (json_is_array(part) ? read_new(s, part) : !part || read_old(s, part)) && ok;
    }
    return aimet ? ok : read_overrides(s, root);
}

bool scales_are_json(const char *path) {
    FILE *f = fopen(path, "rbe");
    int c = ' ';
    while (f && (c == ' ' || c == '\t' || c == '\r' || c == '\n'))
        c = getc(f);
    if (f)
        fclose(f);
    return c == '{' || c == '[';
}

bool scales_read(Arena *a, Diags *d, const char *path, Scheme *out) {
    Str text;
    if (!file_text(a, path, LOC_NONE, d, &text))
        return false;
    Scales s = {a, d, diag_name(d, str_from(path)), out};
    uint32_t source = diags_source(d, path, text);
    json_error_t error;
    json_t *root = json_loadb(text.s, text.n, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        uint32_t at = (uint32_t)(error.position > 0 ? error.position - 1 : 0);
        return diag_error(d, (Loc){source, at, at + 1, NULL}, "%s", error.text);
    }
    bool ok = read_root(&s, root);
    json_decref(root);
    return ok;
}
