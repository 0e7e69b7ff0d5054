"""The PostgreSQL servers that the registry's suite gets are what their names say."""

import psycopg


def test_debian_postgres_is_version_15_and_its_role_may_make_databases(debian_postgres_url: str) -> None:
    with psycopg.connect(debian_postgres_url, autocommit=True) as connection:
        assert connection.info.server_version // 10_000 == 15
        connection.execute("CREATE DATABASE fixture_probe")
        connection.execute("DROP DATABASE fixture_probe")


def test_embedded_postgres_is_version_18(embedded_postgres_url: str) -> None:
    with psycopg.connect(embedded_postgres_url) as connection:
        assert connection.info.server_version // 10_000 == 18


def test_debian_postgres_stands_in_another_zone_so_that_nothing_leans_on_the_servers(debian_postgres_url: str) -> None:
    with psycopg.connect(debian_postgres_url) as connection:
        assert connection.execute("SHOW timezone").fetchone() == ("Asia/Tokyo",)


def test_the_registrys_server_keeps_utf8(registry_url: str) -> None:
    with psycopg.connect(registry_url) as connection:
        assert connection.execute("SHOW server_encoding").fetchone() == ("UTF8",)
