/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where our other programs are. */
#include <limits.h>
#include "base/error.h"

/* Next to us (a build, or one folder of programs), else as installed; $LESSOR_LIBEXEC says otherwise. */
int libexec_find(const char *name, char ret[PATH_MAX], struct error *err);
