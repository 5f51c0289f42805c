"""The view of what the texts are about: concepts, topics and insights."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import expect

from tests.page.samples import Api, add_samples
from tests.page.steps import open_page

PATIENCE_S = 30
ABOUT_MIRA = (
    "Mira teaches chemistry in Lisbon.",
    "Mira and Ana hiked near Sintra in May.",
    "Ana met Mira in Porto before she moved to Lisbon.",
)


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)
    messages = [{"role": "user", "content": text} for text in ABOUT_MIRA]
    api("POST", "/messages/batch", {"agent_name": "assistant", "messages": messages})
    # Concepts are found in the background.
    deadline = time.monotonic() + PATIENCE_S
    while not is_read(api):
        assert time.monotonic() < deadline, "The concepts were not found in time"
        time.sleep(0.1)


def is_read(api: Api) -> bool:
    concepts = api("GET", "/agents/assistant/concepts")["concepts"]
    return any(each["name"] == "Mira" and each["mentions"] == len(ABOUT_MIRA) + 1 for each in concepts)


@pytest.fixture
def mira(api):
    return api("GET", "/agents/assistant/concept?name=Mira")


def test_a_concept_has_its_mentions_and_related_concepts(page, origin, api, mira):
    open_page(page, origin, "/#/knowledge?in=assistant")
    page.get_by_role("row").filter(has_text="Mira").first.get_by_role("link", name="Mira", exact=True).click()
    concept = page.get_by_role("region", name="Concept")
    expect(concept).to_contain_text(f"{mira['mentions']} mentions")
    for text in ABOUT_MIRA:
        expect(concept).to_contain_text(text)
    related = api("GET", f"/agents/assistant/concepts/{mira['id']}/related")["related"]
    assert related
    for each in related:
        expect(concept.get_by_role("row").filter(has_text=each["concept"]["name"]).first).to_be_visible()


def test_a_concept_is_found_by_its_name_or_said_to_be_unknown(page, origin, mira, watch):
    watch.expect("status of 404")
    open_page(page, origin, "/#/knowledge?in=assistant")
    page.get_by_label("Name of a concept").fill("Zanzibar")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Name of a concept").fill("mira")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("region", name="Concept")).to_be_visible()
    assert f"concept={mira['id']}" in page.url


def test_a_description_is_saved_and_undone(page, origin, api, mira):
    open_page(page, origin, f"/#/knowledge?in=assistant&concept={mira['id']}")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Description").fill("The sister of the user.")
    page.get_by_role("button", name="Save").click()
    concept = page.get_by_role("region", name="Concept")
    expect(concept).to_contain_text("The sister of the user.")
    assert api("GET", f"/agents/assistant/concepts/{mira['id']}")["description"] == "The sister of the user."
    page.get_by_role("button", name="Undo").click()
    expect(concept).not_to_contain_text("The sister of the user.")
    assert api("GET", f"/agents/assistant/concepts/{mira['id']}")["described_by"] != "caller"


def test_insights_are_those_of_the_service(page, origin, api):
    open_page(page, origin, "/#/knowledge?in=assistant&show=insights")
    insights = api("GET", "/agents/assistant/insights")["memory_insights"]
    assert insights
    for each in insights:
        expect(page.get_by_role("listitem").filter(has_text=each)).to_be_visible()


def test_a_topic_leads_to_its_messages(page, origin, api):
    open_page(page, origin, "/#/knowledge?in=assistant&show=topics")
    topics = api("GET", "/agents/assistant/topics")["topics"]
    assert topics
    page.get_by_role("main").get_by_role("row").nth(1).get_by_role("link").click()
    topic = page.get_by_role("region", name="Topic")
    expect(topic.get_by_role("heading", level=2).first).to_have_text(topics[0]["name"])
    expect(topic).to_contain_text("Mira")
