#include "support/utf8.h"

size_t utf8_decode(const char *s, size_t n, uint32_t *c) {
    if (n == 0)
        return 0;
    const unsigned char *u = (const unsigned char *)s;
    *c = u[0];
    if (u[0] < 0x80)
        return 1;
    size_t len = u[0] >= 0xF0 ? 4 : u[0] >= 0xE0 ? 3 : 2;
    if (u[0] < 0xC2 || u[0] > 0xF4 || len > n)
        return 0;
    *c = u[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((u[i] & 0xC0) != 0x80)
            return 0;
        *c = *c << 6 | (u[i] & 0x3F);
    }
    uint32_t least = len == 4 ? 0x10000 : len == 3 ? 0x800 : 0x80;
    bool surrogate = *c >= 0xD800 && *c <= 0xDFFF;
    return *c < least || *c > 0x10FFFF || surrogate ? 0 : len;
}

bool utf8_printable(uint32_t c) {
    if (c < 0x20 || (c >= 0x7F && c < 0xA0))
        return false;
    bool mark = c == 0x61C || c == 0x200E || c == 0x200F || c == 0xFEFF;
    bool line = c >= 0x2028 && c <= 0x202E; /* separators, embeddings and overrides */
    bool isolate = c >= 0x2060 && c <= 0x206F;
    return !mark && !line && !isolate;
}

int utf8_width(uint32_t c) {
    static const struct {
        uint32_t first, last;
        int width;
    } ranges[] = {
        {0x0300, 0x036F, 0},   {0x1100, 0x115F, 2},   {0x1AB0, 0x1AFF, 0},   {0x1DC0, 0x1DFF, 0},
        {0x200B, 0x200D, 0},   {0x20D0, 0x20FF, 0},   {0x2E80, 0xA4CF, 2},   {0xAC00, 0xD7A3, 2},
        {0xF900, 0xFAFF, 2},   {0xFE00, 0xFE0F, 0},   {0xFE20, 0xFE2F, 0},   {0xFE30, 0xFE6F, 2},
        {0xFF00, 0xFF60, 2},   {0xFFE0, 0xFFE6, 2},   {0x1F300, 0x1F64F, 2}, {0x1F680, 0x1F6FF, 2},
        {0x1F900, 0x1F9FF, 2}, {0x20000, 0x3FFFD, 2},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges && c >= ranges[i].first; i++)
        if (c <= ranges[i].last)
            return ranges[i].width;
    return 1;
}
