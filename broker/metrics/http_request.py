"""As much of HTTP/1.1 as a scrape needs: the head of a request, and a whole answer.

Bytes in, a decision out; no socket. The head is bounded, its first line has to be a request,
and its fields are not looked at: none of them changes the answer.
"""

from __future__ import annotations

from typing import NamedTuple

HEAD_BYTES_MAX = 8 * 1024
"""A scrape's is some hundred bytes; longer ones are refused with 431."""
METRICS_PATH = "/metrics"
HEALTH_PATH = "/health"
READY_PATH = "/ready"
PATHS = (METRICS_PATH, HEALTH_PATH, READY_PATH)

PLAIN_TEXT = "text/plain; charset=utf-8"
JSON = "application/json"

_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}


class Refusal(NamedTuple):
    """Why a request gets nothing: a status of HTTP, and a sentence for a person."""

    status: int
    sentence: str


NOT_HTTP = Refusal(400, "This is not an HTTP request.")
TOO_LONG = Refusal(431, f"The head of a request is at most {HEAD_BYTES_MAX} bytes here.")
TOO_SLOW = Refusal(408, "The request did not come in time.")
TOO_MANY = Refusal(503, "Too many scrapes at one time.")
STARTING = Refusal(503, "The broker is starting; it has no metrics yet.")
FAILED = Refusal(500, "The metrics could not be read; the broker's log says why.")


def head_is_complete(data: bytes) -> bool:
    """Whether the empty line that ends a request's head has come."""
    return b"\r\n\r\n" in data or b"\n\n" in data


def read_request(head: bytes) -> str | Refusal:
    """What a request is for: one of `PATHS`, or what to answer instead."""
    line = head.split(b"\n", 1)[0].removesuffix(b"\r")
    words = line.split(b" ")
    if len(words) != 3 or not line.isascii() or not words[2].startswith(b"HTTP/"):
        return NOT_HTTP
    method, target, version = (word.decode("ascii") for word in words)
    if version not in ("HTTP/1.0", "HTTP/1.1"):
        return Refusal(505, "HTTP/1.1 is spoken here.")
    if not method.isalpha() or not target.startswith("/"):
        return NOT_HTTP
    if method != "GET":
        return Refusal(405, "What is here can only be read, with GET.")
    path = target.partition("?")[0]
    if path not in PATHS:
        return Refusal(404, f"There are only {', '.join(PATHS)} here.")
    return path


def answer(body: bytes, content_type: str = PLAIN_TEXT, status: int = 200) -> list[bytes]:
    """A whole answer, after which the connection is closed."""
    head = [
        f"HTTP/1.1 {status} {_REASONS[status]}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    if status == 405:
        head.append("Allow: GET")
    return [("\r\n".join(head) + "\r\n\r\n").encode("ascii"), body]


def refuse(refusal: Refusal) -> list[bytes]:
    """The answer that says why there is nothing else."""
    return answer(f"{refusal.sentence}\n".encode(), status=refusal.status)
