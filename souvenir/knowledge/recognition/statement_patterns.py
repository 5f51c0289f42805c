"""The words by which statements are recognised, in English, German, Spanish and Dutch.

Each pattern is searched in one sentence without its quoted speech, in any case.
"""

from __future__ import annotations

import re

from souvenir.core.dates import MONTH_NAMES
from souvenir.knowledge.recognition import necessary_words as necessary
from souvenir.knowledge.recognition.word_patterns import any_of, with_one_of

I = r"\b(?:i|we)"  # noqa: E741 - the pronoun
_ADVERBS = r"(?:\s+(?:also|still|just|really|now|finally|already|have|had|recently))*"
_NUMBER = r"(?:\d[\d.,:]*|one|two|three|four|five|six|seven|eight|nine|ten)"
_MENTAL = (
    r"(?:know|care|remember|understand|stand|think|feel|see|wait|take|wei[ßs]s?|verstehe|erinnere|sehe|finde|mag|kann"
    r"|acuerd|sé|puedo|entiend|recuerd|idee|zin|weet|snap|kan)"
)
"""Beginnings of verbs by which "any more" is no change: "I don't know any more"."""

_MONEY = r"(?:[£$€]\d|\d[\d.,]*k\b|\d{3}|\d{1,3}[.,]\d{3}\b)"
"""The beginning of an amount that is no time of day."""

_UNIT = r"(?:mg|ml|kg|km|miles|kcal|hours?|hrs|Stunden|uur|horas|%|€|euros?|pounds?|dollars?|quid)"
MONTH = rf"(?:{'|'.join(MONTH_NAMES)})"

QUOTED = re.compile(r"“[^”]{0,300}”|„[^“”]{0,300}[“”]|«[^»]{0,300}»|\"[^\"\n]{0,300}\"")
"""Quoted speech, which states nothing."""

QUESTION_AT_END = re.compile(
    r", (?:(?:and|but|so|now|also|y|und|en) )*(?:(?:i['’]?m|i am) (?:now )?(?:wondering|not sure|unsure"
    r"|curious)|can you"
    r"|could you|would you|do you|should i|can i|what|how|which|why|will th(?:is|at)|is (?:that|this|it)"
    r"|any (?:idea|tips)|oder|kannst du|können sie|soll ich|was meinst|¿|kun je|wat)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
"""A question after the statement in a sentence."""

HYPOTHETICAL = with_one_of(
    necessary.HYPOTHETICAL,
    r"^(?:please |bitte |por favor,? )?(?:(?:re)?write|translate|draft|proofread|rephrase|schreibe?|übersetze?|escribe"
    r"|redacta|traduce|schrijf|vertaal)\b",
    r"^(?:(?:so|and|but|or) )?(?:if|when|should|could|would|can|may(?! \d)|shall|what|how|which|who|where"
    r"|why|do|does|is|are|ob|wenn|als|si)\b",
    r"\b(?:if(?! you remember)|unless|might|maybe|perhaps|i wish|hopefully|imagine|suppose|not sure|in case|wondering"
    r"|kidding|joking)\b",
    r"\b(?:wenn|falls|vielleicht|eventuell|würden?|könnten?|wäre|hätten?|scherz)\b",
    r"\b(?:quizás?|tal vez|a lo mejor|si (?:me|se|no|el|la|todo|sigue)|ojalá|podría|broma)\b",
    r"\b(?:misschien|stel dat|als (?:ik|we|wij|hij|ze|het)|zou(?:den)?|grapje)\b",
)
"""A condition, a wish, a question without its sign or a joke."""

INDIRECT_QUESTION = with_one_of(
    necessary.INDIRECT_QUESTION, r"\b(?:answer|know|decide|say|tell|check|find out)\b[^,.;]{0,40}\bif\b.*$"
)
"""An "if" that is no condition: "I'd give her an answer if I want to go"."""

UNDECIDED = any_of(
    r"\b(?:should|could(?! not|n['’]t)|would|thinking of|thinking about|considering|looking for|i['’]ll|trying|tried"
    r"|hoping|tempted|about to|offered|(?:stuck|torn) between|soll(?:te)?n?|überlege|debería|pensando|overweeg)\b",
)
CLAUSE_END = re.compile(
    r"[;:]|, (?:and|but|so|because|since|und|aber|denn|weil|y|pero|porque|en|maar|want)\b", re.IGNORECASE
)
REPORTED = any_of(
    rf"\b(?:says?|suggests?|suggested|thinks?|reckons?|believes?|claims?|hopes?"
    rf"|wants?(?! [£$€]?\d| \w+teen| \w+ty| {_NUMBER} [^.;]*\bnot {_NUMBER}\b)"
    r"|insists?|recommends?|asks?|asked)\b",
    r"\b(?!(?:i|we)\b)[\w’']+ (?:said|thought|told)\b",
    r"\b(?:sagt|sagte|meint|findet|glaubt|denkt|möchte|fragte?|laut)\b|\b(?:dice|dijo|cree|piensa|quiere|pregunt[aó]|según)\b",
    r"\b(?:zegt|zei|vindt|vraagt|vroeg|volgens)\b",
)
"""The opinion or the wish of another person."""

COMMITMENT = any_of(
    rf"(?<!when )(?<!how )(?<!what )(?<!where )(?<!why ){I}(?:['’]ll| will| shall)\b",
    r"\bill (?:send|do|write|call|bring|give|get|ring|finish|pay|be)\b",
    rf"(?:{I}(?:['’]ve)?{_ADVERBS}|^(?:and |also |but |so )*|[,;] )\s*(?:promised|agreed to|committed|volunteered)\b",
    rf"(?:{I}(?:['’]ve)?{_ADVERBS}|^(?:and |also |but |so )*|[,;] )\s*(?:told|said)(?: [\w.,()]+){{0,5}}? (?:that )?"
    r"(?:(?:i|we|he|she|they|it)(?:['’]?d|['’]?ll| will| would| should|\b gets?|['’]s (?:in|with|on|ready|done))"
    r"|i (?:answer|make|send|do|bring|come|call|ring|sing|give|write|pay|finish))\b",
    rf"{I}(?: am| are|['’]m|['’]re) (?:to(?! be (?:fair|honest))|down (?:to|for))\b",
    rf"{I}(?:['’]m|['’]re| am| are) [a-z]+ing\b(?=[^.;]*\bby (?:the )?(?:\d|\w+day|{MONTH}|tomorrow|end of))",
    rf"{I}(?:['’]ve| have)? got to\b|{I}{_ADVERBS} (?:(?:have|need|ought) to|must|gotta)\b"
    r"(?! (?:have (?:\w+ed|been|said|gone|made|told|known|done)|(?:confess|admit|say))\b)",
    rf"{I}{_ADVERBS} owe\b|\bremind me\b|{I}['’]?m gonna\b",
    r"(?:^|[,;] )(?:also |and |but |so )*(?:(?:have|need) to|must|gotta|gonna)\b",
    r"^(?=.*\b(?:ich|wir)\b).*\b(?:versprochen|zugesagt|muss|müssen|soll|sollen|werden?|schicken?|bringen?|gebe|geben"
    r"|mach(?:en?)?|liefern?|liefere|sagen?|rufen?)\b",
    r"^(?=.*\bbis\b).*\b(?:bekommt|kriegt)\b",
    r"(?:^|[,;:.!] )(?:(?:and|but|so|then) )?will (?:send|do|write|call|bring|give|get|ring|finish|pay|let|email|text"
    r"|post|book|submit|hand|drop|ask|tell|have)\b",
    rf"\b(?:by|until|till|before)\b.*[,;] {I}(?:['’]ve)? (?:told|promised|assured)\b"
    r"|\bwants? (?:.+ from (?:me|us)|my .+) (?:by|before)\b",
    r"\b(?:he prometido|prometí|ten(?:go|emos) que|deb(?:o|emos)|v(?:oy|amos) a|qued(?:é|amos) en"
    r"|les? (?:dije|prometí)\b.*\bque\b.*\w{2}ría|(?:les?|l[oa]s?) (?:llevo|mando|envío|doy|entrego|contesto"
    r"|respondo|digo|llamo|devuelvo|pago|traigo))\b",
    r"^(?=.*\b(?:ik|wij|we)\b).*\b(?:moet(?:en)?|beloofd|zal|zullen|stuur|breng|geef|bel|lever|regel)\b",
)
ONLY_PRONOUN = re.compile(
    r"\b(?:will|shall|(?:have|need|got|am|are) to|must|gotta|gonna|\w+['’](?:ll|d)) \w+ (?:him|her|them|it|both)\b"
    r"(?= (?:this|next|on|by|before|until|till|tomorrow|today|tonight|at|in|when|as|so|and|but)\b|[,.;!]|$)",
    re.IGNORECASE,
)
"""A promise whose object is a pronoun: "I shall ring them this week"."""

TAKES_PART = any_of(
    r"(?:\b(?:will|would|shall|should|must|gotta|gonna|(?:have|need|am|are|going|got) to)|['’](?:ll|d|re to|m to))"
    r" (?:be(?! done| ready| paid| sent| finished)|go"
    r"|have an? (?:stand|stall|party|meeting|dinner|lunch)|come|attend|meet|see|visit|talk|speak"
    r"|sing|play|perform|fly|travel|leave|start|stay|move|run|teach|host|drive"
    r"|present|pick \w+ up|look after|sit|give (?:an?|the|my) (?:talk|speech|lecture|presentation|concert))\b",
    r"\b(?:muss|müssen|soll|werde) (?:\S+ ){0,5}(?:sein|gehen|kommen|fahren|fliegen|treffen|sprechen)\b",
)
"""A commitment to take part in an event, which happens on its day without a word."""

COMES_ANYWAY = any_of(r"\b(?:baby|twins)\b.*\bdue\b", r"\b(?:have|need|got|['’]ve) to (?:leave|move|be out)\b")
"""A day by which something happens without a word: a birth, the end of a lease."""

IS_DUE = any_of(r"\bdue\b(?! to\b)", r"\bdeadline\b", r"\bfällig\b", r"\babgabe\b")
NOT_DUE = re.compile(r"\b(?:not|\w+n['’]?t|no longer|nicht|niet) (?:\w+ )?(?:due|fällig)\b", re.IGNORECASE)
NO_COMMITMENT = any_of(
    r"\b(?:won['’]?t|(?:will|shall|do|does|did) not|not going to|(?:don|doesn|didn|needn)['’]?t|never)\b",
    r"\b(?:nicht|kein\w*|nie|no (?:ten|voy|deb|pued)\w*|niet|geen)\b",
)
CONSEQUENCE = re.compile(r"\b(?:or|otherwise|because|sonst|weil|porque|omdat)\b", re.IGNORECASE)
"""A word after which a sentence says why something is due."""

AFTER = re.compile(r"\b(?:after|nach|después de[l]?|tras|na)\b[^,.;]*$", re.IGNORECASE)
"""The words before a day that is not that of an appointment, but precedes it."""

BY_THEN = re.compile(r"\b(?:before|by|until|till) (?:that|then)\b|\bbis dahin\b|\bpara entonces\b", re.IGNORECASE)
"""Words of a promise that refer to a day of the clause before."""

DEADLINE = re.compile(r"\b(?:by|until|before|due|bis|vor|para|antes de[l]?|voor|uiterlijk)\b[^,.;]*$", re.IGNORECASE)
"""The words before a day by which something is due."""

NOT_PLANNED = any_of(
    r"\b(?:declin\w+|cancel\w*|skip\w*|miss(?:ed|ing)|turn(?:ed|ing) down|except|absag\w*|abgesagt|entfällt|außer"
    r"|anul\w+|salvo|excepto|afgezegd|behalve)\b",
)
PAST = any_of(
    r"\b(?:yesterday|last|ago|since|done|went|was|did|used|attended|figure out)\b|(?<!['’]ve )(?<!have )\bgot\b",
    rf"{I} (?:fetched|collected|visited|returned|attended|arrived|delivered|finished|met|saw|took|drove|flew)\b",
    r"\b(?:gestern|letzte\w*|vorige\w*|seit|war|waren|hatte|ayer|pasad[oa]|fue|estuvo|gisteren|sinds|geweest)\b",
)
"""A sentence about something past, which is no appointment."""

CONTINUES = any_of(
    r"^(?:(?:and|but|so|also|oh|ok|yes|yeah|well|ja|nein|nee|und|aber|en|maar|y|pero),? )*"
    r"(?:he|she|it|its|it['’]s|they|that|this|er|es|das|dem|dies\w*|él|ella|ellos|eso|esto|les?|dice|viene|empieza|llega"
    r"|será|hij|dat|dit)\b|\binstead\b(?! of)",
)
"""A sentence whose subject is in the one before."""

REFERS_BACK = any_of(
    CONTINUES.pattern,
    rf"^(?:to|on|auf|am|a|al|naar|op) (?:the )?\d{{1,2}}(?:st|nd|rd|th|\.)?(?: (?:of |de )?{MONTH})?\b",
    r"\b(?:it|them|they)\b(?!['’]s\b)|\b(?:her|him)\b(?= (?:i['’]?d|i['’]?ll|that|it|a|by)\b|$|[.,!])",
    r"\b(?:er|ihm|ihn)\b|\bse l[oa]s?\b|\bhem\b|^(?:must|has to|have to|needs? to) be\b|^(?:muss|wird|moet|wordt)\b",
)
"""A promise or an appointment that is understood only together with the sentence before."""

MOVED = any_of(
    r"\b(?:mov(?:ed?|es|ing)|postponed|put (?:me |us |it |them )?off|pushed|shifted|rescheduled|extended|extension"
    r"|brought forward|bring .{1,40} forward|changed?|delayed|slipped)\b",
    r"\b(?:verschoben|verlegt|verschiebt|vorverlegt|verzögert|verlängert|aplazad[oa]|cambiad[oa]|adelantad[oa]"
    r"|retrasad[oa]|verschoven|verplaatst|uitgesteld)\b",
    r"(?:\b(?:is|are|ist|sind)|['’]s|\bits) (?:now|jetzt|nun|nu)\b(?: \w+){0,2} \d|\bahora es\b",
)
NOW = any_of(
    r"\b(?:now|instead|not (?:on )?(?:the )?\d|new date)\b",
    r"\b(?:jetzt|nun|erst (?:am|im)|statt(?= \w)|und nicht|sondern|ahora|en vez de|en lugar de|ya no|nu|pas (?:op )?\d"
    r"|in plaats van)\b",
)
"""Words by which a day may replace another one, as verbs and as weaker signs."""

CIRCUMSTANCE = re.compile(
    r"\b(?:with|for|by|at|in|of|to|mit|bei|für|con|para|met|voor|bij) "
    r"(?:(?:the|my|our|der|dem|den|die|das|el|la|los|de|het) )?[\w'’]+(?: (?-i:[A-ZÀ-Ý])[\w'’]+)*",
    re.IGNORECASE,
)
"""Words before what was moved that do not name it: "the meeting with Greg"."""

FROM_DAY = re.compile(r"\b(?:from|vom|von|van)\b(?:(?!\b(?:to|auf|naar)\b)[^,.;])*$", re.IGNORECASE)
OLD_DAY = re.compile(
    r"\b(?:not|couldn['’]?t|could not|can['’]?t|instead of|rather than|nicht|statt|en vez de[l]?|no (?:vino )?el|niet"
    r"|in plaats van)\b(?:(?!\b(?:but|sondern|sino|maar)\b)[^,.;])*$",
    re.IGNORECASE,
)
"""The words before a day that no longer holds; "from" says so only together with a word such as "moved"."""

NOT_UNTIL = re.compile(
    r"\b(?:\w+n['’]?t|cannot|not|nicht|kein\w*|no|niet|geen)\b[^,.;]* (?:till|until|before|bis|vor|hasta|tot|voor)"
    r"(?: (?:the|zum|dem|el|de))? $",
    re.IGNORECASE,
)
"""The words before a day that ends a hindrance, before a later one that is the new day."""

DAY_THAT_FAILS = re.compile(
    r"^\W*(?:is|was|are|were)? ?(?:no good|not possible|too (?:early|late|soon)|(?:do|did|does|wo|is|was|ca)n['’]?t\b"
    r"|(?:passt|geht|klappt) (?:\w+ )?nicht|(?:lukt|kan|past) (?:\w+ )?niet|no (?:puede|pueden|va))",
    re.IGNORECASE,
)
"""The words after a day that no longer holds."""

NEW_DAY = re.compile(r"\b(?:now|jetzt|nun|ahora|nu)\b[^,.;]*$", re.IGNORECASE)

_GOES = (
    r"(?:(?:has |just |is |has just )?(?:quit|resigned|resigning|retired|retiring|handed in (?:his|her|their) notice"
    r"|(?:leaving|left) (?:us\b|for (?:a|an|another) |the (?:company|team|band|firm|school|practice)))\b"
    r"|(?:has )?(?:died|passed away)\b|(?:hat|haben) gekündigt\b|ist gestorben\b)"
)
"""Verbs after the name of someone who leaves or dies."""

CHANGES = with_one_of(
    necessary.CHANGES,
    r"\b(?:moved?|moving|postponed|changed?|switched|switching|switch|swapped|extended|shifted|migrated|migrating"
    r"|(?:went|gone)(?!.*\bfrom (?:the|an?|my|our|behind|one)\b))\b.*\bfrom\b.+\bto\b(?! the (?:left|right)\b)",
    rf"\binstead of\b(?=.*\b(?:{_NUMBER}|\w+days?)\b)",
    r"\bno longer\b(?! (?:sure|know|care|understand|see|think|remember)\b)|\binstead\b(?=\s*[,.;!]|$)",
    rf"^(?=.*(?:\bnot|n['’]t)\b.*\bany ?more\b)(?!.*\b{_MENTAL}.*\bany ?more).*{I}\b",
    r"\b(?:has|have|was|were|is|are|been|got)\s+(?:been\s+)?(?:postponed|cancell?ed|called off|rescheduled|put off"
    r"|brought forward|extended|replaced)\b",
    rf"\b(?:slides?|slid|slips?|slipped|shifts?|moves?|goes|pushed|bumped)(?: back| forward)? from {MONTH} to {MONTH}\b"
    r"|\bstatt (?!dessen\b)(?:(?-i:[A-ZÄÖÜ])\w+ ){1,2}"
    r"(?:kommt|kommen|verwende[nt]?|nutzt|nutzen|nehmen|nimmt|spielt|leitet)\b",
    rf"{I}(?:['’]ve| have)?{_ADVERBS} (?:engaged|taken on|took on) (?:an? |(?-i:[A-ZÀ-Ý]))|\b(?:tomé|contraté) a \w"
    r"|\b(?!I |We |You |They |Who )(?-i:[A-ZÀ-Ý])\w+(?:['’]s| has| is)?(?: just)? mov(?:ed|ing) (?:in with|out|away)\b",
    rf"{I}(?:['’]ve| have)?{_ADVERBS} passed (?:the|my|our) \w",
    r"\b(?:been|got|gets|was|am|is) (?:transferred|moved) to (?:(?-i:[A-Z])"
    r"|the [\w ]+ (?:branch|ward|team|department|office|unit|site)\b|nights\b|days\b)|\bwent to (?:nights|days)\b",
    r"^(?:so |ok(?:ay)?,? )?going with (?-i:[A-Z])(?![^.;]* to )|\bwe went with (?-i:[A-Z])[\w ]* for (?:the|our)\b",
    rf"\bfrom (?:now on|{MONTH}|next \w+),?\s+(?:it|we|i|they|he|she|on)\b",
    r"\b(?:came|comes?|went|goes|going|gone|got|cut|dropped|fell|fallen|rose|risen|raised|(?:is|are|was|were)(?= down)"
    r"|['’](?:m|re|s)(?= down))"
    r" (?:\w+ ){0,3}?(?:down|up) to \D{0,4}\d"
    r"|\b(?:came|comes?|went|goes|going|gone|down|up|cut|dropped|fell|fallen|rose|risen|raised|lowered|increased|reduced)\b.*"
    r"\bfrom \D{0,4}\d.*\bto \D{0,4}\d|\b(?:cut|raised|lowered|increased|reduced)\b.*\bto \D{0,4}\d(?! ?(?:am|pm)\b)"
    rf"|\d\S* down to \D{{0,4}}\d|\d\S*(?: \w+)? from {MONTH}\b(?! (?:to|until|\d))"
    r"|\bmy last (?:day|night|shift|lesson|class)\b.*\b(?:was|is)\b|\d.*\b(?:up|down) from \D{0,4}\d",
    r"\b(?:took|takes|taking|taken) over (?:from|as)\b|\bfell through\b"
    r"|\b(?:cancelled|called off) (?:my|our|the)\b|\bstarted as an?\b|\bfällt aus\b|\bgaat niet door\b"
    r"|\bchanged (?:my|our) minds?\b|\b(?:not|n['’]t)\b.*\bafter all\b",
    r"\b(?:verschoben|verlegt|verplaatst|verschoven|verzet) (?:auf|naar)\b"
    r"|\b(?:auf|naar) [^.,;]{1,30} (?:verschoben|verlegt|verplaatst|verzet)\b"
    r"|\bfang(?:e|en) (?:\S+ ){0,4}bei (?-i:[A-ZÄÖÜ])\w+ an\b|\b(?:ik ben|ben ik) (?:\S+ ){0,4}begonnen bij\b"
    r"|\b(?:empecé|he empezado) (?:\S+ ){0,4}en (?-i:[A-ZÁÉ])",
    r"\bvon [\d.,]+.{0,12} auf [\d.,]+|\bauf [\d.,]+.{0,12} (?:erhöht|gesenkt|gestiegen|gesunken|gekürzt)\b"
    r"|\bvan \D{0,2}[\d.,]+.{0,12} naar \D{0,2}[\d.,]+"
    r"|\b(?:sub|baj)(?:e|en|ió|ieron|ido|ó|a|an|ado) (?:de .{1,12} )?a \d",
    rf"(?:^(?:and )?|: |[,!] (?:and )?(?=moving|quit)|{I}{_ADVERBS}|{I}['’](?:ve|m|re)(?: just| now| finally)?|\bim)\s*"
    r"(?<!since i )(?<!when i )(?<!before i )(?<!after i )(?:quit|resigned|(?:joined|started at) (?-i:[A-Z])\w*"
    r"|(?:dropped|ditched) (?-i:[A-Z])\w*|leaving (?:the|my)"
    r"|(?:given|gave) up (?!hope|trying|waiting|looking)|stopped using|mov(?:ed|ing) (?:to|in|out|house|away|back)\b"
    r"|switch(?:ed|ing) (?:to|from|jobs)|swapp(?:ed|ing) (?:to|for|over)|signed with|hired"
    r"|migrated (?:to|from)|replaced \w+|sold (?:my|our|the))\b",
    r"\b(?:is|are|['’]re|['’]m|am) moving (?:to|in|out|house|away|back)\b",
    r"\bnew job\b(?<!want a new job)(?<!need a new job)(?<!find a new job)"
    r"(?! (?:would|might|offer|title|search|opportunit))"
    r"|\bgot (?:a|the) (?:new )?job\b",
    r"\b(?:is|are) on [\w ]+ since\b"
    r"|(?:\b(?:is|are|meets?)|['’]s|\bits) (?:on )?(?:mon|tues|wednes|thurs|fri|satur|sun)days? now\b",
    rf"\b{_NUMBER} [\w ]{{2,20}}\bfrom now on\b|\bnow,? not \D{{0,8}}\d"
    rf"|\bwe(?:['’]re| are) {_NUMBER} now\b|\d (?:an?|per) \w+ now\b",
    r"\b(?:gone|went|switched|moved) over to\b(?! \S+['’]s\b| (?:the|my|his|her|him|them|our)\b)"
    r"|\bswapp(?:ed|ing) [\w ]{2,25}? for\b"
    r"|\b(?:has|have) moved to\b",
    r"\bnew (?:[\w-]+ ){1,3}(?:came|arrived|has come|has arrived|is here)\b(?! out)",
    rf"\b(?!I |Don|Never|Just|Can|Did|Nobody|None|Every|Who|They|We |You|Many|Some)"
    rf"(?-i:[A-ZÀ-Ý][a-zß-ÿ’'])[\w’'-]* {_GOES}",
    rf"\b(?:my|our|mein\w*|unser\w*) (?:[\w’'-]+ ){{1,3}}{_GOES}",
    r"^(?=.*\d).*\bstatt (?=\w)|\b(?:en vez|en lugar) de\b.*\d|\bin plaats van\b.*\d",
    r"\b(?:ich|wir|ist|sind|wurde|habe[n]?)\b.*\b(?:umgezogen|gewechselt|gekündigt|abgesagt|aufgehört)\b",
    rf"\b(?:ich|wir)\b(?!.*\bseit\b)(?!.*\b{_MENTAL}.*\bmehr\b)[^,;.]*\b(?:nicht mehr|kein\w* (?:\w+ )?mehr)\b",
    r"\b(?:se ha cambiado|(?:me he|nos hemos) mudado|he dejado|dejé de|cancelad[oa])\b",
    rf"(?:^|[.,;] )ya no (?:(?:me|lo|la|se) )?+(?!{_MENTAL})",
    rf"\b(?:ik|we|wij)\b(?!.*\b{_MENTAL}.*\bmeer\b)[^,;.]*"
    r"\b(?:niet meer|geen (?:\w+ )?meer|opgezegd|verhuisd|gestopt)\b",
    parts=necessary.PARTS_OF_CHANGES,
)
"""Something replaced by something else, and ends and beginnings in the life of the author."""

_NOT_OF_PRONOUN = r"^(?!(?:(?:and|but|so) )?(?:s?he|it|they|sie|er|es|hij|ze)(?:['’]?s|['’]re)?\b)"
QUANTITY_NOW = with_one_of(
    necessary.QUANTITY_NOW,
    rf"{_NOT_OF_PRONOUN}.*\d ?(?P<before>{_UNIT}) now\b",
    rf"{_NOT_OF_PRONOUN}.*\b(?:now|jetzt|nun|ahora|nu)\b[^.;:]{{0,30}}?\b\d[\d.,]* ?(?P<after>{_UNIT})\b",
    r"\b[^\W\d_]{3,} (?:is |are |at |costs? )?[£$€]?\d+[.,]\d+ now\b",
)
"""The present amount of something: "I take 5 mg now", "a flat white is 3.75 now"."""

NEW_VALUES = any_of(
    r"\bit['’]?s (?:an? |the )?(?-i:[A-Z])[\w-]+ now\b|\b(?:my|our|the) [\w ]{2,20} is now (?-i:[A-Z])",
    rf"\b(?:pays?|paying|costs?|wants?|asks?|charges?|gets?|(?:is|are|it['’]?s|its)(?= \D?\d{{3}}| \D?\d+[.,]\d{{3}})) "
    rf"(?:now )?[£$€]?(?:\d[\d.,]*|{_NUMBER}|[a-z]+teen|twenty|thirty|forty|fifty)(?: ?[\w%€]+){{0,3}}? now\b",
    r"\b(?:pays?|paying|costs?|wants?|asks?|charges?|gets?|(?:is|are|it['’]?s|its)(?= now \D?(?:\d{3}|\d+[.,]\d{3})))"
    r" now [£$€]?\d",
    r"\b(?:renegotiated to|(?:agreed|shook|settled) (?:on|at|for)"
    r"|(?:got|talked|knocked) (?!it\b|them\b)(?:\w+ ){1,3}(?:down |up )?to)"
    r" [£$€]?\d",
    rf"\b(?:upped|put|bumped|dropped|lowered|increased|reduced) (?:me|us|it|her|him|(?:my|the|her|his) \w+)"
    rf" (?:up |down )?(?:to|on) \D{{0,20}}?\d[\d.,]* ?(?:{_UNIT})\b",
    rf"^(?:\w+,? )?(?:down|up) to \d[\d.,]* ?(?:{_UNIT})\b"
    r"|\b(?:up|down)(?: again)?, (?:it['’]?s|its|now|to) \D{0,4}\d",
    r"\b(?:steigt|stieg|sinkt|sank|erhöht|gesenkt|runtergehandelt)\b[^,;.]* auf \d"
    r"|\bauf [\d.,]+ (?:runter|rauf|hoch)(?:gehandelt|gegangen|gesetzt)?\b",
    r"\bput(?:ting)? (?:it|them|(?:the|my|our) \w+) (?:up|down) (?:again )?to \D{0,3}\d"
    r"|\b(?:he|she|they|(?-i:[A-ZÀ-Ý])[\w’'-]+)(?: has| have|['’]s|['’]ve)? (?:come|came)"
    rf" (?:(?:down|up) to|back (?:at|with)(?! \d{{4}}\b)) {_MONEY}"
    rf"|\b(?:rent|price|fee|salary|wage) (?:is |['’]s )?(?:now )?back (?:at|to) {_MONEY}"
    rf"|\bnow (?:writes of|wants|asks(?: for)?|offers|pays|charges|demands) {_MONEY}",
    r"\b(?:wants?|needs?|takes|gets?|costs?|pays?|is|are|it['’]?s|its) (?:\w+ )?"
    rf"{_NUMBER}(?: \w+)?,? (?:and )?not {_NUMBER}\b"
    r"|\b(?:not|nicht|niet|no) (?:\w+ )?\d[\d.,]*(?: \w+)? (?:but|sondern|maar|sino) (?:\w+ )?\d",
)
"""A new price, wage, dose or person, with a number or "now"."""

NUMBER_OR_NOW = re.compile(rf"\d|\bnow\b|\bnot {_NUMBER}\b", re.IGNORECASE)

OLD_AND_NEW = any_of(
    r"\bfrom\b.+\bto\b|\binstead\b|\brather than\b|\bnot\b[^.;]*\d|\d[^.;]*\bnot\b|\b(?:up|down) from\b|\bdown to\b",
    rf"\b{_NUMBER}\b[^.;]*\bnot {_NUMBER}\b|\bstatt\b",
    r"\bafter all\b|\bused to\b|\bvo[nm]\b.+\b(?:auf|zu[mr]?)\b|\bde[l]?\b.+\ba[l]?\b.*\d",
    r"\ben (?:vez|lugar) de\b|\bvan\b.+\bnaar\b|\bin plaats van\b",
    rf"\d[^.;]* (?:from|ab|desde|vanaf) (?:now on|{MONTH})\b",
)
"""A change with an old and a new value, or with the day from which the new one holds."""

UNDER_WAY = any_of(r"\b(?:am|is|are|['’](?:m|s|re)) (?:moving|leaving|switching|changing|swapping)\b")
"""A change that is under way or planned, which is over or known some weeks later."""

OF_A_DEVICE = any_of(
    r"\b(?:settings?|time-?outs?|port|pin|baud|fonts?|thermosta\w+|termostato|cv|parameters?|config\w*|batch size"
    r"|layer height|gear ratio|resolution|fps|rpm|volts?|firmware|(?-i:ISO)|[a-z]+_[a-z_]+)\b.*\d",
)
"""The settings and numbers of a device, whose change asks nobody to act."""

LONG_AGO = any_of(
    r"\b(?:for|al|seit|desde hace|hace) (?:[\w-]+ ){0,2}(?:years|decades|jaar|jahren|años)\b",
    r"\byears ago\b|\bvor .{1,15} jahren\b|\b(?:since|seit|desde|sinds) (?:19|20)\d\d\b",
)
"""A change of years ago, which is no news."""

CALLED_OFF = any_of(
    r"\b(?:is|are) off\b(?=[.,;!]|$)",
    r"\b(?:cancel\w*|called off|fell through|abgesagt|fällt aus|anulad[oa]|afgezegd|gaat niet door)\b",
    r"\b(?:not|\w+n['’]t)\b.*\bafter all\b|\bno longer (?:have|has|needs?) to\b",
)
"""Words of a change that ends a plan."""

WITHDRAWS = with_one_of(
    necessary.WITHDRAWS,
    CALLED_OFF.pattern,
    r"\b(?:there is|there['’]s|have) no\b|\bno longer\b|\bany ?more\b|\b(?:won|don|doesn|isn|aren|needn)['’]?t\b",
    r"(?:\b(?:am|is|are|will|do|does|need)|['’][mrs]e?) not\b|\bnicht\b|\bkeine?n?\b|\bya no\b"
    r"|\bno (?:hay|voy|vamos|tengo)\b|\bgeen\b|\bniet\b",
    parts=(necessary.PART_OF_WITHDRAWS,),
)
"""A sentence that negates or cancels a plan; what is not done yet is still planned."""

_PLACE = r"(?P<value>(?-i:[A-ZÀ-Ý])[\w'’-]+(?:(?: (?:de|da|do|la|of|the))? (?-i:[A-ZÀ-Ý])[\w'’-]+)*)"
_COMPANY = r"(?P<value>(?-i:[A-ZÀ-Ý0-9])[\w'’&-]*(?: (?-i:[A-ZÀ-Ý])[\w'’&-]+)*)"
FACTS = (
    (
        "home",
        with_one_of(
            "live living based", rf"(?:{I}(?:['’]\w+)?(?: \w+)? |, |^)(?:live|living|based) (?:in|at) {_PLACE}"
        ),
    ),
    (
        "work",
        with_one_of(
            "signed",
            r"\bsigned with (?!the|my|our|an?\b)(?P<value>[\w'’&-]+(?: (?-i:[A-ZÀ-Ý])[\w'’&-]+)*)",
        ),
    ),
    (
        "work",
        with_one_of(
            "work job",
            r"(?:\bi work (?:at|for)|(?:\bi|^|,)(?: just)? ?got a job at) (?:the )?"
            r"(?P<value>[\w'’&-]{3,}(?: (?-i:[A-ZÀ-Ý])[\w'’&-]+)*)",
        ),
    ),
    (
        "work",
        with_one_of(
            "at for",
            r"\b(?:i teach(?: \w+)?|(?:i['’]?m|i am) an? (?!bit|little|lot|big"
            r"|huge)[\w-]+(?: [\w-]+){0,2}(?= at)|dev|developer|engineer"
            rf"|(?:a|my|the|staff) job) (?:at|for) (?:the )?{_COMPANY}",
        ),
    ),
)
"""Attributes of the person, of which only the latest value holds."""

MOVED_TO = with_one_of("moved moving", rf"{I}(?:['’]ve|['’]re| are|['’]m| am)?{_ADVERBS} mov(?:ed|ing) to {_PLACE}")
"""A new home, if the value is a place."""

LEAVES = any_of(r"\b(?:quit|left|leaving|leave|resigned|moved|moving|gekündigt|verlassen|dejé|dejado|vertrokken)\b")
"""A change that ends the value of a fact, if it names that."""

NOT_A_FACT = re.compile(r"\b(?:lost|may|used to|back then|from)\b", re.IGNORECASE)
NEGATED = any_of(r"\b(?:not|never|no longer|nothing|nobody|cannot|\w+n['’]t|dont|wont|cant|nicht|kein\w*|niet|geen)\b")

NEVER = with_one_of(
    necessary.NEVER,
    rf"{I}(?:['’]m|['’]ve| have| am)? never\b|{I}\b.{{0,20}}\b(?:don['’]?t|do not|can['’]?t"
    rf"|cannot)\b.*\b(?:any ?more|at all|ever)\b",
    rf"{I}(?:['’]ve| have)?(?: just)? (?:quit|stopped|given up|gave up|swore off|sworn off)\b",
    r"\b(?:i['’]?m|i am|been|became|went|turned)\b.{0,15}\b(?:vegetarian|vegan|teetotal|pescatarian)\b"
    r"|\bzero caffeine\b|\bno \w+ at all\b|\b(?:no|keine?n?) \w+ (?:for|until|für|mehr)\b",
    rf"{I} (?:don['’]?t|do not) (?:eat|drink|smoke|drive|fly|use|watch|work|allow|do|touch|buy)\b"
    rf"|{I} hate\b|{I}(?:['’]m|['’]re| am| are) off\b.*\b(?:for (?:good|ever)|forever|completely)\b",
    r"\b(?:allergic to|intolerant)\b",
    r"\b(?:no|nunca) (?:como|bebo|fumo|tomo|conduzco|vuelo)\b(?! (?:yo|tú|él|ella|nada|antes|bien|mal)\b)",
    r"(?:\bich\b(?: \w+){0,6}? |^ ?)(?:esse|trinke|rauche|arbeite|fahre|benutze)\b.*"
    r"\b(?:nie|niemals|kein\w*|nicht mehr)\b|\bnunca\b",
    r"\bik (?:eet|drink|rook|rijd|vlieg)\b.*\b(?:nooit|geen|niet)\b",
)
HABIT_FREQUENCY = with_one_of(
    necessary.HABIT_FREQUENCY,
    r"\b(?:every|each)\b|\balways\b|\b(?:a|per) (?:day|week)\b|\b(?:daily|weekly|usually|nowadays|these days"
    r"|tradition|best thing ever)\b",
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days\b|\bnew normal\b|\bjede[nrs]?\b|\bcada\b|\bimmer\b",
)
_ATE_ES = r"\b(?:comí|comimos|bebí|bebimos|fumé|probé|pedí|(?:he|hemos) (?:comido|bebido|fumado|probado|pedido))\b"
EVENT_PAST = with_one_of(
    necessary.EVENT_PAST,
    rf"{I}\s+(?:had|ate|drank|drove|flew|smoked|bought|ordered|watched|worked|ran|tried|enjoyed|shared|tasted)\b",
    r"\b(?:ich|wir)\b.*\b(?:gegessen|getrunken|geraucht|gekauft|bestellt|probiert|aß|trank)\b",
    r"\b(?:ik|we|wij)\b.*\b(?:gegeten|gedronken|gerookt|gekocht|besteld|geproefd|at|dronk)\b",
    rf"{_ATE_ES}",
)
OF_AUTHOR = any_of(
    rf"{I}\b|\bus\b|(?<!^)\b(?:my|our)\b|^(?:pork|sushi|had|back|on)\b", r"\b(?:ich|wir|yo|ik|wij)\b", _ATE_ES
)
"""A sentence about the author: not "my daughter eats fish every Friday"."""

SUBSTITUTE = any_of(
    r"\b\w+-free\b(?: \w+)?|\b(?:almond|oat|soy|coconut|rice|vegan|veggie|plant-based|decaf\w*|non-?alcoholic) \w+"
    r"|\b(?:without|ohne|sin|zonder)\b(?: (?:the|any|my|el|la|de|het))? \w+|\bdecaf\b|\b\w+frei\w*"
)
"""Things that replace a member of a class, and do not belong to it."""
