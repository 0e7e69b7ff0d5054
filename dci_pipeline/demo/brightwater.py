"""The second demo site: a British and Irish operator with an Atom feed, which changes its name between the visits."""

from datetime import date

from dci_pipeline.demo.records import Article, Facility, Operator, TextPage

_FACILITIES = (
    Facility(
        slug="slough-east",
        name="Slough East",
        power_mw=32,
        status="Operational",
        street="61 Farnham Road",
        postcode="SL1 3TN",
        city="Slough",
        country="United Kingdom",
        country_code="GB",
        floor_area_m2=13400,
        nearby=("docklands-house", "dublin-west"),
        description=(
            "Slough East is our flagship: six halls on three storeys, a private substation and roof space for a "
            "further nine chillers.",
            "Latency-sensitive customers reach the financial exchanges of the City in well under a millisecond.",
        ),
    ),
    Facility(
        slug="docklands-house",
        name="Docklands House",
        power_mw=7.5,
        status="Operational",
        street="4 Nutmeg Quay",
        postcode="E14 2BG",
        city="London",
        country="United Kingdom",
        country_code="GB",
        floor_area_m2=2950,
        nearby=("slough-east", "manchester-trafford"),
        description=(
            "Docklands House is a small, densely connected building for network equipment. More than sixty carriers "
            "are present.",
            "Cross-connects are installed within one working day, at night on request.",
        ),
    ),
    Facility(
        slug="manchester-trafford",
        name="Manchester Trafford",
        power_mw=10,
        status="Operational",
        street="Unit 9, Mosley Road",
        postcode="M17 1PG",
        city="Manchester",
        country="United Kingdom",
        country_code="GB",
        floor_area_m2=4100,
        nearby=("docklands-house", "slough-east"),
        description=(
            "Manchester Trafford serves broadcasters, universities and the public sector of the north of England.",
            "The building was refitted in 2021 with indirect evaporative cooling and a new fire-suppression system.",
        ),
    ),
    Facility(
        slug="swindon-park",
        name="Swindon Park",
        power_mw=4.2,
        status="Operational",
        street="22 Kembrey Drive",
        postcode="SN2 8UY",
        city="Swindon",
        country="United Kingdom",
        country_code="GB",
        floor_area_m2=1800,
        nearby=("slough-east", "docklands-house"),
        description=(
            "Swindon Park offers backup space at a distance of seventy kilometres from Slough, with two diverse fibre"
            " paths.",
            "Its single hall holds about two hundred racks.",
        ),
    ),
    Facility(
        slug="dublin-west",
        name="Dublin West",
        power_mw=20,
        status="Under construction",
        street="Profile Park, Nangor Road",
        postcode="D22 TY56",
        city="Dublin",
        country="Ireland",
        country_code="IE",
        floor_area_m2=8000,
        nearby=("slough-east", "manchester-trafford"),
        description=(
            "Dublin West is our first building in Ireland. It has a grid connection in hand and an on-site plant that"
            " can carry the whole load for two days.",
            "The first of two phases is being fitted out and is let in full.",
        ),
    ),
)

_ARTICLES = (
    Article(
        slug="dublin-grid-connection",
        title="Dublin West receives its grid connection",
        published=date(2025, 8, 7),
        paragraphs=(
            "The transmission operator energised the connection of Dublin West on Tuesday. The building now draws "
            "power from two substations, four kilometres apart.",
            "Fit-out of the first phase continues to plan. The whole of it has been let to one customer, who moves in"
            " hall by hall.",
        ),
    ),
    Article(
        slug="trafford-refit-award",
        title="Regional award for the Trafford refit",
        published=date(2025, 4, 22),
        paragraphs=(
            "The refit of our Manchester building has won the region's prize for the reuse of industrial property. "
            "The judges praised that no hall was out of service for longer than a weekend.",
            "The cooling plant that was installed uses about two thirds of the energy of the one it replaced.",
        ),
    ),
    Article(
        slug="apprentices-2025",
        title="Six apprentices join the critical-systems team",
        published=date(2025, 1, 15),
        paragraphs=(
            "Six young engineers from Slough and Manchester have started a three-year apprenticeship with us. They "
            "will learn high-voltage switching, chiller maintenance and the art of writing a handover that the next "
            "shift understands.",
            "The programme has run since 2016; nineteen of its twenty-four graduates still work here.",
        ),
        links=(("/careers", "Open positions"),),
    ),
    Article(
        slug="docklands-sixty-carriers",
        title="Sixty carriers in Docklands House",
        published=date(2024, 10, 1),
        paragraphs=(
            "With a regional provider from Kent the number of networks in Docklands House has reached sixty. When the"
            " building opened there were nine.",
            "A second meet-me room on the first floor is ready and takes orders from next month.",
        ),
    ),
)

_PAGES = (
    TextPage(
        path="/careers",
        title="Careers",
        paragraphs=(
            "We look for people who like to know how things work and who stay calm when they do not. There are "
            "openings for shift engineers in Slough and for a commissioning manager in Dublin.",
            "Applications are read by the team that you would join, usually within a week.",
        ),
    ),
    TextPage(
        path="/contact",
        title="Contact us",
        paragraphs=(
            "Our offices are in Slough, Manchester and Dublin. Remote hands are on site at every hour of the day.",
            "For an emergency please use the number on your access card.",
        ),
        is_in_sitemap=False,
    ),
)

BRIGHTWATER = Operator(
    brand="Brightwater",
    name="Brightwater Data Centres Ltd",
    headquarters="Slough, United Kingdom",
    founded=2011,
    tagline="Dependable space and power across Britain and Ireland",
    about=(
        "We design, build and operate carrier-neutral data centers. Every building is owned freehold, and every "
        "engineer on shift is employed by us.",
        "The group employs about two hundred and twenty people and is audited each year against the standards for "
        "quality, security and energy.",
    ),
    featured=("slough-east", "docklands-house"),
    facilities=_FACILITIES,
    articles=_ARTICLES,
    pages=_PAGES,
    feed_format="atom",
    unstable_validators=("/careers",),
)
