// The thread pool of the lower-bound programs and its work queues.
//
// One lock guards two stacks: directories, and chunks of names of wide directories. Directories are
// taken first, because they may contain more work. The descriptor of a directory stays open until
// its last child is opened and its last chunk is processed. At most CHUNKS_WAITING chunks per
// thread are queued, so memory does not grow with the width of a directory.
//
// Each program has one C file, which includes this file and defines _GNU_SOURCE.

#pragma once
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 64 * 1024,
    CHUNKS_WAITING = 4,
    THREADS_MAX = 1024,
};

// A directory entry as getdents64 writes it.
struct record {
    uint64_t ino;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

// An open directory with the number of queued items and workers that use its descriptor.
struct dir {
    atomic_int users;
    int fd;
    unsigned path_bytes;
    char path[];  // only set if paths are printed; ends in a slash
};

// A directory to open (one name), or a chunk of names, each terminated by NUL.
struct item {
    struct item *next;
    struct dir *dir;
    unsigned names;
    size_t bytes;
    char text[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct item *directories;  // the two stacks, guarded by `lock`
static struct item *chunks;
static atomic_int chunks_waiting;
static int idle;
static bool finished;
static int threads = 2;

_Noreturn static void die(const char *action, const char *name)
{
    fprintf(stderr, "%s: cannot %s '%s': %s\n", program_invocation_short_name, action, name, strerror(errno));
    exit(1);
}

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory)
        die("allocate memory for", "the walk");
    return memory;
}

static struct item *new_item(struct dir *dir, const char *text, size_t bytes, unsigned names)
{
    struct item *item = allocate(sizeof *item + bytes);
    item->next = NULL;
    item->dir = dir;
    item->names = names;
    item->bytes = bytes;
    memcpy(item->text, text, bytes);
    if (dir)
        atomic_fetch_add_explicit(&dir->users, 1, memory_order_relaxed);
    return item;
}

static void wake(unsigned items)
{
    if (idle == 0)
        return;
    if (items == 1)
        pthread_cond_signal(&more);
    else
        pthread_cond_broadcast(&more);
}

static void push_directories(struct item *first, struct item *last, unsigned count)
{
    pthread_mutex_lock(&lock);
    last->next = directories;
    directories = first;
    wake(count);
    pthread_mutex_unlock(&lock);
}

static inline void push_chunk(struct item *item)
{
    pthread_mutex_lock(&lock);
    item->next = chunks;
    chunks = item;
    chunks_waiting++;
    wake(1);
    pthread_mutex_unlock(&lock);
}

// Relaxed and without the lock: a stale value queues one chunk too many or too few.
static inline bool chunk_queue_has_space(void)
{
    return threads > 1 && atomic_load_explicit(&chunks_waiting, memory_order_relaxed) < CHUNKS_WAITING * threads;
}

// Returns the next item and sets `*is_directory`; NULL once all threads wait.
static struct item *pop(bool *is_directory)
{
    pthread_mutex_lock(&lock);
    while (!directories && !chunks && !finished) {
        if (idle + 1 == threads) {
            finished = true;
            pthread_cond_broadcast(&more);
            break;
        }
        idle++;
        pthread_cond_wait(&more, &lock);
        idle--;
    }
    struct item **stack = directories ? &directories : &chunks;
    struct item *item = *stack;
    *is_directory = stack == &directories;
    if (item) {
        *stack = item->next;
        chunks_waiting -= !*is_directory;
    }
    pthread_mutex_unlock(&lock);
    return item;
}

// Releases one use. Acquire-release: the thread that closes the descriptor must do so after the
// last use by every other thread.
static void release_dir(struct dir *dir)
{
    if (atomic_fetch_sub_explicit(&dir->users, 1, memory_order_acq_rel) == 1) {
        close(dir->fd);
        free(dir);
    }
}

static bool is_dot(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static int number(const char *text, int most)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*end || value < 1 || value > most) {
        fprintf(stderr, "%s: expected a number from 1 to %d: '%s'\n", program_invocation_short_name, most, text);
        exit(2);
    }
    return (int)value;
}

// Wide trees on slow filesystems keep many directories open.
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}
