/* SPDX-License-Identifier: Apache-2.0 */
#include "base/size.h"
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/escape.h"
#include "base/number.h"

enum { SHOWN_MAX = 48, FRACTION_DIGITS = 18, PERCENT_DIGITS = 3 };

#define KI UINT64_C(1024)

/* "12g" and "12gb" are taken as well as "12G" and "12GB", "12Gi" as Kubernetes writes it; not "12Gb", which is bits. */
static const struct unit {
        const char *name, *lower;
        uint64_t bytes;
} units[] = {
        { "B", "b", 1 },
        { "K", "k", KI },
        { "Ki", "ki", KI },
        { "KiB", "kib", KI },
        { "KB", "kb", 1000 },
        { "kB", "kb", 1000 },
        { "M", "m", KI *KI },
        { "Mi", "mi", KI *KI },
        { "MiB", "mib", KI *KI },
        { "MB", "mb", UINT64_C(1000000) },
        { "G", "g", KI *KI *KI },
        { "Gi", "gi", KI *KI *KI },
        { "GiB", "gib", KI *KI *KI },
        { "GB", "gb", UINT64_C(1000000000) },
        { "T", "t", KI *KI *KI *KI },
        { "Ti", "ti", KI *KI *KI *KI },
        { "TiB", "tib", KI *KI *KI *KI },
        { "TB", "tb", UINT64_C(1000000000000) },
};

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
        return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool has_blank(const char *text)
{
        for (; *text != '\0'; text++)
                if (is_blank(*text))
                        return true;
        return false;
}

static int refuse(const char *what, const char *text, const char *why, struct error *err)
{
        char shown[SHOWN_MAX];
        return error_set(err, EINVAL,
                         "%s: \"%s\" is not an amount of memory: %s; allowed are 1 byte to 2^63-1 bytes, written as "
                         "1500M, 12G (= 12GiB), 12GB, plain bytes, a share from 0.001%% to 100%%, or all",
                         what, text_escape(text, strlen(text), shown, sizeof(shown)), why);
}

/* A decimal number: @whole, and the first digits of the fraction as @frac / @frac_scale. */
struct decimal {
        uint64_t whole;
        uint64_t frac, frac_scale;
        size_t n_frac_digits; /* as written */
        bool has_fraction;
        bool fits;
};

/* Reads at @c; returns where it ended, NULL with @ret_why when it is no number at all. */
static const char *decimal_read(const char *c, struct decimal *ret, const char **ret_why)
{
        *ret = (struct decimal){ .fits = true, .frac_scale = 1 };
        if (!is_digit(*c)) {
                *ret_why = *c == '-'   ? "it is negative"
                           : *c == '+' ? "it has a sign, leave it away"
                           : *c == '.' ? "a digit must stand before the point, as 0.5G"
                                       : "it must begin with a digit";
                return NULL;
        }
        for (; is_digit(*c); c++)
                ret->fits = ret->fits && !__builtin_mul_overflow(ret->whole, UINT64_C(10), &ret->whole) &&
                            u64_add(ret->whole, (uint64_t) (*c - '0'), &ret->whole);
        if (*c == ',') {
                *ret_why = "it has a comma; a fraction is written with a point, thousands without a mark";
                return NULL;
        }
        if (*c != '.')
                return c;

        c++;
        ret->has_fraction = true;
        if (!is_digit(*c)) {
                *ret_why = "a digit must follow the point";
                return NULL;
        }
        for (; is_digit(*c); c++) {
                ret->n_frac_digits++;
                if (ret->n_frac_digits <= FRACTION_DIGITS) { /* what follows is far below one byte of a TiB */
                        ret->frac = ret->frac * 10 + (uint64_t) (*c - '0');
                        ret->frac_scale *= 10;
                }
        }
        return c;
}

static int percent_finish(const char *what, const char *text, const struct decimal *number, struct size *ret,
                          struct error *err)
{
        if (number->n_frac_digits > PERCENT_DIGITS)
                return refuse(what, text, "a share has three digits after the point at most", err);
        if (!number->fits || number->whole > 100 || (number->whole == 100 && number->frac > 0))
                return refuse(what, text, "it is more than the whole device", err);

        uint64_t milli = number->whole * 1000 + number->frac * (1000 / number->frac_scale);
        if (milli == 0)
                return refuse(what, text, "it is nothing", err);
        *ret = (struct size){ .kind = SIZE_PERCENT, .percent_milli = milli };
        return 0;
}

static const struct unit *unit_by_name(const char *name)
{
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
                if (strcmp(name, units[i].name) == 0 || strcmp(name, units[i].lower) == 0)
                        return &units[i];
        return NULL;
}

static const char *why_no_unit(const char *name)
{
        if ((name[0] == 'e' || name[0] == 'E') && (is_digit(name[1]) || name[1] == '-' || name[1] == '+'))
                return "it has an exponent, write the number out or use a unit";
        if ((name[0] == 'x' || name[0] == 'X') && name[1] != '\0')
                return "it is hexadecimal";
        if (strlen(name) == 2 && name[1] == 'b')
                return "that unit means bits; write GB, G or g";
        return "there is no such unit (K M G T, KiB MiB GiB TiB, KB MB GB TB)";
}

int size_parse(const char *what, const char *text, struct size *ret, struct error *err)
{
        struct decimal number;
        const char *why = NULL;

        if (!text || text[0] == '\0')
                return error_set(err, EINVAL,
                                 "%s is empty; write an amount of memory as 1500M, 12GiB, 12GB, 90%% or all", what);
        if (strcmp(text, "all") == 0) {
                *ret = (struct size){ .kind = SIZE_PERCENT, .percent_milli = 100000 };
                return 0;
        }
        if (has_blank(text))
                return refuse(what, text, "it has a blank in it, write it in one piece, as 12G", err);

        const char *rest = decimal_read(text, &number, &why);
        if (!rest)
                return refuse(what, text, why, err);
        if (strcmp(rest, "%") == 0)
                return percent_finish(what, text, &number, ret, err);

        const struct unit *unit = rest[0] == '\0' ? &units[0] : unit_by_name(rest);
        if (!unit)
                return refuse(what, text, why_no_unit(rest), err);
        if (unit->bytes == 1 && number.has_fraction)
                return refuse(what, text, "a byte has no fraction; was a unit meant, as 1.5G?", err);

        uint64_t bytes, part = (uint64_t) ((unsigned __int128) number.frac * unit->bytes / number.frac_scale);
        if (!number.fits || __builtin_mul_overflow(number.whole, unit->bytes, &bytes) ||
            !u64_add(bytes, part, &bytes) || bytes > SIZE_BYTES_MAX)
                return refuse(what, text, "it is too large", err);
        if (bytes == 0)
                return refuse(what, text, "it is nothing", err);
        *ret = (struct size){ .kind = SIZE_BYTES, .bytes = bytes };
        return 0;
}

static const char *const binary_names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
static const char *const decimal_names[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };

/* value / unit, rounded to nearest, counted in parts of 1 / @scale. */
static uint64_t rounded(uint64_t value, uint64_t unit, uint64_t scale)
{
        return (uint64_t) (((unsigned __int128) value * scale + unit / 2) / unit);
}

/* "22.5", "12", "1.57": hundredths as text, without zeros at the end where @trim. */
static void hundredths_text(uint64_t hundredths, bool trim, char buf[32])
{
        if (trim && hundredths % 100 == 0)
                (void) snprintf(buf, 32, "%" PRIu64, hundredths / 100);
        else if (trim && hundredths % 10 == 0)
                (void) snprintf(buf, 32, "%" PRIu64 ".%" PRIu64, hundredths / 100, hundredths % 100 / 10);
        else
                (void) snprintf(buf, 32, "%" PRIu64 ".%02" PRIu64, hundredths / 100, hundredths % 100);
}

static bool exact_in_hundredths(uint64_t bytes, uint64_t unit)
{
        return (unsigned __int128) bytes * 100 % unit == 0;
}

const char *size_text_short(uint64_t bytes, char buf[SIZE_TEXT_MAX])
{
        char number[32];
        uint64_t unit = 1;
        size_t i = 0;

        while (i + 1 < sizeof(binary_names) / sizeof(binary_names[0]) && bytes / unit >= 1024) {
                unit *= 1024;
                i++;
        }
        /* 22.5 GiB is exact as it is; 1500 MiB is exact one unit further down, and better known by that name */
        if (i > 1 && !exact_in_hundredths(bytes, unit) && bytes % (unit / 1024) == 0) {
                (void) snprintf(buf, SIZE_TEXT_MAX, "%" PRIu64 " %s", bytes / (unit / 1024), binary_names[i - 1]);
                return buf;
        }
        uint64_t hundredths = rounded(bytes, unit, 100);
        if (hundredths >= 102400 && i + 1 < sizeof(binary_names) / sizeof(binary_names[0])) {
                hundredths = 100; /* 1023.999 GiB rounds to 1.00 TiB */
                i++;
                hundredths_text(hundredths, false, number);
        } else {
                hundredths_text(hundredths, exact_in_hundredths(bytes, unit), number);
        }
        (void) snprintf(buf, SIZE_TEXT_MAX, "%s %s", number, binary_names[i]);
        return buf;
}

/* Three digits that count ("12.9 GB", "1.57 GB", "944 MB"), none wasted on zeros where it is exact ("12 GB"). */
static void decimal_text(uint64_t bytes, char buf[SIZE_TEXT_MAX])
{
        char number[32];
        uint64_t unit = 1;
        size_t i = 0;

        while (i + 1 < sizeof(decimal_names) / sizeof(decimal_names[0]) && bytes / unit >= 1000) {
                unit *= 1000;
                i++;
        }
        if (exact_in_hundredths(bytes, unit)) {
                hundredths_text(rounded(bytes, unit, 100), true, number);
        } else if (rounded(bytes, unit, 100) < 1000) {
                hundredths_text(rounded(bytes, unit, 100), false, number);
        } else if (rounded(bytes, unit, 10) < 1000) {
                uint64_t tenths = rounded(bytes, unit, 10);
                (void) snprintf(number, sizeof(number), "%" PRIu64 ".%" PRIu64, tenths / 10, tenths % 10);
        } else if (rounded(bytes, unit, 1) < 1000 || i + 1 == sizeof(decimal_names) / sizeof(decimal_names[0])) {
                (void) snprintf(number, sizeof(number), "%" PRIu64, rounded(bytes, unit, 1));
        } else {
                (void) snprintf(number, sizeof(number), "1.00");
                i++;
        }
        (void) snprintf(buf, SIZE_TEXT_MAX, "%s %s", number, decimal_names[i]);
}

const char *size_text(uint64_t bytes, char buf[SIZE_TEXT_MAX])
{
        char binary[SIZE_TEXT_MAX], decimal[SIZE_TEXT_MAX];
        (void) size_text_short(bytes, binary);
        if (bytes < 1000) {
                (void) snprintf(buf, SIZE_TEXT_MAX, "%s", binary);
                return buf;
        }
        decimal_text(bytes, decimal);
        (void) snprintf(buf, SIZE_TEXT_MAX, "%.28s (%.28s)", binary, decimal);
        return buf;
}
