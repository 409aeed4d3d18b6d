// Requests files from a server on 127.0.0.1 over HTTP/1.1 and prints the results as one line of
// JSON:
//
//   load PORT CONNECTIONS PATHS --seconds S [--rate R]   for S seconds
//   load PORT CONNECTIONS PATHS --count N                N requests
//   load PORT CONNECTIONS PATHS --hold                   one request per connection, then idle
//                                                        connections until standard input ends
//
// PATHS is a file with one path per line. The connections share its order and repeat it from the
// beginning; `rounds` is the number of repetitions.
//
// With --rate, requests are due at regular intervals, independently of the server's progress. The
// latency of a request counts from its due time, even if all connections were busy then. (A
// closed-loop client would omit exactly the requests that a stall delays: coordinated omission.)
// After S seconds, requests that were due are still sent and awaited for GRACE_S; the latency of an
// unanswered request is the time up to then. Without --rate a connection sends its next request
// after each response.
//
// Scheduling delays of this program are not the server's. A request that could have been sent in
// time therefore counts from the time when it was sent, and a response ends when its last byte
// reached the socket according to the kernel (SO_TIMESTAMPNS), not when this program read it.
//
// A response is correct if it has status 200 and as many bytes as its Content-Length. The kernel
// discards the bytes (MSG_TRUNC), to leave the processor to the server. Other programs check
// bodies.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_BYTES = 8192, EVENTS = 256, GRACE_S = 10, TIMEOUT_S = 600 };
static const int64_t SECOND = 1000000000;
static const size_t DISCARD_BYTES = 1 << 20;

struct connection {
    int fd;
    int busy;
    int64_t start;      // start of the latency
    int64_t arrived;    // arrival time of the last byte read
    int64_t body_left;  // -1 while the head is incomplete
    size_t head_bytes;
    char head[HEAD_BYTES];
};

static struct connection *connections, **idle;  // `idle` is a FIFO ring buffer
static size_t connection_count, idle_first, idle_count;
static char **paths;
static size_t path_count;
static int port, poller;
static int64_t *latencies;
static size_t sent, latency_count, latency_capacity;
static int64_t errors, unanswered, bytes, reconnects;

_Noreturn static void die(const char *action)
{
    fprintf(stderr, "load: cannot %s: %s\n", action, strerror(errno));
    exit(1);
}

static int64_t now(void)
{
    struct timespec time;
    // The clock of the kernel's receive timestamps.
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * SECOND + time.tv_nsec;
}

static void *resize(void *old, size_t size)
{
    void *memory = realloc(old, size);
    if (!memory)
        die("get memory");
    return memory;
}

static void read_paths(const char *name)
{
    FILE *file = fopen(name, "r");
    char *line = NULL;
    size_t size = 0, capacity = 0;
    if (!file)
        die("open the paths");
    for (ssize_t length; (length = getline(&line, &size, file)) > 0;) {
        line[length - (line[length - 1] == '\n')] = 0;
        if (path_count == capacity)
            paths = resize(paths, (capacity = capacity ? 2 * capacity : 1024) * sizeof *paths);
        if (!(paths[path_count++] = strdup(line)))
            die("get memory");
    }
    fclose(file);
    free(line);
    if (!path_count) {
        errno = ENODATA;
        die("use the paths");
    }
}

// Connects synchronously: on the loopback interface that takes negligible time.
static void open_connection(struct connection *connection)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1;
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->fd < 0)
        die("make a socket");
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (setsockopt(connection->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0)
        die("enable receive timestamps");
    if (connect(connection->fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("connect");
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, connection->fd, &event) != 0)
        die("watch a socket");
}

static void reconnect(struct connection *connection)
{
    close(connection->fd);
    reconnects++;
    open_connection(connection);
}

static void put_idle(struct connection *connection)
{
    connection->busy = 0;
    idle[(idle_first + idle_count++) % connection_count] = connection;
}

static struct connection *take_idle(void)
{
    struct connection *connection = idle[idle_first];
    idle_first = (idle_first + 1) % connection_count;
    idle_count--;
    return connection;
}

static void send_request(struct connection *connection, int64_t start)
{
    char request[4096];
    int length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
                          paths[sent++ % path_count]);
    connection->busy = 1;
    connection->start = start;
    connection->body_left = -1;
    connection->head_bytes = 0;
    // The server may have closed the connection since its last response.
    if (send(connection->fd, request, (size_t)length, MSG_NOSIGNAL) == length)
        return;
    reconnect(connection);
    if (send(connection->fd, request, (size_t)length, MSG_NOSIGNAL) != length)
        die("send a request");
}

static void add_latency(int64_t latency)
{
    if (latency_count == latency_capacity) {
        latency_capacity = latency_capacity ? 2 * latency_capacity : 65536;
        latencies = resize(latencies, latency_capacity * sizeof *latencies);
    }
    latencies[latency_count++] = latency;
}

// Receives bytes and records their arrival time.
static ssize_t receive_stamped(struct connection *connection, char *to, size_t max, int flags)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct timespec))];
    } control;
    struct iovec part = {to, max};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t count = recvmsg(connection->fd, &message, flags | MSG_DONTWAIT);
    if (count < 0)
        return count;
    connection->arrived = now();
    struct cmsghdr *stamp = CMSG_FIRSTHDR(&message);
    if (stamp && stamp->cmsg_level == SOL_SOCKET && stamp->cmsg_type == SCM_TIMESTAMPNS) {
        struct timespec time;
        memcpy(&time, CMSG_DATA(stamp), sizeof time);
        connection->arrived = time.tv_sec * SECOND + time.tv_nsec;
    }
    return count;
}

static void finish(struct connection *connection, int right)
{
    add_latency((right ? connection->arrived : now()) - connection->start);
    errors += !right;
    if (!right)
        reconnect(connection);
    put_idle(connection);
}

// Returns the length of the body that follows a complete head, or -1 if the head is not valid.
static int64_t body_length(char *head)
{
    if (strncmp(head, "HTTP/1.1 200", 12) != 0)
        return -1;
    for (char *line = strchr(head, '\n'); line; line = strchr(line, '\n'))
        if (strncasecmp(++line, "content-length:", 15) == 0)
            return strtoll(line + 15, NULL, 10);
    return -1;
}

// Reads more of a head. Returns 1 if it is complete, 0 if no more bytes are available, -1 if it is
// invalid.
static int read_head(struct connection *connection)
{
    size_t left = HEAD_BYTES - 1 - connection->head_bytes;
    ssize_t count = receive_stamped(connection, connection->head + connection->head_bytes, left, 0);
    if (count <= 0)
        return count < 0 && errno == EAGAIN ? 0 : -1;
    connection->head_bytes += (size_t)count;
    connection->head[connection->head_bytes] = 0;
    char *end = strstr(connection->head, "\r\n\r\n");
    if (!end)
        return connection->head_bytes < HEAD_BYTES - 1 ? 0 : -1;
    int64_t beginning = connection->head + connection->head_bytes - (end + 4);
    end[2] = 0;
    int64_t length = body_length(connection->head);
    if (length < beginning)
        return -1;
    bytes += length;
    connection->body_left = length - beginning;
    return 1;
}

static void receive(struct connection *connection)
{
    if (!connection->busy) {  // the server closed an idle connection
        reconnect(connection);
        return;
    }
    if (connection->body_left < 0) {
        int state = read_head(connection);
        if (state < 0)
            finish(connection, 0);
        if (state <= 0)
            return;
    }
    while (connection->body_left > 0) {
        size_t max = (size_t)connection->body_left < DISCARD_BYTES ? (size_t)connection->body_left : DISCARD_BYTES;
        ssize_t count = receive_stamped(connection, NULL, max, MSG_TRUNC);
        if (count < 0 && errno == EAGAIN)
            return;
        if (count <= 0) {
            finish(connection, 0);
            return;
        }
        connection->body_left -= count;
    }
    finish(connection, 1);
}

static void wait_until(int64_t time)
{
    struct epoll_event events[EVENTS];
    int64_t left = time - now();
    left = left > 0 ? left : 0;
    struct timespec timeout = {left / SECOND, left % SECOND};
    int count = epoll_pwait2(poller, events, EVENTS, &timeout, NULL);
    for (int index = 0; index < count; index++)
        receive(events[index].data.ptr);
}

// Sends `count` requests, or those of `seconds`, and waits for the responses. Returns the elapsed
// time.
static int64_t run(double seconds, double rate, size_t count)
{
    int64_t begin = now(), last = begin, free_since = begin;
    int64_t end = begin + (count ? TIMEOUT_S * SECOND : (int64_t)(seconds * (double)SECOND));
    if (rate > 0)
        count = (size_t)(seconds * rate);
    while (last < end + GRACE_S * SECOND) {
        while (idle_count && (count ? sent < count : last < end)) {
            int64_t due = rate > 0 ? begin + (int64_t)((double)sent * SECOND / rate) : last;
            if (due > last)
                break;
            // A request that was due while all connections were busy was delayed by the server.
            send_request(take_idle(), due < free_since ? due : now());
        }
        if (idle_count == connection_count && (count ? sent >= count : last >= end))
            break;
        int64_t next = last + SECOND;
        if (rate > 0 && idle_count && sent < count)
            next = begin + (int64_t)((double)sent * SECOND / rate);
        else if (!count && last < end)
            next = end;
        int was_full = !idle_count;
        wait_until(next);
        last = now();
        if (was_full)
            free_since = last;
    }
    for (size_t index = 0; index < connection_count; index++)
        if (connections[index].busy) {
            add_latency(last - connections[index].start);
            unanswered++;
        }
    for (; rate > 0 && sent < count; sent++, unanswered++)
        add_latency(last - (begin + (int64_t)((double)sent * SECOND / rate)));
    return last - begin;
}

static int in_order(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static double quantile_ms(double share)
{
    size_t at = (size_t)(share * (double)latency_count);
    return (double)latencies[at < latency_count ? at : latency_count - 1] / 1e6;
}

static void print(int64_t took)
{
    qsort(latencies, latency_count, sizeof *latencies, in_order);
    printf("{\"requests\": %zu, \"errors\": %ld, \"unanswered\": %ld, \"bytes\": %ld, \"reconnects\": %ld, "
           "\"seconds\": %.6f, \"rounds\": %.3f, \"p50_ms\": %.4f, \"p99_ms\": %.4f, \"max_ms\": %.4f}\n",
           latency_count, errors, unanswered, bytes, reconnects, (double)took / 1e9, (double)sent / (double)path_count,
           quantile_ms(0.5), quantile_ms(0.99), quantile_ms(1));
    if (fflush(stdout) != 0)
        die("print");
}

int main(int argc, char **argv)
{
    const char *mode = argc > 4 ? argv[4] : "";
    int holds = strcmp(mode, "--hold") == 0, counts = strcmp(mode, "--count") == 0 && argc == 6;
    int lasts = strcmp(mode, "--seconds") == 0 && (argc == 6 || (argc == 8 && strcmp(argv[6], "--rate") == 0));
    if (!holds && !counts && !lasts) {
        fprintf(stderr, "usage: load PORT CONNECTIONS PATHS --seconds S [--rate R] | --count N | --hold\n");
        return 2;
    }
    port = atoi(argv[1]);
    connection_count = strtoul(argv[2], NULL, 10);
    read_paths(argv[3]);
    poller = epoll_create1(EPOLL_CLOEXEC);
    connections = resize(NULL, connection_count * sizeof *connections);
    idle = resize(NULL, connection_count * sizeof *idle);
    for (size_t index = 0; index < connection_count; index++) {
        open_connection(&connections[index]);
        put_idle(&connections[index]);
    }
    size_t count = holds ? connection_count : counts ? strtoul(argv[5], NULL, 10) : 0;
    int64_t took = run(lasts ? atof(argv[5]) : 0, argc == 8 ? atof(argv[7]) : 0, count);
    if (!latency_count) {
        errno = ENODATA;
        die("finish a single request");
    }
    print(took);
    while (holds && read(STDIN_FILENO, &(char){0}, 1) > 0) {
    }
    return 0;
}
