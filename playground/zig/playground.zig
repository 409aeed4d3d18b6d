//! Does one operation on one file or one tree, with one I/O method, and prints one row. The
//! contract is ../README.md.
//!
//! A worker is a thread with its own partition of the file. A slot holds one operation and its
//! buffer. System calls need one slot; a ring has --depth slots, and a block starts only when a
//! slot is free. The slots bound the operations in flight. The submission queue does not, because
//! the kernel empties it at each submission. In a tree, the workers share the directories instead.
//!
//! For Zig 0.15.

const std = @import("std");
const linux = std.os.linux;

const page = 4096;
const Stamp = [16]u8;
const timed_every = 64;
const ring_max = 32768;

const Op = enum {
    write,
    read,
    @"random-read",
    @"append-sync",
    walk,
    stat,

    fn writes(op: Op) bool {
        return op == .write or op == .@"append-sync";
    }

    fn ofTree(op: Op) bool {
        return op == .walk or op == .stat;
    }
};

const Method = enum { blocking, threads, uring, null };
const Status = enum(u8) { failed = 1, misused = 2, unavailable = 3 };

/// The command line options. Each field name is the option name without the dashes; fields without
/// a default are required.
const Options = struct {
    op: Op,
    method: Method,
    path: [:0]const u8,
    size: u64,
    block: u64,
    threads: u64 = 1,
    depth: u64 = 1,
    batch: u64 = 1,
    wait: enum { wait, spin } = .wait,
    direct: enum { no, yes } = .no,
    advice: enum { normal, random } = .normal,
    seed: u64 = 1,
    generation: u64 = 1,

    fn limits(comptime name: []const u8) [2]u64 {
        if (std.mem.eql(u8, name, "size")) return .{ 1, 1 << 47 };
        if (std.mem.eql(u8, name, "block")) return .{ 1, 1 << 30 };
        if (std.mem.eql(u8, name, "seed") or std.mem.eql(u8, name, "generation")) return .{ 0, std.math.maxInt(u64) };
        return .{ 1, ring_max };
    }
};

var options: Options = undefined;
var program: []const u8 = "playground";
var file: ?linux.fd_t = null;
var in_flight = std.atomic.Value(u64).init(0);
var in_flight_max = std.atomic.Value(u64).init(0);
const allocator = std.heap.smp_allocator;

/// Never unlocked: if several threads fail, only the first prints its error.
var quitting: std.Thread.Mutex = .{};

fn quit(status: Status, comptime format: []const u8, arguments: anytype) noreturn {
    quitting.lock();
    std.debug.print("{s}: " ++ format ++ "\n", .{program} ++ arguments);
    std.process.exit(@intFromEnum(status));
}

extern fn strerror(errno: c_int) [*:0]const u8;

fn words(errno: linux.E) [*:0]const u8 {
    return strerror(@intFromEnum(errno));
}

/// Returns the result of a system call, or exits the program on an error.
fn must(action: []const u8, path: []const u8, result: usize) usize {
    const errno = linux.E.init(result);
    if (errno != .SUCCESS) quit(.failed, "cannot {s} '{s}': {s}", .{ action, path, words(errno) });
    return result;
}

fn allocated(memory: anytype) @typeInfo(@TypeOf(memory)).error_union.payload {
    return memory catch quit(.failed, "cannot allocate memory: {s}", .{words(.NOMEM)});
}

fn allocate(comptime T: type, count: u64) []T {
    return allocated(allocator.alignedAlloc(T, .fromByteUnits(page), count));
}

/// Counts operations before their submission. They are counted until their completion is known, so
/// the count is an upper bound of the operations in flight.
fn countBegun(operations: u64) void {
    const current = in_flight.fetchAdd(operations, .monotonic) + operations;
    // The maximum rarely changes, and a load leaves the cache line shared between the threads.
    if (current > in_flight_max.load(.monotonic)) _ = in_flight_max.fetchMax(current, .monotonic);
}

fn countEnded(operations: u64) void {
    _ = in_flight.fetchSub(operations, .monotonic);
}

/// Assigns the blocks from `first` on in the order of a random read.
fn shuffle(order: []u64, first: u64) void {
    var random: std.Random.SplitMix64 = .init(options.seed);
    var rounds: [4]Round = undefined;
    for (&rounds) |*round| round.* = .{ .addend = random.next(), .factor = random.next() | 1 };
    const bits: u6 = @intCast(64 - @clz(@max(order.len, 2) - 1));
    for (order, 0..) |*block, k| {
        var place = image(k, &rounds, bits);
        while (place >= order.len) place = image(place, &rounds, bits);
        block.* = first + place;
    }
}

const Round = struct { addend: u64, factor: u64 };

fn image(number: u64, rounds: *const [4]Round, bits: u6) u64 {
    const mask = (@as(u64, 1) << bits) - 1;
    var x = number;
    for (rounds) |round| {
        x = (x +% round.addend) *% round.factor & mask;
        x ^= x >> @max(bits / 3, 1);
    }
    return x;
}

fn fill(buffers: []u8) void {
    var pattern = [_]u8{0} ** page;
    var x = options.seed ^ options.generation *% 0x9E3779B97F4A7C15;
    if (x == 0) x = 1;
    var at: usize = @sizeOf(Stamp);
    while (at < page) : (at += 8) {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        std.mem.writeInt(u64, pattern[at..][0..8], x *% 0x2545F4914F6CDD1D, .little);
    }
    at = 0;
    while (at < buffers.len) : (at += page) @memcpy(buffers[at..][0..page], &pattern);
}

fn stampOf(offset: u64) Stamp {
    var stamp: Stamp = undefined;
    std.mem.writeInt(u64, stamp[0..8], offset, .little);
    std.mem.writeInt(u64, stamp[8..16], options.generation, .little);
    return stamp;
}

const Slot = struct {
    /// Starts with the page that contains the start of the block.
    buffer: []u8,
    offset: u64,
    length: u64,
    moved: u64,
    /// The time of submission, if the operation is timed.
    start: ?std.time.Instant,

    /// Returns whether the next operation of the block is its sync.
    fn toSync(slot: *const Slot) bool {
        return slot.moved == slot.length;
    }

    /// Returns the part of the block that has not been transferred.
    fn rest(slot: *const Slot) []u8 {
        return slot.buffer[slot.offset % page ..][slot.moved..slot.length];
    }

    fn stamp(slot: *const Slot) void {
        const base = slot.offset - slot.offset % page;
        var at: u64 = 0;
        while (base + at < slot.offset + slot.length) : (at += page)
            slot.buffer[at..][0..@sizeOf(Stamp)].* = stampOf(base + at);
    }

    /// Verifies the stamps of the block and returns the number of pages that start in it. If two
    /// blocks share a stamp, each verifies its part.
    fn verify(slot: *const Slot) u64 {
        const base = slot.offset - slot.offset % page;
        const end = slot.offset + slot.length;
        var begun: u64 = 0;
        var at: u64 = 0;
        while (base + at < end) : (at += page) {
            const from = slot.offset -| (base + at);
            const to = @min(@sizeOf(Stamp), end - base - at);
            if (from < to and !std.mem.eql(u8, slot.buffer[at..][from..to], stampOf(base + at)[from..to]))
                quit(.failed, "cannot verify '{s}': page at {d} is not what was written", .{ options.path, base + at });
            if (from == 0) begun += 1;
        }
        return begun;
    }
};

/// The directories to read, shared by the workers.
const Directories = struct {
    mutex: std.Thread.Mutex = .{},
    changed: std.Thread.Condition = .{},
    paths: std.ArrayList([:0]const u8) = .empty,
    /// The number of workers without a directory.
    idle: u64 = 0,

    fn add(d: *Directories, path: [:0]const u8) void {
        d.mutex.lock();
        allocated(d.paths.append(allocator, path));
        d.mutex.unlock();
        d.changed.signal();
    }

    /// Returns null when no worker has a directory, and therefore none can be added.
    fn take(d: *Directories) ?[:0]const u8 {
        d.mutex.lock();
        defer d.mutex.unlock();
        d.idle += 1;
        while (d.paths.items.len == 0 and d.idle < options.threads) d.changed.wait(&d.mutex);
        if (d.paths.pop()) |path| {
            d.idle -= 1;
            return path;
        }
        d.changed.broadcast();
        return null;
    }
};

var directories: Directories = .{};

/// Synchronises the workers with `main`.
const StartBarrier = struct {
    ready: std.Thread.WaitGroup = .{},
    start: std.Thread.ResetEvent = .{},
    ended: std.Thread.WaitGroup = .{},
};

const Worker = struct {
    /// No two workers share a cache line.
    thread: std.Thread align(std.atomic.cache_line) = undefined,
    /// Block numbers of the partition.
    first: u64,
    next: u64,
    end: u64,
    /// The blocks in the order of a random read; empty: ascending.
    order: []u64 = &.{},
    slots: []Slot = &.{},
    free: std.ArrayList(*Slot) = .empty,
    latencies_ns: std.ArrayList(u64) = .empty,
    ops: u64 = 0,
    bytes: u64 = 0,
    pages_ok: u64 = 0,

    fn run(w: *Worker, gates: *StartBarrier) void {
        if (!options.op.ofTree()) w.prepare();
        var ring = if (options.method == .uring) needRing() else undefined;
        gates.ready.finish();
        gates.start.wait();
        if (options.op.ofTree()) w.runTree() else if (options.method == .uring) w.runRing(&ring) else w.runCalls();
        gates.ended.finish();
        if (options.method == .uring) ring.deinit();
    }

    fn prepare(w: *Worker) void {
        const blocks = w.end - w.first;
        // A block that starts inside a page needs space for the start of that page, and may end
        // inside another.
        const span = if (options.block % page == 0) options.block else (options.block / page + 2) * page;
        w.slots = allocate(Slot, @min(if (options.method == .uring) options.depth else 1, blocks));
        w.free = .initBuffer(allocate(*Slot, w.slots.len));
        w.latencies_ns = .initBuffer(allocate(u64, if (options.op == .@"append-sync") blocks else blocks / timed_every + 1));
        if (options.op == .@"random-read") {
            w.order = allocate(u64, blocks);
            shuffle(w.order, w.first);
        }
        const buffers = allocate(u8, w.slots.len * span);
        fill(buffers);
        for (w.slots, 0..) |*slot, i| {
            slot.buffer = buffers[i * span ..][0..span];
            w.free.appendAssumeCapacity(slot);
        }
    }

    /// Assigns the next block to a free slot.
    fn begin(w: *Worker) *Slot {
        const slot = w.free.pop().?;
        const number = w.next - w.first;
        w.next += 1;
        slot.offset = (if (options.op == .@"random-read") w.order[number] else w.first + number) * options.block;
        slot.length = @min(options.block, options.size - slot.offset);
        slot.moved = 0;
        if (options.op.writes()) slot.stamp();
        slot.start = if (options.op == .@"append-sync" or number % timed_every == 0) now() else null;
        return slot;
    }

    /// Processes the result of an operation. Returns whether the block is complete.
    fn advance(w: *Worker, slot: *Slot, result: usize) bool {
        const errno = linux.E.init(result);
        if (errno == .INTR or errno == .AGAIN) return false;
        const synced = slot.toSync();
        const action = if (synced) "sync" else if (options.op.writes()) "write" else "read";
        const moved = must(action, options.path, result);
        if (moved == 0 and !synced) quit(.failed, "cannot {s} '{s}': unexpected end of file", .{ action, options.path });
        w.ops += 1;
        w.bytes += moved;
        slot.moved += moved;
        if (slot.moved < slot.length or (options.op == .@"append-sync" and !synced)) return false;
        if (slot.start) |began| w.latencies_ns.appendAssumeCapacity(now().since(began));
        if (!options.op.writes()) w.pages_ok += slot.verify();
        w.free.appendAssumeCapacity(slot);
        return true;
    }

    fn runCalls(w: *Worker) void {
        while (w.next < w.end) {
            const slot = w.begin();
            countBegun(1);
            while (!w.advance(slot, call(slot))) {}
            countEnded(1);
        }
    }

    fn runRing(w: *Worker, ring: *linux.IoUring) void {
        while (w.next < w.end or w.free.items.len < w.slots.len) {
            const batch = w.startable();
            for (0..batch) |_| queue(ring, w.begin());
            if (batch > 0) countBegun(batch);
            submit(ring, options.wait == .wait and w.startable() == 0);
            w.reap(ring);
        }
    }

    /// Returns the number of blocks to start now: a batch, or the rest if that is less; 0 while too
    /// few slots are free.
    fn startable(w: *const Worker) u64 {
        const batch = @min(options.batch, w.slots.len, w.end - w.next);
        return if (batch <= w.free.items.len) batch else 0;
    }

    fn reap(w: *Worker, ring: *linux.IoUring) void {
        var ended: u64 = 0;
        const ready = ring.cq_ready();
        for (0..ready) |i| {
            const cqe = &ring.cq.cqes[(ring.cq.head.* +% @as(u32, @intCast(i))) & ring.cq.mask];
            const slot: *Slot = @ptrFromInt(cqe.user_data);
            // A negative result is a negated errno, as for raw system calls.
            if (w.advance(slot, @bitCast(@as(isize, cqe.res)))) ended += 1 else queue(ring, slot);
        }
        ring.cq_advance(ready);
        if (ended > 0) countEnded(ended);
    }

    fn runTree(w: *Worker) void {
        while (directories.take()) |path| {
            w.readDirectory(path);
            allocator.free(path);
        }
    }

    fn readDirectory(w: *Worker, path: [:0]const u8) void {
        const action = @tagName(options.op);
        const opened = linux.open(path, .{ .DIRECTORY = true, .CLOEXEC = true }, 0);
        const directory: linux.fd_t = @intCast(must(action, path, opened));
        // As large as the buffer of readdir(3).
        var buffer: [32768]u8 align(@alignOf(linux.dirent64)) = undefined;
        while (true) {
            const end = must(action, path, linux.getdents64(directory, &buffer, buffer.len));
            if (end == 0) break;
            var at: usize = 0;
            while (at < end) {
                const entry: *const linux.dirent64 = @ptrCast(@alignCast(&buffer[at]));
                at += entry.reclen;
                const name = std.mem.span(@as([*:0]const u8, @ptrCast(&entry.name)));
                if (std.mem.eql(u8, name, ".") or std.mem.eql(u8, name, "..")) continue;
                if (w.countEntry(directory, path, name, entry.type)) directories.add(join(path, name));
            }
        }
        _ = linux.close(directory);
    }

    /// Counts the entry and returns whether it is a directory.
    fn countEntry(w: *Worker, parent: linux.fd_t, path: []const u8, name: [:0]const u8, kind: u8) bool {
        w.ops += 1;
        if (options.op == .walk and kind != linux.DT.UNKNOWN) return kind == linux.DT.DIR;
        var found: linux.Stat = undefined;
        const result = linux.fstatat(parent, name, &found, linux.AT.SYMLINK_NOFOLLOW);
        if (linux.E.init(result) != .SUCCESS) _ = must(@tagName(options.op), join(path, name), result);
        if (options.op == .stat and linux.S.ISREG(found.mode)) w.bytes += @intCast(found.size);
        return linux.S.ISDIR(found.mode);
    }
};

fn join(path: []const u8, name: []const u8) [:0]u8 {
    return allocated(std.fs.path.joinZ(allocator, &.{ path, name }));
}

fn call(slot: *const Slot) usize {
    const rest = slot.rest();
    if (options.method == .null) {
        if (!options.op.writes()) slot.stamp();
        return rest.len;
    }
    const fd = file.?;
    const offset: i64 = @intCast(slot.offset + slot.moved);
    if (slot.toSync()) return linux.fdatasync(fd);
    const at_position = options.method == .blocking and options.op != .@"random-read";
    if (options.op.writes())
        return if (at_position) linux.write(fd, rest.ptr, rest.len) else linux.pwrite(fd, rest.ptr, rest.len, offset);
    return if (at_position) linux.read(fd, rest.ptr, rest.len) else linux.pread(fd, rest.ptr, rest.len, offset);
}

/// Creates a ring with --depth entries, so that the kernel may use as many workers. The completion
/// queue has twice as many and cannot overflow.
fn makeRing(depth: u64, spins: bool) !linux.IoUring {
    const entries = std.math.ceilPowerOfTwoAssert(u16, @intCast(depth));
    // Deferred task work only runs when the thread enters the kernel to wait, which a spinning
    // thread does not.
    const flags: u32 = if (spins) 0 else linux.IORING_SETUP_SINGLE_ISSUER | linux.IORING_SETUP_DEFER_TASKRUN;
    return linux.IoUring.init(entries, flags) catch |problem| switch (problem) {
        // Linux before 6.1 rejects these flags.
        error.ArgumentsInvalid => linux.IoUring.init(entries, 0),
        else => problem,
    };
}

fn needRing() linux.IoUring {
    return makeRing(options.depth, options.wait == .spin) catch |problem|
        quit(.unavailable, "cannot run 'uring': {s}", .{ringProblem(problem)});
}

/// Returns the text of the errno that `IoUring` converted to an error.
fn ringProblem(problem: anyerror) []const u8 {
    return std.mem.span(words(switch (problem) {
        error.ArgumentsInvalid => .INVAL,
        error.PermissionDenied => .PERM,
        error.ProcessFdQuotaExceeded => .MFILE,
        error.SystemFdQuotaExceeded => .NFILE,
        error.SystemOutdated => .NOSYS,
        error.SystemResources, error.OutOfMemory => .NOMEM,
        else => return @errorName(problem),
    }));
}

fn queue(ring: *linux.IoUring, slot: *Slot) void {
    const sqe = ring.get_sqe() catch unreachable; // never full: no slot is queued twice
    const opcode: linux.IORING_OP = if (options.op.writes()) .WRITE else .READ;
    if (slot.toSync()) {
        sqe.prep_fsync(file.?, linux.IORING_FSYNC_DATASYNC);
    } else {
        sqe.prep_rw(opcode, file.?, @intFromPtr(slot.rest().ptr), slot.rest().len, slot.offset + slot.moved);
    }
    sqe.user_data = @intFromPtr(slot);
}

fn submit(ring: *linux.IoUring, wait: bool) void {
    if (!wait and ring.sq_ready() == 0) return;
    _ = ring.submit_and_wait(@intFromBool(wait)) catch |problem| switch (problem) {
        error.SignalInterrupt => {},
        error.SystemResources, error.CompletionQueueOvercommitted => {
            // The kernel is out of memory for requests. Entries that it did not consume stay queued
            // until some complete.
            _ = ring.enter(0, 0, linux.IORING_ENTER_GETEVENTS) catch {};
            std.Thread.sleep(std.time.ns_per_ms);
        },
        else => quit(.failed, "cannot submit operations on '{s}': {t}", .{ options.path, problem }),
    };
}

fn now() std.time.Instant {
    return std.time.Instant.now() catch unreachable; // Linux always has a monotonic clock
}

fn startWorkers(gates: *StartBarrier) []Worker {
    const workers = allocate(Worker, options.threads);
    if (options.op.ofTree()) {
        directories.add(allocated(allocator.dupeZ(u8, options.path)));
        in_flight_max.store(workers.len, .monotonic);
    }
    const blocks = std.math.divCeil(u64, options.size, options.block) catch unreachable; // a block is not empty
    gates.ready.startMany(workers.len);
    gates.ended.startMany(workers.len);
    for (workers, 0..) |*w, i| {
        const first = i * blocks / workers.len;
        w.* = .{ .first = first, .next = first, .end = (i + 1) * blocks / workers.len };
        w.thread = std.Thread.spawn(.{}, Worker.run, .{ w, gates }) catch |problem|
            quit(.unavailable, "cannot start a thread: {t}", .{problem});
    }
    gates.ready.wait();
    return workers;
}

fn run() !void {
    var gates: StartBarrier = .{};
    const workers = startWorkers(&gates);
    const before = std.posix.getrusage(linux.rusage.SELF);
    const began = now();
    gates.start.set();
    gates.ended.wait();
    var clocks = [_]u64{now().since(began)} ** 3;
    const after = std.posix.getrusage(linux.rusage.SELF);
    if (file) |fd| {
        if (options.op.writes()) {
            _ = must("sync", options.path, linux.fdatasync(fd));
            clocks[1] = now().since(began);
        }
        _ = must("close", options.path, linux.close(fd));
        clocks[2] = now().since(began);
    }
    for (workers) |w| w.thread.join();
    try printRow(clocks, before, after, workers);
}

fn seconds(from: linux.timeval, to: linux.timeval) f64 {
    return @as(f64, @floatFromInt((to.sec - from.sec) * std.time.us_per_s + to.usec - from.usec)) / std.time.us_per_s;
}

fn printRow(clocks: [3]u64, before: linux.rusage, after: linux.rusage, workers: []const Worker) !void {
    var ops: u64, var bytes: u64, var pages_ok: u64 = .{ 0, 0, 0 };
    var latencies_ns: std.ArrayList(u64) = .empty;
    for (workers) |w| {
        ops, bytes, pages_ok = .{ ops + w.ops, bytes + w.bytes, pages_ok + w.pages_ok };
        try latencies_ns.appendSlice(allocator, w.latencies_ns.items);
    }
    std.mem.sortUnstable(u64, latencies_ns.items, {}, std.sort.asc(u64));
    var buffer: [1024]u8 = undefined;
    var stdout = std.fs.File.stdout().writerStreaming(&buffer);
    const out = &stdout.interface;
    for ([_][]const u8{ "seconds", "sync_s", "close_s" }, clocks) |name, ns|
        try out.print("{s}={d}.{d:0>9}\t", .{ name, ns / std.time.ns_per_s, ns % std.time.ns_per_s });
    try out.print("ops={d}\tbytes={d}\tpages_ok={d}", .{ ops, bytes, pages_ok });
    try out.print("\tin_flight_max={d}", .{in_flight_max.load(.monotonic)});
    try out.print("\tcpu_user_s={d:.6}", .{seconds(before.utime, after.utime)});
    try out.print("\tcpu_sys_s={d:.6}", .{seconds(before.stime, after.stime)});
    try out.print("\tswitches={d}\tswitches_forced={d}", .{ after.nvcsw - before.nvcsw, after.nivcsw - before.nivcsw });
    for ([_][]const u8{ "p50", "p95", "p99", "max" }, [_]usize{ 50, 95, 99, 100 }) |name, percent| {
        const rank = (latencies_ns.items.len * percent + 99) / 100; // 0: nothing was timed
        const ns = if (rank > 0) latencies_ns.items[rank - 1] else 0;
        try out.print("\t{s}_us={d}.{d:0>3}", .{ name, ns / 1000, ns % 1000 });
    }
    try out.writeAll("\n");
    try out.flush();
}

/// Parses the value of a field; null if the text is not valid.
fn valueOf(comptime T: type, comptime name: []const u8, text: [:0]const u8) ?T {
    if (T == [:0]const u8) return text;
    if (@typeInfo(T) == .@"enum") return std.meta.stringToEnum(T, text);
    for (text) |c| if (!std.ascii.isDigit(c)) return null;
    const value = std.fmt.parseUnsigned(T, text, 10) catch return null;
    const limits = Options.limits(name);
    return if (limits[0] <= value and value <= limits[1]) value else null;
}

fn parseValue(comptime name: []const u8, text: [:0]const u8) @FieldType(Options, name) {
    return valueOf(@FieldType(Options, name), name, text) orelse
        quit(.misused, "cannot use '{s}': --{s} has no such value", .{ text, name });
}

fn parse(arguments: []const [:0]const u8) Options {
    const fields = std.meta.fields(Options);
    var given: Options = undefined;
    var seen = [_]bool{false} ** fields.len;
    var i: usize = 0;
    next: while (i < arguments.len) : (i += 2) {
        inline for (fields, &seen) |field, *found| if (std.mem.eql(u8, arguments[i], "--" ++ field.name)) {
            if (i + 1 == arguments.len) quit(.misused, "cannot use '{s}': no value after it", .{arguments[i]});
            @field(given, field.name) = parseValue(field.name, arguments[i + 1]);
            found.* = true;
            continue :next;
        };
        quit(.misused, "cannot use '{s}': no such option", .{arguments[i]});
    }
    inline for (fields, seen) |field, found| if (!found) {
        @field(given, field.name) = field.defaultValue() orelse
            quit(.misused, "cannot start: --" ++ field.name ++ " is missing", .{});
    };
    if (given.direct == .yes and (given.size % 512 != 0 or given.block % 512 != 0))
        quit(.misused, "cannot use '--direct': --size or --block is no multiple of 512", .{});
    if (given.op == .@"append-sync" and (given.threads > 1 or given.depth > 1))
        quit(.misused, "cannot use '--threads' or '--depth': append-sync has one operation in flight", .{});
    if (given.method == .blocking or given.method == .null) given.threads = 1;
    return given;
}

/// Returns the reason why the method cannot run the operation, or null.
fn refusal(method: Method, op: Op, depth: u64, spins: bool) ?[]const u8 {
    if (method == .uring and op.ofTree()) return "no operation of a ring reads a directory";
    if (method == .null and (op.ofTree() or op == .@"append-sync")) return "it reads and writes nothing";
    if (method != .uring) return null;
    var ring = makeRing(depth, spins) catch |problem| return ringProblem(problem);
    ring.deinit();
    return null;
}

fn list(op: Op) !void {
    var buffer: [256]u8 = undefined;
    var stdout = std.fs.File.stdout().writerStreaming(&buffer);
    for (std.enums.values(Method)) |method|
        try stdout.interface.print("{t}\t{s}\n", .{ method, refusal(method, op, 1, false) orelse "ok" });
    try stdout.interface.flush();
}

fn openFile() linux.fd_t {
    const direct = options.direct == .yes;
    const flags: linux.O = if (options.op.writes())
        .{ .ACCMODE = .WRONLY, .CREAT = true, .TRUNC = true, .CLOEXEC = true, .DIRECT = direct }
    else
        .{ .CLOEXEC = true, .DIRECT = direct };
    const fd: linux.fd_t = @intCast(must("open", options.path, linux.open(options.path, flags, 0o666)));
    if (options.advice == .random and !options.op.writes())
        _ = must("advise", options.path, linux.fadvise(fd, 0, 0, linux.POSIX_FADV.RANDOM));
    return fd;
}

pub fn main() !void {
    const arguments = try std.process.argsAlloc(allocator);
    program = std.fs.path.basename(arguments[0]);
    if (arguments.len >= 2 and arguments.len <= 3 and std.mem.eql(u8, arguments[1], "--list"))
        return list(if (arguments.len == 2) .write else parseValue("op", arguments[2]));
    options = parse(arguments[1..]);
    // Before the file is truncated: a method that cannot run must not change it.
    if (refusal(options.method, options.op, options.depth, options.wait == .spin)) |reason|
        quit(.unavailable, "cannot run '{t}': {s}", .{ options.method, reason });
    if (!options.op.ofTree() and options.method != .null) file = openFile();
    try run();
}
