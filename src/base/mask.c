/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mask.h"
#include <stdbool.h>
#include <string.h>

struct word {
        char *at;
        size_t n;
};

static char lower(char c)
{
        return c >= 'A' && c <= 'Z' ? (char) (c - 'A' + 'a') : c;
}

static bool same_letters(const char *text, const char *name, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (lower(text[i]) != name[i])
                        return false;
        return true;
}

static bool contains(const char *text, size_t n, const char *name)
{
        size_t n_name = strlen(name);

        for (size_t i = 0; i + n_name <= n; i++)
                if (same_letters(text + i, name, n_name))
                        return true;
        return false;
}

static bool is_letter_or_digit(char c)
{
        c = lower(c);
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Words that begin or end what they name: "auth" in --auth and --basic-auth, not in --author. */
static bool contains_word(const char *text, size_t n, const char *name)
{
        size_t n_name = strlen(name);

        for (size_t i = 0; i + n_name <= n; i++)
                if (same_letters(text + i, name, n_name) && (i == 0 || !is_letter_or_digit(text[i - 1])) &&
                    (i + n_name == n || !is_letter_or_digit(text[i + n_name])))
                        return true;
        return false;
}

/* Is this the name of something secret? */
static bool names_secret(const char *name, size_t n)
{
        static const char *const parts[] = { "token",     "secret",     "passw",      "passphrase",  "apikey",
                                             "api-key",   "api_key",    "accesskey",  "access-key",  "access_key",
                                             "secretkey", "credential", "privatekey", "private-key", "private_key",
                                             "bearer",    "cookie" };
        static const char *const words[] = { "auth", "authorization", "pwd", "pw", "pass", "sig", "signature", "key" };
        /* What is counted, or says how to cut a text up, is no secret. */
        static const char *const harmless[] = { "tokenizer",   "max-token",   "max_token", "tokens",
                                                "token-count", "token_count", "n-token",   "n_token" };

        for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
                if (contains(name, n, harmless[i]))
                        return false;
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
                if (contains(name, n, parts[i]))
                        return true;
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                if (contains_word(name, n, words[i]))
                        return true;
        return false;
}

/* Bytes that end a value inside a word: what follows is readable again. */
static bool ends_value(char c)
{
        return c == '&' || c == '"' || c == '\'' || c == ' ' || c == ';' || c == ',' || c == '}' || c == '\n' ||
               c == '\t';
}

static bool mask_bytes(char *at, size_t n)
{
        if (n == 0)
                return false;
        memset(at, '*', n);
        return true;
}

/* name=value and name: value, anywhere in the word ("curl -H 'Authorization: Bearer x'", "a=1&token=x", "{"token":"x"}"). */
static bool mask_assignments(struct word w)
{
        bool touched = false;

        for (size_t i = 0; i < w.n; i++) {
                if (w.at[i] != '=' && w.at[i] != ':')
                        continue;
                size_t begin = i;
                while (begin > 0 && (is_letter_or_digit(w.at[begin - 1]) || strchr("-_.\"'", w.at[begin - 1])))
                        begin--;
                if (!names_secret(w.at + begin, i - begin))
                        continue;
                size_t from = i + 1;
                bool header = w.at[i] == ':';
                while (from < w.n && (w.at[from] == ' ' || w.at[from] == '"' || w.at[from] == '\''))
                        from++;
                size_t to = from;
                /* A header's value goes to the end of the word: "Bearer x", "Basic x". */
                while (to < w.n && (header ? w.at[to] != '"' && w.at[to] != '\'' && w.at[to] != '\n' && w.at[to] != ','
                                    : begin == 0 ? w.at[to] != '\n'
                                                 : !ends_value(w.at[to])))
                        to++;
                touched = mask_bytes(w.at + from, to - from) || touched;
                i = to > i ? to - (to == w.n) : i;
        }
        return touched;
}

/* scheme://user:password@host: the password; scheme://token@host: the token. */
static bool mask_address(struct word w)
{
        bool touched = false;

        for (size_t i = 0; i + 3 <= w.n; i++) {
                if (memcmp(w.at + i, "://", 3) != 0)
                        continue;
                size_t from = i + 3, end = from, at = 0, colon = 0;
                while (end < w.n && !strchr("/?# \"'", w.at[end])) {
                        if (w.at[end] == '@')
                                at = end;
                        if (w.at[end] == ':' && colon == 0)
                                colon = end;
                        end++;
                }
                if (at == 0)
                        continue;
                if (colon != 0 && colon < at)
                        from = colon + 1;
                touched = mask_bytes(w.at + from, at - from) || touched;
        }
        return touched;
}

static bool is_token_byte(char c)
{
        return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.' || c == '+' || c == '/' || c == '=';
}

/* Tokens that say by their beginning what they are; so many bytes at least must follow it. */
static bool mask_known_forms(struct word w)
{
        static const struct {
                const char *begin;
                size_t n_more;
        } forms[] = { { "hf_", 16 },         { "sk-", 16 },    { "ghp_", 16 }, { "gho_", 16 },   { "ghs_", 16 },
                      { "github_pat_", 16 }, { "glpat-", 16 }, { "xoxb-", 8 }, { "xoxp-", 8 },   { "AKIA", 12 },
                      { "ASIA", 12 },        { "AIza", 24 },   { "eyJ", 24 },  { "nvapi-", 16 }, { "wandb_", 16 },
                      { "r8_", 16 },         { "pypi-", 16 },  { "npm_", 16 } };
        bool touched = false;

        for (size_t i = 0; i < w.n; i++) {
                if (i > 0 && is_token_byte(w.at[i - 1]) && w.at[i - 1] != '=' && w.at[i - 1] != '/')
                        continue;
                for (size_t k = 0; k < sizeof(forms) / sizeof(forms[0]); k++) {
                        size_t n = strlen(forms[k].begin), end = i;
                        if (i + n > w.n || memcmp(w.at + i, forms[k].begin, n) != 0)
                                continue;
                        while (end < w.n && is_token_byte(w.at[end]))
                                end++;
                        if (end - i - n < forms[k].n_more)
                                continue;
                        touched = mask_bytes(w.at + i + n, end - i - n) || touched;
                        i = end - 1;
                        break;
                }
        }
        return touched;
}

static bool is_option(struct word w)
{
        return w.n >= 2 && w.at[0] == '-';
}

/* "--token VALUE": the word behind it is the value. */
static bool expects_secret(struct word w)
{
        return is_option(w) && w.at[1] == '-' && !memchr(w.at, '=', w.n) && names_secret(w.at + 2, w.n - 2);
}

size_t mask_arguments(char *args, size_t n)
{
        size_t touched = 0;
        bool value_comes = false;

        for (size_t at = 0; at < n;) {
                const char *end = memchr(args + at, '\0', n - at);
                struct word w = { .at = args + at, .n = end ? (size_t) (end - (args + at)) : n - at };
                bool is_value = value_comes && !is_option(w);
                bool hit = is_value && mask_bytes(w.at, w.n);

                value_comes = !is_value && expects_secret(w);
                if (!is_value)
                        hit = (int) mask_assignments(w) | (int) mask_address(w) | (int) mask_known_forms(w);
                touched += hit;
                at += w.n + 1;
        }
        return touched;
}
