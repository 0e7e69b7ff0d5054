"""The raw archive: bodies as they came, compressed, written once under a content key and never changed.

One class over obstore serves a folder, memory and any S3. A put is create-once: obstore writes aside and links into
place (folder) or sends `If-None-Match: *` (S3), so a reader sees the whole object or none. An object's existence is
decided by its row in Postgres; this store only keeps bytes. Power loss, unlike a killed process, may lose a folder's
last writes: the frame's checksum then tells.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import obstore
import zstandard
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    NotFoundError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)
from obstore.store import LocalStore, MemoryStore, S3Store

from dci_pipeline.errors import ObjectMissing, StoreError, StoreUnavailable
from dci_pipeline.settings import Settings

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig, S3Credential

T = TypeVar("T")
ARCHIVE_FOLDER = "archive"
"""Folder of the embedded archive below `Settings.home`."""

CONNECT_TIMEOUT = timedelta(seconds=2)
"""A store that takes longer to accept a connection is down; more would stall every chunk of a run."""
REQUEST_TIMEOUT = timedelta(seconds=30)
"""Enough for 20 MB at 1 MB/s; obstore's own default is the same, stated here because a run's slice counts on it."""
RETRY_TIMEOUT = timedelta(seconds=20)
"""obstore's 180 s would hold a chunk, and the connector's lease with it, for three minutes a put."""

_LEVEL = 6
"""On documentation HTML 13 % of the body at 105 MB/s a core; level 3: 14 % at 310, level 12: 12 % at 30."""
_REFUSALS = (
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)


def compress_body(body: bytes) -> bytes:
    """One zstd frame with the content size and a checksum in it."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True, write_checksum=True)
    return compressor.compress(body)


def decompress_body(data: bytes, max_bytes: int) -> bytes:
    """The body of one frame made by `compress_body`.

    Raises StoreError for a damaged or cut frame, or a body over `max_bytes` (checked before anything is allocated).
    """
    try:
        size = zstandard.get_frame_parameters(data).content_size
        if size == zstandard.CONTENTSIZE_UNKNOWN:
            raise StoreError("an archived body does not say its size, so it was not written by this program")
        if size > max_bytes:
            raise StoreError(f"an archived body has {size} bytes, at most {max_bytes} are read")
        return zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as exc:
        raise StoreError(f"an archived body is damaged ({exc}); restore it from a backup") from exc


class ArchiveStore:
    """Bytes by key, written once. Every method may be called from several threads at once."""

    def __init__(self, store: "ObjectStore", where: str) -> None:
        self._store = store
        self.where = where
        """Folder or address, for messages."""

    def put(self, key: str, data: bytes) -> bool:
        """True if the object was written, False if there was one already (its bytes are left as they are)."""
        try:
            self._call(key, lambda: obstore.put(self._store, key, data, mode="create"))
        except FileExistsError:
            return False
        return True

    def get(self, key: str) -> bytes:
        """The object's bytes. Raises ObjectMissing."""
        return self._call(key, lambda: obstore.get(self._store, key).bytes().to_bytes())

    def exists(self, key: str) -> bool:
        """Whether the object is there; one HEAD request on S3."""
        try:
            self._call(key, lambda: obstore.head(self._store, key))
        except ObjectMissing:
            return False
        return True

    def delete(self, key: str) -> None:
        """Removes the object; one that is not there is no error."""
        try:
            self._call(key, lambda: obstore.delete(self._store, key))
        except ObjectMissing:
            return

    def iter_keys(self, prefix: str = "") -> Iterator[str]:
        """Keys below a prefix of whole path segments (`raw/acme`, not `raw/ac`), in no order."""
        pages = iter(obstore.list(self._store, prefix or None, chunk_size=1000))
        while page := self._call(prefix, lambda: next(pages, None)):
            yield from (meta["path"] for meta in page)

    def ping(self) -> None:
        """Returns if the archive answers. Raises StoreUnavailable, StoreError.

        A GET, since a refused listing comes back as a transient error and a HEAD does not say what is missing.
        """
        try:
            self.get("raw/none")
        except ObjectMissing:
            return

    def _call(self, key: str, operation: Callable[[], T]) -> T:
        """The operation's result, obstore's errors mapped to ours; FileExistsError passes."""
        try:
            return operation()
        except AlreadyExistsError as exc:
            raise FileExistsError(key) from exc
        except (*_REFUSALS, ValueError) as exc:
            raise StoreError(f"archive at {self.where} refused {key!r}: {_reason(exc)}") from exc
        except (FileNotFoundError, NotFoundError) as exc:
            if _is_bucket_missing(exc):
                raise StoreUnavailable("archive", self.where, _reason(exc)) from exc
            raise ObjectMissing(key) from exc
        except (BaseError, OSError) as exc:
            raise StoreUnavailable("archive", self.where, _reason(exc)) from exc


class OverlayArchive(ArchiveStore):
    """Reads what is archived, keeps what is put in memory; for dry runs, which persist nothing."""

    def __init__(self, below: ArchiveStore) -> None:
        super().__init__(MemoryStore(), f"memory over {below.where}")
        self._below = below

    def put(self, key: str, data: bytes) -> bool:
        """True if it was kept in memory, False if it was there already, here or archived."""
        return not self._below.exists(key) and super().put(key, data)

    def get(self, key: str) -> bytes:
        """The object's bytes, put here or archived. Raises ObjectMissing."""
        return super().get(key) if super().exists(key) else self._below.get(key)

    def exists(self, key: str) -> bool:
        """Whether it was put here or is archived."""
        return super().exists(key) or self._below.exists(key)

    def delete(self, key: str) -> None:
        """Takes back what was put here; what is archived stays."""
        super().delete(key)

    def iter_keys(self, prefix: str = "") -> Iterator[str]:
        """Keys put here, then those archived, in no order."""
        yield from super().iter_keys(prefix)
        yield from self._below.iter_keys(prefix)

    def ping(self) -> None:
        """Returns if the archive below answers."""
        self._below.ping()


def open_archive(settings: Settings) -> ArchiveStore:
    """The archive that the settings name: a folder below `home`, or a bucket, made if it is missing.

    Raises StoreUnavailable if the address does not answer, StoreError if it refuses the keys.
    """
    if settings.s3_endpoint is not None:
        return _open_bucket(settings, settings.s3_endpoint)
    folder = settings.home.absolute() / ARCHIVE_FOLDER
    try:
        return ArchiveStore(LocalStore(folder, mkdir=True), str(folder))
    except (BaseError, OSError) as exc:
        raise StoreUnavailable("archive", str(folder), _reason(exc)) from exc


def open_memory_archive() -> ArchiveStore:
    """An empty archive that lives as long as the object; for tests and dry runs."""
    return ArchiveStore(MemoryStore(), "memory")


def open_overlay(below: ArchiveStore) -> ArchiveStore:
    """An archive whose puts are gone with the object."""
    return OverlayArchive(below)


def _open_bucket(settings: Settings, endpoint: str) -> ArchiveStore:
    where = f"{endpoint.rstrip('/')}/{settings.s3_bucket}"
    archive = ArchiveStore(_s3_store(settings, endpoint), where)
    try:
        archive.ping()
    except StoreUnavailable as exc:
        if not _is_bucket_missing(exc.__cause__):
            raise
        _create_bucket(settings, where)
    return archive


def _s3_store(settings: Settings, endpoint: str) -> S3Store:
    client: ClientConfig = {
        "allow_http": endpoint.startswith("http://"),
        "connect_timeout": CONNECT_TIMEOUT,
        "timeout": REQUEST_TIMEOUT,
    }
    retry: RetryConfig = {"max_retries": 3, "retry_timeout": RETRY_TIMEOUT}
    return S3Store(
        settings.s3_bucket,
        # the name that wins over every AWS_* variable of the environment, which obstore reads on its own
        aws_endpoint_url_s3=endpoint,
        region=settings.s3_region,
        virtual_hosted_style_request=False,
        client_options=client,
        retry_config=retry,
        credential_provider=_key_provider(settings),
    )


def _key_provider(settings: Settings) -> "Callable[[], S3Credential] | None":
    """The settings' keys, so that a stray AWS_SESSION_TOKEN is not mixed in; None leaves it to the machine's role."""
    access_key, secret_key = settings.s3_access_key, settings.s3_secret_key
    if access_key is None or secret_key is None:
        return None
    return lambda: {
        "access_key_id": access_key,
        "secret_access_key": secret_key,
        "token": None,
        "expires_at": None,
    }


def _create_bucket(settings: Settings, where: str) -> None:
    """Makes the bucket through boto3, since obstore has no call for it; another process may have been faster."""
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

    try:
        _boto_client(settings).create_bucket(Bucket=settings.s3_bucket, **_bucket_location(settings.s3_region))
    except ClientError as exc:
        if exc.response["Error"]["Code"] not in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
            raise StoreError(f"archive at {where}: the bucket is missing and cannot be made ({exc})") from exc
    except BotoCoreError as exc:
        raise StoreUnavailable("archive", where, str(exc)) from exc


def _boto_client(settings: Settings) -> Any:
    import boto3  # type: ignore[import-untyped]  # 0.3 s to import, needed once in a bucket's life
    from botocore.config import Config  # type: ignore[import-untyped]

    config = Config(
        connect_timeout=CONNECT_TIMEOUT.total_seconds(),
        read_timeout=RETRY_TIMEOUT.total_seconds(),
        retries={"max_attempts": 2},
        s3={"addressing_style": "path"},
        # boto3 from 1.36 on adds checksums that S3-likes refuse (boto/boto3#4392)
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    return boto3.client(
        "s3",
        endpoint_url=settings.s3_endpoint,
        region_name=settings.s3_region,
        aws_access_key_id=settings.s3_access_key,
        aws_secret_access_key=settings.s3_secret_key,
        config=config,
    )


def _bucket_location(region: str) -> dict[str, dict[str, str]]:
    """S3 refuses its oldest region's own name as a constraint."""
    return {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}


def _is_bucket_missing(exc: BaseException | None) -> bool:
    """S3 answers 404 for a missing object and a missing bucket alike; only the body tells them apart."""
    return "NoSuchBucket" in str(exc)


def _reason(exc: Exception) -> str:
    """An error's first line: obstore appends several of XML and debug output."""
    return (str(exc).strip() or type(exc).__name__).splitlines()[0]
