/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The API's description (OpenAPI 3.1), from src/api/openapi.json by the build; ends with a NUL. */
extern const char openapi_text[];
