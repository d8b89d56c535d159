hot = type = 'warm' and avg > 20
monitor stays by room = repeat { do { push(twice, avg: avg) { sequential { hot, hot } } } unless { vent } }
# a window that ends at the instant of a vent is closed after it
monitor before by room = repeat { push(aired) { sequential { vent, warm } } }
monitor after by room = repeat { push(vented) { sequential { warm, vent } } }
