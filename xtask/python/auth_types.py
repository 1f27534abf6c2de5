"""Writes the catalogue of connection types that provider packages on PyPI register.

Run by `cargo xtask auth-types`. Wheels are downloaded and read, and nothing in them is ever run: the provider's
information is a literal in its source, and what is not a literal counts as unknown.
"""

import ast
import configparser
import json
import os
import re
import subprocess
import sys
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PREFIX = "apache-airflow-providers-"
INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple/")
PYTHON = "3.12"

# What Airflow asks for every connection, unless its provider hides it.
STANDARD = {"host": "Host", "schema": "Schema", "login": "Login", "password": "Password", "port": "Port"}

# Members whose names sound like secrets are secrets, whatever their provider says of them; those that name a place or
# an attribute of a secret are not.
SECRET = re.compile(
    r"secret|passw|passphrase|passcode|token|credential|private_key|_key$|access_key|service_account|keyfile_dict|"
    r"key_content|kube_config$|connection_string|client_cert|certificate_data|sas|jwt|headers|external_id|^auth$|"
    r"prox(y|ies)$|args$|_parameters$|_settings$"
)
PLACE = re.compile(
    r"^public_|(_path|_file|_url|_uri|_endpoint|_expiration|_timeout|_seconds|_type|_method|_version|_name|_project_id|_role)$"
)


def main(cache, out):
    names = listed()
    cache.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(8) as pool:
        wheels = dict(zip(names, pool.map(lambda name: download(name, cache / name), names)))
    missing = [name for name in names if wheels[name] is None]
    print(f"{len(names)} packages; {len(missing)} have no wheel and are left out: {', '.join(missing)}")
    vouched = listed_by_airflow(download("apache-airflow", cache / "apache-airflow"))
    types, packages = {}, {}
    # Where two packages register one type, the one that Apache Airflow itself lists is believed.
    for name in sorted(names, key=lambda name: (name not in vouched, name)):
        if wheels[name] is None:
            continue
        with zipfile.ZipFile(wheels[name]) as wheel:
            registered = [entry for entry in connection_types(wheel) if entry["type"] not in types]
        for entry in registered:
            types[entry["type"]] = {"type": entry["type"], "name": entry["name"], "package": name, "fields": entry["fields"]}
        if registered:
            packages[name] = wheels[name].name.split("-")[1]
    if len(types) < 100:
        sys.exit(f"only {len(types)} connection types were found, which cannot be all of them")
    write(out, packages, types)
    print(f"{len(types)} connection types of {len(packages)} packages, in {out}")


def listed():
    """The names of all provider packages on the index."""
    with urllib.request.urlopen(INDEX, timeout=300) as answer:
        page = answer.read().decode()
    names = re.findall(rf'["/>]({PREFIX}[a-z0-9-]+)[/"<]', page)
    return sorted(set(names))


def download(name, folder):
    """The newest wheel of a package, or nothing where it has none."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input", "--only-binary", ":all:"]
    command += ["--python-version", PYTHON, "--dest", str(folder), name]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0 and "No matching distribution" not in done.stderr:
        sys.exit(f"{name} cannot be downloaded: {done.stderr}")
    wheels = sorted(folder.glob("*.whl"), key=lambda wheel: wheel.stat().st_mtime)
    if done.returncode == 0:
        newest = [w for w in wheels if normal(w.name.split("-")[0]) == name]
        for old in newest[:-1]:
            old.unlink()
        return newest[-1]
    return None


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def listed_by_airflow(wheel):
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return set(re.findall(rf"^Requires-Dist: ({PREFIX}[a-z0-9-]+)", archive.read(metadata).decode(), re.M))


def connection_types(wheel):
    """What a provider registers, by the entry point that Airflow asks."""
    files = set(wheel.namelist())
    points = next((name for name in files if name.endswith(".dist-info/entry_points.txt")), None)
    if points is None:
        return []
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.read_string(wheel.read(points).decode())
    found = []
    for value in parser["apache_airflow_provider"].values() if "apache_airflow_provider" in parser else []:
        module, _, function = value.partition(":")
        info = returned(source(wheel, files, module), function.strip() or "get_provider_info")
        for entry in info.get("connection-types") or []:
            if isinstance(entry, dict) and isinstance(entry.get("connection-type"), str):
                found.append(described(entry, hook(wheel, files, entry.get("hook-class-name"))))
        # The way of old providers: the hook itself says what it is for.
        for name in [] if info.get("connection-types") else info.get("hook-class-names") or []:
            attributes = hook(wheel, files, name)
            if isinstance(attributes.get("conn_type"), str):
                found.append(described({"connection-type": attributes["conn_type"]}, attributes))
    return sorted(found, key=lambda entry: entry["type"])


def source(wheel, files, module):
    """The source of a module in a wheel."""
    path = module.strip().removesuffix(".__init__").replace(".", "/")
    for name in (f"{path}.py", f"{path}/__init__.py"):
        if name in files:
            try:
                return ast.parse(wheel.read(name))
            except SyntaxError:
                break
    return ast.Module(body=[], type_ignores=[])


def returned(tree, function):
    """What a function returns, as far as it is written down."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            for statement in node.body:
                if isinstance(statement, ast.Return):
                    value = literal(statement.value)
                    return value if isinstance(value, dict) else {}
    return {}


def hook(wheel, files, name):
    """The plain attributes of a hook's class."""
    if not isinstance(name, str):
        return {}
    module, _, title = name.rpartition(".")
    for node in source(wheel, files, module).body:
        if isinstance(node, ast.ClassDef) and node.name == title:
            pairs = [(statement.targets[0], statement.value) for statement in node.body if isinstance(statement, ast.Assign)]
            pairs += [(s.target, s.value) for s in node.body if isinstance(s, ast.AnnAssign) and s.value is not None]
            return {target.id: literal(value) for target, value in pairs if isinstance(target, ast.Name)}
    return {}


def literal(node):
    """A value that is written down; what would have to be computed is unknown."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [literal(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {literal(key): literal(value) for key, value in zip(node.keys, node.values) if isinstance(key, ast.Constant)}
    return None


def described(entry, attributes):
    kind = entry["connection-type"]
    behaviour = entry.get("ui-field-behaviour") or {}
    hidden = set(behaviour.get("hidden-fields") or [])
    labels, examples = behaviour.get("relabeling") or {}, behaviour.get("placeholders") or {}
    name = entry.get("hook-name") or attributes.get("hook_name") or kind
    fields = [field(member, labels.get(member) or label, examples) for member, label in STANDARD.items() if member not in hidden]
    for member, known in (entry.get("conn-fields") or {}).items():
        member = member.removeprefix(f"extra__{kind}__")
        fields.append(in_extra(member, known, examples))
    return {"type": kind, "name": text(name), "fields": fields}


def field(member, label, examples):
    made = {"name": member, "label": text(label)}
    if member == "port":
        made["kind"] = "number"
    if member == "password":
        made["secret"] = True
    elif example(member, examples):
        made["example"] = example(member, examples)
    return made


def in_extra(member, known, examples):
    schema = known.get("schema") or {}
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    kind = "json" if {"object", "array"} & set(kinds) else "boolean" if "boolean" in kinds else "string"
    kind = "number" if {"integer", "number"} & set(kinds) else kind
    made = {"name": member, "label": text(known.get("label") or member), "extra": True}
    about = text(known.get("description") or schema.get("description") or "")
    if about:
        made["about"] = about
    if kind != "string":
        made["kind"] = kind
    if schema.get("format") == "password" or "object" in kinds or (kind == "string" and sounds_secret(member)):
        made["secret"] = True
    elif example(member, examples):
        made["example"] = example(member, examples)
    return made


def sounds_secret(member):
    return bool(SECRET.search(member.lower())) and not PLACE.search(member.lower())


def example(member, examples):
    value = examples.get(member)
    return text(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def text(value):
    """One line, and no longer than a form shows."""
    return " ".join(str(value).split())[:300]


def write(out, packages, types):
    """One line for each package, type and field, so that a difference can be read."""
    line = lambda value: json.dumps(value, ensure_ascii=False)
    lines = ["{", '  "generated by": "cargo xtask auth-types",', '  "packages": {']
    lines.append(",\n".join(f"    {line(name)}: {line(version)}" for name, version in sorted(packages.items())))
    lines += ["  },", '  "types": [']
    entries = []
    for kind in sorted(types):
        entry = types[kind]
        head = ", ".join(f"{line(key)}: {line(entry[key])}" for key in ("type", "name", "package"))
        fields = ",\n".join(f"      {line(one)}" for one in entry["fields"])
        entries.append(f'    {{ {head}, "fields": [\n{fields}\n    ] }}' if fields else f'    {{ {head}, "fields": [] }}')
    lines += [",\n".join(entries), "  ]", "}", ""]
    out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
