"""Metrics and errors in the operations guide and its examples exist in the service."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from souvenir.core import errors
from souvenir.core.errors import SouvenirError
from tests.api.conftest import Add

ROOT = Path(__file__).resolve().parent.parent.parent
GUIDE = ROOT / "docs" / "operations.md"
EXAMPLES = ROOT / "examples"

OF_THE_SCRAPE = {"up", "instance", "job"}
_NAME = re.compile(r"\b(?:souvenir|process)_[a-z_]+\b|\bup\b")


@pytest.fixture
def families(client: TestClient, add: Add) -> list[Metric]:
    """What a service shows that has done something of everything."""
    add("red")
    client.post("/search", json={"query": "red"})
    client.post("/backup")
    client.get("/memory/99")
    return list(text_string_to_metric_families(client.get("/metrics", headers={"Accept": "text/plain"}).text))


def series_of(families: list[Metric]) -> Mapping[str, set[str]]:
    """The name of every series, and its labels where it has samples."""
    found: dict[str, set[str]] = {}
    for family in families:
        found.setdefault(f"{family.name}_total" if family.type == "counter" else family.name, set())
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def rows_of(heading: str) -> list[list[str]]:
    """The cells of the first table with this first column."""
    _, _, rest = GUIDE.read_text(encoding="utf-8").partition(f"\n| {heading} |")
    lines = rest.split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def dashboard() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((EXAMPLES / "grafana" / "souvenir.json").read_text(encoding="utf-8"))
    return content


def alerts() -> list[dict[str, Any]]:
    content = yaml.safe_load((EXAMPLES / "alerts.yml").read_text(encoding="utf-8"))
    return [rule for group in content["groups"] for rule in group["rules"]]


def expressions() -> Iterator[str]:
    for panel in dashboard()["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in dashboard()["templating"]["list"]:
        yield variable.get("definition", "")
    yield from (rule["expr"] for rule in alerts())


@pytest.mark.sqlite_only(reason="the series include those of backups")
def test_the_table_of_metrics_holds_every_series_with_its_labels_and_no_other(families: list[Metric]):
    shown = {name.strip("`"): set(filter(None, labels.split(", "))) for name, labels, _ in rows_of("series")}
    series = series_of(families)
    ours = {
        f"{family.name}_total" if family.type == "counter" else f"{family.name}"
        for family in families
        # The client library also says since when it counts.
        if family.name.startswith("souvenir_") and not family.name.endswith("_created")
    }
    assert set(shown) == ours
    for name, labels in shown.items():
        samples = series.get(f"{name}_count", set()) | series[name]
        assert samples == labels or not samples, name


def test_the_table_of_errors_holds_every_code_with_its_status():
    shown = {code.strip("`"): int(status) for code, status, *_ in rows_of("code")}
    classes = [error for error in vars(errors).values() if isinstance(error, type) and issubclass(error, SouvenirError)]
    stated = {error.code: error.status for error in classes}
    assert len(stated) > 20
    missing = {code: status for code, status in stated.items() if shown.get(code) != status}
    assert missing == {}, "enter them under Errors in docs/operations.md"


@pytest.mark.sqlite_only(reason="the series include those of backups")
def test_examples_name_only_series_that_the_service_shows(families: list[Metric]):
    known = set(series_of(families)) | OF_THE_SCRAPE
    named = {name for expression in expressions() for name in _NAME.findall(expression)}
    assert len(named) > 20
    assert named - known == set()


@pytest.mark.sqlite_only(reason="the series include those of backups")
def test_examples_select_by_labels_that_the_series_have(families: list[Metric]):
    series = series_of(families)
    selected = 0
    for expression in expressions():
        for name, selector in re.findall(r"((?:souvenir|process)_[a-z_]+)\{([^}]*)\}", expression):
            labels = set(re.findall(r"(\w+)\s*(?:=~|!=|=)", selector)) - OF_THE_SCRAPE
            # A counter that never counted has no labels to compare with.
            assert not series[name] or labels <= series[name], expression
            selected += bool(series[name])
    assert selected > 10


def test_every_alert_is_documented_and_has_a_summary():
    guide = GUIDE.read_text(encoding="utf-8")
    assert len(alerts()) > 5
    for rule in alerts():
        assert f"`{rule['alert']}`" in guide
        assert rule["annotations"]["summary"].endswith(".")


def test_the_dashboard_is_one_that_grafana_takes():
    board = dashboard()
    assert board["uid"] == "souvenir"
    assert board["schemaVersion"] >= 36
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        if panel["type"] != "row":
            assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
    assert board["templating"]["list"][0]["type"] == "datasource"


def test_the_prometheus_configuration_has_a_key_and_the_alerts():
    config = yaml.safe_load((EXAMPLES / "prometheus.yml").read_text(encoding="utf-8"))
    [job] = config["scrape_configs"]
    assert job["authorization"]["type"] == "Bearer"
    assert all((EXAMPLES / name).exists() for name in config["rule_files"])
