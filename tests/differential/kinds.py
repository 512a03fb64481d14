"""Where we and another reader accept different requests: each kind of difference with what explains it.

A reader is stricter than another one when what it accepts is the beginning of what the other accepts.  Where we are the
stricter one, nothing reaches the target that could be read in two ways.  Where we are the laxer one, each kind must be
known and harmless: the request that we accept has one meaning, and the other reader refuses it for a reason of its own.
Anything else, above all another number of requests or another body, has no kind, and the run fails.

The first row that fits gives the kind.
"""

import collections
import re

Kind = collections.namedtuple("Kind", "name relation readers words")
ALL = ("nginx", "haproxy", "node")
SAME = "We hand on the path of an absolute form (RFC 9112, 3.2.2), Node and HAProxy the whole."


def origin_form(target):
    """What follows the authority of an absolute form."""
    found = re.match(r"(?i)https?://[^/?#]*(.*)", target, re.S)
    return (found.group(1) or "/") if found else target


def in_origin_form(accepted):
    return tuple((method, origin_form(target), size, total) for method, target, size, total in accepted)


def fits(pattern):
    compiled = re.compile(pattern, re.S | re.I | re.M)
    return lambda raw, ours, theirs: compiled.search(raw) is not None


def we_end_with(*ends):
    return lambda raw, ours, theirs: ours.end in ends


def both(*conditions):
    return lambda *seen: all(condition(*seen) for condition in conditions)


def either(*conditions):
    return lambda *seen: any(condition(*seen) for condition in conditions)


def closed_before_the_end(raw, ours, theirs):
    return ours.end == "closed" and (not ours.accepted or ours.accepted[-1][1] != "/after")


def lacks_host(raw, ours, theirs):
    return any(b"http/1.1" in head and b"\nhost:" not in head for head in raw.lower().split(b"\r\n\r\n"))


def odd(name, good):
    """A field of this name whose value is not GOOD; values of one line."""
    return fits(rb"^%s:(?![ \t]*(?:%s)[ \t]*\r\n)" % (name, good))


def twice(name):
    return fits(rb"^%s:[^\n]*\n(?:[^\n]+\n)*?%s:" % (name, name))


LENGTH, CODING, HOST = rb"content-length", rb"transfer-encoding", rb"host"
IS_400 = we_end_with(400)

# name, readers, condition, words
WE_ARE_STRICTER = [
    ("max-forwards", ALL, fits(rb"^max-forwards:"), "OPTIONS whose Max-Forwards is 0 is answered here (RFC 9110, 7.6.2)."),
    ("long-target", ALL, we_end_with(414), "A target above 8 KiB; others take as much as their buffers hold."),
    ("large-head", ALL, we_end_with(431), "A head above 16 KiB or 100 fields; others take more."),
    ("expectation", ALL, we_end_with(417), "An Expect that is not 100-continue; nginx and HAProxy pass it on, Node compares less of it."),
    ("connect-trace", ALL, we_end_with(405), "CONNECT and TRACE are no business of a sink connector; the others hand them on or answer them."),
    ("method", ALL, both(we_end_with(501), lambda raw, ours, theirs: not fits(rb"^transfer-encoding:")(raw, ours, theirs)),
     "A method that is not one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS; the others hand any token on, Node those of its list."),
    ("coding-list", ALL, we_end_with(501), "A transfer coding before chunked, which nobody here undoes, or an unknown method on the same connection."),
    ("version", ALL, we_end_with(505), "Another version than 1.0 and 1.1; nginx and HAProxy take later minor ones."),
    ("bare-lf", ALL, both(IS_400, fits(rb"(?<!\r)\n")), "A line that ends with LF alone (RFC 9112, 2.2 allows to read it); readers differ on where."),
    ("bare-cr", ALL, both(IS_400, fits(rb"\r(?!\n)")), "CR without LF: some take it for white space, some end the line (RFC 9112, 2.2)."),
    ("fold", ALL, both(IS_400, fits(rb"\r\n[ \t]")), "A folded line, or white space before a field (RFC 9112, 5.2 and 2.2); some join it, some skip it."),
    ("blank-before-colon", ALL, both(IS_400, fits(rb"^[^:\r\n]+[ \t]+:")), "White space between name and colon (RFC 9112, 5.1)."),
    ("length-and-coding", ALL, both(IS_400, fits(LENGTH), fits(CODING)),
     "Both Content-Length and Transfer-Encoding: the classic of smuggling; HAProxy drops the length."),
    ("two-lengths", ALL, both(IS_400, twice(LENGTH)), "Content-Length twice, even with one value; HAProxy and others merge (RFC 9112, 6.3 allows it)."),
    ("length-form", ALL, both(IS_400, odd(LENGTH, rb"0|[1-9][0-9]*")), "A length in other words than digits without leading zeros."),
    ("coding-form", ALL, both(IS_400, either(odd(CODING, rb"chunked"), twice(CODING), fits(rb"http/1\.0\r\n.*^transfer-encoding:"))),
     "A coding that is not just \"chunked\", twice, or under HTTP/1.0; empty members and repetitions are read differently."),
    ("connection-names-framing", ALL, both(IS_400, fits(rb"^connection:[^\n]*(?:length|encoding|host)")),
     "Connection lists Host or a framing field, which whoever obeys would strip."),
    ("head-with-body", ALL, both(IS_400, fits(rb"^head ")), "HEAD that announces a body: clients and servers disagree whether it follows."),
    ("two-hosts", ALL, both(IS_400, twice(HOST)), "Host twice (RFC 9112, 3.2)."),
    ("host-form", ALL, both(IS_400, odd(HOST, rb"[a-z0-9.-]+(?::[0-9]*)?|\[[0-9a-f:]+\](?::[0-9]+)?")), "A Host that is no host and port (RFC 3986, 3.2.2)."),
    ("no-host", ALL, both(IS_400, lacks_host),
     "HTTP/1.1 without Host (RFC 9112, 3.2)."),
    ("field-name", ALL, both(IS_400, fits(rb"^(?!(?:get|post|put|head|delete|patch|options) )(?:[^:\r\n]*[^!#$%&'*+.^_`|~0-9a-z:\r\n-][^:\r\n]*)?:")),
     "A name that is no token."),
    ("underscore", ALL, both(IS_400, fits(rb"^(?:content_length|transfer_encoding)[ \t]*:")),
     "An underscore in a framing field's name: servers that make names into variables cannot tell it from the dash; nginx drops it silently."),
    ("no-colon", ALL, both(IS_400, fits(rb"^[^:\r\n]+\r\n")), "A line of the head without a colon; nginx ignores it."),
    ("control-byte", ALL, both(IS_400, fits(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")), "A control byte."),
    ("high-byte", ALL, both(IS_400, fits(rb"[\x80-\xff]")), "A byte above 0x7e in the request line."),
    ("chunk-size", ALL, both(IS_400, fits(rb"^transfer-encoding:")), "A chunk size of another form than 1*HEXDIG, 16 digits at most, an extension that is none, or data that do not fill it."),
    ("target-form", ALL, both(IS_400, fits(rb"^(?:get|head|post|put|patch|delete|options) (?!/[!-\"$-~]* http/|http://(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[0-9]*)?(?:/[!-\"$-~]*)? )")),
     "A target that is neither a path nor an absolute form of http with a path, or holds a blank or '#'."),
    ("request-line", ALL, both(IS_400, fits(rb"http/(?!1\.[01]\r\n)|^(?:[a-z]+)?[ \t]{2}|^[ \t]")), "A request line with other blanks or another version text."),
    ("connection-form", ("nginx", "haproxy"), both(we_end_with("closed"), fits(rb"^connection:[^\r\n]*(?:\"|[^\s,:]keep-alive|keep-alive[^\s,])")),
     "A Connection with a quote, or with keep-alive inside of another word: we compare members and close when in doubt; nginx looks for letters anywhere."),
    ("empty-lines", ALL, both(IS_400, fits(rb"\r\n\r\n\r\n|^\r\n\r\n")), "More than one empty line before a request line (RFC 9112, 2.2 asks for one at least)."),
]
THEY_ARE_STRICTER = [
    ("their-star", ("nginx",), fits(rb"^options \* "), "nginx has no OPTIONS *."),
    ("their-tab", ("nginx", "node"), fits(rb"^(?:content-length|transfer-encoding|host):[^\r\n]*\t"), "A tab beside a framing field's value is white space (RFC 9110, 5.6.3); nginx and Node look for a space only."),
    ("their-host", ("nginx",), fits(rb"^host:[^\r\n]*\.\."), "Two dots in a Host, which no rule of RFC 3986 forbids."),
    ("their-percent", ("nginx",), fits(rb"^[a-z]+ [^ \r\n]*%(?:00|(?![0-9a-f][0-9a-f]))"), "nginx decodes the path, and refuses %00 and a % before anything but two digits; we hand it on as it is."),
    ("their-root", ("nginx",), fits(rb"^[a-z]+ [^ \r\n]*(?:\.|%2e){2}"), "nginx resolves dot segments, and refuses those above the root; we hand them on as they are."),
    ("their-close", ("nginx",), fits(rb"^connection:[^\r\n]*close"), "nginx looks for the letters \"close\" anywhere in Connection; we compare members of the list."),
    ("their-extension", ("node",), both(fits(rb"^transfer-encoding:"), fits(rb"^[0-9a-f]+;[^\r\n]*")), "An extension of a chunk that Node reads as a grammar and we skip, whatever it holds but line ends."),
    ("their-trailer", ("node", "haproxy"), fits(rb"0\r\n(?:content-length|transfer-encoding|host)[^\n]*:"), "A framing field among the trailers: we drop all trailers, Node refuses such a one, HAProxy some."),
    ("their-expect", ("node",), fits(rb"^expect:[ \t]*\r\n"), "An empty Expect asks for nothing; Node answers 417."),
    ("their-head", ("node",), fits(rb"^x-1: a{1000}\r\n"), "Node takes 16 KiB of names and values and counts in another way."),
    ("their-upgrade", ("node",), fits(rb"^upgrade:"), "Node treats what follows a request to upgrade as another protocol's bytes."),
    ("their-close-is-final", ("node",), closed_before_the_end, "Bytes behind a request that closes the connection: we leave them unread, Node refuses them."),
    ("their-authority", ("haproxy", "nginx"), fits(rb"^[a-z]+ https?://"),
     "An absolute form and a Host that differ: RFC 9112, 3.2.2 has the Host ignored, HAProxy refuses; nginx knows fewer bytes of a host."),
    ("their-old-body", ("haproxy",), fits(rb"^(?:get|head|delete) [^ ]+ http/1\.0\r\n"), "A body of GET or DELETE under HTTP/1.0: HAProxy refuses what old servers would take for a request."),
    ("their-expect-twice", ("nginx",), twice(rb"expect"), "Expect: 100-continue twice is a list of one meaning; nginx refuses the second line."),
    ("their-connect", ("node",), both(we_end_with(405), fits(rb"^connect ")), "Node drops a connection with CONNECT, and the answers before it."),
]


def first_that_fits(rows, relation, reader, seen):
    for name, readers, condition, words in rows:
        if reader in readers and condition(*seen):
            return Kind(name, relation, readers, words)
    return None


def kind_of(raw, reader, ours, theirs):
    """None: nothing explains it."""
    accepted = in_origin_form(theirs.accepted)
    seen = (raw, ours, theirs)
    if accepted == ours.accepted:
        return Kind("absolute-form", "same", ALL, SAME)
    if accepted[:len(ours.accepted)] == ours.accepted:
        return first_that_fits(WE_ARE_STRICTER, "we", reader, seen)
    if ours.accepted[:len(accepted)] == accepted:
        return first_that_fits(THEY_ARE_STRICTER, "they", reader, seen)
    return None


def rows():
    """(name, who is stricter, readers, words)"""
    yield "absolute-form", "same requests", ALL, SAME
    for name, readers, _, words in WE_ARE_STRICTER:
        yield name, "we", readers, words
    for name, readers, _, words in THEY_ARE_STRICTER:
        yield name, "they", readers, words


def table():
    lines = ["| Kind | Stricter | Readers | What explains it |", "|---|---|---|---|"]
    lines += ["| `%s` | %s | %s | %s |" % (name, who, "all" if readers == ALL else ", ".join(readers), words.replace("|", "\\|"))
              for name, who, readers, words in rows()]
    return "\n".join(lines) + "\n"
