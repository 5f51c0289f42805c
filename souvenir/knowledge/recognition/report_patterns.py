"""The words by which a sentence reports something as done, under way or still open, which may complete a promise.

English, German, Spanish and Dutch. Each pattern is searched in one sentence without its quoted speech, in any case.
"""

from __future__ import annotations

import re

from souvenir.knowledge.recognition import necessary_words as necessary
from souvenir.knowledge.recognition.word_patterns import with_one_of

STEP = with_one_of(
    necessary.STEP,
    r"\b(?:turn(?:ed|s) (?:me|us|it|him|her|them) down|refused|rejected|approved|reckons?|wrote back|spoke|talked to)\b"
    r"|\b(?:hab|habe|haben|hat|wurden?|bin|ist|sind|heb|(?<!te )hebben|heeft|werd) .*"
    r"\b(?!verge)[^\W\d_]*ge\w{3,}(?:t|d|en)\b"
    r"|\b(?!verge|forge)\w{2,}ge\w{3,}(?:t|d|en)\b(?=[.,!]|$)"
    r"|\b(?:meint|meinte|lehnt|zei|dijo|(?:ha|han|he|hemos) \w+(?:[ai]do|cho|sto|rto))\b",
    r"\b(?:done|finished|sent|submitted|paid|delivered|handed in|handed over|given|gave|gone|went|got|told|signed"
    r"|wrote|written|posted|booked|called|rang|brought|bought|fixed|shipped|merged|published|completed|returned|already"
    r"|answered|confirmed|is out|out|was|were|sold|have it|has it|has one|cried|loved|liked|registered|cooked|baked"
    r"|arrived|received|ready|dropped off|emailed|uploaded|launched|released|picked up|collected|passed"
    r"|agreed|says|said|replied)\b",
    r"\b(?:erledigt|geschickt|fertig|abgegeben|bezahlt|gebracht|geschafft|gesendet|gegeben|unterschrieben"
    r"|war|bestellt|sagt)\b",
    r"\b(?:hecho|enviado|entregado|mandé|envié|pagado|listo|terminado|tiene|firmado|dice)\b",
    r"\b(?:geregeld|gedaan|gestuurd|klaar|betaald|gebracht|geweest|besteld|af|zegt)\b",
    r"\b(?:instead|no longer|any ?more|(?:took|takes|taking|taken) (?:it |this )?over"
    r"|(?:do|does|did)n['’]t (?:have|need) to|needn['’]t|übernimmt|übernommen|nicht mehr|niet meer|neemt"
    r"|ya no|se encarga|he['’]ll|she['’]ll|they['’]ll)\b",
    parts=(necessary.PART_OF_STEP,),
)
"""Words of a sentence that reports something as done, under way, dropped or taken over by another person."""

BARE_REPORT = re.compile(
    r"^(?:(?:all|it['’]?s|that['’]?s|is|ist|ya|(?:i|we)(?:['’]ve| have)?|(?:ich hab|ik heb)e?"
    r"|(?:wir hab|wij heb)(?:b?en)|hemos) )?(?:done|finished|sent|submitted|paid|delivered|signed|posted|booked"
    r"|fixed|shipped|merged|sorted|handed (?:it )?in|erledigt|fertig|abgegeben|abgeschickt|bezahlt|unterschrieben"
    r"|eingereicht|hecho|listo|opgestuurd|klaar|ge\w{3,}(?:t|d|en)|\w{3,}[ai]d[oa]s?)"
    r"(?=[,.;!]|$| (?:on|last|this|yesterday|today|already|and|am|gestern|heute|ayer|hoy|gisteren|op|al|el)\b)",
    re.IGNORECASE,
)
"""A report that begins a message, without an object: "Signed on Monday!", "We have signed!"."""

STILL_OPEN = with_one_of(
    necessary.STILL_OPEN,
    r"\bstill (?:not|no|have to|has to|needs?|must|owe|to do|open|waiting|sitting|\w+n['’]?t)\b"
    r"|\bnot\b.* yet\b|n['’]t\b.* yet\b|\bhaven['’]?t\b|\bnever\b|\b(?:did not|didn['’]?t)\b(?! (?:have|need) to\b)"
    r"|\b(?:forgot(?:ten)?|forget)\b",
    r"\bnoch (?:nicht|kein\w*|immer nicht)\b|\b(?:todavía|aún) no\b|\bno\b.*\b(?:todavía|aún)\b"
    r"|\bnog (?:steeds )?(?:niet|geen)\b|\b(?:vergessen|vergeten|olvid[éa]\w*)\b",
    parts=(necessary.PART_OF_STILL_OPEN,),
)
"""A sentence that says that something is not done yet."""

OF_ANOTHER = with_one_of(
    "his her their hat haben heeft hebben ha han",
    r"(?:\b(?:he|she|they|(?:my|our) \w+)|(?!We\b)\b(?-i:[A-ZÀ-Ý])\w+) (?:\w+ ){0,2}(?:paid|sent|submitted|delivered"
    r"|gave|signed|wrote|written|posted|booked|brought|bought|fixed|repaired|finished|returned|renewed|ordered|done|did)"
    r" (?:his|her|their) \w",
    r"\b(?:hat|haben) (?:\w+ )?(?:seine?[nmrs]?|ihre?[nmrs]?) \w|\b(?:heeft|hebben) (?:\w+ )?(?:zijn|haar|hun) \w",
    r"\b(?:ha|han) \w+(?:[ai]do|cho|sto|rto) sus? \w",
)
"""A deed of another person with a thing of their own: "Priya has paid her rent"."""
