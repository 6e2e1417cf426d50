/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Secrets in a command line are made unreadable before anybody else gets to see it: values of words that are called like
 * secrets (--token=…, --api-key …, DB_PASSWORD=…), credentials in addresses (https://user:…@host), headers (Authorization:
 * Bearer …), and tokens that show by their form what they are (hf_…, sk-…, ghp_…, AKIA…, eyJ….….…). Too much is masked
 * rather than too little; the program and what it works on stay readable.
 */
#include <stddef.h>

/*
 * mask_arguments - in place
 * @args  NUL-separated words, as /proc/PID/cmdline has them; the last need not be terminated (it may be cut off)
 * @n     bytes of them
 * Masked letters become '*', so that length and words stay; returns how many words were touched.
 */
size_t mask_arguments(char *args, size_t n);
