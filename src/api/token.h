/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Bearer tokens (security S04, S16): read once from a file that only its owner can read, kept as a SHA-256 and never as
 * text. What a client presents is hashed, compared without telling by its time how much was right, and wiped.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

enum {
        TOKEN_DIGEST_SIZE = 32,
        TOKEN_HEX_MIN = 64,       /* digits of 256 bits */
        TOKEN_BASE64URL_MIN = 43, /* characters of 256 bits */
        TOKEN_TEXT_MAX = 512,
};

struct token {
        bool given;
        uint8_t digest[TOKEN_DIGEST_SIZE];
};

/* At least 256 bits by its length: 64 hexadecimal digits, or 43 characters of base64url. */
bool token_is_wellformed(const char *text, size_t n);
void token_of_text(const char *text, size_t n, struct token *ret);
/* A regular file, not a link, 0600 or stricter, of our own user or root; one line. Words say what to do about it. */
int token_load(const char *path, struct token *ret, struct error *err);
/* False also where @token is not given. */
bool token_matches(const struct token *token, const char *text, size_t n);
