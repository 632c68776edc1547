/* Loaded before a server: its wall clock is the system's plus as many nanoseconds as a file says. Monotonic
   clocks stay as they are. The file is mapped, so a change of it is seen by the next look at the clock. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t shift(void) {
    static int64_t *volatile mapped;
    if (mapped == NULL) {
        const char *path = getenv("CLOCK_SHIFT_FILE");
        int file = path == NULL ? -1 : open(path, O_RDONLY);
        void *page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *mapped, PROT_READ, MAP_SHARED, file, 0);
        if (file >= 0) close(file);
        if (page == MAP_FAILED) abort(); /* better no server than one with the wrong clock */
        mapped = page;
    }
    return *(volatile int64_t *)mapped;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = (int)syscall(SYS_clock_gettime, clock, time);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t nanos = shift() % 1000000000 + time->tv_nsec;
        int64_t seconds = shift() / 1000000000 + nanos / 1000000000;
        if ((nanos %= 1000000000) < 0) { nanos += 1000000000; seconds -= 1; }
        time->tv_sec += (time_t)seconds;
        time->tv_nsec = (long)nanos;
    }
    return failed;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return (time_t)-1;
    if (result != NULL) *result = now.tv_sec;
    return now.tv_sec;
}
