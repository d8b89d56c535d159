# No key, and no timers before it: a stage of its own
monitor crowds = repeat { push(crowds) { sequential { many, many, b } } }
