"""The view of what the texts are about: concepts, topics and insights."""

from __future__ import annotations

import itertools
import math
import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.samples import Api, add_samples
from tests.page.steps import open_page, settle

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
    open_page(page, origin, "/#/knowledge?in=assistant&show=concepts")
    page.get_by_role("row").filter(has_text="Mira").first.get_by_role("link", name="Mira", exact=True).click()
    concept = page.get_by_role("region", name="Concept")
    expect(concept).to_contain_text(f"{mira['mentions']} mentions")
    for text in ABOUT_MIRA:
        expect(concept).to_contain_text(text)
    expect(concept.get_by_role("mark").filter(has_text="Mira")).to_have_count(mira["mentions"])
    related = api("GET", f"/agents/assistant/concepts/{mira['id']}/related")["related"]
    assert related
    for each in related:
        expect(concept.get_by_role("row").filter(has_text=each["concept"]["name"]).first).to_be_visible()


def test_a_concept_is_found_by_its_name_or_said_to_be_unknown(page, origin, mira, watch):
    watch.expect("status of 404")
    open_page(page, origin, "/#/knowledge?in=assistant&show=concepts")
    page.get_by_label("Name of a concept").fill("Zanzibar")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Name of a concept").fill("mira")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("region", name="Concept")).to_be_visible()
    assert f"concept={mira['id']}" in page.url


def test_a_person_without_a_description_is_shown_with_the_role(page, origin, api):
    api(
        "POST",
        "/messages/batch",
        {"agent_name": "zoo", "messages": [{"role": "user", "content": "My boss Ola phoned."}]},
    )
    deadline = time.monotonic() + PATIENCE_S
    while not (found := api("GET", "/agents/zoo/concepts")["concepts"]):
        assert time.monotonic() < deadline, "The concept was not found in time"
        time.sleep(0.1)
    assert [(each["name"], each["description"]) for each in found] == [("Ola", None)]
    open_page(page, origin, "/#/knowledge?in=zoo&show=concepts")
    expect(page.get_by_role("row").filter(has_text="Ola")).to_contain_text("your boss")
    page.get_by_role("link", name="Ola", exact=True).first.click()
    expect(page.get_by_role("region", name="Concept")).to_contain_text("person, your boss")


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


def test_the_overview_tells_what_is_worth_reading(page, origin, api):
    due = datetime.now(UTC) + timedelta(days=3)
    promise = f"I'll send Bruno the drawing by {due:%-d %B %Y}."
    api("POST", "/messages", {"agent_name": "assistant", "role": "user", "content": promise})
    deadline = time.monotonic() + PATIENCE_S
    while api("GET", "/agents/assistant/summary")["statistics"]["waiting"]:
        assert time.monotonic() < deadline, "The promise was not read in time"
        time.sleep(0.1)
    open_page(page, origin, "/#/knowledge?in=assistant")
    summary = api("GET", "/agents/assistant/summary")
    assert summary["insights"]
    for each in summary["insights"]:
        sentence = page.get_by_role("region", name="To act on").get_by_role("listitem").filter(has_text=each["text"])
        expect(sentence.get_by_role("link")).to_have_count(len(each["sources"]))
    people = page.get_by_role("region", name="People and things").get_by_role("listitem")
    expect(people).to_have_count(len(summary["top_concepts"]))
    topics = page.get_by_role("region", name="Topics").get_by_role("listitem")
    expect(topics).to_have_count(api("GET", "/agents/assistant/topics?limit=10")["total"])
    page.get_by_role("listitem").filter(has_text=promise).get_by_role("link", name="Source 1").click()
    expect(page.get_by_text(promise).first).to_be_visible()
    assert "show=conversations" in page.url


def test_a_topic_leads_to_its_messages(page, origin, api):
    open_page(page, origin, "/#/knowledge?in=assistant&show=topics")
    topics = api("GET", "/agents/assistant/topics")["topics"]
    assert topics
    page.get_by_role("main").get_by_role("row").nth(1).get_by_role("link").click()
    topic = page.get_by_role("region", name="Topic")
    expect(topic.get_by_role("heading", level=2).first).to_have_text(topics[0]["name"])
    expect(topic).to_contain_text("Mira")


def drawing(page: Page) -> Locator:
    return page.get_by_role("img")


def drawn(page: Page) -> set[str]:
    """What the table below the drawing names."""
    return set(page.get_by_role("main").locator("tbody a").all_inner_texts())


def test_the_graph_draws_the_relations_that_its_table_lists(page, origin, api, mira):
    open_page(page, origin, "/#/knowledge?in=assistant&show=graph")
    expect(drawing(page).locator("canvas").first).to_be_visible()
    expect(drawing(page)).to_have_accessible_name(
        re.compile(r"\d+ concepts, \d+ relations; the tables below list them")
    )
    related = api("GET", f"/agents/assistant/concepts/{mira['id']}/related?depth=1&limit=8")["related"]
    assert related
    assert {each["concept"]["name"] for each in related} < drawn(page)


def test_a_kind_is_hidden_and_shown_again(page, origin, api):
    open_page(page, origin, "/#/knowledge?in=assistant&show=graph")
    kinds = {each["name"]: each["kind"] for each in api("GET", "/agents/assistant/concepts")["concepts"]}
    phrases = {name for name, kind in kinds.items() if kind == "phrase"} & drawn(page)
    assert phrases
    page.get_by_role("checkbox", name="phrase").uncheck()
    assert not phrases & drawn(page)
    page.get_by_role("checkbox", name="phrase").check()
    assert phrases <= drawn(page)


def test_concepts_of_another_time_are_hidden(page, origin):
    open_page(page, origin, "/#/knowledge?in=assistant&show=graph")
    assert drawn(page)
    page.get_by_label("Mentioned from").fill("2126-01-01")
    expect(drawing(page)).to_have_accessible_name(re.compile("^0 concepts"))
    page.get_by_label("Mentioned from").fill("")
    expect(drawing(page)).not_to_have_accessible_name(re.compile("^0 concepts"))


def test_a_found_concept_is_selected_with_its_neighbours_and_a_path_to_another(page, origin, api):
    school = api("GET", "/agents/assistant/concept?name=school")
    chemistry = api("GET", "/agents/assistant/concept?name=chemistry")
    open_page(page, origin, f"/#/knowledge?in=assistant&show=graph&around={school['id']}")
    page.get_by_label("Find a concept").fill("chemistry")
    page.get_by_role("button", name="Find").first.click()
    selected = page.get_by_role("region", name="Selected")
    expect(selected).to_contain_text("chemistry")
    assert {"Mira", "Lisbon"} <= drawn(page)
    selected.get_by_label("Path from chemistry to").fill("Sintra")
    selected.get_by_role("button", name="Find").click()
    expect(selected.get_by_role("status")).to_have_text(re.compile("^Path: chemistry – .*Sintra$"))
    related = api("GET", f"/agents/assistant/concepts/{chemistry['id']}/related?depth=5&limit=200")["related"]
    path = next(each["path"] for each in related if each["concept"]["name"] == "Sintra")
    expect(selected.get_by_role("status")).to_have_text("Path: " + " – ".join(["chemistry", *path, "Sintra"]))
    expect(selected.get_by_role("status").get_by_role("link")).to_have_count(len(path) + 2)
    page.reload()
    settle(page)
    expect(selected.get_by_role("status")).to_have_text("Path: " + " – ".join(["chemistry", *path, "Sintra"]))


def test_a_node_is_selected_by_a_click(page, origin, mira):
    open_page(page, origin, f"/#/knowledge?in=assistant&show=graph&around={mira['id']}")
    page.get_by_role("checkbox", name="phrase").uncheck()
    expect(drawing(page).locator("canvas").first).to_be_visible()
    box = drawing(page).bounding_box()
    assert box
    selected = page.get_by_role("region", name="Selected")
    # Where a node is, the layout decides: a raster of clicks, from the middle outwards, meets one.
    width, height = box["width"], box["height"]
    raster = itertools.product(range(24, int(width), 16), range(24, int(height), 16))
    for x, y in sorted(raster, key=lambda place: math.dist(place, (width / 2, height / 2))):
        page.mouse.click(box["x"] + x, box["y"] + y)
        if selected.count():
            break
    expect(selected).to_be_visible()
    assert "node=" in page.url


def test_what_the_drawing_offers_works_without_a_mouse(page, origin, api, mira):
    open_page(page, origin, f"/#/knowledge?in=assistant&show=graph&around={mira['id']}&until=2099-01-01")
    page.get_by_text("Concepts in the drawing").press("Enter")
    page.get_by_role("button", name="Show neighbours of chemistry").press("Enter")
    selected = page.get_by_role("region", name="Selected")
    expect(selected).to_contain_text("chemistry")
    expect(selected.get_by_role("button", name="Neighbours are shown")).to_be_disabled()
    page.get_by_role("row").filter(has_text="Lisbon").first.get_by_role("link", name="Lisbon").press("Enter")
    expect(selected.get_by_role("heading")).to_have_text("Lisbon")
    for name in ("Larger", "Smaller", "Fit"):
        page.get_by_role("button", name=name).press("Enter")
    page.get_by_label("Mentioned from").fill("2026-01-01")
    assert "since=2026-01-01" in page.url
    assert "until=2099-01-01" in page.url


def test_a_concept_joins_another_by_its_name_and_parts_again(page, origin, api, mira):
    ana = api("GET", "/agents/assistant/concept?name=Ana")
    assert ana["id"] != mira["id"]
    open_page(page, origin, f"/#/knowledge?in=assistant&concept={mira['id']}")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Other names").fill("Ana")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("region", name="Concept")).to_contain_text("also Ana")
    assert api("GET", "/agents/assistant/concept?name=Ana")["id"] == mira["id"]
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("region", name="Concept")).not_to_contain_text("also Ana")
    assert api("GET", "/agents/assistant/concept?name=Ana")["id"] == ana["id"]


def test_a_concept_is_merged_with_undo_and_another_is_removed_for_good(page, origin, api, mira, watch):
    watch.expect("status of 404")
    porto = api("GET", "/agents/assistant/concept?name=Porto")
    concept = page.get_by_role("region", name="Concept")
    open_page(page, origin, f"/#/knowledge?in=assistant&concept={mira['id']}")
    page.get_by_role("button", name="Merge another").click()
    page.get_by_label("Concept that is the same as Mira").fill("Mira")
    page.get_by_role("button", name="Merge", exact=True).click()
    expect(concept.get_by_role("alert")).to_contain_text("is this concept already")
    page.get_by_label("Concept that is the same as Mira").fill("porto")
    page.get_by_role("button", name="Merge", exact=True).click()
    expect(concept).to_contain_text("also Porto")
    assert api("GET", "/agents/assistant/concept?name=Porto")["id"] == mira["id"]
    page.get_by_role("button", name="Undo").click()
    expect(concept).not_to_contain_text("also Porto")
    assert api("GET", "/agents/assistant/concept?name=Porto")["id"] == porto["id"]
    hiking = api("GET", "/agents/assistant/concept?name=Sintra")
    page.goto(f"{origin}/#/knowledge?in=assistant&concept={hiking['id']}")
    page.get_by_role("button", name="Remove …").click()
    page.get_by_label("Type Sintra to confirm").fill("Sintra")
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("The concept Sintra is removed.")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="Mira").first).to_be_visible()
    assert "Sintra" not in {each["name"] for each in api("GET", "/agents/assistant/concepts")["concepts"]}


def test_two_concepts_of_one_name_are_merged_from_either_side(page, origin, api, watch):
    watch.expect("status of 404")
    texts = ("Tomás is my colleague.", "Mira and Tomás hiked.", "I love tomás", "We love tomás")
    messages = [{"role": "user", "content": text} for text in texts]
    api("POST", "/messages/batch", {"agent_name": "namesakes", "messages": messages})

    def namesakes() -> dict[str, Any]:
        found = api("GET", "/agents/namesakes/concepts")["concepts"]
        return {each["kind"]: each for each in found if each["name"].lower() == "tomás"}

    deadline = time.monotonic() + PATIENCE_S
    while len(namesakes()) < 2 or sum(each["mentions"] for each in namesakes().values()) < len(texts):
        assert time.monotonic() < deadline, namesakes()
        time.sleep(0.1)
    found = namesakes()
    asked = api("GET", "/agents/namesakes/concept?name=Tom%C3%A1s")["id"]
    ours, theirs = sorted(found.values(), key=lambda each: each["id"] != asked)
    open_page(page, origin, f"/#/knowledge?in=namesakes&concept={ours['id']}")
    concept = page.get_by_role("region", name="Concept")
    page.get_by_role("button", name="Merge another").click()
    field = page.get_by_label("Concept that is the same as")
    field.focus()
    option = page.locator(f'datalist option[value="{theirs["name"]}"]')
    expect(option).to_have_attribute("label", re.compile(theirs["kind"]))
    field.fill(theirs["name"])
    page.get_by_role("button", name="Merge", exact=True).click()
    expect(concept).to_contain_text(f"{ours['mentions'] + theirs['mentions']} mentions")
    page.get_by_role("button", name="Undo").click()
    expect(concept).to_contain_text(re.compile(rf"\b{ours['mentions']} mentions?\b"))


def test_entities_of_mcp_are_drawn_searched_and_opened(page, origin, api):
    graph = {
        "entities": [
            {"name": "Ann_Lee", "entity_type": "person", "observations": ["Speaks Basque", "<b>Works</b> early"]},
            {"name": "Heron", "entity_type": "company", "observations": ["Builds boats"]},
        ],
        "relations": [{"from_entity": "Ann_Lee", "to_entity": "Heron", "relation_type": "works_at"}],
    }
    api("POST", "/knowledge-graph", graph)
    open_page(page, origin, "/#/knowledge")
    page.get_by_role("link", name="Entities that clients of MCP stored").click()
    settle(page)
    expect(drawing(page)).to_have_accessible_name("2 entities, 1 relation; the tables below list them")
    expect(page.get_by_role("row", name="Ann_Lee works at Heron")).to_be_visible()
    page.get_by_role("link", name="Ann_Lee").first.click()
    selected = page.get_by_role("region", name="Selected")
    expect(selected).to_contain_text("Speaks Basque")
    expect(selected).to_contain_text("<b>Works</b> early")
    page.get_by_label("Search entities").fill("who builds boats")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_role("row").filter(has_text="company").first).to_contain_text("Heron")
    expect(page.get_by_role("row", name="Ann_Lee")).to_have_count(0)
    page.get_by_role("link", name="Heron").first.click()
    selected.get_by_role("button", name="Show neighbours").click()
    expect(page.get_by_role("row", name="Ann_Lee works at Heron")).to_be_visible()
    expect(drawing(page)).to_have_accessible_name("2 entities, 1 relation; the tables below list them")
    page.reload()
    expect(page.get_by_role("row", name="Ann_Lee works at Heron")).to_be_visible()


def test_without_entities_the_command_that_connects_a_client_is_copied(page, origin):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_page(page, origin, "/#/knowledge?in=assistant&show=entities")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_text("Copied")).to_be_visible()
    command = f"claude mcp add --transport http souvenir {origin}/mcp/assistant"
    assert page.evaluate("navigator.clipboard.readText()") == command
