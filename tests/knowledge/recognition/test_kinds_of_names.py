"""The kinds of names and nouns, in four languages and Chinese, in capitals and in small letters.

Zorblax and Quibbix are in no list: their kind comes from the text alone.
"""

from __future__ import annotations

from souvenir.core.types import ConceptKind
from souvenir.knowledge.recognition.extraction import mentioned
from tests.cases import for_all

KINDS: list[tuple[str, dict[str, str]]] = [
    # Names, relatives and things with a name.
    ("Mrs Jones phoned.", {"mrs jones": "person"}),
    ("My doctor, Dra. Zorblax, rests.", {"dra zorblax": "person"}),
    ("Will is my brother.", {"will": "person"}),
    ("Will Ann stay till Monday? Will Smith says so.", {"ann": "person", "will smith": "person"}),
    ("i had lunch with my friend sara in lisbon", {"sara": "person", "lisbon": "place"}),
    ("My mum turns 60 in May.", {"mum": "person"}),
    ("My dog has a cold.", {"dog": "animal"}),
    ("Mein Hausarzt Dr. Weber hat Zeit.", {"dr weber": "person"}),
    ("I go to the LGBTQ center.", {"lgbtq center": "organisation"}),
    ("Lumen & Oak Partners want a refund.", {"lumen & oak partners": "organisation"}),
    ("We moved to PostgreSQL 16.", {"postgresql 16": "product"}),
    ("I bought a Pixel 9.", {"pixel 9": "product"}),
    ("I run the Great North Run.", {"great north run": "event"}),
    ('I read "The Three-Body Problem".', {"three body problem": "work"}),
    ("Meine Schwester Anneliese wohnt in Nürnberg.", {"anneliese": "person", "nurnberg": "place"}),
    ("Der Fußballverein hat ein neues Trikot.", {"fussballverein": "organisation"}),
    ("Mi marido trabaja en Iberdrola y mi abuela vive en Sevilla.", {"marido": "person"}),
    ("Voy al club de lectura con mi hermana Inés.", {"club de lectura": "organisation"}),
    (
        "我妈妈在北京协和医院工作，李娜下周去上海出差。",
        {"妈妈": "person", "李娜": "person", "北京协和医院": "organisation", "上海": "place"},
    ),
    ("我在读《三体》。", {"三体": "work"}),
    ("住在春熙路附近方便吗？", {"春熙路": "place"}),
    ("我的膝盖手术很顺利。", {"膝盖手术": "phrase"}),
    ("豆豆又吐毛球了。", {"豆豆": "name"}),
    # The kind that a text gives a name precedes that of the lists.
    ("Newton is our tortoise.", {"newton": "animal"}),
    ("Kofi is a volunteer at the library, Ines is allergic to cats.", {"kofi": "person", "ines": "person"}),
    ("My cat is called Pixel.", {"pixel": "animal"}),
    ("The venue is Oslo 21, and my gym is Zorblax.", {"oslo 21": "place", "zorblax": "organisation"}),
    ("My boss is Paris Quibbix.", {"paris quibbix": "person"}),
    ("At my gym Anna said hello. Anna & Rui train.", {"anna": "person", "anna & rui": "person"}),
    ("I buy the tickets for August, she said.", {"august": "name"}),
    ("A lady named Constance Heath claims to be my cousin.", {"constance heath": "person"}),
    ("My supplier Halden Parts is late.", {"halden parts": "organisation"}),
    ("Eine Nutzungsänderung ist nicht nötig.", {"nutzungsanderung": "phrase"}),
    ("Volk 2 ist sehr schwach.", {"volk 2": "phrase"}),
    ("We walked to Newton. Newton is our tortoise.", {"newton": "animal"}),
    ("Our dog Paris is ill. Paris loves cheese.", {"paris": "animal"}),
    ("I wrote to DSB, a Danish authority.", {"dsb": "organisation"}),
    ("In Berlin, my sister and I met Anna.", {"berlin": "place"}),
    ("I joined a gym.", {"gym": "organisation"}),
    ("Send it to Zorblax & Quibb.", {"zorblax & quibb": "organisation"}),
    ("Mi hermana está en el Hospital La Paz.", {"hospital la paz": "organisation"}),
    ("My new boss wants it.", {"boss": "person"}),
    ("J. Okafor called.", {"j okafor": "person"}),
    ("I met John A. Zorblax there.", {"john a zorblax": "person"}),
    ("Zorbla-san wrote to us.", {"zorbla san": "person"}),
    ("The garage in Zorblax has it.", {"zorblax": "place"}),
    ("I flew to Zorblax.", {"zorblax": "place"}),
    ("我妈今天来。", {"我妈": "person"}),
    ("行政部的小陈说好。", {"小陈": "person"}),
    ("我在市二医院上班。", {"市二医院": "organisation"}),
    ("I went to a support group yesterday.", {"support group": "organisation"}),
    ("LGBTQ groups are great.", {"lgbtq": "phrase"}),
    ("Im Leineblick ist eine Frau zuständig.", {"leineblick": "phrase"}),
    # Titles, and what is called by a name or has one.
    ("Georgia did a lap of the kitchen.", {"georgia": "person"}),
    ("The lights went off and Verna DANCED.", {"verna": "person"}),
    ("Name: Anna Zorblax\nClub: Zorblax Harriers", {"anna zorblax": "person", "zorblax harriers": "organisation"}),
    ("I train for Zorblax in May with my friends.", {"zorblax": "name"}),
    # Nouns for a person or a firm.
    ("Our contractor is Zorblax Quibb.", {"zorblax quibb": "organisation"}),
    ("My publisher, Zorblax, wants three chapters.", {"zorblax": "organisation"}),
    ("The landlord is Zorblax Property.", {"zorblax property": "organisation"}),
    # Organisations with and without a name, by their nouns and frames.
    ("I had a picnic with friends from church.", {"church": "organisation"}),
    ("He wants to join the military.", {"military": "organisation"}),
    ("We visited a veteran's hospital.", {"veteran hospital": "organisation"}),
    ("The orchestra rehearses at noon.", {"orchestra": "organisation"}),
    ("My hiking group left.", {"hiking group": "organisation"}),
    ("I went to a LGBTQ activist group.", {"lgbtq activist group": "organisation"}),
    ("My team won.", {"team": "organisation"}),
    ("She left the law firm.", {"law firm": "organisation"}),
    ("My nonprofit failed.", {"nonprofit": "organisation"}),
    ("The school board voted.", {"school board": "organisation"}),
    ("Our bank lends nothing.", {"bank": "organisation"}),
    ("We work at a local bakery.", {"bakery": "organisation"}),
    ("They owe the Lantern Guild 300 coins.", {"lantern guild": "organisation"}),
    ("Anne at Kimura Foods is an intern.", {"kimura foods": "organisation"}),
    ("I am insured with Zorblax.", {"zorblax": "organisation"}),
    ("Zorblax charges too much.", {"zorblax": "organisation"}),
    ("I want roles at Netflix and Zorblax.", {"zorblax": "organisation"}),
    ("Anna bought it at lidl.", {"lidl": "organisation"}),
    ("Zorblax's admins sit there.", {"zorblax": "organisation"}),
    ("Zorblax want everything as a table.", {"zorblax": "organisation"}),
    ("Our group, Zorblax, meets there.", {"zorblax": "organisation"}),
    ("she works at zorblax", {"zorblax": "organisation"}),
    ("Wir klagen gegen das Jugendamt.", {"jugendamt": "organisation"}),
    ("La clínica veterinaria del Carmen abre hoy con mi hermana.", {"clinica veterinaria del carmen": "organisation"}),
    ("Se lo paso al estudio Arce y Luján.", {"estudio arce y lujan": "organisation"}),
    ("我在华为工作。", {"华为": "organisation"}),
    ("Zorblax Nursing Homes: eleven sites", {"zorblax nursing homes": "organisation"}),
    ("Wir bauen das bei Zorblax Elektrotechnik ein.", {"zorblax elektrotechnik": "organisation"}),
    ("Van Zorblax Logistiek stopt met het werk.", {"van zorblax logistiek": "organisation"}),
    ("ZBX offered me a job.", {"zbx": "organisation"}),
    # Products, by their frames.
    ("Renovate opens requests every week.", {"renovate": "name"}),
    ("The cut is in Resolve now.", {"resolve": "name"}),
    ("I keep it in 1Password.", {"1password": "product"}),
    ("I paid for Grammarly Premium, then for Zorbly.", {"grammarly premium": "product", "zorbly": "name"}),
    ("Using Strong for my sets.", {"strong": "product"}),
    ("NDA with Zorblax: keep quiet.", {"zorblax": "name"}),
    ("we use Node.js and macOS and `numpy`", {"node.js": "product", "macos": "product", "numpy": "product"}),
    ("I sold my Volvo.", {"volvo": "product"}),
    ("I bought a second-hand Zorblax.", {"zorblax": "product"}),
    ("My Zorblax XR200 hums.", {"zorblax xr200": "product"}),
    ("She will want Mac because Olivia has Mac.", {"mac": "product"}),
    ("An Omega wristwatch lay there.", {"omega": "product"}),
    ("I know a library like Helmet.", {"helmet": "product"}),
    ("Tiles come from MapTiler.", {"maptiler": "product"}),
    ("I know Alasdair MacInnes and McKay.", {"mckay": "name"}),
    ("We tried Quill 3.11 there.", {"quill": "product"}),
    ("Two iPads broke.", {"ipads": "product"}),
    ("Wij werken met Zorblax.", {"zorblax": "name"}),
    ("The files of Axios, Zorblax and Quibbix arrived.", {"quibbix": "product"}),
    ("They want XML, not Word.", {"word": "product"}),
    ("We sold our Zorblax.", {"zorblax": "product"}),
    # The clause around a name tells its kind.
    ("The interview for the Senior Zorblax position is over.", {"senior zorblax": "name"}),
    ("The vet at Zorblax said it heals.", {"zorblax": "organisation"}),
    ("The call with Zorblax moved to Thursday.", {"zorblax": "name"}),
    ("The Zorblax contract is signed.", {"zorblax": "organisation"}),
    ("Hab den Ranzen bei Zorblax bestellt.", {"zorblax": "organisation"}),
    ("Ich war bei Heizung Kramer.", {"heizung kramer": "organisation"}),
    ("La silla la compré en Zorblax ayer.", {"zorblax": "organisation"}),
    ("The hike from Zorblax to Quibbix is long.", {"quibbix": "place"}),
    ("Dinner at the Zorblax was lovely.", {"zorblax": "place"}),
    ("Wir fahren im August nach Zorblax.", {"zorblax": "place"}),
    ("I read them in Zorblax.", {"zorblax": "product"}),
    ("The tickets are on Zorblax.", {"zorblax": "product"}),
    ("Ich habe es mit Zorblax erstellt.", {"zorblax": "product"}),
    ("I ordered it on Ebay.", {"ebay": "product"}),
    ("Sie geht in die Waldkita Zorblax.", {"waldkita zorblax": "organisation"}),
    ("Zij zit op basisschool Zorblax.", {"zorblax": "organisation"}),
    ("Wir sind bei Oma in Bad Zorblax.", {"bad zorblax": "place"}),
    ("I set up authentication with Zorblax.", {"zorblax": "product"}),
    ("Ik ben verwezen naar het Zorblax.", {"zorblax": "organisation"}),
    ("The glossary is in zorblaQ.", {"zorblaq": "product"}),
    ("They have a flat in Zorblax.", {"zorblax": "place"}),
    ("We stopped in Zorblax, Portugal, on the way.", {"zorblax": "place"}),
    ("Ik lees de krant op Zorblax.", {"zorblax": "product"}),
    ("The Dyson makes a noise.", {"dyson": "product"}),
    ("Hij wil de oude Volvo verkopen.", {"volvo": "product"}),
    ("i went to currys, it was shut", {"currys": "organisation"}),
    ("heb net een mail van vattenfall gekregen", {"vattenfall": "organisation"}),
    # Names in small letters, where no common word may stand.
    ("my kindle died", {"kindle": "product"}),
    ("Now dhl lost it.", {"dhl": "organisation"}),
    ("the apple watch is mine", {"apple watch": "product"}),
    ("First Direct called me.", {"first direct": "organisation"}),
    # Chinese.
    ("比Excel方便多了", {"excel": "product"}),
    ("新买的小米14拍照不错", {"小米14": "product"}),
    ("戴森吹风机坏了", {"戴森": "product"}),
    ("我换了一台戴森", {"戴森": "product"}),
    ("孩子在朝阳实验小学读书", {"朝阳实验小学": "organisation"}),
    ("我买了辆红旗H5", {"红旗h5": "product"}),
    ("我晚点发飞书给你", {"飞书": "product"}),
    ("她报了小提琴课", {"小提琴课": "phrase"}),
    ("周末的夏令营还没有通知", {"夏令营": "event"}),
    # Nouns for a particular organisation or place.
    ("He adopted her from a shelter.", {"shelter": "organisation"}),
    ("I opened my own studio.", {"studio": "organisation"}),
    ("Pharmacy changed my pills.", {"pharmacy": "organisation"}),
    ("It is by the station.", {"station": "place"}),
    ("They fixed our town.", {"town": "place"}),
    ("bei der kdv war heute zu", {"kdv": "organisation"}),
    ("we slept well in bad aibling", {"bad aibling": "place"}),
    ("Der Parkplatz am Kaufhaus war voll.", {"parkplatz": "phrase"}),
    # Streets.
    ("Ich wohne in der Zorblaxstraße 12 in Köln.", {"zorblaxstrasse 12": "place"}),
    ("ik woon aan de zorblaxgracht", {"zorblaxgracht": "place"}),
    ("他住在春熙大道附近", {"春熙大道": "place"}),
    # Names with a capital inside or a version.
    ("They use zorbVet at the clinic.", {"zorbvet": "product"}),
    ("I read the sheets in forZorb now.", {"forzorb": "product"}),
    ("We load it with zorbizes v5.3.2.", {"zorbizes": "product"}),
    # Firms in small letters, after a preposition.
    ("der schrank von fliesen-zorbler", {"fliesen zorbler": "organisation"}),
    ("bij bakkerij zorbler gehaald", {"bakkerij zorbler": "organisation"}),
    ("beim radhaus zorbler kostet das weniger", {"radhaus zorbler": "organisation"}),
    ("ich geh gleich zu fliesen-zorbler in der stadt", {"fliesen zorbler": "organisation"}),
    ("got the sofa from zorbler & quibb", {"zorbler & quibb": "organisation"}),
    ("got the sofa from lisbon & zorbler", {"lisbon & zorbler": "organisation"}),
    ("dongels van tp-link", {"tp link": "organisation"}),
    # Noun phrases, by their singular and without descriptive adjectives.
    ("My kids love video games!", {"video game": "phrase"}),
    ("The two women took the camping stove to Rome.", {"camping stove": "phrase"}),
    ("They are into camping.", {"camping": "phrase"}),
    ("Allergic to peanuts", {"peanut": "phrase"}),
    ("She had fish tacos and raspberry frosting.", {"raspberry frosting": "phrase"}),
    # Identifiers.
    ("Look at src/api/app.py", {"app.py": "code"}),
    ("the user_name column", {"user_name": "code"}),
    ("call getUserName() twice", {"getusername": "code"}),
    ("We run v2.1.0 there", {"v2.1.0": "code"}),
    ("see https://www.example.com/a?b=c", {"example.com": "code"}),
    ("look at Main.js", {"main.js": "code"}),
    ("I write C++", {"c++": "code"}),
    ("use `useState` there", {"usestate": "code"}),
]


NO_KINDS = [
    # Words that are also names.
    ("I want to excel in it", "organisation product"),
    ("the best buy yet", "organisation product"),
    # Chinese words without a particular meaning.
    ("公司今年上市了", "name person place product"),
    ("客服说明天修手机", "name person place product"),
    ("同事和邻居都来", "name person place product"),
    # Nouns for no particular organisation or place.
    ("Cars fill the city.", "organisation place"),
    ("I pick from a group of five.", "organisation place"),
    ("We need a hotel.", "organisation place"),
    # Nouns that end like streets.
    ("en la calle hace frío", "place"),
    ("trabajo en plaza fija", "place"),
    # Code and figures.
    ("We loop with forEach there.", "product"),
    ("My body-fat is 22.5 now.", "product"),
    ("It supports 1.2.3 only.", "product"),
    # Emphasis.
    ("I LOVE MY DOG AND MY GARDEN", "name"),
]


def kinds(text: str) -> dict[str, ConceptKind]:
    return {mention.key: mention.kind for mention in mentioned(text)}


@for_all("text, wanted", KINDS)
def test_names_and_nouns_have_a_kind(text: str, wanted: dict[str, str]):
    found = kinds(text)
    assert {key: found.get(key) for key in wanted} == wanted


@for_all("text, unwanted", NO_KINDS)
def test_other_words_are_not_of_these_kinds(text: str, unwanted: str):
    assert not {*unwanted.split()} & {*kinds(text).values()}


@for_all(
    "text",
    [
        "bei autohaus gekauft",
        "beim friseur gewesen",
        "zu salz & pfeffer",
        "bij bakkerij bestellen",
        "from salt & vinegar",
        "van brood & kaas",
    ],
)
def test_other_words_after_a_preposition_and_a_trade_are_no_names(text: str):
    assert not [key for key in kinds(text) if " " in key]
