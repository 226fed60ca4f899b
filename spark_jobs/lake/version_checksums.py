"""The checksum file of a table's newest version, as Spark writes one with each commit, and delta-rs none.

Without it Spark asks the log what columns a version has, by a query for which it compiles code: live counts would do so
for each micro-batch of clicks. Source: Delta's protocol, version checksum file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import orjson
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from include.storage import names, write_whole
from spark_jobs.lake.data_files import TableVersion
from spark_jobs.lake.new_files import NewFile

#: Of so many versions there may be one: delta-rs removes none when it removes the log of former versions.
_KEPT = 10
_NAME = re.compile(r"\d{20}\.crc")


def write_checksum(before: TableVersion, added: Sequence[NewFile]) -> None:
    """Write that of the version that follows this one by adding these files.

    There is none where another has committed in between, or it cannot be written: the table is as good without.
    """
    number = before.stored.version() + 1
    with suppress(OSError, DeltaError):
        now = DeltaTable(str(before.folder))
        if now.version() != number:
            return
        sizes = pc.sum(before.files["size_bytes"]).as_py() or 0
        of_files = {
            "tableSizeBytes": sizes + sum(file.size for file in added),
            "numFiles": before.files.num_rows + len(added),
        }
        checksum = orjson.dumps(of_files | _of_columns(now))
        write_whole(_checksum_file(before.folder, number), checksum)
        _remove_older(before.folder, number - _KEPT + 1)


def _remove_older(folder: Path, oldest: int) -> None:
    """Those of versions before the oldest; each is looked for, as what is no append has none."""
    log = _checksum_file(folder, oldest).parent
    for name in names(log):
        if _NAME.fullmatch(name) and int(name[:20]) < oldest:
            (log / name).unlink(missing_ok=True)


def _of_columns(version: DeltaTable) -> dict[str, object]:
    metadata, protocol = version.metadata(), version.protocol()
    features = {"readerFeatures": protocol.reader_features, "writerFeatures": protocol.writer_features}
    return {
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": {
            "id": metadata.id,
            "name": metadata.name,
            "description": metadata.description,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": version.schema().to_json(),
            "partitionColumns": metadata.partition_columns,
            "configuration": metadata.configuration,
            "createdTime": metadata.created_time,
        },
        "protocol": {
            "minReaderVersion": protocol.min_reader_version,
            "minWriterVersion": protocol.min_writer_version,
            **{name: listed for name, listed in features.items() if listed is not None},
        },
    }


def _checksum_file(folder: Path, version: int) -> Path:
    return folder / "_delta_log" / f"{version:020}.crc"
