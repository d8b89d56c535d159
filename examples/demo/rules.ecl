# What the security desk of a small company wants to be told. Run by `make demo`.

failed   = login and ok = false
accepted = login and ok = true
inside   = badge and direction = 'in'
outside  = badge and direction = 'out'

# Five wrong passwords, then the right one. A right one in between begins anew.
monitor guessing by user =
    repeat {
        do { push(password-guessed, host: host) { sequential { loop(5) { failed }, accepted } } }
        unless { accepted }
    }

# After a guessed password, much data leaves the house: a monitor over what another one detects.
monitor theft by user =
    repeat { push(data-theft, megabytes: megabytes) { sequential { password-guessed, transfer and megabytes > 500 } } }

# Somebody works at a desk in the office while the badge says that its owner is out.
monitor presence by user =
    in (outside) do { repeat { push(ghost-at-desk, host: host) { accepted and place = 'office' } } }
    in (inside)  do { false }

# Dump, verification and upload, in any order, must all have come when the night's backup closes.
monitor backup by server =
    repeat {
        push(backup-incomplete) {
            fail { do { sequential { accumulate { dumped, verified, uploaded }, backup-closed } } unless { backup-closed } }
        }
    }

# The sensor says 'open' every two minutes while a door stands open.
monitor doors by door =
    repeat { do { push(door-held-open) { loop(4) { door-state and open = true } } } unless { door-state and open = false } }

# One badge, two people: written out as a machine.
machine tailgating by door {
    initial free;
    badge:  free | ready | used on badge clear * -> ready;
    first:  ready on passed -> used;
    second: used on passed clear * -> free push(tailgating);
}
