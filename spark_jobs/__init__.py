"""The work of the jobs, in rooms; a command of ``clickmill`` and a DAG's task each call one."""
