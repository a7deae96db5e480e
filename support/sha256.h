/* SHA-256 (FIPS 180-4) of bytes at hand. Never fails. */
#ifndef QXC_SUPPORT_SHA256_H
#define QXC_SUPPORT_SHA256_H

#include "support/str.h"

enum { SHA256_HEX = 64 };

/* 64 digits 0-9 a-f and a NUL. */
void sha256_hex(Str data, char out[SHA256_HEX + 1]);

#endif
