"""Connections as bytes: a table by hand, after the ids of the verdict table, and what a seed makes of it.

Each is what a client might send on one connection.  AFTER follows all of them: whoever reads a body that is too short or
too long by a byte shows it there.
"""

import random

AFTER = b"GET /after HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
INNER = b"GET /inner HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = b"hello"


def head(*lines, start="POST /in HTTP/1.1", host=True):
    lines = [start] + (["Host: x"] if host else []) + list(lines)
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def length(value, body=BODY):
    return head("Content-Length: " + value) + body


def chunked(raw, *lines, start="POST /in HTTP/1.1"):
    return head("Transfer-Encoding: chunked", *lines, start=start) + raw


def coding(value, raw=b"5\r\nhello\r\n0\r\n\r\n"):
    return head("Transfer-Encoding: " + value) + raw


def get(target, version="HTTP/1.1", method="GET"):
    return (method + " " + target + " " + version).encode("latin-1") + b"\r\nHost: x\r\n\r\n"


ENDED = b"0\r\n\r\n"
WHOLE = b"5\r\nhello\r\n" + ENDED

TABLE = [
    ("plain", [get("/"), get("/a?b=c"), length("5"), length("0", b""), chunked(WHOLE), chunked(ENDED), head(),
               get("/", method="DELETE"), get("/", method="HEAD"), get("*", method="OPTIONS"), get("/in", method="PATCH"),
               head("Content-Length: 5", start="PUT /in HTTP/1.1") + BODY]),
    ("H-01", [head("Content-Length: 5", "Content-Length: 5") + BODY, head("Content-Length: 5", "content-length: 5") + BODY]),
    ("H-02", [head("Content-Length: 0", "Content-Length: 33") + INNER, head("Content-Length: 33", "Content-Length: 0") + INNER]),
    ("H-03", [head("Content-Length : 33") + INNER, head("Content-Length\t: 33") + INNER]),
    ("H-04", [head("Transfer-Encoding : chunked") + WHOLE, head("Transfer-Encoding\t: chunked") + WHOLE]),
    ("H-05", [length(value) for value in ("+5", "-0", "05", "\v5", "5\0 9", "\t5", "5\t", "5 ", "\x0c5", "5\x0b")]),
    ("H-06", [length(value) for value in ("5, 5", "5,5", "-5", "0x5", "", " ", "5 5", "1e1", "5.0", "5;a", "\"5\"", "five", "5_0")]),
    ("H-07", [length(value) for value in ("18446744073709551621", "9223372036854775808", "4294967301", "99999999999999999999")]),
    ("H-08", [head("Content-Length: 5", "Transfer-Encoding: chunked") + WHOLE,
              head("Transfer-Encoding: chunked", "Content-Length: 5") + WHOLE,
              head("Content-Length: 4", "Transfer-Encoding: chunked") + b"21\r\n" + INNER + b"\r\n" + ENDED,
              head("Content-Length: 5", "Transfer-Encoding: identity") + BODY]),
    ("H-09", [coding(value) for value in ("gzip", "identity", "", "chunked, gzip", "chunked, identity", "identity, chunked")]),
    ("H-10", [coding(value) for value in ("xchunked", '"chunked"', "\vchunked", "chunked, chunked", "chunked;a=b", "chu nked",
                                          "Chunked", "CHUNKED", "chunked,", ",chunked", " chunked ", "chunked\t", "chunked\x0b",
                                          "chunked\0", "\x00chunked")] +
             [head("Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + WHOLE,
              head("Transfer-Encoding: chunked", "Transfer-Encoding: identity") + WHOLE,
              head("Transfer-Encoding: identity", "Transfer-Encoding: chunked") + WHOLE,
              head("Transfer_Encoding: chunked", "Content-Length: 5") + BODY,
              head("Transfer-Encoding:", " chunked") + WHOLE]),
    ("H-11", [coding("gzip, chunked"), coding("gzip,chunked"), coding("deflate , chunked")]),
    ("H-12", [chunked(WHOLE, start="POST /in HTTP/1.0"), chunked(WHOLE, "Connection: keep-alive", start="POST /in HTTP/1.0")]),
    ("H-13", [chunked(b"5" + extension + b"\r\nhello\r\n" + ENDED)
              for extension in (b";a=b", b";a", b";", b" ;a=b", b"; a=b", b";a=\"b\"", b";a=\"b\r\n\"", b";a\0", b";a\n", b"\t;a",
                                b";" + b"a" * 200, b";" + b"a" * 300, b";a\r", b";a=\xff")]),
    ("H-14", [chunked(size + b"\r\nhello\r\n" + ENDED)
              for size in (b"0x5", b"+5", b"-0", b"5 xyz", b"5\0zz", b" 5", b"", b"g", b"05", b"000000000000005", b"5 ", b"5\t",
                           b"00000000000000000005", b"10000000000000005", b"FFFFFFFFFFFFFFFF5", b"5\v", b"5_", b"5h", b"5,")]),
    ("H-15", [chunked(b"5\r\nhelloX\r\n" + ENDED), chunked(b"3\r\nhello\r\n" + ENDED), chunked(b"5\r\nhello" + ENDED),
              chunked(b"5\r\nhello\n" + ENDED), chunked(b"5\r\nhello\r" + ENDED), chunked(b"5\r\nhello\r\r\n" + ENDED),
              chunked(b"5\r\nhello  \r\n" + ENDED)]),
    ("H-16", [chunked(b"\r\n" + WHOLE), chunked(b"5\nhello\n0\n\n"), chunked(b"5\r\nhello\r\n0\r\n\n"),
              chunked(b"5\nhello\r\n" + ENDED), chunked(b"5\r\nhello\r\n0\n\r\n"), chunked(b"5\rhello\r\n" + ENDED),
              chunked(b"5\r\nhello\r\n\r\n" + ENDED), chunked(b"5;\nx\r\nhello\r\n" + ENDED)]),
    ("H-17", [chunked(b"5\r\nhello\r\n0\r\n" + trailer + b"\r\n\r\n")
              for trailer in (b"Content-Length: 99", b"X: y", b": x", b"X", b"X : y", b"X: a\0b", b"X: a\n", b" X: y", b"X: y\r\n z",
                              b"Transfer-Encoding: chunked", b"Host: y", b"X:")]),
    ("H-18", [b"POST /in HTTP/1.1\nHost: x\nContent-Length: 5\n\nhello", b"POST /in HTTP/1.1\r\nHost: x\nContent-Length: 5\r\n\r\nhello",
              b"GET / HTTP/1.1\nHost: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\n", b"GET / HTTP/1.1\r\nHost: x\n\r\n",
              b"POST /in HTTP/1.1\r\nHost: x\r\nX: a\nContent-Length: 33\r\n\r\n" + INNER]),
    ("H-19", [head("X: a\rb", "Content-Length: 5") + BODY, b"POST /in HTTP/1.1\r\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
              head("X: a\rContent-Length: 33") + INNER, head("X: a\r", "Content-Length: 5") + BODY,
              b"GET / HTTP/1.1\rHost: x\r\r", head("Content-Length: 5\r") + BODY, head("Content-Length: \r5") + BODY]),
    ("H-20", [head("X: a", " b", "Content-Length: 5") + BODY, head("Content-Length:", " 5") + BODY,
              head("Content-Length: 5", " 5") + BODY, head("X: a", " Content-Length: 33") + INNER,
              head("Transfer-Encoding:", "\tchunked") + WHOLE, b"POST /in HTTP/1.1\r\n Host: x\r\nHost: x\r\n\r\n"]),
    ("H-21", [head("\0X: a", "Content-Length: 5") + BODY]),
    ("H-22", [head("X: a\0b", "Content-Length: 5") + BODY, b"POST /i\0n HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
              head("X\0Y: a", "Content-Length: 5") + BODY]),
    ("H-23", [head(line, "Content-Length: 5") + BODY
              for line in (": x", "Fo(o: x", "no colon", "N\xe4me: x", "a b: c", "X\x7f: y", "X/Y: z", "@: a", "X_Y: z", "X.Y: z",
                           "X: \x01", "X: \x7f", "X: \xe4", "X:y", "X:  y  ", "X:")]),
    ("H-24", [head("Content-Length: 5", host=False) + BODY, head("Host: y", "Content-Length: 5") + BODY,
              head("Host: x", "Content-Length: 5") + BODY] +
             [head("Host: " + value, "Content-Length: 5", host=False) + BODY
              for value in ("a b", "x/y", "user@x", "x:port", "[::1", "", "x,y", "x:99999999", "x:80", "[::1]:80", "x:", "x_y", "x..y",
                            "x%41", "x?y", "x#y", "http://x", "-x", "\xe4")]),
    ("H-25", [head("Content-Length: 33", start="HEAD /in HTTP/1.1") + INNER, chunked(WHOLE, start="HEAD /in HTTP/1.1"),
              head("Content-Length: 0", start="HEAD /in HTTP/1.1")]),
    ("H-26", [get("/in", method=name) for name in ("FOO", "get", "Post", "PROPFIND", "TRACE", "G ET", "GET\t", "G\0ET", "{}", "PURGE")] +
             [get("x:443", method="CONNECT"), b" GET / HTTP/1.1\r\nHost: x\r\n\r\n"]),
    ("H-27", [head("Content-Length: 5", start="GET /in HTTP/1.1") + BODY, chunked(WHOLE, start="GET /in HTTP/1.1"),
              head("Content-Length: 5", start="DELETE /in HTTP/1.1") + BODY, head("Content-Length: 5", start="OPTIONS /in HTTP/1.1") + BODY]),
    ("H-28", [get(target) for target in ("//evil/p", "http://evil:81/p", "http://x/p", "http://x", "http://x?q", "https://x/p", "ftp://x/p",
                                         "HTTP://x/p", "http:///p", "http://u@x/p", "http:/p", "http://x:/p", "///")]),
    ("H-29", [get(target) for target in ("/a b", "/a\x01", "/a\x80", "/\xc3\xa4", "/a\tb", "/a#b", "a", "*", "/%00", "/%", "/%zz", "/a\\b",
                                         "/a<b>", "/a\"b", "/a|b", "/a^b", "/a`b", "/{a}", "/../a", "/a/../b", "/./a", "/a//b", "/%2e%2e/a",
                                         "/a%2fb", "/a?b?c", "/?", "?a", "/a;b", "/a\x7f", "")]),
    ("H-30", [get("/", version) for version in ("HTTP/-5.1", "HTTP/1.01", "http/1.1", "HTTP/1.1 ", "HTTP/1", "XTTP/1.1", "HTTP/1.9",
                                                "HTTP/0.9", "HTTP/2.0", "HTTP/3.0", "HTTP/1.1x", "HTTP/ 1.1", "HTTP /1.1", "HTTP/1.10",
                                                "HTTP/1,1", "HTTP/11", "", "HTTP/1.0", "HTTP/1.2")] +
             [b"GET /\r\n\r\n", b"GET  /  HTTP/1.1\r\nHost: x\r\n\r\n", b"GET\t/\tHTTP/1.1\r\nHost: x\r\n\r\n",
              b"GET / HTTP/1.0\r\n\r\n", b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"]),
    ("H-31", [b"\r\n" + get("/"), b"\r\n\r\n" + get("/"), b"\n" + get("/"), b"\r" + get("/"), b"\0" + get("/"),
              length("5", BODY + b"\r\n"), get("/") + b"\r\n"]),
    ("H-32", [head("Connection: " + value, "Content-Length: 5") + BODY for value in ("close, TE", "CLOSE", "close", "keep-alive", "x",
                                                                                     "keep-alive, close", "close;a", "\"close\"")] +
             [head("Connection: TE", "Connection: close", "Content-Length: 5") + BODY]),
    ("H-33", [get("/1") + get("/2") + get("/3"), length("5") + chunked(WHOLE) + get("/3"), length("3") + get("/2"),
              length("33", INNER), length("70", INNER)]),
    ("H-34", [head("Expect: 100-continue", "Content-Length: 5") + BODY, head("Expect: 100-Continue", "Content-Length: 5") + BODY,
              head("Expect: 100-continue", "Content-Length: 5", start="POST /in HTTP/1.0") + BODY]),
    ("H-35", [head("Expect: " + value, "Content-Length: 5") + BODY for value in ("200-ok", "100-continue, x", "")]),
    ("H-36", [head("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMA", start="GET /in HTTP/1.1"),
              b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", bytes.fromhex("16030100b7010000b30303") + b"\xaa" * 100 + b"\r\n\r\n"]),
    ("H-40", [head(*["X-%d: %s" % (n, "a" * 1000) for n in range(20)])]),
    ("H-43", [head(*["X-%d: a" % n for n in range(98)]), head(*["X-%d: a" % n for n in range(110)])]),
    ("R-03", [head("Connection: Content-Length", "Content-Length: 5") + BODY, head("Connection: close, host", "Content-Length: 5") + BODY,
              chunked(WHOLE, "Connection: Transfer-Encoding")]),
    ("R-07", [head("Max-Forwards: 0", start="OPTIONS / HTTP/1.1"), head("Max-Forwards: 5", start="OPTIONS / HTTP/1.1")]),
    ("R-21", [length("100000"), chunked(b"5\r\nhel")]),
    ("R-26", [get("/" + "a" * 8300)]),
    ("underscore", [head("Content_Length: 33") + INNER, head("Content_Length: 5", "Content-Length: 5") + BODY,
                    head("Transfer_Encoding: chunked") + WHOLE]),
]

WEDGES = [b"\r", b"\n", b"\r\n", b"\0", b" ", b"\t", b":", b";", b",", b"0", b"5", b"\v", b"\x7f", b"\xff", b"\"", b"=", b"+", b"-",
          b"Content-Length: 5\r\n", b"Content-Length: 33\r\n", b"Transfer-Encoding: chunked\r\n", b"Host: y\r\n", b"Connection: close\r\n",
          b"chunked", b"identity", b"\r\n ", b"\r\n\r\n", b"0\r\n\r\n", b"Expect: 100-continue\r\n", b"HTTP/1.1", b"/", b"#", b"%"]


def by_hand():
    """(name, bytes) of each row."""
    return [("%s.%d" % (name, i), raw) for name, rows in TABLE for i, raw in enumerate(rows, 1)]


def changed(raw, dice, others):
    at = dice.randrange(len(raw) + 1)
    kind = dice.randrange(8)
    if kind == 0:
        return raw[:at] + dice.choice(WEDGES) + raw[at:]
    if kind == 1:  # into the line ends, where readers differ most
        ends = [i for i in range(len(raw)) if raw[i:i + 1] in (b"\r", b"\n", b":")] or [at]
        at = dice.choice(ends)
        return raw[:at] + dice.choice(WEDGES) + raw[at + dice.randrange(2):]
    if kind == 2:
        return raw[:at] + raw[at + 1:]
    if kind == 3 and at < len(raw):
        return raw[:at] + bytes([raw[at] ^ 1 << dice.randrange(8)]) + raw[at + 1:]
    lines = raw.split(b"\r\n")
    one, two = dice.randrange(len(lines)), dice.randrange(len(lines))
    if kind == 4:
        lines.insert(one, lines[two])
    elif kind == 5:
        lines[one], lines[two] = lines[two], lines[one]
    elif kind == 6:
        lines[one] = lines[one].swapcase()
    else:
        theirs = dice.choice(others).split(b"\r\n")
        lines[one:one] = theirs[:dice.randrange(1, 4)]
    return b"\r\n".join(lines)


def by_seed(seed):
    """(name, bytes): one row of the table, changed once to three times."""
    dice = random.Random(seed)
    rows = [raw for _, raw in by_hand() if len(raw) < 2000]
    raw = dice.choice(rows)
    for _ in range(dice.choice((1, 1, 2, 3))):
        raw = changed(raw, dice, rows)
    return "seed.%d" % seed, raw
