/* The .def files are read once per kind of row; a macro without a definition here ignores its row.
 * Lists become anonymous constant arrays, so a row needs no index into another table. */
#include "ir/onnx_schema.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* ---- type sets ---- */

#define DOMAIN(name, newest)
#define OP(...)
#define TYPES(name, ...) static const SchemaTypes name = {__VA_ARGS__};
#include "ir/onnx_schema.def"
#include "ir/msft_schema.def"
#undef TYPES
#undef DOMAIN

/* ---- domains ---- */

#define TYPES(...)
#define DOMAIN(name, newest) {name, newest},
static const struct {
    const char *name;
    int newest;
} domains[] = {
#include "ir/onnx_schema.def"
#include "ir/msft_schema.def"
};
#undef DOMAIN
#undef OP

/* ---- operators ---- */

/* clang-format off */
#define LIST(T, ...)  (const T[]){__VA_ARGS__}
#define COUNT(T, ...) LENGTH(((const T[]){__VA_ARGS__}))

#define PARAMS(of, ...) .of = LIST(SchemaParam, __VA_ARGS__), .n_##of = COUNT(SchemaParam, __VA_ARGS__)
#define IN(...)         PARAMS(inputs, __VA_ARGS__)
#define OUT(...)        PARAMS(outputs, __VA_ARGS__)
#define ATTRS(...)      .attrs = LIST(SchemaAttr, __VA_ARGS__), .n_attrs = COUNT(SchemaAttr, __VA_ARGS__)
#define NO_IN           .n_inputs = 0
#define NO_OUT          .n_outputs = 0
#define NO_ATTRS        .n_attrs = 0

#define ONE(name, var, types)               {name, var, &types, SCHEMA_SINGLE, 1, 1}
#define OPT(name, var, types)               {name, var, &types, SCHEMA_OPTIONAL, 0, 1}
#define MANY(name, var, types, least, same) {name, var, &types, SCHEMA_VARIADIC, least, same}

#define REQUIRED(name, type)          {name, SCHEMA_##type, SCHEMA_ATTR_REQUIRED, 0, {0}}
#define OPTIONAL(name, type)          {name, SCHEMA_##type, SCHEMA_ATTR_OPTIONAL, 0, {0}}
#define DEFAULT(name, type, n, value) {name, SCHEMA_##type, SCHEMA_ATTR_DEFAULT, n, {value}}
#define INT(name, x)       DEFAULT(name, INT, 1, .i = x)
#define FLOAT(name, x)     DEFAULT(name, FLOAT, 1, .f = x)
#define STRING(name, x)    DEFAULT(name, STRING, 1, .s = x)
#define INTS(name, ...)    {name, SCHEMA_INTS, SCHEMA_ATTR_DEFAULT, COUNT(int64_t, __VA_ARGS__), \
                            {.ints = LIST(int64_t, __VA_ARGS__)}}
#define STRINGS(name, ...) {name, SCHEMA_STRINGS, SCHEMA_ATTR_DEFAULT, COUNT(char *, __VA_ARGS__), \
                            {.strings = LIST(char *const, __VA_ARGS__)}}
/* clang-format on */

#define DEPRECATED       SCHEMA_DEPRECATED
#define EXPERIMENTAL     SCHEMA_EXPERIMENTAL
#define ORT              SCHEMA_ORT
#define NONDETERMINISTIC SCHEMA_NONDETERMINISTIC

#define DOMAIN(name, newest)
#define OP(domain_, name_, since_, flags_, ...)                                                    \
    {.domain = domain_, .name = name_, .since = since_, .flags = flags_, __VA_ARGS__},
static const OnnxSchema schemas[] = {
#include "ir/onnx_schema.def"
#include "ir/msft_schema.def"
};
static const OnnxSchema ort_schemas[] = {
#include "ir/ort_schema.def"
};

/* ---- lookup ---- */

static Str normal_domain(Str domain) {
    return str_is(domain, "ai.onnx") ? STR("") : domain;
}

/* Order of the row against (domain, op, opset). */
static int compare(const OnnxSchema *row, Str domain, Str op, int opset) {
    int c = str_cmp(str_from(row->domain), domain);
    if (c == 0)
        c = str_cmp(str_from(row->name), op);
    if (c == 0)
        c = (row->since > opset) - (row->since < opset);
    return c;
}

static const OnnxSchema *find(const OnnxSchema *rows, size_t n, Str domain, Str op, int opset) {
    size_t low = 0, high = n; /* rows before low are <= the key, from high on > */
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare(&rows[mid], domain, op, opset) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0)
        return NULL;
    const OnnxSchema *row = &rows[low - 1];
    return str_is(domain, row->domain) && str_is(op, row->name) ? row : NULL;
}

const OnnxSchema *onnx_schema_find(Str domain, Str op, int opset) {
    domain = normal_domain(domain);
    const OnnxSchema *row = find(schemas, LENGTH(schemas), domain, op, opset);
    return row ? row : find(ort_schemas, LENGTH(ort_schemas), domain, op, opset);
}

size_t onnx_schema_count(void) {
    return LENGTH(schemas) + LENGTH(ort_schemas);
}

const OnnxSchema *onnx_schema_at(size_t i) {
    if (i < LENGTH(schemas))
        return &schemas[i];
    return i < onnx_schema_count() ? &ort_schemas[i - LENGTH(schemas)] : NULL;
}

bool onnx_schema_next_name(void *at, Str *name) {
    size_t *i = at;
    while (*i < onnx_schema_count()) {
        const OnnxSchema *row = onnx_schema_at((*i)++);
        *name = str_from(row->name);
        if (!row->domain[0])
            return true;
    }
    return false;
}

int onnx_schema_newest(Str domain) {
    domain = normal_domain(domain);
    for (size_t i = 0; i < LENGTH(domains); i++)
        if (str_is(domain, domains[i].name))
            return domains[i].newest;
    return 0;
}

const SchemaParam *onnx_schema_param(const OnnxSchema *schema, bool is_output, int index) {
    const SchemaParam *params = is_output ? schema->outputs : schema->inputs;
    int n = is_output ? schema->n_outputs : schema->n_inputs;
    if (index < 0 || n == 0)
        return NULL;
    if (index < n)
        return &params[index];
    return params[n - 1].option == SCHEMA_VARIADIC ? &params[n - 1] : NULL;
}

bool onnx_schema_allows(const OnnxSchema *schema, int is_output, int index, int elem_type) {
    const SchemaParam *param = onnx_schema_param(schema, is_output, index);
    return param && elem_type > 0 && elem_type < 32 && (param->types->tensor >> elem_type & 1);
}

int onnx_schema_min(const OnnxSchema *schema, bool is_output) {
    const SchemaParam *params = is_output ? schema->outputs : schema->inputs;
    int n = is_output ? schema->n_outputs : schema->n_inputs;
    while (n > 0 && params[n - 1].least == 0)
        n--;
    return n == 0 ? 0 : n - 1 + params[n - 1].least;
}

int onnx_schema_max(const OnnxSchema *schema, bool is_output) {
    const SchemaParam *params = is_output ? schema->outputs : schema->inputs;
    int n = is_output ? schema->n_outputs : schema->n_inputs;
    return n > 0 && params[n - 1].option == SCHEMA_VARIADIC ? INT_MAX : n;
}

const SchemaAttr *onnx_schema_attr(const OnnxSchema *schema, Str name) {
    for (int i = 0; i < schema->n_attrs; i++)
        if (str_is(name, schema->attrs[i].name))
            return &schema->attrs[i];
    return NULL;
}

int64_t onnx_ir_for_opset(int64_t opset) {
    static const signed char ir[] = {
        [1] = 3,   [2] = 3,   [3] = 3,   [4] = 3,   [5] = 3,   [6] = 3,   [7] = 3,
        [8] = 3,   [9] = 4,   [10] = 5,  [11] = 6,  [12] = 7,  [13] = 7,  [14] = 7,
        [15] = 8,  [16] = 8,  [17] = 8,  [18] = 8,  [19] = 9,  [20] = 9,  [21] = 10,
        [22] = 10, [23] = 11, [24] = 12, [25] = 13, [26] = 13, [27] = 13, [28] = 14};
    return opset >= 1 && opset < (int64_t)sizeof ir ? ir[opset] : ir[sizeof ir - 1];
}
