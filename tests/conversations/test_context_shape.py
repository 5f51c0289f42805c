"""The shape of a context: questions about the course of conversations, and no others, get an outline."""

from __future__ import annotations

import pytest

from souvenir.conversations.context_shape import ContextShape, CourseIntent, Form

ORDER = [
    "Can you list the order in which I brought up different aspects of my app, in order?",
    "Can you list in order how I brought up my research?",
    "Give me a timeline of the migration",
    "In which order did we visit the cities?",
    "What happened, in chronological order?",
]
SUMMARY = [
    "Can you give me a comprehensive summary of how my project has progressed?",
    "Please summarise what we decided about the kitchen.",
    "I need an overview of Ann's projects",
    "recap our talks about the garden, in chronological order",
]
OTHERS = [
    "What did I order from the bakery?",
    "What happened to the order I placed yesterday?",
    "Do I need to restart in order to update?",
    "do I have a minimum order?",
    "Who wrote the summary of the audit?",
    "How has compensation changed over time?",
]


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        *((one, CourseIntent.ORDER) for one in ORDER),
        *((one, CourseIntent.SUMMARY) for one in SUMMARY),
        *((one, None) for one in OTHERS),
    ],
)
def test_the_intent_is_read_from_the_question(question: str, intent: CourseIntent | None):
    form = Form.of(question, ContextShape.AUTO)
    assert form.intent is intent
    assert form.shape is (ContextShape.EXCERPTS if intent is None else ContextShape.OUTLINE)
    assert form.of_users is (intent is CourseIntent.ORDER)


def test_a_given_shape_takes_precedence():
    assert Form.of(ORDER[0], ContextShape.EXCERPTS) == Form(CourseIntent.ORDER, ContextShape.EXCERPTS, of_users=False)
    assert Form.of(OTHERS[0], ContextShape.OUTLINE) == Form(None, ContextShape.OUTLINE, of_users=False)


def test_an_order_of_what_the_assistant_said_needs_its_messages():
    form = Form.of("In which order did you suggest the three libraries?", ContextShape.AUTO)
    assert (form.intent, form.of_users) == (CourseIntent.ORDER, False)
