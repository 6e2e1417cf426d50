/* SPDX-License-Identifier: Apache-2.0 */
#include "tenants/subject.h"
#include <stdio.h>
#include <string.h>

void subject_program(const struct eyes_process *p, struct subject_words *keep, struct match_program *ret)
{
        size_t n = p->n_cmdline < sizeof(p->cmdline) ? p->n_cmdline : sizeof(p->cmdline);

        *ret = (struct match_program){ .program_known = p->exe_known,
                                       .arguments_known = n > 0,
                                       .arguments_cut = p->cmdline_cut,
                                       .program = keep->program,
                                       .arguments = keep->arguments };
        (void) snprintf(keep->program, sizeof(keep->program), "%s", p->exe_known ? p->exe_path : "");
        memcpy(keep->cmdline, p->cmdline, n);
        keep->cmdline[n] = '\0';
        for (size_t at = 0; at < n; at += strlen(keep->cmdline + at) + 1) {
                if (ret->n_arguments == SUBJECT_ARGUMENTS_MAX) {
                        ret->arguments_cut = true;
                        break;
                }
                keep->arguments[ret->n_arguments++] = keep->cmdline + at;
        }
        if (p->cmdline_cut && ret->n_arguments > 0) /* the last one may go on */
                ret->n_arguments--;
}
