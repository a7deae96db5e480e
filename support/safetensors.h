/* The safetensors format: a JSON header, then the tensors' bytes.
 *
 * Reading takes bytes that the caller mapped (see file.h), which must outlive the result: tensors
 * point into them, at any alignment. Everything the header says is checked before st_parse
 * returns; a fault is a diagnostic and gives NULL. Results live in the arena. */
#ifndef QXC_SUPPORT_SAFETENSORS_H
#define QXC_SUPPORT_SAFETENSORS_H

#include "support/diag.h"

typedef struct StTensor {
    Str name;
    const char *dtype; /* "F32", "BF16", "I8", ... */
    int rank;
    const int64_t *dims;
    Str data;
} StTensor;

typedef struct SafeTensors SafeTensors;

/* `file` names the bytes in messages. */
SafeTensors *st_parse(Arena *a, Str bytes, const char *file, Loc at, Diags *d);
size_t st_size(const SafeTensors *s);
const StTensor *st_at(const SafeTensors *s, size_t i);   /* in the header's order */
const StTensor *st_find(const SafeTensors *s, Str name); /* NULL when there is none */
/* A text of __metadata__; STR_NONE when it is not there. */
Str st_metadata(const SafeTensors *s, Str key);

/* Bits of an element ("I8": 8), 0 for a type the format does not have. */
int st_dtype_bits(const char *dtype);

/* Writing, in the order of the calls; the same calls give the same bytes. Data are borrowed until
 * st_write. */
typedef struct StWriter StWriter;
StWriter *st_writer(Arena *a);
/* False, and nothing added, where JSON cannot hold the name (not UTF-8), it was there already, or
 * it is the format's own word __metadata__. Size and type of the data must fit each other. */
bool st_add(StWriter *w, Str name, const char *dtype, int rank, const int64_t *dims, Str data);
bool st_add_metadata(StWriter *w, Str key, Str text);
/* Failed writes show when the file is flushed or closed, as out_commit does. `wrote`, or NULL,
 * hears of data that were written, part by part: they may leave memory. */
typedef void StWrote(Str data, void *ctx);
void st_write(StWriter *w, FILE *f, StWrote *wrote, void *ctx);

#endif
