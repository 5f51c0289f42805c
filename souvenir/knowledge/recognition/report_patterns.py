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
    r"|\bnot\b.* yet\b|n['’]t\b.* yet\b|\bhaven['’]?t\b|\bnever (?:got|had|received|arrived|came)\b"
    r"|\b(?:did not|didn['’]?t) (?:get|receive|arrive|come)\b",
    r"\bnoch (?:nicht|kein\w*|immer nicht)\b|\b(?:todavía|aún) no\b|\bno\b.*\b(?:todavía|aún)\b"
    r"|\bnog (?:steeds )?(?:niet|geen)\b",
)
"""A sentence that says that something is not done yet."""

_NAME = r"(?-i:[A-ZÀ-Ý])[\w’'-]+"
_DOER = (
    r"(?:^|[,;:–—(] |\b(?:and|but|so|und|aber|y|pero|en|maar) )(?P<doer>"
    r"(?:my|our|his|her|their|the|mein\w*|unser\w*|mis?|nuestr[oa]s?|mijn|onze) (?:[\w’'-]+ ){1,2}?"
    rf"|(?:{_NAME} ){{1,2}}?(?:(?:and|und|y|en|&) {_NAME} )?|[\w’'-]+ )"
)
_OF_DOER = (
    r"(?P<own>(?:his|her|their|an?|another|some|seine?[nmrs]?|ihre?[nmrs]?|eine?[nmrs]?|sus?|una?|otr[oa]|zijn|haar|hun"
    r"|een) )?"
)
DEEDS_OF_OTHERS = (
    with_one_of(
        necessary.DEEDS,
        rf"{_DOER}(?:(?:has|have|had|just|already|also|finally|now) )*(?:paid|sent|submitted|delivered"
        r"|handed (?:in|over)|given|gave|signed|wrote|written|posted|booked|called|rang|brought|bought|fixed|repaired"
        r"|shipped|published|completed|finished|returned|renewed|ordered|registered|cooked|baked|cleaned"
        rf"|painted|packed|emailed|uploaded|picked up|collected|dropped off|filled (?:in|out)|did|done) {_OF_DOER}\w",
    ),
    with_one_of(
        "hat haben heeft hebben",
        rf"{_DOER}(?:hat|haben|heeft|hebben) (?:(?:schon|jetzt|endlich|al|nu|eindelijk) )?{_OF_DOER}[^,;.]*\b"
        r"(?:[^\W\d_]*ge\w{3,}(?:t|d|en)|bezahlt|betaald|unterschrieben|bestellt|besteld|erledigt|verschickt|verstuurd)"
        r"(?=[,;.!]|$)",
    ),
    with_one_of(
        "ha han pagó envió firmó entregó mandó terminó compró llevó devolvió",
        rf"{_DOER}(?:ya )?(?:(?:ha|han) (?:\w+[ai]do|hecho|escrito)|pagó|envió|firmó|entregó|mandó|terminó|compró|llevó"
        rf"|devolvió) {_OF_DOER}\w",
    ),
)
"""Deeds of another person, with a thing of their own or an indefinite one: "Priya has paid her rent"."""

FOR_THE_AUTHOR = re.compile(
    r"\b(?:me|us|mine|ours|my|our|instead|over|mich|mir|uns|meine?[nmrs]?|unsere?[nmrs]?|nos|mi|mí|nuestr\w+|mij|ons"
    r"|mijn|onze)\b",
    re.IGNORECASE,
)
"""Words after a deed of another person that was done for the author, or with something of theirs."""
