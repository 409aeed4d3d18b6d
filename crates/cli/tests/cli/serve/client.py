"""Sends requests to the server at argv[1], which serves the directory argv[2], with http.client and with plain sockets.
Fails with a traceback if a response is wrong.
"""

import http.client
import pathlib
import socket
import sys
import time

ADDRESS, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
HOST, PORT = ADDRESS.rsplit(":", 1)
FILES = {name: (ROOT / name).read_bytes() for name in ("a.txt", "a.bin", "long.bin")}


def keep_alive(count):
    """Sends all requests over one connection."""
    connection = http.client.HTTPConnection(ADDRESS, timeout=60)
    connection.connect()
    kept = connection.sock
    for number in range(count):
        name = "a.bin" if number % 20 == 0 else "a.txt"
        method = "HEAD" if number % 7 == 0 else "GET"
        path = "/nosuch" if number % 13 == 0 else f"/{name}"
        connection.request(method, path)
        response = connection.getresponse()
        body = response.read()
        assert response.status == (404 if path == "/nosuch" else 200), response.status
        if response.status == 200:
            assert body == (b"" if method == "HEAD" else FILES[name]), (number, len(body))
        assert connection.sock is kept, number
    print("kept", count)


def ask(data, timeout=60):
    """Sends data and returns all bytes until the server closes the connection."""
    with socket.create_connection((HOST, int(PORT)), timeout=timeout) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        received = bytearray()
        while chunk := connection.recv(1 << 16):
            received += chunk
    return bytes(received)


def responses(data):
    """Parses the received bytes, which must be responses with a Content-Length, into statuses and bodies."""
    found = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        lines = head.decode("ascii").split("\r\n")
        assert lines[0].startswith("HTTP/1.1 "), lines[0]
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        length = int(fields.get("content-length", 0))
        assert len(data) >= length, (lines, len(data))
        found.append((int(lines[0].split()[1]), data[:length]))
        data = data[length:]
    return found


def pipeline(count):
    """Pipelined requests are answered in order."""
    names = ["a.bin" if number % 50 == 0 else "a.txt" for number in range(count)]
    wanted = b"".join(f"GET /{name} HTTP/1.1\r\nHost: a\r\n\r\n".encode() for name in names)
    assert responses(ask(wanted)) == [(200, FILES[name]) for name in names]
    print("pipelined", count)


def half_closed():
    """A client that has shut down its sending direction gets the whole response, even if it reads slowly."""
    with socket.create_connection((HOST, int(PORT)), timeout=60) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        connection.sendall(b"GET /long.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
        received = bytearray()
        while chunk := connection.recv(1 << 16):
            received += chunk
    assert responses(bytes(received)) == [(200, FILES["long.bin"])]
    print("half-closed 1")


HIDDEN = b"GET /secret.txt HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN)
# Each body contains a request, which must not be answered, however the request declares the length of its body.
BODIES = [
    b"GET /a.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    b"POST /a.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    b"GET /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(HIDDEN) + HIDDEN,
    b"POST /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(HIDDEN) + HIDDEN,
    b"GET /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    b"GET /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nContent-Length: 0\r\n\r\n" % len(HIDDEN) + HIDDEN,
    b"GET /a.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n" + CHUNKS,
    b"GET /a.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n" + CHUNKS,
    b"GET /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + HIDDEN,
]


def bodies():
    """A request with a body gets at most one response; a request inside the body gets none."""
    for data in BODIES:
        received = ask(data)
        assert b"hidden" not in received, data
        statuses = [status for status, _ in responses(received)]
        assert len(statuses) <= 1 and set(statuses) <= {200, 400, 405, 413, 501}, (data, statuses)
    # A request after the body is answered if the connection stays open.
    after = responses(ask(BODIES[2] + b"GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n"))
    assert after in ([(200, FILES["a.txt"])], [(200, FILES["a.txt"]), (200, FILES["a.bin"])]), [status for status, _ in after]
    print("bodies", len(BODIES))


keep_alive(2000)
pipeline(300)
half_closed()
bodies()
