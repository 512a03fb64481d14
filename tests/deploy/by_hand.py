"""The overlays as kustomize builds them, the policy as the API server evaluates it, and the gateway's pod as Podman runs it:
by_hand.sh builds the programs.
"""

import base64
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest

import yaml

import manifests
import schemas
from manifests import CONF, read


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


class TestKustomize(unittest.TestCase):
    def build(self, overlay):
        made = run(os.environ["KUSTOMIZE"], "build", os.path.join(CONF, "kubernetes/overlays", overlay))
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        return {schemas.kind_of(document): document for document in yaml.safe_load_all(made.stdout)}

    def check(self, overlay, others):
        made = self.build(overlay)
        wanted = ["v1 ServiceAccount", "v1 ConfigMap", "apps/v1 StatefulSet", "monitoring.coreos.com/v1 PodMonitor",
                  "networking.k8s.io/v1 NetworkPolicy"] + others
        self.assertEqual(sorted(made), sorted(wanted))
        for document in made.values():
            for version, _ in manifests.versions_of(document):
                schemas.check(document, version)
        spec = made["apps/v1 StatefulSet"]["spec"]
        pod = spec["template"]["spec"]
        sinkonce = manifests.only(pod["containers"] + pod.get("initContainers", []), "sinkonce")
        self.assertEqual(sinkonce["image"], "registry.example/sinkonce:0.1.0")
        self.assertEqual(spec["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"], "2Gi")
        return made, sinkonce

    def test_the_gateway(self):
        made, sinkonce = self.check("gateway", ["v1 Service", "policy/v1 PodDisruptionBudget"])
        config = made["v1 ConfigMap"]
        self.assertEqual(sinkonce["envFrom"], [{"configMapRef": {"name": config["metadata"]["name"]}}])
        self.assertEqual(config["data"], manifests.literals("gateway"))
        self.assertEqual({document["metadata"]["namespace"] for document in made.values()}, {"sinkonce"})

    def test_the_sidecar(self):
        self.assertRaises(KeyError, lambda: self.build("sidecar")["v1 Service"])
        _, sinkonce = self.check("sidecar", [])
        self.assertEqual(sinkonce["restartPolicy"], "Always")


    def test_the_gateway_with_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(os.path.join(CONF, "kubernetes"), folder, dirs_exist_ok=True)
            overlay = os.path.join(folder, "overlays/gateway")
            with open(overlay + "/kustomization.yaml", encoding="utf-8") as file:
                text = file.read().replace("  # - ../../components/tls", "  - ../../components/tls")
            with open(overlay + "/kustomization.yaml", "w", encoding="utf-8") as file:
                file.write(text)
            made, sinkonce = self.check(overlay, ["v1 Service", "policy/v1 PodDisruptionBudget"])
        pod = made["apps/v1 StatefulSet"]["spec"]["template"]["spec"]
        mounted = manifests.only(sinkonce["volumeMounts"], "certificate")["mountPath"]
        for name in ("SINKONCE_LISTEN_CERT_FILE", "SINKONCE_LISTEN_KEY_FILE"):
            self.assertEqual(os.path.dirname(manifests.only(sinkonce["env"], name)["value"]), mounted)
        self.assertEqual(manifests.only(pod["volumes"], "certificate")["secret"]["secretName"], "sinkonce-certificate")


class TestPolicy(unittest.TestCase):
    POLICY = os.path.join(CONF, "strimzi/sidecar/policy.yaml")

    def evaluate(self, document):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump(document, file)
            file.flush()
            return run(os.environ["POLICY"], self.POLICY, file.name)

    def pod(self, **spec):
        labels = read("strimzi/sidecar/policy.yaml")[0]["spec"]["matchConstraints"]["objectSelector"]["matchLabels"]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "connect-one-connect-0", "labels": labels},
                "spec": {"containers": [{"name": "connect-one-connect", "image": "connect"}], **spec}}

    def mutated(self, pod):
        made = self.evaluate(pod)
        self.assertEqual(made.returncode, 0, made.stderr)
        return yaml.safe_load(made.stdout)

    def assert_added(self, before):
        after = self.mutated(before)
        for version in (manifests.OLDEST, manifests.NEWEST):
            schemas.check({key: after[key] for key in ("apiVersion", "kind", "metadata", "spec")}, version)
        added = manifests.policy_as_data()
        for field in ("initContainers", "volumes"):
            self.assertEqual(after["spec"][field], before["spec"].get(field, []) + added[field])
        self.assertEqual(after["spec"]["containers"][0]["name"], before["spec"]["containers"][0]["name"])

    def test_it_adds_the_sidecar_to_a_pod_without_init_containers(self):
        self.assert_added(self.pod())

    def test_it_leaves_what_a_pod_has(self):
        self.assert_added(self.pod(initContainers=[{"name": "rack", "image": "operator", "resources": {}}],
                                   volumes=[{"name": "strimzi-tmp", "emptyDir": {"medium": "Memory"}}]))

    def test_it_adds_none_twice(self):
        after = self.mutated(self.pod())
        self.assertEqual(self.mutated(after), after)

    def test_a_sidecar_with_more_than_one_worker_is_refused(self):
        connect = read("strimzi/sidecar/connect.yaml")[0]
        self.assertEqual(self.evaluate(connect).returncode, 0)
        for replicas in (2, 3):
            connect["spec"]["replicas"] = replicas
            refused = self.evaluate(connect)
            self.assertEqual((refused.returncode, refused.stdout[:38]), (1, "refused: a sinkonce sidecar goes with "), refused.stderr)

    def test_other_connect_clusters_may_have_as_many_as_they_like(self):
        self.assertEqual(self.evaluate(read("strimzi/gateway/connect.yaml")[0]).returncode, 0)


class Podman:
    """Podman with a store of its own, which needs no service and no network."""

    def __init__(self, folder):
        self.folder = folder
        limits = os.path.join(folder, "containers.conf")
        with open(limits, "w", encoding="ascii") as file:  # its own are higher than a container of ours may set
            file.write('[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n')
        self.env = {**os.environ, "CONTAINERS_CONF": limits}
        self.command = ["podman", "--root", folder + "/store", "--runroot", folder + "/run", "--runtime", "runc",
                        "--cgroup-manager", "cgroupfs", "--storage-driver", "vfs", "--events-backend", "none"]

    def __call__(self, *words, data=None):
        return subprocess.run(self.command + list(words), env=self.env, input=data, capture_output=True, timeout=120)

    def make_image(self, name):
        """The program and the libraries that it loads."""
        root = os.path.join(self.folder, "root")
        program = os.environ["SINKONCE_BIN"]
        loaded = re.findall(r"(/\S+) \(0x", run("ldd", program).stdout)
        for source, target in [(program, "/usr/local/bin/sinkonce")] + [(path, path) for path in loaded]:
            os.makedirs(root + os.path.dirname(target), exist_ok=True)
            shutil.copy(source, root + target)
        os.makedirs(root + "/var/lib/sinkonce", mode=0o700)
        os.chown(root + "/var/lib/sinkonce", 65532, 65532)
        tar = subprocess.run(["tar", "-C", root, "-c", "."], capture_output=True, check=True).stdout
        return self("import", "-c", "USER 65532:65532", "-c", 'ENTRYPOINT ["/usr/local/bin/sinkonce"]', "-", name, data=tar)

    def close(self):
        for words in (("pod", "rm", "-f", "-a"), ("volume", "rm", "-f", "-a")):
            self(*words)
        for layer in glob.glob(self.folder + "/store/vfs"):
            run("umount", layer)
        shutil.rmtree(self.folder, ignore_errors=True)


@unittest.skipUnless(os.geteuid() == 0 and all(map(shutil.which, ("podman", "runc", "catatonit"))),
                     "SKIP: a pod needs root, podman, runc and catatonit")
class TestPod(unittest.TestCase):
    """The gateway's pod really runs.  Podman 4.3 knows no native sidecars: that form stays unproved here."""

    def setUp(self):
        self.podman = Podman(tempfile.mkdtemp(prefix="sinkonce-pod-"))
        self.addCleanup(self.podman.close)

    def manifest(self):
        """What kustomize made, less what Podman 4.3 has not: StatefulSets, ports without a network, secrets without a word
        on whether they are optional."""
        made = yaml.safe_load_all(run(os.environ["KUSTOMIZE"], "build", CONF + "/kubernetes/overlays/gateway").stdout)
        made = {document["kind"]: document for document in made}
        template = made["StatefulSet"]["spec"]["template"]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "sinkonce", **template["metadata"]}, "spec": template["spec"]}
        (container,), (tokens,) = pod["spec"]["containers"], pod["spec"]["volumes"]
        del container["ports"]
        tokens["secret"]["optional"] = False
        pod["spec"]["volumes"].append({"name": "ledger", "persistentVolumeClaim": {"claimName": "ledger"}})
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **made["StatefulSet"]["spec"]["volumeClaimTemplates"][0]}
        token = base64.b64encode(b"t" * 32).decode()
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sinkonce-tokens"}, "data": {"admin": token}}
        return yaml.safe_dump_all([made["ConfigMap"], secret, claim, pod]).encode()

    def test_it_becomes_ready_has_no_rights_and_ends_well(self):
        podman = self.podman
        self.assertEqual(podman.make_image("registry.example/sinkonce:0.1.0").returncode, 0)
        played = podman("kube", "play", "--network", "none", "-", data=self.manifest())
        self.assertEqual(played.returncode, 0, played.stderr)
        ready = manifests.containers()["overlays/gateway"]["readinessProbe"]["exec"]["command"]

        def logs():
            return podman("logs", "sinkonce-sinkonce").stderr.decode()
        wait_for(lambda: podman("exec", "sinkonce-sinkonce", *ready).returncode == 0, logs)
        status = podman("exec", "sinkonce-sinkonce", "/usr/local/bin/sinkonce", "status").stdout.decode()
        self.assertRegex(status, r"state +ready")
        looked = json.loads(podman("inspect", "sinkonce-sinkonce").stdout)[0]
        self.assertEqual((looked["Config"]["User"], looked["HostConfig"]["ReadonlyRootfs"], looked["EffectiveCaps"]),
                         ("65532:65532", True, None))
        self.assertIn("no-new-privileges", looked["HostConfig"]["SecurityOpt"])
        podman("stop", "-t", "75", "sinkonce-sinkonce")
        self.assertEqual(json.loads(podman("inspect", "sinkonce-sinkonce").stdout)[0]["State"]["ExitCode"], 0, logs())


def wait_for(condition, logs, seconds=60):
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            raise TimeoutError(logs())
        time.sleep(0.2)
