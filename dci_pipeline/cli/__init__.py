"""The command `dci`: one module a command family."""
