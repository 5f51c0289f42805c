"""The operations view: state, jobs, backups, keys and the audit log."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from benchmarks.service import Service
from tests.page.samples import add_samples
from tests.page.steps import open_page


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)


@pytest.fixture(scope="module")
def service_settings():
    return {"EXTRACT_FALLBACK_ADD": "true"}


def asked_with(service: Service, key: str) -> tuple[int, dict[str, Any]]:
    """The status and the answer of the service to a request with a key."""
    client = service.client(key)
    try:
        return client.call("GET", "/api/keys/me")
    finally:
        client.close()


def section(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name)


def test_the_state_has_the_figures_of_the_service(page, origin, api):
    open_page(page, origin, "/#/operations")
    state = section(page, "State")
    expect(state).to_contain_text("Ready")
    stats = api("GET", "/stats")
    expect(state.get_by_role("row", name="Memories")).to_contain_text(str(stats["total_memories"]))
    expect(state.get_by_role("row", name="Embedding model")).to_contain_text(stats["model"])


def test_a_backup_is_made_and_listed(page, origin, api):
    open_page(page, origin, "/#/operations")
    before = api("GET", "/backups")["count"]
    backups = section(page, "Backups")
    backups.get_by_role("button", name="Back up now").click()
    expect(backups.locator("tbody tr")).to_have_count(before + 1)
    made = api("GET", "/backups")["backups"]
    assert len(made) == before + 1
    expect(backups.locator("tbody tr").first).to_contain_text(made[0]["name"])


def test_jobs_are_listed_with_their_end(page, origin, api):
    job = api("POST", "/memory/extract", {"messages": "User: I moved to Lisbon.", "source": "chat"})
    open_page(page, origin, "/#/operations")
    row = section(page, "Jobs").locator("tbody tr").first
    expect(row).to_contain_text("extract")
    ended = api("GET", f"/jobs/{job['job_id']}")["status"]
    expect(row).to_contain_text(ended)


def test_the_audit_log_names_actions(page, origin, api):
    api("POST", "/backup")
    open_page(page, origin, "/#/operations")
    latest = api("GET", "/audit?limit=1")["entries"][0]
    expect(section(page, "Audit log").locator("tbody tr").first).to_contain_text(latest["action"])


def test_the_first_key_signs_in_and_others_are_made_rotated_and_revoked(page, origin, service):
    # The last test: from here on every request needs a key.
    open_page(page, origin, "/#/operations")
    keys = section(page, "API keys")
    keys.get_by_label("Name", exact=True).fill("owner")
    keys.get_by_role("button", name="Create the first admin key").click()
    admin = keys.locator(".secret").inner_text()
    keys.get_by_role("button", name="I have it").click()
    keys.get_by_label("Name", exact=True).fill("reader")
    keys.get_by_label("Sources").fill("notes, team/billing")
    keys.get_by_role("button", name="Create a key").click()
    reader = keys.locator(".secret").inner_text()
    assert asked_with(service, reader)[1]["prefixes"] == ["notes", "team/billing"]
    expect(keys.locator("tbody tr").filter(has_text="reader")).to_contain_text("notes, team/billing")
    keys.get_by_role("button", name="Rotate reader").click()
    page.get_by_role("textbox", name="Type reader").fill("reader")
    page.get_by_role("dialog").get_by_role("button", name="Rotate").click()
    expect(keys.locator(".secret")).not_to_have_text(reader)
    rotated = keys.locator(".secret").inner_text()
    assert asked_with(service, reader)[0] == 401
    assert asked_with(service, rotated)[0] == 200
    keys.get_by_role("button", name="Revoke reader").click()
    revoke = page.get_by_role("dialog").get_by_role("button", name="Revoke")
    expect(revoke).to_be_disabled()
    page.get_by_role("textbox", name="Type reader").fill("reader")
    revoke.click()
    expect(keys.locator("tbody tr")).to_have_count(1)
    assert asked_with(service, rotated)[0] == 401
    assert asked_with(service, admin)[0] == 200
    page.reload()
    expect(section(page, "API keys").locator("tbody tr")).to_have_count(1)
