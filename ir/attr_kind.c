/* What kinds of attributes there are. */
#include "ir/ir.h"

static const struct {
    const char *word, *text;
    bool is_list;
} kinds[] = {
#define ATTR_KIND(id, number, word, is_list, text) [ATTR_##id] = {word, text, is_list},
#include "ir/attr_kind.def"
};

static bool is_known(AttrKind k) {
    return k > ATTR_UNDEFINED && (size_t)k < sizeof kinds / sizeof *kinds;
}

const char *attr_kind_word(AttrKind k) {
    return is_known(k) ? kinds[k].word : NULL;
}

const char *attr_kind_text(AttrKind k) {
    return is_known(k) ? kinds[k].text : "of an unknown kind";
}

bool attr_kind_is_list(AttrKind k) {
    return is_known(k) && kinds[k].is_list;
}
