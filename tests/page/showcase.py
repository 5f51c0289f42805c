"""A store as a person's assistant has it after two months, for the pictures of the documentation."""

from __future__ import annotations

from tests.page.samples import Api

AGENT = "anna"

MEMORIES = (
    ("Biscuit, the user's beagle, turns five in May.", "notes/family", ["pets", "family"]),
    ("The user's sister Mira lives in Lisbon and teaches chemistry.", "notes/family", ["family"]),
    ("Ana is allergic to peanuts and carries an EpiPen.", "notes/family", ["family", "health"]),
    ("The user prefers window seats on long flights.", "notes/travel", ["travel"]),
    ("The hotel in Lisbon is booked from 4 to 11 July.", "notes/travel/lisbon", ["travel", "booking"]),
    ("The user takes guitar lessons with Tomás on Thursdays.", "notes/hobbies", ["music"]),
    ("The dentist moved the appointment to 19 June at half past nine.", "notes/health", ["health", "booking"]),
    ("The billing service moves to Postgres 17 in May.", "work/billing", ["database", "decision"]),
    ("Deployments are frozen between 20 December and 3 January.", "work/operations", ["decision"]),
    ("The staging database runs in Frankfurt.", "work/operations", ["database"]),
    ("Retries of the payment client stop after three attempts.", "work/billing", ["payments"]),
    ("Invoices are sent on the first working day of the month.", "work/billing", ["payments"]),
    ("The team writes design documents before larger changes.", "work/process", ["process"]),
    ("Priya owns the on-call rota until the end of June.", "work/operations", ["people"]),
)

SESSIONS = {
    "spring-plans": (
        ("2026-04-06T18:02:00Z", "user", "My sister Mira moved from Porto to Lisbon last week."),
        ("2026-04-06T18:02:20Z", "assistant", "How does she like Lisbon so far?"),
        ("2026-04-06T18:03:00Z", "user", "She loves it. She starts at her school in Alfama on Monday."),
        ("2026-04-06T18:04:00Z", "user", "I want to visit her in July. Biscuit stays with Ana then."),
        ("2026-04-06T18:04:30Z", "assistant", "July it is. Ana has looked after Biscuit before, in August."),
    ),
    "guitar": (
        ("2026-04-23T20:10:00Z", "user", "First guitar lesson with Tomás today. My fingers hurt."),
        ("2026-04-23T20:10:20Z", "assistant", "That passes after two weeks. Which chords did Tomás show you?"),
        ("2026-04-23T20:11:00Z", "user", "G, C and D. I should practise ten minutes every evening."),
        ("2026-04-23T20:12:00Z", "user", "Tomás says that Biscuit howls in tune."),
    ),
    "trip-to-lisbon": (
        ("2026-05-11T19:30:00Z", "user", "I booked the hotel in Lisbon, 4 to 11 July, close to Mira in Alfama."),
        ("2026-05-11T19:30:20Z", "assistant", "Shall I look for flights with a window seat?"),
        ("2026-05-11T19:31:00Z", "user", "Yes, but nothing that leaves Berlin before eight."),
        ("2026-05-11T19:31:30Z", "assistant", "There is one from Berlin to Lisbon at 9:40 with window seats left."),
        ("2026-05-11T19:32:00Z", "user", "Take that one. And remind Ana of the EpiPen before she flies to Porto."),
    ),
    "billing": (
        ("2026-05-14T09:02:00Z", "user", "Priya wants the billing service on Postgres 17 this month."),
        ("2026-05-14T09:02:30Z", "assistant", "The staging database in Frankfurt is still on Postgres 15."),
        ("2026-05-14T09:03:00Z", "user", "Then we upgrade Frankfurt first, and billing the week after."),
        ("2026-05-14T09:04:00Z", "user", "Priya says that the payment client must stop after three attempts."),
    ),
}

TRANSCRIPT = """User: I moved the dentist to 26 June, the flight to Lisbon is too close to the 19th.
Assistant: Noted. Anything else about the trip?
User: We decided to rent bikes in Lisbon instead of a car.
User: I'm allergic to cats, so no flat with a cat please."""


def add_showcase(api: Api) -> None:
    """Memories, conversations, blocks, preferences, a stated graph, a conflict and an extraction of one agent."""
    drafts = [{"text": text, "source": source, "tags": tags} for text, source, tags in MEMORIES]
    api("POST", "/memory/add-batch", {"memories": drafts}, namespace=AGENT)
    for label, value in (
        ("human", "Anna, 34, lives in Berlin. Speaks English, German and some Portuguese."),
        ("persona", "Short answers. Ask before anything is booked."),
    ):
        api("POST", "/memory-blocks", {"agent_name": AGENT, "label": label, "value": value})
    for session, turns in SESSIONS.items():
        messages = [{"role": role, "content": content, "user": "anna", "created_at": at} for at, role, content in turns]
        api("POST", "/messages/batch", {"agent_name": AGENT, "session_id": session, "messages": messages})
    for name, value in (("language", "English"), ("units", "metric"), ("seat", "window")):
        api("PUT", f"/preferences/{AGENT}/{name}", {"value": value})
    api("PATCH", "/memory/8", {"text": "The billing service moves to Postgres 17 in June."}, namespace=AGENT)
    transcript = {"messages": TRANSCRIPT, "source": "notes/learned", "dry_run": True}
    api("POST", "/memory/extract", transcript, namespace=AGENT)
    api("POST", "/backup")
