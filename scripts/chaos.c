// scripts/chaos preloads this into trialrun. A control file makes the clock jump, and makes writes to the record fail.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct control {
  int64_t offset_s;
  int64_t writes_fail;
};

static const volatile struct control *control;

__attribute__((constructor)) static void start(void) {
  const char *path = getenv("CHAOS_CONTROL");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *mapped = mmap(NULL, sizeof *control, PROT_READ, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) control = mapped;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, now);
  if (result == 0 && control && clock == CLOCK_REALTIME) now->tv_sec += control->offset_s;
  return result;
}

// Only files of the record fail: their names end with these.
static int fails(int file) {
  if (!control || !control->writes_fail) return 0;
  char link[32] = "/proc/self/fd/", path[4096];
  char digits[12];
  int count = 0, rest = file;
  do digits[count++] = '0' + rest % 10; while (rest /= 10);
  for (int at = 0; at < count; at++) link[14 + at] = digits[count - 1 - at];
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return strstr(path, ".db") != NULL;
}

#define FAILING(result, name, parameters, arguments, file)          \
  result name parameters {                                          \
    static result(*real) parameters;                                \
    if (!real) real = dlsym(RTLD_NEXT, #name);                      \
    if (fails(file)) {                                              \
      errno = EIO;                                                  \
      return -1;                                                    \
    }                                                               \
    return real arguments;                                          \
  }

FAILING(ssize_t, write, (int file, const void *from, size_t size), (file, from, size), file)
FAILING(ssize_t, pwrite64, (int file, const void *from, size_t size, off64_t at), (file, from, size, at), file)
FAILING(ssize_t, pwrite, (int file, const void *from, size_t size, off_t at), (file, from, size, at), file)
FAILING(int, fsync, (int file), (file), file)
FAILING(int, fdatasync, (int file), (file), file)
FAILING(int, ftruncate64, (int file, off64_t size), (file, size), file)
