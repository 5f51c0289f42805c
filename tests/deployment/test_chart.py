"""deploy/helm/souvenir rendered by Helm itself, and its manifests checked by Kubernetes' own schemas."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deployment.requirements import INSTALL_HELM

ROOT = Path(__file__).resolve().parent.parent.parent
CHART = ROOT / "deploy" / "helm" / "souvenir"
KUBERNETES = ("1.29", "1.37")
"""The oldest and the newest version whose schemas are checked."""

Manifest = dict[str, Any]
Rendered = dict[str, list[Manifest]]

URL = "postgresql://souvenir:secret@db.example/souvenir?sslmode=verify-full&sslrootcert=system"
KEY = "0123456789abcdef0123456789abcdef"
IMAGE = {"repository": "registry.example/souvenir"}
MINIMAL: Manifest = {"image": IMAGE, "databaseUrl": URL, "apiKey": KEY}
EXISTING: Manifest = {"image": IMAGE, "existingSecret": "souvenir-database"}
FULL: Manifest = {
    **EXISTING,
    "image": {**IMAGE, "tag": "1.2.3", "pullPolicy": "Always"},
    "imagePullSecrets": ["registry"],
    "databaseFiles": {"configMap": "database-ca"},
    "settings": {"INDEX_MEMORY_MB": "1024", "ALLOWED_HOSTS": "souvenir.example"},
    "settingsSecrets": ["extraction"],
    "service": {"port": 80, "annotations": {"a.example/b": "c"}},
    "ingress": {
        "enabled": True,
        "className": "haproxy",
        "host": "souvenir.example",
        "tlsSecret": "souvenir-tls",
        "annotations": {"haproxy-ingress.github.io/balance-algorithm": "hdr(X-Souvenir-Shard)"},
    },
    "autoscaling": {"enabled": True, "maxReplicas": 20},
    "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {}}]},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "memory", "operator": "Exists", "effect": "NoSchedule"}],
}


def test_the_chart_has_the_version_of_the_service():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert chart["appVersion"] == project["version"]


@pytest.fixture(scope="module")
def helm() -> Any:
    return pytest.importorskip("helm_python", reason=INSTALL_HELM)


@pytest.fixture(scope="module")
def kubernetes() -> Any:
    return pytest.importorskip("kubernetes_validate", reason=INSTALL_HELM)


@pytest.fixture(scope="module")
def chart(helm: Any) -> Iterator[Any]:
    with helm.Chart.load(CHART) as chart:
        yield chart


def render(chart: Any, values: Manifest) -> Rendered:
    """Return the manifests of a release by kind."""
    rendered: Rendered = {}
    for text in chart.render(values, name="memory", namespace="agents").values():
        for manifest in yaml.safe_load_all(text):
            if manifest:
                rendered.setdefault(manifest["kind"], []).append(manifest)
    return rendered


def pod_of(rendered: Rendered) -> Manifest:
    pod: Manifest = rendered["Deployment"][0]["spec"]["template"]
    return pod


@pytest.mark.parametrize("values", [MINIMAL, EXISTING, FULL], ids=["minimal", "existing", "full"])
@pytest.mark.parametrize("version", KUBERNETES)
def test_every_manifest_fits_the_schema_of_its_kind(chart: Any, kubernetes: Any, values: Manifest, version: str):
    for manifests in render(chart, values).values():
        for manifest in manifests:
            kubernetes.validate(manifest, version, strict=True)


def test_only_what_is_asked_for_is_made(chart: Any):
    always = {"ConfigMap", "Deployment", "Pod", "PodDisruptionBudget", "Service", "ServiceAccount"}
    assert render(chart, MINIMAL).keys() == always | {"Secret"}
    assert render(chart, EXISTING).keys() == always
    assert render(chart, FULL).keys() == always | {"HorizontalPodAutoscaler", "Ingress", "NetworkPolicy"}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"databaseUrl": URL, "apiKey": KEY}, "/image/repository"),
        ({"image": IMAGE}, "/databaseUrl"),
        ({**MINIMAL, "apiKey": "short"}, "/apiKey"),
        ({**MINIMAL, "databaseUrl": "mysql://db"}, "/databaseUrl"),
        ({**MINIMAL, "existingSecret": "souvenir-database"}, "maxLength"),
        ({**EXISTING, "replicaCount": 3}, "replicaCount"),
        ({**EXISTING, "settings": {"DATABASE_URL": URL}}, "propertyName 'DATABASE_URL'"),
        ({**EXISTING, "settings": {"INDEX_MEMORY_MB": 512}}, "/settings/INDEX_MEMORY_MB"),
        ({**EXISTING, "networkPolicy": {"enabled": True}}, "/networkPolicy/from"),
        ({**EXISTING, "databaseFiles": {"secret": "a", "configMap": "b"}}, "/databaseFiles"),
    ],
)
def test_values_that_cannot_work_are_refused(helm: Any, chart: Any, values: Manifest, words: str):
    with pytest.raises(helm.HelmValuesError, match=words):
        render(chart, values)


def test_secrets_are_in_the_secret_alone(chart: Any):
    rendered = render(chart, MINIMAL)
    [secret] = rendered.pop("Secret")
    assert secret["stringData"] == {"DATABASE_URL": URL, "API_KEY": KEY}
    text = yaml.safe_dump(rendered)
    assert URL not in text
    assert KEY not in text


@pytest.mark.parametrize(("values", "secret"), [(MINIMAL, "memory-souvenir"), (EXISTING, "souvenir-database")])
def test_the_service_reads_its_secrets_from_the_named_secret(chart: Any, values: Manifest, secret: str):
    [container] = pod_of(render(chart, values))["spec"]["containers"]
    assert {
        variable["name"]: (variable["valueFrom"]["secretKeyRef"]["name"], variable["valueFrom"]["secretKeyRef"]["key"])
        for variable in container["env"]
        if "valueFrom" in variable
    } == {"DATABASE_URL": (secret, "DATABASE_URL"), "API_KEY": (secret, "API_KEY")}


def test_pods_run_as_the_user_of_the_image_and_write_to_their_volumes_only(chart: Any):
    rendered = render(chart, FULL)
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    for pod in (pod_of(rendered)["spec"], rendered["Pod"][0]["spec"]):
        security = pod["securityContext"]
        assert f"\nUSER {security['runAsUser']}:{security['runAsGroup']}\n" in dockerfile
        assert security["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        [container] = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_changed_settings_and_secrets_restart_the_pods(chart: Any):
    def checksums(values: Manifest) -> Manifest:
        annotations: Manifest = pod_of(render(chart, values))["metadata"]["annotations"]
        return annotations

    before = checksums(MINIMAL)
    assert checksums({**MINIMAL, "replicas": 5}) == before
    settings = checksums({**MINIMAL, "settings": {"LOG_LEVEL": "DEBUG"}})
    assert [name for name in before if settings[name] != before[name]] == ["checksum/settings"]
    secret = checksums({**MINIMAL, "apiKey": KEY[::-1]})
    assert [name for name in before if secret[name] != before[name]] == ["checksum/secret"]


def test_service_budget_and_policy_select_the_pods_of_the_deployment_alone(chart: Any):
    rendered = render(chart, FULL)
    labels = pod_of(rendered)["metadata"]["labels"]
    of_test = rendered["Pod"][0]["metadata"]["labels"]
    selectors = [
        rendered["Deployment"][0]["spec"]["selector"]["matchLabels"],
        rendered["Service"][0]["spec"]["selector"],
        rendered["PodDisruptionBudget"][0]["spec"]["selector"]["matchLabels"],
        rendered["NetworkPolicy"][0]["spec"]["podSelector"]["matchLabels"],
    ]
    for selector in selectors:
        assert selector.items() <= labels.items()
        assert not selector.items() <= of_test.items()


def test_the_autoscaler_alone_sets_the_number_of_replicas(chart: Any):
    assert render(chart, MINIMAL)["Deployment"][0]["spec"]["replicas"] == 3
    rendered = render(chart, FULL)
    assert "replicas" not in rendered["Deployment"][0]["spec"]
    [autoscaler] = rendered["HorizontalPodAutoscaler"]
    assert autoscaler["spec"]["scaleTargetRef"]["name"] == rendered["Deployment"][0]["metadata"]["name"]
    assert (autoscaler["spec"]["minReplicas"], autoscaler["spec"]["maxReplicas"]) == (3, 20)


def test_probes_ask_the_health_routes_by_a_name_that_is_always_answered(chart: Any):
    [container] = pod_of(render(chart, FULL))["spec"]["containers"]
    probes = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert [probe["path"] for probe in probes.values()] == ["/health", "/health", "/health/ready"]
    assert {probe["port"] for probe in probes.values()} == {"http"}
    assert all(probe["httpHeaders"] == [{"name": "Host", "value": "localhost"}] for probe in probes.values())


def test_helm_lint_finds_no_error(helm: Any):
    assert helm.lint(CHART, FULL)["errors"] == []
