"""Runs a migration: called by alembic, with the connection of ``spark_jobs.publish.database``."""

from __future__ import annotations

from alembic import context

from spark_jobs.publish.database import SCHEMA

context.configure(connection=context.config.attributes["connection"], version_table_schema=SCHEMA)
with context.begin_transaction():
    context.run_migrations()
