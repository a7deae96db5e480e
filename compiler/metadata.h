/* Statistics and provenance in an ONNX file: metadata_props of nodes (qxc.from) and of ValueInfos
 * (qxc.stat, qxc.from), in the words of the .qir language: `min=-3.1, max=3.2`,
 * `from(Conv "c") by "fold-affine"`; and of the model (qxc.external_data), `m.onnx.data
 * sha256:...`, which is about the file and goes when it is read. They come last among the entries,
 * or where an entry of their key without a value keeps the place: there other tools' entries came
 * after them. */
#ifndef QXC_COMPILER_METADATA_H
#define QXC_COMPILER_METADATA_H

#include "ir/ir.h"

#define META_SQNR "qxc.sqnr" /* of a node: what -sqnr-metadata measured (compiler/measured.h) */

/* To be called before a module is written as ONNX: enters them, statistics where they are wanted.
 */
void metadata_put(Module *m, bool statistics);
/* The model says of which file its external data are, and that file's sha256. */
void metadata_put_external(Module *m, const char *name, const char *hash);
/* The entry of this key says `text`, and no other does; STR_NONE: none says anything. Lists may be
 * shared, so they are made anew. */
void metadata_set(Arena *a, Meta *meta, const char *key, Str text);
/* To be called after an ONNX file was read: takes what is ours out of the metadata. What has our
 * key and is not what we would write stays as it is, with a warning. */
void metadata_take(Module *m);
/* Reports what stands under keys that begin with qxc. and is not read: warnings, but false after an
 * error where a bound of lengths is no number. */
bool metadata_check(Module *m, bool is_text, Diags *d);

#endif
