"""The checksum file of a table's version, as Spark writes one with each commit, and delta-rs none.

Without it Spark asks the log what columns a version has, by a query for which it compiles code: live counts would do so
for each micro-batch of clicks. Source: Delta's protocol, version checksum file.
"""

from __future__ import annotations

from pathlib import Path

import orjson
from deltalake import DeltaTable

from include.storage import write_whole


def write_checksum(folder: Path, version: DeltaTable, files: int, size: int) -> None:
    """Write that of this version of the table in the folder, whose files are so many and have so many bytes."""
    metadata, protocol = version.metadata(), version.protocol()
    features = {"readerFeatures": protocol.reader_features, "writerFeatures": protocol.writer_features}
    checksum = {
        "tableSizeBytes": size,
        "numFiles": files,
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
    file = folder / "_delta_log" / f"{version.version():020}.crc"
    write_whole(file, lambda stream: stream.write(orjson.dumps(checksum)))
