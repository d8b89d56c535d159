monitor all = repeat { push(two) { sequential { true, true } } }
monitor beating = repeat { push(beat) { heartbeat } }
