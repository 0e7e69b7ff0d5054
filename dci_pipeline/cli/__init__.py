"""`dci`: one module a command family; `main` finds the family of a command and loads nothing else."""
