// What one end of a transfer prints for the lab that started it: lines of JSON, as `Said` of src/peers/own.rs reads them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

// The receiver listens on this port.
inline void say_listening(unsigned port) {
    std::printf("{\"listening\":%u}\n", port);
    std::fflush(stdout);
}

// The receiver has the last byte now, on the clock that all processes of the machine share.
inline void say_complete() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const auto nanos = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
    std::printf("{\"complete\":%llu}\n", static_cast<unsigned long long>(nanos));
    std::fflush(stdout);
}

[[noreturn]] inline void fail(const char *what, const char *why) {
    std::fprintf(stderr, "%s: %s\n", what, why);
    std::exit(1);
}
