"""Why a rule made no detection: which small changes of the events would have made one, each of them tried.

`trial.py` runs a rule over changed events, `edits.py` says what can be changed, `values.py` which values tests ask for,
`proposals.py` what is tried, `search.py` finds and makes small, `words.py` tells."""
