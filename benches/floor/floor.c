// A lower bound for `du -s DIR`: only the system calls that the result requires, on plain threads.
//
// floor DIR [THREADS [CHUNK [inode]]] (defaults: 2 threads, 256 names a chunk, listing order)
//
// For each directory: openat relative to its parent, getdents64 until the end, one statx of the
// directory, close. For each other entry: one statx relative to its directory. On a local
// filesystem lstat replaces it, from a working directory that the thread does not share, because
// the kernel resolves such a name faster. Hard links are counted once. The output is that of
// `du -s DIR`. The program keeps no order, prints nothing below DIR, and exits at the first error.
// With `inode`, the entries of one getdents64 call are processed in order of their inode numbers,
// which on a disk is close to the order of the inodes.
//
// pool.h distributes the work to the threads.

#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "pool.h"

enum {
    RECORDS_MAX = BUFFER_BYTES / 24,  // 24 bytes: the shortest record
    STAT_FLAGS = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
    STAT_MASK = STATX_BLOCKS | STATX_INO | STATX_NLINK,
    NEAR_NAMES = 4,  // names from which on a change of the working directory pays
};

// Aligned to separate cache lines: a worker updates `blocks` with every name.
struct worker {
    _Alignas(128) uint64_t blocks;
    pthread_t thread;
    unsigned directories, files;
    struct record *directory[RECORDS_MAX], *file[RECORDS_MAX];
    _Alignas(8) char buffer[BUFFER_BYTES];
    char text[BUFFER_BYTES];
};

static unsigned chunk_names = 256;
static bool inode_order;
static bool local;           // the filesystem is on this machine, not on a network

// ---- hard links: a set of (device, inode), accessed rarely ----

struct inode {
    uint64_t device, number;
};

static pthread_mutex_t links_lock = PTHREAD_MUTEX_INITIALIZER;
static struct inode *links;
static size_t links_used, links_size;  // the size is a power of two

static struct inode *find_link(struct inode *table, size_t size, struct inode key)
{
    size_t at = (key.number * 0x9E3779B97F4A7C15u ^ key.device) & (size - 1);
    while (table[at].number && (table[at].number != key.number || table[at].device != key.device))
        at = (at + 1) & (size - 1);
    return &table[at];
}

static void grow_links(void)
{
    size_t size = links_size ? links_size * 2 : 1024;
    struct inode *table = calloc(size, sizeof *table);
    if (!table)
        die("allocate memory for", "hard links");
    for (size_t i = 0; i < links_size; i++)
        if (links[i].number)
            *find_link(table, size, links[i]) = links[i];
    free(links);
    links = table;
    links_size = size;
}

static bool first_link(struct inode key)
{
    pthread_mutex_lock(&links_lock);
    if (links_used * 2 >= links_size)
        grow_links();
    struct inode *slot = find_link(links, links_size, key);
    bool first = slot->number == 0;
    if (first) {
        *slot = key;
        links_used++;
    }
    pthread_mutex_unlock(&links_lock);
    return first;
}

// ---- the walk ----

static uint64_t blocks_of(struct inode key, uint64_t names, uint64_t blocks)
{
    return names > 1 && !first_link(key) ? 0 : blocks;
}

static uint64_t blocks_of_statx(const struct statx *st, bool is_directory)
{
    struct inode key = {(uint64_t)st->stx_dev_major << 32 | st->stx_dev_minor, st->stx_ino};
    return blocks_of(key, is_directory ? 1 : st->stx_nlink, st->stx_blocks);
}

// Changes the working directory to `dir` if that pays for so many names. Returns whether it did.
static bool enter_if_local(struct dir *dir, unsigned names)
{
    return local && names >= NEAR_NAMES && fchdir(dir->fd) == 0;
}

static void stat_name(struct worker *worker, struct dir *dir, bool in_directory, const char *name)
{
    if (in_directory) {
        struct stat st;
        if (lstat(name, &st) != 0)
            die("access", name);
        worker->blocks += blocks_of((struct inode){st.st_dev, st.st_ino}, st.st_nlink, (uint64_t)st.st_blocks);
    } else {
        struct statx st;
        if (statx(dir->fd, name, STAT_FLAGS, STAT_MASK, &st) != 0)
            die("access", name);
        worker->blocks += blocks_of_statx(&st, false);
    }
}

static void stat_chunk(struct worker *worker, struct item *chunk)
{
    const char *name = chunk->text;
    bool in_directory = enter_if_local(chunk->dir, chunk->names);
    for (unsigned i = 0; i < chunk->names; i++, name += strlen(name) + 1)
        stat_name(worker, chunk->dir, in_directory, name);
}

// The filesystem may not report types (DT_UNKNOWN); they then cost a statx, as sizes do.
static unsigned char type_of(struct dir *dir, struct record *record)
{
    struct statx st;
    if (record->type != DT_UNKNOWN)
        return record->type;
    if (statx(dir->fd, record->name, STAT_FLAGS, STATX_TYPE, &st) != 0)
        die("access", record->name);
    return S_ISDIR(st.stx_mode) ? DT_DIR : DT_REG;
}

static int by_inode(const void *a, const void *b)
{
    uint64_t left = (*(struct record *const *)a)->ino, right = (*(struct record *const *)b)->ino;
    return (left > right) - (left < right);
}

// Splits a buffer of records into directories and other files.
static void partition_records(struct worker *worker, struct dir *dir, long filled)
{
    worker->directories = worker->files = 0;
    for (long at = 0; at < filled;) {
        struct record *record = (struct record *)(worker->buffer + at);
        at += record->length;
        if (is_dot(record->name))
            continue;
        if (type_of(dir, record) == DT_DIR)
            worker->directory[worker->directories++] = record;
        else
            worker->file[worker->files++] = record;
    }
    if (inode_order) {
        qsort(worker->directory, worker->directories, sizeof *worker->directory, by_inode);
        qsort(worker->file, worker->files, sizeof *worker->file, by_inode);
    }
}

static void queue_directories(struct worker *worker, struct dir *dir)
{
    struct item *first = NULL, *last = NULL;
    for (unsigned i = worker->directories; i-- > 0;) {
        const char *name = worker->directory[i]->name;
        struct item *item = new_item(dir, name, strlen(name) + 1, 1);
        item->next = first;
        first = item;
        last = last ? last : item;
    }
    if (first)
        push_directories(first, last, worker->directories);
}

// Copies the names of the `count` files from index `at` into one item.
static struct item *make_chunk(struct worker *worker, struct dir *dir, unsigned at, unsigned count)
{
    size_t bytes = 0;
    for (unsigned i = at; i < at + count; i++) {
        size_t length = strlen(worker->file[i]->name) + 1;
        memcpy(worker->text + bytes, worker->file[i]->name, length);
        bytes += length;
    }
    return new_item(dir, worker->text, bytes, count);
}

// Queues chunks while the queue has space. This worker processes the last chunk and the rest.
static void stat_files(struct worker *worker, struct dir *dir)
{
    bool in_directory = enter_if_local(dir, worker->files);
    for (unsigned at = 0; at < worker->files;) {
        if (worker->files - at > chunk_names && chunk_queue_has_space()) {
            push_chunk(make_chunk(worker, dir, at, chunk_names));
            at += chunk_names;
        } else {
            stat_name(worker, dir, in_directory, worker->file[at++]->name);
        }
    }
}

static struct dir *open_directory(struct worker *worker, int parent_fd, const char *name)
{
    struct dir *dir = allocate(sizeof *dir);
    struct statx st;
    dir->fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir->fd < 0)
        die("open directory", name);
    if (statx(dir->fd, "", STAT_FLAGS | AT_EMPTY_PATH, STAT_MASK, &st) != 0)
        die("access", name);
    worker->blocks += blocks_of_statx(&st, true);
    atomic_init(&dir->users, 1);
    return dir;
}

static void walk_directory(struct worker *worker, struct item *item)
{
    struct dir *parent = item->dir;
    struct dir *dir = open_directory(worker, parent ? parent->fd : AT_FDCWD, item->text);
    if (parent)
        release_dir(parent);
    for (;;) {
        long filled = syscall(SYS_getdents64, dir->fd, worker->buffer, BUFFER_BYTES);
        if (filled < 0)
            die("read directory", item->text);
        if (filled == 0)
            break;
        partition_records(worker, dir, filled);
        queue_directories(worker, dir);
        stat_files(worker, dir);
    }
    release_dir(dir);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    bool is_directory;
    if (local && unshare(CLONE_FS) != 0)
        die("get a working directory for", "a thread");
    for (struct item *item; (item = pop(&is_directory)); free(item)) {
        if (is_directory) {
            walk_directory(worker, item);
        } else {
            stat_chunk(worker, item);
            release_dir(item->dir);
        }
    }
    return NULL;
}

// ext2 to ext4, XFS, Btrfs, tmpfs (statfs(2)).
static bool is_local(const char *path)
{
    static const uint32_t magics[] = {0xEF53, 0x58465342, 0x9123683E, 0x01021994};
    struct statfs fs;
    if (statfs(path, &fs) != 0)
        die("access", path);
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if ((uint32_t)fs.f_type == magics[i])
            return true;
    return false;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 5 || (argc == 5 && strcmp(argv[4], "inode") != 0)) {
        fprintf(stderr, "usage: floor DIR [THREADS [CHUNK [inode]]]\n");
        return 2;
    }
    if (argc > 2)
        threads = number(argv[2], THREADS_MAX);
    if (argc > 3)
        chunk_names = (unsigned)number(argv[3], 1 << 20);
    inode_order = argc > 4;
    local = is_local(argv[1]);
    raise_descriptor_limit();
    struct worker *workers = aligned_alloc(_Alignof(struct worker), (size_t)threads * sizeof *workers);
    if (!workers)
        die("allocate memory for", "threads");
    for (int i = 0; i < threads; i++)
        workers[i].blocks = 0;
    struct item *root = new_item(NULL, argv[1], strlen(argv[1]) + 1, 1);
    push_directories(root, root, 1);
    for (int i = 1; i < threads; i++)
        if ((errno = pthread_create(&workers[i].thread, NULL, work, &workers[i])))
            die("start", "a thread");
    work(&workers[0]);
    uint64_t blocks = workers[0].blocks;
    for (int i = 1; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        blocks += workers[i].blocks;
    }
    free(workers);
    printf("%llu\t%s\n", (unsigned long long)(blocks + 1) / 2, argv[1]);
    return fflush(stdout) == 0 ? 0 : 1;
}
