"""Validates the resources for Kubernetes, and what they say about one another and about the server."""

import subprocess
import sys

import kubernetes_validate
import yaml

# The oldest release that is looked at, and the newest that the validator knows.
VERSIONS = ("1.27", ".".join(kubernetes_validate.latest_version().split(".")[:2]))


def resources(path):
    with open(path) as file:
        return [each for each in yaml.safe_load_all(file) if each]


def check(holds, what):
    if not holds:
        sys.exit(f"kubernetes: {what}")


def main(program, servers, monitor):
    found = resources(servers)
    for version in VERSIONS:
        for each in found:
            try:
                kubernetes_validate.validate(each, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                sys.exit(f"kubernetes: {each['kind']} for {version}: {error}")
    kinds = {each["kind"]: each for each in found}
    check(set(kinds) == {"Service", "StatefulSet", "PodDisruptionBudget"}, f"{servers} has {sorted(kinds)}")
    service, servers = kinds["Service"], kinds["StatefulSet"]["spec"]
    pod = servers["template"]
    labels = pod["metadata"]["labels"]
    for selector in (
        service["spec"]["selector"],
        servers["selector"]["matchLabels"],
        kinds["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
    ):
        check(selector.items() <= labels.items(), f"{selector} selects no server")
    check(service["spec"]["clusterIP"] == "None", "the service is not headless")
    check(servers["serviceName"] == service["metadata"]["name"], "the servers have no names")
    (container,) = pod["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    check(ports == {"memcached": 11211, "http": 9150}, f"the ports are {ports}")
    for port in service["spec"]["ports"]:
        check(ports[port["targetPort"]] == port["port"], f"{port} leads elsewhere")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        page = container[probe]["httpGet"]
        check(page["path"] in ("/readyz", "/healthz") and page["port"] == "http", f"{probe} asks {page}")
    # The server takes each of the variables.
    variables = {each["name"]: each["value"] for each in container["env"]}
    shown = subprocess.run([program, "config", "print"], env=variables, check=True, capture_output=True, text=True)
    for name in variables:
        check(f"variable {name}" in shown.stdout, f"{name} is no setting of the server")
    check(shown.stderr == "", shown.stderr)
    # The validator knows no resources of operators.
    (monitor,) = resources(monitor)
    check((monitor["apiVersion"], monitor["kind"]) == ("monitoring.coreos.com/v1", "ServiceMonitor"), "no ServiceMonitor")
    wanted = monitor["spec"]["selector"]["matchLabels"]
    check(wanted.items() <= service["metadata"]["labels"].items(), "the monitor selects no service")
    names = {port["name"] for port in service["spec"]["ports"]}
    check({each["port"] for each in monitor["spec"]["endpoints"]} == {"http"} <= names, "the monitor has no port")
    print(f"kubernetes: {len(found) + 1} resources are valid for {' and '.join(VERSIONS)}")


main(*sys.argv[1:])
