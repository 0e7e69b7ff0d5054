"""Job boards are known by the links that lead to them, never by a guess."""

import pytest

from dci_pipeline.parsing.boards import board_of


@pytest.mark.parametrize(
    ("url", "system", "slug"),
    [
        ("https://boards.greenhouse.io/acme/jobs/1", "greenhouse", "acme"),
        ("https://job-boards.eu.greenhouse.io/acme", "greenhouse", "acme"),
        ("https://boards.greenhouse.io/embed/job_board/js?for=Acme", "greenhouse", "acme"),
        ("https://jobs.lever.co/acme-halls?team=ops", "lever", "acme-halls"),
        ("https://jobs.ashbyhq.com/acme", "ashby", "acme"),
        ("https://careers.smartrecruiters.com/Acme1", "smartrecruiters", "acme1"),
        ("https://acme.wd5.myworkdayjobs.com/en-US/Careers", "workday", "acme"),
        ("https://apply.workable.com/acme/", "workable", "acme"),
        ("https://acme.jobs.personio.de", "personio", "acme"),
        ("https://acme.recruitee.com/o/engineer", "recruitee", "acme"),
    ],
)
def test_a_link_to_a_board_names_its_system_and_company(url: str, system: str, slug: str) -> None:
    board = board_of(url)
    assert board is not None
    assert (board.system, board.slug, board.url) == (system, slug, url)


@pytest.mark.parametrize(
    "url",
    [
        "https://www.greenhouse.io/",
        "https://boards.greenhouse.io/",
        "https://boards.greenhouse.io/embed/job_board",
        "https://www.recruitee.com/",
        "https://jobs.lever.co.example.org/acme",
        "https://example.org/?to=https://jobs.lever.co/acme",
        "mailto:jobs@jobs.lever.co",
    ],
)
def test_what_is_no_boards_address_is_none(url: str) -> None:
    assert board_of(url) is None
