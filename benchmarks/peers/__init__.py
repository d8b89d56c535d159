"""How many events for a second of processor time, beside other engines that do the same? See README.md here."""

EVENTS = 500_000
