// Runs a command in a terminal of its own, of 80 columns and 24 lines, until it has drawn TEXT, and
// kills it:
//
//   frame TEXT COMMAND [ARGUMENT]...
//
// Prints "drawn TEXT", or fails if the command ends before, or draws nothing for a minute. Answers a request for the position of
// the cursor. The time of the whole is that of the first frame with TEXT, and of one kill.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { QUIET_MS = 60 * 1000 };
static const char REQUEST[] = "\x1b[6n", POSITION[] = "\x1b[1;1R";

_Noreturn static void die(const char *action, const char *thing)
{
    fprintf(stderr, "frame: cannot %s '%s': %s\n", action, thing, strerror(errno));
    exit(125);
}

_Noreturn static void run(int terminal, char **command)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    const char *name = ptsname(terminal);
    setsid();
    int own = open(name, O_RDWR);
    if (own < 0 || ioctl(own, TIOCSCTTY, 0) < 0 || ioctl(own, TIOCSWINSZ, &size) < 0)
        die("open", name);
    for (int fd = 0; fd < 3; fd++)
        dup2(own, fd);
    setenv("TERM", "xterm-256color", 1);
    execvp(command[0], command);
    die("execute", command[0]);
}

int main(int argc, char **argv)
{
    static char drawn[1 << 20];
    size_t length = 0;
    if (argc < 3) {
        fputs("usage: frame TEXT COMMAND [ARGUMENT]...\n", stderr);
        return 2;
    }
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0 || grantpt(terminal) < 0 || unlockpt(terminal) < 0)
        die("open", "/dev/ptmx");
    pid_t child = fork();
    if (child < 0)
        die("start", argv[2]);
    if (child == 0)
        run(terminal, argv + 2);
    while (length < sizeof drawn && !memmem(drawn, length, argv[1], strlen(argv[1]))) {
        struct pollfd ready = {.fd = terminal, .events = POLLIN};
        int in_time = poll(&ready, 1, QUIET_MS) > 0;
        ssize_t count = in_time ? read(terminal, drawn + length, sizeof drawn - length) : 0;
        if (count <= 0) {
            fprintf(stderr, "frame: '%s' %s, and had not drawn '%s'\n", argv[2], in_time ? "ended" : "waits", argv[1]);
            kill(child, SIGKILL);
            waitpid(child, NULL, 0);
            return 1;
        }
        if (memmem(drawn + length, (size_t)count, REQUEST, strlen(REQUEST)) &&
            write(terminal, POSITION, strlen(POSITION)) < 0)
            die("write to", "the terminal");
        length += (size_t)count;
    }
    int found = memmem(drawn, length, argv[1], strlen(argv[1])) != NULL;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (!found) {
        fprintf(stderr, "frame: '%s' has drawn a MiB without '%s'\n", argv[2], argv[1]);
        return 1;
    }
    printf("drawn %s\n", argv[1]);
    return 0;
}
