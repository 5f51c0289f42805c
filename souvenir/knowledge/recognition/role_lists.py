"""The role that each of a group has: "my friends Ada and Bo"."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ENGLISH = (
    "brothers sisters sons daughters cats dogs friends cousins neighbours neighbors colleagues coworkers co-workers "
    "classmates flatmates roommates housemates bandmates teammates aunts uncles nieces nephews grandsons "
    "granddaughters managers teachers clients customers students pupils assistants apprentices tenants kittens "
    "horses parents boys girls"
)
_OTHERS = (
    "kids child|children child|grandkids grandchild|grandchildren grandchild|puppies puppy|bosses boss"
    "|schwestern Schwester|töchter Tochter|töchtern Tochter|freundinnen Freundin|kolleginnen Kollegin"
    "|nachbarinnen Nachbarin|brüder Bruder|brüdern Bruder|söhne Sohn|söhnen Sohn|kinder Kind|kindern Kind"
    "|hermanas hermana|hijas hija|amigas amiga|primas prima|vecinas vecina"
    "|zussen zus|broers broer|dochters dochter|zonen zoon|zoons zoon|vriendinnen vriendin|kinderen kind"
    "|collega's collega"
)
_SINGULAR: Mapping[str, str] = {
    **{word: word[:-1] for word in _ENGLISH.split()},
    **{words.split()[0]: words.split()[1] for words in _OTHERS.split("|")},
}
_MIXED = frozenset(
    "freunde freunden kollegen nachbarn hermanos hijos amigos primos vecinos compañeros vrienden buren".split()
)
"""Plurals of which the singular depends on who is meant, or says less."""

GROUPS = "|".join(sorted(_SINGULAR.keys() | _MIXED, key=len, reverse=True))
"""The nouns for several people or pets, as a pattern."""

GROUP_WORDS = " ".join(re.split(r"\W", word)[0] for word in GROUPS.split("|"))

_OF_THE_AUTHOR = frozenset("my our got have of".split())
_NUMBERS = frozenset("two three four five six both zwei drei vier dos tres cuatro twee drie vier".split())
_OWNER = {"mis": "mi", "nuestras": "nuestra", "nuestros": "nuestro", "sus": "su"}
_GERMAN_OWNER = re.compile(r"(mein|unser|dein|sein|ihr)e[nrm]?", re.IGNORECASE)
_FEMININE = ("Schwester", "Tochter", "in")


def role_of_member(role: str, group: str, owner: str) -> str | None:
    """Return the role of one of a group in the singular; None if it has none.

    :param role: Words from the owner to the group: "my two old friends".
    """
    own = owner.lower() if "'" not in owner and "’" not in owner else owner
    own = "your" if own in _OF_THE_AUTHOR else own
    noun = _SINGULAR.get(group.lower())
    if noun is None:
        return None
    if german := _GERMAN_OWNER.fullmatch(own):
        own = german[1] + ("e" if noun.endswith(_FEMININE) else "")
    between = [word for word in role.split()[1:-1] if not word.isdigit() and word.lower() not in _NUMBERS]
    return " ".join([_OWNER.get(own, own), *between, noun])
