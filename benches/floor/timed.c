// Runs one command and prints its cost, so that size and speed of the measuring script do not
// matter:
//
//   timed [--drain] COMMAND [ARGUMENT]...
//   seconds user_s system_s maxrss_kib status bytes
//
// Standard output of the command is /dev/null, or with --drain a pipe that is read as fast as it
// fills; `bytes` is the amount read. Standard error is /dev/null. `status` is the exit status, or
// 128 plus the signal number. `maxrss_kib` is the peak memory of the command (wait4(2)), but at
// least that of this program, about 1 MiB.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

_Noreturn static void die(const char *action, const char *thing, int error)
{
    fprintf(stderr, "timed: cannot %s '%s': %s\n", action, thing, strerror(error));
    exit(125);
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// A pipe holds at most 64 KiB. Splicing to /dev/null made no measurable difference, and real
// readers do read.
static long long drain(int fd)
{
    static char buffer[1 << 16];
    long long bytes = 0;
    for (;;) {
        ssize_t count = read(fd, buffer, sizeof buffer);
        if (count == 0 || (count < 0 && errno != EINTR))
            return bytes;
        bytes += count > 0 ? count : 0;
    }
}

static pid_t start(char **command, int output)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int error = posix_spawnp(&pid, command[0], &actions, NULL, command, environ);
    if (error)
        die("run", command[0], error);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

int main(int argc, char **argv)
{
    int drains = argc > 1 && strcmp(argv[1], "--drain") == 0;
    char **command = argv + 1 + drains;
    if (!command[0]) {
        fprintf(stderr, "usage: timed [--drain] COMMAND [ARGUMENT]...\n");
        return 125;
    }
    int ends[2] = {-1, open("/dev/null", O_WRONLY | O_CLOEXEC)};
    if (drains && pipe2(ends, O_CLOEXEC) != 0)
        die("open", "a pipe", errno);

    double begin = now();
    pid_t pid = start(command, ends[1]);
    close(ends[1]);
    long long bytes = drains ? drain(ends[0]) : 0;
    int status;
    struct rusage usage;
    while (wait4(pid, &status, 0, &usage) < 0)
        if (errno != EINTR)
            die("wait for", command[0], errno);
    double wall = now() - begin;

    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    printf("%.6f %.6f %.6f %ld %d %lld\n", wall, seconds(usage.ru_utime), seconds(usage.ru_stime),
           usage.ru_maxrss, code, bytes);
    return fflush(stdout) == 0 ? 0 : 125;
}
