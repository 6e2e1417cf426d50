/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* sd_notify(3) as one datagram to $NOTIFY_SOCKET: no library for three words. Without that variable nothing happens. */
void notify_service_manager(const char *words); /* "READY=1", "STOPPING=1" */
