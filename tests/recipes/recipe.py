"""Reads a connector recipe: the configuration in its product's own format, and what its comments say of sinkonce."""

import os
import re
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(os.path.dirname(os.path.dirname(HERE)), "conf", "connectors")
SETTING = re.compile(r"#\s+(SINKONCE_[A-Z_]+)=(\S*)$")
TIMEOUTS = re.compile(r"# Time-outs: connector (none|\d+ s), SINKONCE_WAIT (\d+) s, SINKONCE_TARGET_TIMEOUT (\d+) s$")


class Recipe:
    def __init__(self, path):
        self.name = os.path.basename(path)
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.comments = [line for line in self.text.splitlines() if line.startswith("#")]

    def settings(self):
        """{name: value} of the lines that belong to sinkonce, in their order."""
        found = [match.groups() for match in map(SETTING.match, self.comments) if match]
        if len(dict(found)) != len(found):
            raise ValueError("%s: a setting stands there twice" % self.name)
        return dict(found)

    def timeouts(self):
        """(connector or None, wait, target) in seconds, as the comment states them."""
        (connector, wait, target), = [match.groups() for match in map(TIMEOUTS.match, self.comments) if match]
        return None if connector == "none" else int(connector.split()[0]), int(wait), int(target)

    def documents(self):
        """The configuration as the product would read it; raises ValueError, or what the format's reader raises."""
        kind = self.name.rpartition(".")[2]
        if kind == "properties":
            return [properties(self.text)]
        if kind == "toml":
            return [tomllib.loads(self.text)]
        import yaml  # Debian's python3-yaml; only the YAML recipes need it
        return list(yaml.safe_load_all(self.text))


def properties(text):
    found = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        key, equals, value = line.partition("=")
        if not equals or key != key.strip() or key in found:
            raise ValueError("no line of a properties file, or a key that stands there twice: %s" % line)
        found[key] = value
    return found


def all_recipes():
    """Those that users get, and the one of the end-to-end tests."""
    paths = [os.path.join(FOLDER, name) for name in os.listdir(FOLDER) if not name.endswith(".md")]
    paths += [os.path.join(HERE, name) for name in os.listdir(HERE) if name.endswith(".properties")]
    return [Recipe(path) for path in sorted(paths, key=os.path.basename)]


def cases():
    """Rows of recipes.cases: (recipe, recorded request, whether it is the product's own, how, records)."""
    rows = []
    with open(os.path.join(HERE, "recipes.cases"), encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if words:
                name, request, how, *records = words
                rows.append((name, request.lstrip("~"), not request.startswith("~"), how, records))
    return rows
