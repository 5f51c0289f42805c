"""The words by which statements are compared: classes of things that people rule out, and words that are no subject."""

from __future__ import annotations

_MEMBERS = {
    "fish": "sushi salmon tuna cod prawns prawn shrimp seafood mackerel sardines anchovies sashimi trout fisch lachs "
    "thunfisch pescado salmón vis zalm",
    "meat": "pork beef chicken bacon ham steak burger sausage sausages lamb turkey kebab salami schnitzel fleisch "
    "wurst carne vegetarian vegan vlees",
    "coffee": "coffees espresso espressos latte cappuccino caffeine americano kaffee café koffie",
    "alcohol": "beer wine whisky gin cocktail cocktails champagne bier wein cerveza vino teetotal pint pints wijn",
    "smoke": "cigarette cigarettes smoking smoked rauche rook",
    "sugar": "cake chocolate sweets dessert candy zucker schokolade kuchen suiker",
    "screen": "screens tv telly television youtube netflix bluey ipad tablet cartoon cartoons peppa",
    "weekend": "weekends saturday saturdays sunday sundays wochenende samstag sonntag",
    "dark": "night nights midnight dunkel nachts",
    "drive": "drove driving driven fahre gefahren",
    "milk": "cheese yoghurt yogurt cream dairy lactose milch käse",
    "gluten": "bread pasta pizza bun brot",
    "fly": "flying flight flights flew plane planes fliege geflogen volar",
    "gym": "gyms treadmill",
    "meeting": "meetings call calls",
}
CLASS_OF = {word: name for name, words in _MEMBERS.items() for word in (name, *words.split())}
"""The class of a thing that people rule out, by the words that name a member of it."""

COMPOUND_HEADS = tuple(
    word for word, name in CLASS_OF.items() if name in ("fish", "meat", "alcohol", "sugar") and len(word) > 4
)
"""Words that name a member of a class at the end of a compound too: "Rumpsteak", "Bratwurst"."""

CONSUMED = frozenset("fish meat coffee alcohol sugar screen milk gluten smoke".split())
"""Classes that are compared without the verb: "has sushi" contradicts "eats no fish"."""

GENERIC = (
    "book books booked booking quit longer sorry annoying thankfully unfortunately luckily shook agreed settled "
    "i'm i'll i've i'd also again all any anything about after ago been before by down get give gave given go gone "
    "good got great have just know let lol made make much my new next now ok one our out off over please quick really "
    "say said so some something still sure take taken tell than thank thanks that then there thing things think time "
    "told too two up us very want way week weeks weekend well while work year years yes you your day days month "
    "morning night today tomorrow her him them it he she they we me not no never ani more because but can could do "
    "done due first last promise promised need must owe remind send sent bring brought write wrote call put moved "
    "move will would should into if only ever im ill id instead don't didn't won't can't isn't am pm use big both "
    "right left little lot th st nd rd end going gonna went come came back asked ask monday tuesday wednesday "
    "thursday friday saturday sunday january february march april may june july august september october november "
    "december jan feb mar apr jun jul aug sept oct nov dec ich du er sie es wir ihr mir mich ihm ihn der die das dem "
    "den des ein eine einen einem einer und oder aber nicht auch noch schon bis zum zur von vom für mit auf aus bei "
    "nach vor ist sind war hat habe haben wird werde soll muss wurde worden findet jetzt erst dann wie was dass da "
    "doch ja nein versprochen statt kommt januar februar märz mai juni juli oktober dezember montag dienstag mittwoch "
    "donnerstag freitag samstag sonntag ende woche tag uhr el la los las un una y o pero de del al en con por para "
    "que se lo le les te nos mi su son está ha antes ahora ya muy más tengo prometí viene voy daría enero febrero "
    "marzo abril mayo junio julio agosto lunes martes miércoles jueves viernes sábado domingo septiembre octubre "
    "noviembre diciembre semana día ik jij hij zij wij het een of maar niet geen ook nog tot op van voor met aan uit "
    "bij naar is zijn heeft heb hebben wordt moet nu pas dan dat dit beloofd gaat gaan komt maart mei augustus "
    "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag dag tmrw heute hoy vandaag"
)
"""Words that are no subject of a sentence."""

_EVENTS = (
    "open eroffnung eroffnen eroffnet apertura abrimo abro inauguracion",
    "wed marri hochzeit heirat heiraten heiratet boda casa casan casamo bruiloft trouwen trouwt",
    "exam test examin resit prufung klausur examen tentamen toet",
    "gig show play concert perform konzert auftritt spielen concierto tocamo optreden spelen",
    "deliv deliveri lieferung liefern liefert geliefert lever leveren levert entrega entregan entregar",
    "trip travel journey reis reisen viaj viajar viajo viajamo rei",
    "surgeri oper operiert operieren operan operacion opereren geopereerd operati",
    "flight fliegen flieg fliegt flug volar volamo vuelo vuelan vliegen vlieg vliegt vlucht",
    "umzug umziehen zieh ziehen mudanza mudamo verhuiz verhuizen verhui verhuist",
    "start begin beginn beginnt beginnen anfangen fangt empieza empiezo empezamo comienzo comienza begint",
    "meet appoint termin treffen treff cita reunion afspraak",
)
EVENT_OF = {term: terms.split()[0] for terms in _EVENTS for term in terms.split()}
"""The kind of an event by the index terms of its nouns and verbs, by which a later sentence may name it."""

COMMON_EVENTS = frozenset(("start", "meet"))
"""Kinds of events of which people have several at a time."""
