"""The third demo site: a Japanese operator whose Japanese pages are in Shift_JIS, declared by header or by meta."""

from datetime import date

from dci_pipeline.demo.records import Article, Facility, Operator, TextPage

_FACILITIES = (
    Facility(
        slug="tokyo-koto",
        name="Tokyo Koto",
        power_mw=16,
        status="Operational",
        street="3-5-7 Shinsuna",
        postcode="136-0075",
        city="Koto-ku, Tokyo",
        country="Japan",
        country_code="JP",
        floor_area_m2=9600,
        nearby=("osaka-konohana", "fukuoka-hakata"),
        description=(
            "Tokyo Koto is a seismically isolated building of eight storeys on the bay. It is connected to both of "
            "the city's major exchange points.",
            "Fuel for seventy-two hours is kept on site and is tested every quarter.",
        ),
    ),
    Facility(
        slug="inzai-1",
        name="印西データセンター1号棟",
        power_mw=24,
        status="稼働中",
        street="大塚1丁目8番",
        postcode="270-1352",
        city="千葉県印西市",
        country="日本",
        country_code="JP",
        floor_area_m2=14200,
        nearby=("tokyo-koto", "inzai-2"),
        operator="青空データセンター株式会社",
        language="ja",
        declaration="shift_jis in the header",
        description=(
            "印西データセンター1号棟は、都心から約40キロメートルの安定した地盤の上に建つ免震構造の施設です。",
            "特別高圧の2系統受電と非常用発電機により、停電時も連続して電力を供給します。見学は予約制です。",
        ),
    ),
    Facility(
        slug="inzai-2",
        name="印西データセンター2号棟",
        power_mw=30,
        status="建設中",
        street="大塚1丁目9番",
        postcode="270-1352",
        city="千葉県印西市",
        country="日本",
        country_code="JP",
        floor_area_m2=17800,
        nearby=("tokyo-koto", "inzai-1"),
        operator="青空データセンター株式会社",
        language="ja",
        declaration="shift_jis in a meta",
        description=(
            "印西データセンター2号棟は、1号棟に隣接する敷地に計画された大規模施設です。高密度ラックと液冷設備に対応します。",
            "1号棟とは専用の光ファイバーで結ばれ、両棟をまたぐ構成もご利用いただけます。",
        ),
    ),
    Facility(
        slug="osaka-konohana",
        name="Osaka Konohana",
        power_mw=9,
        status="Operational",
        street="1-2-44 Shimaya",
        postcode="554-0024",
        city="Konohana-ku, Osaka",
        country="Japan",
        country_code="JP",
        floor_area_m2=5100,
        nearby=("tokyo-koto", "fukuoka-hakata"),
        description=(
            "Osaka Konohana is the western backup site of many customers in Tokyo. The ground floor stands four "
            "metres above the highest flood level on record.",
            "Two halls are in use; a third can be fitted out within five months.",
        ),
    ),
    Facility(
        slug="fukuoka-hakata",
        name="Fukuoka Hakata",
        power_mw=5.5,
        status="Planned",
        street="6-1-20 Hakata Ekihigashi",
        postcode="812-0013",
        city="Hakata-ku, Fukuoka",
        country="Japan",
        country_code="JP",
        floor_area_m2=2600,
        nearby=("osaka-konohana", "tokyo-koto"),
        description=(
            "Fukuoka Hakata will bring our services to Kyushu, close to the cables that lead to Busan and Shanghai.",
            "The permits have been filed and the ground survey is complete.",
        ),
    ),
)

_ARTICLES = (
    Article(
        slug="fukuoka-ground-survey",
        title="Ground survey in Fukuoka complete",
        published=date(2025, 7, 10),
        paragraphs=(
            "Engineers have finished the survey of the plot beside Hakata station. The bedrock lies at eleven metres,"
            " so that the building can stand on short piles.",
            "Permits are expected in the spring. Customers who wish to reserve space are welcome to talk to us "
            "already.",
        ),
    ),
    Article(
        slug="quarterly-fuel-test",
        title="What happens during a fuel test",
        published=date(2025, 5, 28),
        paragraphs=(
            "Four times a year the generators of Tokyo Koto carry the whole building for six hours. Samples of the "
            "fuel are sent to a laboratory, and the tanks are topped up from two suppliers.",
            "The test has been carried out thirty-one times without an interruption. A report of each is available in"
            " the portal.",
        ),
    ),
    Article(
        slug="liquid-cooling-trial",
        title="Liquid cooling trial finished with good results",
        published=date(2025, 2, 14),
        paragraphs=(
            "Over six months we have run forty racks with direct liquid cooling. The average load was fifty-two "
            "kilowatts a rack, and the energy for cooling fell by a third.",
            "The lessons go into the halls that are being built now. Pipes, valves and leak detection will be "
            "standard there.",
        ),
    ),
    Article(
        slug="osaka-flood-drill",
        title="Flood drill with the city of Osaka",
        published=date(2024, 9, 5),
        paragraphs=(
            "Together with the ward office our staff practised a storm surge. Flood gates were closed within nine "
            "minutes, and the night shift was doubled by volunteers who live nearby.",
            "The drill will be repeated next autumn with the neighbours of the harbour.",
        ),
    ),
)

_PAGES = (
    TextPage(
        path="/ja/company",
        title="会社概要",
        paragraphs=(
            "青空データセンター株式会社は、東京・千葉・大阪でデータセンターを運営しています。創業は2008年、従業員は約180名です。",
            "お客様の機器を安全にお預かりし、電力・空調・回線を安定して提供することが私たちの仕事です。",
        ),
        language="ja",
        declaration="shift_jis in a meta",
    ),
    TextPage(
        path="/contact",
        title="Contact",
        paragraphs=(
            "Enquiries in Japanese and English are answered within one working day. Site visits can be arranged at "
            "all locations.",
            "The network operations centre in Koto is staffed at all times.",
        ),
    ),
)

AOZORA = Operator(
    brand="Aozora Data Center",
    name="Aozora Data Center K.K.",
    headquarters="Koto-ku, Tokyo, Japan",
    founded=2008,
    tagline="Earthquake-safe colocation in Tokyo, Chiba and Osaka",
    about=(
        "Aozora operates data centers in the Kanto and Kansai regions. The company was founded by engineers of a "
        "railway operator and still keeps their timetable discipline.",
        "All sites are built on isolators or on bedrock, and each is visited by an independent structural engineer "
        "every year.",
    ),
    featured=("tokyo-koto", "osaka-konohana"),
    facilities=_FACILITIES,
    articles=_ARTICLES,
    pages=_PAGES,
    feed_format="rss",
    without_validators=("/facilities/osaka-konohana", "/contact"),
    unstable_validators=("/",),
)
