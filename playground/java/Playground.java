/*
 * Does one operation on one file or one tree, with one I/O method, and prints one row. The contract
 * is ../README.md.
 *
 * A worker is a thread with its own partition of the file, or a share in the walk of the tree. A
 * slot holds one operation and its buffer. Calls need one slot; `async` has --depth slots, and as
 * many threads of a pool, which make the calls. JDK 17 suffices; virtual threads are looked up by
 * reflection.
 */
import com.sun.nio.file.ExtendedOpenOption;
import java.io.Closeable;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.AsynchronousFileChannel;
import java.nio.channels.CompletionHandler;
import java.nio.channels.FileChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongUnaryOperator;
import java.util.stream.LongStream;

public final class Playground {
    private static final int PAGE = 4096, STAMP = 16, TIMED_EVERY = 64, WARM_BLOCKS = 20_000, WARM_BYTES = 1 << 20;
    private static final int FAILED = 1, MISUSED = 2, UNAVAILABLE = 3;
    private static final int THREADS_MAX = 32768;
    private static final List<String> OPERATIONS = List.of("write", "read", "random-read", "append-sync", "walk", "stat");
    private static final List<String> METHODS = List.of("blocking", "threads", "virtual", "async", "null");

    /**
     * Exits the process from any thread. The lock is never released: if several threads fail, only
     * the first prints its error.
     */
    private static synchronized Error stop(int status, String action, String thing, String cause) {
        System.err.println("Playground: " + action + (thing.isEmpty() ? "" : " '" + thing + "'") + ": " + cause);
        System.err.flush();
        Runtime.getRuntime().halt(status);
        return new AssertionError("halted");
    }

    private static Error failed(String action, Object path, Throwable error) {
        if (error instanceof OutOfMemoryError && String.valueOf(error.getMessage()).contains("native thread")) {
            return stop(UNAVAILABLE, "cannot start a thread", "", "Resource temporarily unavailable");
        }
        if (error instanceof OutOfMemoryError) return stop(FAILED, "cannot allocate buffers", "", "Cannot allocate memory");
        if (error instanceof InvalidPathException name) return stop(FAILED, action, path.toString(), name.getReason());
        if (error instanceof IOException cause) return stop(FAILED, action, path.toString(), words(cause));
        return stop(FAILED, "stopped by a defect", "", error.toString());
    }

    /** Returns the errno's text. NIO omits it for errors that have a class of their own. */
    private static String words(IOException error) {
        if (error instanceof NoSuchFileException) return "No such file or directory";
        if (error instanceof NotDirectoryException) return "Not a directory";
        if (error instanceof AccessDeniedException) return "Permission denied";
        boolean named = error instanceof FileSystemException;
        String words = named ? ((FileSystemException) error).getReason() : error.getMessage();
        return words == null ? error.toString() : words;
    }

    // The command line

    private static boolean walks(String op) {
        return op.equals("walk") || op.equals("stat");
    }

    private record Options(
            String op, String method, String path, long size, long block, int threads, int depth, boolean direct, String advice,
            long seed, long generation) {

        boolean writes() {
            return op.equals("write") || syncs();
        }

        boolean syncs() {
            return op.equals("append-sync");
        }

        boolean walks() {
            return Playground.walks(op);
        }

        long blocks() {
            return (size + block - 1) / block;
        }

        String deed() {
            if (walks()) return "cannot " + op;
            return writes() ? "cannot write" : "cannot read";
        }
    }

    private static final Map<String, String> DEFAULTS = Map.of(
            "--threads", "1", "--depth", "1", "--batch", "1", "--wait", "wait", "--direct", "no",
            "--advice", "normal", "--seed", "1", "--generation", "1");

    private static Options parse(String[] words) {
        Map<String, String> given = new HashMap<>(DEFAULTS);
        Set<String> known = new HashSet<>(DEFAULTS.keySet());
        known.addAll(List.of("--op", "--method", "--path", "--size", "--block"));
        for (int i = 0; i < words.length; i += 2) {
            if (!known.contains(words[i])) throw stop(MISUSED, "cannot use", words[i], "no such option");
            if (i + 1 == words.length) throw stop(MISUSED, "cannot use", words[i], "no value after it");
            given.put(words[i], words[i + 1]);
        }
        for (String name : known) {
            if (!given.containsKey(name)) throw stop(MISUSED, "cannot start", "", name + " is missing");
        }
        // These options do not affect the methods of this program, but invalid values are rejected.
        count(given, "--batch", THREADS_MAX);
        word(given, "--wait", "wait", "spin");
        Options options = new Options(
                word(given, "--op", OPERATIONS.toArray(String[]::new)), word(given, "--method", METHODS.toArray(String[]::new)),
                given.get("--path"), count(given, "--size", 1L << 47), count(given, "--block", 1L << 30),
                (int) count(given, "--threads", THREADS_MAX), (int) count(given, "--depth", THREADS_MAX),
                word(given, "--direct", "yes", "no").equals("yes"), word(given, "--advice", "normal", "random"), number(given, "--seed"), number(given, "--generation"));
        if (options.direct && (options.size % 512 != 0 || options.block % 512 != 0)) {
            throw stop(MISUSED, "cannot use", "--direct", "--size and --block are to be multiples of 512");
        }
        if (options.syncs() && (options.threads > 1 || options.depth > 1)) {
            throw stop(MISUSED, "cannot use", "append-sync", "it has one operation in flight: --threads 1 --depth 1");
        }
        return options;
    }

    private static String word(Map<String, String> given, String name, String... words) {
        String text = given.get(name);
        if (List.of(words).contains(text)) return text;
        throw stop(MISUSED, "cannot use", text, name + " is one of " + String.join(", ", words));
    }

    /** Parses an unsigned 64-bit number. */
    private static long number(Map<String, String> given, String name) {
        String text = given.get(name);
        try {
            if (text.matches("[0-9]+")) return Long.parseUnsignedLong(text);
        } catch (NumberFormatException tooLarge) {
            // reported below
        }
        throw stop(MISUSED, "cannot use", text, name + " is a number below 2^64");
    }

    private static long count(Map<String, String> given, String name, long most) {
        long number = number(given, name);
        if (number >= 1 && number <= most) return number;
        throw stop(MISUSED, "cannot use", given.get(name), name + " is a number from 1 to " + most);
    }

    // Methods: how threads are started, and which call transfers bytes

    private interface Starter {
        void start(Runnable work) throws ReflectiveOperationException;
    }

    private interface Call {
        int move(Slot slot) throws IOException;
    }

    private static Starter starter(String method) throws ReflectiveOperationException {
        if (!method.equals("virtual")) return work -> new Thread(work).start();
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        return work -> start.invoke(null, work);
    }

    /** Returns the reason why the method cannot run the operation here; null if it can. */
    private static String unavailable(String method, String op) {
        if (method.equals("null") && (walks(op) || op.equals("append-sync"))) {
            return "null is the loop of write, read and random-read alone";
        }
        if (method.equals("async") && walks(op)) return "AsynchronousFileChannel reads no directories";
        if (op.equals("walk")) return "Java's streams of directories have no file types";
        try {
            starter(method).start(() -> {});
            return null;
        } catch (NoSuchMethodException missing) {
            return "JDK " + Runtime.version().feature() + " has no virtual threads, 21 has";
        } catch (InvocationTargetException preview) {
            return preview.getCause().getMessage();
        } catch (ReflectiveOperationException error) {
            return error.toString();
        }
    }

    private static Call transfer(Options options, FileChannel file) {
        if (options.method.equals("blocking") && options.writes()) return slot -> file.write(slot.rest());
        if (options.method.equals("blocking") && options.op.equals("read")) return slot -> file.read(slot.rest());
        if (options.writes()) return slot -> file.write(slot.rest(), slot.position());
        return slot -> file.read(slot.rest(), slot.position());
    }

    // The file

    private interface Sync {
        void force(boolean metadata) throws IOException;
    }

    /** An open file. With `async` it has operations, with other methods a call. */
    private record File(Call call, AsynchronousFileChannel operations, Sync sync, Closeable channel) {

        static File open(Options options) {
            Set<OpenOption> how = new HashSet<>(List.of(StandardOpenOption.READ));
            if (options.writes()) {
                how = new HashSet<>(List.of(
                        StandardOpenOption.WRITE, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING));
            }
            if (options.direct) how.add(ExtendedOpenOption.DIRECT);
            try {
                needAlignment(options);
                if (options.method.equals("async")) {
                    var file = AsynchronousFileChannel.open(Path.of(options.path), how, pool(options));
                    return new File(null, file, file::force, file);
                }
                var file = FileChannel.open(Path.of(options.path), how);
                return new File(transfer(options, file), null, file::force, file);
            } catch (IOException | UnsupportedOperationException | InvalidPathException error) {
                throw failed("cannot open", options.path, error);
            }
        }

        /** Returns what stands for the file in `null`. */
        static File none(Options options) {
            Call call = options.writes() ? slot -> slot.length : slot -> {
                slot.stamp(options);
                return slot.length;
            };
            return new File(call, null, metadata -> {}, () -> {});
        }

        void sync(Options options) {
            try {
                sync.force(false);
            } catch (IOException error) {
                throw failed("cannot sync", options.path, error);
            }
        }

        void close(Options options) {
            try {
                channel.close();
            } catch (IOException error) {
                throw failed("cannot close", options.path, error);
            }
        }
    }

    /** Returns a pool with a running thread for each operation that may be in flight. */
    private static ThreadPoolExecutor pool(Options options) {
        int threads = (int) Math.min(options.depth, options.blocks());
        var pool = new ThreadPoolExecutor(threads, threads, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), work -> {
            Thread thread = new Thread(work);
            thread.setDaemon(true);
            return thread;
        });
        pool.prestartAllCoreThreads();
        return pool;
    }

    /**
     * Rejects sizes that are not a multiple of the filesystem's block: NIO does so even if the
     * kernel would not.
     */
    private static void needAlignment(Options options) throws IOException {
        if (!options.direct) return;
        long unit = Files.getFileStore(Path.of(options.path).toAbsolutePath().getParent()).getBlockSize();
        if (options.size % unit == 0 && options.block % unit == 0) return;
        throw stop(UNAVAILABLE, "cannot run", options.method, "with O_DIRECT, Java moves multiples of " + unit + " bytes only here");
    }

    // The pattern

    /**
     * Returns a page-aligned buffer (required by O_DIRECT) that is filled with the pattern except
     * for the stamps.
     */
    private static ByteBuffer filled(Options options) {
        // A block that starts inside a page needs space for the start of that page, and may end
        // inside another.
        long span = options.block % PAGE == 0 ? options.block : (options.block / PAGE + 2) * PAGE;
        ByteBuffer buffer = ByteBuffer.allocateDirect((int) span + PAGE).alignedSlice(PAGE).order(ByteOrder.LITTLE_ENDIAN);
        long x = options.seed ^ options.generation * 0x9E3779B97F4A7C15L;
        if (x == 0) x = 1;
        for (int at = STAMP; at < PAGE; at += 8) {
            x ^= x >>> 12;
            x ^= x << 25;
            x ^= x >>> 27;
            buffer.putLong(at, x * 0x2545F4914F6CDD1DL);
        }
        for (int at = PAGE; at < span; at += PAGE) buffer.put(at, buffer, 0, PAGE);
        return buffer;
    }

    // Blocks

    /**
     * Returns the places of the blocks in a random read. The numbers are unsigned; those that are
     * compared are below 2^63.
     */
    private static long[] order(long seed, long count) {
        long[] addends = new long[4], factors = new long[4];
        for (int i = 0; i < 8; i++) {
            seed += 0x9E3779B97F4A7C15L;
            long z = (seed ^ seed >>> 30) * 0xBF58476D1CE4E5B9L;
            z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
            z ^= z >>> 31;
            if (i % 2 == 0) addends[i / 2] = z;
            else factors[i / 2] = z | 1;
        }
        int bits = Long.SIZE - Long.numberOfLeadingZeros(Math.max(count, 2) - 1), shift = Math.max(bits / 3, 1);
        LongUnaryOperator image = x -> {
            for (int i = 0; i < 4; i++) {
                x = (x + addends[i]) * factors[i] & (1L << bits) - 1;
                x ^= x >>> shift;
            }
            return x;
        };
        return LongStream.range(0, count).map(k -> {
            long x = image.applyAsLong(k);
            while (x >= count) x = image.applyAsLong(x);
            return x;
        }).toArray();
    }

    /**
     * Operations in flight. Each is counted before its submission and until its completion is
     * known.
     */
    private static final AtomicInteger inFlight = new AtomicInteger(), inFlightMax = new AtomicInteger();

    private static void countBegun() {
        int now = inFlight.incrementAndGet();
        if (now > inFlightMax.get()) inFlightMax.accumulateAndGet(now, Math::max);
    }

    /** An operation. Its buffer starts with the page that contains the start of the block. */
    private static final class Slot {
        private final ByteBuffer buffer;
        private long offset, start;
        private int length, moved, result;
        private boolean timed;

        Slot(ByteBuffer buffer) {
            this.buffer = buffer;
        }

        /** Returns the part of the block that has not been transferred. */
        ByteBuffer rest() {
            int begin = (int) (offset % PAGE);
            return buffer.limit(begin + length).position(begin + moved);
        }

        long position() {
            return offset + moved;
        }

        void stamp(Options options) {
            buffer.clear();
            int at = 0;
            for (long page = offset / PAGE * PAGE; page < offset + length; page += PAGE, at += PAGE) {
                buffer.putLong(at, page).putLong(at + 8, options.generation);
            }
        }

        /**
         * Verifies the stamps and returns the number of pages that start in the block. If two
         * blocks share a stamp, each verifies its part.
         */
        int verify(Options options) {
            buffer.clear();
            int at = 0, begun = 0;
            for (long page = offset / PAGE * PAGE; page < offset + length; page += PAGE, at += PAGE) {
                int from = (int) Math.max(offset - page, 0), to = (int) Math.min(STAMP, offset + length - page);
                if (!stamped(page, options.generation, at, from, to)) {
                    throw stop(FAILED, "cannot verify", options.path, "page at " + page + " is not what was written");
                }
                if (from == 0) begun++;
            }
            return begun;
        }

        private boolean stamped(long page, long generation, int at, int from, int to) {
            if (from == 0 && to == STAMP) return buffer.getLong(at) == page && buffer.getLong(at + 8) == generation;
            for (int i = from; i < to; i++) {
                if (buffer.get(at + i) != (byte) ((i < 8 ? page : generation) >>> i % 8 * 8)) return false;
            }
            return true;
        }
    }

    /** The queue of the directories of a tree that no worker has taken yet. */
    private static final class Tree {
        private static final Path END = Path.of("");
        private final BlockingQueue<Path> queue = new LinkedBlockingQueue<>();
        private final AtomicLong unlisted = new AtomicLong(); // in the queue or in the hands of a worker

        Tree(Path root) {
            add(root);
        }

        void add(Path directory) {
            unlisted.incrementAndGet();
            queue.add(directory);
        }

        /** Waits for a directory and returns it, or null if all have been listed. */
        Path take() throws InterruptedException {
            Path directory = queue.take();
            if (directory != END) return directory;
            queue.add(END); // for the next worker
            return null;
        }

        /** Ends the listing of a directory that was taken. */
        void end() {
            if (unlisted.decrementAndGet() == 0) queue.add(END);
        }
    }

    /** A partition of the file, or a share in the walk of the tree, with its thread. */
    private static final class Worker {
        private final Options options;
        private final File file;
        private final Tree tree;
        private final boolean writes, syncs;
        private final long first, end;
        private final ArrayDeque<Slot> free = new ArrayDeque<>();
        private long next, ops, bytes, pagesOk;
        private long[] order, latencies = {};
        private int timed;

        Worker(Options options, File file, Tree tree, long first, long end) {
            this.options = options;
            this.file = file;
            this.tree = tree;
            this.first = next = first;
            this.end = end;
            writes = options.writes();
            syncs = options.syncs();
        }

        void work(CyclicBarrier barrier) {
            try {
                prepare();
                barrier.await(); // all workers are ready
                barrier.await(); // the clock has started
                if (tree != null) walk();
                else if (file.operations != null) runOperations();
                else runCalls();
                barrier.await(); // the last operation has ended
            } catch (Throwable error) {
                throw failed(options.deed(), options.path, error);
            }
        }

        private void prepare() {
            if (tree != null) {
                countBegun();
                return;
            }
            long slots = file.operations == null ? 1 : Math.min(options.depth, end - first);
            for (long i = 0; i < slots; i++) free.push(new Slot(filled(options)));
            if (options.op.equals("random-read")) order = order(options.seed, end - first);
            latencies = new long[Math.toIntExact(syncs ? end - first : (end - first) / TIMED_EVERY + 1)];
        }

        /** Assigns the next block to a slot. */
        private void begin(Slot slot) {
            slot.offset = (order == null ? next : first + order[(int) (next - first)]) * options.block;
            slot.length = (int) Math.min(options.block, options.size - slot.offset);
            slot.moved = 0;
            if (writes) slot.stamp(options);
            slot.timed = syncs || (next - first) % TIMED_EVERY == 0;
            if (slot.timed) slot.start = System.nanoTime();
            next++;
            countBegun();
        }

        /** Processes the result of an operation and returns whether the block is complete. */
        private boolean advance(Slot slot, int moved) throws IOException {
            if (moved <= 0) throw new IOException("unexpected end of file");
            ops++;
            bytes += moved;
            slot.moved += moved;
            if (slot.moved < slot.length) return false;
            if (syncs) {
                file.sync(options);
                ops++;
            }
            inFlight.decrementAndGet();
            if (slot.timed) latencies[timed++] = System.nanoTime() - slot.start;
            if (!writes) pagesOk += slot.verify(options);
            return true;
        }

        private void runCalls() throws IOException {
            Slot slot = free.peek();
            while (next < end) {
                begin(slot);
                while (!advance(slot, file.call.move(slot))) {}
            }
        }

        private void runOperations() throws IOException, InterruptedException {
            int slots = free.size();
            BlockingQueue<Slot> ended = new ArrayBlockingQueue<>(slots);
            var handler = new CompletionHandler<Integer, Slot>() {
                @Override
                public void completed(Integer moved, Slot slot) {
                    slot.result = moved;
                    ended.add(slot);
                }

                @Override
                public void failed(Throwable error, Slot slot) {
                    throw Playground.failed(options.deed(), options.path, error);
                }
            };
            while (next < end || free.size() < slots) {
                Slot slot = next < end ? free.poll() : null;
                if (slot != null) {
                    begin(slot);
                } else {
                    slot = ended.take();
                    if (advance(slot, slot.result)) {
                        free.push(slot);
                        continue;
                    }
                }
                if (writes) file.operations.write(slot.rest(), slot.position(), slot, handler);
                else file.operations.read(slot.rest(), slot.position(), slot, handler);
            }
        }

        private void walk() throws InterruptedException {
            for (Path directory = tree.take(); directory != null; directory = tree.take()) {
                list(directory);
                tree.end();
            }
        }

        /** Lists a directory. Its paths keep all bytes of a name, valid in the charset or not. */
        private void list(Path directory) {
            try (DirectoryStream<Path> entries = Files.newDirectoryStream(directory)) {
                for (Path entry : entries) count(entry);
            } catch (DirectoryIteratorException error) {
                throw failed(options.deed(), directory, error.getCause());
            } catch (IOException error) {
                throw failed(options.deed(), directory, error);
            }
        }

        private void count(Path entry) {
            try {
                var metadata = Files.readAttributes(entry, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
                if (metadata.isRegularFile()) bytes += metadata.size();
                if (metadata.isDirectory()) tree.add(entry);
                ops++;
            } catch (IOException error) {
                throw failed(options.deed(), entry, error);
            }
        }
    }

    // One run

    private static List<Worker> start(Options options, File file, int count, CyclicBarrier barrier)
            throws ReflectiveOperationException {
        long blocks = options.blocks();
        Tree tree = options.walks() ? new Tree(Path.of(options.path)) : null;
        Starter starter = starter(options.method);
        List<Worker> workers = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Worker worker = new Worker(options, file, tree, i * blocks / count, (i + 1) * blocks / count);
            starter.start(() -> worker.work(barrier));
            workers.add(worker);
        }
        return workers;
    }

    /**
     * Runs the loop of `null`, so that it is compiled when the clock starts. The size of its blocks
     * has a limit, because 20,000 of the largest blocks would take a minute.
     */
    private static void warmUp(Options options) throws IOException {
        long block = Math.min(options.block, WARM_BYTES);
        Options warm = new Options(
                options.op, "null", "", WARM_BLOCKS * block, block, 1, 1, false, "normal", options.seed, options.generation);
        Worker worker = new Worker(warm, File.none(warm), null, 0, WARM_BLOCKS);
        worker.prepare();
        worker.runCalls();
    }

    /**
     * Returns user and system CPU time in seconds. The JDK only offers their sum, with the same
     * resolution.
     */
    private static double[] processorTime() throws IOException {
        String stat = Files.readString(Path.of("/proc/self/stat"));
        // Fields 14 and 15 of proc_pid_stat(5), counted after the name, which may contain spaces. A
        // tick is 10 ms.
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return new double[] {Long.parseLong(fields[11]) / 100.0, Long.parseLong(fields[12]) / 100.0};
    }

    private static String run(Options options) throws Exception {
        int count = List.of("threads", "virtual").contains(options.method) ? options.threads : 1;
        File file = options.walks() || options.method.equals("null") ? File.none(options) : File.open(options);
        if (!options.walks()) warmUp(options);
        CyclicBarrier barrier = new CyclicBarrier(count + 1);
        List<Worker> workers = start(options, file, count, barrier);
        barrier.await();
        double[] before = processorTime();
        long start = System.nanoTime();
        barrier.await();
        barrier.await();
        long seconds = System.nanoTime() - start, sync = seconds;
        double[] after = processorTime();
        if (options.writes()) {
            file.sync(options);
            sync = System.nanoTime() - start;
        }
        file.close(options);
        long[] clocks = {seconds, sync, System.nanoTime() - start};
        return row(clocks, new double[] {after[0] - before[0], after[1] - before[1]}, workers);
    }

    private static String row(long[] clocks, double[] cpu, List<Worker> workers) {
        long[] latencies = workers.stream().flatMapToLong(w -> Arrays.stream(w.latencies, 0, w.timed)).sorted().toArray();
        if (latencies.length == 0) latencies = new long[1]; // a tree
        List<String> columns = new ArrayList<>();
        columns.add(String.format(
                Locale.ROOT, "seconds=%.9f\tsync_s=%.9f\tclose_s=%.9f", clocks[0] / 1e9, clocks[1] / 1e9, clocks[2] / 1e9));
        columns.add("ops=" + workers.stream().mapToLong(w -> w.ops).sum());
        columns.add("bytes=" + workers.stream().mapToLong(w -> w.bytes).sum());
        columns.add("pages_ok=" + workers.stream().mapToLong(w -> w.pagesOk).sum());
        columns.add("in_flight_max=" + inFlightMax);
        columns.add(String.format(Locale.ROOT, "cpu_user_s=%.6f\tcpu_sys_s=%.6f", cpu[0], cpu[1]));
        columns.add("switches=-1\tswitches_forced=-1"); // not available in the JDK
        for (int percent : new int[] {50, 95, 99, 100}) {
            long latency = latencies[(latencies.length * percent + 99) / 100 - 1];
            columns.add(String.format(Locale.ROOT, "%s_us=%.3f", percent == 100 ? "max" : "p" + percent, latency / 1e3));
        }
        return String.join("\t", columns);
    }

    public static void main(String[] words) throws Exception {
        boolean lists = words.length > 0 && words[0].equals("--list");
        if (lists && (words.length == 1 || words.length == 2 && OPERATIONS.contains(words[1]))) {
            for (String method : METHODS) {
                String reason = unavailable(method, words.length == 1 ? "write" : words[1]);
                System.out.println(method + "\t" + (reason == null ? "ok" : reason));
            }
            return;
        }
        Options options = parse(words);
        // Check before the file is truncated: an unavailable method must not change it.
        String reason = unavailable(options.method, options.op);
        if (options.advice.equals("random") && options.op.endsWith("read")) reason = "Java has no posix_fadvise";
        if (reason != null) throw stop(UNAVAILABLE, "cannot run", options.method, reason);
        try {
            System.out.println(run(options));
        } catch (Throwable error) {
            throw failed(options.deed(), options.path, error);
        }
    }
}
