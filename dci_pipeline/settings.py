"""The environment, read once into a frozen object; the only reader of os.environ.

Names are seed 000's where it has them (`DATABASE_URL`, `S3_ENDPOINT` …), `DCI_*` otherwise. `.env` in the working
directory is read without overriding what the environment already says. A store whose address is not set runs embedded.
"""

import ipaddress
import zoneinfo
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from dci_pipeline.errors import SettingsError, UserError

REPO_ROOT = Path(__file__).resolve().parent.parent


class Settings(BaseSettings):
    """Where everything is and what this installation may do."""

    model_config = SettingsConfigDict(env_file=".env", extra="ignore", frozen=True, populate_by_name=True)

    database_url: str | None = Field(None, alias="DATABASE_URL")
    """Postgres for the registry; unset means the embedded server. Any `postgresql://` spelling."""
    dagster_database_url: str | None = Field(None, alias="DCI_DAGSTER_DATABASE_URL")
    """Postgres for Dagster's own storage; default: the database `dagster` on the registry's server."""
    dagster_home_override: Path | None = Field(None, alias="DAGSTER_HOME")
    """Folder of the Dagster instance where the environment names one."""
    clickhouse_url: str | None = Field(None, alias="CLICKHOUSE_URL")
    clickhouse_db: str = Field("dci", alias="CLICKHOUSE_DB")
    clickhouse_optional: bool = Field(True, alias="DCI_CLICKHOUSE_OPTIONAL")
    """False makes a failing analytics store fatal."""
    s3_endpoint: str | None = Field(None, alias="S3_ENDPOINT")
    s3_bucket: str = Field("dci-raw", alias="S3_BUCKET")
    s3_access_key: str | None = Field(None, alias="S3_ACCESS_KEY", repr=False)
    s3_secret_key: str | None = Field(None, alias="S3_SECRET_KEY", repr=False)
    s3_region: str = Field("us-east-1", alias="S3_REGION")
    home: Path = Field(REPO_ROOT / ".dci", alias="DCI_HOME")
    """Everything embedded lives below it."""
    config_dir: Path = Field(REPO_ROOT / "config" / "connectors", alias="DCI_CONFIG_DIR")
    connectors: str = Field("*", alias="DCI_CONNECTORS")
    """Globs, comma-separated: the connectors of this code location."""
    partitions_start: date = Field(date(2026, 1, 1), alias="DCI_PARTITIONS_START")
    """First window; never move it forward."""
    run_slice_s: int = Field(600, alias="DCI_RUN_SLICE", ge=1)
    """Seconds after which a live run stops selecting and leaves the rest due."""
    fetch_timeout_s: float = Field(60.0, alias="DCI_FETCH_TIMEOUT", gt=0)
    """Seconds that one fetch may take with all its redirects; waits for the host's rate do not count."""
    user_agent: str = Field("DataCenterIndexBot/0.1", alias="DCI_USER_AGENT")
    """L1 identity; its product token is what robots rules are matched against."""
    contact: str | None = Field(None, alias="DCI_CONTACT")
    """Mail address or URL put into the User-Agent; without it only loopback may be crawled."""
    allow_private: str = Field("", alias="DCI_ALLOW_PRIVATE")
    """Networks, comma-separated, that the address guard lets through, for the demo and for tests."""
    opt_out: Path | None = Field(None, alias="DCI_OPT_OUT")
    """Text file of hosts and domains, one a line, that are never asked, whatever a connector says."""
    ca_bundle: Path | None = Field(None, alias="DCI_CA_BUNDLE")
    """Certificate authorities trusted for fetches, default certifi's."""
    chromium: Path | None = Field(None, alias="DCI_CHROMIUM")
    """Browser of the ladder's second rung; unset takes the first Chromium on the path."""
    firecrawl_api_key: SecretStr | None = Field(None, alias="FIRECRAWL_API_KEY", repr=False)
    """Of the ladder's third rung; unset means that no page goes there."""
    firecrawl_url: str = Field("https://api.firecrawl.dev", alias="DCI_FIRECRAWL_URL", pattern="^https?://")
    firecrawl_daily_budget: int = Field(200, alias="DCI_FIRECRAWL_DAILY_BUDGET", ge=0)
    """Credits a UTC day, for all connectors together."""
    firecrawl_credit_cost: float = Field(0.00083, alias="DCI_FIRECRAWL_CREDIT_COST", ge=0)
    """US dollars a credit, for the cost of an attempt."""
    scrapfly_api_key: SecretStr | None = Field(None, alias="SCRAPFLY_API_KEY", repr=False)
    """Of the ladder's fourth rung; unset means that no page goes there."""
    scrapfly_url: str = Field("https://api.scrapfly.io", alias="DCI_SCRAPFLY_URL", pattern="^https?://")
    scrapfly_daily_budget: int = Field(400, alias="DCI_SCRAPFLY_DAILY_BUDGET", ge=0)
    scrapfly_credit_cost: float = Field(0.00015, alias="DCI_SCRAPFLY_CREDIT_COST", ge=0)
    log_level: Literal["debug", "info", "warn", "error"] = Field("info", alias="DCI_LOG_LEVEL")
    worker_port: int = Field(8320, alias="WORKER_PORT", ge=1, le=65535)
    """Port on loopback of `dci worker`, for `/healthz` and `/metrics`."""
    alert_webhook: str | None = Field(None, alias="DCI_ALERT_WEBHOOK", repr=False)
    """Address that each alert is posted to as JSON, once when it opens and once when it is resolved."""
    alert_smtp: str | None = Field(None, alias="DCI_ALERT_SMTP", repr=False)
    """`smtp://` or `smtps://user:password@host:port` of the server that mails alerts."""
    alert_from: str = Field("dci@localhost", alias="DCI_ALERT_FROM")
    alert_to: str = Field("", alias="DCI_ALERT_TO", validate_default=True)
    """Mail addresses, comma-separated."""
    backup_dir: Path | None = Field(None, alias="DCI_BACKUP_DIR")
    """Folder of the backups; unset means `backups` below DCI_HOME."""
    backup_keep: int = Field(7, alias="DCI_BACKUP_KEEP", ge=1)
    """Backups that are kept; the oldest goes first."""
    backup_zone: str = Field("America/Toronto", alias="DCI_BACKUP_ZONE")
    """Time zone in which the daily backup is taken at 04:20."""
    maintenance_zone: str = Field("UTC", alias="DCI_MAINTENANCE_ZONE")
    """Time zone in which all other maintenance has its hours."""
    dagster_ui_url: str | None = Field(None, alias="DCI_DAGSTER_UI_URL", pattern="^https?://")
    """Address of the Dagster UI, for links shown on the operations site."""
    site_url: str | None = Field(None, alias="DCI_SITE_URL")
    """Address of the operations site, for links shown in the Dagster UI."""
    site_login: bool | None = Field(None, alias="DCI_SITE_LOGIN")
    """Whether the operations site asks for a login; unset: yes, but for loopback with the embedded registry."""

    @field_validator("allow_private")
    @classmethod
    def _networks(cls, value: str) -> str:
        for part in filter(None, (p.strip() for p in value.split(","))):
            ipaddress.ip_network(part)
        return value

    @field_validator("backup_zone", "maintenance_zone")
    @classmethod
    def _is_zone(cls, value: str) -> str:
        if value not in zoneinfo.available_timezones():
            raise ValueError("a time zone such as UTC or Europe/Zurich")
        return value

    @field_validator("alert_to")
    @classmethod
    def _has_receiver(cls, value: str, info: ValidationInfo) -> str:
        if info.data.get("alert_smtp") and not value.strip():
            raise ValueError("mail addresses, because DCI_ALERT_SMTP is set")
        return value

    @field_validator("alert_smtp")
    @classmethod
    def _is_smtp(cls, value: str | None) -> str | None:
        if value and not value.startswith(("smtp://", "smtps://")):
            raise ValueError("an address such as smtps://user:password@mail.example.org:465")
        return value

    @field_validator("firecrawl_api_key", "scrapfly_api_key")
    @classmethod
    def _is_no_blank(cls, value: SecretStr | None) -> SecretStr | None:
        """A variable that is set and empty is no key."""
        return value if value is not None and value.get_secret_value().strip() else None

    @cached_property
    def private_networks(self) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
        """Networks of `DCI_ALLOW_PRIVATE`, parsed."""
        return tuple(ipaddress.ip_network(p.strip()) for p in self.allow_private.split(",") if p.strip())

    @property
    def dagster_home(self) -> Path:
        """Folder of the Dagster instance: DAGSTER_HOME, or `dagster` below our own home; absolute."""
        return (self.dagster_home_override or self.home / "dagster").expanduser().absolute()

    @property
    def is_embedded_postgres(self) -> bool:
        return self.database_url is None

    @property
    def is_embedded_analytics(self) -> bool:
        return self.clickhouse_url is None

    @property
    def is_embedded_archive(self) -> bool:
        return self.s3_endpoint is None


_SECRET = {str(field.alias) for field in Settings.model_fields.values() if not field.repr}


def load_settings() -> Settings:
    """Settings from the environment and `.env`. Raises SettingsError with the variable's name."""
    try:
        return Settings()
    except ValidationError as exc:
        first = exc.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "?"
        value = "a value that is kept secret" if name in _SECRET else str(first["input"])
        raise SettingsError(name, value, _expected(first["msg"])) from exc
    except UnicodeDecodeError as exc:
        raise UserError(f".env: byte {exc.start} is no UTF-8; save the file as UTF-8") from exc


def _expected(message: str) -> str:
    """Pydantic's sentence as what is expected: `a valid date …` of `Input should be a valid date …`."""
    return message.removeprefix("Input should be ").removeprefix("Value error, ")
