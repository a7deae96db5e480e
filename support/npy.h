/* The .npy format: a header that describes one array, then its elements.
 *
 * Element types are ONNX TensorProto.DataType numbers; 0 where ONNX or we have none. */
#ifndef QXC_SUPPORT_NPY_H
#define QXC_SUPPORT_NPY_H

#include <stdio.h>

#include "support/buf.h"

enum {
    NPY_MAX_RANK = 32,
    NPY_PREFIX = 12, /* bytes that tell how long a header is */
    NPY_MAX_HEADER = 65536
};

typedef struct NpyArray {
    Str name;          /* without .npy */
    int elem;          /* 0: a dtype that cannot be read, see `dtype` */
    size_t elem_size;  /* bytes of an element; 0 where elem is 0 */
    const char *dtype; /* as it stands in the file, for messages */
    bool swapped;      /* in the byte order that this machine does not have */
    bool fortran;      /* first axis fastest, and that makes a difference */
    int rank;
    int64_t dims[NPY_MAX_RANK];
    uint64_t count; /* elements in all; elements and bytes both fit an int64_t */
    size_t header;  /* bytes before the data */
} NpyArray;

/* The length of the whole header, given its first NPY_PREFIX bytes. 0 when that is not the start
 * of a .npy file that we know; then *why says what is wrong. */
size_t npy_header_size(const char prefix[NPY_PREFIX], const char **why);
/* Reads a header of npy_header_size bytes into *out (all but the name). Returns NULL, or what is
 * wrong with it. An element type we do not have is not wrong yet. */
const char *npy_parse(Arena *a, Str header, NpyArray *out);
/* NumPy's name for an element type ("<f4"); NULL when it has none. */
const char *npy_dtype(int elem);
size_t npy_elem_size(int elem); /* 0 when NumPy does not have the type */
/* Appends a header; the data follow in little-endian C order. `elem` must have an npy_dtype. */
void npy_put_header(Buf *b, int elem, int rank, const int64_t *dims);

#endif
