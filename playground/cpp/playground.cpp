// Does one operation on one file or one tree, with one I/O method, and prints one row. The contract
// is ../README.md.
//
// A worker is a thread with its own partition of the file and one buffer. In a tree, the workers
// share a queue of directories instead.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::uint64_t;
using namespace std::string_literals;

constexpr uint64_t page_bytes = 4096, stamp_bytes = 16, timed_every = 64, number_max = std::numeric_limits<uint64_t>::max();

enum Status { failed = 1, misused = 2, unavailable = 3 };

enum Op { write_op, read_op, random_read, append_sync, walk, stat_op };
constexpr std::string_view ops[] = {"write", "read", "random-read", "append-sync", "walk", "stat"};

enum Method { blocking, threads, stream, null };
constexpr std::string_view methods[] = {"blocking", "threads", "stream", "null"};

struct Options {
    int op = -1, method = -1; // -1: not given
    std::string path;
    uint64_t size = 0, block = 0, threads = 1, depth = 1, batch = 1, seed = 1, generation = 1;
    int spins = 0, direct = 0, random_advice = 0;

    bool writes() const { return op == write_op || op == append_sync; }
    bool of_tree() const { return op == walk || op == stat_op; }
} options;

[[noreturn]] void quit(Status status, const std::string &message) {
    static std::mutex quitting; // never unlocked: if several threads fail, only the first prints
    quitting.lock();
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, message.c_str());
    std::_Exit(status);
}

std::string text_of(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail(const std::string &action, int error) { quit(failed, action + " '" + options.path + "': " + text_of(error)); }

[[noreturn]] void out_of_memory() { quit(failed, "cannot allocate memory: " + text_of(ENOMEM)); }

// Repeats a call that a signal interrupts.
auto uninterrupted(auto call) {
    auto result = call();
    while (result < 0 && errno == EINTR) result = call();
    return result;
}

// The order of a random read

uint64_t split_mix(uint64_t &state) {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

std::vector<uint64_t> shuffled(uint64_t first, uint64_t count) {
    struct {
        uint64_t addend, factor;
    } rounds[4];
    uint64_t state = options.seed;
    for (auto &[addend, factor] : rounds) {
        addend = split_mix(state);
        factor = split_mix(state) | 1;
    }
    int bits = std::bit_width(std::max<uint64_t>(count, 2) - 1), shift = std::max(bits / 3, 1);
    auto image = [&](uint64_t x) {
        for (auto [addend, factor] : rounds) {
            x = ((x + addend) * factor) & (number_max >> (64 - bits));
            x ^= x >> shift;
        }
        return x;
    };
    std::vector<uint64_t> order(count);
    for (uint64_t k = 0; k < count; k++) {
        uint64_t place = image(k);
        while (place >= count) place = image(place);
        order[k] = first + place;
    }
    return order;
}

// The pattern

constexpr uint64_t little_endian(uint64_t number) {
    return std::endian::native == std::endian::little ? number : __builtin_bswap64(number);
}

// O_DIRECT requires the alignment.
struct alignas(page_bytes) Page {
    unsigned char bytes[page_bytes];
};

Page filled_page() {
    Page page{};
    uint64_t x = options.seed ^ options.generation * 0x9E3779B97F4A7C15;
    if (x == 0) x = 1;
    for (uint64_t at = stamp_bytes; at < page_bytes; at += 8) {
        x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
        uint64_t number = little_endian(x * 0x2545F4914F6CDD1D);
        std::memcpy(page.bytes + at, &number, sizeof number);
    }
    return page;
}

struct Stamp {
    uint64_t offset, generation;

    explicit Stamp(uint64_t page) : offset(little_endian(page)), generation(little_endian(options.generation)) {}
};
static_assert(sizeof(Stamp) == stamp_bytes);

// The file: the descriptor, and for the method `stream` the file stream of the standard library.
// The stream has no descriptor to sync.
int file = -1;
std::fstream file_stream;

std::barrier<> *phase; // all workers, and main
std::atomic<uint64_t> in_flight, in_flight_max;

void count_begun() {
    uint64_t now = ++in_flight, max = in_flight_max;
    while (now > max && !in_flight_max.compare_exchange_weak(max, now)) {}
}

// Directories to read, and the number of workers without one.
class Directories {
public:
    void add(fs::path path) {
        {
            std::lock_guard locked(mutex);
            paths.push_back(std::move(path));
        }
        changed.notify_one();
    }

    // Returns false when no worker has a directory, and therefore none can be added.
    bool take(fs::path &path) {
        std::unique_lock locked(mutex);
        idle++;
        changed.wait(locked, [this] { return !paths.empty() || idle == options.threads; });
        if (paths.empty()) {
            changed.notify_all();
            return false;
        }
        idle--;
        path = std::move(paths.back());
        paths.pop_back();
        return true;
    }

private:
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<fs::path> paths;
    uint64_t idle = 0;
} directories;

struct Block {
    uint64_t offset, length, moved = 0;
};

class alignas(64) Worker { // no two workers share a cache line
public:
    uint64_t ops = 0, bytes = 0, pages_ok = 0;
    std::vector<uint64_t> latencies_ns;

    Worker(uint64_t first, uint64_t end) : first(first), end(end) {}

    void work() {
        try {
            if (!options.of_tree()) prepare();
        } catch (const std::bad_alloc &) {
            out_of_memory();
        }
        phase->arrive_and_wait(); // all workers are ready
        phase->arrive_and_wait(); // the clock has started
        if (options.of_tree()) run_tree();
        else run_blocks();
        phase->arrive_and_wait(); // the last operation has ended
    }

private:
    uint64_t first, end; // blocks
    std::vector<uint64_t> order; // the blocks in the order of a random read; empty: ascending
    std::vector<Page> buffer; // starts with the page that contains the start of the block

    void prepare() {
        // A block that starts inside a page needs space for the start of that page, and may end
        // inside another.
        buffer.assign(options.block / page_bytes + (options.block % page_bytes ? 2 : 0), filled_page());
        latencies_ns.reserve(options.op == append_sync ? end - first : (end - first) / timed_every + 1);
        if (options.op == random_read) order = shuffled(first, end - first);
    }

    void run_blocks() {
        for (uint64_t number = first; number < end; number++) {
            uint64_t offset = (order.empty() ? number : order[number - first]) * options.block;
            Block block{offset, std::min(options.block, options.size - offset)};
            if (options.writes()) stamp(block);
            bool timed = options.op == append_sync || (number - first) % timed_every == 0;
            auto start = timed ? Clock::now() : Clock::time_point();
            count_begun();
            while (block.moved < block.length) transfer(block);
            if (options.op == append_sync) sync();
            in_flight--;
            if (timed) latencies_ns.push_back((Clock::now() - start) / std::chrono::nanoseconds(1));
            if (!options.writes()) verify(block);
        }
        if (options.method == stream && options.writes() && !file_stream.flush()) fail("cannot write", errno);
    }

    void transfer(Block &block) {
        ssize_t moved = uninterrupted([&] { return call(block); });
        std::string action = options.writes() ? "cannot write" : "cannot read";
        if (moved < 0) fail(action, errno);
        if (moved == 0) quit(failed, action + " '" + options.path + "': unexpected end of file");
        ops++;
        bytes += moved;
        block.moved += moved;
    }

    ssize_t call(const Block &block) {
        unsigned char *rest = buffer.front().bytes + block.offset % page_bytes + block.moved;
        uint64_t length = block.length - block.moved, offset = block.offset + block.moved;
        if (options.method == null) {
            if (!options.writes()) stamp(block);
            return length;
        }
        if (options.method == stream) return call_stream(reinterpret_cast<char *>(rest), length);
        if (options.method == blocking && options.op != random_read)
            return options.writes() ? ::write(file, rest, length) : ::read(file, rest, length);
        return options.writes() ? ::pwrite(file, rest, length, offset) : ::pread(file, rest, length, offset);
    }

    static ssize_t call_stream(char *bytes, std::streamsize length) {
        if (options.writes()) return file_stream.write(bytes, length) ? length : -1;
        file_stream.read(bytes, length);
        if (file_stream.bad()) return -1;
        return file_stream ? length : 0;
    }

    void sync() {
        if (options.method == stream && !file_stream.flush()) fail("cannot write", errno);
        if (uninterrupted([] { return fdatasync(file); }) != 0) fail("cannot sync", errno);
        ops++;
    }

    void stamp(const Block &block) {
        uint64_t page = block.offset / page_bytes * page_bytes, block_end = block.offset + block.length;
        for (auto at = buffer.begin(); page < block_end; page += page_bytes, ++at) {
            Stamp right(page);
            std::memcpy(at->bytes, &right, stamp_bytes);
        }
    }

    // Verifies the stamps of the block and counts the pages that start in it. If two blocks share a
    // stamp, each verifies its part.
    void verify(const Block &block) {
        uint64_t page = block.offset / page_bytes * page_bytes, block_end = block.offset + block.length;
        for (auto at = buffer.begin(); page < block_end; page += page_bytes, ++at) {
            Stamp right(page);
            uint64_t from = page < block.offset ? block.offset - page : 0, to = std::min(stamp_bytes, block_end - page);
            if (from < to && std::memcmp(at->bytes + from, reinterpret_cast<unsigned char *>(&right) + from, to - from) != 0)
                quit(failed, "cannot verify '" + options.path + "': page at " + std::to_string(page) + " is not what was written");
            pages_ok += from == 0;
        }
    }

    void run_tree() {
        try {
            for (fs::path path; directories.take(path);)
                for (const auto &entry : fs::directory_iterator(path))
                    if (count_entry(entry)) directories.add(entry.path());
        } catch (const fs::filesystem_error &error) {
            quit(failed, "cannot "s.append(::ops[options.op]) + " '" + error.path1().string() + "': " + error.code().message());
        }
    }

    // Counts the entry and returns whether it is a directory. Its type comes with its name, but its
    // size does not: std::filesystem would need a second call for it.
    bool count_entry(const fs::directory_entry &entry) {
        ops++;
        if (options.op == walk) return !entry.is_symlink() && entry.is_directory();
        struct stat found;
        if (uninterrupted([&] { return lstat(entry.path().c_str(), &found); }) != 0)
            throw fs::filesystem_error("lstat", entry.path(), std::error_code(errno, std::generic_category()));
        if (S_ISREG(found.st_mode)) bytes += found.st_size;
        return S_ISDIR(found.st_mode);
    }
};

// The row

rusage usage() {
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used;
}

double seconds(timeval from, timeval to) { return double(to.tv_sec - from.tv_sec) + double(to.tv_usec - from.tv_usec) / 1e6; }

void print_row(std::span<const double, 3> clocks, const rusage &before, const rusage &after, std::span<const Worker> workers) {
    uint64_t ops = 0, bytes = 0, pages_ok = 0;
    std::vector<uint64_t> all_ns;
    for (const Worker &worker : workers) {
        ops += worker.ops, bytes += worker.bytes, pages_ok += worker.pages_ok;
        all_ns.insert(all_ns.end(), worker.latencies_ns.begin(), worker.latencies_ns.end());
    }
    std::ranges::sort(all_ns);
    auto rank_us = [&](size_t percent) {
        size_t rank = (all_ns.size() * percent + 99) / 100; // 0: nothing was timed
        return rank ? double(all_ns[rank - 1]) / 1e3 : 0;
    };
    std::printf("seconds=%.9f\tsync_s=%.9f\tclose_s=%.9f", clocks[0], clocks[1], clocks[2]);
    std::printf("\tops=%ju\tbytes=%ju\tpages_ok=%ju", uintmax_t(ops), uintmax_t(bytes), uintmax_t(pages_ok));
    std::printf("\tin_flight_max=%ju", uintmax_t(in_flight_max));
    std::printf("\tcpu_user_s=%.6f", seconds(before.ru_utime, after.ru_utime));
    std::printf("\tcpu_sys_s=%.6f", seconds(before.ru_stime, after.ru_stime));
    std::printf("\tswitches=%ld", after.ru_nvcsw - before.ru_nvcsw);
    std::printf("\tswitches_forced=%ld", after.ru_nivcsw - before.ru_nivcsw);
    std::printf("\tp50_us=%.3f\tp95_us=%.3f\tp99_us=%.3f\tmax_us=%.3f\n", rank_us(50), rank_us(95), rank_us(99), rank_us(100));
    if (std::fflush(stdout) != 0) quit(failed, "cannot write the row: " + text_of(errno));
}

// The command line

[[noreturn]] void misuse(std::string_view thing, const std::string &cause) {
    quit(misused, "cannot use '"s.append(thing) + "': " + cause);
}

uint64_t number(std::string_view text, uint64_t least, uint64_t most) {
    uint64_t value = 0;
    auto [rest, error] = std::from_chars(text.begin(), text.end(), value);
    if (error != std::errc() || rest != text.end() || value < least || value > most)
        misuse(text, "no number from " + std::to_string(least) + " to " + std::to_string(most));
    return value;
}

int choice(std::string_view text, std::span<const std::string_view> words) {
    auto found = std::ranges::find(words, text);
    if (found == words.end()) misuse(text, "no such value");
    return int(found - words.begin());
}

void set(std::string_view name, const char *text) {
    constexpr std::string_view waits[] = {"wait", "spin"}, directs[] = {"no", "yes"}, advices[] = {"normal", "random"};
    if (name == "--op") options.op = choice(text, ops);
    else if (name == "--method") options.method = choice(text, methods);
    else if (name == "--path") options.path = text;
    else if (name == "--size") options.size = number(text, 1, uint64_t(1) << 47);
    else if (name == "--block") options.block = number(text, 1, 1 << 30);
    else if (name == "--threads") options.threads = number(text, 1, 32768);
    else if (name == "--depth") options.depth = number(text, 1, 32768);
    else if (name == "--batch") options.batch = number(text, 1, 32768);
    else if (name == "--wait") options.spins = choice(text, waits);
    else if (name == "--direct") options.direct = choice(text, directs);
    else if (name == "--advice") options.random_advice = choice(text, advices);
    else if (name == "--seed") options.seed = number(text, 0, number_max);
    else if (name == "--generation") options.generation = number(text, 0, number_max);
    else misuse(name, "no such option");
}

void parse(std::span<char *> words) {
    for (size_t i = 0; i < words.size(); i += 2) {
        if (i + 1 == words.size()) misuse(words[i], "no value after it");
        set(words[i], words[i + 1]);
    }
    if (options.op < 0 || options.method < 0 || options.path.empty() || !options.size || !options.block)
        quit(misused, "cannot start: one of --op, --method, --path, --size, --block is missing");
    if (options.direct && (options.size % 512 || options.block % 512))
        misuse("--direct", "--size or --block is no multiple of 512");
    if (options.op == append_sync && (options.threads > 1 || options.depth > 1))
        misuse("--threads", "append-sync has one operation in flight");
    if (options.method != threads) options.threads = 1;
}

// Returns the reason why the method cannot run the operation, or an empty one.
std::string_view refusal(int method) {
    if (method == null && (options.of_tree() || options.op == append_sync)) return "it reads and writes nothing";
    if (method != stream) return "";
    if (options.of_tree()) return "a file stream reads no directory";
    if (options.op == random_read) return "a file stream drops its buffer at each seek";
    return options.direct ? "the buffer of a file stream is not aligned for O_DIRECT" : "";
}

void list() {
    for (int method = 0; std::string_view name : methods) {
        std::string_view reason = refusal(method++);
        std::printf("%s\t%s\n", name.data(), reason.empty() ? "ok" : reason.data());
    }
}

void open_file() {
    int flags = options.writes() ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY;
    flags |= O_CLOEXEC | (options.direct ? O_DIRECT : 0);
    file = uninterrupted([&] { return ::open(options.path.c_str(), flags, 0666); });
    if (file < 0) fail("cannot open", errno);
    int error = options.random_advice && !options.writes() ? posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM) : 0;
    if (error) fail("cannot advise", error);
    if (options.method != stream) return;
    file_stream.open(options.path, std::ios::binary | (options.writes() ? std::ios::out : std::ios::in));
    if (!file_stream) fail("cannot open", errno);
}

void measure() {
    uint64_t blocks = (options.size + options.block - 1) / options.block, count = options.threads;
    std::vector<Worker> workers;
    for (uint64_t i = 0; i < count; i++) workers.emplace_back(i * blocks / count, (i + 1) * blocks / count);
    if (options.of_tree()) {
        directories.add(options.path);
        in_flight_max = count;
    }
    std::barrier<> barrier(std::ptrdiff_t(count + 1));
    phase = &barrier;
    std::vector<std::jthread> running;
    try {
        for (Worker &worker : workers) running.emplace_back(&Worker::work, &worker);
    } catch (const std::system_error &error) {
        quit(unavailable, "cannot start a thread: " + error.code().message());
    }
    barrier.arrive_and_wait();
    rusage before = usage();
    auto start = Clock::now();
    auto elapsed = [start] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    barrier.arrive_and_wait();
    barrier.arrive_and_wait();
    double first = elapsed(), clocks[] = {first, first, first};
    rusage after = usage();
    if (file >= 0) {
        if (options.writes()) {
            if (uninterrupted([] { return fdatasync(file); }) != 0) fail("cannot sync", errno);
            clocks[1] = elapsed();
        }
        if (options.method == stream) file_stream.close();
        if (!file_stream || close(file) != 0) fail("cannot close", errno);
        clocks[2] = elapsed();
    }
    running.clear();
    print_row(clocks, before, after, workers);
}

} // namespace

int main(int count, char **words) {
    if ((count == 2 || count == 3) && words[1] == "--list"s) {
        set("--op", count == 3 ? words[2] : "write");
        list();
        return 0;
    }
    parse({words + 1, words + count});
    // Before the file is truncated: a method that cannot run must not change it.
    std::string_view reason = refusal(options.method);
    if (!reason.empty()) quit(unavailable, "cannot run '"s.append(methods[options.method]) + "': " + reason.data());
    try {
        if (!options.of_tree() && options.method != null) open_file();
        measure();
    } catch (const std::bad_alloc &) {
        out_of_memory();
    }
}
