"""A sink worker that logs in with short-lived tokens (SASL/OAUTHBEARER, Kafka's unsecured ones): it authenticates
again on its connections in mid-flow (KIP-368), the broker cuts a connection that has expired, and is killed and started
again.  What the worker delivers again then takes effect once.
"""

import signal
import time

import sinkonce
from flow import Flow, demand

# A token is renewed after half of its life, so that none expires while the broker is frozen: a worker whose token is
# refused ends.
SESSION_MS, TOKEN_SECONDS = 2000, 12
FREEZE_SECONDS = 1.25 * SESSION_MS / 1000
ROUND, PATIENCE = 100, 240  # records that are fed again and again until something has been seen; seconds, at most
FREEZES_MAX = 10
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
HANDLERS = "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecured"
RENEWED = "Initiating re-login for worker"
AGAIN, REFUSED = "successful-reauthentication-total", "failed-reauthentication-total"
CUT = "expired-connections-killed-count"
BROKER = "kafka.server:type=socket-server-metrics,listener=SASL,networkProcessor=*"
CONSUMERS = "kafka.consumer:type=consumer-metrics,client-id=connector-consumer-oauth-*"


def broker():
    """What kafka.Cluster needs: a second listener, whose sessions end after SESSION_MS."""
    prefix = "listener.name.sasl.oauthbearer."
    return {"has_jmx": True, "listeners": {"SASL": (sinkonce.free_port(), "SASL_PLAINTEXT")}, "properties": {
        "listener.name.sasl.sasl.enabled.mechanisms": "OAUTHBEARER",
        prefix + "sasl.jaas.config": MODULE + ";",
        prefix + "sasl.server.callback.handler.class": HANDLERS + "ValidatorCallbackHandler",
        prefix + "sasl.login.callback.handler.class": HANDLERS + "LoginCallbackHandler",
        prefix + "connections.max.reauth.ms": SESSION_MS}}


def worker_properties(cluster):
    login = {
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": '%sunsecuredLoginStringClaim_sub="worker" unsecuredLoginLifetimeSeconds="%d";'
                            % (MODULE, TOKEN_SECONDS),
        "sasl.login.callback.handler.class": HANDLERS + "LoginCallbackHandler",
        "sasl.login.refresh.min.period.seconds": 1, "sasl.login.refresh.buffer.seconds": 0,
        "sasl.login.refresh.window.factor": 0.5, "sasl.login.refresh.window.jitter": 0}
    clients = ("", "consumer.", "producer.", "admin.")
    # A task that is stopped while the broker is away takes its time.  A successor beside it has the same client id, and
    # loses the MBean of that name when the old one ends at last: what it counts could not be read any more.
    return {"task.shutdown.graceful.timeout.ms": 60000, "bootstrap.servers": "127.0.0.1:%d" % cluster.listeners["SASL"][0],
            **{client + name: value for client in clients for name, value in login.items()}}


class Growth:
    """How far a sum of counters has grown, at least: each begins again at 0 when its client is made anew."""

    def __init__(self, read):
        self.read, self.last, self.grown = read, read(), 0

    def now(self):
        value = self.read()
        self.grown += max(0, value - self.last)  # of a sum that falls nobody knows what the others add to it
        self.last = value
        return self.grown


class Session:
    """The flow over the listener with sessions."""

    def __init__(self, cluster, flow):
        self.cluster, self.flow = cluster, flow

    def feed_until(self, has_happened, what):
        """Keep the records flowing until then."""
        limit = time.monotonic() + PATIENCE
        while not has_happened():
            demand(time.monotonic() < limit, "after %d records still not: %s", len(self.flow.produced()), what)
            self.flow.feed(ROUND)
            self.flow.wait_applied(len(self.flow.produced()) - ROUND)

    def consumers(self, attribute):
        return self.cluster.metric(CONSUMERS, attribute, self.flow.worker.jmx_port)

    def tokens(self):
        with open(self.flow.worker.log) as log:
            return sum(RENEWED in line for line in log)

    def authenticate_again(self, count):
        """So often, by the tasks' own consumers on connections that stay, and with tokens newer than the first."""
        again = Growth(lambda: self.consumers(AGAIN))
        self.feed_until(lambda: again.now() >= count and self.tokens() >= 2 and self.cluster.metric(BROKER, AGAIN) >= count,
                        "%d authentications on a running connection, with a new token, seen by both sides" % count)

    def cut_by_broker(self):
        """A frozen broker reads the requests of before after their session's end: those connections it closes."""
        for _ in range(FREEZES_MAX):
            before = self.cluster.metric(BROKER, CUT)
            self.flow.feed(ROUND)
            self.cluster.broker.signal(signal.SIGSTOP)
            time.sleep(FREEZE_SECONDS)
            self.cluster.broker.signal(signal.SIGCONT)
            self.flow.wait_applied(len(self.flow.produced()))
            if self.cluster.metric(BROKER, CUT) > before:
                return
        demand(False, "the broker cut no connection")

    def kill_broker(self):
        self.flow.feed(ROUND)
        self.cluster.broker.kill()
        self.cluster.start_broker()


def play(cluster):
    """The figures of the run: (title, value)."""
    worker = cluster.new_worker("oauth-worker", worker_properties(cluster), has_jmx=True,
                                options=["-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.security=info"])
    worker.start()
    with Flow(cluster, worker, "oauth", True, timeout_ms=1000, form="array", env={"SINKONCE_WAIT": "700ms"}) as flow:
        flow.target.set(delay=1500, every=20)
        session = Session(cluster, flow)
        flow.produce(ROUND)
        worker.wait_ready()
        flow.connect()
        session.authenticate_again(6)
        session.cut_by_broker()
        cut = cluster.metric(BROKER, CUT)
        session.kill_broker()
        session.authenticate_again(4)
        flow.finish()
        flow.demand_clean()
        flow.demand_redelivered()
        figures = flow.report().figures
        return [("authenticated again", int(session.consumers(AGAIN))), ("refused", int(session.consumers(REFUSED))),
                ("renewed tokens", session.tokens()), ("cut by the broker", int(cut)),
                ("committed", figures["produced"]), ("applied", figures["applied"]),
                ("dropped duplicates", int(flow.proxy.metric("sinkonce_duplicate_records_total"))),
                ("twice", figures["duplicates"]), ("lost", figures["lost"])]
