"""The days by which promises are due."""

from __future__ import annotations

from datetime import date

import pytest

from souvenir.core.types.statements import StatementKind
from souvenir.knowledge.recognition.statements import statements_in

SUNDAY = date(2026, 3, 8)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("I'll pay the printer by the end of the month.", 31),
        ("I promised Ada the slides by 20th.", 20),
        ("Ich muss das Formular bis Ende des Monats schicken.", 31),
        ("Tengo que mandar el formulario antes de fin de mes.", 31),
        ("Ik moet het formulier voor het eind van maart sturen.", 31),
        ("The tailor wants my measures before the end of the month.", 31),
        ("Ada will wait till 20th for my answer, I promised her.", 20),
    ],
)
def test_a_promise_is_due_at_the_end_of_a_month_or_on_a_day_without_an_article(text: str, day: int) -> None:
    [one] = [one for one in statements_in(text, SUNDAY) if one.kind is StatementKind.PROMISE]
    assert one.due == date(2026, 3, day)
