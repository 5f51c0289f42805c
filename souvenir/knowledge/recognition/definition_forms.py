"""The forms of definitions, as patterns of a sentence in which `N` stands for the concept.

English, and German, Spanish and Dutch where the form exists there. The group `role` is what the concept is said to be,
and `where`, `origin`, `self`, `here` and `group` are words from which its role is made. The other groups have
conditions, which `definitions` tests: `head` must be a noun for someone or something, `person` one for a person.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from souvenir.knowledge.recognition.role_lists import GROUP_WORDS, GROUPS
from souvenir.knowledge.recognition.word_patterns import PLAIN, words_of

N = "\x00"
"""Stands for the concept in a sentence."""

_NAME = rf"{N}(?!['’]s)"
_OWNER_WORDS = " ".join(
    (
        "my our your his her their mi mis nuestro nuestra nuestros nuestras su sus mijn onz onze ons zijn haar",
        *(stem + end for stem in ("mein", "unser", "sein", "ihr", "dein") for end in ("", "e", "em", "en", "er")),
    )
)
OWNERS = f"(?:{_OWNER_WORDS.replace(' ', '|')})"
POSSESSIVE = rf"(?:{OWNERS}|(?!(?:it|that|he|she|what|there|here|let|who|door)['’])[^\W\d_]+['’]s)"
_POSSESSIVE_WORDS = f"{_OWNER_WORDS} s"
_ARTICLE = r"(?:an?|the|one of (?:my|our|the)|eine?|der|die|das|una?|el|la|een|de|het)"
_BE_WORDS = "is are was were s ist war es era"
_BE = r"(?:is|are|was|were|['’]s|ist|war|es|era)"
_NO_START = r"(?!(?:is|are|was|were|an?|the|my|our|your|his|her|their|eine?n?|una?|een)\b)"
_STOP = (
    r"(?= (?:and|hes|shes|its|it['’]s|he['’]s|she['’]s|who|that|which|but|because|so|she|he|we|it|they|says|said"
    r"|has|und|der|die|das|aber|que|pero|maar|w)\b|[,.;:!?()]|$)"
)
PERSON = (
    r"(?:(?:step|grand|great-?(?:grand)?)?-?(?:mother|father|son|daughter|child|parents?)|mum|mom|mam|dad|sister"
    r"|brother"
    r"|wife|vrouw|husband|partner|girlfriend|boyfriend|fianc[eé]e?|aunt|uncle|cousin|niece|nephew|twin"
    r"|(?:sister|brother|mother|father|son|daughter)[- ]in[- ]law|boss|manager|editor|colleague|co-?worker|friend"
    r"|neighbou?r|teacher|tutor|coach|doctor|nurse|dentist|therapist|physio\w*|lawyer|landlord|landlady|flatmate|roommate"
    r"|housemate"
    r"|boyfriend|assistant|apprentice|intern|client|customer|supplier|conductor|captain|pastor|priest|vet|midwife"
    r"|guy|woman|girl|man|lady|maid of honor|best man"
    r"|supervisor|professor|head(?: of \w+)?|director|lead|mentor|accountant|agent|photographer|cat|dog|puppy|kitten"
    r"|budgie|parrot|horse|rabbit|hamster|tortoise|pet|terrier|beagle|company|employer|school|band|choir|club|team"
    r"|firm"
    r"|shop|schwester|bruder|mutter|vater|tochter|sohn|frau|mann|freundin|freund|chef|chefin|kollegin|kollege"
    r"|nachbarin"
    r"|nachbar|katze|hund|hermana|hermano|madre|padre|hija|hijo|esposa|esposo|novia|novio|amiga|amigo|jefa|jefe|prima"
    r"|primo|tía|tío|abuela|abuelo|suegra|suegro|gato|perro)"
)
_LEAD = r"^(?:[^,.;:]{0,25}[,:] |(?:and|but|so|also|oh|oh and|because|well|ja|y) )?(?:the |an? )?"
_CLAUSE = r"(?:^|[,;:–—(] |\b(?:and|but|so|also|oh|because|since|that|well|ja|und|aber|y|pero|en|maar) )(?:the |an? )?"
_BETWEEN = r"(?:(?!(?:and|or|und|y|en) )[\w’'-]+ ){0,2}?"
_RELATION = rf"{POSSESSIVE} {_BETWEEN}{PERSON}"
_HEAD = r"(?P<head>[\w-]+)"
_NOT_WHERE = r"(?<!\bin )(?<!\bat )(?<!\bof )(?<!\bon )(?<!\ben )(?<!\bauf )(?<!\bbei )"
_OCCUPATIONS = "developer|dev|engineer|nurse|teacher|student|manager|paralegal|accountant|receptionist|librarian"
_SOMEONE = r"(?P<someone>guy|man|woman|girl|lady|boy|lad|lass|bloke|fella|fellow|chap|dude|kid)"
_NO_NOUN = r"(?<!\bsin )(?<!\bun )(?<!\bsu )(?<!\bel )(?<!\bde )"
"""Not after words that a noun follows: "sin trabajo"."""
_PET = r"(?:[\w’'-]+ ){0,2}?(?P<pet>[\w-]+)"
_OWN = rf"{POSSESSIVE} {_BETWEEN}{_HEAD}(?: of \w+)?"
_I = r"(?:i|we)(?:['’]ve|['’]m|['’]re| have| am| are)?(?: (?:also|still|now|just|finally|currently|mostly|already))?"

WHERE: Mapping[str, str] = {
    **{verb: f"where you {verb}" for verb in ("live", "work", "teach", "study", "sing", "play", "volunteer", "nurse")},
    **{verb: f"where you {verb}" for verb in ("coach", "train", "swim", "climb", "row", "dance", "bank", "rehearse")},
    **{verb: f"where you {verb}" for verb in ("lived", "worked", "taught", "studied", "nursed")},
    "wohne": "wo du wohnst",
    "wohnen": "wo du wohnst",
    "lebe": "wo du lebst",
    "arbeite": "wo du arbeitest",
    "studiere": "wo du studierst",
    "unterrichte": "wo du unterrichtest",
    "singe": "wo du singst",
    "vivo": "donde vives",
    "vivimos": "donde vives",
    "trabajo": "donde trabajas",
    "trabajamos": "donde trabajas",
    "woon": "waar je woont",
    "wonen": "waar je woont",
    "werk": "waar je werkt",
    "studeer": "waar je studeert",
}
"""The roles of the places and organisations where a speaker does this, in the language of the verb."""

FROM: Mapping[str, str] = {
    "from": "where you are from",
    "aus": "woher du kommst",
    "de": "de donde eres",
    "uit": "waar je vandaan komt",
}

_WHERE_ENGLISH = "|".join(verb for verb, role in WHERE.items() if role.startswith("where"))
_WHERE_OTHER = "|".join(verb for verb, role in WHERE.items() if not role.startswith("where"))
_WORDS = r"(?: (?!(?:and|und|y|but)\b)[\w-]+){0,6}?"
_ASKED = (
    r"(?:ask|asked|tell|told|call|called|text|texted|email|emailed|meet|met|see|saw|with|from|to|for|of|by|if"
    r"|mit|von|für|con|para|met|van|tegen|voor)"
)
_NUMBER = r"(?:(?:two|three|four|five|six|zwei|drei|vier|dos|tres|cuatro|twee|drie|\d) )?"
_ALSO = r"(?:, (?:(?:and|und|y|en) )?| (?:and|und|y|e|en|&) )"
_THINGS_HELD = (
    r"(?:place|job|role|post|offer|account|contract|interview|appointment|internship|apprenticeship|placement|stall|desk"
    r"|allotment|plot|mortgage|loan|policy|membership|subscription|degree|phd|course|shift|zusage|stelle|vertrag|termin"
    r"|konto|angebot|contrato|trabajo|oferta|cita|plaza|baan|afspraak|aanbod|plek)"
)
_HOMES = (
    r"(?:house|home|flat|apartment|cottage|cabin|room|office|shop|bakery|café|cafe|restaurant|salon|studio|farm|practice"
    r"|haus|wohnung|laden|praxis|büro|(?<!se )casa|piso|tienda|panadería|bar|huis|appartement|woning|winkel|zaak)"
)
_THING = r"[\w ]{1,20}?"
_HOLDS = (
    rf"(?:\b{_I} (?:got|have|took|signed|start|started|accepted)|^(?:got|have|signed|starting|started|accepted)"
    r"|\b(?:ich habe|habe ich|wir haben|tengo|tenemos|ik heb|heb ik|wij? hebben))"
)
_HOLDING_WORDS = (
    f"{_OWNER_WORDS} got have took signed start started starting accepted habe haben tengo tenemos heb hebben"
)


class Form(NamedTuple):
    """A form of definitions.

    :param weight: The higher, the better it defines.
    :param words: Only a sentence with one of these words can have the form; empty if any can. Words are quicker to look
        up than a pattern is to search.
    :param before: Only a concept right after one of these words can have the form; empty if any can.
    :param in_small_letters: The pattern without regard to case, which is quicker to search: it matches each sentence in
        small letters that `pattern` matches, and few others.
    """

    weight: int
    words: frozenset[str]
    pattern: re.Pattern[str]
    before: frozenset[str]
    in_small_letters: re.Pattern[str]

    @property
    def is_apposition(self) -> bool:
        """True if a role follows the name. The name needs a capital, since lists have the same form."""
        return self.pattern.pattern.startswith(_NAME + ", (?P")


_I_AM = (
    r"(?:my name is|i['’]?m|i am|ich bin|ich heiße|mein name ist|soy|me llamo|mi nombre es|mijn naam is|ik heet|ik ben)"
)
_GREETING = (
    r"^(?:(?:hi+|hello+|hey+|good (?:morning|afternoon|evening)|hallo|guten (?:tag|morgen|abend)|moin|hola+"
    r"|buen[oa]s (?:d[ií]as|tardes|noches)|hoi|dag|goede(?:morgen|middag|navond))\b.{0,15}[,!.]? *)?"
)
_HERE = r"(?:here|hier)\b(?: again)?(?=[,.!:]|$)"
INTRODUCTION = re.compile(rf"{_GREETING}(?:{_I_AM}\b|[\w-]+ {_HERE})", re.IGNORECASE)
"""The beginning of a sentence in which authors say who they are."""

OF_RELATION = 5
"""The weight of forms that define in a question too: "May my sister Ines come?"."""

_FORMS: tuple[tuple[int, str, str] | tuple[int, str, str, str], ...] = (
    (
        7,
        "name m im am bin heiße soy llamo nombre naam heet ben here hier",
        rf"{_GREETING}(?:(?P<self>{_I_AM}) {_NAME}"
        rf"(?=[,.;!]|$| \d| and\b| und\b| y\b| en\b| btw\b| from\b| aus\b| de\b| uit\b)"
        rf"|(?P<here>){_NAME} {_HERE})",
    ),
    (
        6,
        "are were sind waren son zijn",
        rf"{_CLAUSE}(?:[^\W\d_]+{_ALSO})*{N}(?:{_ALSO}[^\W\d_]+)* (?:are|were|sind|waren|son|zijn) "
        rf"(?P<role>(?P<of>{POSSESSIVE}) {_NUMBER}(?:[\w-]+ )?(?P<group>{GROUPS}))\b(?!['’])",
    ),
    (
        6,
        _BE_WORDS,
        rf"{_CLAUSE}{_NAME}(?: \([^)]*\))?,? {_BE} (?P<role>(?:{POSSESSIVE}|{_ARTICLE}) .{{2,60}}?){_STOP}",
    ),
    (6, "been", rf"{_LEAD}{_NAME} (?:has|have) been (?P<role>{POSSESSIVE} .{{2,60}}?){_STOP}"),
    (
        6,
        "that she he it they thats shes hes its theys",
        rf"{_NAME},? (?:[–—-] )?(?:that|she|he|it|they)(?:['’]?s| is|['’]re) (?P<role>(?:{POSSESSIVE}|an?|the) "
        rf"(?:[\w’'-]+ ){{0,3}}?{_HEAD}(?: (?:from|in|of|on|at|near|for) .{{2,40}}?)?){_STOP}",
    ),
    (
        5,
        "",
        rf"{_NAME} \((?P<role>{POSSESSIVE} {_BETWEEN}{_HEAD}|{PERSON}"
        r"|(?:the )?(?:[\w-]+ )?(?P<person>[\w-]+))(?:(?:,| from| at| in) [^()]*)?\)",
    ),
    (
        5,
        _POSSESSIVE_WORDS,
        rf"{_NAME}, (?P<role>(?:{POSSESSIVE}|one of {POSSESSIVE}) [^,.;:!?()]{{2,60}}?)(?=[,.;:!?()]|$)",
    ),
    (
        5,
        GROUP_WORDS,
        rf"\b(?P<role>(?P<of>{POSSESSIVE}|got|have|(?<=mum )of|(?<=mom )of|(?<=dad )of) {_NUMBER}"
        rf"(?:(?<!have )(?<!got )(?<!\d )[\w-]+ )?(?P<group>{GROUPS}))(?:[,:]? | \()"
        rf"(?:[^\W\d_]+(?: \(\d+\)|, \d+)?{_ALSO})*{N}",
    ),
    (5, _POSSESSIVE_WORDS, rf"\b(?P<role>{_RELATION}),? {_NAME}"),
    (
        5,
        "is s",
        rf"(?:^|[,;:–—(] |\b(?:and|but|so) )(?P<role>(?:(?!h(?:is|er) |their )[\w-]+ )?(?P<calling>[\w-]+))"
        rf"(?: is|['’]s)(?: an? \w+ called)? {_NAME}",
    ),
    (5, "a an new", rf"\b(?P<role>(?:an? (?:new |old |good |dear )?|new ){PERSON}),? (?:called |named )?{_NAME}"),
    (5, _POSSESSIVE_WORDS, rf"\b(?P<role>{_OWN}),? {_NAME}"),
    (
        5,
        _POSSESSIVE_WORDS,
        rf"(?:{_CLAUSE}|\b{_ASKED} )(?P<role>{POSSESSIVE} (?:[\w’'-]+ )?(?P<person>[\w-]{{4,}})) {_NAME}",
    ),
    (
        5,
        "a an ein eine einn einen un una een",
        rf"\b(?P<role>(?:an?|eine?n?|una?|een) (?P<person>[\w-]+)), (?:(?:el|la) doctora? )?{_NAME}(?=[,.]|$)",
    ),
    (
        5,
        "the das der die la el het de",
        rf"(?:{_NOT_WHERE}|(?=\w+ [\w-]+ {N}))\b(?P<role>(?:the|das|der|die|la|el|het|de) {_HEAD}),? {_NAME}",
    ),
    (5, "", rf"{_CLAUSE}(?P<role>(?P<calling>[\w-]+)) {_NAME}"),
    (
        5,
        "the der die la el de",
        rf"(?:^|\b(?:and|but|met|saw|with) )(?P<role>(?:the|der|die|la|el|de) (?:[\w-]+ )?(?P<noun>[\w-]+)), {_NAME}"
        r"(?=,)",
    ),
    (5, "who", rf"\b(?P<role>(?:the|{POSSESSIVE}) (?:[\w-]+ ){{1,3}}who [^,.;:]{{3,40}}), {_NAME}(?=[,.]|$)"),
    (5, "the my our", rf"(?:{_CLAUSE}|\b{_ASKED} ){_NAME} (?P<role>(?:the|my|our) {_HEAD})(?=[ ,.!?]|$)"),
    (
        4,
        "a an the ein eine der die das un una el la een de het",
        rf"{_NAME}, (?P<role>(?:an?|the|eine?|der|die|das|una?|el|la|een|de|het) [^,.;:!?()]{{2,60}}?)(?=[,.;:!?()]|$)",
    ),
    (
        4,
        "called named",
        rf"(?P<role>(?:(?:^|\b(?:and|but|so|oh|some) )|\b(?:an?|the) (?:[\w-]+ )?){_SOMEONE}"
        rf"(?: (?:from|at|in|of) (?:(?:an?|the|my|our) )?[\w-]+)?) (?:called|named) {_NAME}",
        "called named",
    ),
    (
        4,
        "called named name",
        rf"\b(?P<role>(?:an?|{POSSESSIVE}) {_PET})(?:, [^,.;:]{{2,30}}){{0,2}},"
        rf" (?:(?:he|she|it)['’]?s (?:called|named)|name(?: is|['’]s)?|named|called) {_NAME}",
        "called named name is s",
    ),
    (
        4,
        "called named namens llamado llamada genaamd llama",
        rf"\b(?P<role>(?:an?|the|eine?n?|una?|een|{POSSESSIVE}) (?:\d{{4}} )?(?:{_NO_START}[\w-]+ ){{0,2}}{_NO_START}"
        rf"[\w-]+),? (?:called|named|namens|llamad[oa]|genaamd|(?:que )?se llama|it['’]?s called) {_NAME}",
        "called named namens llamado llamada genaamd llama",
    ),
    (
        4,
        "the der die das el la de het",
        rf"\b(?P<role>(?:an?|eine?n?|una?|een|{OWNERS}) (?:[\w-]+ )?[\w-]+), (?P<named>the|der|die|das|el|la|de|het) "
        rf"{_NAME}(?=[.,;!]|$)",
        "the der die das el la de het",
    ),
    (
        4,
        "is was are ist war es heißt heet llama",
        rf"{_CLAUSE}(?P<role>(?:(?:the|{POSSESSIVE}|der|die|das|el|la|de|het) (?:new )?|new )(?!name\b)(?:[\w-]+ )"
        rf"{{0,2}}[\w-]+) (?:(?P<equal>is|was|are|ist|war|es)(?: now| jetzt| ahora| nu)?(?: the)?"
        rf"|(?:is|are) (?:called|named)|heißt|heet|se llama) {_NAME}",
        "is was are ist war es now jetzt ahora nu the called named heißt heet llama",
    ),
    (
        4,
        "own run manage lead founded opened started chair edit",
        rf"\b(?P<owned>{_I}) (?:own|run|manage|lead|founded|opened|started|chair|edit) (?:(?:the|our|my) )?{_NAME}",
        "own run manage lead founded opened started chair edit the our my",
    ),
    (3, "works worked", rf"{_NAME} (?P<works>works|worked) (?:as|at|for|in)\b"),
    (
        3,
        "start started starting joined",
        rf"(?:\b{_I} |^)(?:start|started|starting) (?:work |a job |my job )?at {_NAME}|\b{_I} joined {_NAME}",
        "at joined",
    ),
    (
        3,
        "who que",
        rf"{_NAME},? who (?:is|was|runs|owns|works|teaches|plays|lives|makes|manages|leads|keeps|coaches|rents"
        rf"|sells)\b|{_NAME}, que (?!es como\b)\w",
    ),
    (
        3,
        "i im",
        rf"\b(?:i['’]?m|i am) (?:an?|the) (?:[\w-]+ ){{0,3}}[\w-]+ (?:at|in|of|for) (?:the )?{_NAME}",
        "at in of for the",
    ),
    (
        3,
        _WHERE_ENGLISH.replace("|", " "),
        rf"\b(?<!if )(?:i|we)(?: also| still| now| mostly)? (?!train\b[^,.;:]* for )"
        rf"(?P<where>{_WHERE_ENGLISH}){_WORDS} (?P<prep>at|in|for) (?:the )?{_NAME}",
        "at in for the",
    ),
    (
        3,
        " ".join(FROM),
        rf"\b(?:i['’]?m|i am|i come|ich komme|ik kom|soy) (?:originally |[^.;]{{1,60}}, )?"
        rf"(?P<origin>{'|'.join(FROM)}) {_NAME}",
        " ".join(FROM),
    ),
    (
        3,
        _WHERE_OTHER.replace("|", " "),
        rf"\b{_NO_NOUN}(?P<where>{_WHERE_OTHER}){_WORDS} (?P<prep>in|im|bei|beim|an|en|para|bij|op|voor) "
        rf"(?:(?:der|dem|den|la|el|het|de) )?{_NAME}",
        "in im bei beim an en para bij op voor der dem den la el het de",
    ),
    (
        3,
        f"{_OCCUPATIONS.replace('|', ' ')} contact rep editor agent",
        rf"\b(?:(?:{_OCCUPATIONS}) (?:at|in|for)|(?:contact|rep|editor|agent) at) (?:the )?{_NAME}",
        "at in for the",
    ),
    (
        3,
        _HOLDING_WORDS,
        rf"(?:{_HOLDS}|\b{OWNERS}){_WORDS} (?P<held>{_THINGS_HELD}){_WORDS} "
        rf"(?:at|from|with|for|bei|von|con|en|de|bij|van) (?:the )?{_NAME}",
        "at from with for bei von con en de bij van the",
    ),
    (
        3,
        _HOLDING_WORDS,
        rf"(?:{_HOLDS}{_WORDS}|\b{OWNERS}(?: [\w-]+)?) {_HOMES}(?: \w+)? (?P<home>in|en) {_NAME}",
        "in en",
    ),
    (
        3,
        "i im ich soy ik",
        rf"\b(?:ich bin|i['’]?m|i am|soy|ik ben) [^.;:]{{1,30}}, (?:[\w-]+ )?{_HEAD} (?:at|in|en|from|aus|bei|bij|uit) "
        rf"(?:the )?{_NAME}",
    ),
    (
        3,
        "offered hired employs pays insures accepted",
        rf"{_NAME} (?:has |have )?(?:offered|hired|employs|pays|insures|accepted) (?:me|us)\b|\b(?:i|we) hired {_NAME}",
    ),
    (3, "married engaged marrying", rf"\b(?:married|engaged|marrying) (?:to )?{_NAME}", "married engaged marrying to"),
    (3, "", rf"{_NAME} (?P<note>\((?!(?:i|we|you|they|he|she|it|don['’]t)\b)[^)\d!?]{{4,60}}\))"),
    (
        2,
        "offer quote invoice offerte factuur angebot rechnung presupuesto factura",
        rf"\b(?:offer|quote|invoice|offerte|factuur|angebot|rechnung|presupuesto|factura) (?:from|van|von|de) {_NAME}",
        "from van von de",
    ),
    (
        2,
        "use take on using switched switching migrated nehme nutze benutze fahre uso usamos tomo gebruik neem slik",
        rf"(?:\b{_I} (?:use|take|on)|(?:\b{_I} |^|[,;] )(?:(?-i:using)|(?:switched|switching|migrated)"
        rf"(?: from {_THING})? to)|\bich (?:nehme|nutze|benutze|fahre)"
        rf"|\b(?:uso|usamos|tomo|ik gebruik|ik neem|ik slik)) (?P<used>{_NAME})",
        "use take on using to nehme nutze benutze fahre uso usamos tomo gebruik neem slik",
    ),
    (
        2,
        "bought own drive ride adopted",
        rf"(?:\b{_I} (?:just )?|^)(?:bought|own|drive|ride|adopted) (?:an?|our|my|the) {_NAME}",
        "a an our my the",
    ),
    (
        1,
        "next from",
        rf"{_NAME},? (?P<role>next door|from (?:(?:my|our|the) [\w-]+(?: [\w-]+)?|downstairs|upstairs|next door|work"
        rf"|school|uni|church))(?P<one>,| (?:has|is|was|wants|said|says|came|comes|called|did|offered|will)\b)",
    ),
    (
        2,
        "stores runs makes lets helps provides offers tracks manages means stands refers",
        rf"{_LEAD}{_NAME} (?:stores|runs|makes|lets|helps|provides|offers|tracks|manages|means|stands for"
        rf"|refers to)\b",
    ),
)


def _form(weight: int, words: str, pattern: str, before: str = "") -> Form:
    in_any_case, in_small_letters = re.compile(pattern, re.IGNORECASE), re.compile(pattern)
    return Form(weight, frozenset(words.split()), in_any_case, frozenset(before.split()), in_small_letters)


FORMS = tuple(_form(*form) for form in _FORMS)
_OF_ANY_WORDS = frozenset(place for place, form in enumerate(FORMS) if not form.words)
_OF_WORD: Mapping[str, Collection[int]] = {
    word: [place for place, form in enumerate(FORMS) if word in form.words]
    for word in frozenset().union(*(form.words for form in FORMS))
}
"""The places in `FORMS` of those that each word permits."""
_NO_WORD = re.compile(r"\W")


def in_small_letters(marked: str) -> str:
    """Return a sentence in small letters, those that a pattern in any case takes for others too."""
    return marked.translate(PLAIN).lower()


def words_before(marked: str) -> list[str]:
    """Return the words right before the concept in a sentence, in lower case."""
    before = (part[:-1].rpartition(" ")[2] for part in marked.lower().split(N)[:-1] if part.endswith(" "))
    return [_NO_WORD.split(one)[-1] for one in before]


def forms_of(sentence: str) -> list[Form]:
    """Return the forms that a sentence can have by its words, best first; those of relations if it is a question."""
    places = _OF_ANY_WORDS.union(*(_OF_WORD.get(word, ()) for word in words_of(sentence)))
    found = [FORMS[place] for place in sorted(places)]
    return [form for form in found if form.weight == OF_RELATION] if sentence.endswith("?") else found
