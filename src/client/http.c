/* SPDX-License-Identifier: Apache-2.0 */
#include "client/http.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"

enum {
        RETRY_CONNECT_MS = 5, /* a full accept queue gives EAGAIN at once instead of making us wait */
        RECEIVE_BYTES = 16 * 1024,
        CHUNK_LINE_MAX = 64,
        RETRY_AFTER_MAX_S = 3600,
};

int http_clear_of_standard(int fd)
{
        if (fd < 0 || fd > STDERR_FILENO)
                return fd;
        int other = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), code = errno;
        (void) close(fd);
        errno = code;
        return other;
}

static int connect_to(const char *socket_path, uint64_t deadline_ms, int *ret_fd, struct error *err)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        size_t n = strlen(socket_path);
        if (n == 0 || n > HTTP_SOCKET_PATH_MAX)
                return error_set(err, ENAMETOOLONG, "the socket's path has %zu bytes; the kernel allows 1 to %d", n,
                                 HTTP_SOCKET_PATH_MAX);
        memcpy(address.sun_path, socket_path, n);

        auto_close int fd = http_clear_of_standard(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (fd < 0)
                return error_errno(err, errno, "making a socket");
        while (connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0) {
                if (errno == EINTR)
                        continue;
                if (errno != EAGAIN)
                        return error_errno(err, errno, "connecting to %s", socket_path);
                if (clock_now_ms() >= deadline_ms)
                        return error_set(err, ETIMEDOUT, "connecting to %s: its queue of connections stays full",
                                         socket_path);
                (void) poll(NULL, 0, RETRY_CONNECT_MS);
        }
        *ret_fd = take_fd(fd);
        return 0;
}

int http_call_begin_on(struct http_call *call, int fd, const struct http_request *request, struct error *err)
{
        size_t max_bytes = request->max_bytes > 0 ? request->max_bytes : HTTP_BODY_MAX;
        *call = (struct http_call){ .fd = fd, .stage = HTTP_SENDING };
        strbuf_init(&call->out, HTTP_BODY_MAX);
        strbuf_init(&call->in, max_bytes + HTTP_HEAD_MAX);
        strbuf_init(&call->body, max_bytes);

        strbuf_printf(&call->out, "%s %s HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\n", request->method, request->path,
                      request->accept ? request->accept : "application/json");
        if (!request->keep_open)
                strbuf_puts(&call->out, "Connection: close\r\n");
        if (request->key)
                strbuf_printf(&call->out, "Idempotency-Key: %s\r\n", request->key);
        if (request->body)
                strbuf_printf(&call->out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                              strlen(request->body));
        strbuf_puts(&call->out, "\r\n");
        if (request->body)
                strbuf_puts(&call->out, request->body);
        if (call->out.failed)
                return error_set(err, ENOMEM, "building the request");
        return 0;
}

int http_call_begin(struct http_call *call, const char *socket_path, const struct http_request *request,
                    uint64_t deadline_ms, struct error *err)
{
        int r = http_call_begin_on(call, -1, request, err);
        return r < 0 ? r : connect_to(socket_path, deadline_ms, &call->fd, err);
}

void http_call_end(struct http_call *call)
{
        if (call->fd > 0)
                (void) close(call->fd);
        call->fd = -1;
        strbuf_fini(&call->out);
        strbuf_fini(&call->in);
        strbuf_fini(&call->body);
}

int http_call_take_fd(struct http_call *call)
{
        return take_fd(call->fd);
}

/* ---- understanding ---- */

static int too_large(const struct http_call *call, struct error *err)
{
        return error_set(err, EFBIG, "the answer is larger than %zu KiB", call->body.max_bytes >> 10);
}

static void drop_front(struct strbuf *sb, size_t n)
{
        if (n == 0)
                return;
        memmove(sb->data, sb->data + n, sb->len - n + 1); /* with the NUL */
        sb->len -= n;
}

/* One header's value when @line is that header; NULL otherwise. */
static const char *header_value(const char *line, const char *name)
{
        size_t n = strlen(name);
        if (strncasecmp(line, name, n) != 0 || line[n] != ':')
                return NULL;
        line += n + 1;
        return line + strspn(line, " \t");
}

static int read_header(struct http_call *call, char *line, bool *length_seen, struct error *err)
{
        const char *value = header_value(line, "Content-Length");
        if (value) {
                uint64_t length;
                if (*length_seen || parse_u64("Content-Length", value, 0, call->body.max_bytes, &length, NULL) < 0)
                        return error_set(err, EPROTO, "the answer's length is not a number that can be");
                *length_seen = true;
                if (call->framing == HTTP_UNTIL_CLOSE)
                        call->framing = HTTP_BY_LENGTH;
                call->left = length;
                return 0;
        }
        value = header_value(line, "Retry-After"); /* a date, which it may be too, says nothing here */
        uint64_t seconds;
        if (value && parse_u64("Retry-After", value, 1, RETRY_AFTER_MAX_S, &seconds, NULL) == 0)
                call->retry_after_ms = seconds * 1000;
        value = header_value(line, "Transfer-Encoding");
        if (value) {
                if (strcasecmp(value, "chunked") != 0)
                        return error_set(err, EPROTO, "the answer comes in an encoding that is not known here");
                call->framing = HTTP_CHUNKED;
        }
        return 0;
}

/* The whole head is in @head, lines end with \r\n. */
static int read_head(struct http_call *call, char *head, struct error *err)
{
        bool length_seen = false;
        char *save = NULL, *line = strtok_r(head, "\r\n", &save);

        call->framing = HTTP_UNTIL_CLOSE;
        call->left = 0;
        if (!line || strncmp(line, "HTTP/1.", 7) != 0 || strlen(line) < 12 || line[8] != ' ')
                return error_set(err, EPROTO, "what answers there does not speak HTTP");
        uint64_t status;
        char digits[4] = { line[9], line[10], line[11], '\0' };
        if (parse_u64("status", digits, 100, 599, &status, NULL) < 0 || (line[12] != ' ' && line[12] != '\0'))
                return error_set(err, EPROTO, "the answer has no status");
        call->status = (int) status;

        while ((line = strtok_r(NULL, "\r\n", &save))) {
                int r = read_header(call, line, &length_seen, err);
                if (r < 0)
                        return r;
        }
        if (call->framing == HTTP_CHUNKED && length_seen)
                return error_set(err, EPROTO, "the answer says its length twice");
        if (call->status == 204 || call->status == 304) {
                call->framing = HTTP_BY_LENGTH;
                call->left = 0;
        }
        return 0;
}

static int understand_head(struct http_call *call, bool *ret_again, struct error *err)
{
        *ret_again = false;
        char *end = call->in.len > 0 ? strstr(call->in.data, "\r\n\r\n") : NULL;
        if (!end) {
                if (call->in.len > HTTP_HEAD_MAX || (call->in.len > 0 && strlen(call->in.data) < call->in.len))
                        return error_set(err, EPROTO, "what answers there does not speak HTTP");
                return 0;
        }
        *end = '\0';
        size_t n = (size_t) (end - call->in.data) + 4;
        int r = read_head(call, call->in.data, err);
        if (r < 0)
                return r;
        drop_front(&call->in, n);
        *ret_again = true;
        if (call->status < 200)
                return 0; /* "100 Continue": the real one follows */
        call->stage = HTTP_BODY;
        return 0;
}

static int take_body(struct http_call *call, struct error *err)
{
        size_t n = call->in.len;
        if (call->framing != HTTP_UNTIL_CLOSE && n > call->left)
                n = (size_t) call->left;
        strbuf_append(&call->body, strbuf_text(&call->in), n);
        if (call->body.failed)
                return too_large(call, err);
        drop_front(&call->in, n);
        if (call->framing != HTTP_UNTIL_CLOSE)
                call->left -= n;
        return 0;
}

/* "1a2b;extension\r\n" in front of a chunk; *ret_again: a whole line was there. */
static int understand_chunk_line(struct http_call *call, bool *ret_again, struct error *err)
{
        *ret_again = false;
        char *end = call->in.len > 0 ? memmem(call->in.data, call->in.len, "\r\n", 2) : NULL;
        if (!end) {
                if (call->in.len > CHUNK_LINE_MAX)
                        return error_set(err, EPROTO, "the answer's chunks have no lengths");
                return 0;
        }
        size_t n = (size_t) (end - call->in.data), n_digits = 0;
        uint64_t value = 0;
        for (; n_digits < n; n_digits++) {
                char c = call->in.data[n_digits];
                unsigned digit = c >= '0' && c <= '9'   ? (unsigned) (c - '0')
                                 : c >= 'a' && c <= 'f' ? (unsigned) (c - 'a') + 10
                                 : c >= 'A' && c <= 'F' ? (unsigned) (c - 'A') + 10
                                                        : 16;
                if (digit == 16)
                        break;
                value = value * 16 + digit;
                if (value > call->body.max_bytes)
                        return error_set(err, EPROTO, "a chunk of the answer is too large");
        }
        if (n_digits == 0 || (n_digits < n && call->in.data[n_digits] != ';' && call->in.data[n_digits] != ' '))
                return error_set(err, EPROTO, "the answer's chunks have no lengths");
        drop_front(&call->in, n + 2);
        *ret_again = true;
        call->left = value;
        call->in_chunk = value > 0;
        call->last_chunk = value == 0;
        return 0;
}

static int understand_chunked(struct http_call *call, struct error *err)
{
        bool again = true;
        while (again && call->stage == HTTP_BODY) {
                int r = 0;
                again = false;
                if (call->last_chunk) { /* trailers, if any, up to an empty line */
                        char *end = call->in.len > 0 ? memmem(call->in.data, call->in.len, "\r\n", 2) : NULL;
                        if (end) {
                                size_t n = (size_t) (end - call->in.data);
                                drop_front(&call->in, n + 2);
                                again = true;
                                if (n == 0)
                                        call->stage = HTTP_DONE;
                        } else if (call->in.len > HTTP_HEAD_MAX) {
                                return error_set(err, EPROTO, "the answer does not end");
                        }
                } else if (call->in_chunk && call->left > 0) {
                        again = call->in.len > 0;
                        r = take_body(call, err);
                } else if (call->in_chunk) { /* \r\n behind a chunk */
                        if (call->in.len >= 2) {
                                if (memcmp(call->in.data, "\r\n", 2) != 0)
                                        return error_set(err, EPROTO, "a chunk of the answer has the wrong length");
                                drop_front(&call->in, 2);
                                call->in_chunk = false;
                                again = true;
                        }
                } else {
                        r = understand_chunk_line(call, &again, err);
                }
                if (r < 0)
                        return r;
        }
        return 0;
}

int http_call_understand(struct http_call *call, bool at_end, struct error *err)
{
        bool again = true;
        int r = 0;
        while (r == 0 && again && call->stage == HTTP_HEAD)
                r = understand_head(call, &again, err);
        if (r < 0)
                return r;
        if (call->stage == HTTP_BODY && call->framing == HTTP_CHUNKED)
                r = understand_chunked(call, err);
        else if (call->stage == HTTP_BODY)
                r = take_body(call, err);
        if (r < 0)
                return r;
        if (call->stage == HTTP_BODY &&
            ((call->framing == HTTP_BY_LENGTH && call->left == 0) || (call->framing == HTTP_UNTIL_CLOSE && at_end)))
                call->stage = HTTP_DONE;
        if (at_end && call->stage != HTTP_DONE)
                return error_set(err, ECONNRESET, "lessord closed the connection in the middle of its answer");
        return 0;
}

/* ---- the socket ---- */

static int send_some(struct http_call *call, struct error *err)
{
        ssize_t n = send(call->fd, call->out.data + call->sent, call->out.len - call->sent, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
                call->stage = HTTP_HEAD; /* it may have answered before it closed: read that */
                return 0;
        }
        if (n < 0)
                return error_errno(err, errno, "sending the request");
        call->sent += (size_t) n;
        if (call->sent == call->out.len)
                call->stage = HTTP_HEAD;
        return 0;
}

static int receive_some(struct http_call *call, struct error *err)
{
        char buf[RECEIVE_BYTES];
        ssize_t n = recv(call->fd, buf, sizeof(buf), 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n < 0)
                return error_errno(err, errno == ECONNRESET ? ECONNRESET : errno, "reading the answer");
        strbuf_append(&call->in, buf, (size_t) n);
        if (call->in.failed)
                return too_large(call, err);
        return http_call_understand(call, n == 0, err);
}

static int milliseconds_left(uint64_t deadline_ms)
{
        if (deadline_ms == UINT64_MAX)
                return -1;
        uint64_t left = u64_sub0(deadline_ms, clock_now_ms());
        return left > INT32_MAX ? INT32_MAX : (int) left;
}

int http_call_go_on(struct http_call *call, bool stream, uint64_t deadline_ms, int wake_fd, struct error *err)
{
        while (call->stage != HTTP_DONE && !(stream && call->stage == HTTP_BODY && call->body.len > 0)) {
                struct pollfd fds[2] = {
                        { .fd = call->fd, .events = call->stage == HTTP_SENDING ? POLLOUT : POLLIN },
                        { .fd = wake_fd, .events = POLLIN },
                };
                int left = milliseconds_left(deadline_ms);
                int n = poll(fds, 2, left);
                if (n < 0 && errno != EINTR)
                        return error_errno(err, errno, "waiting for the answer");
                if (n < 0)
                        continue;
                if (fds[1].revents != 0)
                        return error_set(err, EINTR, "interrupted");
                if (n == 0)
                        return error_set(err, ETIMEDOUT, "lessord does not answer in time");
                int r = call->stage == HTTP_SENDING ? send_some(call, err) : receive_some(call, err);
                if (r < 0)
                        return r;
        }
        return 0;
}
