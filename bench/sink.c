// Opens N event streams and reads them for some seconds, with as little CPU as possible, so that the server is what is
// measured. Events carry the time at which they were published as "t":<microseconds>; a sample of the streams is timed.
//
//   sink PORT PATH N SECONDS   ->   {"events":..,"bytes":..,"p50":..,"p99":..,"timed":..}   times in milliseconds
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { TIMED_STREAMS = 20, MAX_TIMES = 2000000, BUFFER = 1 << 17 };

struct stream {
  int newline;        // how many in a row: the second ends an event
  char tail[64];      // what may be the beginning of a time
  int tail_length;
  int timed;
};

static double *times;
static int time_count;

static double now_micros(void) {
  struct timeval t;
  gettimeofday(&t, NULL);
  return t.tv_sec * 1e6 + t.tv_usec;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void take_times(struct stream *s, const char *bytes, int length, double arrived) {
  static char joined[BUFFER + 128];
  memcpy(joined, s->tail, s->tail_length);
  memcpy(joined + s->tail_length, bytes, length);
  int total = s->tail_length + length;
  joined[total] = 0;
  char *at = joined, *found;
  while ((found = memmem(at, joined + total - at, "\"t\":", 4))) {
    char *end;
    double sent = strtod(found + 4, &end);
    if (end >= joined + total) break; // the number goes on in the next read
    if (time_count < MAX_TIMES) times[time_count++] = (arrived - sent) / 1000;
    at = end;
  }
  int rest = joined + total - at;
  int keep = found ? (int)(joined + total - found) : (rest < 4 ? rest : 4);
  if (keep > (int)sizeof s->tail) keep = sizeof s->tail;
  memcpy(s->tail, joined + total - keep, keep);
  s->tail_length = keep;
}

int main(int argc, char **argv) {
  if (argc < 5) return fprintf(stderr, "sink PORT PATH N SECONDS\n"), 2;
  int port = atoi(argv[1]), count = atoi(argv[3]);
  double seconds = atof(argv[4]);
  times = malloc(sizeof(double) * MAX_TIMES);
  struct stream *streams = calloc(count, sizeof *streams);
  int *fds = calloc(count, sizeof *fds);
  int poll = epoll_create1(0);
  char *request;
  int request_length = asprintf(&request, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", argv[2]);
  for (int i = 0; i < count; i++) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) return perror("connect"), 1;
    if (write(fd, request, request_length) != request_length) return perror("write"), 1;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    fds[i] = fd;
    streams[i].timed = i % (count / TIMED_STREAMS + 1) == 0;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
    epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
  }
  fprintf(stderr, "connected\n");
  static char buffer[BUFFER];
  struct epoll_event ready[512];
  unsigned long long events = 0, bytes = 0, closed = 0;
  double end = now_micros() + seconds * 1e6;
  while (now_micros() < end) {
    int n = epoll_wait(poll, ready, 512, 100);
    for (int k = 0; k < n; k++) {
      struct stream *s = &streams[ready[k].data.u32];
      int fd = fds[ready[k].data.u32];
      ssize_t got = read(fd, buffer, sizeof buffer);
      if (got < 0 && errno == EAGAIN) continue;
      if (got <= 0) {
        epoll_ctl(poll, EPOLL_CTL_DEL, fd, NULL);
        closed++;
        continue;
      }
      bytes += got;
      if (s->timed) take_times(s, buffer, got, now_micros());
      int newline = s->newline;
      for (char *c = buffer; c < buffer + got; c++) {
        if (*c == '\n') {
          if (newline == 1) events++;
          newline = newline ? 2 : 1; // the line end behind a chunk is none of ours
        } else if (*c != '\r') newline = 0;
      }
      s->newline = newline;
    }
  }
  qsort(times, time_count, sizeof *times, by_value);
  double p50 = time_count ? times[time_count / 2] : -1, p99 = time_count ? times[time_count * 99L / 100] : -1;
  printf("{\"events\":%llu,\"bytes\":%llu,\"closed\":%llu,\"p50\":%.2f,\"p99\":%.2f,\"timed\":%d}\n", events, bytes, closed, p50, p99, time_count);
}
