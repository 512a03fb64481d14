#!/usr/bin/env python3
"""Takes the README's pictures of the page, light and dark: conf/page-light.png and conf/page-dark.png.

    SINKONCE_BIN=build/Release/proxy/sinkonce TARGET_BIN=build/Release/tests/support/target python3 -B tests/page/pictures.py
"""

import collections
import os
import struct
import zlib

import test_page

FOLDER = os.path.join(test_page.HERE, "..", "..", "conf")
BYTES_MAX = 150 * 1024


def unfiltered(rows, width, depth):
    """The bytes of each row.  Source: PNG specification, third edition, 9.2 (filter types)."""
    before = bytes(width * depth)
    for row in rows:
        kind, row = row[0], bytearray(row[1:])
        for i in range(len(row) if kind else 0):
            left, up = row[i - depth] if i >= depth else 0, before[i]
            corner = before[i - depth] if i >= depth else 0
            if kind == 4:
                guess = left + up - corner
                nearest = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
            else:
                nearest = (0, left, up, (left + up) // 2)[kind]
            row[i] = (row[i] + nearest) & 0xff
        before = bytes(row)
        yield before


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def with_palette(png):
    """The same picture in the 256 colours that it uses most; others become the nearest of them."""
    width, height, _, kind = struct.unpack(">IIBB", png[16:26])
    depth, data, at = {2: 3, 6: 4}[kind], b"", 8
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at:at + 8])
        data += png[at + 8:at + 8 + length] if name == b"IDAT" else b""
        at += 12 + length
    raw, step = zlib.decompress(data), width * depth + 1
    rows = [raw[i * step:(i + 1) * step] for i in range(height)]
    pixels = [[row[i:i + 3] for i in range(0, len(row), depth)] for row in unfiltered(rows, width, depth)]
    counts = collections.Counter(pixel for row in pixels for pixel in row)
    palette = [colour for colour, _ in counts.most_common(256)]
    index = {colour: min(range(len(palette)), key=lambda i: sum((a - b) ** 2 for a, b in zip(colour, palette[i])))
             for colour in counts}
    packed = zlib.compress(b"".join(b"\0" + bytes(index[pixel] for pixel in row) for row in pixels), 9)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    return png[:8] + chunk(b"IHDR", head) + chunk(b"PLTE", b"".join(palette)) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


class Portrait(test_page.Story):
    def take(self, scheme):
        done = self.run_story("portrait", SCHEME=scheme)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(os.path.join(test_page.WORK, "page-%s.png" % scheme), "rb") as file:
            picture = with_palette(file.read())
        self.assertLessEqual(len(picture), BYTES_MAX)
        with open(os.path.join(FOLDER, "page-%s.png" % scheme), "wb") as file:
            file.write(picture)

    def test_light(self):
        self.take("light")

    def test_dark(self):
        self.take("dark")


if __name__ == "__main__":
    test_page.chromium()
    test_page.install()
    test_page.harness.main()
