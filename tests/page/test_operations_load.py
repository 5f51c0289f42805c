"""The operations view of a service under load: charts, usage, restoring a backup, and another embedding model."""

from __future__ import annotations

import json
import re

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.samples import add_samples
from tests.page.steps import open_page


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)


def section(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name)


def test_charts_show_the_figures_of_the_service_as_they_change(page, origin, api):
    open_page(page, origin, "/#/operations")
    load = section(page, "Load")
    expect(load.locator("figure")).to_have_count(6)
    expect(load.locator("canvas")).to_have_count(6)
    for _ in range(20):
        api("POST", "/search", {"query": "pets"})
    expect(load.get_by_role("row").filter(has_text="POST /search")).to_contain_text("20")
    latency = load.locator("figure").filter(has_text="Latency")
    expect(latency.locator("strong")).to_have_text(re.compile(r"search [\d.]+ ms"))
    size = load.locator("figure").filter(has_text="Database and its log").locator("strong")
    expect(size).to_have_text(re.compile(r"^[\d.]+ [KM]B$"))
    load.get_by_text("The newest values as a table").click()
    newest = load.get_by_role("table").first.locator("tbody tr").first
    expect(newest).to_contain_text(re.compile(r"\d\d:\d\d:\d\d.* ms.* MB"))


def test_a_running_job_shows_rate_and_time_left_survives_a_reload_and_is_cancelled(page, origin, api):
    texts = (f"Town {n} has {n * 7} inhabitants." for n in range(4_000))
    lines = "".join(json.dumps({"text": text, "source": "import"}) + "\n" for text in texts)
    headers = {"Content-Type": "application/x-ndjson"}
    accepted = httpx.post(f"{origin}/import?wait_s=0&no_backup=true", content=lines, headers=headers)
    assert accepted.status_code == 202
    open_page(page, origin, "/#/operations?show=jobs&status=running")
    row = section(page, "Jobs").locator("tbody tr")
    for _ in range(2):
        expect(row.get_by_role("progressbar")).to_be_visible()
        expect(row).to_contain_text(re.compile(r"[\d,]+ of 4,000 .* per second · about \d+ (s|min) left"))
        page.reload()
    row.get_by_role("button", name="Cancel").click()
    expect(section(page, "Jobs")).to_contain_text("No such job")
    assert api("GET", f"/jobs/{accepted.json()['job_id']}")["status"] == "cancelled"


def test_a_backup_is_restored_after_a_word_is_typed(page, origin, api):
    api("POST", "/backup")
    name = api("GET", "/backups")["backups"][0]["name"]
    before = api("GET", "/stats")["total_memories"]
    api("POST", "/memory/add", {"text": "Written after the backup.", "source": "later"})
    open_page(page, origin, "/#/operations?show=backups")
    backups = section(page, "Backups")
    backups.get_by_role("row").filter(has_text=name).get_by_role("button", name="Restore").click()
    dialog = page.get_by_role("dialog", name="Restore a backup")
    expect(dialog).to_contain_text(f"{before:,} memories")
    expect(dialog).to_contain_text("1 change of a memory since then")
    expect(dialog.get_by_role("button", name="Restore")).to_be_disabled()
    dialog.get_by_label("to confirm").fill("restore")
    dialog.get_by_role("button", name="Restore").click()
    expect(dialog).to_have_count(0)
    assert api("GET", "/stats")["total_memories"] == before
    expect(backups.get_by_role("row").filter(has_text="pre_restore")).to_have_count(1)


def test_usage_has_the_calls_of_the_service(page, origin, api):
    api("POST", "/search", {"query": "usage of today"})
    open_page(page, origin, "/#/operations?show=usage")
    usage = section(page, "Usage")
    expect(usage.locator(".bars div")).to_have_count(7)
    usage.get_by_label("Period").select_option("today")
    operations = usage.get_by_role("row").filter(has=page.locator("code", has_text=re.compile("^search$")))
    expect(operations).to_have_count(1)
    calls = int(operations.get_by_role("cell").last.inner_text().replace(",", ""))
    assert 0 < calls <= api("GET", "/usage?period=today")["operations"]["search"]["total"]


def test_embedding_again_is_a_job_and_says_if_the_model_is_unknown(page, origin, watch):
    watch.expect(r"status of 422 .*/maintenance/reembed")
    open_page(page, origin, "/#/operations?show=model")
    embedding = section(page, "Embedding model")
    expect(embedding).to_contain_text("In use: all-MiniLM-L6-v2")
    embedding.get_by_label("Model").fill("no-such-model")
    embedding.get_by_role("button", name="Embed all texts again").click()
    dialog = page.get_by_role("dialog", name="Embed all texts again")
    dialog.get_by_label("to confirm").fill("embed")
    dialog.get_by_role("button", name="Embed").click()
    expect(page.get_by_role("main").locator(".error").or_(dialog.get_by_role("alert")).first).to_contain_text(
        "no-such-model"
    )
