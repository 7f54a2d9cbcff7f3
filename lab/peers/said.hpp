// The output of one end of a transfer for the lab: lines of JSON, read as `PeerMessage` of src/peers/own.rs.
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

// The receiver has the last byte at this time of the clock shared by all processes of the machine.
inline void say_complete() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const auto nanos = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
    std::printf("{\"complete\":%llu}\n", static_cast<unsigned long long>(nanos));
    std::fflush(stdout);
}

[[noreturn]] inline void fail(const char *subject, const char *reason) {
    std::fprintf(stderr, "%s: %s\n", subject, reason);
    std::exit(1);
}
