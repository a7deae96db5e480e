/* JSON on standard output, the same bytes everywhere, with names as they are. */
#ifndef QXC_COMPILER_JSON_PRINT_H
#define QXC_COMPILER_JSON_PRINT_H

#include <jansson.h>

#include "ir/type.h"

/* The whole name, for programs; a byte that is no UTF-8 stands for the character of its number. */
json_t *json_name(Arena *a, Str name);
/* null where it is infinite or NaN, which JSON has no words for. */
json_t *json_number(double x);
/* Dimensions of a ranked tensor: numbers and names, null where neither is known. */
json_t *json_dims(Arena *a, Type t);
void json_print(const json_t *root);
/* One name alone, as it stands in a line of an object. */
void json_print_name(Arena *a, Str name);

#endif
