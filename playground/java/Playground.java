/*
 * Writes or reads one file once, with one I/O method, and prints one row. The contract is
 * ../README.md.
 *
 * A worker is a thread with its own partition of the file and one buffer, because Java's NIO has
 * one operation in flight for each thread. JDK 17 suffices; virtual threads are looked up by
 * reflection.
 */
import com.sun.nio.file.ExtendedOpenOption;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;

public final class Playground {
    private static final int PAGE = 4096, STAMP = 16, TIMED_EVERY = 64;
    private static final int FAILED = 1, MISUSED = 2, UNAVAILABLE = 3;
    private static final int THREADS_MAX = 32768;
    private static final List<String> METHODS = List.of("blocking", "pwrite", "virtual");

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

    private static Error failed(String action, Options options, Throwable error) {
        if (error instanceof OutOfMemoryError) return stop(FAILED, "cannot allocate buffers", "", "Cannot allocate memory");
        if (error instanceof IOException) return stop(FAILED, action, options.path(), words((IOException) error));
        return stop(FAILED, "stopped by a defect", "", error.toString());
    }

    /** Returns the errno's text. NIO omits it for errors that have a class of their own. */
    private static String words(IOException error) {
        if (error instanceof NoSuchFileException) return "No such file or directory";
        if (error instanceof AccessDeniedException) return "Permission denied";
        boolean named = error instanceof FileSystemException;
        String words = named ? ((FileSystemException) error).getReason() : error.getMessage();
        return words == null ? error.toString() : words;
    }

    // The command line

    private record Options(
            String op, String method, String path, long size, long block, int threads, boolean direct, long seed, long generation) {

        boolean writes() {
            return op.equals("write");
        }
    }

    private static final Map<String, String> DEFAULTS = Map.of(
            "--threads", "1", "--depth", "1", "--batch", "1", "--wait", "wait", "--direct", "no", "--seed", "1", "--generation", "1");

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
        count(given, "--depth", THREADS_MAX);
        count(given, "--batch", THREADS_MAX);
        word(given, "--wait", "wait", "spin");
        String method = word(given, "--method", METHODS.toArray(String[]::new));
        int threads = (int) count(given, "--threads", THREADS_MAX);
        Options options = new Options(
                word(given, "--op", "write", "read"), method, given.get("--path"), count(given, "--size", 1L << 47),
                count(given, "--block", 1L << 30), method.equals("blocking") ? 1 : threads,
                word(given, "--direct", "yes", "no").equals("yes"), number(given, "--seed"), number(given, "--generation"));
        if (options.direct && (options.size % 512 != 0 || options.block % 512 != 0)) {
            throw stop(MISUSED, "cannot use", "--direct", "--size and --block are to be multiples of 512");
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
        int move(ByteBuffer buffer, long offset) throws IOException;
    }

    private static Starter starter(String method) throws ReflectiveOperationException {
        if (!method.equals("virtual")) return work -> new Thread(work).start();
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        return work -> start.invoke(null, work);
    }

    /** Returns the reason why the method cannot run on this machine; null if it can. */
    private static String unavailable(String method) {
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

    private static Call call(Options options, FileChannel file) {
        if (options.method.equals("blocking")) {
            return options.writes() ? (buffer, offset) -> file.write(buffer) : (buffer, offset) -> file.read(buffer);
        }
        return options.writes() ? file::write : file::read;
    }

    // The file

    private static FileChannel open(Options options) {
        Set<OpenOption> how = new HashSet<>(List.of(StandardOpenOption.READ));
        if (options.writes()) {
            how = new HashSet<>(List.of(
                    StandardOpenOption.WRITE, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING));
        }
        if (options.direct) how.add(ExtendedOpenOption.DIRECT);
        try {
            needAlignment(options);
            return FileChannel.open(Path.of(options.path), how);
        } catch (IOException | UnsupportedOperationException error) {
            throw failed("cannot open", options, error);
        }
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

    /**
     * Operations in flight. Each is counted before its submission and until its completion is
     * known.
     */
    private static final AtomicInteger inFlight = new AtomicInteger(), inFlightMax = new AtomicInteger();

    private static void countBegun() {
        int now = inFlight.incrementAndGet();
        if (now > inFlightMax.get()) inFlightMax.accumulateAndGet(now, Math::max);
    }

    /** A partition of the file, with the thread that writes or reads it. */
    private static final class Worker {
        private final Options options;
        private final Call call;
        private final long first, end;
        private final List<Long> latencies = new ArrayList<>();
        private long ops, bytes, pagesOk;
        private ByteBuffer buffer;

        Worker(Options options, Call call, long first, long end) {
            this.options = options;
            this.call = call;
            this.first = first;
            this.end = end;
        }

        void work(CyclicBarrier barrier) {
            try {
                buffer = filled(options);
                barrier.await(); // all workers are ready
                barrier.await(); // the clock has started
                for (long number = first; number < end; number++) move(number);
                barrier.await(); // the last operation has ended
            } catch (Throwable error) {
                throw failed("cannot " + options.op, options, error);
            }
        }

        private void move(long number) throws IOException {
            long offset = number * options.block;
            int length = (int) Math.min(options.block, options.size - offset);
            if (options.writes()) stamp(offset, length);
            boolean timed = (number - first) % TIMED_EVERY == 0;
            long start = timed ? System.nanoTime() : 0;
            countBegun();
            moveAll(offset, length);
            inFlight.decrementAndGet();
            if (timed) latencies.add(System.nanoTime() - start);
            if (!options.writes()) verify(offset, length);
        }

        private void moveAll(long offset, int length) throws IOException {
            int begin = (int) (offset % PAGE);
            buffer.limit(begin + length).position(begin);
            while (buffer.hasRemaining()) {
                int moved = call.move(buffer, offset + buffer.position() - begin);
                if (moved <= 0) throw new IOException("unexpected end of file");
                ops++;
                bytes += moved;
            }
        }

        private void stamp(long offset, int length) {
            buffer.clear();
            int at = 0;
            for (long page = offset / PAGE * PAGE; page < offset + length; page += PAGE, at += PAGE) {
                buffer.putLong(at, page).putLong(at + 8, options.generation);
            }
        }

        /**
         * Verifies the stamps and counts the pages that start in the block. If two blocks share a
         * stamp, each verifies its part.
         */
        private void verify(long offset, int length) {
            buffer.clear();
            int at = 0;
            for (long page = offset / PAGE * PAGE; page < offset + length; page += PAGE, at += PAGE) {
                int from = (int) Math.max(offset - page, 0), to = (int) Math.min(STAMP, offset + length - page);
                if (!stamped(page, at, from, to)) {
                    throw stop(FAILED, "cannot verify", options.path, "page at " + page + " is not what was written");
                }
                if (from == 0) pagesOk++;
            }
        }

        private boolean stamped(long page, int at, int from, int to) {
            if (from == 0 && to == STAMP) return buffer.getLong(at) == page && buffer.getLong(at + 8) == options.generation;
            for (int i = from; i < to; i++) {
                long word = i < 8 ? page : options.generation;
                if (buffer.get(at + i) != (byte) (word >>> i % 8 * 8)) return false;
            }
            return true;
        }
    }

    // One run

    private static List<Worker> start(Options options, FileChannel file, CyclicBarrier barrier) throws ReflectiveOperationException {
        long blocks = (options.size + options.block - 1) / options.block;
        Starter starter = starter(options.method);
        List<Worker> workers = new ArrayList<>();
        for (int i = 0; i < options.threads; i++) {
            long first = i * blocks / options.threads, end = (i + 1) * blocks / options.threads;
            Worker worker = new Worker(options, call(options, file), first, end);
            starter.start(() -> worker.work(barrier));
            workers.add(worker);
        }
        return workers;
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
        FileChannel file = open(options);
        CyclicBarrier barrier = new CyclicBarrier(options.threads + 1);
        List<Worker> workers = start(options, file, barrier);
        barrier.await();
        double[] before = processorTime();
        long start = System.nanoTime();
        barrier.await();
        barrier.await();
        long seconds = System.nanoTime() - start, sync = seconds;
        double[] after = processorTime();
        String action = "cannot sync";
        try {
            if (options.writes()) {
                file.force(false);
                sync = System.nanoTime() - start;
            }
            action = "cannot close";
            file.close();
        } catch (IOException error) {
            throw failed(action, options, error);
        }
        long[] clocks = {seconds, sync, System.nanoTime() - start};
        return row(clocks, new double[] {after[0] - before[0], after[1] - before[1]}, workers);
    }

    private static String row(long[] clocks, double[] cpu, List<Worker> workers) {
        long[] latencies = workers.stream().flatMap(w -> w.latencies.stream()).mapToLong(Long::longValue).sorted().toArray();
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
        if (words.length == 1 && words[0].equals("--list")) {
            for (String method : METHODS) {
                String reason = unavailable(method);
                System.out.println(method + "\t" + (reason == null ? "ok" : reason));
            }
            return;
        }
        Options options = parse(words);
        // Check before the file is truncated: an unavailable method must not change it.
        String reason = unavailable(options.method);
        if (reason != null) throw stop(UNAVAILABLE, "cannot run", options.method, reason);
        try {
            System.out.println(run(options));
        } catch (Throwable error) {
            throw failed("cannot " + options.op, options, error);
        }
    }
}
