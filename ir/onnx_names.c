/* See onnx_names.h. */
#include "ir/onnx_names.h"
#include "ir/onnx_schema.h"

#include <limits.h>

typedef struct Foreign {
    const char *word, *meant;
} Foreign;

static const Foreign foreign[] = {
#define FOREIGN(word, meant) {word, meant},
#include "ir/onnx_names.def"
};

static const Foreign foreign_attrs[] = {
#define FOREIGN_ATTR(word, meant) {word, meant},
#include "ir/onnx_names.def"
};

static const char *const tried[] = {
#define TRIED(name) name,
#include "ir/onnx_names.def"
};

bool onnx_has_operator(Str op) {
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
        if (str_is(op, tried[i]))
            return true;
    return onnx_schema_find(STR(""), op, INT_MAX) != NULL;
}

/* torch.nn has a class for each number of dimensions: Conv2d, BatchNorm1d, AvgPool3D. */
static Str without_dimensions(Str op) {
    size_t n = op.n;
    bool has = n > 2 && (op.s[n - 1] == 'd' || op.s[n - 1] == 'D') && op.s[n - 2] >= '1' &&
               op.s[n - 2] <= '3';
    return has ? (Str){op.s, n - 2} : op;
}

bool onnx_foreign_name(Diags *d, Loc at, Str op) {
    Str word = without_dimensions(op);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (str_same_letters(word, str_from(foreign[i].word))) {
            diag_note(d, at, "did you mean %s?", foreign[i].meant);
            return true;
        }
    if (word.n < op.n && onnx_has_operator(word)) {
        diag_note(d, at, "did you mean '" STR_FMT "'?", STR_ARG(word));
        return true;
    }
    return false;
}

bool onnx_did_you_mean(Diags *d, Loc at, Str op) {
    return onnx_foreign_name(d, at, op) ||
           diag_did_you_mean_next(d, at, without_dimensions(op), onnx_schema_next_name,
                                  &(size_t){0});
}

void onnx_attr_did_you_mean(Diags *d, Loc at, Str word, const OnnxSchema *schema) {
    for (size_t i = 0; i < sizeof foreign_attrs / sizeof *foreign_attrs; i++)
        if (str_same_letters(word, str_from(foreign_attrs[i].word)) &&
            onnx_schema_attr(schema, str_from(foreign_attrs[i].meant))) {
            diag_note(d, at, "did you mean '%s'?", foreign_attrs[i].meant);
            return;
        }
    const char *names[UINT8_MAX + 1];
    for (int i = 0; i < schema->n_attrs; i++)
        names[i] = schema->attrs[i].name;
    diag_did_you_mean(d, at, word, names, schema->n_attrs);
}
