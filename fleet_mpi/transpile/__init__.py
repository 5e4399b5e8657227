"""Program -> Programs: what each role runs. Emits op names; imports no run-time."""
