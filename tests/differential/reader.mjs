// A reader of HTTP: Node's own parser, which answers each request with what it understood.
import http from "node:http";
import crypto from "node:crypto";

function seen(request, body) {
    const sum = crypto.createHash("sha256").update(body).digest("hex").slice(0, 16);
    const target = Buffer.from(request.url, "latin1");
    return Buffer.from(JSON.stringify({
        method: request.method,
        target: target.length > 200 ? crypto.createHash("sha256").update(target).digest("hex").slice(0, 16) : request.url,
        bytes: body.length, sum,
    })).toString("base64");
}

const server = http.createServer({ requestTimeout: 5000, headersTimeout: 5000, keepAliveTimeout: 5000 },
    (request, response) => {
        const parts = [];
        request.on("data", part => parts.push(part));
        request.on("error", () => {});
        request.on("end", () => {
            response.writeHead(200, { "X-Seen": seen(request, Buffer.concat(parts)), "Content-Length": 0 });
            response.end();
        });
    });
// The answers to good requests before the bad one come first.
server.on("clientError", (error, socket) => setTimeout(() => {
    if (socket.writable) socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    else socket.destroy();
}, 20));
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
