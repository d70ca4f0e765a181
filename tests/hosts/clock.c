/* The wall clock of one machine of the tests: behind the kernel's by the seconds in the file that SECONDS_BEHIND
   names, by default the machine's own /tmp/seconds_behind. The kernel has one wall clock for all namespaces, and
   setting it would hurt everyone. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t seconds_behind(void)
{
    char text[32] = "";
    int before = errno;
    const char *path = getenv("SECONDS_BEHIND");
    int file = open(path ? path : "/tmp/seconds_behind", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        ssize_t size = read(file, text, sizeof text - 1);
        text[size > 0 ? size : 0] = 0;
        close(file);
    }
    errno = before;
    return strtol(text, NULL, 10);
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
    int result = (int)syscall(SYS_clock_gettime, clock, at);
    if (result == 0 && clock == CLOCK_REALTIME)
        at->tv_sec -= seconds_behind();
    return result;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}
