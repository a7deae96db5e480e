/* What calibration measured: `stat` lines. */
#include "frontend/qir/reader.h"

static void read_stat_row(Reader *r, Stat *s, const Field *f, const float **row) {
    const float *numbers;
    size_t n;
    if (!val_floats(r, &f->val, "a statistic", &numbers, &n))
        return;
    if (n == 0) {
        error_at(r, f->val.at, "a statistic has a number or more");
    } else if (s->n && n != s->n) {
        error_at(r, f->val.at, "%zu value%s here, %zu before", n, plural((int64_t)n), s->n);
    } else {
        s->n = n;
        *row = numbers;
    }
}

/* A statistic of another kind, kept as it stands. */
static void read_other_stat(Reader *r, Stat *s, const Field *f, Attr *a) {
    if (val_is_call(r, &f->val, "blob")) {
        Tensor *t = blob_of_any_type(r, &f->val);
        *a = (Attr){.name = f->key, .kind = ATTR_TENSOR, .n = t != NULL, .loc = loc_of(r, f->at)};
        a->v.t = arena_copy(r->arena, &t, sizeof t);
    } else if (f->val.kind == VAL_GRAPH || f->val.kind == VAL_TYPE || f->val.kind == VAL_REF ||
               (f->val.kind == VAL_LIST && f->val.n && f->val.u.items[0].kind != VAL_STRING)) {
        error_at(r, f->val.at, "a statistic is a number, a string, a list of these, or a tensor");
    } else if (!read_attribute(r, f, a)) {
        return;
    }
    s->n_attrs += a->n > 0 || a->kind != ATTR_UNDEFINED;
}

/* `most` is how many entries there are. */
static void read_stat_entry(Reader *r, Stat *s, const Field *f, size_t most) {
    static const char *const keys[] = {"min",  "max",    "avg",  "std",  "axis",     "count",
                                       "hist", "method", "seen", "ends", "elements", "sums"};
    enum { OWN = 6 }; /* the others are attributes */
    const float **rows[] = {&s->min, &s->max, &s->avg, &s->std};
    int64_t axis;
    if (!f->has_val) {
        error_at(r, f->at, "'%s' has no value", shown(r, f->key));
        return;
    }
    for (size_t i = 0; i < 4; i++)
        if (str_is(f->key, keys[i])) {
            read_stat_row(r, s, f, rows[i]);
            return;
        }
    if (str_is(f->key, "count")) {
        val_int(r, &f->val, "count", &s->count);
    } else if (str_is(f->key, "axis")) {
        s->has_axis = val_int(r, &f->val, "axis", &axis) &&
                      ((axis >= 0 && axis < MAX_RANK) ||
                       error_at(r, f->val.at, "an axis is 0 to %d", MAX_RANK - 1));
        s->axis = s->has_axis ? (int)axis : 0;
    } else {
        if (!s->attrs)
            s->attrs = NEW_ARRAY(r->arena, Attr, most);
        read_other_stat(r, s, f, &s->attrs[s->n_attrs]);
        for (size_t i = OWN; i < sizeof keys / sizeof *keys; i++)
            if (str_is(f->key, keys[i]))
                return;
        diag_warning(r->diags, loc_of(r, f->at), "unknown statistic '%s'", shown(r, f->key));
        suggest(r, f->at, f->key, keys, sizeof keys / sizeof *keys);
    }
}

static const Val *entry(const Field *f, size_t n, const char *key) {
    for (size_t i = 0; i < n; i++)
        if (f[i].has_val && str_is(f[i].key, key))
            return &f[i].val;
    return NULL;
}

/* A statistic against the shape of its value, as far as both are known. */
static void check_axis(Reader *r, const Stat *s, Type t, Loc axis, Loc row) {
    if (!s->has_axis || t.kind != TYPE_TENSOR || t.rank < 0)
        return;
    if (s->axis >= t.rank) {
        diag_error(r->diags, axis, "axis %d does not exist: the value has %d dimension%s", s->axis,
                   t.rank, plural(t.rank));
        return;
    }
    int64_t dim = t.dims[s->axis].value;
    if (s->n && dim >= 0 && (size_t)dim != s->n)
        diag_error(r->diags, row, "%zu value%s for axis %d of length %lld", s->n, plural(s->n),
                   s->axis, (long long)dim);
}

static void check_shape(Reader *r, const Stat *s, Type t, const Field *f, size_t n) {
    static const char *const rows[] = {"min", "max", "avg", "std"};
    const Val *axis = entry(f, n, "axis"), *row = NULL;
    for (size_t i = 0; i < 4 && !row; i++)
        row = entry(f, n, rows[i]);
    if (!s->has_axis && s->n > 1 && row && !axis)
        error_at(r, row->at, "a list of %zu values needs an axis, as in <axis=0, ...>", s->n);
    if (axis)
        check_axis(r, s, t, loc_of(r, axis->at), loc_of(r, row ? row->at : axis->at));
}

void check_stat_of(Reader *r, const Value *v) {
    if (v->stat)
        check_axis(r, v->stat, v->type, v->stat->loc, v->stat->loc);
}

static void check_signs(Reader *r, const Stat *s, const Field *f, size_t n) {
    const Val *count = entry(f, n, "count"), *std = entry(f, n, "std");
    if (s->count < 0 && count)
        error_at(r, count->at, "a count is 0 or more");
    for (size_t i = 0; s->std && std && i < s->n; i++)
        if (s->std[i] < 0) {
            error_at(r, std->at, "a standard deviation is 0 or more");
            return;
        }
}

void read_stat(Reader *r, Token name, Span fields) {
    Str key = str_of(r, name);
    Value *v = find_described(r, key, range_of(name));
    Stat *s = NEW(r->arena, Stat);
    s->loc = loc_of(r, range_of(name));
    Field *f = take_fields(r, fields);
    int errors = diags_errors(r->diags);
    check_unique(r, f, fields.n, "statistic");
    for (uint32_t i = 0; i < fields.n; i++)
        read_stat_entry(r, s, &f[i], fields.n);
    check_signs(r, s, f, fields.n);
    if (!v)
        return;
    if (diags_errors(r->diags) == errors)
        check_shape(r, s, v->type, f, fields.n);
    if (v->stat) {
        error_at(r, range_of(name), "a second 'stat' of %%%s", shown(r, key));
        diag_note(r->diags, v->stat->loc, "the first one");
    }
    v->stat = s;
    take_flaws(r);
}
