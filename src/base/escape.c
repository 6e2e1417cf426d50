/* SPDX-License-Identifier: Apache-2.0 */
#include "base/escape.h"
#include <stdint.h>
#include <string.h>

static bool is_continuation(unsigned char byte)
{
        return (byte & 0xc0) == 0x80;
}

/* Length of the character at @in that may be printed as it is; 0 = control character or not UTF-8 (RFC 3629: no
 * overlong forms, no surrogates, nothing above U+10FFFF). */
static size_t plain_character(const unsigned char *in, size_t n_in)
{
        unsigned char first = in[0];
        if (first < 0x80)
                return first >= 0x20 && first != 0x7f;
        if (first < 0xc2 || first > 0xf4)
                return 0;

        size_t n = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
        if (n > n_in)
                return 0;
        for (size_t i = 1; i < n; i++)
                if (!is_continuation(in[i]))
                        return 0;
        if (first == 0xc2 && in[1] < 0xa0) /* C1: U+0080 … U+009F */
                return 0;
        if ((first == 0xe0 && in[1] < 0xa0) || (first == 0xf0 && in[1] < 0x90)) /* overlong */
                return 0;
        if ((first == 0xed && in[1] > 0x9f) || (first == 0xf4 && in[1] > 0x8f)) /* surrogate; above U+10FFFF */
                return 0;
        return n;
}

const char *text_escape(const char *in, size_t n_in, char *buf, size_t buf_size)
{
        static const char ellipsis[] = "…"; /* with the NUL */
        static const char hex[] = "0123456789ABCDEF";
        const unsigned char *bytes = (const unsigned char *) in;
        size_t at = 0, out = 0;
        size_t cut = 0; /* the last end of a character after which the ellipsis still fits */

        if (buf_size == 0)
                return buf;

        while (at < n_in) {
                char piece[4];
                size_t n_piece, n_eaten = plain_character(bytes + at, n_in - at);
                if (bytes[at] == '\\') {
                        n_eaten = 1;
                        n_piece = 2;
                        piece[0] = piece[1] = '\\';
                } else if (n_eaten > 0) {
                        n_piece = n_eaten;
                        memcpy(piece, bytes + at, n_eaten);
                } else {
                        n_eaten = 1;
                        n_piece = 4;
                        piece[0] = '\\';
                        piece[1] = 'x';
                        piece[2] = hex[bytes[at] >> 4];
                        piece[3] = hex[bytes[at] & 15];
                }
                if (out + n_piece + 1 > buf_size) {
                        if (sizeof(ellipsis) <= buf_size) {
                                memcpy(buf + cut, ellipsis, sizeof(ellipsis));
                                return buf;
                        }
                        break; /* not even room for the ellipsis: cut without it */
                }
                memcpy(buf + out, piece, n_piece);
                out += n_piece;
                at += n_eaten;
                if (out + sizeof(ellipsis) <= buf_size)
                        cut = out;
        }
        buf[out] = '\0';
        return buf;
}

bool text_is_plain(const char *in, size_t n_in)
{
        const unsigned char *bytes = (const unsigned char *) in;
        size_t at = 0;
        while (at < n_in) {
                size_t n = plain_character(bytes + at, n_in - at);
                if (n == 0)
                        return false;
                at += n;
        }
        return true;
}
