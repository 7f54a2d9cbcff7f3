// A file over NORM (RFC 5740), from one sender to one receiver.
//
//   lab-norm send ADDRESS PORT BITS_PER_SECOND PARITY FILE
//   lab-norm receive ADDRESS PORT DIRECTORY FILE
//
// The sender answers until it is killed: only the receiver knows when the file is complete.

#include <cstring>
#include <string>

#include <normApi.h>

#include "said.hpp"

namespace {

// Bytes of a packet's data: with NORM's headers, UDP and IP it stays below 1500.
constexpr UINT16 SEGMENT = 1400;
// Packets of a block, and the parity that can be computed for one.
constexpr UINT16 BLOCK = 64;
constexpr UINT16 PARITY = 32;
constexpr UINT32 BUFFER = 64u << 20;
constexpr unsigned SOCKET_BUFFER = 4u << 20;

NormEvent next(NormInstanceHandle instance) {
    NormEvent event{};
    if (!NormGetNextEvent(instance, &event)) {
        fail("NORM", "unexpected end of events");
    }
    return event;
}

int send(NormInstanceHandle instance, const char *address, UINT16 port, double rate, int parity, const char *path) {
    NormSessionHandle session = NormCreateSession(instance, address, port, 1);
    if (session == NORM_SESSION_INVALID) {
        fail(address, "cannot start a session");
    }
    // Its own port, to which the receiver answers, is a free one: both ends may be on one host.
    NormSetTxOnly(session, true);
    NormSetTxRate(session, rate);
    NormSetCongestionControl(session, false);
    // With a single receiver no answer makes another one superfluous.
    NormSetBackoffFactor(session, 0.0);
    // It asks for missing packets without end.
    NormSetTxRobustFactor(session, -1);
    NormSetTxCacheBounds(session, BUFFER, 1, 4);
    if (!NormStartSender(session, 1, BUFFER, SEGMENT, BLOCK, PARITY)) {
        fail(address, "cannot start the sender");
    }
    NormSetTxSocketBuffer(session, SOCKET_BUFFER);
    NormSetAutoParity(session, static_cast<unsigned char>(parity));
    if (NormFileEnqueue(session, path) == NORM_OBJECT_INVALID) {
        fail(path, "cannot send");
    }
    for (;;) {
        next(instance);
    }
}

int receive(NormInstanceHandle instance, const char *address, UINT16 port, const char *directory, const char *path) {
    NormSessionHandle session = NormCreateSession(instance, address, port, 2);
    if (session == NORM_SESSION_INVALID || !NormSetCacheDirectory(instance, directory)) {
        fail(directory, "cannot start a session with files in this directory");
    }
    NormSetDefaultUnicastNack(session, true);
    // The first packets may be the lost ones.
    NormSetDefaultSyncPolicy(session, NORM_SYNC_ALL);
    if (!NormStartReceiver(session, BUFFER)) {
        fail(address, "cannot start the receiver");
    }
    NormSetRxSocketBuffer(session, SOCKET_BUFFER);
    say_listening(port);
    for (;;) {
        const NormEvent event = next(instance);
        if (event.type == NORM_RX_OBJECT_ABORTED) {
            fail(path, "transfer aborted");
        }
        if (event.type == NORM_RX_OBJECT_COMPLETED) {
            if (!NormFileRename(event.object, path)) {
                fail(path, "cannot rename the received file");
            }
            say_complete();
            return 0;
        }
    }
}

} // namespace

int main(int count, char **words) {
    NormInstanceHandle instance = NormCreateInstance();
    if (instance == NORM_INSTANCE_INVALID) {
        fail("NORM", "cannot start");
    }
    if (count == 7 && std::strcmp(words[1], "send") == 0) {
        return send(instance, words[2], static_cast<UINT16>(std::stoul(words[3])), std::stod(words[4]),
                    std::stoi(words[5]), words[6]);
    }
    if (count == 6 && std::strcmp(words[1], "receive") == 0) {
        return receive(instance, words[2], static_cast<UINT16>(std::stoul(words[3])), words[4], words[5]);
    }
    fail("usage", "lab-norm send ADDRESS PORT BITS_PER_SECOND PARITY FILE | receive ADDRESS PORT DIRECTORY FILE");
}
