/* SPDX-License-Identifier: Apache-2.0 */
/* lessor.h from C++: compiled with everything a strict project would switch on. */
#include <lessor.h>
#include <cstdio>
#include <memory>

int main()
{
        struct lessor *raw = nullptr;
        struct lessor_error *error = nullptr;
        if (lessor_open(&raw, nullptr, &error) < 0)
                return 1;
        std::unique_ptr<struct lessor, decltype(&lessor_close)> l(raw, lessor_close);
        struct lessor_request *request = nullptr;
        struct lessor_lease *lease = nullptr;
        if (lessor_request_new(&request) < 0 || lessor_request_set_size(request, "100M") < 0)
                return 2;
        auto progress = [](struct lessor_lease *, enum lessor_news, void *) { return 0; };
        int r = lessor_acquire(l.get(), request, progress, nullptr, &lease, &error);
        lessor_request_free(request);
        std::printf("%d %s %s\n", r, r < 0 ? lessor_error_text(error) : lessor_lease_id(lease), lessor_version());
        lessor_error_free(error);
        lessor_lease_release(lease, nullptr);
        lessor_lease_free(lease);
        return 0;
}
