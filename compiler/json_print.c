#include "compiler/json_print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/utf8.h"

json_t *json_name(Arena *a, Str name) {
    Buf b = buf_new(a);
    for (size_t i = 0, n; i < name.n; i += n ? n : 1) {
        uint32_t ch;
        n = utf8_decode(name.s + i, name.n - i, &ch);
        if (n) {
            buf_str(&b, (Str){name.s + i, n});
        } else { /* of two bytes, as it is 0x80 or more */
            unsigned char byte = (unsigned char)name.s[i];
            buf_byte(&b, (char)(0xC0 | byte >> 6));
            buf_byte(&b, (char)(0x80 | (byte & 0x3F)));
        }
    }
    return json_stringn(b.p ? b.p : "", b.n);
}

json_t *json_number(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *json_dims(Arena *a, Type t) {
    json_t *dims = json_array();
    for (int i = 0; i < t.rank; i++) {
        Dim d = t.dims[i];
        json_array_append_new(dims, d.value >= 0 ? json_integer(d.value)
                                    : d.param.n  ? json_name(a, d.param)
                                                 : json_null());
    }
    return dims;
}

void json_print(const json_t *root) {
    char *dumped = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    puts(dumped ? dumped : "null");
    free(dumped);
}

void json_print_name(Arena *a, Str name) {
    json_t *text = json_name(a, name);
    char *dumped = json_dumps(text, JSON_ENCODE_ANY);
    fputs(dumped ? dumped : "null", stdout);
    free(dumped);
    json_decref(text);
}
