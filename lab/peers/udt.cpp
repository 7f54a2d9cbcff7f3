// A file over UDT, with its own congestion control.
//
//   lab-udt send ADDRESS PORT SIZE FILE
//   lab-udt receive ADDRESS SIZE FILE

#include <arpa/inet.h>
#include <cstring>
#include <fstream>
#include <string>

#include <udt/udt.h>

#include "said.hpp"

namespace {

// The most bytes in flight, and their packets: no path of the lab holds more.
constexpr int WINDOW = 64 << 20;
constexpr int PACKETS = WINDOW / 1456;
constexpr int SOCKET_BUFFER = 4 << 20;

sockaddr_in at(const char *address, unsigned port) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_port = htons(static_cast<uint16_t>(port));
    if (inet_pton(AF_INET, address, &result.sin_addr) != 1) {
        fail(address, "invalid IPv4 address");
    }
    return result;
}

void check(int result, const char *operation) {
    if (result == UDT::ERROR) {
        fail(operation, UDT::getlasterror().getErrorMessage());
    }
}

UDTSOCKET open() {
    const UDTSOCKET socket = UDT::socket(AF_INET, SOCK_STREAM, 0);
    const auto set = [socket](UDTOpt option, int value) {
        check(UDT::setsockopt(socket, 0, option, &value, sizeof value), "socket option");
    };
    // The window first: it caps the buffer.
    set(UDT_FC, PACKETS);
    set(UDT_SNDBUF, WINDOW);
    set(UDT_RCVBUF, WINDOW);
    set(UDP_SNDBUF, SOCKET_BUFFER);
    set(UDP_RCVBUF, SOCKET_BUFFER);
    return socket;
}

int send(const char *address, unsigned port, int64_t size, const char *path) {
    const sockaddr_in to = at(address, port);
    const UDTSOCKET socket = open();
    check(UDT::connect(socket, reinterpret_cast<const sockaddr *>(&to), sizeof to), address);
    std::fstream file(path, std::ios::in | std::ios::binary);
    int64_t offset = 0;
    if (!file || (size > 0 && UDT::sendfile(socket, file, offset, size) != size)) {
        fail(path, UDT::getlasterror().getErrorMessage());
    }
    // Waits until all is acknowledged.
    check(UDT::close(socket), address);
    return 0;
}

int receive(const char *address, int64_t size, const char *path) {
    sockaddr_in local = at(address, 0);
    const UDTSOCKET listener = open();
    check(UDT::bind(listener, reinterpret_cast<const sockaddr *>(&local), sizeof local), address);
    check(UDT::listen(listener, 1), address);
    int length = sizeof local;
    check(UDT::getsockname(listener, reinterpret_cast<sockaddr *>(&local), &length), address);
    std::fstream file(path, std::ios::out | std::ios::binary | std::ios::trunc);
    say_listening(ntohs(local.sin_port));
    const UDTSOCKET socket = UDT::accept(listener, nullptr, nullptr);
    if (socket == UDT::INVALID_SOCK) {
        fail(address, UDT::getlasterror().getErrorMessage());
    }
    int64_t offset = 0;
    if (!file || (size > 0 && UDT::recvfile(socket, file, offset, size) != size)) {
        fail(path, UDT::getlasterror().getErrorMessage());
    }
    file.close();
    if (!file) {
        fail(path, "cannot write");
    }
    say_complete();
    // Waits for the sender, which waits for the last acknowledgement.
    char none = 0;
    UDT::recv(socket, &none, 1, 0);
    return 0;
}

} // namespace

int main(int count, char **words) {
    UDT::startup();
    int result = 0;
    if (count == 6 && std::strcmp(words[1], "send") == 0) {
        result = send(words[2], static_cast<unsigned>(std::stoul(words[3])), std::stoll(words[4]), words[5]);
    } else if (count == 5 && std::strcmp(words[1], "receive") == 0) {
        result = receive(words[2], std::stoll(words[3]), words[4]);
    } else {
        fail("usage", "lab-udt send ADDRESS PORT SIZE FILE | receive ADDRESS SIZE FILE");
    }
    UDT::cleanup();
    return result;
}
