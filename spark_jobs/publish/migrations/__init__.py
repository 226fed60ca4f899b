"""Migrations of the results database, run by alembic."""
