/* SPDX-License-Identifier: Apache-2.0 */
#include "tenants/glob.h"
#include <stddef.h>

bool glob_fits(const char *pattern, const char *text)
{
        const char *star = NULL, *again = NULL; /* behind the last star; where its rest is to be tried next */

        while (*text != '\0') {
                if (*pattern == '*') {
                        star = ++pattern;
                        again = text;
                } else if (*pattern == '?' || (*pattern == *text && *pattern != '\0')) {
                        pattern++;
                        text++;
                } else if (star) { /* an earlier star never helps: the last takes one more */
                        pattern = star;
                        text = ++again;
                } else {
                        return false;
                }
        }
        while (*pattern == '*')
                pattern++;
        return *pattern == '\0';
}
