"""What every archive keeps: written once, whole or not at all, by keys that no page chooses."""

import hashlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore.exceptions
import pytest

from dci_pipeline.errors import ObjectMissing, StoreError, StoreUnavailable
from dci_pipeline.settings import Settings
from dci_pipeline.stores.archive import (
    ArchiveStore,
    compress_body,
    decompress_body,
    open_archive,
    open_memory_archive,
)
from dci_pipeline.stores.archive_keys import raw_key
from dci_pipeline_tests.contract.servers import S3Server, free_ports, s3_settings

DOCUMENT = "0123456789abcdef0123456789abcdef"
BODY = "<html><body>Frankfurt 24 MW – 東京</body></html>".encode()


def key_of(body: bytes, document: str = DOCUMENT) -> str:
    return raw_key("acme", document, hashlib.sha256(body).hexdigest(), "html")


def test_a_body_comes_back_byte_for_byte(archive: ArchiveStore) -> None:
    body = bytes(range(256)) * 4000
    assert archive.put(key_of(body), compress_body(body)) is True
    assert decompress_body(archive.get(key_of(body)), max_bytes=len(body)) == body


def test_an_archive_that_answers_says_so(archive: ArchiveStore) -> None:
    archive.ping()


def test_an_empty_object_comes_back_empty(archive: ArchiveStore) -> None:
    assert archive.put(key_of(b""), b"") is True
    assert archive.get(key_of(b"")) == b""


def test_a_second_put_says_false_and_changes_nothing(archive: ArchiveStore) -> None:
    assert archive.put(key_of(BODY), b"first") is True
    assert archive.put(key_of(BODY), b"second") is False
    assert archive.get(key_of(BODY)) == b"first"


def test_of_many_writers_at_once_exactly_one_writes(archive: ArchiveStore) -> None:
    barrier = threading.Barrier(8)

    def write(number: int) -> bool:
        barrier.wait()
        return archive.put(key_of(BODY), b"%d" % number * 50_000)

    with ThreadPoolExecutor(8) as pool:
        written = list(pool.map(write, range(8)))
    assert sorted(written) == [False] * 7 + [True]
    assert archive.get(key_of(BODY)) == b"%d" % written.index(True) * 50_000


def test_many_threads_put_many_objects(archive: ArchiveStore) -> None:
    bodies = [b"page %d" % number for number in range(200)]
    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(lambda body: archive.put(key_of(body), body), bodies))
        assert list(pool.map(lambda body: archive.get(key_of(body)), bodies)) == bodies


def test_a_reader_never_sees_a_part_of_an_object(archive: ArchiveStore) -> None:
    """Case of torn writes: readers poll while a large object is written."""
    data, seen, stop = os.urandom(4_000_000), set[int](), threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                seen.add(len(archive.get(key_of(BODY))))
            except ObjectMissing:
                seen.add(-1)

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        archive.put(key_of(BODY), data)
        stop.set()
        reader.result()
    assert seen <= {-1, 4_000_000}


def test_a_missing_object_is_told_by_its_key(archive: ArchiveStore) -> None:
    with pytest.raises(ObjectMissing, match=key_of(BODY)):
        archive.get(key_of(BODY))
    assert archive.exists(key_of(BODY)) is False


def test_exists_follows_put_and_delete(archive: ArchiveStore) -> None:
    archive.put(key_of(BODY), BODY)
    assert archive.exists(key_of(BODY)) is True
    archive.delete(key_of(BODY))
    assert archive.exists(key_of(BODY)) is False


def test_deleting_what_is_not_there_is_no_error(archive: ArchiveStore) -> None:
    archive.delete(key_of(BODY))


def test_a_deleted_object_can_be_put_again(archive: ArchiveStore) -> None:
    archive.put(key_of(BODY), b"one")
    archive.delete(key_of(BODY))
    assert archive.put(key_of(BODY), b"two") is True
    assert archive.get(key_of(BODY)) == b"two"


def test_keys_are_listed_by_whole_path_segments(archive: ArchiveStore) -> None:
    for key in ("raw/acme/d1/a.html.zst", "raw/acme/d2/b.html.zst", "raw/acme_two/d1/c.html.zst"):
        archive.put(key, b"x")
    assert sorted(archive.iter_keys("raw/acme")) == ["raw/acme/d1/a.html.zst", "raw/acme/d2/b.html.zst"]
    assert len(list(archive.iter_keys())) == 3
    assert list(archive.iter_keys("raw/none")) == []


def test_a_listing_over_many_pages_is_complete(archive: ArchiveStore) -> None:
    keys = {f"raw/acme/{DOCUMENT}/{number:064x}.html.zst" for number in range(1_050)}
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda key: archive.put(key, b"x"), keys))
    assert set(archive.iter_keys("raw/acme")) == keys


@pytest.mark.parametrize("key", ["raw//x", "raw/../x"], ids=["empty segment", "parent"])
def test_a_key_that_is_no_plain_path_is_refused(archive: ArchiveStore, key: str) -> None:
    with pytest.raises(StoreError, match=r"refused 'raw/"):
        archive.put(key, b"x")


def test_a_url_with_a_part_over_255_characters_is_kept_under_its_hash(archive: ArchiveStore) -> None:
    """Case 66: a folder or an S3 refuses such a part, so no key holds any of a URL."""
    url = "https://example.test/" + "x" * 300 + "?q=%2e%2e/#é"
    document = hashlib.sha256(url.encode()).hexdigest()[:32]
    assert archive.put(key_of(BODY, document), BODY) is True
    assert max(map(len, next(archive.iter_keys()).split("/"))) < 100


def test_a_file_left_by_a_killed_writer_is_neither_listed_nor_in_the_way(tmp_path: Path) -> None:
    archive = open_archive(Settings(DCI_HOME=tmp_path))
    target = tmp_path / "archive" / key_of(BODY)
    target.parent.mkdir(parents=True)
    target.with_name(f"{target.name}#1").write_bytes(b"half")
    assert list(archive.iter_keys()) == []
    assert archive.put(key_of(BODY), BODY) is True
    assert archive.get(key_of(BODY)) == BODY


def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "archive").write_text("a file where the folder should be")
    with pytest.raises(StoreUnavailable, match=r"archive at .* does not answer"):
        open_archive(Settings(DCI_HOME=tmp_path)).put(key_of(BODY), BODY)


@pytest.mark.timeout(30)
def test_an_address_where_nobody_listens_fails_within_seconds() -> None:
    (port,) = free_ports(1)
    nobody = S3Server(endpoint=f"http://127.0.0.1:{port}", access_key="a", secret_key="b")
    with pytest.raises(StoreUnavailable, match=f"127.0.0.1:{port}/dci-raw does not answer"):
        open_archive(s3_settings(nobody))


def test_a_wrong_key_is_refused_and_not_retried(seaweedfs: S3Server) -> None:
    wrong = S3Server(endpoint=seaweedfs.endpoint, access_key="contract", secret_key="wrong")
    with pytest.raises(StoreError, match="refused") as caught:
        open_archive(s3_settings(wrong))
    assert not isinstance(caught.value, StoreUnavailable)


def test_a_bucket_is_made_once_and_found_again(seaweedfs: S3Server) -> None:
    """Case 68: bucket, put and get against an S3 that is not Amazon's, with checksums only where required."""
    first = open_archive(s3_settings(seaweedfs, bucket="made-here"))
    first.put(key_of(BODY), BODY)
    assert open_archive(s3_settings(seaweedfs, bucket="made-here")).get(key_of(BODY)) == BODY


def test_a_bucket_that_vanishes_is_unavailable_and_not_a_missing_object(seaweedfs: S3Server) -> None:
    import boto3  # type: ignore[import-untyped]

    archive = open_archive(s3_settings(seaweedfs, bucket="vanishes"))
    boto3.client(
        "s3",
        endpoint_url=seaweedfs.endpoint,
        region_name="us-east-1",
        aws_access_key_id=seaweedfs.access_key,
        aws_secret_access_key=seaweedfs.secret_key,
    ).delete_bucket(Bucket="vanishes")
    with pytest.raises(StoreUnavailable):
        archive.get(key_of(BODY))


def test_variables_of_another_amazon_account_do_not_mix_in(
    seaweedfs: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "someone-elses")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    archive = open_archive(s3_settings(seaweedfs, bucket="own-account"))
    assert archive.put(key_of(BODY), BODY) is True


ERRORS = {
    "AlreadyExistsError": FileExistsError,
    "BaseError": StoreUnavailable,
    "GenericError": StoreUnavailable,
    "InvalidPathError": StoreError,
    "JoinError": StoreUnavailable,
    "NotFoundError": ObjectMissing,
    "NotModifiedError": StoreUnavailable,
    "NotSupportedError": StoreError,
    "PermissionDeniedError": StoreError,
    "PreconditionError": StoreUnavailable,
    "UnauthenticatedError": StoreError,
    "UnknownConfigurationKeyError": StoreError,
}


def test_every_error_of_the_library_is_known_here() -> None:
    assert {name for name in vars(obstore.exceptions) if name.endswith("Error")} == set(ERRORS)


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_of_the_library_becomes_one_of_ours(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise getattr(obstore.exceptions, name)("what happened\n\nDebug source: much")

    monkeypatch.setattr(obstore, "get", fail)
    with pytest.raises(ERRORS[name]) as caught:
        open_memory_archive().get("raw/x")
    assert type(caught.value) is ERRORS[name]
    assert "Debug source" not in str(caught.value)
