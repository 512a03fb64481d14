"""Which fields a manifest may have.  Kubernetes' own kinds: its published JSON schemas, from the package
kubernetes-validate, in their strict form.  Kinds of operators and of kustomize: the lists below, no longer than what our
files use, each from the documentation of its project; what is no part of the list is refused.
"""

import kubernetes_validate

ANY = object()  # a map or a list whose content is the user's: labels, a connector's configuration
TEXT, NUMBER, FLAG = str, int, bool
LABELS = {"matchLabels": ANY, "matchExpressions": [{"key": TEXT, "operator": TEXT, "values": [TEXT]}]}
META = {"name": TEXT, "namespace": TEXT, "labels": ANY, "annotations": ANY}

CUSTOM = {
    "kustomize.config.k8s.io/v1beta1 Kustomization": {
        "namespace": TEXT, "resources": [TEXT], "components": [TEXT],
        "configMapGenerator": [{"name": TEXT, "behavior": TEXT, "literals": [TEXT], "files": [TEXT]}],
        "images": [{"name": TEXT, "newName": TEXT, "newTag": TEXT}],
        "patches": [{"target": {"kind": TEXT, "name": TEXT}, "patch": TEXT}]},
    "kustomize.config.k8s.io/v1alpha1 Component": {
        "resources": [TEXT], "patches": [{"target": {"kind": TEXT, "name": TEXT}, "patch": TEXT}]},
    "monitoring.coreos.com/v1 PodMonitor": {"spec": {
        "selector": LABELS, "podMetricsEndpoints": [{"port": TEXT, "path": TEXT, "interval": TEXT, "scheme": TEXT}]}},
    "kafka.strimzi.io/v1 KafkaConnect": {"spec": {
        "replicas": NUMBER, "bootstrapServers": TEXT, "groupId": TEXT, "configStorageTopic": TEXT,
        "offsetStorageTopic": TEXT, "statusStorageTopic": TEXT, "image": TEXT,
        "template": {"pod": {"metadata": {"labels": ANY, "annotations": ANY}, "terminationGracePeriodSeconds": NUMBER,
                             "securityContext": {"fsGroup": NUMBER}, "enableServiceLinks": FLAG}}}},
    "kafka.strimzi.io/v1 KafkaConnector": {"spec": {"class": TEXT, "tasksMax": NUMBER, "config": ANY}},
    "platform.confluent.io/v1beta1 Connector": {"spec": {
        "name": TEXT, "class": TEXT, "taskMax": NUMBER, "connectClusterRef": {"name": TEXT}, "configs": ANY}},
    "kyverno.io/v1 ClusterPolicy": {"spec": {"background": FLAG, "rules": [{
        "name": TEXT,
        "match": {"any": [{"resources": {"kinds": [TEXT], "operations": [TEXT], "selector": LABELS}}]},
        "mutate": {"patchStrategicMerge": {"spec": ANY}}}]}},
}


class Refused(Exception):
    """A field that does not exist, or has another type."""


def kind_of(document):
    return "%s %s" % (document.get("apiVersion"), document.get("kind"))


def check_fields(value, allowed, path):
    if allowed is ANY:
        return
    if isinstance(allowed, dict):
        if not isinstance(value, dict):
            raise Refused("%s is no map" % path)
        for key, one in value.items():
            if key not in allowed:
                raise Refused("%s has no field %s" % (path, key))
            check_fields(one, allowed[key], "%s.%s" % (path, key))
    elif isinstance(allowed, list):
        if not isinstance(value, list):
            raise Refused("%s is no list" % path)
        for number, one in enumerate(value):
            check_fields(one, allowed[0], "%s[%d]" % (path, number))
    elif not isinstance(value, allowed) or (allowed is NUMBER and isinstance(value, bool)):
        raise Refused("%s is no %s" % (path, allowed.__name__))


def check(document, version):
    """Raise Refused unless VERSION of Kubernetes, or the operator, knows every field."""
    kind = kind_of(document)
    if kind in CUSTOM:
        check_fields(document, {"apiVersion": TEXT, "kind": TEXT, "metadata": META, **CUSTOM[kind]}, kind)
        return
    try:
        kubernetes_validate.validate(document, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        raise Refused("%s in %s: %s: %s" % (kind, version, ".".join(map(str, error.path)), error.message)) from None
    except kubernetes_validate.SchemaNotFoundError:
        raise Refused("%s does not exist in %s" % (kind, version)) from None
