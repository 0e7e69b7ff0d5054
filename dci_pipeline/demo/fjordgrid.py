"""The first demo site: a Nordic operator with an index sitemap, an RSS feed, a moved page and a dead link."""

from datetime import date

from dci_pipeline.demo.records import Article, Facility, Operator, TextPage

_FACILITIES = (
    Facility(
        slug="oslo-1",
        name="Oslo 1",
        power_mw=12,
        status="Operational",
        street="Brynsbakken 14",
        postcode="0667",
        city="Oslo",
        country="Norway",
        country_code="NO",
        floor_area_m2=5200,
        nearby=("oslo-2", "drammen-1"),
        description=(
            "Oslo 1 opened in 2009 in a former printing works and has been extended twice since. It is the landing "
            "point of four dark fibre rings and hosts the city's second internet exchange node.",
            "Waste heat from the two halls warms about 1,100 flats through the district heating network in the colder"
            " months.",
        ),
    ),
    Facility(
        slug="oslo-2",
        name="Oslo 2",
        power_mw=18,
        status="Operational",
        street="Alnafetgata 40",
        postcode="0668",
        city="Oslo",
        country="Norway",
        country_code="NO",
        floor_area_m2=7400,
        nearby=("oslo-1", "drammen-1"),
        description=(
            "Oslo 2 is a purpose-built campus of two buildings with a substation of its own. Each hall is fed from "
            "two independent 22 kV lines and cooled by free air for more than three hundred days a year.",
            "Cages, private suites and single racks are available; build-to-suit space is offered in the eastern "
            "building.",
        ),
    ),
    Facility(
        slug="drammen-1",
        name="Drammen 1",
        power_mw=9.5,
        status="Operational",
        street="Lierstranda 88",
        postcode="3400",
        city="Lier",
        country="Norway",
        country_code="NO",
        floor_area_m2=3900,
        nearby=("oslo-1", "oslo-2"),
        description=(
            "Drammen 1 sits beside the fjord, which supplies its cooling loop with water of four to eight degrees "
            "from a depth of sixty metres.",
            "It is used mostly as the second site of customers in Oslo; the round trip between the two is under one "
            "millisecond.",
        ),
    ),
    Facility(
        slug="stavanger-1",
        name="Stavanger 1",
        power_mw=14,
        status="Operational",
        street="Forusbeen 210",
        postcode="4313",
        city="Sandnes",
        country="Norway",
        country_code="NO",
        floor_area_m2=6100,
        nearby=("drammen-1", "trondheim-1"),
        description=(
            "Stavanger 1 was built for the energy companies of the west coast and is certified for the storage of "
            "seismic data.",
            "Two subsea cables to Britain and Denmark come ashore within ten kilometres of the building.",
        ),
    ),
    Facility(
        slug="trondheim-1",
        name="Trondheim 1",
        power_mw=6,
        status="Operational",
        street="Tungasletta 2",
        postcode="7047",
        city="Trondheim",
        country="Norway",
        country_code="NO",
        floor_area_m2=2800,
        nearby=("stavanger-1", "oslo-1"),
        description=(
            "Trondheim 1 serves the university and the technology firms around it. One hall is reserved for liquid-"
            "cooled high-performance computing at up to eighty kilowatts a rack.",
            "The building runs on hydropower bought from plants in the same county.",
        ),
    ),
    Facility(
        slug="stockholm-1",
        name="Stockholm 1",
        power_mw=22,
        status="Operational",
        street="Esbogatan 8",
        postcode="164 74",
        city="Kista",
        country="Sweden",
        country_code="SE",
        floor_area_m2=8800,
        nearby=("gothenburg-1", "helsinki-1"),
        description=(
            "Stockholm 1 is the largest of our sites outside Norway: four halls on two floors, eleven carriers and a "
            "meet-me room that is staffed around the clock.",
            "Heat is sold to the city's open district heating scheme at the market price.",
        ),
    ),
    Facility(
        slug="gothenburg-1",
        name="Gothenburg 1",
        power_mw=8,
        status="Under construction",
        street="Exportgatan 25",
        postcode="422 46",
        city="Hisings Backa",
        country="Sweden",
        country_code="SE",
        floor_area_m2=3600,
        nearby=("stockholm-1", "oslo-2"),
        description=(
            "Gothenburg 1 is being built on a plot beside the harbour railway. The shell is closed and the first "
            "transformers have been delivered; the first hall is planned for next summer.",
            "Reservations for whole halls and for single racks are open.",
        ),
    ),
    Facility(
        slug="helsinki-1",
        name="Helsinki 1",
        power_mw=11,
        status="Operational",
        street="Valimotie 13",
        postcode="00380",
        city="Helsinki",
        country="Finland",
        country_code="FI",
        floor_area_m2=4700,
        nearby=("stockholm-1", "trondheim-1"),
        description=(
            "Helsinki 1 occupies a converted foundry. Its thick floors carry fully loaded racks without reinforcement.",
            "The site is the northern end of the cable to Rostock and offers the shortest route from Finland to "
            "Frankfurt.",
        ),
    ),
)

_ARTICLES = (
    Article(
        slug="heat-for-eleven-hundred-flats",
        title="Oslo 1 now heats eleven hundred flats",
        published=date(2025, 9, 18),
        paragraphs=(
            "The heat pumps on the roof of Oslo 1 have been connected to the district heating network. From this "
            "winter they deliver up to nine gigawatt hours a year, enough for about eleven hundred flats in the "
            "neighbourhood.",
            "The project took two years and was paid for in equal parts by the city's utility and ourselves. "
            "Customers notice nothing of it: the cooling loop is separate from the halls, and a failure of the pumps "
            "only sends the heat outside again.",
            "A second installation of the same kind is planned for Stockholm, where the pipes of the open scheme pass"
            " the gate.",
        ),
    ),
    Article(
        slug="gothenburg-shell-closed",
        title="Roof is on in Gothenburg",
        published=date(2025, 6, 26),
        paragraphs=(
            "Fourteen months after the first spade went into the ground the shell of our Gothenburg building is "
            "closed. The contractor handed over the keys of the transformer yard this morning.",
            "Next come raised floors, busbars and the chillers, which arrive by rail from a factory two hundred "
            "kilometres away. The first customers are expected to move in during the coming summer.",
        ),
        links=(("/facilities/gothenburg-1", "About the Gothenburg site"),),
    ),
    Article(
        slug="twenty-years",
        title="Twenty years of racks and rain",
        published=date(2025, 3, 3),
        paragraphs=(
            "It began with one room above a bakery in Oslo, eleven racks and a window unit that froze in the first "
            "winter. Twenty years later our buildings stand in seven cities and about one hundred and forty people "
            "keep them running.",
            "We looked through the old photographs and found the first price list, the first outage report and a "
            "picture of the bakery. All of them hang in the entrance of Oslo 1 until the autumn.",
            "Thank you to the customers of the first hour. Three of the original eleven racks are still with us.",
        ),
        links=(
            ("/dc/oslo-1", "Our first building today"),
            ("/downloads/brochure-2019.html", "The brochure for our fourteenth birthday"),
        ),
    ),
    Article(
        slug="hydropower-agreement",
        title="Ten-year agreement for hydropower signed",
        published=date(2024, 11, 12),
        paragraphs=(
            "All Norwegian sites will be supplied from four river plants under a contract that runs for ten years. "
            "The volume covers their use of today and leaves room for the extension that is under way in Oslo.",
            "Guarantees of origin are cancelled month by month, and each customer receives a statement of the share "
            "used.",
        ),
        links=(("/sustainability", "How we account for energy"),),
    ),
    Article(
        slug="helsinki-cable",
        title="Second route from Helsinki to Rostock",
        published=date(2024, 8, 29),
        paragraphs=(
            "A second pair of fibres on the Baltic cable has been lit for customers of Helsinki 1. The two routes "
            "enter the building from opposite sides and share no duct on land.",
            "Waves of ten and one hundred gigabits can be ordered now and are usually delivered within five working "
            "days.",
        ),
    ),
)

_PAGES = (
    TextPage(
        path="/sustainability",
        title="Energy and water",
        paragraphs=(
            "We publish the annual energy use, the water use and the power usage effectiveness of every building. The"
            " figures are read from calibrated meters and checked by an outside auditor each spring.",
            "Over the last full year the average effectiveness across the group was 1.19. Water is used for cooling "
            "on fewer than twenty days a year and only at the sites in Sweden.",
        ),
    ),
    TextPage(
        path="/contact",
        title="Contact",
        paragraphs=(
            "Sales answers on working days between eight and five, Oslo time. The operations desk answers every "
            "minute of the year.",
            "Visitors are welcome after registration. Please bring a photo identification and leave ladders at home.",
        ),
        links=(("/status", "Service status"),),
        is_in_sitemap=False,
    ),
    TextPage(
        path="/status",
        title="Service status",
        paragraphs=("All services run normally. Planned work is announced by mail at least ten working days ahead.",),
        is_live=True,
        is_in_sitemap=False,
    ),
)

FJORDGRID = Operator(
    brand="Fjordgrid",
    name="Fjordgrid AS",
    headquarters="Oslo, Norway",
    founded=2005,
    tagline="Colocation on hydropower, from Stavanger to Helsinki",
    about=(
        "Fjordgrid builds and runs data centers in Norway, Sweden and Finland. The company is owned by its founders "
        "and by two municipal pension funds.",
        "We let space, power and cooling, and leave servers, software and clouds to our customers.",
    ),
    featured=("oslo-1", "stockholm-1", "helsinki-1"),
    facilities=_FACILITIES,
    articles=_ARTICLES,
    pages=_PAGES,
    feed_format="rss",
    has_sitemap_index=True,
    private_links=(("/private/portal", "Customer portal"), ("/private/rates", "Partner rates")),
    redirects=(("/dc/oslo-1", "/facilities/oslo-1"),),
    missing=("/downloads/brochure-2019.html",),
    without_validators=("/status",),
)
