"""The operations view: state, jobs, backups, keys, events and the audit log."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from benchmarks.service import Service
from tests.page.requirements import HAS_NODE_MODULES, INSTALL_NODE_MODULES
from tests.page.samples import add_samples
from tests.page.steps import accessibility_violations, open_page, settle


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
    before = api("GET", "/backups")["count"]
    assert before == 0
    open_page(page, origin, "/#/operations?show=backups")
    backups = section(page, "Backups")
    expect(backups).to_contain_text("There is no backup yet")
    backups.get_by_role("button", name="Back up now").click()
    expect(backups.locator("tbody tr")).to_have_count(before + 1)
    made = api("GET", "/backups")["backups"]
    assert len(made) == before + 1
    expect(backups.locator("tbody tr").first).to_contain_text(made[0]["name"])
    expect(backups).to_contain_text("The newest backup was made just now")
    expect(backups).to_contain_text("Copies elsewhere: not configured")
    backups.get_by_role("button", name="Restore").click()
    restore = page.get_by_role("dialog", name="Restore a backup")
    expect(restore).to_contain_text(made[0]["name"])
    expect(restore).to_contain_text("API keys, counts of usage and the audit log stay")
    restore.get_by_role("textbox", name="Type restore").fill("restore")
    expect(restore.get_by_role("button", name="Restore")).to_be_enabled()


def test_jobs_follow_their_events_with_progress_and_end_and_are_filtered_in_the_address(page, origin, api):
    open_page(page, origin, "/#/operations?show=jobs")
    jobs = section(page, "Jobs")
    expect(jobs).to_contain_text("No job has run yet")
    job = api("POST", "/memory/extract", {"messages": "User: I moved to Lisbon.", "source": "chat"})
    row = jobs.locator("tbody tr").first
    expect(row).to_contain_text("extract")
    expect(row).to_contain_text("completed")
    expect(row.locator("time")).to_have_count(2)
    row.get_by_text("Result").click()
    ended = api("GET", f"/jobs/{job['job_id']}")
    expect(row.locator("pre")).to_contain_text(f'"stored_count": {ended["result"]["stored_count"]}')
    jobs.get_by_label("Status").select_option("failed")
    expect(jobs).to_contain_text("No such job")
    assert "status=failed" in page.url
    page.reload()
    expect(jobs.get_by_label("Status")).to_have_value("failed")
    jobs.get_by_label("Status").select_option("all")
    expect(row).to_contain_text("completed")


def test_the_audit_log_is_filtered_by_action_and_time_in_the_address(page, origin, api):
    api("POST", "/backup")
    open_page(page, origin, "/#/operations?show=audit")
    audit = section(page, "Audit log")
    latest = api("GET", "/audit?limit=1")["entries"][0]
    expect(audit.locator("tbody tr").first).to_contain_text(latest["action"])
    audit.get_by_label("Action").fill("backup.create")
    audit.get_by_label("Action").press("Enter")
    expect(audit.locator("tbody tr")).to_have_count(api("GET", "/audit?action=backup.create")["count"])
    today = latest["at"][:10]
    audit.get_by_label("Until").fill("2001-01-01")
    expect(audit).to_contain_text("Nothing was recorded")
    audit.get_by_label("Until").fill(today)
    audit.get_by_label("From", exact=True).fill(today)
    expect(audit.locator("tbody tr").first).to_contain_text("backup.create")
    assert f"since={today}" in page.url
    page.reload()
    expect(audit.get_by_label("Action")).to_have_value("backup.create")


def test_events_are_shown_with_the_webhooks_that_get_them(page, origin, api):
    open_page(page, origin, "/#/operations?show=events")
    api("POST", "/memory/add", {"text": "Seen as it happens.", "source": "live"})
    changes = section(page, "Changes")
    changes.get_by_role("button", name="1 new").click()
    expect(changes.get_by_role("listitem").first).to_contain_text("was added in live")
    changes.get_by_label("Show").select_option("job")
    assert "show=events" in page.url
    expect(section(page, "Webhooks")).to_contain_text("No webhook gets these events")


@pytest.mark.skipif(not HAS_NODE_MODULES, reason=INSTALL_NODE_MODULES)
def test_every_tab_has_an_address_and_meets_wcag(page, origin):
    open_page(page, origin, "/#/operations")
    main = page.get_by_role("main")
    tabs = {link.inner_text(): link.get_attribute("href") for link in main.locator(".tabs a").all()}
    assert list(tabs) == ["State", "Jobs", "Backups", "Model", "Keys", "Usage", "Audit", "Events"]
    faults = {}
    for name in tabs:
        link = main.get_by_role("link", name=name, exact=True)
        link.click()
        expect(link).to_have_attribute("aria-current", "page")
        settle(page)
        faults[name] = accessibility_violations(page)
    assert faults == {name: [] for name in tabs}


def test_the_first_key_signs_in_and_others_are_made_changed_rotated_and_revoked(page, origin, service, watch):
    # The last test: from here on every request needs a key.
    open_page(page, origin, "/#/operations?show=keys")
    keys = section(page, "API keys")
    expect(keys).to_contain_text("This page uses no key: admin")
    keys.get_by_label("Name", exact=True).fill("owner")
    keys.get_by_role("button", name="Create the first admin key").click()
    admin = keys.locator(".secret").inner_text()
    keys.get_by_role("button", name="I have it").click()
    keys.get_by_label("Name", exact=True).fill("reader")
    keys.get_by_role("button", name="Create a key").click()
    expect(keys.get_by_role("alert")).to_contain_text("Name a namespace, or the sources")
    keys.get_by_label("Sources").fill("notes, team/billing")
    keys.get_by_role("button", name="Create a key").click()
    reader = keys.locator(".secret").inner_text()
    page.get_by_role("main").get_by_role("link", name="State", exact=True).click()
    page.get_by_role("main").get_by_role("link", name="Keys", exact=True).click()
    expect(keys.locator(".secret")).to_have_text(reader)
    assert page.evaluate("dispatchEvent(new Event('beforeunload', { cancelable: true }))") is False
    assert reader not in page.evaluate("JSON.stringify(sessionStorage)")
    assert asked_with(service, reader)[1]["prefixes"] == ["notes", "team/billing"]
    expect(keys.locator("tbody tr").filter(has_text="reader")).to_contain_text("notes, team/billing")
    # The focus moves with the form, before anybody can type in one of its fields.
    opened = "async (button) => { button.click(); await Promise.resolve(); return document.activeElement.name; }"
    assert keys.get_by_role("button", name="Change reader").evaluate(opened) == "name"
    change = keys.get_by_role("form", name="Change reader")
    change.get_by_label("Sources").fill("notes")
    change.get_by_label("Role").select_option("read-write")
    change.get_by_text("Quotas").click()
    change.get_by_label("Requests per minute").fill("1000")
    change.get_by_role("button", name="Save").click()
    expect(keys.locator("tbody tr").filter(has_text="reader")).to_contain_text("requests per minute: 1,000")
    now = asked_with(service, reader)[1]
    assert (now["role"], now["prefixes"]) == ("read-write", ["notes"])
    page.get_by_role("button", name="Undo").click()
    expect(keys.locator("tbody tr").filter(has_text="reader")).to_contain_text("notes, team/billing")
    before = asked_with(service, reader)[1]
    assert (before["role"], before["prefixes"]) == ("read-only", ["notes", "team/billing"])
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
    expect(keys).to_contain_text("1 key was revoked: reader")
    expect(keys.locator(".secret")).to_have_count(0)
    assert asked_with(service, rotated)[0] == 401
    watch.expect("status of 409")
    keys.get_by_role("button", name="Revoke owner").click()
    dialog = page.get_by_role("dialog", name="Revoke the key")
    expect(dialog).to_contain_text("This page uses this key")
    dialog.get_by_role("textbox").fill("owner")
    dialog.get_by_role("button", name="Revoke").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Make another admin key first")
    dialog.get_by_role("button", name="Cancel").click()
    assert asked_with(service, admin)[0] == 200
    page.reload()
    expect(section(page, "API keys").locator("tbody tr")).to_have_count(1)
