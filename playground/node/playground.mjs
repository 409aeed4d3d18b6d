#!/usr/bin/env node
/*
 * Does one operation on one file or tree, with one I/O method, and prints one row, in Node, Bun or
 * Deno. The contract is ../README.md.
 *
 * A partition of the file belongs to one thread. A slot holds one block and its buffer. Blocking
 * calls need one slot; promises have --depth slots, and each slot is a chain of awaited operations.
 */
import fs from "node:fs";
import { basename } from "node:path";
import process from "node:process";
import { once } from "node:events";
import { getSystemErrorMap } from "node:util";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

const PAGE = 4096, STAMP = 16, TIMED_EVERY = 64, WASM_PAGE = 65536, WARM_UP_BLOCKS = 2000;
const FAILED = 1, MISUSED = 2, UNAVAILABLE = 3;
const THREADS_MAX = 32768, UINT64_MAX = 2n ** 64n - 1n;
const RUNTIME = process.versions.bun ? "Bun" : process.versions.deno ? "Deno" : "Node";
const METHODS = ["blocking", "promises", "workers", "null"];
const WRITES = ["write", "append-sync"], READS = ["read", "random-read"], TREES = ["walk", "stat"];

/** An error that exits the program with a status; `thing` may be empty. */
class Stop extends Error {
  constructor(status, action, thing, cause) {
    super(`${action}${thing && ` '${thing}'`}: ${cause}`);
    this.status = status;
  }
}

/**
 * Returns the errno's text as the C library spells it. The message of Node also contains the call
 * and the code, and that of Deno, whose errors may lack an errno, the number.
 */
function words(error) {
  const known = getSystemErrorMap().get(error.errno)?.[1] ?? error.message.replace(/ \(os error \d+\)$/, "");
  return known[0].toUpperCase() + known.slice(1);
}

function failed(action, path) {
  return (error) => {
    throw error instanceof Stop ? error : new Stop(FAILED, action, error.path ?? path, words(error));
  };
}

function attempt(action, path, act) {
  try {
    return act();
  } catch (error) {
    return failed(action, path)(error);
  }
}

/**
 * Returns null (no bytes transferred) for an interrupted call. Node does not restart interrupted
 * reads, and Deno restarts no call; its error has a name in place of a code.
 */
function unlessInterrupted(error) {
  if (error.code !== "EINTR" && error.name !== "Interrupted") throw error;
  return null;
}

function uninterrupted(call, argument) {
  try {
    return call(argument);
  } catch (error) {
    return unlessInterrupted(error);
  }
}

/**
 * Operations in flight, over all threads. Each is counted before its submission and until its
 * completion is known.
 */
class InFlight {
  constructor(counts) {
    this.counts = counts;
  }

  begin() {
    const now = Atomics.add(this.counts, 0, 1) + 1;
    let max = Atomics.load(this.counts, 1);
    while (now > max) {
      const seen = Atomics.compareExchange(this.counts, 1, max, now);
      if (seen === max) return;
      max = seen;
    }
  }

  end() {
    Atomics.sub(this.counts, 0, 1);
  }
}

// The pattern

function filledPage(seed, generation) {
  const page = Buffer.alloc(PAGE);
  let x = BigInt.asUintN(64, seed ^ (generation * 0x9e3779b97f4a7c15n)) || 1n;
  for (let at = STAMP; at < PAGE; at += 8) {
    x ^= x >> 12n;
    x = BigInt.asUintN(64, x ^ (x << 25n));
    x ^= x >> 27n;
    page.writeBigUInt64LE(BigInt.asUintN(64, x * 0x2545f4914f6cdd1dn), at);
  }
  return page;
}

function allocated(make) {
  try {
    return make();
  } catch {
    throw new Stop(FAILED, "cannot allocate buffers", "", "Cannot allocate memory");
  }
}

/**
 * Allocates the memory of all slots, filled with the pattern except for the stamps. WebAssembly
 * memory is page-aligned, as O_DIRECT requires, and can be shared between threads.
 */
function makeMemory(options, bytes) {
  const pages = Math.max(1, Math.ceil(bytes / WASM_PAGE));
  const { buffer: memory } = allocated(() => new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true }));
  const page = filledPage(options.seed, options.generation), all = Buffer.from(memory);
  for (let at = 0; at < bytes; at += PAGE) all.set(page, at);
  return memory;
}

// The order of a random read

function* splitMix(state) {
  for (;;) {
    state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n);
    let z = BigInt.asUintN(64, (state ^ (state >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    yield z ^ (z >> 31n);
  }
}

/** Returns a permutation of the numbers below `count`, in arithmetic modulo 2^32. */
function places(seed, count) {
  if (count > 2 ** 32) throw new Stop(FAILED, "cannot order blocks", "", "there are more than 2^32");
  const order = allocated(() => new Uint32Array(count));
  const bits = 32 - Math.clz32(Math.max(count, 2) - 1), mask = -1 >>> (32 - bits), shift = Math.max(Math.floor(bits / 3), 1);
  const numbers = splitMix(seed), number = () => Number(BigInt.asUintN(32, numbers.next().value));
  const rounds = Array.from({ length: 4 }, () => [number(), number() | 1]);
  const image = (x) => {
    for (const [addend, factor] of rounds) {
      x = Math.imul(x + addend, factor) & mask;
      x ^= x >>> shift;
    }
    return x >>> 0;
  };
  for (let k = 0; k < count; k++) {
    let place = image(k);
    while (place >= count) place = image(place);
    order[k] = place;
  }
  return order;
}

// One partition

class Partition {
  /** Each of `slots` starts with the page that contains the start of its block. */
  constructor(options, slots, first, end, inFlight) {
    Object.assign(this, { options, slots, first, next: first, end, inFlight });
    Object.assign(this, { ops: 0, bytes: 0, pages_ok: 0, latencies: [] });
    this.writes = WRITES.includes(options.op);
    this.action = this.writes ? "cannot write" : "cannot read";
    this.syncs = options.op === "append-sync";
    this.timedEvery = this.syncs ? 1 : TIMED_EVERY;
    this.order = options.op === "random-read" ? places(options.seed, end - first) : null;
    this.stamp = Buffer.alloc(STAMP);
    this.stamp.writeBigUInt64LE(options.generation, 8);
  }

  setStamp(page) {
    this.stamp.writeUInt32LE(page % 2 ** 32, 0);
    this.stamp.writeUInt32LE(Math.floor(page / 2 ** 32), 4);
  }

  begin(buffer) {
    const count = this.next++ - this.first, number = this.first + (this.order ? this.order[count] : count);
    const offset = number * this.options.block;
    const length = Math.min(this.options.block, this.options.size - offset);
    if (this.writes) this.stampPages(buffer, offset, length);
    this.inFlight.begin();
    const timed = count % this.timedEvery === 0;
    return { buffer, offset, length, moved: 0, start: timed ? process.hrtime.bigint() : null };
  }

  stampPages(buffer, offset, length) {
    const first = offset - (offset % PAGE);
    for (let page = first; page < offset + length; page += PAGE) {
      this.setStamp(page);
      buffer.set(this.stamp, page - first);
    }
  }

  /**
   * Verifies the stamps and counts the pages that start in the block. If two blocks share a stamp,
   * each verifies its part.
   */
  verify({ buffer, offset, length }) {
    const first = offset - (offset % PAGE);
    for (let page = first; page < offset + length; page += PAGE) {
      const from = Math.max(offset - page, 0), to = Math.min(STAMP, offset + length - page), at = page - first;
      this.setStamp(page);
      if (from < to && buffer.compare(this.stamp, from, to, at + from, at + to) !== 0) {
        throw new Stop(FAILED, "cannot verify", this.options.path, `page at ${page} is not what was written`);
      }
      if (from === 0) this.pages_ok++;
    }
  }

  /** Processes the result of one call. Returns whether the block is complete. */
  advance(block, moved) {
    if (moved === null) return false;
    this.ops++;
    if (block.moved < block.length) { // or else it was an fdatasync
      if (moved === 0) throw new Stop(FAILED, this.action, this.options.path, "unexpected end of file");
      this.bytes += moved;
      block.moved += moved;
      if (block.moved < block.length || this.syncs) return false;
    }
    this.inFlight.end();
    if (block.start !== null) this.latencies.push(Number(process.hrtime.bigint() - block.start));
    if (!this.writes) this.verify(block);
    return true;
  }

  /** Returns the function that makes the next blocking call for a block. */
  blockingCall(fd) {
    const transfer = this.writes ? fs.writeSync : fs.readSync, { method, op, path } = this.options;
    const positioned = method === "workers" || op === "random-read";
    return ({ buffer, offset, length, moved }) => {
      if (moved === length) return attempt("cannot sync", path, () => uninterrupted(fs.fdatasyncSync, fd));
      const position = positioned ? offset + moved : null; // null: the file position
      return transfer(fd, buffer, (offset % PAGE) + moved, length - moved, position);
    };
  }

  /** Returns the function that only stamps a block where a call would read it. */
  nullCall() {
    return ({ buffer, offset, length }) => {
      if (!this.writes) this.stampPages(buffer, offset, length);
      return length;
    };
  }

  /** blocking, workers and null: the thread waits in each call. */
  runCalls(call) {
    attempt(this.action, this.options.path, () => {
      while (this.next < this.end) {
        const block = this.begin(this.slots[0]);
        while (!this.advance(block, uninterrupted(call, block))) {}
      }
    });
  }

  /** promises: each slot starts its next block when its previous one is complete. */
  async runPromises(handle) {
    const { path } = this.options;
    const call = async ({ buffer, offset, length, moved }) => {
      if (moved === length) return handle.datasync().catch(unlessInterrupted).catch(failed("cannot sync", path));
      const where = [(offset % PAGE) + moved, length - moved, offset + moved];
      if (this.writes) return (await handle.write(buffer, ...where)).bytesWritten;
      return (await handle.read(buffer, ...where)).bytesRead;
    };
    const chain = async (slot) => {
      while (this.next < this.end) {
        const block = this.begin(slot);
        while (!this.advance(block, await call(block).catch(unlessInterrupted))) {}
      }
    };
    await Promise.all(this.slots.map(chain)).catch(failed(this.action, path));
  }

  get counts() {
    const { ops, bytes, pages_ok, latencies } = this;
    return { ops, bytes, pages_ok, latencies };
  }
}

/** Computes the partitions of the file and allocates their memory. */
function layOut(options) {
  const { size, block, threads } = options, blocks = Math.ceil(size / block);
  // A block that starts inside a page needs space for the start of that page, and may end inside
  // another.
  const span = block % PAGE ? (Math.floor(block / PAGE) + 2) * PAGE : block;
  const bound = (i) => Number((BigInt(i) * BigInt(blocks)) / BigInt(threads));
  const parts = Array.from({ length: threads }, (_, i) => ({ first: bound(i), end: bound(i + 1) }));
  let at = 0;
  for (const part of parts) {
    part.slots = Math.min(options.method === "promises" ? options.depth : 1, part.end - part.first);
    part.at = at;
    at += part.slots * span;
  }
  return { options, span, parts, memory: makeMemory(options, at), counts: new Int32Array(new SharedArrayBuffer(20)) };
}

function makePartition({ options, span, memory, counts }, part) {
  const slots = Array.from({ length: part.slots }, (_, i) => Buffer.from(memory, part.at + i * span, span));
  return new Partition(options, slots, part.first, part.end, new InFlight(counts));
}

/** Runs the loop on memory of its own, so that the code of the loop is compiled. */
function warmUp(options) {
  const block = Math.min(options.block, WASM_PAGE), size = block * WARM_UP_BLOCKS;
  const layout = layOut({ ...options, method: "null", threads: 1, block, size }), partition = makePartition(layout, layout.parts[0]);
  partition.runCalls(partition.nullCall());
}

// A tree

const below = (directory, name) => Buffer.concat([directory, Buffer.from("/"), name]);

/** Paths are buffers, because names may have any bytes. */
class Tree {
  constructor(options) {
    Object.assign(this, { ops: 0, bytes: 0, pages_ok: 0, latencies: [], max: 1 });
    Object.assign(this, { options, waiting: [Buffer.from(options.path)] });
    this.action = `cannot ${options.op}`;
    this.stats = options.op === "stat";
    this.form = { encoding: "buffer", withFileTypes: !this.stats };
  }

  /** Counts an entry, of which the type or the metadata is known. */
  add(directory, name, known) {
    this.ops++;
    if (this.stats && known.isFile()) this.bytes += known.size;
    if (known.isDirectory()) this.waiting.push(below(directory, name));
  }

  runCalls() {
    attempt(this.action, this.options.path, () => {
      while (this.waiting.length > 0) {
        const directory = this.waiting.pop();
        for (const entry of fs.readdirSync(directory, this.form)) {
          if (this.stats) this.add(directory, entry, fs.lstatSync(below(directory, entry)));
          else this.add(directory, entry.name, entry);
        }
      }
    });
  }

  /** promises: a call starts as soon as less than --depth others are in flight. */
  async runPromises() {
    const { readdir, lstat } = fs.promises, unknown = [];
    const list = async (directory) => {
      for (const entry of await readdir(directory, this.form)) {
        if (this.stats) unknown.push([directory, entry]);
        else this.add(directory, entry.name, entry);
      }
    };
    const look = async ([directory, name]) => this.add(directory, name, await lstat(below(directory, name)));
    let calls = 0;
    const walked = new Promise((resolve, reject) => {
      const start = () => {
        while (calls < this.options.depth && unknown.length + this.waiting.length > 0) {
          const call = unknown.length > 0 ? look(unknown.pop()) : list(this.waiting.pop());
          this.max = Math.max(this.max, ++calls);
          call.then(end, reject);
        }
        if (calls === 0) resolve();
      };
      const end = () => {
        calls--;
        start();
      };
      start();
    });
    await walked.catch(failed(this.action, this.options.path));
  }
}

// The clocks

/**
 * Runs `work` and returns the clocks (nanoseconds since the start of the first) and the resource
 * usage.
 */
async function measure(options, file, work) {
  const before = process.resourceUsage(), start = process.hrtime.bigint();
  const since = () => Number(process.hrtime.bigint() - start);
  await work();
  const seconds = since(), after = process.resourceUsage();
  const sync = WRITES.includes(options.op) ? (await file.sync(), since()) : seconds;
  await file.close();
  return { clocks: [seconds, sync, since()], before, after };
}

const NO_FILE = { sync() {}, close() {} };

function openSync(options, flags) {
  const fd = attempt("cannot open", options.path, () => fs.openSync(options.path, flags, 0o666));
  return {
    fd,
    sync: () => attempt("cannot sync", options.path, () => fs.fdatasyncSync(fd)),
    close: () => attempt("cannot close", options.path, () => fs.closeSync(fd)),
  };
}

async function openHandle(options, flags) {
  const handle = await fs.promises.open(options.path, flags, 0o666).catch(failed("cannot open", options.path));
  return {
    handle,
    sync: () => handle.datasync().catch(failed("cannot sync", options.path)),
    close: () => handle.close().catch(failed("cannot close", options.path)),
  };
}

async function runOne(options, file) {
  warmUp(options);
  const layout = layOut(options), partition = makePartition(layout, layout.parts[0]);
  const call = options.method === "null" ? partition.nullCall() : partition.blockingCall(file.fd);
  const work = () => (file.handle ? partition.runPromises(file.handle) : partition.runCalls(call));
  return { ...(await measure(options, file, work)), all: [partition.counts], max: layout.counts[1] };
}

async function runTree(options, file) {
  const tree = new Tree(options), work = () => (options.method === "promises" ? tree.runPromises() : tree.runCalls());
  return { ...(await measure(options, file, work)), all: [tree], max: tree.max };
}

// All workers wait until counts[2] becomes 1. The main thread waits until counts[3], the number of
// workers that have not ended, becomes 0. Messages would arrive late, and the clocks of Bun's threads
// have different origins. counts[4] is 1 if a worker failed.

async function runWorkers(options, file) {
  const layout = layOut(options), { parts, ...common } = layout;
  const start = (part) => new Worker(new URL(import.meta.url), { workerData: { ...common, part, fd: file.fd } });
  let threads;
  try {
    threads = parts.map(start);
  } catch (error) {
    throw new Stop(UNAVAILABLE, "cannot start a thread", "", error.message);
  }
  const message = async (thread) => {
    const [answer] = await once(thread, "message").catch(failedWorker); // or an error event
    if (answer.failure) throw Object.assign(new Error(), answer.failure);
    return answer;
  };
  await Promise.all(threads.map(message));
  const { counts } = layout, results = Promise.all(threads.map(message));
  Atomics.store(counts, 3, threads.length);
  const measured = await measure(options, file, async () => {
    Atomics.store(counts, 2, 1);
    Atomics.notify(counts, 2);
    for (let left; (left = Atomics.load(counts, 3)) > 0; ) Atomics.wait(counts, 3, left);
    if (Atomics.load(counts, 4)) await results; // which throws the failure
  });
  return { ...measured, all: await results, max: counts[1] };
}

function failedWorker(error) {
  throw error.status ? error : new Stop(FAILED, "cannot run a worker", "", error.message);
}

function work() {
  const { options, counts, part, fd } = workerData;
  warmUp(options);
  const partition = makePartition(workerData, part);
  parentPort.postMessage("ready");
  Atomics.wait(counts, 2, 0);
  let answer;
  try {
    partition.runCalls(partition.blockingCall(fd));
    answer = partition.counts;
  } catch ({ status, message }) {
    answer = { failure: { status, message } };
    Atomics.store(counts, 4, 1);
  }
  Atomics.sub(counts, 3, 1);
  Atomics.notify(counts, 3);
  parentPort.postMessage(answer);
}

// The row

function row({ clocks, before, after, all, max }) {
  const latencies = Float64Array.from(all.flatMap((counts) => counts.latencies)).sort();
  const sum = (name) => all.reduce((total, counts) => total + counts[name], 0);
  const used = (name) => after[name] - before[name];
  const rank = (percent) => ((latencies[Math.ceil((latencies.length * percent) / 100) - 1] ?? 0) / 1e3).toFixed(3);
  return {
    seconds: (clocks[0] / 1e9).toFixed(9),
    sync_s: (clocks[1] / 1e9).toFixed(9),
    close_s: (clocks[2] / 1e9).toFixed(9),
    ops: sum("ops"),
    bytes: sum("bytes"),
    pages_ok: sum("pages_ok"),
    in_flight_max: max,
    cpu_user_s: (used("userCPUTime") / 1e6).toFixed(6),
    cpu_sys_s: (used("systemCPUTime") / 1e6).toFixed(6),
    switches: used("voluntaryContextSwitches"),
    switches_forced: used("involuntaryContextSwitches"),
    p50_us: rank(50),
    p95_us: rank(95),
    p99_us: rank(99),
    max_us: rank(100),
  };
}

// The command line

const number = (least, most) => (name, text) => {
  const value = /^[0-9]{1,20}$/.test(text) ? BigInt(text) : -1n;
  if (value >= least && value <= most) return value;
  throw new Stop(MISUSED, "cannot use", text, `${name} is a number from ${least} to ${most}`);
};
const count = (most) => (name, text) => Number(number(1n, most)(name, text));
const word = (...known) => (name, text) => {
  if (known.includes(text)) return text;
  throw new Stop(MISUSED, "cannot use", text, `${name} is one of ${known.join(", ")}`);
};

const SETTINGS = {
  op: word("write", "read", "random-read", "append-sync", "walk", "stat"),
  method: word(...METHODS),
  path: (_, text) => text,
  size: count(2n ** 47n),
  block: count(2n ** 30n),
  threads: count(BigInt(THREADS_MAX)),
  depth: count(BigInt(THREADS_MAX)),
  batch: count(BigInt(THREADS_MAX)),
  wait: word("wait", "spin"),
  direct: word("yes", "no"),
  advice: word("normal", "random"),
  seed: number(0n, UINT64_MAX),
  generation: number(0n, UINT64_MAX),
};

function parse(given) {
  const options = { threads: 1, depth: 1, batch: 1, wait: "wait", direct: "no", advice: "normal", seed: 1n, generation: 1n };
  for (let i = 0; i < given.length; i += 2) {
    const name = given[i].replace(/^--/, ""), read = given[i] !== name && Object.hasOwn(SETTINGS, name) && SETTINGS[name];
    if (!read) throw new Stop(MISUSED, "cannot use", given[i], "no such option");
    if (i + 1 === given.length) throw new Stop(MISUSED, "cannot use", given[i], "no value after it");
    options[name] = read(given[i], given[i + 1]);
  }
  const missing = ["op", "method", "path", "size", "block"].find((name) => options[name] === undefined);
  if (missing) throw new Stop(MISUSED, "cannot start", "", `--${missing} is missing`);
  if (options.direct === "yes" && (options.size % 512 || options.block % 512)) {
    throw new Stop(MISUSED, "cannot use", "--direct", "--size and --block are to be multiples of 512");
  }
  if (options.op === "append-sync" && (options.threads > 1 || options.depth > 1)) {
    throw new Stop(MISUSED, "cannot use", "append-sync", "it has one operation in flight: --threads 1 --depth 1");
  }
  if (options.method !== "workers") options.threads = 1;
  return options;
}

/** Returns the reason why the method cannot run the operation here; null if it can. */
function unavailable(method, op, direct, advice) {
  if (method === "workers" && TREES.includes(op)) return "worker threads share no queue of directories";
  if (method === "workers" && RUNTIME === "Deno") return "worker threads of Deno share no file descriptors";
  if (op === "walk" && RUNTIME === "Bun") return "Bun has no file types beside names of any bytes";
  if (TREES.includes(op) && RUNTIME === "Deno") return "Deno changes names that are not UTF-8";
  if (method === "null" && (TREES.includes(op) || op === "append-sync")) return "it makes no calls, so that nothing is synced or walked";
  if (advice === "random" && READS.includes(op)) return `${RUNTIME} has no posix_fadvise(2)`;
  if (direct === "yes" && !fs.constants.O_DIRECT) return "no O_DIRECT here";
  return null;
}

function open(options) {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_RDONLY, O_DIRECT } = fs.constants, { method, op, direct } = options;
  if (method === "null" || TREES.includes(op)) return NO_FILE;
  const flags = (WRITES.includes(op) ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY) | (direct === "yes" ? O_DIRECT : 0);
  return method === "promises" ? openHandle(options, flags) : openSync(options, flags);
}

async function main(given) {
  if (given[0] === "--list" && given.length <= 2) {
    const op = SETTINGS.op("--list", given[1] ?? "write");
    return METHODS.map((method) => `${method}\t${unavailable(method, op) ?? "ok"}\n`).join("");
  }
  const options = parse(given), { method, op, direct, advice } = options, reason = unavailable(method, op, direct, advice);
  if (reason) throw new Stop(UNAVAILABLE, "cannot run", method, reason);
  const run = TREES.includes(op) ? runTree : method === "workers" ? runWorkers : runOne;
  const columns = Object.entries(row(await run(options, await open(options))));
  return columns.map(([key, value]) => `${key}=${value}`).join("\t") + "\n";
}

if (isMainThread) {
  main(process.argv.slice(2)).then(
    (text) => {
      fs.writeSync(1, text);
      // Deno 2.9 frees its memory otherwise, and sometimes crashes while it does so.
      process.exit(0);
    },
    (error) => {
      fs.writeSync(2, `${basename(process.argv[1])}: ${error.status ? error.message : error.stack}\n`);
      process.exit(error.status ?? FAILED); // without waiting for its threads
    },
  );
} else {
  work();
}
