/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include "api/consumer.h"
#include "base/escape.h"
#include "base/script.h"

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash && slash[1] ? slash + 1 : path;
}

void consumer_of_process(const struct eyes_process *facts, char ret[NAME_MAX_BYTES])
{
        char script[256];
        const char *name = facts->exe_known ? base_name(facts->exe_path) : facts->comm;

        switch (script_of_command(name, facts->cmdline, facts->n_cmdline, script, sizeof(script))) {
        case SCRIPT_FILE:
        case SCRIPT_OPTIONS:
                name = base_name(script);
                break;
        case SCRIPT_MODULE:
                name = script;
                break;
        case SCRIPT_UNSEEN:
        case SCRIPT_NONE:
        case SCRIPT_CODE:
        case SCRIPT_KIND_N:
                break;
        }
        text_escape(name, strlen(name), ret, NAME_MAX_BYTES);
        if (ret[0] == '\0')
                (void) snprintf(ret, NAME_MAX_BYTES, "unknown");
}
