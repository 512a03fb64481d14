#!/usr/bin/env python3
"""The manifests of conf/kubernetes and conf/strimzi: every field is one that Kubernetes or the operator knows, an unknown one
is refused wherever it is put, what they say of sinkonce is what it understands, and the copies of its container agree.

Needs the package kubernetes-validate: run.sh fetches it.
"""

import copy
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

import schemas

HERE = os.path.dirname(os.path.abspath(__file__))
CONF = os.path.join(os.path.dirname(os.path.dirname(HERE)), "conf")
OLDEST, NEWEST = "1.29", "1.37"  # native sidecars are on by default from 1.29
FREE = {"labels", "annotations", "matchLabels", "nodeSelector", "data", "stringData", "requests", "limits", "config", "configs",
        "selector", "patchStrategicMerge"}  # maps whose keys are the user's
WORKLOADS = ("kubernetes/overlays/gateway/statefulset.yaml", "kubernetes/overlays/sidecar/worker.yaml")
HARDENED = {"runAsUser": 65532, "runAsGroup": 65532, "runAsNonRoot": True, "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}


def read(name):
    with open(os.path.join(CONF, name), encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


def files():
    found = glob.glob(os.path.join(CONF, "kubernetes", "**", "*.yaml"), recursive=True)
    found += glob.glob(os.path.join(CONF, "strimzi", "**", "*.yaml"), recursive=True)
    return sorted(os.path.relpath(path, CONF) for path in found)


def documents():
    return [(name, document) for name in files() for document in read(name)]


def versions_of(document):
    """(version of Kubernetes, apiVersion there) for which our files speak."""
    kind = document["kind"]
    if kind.startswith("MutatingAdmissionPolicy"):
        group = "admissionregistration.k8s.io/"
        return [("1.32", group + "v1alpha1"), ("1.34", group + "v1beta1"), ("1.36", group + "v1"), (NEWEST, group + "v1")]
    oldest = "1.30" if kind.startswith("ValidatingAdmissionPolicy") else OLDEST
    return [(version, document["apiVersion"]) for version in (oldest, NEWEST)]


def only(rows, name):
    found = [row for row in rows if row["name"] == name]
    assert len(found) == 1, "%d of %s" % (len(found), name)
    return found[0]


def pod_of(name):
    return read(name)[0]["spec"]["template"]


def policy_as_data():
    """What the policy adds, as a map: CEL's typed objects without their types."""
    (mutation,) = read("strimzi/sidecar/policy.yaml")[0]["spec"]["mutations"]
    text = mutation["jsonPatch"]["expression"].rpartition(") + ")[2]  # before it: lists that a pod may lack
    patches = yaml.safe_load(re.sub(r"(Object[A-Za-z.]*|JSONPatch)\{", "{", text))
    added = {"/spec/initContainers/-": [], "/spec/volumes/-": []}
    for one in patches:
        assert one["op"] == "add", one
        added[one["path"]].append(one["value"])
    return {"initContainers": added["/spec/initContainers/-"], "volumes": added["/spec/volumes/-"]}


def injected_pods():
    """The pod specifications that put sinkonce beside a worker, by where they stand."""
    overlay = yaml.safe_load(read("strimzi/confluent/sidecar.yaml")[0]["data"]["pod-template.yaml"])
    kyverno = read("strimzi/sidecar/kyverno.yaml")[0]["spec"]["rules"][0]["mutate"]["patchStrategicMerge"]
    return {"overlays/sidecar": pod_of(WORKLOADS[1])["spec"], "policy": policy_as_data(), "kyverno": kyverno["spec"],
            "confluent": overlay["spec"]["template"]["spec"]}


def containers():
    found = {name: only(pod["initContainers"], "sinkonce") for name, pod in injected_pods().items()}
    found["overlays/gateway"] = only(pod_of(WORKLOADS[0])["spec"]["containers"], "sinkonce")
    return found


def literals(overlay):
    """The settings that kustomize merges for OVERLAY."""
    found = {}
    for name in ("kubernetes/base", "kubernetes/overlays/" + overlay):
        rows = read(name + "/kustomization.yaml")[0]["configMapGenerator"]
        found.update(line.split("=", 1) for line in only(rows, "sinkonce")["literals"])
    return found


def settings():
    """All settings of a form, by where they stand."""
    found = {}
    for name in ("gateway", "sidecar"):
        env = {row["name"]: row["value"] for row in containers()["overlays/" + name]["env"]}
        found[name] = {**literals(name), **env}
    found["strimzi"] = read("strimzi/sidecar/ledger.yaml")[1]["data"]
    return found


def seconds(text):
    return int(re.fullmatch(r"(\d+)s", text).group(1))


def mebibytes(text):
    number, unit = re.fullmatch(r"(\d+)([KMG])iB?", text).groups()
    return int(number) * {"M": 1, "G": 1024}[unit]


def places(value, path=()):
    """Where an unknown field can be put: every map whose keys are not the user's."""
    if isinstance(value, dict):
        yield path
        for key, one in value.items():
            if key not in FREE or isinstance(one, dict) and {"matchLabels", "matchExpressions"} & set(one):
                yield from places(one, path + (key,))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from places(one, path + (number,))


def with_unknown_field(document, path):
    changed = copy.deepcopy(document)
    at = changed
    for step in path:
        at = at[step]
    at["unheardOf"] = "x"
    return changed


class TestFields(unittest.TestCase):
    def test_every_field_is_known(self):
        for name, document in documents():
            for version, api in versions_of(document):
                with self.subTest("%s for %s" % (name, version)):
                    schemas.check({**document, "apiVersion": api}, version)

    def test_an_unknown_field_is_refused_wherever_it_stands(self):
        """The control of the test above."""
        tried = 0
        for name, document in documents():
            version, api = versions_of(document)[-1]
            for path in places(document):
                tried += 1
                with self.subTest("%s: %s" % (name, ".".join(map(str, path)))):
                    with self.assertRaises(schemas.Refused):
                        schemas.check({**with_unknown_field(document, path), "apiVersion": api}, version)
        self.assertGreater(tried, 150)

    def test_containers_inside_of_other_files_have_known_fields_too(self):
        for name, pod in injected_pods().items():
            with self.subTest(name):
                spec = {"containers": [{"name": "connect"}], **copy.deepcopy(pod)}
                for version in (OLDEST, NEWEST):
                    schemas.check({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}, version)


class TestKustomize(unittest.TestCase):
    def test_every_file_named_exists_and_every_file_is_named(self):
        named = set()
        for name in files():
            if not name.endswith("kustomization.yaml"):
                continue
            document, folder = read(name)[0], os.path.dirname(name)
            rows = document.get("resources", []) + document.get("components", [])
            rows += [file for one in document.get("configMapGenerator", []) for file in one.get("files", [])]
            for row in rows:
                path = os.path.normpath(os.path.join(folder, row))
                self.assertTrue(os.path.exists(os.path.join(CONF, path)), path)
                named.add(path)
        for name in files():
            if name.startswith("kubernetes/"):
                self.assertTrue(name in named or name.endswith("kustomization.yaml"), name)

    def test_three_values_stand_at_the_top_in_their_order(self):
        for overlay in ("gateway", "sidecar"):
            with open(os.path.join(CONF, "kubernetes/overlays", overlay, "kustomization.yaml"), encoding="utf-8") as file:
                text = file.read()
            marks = [text.index("\n# %d. " % number) for number in (1, 2, 3)]
            self.assertEqual(marks, sorted(marks))
            self.assertLess(marks[-1], text.index("\nresources:"))

    def test_images_replaced_are_those_used(self):
        for overlay, workload in zip(("gateway", "sidecar"), WORKLOADS):
            spec = pod_of(workload)["spec"]
            used = {one["image"] for one in spec["containers"] + spec.get("initContainers", [])}
            rows = read("kubernetes/overlays/%s/kustomization.yaml" % overlay)[0]["images"]
            self.assertEqual({row["name"] for row in rows}, used)


class TestSettings(unittest.TestCase):
    def test_sinkonce_takes_the_settings_of_every_form(self):
        for name, env in settings().items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                token = os.path.join(folder, "admin")
                with open(token, "w", encoding="ascii") as file:
                    file.write("0123456789abcdef0123456789abcdef")
                os.mkdir(os.path.join(folder, "ledger"))
                env = {**env, "SINKONCE_ADMIN_TOKEN_FILE": token, "SINKONCE_DATA_DIR": os.path.join(folder, "ledger")}
                run = subprocess.run([os.environ["SINKONCE_BIN"], "check"], env=env, capture_output=True, text=True, timeout=20)
                self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)

    def test_every_setting_named_anywhere_exists(self):
        printed = subprocess.run([os.environ["SINKONCE_BIN"], "config", "env"], capture_output=True, text=True, check=True).stdout
        known = set(re.findall(r"^#(SINKONCE_[A-Z_]+)=", printed, re.MULTILINE))
        for name in files() + ["kubernetes/README.md", "strimzi/README.md"]:
            with open(os.path.join(CONF, name), encoding="utf-8") as file:
                named = set(re.findall(r"SINKONCE_[A-Z_]*[A-Z]", file.read())) - {"SINKONCE_PORT"}  # Kubernetes' own
            for one in named - known:  # a secret may stand in a file
                self.assertIn(one.removesuffix("_FILE"), known, name)

    def test_the_probes_are_commands_that_exist(self):
        for name, one in containers().items():
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                if probe in one:
                    program, *words = one[probe]["exec"]["command"]
                    self.assertEqual(program, "/usr/local/bin/sinkonce")
                    run = subprocess.run([os.environ["SINKONCE_BIN"], *words, "--help"], capture_output=True, text=True, timeout=20)
                    self.assertEqual(run.returncode, 0, (name, probe, run.stderr))

    def test_the_pod_lives_longer_than_the_drain(self):
        for overlay, workload in zip(("gateway", "sidecar"), WORKLOADS):
            drain = seconds(literals(overlay).get("SINKONCE_DRAIN_DELAY", "0s")) + seconds(literals(overlay)["SINKONCE_DRAIN_TIMEOUT"])
            self.assertGreaterEqual(pod_of(workload)["spec"]["terminationGracePeriodSeconds"], drain + 10)

    def test_the_volume_holds_the_ledger_twice(self):
        claims = [(read(name)[0]["spec"]["volumeClaimTemplates"][0], literals(name.split("/")[2])) for name in WORKLOADS]
        shared, config = read("strimzi/sidecar/ledger.yaml")
        for claim, env in claims + [(shared, config["data"])]:
            self.assertEqual(claim["spec"]["accessModes"], ["ReadWriteOncePod"])
            size = claim["spec"]["resources"]["requests"]["storage"]
            self.assertGreaterEqual(mebibytes(size), 2 * mebibytes(env["SINKONCE_LEDGER_MAX"]))


class TestContainers(unittest.TestCase):
    def test_one_pod_and_no_more(self):
        for name in WORKLOADS:
            self.assertEqual(read(name)[0]["spec"]["replicas"], 1, name)
        self.assertEqual(read("strimzi/sidecar/connect.yaml")[0]["spec"]["replicas"], 1)

    def test_a_sidecar_is_a_native_one(self):
        for name, pod in injected_pods().items():
            self.assertEqual(only(pod["initContainers"], "sinkonce")["restartPolicy"], "Always", name)

    def test_no_rights(self):
        for name, one in containers().items():
            context = dict(one["securityContext"])
            if name == "overlays/gateway":  # the rest stands in the pod's, which holds no other container
                context.update({key: value for key, value in pod_of(WORKLOADS[0])["spec"]["securityContext"].items()
                                if key in HARDENED})
            self.assertEqual(context, HARDENED, name)

    def test_the_copies_agree(self):
        wanted = containers()["overlays/gateway"]
        for name, one in containers().items():
            with self.subTest(name):
                for field in ("startupProbe", "readinessProbe", "resources", "envFrom"):
                    self.assertEqual(one[field], wanted[field])
                self.assertEqual([mount["mountPath"] for mount in one["volumeMounts"]],
                                 ["/var/lib/sinkonce", "/etc/sinkonce/tokens"])
        pods = injected_pods()
        self.assertEqual(pods["policy"], pods["kyverno"])
        self.assertEqual(pods["confluent"], pods["kyverno"])

    def test_every_mount_has_its_volume(self):
        pods = {name: pod_of(name)["spec"] for name in WORKLOADS}
        claimed = {name: [one["metadata"]["name"] for one in read(name)[0]["spec"]["volumeClaimTemplates"]] for name in WORKLOADS}
        for name, pod in {**pods, **injected_pods()}.items():
            volumes = [one["name"] for one in pod["volumes"]] + claimed.get(name, claimed[WORKLOADS[1]])
            for one in pod.get("initContainers", []) + pod.get("containers", []):
                for mount in one["volumeMounts"]:
                    self.assertIn(mount["name"], volumes, name)


class TestSelectors(unittest.TestCase):
    def labels(self, name):
        return pod_of(name)["metadata"]["labels"]

    def test_they_meet_the_pods(self):
        gateway, sidecar = map(self.labels, WORKLOADS)
        folder = "kubernetes/overlays/gateway/"
        for selector, labels in (
                (read(folder + "service.yaml")[0]["spec"]["selector"], gateway),
                (read(folder + "disruption.yaml")[0]["spec"]["selector"]["matchLabels"], gateway),
                (read(folder + "network.yaml")[0]["spec"]["podSelector"]["matchLabels"], gateway),
                (read("kubernetes/overlays/sidecar/network.yaml")[0]["spec"]["podSelector"]["matchLabels"], sidecar)):
            self.assertLessEqual(selector.items(), labels.items())

    def test_the_podmonitor_meets_all_pods_and_a_port_of_theirs(self):
        spec = read("kubernetes/components/podmonitor/podmonitor.yaml")[0]["spec"]
        (expression,), (endpoint,) = spec["selector"]["matchExpressions"], spec["podMetricsEndpoints"]
        for name in WORKLOADS:
            self.assertIn(expression["key"], self.labels(name))
        for name, one in containers().items():
            self.assertIn(endpoint["port"], [port["name"] for port in one["ports"]], name)

    def test_ports_named_elsewhere_are_the_gateways(self):
        ports = {port["name"] for port in containers()["overlays/gateway"]["ports"]}
        for row in read("kubernetes/overlays/gateway/service.yaml")[0]["spec"]["ports"]:
            self.assertIn(row["targetPort"], ports)
        for rule in read("kubernetes/overlays/gateway/network.yaml")[0]["spec"]["ingress"]:
            self.assertTrue({row["port"] for row in rule["ports"]} <= ports)

    def test_the_policy_asks_for_the_labels_that_the_pod_has(self):
        asked = read("strimzi/sidecar/policy.yaml")[0]["spec"]["matchConstraints"]["objectSelector"]["matchLabels"]
        kyverno = read("strimzi/sidecar/kyverno.yaml")[0]["spec"]["rules"][0]["match"]["any"][0]["resources"]["selector"]
        given = read("strimzi/sidecar/connect.yaml")[0]["spec"]["template"]["pod"]["metadata"]["labels"]
        self.assertEqual(asked, {"strimzi.io/kind": "KafkaConnect", **given})  # the first is Strimzi's own
        self.assertEqual(kyverno["matchLabels"], asked)


class TestRecipes(unittest.TestCase):
    """The connectors in these files are those of conf/connectors."""

    def recipe(self, name):
        with open(os.path.join(CONF, "connectors", name), encoding="utf-8") as file:
            lines = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
        return dict(line.split("=", 1) for line in lines)

    def flat(self, config):
        return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in config.items()}

    def test_the_sidecars_connector(self):
        with open(os.path.join(CONF, "kubernetes/overlays/sidecar/connector.properties"), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(CONF, "connectors/aiven-http.properties"), encoding="utf-8") as file:
            self.assertEqual(text, file.read())

    def test_strimzis_connector(self):
        spec = read("strimzi/gateway/connector.yaml")[0]["spec"]
        wanted = self.recipe("aiven-http.properties")
        config = self.flat({**spec["config"], "connector.class": spec["class"]})
        for key in ("name", "tasks.max", "http.url"):
            wanted.pop(key)
        self.assertEqual(config.pop("http.url"), "http://sinkonce.sinkonce.svc:8650/orders")
        self.assertEqual(config, wanted)

    def test_confluents_connector(self):
        spec = read("strimzi/confluent/gateway.yaml")[0]["spec"]
        wanted = self.recipe("confluent-http-v1.properties")
        config = self.flat({**spec["configs"], "connector.class": spec["class"]})
        for key in [key for key in wanted if key.endswith("bootstrap.servers")] + ["name", "tasks.max", "http.api.url"]:
            wanted.pop(key)
            config.pop(key, None)
        self.assertEqual(config, wanted)


if __name__ == "__main__":
    if "--by-hand" in sys.argv:
        sys.argv.remove("--by-hand")
        unittest.main("by_hand", argv=sys.argv, verbosity=2)
    unittest.main(verbosity=2)
