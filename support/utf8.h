/* UTF-8 as it stands in untrusted text: decoding, what may reach a terminal, how wide it is. */
#ifndef QXC_SUPPORT_UTF8_H
#define QXC_SUPPORT_UTF8_H

#include "support/str.h"

/* Length in bytes of the well-formed character at s[0..n), with its code point in *c; 0 when the
 * bytes are not well-formed (overlong, surrogate, cut short) or n is 0. */
size_t utf8_decode(const char *s, size_t n, uint32_t *c);
/* False for control characters and for those that reorder text or break lines. */
bool utf8_printable(uint32_t c);
/* Columns a printable character takes on a terminal: 0, 1 or 2. */
int utf8_width(uint32_t c);

#endif
