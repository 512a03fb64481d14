/*
 * stories.mjs - what an operator does on the page, each story in a browser of its own.
 *
 *     node stories.mjs STORY
 *
 * ADMIN, DATA and CONTROL are the addresses of sinkonce's two ports and of the target's control port; CHROMIUM the
 * browser; pictures go to PICTURES.  BROKEN, a JSON array of two texts, has the first replaced by the second in the
 * page's script: then the story must fail.  In every story the page must cause no console error, breach no content policy, ask
 * nobody but the admin port, and be no wider than its window.
 */
import assert from "node:assert/strict";
import path from "node:path";
import { chromium } from "playwright-core";

const { ADMIN, DATA, CONTROL, CHROMIUM, PICTURES, BROKEN, PATIENCE_MS } = process.env;
const LONG_TOPIC = "a".repeat(120) + "." + "long_name-".repeat(12) + "the.end1";
const SENT_ON = { status: 200, outcome: null }; /* the target's own answer */
const HUGE = 9007199254740993n; /* the first whole number that a double cannot hold */

/* ---- the connector and the target ------------------------------------------------------------------------------- */

async function send(offset, { topic = "orders", partition = 0, ...fields } = {}) {
    const members = { ...fields, __topic: topic, __partition: partition };
    const body = `${JSON.stringify(members).slice(0, -1)},"__offset":${offset}}`;
    const response = await fetch(`${DATA}/in`, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    await response.text();
    return { status: response.status, outcome: response.headers.get("sinkonce-outcome") };
}

const tell = async (what) => (await fetch(`${CONTROL}/${what}`)).text();

/* The target applies these records, and its answers are lost. */
async function doubt(offsets, where) {
    for (const offset of offsets) {
        await tell("set?cut=answer&end=rst&next=1");
        assert.equal((await send(offset, where)).status, 503);
    }
    await tell("clear");
}

/* ---- the browser ------------------------------------------------------------------------------------------------ */

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });

/* Opens the page, runs WORK, and checks what holds in every story.  A refusal that a story provokes shows up in the
 * console as a failed resource: EXPECTED says which statuses may. */
async function visit(work, { expected = [], width = 1280, height = 900, scheme = "light", prepare } = {}) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
    const wrong = [];
    const page = await context.newPage();
    await page.addInitScript(() => {
        window.breaches = [];
        document.addEventListener("securitypolicyviolation", (event) => window.breaches.push(`${event.violatedDirective} ${event.blockedURI}`));
    });
    page.on("console", (message) => {
        const isExpected = expected.some((text) => message.text().includes(text));
        if (["error", "warning"].includes(message.type()) && !isExpected) wrong.push(message.text());
    });
    page.on("pageerror", (error) => wrong.push(String(error.stack)));
    page.on("request", (request) => {
        if (!request.url().startsWith(`${ADMIN}/`) && !request.url().startsWith("data:")) wrong.push(`asked ${request.url()}`);
    });
    page.setDefaultTimeout(Number(PATIENCE_MS ?? 20000));
    if (BROKEN) await page.route("**/app.js", breakScript);
    if (prepare) await prepare(page);
    await page.goto(`${ADMIN}/`);
    await page.getByText("as of").waitFor();
    await work(page);
    await fits(page);
    assert.deepEqual(await page.evaluate(() => window.breaches), []);
    assert.deepEqual(wrong, []);
    await context.close();
}

async function breakScript(route) {
    const [right, wrong] = JSON.parse(BROKEN), response = await route.fetch(), text = await response.text();
    if (!text.includes(right)) {
        console.error(`the script has no ${right}`);
        process.exit(2);
    }
    await route.fulfill({ response, body: text.replaceAll(right, wrong) });
}

async function fits(page) {
    const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= window, `the page is ${wide} px wide in a window of ${window}`);
    const out = await page.evaluate(() => [...document.querySelectorAll("main *")].filter((node) => {
        const box = node.getBoundingClientRect();
        const parts = node.closest("svg, .visually-hidden");
        return !parts && box.width > 0 && (box.right > innerWidth + 1 || box.left < -1);
    }).map((node) => `${node.tagName} ${node.className} ${node.textContent.slice(0, 40)}`));
    assert.deepEqual(out, [], "elements beyond the window");
}

const picture = (page, name) => page.screenshot({ path: path.join(PICTURES, `${name}.png`), fullPage: true });
const row = (page, panel, text) => page.locator(`#${panel} .cards > li`, { hasText: text });

async function confirm(page, button, { reason, count } = {}) {
    const dialog = page.getByRole("dialog");
    if (count !== undefined) await dialog.getByLabel("How many records").fill(String(count));
    if (reason !== undefined) await dialog.getByLabel("Reason").fill(reason);
    await dialog.getByRole("button", { name: button }).click();
    await dialog.waitFor({ state: "hidden" });
}

/* ---- the stories ------------------------------------------------------------------------------------------------ */

const stories = {
    async alert_to_resolved() {
        for (const offset of [0, 1, 2]) assert.equal((await send(offset)).status, 200);
        await visit(async (page) => {
            await page.getByText("Nothing needs you").waitFor();
            await page.getByText("Nothing is in doubt.").waitFor();
            await doubt([3, 4]);
            await tell("set?cut=answer&end=rst&apply=no&next=1");
            assert.equal((await send(5)).outcome, "in-doubt");
            await tell("clear");
            /* Without a reload the alert comes, says what it means, and leads to the records. */
            const alert = page.locator("#alert-list li", { hasText: "3 records in doubt" });
            await alert.waitFor();
            assert.match(await alert.textContent(), /its partition waits/);
            assert.match(await page.title(), /^\(3\)/);
            await picture(page, "alert");
            await alert.getByRole("link").click();
            const first = row(page, "doubts", "offset 3");
            assert.match(await first.textContent(), /The connection to the target (ended before its answer was whole|was lost)/);
            assert.equal((await send(3)).status, 503);

            await first.getByRole("button", { name: "Applied: " , exact: false }).first().click();
            const dialog = page.getByRole("dialog");
            assert.match(await dialog.textContent(), /never be sent again/);
            /* No reason, no change. */
            await dialog.getByRole("button", { name: "Resolve as applied" }).click();
            assert.equal(await dialog.isVisible(), true);
            await picture(page, "dialog");
            await confirm(page, "Resolve as applied", { reason: "found in the target" });
            await first.waitFor({ state: "detached" });
            await page.getByText("1 record of orders, partition 0 resolved as applied").waitFor();
            assert.deepEqual(await send(3), { status: 200, outcome: "duplicate" });

            await row(page, "doubts", "offset 4").getByRole("button", { name: /^Applied/ }).click();
            await confirm(page, "Resolve as applied", { reason: "found in the target" });
            await row(page, "doubts", "offset 5").getByRole("button", { name: /^Not applied/ }).click();
            await confirm(page, "Resolve as not applied", { reason: "not in the target" });
            assert.deepEqual(await send(4), { status: 200, outcome: "duplicate" });
            assert.deepEqual(await send(5), SENT_ON);
            await page.getByText("Nothing needs you").waitFor();
            await page.locator("#events li", { hasText: "found in the target" }).first().waitFor();
            await page.locator("#chart polygon.o-applied").waitFor();
        });
    },

    async target_down() {
        await visit(async (page) => {
            await page.getByText("Nothing needs you").waitFor();
            await tell("set?status=401&apply=no&next=3");
            for (const offset of [0, 1, 2]) assert.equal((await send(offset)).status, 401);
            await page.locator('#alert-list li[data-tone="bad"]', { hasText: "most often so: status 401" }).waitFor();
            assert.equal(await page.getByText("Nothing needs you").count(), 0);
            assert.equal((await send(0)).status, 200);
            await page.getByText("Nothing needs you").waitFor();
        });
    },

    async many() {
        await doubt([1, 2, 3]);
        await doubt([7], { topic: "other" });
        await visit(async (page) => {
            await page.getByText("Resolve many at once").click();
            const form = page.locator("#many-form");
            await form.getByLabel("Topic").fill("nobody");
            await form.getByRole("button", { name: "Count, then applied …", exact: true }).click();
            await page.getByText("Nothing is in doubt in nobody.").waitFor();
            await form.getByLabel("Topic").fill("orders");
            await form.getByRole("button", { name: "Count, then applied …", exact: true }).click();
            const dialog = page.getByRole("dialog");
            await dialog.getByText("Resolve 3 records as applied").waitFor();
            await dialog.getByLabel("How many records").fill("4");
            await dialog.getByLabel("Reason").fill("all found");
            await dialog.getByRole("button", { name: "Resolve 3 records" }).click();
            await dialog.getByText("The number is 3.").waitFor();
            await confirm(page, "Resolve 3 records", { count: 3 });
            await page.getByText("3 records resolved as applied.").waitFor();
            await page.locator("#doubts .cards", { hasText: "other" }).waitFor();
            assert.equal(await page.locator("#doubts .cards > li").count(), 1);
            assert.equal((await send(2)).outcome, "duplicate");
            assert.equal((await send(7, { topic: "other" })).status, 503);
        }, { expected: ["status of 409"] });
    },

    async conflict() {
        for (const offset of [0, 1]) assert.equal((await send(offset)).status, 200);
        assert.equal((await send(0, { life: 2 })).outcome, "conflict");
        await visit(async (page) => {
            await page.getByText("1 conflict waits for a decision").waitFor();
            const one = row(page, "conflicts", "orders, partition 0, offset 0");
            await one.getByRole("button", { name: /^New topic/ }).click();
            await confirm(page, "Decide: new topic", { reason: "created anew on purpose" });
            await page.getByText("No conflict waits for a decision.").waitFor();
            assert.deepEqual(await send(0, { life: 2 }), SENT_ON);
            await page.locator("#partitions li", { hasText: "history number 2" }).waitFor();
        });
    },

    async first_sight() {
        assert.equal((await send(5)).outcome, "conflict");
        await visit(async (page) => {
            const one = row(page, "conflicts", "orders, partition 0, offset 5");
            assert.equal(await one.getByRole("button").count(), 1);
            await one.getByRole("button", { name: /^Accept/ }).click();
            await confirm(page, "Accept the partition", { reason: "the old ones are gone" });
            await page.getByText("No conflict waits for a decision.").waitFor();
            assert.deepEqual(await send(5), SENT_ON);
        });
    },

    async replay() {
        for (const offset of [0, 1]) assert.equal((await send(offset)).status, 200);
        await visit(async (page) => {
            await page.getByText("No replay window is open.").waitFor();
            await page.getByText("Open a window").click();
            const form = page.locator("#replay-form");
            for (const [name, value] of [["Topic", "orders"], ["Partition", "0"], ["From offset", "1"], ["To offset", "5"]])
                await form.getByLabel(name).fill(value);
            await form.getByRole("button", { name: "Open …" }).click();
            await confirm(page, "Open the window", { reason: "the target lost it" });
            const one = row(page, "replays", "orders, partition 0, offsets 1 to 5");
            await one.waitFor();
            assert.equal((await send(0)).outcome, "duplicate");
            assert.deepEqual(await send(1), SENT_ON);
            assert.equal((await send(1)).outcome, "duplicate");
            await one.getByText("1 record sent again so far").waitFor();
            await one.getByRole("button", { name: /^Close/ }).click();
            await confirm(page, "Close the window");
            await page.getByText("No replay window is open.").waitFor();
            await page.getByText("The window is closed; 1 record had been sent again.").waitFor();
        });
    },

    async tester() {
        await visit(async (page) => {
            const form = page.locator("#tester-form");
            await form.getByLabel("Body").fill(`{"a":1,"__topic":"orders","__partition":3,"__offset":${HUGE}}`);
            await form.getByRole("button", { name: "Explain" }).click();
            await page.locator("#tester-result pre", { hasText: `orders, partition 3, offset ${HUGE}` }).waitFor();
            await form.getByLabel("Header fields").fill("no colon here");
            await form.getByRole("button", { name: "Explain" }).click();
            await page.getByText("is not a header field").waitFor();
            await form.getByLabel("Header fields").fill("");
            await form.getByLabel("Body").fill("plain");
            await form.getByRole("button", { name: "Explain" }).click();
            await page.getByText("No record with coordinates was found.").waitFor();
            await picture(page, "tester");
        });
    },

    async keyboard() {
        await doubt([1, 2]);
        await visit(async (page) => {
            const focus = () => page.evaluate(() => document.activeElement.getAttribute("aria-label") || document.activeElement.textContent.trim() || document.activeElement.id);
            const tabTo = async (wanted) => {
                for (let i = 0; i < 80; i++) {
                    await page.keyboard.press("Tab");
                    if (wanted.test(await focus())) return;
                }
                assert.fail(`Tab never reaches ${wanted}`);
            };
            await page.keyboard.press("Tab");
            assert.equal(await focus(), "Skip to what needs you");
            const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
            assert.equal(outline, "solid", "the focus is seen");
            await page.keyboard.press("Enter");
            await tabTo(/^Go to them$/);
            await page.keyboard.press("Enter");
            await tabTo(/^Applied: orders, partition 0, offset 1$/);
            await page.keyboard.press("Enter");
            await page.getByRole("dialog").waitFor();
            assert.equal(await focus(), "ask-reason");
            await page.keyboard.press("Escape");
            await page.getByRole("dialog").waitFor({ state: "hidden" });
            assert.match(await focus(), /^Applied: orders/, "the focus is back where it was");
            await page.keyboard.press("Enter");
            await page.keyboard.type("found");
            await page.keyboard.press("Enter");
            await row(page, "doubts", "offset 1").waitFor({ state: "detached" });
            /* The row has gone: the focus is on the next one, not lost at the top of the page. */
            await page.waitForFunction(() => (document.activeElement.getAttribute("aria-label") || "").startsWith("Applied: orders, partition 0, offset 2"));
            await page.keyboard.press("Enter");
            await page.keyboard.type("found");
            await page.keyboard.press("Enter");
            await page.getByText("Nothing is in doubt.").waitFor();
            assert.equal((await send(2)).status, 200);
        });
    },

    async control() {
        for (const offset of [0, 1, 2]) await send(offset);
        await visit(async (page) => {
            const panel = page.locator("#control");
            await panel.getByText("Mode enforce: ").waitFor();
            assert.equal(await panel.getByRole("button", { name: "Enforce …" }).isDisabled(), true);

            await panel.getByRole("button", { name: "Observe …" }).click();
            assert.match(await page.getByRole("dialog").textContent(), /every request is forwarded, duplicates too/);
            await confirm(page, "Change to observe", { reason: "a trial" });
            await panel.getByText("Mode observe: ").waitFor();
            await page.locator("#alert-list li", { hasText: "is observe" }).waitFor();
            assert.deepEqual(await send(0), SENT_ON);
            await panel.getByRole("button", { name: "Enforce …" }).click();
            await confirm(page, "Change to enforce", { reason: "the trial is over" });
            await panel.getByText("Mode enforce: ").waitFor();
            assert.deepEqual(await send(0), { status: 200, outcome: "duplicate" });

            await panel.getByRole("button", { name: "Drain …" }).click();
            await confirm(page, "Drain", { reason: "a new disk" });
            await page.locator("#state", { hasText: "Draining" }).waitFor();
            await assert.rejects(send(3));
            await panel.getByRole("button", { name: "Resume …" }).click();
            await confirm(page, "Resume", { reason: "it is in" });
            await page.locator("#state", { hasText: "Ready" }).waitFor();
            assert.deepEqual(await send(3), SENT_ON);

            await panel.getByText("Forget what is applied").click();
            const form = page.locator("#forget-form");
            await form.getByLabel("Topic").fill("nobody");
            await form.getByRole("button").click();
            await page.locator("#forget-error", { hasText: "was ever met here" }).waitFor();
            await form.getByLabel("Topic").fill("orders");
            await form.getByLabel("Partition").fill("0");
            await form.getByLabel("From offset").fill("1");
            await form.getByLabel("To offset").fill("2");
            await form.getByRole("button").click();
            const dialog = page.getByRole("dialog", { name: "Forget 2 records" });
            await dialog.getByLabel("Reason").fill("the target lost them");
            await dialog.getByRole("button", { name: "Forget 2 records" }).click();
            await dialog.getByText("The number is 2.").waitFor();
            await confirm(page, "Forget 2 records", { count: 2 });
            await page.getByText("2 records of orders, partition 0, offsets 1 to 2 forgotten.").waitFor();
            assert.deepEqual(await send(1), SENT_ON);
            await page.locator("#events li", { hasText: "the target lost them" }).first().waitFor();
        }, { expected: ["404", "409"] });
    },

    /* The two-minute drill (scenario/drill): from the warning on, by clicking and typing alone.  TRUTH is what the operator
     * sees in the target: [topic, partition, offset as text, is it there] each. */
    async drill() {
        const truth = JSON.parse(process.env.TRUTH);
        let steps = 0;
        const step = (words) => console.log(`  ${++steps}  ${words}`);
        await visit(async (page) => {
            const alert = page.locator("#alert-list li", { hasText: `${truth.length} records in doubt` });
            await alert.waitFor();
            step("read the warning");
            await alert.getByRole("link", { name: "Go to them" }).click();
            step("go to the records in doubt");
            for (const [topic, partition, offset] of truth)
                await row(page, "doubts", `${topic}, partition ${partition}, offset ${offset}`).waitFor();
            assert.match(await row(page, "doubts", "orders").first().textContent(), /The connection to the target/);
            for (const [topic, partition, offset, isThere] of truth) {
                const name = `${topic}, partition ${partition}, offset ${offset}`, words = isThere ? "Applied" : "Not applied";
                await row(page, "doubts", name).getByRole("button", { name: `${words}: ${name}`, exact: true }).click();
                await confirm(page, isThere ? "Resolve as applied" : "Resolve as not applied", { reason: "a look into the target" });
                await row(page, "doubts", name).waitFor({ state: "detached" });
                step(`${name}: ${words.toLowerCase()}`);
            }
            await page.getByText("Nothing is in doubt.").waitFor();
            await page.locator("#alert-list li", { hasText: "The target gave no 2xx in the last minutes" }).waitFor();
            assert.equal((await send(23)).status, 200); /* the connector goes on, and the target with it */
            await page.getByText("Nothing needs you now").waitFor();
        });
    },

    /* Not a test: what the README shows (pictures.py).  A quarter of an hour of traffic goes by on the page's own clock. */
    async portrait() {
        const scheme = process.env.SCHEME;
        let offset = 0;
        await doubt([901]);
        await doubt([77], { topic: "refunds", partition: 2 });
        await send(0, { topic: "customers" });
        await send(0, { topic: "customers", life: 2 });
        await visit(async (page) => {
            for (let step = 0; step < 40; step++) {
                const count = 25 + Math.round(15 * Math.sin(step / 4)), again = step % 9 > 5 ? 12 : 2;
                for (let i = 0; i < count; i++) await send(offset++, { partition: i % 3 });
                for (let i = 1; i <= again; i++) await send(offset - i, { partition: (count - i) % 3 });
                if (step % 12 === 7) for (let i = 0; i < 5; i++) await fetch(`${DATA}/in`, { method: "POST", body: "no coordinates" });
                const polled = page.waitForResponse("**/events*");
                await page.clock.fastForward(20000);
                await polled;
            }
            await page.locator("#chart polygon.o-duplicate").first().waitFor();
            await page.screenshot({ path: path.join(PICTURES, `page-${scheme}.png`) });
        }, { scheme, height: 1240, prepare: (page) => page.clock.install() });
    },

    async token() {
        await doubt([1]);
        let seen = [];
        /* As an instance answers that is asked from beyond loopback. */
        const prepare = (page) => page.route("**/in-doubt/*", (route) => {
            const given = route.request().headers().authorization;
            seen.push(given);
            if (given === "Bearer sesame") return route.continue();
            return route.fulfill({ status: 401, contentType: "application/json",
                body: '{"error":"not-authorized","detail":"send Authorization: Bearer with a value of SINKONCE_ADMIN_TOKEN"}' });
        });
        await visit(async (page) => {
            const dialog = page.getByRole("dialog");
            await row(page, "doubts", "offset 1").getByRole("button", { name: /^Applied/ }).click();
            await dialog.getByLabel("Reason").fill("found");
            await dialog.getByRole("button", { name: "Resolve as applied" }).click();
            await dialog.getByText("SINKONCE_ADMIN_TOKEN.").waitFor();
            await dialog.getByLabel("Admin token").fill("sesame");
            await dialog.getByRole("button", { name: "Resolve as applied" }).click();
            await page.getByText("Nothing is in doubt.").waitFor();
            assert.deepEqual(seen, [undefined, "Bearer sesame"]);
            const kept = await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie, document.getElementById("ask-token").value]);
            assert.deepEqual(kept, [0, 0, "", ""]);
        }, { prepare, expected: ["status of 401"] });
    },

    async silence() {
        await send(0);
        await visit(async (page) => {
            await page.route("**/status", (route) => route.abort());
            await page.getByText("No answer from sinkonce since").waitFor();
            await page.getByText("orders, partition 0").first().waitFor(); /* what was known stays */
            await page.unroute("**/status");
            await page.getByText("Ready.").waitFor();
            await page.route("**/replays*", (route) => route.fulfill({ status: 404, contentType: "application/json",
                body: '{"error":"not-found","detail":"there is nothing at this path"}' }));
            await page.locator("#replays-error", { hasText: "Not available" }).waitFor();
            await page.route("**/conflicts*", (route) => route.fulfill({ status: 200, body: "<html>" }));
            await page.locator("#conflicts-error", { hasText: "could not be read" }).waitFor();
            await page.locator("#events li").first().waitFor();

            /* No answer in time is not the same as nobody there: the change may have been made. */
            await page.evaluate(() => { AbortSignal.timeout = () => AbortSignal.abort(new DOMException("late", "TimeoutError")); });
            await page.locator("#alerts-error", { hasText: "has not answered within 10 s" }).waitFor();
            await page.locator("#control").getByRole("button", { name: "Drain …" }).click();
            const dialog = page.getByRole("dialog");
            await dialog.getByLabel("Reason").fill("a new disk");
            await dialog.getByRole("button", { name: "Drain" }).click();
            await dialog.getByText("has not answered within 60 s. It may still do what was asked: look before you ask again.").waitFor();
        }, { expected: ["net::ERR_FAILED", "status of 404"] });
    },

    async looks() {
        assert.equal(LONG_TOPIC.length, 249);
        for (const offset of [0n, HUGE, HUGE + 1n, HUGE + 4n]) await send(offset, { topic: LONG_TOPIC, partition: 2147483647 });
        await doubt([HUGE + 7n], { topic: LONG_TOPIC, partition: 2147483647 });
        for (let offset = 0; offset < 60; offset++) if (offset % 7 !== 3) await send(offset);
        await doubt([70, 75]);
        await send(0, { topic: "again" });
        assert.equal((await send(0, { topic: "again", life: 2 })).outcome, "conflict");
        for (let from = 0; from < 1000; from += 50)
            await Promise.all(Array.from({ length: 50 }, (_, i) => send(0, { topic: "wide", partition: from + i })));
        for (const scheme of ["light", "dark"]) {
            for (const width of [1280, 360]) {
                await visit(async (page) => {
                    /* Traffic while the page looks on. */
                    for (let offset = 100; offset < 130; offset++) await send(offset, { topic: `seen-${scheme}-${width}` });
                    await send(100, { topic: `seen-${scheme}-${width}` });
                    await page.locator("#chart polygon.o-applied").waitFor();
                    const long = row(page, "partitions", LONG_TOPIC);
                    await long.locator(".bar rect.k-doubt").waitFor();
                    await long.getByText("Runs as text").click();
                    assert.match(await long.locator("pre").textContent(), new RegExp(`gap: offsets \\d+ to ${HUGE - 1n}\napplied: offsets ${HUGE} to ${HUGE + 1n}\n`));
                    await picture(page, `page-${scheme}-${width}`);
                    await fits(page);
                    await row(page, "doubts", LONG_TOPIC).getByRole("button", { name: /^Not applied/ }).click();
                    await page.screenshot({ path: path.join(PICTURES, `dialog-${scheme}-${width}.png`) });
                    await fits(page);
                    await page.getByRole("button", { name: "Cancel" }).click();
                    await page.locator("#partitions-count", { hasText: /^1 to 10 of 100/ }).waitFor();
                    await page.locator("#partitions-next").click();
                    await page.locator("#partitions-count", { hasText: /^11 to 20/ }).waitFor();
                    await page.locator("#partition-form").getByLabel("Topic").fill("orders");
                    await page.locator("#partition-form").getByRole("button", { name: "Show" }).click();
                    await page.waitForFunction(() => document.querySelectorAll("#partition-list > li").length === 1);
                }, { width, scheme, height: width === 360 ? 740 : 900 });
            }
        }
    },

    /* Every conflict can be met and decided, also those that do not fit on a page. */
    async many_conflicts() {
        for (let partition = 0; partition < 52; partition++)
            for (const life of [1, 2]) await send(0, { topic: "again", partition, life });
        await visit(async (page) => {
            await page.locator("#conflicts-count", { hasText: "50 of 52 entries" }).waitFor();
            await page.locator("#conflicts-next").click();
            for (let left = 2; left > 0; left--) {
                await page.locator("#conflicts-count", { hasText: `${left} of ${left} entries` }).waitFor();
                await row(page, "conflicts", "again").first().getByRole("button", { name: /^Same record/ }).click();
                await confirm(page, "Decide: same", { reason: "only its form" });
            }
            await page.waitForFunction(() => document.querySelectorAll("#conflict-list > li").length === 50);
            assert.equal(await page.locator("#conflicts-first").isVisible(), false);
        });
    },

    /* With blocks of 20 partitions instead of 1,000: all of them are met, each once, there and back. */
    async pages() {
        const names = new Set();
        for (let partition = 0; partition < 45; partition++) await send(0, { topic: "many", partition });
        const small = async (route) => {
            const response = await route.fetch(), text = await response.text();
            assert.ok(text.includes("PARTITION_BLOCK = 1000"));
            await route.fulfill({ response, body: text.replace("PARTITION_BLOCK = 1000", "PARTITION_BLOCK = 20") });
        };
        const come = (page, from, to) => page.locator("#partitions-count", { hasText: `${from} to ${to} of 45` }).waitFor();
        await visit(async (page) => {
            for (let from = 1; from <= 45; from += 10) {
                await come(page, from, Math.min(from + 9, 45));
                for (const one of await page.locator("#partition-list > li").all()) names.add(await one.getAttribute("data-key"));
                if (from < 41) await page.locator("#partitions-next").click();
            }
            assert.equal(names.size, 45);
            assert.equal(await page.locator("#partitions-next").isVisible(), false);
            for (const from of [31, 21, 11, 1]) {
                await page.locator("#partitions-back").click();
                await come(page, from, from + 9);
            }
        }, { prepare: (page) => page.route("**/app.js", small) });
    },

    async hidden() {
        let count = 0;
        await visit(async (page) => {
            page.on("request", () => { count++; });
            const show = (state) => page.evaluate((value) => {
                Object.defineProperty(document, "visibilityState", { configurable: true, get: () => value });
                document.dispatchEvent(new Event("visibilitychange"));
            }, state);
            await page.waitForLoadState("networkidle");
            await show("hidden");
            count = 0;
            await page.clock.runFor(60000);
            await page.evaluate(() => fetch("/version")); /* whatever had been asked before would be counted by now */
            assert.equal(count, 1);
            await show("visible");
            await page.waitForRequest("**/status");
        }, { prepare: (page) => page.clock.install() });
    },

    async texts() {
        const markup = '<img src=x onerror="document.title=1"><b>bold</b>';
        await doubt([1]);
        await visit(async (page) => {
            await row(page, "doubts", "offset 1").getByRole("button", { name: /^Applied/ }).click();
            await confirm(page, "Resolve as applied", { reason: markup });
            await page.locator("#events li", { hasText: "<b>bold</b>" }).first().waitFor();
            const form = page.locator("#tester-form");
            await form.getByLabel("Body").fill(markup);
            await form.getByRole("button", { name: "Explain" }).click();
            await page.locator("#tester-result pre", { hasText: markup }).waitFor();
            assert.equal(await page.locator("main img").count(), 0);
        });
    },
};

try {
    await stories[process.argv[2]]();
} finally {
    await browser.close();
}
