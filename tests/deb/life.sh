#!/usr/bin/env bash
# The life of the package, told inside the throw-away system under its own systemd: installed, set, started, asked,
# told to read again, stopped, installed again, removed, purged.  Started by run.sh.  Every step that held is a line that
# begins with ok.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

fail() {
    echo "FAIL: $*"
    systemctl status --no-pager -n 20 sinkonce 2>&1 || true
    exit 1
}
want() { [ "$1" = "$2" ] || fail "$3: \"$1\", and not \"$2\""; }

# What is in the system, less what apt, dpkg and adduser keep of themselves.
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/lib/apt \
        -o -path /var/lib/dpkg -o -path /var/cache -o -path /var/log -o -path '/etc/*-' \) -prune -o -print | sort
}
shown() { systemctl show sinkonce --value -p "$1"; }
settings=/etc/sinkonce/sinkonce.env
health() { SINKONCE_ADMIN_LISTEN=unix:/run/sinkonce/admin sinkonce health; }

files >/tmp/before
apt-get install -y -qq --no-install-recommends /root/sinkonce.deb
want "$(stat -c '%U:%G %a' /var/lib/sinkonce)" 'sinkonce:sinkonce 700' "the ledger's folder"
want "$(getent passwd sinkonce | cut -d: -f6,7)" /var/lib/sinkonce:/usr/sbin/nologin "the user"
want "$(systemd-analyze verify --man=no sinkonce.service 2>&1)" '' "what systemd finds wrong with the unit"
want "$(shown ActiveState)" inactive "the service, for which no target is set yet"
echo "ok   deb installed: the user and the ledger's folder are there, and nothing runs yet"

systemctl start sinkonce || true
for _ in $(seq 100); do [ "$(shown ActiveState)" = failed ] && break; sleep 0.1; done
want "$(shown ActiveState) $(shown ExecMainStatus) $(shown NRestarts)" 'failed 78 0' "the service without a target"
echo "ok   deb started without a target: ended with 78, and not tried again"

printf '%s\n' SINKONCE_TARGET=http://127.0.0.1:9 SINKONCE_LISTEN=unix:/run/sinkonce/data \
    SINKONCE_ADMIN_LISTEN=unix:/run/sinkonce/admin >>$settings
systemctl start sinkonce
for _ in $(seq 100); do health >/dev/null 2>&1 && break; sleep 0.1; done
health >/dev/null || fail "not healthy"
process=$(shown MainPID)
status() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$process/status"; }
want "$(status NoNewPrivs) $(status Seccomp) $(status CapBnd)" '1 2 0000000000000000' "how it is shut in"
want "$(stat -c %U "/proc/$process")" sinkonce "the user that it runs as"
systemctl reload sinkonce
want "$(shown MainPID) $(shown ActiveState)" "$process active" "the service after it was told to read again"
echo "ok   deb started with a target: healthy inside all that the unit forbids, also after a reload"

kill -KILL "$process"
for _ in $(seq 100); do health >/dev/null 2>&1 && break; sleep 0.1; done
health >/dev/null || fail "not healthy after it was killed"
want "$(shown NRestarts)" 1 "how often it was started again after it was killed"
for count in $(seq 2 7); do
    kill -KILL "$(shown MainPID)"
    for _ in $(seq 100); do [ "$(shown NRestarts)" = "$count" ] && break; sleep 0.1; done
done
for _ in $(seq 100); do health >/dev/null 2>&1 && break; sleep 0.1; done
want "$(shown ActiveState) $(shown NRestarts)" 'active 7' "the service after it was killed again and again"
systemctl stop sinkonce
want "$(shown Result) $(shown ExecMainStatus)" 'success 0' "how it stopped"
want "$(find /var/lib/sinkonce -mindepth 1 ! -user sinkonce)" '' "what is not the user's in the ledger's folder"
[ -n "$(ls -A /var/lib/sinkonce)" ] || fail "no ledger was written"
echo "ok   deb killed: started again, as often as it takes; stopped: 0"

# As the runbook says for the commands that need the environment of the service.
asked() { systemd-run -qP --uid=sinkonce -p EnvironmentFile=$settings "$@"; }
want "$(asked sinkonce check | head -n 1)" 'settings: ok' "what a check finds"
want "$(asked sinkonce ledger verify)" sound "what is found in the ledger"
want "$(find /var/lib/sinkonce -mindepth 1 ! -user sinkonce)" '' "what is not the user's after that"
echo "ok   deb asked with the service's own environment: settings and ledger"

# The secrets of the drop-in reach it as credentials, and nobody else.
mkdir -p /etc/systemd/system/sinkonce.service.d /etc/sinkonce/credentials
grep -v 'target-key\|client-token' /root/credentials.conf >/etc/systemd/system/sinkonce.service.d/credentials.conf
(umask 077 && echo token >/etc/sinkonce/credentials/admin-token && echo 'Bearer x' >/etc/sinkonce/credentials/authorization)
systemctl daemon-reload
systemctl start sinkonce
for _ in $(seq 100); do health >/dev/null 2>&1 && break; sleep 0.1; done
health >/dev/null || fail "not healthy with credentials"
tr '\0' '\n' <"/proc/$(shown MainPID)/environ" | grep -q '^SINKONCE_ADMIN_TOKEN_FILE=/run/credentials/sinkonce.service/admin-token$' ||
    fail "the token is not given as a credential"
rm -r /etc/systemd/system/sinkonce.service.d /etc/sinkonce/credentials
systemctl daemon-reload
echo "ok   deb started with its secrets as credentials"

apt-get install -y -qq --reinstall --no-install-recommends /root/sinkonce.deb
grep -q '^SINKONCE_TARGET=' $settings || fail "installing again has lost the settings"
want "$(shown ActiveState)" active "the service after its package was installed again"
apt-get remove -y -qq sinkonce
[ ! -e /usr/bin/sinkonce ] || fail "the program is still there"
! pgrep -x sinkonce >/dev/null || fail "the service still runs"
grep -q '^SINKONCE_TARGET=' $settings || fail "removing has lost the settings"
[ -n "$(ls -A /var/lib/sinkonce)" ] || fail "removing has lost the ledger"
echo "ok   deb installed again and removed: settings and ledger stay"

apt-get purge -y -qq sinkonce
apt-get autoremove -y -qq --purge
files >/tmp/after
want "$(diff /tmp/before /tmp/after)" '' "what has come or gone"
getent passwd sinkonce >/dev/null || fail "the user's number may be given to somebody else"
echo "ok   deb purged: nothing is left but the user"
