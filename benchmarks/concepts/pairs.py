"""Hand-written pairs of keys: spellings of one concept, and similar keys of different concepts."""

from __future__ import annotations

SAME = """
    colour|color, favourite colour|favorite color, organisation|organization, theatre|theater, neighbour|neighbor
    neighbourhood|neighborhood, behaviour|behavior, labour day|labor day, centre|center
    community centre|community center, metre|meter, fibre|fiber, analyse|analyze, licence|license, defence|defense
    grey cat|gray cat, jewellery|jewelry, catalogue|catalog, dialogue|dialog, programme|program, cheque|check
    tyre|tire, pyjamas|pajamas, moustache|mustache, e mail|email, web site|website, wi fi|wifi, ice cream|icecream
    home town|hometown, road trip|roadtrip, videogame|video game, boardgame|board game, health care|healthcare
    child care|childcare, data base|database, time frame|timeframe, life style|lifestyle, work place|workplace
    class room|classroom, note book|notebook, start up|startup, back pack|backpack, screen shot|screenshot
    work out|workout, girl friend|girlfriend, chat gpt|chatgpt, you tube|youtube, face book|facebook
    git hub|github, linked in|linkedin, post gres|postgres, user_name|username, api_key|api key
    file name|filename, data set|dataset, code base|codebase, type script|typescript, #running|running
    #newyork|new york, #machinelearning|machine learning, #mentalhealth|mental health
    rollercoaster|roller coaster, well being|wellbeing, non profit|nonprofit, co worker|coworker, t shirt|tshirt
    nyc|new york city, ucla|university california los angeles, ml|machine learning, ai|artificial intelligence
    nlp|natural language processing, uk|united kingdom, usa|united states america, eu|european union
    la|los angeles, ceo|chief executive officer, phd|philosophy doctor, gpu|graphics processing unit
    html|hypertext markup language, recieve|receive, recomendation|recommendation, restaraunt|restaurant
    definately|definitely, accomodation|accommodation, seperate|separate, calender|calendar, tommorow|tomorrow
    begining|beginning, occurence|occurrence, wierd|weird, adress|address, beleif|belief, foriegn|foreign
    embarass|embarrass, priviledge|privilege, tournemant|tournament, mathew|matthew, melany|melanie
    catherine|catharine, phillip|philip, mohamed|mohammed, elisabeth|elizabeth, google sheets|google sheet
    github actions|github action, beatles|beatle, rockets|rocket, permutations rule|permutation rule
    action verbs|action verb, sports car|sport car, savings account|saving account
    transactions table|transaction table
"""

OTHER = """
    sister|brother, mother|father, son|daughter, aunt|uncle, husband|wife, boy|girl, king|queen, man|woman
    niece|nephew, john|joan, john|jon, maria|mario, anna|anne, marie|maria, eric|erica, paul|paula, daniel|daniela
    julia|julie, christian|christina, alexander|alexandra, emily|emma, jane|janet, tim|tom, sara|sarah
    robert|roberta, carl|carla, mark|marc, may 2022|may 2023, summer 2022|summer 2023, version 1|version 2
    room 12|room 21, level 3|level 4, gpt 3|gpt 4, iphone 12|iphone 13, chapter one|chapter two
    phase one|phase two, team a|team b, plan a|plan b, type 1|type 2, boston|austin, new york|new jersey
    north korea|south korea, spain|portugal, iran|iraq, austria|australia, paris|london, india|indiana
    china|chile, niger|nigeria, slovakia|slovenia, virginia|west virginia, oslo|bergen, dog|cat, cat|kitten
    dog|puppy, coffee|tea, breakfast|lunch, piano|violin, guitar|bass, football|baseball, apple|pear, red|blue
    left|right, morning|evening, monday|tuesday, winter|summer, hot|cold, love|hate, day|night, north|south
    dance|dancer, paint|painter, art|artist, write|writer, teach|teacher, employer|employee, trainer|trainee
    job|work, compliance|compliant, motivation|motivator, editor|edition, adviser|advice, interview|interviewer
    drive|driver, desert|dessert, angel|angle, form|from, house|horse, affect|effect, adopt|adapt, loose|lose
    quiet|quite, diary|dairy, stationary|stationery, principal|principle, complement|compliment, moral|morale
    personal|personnel, breath|breathe, cloth|clothes, custom|costume, lama|llama, super|supper, hoping|hopping
    later|latter, dinner|diner, bale|bail, python|java, java|javascript, html|css, ui|ux, sql|nosql
    mysql|postgres, http|https, tcp|udp, ios|android, git|github, login|logout, upload|download, input|output
    import|export, encode|decode, encrypt|decrypt, include|exclude, error message|error handling
    dance studio|dance class, support group|support team, data analysis|data analytics, coconut milk|coconut oil
    law of sines|law of cosines, action verb|active verb, phone call|phone case, angle side angle|side side angle
    writing process|editing process, board game|video game, rate limit|rate limiter, user_id|user_name
    get_item|set_item, main.css|main.scss, script.js|scripts.js, valid_login|invalid_login, app.py|app.js
    api_key|my_api_key, test_user|test_users, load_css|load_js, hash_password|hashed_password
    hr|hr representative, ui|user input, pc|phone call, la|last address, cs|customer service, pm|project manager
    team|teams meeting, new york|york, jersey|new jersey, bank|river bank, apple|apple pie, camping|camping trip
    birthday|birthday party, portfolio|portfolio website, volunteering|volunteer work, mentor|mentorship
    test|testing, certain|uncertain, legal|illegal, usual|unusual, dependence|independence, known|unknown
    safe|unsafe, able|unable, increase|decrease, mobile app|web app, frontend|backend
    morning session|evening session, city council|city hall, lead singer|lead guitarist, marathon|half marathon
    first date|second date, older sister|younger sister, #running|swimming, #newyork|new jersey
    mental health|physical health, science fiction|science fair
"""


def pairs(text: str) -> list[tuple[str, str]]:
    found = []
    for pair in text.replace("\n", ",").split(","):
        if pair.strip():
            key, _, other = pair.strip().partition("|")
            found.append((key, other))
    return found
