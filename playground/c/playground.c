/*
 * Does one operation on one file or one tree, with one I/O method, and prints one row. The contract
 * is ../README.md.
 *
 * A worker is a thread with its own partition of the file. A slot holds one operation and its
 * buffer. System calls need one slot; a ring has --depth slots, and a block starts only when a slot
 * is free. The slots bound the operations in flight. The submission queue does not, because the
 * kernel empties it at each submission. In a tree, the workers share the directories instead.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, STAMP = 16, CACHE_LINE = 64, TIMED_EVERY = 64, RING_MAX = 32768 };

enum exit_status { FAILED = 1, MISUSED = 2, UNAVAILABLE = 3 };

enum { WRITE, READ, RANDOM_READ, APPEND_SYNC, WALK, STAT };
static const char *const ops[] = {"write", "read", "random-read", "append-sync", "walk", "stat", NULL};

enum { BLOCKING, THREADS, URING, NO_CALLS };
static const char *const methods[] = {"blocking", "threads", "uring", "null", NULL};

struct slot {
    unsigned char *buffer; /* starts with the page that contains the start of the block */
    uint64_t offset;
    uint32_t length, moved;
    uint64_t start_ns; /* 0: not timed */
};

struct worker {
    _Alignas(CACHE_LINE) pthread_t thread; /* no two workers share a line */
    uint64_t first, next, end; /* blocks */
    uint64_t *order; /* the blocks in the order of a random read; NULL: ascending */
    struct slot *slots, **free;
    uint64_t slot_count, free_count;
    uint64_t ops, bytes, pages_ok, timed;
    uint64_t *latency_ns;
};

static struct {
    int op, method; /* -1: not given */
    const char *path;
    uint64_t size, block, threads, depth, batch, seed, generation;
    int spins, direct, random_advice;
} options = {.op = -1, .method = -1, .threads = 1, .depth = 1, .batch = 1, .seed = 1, .generation = 1};

static int file = -1; /* -1: none */
static pthread_barrier_t barrier; /* all workers, and main */
static atomic_uint_fast64_t in_flight, in_flight_max;

static bool writes(void) { return options.op == WRITE || options.op == APPEND_SYNC; }

static bool of_tree(void) { return options.op == WALK || options.op == STAT; }

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

__attribute__((format(printf, 2, 3))) static _Noreturn void quit(enum exit_status status, const char *format, ...) {
    /* Never unlocked: if several threads fail, only the first prints its error. */
    static pthread_mutex_t quitting = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&quitting);
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(status);
}

static _Noreturn void fail(const char *action, int error) { quit(FAILED, "%s '%s': %s", action, options.path, strerror(error)); }

static void *allocated(void *memory) {
    if (!memory) quit(FAILED, "cannot allocate memory: %s", strerror(ENOMEM));
    return memory;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Operations are counted before their submission and until their completion is known. The count is
 * therefore an upper bound of the operations in flight. */
static void count_begun(uint64_t operations) {
    uint64_t now = atomic_fetch_add(&in_flight, operations) + operations, max = atomic_load(&in_flight_max);
    while (now > max && !atomic_compare_exchange_weak(&in_flight_max, &max, now)) {}
}

static void count_ended(uint64_t operations) { atomic_fetch_sub(&in_flight, operations); }

/* The order of a random read */

static uint64_t split_mix(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

struct round {
    uint64_t addend, factor;
};

static uint64_t image(uint64_t x, const struct round rounds[4], int bits) {
    for (int i = 0; i < 4; i++) {
        x = (x + rounds[i].addend) * rounds[i].factor & (UINT64_MAX >> (64 - bits));
        x ^= x >> (bits > 3 ? bits / 3 : 1);
    }
    return x;
}

static void shuffle(uint64_t *order, uint64_t first, uint64_t count) {
    struct round rounds[4];
    uint64_t state = options.seed;
    for (int i = 0; i < 4; i++) {
        rounds[i].addend = split_mix(&state);
        rounds[i].factor = split_mix(&state) | 1;
    }
    int bits = 64 - __builtin_clzll(count > 2 ? count - 1 : 1);
    for (uint64_t k = 0; k < count; k++) {
        uint64_t place = image(k, rounds, bits);
        while (place >= count) place = image(place, rounds, bits);
        order[k] = first + place;
    }
}

/* The pattern */

static void fill(unsigned char *buffer, uint64_t bytes) {
    uint64_t x = options.seed ^ options.generation * 0x9E3779B97F4A7C15, page[PAGE / 8] = {0};
    if (x == 0) x = 1;
    for (int i = STAMP / 8; i < PAGE / 8; i++) {
        x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
        page[i] = htole64(x * 0x2545F4914F6CDD1D);
    }
    for (uint64_t at = 0; at < bytes; at += PAGE) memcpy(buffer + at, page, PAGE);
}

static void stamp(const struct slot *slot) {
    uint64_t page = slot->offset / PAGE * PAGE, end = slot->offset + slot->length;
    for (unsigned char *at = slot->buffer; page < end; page += PAGE, at += PAGE)
        memcpy(at, (uint64_t[]){htole64(page), htole64(options.generation)}, STAMP);
}

/* Verifies the stamps of the block and returns the number of pages that start in it. If two blocks
 * share a stamp, each verifies its part. */
static uint64_t verify(const struct slot *slot) {
    uint64_t page = slot->offset / PAGE * PAGE, end = slot->offset + slot->length, begun = 0;
    for (unsigned char *at = slot->buffer; page < end; page += PAGE, at += PAGE) {
        uint64_t words[] = {htole64(page), htole64(options.generation)};
        uint64_t from = page < slot->offset ? slot->offset - page : 0, to = least(STAMP, end - page);
        if (from < to && memcmp(at + from, (unsigned char *)words + from, to - from) != 0)
            quit(FAILED, "cannot verify '%s': page at %" PRIu64 " is not what was written", options.path, page);
        begun += from == 0;
    }
    return begun;
}

/* Blocks, common to all methods */

static struct slot *begin(struct worker *w) {
    struct slot *slot = w->free[--w->free_count];
    uint64_t number = w->next++ - w->first;
    slot->offset = (w->order ? w->order[number] : w->first + number) * options.block;
    slot->length = least(options.block, options.size - slot->offset);
    slot->moved = 0;
    if (writes()) stamp(slot);
    slot->start_ns = options.op == APPEND_SYNC || number % TIMED_EVERY == 0 ? now_ns() : 0;
    return slot;
}

static unsigned char *rest(const struct slot *slot) { return slot->buffer + slot->offset % PAGE + slot->moved; }

/* The next operation of a block that has been moved is its sync. */
static bool to_sync(const struct slot *slot) { return slot->moved == slot->length; }

/* Processes the result of an operation (bytes, or a negative errno). Returns whether the block is
 * complete. */
static bool advance(struct worker *w, struct slot *slot, int64_t result) {
    if (result == -EINTR || result == -EAGAIN) return false;
    bool synced = to_sync(slot);
    const char *action = synced ? "cannot sync" : writes() ? "cannot write" : "cannot read";
    if (result < 0) fail(action, -result);
    if (result == 0 && !synced) quit(FAILED, "%s '%s': unexpected end of file", action, options.path);
    w->ops++;
    w->bytes += result;
    slot->moved += result;
    if (slot->moved < slot->length || (options.op == APPEND_SYNC && !synced)) return false;
    if (slot->start_ns) w->latency_ns[w->timed++] = now_ns() - slot->start_ns;
    if (!writes()) w->pages_ok += verify(slot);
    w->free[w->free_count++] = slot;
    return true;
}

/* Methods: blocking, threads and null */

static int64_t call(const struct slot *slot) {
    uint64_t offset = slot->offset + slot->moved, length = slot->length - slot->moved;
    ssize_t moved;
    if (options.method == NO_CALLS) {
        if (!writes()) stamp(slot);
        return length;
    }
    if (to_sync(slot)) moved = fdatasync(file);
    else if (options.method == BLOCKING && options.op != RANDOM_READ)
        moved = writes() ? write(file, rest(slot), length) : read(file, rest(slot), length);
    else if (writes()) moved = pwrite(file, rest(slot), length, offset);
    else moved = pread(file, rest(slot), length, offset);
    return moved < 0 ? -errno : moved;
}

static void run_calls(struct worker *w) {
    while (w->next < w->end) {
        struct slot *slot = begin(w);
        count_begun(1);
        while (!advance(w, slot, call(slot))) {}
        count_ended(1);
    }
}

/* Method: uring */

/* With --depth entries the kernel may use as many workers. The completion queue has twice as many
 * and cannot overflow. */
static int make_ring(struct io_uring *ring) {
    /* Deferred task work only runs when the thread enters the kernel to wait, which a spinning
     * thread does not. */
    struct io_uring_params params = {.flags = options.spins ? 0 : IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
    int error = io_uring_queue_init_params(options.depth, ring, &params);
    /* Linux before 6.1 rejects these flags. */
    return error == -EINVAL ? io_uring_queue_init(options.depth, ring, 0) : error;
}

static void need_ring(struct io_uring *ring) {
    int error = make_ring(ring);
    if (error < 0) quit(UNAVAILABLE, "cannot run 'uring': %s", strerror(-error));
}

static void queue(struct io_uring *ring, struct slot *slot) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring); /* never NULL: no slot is queued twice */
    uint64_t offset = slot->offset + slot->moved, length = slot->length - slot->moved;
    if (to_sync(slot)) io_uring_prep_fsync(sqe, file, IORING_FSYNC_DATASYNC);
    else io_uring_prep_rw(writes() ? IORING_OP_WRITE : IORING_OP_READ, sqe, file, rest(slot), length, offset);
    io_uring_sqe_set_data(sqe, slot);
}

/* Returns the number of blocks to start now: a batch, or the rest if that is less; 0 while too few
 * slots are free. */
static uint64_t startable(const struct worker *w) {
    uint64_t batch = least(least(options.batch, w->slot_count), w->end - w->next);
    return batch <= w->free_count ? batch : 0;
}

static void submit(struct io_uring *ring, bool wait) {
    if (!wait && io_uring_sq_ready(ring) == 0) return;
    int result = io_uring_submit_and_wait(ring, wait);
    if (result >= 0 || result == -EINTR) return;
    if (result != -EAGAIN && result != -EBUSY) fail("cannot submit operations on", -result);
    /* The kernel is out of memory for requests. Entries that it did not consume stay queued until
     * some requests complete. */
    io_uring_get_events(ring);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void reap(struct worker *w, struct io_uring *ring) {
    unsigned head, seen = 0, ended = 0;
    struct io_uring_cqe *cqe;
    io_uring_for_each_cqe(ring, head, cqe) {
        struct slot *slot = io_uring_cqe_get_data(cqe);
        if (advance(w, slot, cqe->res)) ended++;
        else queue(ring, slot);
        seen++;
    }
    io_uring_cq_advance(ring, seen);
    if (ended) count_ended(ended);
}

static void run_ring(struct worker *w, struct io_uring *ring) {
    while (w->next < w->end || w->free_count < w->slot_count) {
        uint64_t batch = startable(w);
        for (uint64_t i = 0; i < batch; i++) queue(ring, begin(w));
        if (batch) count_begun(batch);
        submit(ring, !options.spins && startable(w) == 0);
        reap(w, ring);
    }
}

/* Trees */

struct directory {
    struct directory *next;
    char path[];
};

/* The directories to read, and the workers without one. */
static pthread_mutex_t tree_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t tree_changed = PTHREAD_COND_INITIALIZER;
static struct directory *directories;
static uint64_t idle;

static void add_directory(const char *parent, const char *separator, const char *name) {
    struct directory *added = allocated(malloc(sizeof *added + strlen(parent) + strlen(separator) + strlen(name) + 1));
    stpcpy(stpcpy(stpcpy(added->path, parent), separator), name);
    pthread_mutex_lock(&tree_lock);
    added->next = directories;
    directories = added;
    pthread_mutex_unlock(&tree_lock);
    pthread_cond_signal(&tree_changed);
}

/* Returns NULL when no worker has a directory, and therefore none can be added. */
static struct directory *take_directory(void) {
    pthread_mutex_lock(&tree_lock);
    idle++;
    while (!directories && idle < options.threads) pthread_cond_wait(&tree_changed, &tree_lock);
    struct directory *taken = directories;
    if (taken) {
        directories = taken->next;
        idle--;
    } else {
        pthread_cond_broadcast(&tree_changed);
    }
    pthread_mutex_unlock(&tree_lock);
    return taken;
}

static _Noreturn void fail_below(const char *path, const char *separator, const char *name) {
    quit(FAILED, "cannot %s '%s%s%s': %s", ops[options.op], path, separator, name, strerror(errno));
}

/* Counts the entry and returns whether it is a directory. */
static bool count_entry(struct worker *w, int parent, const char *path, const struct dirent *entry) {
    w->ops++;
    if (options.op == WALK && entry->d_type != DT_UNKNOWN) return entry->d_type == DT_DIR;
    struct stat found;
    if (fstatat(parent, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0) fail_below(path, "/", entry->d_name);
    if (options.op == STAT && S_ISREG(found.st_mode)) w->bytes += found.st_size;
    return S_ISDIR(found.st_mode);
}

static void read_directory(struct worker *w, const char *path) {
    DIR *opened = opendir(path);
    if (!opened) fail_below(path, "", "");
    for (struct dirent *entry; errno = 0, (entry = readdir(opened)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (count_entry(w, dirfd(opened), path, entry)) add_directory(path, "/", entry->d_name);
    }
    if (errno) fail_below(path, "", "");
    closedir(opened);
}

static void run_tree(struct worker *w) {
    for (struct directory *taken; (taken = take_directory()) != NULL; free(taken)) read_directory(w, taken->path);
}

/* Workers */

static void prepare(struct worker *w) {
    uint64_t blocks = w->end - w->first;
    /* A block that starts inside a page needs space for the start of that page, and may end inside
     * another. */
    uint64_t span = options.block % PAGE ? (options.block / PAGE + 2) * PAGE : options.block;
    w->slot_count = w->free_count = least(options.method == URING ? options.depth : 1, blocks);
    w->slots = allocated(calloc(w->slot_count + 1, sizeof *w->slots));
    w->free = allocated(calloc(w->slot_count + 1, sizeof *w->free));
    w->latency_ns = allocated(calloc(options.op == APPEND_SYNC ? blocks : blocks / TIMED_EVERY + 1, sizeof *w->latency_ns));
    if (options.op == RANDOM_READ) {
        w->order = allocated(calloc(blocks + 1, sizeof *w->order));
        shuffle(w->order, w->first, blocks);
    }
    unsigned char *buffers = allocated(aligned_alloc(PAGE, w->slot_count * span + PAGE));
    fill(buffers, w->slot_count * span);
    for (uint64_t i = 0; i < w->slot_count; i++) {
        w->slots[i].buffer = buffers + i * span;
        w->free[i] = &w->slots[i];
    }
}

static void *work(void *argument) {
    struct worker *w = argument;
    struct io_uring ring;
    bool rings = options.method == URING;
    if (!of_tree()) prepare(w);
    if (rings) need_ring(&ring);
    pthread_barrier_wait(&barrier); /* all workers are ready */
    pthread_barrier_wait(&barrier); /* the clock has started */
    if (of_tree()) run_tree(w);
    else if (rings) run_ring(w, &ring);
    else run_calls(w);
    pthread_barrier_wait(&barrier); /* the last operation has ended */
    if (rings) io_uring_queue_exit(&ring);
    return NULL;
}

static void start(struct worker *workers) {
    uint64_t blocks = (options.size + options.block - 1) / options.block, count = options.threads;
    if (of_tree()) {
        add_directory(options.path, "", "");
        atomic_store(&in_flight_max, count);
    }
    pthread_barrier_init(&barrier, NULL, count + 1);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t first = i * blocks / count;
        workers[i] = (struct worker){.first = first, .next = first, .end = (i + 1) * blocks / count};
        int error = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        if (error) quit(UNAVAILABLE, "cannot start a thread: %s", strerror(error));
    }
}

/* The row */

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double seconds(struct timeval from, struct timeval to) {
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_usec - from.tv_usec) / 1e6;
}

static void print_row(const uint64_t clocks_ns[3], const struct rusage usage[2], const struct worker *workers) {
    struct worker all = {0};
    for (uint64_t i = 0; i < options.threads; i++) all.timed += workers[i].timed;
    all.latency_ns = allocated(calloc(all.timed + 1, sizeof *all.latency_ns));
    all.timed = 0;
    for (uint64_t i = 0; i < options.threads; i++) {
        const struct worker *w = &workers[i];
        all.ops += w->ops, all.bytes += w->bytes, all.pages_ok += w->pages_ok;
        if (w->timed) memcpy(all.latency_ns + all.timed, w->latency_ns, w->timed * sizeof *w->latency_ns);
        all.timed += w->timed;
    }
    qsort(all.latency_ns, all.timed, sizeof *all.latency_ns, by_value);
    printf("seconds=%.9f\tsync_s=%.9f\tclose_s=%.9f", clocks_ns[0] / 1e9, clocks_ns[1] / 1e9, clocks_ns[2] / 1e9);
    printf("\tops=%" PRIu64 "\tbytes=%" PRIu64 "\tpages_ok=%" PRIu64, all.ops, all.bytes, all.pages_ok);
    printf("\tin_flight_max=%" PRIuFAST64, atomic_load(&in_flight_max));
    printf("\tcpu_user_s=%.6f", seconds(usage[0].ru_utime, usage[1].ru_utime));
    printf("\tcpu_sys_s=%.6f", seconds(usage[0].ru_stime, usage[1].ru_stime));
    printf("\tswitches=%ld", usage[1].ru_nvcsw - usage[0].ru_nvcsw);
    printf("\tswitches_forced=%ld", usage[1].ru_nivcsw - usage[0].ru_nivcsw);
    static const struct { const char *name; uint64_t percent; } ranks[] = {{"p50", 50}, {"p95", 95}, {"p99", 99}, {"max", 100}};
    for (int i = 0; i < 4; i++) {
        uint64_t rank = (all.timed * ranks[i].percent + 99) / 100; /* 0: nothing was timed */
        printf("\t%s_us=%.3f", ranks[i].name, rank ? all.latency_ns[rank - 1] / 1e3 : 0);
    }
    putchar('\n');
    if (fflush(stdout) != 0) quit(FAILED, "cannot write the row: %s", strerror(errno));
}

/* The command line */

static const struct setting {
    const char *name;
    uint64_t *number, from, to;
    int *choice;
    const char *const *words; /* the choices */
    const char **text;
} settings[] = {
    {"--op", .choice = &options.op, .words = ops},
    {"--method", .choice = &options.method, .words = methods},
    {"--path", .text = &options.path},
    {"--size", .number = &options.size, 1, (uint64_t)1 << 47},
    {"--block", .number = &options.block, 1, 1 << 30},
    {"--threads", .number = &options.threads, 1, RING_MAX},
    {"--depth", .number = &options.depth, 1, RING_MAX},
    {"--batch", .number = &options.batch, 1, RING_MAX},
    {"--wait", .choice = &options.spins, .words = (const char *const[]){"wait", "spin", NULL}},
    {"--direct", .choice = &options.direct, .words = (const char *const[]){"no", "yes", NULL}},
    {"--advice", .choice = &options.random_advice, .words = (const char *const[]){"normal", "random", NULL}},
    {"--seed", .number = &options.seed, 0, UINT64_MAX},
    {"--generation", .number = &options.generation, 0, UINT64_MAX},
};

static bool set_number(const struct setting *s, const char *text) {
    errno = 0;
    *s->number = strtoull(text, NULL, 10);
    return text[0] && !text[strspn(text, "0123456789")] && !errno && s->from <= *s->number && *s->number <= s->to;
}

static bool set_choice(const struct setting *s, const char *text) {
    for (*s->choice = 0; s->words[*s->choice]; ++*s->choice)
        if (strcmp(text, s->words[*s->choice]) == 0) return true;
    return false;
}

static void set(const char *name, const char *text) {
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const struct setting *s = &settings[i];
        if (strcmp(name, s->name) != 0) continue;
        if (s->text) *s->text = text;
        if (s->text || (s->number ? set_number(s, text) : set_choice(s, text))) return;
        quit(MISUSED, "cannot use '%s': %s has no such value", text, name);
    }
    quit(MISUSED, "cannot use '%s': no such option", name);
}

static void parse(int count, char **words) {
    for (int i = 1; i < count; i += 2) {
        if (i + 1 == count) quit(MISUSED, "cannot use '%s': no value after it", words[i]);
        set(words[i], words[i + 1]);
    }
    if (options.op < 0 || options.method < 0 || !options.path || !options.size || !options.block)
        quit(MISUSED, "cannot start: one of --op, --method, --path, --size, --block is missing");
    if (options.direct && (options.size % 512 || options.block % 512))
        quit(MISUSED, "cannot use '--direct': --size or --block is no multiple of 512");
    if (options.op == APPEND_SYNC && (options.threads > 1 || options.depth > 1))
        quit(MISUSED, "cannot use '--threads' or '--depth': append-sync has one operation in flight");
    if (options.method == BLOCKING || options.method == NO_CALLS) options.threads = 1;
}

/* Returns the reason why the method cannot run the operation, or NULL. */
static const char *refusal(int method) {
    if (method == URING && of_tree()) return "no operation of a ring reads a directory";
    if (method == NO_CALLS && (of_tree() || options.op == APPEND_SYNC)) return "it reads and writes nothing";
    if (method != URING) return NULL;
    struct io_uring ring;
    int error = make_ring(&ring);
    if (error < 0) return strerror(-error);
    io_uring_queue_exit(&ring);
    return NULL;
}

static void list(void) {
    for (int i = 0; methods[i]; i++) {
        const char *reason = refusal(i);
        printf("%s\t%s\n", methods[i], reason ? reason : "ok");
    }
}

static void open_file(void) {
    int flags = writes() ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY;
    file = open(options.path, flags | O_CLOEXEC | (options.direct ? O_DIRECT : 0), 0666);
    if (file < 0) fail("cannot open", errno);
    int error = options.random_advice && !writes() ? posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM) : 0;
    if (error) fail("cannot advise", error);
}

static void end_file(uint64_t clocks_ns[3], uint64_t start_ns) {
    if (writes()) {
        if (fdatasync(file) != 0) fail("cannot sync", errno);
        clocks_ns[1] = now_ns() - start_ns;
    }
    if (close(file) != 0) fail("cannot close", errno);
    clocks_ns[2] = now_ns() - start_ns;
}

int main(int count, char **words) {
    if ((count == 2 || count == 3) && strcmp(words[1], "--list") == 0) {
        set("--op", count == 3 ? words[2] : "write");
        return list(), 0;
    }
    parse(count, words);
    /* Before the file is truncated: a method that cannot run must not change it. */
    const char *reason = refusal(options.method);
    if (reason) quit(UNAVAILABLE, "cannot run '%s': %s", methods[options.method], reason);
    if (!of_tree() && options.method != NO_CALLS) open_file();
    struct worker *workers = allocated(aligned_alloc(CACHE_LINE, options.threads * sizeof *workers));
    struct rusage usage[2];
    uint64_t clocks_ns[3];
    start(workers);
    pthread_barrier_wait(&barrier);
    getrusage(RUSAGE_SELF, &usage[0]);
    uint64_t start_ns = now_ns();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    clocks_ns[0] = clocks_ns[1] = clocks_ns[2] = now_ns() - start_ns;
    getrusage(RUSAGE_SELF, &usage[1]);
    if (file >= 0) end_file(clocks_ns, start_ns);
    for (uint64_t i = 0; i < options.threads; i++) pthread_join(workers[i].thread, NULL);
    print_row(clocks_ns, usage, workers);
    return 0;
}
