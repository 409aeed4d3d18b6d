// A lower bound for `find DIR` to a pipe: only the system calls that the result requires, on plain
// threads.
//
//   names DIR [THREADS [null]]        (defaults: 2 threads, each path ends in a newline)
//
// For each directory: openat relative to its parent, getdents64 until the end, close. An entry is
// only looked up if the filesystem does not report its type. The output has the paths of `find DIR`
// in the order in which the threads find them; each thread fills a buffer with whole lines and
// writes it at once. The program keeps no order and exits at the first error.
//
// pool.h distributes the work to the threads.

#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "pool.h"

enum { OUTPUT_BYTES = 64 * 1024 };

struct worker {
    pthread_t thread;
    size_t printed;  // bytes of `output` in use
    _Alignas(128) char buffer[BUFFER_BYTES];
    char output[OUTPUT_BYTES];
};

static pthread_mutex_t output_lock = PTHREAD_MUTEX_INITIALIZER;
static char line_end = '\n';

// Locked: a pipe splits large writes, and output of another thread could be inserted.
static void flush(struct worker *worker)
{
    pthread_mutex_lock(&output_lock);
    for (size_t at = 0; at < worker->printed;) {
        ssize_t count = write(STDOUT_FILENO, worker->output + at, worker->printed - at);
        if (count < 0 && errno != EINTR)
            die("write to", "standard output");
        at += count > 0 ? (size_t)count : 0;
    }
    pthread_mutex_unlock(&output_lock);
    worker->printed = 0;
}

static void print(struct worker *worker, const char *path, size_t path_bytes, const char *name, size_t name_bytes)
{
    if (path_bytes + name_bytes + 1 > OUTPUT_BYTES - worker->printed)
        flush(worker);
    if (path_bytes + name_bytes + 1 > OUTPUT_BYTES) {
        errno = ENAMETOOLONG;
        die("print", name);
    }
    char *to = worker->output + worker->printed;
    memcpy(to, path, path_bytes);
    memcpy(to + path_bytes, name, name_bytes);
    to[path_bytes + name_bytes] = line_end;
    worker->printed += path_bytes + name_bytes + 1;
}

static bool is_directory(struct dir *dir, const struct record *record)
{
    struct stat st;
    if (record->type != DT_UNKNOWN)
        return record->type == DT_DIR;
    if (fstatat(dir->fd, record->name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0)
        die("access", record->name);
    return S_ISDIR(st.st_mode);
}

// Prints the records of one getdents64 call and queues the directories, the first on top of the
// stack.
static void print_records(struct worker *worker, struct dir *dir, long filled)
{
    struct item *first = NULL, *last = NULL;
    unsigned count = 0;
    for (long at = 0; at < filled;) {
        struct record *record = (struct record *)(worker->buffer + at);
        at += record->length;
        if (is_dot(record->name))
            continue;
        size_t length = strlen(record->name);
        print(worker, dir->path, dir->path_bytes, record->name, length);
        if (!is_directory(dir, record))
            continue;
        struct item *item = new_item(dir, record->name, length + 1, 1);
        *(last ? &last->next : &first) = item;
        last = item;
        count++;
    }
    if (first)
        push_directories(first, last, count);
}

static struct dir *open_directory(struct dir *parent, const struct item *item)
{
    size_t above = parent ? parent->path_bytes : 0;
    struct dir *dir = allocate(sizeof *dir + above + item->bytes);
    if (parent)
        memcpy(dir->path, parent->path, above);
    memcpy(dir->path + above, item->text, item->bytes);
    dir->path[above + item->bytes - 1] = '/';
    dir->path_bytes = (unsigned)(above + item->bytes);
    dir->fd = openat(parent ? parent->fd : AT_FDCWD, item->text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir->fd < 0)
        die("open directory", item->text);
    atomic_init(&dir->users, 1);
    return dir;
}

static void walk_directory(struct worker *worker, struct item *item)
{
    struct dir *parent = item->dir;
    struct dir *dir = open_directory(parent, item);
    if (parent)
        release_dir(parent);
    for (;;) {
        long filled = syscall(SYS_getdents64, dir->fd, worker->buffer, BUFFER_BYTES);
        if (filled < 0)
            die("read directory", item->text);
        if (filled == 0)
            break;
        print_records(worker, dir, filled);
    }
    release_dir(dir);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    bool always;
    for (struct item *item; (item = pop(&always)); free(item))
        walk_directory(worker, item);
    flush(worker);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4 || (argc == 4 && strcmp(argv[3], "null") != 0)) {
        fprintf(stderr, "usage: names DIR [THREADS [null]]\n");
        return 2;
    }
    if (argc > 2)
        threads = number(argv[2], THREADS_MAX);
    if (argc > 3)
        line_end = '\0';
    raise_descriptor_limit();
    struct worker *workers = aligned_alloc(_Alignof(struct worker), (size_t)threads * sizeof *workers);
    if (!workers)
        die("allocate memory for", "threads");
    for (int i = 0; i < threads; i++)
        workers[i].printed = 0;
    print(&workers[0], "", 0, argv[1], strlen(argv[1]));
    struct item *root = new_item(NULL, argv[1], strlen(argv[1]) + 1, 1);
    push_directories(root, root, 1);
    for (int i = 1; i < threads; i++)
        if ((errno = pthread_create(&workers[i].thread, NULL, work, &workers[i])))
            die("start", "a thread");
    work(&workers[0]);
    for (int i = 1; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    free(workers);
    return 0;
}
