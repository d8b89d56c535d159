# ECCO sets its timer when it takes the instant, after all the others
monitor order by k = repeat { push(all) { sequential { o, m, c, e } } }
monitor event by k = repeat { push(first) { sequential { b, o } } }
