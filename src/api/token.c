/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sha256.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "api/token.h"
#include "base/cleanup.h"

_Static_assert(TOKEN_DIGEST_SIZE == SHA256_DIGEST_LENGTH, "a token is kept as its SHA-256");

static bool is_hex(char c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_base64url(char c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

bool token_is_wellformed(const char *text, size_t n)
{
        bool hex = true;

        if (n > TOKEN_TEXT_MAX)
                return false;
        for (size_t i = 0; i < n; i++) {
                if (!is_base64url(text[i]))
                        return false;
                hex = hex && is_hex(text[i]);
        }
        return n >= (hex ? TOKEN_HEX_MIN : TOKEN_BASE64URL_MIN);
}

void token_of_text(const char *text, size_t n, struct token *ret)
{
        SHA2_CTX sha;

        SHA256Init(&sha);
        SHA256Update(&sha, (const uint8_t *) text, n);
        SHA256Final(ret->digest, &sha);
        explicit_bzero(&sha, sizeof(sha));
        ret->given = true;
}

bool token_matches(const struct token *token, const char *text, size_t n)
{
        struct token given = { 0 };
        unsigned different = 0;

        if (!token->given)
                return false;
        token_of_text(text, n, &given);
        for (size_t i = 0; i < sizeof(given.digest); i++)
                different |= (unsigned) (given.digest[i] ^ token->digest[i]);
        explicit_bzero(&given, sizeof(given));
        return different == 0;
}

static int check_file(int fd, const char *path, struct error *err)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return error_errno(err, errno, "looking at the token file %s", path);
        if (!S_ISREG(st.st_mode))
                return error_set(err, EINVAL, "the token file %s is no regular file; name one", path);
        if (st.st_uid != geteuid() && st.st_uid != 0)
                return error_set(err, EPERM, "the token file %s belongs to another user (uid %u); chown it to your own",
                                 path, st.st_uid);
        if (st.st_mode & 077)
                return error_set(err, EPERM, "others can read the token file %s: chmod 600 it and write a new token",
                                 path);
        return 0;
}

int token_load(const char *path, struct token *ret, struct error *err)
{
        char text[TOKEN_TEXT_MAX + 2];
        auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

        if (fd < 0 && errno == ELOOP)
                return error_set(err, ELOOP, "the token file %s is a link; name the file itself", path);
        if (fd < 0)
                return error_errno(err, errno, "reading the token file %s", path);
        int r = check_file(fd, path, err);
        if (r < 0)
                return r;

        ssize_t got = read(fd, text, sizeof(text));
        if (got < 0)
                return error_errno(err, errno, "reading the token file %s", path);
        size_t n = (size_t) got;
        if (n > 0 && text[n - 1] == '\n')
                n--;
        if (token_is_wellformed(text, n))
                token_of_text(text, n, ret);
        else
                r = error_set(
                        err, EINVAL,
                        "the token file %s holds no token of 256 bits: one line of at least %d hexadecimal digits "
                        "or %d characters of base64url; `openssl rand -hex 32` prints one",
                        path, TOKEN_HEX_MIN, TOKEN_BASE64URL_MIN);
        explicit_bzero(text, sizeof(text));
        return r;
}
