"""The registry's statements, one module a subject: functions over a connection inside the caller's transaction."""
