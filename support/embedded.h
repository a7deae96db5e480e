/* Texts that the build puts into the program (tools/embed): those of lib and others. Each folder of
 * such texts is an array, in bytewise order of its names. They are parsed when somebody needs them,
 * not at the start. */
#ifndef QXC_SUPPORT_EMBEDDED_H
#define QXC_SUPPORT_EMBEDDED_H

#include <stddef.h>

typedef struct Embedded {
    const char *name; /* of the file, without its folder */
    const char *text; /* a NUL follows */
    size_t size;      /* in bytes, without that NUL */
} Embedded;

extern const Embedded lib_texts[]; /* lib/: what composite operators mean, as functions */
extern const size_t lib_texts_n;
extern const Embedded target_texts[]; /* target/: pages of facts about runtimes */
extern const size_t target_texts_n;
extern const Embedded report_texts[]; /* compiler/report/: the page of a report */
extern const size_t report_texts_n;

#endif
