"""Turns on the loopback device of a fresh network namespace, which has no other."""

import fcntl
import socket
import struct

SIOCSIFFLAGS, UP = 0x8914, 1

with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", UP))
