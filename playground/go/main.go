// Does one operation on one file or one tree, with one I/O method, and prints one row. The contract
// is ../README.md.
//
// A worker is a goroutine with its own partition of the file; except with the methods `goroutines`
// and `file` it is locked to a thread. A slot holds one operation and its buffer. System calls need
// one slot; a ring has --depth slots, and a block starts only when a slot is free. The slots bound
// the operations in flight. The submission queue does not, because the kernel empties it at each
// submission. In a tree, the workers share a queue of directories instead.
package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	page       = 4096
	stampBytes = 16
	timedEvery = 64
	ringMax    = 32768
)

// Exit statuses.
const (
	failed = 1 + iota
	misused
	unavailable
)

type options struct {
	op, method, path, wait, direct, advice               string
	size, block, threads, depth, batch, seed, generation uint64

	// These follow from the others.
	writes, syncs, trees, rings, spins bool
}

var (
	operations = []string{"write", "read", "random-read", "append-sync", "walk", "stat"}
	methods    = []string{"blocking", "threads", "uring", "goroutines", "file", "null"}
)

// quitting is never unlocked: if several goroutines fail, only the first prints its error.
var quitting sync.Mutex

func quit(status int, format string, arguments ...any) {
	quitting.Lock()
	fmt.Fprintf(os.Stderr, "%s: %s\n", filepath.Base(os.Args[0]), fmt.Sprintf(format, arguments...))
	os.Exit(status)
}

// words returns an errno's text as the C library spells it, with a capital letter.
func words(err error) string {
	text := err.Error()
	if errno := unix.Errno(0); errors.As(err, &errno) { // also one inside an os.PathError
		text = errno.Error()
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// job is the state that all workers share.
type job struct {
	options
	file                  *os.File // nil for trees and `null`
	fd                    int
	tree                  tree
	pattern               [page]byte // a page without its stamp
	inFlight, inFlightMax atomic.Int64
}

func fail(action, path string, err error) { quit(failed, "%s '%s': %s", action, path, words(err)) }

// again repeats a call that a signal interrupts.
func again(call func() (int, error)) (result int, err error) {
	for result, err = call(); err == unix.EINTR; result, err = call() {
	}
	return result, err
}

// countBegun counts operations before their submission. They are counted until their completion is
// known, so the count is an upper bound of the operations in flight.
func (j *job) countBegun(operations int) {
	now := j.inFlight.Add(int64(operations))
	for most := j.inFlightMax.Load(); now > most && !j.inFlightMax.CompareAndSwap(most, now); {
		most = j.inFlightMax.Load()
	}
}

func (j *job) countEnded(operations int) { j.inFlight.Add(-int64(operations)) }

func (j *job) makePattern() {
	x := j.seed ^ j.generation*0x9E3779B97F4A7C15
	if x == 0 {
		x = 1
	}
	for at := stampBytes; at < page; at += 8 {
		x ^= x >> 12
		x ^= x << 25
		x ^= x >> 27
		binary.LittleEndian.PutUint64(j.pattern[at:], x*0x2545F4914F6CDD1D)
	}
}

func (j *job) stampOf(offset uint64) (stamp [stampBytes]byte) {
	binary.LittleEndian.PutUint64(stamp[:], offset)
	binary.LittleEndian.PutUint64(stamp[8:], j.generation)
	return stamp
}

// order returns the places of the blocks of a random read.
func order(seed, count uint64) []uint64 {
	number := func() uint64 {
		seed += 0x9E3779B97F4A7C15
		z := (seed ^ seed>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		return z ^ z>>31
	}
	var rounds [4]struct{ addend, factor uint64 }
	for i := range rounds {
		rounds[i].addend = number()
		rounds[i].factor = number() | 1
	}
	width := bits.Len64(max(count, 2) - 1)
	mask, shift := uint64(1)<<width-1, max(width/3, 1)
	image := func(x uint64) uint64 {
		for _, round := range rounds {
			x = (x + round.addend) * round.factor & mask
			x ^= x >> shift
		}
		return x
	}
	places := make([]uint64, count)
	for k := range places {
		x := image(uint64(k))
		for x >= count {
			x = image(x)
		}
		places[k] = x
	}
	return places
}

type slot struct {
	number         uint64
	buffer         []byte // starts with the page that contains the start of the block
	offset, length uint64
	moved          uint64
	syncing        bool // all of the block is written
	timed          bool
	start          time.Time
}

// position returns the offset of the rest.
func (s *slot) position() int64 { return int64(s.offset + s.moved) }

// rest returns the part of the block that has not been transferred.
func (s *slot) rest() []byte { return s.buffer[s.offset%page+s.moved : s.offset%page+s.length] }

func (s *slot) stamp(j *job) {
	base := s.offset - s.offset%page
	for at := uint64(0); base+at < s.offset+s.length; at += page {
		stamp := j.stampOf(base + at)
		copy(s.buffer[at:], stamp[:])
	}
}

// verify checks the stamps of the block and returns the number of pages that start in it. If two
// blocks share a stamp, each checks its part.
func (s *slot) verify(j *job) (begun uint64) {
	base, end := s.offset-s.offset%page, s.offset+s.length
	for at := uint64(0); base+at < end; at += page {
		stamp := j.stampOf(base + at)
		from := max(base+at, s.offset) - base - at
		to := min(stampBytes, end-base-at)
		if from < to && !bytes.Equal(s.buffer[at+from:at+to], stamp[from:to]) {
			quit(failed, "cannot verify '%s': page at %d is not what was written", j.path, base+at)
		}
		if from == 0 {
			begun++
		}
	}
	return begun
}

type worker struct {
	*job
	first, next, end    uint64   // blocks
	order               []uint64 // of a random read, from first
	transfer            func(*slot) (int, error)
	slots               []slot
	free                []*slot
	dirents             []byte
	ops, bytes, pagesOK uint64
	latencies           []time.Duration
}

// prepare maps the buffers outside Go's heap, because the kernel may write to them at any time.
func (w *worker) prepare() {
	if w.trees {
		w.dirents = make([]byte, direntsBytes)
		w.countBegun(1)
		return
	}
	span := w.block
	if w.block%page != 0 {
		// A block that starts inside a page needs space for the start of that page, and may end
		// inside another.
		span = (w.block/page + 2) * page
	}
	blocks := w.end - w.first
	count, timed := uint64(1), blocks/timedEvery+1
	if w.rings {
		count = w.depth
	}
	if w.syncs {
		timed = blocks
	}
	if w.op == "random-read" {
		w.order = order(w.seed, blocks)
	}
	count = min(count, blocks)
	w.transfer = w.call()
	w.latencies = make([]time.Duration, 0, timed)
	w.slots = make([]slot, count)
	memory, err := unix.Mmap(-1, 0, int(count*span+page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		quit(failed, "cannot allocate buffers: %s", words(err))
	}
	for i := range w.slots {
		w.slots[i].number, w.slots[i].buffer, memory = uint64(i), memory[:span], memory[span:]
		for at := uint64(0); at < span; at += page {
			copy(w.slots[i].buffer[at:], w.pattern[:])
		}
		w.free = append(w.free, &w.slots[i])
	}
}

// begin assigns the next block to a free slot.
func (w *worker) begin() *slot {
	s := w.free[len(w.free)-1]
	w.free = w.free[:len(w.free)-1]
	number := w.next
	if w.order != nil {
		number = w.first + w.order[w.next-w.first]
	}
	s.offset = number * w.block
	s.length = min(w.block, w.size-s.offset)
	s.moved, s.syncing = 0, false
	if w.writes {
		s.stamp(w.job)
	}
	if s.timed = w.syncs || (w.next-w.first)%timedEvery == 0; s.timed {
		s.start = time.Now()
	}
	w.next++
	return s
}

// advance processes the result of an operation and returns whether the block is complete.
func (w *worker) advance(s *slot, moved int, err error) bool {
	switch {
	case err == unix.EINTR || err == unix.EAGAIN:
		return false
	case err != nil && err != io.EOF:
		fail("cannot "+w.deed(s), w.path, err)
	case moved == 0 && !s.syncing:
		quit(failed, "cannot %s '%s': unexpected end of file", w.deed(s), w.path)
	}
	w.ops++
	w.bytes += uint64(moved)
	s.moved += uint64(moved)
	if s.moved < s.length {
		return false
	}
	if w.syncs && !s.syncing {
		s.syncing = true
		return false
	}
	if s.timed {
		w.latencies = append(w.latencies, time.Since(s.start))
	}
	if !w.writes {
		w.pagesOK += s.verify(w.job)
	}
	w.free = append(w.free, s)
	return true
}

// deed returns what the operation of a slot does.
func (j *job) deed(s *slot) string {
	switch {
	case s.syncing:
		return "sync"
	case j.writes:
		return "write"
	}
	return "read"
}

// call returns the function that moves the rest of a block.
func (j *job) call() func(*slot) (int, error) {
	switch {
	case j.method == "null" && j.writes:
		return func(s *slot) (int, error) { return len(s.rest()), nil }
	case j.method == "null":
		return func(s *slot) (int, error) { s.stamp(j); return len(s.rest()), nil }
	case j.method == "file" && j.writes:
		return func(s *slot) (int, error) { return j.file.WriteAt(s.rest(), s.position()) }
	case j.method == "file":
		return func(s *slot) (int, error) { return j.file.ReadAt(s.rest(), s.position()) }
	case j.method == "blocking" && j.writes:
		return func(s *slot) (int, error) { return unix.Write(j.fd, s.rest()) }
	case j.method == "blocking" && j.op == "read":
		return func(s *slot) (int, error) { return unix.Read(j.fd, s.rest()) }
	case j.writes:
		return func(s *slot) (int, error) { return unix.Pwrite(j.fd, s.rest(), s.position()) }
	}
	return func(s *slot) (int, error) { return unix.Pread(j.fd, s.rest(), s.position()) }
}

// operate moves the rest of a block, or syncs the file after it.
func (w *worker) operate(s *slot) (int, error) {
	if s.syncing {
		return 0, unix.Fdatasync(w.fd)
	}
	return w.transfer(s)
}

func (w *worker) runCalls() {
	for w.next < w.end {
		s := w.begin()
		w.countBegun(1)
		for moved, err := w.operate(s); !w.advance(s, moved, err); moved, err = w.operate(s) {
		}
		w.countEnded(1)
	}
}

// tree is the queue of the directories that no worker has taken yet.
type tree struct {
	*sync.Cond
	paths []string
	taken int // directories that workers list now
}

// take waits for a directory and returns it, or false if all have been listed.
func (t *tree) take() (path string, found bool) {
	t.L.Lock()
	defer t.L.Unlock()
	for len(t.paths) == 0 && t.taken > 0 {
		t.Wait()
	}
	if len(t.paths) == 0 {
		return "", false
	}
	path, t.paths = t.paths[0], t.paths[1:]
	t.taken++
	return path, true
}

// replace puts the subdirectories of a directory that was taken into its place.
func (t *tree) replace(below []string) {
	t.L.Lock()
	defer t.L.Unlock()
	t.paths = append(t.paths, below...)
	t.taken--
	if t.taken == 0 && len(below) == 0 {
		t.Broadcast()
	}
	// This worker takes one of them itself.
	for range max(len(below)-1, 0) {
		t.Signal()
	}
}

func (w *worker) runTree() {
	list := w.listWithCalls
	if w.method == "goroutines" {
		list = w.listWithReadDir
	}
	for path, found := w.tree.take(); found; path, found = w.tree.take() {
		w.tree.replace(list(path))
	}
}

// listWithReadDir counts the entries of a directory and returns its subdirectories.
func (w *worker) listWithReadDir(path string) (below []string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		fail("cannot "+w.op, path, err)
	}
	for _, entry := range entries {
		if w.op == "stat" {
			info, err := entry.Info()
			if err != nil {
				fail("cannot stat", path+"/"+entry.Name(), err)
			}
			if info.Mode().IsRegular() {
				w.bytes += uint64(info.Size())
			}
		}
		if entry.IsDir() {
			below = append(below, path+"/"+entry.Name())
		}
	}
	w.ops += uint64(len(entries))
	return below
}

// A directory is read into a buffer of the C library's size.
const (
	direntsBytes = 32768
	direntLength = unsafe.Offsetof(unix.Dirent{}.Reclen)
	direntType   = unsafe.Offsetof(unix.Dirent{}.Type)
	direntName   = unsafe.Offsetof(unix.Dirent{}.Name)
)

// listWithCalls does the same with direct system calls.
func (w *worker) listWithCalls(path string) (below []string) {
	fd, err := again(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	for err == nil {
		var length int
		length, err = again(func() (int, error) { return unix.Getdents(fd, w.dirents) })
		if length <= 0 {
			break
		}
		below = w.countDirents(fd, path, w.dirents[:length], below)
	}
	if err == nil {
		err = unix.Close(fd)
	}
	if err != nil {
		fail("cannot "+w.op, path, err)
	}
	return below
}

// countDirents counts entries of a directory and appends its subdirectories to below.
func (w *worker) countDirents(fd int, path string, dirents []byte, below []string) []string {
	for length := uint16(0); len(dirents) > 0; dirents = dirents[length:] {
		length = binary.NativeEndian.Uint16(dirents[direntLength:])
		name, _, _ := bytes.Cut(dirents[direntName:length], []byte{0})
		if string(name) == "." || string(name) == ".." {
			continue
		}
		kind := dirents[direntType]
		if w.op == "stat" || kind == unix.DT_UNKNOWN {
			var metadata unix.Stat_t
			_, err := again(func() (int, error) {
				return 0, unix.Fstatat(fd, string(name), &metadata, unix.AT_SYMLINK_NOFOLLOW)
			})
			if err != nil {
				fail("cannot "+w.op, path+"/"+string(name), err)
			}
			kind = byte(metadata.Mode >> 12) // as IFTODT of dirent.h
			if w.op == "stat" && kind == unix.DT_REG {
				w.bytes += uint64(metadata.Size)
			}
		}
		if kind == unix.DT_DIR {
			below = append(below, path+"/"+string(name))
		}
		w.ops++
	}
	return below
}

// The ring's structures follow linux/io_uring.h.
type (
	sqOffsets struct{ head, tail, mask, entries, flags, dropped, array, _, _, _ uint32 }
	cqOffsets struct{ head, tail, mask, entries, overflow, cqes, flags, _, _, _ uint32 }
	ringSetup struct {
		sqEntries, cqEntries, flags, _, _, features, _, _, _, _ uint32
		sq                                                      sqOffsets
		cq                                                      cqOffsets
	}
	sqe struct {
		opcode, flags   uint8
		priority        uint16
		fd              int32
		offset, address uint64
		length, rwFlags uint32
		userData        uint64
		_               [3]uint64
	}
	cqe struct {
		userData uint64
		result   int32
		flags    uint32
	}
)

const (
	opFsync           = 3
	opRead            = 22
	opWrite           = 23
	offSqes           = 0x10000000
	setupSingleIssuer = 1 << 12
	setupDeferTaskrun = 1 << 13
	featSingleMmap    = 1
	enterGetevents    = 1
	fsyncDatasync     = 1
)

type ring struct {
	fd int
	// Shared with the kernel, which writes sqHead and cqTail. This side writes sqTail and cqHead.
	sqHead, sqTail, cqHead, cqTail *uint32
	sqes                           []sqe
	cqes                           []cqe
	shared, entries                []byte
}

// at returns a pointer into the shared memory.
func at[T any](memory []byte, offset uint32) *T { return (*T)(unsafe.Pointer(&memory[offset])) }

// makeRing creates a ring with --depth entries, so that the kernel may use as many workers. The
// completion queue has twice as many and cannot overflow.
func makeRing(depth uint32, spins bool) (*ring, error) {
	setup := ringSetup{flags: setupSingleIssuer | setupDeferTaskrun}
	if spins {
		// Deferred task work only runs when the thread enters the kernel to wait, which a spinning
		// thread does not.
		setup.flags = 0
	}
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(depth), uintptr(unsafe.Pointer(&setup)), 0)
	if errno == unix.EINVAL && setup.flags != 0 { // Linux before 6.1
		setup = ringSetup{}
		fd, _, errno = unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(depth), uintptr(unsafe.Pointer(&setup)), 0)
	}
	if errno != 0 {
		return nil, errno
	}
	r := &ring{fd: int(fd)}
	if err := r.share(&setup); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// share maps the two queues (one common mapping since Linux 5.4) and the submission entries.
func (r *ring) share(setup *ringSetup) (err error) {
	if setup.features&featSingleMmap == 0 {
		return unix.ENOSYS
	}
	length := max(setup.sq.array+4*setup.sqEntries, setup.cq.cqes+uint32(unsafe.Sizeof(cqe{}))*setup.cqEntries)
	r.shared, err = unix.Mmap(r.fd, 0, int(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	length = uint32(unsafe.Sizeof(sqe{})) * setup.sqEntries
	r.entries, err = unix.Mmap(r.fd, offSqes, int(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	r.sqHead, r.sqTail = at[uint32](r.shared, setup.sq.head), at[uint32](r.shared, setup.sq.tail)
	r.cqHead, r.cqTail = at[uint32](r.shared, setup.cq.head), at[uint32](r.shared, setup.cq.tail)
	r.sqes = unsafe.Slice(at[sqe](r.entries, 0), setup.sqEntries)
	r.cqes = unsafe.Slice(at[cqe](r.shared, setup.cq.cqes), setup.cqEntries)
	// The indirection array is not used: index i always refers to entry i.
	for i, array := uint32(0), unsafe.Slice(at[uint32](r.shared, setup.sq.array), setup.sqEntries); i < setup.sqEntries; i++ {
		array[i] = i
	}
	return nil
}

func (r *ring) close() {
	for _, memory := range [][]byte{r.shared, r.entries} {
		if memory != nil {
			unix.Munmap(memory)
		}
	}
	unix.Close(r.fd)
}

// push queues an entry. The queue has space for every slot, and no slot is queued twice.
func (r *ring) push(e sqe) {
	tail := *r.sqTail
	r.sqes[tail&uint32(len(r.sqes)-1)] = e
	// Publishes the entry to the kernel, which loads the tail with acquire ordering.
	atomic.StoreUint32(r.sqTail, tail+1)
}

// pop returns the next completion without a system call.
func (r *ring) pop() (c cqe, found bool) {
	head := *r.cqHead
	// Pairs with the kernel's release store: the completion is written before the tail.
	if head == atomic.LoadUint32(r.cqTail) {
		return c, false
	}
	c = r.cqes[head&uint32(len(r.cqes)-1)]
	// The kernel may overwrite the entry from here on: the copy must be made before.
	atomic.StoreUint32(r.cqHead, head+1)
	return c, true
}

func (r *ring) queued() uint32 { return *r.sqTail - atomic.LoadUint32(r.sqHead) }

// enter submits `submit` queued entries and waits for `completions` completions.
func (r *ring) enter(submit, completions uint32, flags uintptr) unix.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(submit), uintptr(completions), flags, 0, 0)
	return errno
}

func (w *worker) makeRing() *ring {
	r, err := makeRing(uint32(w.depth), w.spins)
	if err != nil {
		quit(unavailable, "cannot run '%s': %s", w.method, words(err))
	}
	return r
}

func (w *worker) queue(r *ring, s *slot) {
	if s.syncing {
		r.push(sqe{opcode: opFsync, fd: int32(w.fd), rwFlags: fsyncDatasync, userData: s.number})
		return
	}
	opcode, rest := uint8(opRead), s.rest()
	if w.writes {
		opcode = opWrite
	}
	address := uint64(uintptr(unsafe.Pointer(&rest[0])))
	r.push(sqe{opcode: opcode, fd: int32(w.fd), offset: uint64(s.position()), address: address,
		length: uint32(len(rest)), userData: s.number})
}

// startable returns the number of blocks to start now: a batch, or the rest if that is less; 0
// while too few slots are free.
func (w *worker) startable() int {
	batch := int(min(w.batch, uint64(len(w.slots)), w.end-w.next))
	if batch > len(w.free) {
		return 0
	}
	return batch
}

func (w *worker) submit(r *ring, wait bool) {
	var errno unix.Errno
	switch queued := r.queued(); {
	case wait:
		errno = r.enter(queued, 1, enterGetevents)
	case queued > 0:
		errno = r.enter(queued, 0, 0)
	}
	switch errno {
	case 0, unix.EINTR:
	case unix.EAGAIN, unix.EBUSY:
		// The kernel is out of memory for requests. Entries that it did not consume stay queued
		// until some complete.
		r.enter(0, 0, enterGetevents)
		time.Sleep(time.Millisecond)
	default:
		fail("cannot submit operations on", w.path, errno)
	}
}

func (w *worker) reap(r *ring) {
	ended := 0
	for c, found := r.pop(); found; c, found = r.pop() {
		s := &w.slots[c.userData]
		var err error
		if c.result < 0 {
			err = unix.Errno(-c.result)
		}
		if w.advance(s, int(c.result), err) {
			ended++
		} else {
			w.queue(r, s)
		}
	}
	if ended > 0 {
		w.countEnded(ended)
	}
}

func (w *worker) runRing(r *ring) {
	for w.next < w.end || len(w.free) < len(w.slots) {
		batch := w.startable()
		for range batch {
			w.queue(r, w.begin())
		}
		if batch > 0 {
			w.countBegun(batch)
		}
		w.submit(r, !w.spins && w.startable() == 0)
		w.reap(r)
	}
}

// work runs one worker. It signals `ready` and `ended`, and begins when `start` is closed, after
// the clock has started.
func (w *worker) work(ready, ended *sync.WaitGroup, start <-chan struct{}) {
	if w.method != "goroutines" && w.method != "file" {
		runtime.LockOSThread()
	}
	w.prepare()
	run := w.runCalls
	switch {
	case w.trees:
		run = w.runTree
	case w.rings:
		r := w.makeRing()
		defer r.close()
		run = func() { w.runRing(r) }
	}
	ready.Done()
	<-start
	run()
	ended.Done()
}

func usage() (u unix.Rusage) {
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	return u
}

func (j *job) startWorkers() (workers []*worker, start func(), ended *sync.WaitGroup) {
	count, blocks := j.threads, (j.size+j.block-1)/j.block
	if j.method == "blocking" || j.method == "null" {
		count = 1
	}
	var ready sync.WaitGroup
	ended = new(sync.WaitGroup)
	ready.Add(int(count))
	ended.Add(int(count))
	running := make(chan struct{})
	for i := range count {
		w := &worker{job: j, first: i * blocks / count, next: i * blocks / count, end: (i + 1) * blocks / count}
		workers = append(workers, w)
		go w.work(&ready, ended, running)
	}
	ready.Wait()
	return workers, func() { close(running) }, ended
}

func (j *job) run() {
	workers, start, ended := j.startWorkers()
	before, began := usage(), time.Now()
	start()
	ended.Wait()
	moved := time.Since(began)
	after, synced := usage(), moved
	if j.file != nil && j.writes {
		if _, err := again(func() (int, error) { return 0, unix.Fdatasync(j.fd) }); err != nil {
			fail("cannot sync", j.path, err)
		}
		synced = time.Since(began)
	}
	if j.file != nil {
		if err := j.file.Close(); err != nil {
			fail("cannot close", j.path, err)
		}
	}
	j.printRow([3]time.Duration{moved, synced, time.Since(began)}, before, after, workers)
}

func seconds(from, to unix.Timeval) float64 { return float64(to.Nano()-from.Nano()) / 1e9 }

func (j *job) printRow(clocks [3]time.Duration, before, after unix.Rusage, workers []*worker) {
	var ops, moved, pagesOK uint64
	var latencies []time.Duration
	for _, w := range workers {
		ops, moved, pagesOK = ops+w.ops, moved+w.bytes, pagesOK+w.pagesOK
		latencies = append(latencies, w.latencies...)
	}
	slices.Sort(latencies)
	if len(latencies) == 0 { // a tree
		latencies = []time.Duration{0}
	}
	rank := func(percent int) float64 { return float64(latencies[(len(latencies)*percent+99)/100-1]) / 1e3 }
	_, err := fmt.Printf("seconds=%.9f\tsync_s=%.9f\tclose_s=%.9f\tops=%d\tbytes=%d\tpages_ok=%d\tin_flight_max=%d\t"+
		"cpu_user_s=%.6f\tcpu_sys_s=%.6f\tswitches=%d\tswitches_forced=%d\tp50_us=%.3f\tp95_us=%.3f\tp99_us=%.3f\tmax_us=%.3f\n",
		clocks[0].Seconds(), clocks[1].Seconds(), clocks[2].Seconds(), ops, moved, pagesOK, j.inFlightMax.Load(),
		seconds(before.Utime, after.Utime), seconds(before.Stime, after.Stime), after.Nvcsw-before.Nvcsw, after.Nivcsw-before.Nivcsw,
		rank(50), rank(95), rank(99), rank(100))
	if err != nil {
		quit(failed, "cannot write the row: %s", err)
	}
}

func (o *options) parse(arguments []string) error {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	number := func(name string, value *uint64, least, most uint64) {
		set.Func(name, "", func(text string) (err error) {
			if *value, err = strconv.ParseUint(text, 10, 64); err != nil || *value < least || *value > most {
				return fmt.Errorf("not a number from %d to %d", least, most)
			}
			return nil
		})
	}
	word := func(name string, value *string, known ...string) {
		set.Func(name, "", func(text string) error {
			if *value = text; len(known) > 0 && !slices.Contains(known, text) {
				return errors.New("no such value")
			}
			return nil
		})
	}
	word("op", &o.op, operations...)
	word("method", &o.method, methods...)
	word("path", &o.path)
	number("size", &o.size, 1, 1<<47)
	number("block", &o.block, 1, 1<<30)
	number("threads", &o.threads, 1, ringMax)
	number("depth", &o.depth, 1, ringMax)
	number("batch", &o.batch, 1, ringMax)
	word("wait", &o.wait, "wait", "spin")
	word("direct", &o.direct, "yes", "no")
	word("advice", &o.advice, "normal", "random")
	number("seed", &o.seed, 0, 1<<64-1)
	number("generation", &o.generation, 0, 1<<64-1)
	err := set.Parse(arguments)
	switch {
	case err != nil:
		return err
	case set.NArg() > 0:
		return fmt.Errorf("'%s' is no option", set.Arg(0))
	case o.op == "" || o.method == "" || o.path == "" || o.size == 0 || o.block == 0:
		return errors.New("one of --op, --method, --path, --size, --block is missing")
	case o.direct == "yes" && (o.size%512 != 0 || o.block%512 != 0):
		return errors.New("with --direct, --size or --block is no multiple of 512")
	case o.op == "append-sync" && (o.threads > 1 || o.depth > 1):
		return errors.New("append-sync has one operation in flight: --threads 1 --depth 1")
	}
	o.derive()
	return nil
}

func (o *options) derive() {
	o.syncs = o.op == "append-sync"
	o.writes = o.op == "write" || o.syncs
	o.trees = o.op == "walk" || o.op == "stat"
	o.rings = o.method == "uring"
	o.spins = o.wait == "spin"
}

// refusal returns the reason why the method cannot run the operation; nothing if it can.
func (o *options) refusal() string {
	switch {
	case o.method == "null" && (o.trees || o.syncs):
		return "null is the loop of write, read and random-read alone"
	case o.method == "file" && o.trees:
		return "walking with package os is the method goroutines"
	case o.rings && o.trees:
		return "no operation of a ring reads a directory"
	case o.rings:
		r, err := makeRing(uint32(o.depth), o.spins)
		if err != nil {
			return words(err)
		}
		r.close()
	}
	return ""
}

func (j *job) open() {
	flags := unix.O_RDONLY | unix.O_CLOEXEC
	if j.writes {
		flags = unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC | unix.O_CLOEXEC
	}
	if j.direct == "yes" {
		flags |= unix.O_DIRECT
	}
	fd, err := again(func() (int, error) { return unix.Open(j.path, flags, 0o666) })
	if err != nil {
		fail("cannot open", j.path, err)
	}
	j.fd, j.file = fd, os.NewFile(uintptr(fd), j.path)
	if j.advice == "random" && !j.writes {
		if err := unix.Fadvise(fd, 0, 0, unix.FADV_RANDOM); err != nil {
			fail("cannot advise", j.path, err)
		}
	}
}

func list(op string) {
	for _, method := range methods {
		o := options{op: op, method: method, depth: 1}
		o.derive()
		fmt.Printf("%s\t%s\n", method, cmp.Or(o.refusal(), "ok"))
	}
}

func main() {
	switch words := os.Args[1:]; {
	case slices.Equal(words, []string{"--list"}):
		list("write")
		return
	case len(words) == 2 && words[0] == "--list" && slices.Contains(operations, words[1]):
		list(words[1])
		return
	}
	// With the default of 10,000, the runtime would end the program.
	debug.SetMaxThreads(2 * ringMax)
	j := &job{options: options{wait: "wait", direct: "no", advice: "normal", threads: 1, depth: 1, batch: 1, seed: 1, generation: 1}}
	if err := j.parse(os.Args[1:]); err != nil {
		quit(misused, "cannot use the command line: %v", err)
	}
	// Check before the file is truncated: an unavailable method must not change it.
	if reason := j.refusal(); reason != "" {
		quit(unavailable, "cannot run '%s': %s", j.method, reason)
	}
	j.makePattern()
	switch {
	case j.trees:
		j.tree = tree{Cond: sync.NewCond(new(sync.Mutex)), paths: []string{j.path}}
	case j.method != "null":
		j.open()
	}
	j.run()
}
