/* Files: mapped for reading, written whole or not at all. Every failure is a diagnostic. */
#ifndef QXC_SUPPORT_FILE_H
#define QXC_SUPPORT_FILE_H

#include "support/diag.h"

typedef struct FileMap FileMap;

/* Maps a regular file read-only ("-" reads standard input into memory). NULL after a diagnostic.
 * The mapping lives until file_unmap. */
FileMap *file_map(const char *path, Loc at, Diags *d);
/* A copy of the whole file in the arena, NUL-terminated; false after a diagnostic. */
bool file_text(Arena *a, const char *path, Loc at, Diags *d, Str *out);
Str file_bytes(const FileMap *f);
void file_unmap(FileMap *f);
/* Of the file when it was mapped; NULL of standard input. */
struct stat;
const struct stat *file_stat(const FileMap *f);
/* Whether nobody has written to the file since it was mapped; false after a diagnostic. Its bytes
 * are to be trusted only once this is known. */
bool file_is_whole(const FileMap *f, Diags *d);
/* From now on a mapped file that shrinks reads as zeros behind its end, and is no SIGBUS. */
void file_guard(void);
/* Whether that has happened to any file. */
bool file_guard_met(void);
/* The pages that hold `bytes`, a part of the file, may leave memory until they are read again.
 * Nothing happens where that is no part of a mapped file. */
void file_release(const FileMap *f, Str bytes);
/* Hands all of the file to `fn`, part by part, so that little of it is in memory at a time. Parts
 * after the first begin with the last `overlap` bytes of the one before. False as soon as `fn`
 * says so. */
typedef bool FilePart(Str part, void *ctx);
bool file_each_part(const FileMap *f, size_t overlap, FilePart *fn, void *ctx);
void file_sha256(const FileMap *f, char out[64 + 1]); /* 64 digits 0-9 a-f and a NUL */

/* Where the files may lie that a model names. */
typedef struct Folders {
    const char *dir;   /* the model's own; NULL: none may be read */
    const char *other; /* looked in for what is not there, or NULL */
} Folders;

/* Like file_map for a name that stands in a model; refuses absolute paths, "..", empty names,
 * symbolic links anywhere on the way, hard links and non-regular files. Where `absent` is given, a
 * file that is not there is only a warning: NULL with *absent true. */
FileMap *file_map_beside(Folders in, Str name, bool *absent, Loc at, Diags *d);

/* A group of output files: all are written under temporary names in their own folders and renamed
 * together by out_commit; out_abort (or a failed commit) leaves every old file as it was and no new
 * one. What a run that was killed left under temporary names goes when the next one writes to that
 * folder. An existing file keeps its permissions and must be writable, a symbolic link is written
 * through. A device or pipe is written directly: what it has got it keeps. On out-of-memory call
 * out_abort before the arena goes; out_commit takes no memory. */
typedef struct OutFiles OutFiles;
OutFiles *out_new(Arena *a, Diags *d, bool sync); /* sync: out_commit waits for the disk */
/* Files that are never replaced: what this run reads. */
void out_keep(OutFiles *o, const char *path);
void out_keep_map(OutFiles *o, const FileMap *f);
FILE *out_open(OutFiles *o, const char *path); /* NULL after a diagnostic */
/* From now on the signals that end the process remove what is staged, first. */
void out_catch_signals(void);

/* Files beside others, which refer to them by their name: constants of a text, the header of C,
 * external data of ONNX. So they replace nothing but what they were written over before: a file
 * that `main` (as it was) names together with its sha256, and that no other .qir or .onnx of the
 * folder names. out_force takes that condition away; what this run reads stays all the same, and so
 * does what is write-protected or no file. */
typedef struct SideFile {
    const char *path;
    const char *name;  /* in the folder of the file that refers to it */
    char hash[64 + 1]; /* sha256 of its bytes */
    long long size;    /* bytes */
} SideFile;
void out_force(OutFiles *o);
/* The stream of such a file, which would like to be called `path`. NULL after a diagnostic. */
FILE *out_side(OutFiles *o, const char *path);
/* Once all is written: settles on the name. Where the one wished for is another's, 8 digits of the
 * hash go into it, with a note; where `fixed`, that is an error. A file that is there with the same
 * bytes stays. Should somebody change the file until out_commit, that fails. NULL after a
 * diagnostic. */
const SideFile *out_settle(OutFiles *o, FILE *f, const char *main, bool fixed);
/* Whether a .qir or .onnx of its folder names the file, or may do so as it cannot be read. */
bool file_is_named(OutFiles *o, const char *path);
/* The i-th of those settled on, also after out_commit; NULL behind the last. */
const SideFile *out_side_at(const OutFiles *o, size_t i);

/* Bytes written so far to the regular file of that path; -1 where it is none of these. */
long long out_size(OutFiles *o, const char *path);
bool out_commit(OutFiles *o);
void out_abort(OutFiles *o);
/* Whether something could not be opened or written. */
bool out_failed(const OutFiles *o);

/* Whether out_open will most likely succeed, told before work that takes minutes; touches nothing.
 * False after a diagnostic. */
bool out_check(Arena *a, const char *path, Diags *d);
/* Whether both paths lead to one regular file that is there. */
bool same_file(const char *a, const char *b);
/* Whether the path leads to something that is there and is not a regular file: /dev/null, a pipe.
 */
bool out_is_device(const char *path);

/* Where files lie that nobody is to find: TMPDIR, or /tmp. */
const char *temp_folder(void);
/* The folder part of a path ("." where there is none). */
const char *path_dir(Arena *a, const char *path);
/* The last part of a path: the file name; of "data/" that with its slash. */
const char *path_base(const char *path);
/* The file name without folder and last extension. */
Str path_stem(Arena *a, const char *path);

uint32_t crc32_of(const void *data, size_t n); /* zlib's polynomial */
/* The checksum of what `crc` covers followed by these bytes. */
uint32_t crc32_more(uint32_t crc, const void *data, size_t n);

#endif
