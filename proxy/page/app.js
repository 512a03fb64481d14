/*
 * app.js - the page at the admin port: asks the admin API every two seconds, shows the answers, sends what the operator
 * decides.
 *
 * Keeps nothing beyond this page's life, loads nothing from elsewhere, and puts every text in as text.  Offsets may lie
 * above 2^53: in an answer they become text of digits before JSON.parse sees them, and are counted as BigInt.
 */
"use strict";

(() => {
    const POLL_MS = 2000, SLOW_MS = 10000, ANSWER_MS = 10000, CHANGE_MS = 60000;
    const BUCKET_MS = 10000, BUCKETS = 90;
    const LIST_ROWS = 50, PARTITION_ROWS = 10, PARTITION_BLOCK = 1000, RUN_ROWS = 500, EVENT_ROWS = 50, EVENTS_KEPT = 1000;
    const OUTCOMES = [
        ["applied", "applied"], ["duplicate", "duplicate, dropped"], ["rejected", "rejected by the target"],
        ["not_sent", "not sent"], ["busy", "busy"], ["conflict", "conflict"], ["unkeyed", "without coordinates"],
        ["entered_in_doubt", "entered in doubt"],
    ];
    const CAUSES = {
        crash: "sinkonce was stopped between sending it and hearing the target's answer.",
        no_reply: "The connection to the target ended before its answer was whole.",
        timeout: "The target did not answer in time.",
        status: "The target answered with a status that proves neither.",
        guard: "The connection to the target was lost after the request had been sent, and sinkonce did not let it be sent a second time.",
    };
    const STATES = {
        ready: ["good", "Ready."],
        starting: ["warn", "Starting."],
        draining: ["warn", "Draining: no new connection is taken."],
        "not-ready": ["bad", "Not ready: connectors are turned away."],
        "ledger-failing": ["bad", "The ledger fails: nothing is sent until the disk works again."],
    };

    const MODES = {
        enforce: "records that the target has are dropped, and each takes effect once.",
        observe: "every request is forwarded, duplicates too; what would have been dropped is counted.",
        off: "every request is forwarded and nothing is remembered: what comes twice takes effect twice.",
    };

    /* ---- small helpers -------------------------------------------------------------------------------------- */

    const at = (id) => document.getElementById(id);

    /* An element with text and children; nothing is ever parsed as markup. */
    function make(name, options = {}, ...children) {
        const { text, on, data, ...attributes } = options;
        const node = document.createElement(name);
        for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
        for (const [key, value] of Object.entries(data || {})) node.dataset[key] = value;
        if (text !== undefined) node.textContent = text;
        if (on) node.addEventListener("click", on);
        node.append(...children);
        return node;
    }

    function draw(name, attributes, text) {
        const node = document.createElementNS("http://www.w3.org/2000/svg", name);
        for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
        if (text !== undefined) node.textContent = text;
        return node;
    }

    /* Only what differs is written: a screen reader is not told the same again, and a selection stays. */
    function say(node, text) {
        if (node.textContent !== text) node.textContent = text;
        if (node.matches(".error, .empty, .done, .note")) node.hidden = text === "";
    }

    const plural = (count, one, many) => `${count} ${String(count) === "1" ? one : many}`;
    const records = (count) => plural(count, "record", "records");

    function range(first, last) {
        return String(first) === String(last) ? `offset ${first}` : `offsets ${first} to ${last}`;
    }

    function place(row) {
        return `${row.topic}, partition ${row.partition}`;
    }

    function bytes(count) {
        let value = Number(count), unit = 0;
        const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
        for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
        return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
    }

    function duration(seconds) {
        if (seconds === null || seconds === undefined) return "not known";
        if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
        if (seconds < 90) return `${Math.round(seconds)} s`;
        if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
        if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
        return `${Math.round(seconds / 86400)} days`;
    }

    /* By the clock of the instance, which the answers carry; this machine's may be wrong. */
    let serverAhead = 0;
    const secondsSince = (time) => Math.max(0, (Date.now() + serverAhead - Date.parse(time)) / 1000);
    const ago = (time) => time ? `${duration(secondsSince(time))} ago` : "never";
    const clock = (time) => time ? time.replace("T", " ").replace(/\.\d+Z$/, " UTC") : "";

    /* ---- JSON without loss ---------------------------------------------------------------------------------- */

    const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

    /* Whole numbers that a double may round become text. */
    function parse(text) {
        return JSON.parse(text.replace(TOKENS, (token) => /^-?\d{16,}$/.test(token) ? `"${token}"` : token));
    }

    /* The other way: BigInt becomes a number of all its digits. */
    function spell(members) {
        const parts = Object.entries(members).filter(([, value]) => value !== undefined)
            .map(([key, value]) => `${JSON.stringify(key)}:${typeof value === "bigint" ? value : JSON.stringify(value)}`);
        return `{${parts.join(",")}}`;
    }

    /* ---- the admin API -------------------------------------------------------------------------------------- */

    let token = ""; /* in memory only */

    class Refusal extends Error {
        constructor(status, answer) {
            super(sentenceOf(status, answer));
            this.status = status;
            this.answer = answer;
        }
    }

    function sentenceOf(status, answer) {
        if (status === 404 && answer.detail === "there is nothing at this path")
            return "Not available: this version of sinkonce does not have it.";
        const detail = answer.detail || `the answer was ${status}`;
        return `${detail[0].toUpperCase()}${detail.slice(1)}${/[.!]$/.test(detail) ? "" : "."}`;
    }

    function lateWords(method, timeout) {
        const words = `sinkonce has not answered within ${duration(timeout / 1000)}`;
        return method === "GET" ? words : `${words}. It may still do what was asked: look before you ask again`;
    }

    async function call(method, path, members) {
        const headers = { Accept: "application/json" };
        if (members !== undefined) headers["Content-Type"] = "application/json";
        if (token !== "" && method !== "GET") headers.Authorization = `Bearer ${token}`;
        const timeout = method === "GET" ? ANSWER_MS : CHANGE_MS; /* forgetting many partitions takes its time */
        let response, text;
        try {
            response = await fetch(path, { method, headers, cache: "no-store", credentials: "omit", redirect: "error",
                body: members === undefined ? undefined : spell(members), signal: AbortSignal.timeout(timeout) });
            text = await response.text();
        } catch (error) {
            throw new Refusal(0, { detail: error.name === "TimeoutError" ? lateWords(method, timeout) : "sinkonce does not answer on this port" });
        }
        let answer;
        try {
            answer = parse(text);
        } catch {
            throw new Refusal(response.status, { detail: `the answer to ${path} (${response.status}) could not be read` });
        }
        if (!response.ok) throw new Refusal(response.status, answer);
        return answer;
    }

    const ask = (path) => call("GET", path);

    /* ---- lists that stay in place --------------------------------------------------------------------------- */

    /* One element per key, kept as long as its row is there, so that focus and open details stay over a refresh. */
    function rows(list, items, keyOf, build, update) {
        const known = new Map([...list.children].map((node) => [node.dataset.key, node]));
        let before = null;
        for (const item of items) {
            const key = keyOf(item);
            let node = known.get(key);
            known.delete(key);
            if (!node) {
                node = build(item);
                node.dataset.key = key;
            }
            if (update) update(node, item);
            const next = before ? before.nextSibling : list.firstChild;
            if (next !== node) list.insertBefore(node, next);
            before = node;
        }
        const lost = [...known.values()].some((node) => node.contains(document.activeElement));
        for (const node of known.values()) node.remove();
        if (lost) focusOn(list);
    }

    /* A row that had the focus has gone: the next one of the list gets it, else the panel. */
    function focusOn(list) {
        const button = list.querySelector("button");
        if (button) {
            button.focus();
            return;
        }
        const title = list.closest("section").querySelector("h2");
        title.tabIndex = -1;
        title.focus({ preventScroll: true });
    }

    function told(text) {
        const node = at("done");
        node.hidden = false;
        node.textContent = text;
    }

    /* ---- one question to the operator ----------------------------------------------------------------------- */

    /* Shows WORDS (title, text, yes, reason: none, optional or required, count: to be typed), and runs DO until it
     * succeeds or the operator leaves.  Afterwards the focus is where it was, or in the panel. */
    let asked = null;

    function confirmThen(words, run) {
        asked = { words, run };
        at("ask-title").textContent = words.title;
        at("ask-text").textContent = words.text;
        at("ask-yes").textContent = words.yes;
        at("ask-reason-label").hidden = words.reason === "none";
        at("ask-count-label").hidden = words.count === undefined;
        at("ask-token-label").hidden = true;
        for (const id of ["ask-reason", "ask-count", "ask-token"]) at(id).value = "";
        at("ask-reason").required = words.reason === "required";
        at("ask-yes").disabled = false;
        say(at("ask-error"), "");
        at("ask").showModal();
        const first = words.count !== undefined ? "ask-count" : words.reason === "none" ? "ask-no" : "ask-reason";
        at(first).focus();
    }

    function wantsToken(error) {
        if (error.status !== 401) return false;
        at("ask-token-label").hidden = false;
        at("ask-token").focus();
        return true;
    }

    async function onConfirmed(event) {
        event.preventDefault();
        const { words, run } = asked;
        const reason = at("ask-reason").value.trim();
        if (words.reason === "required" && reason === "") {
            say(at("ask-error"), "Say why: the reason is kept with the event.");
            at("ask-reason").focus();
            return;
        }
        if (words.count !== undefined && at("ask-count").value.trim() !== String(words.count)) {
            say(at("ask-error"), `The number is ${words.count}.`);
            at("ask-count").focus();
            return;
        }
        if (at("ask-token").value !== "") {
            token = at("ask-token").value.trim();
            at("ask-token").value = "";
        }
        at("ask-yes").disabled = true;
        try {
            const sentence = await run(reason);
            at("ask").close();
            told(sentence);
            await running; /* began before the change */
            await poll();
        } catch (error) {
            say(at("ask-error"), error.message);
            wantsToken(error);
        } finally {
            at("ask-yes").disabled = false;
        }
    }

    /* ---- state and what needs a person ---------------------------------------------------------------------- */

    function alertsOf(status) {
        const alerts = [];
        const counts = status.records;
        if (Number(counts.in_doubt_now) > 0)
            alerts.push({ key: "doubt", tone: "bad", link: "#doubts", to: "Go to them", text:
                `${records(counts.in_doubt_now)} in doubt, the oldest for ${duration(secondsSince(counts.in_doubt_oldest))}. ` +
                "Until each is resolved the connector gets 503 for it, and its partition waits. Look it up in the target, then say whether it is there." });
        if (Number(counts.conflicts_open) > 0)
            alerts.push({ key: "conflict", tone: "bad", link: "#conflicts", to: "Go to it", text:
                `${plural(counts.conflicts_open, "conflict waits", "conflicts wait")} for a decision, and the partition with it: ` +
                "other records came at coordinates that are taken, or it began in its middle. Say which it is." });
        /* The two above are told in this page's words already. */
        for (const text of status.warnings) {
            if (/ ((is|are) in doubt, the oldest|conflicts? waits? for a decision)/.test(text)) continue;
            const isBad = /ledger (fails|works, but failed|is full)|gave no 2xx|will get it again|disk of .* is full|has met \d+ partitions|VERIFY is off|mode.* is off/i.test(text);
            alerts.push({ key: text.replace(/\d+/g, "#"), tone: isBad ? "bad" : "warn", text });
        }
        if (alerts.every((alert) => alert.tone !== "bad"))
            alerts.unshift({ key: "fine", tone: "good", text: "Nothing needs you now: nothing is in doubt, and no decision is open." });
        return alerts;
    }

    function showAlerts(alerts) {
        rows(at("alert-list"), alerts, (alert) => alert.key, (alert) => {
            const node = make("li", {}, make("span"));
            if (alert.link) node.append(" ", make("a", { href: alert.link, text: alert.to }));
            return node;
        }, (node, alert) => {
            node.dataset.tone = alert.tone;
            say(node.firstChild, alert.text);
        });
    }

    function showState(tone, text) {
        at("state").dataset.tone = tone;
        say(at("state"), text);
    }

    function badge(name, count) {
        say(at(`${name}-badge`), Number(count) > 0 ? String(count) : "");
    }

    async function pollStatus() {
        const status = await ask("/status");
        const [tone, text] = STATES[status.state] || ["warn", `${status.state}.`];
        const open = Number(status.records.in_doubt_now) + Number(status.records.conflicts_open);
        if (open > 0 && tone === "good") showState("warn", "Ready, but records wait for a person.");
        else showState(tone, text);
        say(at("facts"), `mode ${status.mode} · target ${status.target} · version ${status.version} · up ${duration(Number(status.uptime_seconds))}` +
            ` · ${plural(status.requests_in_flight, "request", "requests")} in flight`);
        document.title = open > 0 ? `(${open}) sinkonce` : "sinkonce";
        badge("doubts", status.records.in_doubt_now);
        badge("conflicts", status.records.conflicts_open);
        showAlerts(alertsOf(status));
        showControls(status);
        showLedger(status.ledger);
    }

    /* ---- in doubt ------------------------------------------------------------------------------------------- */

    const doubtPage = { path: "/in-doubt", after: "0", next: null }, conflictPage = { path: "/conflicts", after: "0", next: null };

    /* One page of a list that is read by its ids, and its pager; when the page has emptied, the first one. */
    async function askPage(page, panel, member = panel) {
        let answer = await ask(`${page.path}?limit=${LIST_ROWS}&after=${page.after}`);
        if (answer[member].length === 0 && page.after !== "0") {
            page.after = "0";
            answer = await ask(`${page.path}?limit=${LIST_ROWS}&after=0`);
        }
        const count = answer[member].length, isPaged = answer.next !== null || page.after !== "0";
        page.next = answer.next;
        at(`${panel}-empty`).hidden = count > 0;
        at(`${panel}-first`).hidden = page.after === "0";
        at(`${panel}-next`).hidden = answer.next === null;
        say(at(`${panel}-count`), isPaged ? `${count} of ${answer.total} entries` : "");
        return answer;
    }

    function resolveOne(row, resolution) {
        const isApplied = resolution === "applied";
        confirmThen({
            title: `${isApplied ? "Applied" : "Not applied"}: ${place(row)}, ${range(row.first, row.last)}`,
            text: isApplied
                ? `You have found ${row.records === 1 ? "this record" : `all ${row.records} records`} in the target. It will never be sent again: if it is not there, it is lost.`
                : `You have made sure that the target does not have ${row.records === 1 ? "this record" : `any of the ${row.records} records`}. It will be sent again: if it is there, it takes effect twice.`,
            yes: isApplied ? "Resolve as applied" : "Resolve as not applied", reason: "required",
            count: Number(row.records) > 1 ? row.records : undefined,
        }, async (reason) => {
            const done = await call("POST", `/in-doubt/${row.id}`, { resolution, reason });
            return `${records(done.records)} of ${place(row)} resolved as ${isApplied ? "applied" : "not applied"}.` +
                " The connector's next delivery goes on from there.";
        });
    }

    function buildDoubt(row) {
        const name = `${place(row)}, ${range(row.first, row.last)}`;
        return make("li", {}, make("b", { text: name }), make("p", { class: "what" }), make("p", { class: "when" }),
            make("p", { class: "buttons" },
                make("button", { type: "button", text: "Applied …", "aria-label": `Applied: ${name}`, data: { do: "applied" } }),
                make("button", { type: "button", text: "Not applied …", "aria-label": `Not applied: ${name}`, data: { do: "not-applied" } })));
    }

    function updateDoubt(node, row) {
        const [what, when] = node.querySelectorAll(".what, .when");
        say(what, `${CAUSES[row.cause] || `Cause: ${row.cause}.`}${row.detail ? ` (${row.detail})` : ""}`);
        say(when, `${records(row.records)}, since ${clock(row.since)} (${ago(row.since)}), sent ${plural(row.attempts, "time", "times")}`);
        for (const button of node.querySelectorAll("button")) button.onclick = () => resolveOne(row, button.dataset.do);
    }

    async function pollDoubts() {
        const answer = await askPage(doubtPage, "doubts", "in_doubt");
        rows(at("doubt-list"), answer.in_doubt, (row) => row.id, buildDoubt, updateDoubt);
    }

    const COUNT_OF_NONE = 9223372036854775807n; /* more than there can be */
    const digits = (text) => text === "" ? undefined : BigInt(text);

    function filterOf(form) {
        const field = (name) => form.elements[name].value.trim();
        const filter = { topic: field("topic") || undefined };
        for (const name of ["partition", "from", "to"]) filter[name] = digits(field(name));
        return filter;
    }

    function filterWords(filter) {
        const topic = filter.topic === undefined ? "every topic" : filter.topic;
        const partition = filter.partition === undefined ? "" : `, partition ${filter.partition}`;
        return topic + partition + (filter.from === undefined ? "" : `, ${range(filter.from, filter.to)}`);
    }

    /* A count that is wrong changes nothing, and the refusal says the right one. */
    async function countMatching(path, members) {
        try {
            await call("POST", path, { ...members, expect_count: COUNT_OF_NONE, reason: "counted" });
            return 0;
        } catch (error) {
            if (error.answer && error.answer.error === "count-mismatch") return error.answer.count;
            throw error;
        }
    }

    function resolveMany(filter, resolution, count) {
        const isApplied = resolution === "applied";
        confirmThen({
            title: `Resolve ${records(count)} as ${isApplied ? "applied" : "not applied"}`,
            text: `In ${filterWords(filter)}.\n${isApplied ? "None of them will be sent again: what the target does not have is lost."
                : "All of them will be sent again: what the target has takes effect twice."}`,
            yes: `Resolve ${records(count)}`, reason: "required", count,
        }, async (reason) => {
            const done = await call("POST", "/in-doubt", { ...filter, resolution, expect_count: BigInt(count), reason });
            return `${records(done.records)} resolved as ${isApplied ? "applied" : "not applied"}.`;
        });
    }

    async function onMany(event) {
        event.preventDefault();
        const resolution = event.submitter ? event.submitter.value : "applied";
        const filter = filterOf(event.target);
        say(at("many-error"), "");
        try {
            const count = await countMatching("/in-doubt", { ...filter, resolution });
            if (Number(count) === 0) say(at("many-error"), `Nothing is in doubt in ${filterWords(filter)}.`);
            else resolveMany(filter, resolution, count);
        } catch (error) {
            if (error.status === 401) askToken(() => event.target.requestSubmit(event.submitter));
            else say(at("many-error"), error.message);
        }
    }

    /* For what needs the token before there is anything to confirm. */
    function askToken(then) {
        confirmThen({ title: "Changes need the admin token", text: "This page is open from beyond loopback.", yes: "Go on", reason: "none" },
            async () => {
                setTimeout(then, 0);
                return "The token is kept until this page closes.";
            });
        at("ask-token-label").hidden = false;
        at("ask-token").focus();
    }

    /* ---- conflicts ------------------------------------------------------------------------------------------ */

    function decide(row, decision) {
        const isNew = decision === "new-topic", isFirst = row.kind === "first-sight";
        confirmThen({
            title: `${isNew ? "New topic" : isFirst ? "Accept" : "Same record"}: ${place(row)}, offset ${row.offset}`,
            text: isNew
                ? "The topic was deleted and created again: its records are new, and are sent. The partition's old history is set aside and holds back none of them, and what was in doubt there is closed. If it is the old topic after all, records take effect twice."
                : isFirst
                    ? "Its records are sent from now on. Of what lies below this offset the ledger knows nothing: what the target has of it takes effect twice if it is delivered again."
                    : "It is the record that was applied, only written otherwise. It is dropped as a duplicate: if it is another one, it is lost.",
            yes: isNew ? "Decide: new topic" : isFirst ? "Accept the partition" : "Decide: same", reason: "required",
        }, async (reason) => {
            await call("POST", `/conflicts/${row.id}`, { decision, reason });
            return `Decided for ${place(row)}: ${isNew ? "a new topic" : isFirst ? "accepted" : "the same record"}.`;
        });
    }

    function conflictWords(row) {
        if (row.kind === "first-sight") return "This partition was seen for the first time, above offset 0: the ledger knows nothing of what came before.";
        if (row.only_the_tail) return "Only the last records differ: it looks like a log that was cut, and written on from there.";
        return "The record at this offset is not the one that was applied: it looks like a topic that was created anew.";
    }

    function buildConflict(row) {
        const name = `${place(row)}, offset ${row.offset}`;
        const choices = row.kind === "first-sight" ? [["same", "Accept"]] : [["same", "Same record"], ["new-topic", "New topic"]];
        return make("li", {}, make("b", { text: name }), make("p", { class: "what" }), make("p", { class: "when" }),
            make("p", { class: "buttons" }, ...choices.map(([decision, words]) =>
                make("button", { type: "button", text: `${words} …`, "aria-label": `${words}: ${name}`, data: { do: decision } }))));
    }

    function updateConflict(node, row) {
        const [what, when] = node.querySelectorAll(".what, .when");
        say(what, conflictWords(row));
        say(when, `since ${clock(row.since)} (${ago(row.since)}), met by ${plural(row.deliveries, "delivery", "deliveries")}` +
            (row.stored_mark ? `; mark ${row.stored_mark} is kept, ${row.seen_mark} came` : ""));
        for (const button of node.querySelectorAll("button")) button.onclick = () => decide(row, button.dataset.do);
    }

    async function pollConflicts() {
        const answer = await askPage(conflictPage, "conflicts");
        rows(at("conflict-list"), answer.conflicts, (row) => row.id, buildConflict, updateConflict);
    }

    /* ---- replay windows ------------------------------------------------------------------------------------- */

    function closeReplay(row) {
        confirmThen({ title: `Close the window: ${place(row)}, ${range(row.from, row.to)}`,
            text: "Applied records in there are dropped as duplicates again. What was sent again stays sent.", yes: "Close the window", reason: "none" },
        async () => {
            const done = await call("DELETE", `/replays/${row.id}`);
            return `The window is closed; ${records(done.replayed)} had been sent again.`;
        });
    }

    function buildReplay(row) {
        const name = `${place(row)}, ${range(row.from, row.to)}`;
        return make("li", {}, make("b", { text: name }), make("p", { class: "when" }),
            make("p", { class: "buttons" },
                make("button", { type: "button", text: "Close …", "aria-label": `Close: ${name}`, on: () => closeReplay(row) })));
    }

    async function pollReplays() {
        const answer = await ask("/replays?limit=1000");
        rows(at("replay-list"), answer.replays, (row) => row.id, buildReplay, (node, row) =>
            say(node.querySelector(".when"), `${records(row.replayed)} sent again so far; opened ${clock(row.opened)}, ends ${clock(row.until)}`));
        at("replays-empty").hidden = answer.replays.length > 0;
        badge("replays", answer.replays.length);
    }

    function onReplay(event) {
        event.preventDefault();
        const form = event.target, filter = filterOf(form);
        const time = form.elements.for.value.trim();
        confirmThen({ title: `Send again: ${filterWords(filter)}`,
            text: `For ${time}, what is applied in this range takes effect once more when the connector delivers it. Rewind the connector after the window is open.`,
            yes: "Open the window", reason: "required" },
        async (reason) => {
            await call("POST", "/replays", { ...filter, for: time, reason });
            return `The window for ${filterWords(filter)} is open for ${time}.`;
        });
    }

    /* ---- mode, drain, forgetting ---------------------------------------------------------------------------- */

    function changeMode(mode) {
        confirmThen({ title: `Mode ${mode}`, text: `From the next request on: ${MODES[mode]} The next start goes by SINKONCE_MODE again.`,
            yes: `Change to ${mode}`, reason: "required" },
        async (reason) => {
            await call("PUT", "/mode", { mode, reason });
            return `The mode is ${mode}.`;
        });
    }

    function changeDrain(isDraining) {
        confirmThen(isDraining
            ? { title: "Drain", text: "No new connection of a connector is accepted, and sinkonce is not ready. What is on its way ends as usual.", yes: "Drain", reason: "required" }
            : { title: "Resume", text: "Connectors are taken again.", yes: "Resume", reason: "required" },
        async (reason) => {
            await call(isDraining ? "POST" : "DELETE", "/drain", { reason });
            return isDraining ? "Draining." : "Connectors are taken again.";
        });
    }

    function showControls(status) {
        const isDraining = status.state === "draining";
        say(at("control-words"), `Mode ${status.mode}: ${MODES[status.mode]}${isDraining ? " Draining: no new connection is taken." : ""}`);
        for (const button of at("modes").querySelectorAll("[value]")) {
            button.disabled = button.value === status.mode;
            button.onclick = () => changeMode(button.value);
        }
        say(at("drain"), isDraining ? "Resume …" : "Drain …");
        at("drain").onclick = () => changeDrain(!isDraining);
    }

    async function onForget(event) {
        event.preventDefault();
        const form = event.target, filter = filterOf(form);
        say(at("forget-error"), "");
        try {
            const count = await countMatching("/forget", filter);
            confirmThen({ title: `Forget ${records(count)}`, yes: `Forget ${records(count)}`, reason: "required", count,
                text: `In ${filterWords(filter)}.\nWhat the connector delivers of them again takes effect a second time. Doubts and what is on its way stay.` },
            async (reason) => {
                const done = await call("POST", "/forget", { ...filter, expect_count: BigInt(count), reason });
                return `${records(done.records)} of ${filterWords(filter)} forgotten.`;
            });
        } catch (error) {
            if (error.status === 401) askToken(() => form.requestSubmit());
            else say(at("forget-error"), error.message);
        }
    }

    /* ---- records by outcome --------------------------------------------------------------------------------- */

    /* buckets[i]: how many records of each outcome fell into the i-th ten seconds; the last is the running one. */
    const traffic = { before: null, buckets: new Map(), totals: {} };

    function countsOf(stats) {
        const counts = {};
        for (const [name] of OUTCOMES) {
            counts[name] = Number(stats.counters[`${name}_records_total`].all);
        }
        return counts;
    }

    /* What came between two looks is spread over the time between them, also over a pause of this page. */
    function trafficAdd(now, counts) {
        const before = traffic.before;
        traffic.before = { now, counts };
        traffic.totals = counts;
        if (!before || OUTCOMES.some(([name]) => counts[name] < before.counts[name])) return; /* first look, or a restart */
        const start = Math.max(before.now, now - BUCKETS * BUCKET_MS);
        for (let from = start; from < now;) {
            const number = Math.floor(from / BUCKET_MS), to = Math.min(now, (number + 1) * BUCKET_MS);
            const bucket = traffic.buckets.get(number) || { ms: 0, counts: {} };
            bucket.ms += to - from;
            for (const [name] of OUTCOMES)
                bucket.counts[name] = (bucket.counts[name] || 0) + (counts[name] - before.counts[name]) * (to - from) / (now - before.now);
            traffic.buckets.set(number, bucket);
            from = to;
        }
        for (const number of traffic.buckets.keys())
            if (number <= Math.floor(now / BUCKET_MS) - BUCKETS) traffic.buckets.delete(number);
    }

    function rate(bucket, name) {
        return bucket && bucket.ms > 0 ? bucket.counts[name] * 1000 / bucket.ms : 0;
    }

    const rateWords = (value) => value === 0 ? "0" : value < 10 ? value.toFixed(1) : String(Math.round(value));

    /* The next of 1, 2, 5, 10, 20 … above VALUE: an axis that does not change with each look. */
    function axisTop(value) {
        const decade = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
        return [1, 2, 5, 10].map((step) => step * decade).find((step) => step >= value);
    }

    function showChart(now) {
        const width = 900, height = 190;
        const first = Math.floor(now / BUCKET_MS) - BUCKETS + 1;
        const columns = Array.from({ length: BUCKETS }, (_, i) => traffic.buckets.get(first + i));
        const peak = Math.max(...columns.map((bucket) => OUTCOMES.reduce((sum, [name]) => sum + rate(bucket, name), 0)));
        const highest = axisTop(peak), y = (value) => 2 + (height - 4) * (1 - value / highest);
        const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
            "aria-label": `Records per second by outcome over 15 minutes; at most ${rateWords(peak)}. The figures of now stand below.` });
        /* Flat over each bucket: a rate is known for ten seconds, not for a moment. */
        const edge = (values) => values.map((value, i) => [width * i / BUCKETS, width * (i + 1) / BUCKETS].map((x) => `${x},${y(value).toFixed(1)}`));
        let floor = new Array(BUCKETS).fill(0);
        for (const [name, words] of OUTCOMES) {
            const roof = floor.map((value, i) => value + rate(columns[i], name));
            if (roof.every((value, i) => value === floor[i])) continue;
            const area = draw("polygon", { class: `o-${name}`, points: [...edge(roof).flat(), ...edge(floor).flat().reverse()].join(" ") });
            area.append(draw("title", {}, words));
            svg.append(area);
            floor = roof;
        }
        for (const value of [0, highest / 2, highest])
            svg.append(draw("line", { x1: 0, x2: width, y1: y(value), y2: y(value), "vector-effect": "non-scaling-stroke" }));
        at("chart").replaceChildren(svg, axisWords(highest));
    }

    /* The labels are text beside the drawing, so that they are not stretched with it. */
    function axisWords(highest) {
        return make("p", { class: "ends" }, make("span", { text: "15 min ago" }),
            make("span", { text: `top line: ${rateWords(highest)} records per second` }), make("span", { text: "now" }));
    }

    function showLegend(now) {
        const number = Math.floor(now / BUCKET_MS);
        /* The running bucket may be a moment old; the one before it is whole. */
        const bucket = traffic.buckets.get(number - 1) || traffic.buckets.get(number);
        rows(at("legend"), OUTCOMES, ([name]) => name,
            ([name]) => make("li", {}, make("i", { class: `o-${name}` }), make("span")),
            (node, [name, words]) => say(node.lastChild, `${words} ${rateWords(rate(bucket, name))}/s, ${traffic.totals[name]} since the start`));
    }

    async function pollStats() {
        const stats = await ask("/stats"), now = Date.now();
        serverAhead = Date.parse(stats.time) - now;
        trafficAdd(now, countsOf(stats));
        showChart(now);
        showLegend(now);
        const isEmpty = [...traffic.buckets.values()].every((bucket) => OUTCOMES.every(([name]) => !bucket.counts[name]));
        at("traffic-empty").hidden = !isEmpty;
        showTarget(stats);
    }

    /* ---- target and ledger ---------------------------------------------------------------------------------- */

    function showTarget(stats) {
        const histogram = stats.histograms.target_duration_seconds;
        const success = Number(stats.gauges.target_last_success_timestamp_seconds);
        const flying = stats.gauges.target_requests_in_flight;
        say(at("target-words"), (success > 0 ? `Last success ${ago(new Date(success * 1000).toISOString())}. ` : "No success since the start. ") +
            `${plural(flying, "request waits", "requests wait")} for its answer.`);
        const parts = [["p50", "half within"], ["p90", "90 % within"], ["p99", "99 % within"], ["p999", "99.9 % within"]];
        const items = Number(histogram.count) > 0 ? parts : [];
        rows(at("latency"), items.flatMap(([key, words]) => [["t", key, words], ["d", key]]), ([kind, key]) => kind + key,
            ([kind, , words]) => kind === "t" ? make("dt", { text: words }) : make("dd", {}, make("progress", { max: "1", "aria-hidden": "true" }), make("span")),
            (node, [kind, key]) => {
                if (kind === "t") return;
                node.firstChild.value = histogram.p999 > 0 ? histogram[key] / histogram.p999 : 0;
                say(node.lastChild, ` ${duration(histogram[key])}`);
            });
        const codes = Object.entries(stats.target_responses || {}).map(([code, count]) => `${code}: ${count}`).join(", ");
        say(at("target-codes"), codes === "" ? "The target has not answered yet." : `Answers since the start, by status: ${codes}.`);
    }

    function showLedger(ledger) {
        const part = Number(ledger.used_bytes) / Number(ledger.max_bytes);
        say(at("ledger-words"), `${bytes(ledger.used_bytes)} of ${bytes(ledger.max_bytes)} are used (${(part * 100).toFixed(1)} %); at 85 % new records are refused.`);
        at("ledger-meter").value = part;
        const facts = [["created", clock(ledger.created)], ["starts", ledger.boots], ["runs of applied records", ledger.intervals],
            ["commits", ledger.commits], ["errors", ledger.errors], ["id", ledger.id]];
        rows(at("ledger-facts"), facts.flatMap(([name, value]) => [["dt", name, name], ["dd", name, value]]), ([tag, name]) => tag + name,
            ([tag]) => make(tag), (node, [, , text]) => say(node, String(text)));
    }

    /* ---- partitions ----------------------------------------------------------------------------------------- */

    /* The instance tells a thousand at a time; cursors[n] is where the block number n begins. */
    const partitionPage = { topic: "", page: 0, cursors: [""], askedAt: 0, count: 0 };
    const runs = new Map(); /* by topic and partition: { mark, from, answer, error } */
    const STATE_CLASS = { applied: "k-applied", in_doubt: "k-doubt", in_flight: "k-flight", below_window: "k-below" };

    const keyOf = (row) => `${row.topic}/${row.partition}`;
    const big = (value) => BigInt(value);

    function showBar(node, row, known) {
        const list = known.answer.intervals;
        const bar = node.querySelector(".bar"), ends = node.querySelector(".ends");
        bar.replaceChildren(draw("rect", { class: "ground", x: 0, y: 0, width: 1000, height: 10 }));
        if (list.length === 0) {
            ends.replaceChildren(make("span", { text: "No offset is kept." }));
            return;
        }
        const low = big(list[0].first), high = list.reduce((most, run) => big(run.last) > most ? big(run.last) : most, low);
        const span = high - low + 1n;
        const x = (offset) => Number((offset - low) * 1000000n / span) / 1000;
        /* Small runs of what needs a person must be seen: they are drawn last, and never thinner than a stroke. */
        const order = ["below_window", "applied", "in_flight", "in_doubt"];
        for (const run of [...list].sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state))) {
            const isThin = run.state === "in_doubt" || run.state === "in_flight";
            const left = x(big(run.first)), width = Math.max(x(big(run.last) + 1n) - left, isThin ? 6 : 1);
            bar.append(draw("rect", { class: STATE_CLASS[run.state] || "k-flight", x: Math.min(left, 1000 - width), y: 0, width, height: 10 }));
        }
        ends.replaceChildren(make("span", { text: String(low) }), make("span", { text: String(high) }));
        showRuns(node, row, known);
    }

    function showRuns(node, row, known) {
        const list = known.answer.intervals, text = [];
        let before = null;
        for (const run of list) {
            if (before !== null && big(run.first) > before + 1n) text.push(`gap: ${range(before + 1n, big(run.first) - 1n)}`);
            text.push(`${run.state.replace("_", " ")}: ${range(run.first, run.last)}`);
            before = big(run.last);
        }
        say(node.querySelector("pre"), text.join("\n"));
        const more = node.querySelector(".more"), isMore = known.answer.next !== null;
        more.hidden = !isMore && known.from === "0";
        more.textContent = isMore ? "Next runs" : "From the first run";
        more.onclick = () => {
            known.from = isMore ? String(known.answer.next) : "0";
            known.mark = "";
            loadRuns(node, row);
        };
    }

    /* Asked again only when the partition has changed. */
    async function loadRuns(node, row) {
        const key = keyOf(row), known = runs.get(key) || { mark: "", from: "0" };
        const mark = JSON.stringify(row);
        runs.set(key, known);
        if (known.mark === mark) return;
        try {
            known.answer = await ask(`/partitions/${encodeURIComponent(row.topic)}/${row.partition}/intervals?from=${known.from}&limit=${RUN_ROWS}`);
            known.mark = mark;
            showBar(node, row, known);
        } catch (error) {
            node.querySelector(".ends").replaceChildren(make("span", { text: error.message }));
        }
    }

    function buildPartition() {
        const bar = draw("svg", { class: "bar", viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" });
        return make("li", {}, make("b"), make("p", { class: "when" }), bar, make("p", { class: "ends" }),
            make("details", {}, make("summary", { text: "Runs as text" }), make("pre"), make("button", { type: "button", class: "more" })));
    }

    function updatePartition(node, row) {
        say(node.firstChild, place(row));
        say(node.querySelector(".when"), `${row.highest === null ? "nothing applied yet" : `${row.applied} applied, offsets ${row.lowest} to ${row.highest}`}` +
            `; ${plural(row.gaps, "offset", "offsets")} in gaps; ${row.in_doubt} in doubt; ${row.in_flight} on the way` +
            `${Number(row.generation) > 0 ? `; history number ${Number(row.generation) + 1}` : ""}${row.in_conflict ? "; waits for the decision of a conflict" : ""}` +
            `; last result ${ago(row.last_result)}`);
    }

    /* What waits for a person stands first. */
    const trouble = (row) => Number(row.in_conflict || Number(row.in_doubt) > 0);

    /* A long list costs the instance more to tell: it is asked for less often. */
    async function pollPartitions(isForced) {
        if (!isForced && partitionPage.count > 100 && Date.now() - partitionPage.askedAt < SLOW_MS) return;
        partitionPage.askedAt = Date.now();
        const filter = partitionPage.topic === "" ? "" : `&topic=${encodeURIComponent(partitionPage.topic)}`;
        const block = Math.floor(partitionPage.page * PARTITION_ROWS / PARTITION_BLOCK), before = block * PARTITION_BLOCK;
        const after = partitionPage.cursors[block] === "" ? "" : `&after=${encodeURIComponent(partitionPage.cursors[block])}`;
        const answer = await ask(`/partitions?limit=${PARTITION_BLOCK}${filter}${after}`);
        const all = answer.partitions.sort((a, b) => trouble(b) - trouble(a)); /* stable: else as they came */
        const total = before + Number(answer.total);
        if (answer.next !== null) partitionPage.cursors[block + 1] = answer.next;
        partitionPage.count = total;
        partitionPage.page = Math.max(0, Math.min(partitionPage.page, Math.ceil(total / PARTITION_ROWS) - 1));
        const start = partitionPage.page * PARTITION_ROWS, shown = all.slice(start - before, start - before + PARTITION_ROWS);
        rows(at("partition-list"), shown, keyOf, buildPartition, updatePartition);
        at("partitions-empty").hidden = all.length > 0;
        say(at("partitions-empty"), partitionPage.topic === "" ? "The ledger has met no partition yet." : `The ledger has met no partition of ${partitionPage.topic}.`);
        at("partitions-empty").hidden = all.length > 0;
        at("partitions-back").hidden = start === 0;
        at("partitions-next").hidden = start + PARTITION_ROWS >= total;
        say(at("partitions-count"), total <= PARTITION_ROWS ? "" : `${start + 1} to ${start + shown.length} of ${total}`);
        for (const node of [...at("partition-list").children]) {
            const row = shown.find((one) => keyOf(one) === node.dataset.key);
            if (row) await loadRuns(node, row);
        }
    }

    /* ---- settings and events -------------------------------------------------------------------------------- */

    function settingRows(list, settings) {
        rows(list, settings.flatMap((row) => [["dt", row], ["dd", row]]), ([tag, row]) => tag + row.name, ([tag, row]) =>
            tag === "dt" ? make("dt", { text: row.name }) : make("dd", {}, make("b"), make("p", { class: "note" })),
        (node, [tag, row]) => {
            if (tag === "dt") return;
            const value = row.secret && row.value ? "secret" : row.value === null || row.value === "" ? "none" : row.value;
            say(node.firstChild, value);
            say(node.lastChild, `from ${row.source}; default ${row.default === null || row.default === "" ? "none" : row.default}; ${row.meaning}`);
        });
    }

    let settingsAskedAt = 0;

    async function pollSettings() {
        if (Date.now() - settingsAskedAt < SLOW_MS) return;
        const answer = await ask("/config");
        settingsAskedAt = Date.now();
        const set = answer.settings.filter((row) => row.source !== "default");
        settingRows(at("setting-list"), set);
        settingRows(at("setting-all"), answer.settings);
        at("settings-empty").hidden = set.length > 0;
    }

    const events = { after: "0", rows: [], isAll: false };

    function eventPlace(row) {
        if (row.topic === undefined) return "";
        return row.partition === undefined ? ` ${row.topic}` : ` ${place(row)}, ${range(row.first, row.last)}`;
    }

    async function pollEvents() {
        for (let isMore = true; isMore;) {
            const answer = await ask(`/events?limit=1000&after=${events.after}`);
            events.rows.push(...answer.events);
            isMore = answer.events.length === 1000 && answer.next !== events.after;
            events.after = answer.next;
        }
        events.rows.splice(0, events.rows.length - EVENTS_KEPT);
        const newest = [...events.rows].reverse().slice(0, events.isAll ? EVENTS_KEPT : EVENT_ROWS);
        rows(at("event-list"), newest, (row) => row.id, (row) => make("li", {},
            make("span", { class: "when", text: `${clock(row.time)} ` }), make("b", { text: row.event }),
            make("span", { text: `${eventPlace(row)}${row.detail ? `: ${row.detail}` : ""}` })));
        at("events-empty").hidden = newest.length > 0;
        at("events-more").hidden = events.isAll || events.rows.length <= EVENT_ROWS;
    }

    /* ---- tester --------------------------------------------------------------------------------------------- */

    function headersOf(text) {
        const headers = {};
        for (const line of text.split("\n").map((one) => one.trim()).filter((one) => one !== "")) {
            const colon = line.indexOf(":");
            if (colon < 1) throw new Error(`"${line}" is not a header field: write Name: value.`);
            headers[line.slice(0, colon).trim()] = line.slice(colon + 1).trim();
        }
        return headers;
    }

    function explained(answer) {
        const found = Number(answer.record_count) === 0 ? "No record with coordinates was found." :
            `${records(answer.record_count)} found${answer.rule ? ` by ${answer.rule}` : ""}, shape ${answer.shape}:`;
        const nodes = [make("p", { text: `${answer.decision[0].toUpperCase()}${answer.decision.slice(1)}.` }), make("p", { text: found })];
        if (answer.records.length > 0)
            nodes.push(make("pre", { text: answer.records.map((row) => `${place(row)}, offset ${row.offset}; identity by ${row.mark}`).join("\n") }));
        if (answer.records.length < Number(answer.record_count)) nodes.push(make("p", { class: "note", text: `The first ${answer.records.length} are shown.` }));
        if (answer.sent) {
            nodes.push(make("p", { text: `Sent to the target, ${answer.sent.rewritten ? "rewritten" : "unchanged"}, ${answer.sent.body_bytes} bytes of body:` }));
            const head = answer.sent.fields.map((field) => `${field.name}: ${field.value}`).join("\n");
            nodes.push(make("pre", { text: `${answer.sent.method} ${answer.sent.target}\n${head}\n\n${answer.sent.body ?? "(not text)"}` }));
        }
        return nodes;
    }

    async function onTest(event) {
        event.preventDefault();
        const form = event.target.elements;
        say(at("tester-error"), "");
        at("tester-result").replaceChildren();
        try {
            const answer = await call("POST", "/explain", { path: form.path.value, headers: headersOf(form.headers.value), body: form.body.value });
            at("tester-result").replaceChildren(...explained(answer));
        } catch (error) {
            say(at("tester-error"), error.message);
        }
    }

    /* ---- polling -------------------------------------------------------------------------------------------- */

    const PANELS = [["alerts", pollStatus], ["doubts", pollDoubts], ["conflicts", pollConflicts], ["traffic", pollStats],
        ["replays", pollReplays], ["partitions", pollPartitions], ["settings", pollSettings], ["events", pollEvents]];
    let running = null, lastAnswer = null;

    /* Each panel shows its own failure, and keeps what it showed before. */
    async function pollPanel(name, run) {
        try {
            await run();
            say(at(`${name}-error`), "");
            return true;
        } catch (error) {
            say(at(`${name}-error`), error.message);
            return false;
        }
    }

    async function pollAll() {
        for (const [name, run] of PANELS) {
            const isFine = await pollPanel(name, run);
            if (name !== "alerts") continue;
            if (!isFine) {
                const since = lastAnswer === null ? "" : ` since ${clock(new Date(lastAnswer).toISOString())}; what stands below is from then`;
                showState("bad", `No answer from sinkonce${since}.`);
                return;
            }
            lastAnswer = Date.now();
        }
        say(at("fresh"), `as of ${clock(new Date().toISOString())}`);
    }

    function poll() {
        running ??= pollAll().finally(() => { running = null; });
        return running;
    }

    function onTick() {
        if (document.visibilityState === "visible") poll();
    }

    function page(id, move, panel, run) {
        at(id).addEventListener("click", async () => {
            move();
            await pollPanel(panel, run);
        });
    }

    function start() {
        at("ask-form").addEventListener("submit", onConfirmed);
        at("ask-no").addEventListener("click", () => at("ask").close());
        at("many-form").addEventListener("submit", onMany);
        at("replay-form").addEventListener("submit", onReplay);
        at("forget-form").addEventListener("submit", onForget);
        at("tester-form").addEventListener("submit", onTest);
        page("doubts-first", () => { doubtPage.after = "0"; }, "doubts", pollDoubts);
        page("doubts-next", () => { doubtPage.after = doubtPage.next; }, "doubts", pollDoubts);
        page("conflicts-first", () => { conflictPage.after = "0"; }, "conflicts", pollConflicts);
        page("conflicts-next", () => { conflictPage.after = conflictPage.next; }, "conflicts", pollConflicts);
        page("partitions-back", () => { partitionPage.page--; }, "partitions", () => pollPartitions(true));
        page("partitions-next", () => { partitionPage.page++; }, "partitions", () => pollPartitions(true));
        page("events-more", () => { events.isAll = true; }, "events", pollEvents);
        at("partition-form").addEventListener("submit", async (event) => {
            event.preventDefault();
            partitionPage.topic = event.target.elements.topic.value.trim();
            partitionPage.page = 0;
            partitionPage.cursors = [""];
            await pollPanel("partitions", () => pollPartitions(true));
        });
        document.addEventListener("visibilitychange", onTick);
        setInterval(onTick, POLL_MS);
        onTick();
    }

    start();
})();
