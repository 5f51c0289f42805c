"""The words by which an appointment is recognised: "dinner with Bram tonight", "Zahnarzttermin morgen".

English, German, Spanish and Dutch. Each pattern is searched in one clause without quoted speech, in any case.
"""

from __future__ import annotations

import re

from souvenir.knowledge.recognition import necessary_words as necessary
from souvenir.knowledge.recognition.word_patterns import with_one_of

EVENT = with_one_of(
    necessary.EVENT,
    r"\b(?:appointments?|dentist|doctor|gp|physio|vet|hairdresser|haircut|meeting|interview|exam|resit|viva|dinner|lunch|brunch"
    r"|concert|gig|rehearsal|audition|recital|premiere|flight|wedding|funeral|party|birthday|surgery|operation|scan|mri"
    r"|biopsy|check-?up|viewing|inspection|hearing|presentation|webinar|workshop|conference|tournament|graduation"
    r"|ceremony|date with|call with|session with|match against|driving test)\b",
    r"\b(?:termin|zahnarzt|arzt|besprechung|prüfung|klausur|hochzeit|beerdigung|konzert|probe|vorstellungsgespräch"
    r"|elternabend|treffen|verabredung|abendessen|mittagessen|geburtstag|flug|taufe|besichtigung)\b|\w(?:termin|prüfung|besprechung|probe)\b",
    r"\b(?:cita|dentista|médico|reunión|entrevista|examen|cena|comida con|boda|concierto|vuelo|ensayo|funeral"
    r"|cumpleaños|operación)\b",
    r"\b(?:afspraak|tandarts|huisarts|vergadering|sollicitatie(?:gesprek)?|tentamen|etentje|bruiloft|begrafenis"
    r"|optreden|repetitie|vlucht|verjaardag|operatie|bezichtiging)\b",
    r"\b(?:i|we)(?:['’](?:m|re)| am| are)? (?:(?:fly|flying|travell?ing|leav(?:e|ing) for"
    r"|going to the (?:cinema|movies|theat(?:re|er)|opera|zoo|beach))\b"
    r"|(?:see|seeing|meet|meeting|visit|visiting) (?:(?:my|our) \w|(?-i:[A-ZÀ-Ý])))",
    r"\b(?:fliegen?|verreisen?|vuelo|volamos|viajo|viajamos|quedado con|quedo con|vlieg|vliegen)\b",
    parts=necessary.PARTS_OF_EVENT,
)
"""An event that people have on a day."""

TOOK_PLACE = re.compile(
    r"\b(?:had|were|felt|came|told|said|gave|made|ate|saw|met|took|flew|drove|\w{2,}(?<!schedul)(?<!book)(?<!plann)"
    r"(?<!invit)(?<!arrang)ed|hatten?|gab(?:en)?|ge\w{3,}(?:t|en)|tuv\w+|fui|fuimos|\w{2,}[éó]|hadden)\b",
    re.IGNORECASE,
)
"""Past tenses: a weekday after them is a past one."""

TONIGHT = frozenset(("tonight", "heute abend", "esta noche", "vanavond"))
"""Words for the day on which it is said that name a time of it that is ahead."""

NEXT_MATTER = re.compile(r",? (?:and|und|y|en|&) |[,;] ", re.IGNORECASE)
"""Separators of two matters in a sentence, each with its own day."""

MOVED_TO_DAY = re.compile(
    r"\b(?:to|until|till|auf|naar|tot|al?|para el) (?:(?:this|next|coming|den|kommenden|el|próximo|komende) )?$",
    re.IGNORECASE,
)
"""The words before the new day of what was moved, which need not be numbered: "moved to Sunday"."""

FROM_A_DAY = re.compile(r"\b(?:from|vo[mn]|van|del?)\b", re.IGNORECASE)
"""A word before an old day; what is moved from a weekday to another one may be on it every week."""
