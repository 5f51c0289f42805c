"""Words of which a sentence has one if it matches a pattern of statements, for `WordPattern`.

Each list has a word of every alternative of its pattern, in all the forms that the pattern permits. A word counts only
if the pattern has a boundary at both of its ends; where it has none, a part of the word is listed.
"""

from __future__ import annotations

HYPOTHETICAL = (
    "rewrite write translate draft proofread rephrase schreib schreibe übersetz übersetze escribe redacta traduce "
    "schrijf vertaal if when should could would can may shall what how which who where why do does is are ob wenn als "
    "si unless might maybe perhaps wish hopefully imagine suppose sure case wondering kidding joking falls vielleicht "
    "eventuell würde würden könnte könnten wäre hätte hätten scherz quizá quizás vez mejor ojalá podría broma "
    "misschien stel zou zouden grapje"
)
INDIRECT_QUESTION = "if"
CHANGES = (
    "from instead longer any anymore postponed canceled cancelled called rescheduled put brought extended replaced up "
    "down cut raised lowered increased reduced last took takes taking taken fell started fällt gaat changed after "
    "verschoben verlegt verplaatst verschoven verzet fange fangen begonnen empecé empezado von auf van moving job "
    "since now over swapped swapping moved came arrived come here retired retiring handed leaving left died passed "
    "gekündigt gestorben statt vez lugar plaats umgezogen gewechselt abgesagt aufgehört mehr cambiado mudado dejado "
    "dejé cancelado cancelada ya meer opgezegd verhuisd gestopt "
    "engaged took transferred nights days got going went tomé contraté "
    "sube suben subió subieron subido subó suba suban subado baje bajen bajió bajieron bajido bajó baja bajan bajado"
)
PARTS_OF_CHANGES = (
    *("quit", "resign", "joined", "started at", "dropped", "ditched", "leaving", "given up", "gave up", "stopped"),
    *("moved", "moving", "switch", "swapp", "signed with", "hired", "migrated", "replaced", "sold"),
)
"""Verbs that the author may write without a blank before them: "Iquit"."""

QUANTITY_NOW = "now jetzt nun ahora nu"
WITHDRAWS = (
    "off called through abgesagt fällt anulado anulada afgezegd gaat after longer no any anymore won don doesn isn "
    "aren needn wont dont doesnt isnt arent neednt not nicht kein keine keinn keinen geen niet"
)
PART_OF_WITHDRAWS = "cancel"
EVENT = (
    "appointment appointments dentist doctor gp physio vet hairdresser haircut going meeting interview exam resit "
    "viva dinner lunch brunch concert gig rehearsal audition recital premiere flight wedding funeral party birthday "
    "surgery operation scan mri biopsy check checkup viewing inspection hearing presentation webinar workshop "
    "conference tournament graduation ceremony date call session match driving termin zahnarzt arzt besprechung "
    "prüfung klausur hochzeit beerdigung konzert probe vorstellungsgespräch elternabend treffen verabredung "
    "abendessen mittagessen geburtstag flug taufe besichtigung cita dentista médico reunión entrevista examen cena "
    "comida boda concierto vuelo ensayo cumpleaños operación afspraak tandarts huisarts vergadering sollicitatie "
    "sollicitatiegesprek tentamen etentje bruiloft begrafenis optreden repetitie vlucht verjaardag operatie "
    "bezichtiging fly flying traveling travelling see seeing meet visit visiting leave leaving fliege fliegen "
    "verreise verreisen volamos viajo viajamos quedado quedo vlieg vliegen"
)
PARTS_OF_EVENT = ("termin", "prüfung", "besprechung", "probe")
NEVER = (
    "never any anymore all ever quit stopped given gave swore sworn vegetarian vegan teetotal pescatarian zero no kein "
    "keine keinn keinen don dont do hate off allergic intolerant nunca esse trinke rauche arbeite fahre benutze ik"
)
HABIT_FREQUENCY = (
    "every each always day week daily weekly usually nowadays days tradition best mondays tuesdays wednesdays "
    "thursdays fridays saturdays sundays normal jede jeden jeder jedes cada immer"
)
EVENT_PAST = (
    "had ate drank drove flew smoked bought ordered watched worked ran tried enjoyed shared tasted gegessen getrunken "
    "geraucht gekauft bestellt probiert aß trank gegeten gedronken gerookt gekocht besteld geproefd at dronk comí "
    "comimos bebí bebimos fumé probé pedí comido bebido fumado probado pedido"
)
STEP = (
    "turned turns refused rejected approved reckon reckons wrote spoke talked hab habe haben hat wurde wurden bin "
    "ist sind heb hebben heeft werd meint meinte lehnt zei dijo ha han he hemos done finished sent submitted paid "
    "delivered handed given gave gone went got told signed written posted booked called rang brought bought fixed "
    "shipped merged published completed returned already answered confirmed out was were sold have has cried loved "
    "liked registered cooked baked arrived received ready dropped emailed uploaded launched released picked "
    "collected passed agreed says said replied erledigt geschickt fertig abgegeben bezahlt gebracht geschafft "
    "gesendet gegeben unterschrieben war bestellt sagt hecho enviado entregado mandé envié pagado listo terminado "
    "tiene firmado dice geregeld gedaan gestuurd klaar betaald geweest besteld af zegt instead longer any anymore "
    "took takes taking taken need needn neednt übernimmt übernommen nicht niet neemt ya encarga ll"
)
PART_OF_STEP = "ge"
STILL_OPEN = (
    "still yet haven havent never did didn didnt forgot forget forgotten noch todavía aún nog vergessen vergeten"
)
PART_OF_STILL_OPEN = "olvid"
INTRODUCED = (
    "new neue neuen neuem neuer neues nuevo nueva nieuw nieuwe hired recruited contratado eingestellt aangenomen "
    "started starts starting fängt"
)
PARTS_OF_INTRODUCED = ("joined", "empieza", "empezó", "begint", "begonnen", "call", "nam", "llamad")
EXPLAINED = (
    "he she hes shes they man woman guy lad girl boy bloke lady person colleague mann frau hombre mujer vrouw contact"
)
